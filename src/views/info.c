/* SPDX-License-Identifier: BSD-2-Clause */
/* info.json: the description of a tensor, for people and programs. */
/*
 * The text is made whenever it is read, and kept only in the cache: of a file with 100
 * 000 datasets only those that are looked at cost anything.  It uses only what the main
 * file says, so that it is the same whichever parts of a distributed tensor happen to
 * be there.
 */
#include "views/view.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

char *tensor_descr_text(const struct dtype *d)
{
	size_t n = dtype_descr(d, NULL, 0) + 1;
	char *text = malloc(n);

	if (text)
		dtype_descr(d, text, n);
	return text;
}

static int file_compare(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

uint32_t layout_external_files(const struct layout *l)
{
	cleanup_free uint32_t *file = calloc(l->nstretches + 1, sizeof *file);
	uint32_t n = 0;

	if (!file)
		return l->nstretches;
	for (uint32_t i = 0; i < l->nstretches; i++)
		file[i] = l->stretches[i].file;
	qsort(file, l->nstretches, sizeof *file, file_compare);
	for (uint32_t i = 0; i < l->nstretches; i++)
		n += !i || file[i] != file[i - 1];
	return n;
}

/* ---- members ------------------------------------------------------------- */

/* Return a number as JSON; above 2^63 a string of its digits, as in attributes. */
static json_t *info_unsigned(uint64_t v)
{
	char digits[24];

	if (v <= INT64_MAX)
		return json_integer((json_int_t)v);
	snprintf(digits, sizeof digits, "%llu", (unsigned long long)v);
	return json_string(digits);
}

static void info_put(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, info_unsigned(v));
}

/* Add a string, unless it is NULL. */
static void info_put_text(json_t *o, const char *key, const char *s)
{
	if (s)
		json_object_set_new(o, key, json_text(s, strlen(s)));
}

static json_t *info_numbers(const uint64_t *v, unsigned n)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(a, info_unsigned(v[i]));
	return a;
}

static json_t *info_filters(const struct pipeline *p)
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
					    [LAYOUT_ABSENT] = "not allocated",
					    [LAYOUT_NESTED] = "virtual"};
	const struct layout *l;

	if (t->mosaic) {
		info_put_text(o, "layout", "virtual");
		info_put(o, "parts", t->nparts);
		info_put(o, "mappings", mosaic_count(t->mosaic));
		return;
	}
	l = t->nparts ? atomic_load(&t->parts[0].layout) : NULL;
	if (!l)
		return;
	info_put_text(o, "layout",
		      l->nstretches && !l->joined ? "external"
		      : l->called                 ? l->called
						  : kinds[l->kind]);
	if (l->nstretches && !l->joined)
		info_put(o, "external_files", layout_external_files(l));
	if (l->by_library)
		info_put_text(o, "decoded_by", l->maker ? l->maker : "libhdf5");
	if (l->kind != LAYOUT_CHUNKED || l->called)
		return;
	json_object_set_new(o, "chunks",
			    info_numbers(l->grid->chunk, l->grid->rank));
	info_put(o, "chunk_bytes", l->grid->chunk_bytes);
	json_object_set_new(o, "filters", info_filters(l->pipeline));
}

static void info_type(const struct tensor *t, json_t *o)
{
	cleanup_free char *descr = tensor_descr_text(&t->dtype);
	cleanup_free char *stored = tensor_descr_text(&t->stored);
	const char *says = t->stored.text ? t->stored.text : t->dtype.text;
	cleanup_free uint32_t *order =
		calloc(t->dtype.nfields + 1, sizeof *order);
	json_t *fields = json_array();
	char name[4096];

	dtype_name(&t->dtype, name, sizeof name);
	/* "bfloat16, shown as its bits" */
	if (says && strstr(says, ", shown as its bits"))
		snprintf(name, sizeof name, "%.*s", (int)strcspn(says, ","),
			 says);
	info_put_text(o, "type", name);
	info_put_text(o, "dtype", descr);
	info_put_text(o, "stored_type", says);
	if (descr && stored && strcmp(stored, descr))
		info_put_text(o, "stored_dtype", stored);
	if (order)
		dtype_declared(&t->dtype, order);
	if (t->dtype.kind == DTYPE_STRUCT || t->dtype.kind == DTYPE_TEXT)
		for (uint32_t i = 0; order && i < t->dtype.nfields; i++) {
			const char *field = t->dtype.fields[order[i]].name;

			json_array_append_new(fields,
					      json_text(field, strlen(field)));
		}
	if (json_array_size(fields))
		json_object_set(o, "fields", fields);
	json_decref(fields);
}

/* Add the note: which views are left out, and whether decoding is slow. */
static void info_note(const struct tensor *t, json_t *o)
{
	static const char slow[] = "its chunks are decoded by libhdf5, one at "
				   "a time, which is slower";
	const struct layout *l = t->nparts && !t->mosaic
					 ? atomic_load(&t->parts[0].layout)
					 : NULL;
	cleanup_free char *both = NULL;

	if (!l || !l->by_library || l->maker) {
		info_put_text(o, "note", t->note);
		return;
	}
	if (t->note && asprintf(&both, "%s; %s", t->note, slow) < 0)
		both = NULL;
	info_put_text(o, "note", both ? both : slow);
}

char *tensor_info_text(struct tensor *t, struct error *err)
{
	json_t *o = json_object(), *about = NULL;
	cleanup_free char *dump = NULL, *more = NULL;
	char *text = NULL;

	json_object_set_new(o, "name", json_text(t->name, strlen(t->name)));
	info_type(t, o);
	json_object_set_new(o, "shape",
			    tensor_has_shape(t)
				    ? info_numbers(t->shape, t->rank)
				    : json_null());
	info_put_text(o, "order", "C");
	info_put(o, "offset", 0);
	/* A tensor that is too large to be shown has no known size. */
	if (dtype_is_binary(&t->dtype) && tensor_has_shape(t) && !t->why_not)
		info_put(o, "nbytes", t->bytes);
	info_storage(t, o);
	info_put_text(o, "not_shown",
		      t->why_not ? t->why_not : tensor_undecoded(t));
	info_note(t, o);
	if (t->ops && t->ops->about)
		more = t->ops->about(t, err);
	if (more)
		about = json_loads(more, JSON_ALLOW_NUL, NULL);
	/* The source only adds keys; it does not change those above. */
	if (!t->ops || !t->ops->about ||
	    (about && !json_object_update_missing(o, about)))
		dump = json_exact(o, JSON_INDENT(2));
	json_decref(about);
	json_decref(o);
	if (dump && asprintf(&text, "%s\n", dump) < 0)
		text = NULL;
	if (!text && (!err || !err->code))
		error_set(err, -EIO, "%s: cannot describe it", t->name);
	return text;
}
