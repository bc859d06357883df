/* SPDX-License-Identifier: BSD-2-Clause */
/* user.tensorfs.{shape,dtype,chunks,filters,source,flag,...} of a tensor's files. */
#include "views/node.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/limits.h>

#include "base/cleanup.h"
#include "base/json.h"

/* Set *b to the box of a file (or to the whole tensor), and *drop to the number of
 * leading axes that its shape lacks. */
static int xattr_box(const struct tensor_files *f, uint64_t node, struct box *b,
		     unsigned *drop)
{
	struct view_node w;

	*drop = 0;
	tensor_whole_box(f->tensor, b);
	if (node == 0)
		return 0;
	if (view_node_resolve(f, node, &w) < 0)
		return -ENOENT;
	if (!view_node_is_file(&w) || !w.view.ops->box_of)
		return 0;
	w.view.ops->box_of(&w.view, w.at, b);
	*drop = w.view.drop;
	return 0;
}

/* Write the shape of a file, or of the tensor if it is not a file. */
static void xattr_shape(const struct tensor_files *f, uint64_t node,
			const struct box *b, unsigned drop, char *buf, size_t n)
{
	uint64_t shape[RANK_MAX];
	struct view_node w;

	if (node && view_node_resolve(f, node, &w) == 0 &&
	    view_node_is_file(&w) && w.view.ops->shape_of)
		dtype_shape_text(shape,
				 w.view.ops->shape_of(&w.view, w.at, shape),
				 buf, n);
	else
		dtype_shape_text(b->count + drop, f->tensor->rank - drop, buf,
				 n);
}

static int xattr_storage(struct tensor *t, const struct box *b, const char *key,
			 char *buf, size_t n)
{
	const struct layout *l;
	int64_t p = tensor_part_of(t, b);
	int r;

	if (!strcmp(key, "source")) {
		snprintf(buf, n, "%s",
			 p < 0 ? t->source
			       : handles_path(t->handles, t->parts[p].file));
		return 0;
	}
	if (p < 0)
		return -ENODATA;
	r = tensor_learn(t, (uint32_t)p, &l, NULL);
	if (r < 0)
		return r;
	if (l->kind != LAYOUT_CHUNKED)
		return -ENODATA;
	if (!strcmp(key, "chunks"))
		dtype_shape_text(l->grid->chunk, l->grid->rank, buf, n);
	else
		pipeline_describe(l->pipeline, buf, n);
	return 0;
}

/* Write the flag that all rows of the box have, or "mixed". */
static int xattr_flag(struct tensor *t, const struct box *b, struct pinner *p,
		      char *buf, size_t n)
{
	struct error err = {0};
	int r;

	if (!t->flags || !t->rank)
		return -ENODATA;
	r = tensor_rows_flag(t, b->start[0], b->start[0] + b->count[0], p, buf,
			     n, &err);
	return r < 0 ? r : 0;
}

/* Write a value that fits into `buf`. */
static int xattr_short_value(const struct tensor_files *f, uint64_t node,
			     const char *key, struct pinner *p, char *buf,
			     size_t n)
{
	struct tensor *t = f->tensor;
	struct box b;
	unsigned drop;
	int r = xattr_box(f, node, &b, &drop);

	if (r < 0)
		return r;
	if (!strcmp(key, "shape"))
		xattr_shape(f, node, &b, drop, buf, n);
	else if (!strcmp(key, "dtype"))
		dtype_descr(&t->dtype, buf, n);
	else if (!strcmp(key, "error") && (t->why_not || tensor_undecoded(t)))
		snprintf(buf, n, "%s", t->why_not ? t->why_not : t->unreadable);
	else if (t->why_not)
		return -ENODATA;
	else if (!strcmp(key, "flag"))
		return xattr_flag(t, &b, p, buf, n);
	else if (!strcmp(key, "source") || !strcmp(key, "chunks") ||
		 !strcmp(key, "filters"))
		return xattr_storage(t, &b, key, buf, n);
	else
		return -ENODATA;
	return 0;
}

static ssize_t xattr_deliver(const char *value, char *buf, size_t n)
{
	size_t len = strlen(value);

	if (len > XATTR_SIZE_MAX)
		return -ENODATA;
	if (n == 0)
		return (ssize_t)len;
	if (len > n)
		return -ERANGE;
	memcpy(buf, value, len);
	return (ssize_t)len;
}

