/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes Parquet pages with their levels: lists and missing values are kept apart. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/parquet/encoding.h"
#include "formats/parquet/read.h"
#include "formats/parquet/runs.h"

/* Most bytes of a page's decoded values. */
#define VALUES_MOST (UINT64_C(1) << 30)
/* Most entries of a page: a few bytes can claim any number, and all of them are
 * visited. */
#define ENTRIES_MOST (UINT32_C(1) << 26)

struct page {
	struct parquet_values p;
	struct parquet_runs repeats, levels;
	uint32_t n;  /* number of entries */
	size_t size; /* bytes of a value as it is served; 0: they vary */
	unsigned char *data;
	size_t used, room;
	size_t *ends; /* where each value ends, if they vary */
	uint32_t n_ends;
	int failed;
};

static int entries_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "a page is damaged");
}

const struct dtype *parquet_value_type(const struct parquet_column *c)
{
	return c->dtype.kind == DTYPE_RAGGED ? &c->item.type : &c->dtype;
}

static unsigned level_width(unsigned most)
{
	unsigned n = 0;

	while (most >> n)
		n++;
	return n;
}

/* Find both kinds of levels, and move g->p to where the values begin. */
static int find_both(struct page *g, const struct parquet_page *head,
		     const unsigned char *data)
{
	struct parquet_values *p = &g->p;
	size_t n = head->repeats;
	int r;

	g->repeats.at = data;
	if (head->type != PARQUET_PAGE_DATA_2 && p->c->max_repeats) {
		if (head->repeats_encoding != PARQUET_RLE)
			return error_set(p->err, -ENOTSUP,
					 "its levels are not encoded as RLE, "
					 "which alone is supported: write it "
					 "again with a newer writer");
		if (p->n < 4 || (n = load_le32(p->at)) > p->n - 4)
			return entries_damaged(p->err);
		g->repeats.at = p->at + 4;
		p->at += 4 + n;
		p->n -= 4 + n;
	}
	g->repeats.end = g->repeats.at + n;
	g->repeats.width = level_width(p->c->max_repeats);
	if (!p->c->max_repeats)
		g->repeats.run = g->n; /* all repetition levels are 0 */
	r = parquet_find_levels(p, head, &g->levels.at, &n);
	g->levels.end = g->levels.at + n;
	g->levels.width = level_width(p->c->max_levels);
	if (p->c->max_levels &&
	    (n || head->type != PARQUET_PAGE_DATA_2 || head->nulls))
		return r;
	g->levels.run = g->n;
	g->levels.value = p->c->max_levels;
	return r;
}

static int count_values(struct page *g)
{
	struct parquet_runs levels = g->levels;
	const unsigned most = g->p.c->max_levels;
	uint32_t v;

	g->p.values = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		if (!parquet_runs_next(&levels, &v) || v > most)
			return entries_damaged(g->p.err);
		g->p.values += v == most;
	}
	return 0;
}

static int page_too_large(struct error *err)
{
	return error_set(
		err, -ENOTSUP,
		"a page has more than 1 GiB of values: write smaller pages");
}

/* Decode numbers and other values of a fixed size. */
static int decode_fixed(struct page *g, const struct parquet_page *head,
			const struct parquet_dictionary *d)
{
	const struct parquet_column *c = g->p.c;
	const struct dtype *type = parquet_value_type(c);
	struct parquet_making m = {.width = c->width,
				   .size = type->size,
				   .is_signed = type->kind == DTYPE_INT};
	uint64_t bytes = (uint64_t)g->p.values * type->size;
	int r;

	if (bytes > VALUES_MOST)
		return page_too_large(g->p.err);
	m.left = bytes;
	m.out = g->data = malloc(bytes ? bytes : 1);
	if (!g->data)
		return error_no_memory(g->p.err, "the values of a page");
	g->size = type->size;
	g->p.put = parquet_put_made;
	g->p.ctx = &m;
	r = g->p.values ? parquet_values_put(&g->p, head->encoding, d) : 0;
	return r == 0 && (m.left || m.odd) ? entries_damaged(g->p.err) : r;
}

static void page_add_text(void *ctx, const unsigned char *v, size_t len)
{
	struct page *g = ctx;

	if (g->failed || g->n_ends == g->p.values) {
		g->failed = g->failed ? g->failed : -EBADMSG;
		return;
	}
	if (len > VALUES_MOST - g->used) {
		g->failed = -ENOTSUP;
		return;
	}
	if (len > g->room - g->used) {
		size_t room = 2 * (g->used + len) + 256;
		unsigned char *data = realloc(g->data, room);

		if (!data) {
			g->failed = -ENOMEM;
			return;
		}
		g->data = data;
		g->room = room;
	}
	if (len)
		memcpy(g->data + g->used, v, len);
	g->used += len;
	g->ends[g->n_ends++] = g->used;
}

