/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes Parquet's delta encodings, and the one that splits values into their bytes. */
/* The format is described in Encodings.md of parquet-format. */
#include "formats/parquet/encoding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"

#define BLOCK_MOST (UINT32_C(1) << 30)
#define SPLIT_SOME 4096 /* about how many bytes are put together at once */

static int encoding_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "a page is damaged");
}

/* ---- numbers as differences ------------------------------------------------ */

struct delta {
	const unsigned char *at, *end;
	/* Values in a miniblock; miniblocks in a block. */
	uint64_t in_mini, minis;
	uint64_t left; /* values that still follow */
	/* The next value; the least difference in this block. */
	uint64_t value, least;
	/* Bit widths of the block's miniblocks. */
	const unsigned char *widths;
	/* How many miniblocks of the block are begun. */
	uint64_t mini;
	/* The packed differences of this miniblock. */
	const unsigned char *bits;
	unsigned width;
	uint64_t i; /* how many of its differences are used */
};

static bool delta_read_varint(struct delta *d, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; shift < 64 && d->at < d->end; shift += 7) {
		unsigned char b = *d->at++;

		*out |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

static bool delta_read_zigzag(struct delta *d, uint64_t *out)
{
	uint64_t v;

	if (!delta_read_varint(d, &v))
		return false;
	*out = v >> 1 ^ (0 - (v & 1));
	return true;
}

static bool delta_begin(struct delta *d, const unsigned char *at, size_t n,
			uint32_t values)
{
	uint64_t block, count;

	memset(d, 0, sizeof *d);
	d->at = at;
	d->end = at + n;
	if (!delta_read_varint(d, &block) || !delta_read_varint(d, &d->minis) ||
	    !delta_read_varint(d, &count) || !delta_read_zigzag(d, &d->value))
		return false;
	if (!block || block > BLOCK_MOST || block % 128 || !d->minis ||
	    d->minis > block || block % d->minis)
		return false;
	d->in_mini = block / d->minis;
	d->i = d->in_mini;
	d->mini = d->minis;
	d->left = values;
	return d->in_mini % 32 == 0 && count == values;
}

/* Begin the next miniblock.  The file has all of it, even if fewer values follow. */
static bool delta_next_miniblock(struct delta *d)
{
	uint64_t bytes;

	if (d->mini == d->minis) {
		if (!delta_read_zigzag(d, &d->least) ||
		    (uint64_t)(d->end - d->at) < d->minis)
			return false;
		d->widths = d->at;
		d->at += d->minis;
		d->mini = 0;
	}
	d->width = d->widths[d->mini++];
	bytes = d->in_mini / 8 * d->width;
	if (d->width > 64 || bytes > (uint64_t)(d->end - d->at))
		return false;
	d->bits = d->at;
	d->at += bytes;
	d->i = 0;
	return true;
}

static uint64_t delta_step(const struct delta *d)
{
	uint64_t bit = d->i * d->width, v;
	const unsigned char *p = d->bits + bit / 8;
	unsigned shift = bit % 8, bytes = (shift + d->width + 7) / 8;

	v = load_le(p, bytes < 8 ? bytes : 8) >> shift;
	if (bytes > 8)
		v |= (uint64_t)p[8] << (64 - shift);
	return d->width < 64 ? v & ((UINT64_C(1) << d->width) - 1) : v;
}

/* Set *out to the next value.  All arithmetic is modulo 2^64, so callers that keep the
 * low 32 bits calculate modulo 2^32. */
static bool delta_next(struct delta *d, uint64_t *out)
{
	*out = d->value;
	if (!d->left)
		return false;
	if (!--d->left)
		return true;
	if (d->i == d->in_mini && !delta_next_miniblock(d))
		return false;
	d->value += d->least + delta_step(d);
	d->i++;
	return true;
}

int parquet_put_delta(const struct parquet_values *p)
{
	struct delta d;
	uint64_t v;

	if (!delta_begin(&d, p->at, p->n, p->values))
		return encoding_damaged(p->err);
	for (uint32_t i = 0; i < p->values; i++) {
		unsigned char b[8];

		if (!delta_next(&d, &v))
			return encoding_damaged(p->err);
		store_le64(b, v);
		p->put(p->ctx, b, p->c->width);
	}
	return 0;
}

/* ---- byte arrays ------------------------------------------------------------ */

/* Sum up the lengths that follow, and set *end to where they end. */
static bool pass_lengths(const struct delta *from, uint64_t *sum,
			 const unsigned char **end)
{
	struct delta d = *from;
	uint64_t v;

	*sum = 0;
	while (d.left) {
		if (!delta_next(&d, &v) || (v & UINT32_MAX) > INT32_MAX ||
		    add_overflows(*sum, v & UINT32_MAX, sum))
			return false;
	}
	*end = d.at;
	return true;
}

/* Begin the lengths at `at`; *data is set to the bytes behind them, of which at least
 * *sum must be before `end`. */
static bool lengths_begin(struct delta *d, const unsigned char *at,
			  const unsigned char *end, uint32_t values,
			  const unsigned char **data, uint64_t *sum)
{
	return delta_begin(d, at, (size_t)(end - at), values) &&
	       pass_lengths(d, sum, data) && *sum <= (uint64_t)(end - *data);
}

static uint32_t next_length(struct delta *d)
{
	uint64_t v;

	/* It cannot fail: pass_lengths has read it already. */
	delta_next(d, &v);
	return (uint32_t)v;
}

int parquet_put_delta_lengths(const struct parquet_values *p)
{
	const unsigned char *data;
	struct delta d;
	uint64_t sum;

	if (!lengths_begin(&d, p->at, p->at + p->n, p->values, &data, &sum))
		return encoding_damaged(p->err);
	for (uint32_t i = 0; i < p->values; i++) {
		uint32_t n = next_length(&d);

		p->put(p->ctx, data, n);
		data += n;
	}
	return 0;
}

/* Each value is the length of the prefix that it shares with the value before, and the
 * rest of its bytes. */
int parquet_put_delta_bytes(const struct parquet_values *p)
{
	const unsigned char *end = p->at + p->n, *rest, *data;
	cleanup_free unsigned char *value = NULL;
	struct delta prefixes, lengths;
	uint64_t sum, len = 0;

	if (!delta_begin(&prefixes, p->at, p->n, p->values) ||
	    !pass_lengths(&prefixes, &sum, &rest) ||
	    !lengths_begin(&lengths, rest, end, p->values, &data, &sum))
		return encoding_damaged(p->err);
	/* No value is longer than all new bytes together. */
	value = malloc(sum ? sum : 1);
	if (!value)
		return error_no_memory(p->err, "a value of a page");
	for (uint32_t i = 0; i < p->values; i++) {
		uint32_t prefix = next_length(&prefixes),
			 n = next_length(&lengths);

		if (prefix > len)
			return encoding_damaged(p->err);
		memcpy(value + prefix, data, n);
		data += n;
		len = (uint64_t)prefix + n;
		if (p->c->width && len != p->c->width)
			return encoding_damaged(p->err);
		p->put(p->ctx, value, len);
	}
	return 0;
}

/* ---- bytes apart ------------------------------------------------------------ */

/* BYTE_STREAM_SPLIT: the first bytes of all values, then the second bytes, and so on. */
int parquet_put_split(const struct parquet_values *p)
{
	size_t width = p->c->width, some = max_u64(SPLIT_SOME / width, 1);
	cleanup_free unsigned char *to = NULL;

	if (p->n % width || p->n / width != p->values)
		return encoding_damaged(p->err);
	to = malloc(some * width);
	if (!to)
		return error_no_memory(p->err, "values of a page");
	for (size_t first = 0; first < p->values; first += some) {
		size_t n = min_u64(some, p->values - first);

		for (size_t b = 0; b < width; b++)
			for (size_t i = 0; i < n; i++)
				to[i * width + b] =
					p->at[b * p->values + first + i];
		p->put(p->ctx, to, n * width);
	}
	return 0;
}
