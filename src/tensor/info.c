/* SPDX-License-Identifier: BSD-2-Clause */
/* info.json: what a tensor is, for people and programs. */
/*
 * The text is made anew each time it is wanted and kept only by the cache: a
 * file with 100 000 datasets pays for those that somebody asks about.  It says
 * only what the main file says, so that it is the same whichever parts of a
 * distributed tensor happen to be there.
 */
#include "tensor/view.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

static json_t *json_numbers(const uint64_t *v, unsigned n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(a, json_integer((json_int_t)v[i]));
	return a;
}

static json_t *json_filters(const struct pipeline *p)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < p->n; i++) {
		const struct pipeline_filter *f = &p->filter[i];
		json_t *cd = json_array();

		for (unsigned k = 0; k < f->params.n; k++)
			json_array_append_new(cd,
					      json_integer(f->params.cd[k]));
		json_array_append_new(
			a, json_pack("{s:s, s:I, s:o, s:b}", "name", f->name,
				     "id", (json_int_t)f->id, "parameters", cd,
				     "decoded_by_tensorfs", f->codec != NULL));
	}
	return a;
}

static void info_storage(const struct tensor *t, json_t *o)
{
	static const char *const kinds[] = {[LAYOUT_CHUNKED] = "chunked",
					    [LAYOUT_LINEAR] = "contiguous",
					    [LAYOUT_FETCHED] = "compact",
					    [LAYOUT_ABSENT] = "not allocated"};
	const struct layout *l;

	if (t->distributed) {
		json_object_set_new(o, "layout", json_string("virtual"));
		json_object_set_new(o, "parts", json_integer(t->nparts));
		return;
	}
	l = t->nparts ? atomic_load(&t->parts[0].layout) : NULL;
	if (!l)
		return;
	json_object_set_new(o, "layout", json_string(kinds[l->kind]));
	if (l->kind != LAYOUT_CHUNKED)
		return;
	json_object_set_new(o, "chunks", json_numbers(l->grid->chunk, t->rank));
	json_object_set_new(o, "chunk_bytes",
			    json_integer((json_int_t)l->grid->chunk_bytes));
	json_object_set_new(o, "filters", json_filters(l->pipeline));
}

static void info_type(const struct tensor *t, json_t *o)
{
	char name[80], descr[80];

	dtype_name(&t->dtype, name, sizeof name);
	dtype_descr(&t->dtype, descr, sizeof descr);
	json_object_set_new(o, "type", json_string(name));
	json_object_set_new(o, "dtype", json_string(descr));
	if (t->dtype.kind == DTYPE_STRING || t->dtype.kind == DTYPE_OTHER)
		json_object_set_new(o, "stored_type",
				    json_string(t->dtype.text));
	dtype_descr(&t->stored, name, sizeof name);
	if (strcmp(name, descr))
		json_object_set_new(o, "stored_dtype", json_string(name));
}

char *tensor_info_text(struct tensor *t, struct error *err)
{
	json_t *o = json_object(), *attributes = NULL;
	cleanup_free char *dump = NULL, *more = NULL;
	char *text = NULL;

	json_object_set_new(o, "name", json_text(t->name, strlen(t->name)));
	info_type(t, o);
	json_object_set_new(o, "shape", json_numbers(t->shape, t->rank));
	json_object_set_new(o, "order", json_string("C"));
	json_object_set_new(o, "offset", json_integer(0));
	if (t->dtype.kind < DTYPE_STRING)
		json_object_set_new(o, "nbytes",
				    json_integer((json_int_t)t->bytes));
	info_storage(t, o);
	if (t->why_not)
		json_object_set_new(o, "not_shown",
				    json_text(t->why_not, strlen(t->why_not)));
	if (t->unreadable)
		json_object_set_new(
			o, "not_shown",
			json_text(t->unreadable, strlen(t->unreadable)));
	if (t->note)
		json_object_set_new(o, "note",
				    json_text(t->note, strlen(t->note)));
	if (t->ops && t->ops->attributes)
		more = t->ops->attributes(t, err);
	if (more)
		attributes = json_loads(more, JSON_ALLOW_NUL, NULL);
	if (attributes)
		json_object_set_new(o, "attributes", attributes);
	if (!t->ops || !t->ops->attributes || attributes)
		dump = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	json_decref(o);
	if (dump && asprintf(&text, "%s\n", dump) < 0)
		text = NULL;
	if (!text && (!err || !err->code))
		error_set(err, -EIO, "%s: cannot describe it", t->name);
	return text;
}

/* ---- as a chunk set of one chunk ----------------------------------------- */

static struct tensor *tensor_of_info(const struct chunk_set *s)
{
	return (struct tensor *)((char *)(uintptr_t)s -
				 offsetof(struct tensor, info));
}

static uint64_t info_segment_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	(void)index;
	return UINT64_MAX;
}

static int info_locate(const struct chunk_set *s, uint64_t index,
		       const struct buf *segment, struct chunk *c,
		       struct error *err)
{
	(void)s;
	(void)segment;
	memset(c, 0, sizeof *c);
	if (index)
		return error_set(err, -EIO, "info.json has one chunk");
	c->state = CHUNK_FETCH;
	c->size = 4096;
	return 0;
}

static int info_fetch(struct chunk_set *s, uint64_t index,
		      _Atomic uint64_t *gauge, struct buf **out,
		      struct error *err)
{
	struct error why = {0};
	cleanup_free char *text = tensor_info_text(tensor_of_info(s), &why);
	struct buf *b;

	(void)index;
	if (!text)
		return error_set(err, why.code ? why.code : -EIO, "%s",
				 why.text);
	b = buf_new(strlen(text), gauge);
	if (!b)
		return error_set(err, -ENOMEM, "out of memory");
	memcpy(b->data, text, b->size);
	*out = b;
	return 0;
}

static void info_describe(const struct chunk_set *s, uint64_t index, char *buf,
			  size_t n)
{
	(void)index;
	snprintf(buf, n, "%s info.json", tensor_of_info(s)->name);
}

static const struct chunk_set_ops info_ops = {
	.segment_of = info_segment_of,
	.locate = info_locate,
	.fetch = info_fetch,
	.describe = info_describe,
};

struct chunk_set *tensor_info_set(struct tensor *t)
{
	if (!t->info.ops) {
		t->info.ops = &info_ops;
		t->info.id = chunk_set_new_id();
		t->info.unit = 4096;
	}
	return &t->info;
}