static int decode_texts(struct page *g, const struct parquet_page *head,
			const struct parquet_dictionary *d)
{
	int r;

	g->ends = malloc(((size_t)g->p.values + 1) * sizeof *g->ends);
	if (!g->ends)
		return error_no_memory(g->p.err, "the table of a page's texts");
	g->p.put = page_add_text;
	g->p.ctx = g;
	r = g->p.values ? parquet_values_put(&g->p, head->encoding, d) : 0;
	if (r < 0)
		return r;
	if (g->failed == -ENOTSUP)
		return page_too_large(g->p.err);
	if (g->failed == -ENOMEM)
		return error_no_memory(g->p.err, "the texts of a page");
	return g->failed || g->n_ends != g->p.values ? entries_damaged(g->p.err)
						     : 0;
}

int parquet_decoded_put(const struct parquet_column *c,
			const struct parquet_decoded *g,
			const struct parquet_entries *to, struct error *err)
{
	static const unsigned char none[1];
	struct parquet_runs repeats = g->repeats, levels = g->levels;
	size_t at = 0, value = 0;
	uint32_t again, v;
	int r = 0;

	for (uint32_t i = 0; i < g->n && r == 0; i++) {
		size_t len = g->size;

		if (!parquet_runs_next(&repeats, &again) ||
		    !parquet_runs_next(&levels, &v) || again > c->max_repeats)
			return entries_damaged(err);
		if (v != c->max_levels) {
			r = to->entry(to->ctx, again, v, NULL, 0);
			continue;
		}
		if (!g->size)
			len = g->ends[value] - at;
		r = to->entry(to->ctx, again, v, g->data ? g->data + at : none,
			      len);
		at += len;
		value++;
	}
	return r;
}

void parquet_decoded_free(struct parquet_decoded *g)
{
	free(g->runs);
	free(g->data);
	free(g->ends);
	memset(g, 0, sizeof *g);
}

/* Move the bytes of runs to `to`, from where they are read then; return how many they
 * are. */
static size_t move_runs(struct parquet_runs *h, unsigned char *to)
{
	size_t n = h->at ? (size_t)(h->end - h->at) : 0;

	if (n)
		memcpy(to, h->at, n);
	h->at = to;
	h->end = to + n;
	return n;
}

/* Move what is decoded into *out, with a copy of the levels, so that the page's own
 * bytes can be freed. */
static int page_hand_over(struct page *g, struct parquet_decoded *out)
{
	size_t n = g->repeats.at ? (size_t)(g->repeats.end - g->repeats.at) : 0;
	unsigned char *data;

	n += g->levels.at ? (size_t)(g->levels.end - g->levels.at) : 0;
	out->runs = malloc(n + 1);
	if (!out->runs)
		return error_no_memory(g->p.err, "the levels of a page");
	if (!g->size && g->used && g->used < g->room) {
		data = realloc(g->data, g->used);
		g->data = data ? data : g->data;
	}
	out->repeats = g->repeats;
	out->levels = g->levels;
	move_runs(&out->levels,
		  out->runs + move_runs(&out->repeats, out->runs));
	out->n = g->n;
	out->size = g->size;
	out->data = steal_pointer(&g->data);
	out->ends = steal_pointer(&g->ends);
	out->bytes = n + (g->size ? g->p.values * g->size
				  : g->used + g->p.values * sizeof *g->ends);
	return 0;
}

int parquet_page_decode(const struct parquet_column *c,
			const struct parquet_page *head,
			const unsigned char *data, size_t size,
			const struct parquet_dictionary *d,
			struct parquet_decoded *out, struct error *err)
{
	struct page g = {.p = {.c = c, .at = data, .n = size, .err = err},
			 .n = head->values};
	int r;

	memset(out, 0, sizeof *out);
	if (head->levels > size)
		return entries_damaged(err);
	if (head->values > ENTRIES_MOST)
		return error_set(
			err, -ENOTSUP,
			"a page has more than %u values: write smaller pages",
			ENTRIES_MOST);
	g.p.at += head->levels;
	g.p.n -= head->levels;
	r = find_both(&g, head, data);
	if (r == 0)
		r = count_values(&g);
	if (r == 0)
		r = c->width ? decode_fixed(&g, head, d)
			     : decode_texts(&g, head, d);
	if (r == 0)
		r = page_hand_over(&g, out);
	free(g.data);
	free(g.ends);
	return r;
}
