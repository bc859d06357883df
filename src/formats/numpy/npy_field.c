/* SPDX-License-Identifier: BSD-2-Clause */
/* Fields of structures in .npy files, wherever these are, as arrays of their own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/numpy/npy.h"

/* Structures with more fields have no directory of them, as in HDF5. */
#define FIELDS_MAX 4096

void npy_field_axes(const struct dtype_field *field, unsigned rank,
		    uint64_t *shape)
{
	for (uint32_t i = 0; field && i < field->rank; i++)
		shape[rank + i] = field->dims[i];
}

bool npy_shape(const struct npy_file *f, const struct dtype_field *field,
	       struct array_spec *spec)
{
	spec->stored = f->dtype;
	spec->field = field;
	spec->rank = f->rank + (field ? field->rank : 0);
	if (spec->rank > RANK_MAX)
		return false;
	memcpy(spec->shape, f->shape, f->rank * sizeof *f->shape);
	npy_field_axes(field, f->rank, spec->shape);
	return true;
}

int npy_recode(struct arrays *s, const struct dtype *stored,
	       const struct dtype_field *field, struct recode *out,
	       struct error *err)
{
	struct dtype served;

	memset(out, 0, sizeof *out);
	if (!arrays_served(s, field ? &field->type : stored, &served))
		return error_no_memory(err, "the type of the array");
	return dtype_recode(stored, &served, field, out)
		       ? 0
		       : error_set(err, -ENOTSUP,
				   "its type is too complicated");
}

/* Publish a field; if it cannot be shown, the reason is listed. */
static int publish_npy_field(struct arrays *s, struct tree_builder *b,
			     uint32_t dir, const char *path,
			     const struct dtype_field *field,
			     npy_field_fn *make, void *ctx, struct error *err)
{
	cleanup_free char *name = NULL;
	struct error why = {0};
	struct array *array;
	int r;

	if (asprintf(&name, "%s/fields/%s", path, field->name) < 0) {
		name = NULL;
		return error_no_memory(err, "the name of a field");
	}
	r = make(ctx, field, name, &array, &why);
	if (r == 0)
		return array_publish(b, dir, field->name, array, NULL, err);
	if (r == -ENOTSUP)
		return array_publish_not(s, b, dir, field->name, &why, err);
	*err = why;
	return r;
}

int npy_fields(struct arrays *s, struct tree_builder *b, uint32_t dir,
	       const char *path, const struct dtype *d, npy_field_fn *make,
	       void *ctx, struct error *err)
{
	uint32_t fields;
	int r = 0;

	if (d->kind != DTYPE_STRUCT || d->nfields > FIELDS_MAX)
		return 0;
	fields = tree_add_dir(b, dir, "fields", s->mtime);
	if (fields == UINT32_MAX)
		return error_no_memory(err, "the directory of the fields");
	for (uint32_t i = 0; i < d->nfields && r == 0; i++)
		r = publish_npy_field(s, b, fields, path, &d->fields[i], make,
				      ctx, err);
	return r;
}
