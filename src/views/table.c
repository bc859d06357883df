/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of views; a new view is a file with a few small functions, and a row here. */
#include "views/table.h"

#include <errno.h>
#include <string.h>

#include "views/node.h"

/* one view on each line */
/* clang-format off */
const struct view_ops *const view_table[] = {
	&view_bin,
	&view_array,
	&view_ragged_array,
	&view_text,
	&view_blocks,
	&view_samples,
	&view_text_samples,
	&view_ragged_samples,
	&view_blob_samples,
	&view_info,
	&view_stack,
	&view_slice,
	&view_images,
	&view_tiff,
	&view_epochs,
	&view_shards,
	&view_shards_sized,
	&view_h5,
	&view_classes,
	&view_classes_npy,
	&view_manifest_csv,
	&view_manifest_jsonl,
	&view_files_txt,
	&view_file_list,
	&view_metadata_csv,
	&view_safetensors,
	&view_zarr,
	&view_zarr3,
	NULL
};
/* clang-format on */
_Static_assert(sizeof view_table / sizeof *view_table - 1 <= VIEWS_MAX,
	       "each view has a bit in view_options.views");

void view_options_default(struct view_options *o)
{
	memset(o, 0, sizeof *o);
	o->sample_axes = 1;
	for (unsigned i = 0; view_table[i]; i++)
		o->views |= view_table[i]->unlisted ? 0 : UINT64_C(1) << i;
}

/* Several rows may have one name: views of the same name for other kinds of tensors. */
uint64_t view_rows(const char *name, size_t len)
{
	uint64_t bits = 0;

	if (len == 3 && !memcmp(name, "all", 3))
		return UINT64_MAX;

	for (unsigned i = 0; view_table[i]; i++) {
		const char *have = view_table[i]->name;

		if (have && strlen(have) == len && !memcmp(have, name, len))
			bits |= UINT64_C(1) << i;
	}
	return bits;
}

bool view_is_listed(const struct view_options *o, const char *name)
{
	return o->views & view_rows(name, strlen(name));
}

int view_options_parse(struct view_options *o, const char *list,
		       struct error *err)
{
	uint64_t views = 0;

	while (*list) {
		size_t len = strcspn(list, ",+");
		uint64_t bits = view_rows(list, len);

		if (!bits)
			return error_set(err, -EINVAL,
					 "there is no view '%.*s' (views: %s)",
					 (int)len, list, view_names());
		views |= bits;
		list += len + (list[len] != 0);
	}
	if (!views)
		return error_set(err, -EINVAL, "no view given (views: %s)",
				 view_names());
	o->views = views;
	return 0;
}

const char *view_names(void)
{
	return "array, bin, text, blocks, samples, classes, classes-npy, "
	       "epochs, h5, images, lists, safetensors, shards, slice, "
	       "stack, tiff, zarr, zarr3";
}
