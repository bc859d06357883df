/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors: a header in JSON, then the bytes of the tensors one after
 * another. */

/*
 * Source: safetensors/src/tensor.rs of huggingface/safetensors.  The file begins with
 * the length of the header, 8 bytes.  Blanks at the end of the header make length and
 * header together a multiple of PAGE, so that data begins on a page.  Tensors are
 * sorted by type, the widest first, then by name, so that each is aligned as its type
 * needs, without holes.
 */
#include "views/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/number.h"

#define PAGE 4096
#define HEADER_MOST 100000000

struct bundle_table {
	char *header; /* the length and the header; owned */
	uint64_t head, total;
	size_t n;
	struct bundle_entry {
		struct tensor *t;
		uint64_t begin;
		unsigned type;
		const char *name;
	} at[];
};
struct bundle_item {
	struct tensor *t;
	const char *name; /* NULL: its name in its source */
};
struct bundle {
	_Atomic(struct bundle_table *) table;
	size_t n;
	struct bundle_item at[];
};

/* The format's types in the order of its own writer, which sorts them by size. */
static const struct bundle_type {
	const char *name;
	enum dtype_kind kind;
	unsigned size;
	const char *text; /* how dtype.text begins for bits of this type */
} types[] = {{"BOOL", DTYPE_BOOL, 1, NULL},
	     {"U8", DTYPE_UINT, 1, NULL},
	     {"I8", DTYPE_INT, 1, NULL},
	     {"F8_E5M2", DTYPE_UINT, 1, "float8 (E5M2),"},
	     {"F8_E4M3", DTYPE_UINT, 1, "float8 (E4M3),"},
	     {"F8_E8M0", DTYPE_UINT, 1, "float8 (E8M0),"},
	     {"I16", DTYPE_INT, 2, NULL},
	     {"U16", DTYPE_UINT, 2, NULL},
	     {"F16", DTYPE_FLOAT, 2, NULL},
	     {"BF16", DTYPE_UINT, 2, "bfloat16"},
	     {"I32", DTYPE_INT, 4, NULL},
	     {"U32", DTYPE_UINT, 4, NULL},
	     {"F32", DTYPE_FLOAT, 4, NULL},
	     {"C64", DTYPE_COMPLEX, 8, NULL},
	     {"F64", DTYPE_FLOAT, 8, NULL},
	     {"I64", DTYPE_INT, 8, NULL},
	     {"U64", DTYPE_UINT, 8, NULL}};
#define TYPES (sizeof types / sizeof *types)

/* Does the file's description of the type begin with `text`? */
static bool dtype_text_begins(const struct dtype *d, const char *text)
{
	return d->text && !strncmp(d->text, text, strlen(text));
}

/* Return the row of `types` for a type, the last that fits; TYPES if there is none. */
static unsigned bundle_type_of(const struct dtype *d)
{
	unsigned best = TYPES;

	for (unsigned i = 0; i < TYPES; i++)
		if (types[i].kind == d->kind && types[i].size == d->size &&
		    (types[i].text ? dtype_text_begins(d, types[i].text)
				   : best == TYPES))
			best = i;
	return best;
}

const char *bundle_name(const struct tensor *t)
{
	const char *slash = strrchr(t->name, '/');

	/* a name that does not begin with a slash is not a path */
	return slash && *t->name == '/' ? slash + 1 : t->name;
}

bool bundle_takes(const struct tensor *t)
{
	return !t->why_not && tensor_has_shape(t) &&
	       !(t->dtype.big_endian && t->dtype.size > 1) &&
	       bundle_type_of(&t->dtype) < TYPES;
}

bool bundle_takes_name(const char *name)
{
	return strcmp(name, "__metadata__") != 0;
}

struct bundle *bundle_new(struct tensor *const *t, const char *const *names,
			  size_t n)
{
	struct bundle *b = calloc(1, sizeof *b + n * sizeof *b->at);

	for (size_t i = 0; b && i < n; i++)
		b->at[i] = (struct bundle_item){t[i], names ? names[i] : NULL};
	if (b)
		b->n = n;
	return b;
}