/* An xattr has at most 64 KiB, so long attributes refer to info.json.  Return malloc'ed
 * text, or NULL. */
static char *xattr_shorten(const char *text)
{
	json_t *o = json_loads(text, JSON_ALLOW_NUL, NULL), *v;
	const char *key;
	char *out = NULL;
	void *next;

	json_object_foreach_safe(o, next, key, v)
	{
		cleanup_free char *one =
			json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

		if (one && strlen(one) > 1024)
			json_object_set_new(o, key,
					    json_string("(see info.json)"));
	}
	if (o)
		out = json_exact(o, JSON_COMPACT);
	json_decref(o);
	return out;
}

ssize_t view_node_xattr(struct files *files, uint64_t node, const char *key,
			struct pinner *p, char *buf, size_t n)
{
	const struct tensor_files *f = tensor_files_of(files);
	struct tensor *t = f->tensor;
	cleanup_free char *attributes = NULL;
	char value[4096];
	struct view_node w;
	int r;

	if (node == 0 && !strcmp(key, "attrs") && t->ops->attributes) {
		attributes = t->ops->attributes(t, NULL);
		if (attributes && strlen(attributes) > XATTR_SIZE_MAX) {
			char *all = attributes;

			attributes = xattr_shorten(all);
			free(all);
		}
		return attributes ? xattr_deliver(attributes, buf, n) : -EIO;
	}
	if (t->descr && !strcmp(key, "dtype"))
		return xattr_deliver(t->descr, buf, n);
	if (!strcmp(key, "left_out"))
		return view_node_resolve(f, node, &w) == 0 &&
				       w.view.ops->left_out
			       ? w.view.ops->left_out(&w.view, w.at, p, buf, n)
			       : -ENODATA;
	r = xattr_short_value(f, node, key, p, value, sizeof value);
	return r < 0 ? r : xattr_deliver(value, buf, n);
}

bool view_node_why_not(const struct files *files, uint64_t dir,
		       const char *name, struct error *err)
{
	struct view_node w;

	return dir && view_node_resolve(tensor_files_of(files), dir, &w) == 0 &&
	       !view_node_is_file(&w) && w.view.ops->why_not &&
	       w.view.ops->why_not(&w.view, name, err);
}

/* List only keys that exist.  The layout of a part that is not open yet is unknown, so
 * its keys are not listed. */
const char *view_node_xattr_keys(const struct files *files, uint64_t node,
				 size_t *len)
{
	static const struct {
		const char *keys;
		size_t len;
	} rows[] = {
#define FIRST "attrs" /* of the directory alone */
#define ROW(text) {FIRST "\0" text, sizeof(FIRST "\0" text)}
		ROW("shape\0dtype\0error"),
		ROW("shape\0dtype\0source"),
		ROW("shape\0dtype\0source\0flag"),
		ROW("shape\0dtype\0source\0chunks\0filters"),
		ROW("shape\0dtype\0source\0flag\0chunks\0filters"),
		ROW("shape\0dtype\0source\0error\0chunks\0filters"),
		ROW("shape\0dtype\0source\0left_out"),
#undef ROW
	};
	const struct tensor_files *f = tensor_files_of(files);
	const struct tensor *t = f->tensor;
	size_t without = node || !t->ops->attributes ? sizeof FIRST : 0;
	const struct layout *l = NULL;
	struct view_node w;
	struct box b;
	unsigned drop, row = 0;
	int64_t p = -1;

	if (!t->why_not && !xattr_box(f, node, &b, &drop))
		p = tensor_part_of(t, &b);
	if (p >= 0)
		l = atomic_load(&t->parts[p].layout);
	if (node && view_node_resolve(f, node, &w) == 0 && w.view.ops->left_out)
		row = 6;
	else if (tensor_undecoded(f->tensor))
		row = 5;
	else if (!t->why_not)
		row = 1 + (t->flags != NULL) +
		      (l && l->kind == LAYOUT_CHUNKED ? 2 : 0);
	*len = rows[row].len - without;
	return rows[row].keys + without;
}
