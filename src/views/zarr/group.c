/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the documents of groups in a Zarr hierarchy, including consolidated metadata. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "views/zarr/catalog.h"
#include "views/zarr/zarr.h"

#define ZGROUP "{\"zarr_format\": 2}"

/* Return the attributes of a group as a JSON object, "{}" if it has none.  The caller
 * frees the text. */
static char *zarr_group_attributes(const struct zarr_catalog *c,
				   const struct zarr_entry *e,
				   struct error *err)
{
	const struct files_ops *ops = e->files ? e->files->ops : NULL;
	char *text;
	ssize_t n = ops && ops->xattr
			    ? ops->xattr(e->files, 0, "attrs", NULL, NULL, 0)
			    : -ENODATA;

	if (n == -ENODATA || n == 0) {
		text = strdup("{}");
		if (!text)
			error_no_memory(err, "the attributes of a group");
		return text;
	}
	text = n < 0 ? NULL : malloc((size_t)n + 1);
	if (n > 0 && !text) {
		error_no_memory(err, "the attributes of a group");
		return NULL;
	}
	if (n > 0)
		n = ops->xattr(e->files, 0, "attrs", NULL, text, (size_t)n);
	if (n < 0) {
		error_errno(err, (int)n,
			    "the attributes of group '%s' cannot be read",
			    zarr_entry_name(c, e));
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* ---- .zmetadata ------------------------------------------------------------ */

struct metadata {
	const struct zarr_catalog *c;
	FILE *out;
	bool more;
	struct error *err;
};

/* Write `"PATH/NAME": TEXT` and free the text; it may be NULL, with m->err set. */
static int metadata_put(struct metadata *m, const char *path, const char *name,
			char *text)
{
	cleanup_free char *key = NULL, *quoted = NULL;
	json_t *j;

	if (text && asprintf(&key, "%s%s", path, name) < 0)
		key = NULL;
	j = key ? json_text(key, strlen(key)) : NULL;
	quoted = j ? json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
	json_decref(j);
	if (text && !quoted)
		error_no_memory(m->err, "consolidated metadata");
	if (quoted)
		fprintf(m->out, "%s\n%s: %s", m->more ? "," : "", quoted, text);
	m->more = true;
	free(text);
	return quoted ? 0 : m->err->code;
}

static int metadata_put_entry(struct metadata *m, const struct zarr_entry *e,
			      const char *path)
{
	int r;

	if (e->tensor) {
		r = metadata_put(m, path, ".zarray",
				 zarr_array_text(e->tensor, m->err));
		return r < 0 ? r
			     : metadata_put(
				       m, path, ".zattrs",
				       zarr_attributes_text(e->tensor, m->err));
	}
	r = metadata_put(m, path, ".zgroup", strdup(ZGROUP));
	if (r == 0)
		r = metadata_put(m, path, ".zattrs",
				 zarr_group_attributes(m->c, e, m->err));
	for (uint32_t i = 0; i < e->count && r == 0; i++) {
		const struct zarr_entry *below = &m->c->entry[e->first + i];
		cleanup_free char *longer = NULL;

		if (asprintf(&longer, "%s%s/", path,
			     zarr_entry_name(m->c, below)) < 0) {
			longer = NULL;
			return error_no_memory(m->err, "the path of a group");
		}
		r = metadata_put_entry(m, below, longer);
	}
	return r;
}

static char *metadata_text(const struct zarr_catalog *c,
			   const struct zarr_entry *e, struct error *err)
{
	char *text = NULL;
	size_t len;
	struct metadata m = {c, open_memstream(&text, &len), false, err};
	int r;

	if (!m.out) {
		error_no_memory(err, "consolidated metadata");
		return NULL;
	}
	fputs("{\"metadata\": {", m.out);
	r = metadata_put_entry(&m, e, "");
	fputs("}, \"zarr_consolidated_format\": 1}\n", m.out);
	if (fclose(m.out) == 0 && r == 0)
		return text;
	free(text);
	if (r == 0)
		error_no_memory(err, "consolidated metadata");
	return NULL;
}

/* ---- the others ------------------------------------------------------------ */

static char *zarr3_group_text(const struct zarr_catalog *c,
			      const struct zarr_entry *e, struct error *err)
{
	cleanup_free char *attributes = zarr_group_attributes(c, e, err);
	char *text;

	if (!attributes)
		return NULL;
	if (asprintf(&text,
		     "{\"zarr_format\": 3, \"node_type\": \"group\", "
		     "\"attributes\": %s}\n",
		     attributes) >= 0)
		return text;
	error_no_memory(err, "zarr.json of a group");
	return NULL;
}

char *zarr_group_text(const struct zarr_catalog *c, const struct zarr_entry *e,
		      bool v3, unsigned i, struct error *err)
{
	char *text;

	if (v3)
		return zarr3_group_text(c, e, err);
	switch (i) {
	case 0:
		return zarr_group_attributes(c, e, err);
	case 1:
		text = strdup(ZGROUP "\n");
		if (!text)
			error_no_memory(err, ".zgroup");
		return text;
	default:
		return metadata_text(c, e, err);
	}
}