/* ---- the table -------------------------------------------------------------------- */

static void bundle_table_free(struct bundle_table *x)
{
	if (!x)
		return;
	free(x->header);
	free(x);
}

void bundle_free(struct bundle *b)
{
	if (b)
		bundle_table_free(atomic_load(&b->table));
	free(b);
}

static int bundle_compare_types(const void *a, const void *b)
{
	const struct bundle_entry *x = a, *y = b;

	if (x->type != y->type)
		return x->type > y->type ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int bundle_compare_keys(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Return a name as JSON, with quotes, which the caller frees; NULL without memory. */
static char *bundle_key(const struct bundle_entry *e)
{
	json_t *name = json_text(e->name, strlen(e->name));
	char *key =
		name ? json_dumps(name, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	json_decref(name);
	return key;
}

static int bundle_check_keys(char **names, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++)
		if (!names[i])
			return error_no_memory(err, "the names of tensors");
	if (n)
		qsort(names, n, sizeof *names, bundle_compare_keys);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(names[i - 1], names[i]))
			return error_set(err, -EEXIST,
					 BUNDLE_NAME
					 ": two tensors are called %s",
					 names[i]);
	return 0;
}

/* Names that differ as bytes may be the same in JSON, which has only characters. */
static int bundle_check_names(const struct bundle_table *x, struct error *err)
{
	cleanup_free char **names = calloc(x->n + 1, sizeof *names);
	int r;

	if (!names)
		return error_no_memory(err, "the names of tensors");
	for (size_t i = 0; i < x->n; i++)
		names[i] = bundle_key(&x->at[i]);
	r = bundle_check_keys(names, x->n, err);
	for (size_t i = 0; i < x->n; i++)
		free(names[i]);
	return r;
}

/* Write "name": {"dtype": ...}.  Return false without memory. */
static bool bundle_put_entry(FILE *out, const struct bundle_entry *e,
			     bool first)
{
	cleanup_free char *key = bundle_key(e);

	if (!key)
		return false;
	fprintf(out, "%s%s:{\"dtype\":\"%s\",\"shape\":[", first ? "" : ",",
		key, types[e->type].name);
	for (unsigned i = 0; i < e->t->rank; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", e->t->shape[i]);
	return fprintf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
		       e->begin, e->begin + e->t->bytes) > 0;
}

static int bundle_write_header(struct bundle_table *x, struct error *err)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	bool ok = out && fputc('{', out) >= 0;

	for (size_t i = 0; i < x->n && ok; i++)
		ok = bundle_put_entry(out, &x->at[i], i == 0);
	ok = ok && fputc('}', out) >= 0;
	if (!out || fclose(out) != 0 || !ok)
		return error_no_memory(err, "the header of tensor.safetensors");
	x->head = div_up(8 + len, PAGE) * PAGE;
	if (x->head - 8 > HEADER_MOST)
		return error_set(err, -EFBIG,
				 BUNDLE_NAME
				 ": its header would be longer than %d bytes, "
				 "which the format does not allow",
				 HEADER_MOST);
	x->header = malloc(x->head);
	if (!x->header)
		return error_no_memory(err, "the header of tensor.safetensors");
	store_le64((unsigned char *)x->header, x->head - 8);
	memcpy(x->header + 8, text, len);
	memset(x->header + 8 + len, ' ', x->head - 8 - len);
	return 0;
}

