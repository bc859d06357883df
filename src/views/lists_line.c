/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of a list of samples, as CSV, as JSON, and for DALI and Hugging Face. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"
#include "views/lists.h"
#include "views/name.h"
#include "views/samples.h"
#include "views/table.h"

uint64_t listing_samples(const struct tensor *t, unsigned axes)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < axes; i++)
		if (mul_overflows(n, t->shape[i], &n))
			return UINT64_MAX;
	return n;
}

/* ---- how values are spelled -------------------------------------------------------- */

/* Return a field of CSV, in quotes where RFC 4180 requires them (malloc'ed); NULL
 * without memory. */
static char *listing_csv_field(const char *s)
{
	bool quote = s[strcspn(s, ",\"\r\n")] != '\0';
	char *out = malloc(2 * strlen(s) + 3), *to = out;

	if (!out)
		return NULL;
	if (quote)
		*to++ = '"';
	for (; *s; s++) {
		if (*s == '"')
			*to++ = '"';
		*to++ = *s;
	}
	if (quote)
		*to++ = '"';
	*to = '\0';
	return out;
}

static char *listing_spell(enum list_kind kind, const char *s)
{
	json_t *j;
	char *out;

	if (kind != LIST_JSONL)
		return listing_csv_field(s);
	j = json_text(s, strlen(s));
	out = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
	json_decref(j);
	return out;
}

/* Return the shape of a sample, "(4, 5)" as NumPy prints it or as a list of JSON
 * (malloc'ed). */
static char *listing_spell_shape(enum list_kind kind, const struct view *v)
{
	const struct tensor *t = v->tensor;
	char text[32 * RANK_MAX];

	if (view_is_sized(t))
		return strdup(kind == LIST_JSONL ? "null" : "");
	dtype_shape_text(t->shape + v->sample_axes, t->rank - v->sample_axes,
			 text, sizeof text);
	if (kind != LIST_JSONL)
		return listing_csv_field(text);
	text[0] = '[';
	text[strlen(text) - 1] = ']';
	if (t->rank - v->sample_axes == 1) /* drop NumPy's comma in "(5,)" */
		strcpy(text + strlen(text) - 2, "]");
	return strdup(text);
}

static char *listing_spell_dtype(enum list_kind kind, const struct tensor *t)
{
	cleanup_free char *text = tensor_descr_text(&t->dtype);

	return text ? listing_spell(kind, text) : NULL;
}

void listing_done(struct listing *x)
{
	free(x->shape);
	free(x->dtype);
	free(x->source);
}

static const struct view_ops *listing_samples_ops(const struct tensor *t)
{
	return view_is_numeric(t) ? &view_samples
	       : view_is_text(t)  ? &view_text_samples
	       : view_is_blob(t)  ? &view_blob_samples
				  : &view_ragged_samples;
}

static int listing_learn(struct listing *x, struct error *err)
{
	struct tensor *t = x->v->tensor;
	const struct layout *l;
	int r;

	if (x->kind != LIST_FILES && t->classes &&
	    view_classes.fits(t, x->v->sample_axes)) {
		r = classes_index(t->classes, &x->classes, err);
		if (r < 0)
			return r;
	}
	if (t->mosaic || !t->nparts || !view_is_numeric(t))
		return 0;
	r = tensor_learn(t, 0, &l, err);
	if (r == 0 && l->kind == LAYOUT_CHUNKED)
		x->grid = l->grid;
	return r;
}

int listing_begin(struct listing *x, enum list_kind kind, const struct view *v,
		  struct error *err)
{
	struct tensor *t = v->tensor;
	const unsigned axes = v->sample_axes;
	int r;

	*x = (struct listing){.kind = kind, .v = v};
	x->names = (struct view){.ops = listing_samples_ops(t),
				 .tensor = t,
				 .levels = axes,
				 .drop = axes,
				 .sample_axes = axes};
	if ((x->kind == LIST_DALI || x->kind == LIST_HF) &&
	    view_images.fits(t, axes))
		x->names.ops = &view_images;
	x->samples = listing_samples(t, axes);
	x->nbytes = t->bytes / x->samples;
	r = listing_learn(x, err);
	if (r < 0)
		return r;
	x->shape = listing_spell_shape(x->kind, v);
	x->dtype = listing_spell_dtype(x->kind, t);
	x->source = listing_spell(x->kind, t->source);
	if (x->shape && x->dtype && x->source)
		return 0;
	listing_done(x);
	return error_no_memory(err, "a list of samples");
}

/* ---- a line -------------------------------------------------------------------------- */

static void listing_put_path(FILE *out, const struct listing *x,
			     const uint64_t *at)
{
	char name[FILES_NAME_MAX + 1];

	fputs(x->names.ops->top, out);
	for (unsigned i = 0; i < x->names.levels; i++) {
		x->names.ops->name_of(&x->names, i, at, name, sizeof name);
		fprintf(out, "/%s", name);
	}
}

/* Write the label of sample `i`.  Return false without memory. */
static bool listing_put_label(FILE *out, const struct listing *x, uint64_t i)
{
	const struct class_index *c = x->classes;
	cleanup_free char *text = NULL;

	if (!c) {
		fputs(x->kind == LIST_JSONL ? "null" : "", out);
		return true;
	}
	/* DALI wants numbers: a class's place in the order of names. */
	if (x->kind == LIST_DALI && !c->numbers)
		return fprintf(out, "%" PRIu32, c->of[i]) > 0;
	if (c->numbers)
		return fputs(c->label[c->of[i]], out) >= 0;
	text = listing_spell(x->kind, c->label[c->of[i]]);
	return text && fputs(text, out) >= 0;
}

