/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as the messages of an Arrow IPC file: what is taken lies in the body. */
#include <errno.h>

#include "base/number.h"
#include "fuzz.h"
#include "formats/arrow/schema.h"

static void check_failed(const struct error *err)
{
	FUZZ_CHECK((err->code == -EBADMSG || err->code == -ENOTSUP) &&
		   *err->text);
}

static void check_pieces(const struct arrow_schema *s,
			 const struct arrow_batch *b, uint64_t body)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct arrow_column *c = &s->at[i];
		struct error err = {0};
		struct arrow_piece p;
		uint64_t need;

		if (arrow_piece_read(b, c, &p, &err) < 0) {
			check_failed(&err);
			continue;
		}
		if (c->kind == ARROW_NOT || c->kind == ARROW_CELLS)
			continue;
		FUZZ_CHECK(p.size <= body && p.pos <= body - p.size);
		FUZZ_CHECK(p.offsets <= body &&
			   p.offsets_size <= body - p.offsets);
		for (unsigned k = 0; k < 2; k++)
			FUZZ_CHECK(p.valid[k].pos <= body &&
				   p.valid[k].size <= body - p.valid[k].pos);
		if (c->kind != ARROW_NUMBERS || b->codec)
			continue;
		FUZZ_CHECK(!mul_overflows(p.rows, c->per_row, &need));
		FUZZ_CHECK(!mul_overflows(need, c->dtype.size, &need));
		FUZZ_CHECK(need <= p.size);
	}
}

static void check_batch(const struct arrow_schema *s, const uint8_t *data,
			size_t n)
{
	struct flat f = {data, n, false};
	struct error err = {0};
	struct arrow_head h;
	struct arrow_batch b;

	if (arrow_head_read(&f, &h, &err) < 0 ||
	    arrow_batch_read(&h.header, h.body, &s->all, &b, &err) < 0)
		check_failed(&err);
	else
		check_pieces(s, &b, h.body);
}

static void check_schema(const uint8_t *data, size_t n, const uint8_t *batch,
			 size_t n_batch)
{
	struct flat f = {data, n, false};
	struct error err = {0};
	struct arrow_head h;
	struct arrow_schema s;

	if (arrow_head_read(&f, &h, &err) < 0 ||
	    arrow_schema_read(&h.header, h.version, &s, &err) < 0) {
		check_failed(&err);
		return;
	}
	for (uint32_t i = 0; i < s.n; i++) {
		FUZZ_CHECK(s.at[i].name && s.at[i].rank < RANK_MAX);
		FUZZ_CHECK(s.at[i].kind == ARROW_NOT || s.at[i].dtype.size);
	}
	check_batch(&s, batch, n_batch);
	arrow_schema_free(&s);
}

static uint8_t *copy(const uint8_t *data, size_t n)
{
	uint8_t *p = malloc(n ? n : 1); /* of exactly this size */

	if (n)
		memcpy(p, data, n);
	return p;
}

/* Two bytes say how long the schema is; a batch follows it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	size_t n = fuzz_u16(&in);
	uint8_t *schema, *batch;

	n = n < in.size ? n : in.size;
	schema = copy(in.data, n);
	batch = copy(in.data + n, in.size - n);
	check_schema(schema, n, batch, in.size - n);
	free(schema);
	free(batch);
	return 0;
}
