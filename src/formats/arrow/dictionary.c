/* SPDX-License-Identifier: BSD-2-Clause */
/* The dictionaries of an Arrow IPC file, and the batches whose metadata are kept. */
/*
 * In a stream a dictionary may be replaced or get more values between batches: for a
 * batch of rows only the dictionary batches before it count.  In a file the order of
 * dictionary batches means nothing, and no dictionary is replaced.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/number.h"
#include "formats/arrow/private.h"

/* ---- batches -------------------------------------------------------------- */

static void arrow_kept_free(struct arrow_kept *k)
{
	if (k)
		free(k->metadata);
	free(k);
}

/* Replace the metadata by a copy of the three lists that reads will need. */
static int keep_lists(struct arrow_kept *k, struct error *err)
{
	struct flat_vector *lists[] = {&k->batch.nodes, &k->batch.buffers,
				       &k->batch.more};
	static const size_t width[] = {16, 16, 8};
	size_t n = 0;
	char *to;

	for (unsigned i = 0; i < 3; i++)
		n += lists[i]->n * width[i];
	to = malloc(n ? n : 1);
	if (!to)
		return error_no_memory(err, "the lists of a batch's buffers");
	n = 0;
	for (unsigned i = 0; i < 3; i++) {
		size_t bytes = lists[i]->n * width[i];

		if (bytes)
			memcpy(to + n, k->metadata + lists[i]->pos, bytes);
		lists[i]->pos = (uint32_t)n;
		lists[i]->in = &k->flat;
		n += bytes;
	}
	free(k->metadata);
	k->metadata = to;
	k->flat = (struct flat){(unsigned char *)to, n, false};
	return 0;
}

int arrow_keep(struct arrow *s, const struct arrow_head *h, char *metadata,
	       size_t n, uint64_t body, const struct arrow_counts *all,
	       struct arrow_kept **out, struct error *err)
{
	struct arrow_kept *k = calloc(1, sizeof *k);
	struct flat_table t = h->header;
	int r;

	if (!k || !vec_push(&s->kept, k)) {
		free(k);
		free(metadata);
		return error_no_memory(err, "the table of batches");
	}
	k->metadata = metadata;
	k->flat = (struct flat){(unsigned char *)metadata, n, false};
	k->body = body;
	k->time = s->is_file ? UINT64_MAX : s->time;
	t.in = &k->flat;
	r = arrow_batch_read(&t, h->body, all, &k->batch, err);
	if (r == 0)
		r = keep_lists(k, err);
	if (r == 0)
		*out = k;
	return r;
}

void arrow_forget(struct arrow *s)
{
	for (size_t i = 0; i < s->kept.n; i++)
		arrow_kept_free(s->kept.at[i]);
	vec_free(&s->kept);
	for (size_t i = 0; i < s->dictionaries.n; i++)
		vec_free(&s->dictionaries.at[i].batches);
	vec_free(&s->dictionaries);
}

/* ---- dictionaries ---------------------------------------------------------- */

static struct arrow_dictionary *dictionary_find(const struct arrow *s,
						int64_t id)
{
	for (size_t i = 0; i < s->dictionaries.n; i++)
		if (s->dictionaries.at[i].id == id)
			return &s->dictionaries.at[i];
	return NULL;
}

static int dictionaries_find_in(struct arrow *s, const struct arrow_cell *c,
				struct error *err)
{
	const struct arrow_dictionary *d =
		c->kind == CELL_DICTIONARY ? dictionary_find(s, c->id) : NULL;
	struct arrow_dictionary fresh = {c->id, c, VEC_EMPTY};
	int r = 0;

	if (d && memcmp(&d->cell->all, &c->all, sizeof c->all))
		return error_set(err, -EBADMSG,
				 "its schema has two types of values for "
				 "dictionary %" PRId64,
				 c->id);
	if (c->kind == CELL_DICTIONARY && !d) {
		if (!vec_push(&s->dictionaries, fresh))
			return error_no_memory(err,
					       "the table of dictionaries");
	}
	for (uint32_t i = 0; r == 0 && i < c->n; i++)
		r = dictionaries_find_in(s, &c->child[i], err);
	return r == 0 && c->values ? dictionaries_find_in(s, c->values, err)
				   : r;
}

int arrow_dictionaries_find(struct arrow *s, struct error *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->schema.n; i++)
		if (!s->schema.at[i].cell_why)
			r = dictionaries_find_in(s, &s->schema.at[i].cell, err);
	return r;
}

static int dictionary_add_batch(struct arrow *s, struct arrow_dictionary *d,
				const struct arrow_kept *k, bool delta,
				struct error *err)
{
	const struct arrow_addition *last =
		d->batches.n ? &d->batches.at[d->batches.n - 1] : NULL;
	struct arrow_addition a = {k, 0, delta};

	if (delta && !last && !s->is_file)
		return error_set(err, -EBADMSG,
				 "dictionary %" PRId64
				 " is extended before it is defined",
				 d->id);
	if (!delta && last && s->is_file)
		return error_set(
			err, -EBADMSG,
			"dictionary %" PRId64
			" is defined twice, which the file format forbids",
			d->id);
	if (delta && last &&
	    add_overflows(last->first, last->kept->batch.rows, &a.first))
		return error_set(err, -EBADMSG,
				 "a dictionary has too many values");
	return vec_push(&d->batches, a)
		       ? 0
		       : error_no_memory(err,
					 "the list of a dictionary's batches");
}

int arrow_dictionary_add(struct arrow *s, const struct arrow_head *h,
			 char *metadata, size_t n, uint64_t body,
			 struct error *err)
{
	struct arrow_dictionary *d =
		dictionary_find(s, flat_signed(&h->header, 0, 8, 0));
	bool delta = flat_unsigned(&h->header, 2, 1, 0);
	struct arrow_head values = *h;
	struct arrow_kept *k;
	int r;

	values.header = flat_child(&h->header, 1);
	if (h->header.in->bad || !values.header.pos) {
		free(metadata);
		return error_set(err, -EBADMSG,
				 "a message's metadata are damaged");
	}
	if (body > s->arrays.size || h->body > s->arrays.size - body) {
		free(metadata);
		return error_set(err, -EBADMSG,
				 "a dictionary of %" PRIu64
				 " bytes does not fit in the file: truncated?",
				 h->body);
	}
	if (!d) { /* the dictionary of a column that is not shown */
		free(metadata);
		return 0;
	}
	r = arrow_keep(s, &values, metadata, n, body, &d->cell->all, &k, err);
	if (r == 0)
		r = dictionary_add_batch(s, d, k, delta, err);
	s->time++;
	return r;
}

/* Batches are in the order of their times, so a search finds those before `time`. */
size_t arrow_dictionary_at(const struct arrow *s, int64_t id, uint64_t time,
			   const struct arrow_addition **out)
{
	const struct arrow_dictionary *d = dictionary_find(s, id);
	struct bisect b = bisect_in(0, d ? d->batches.n : 0);
	size_t low, end;

	*out = NULL;
	if (!b.hi)
		return 0;
	while (bisect_next(&b))
		bisect_answer(&b,
			      !s->is_file &&
				      d->batches.at[b.mid].kept->time >= time);
	low = b.lo;
	for (end = low; low > 1 && d->batches.at[low - 1].delta; low--)
		;
	low -= low > 0;
	*out = d->batches.at + low;
	return end - low;
}