/* Write the file that a sample is in: for a virtual dataset that of the part, if the
 * sample lies in one part. */
static bool listing_put_source(FILE *out, const struct listing *x,
			       const uint64_t *at)
{
	const struct tensor *t = x->v->tensor;
	cleanup_free char *text = NULL;
	struct box b;
	int64_t p;

	if (!t->mosaic)
		return fputs(x->source, out) >= 0;
	view_samples_box(&x->names, at, &b);
	p = tensor_part_of(t, &b);
	if (p < 0)
		return fputs(x->source, out) >= 0;
	text = listing_spell(x->kind,
			     handles_path(t->handles, t->parts[p].file));
	return text && fputs(text, out) >= 0;
}

/* Write the number, in C order, of the chunk that has the sample's first element. */
static void listing_put_chunk(FILE *out, const struct listing *x,
			      const uint64_t *at)
{
	const struct grid *g = x->grid;
	uint64_t k = 0;

	if (!g) {
		fputs(x->kind == LIST_JSONL ? "null" : "", out);
		return;
	}
	for (unsigned i = 0; i < g->rank; i++)
		k = k * g->chunks[i] +
		    (i < x->names.levels ? at[i] / g->chunk[i] : 0);
	fprintf(out, x->kind == LIST_JSONL ? "%*" PRIu64 : "%0*" PRIu64,
		(int)view_width(g->count - 1), k);
}

static void listing_put_nbytes(FILE *out, const struct listing *x)
{
	if (view_is_numeric(x->v->tensor))
		fprintf(out, "%" PRIu64, x->nbytes);
	else
		fputs(x->kind == LIST_JSONL ? "null" : "", out);
}

static bool listing_put_manifest(FILE *out, const struct listing *x, uint64_t i,
				 const uint64_t *at)
{
	const bool json = x->kind == LIST_JSONL;
	const int width = (int)view_width(x->samples - 1);
	bool ok;

	fprintf(out,
		json ? "{\"id\": %*" PRIu64 ", \"path\": \"" : "%0*" PRIu64 ",",
		width, i);
	listing_put_path(out, x, at);
	fputs(json ? "\", \"label\": " : ",", out);
	ok = listing_put_label(out, x, i);
	fprintf(out,
		json ? ", \"shape\": %s, \"dtype\": %s, \"nbytes\": "
		     : ",%s,%s,",
		x->shape, x->dtype);
	listing_put_nbytes(out, x);
	fputs(json ? ", \"source\": " : ",", out);
	ok = listing_put_source(out, x, at) && ok;
	fputs(json ? ", \"chunk\": " : ",", out);
	listing_put_chunk(out, x, at);
	fputs(json ? "}\n" : "\n", out);
	return ok;
}

static bool listing_put_line(FILE *out, const struct listing *x, uint64_t i)
{
	uint64_t at[RANK_MAX], left = i;
	bool ok = true;

	for (unsigned k = x->names.levels; k-- > 0;) {
		at[k] = left % x->v->tensor->shape[k];
		left /= x->v->tensor->shape[k];
	}
	if (x->kind == LIST_CSV || x->kind == LIST_JSONL)
		return listing_put_manifest(out, x, i, at);
	listing_put_path(out, x, at);
	if (x->kind != LIST_FILES) {
		fputc(x->kind == LIST_DALI ? ' ' : ',', out);
		ok = listing_put_label(out, x, i);
	}
	return fputc('\n', out) >= 0 && ok;
}

const char *listing_header(enum list_kind kind)
{
	return kind == LIST_CSV
		       ? "id,path,label,shape,dtype,nbytes,source,chunk\n"
	       : kind == LIST_HF ? "file_name,label\n"
				 : "";
}

char *listing_lines(const struct listing *x, uint64_t first, uint64_t end,
		    size_t *len, struct error *err)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	bool ok = out;

	if (ok && first == 0)
		fputs(listing_header(x->kind), out);
	for (uint64_t i = first; i < end && ok; i++)
		ok = listing_put_line(out, x, i);
	ok = ok && !ferror(out);
	if (out && fclose(out) == 0 && ok)
		return text;
	free(text);
	error_no_memory(err, "a list of samples");
	return NULL;
}

uint32_t *listing_label_sizes(const struct listing *x)
{
	const struct class_index *c = x->classes;
	uint32_t *sizes = calloc((size_t)c->n + 1, sizeof *sizes);
	char *text = NULL;
	size_t len = 0, before = 0;
	FILE *out = sizes ? open_memstream(&text, &len) : NULL;
	bool ok = out;

	for (uint32_t k = 0; k < c->n && ok; k++) {
		ok = listing_put_label(out, x, c->row[c->start[k]]) &&
		     !fflush(out);
		sizes[k] = (uint32_t)(len - before);
		before = len;
	}
	if (out && fclose(out) != 0)
		ok = false;
	free(text);
	if (ok)
		return sizes;
	free(sizes);
	return NULL;
}