static int bundle_fill_table(struct bundle_table *x, struct error *err)
{
	uint64_t at = 0;
	int r;

	for (size_t i = 0; i < x->n; i++) {
		struct bundle_entry *e = &x->at[i];

		e->type = bundle_type_of(&e->t->dtype);
		if (!e->name)
			e->name = bundle_name(e->t);
	}
	r = bundle_check_names(x, err);
	if (r < 0)
		return r;
	qsort(x->at, x->n, sizeof *x->at, bundle_compare_types);
	for (size_t i = 0; i < x->n; i++) {
		x->at[i].begin = at;
		if (add_overflows(at, x->at[i].t->bytes, &at) ||
		    at > INT64_MAX - HEADER_MOST - PAGE)
			return error_set(err, -EFBIG,
					 BUNDLE_NAME ": it would be too large");
	}
	r = bundle_write_header(x, err);
	x->total = x->head + at;
	return r;
}

static int bundle_table_get(struct bundle *b, const struct bundle_table **out,
			    struct error *err)
{
	struct bundle_table *x = atomic_load(&b->table), *none = NULL;
	int r;

	*out = x;
	if (x)
		return 0;
	x = calloc(1, sizeof *x + b->n * sizeof *x->at);
	if (!x)
		return error_no_memory(err, "the table of tensor.safetensors");
	x->n = b->n;
	for (size_t i = 0; i < x->n; i++)
		x->at[i] = (struct bundle_entry){.t = b->at[i].t,
						 .name = b->at[i].name};
	r = bundle_fill_table(x, err);
	if (r < 0) {
		bundle_table_free(x);
		return r;
	}
	if (!atomic_compare_exchange_strong(&b->table, &none, x)) {
		bundle_table_free(x);
		x = none;
	}
	*out = x;
	return 0;
}

int bundle_size(struct bundle *b, uint64_t *size, struct error *err)
{
	const struct bundle_table *x;
	int r = bundle_table_get(b, &x, err);

	if (r == 0)
		*size = x->total;
	return r;
}

/* ---- bytes --------------------------------------------------------------------------- */

/* Return the last tensor that begins at or before byte `at` of the data. */
static size_t bundle_entry_at(const struct bundle_table *x, uint64_t at)
{
	struct bisect b = bisect_in(1, max_u64(x->n, 1));

	while (bisect_next(&b))
		bisect_answer(&b, x->at[b.mid].begin > at);
	return (size_t)b.lo - 1;
}

int bundle_prepare(struct bundle *b, uint64_t off, uint64_t len,
		   struct error *err)
{
	const struct bundle_table *x;
	uint64_t end = off + len;
	struct box box;
	int r = bundle_table_get(b, &x, err);

	if (r < 0 || end <= x->head)
		return r;
	off = off > x->head ? off - x->head : 0;
	end -= x->head;
	for (size_t i = bundle_entry_at(x, off); i < x->n && r == 0; i++) {
		const struct bundle_entry *e = &x->at[i];
		uint64_t from = max_u64(off, e->begin);
		uint64_t to = min_u64(end, e->begin + e->t->bytes);

		if (e->begin >= end)
			break;
		tensor_whole_box(e->t, &box);
		if (to > from)
			r = tensor_prepare_box(e->t, &box, from - e->begin,
					       to - from, err);
	}
	return r;
}

int bundle_map(const struct bundle *b, uint64_t off, struct plan *plan,
	       struct error *err)
{
	const struct bundle_table *x = atomic_load(&b->table);
	struct box box;

	if (!x)
		return error_set(err, -EIO, BUNDLE_NAME " was not prepared");
	if (off < x->head)
		off += plan_mem(plan, x->header + off, x->head - off);
	if (off < x->head || !plan_open(plan))
		return 0;
	off -= x->head;
	for (size_t i = bundle_entry_at(x, off); i < x->n && plan_open(plan);
	     i++) {
		const struct bundle_entry *e = &x->at[i];
		uint64_t before = plan->have, left;
		int r;

		if (off - e->begin >= e->t->bytes)
			continue; /* it has no bytes from here on */
		left = e->t->bytes - (off - e->begin);
		tensor_whole_box(e->t, &box);
		r = tensor_map_box(e->t, &box, off - e->begin, plan, err);
		if (r < 0)
			return r;
		off += plan->have - before;
		if (plan->have - before < left)
			break;
	}
	return 0;
}
