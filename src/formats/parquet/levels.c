/* SPDX-License-Identifier: BSD-2-Clause */
/* Definition levels of a Parquet page: which of its values are present. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "formats/parquet/encoding.h"
#include "formats/parquet/read.h"
#include "formats/parquet/runs.h"

static int levels_damaged(struct error *err)
{
	return error_set(err, -EBADMSG, "a page is damaged");
}

/* Check that the definition levels, `n` bytes at `at`, say that no value is missing. */
static int check_levels(const struct parquet_values *p, const unsigned char *at,
			size_t n)
{
	struct parquet_runs h = {.at = at, .end = at + n, .width = 1};
	uint32_t v;

	for (uint32_t i = 0; i < p->values; i++)
		if (!parquet_runs_next(&h, &v))
			return levels_damaged(p->err);
		else if (!v)
			return error_set(p->err, -EBADMSG,
					 "values are missing (nulls)");
	return 0;
}

int parquet_find_levels(struct parquet_values *p,
			const struct parquet_page *head,
			const unsigned char **at, size_t *n)
{
	*n = head->levels - head->repeats;
	*at = p->at - *n;
	if (!p->c->optional || head->type == PARQUET_PAGE_DATA_2)
		return 0;
	if (head->levels_encoding != PARQUET_RLE)
		return error_set(
			p->err, -ENOTSUP,
			"its levels are not encoded as RLE, which alone is "
			"supported: write it again with a newer writer");
	if (p->n < 4 || (*n = load_le32(p->at)) > p->n - 4)
		return levels_damaged(p->err);
	*at = p->at + 4;
	p->at += 4 + *n;
	p->n -= 4 + *n;
	return 0;
}

/* Move `p` behind the levels, which must say that no value is missing. */
static int pass_levels(struct parquet_values *p,
		       const struct parquet_page *head)
{
	const unsigned char *at;
	size_t n;
	int r;

	if (head->nulls)
		return error_set(p->err, -EBADMSG,
				 "values are missing (nulls)");
	r = parquet_find_levels(p, head, &at, &n);
	if (r < 0 || !p->c->optional)
		return r;
	return n || head->type != PARQUET_PAGE_DATA_2 ? check_levels(p, at, n)
						      : 0;
}

/* ---- values among nulls ------------------------------------------------------ */

/* Merges values with the levels of their page: a row without a value is handed on as
 * NULL. */
struct among {
	struct parquet_runs levels;
	/* Levels that follow; the level of a present value. */
	uint32_t left, there;
	parquet_put *put;
	void *ctx;
};

/* Hand on the empty rows in front of the next value, or at the end all that follow. */
static void put_nulls(struct among *m)
{
	uint32_t v;

	for (; m->left && parquet_runs_next(&m->levels, &v); m->left--)
		if (v == m->there)
			return;
		else
			m->put(m->ctx, NULL, 0);
}

static void put_among(void *ctx, const unsigned char *v, size_t len)
{
	struct among *m = ctx;

	put_nulls(m);
	m->put(m->ctx, v, len);
	m->left -= m->left > 0;
}

static int put_sparse(struct parquet_values *p, const struct parquet_page *head,
		      const struct parquet_dictionary *d)
{
	struct among m = {.left = p->values, .put = p->put, .ctx = p->ctx};
	struct parquet_runs count;
	uint32_t v;
	size_t n;
	int r;

	m.there = p->c->levels;
	m.levels.width = m.there > 1 ? 2 : 1;
	r = parquet_find_levels(p, head, &m.levels.at, &n);
	if (r < 0)
		return r;
	if (!n && head->type == PARQUET_PAGE_DATA_2 && !head->nulls)
		return parquet_values_put(p, head->encoding, d);
	m.levels.end = m.levels.at + n;
	count = m.levels;
	p->values = 0;
	for (uint32_t i = 0; i < m.left; i++) {
		if (!parquet_runs_next(&count, &v) || v > m.there)
			return levels_damaged(p->err);
		p->values += v == m.there;
	}
	if (head->type == PARQUET_PAGE_DATA_2 &&
	    head->nulls != m.left - p->values)
		return levels_damaged(p->err);
	p->put = put_among;
	p->ctx = &m;
	r = p->values ? parquet_values_put(p, head->encoding, d) : 0;
	if (r == 0)
		put_nulls(&m);
	return r;
}

int parquet_page_values(const struct parquet_column *c,
			const struct parquet_page *head,
			const unsigned char *data, size_t size,
			const struct parquet_dictionary *d, parquet_put *put,
			void *ctx, struct error *err)
{
	struct parquet_values p = {c, data, size, head->values, put, ctx, err};
	int r;

	if (head->levels > size)
		return levels_damaged(err);
	p.at += head->levels;
	p.n -= head->levels;
	if (c->dtype.kind == DTYPE_BLOB && c->optional)
		return put_sparse(&p, head, d);
	r = pass_levels(&p, head);
	return r < 0 ? r : parquet_values_put(&p, head->encoding, d);
}
