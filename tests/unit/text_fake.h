/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors of texts and sequences in memory, and what they ought to show. */
#ifndef TESTS_UNIT_TEXT_FAKE_H
#define TESTS_UNIT_TEXT_FAKE_H

#include <errno.h>
#include <pthread.h>

#include "base/number.h"
#include "store/store.h"
#include "tensor/text.h"
#include "test.h"

static uint64_t rnd(uint64_t below)
{
	return test_random() % below;
}

/* ---- datasets whose values follow from their place ----------------------- */

#define PARTS 8
#define RECORD 16
#define GAP (-1)
#define BAD (UINT64_C(1) << 40)

struct fake {
	struct tensor t;
	uint64_t shape[RANK_MAX];
	struct grid grid[PARTS]; /* of each part's dataset */
	enum layout_kind kind[PARTS];
	unsigned gone;                /* bit p: part p is not there */
	uint64_t bad_part, bad, liar; /* elements that fail, or lie */
	struct fake *nested[PARTS];
	struct { /* what covers each element: part, its element there */
		int64_t part;
		uint64_t elem;
	} naive[4096];
	_Atomic unsigned asked, most; /* calls of values, most in one */
	uint32_t file;
};
static struct handles *handles;
static struct store *store;

/* Value of a part's element: text, JSON, or a sequence of pairs. */
static size_t value_of(const struct fake *f, uint64_t part, uint64_t elem,
		       char *out)
{
	uint64_t h = (part * 1000003 + elem) * 2654435761u;
	static const char *const odd[] = {"", "a\\b", "two\nlines", "\\n", "x"};

	if (f->t.dtype.kind == DTYPE_RAGGED) {
		for (uint64_t i = 0; i < 2 * (h % 7); i++)
			out[i] = (char)(h >> i);
		return h % 7 * 2;
	}
	if (f->t.dtype.kind == DTYPE_TEXT)
		return (size_t)sprintf(out, "{\"v\":\"\\\\%u\"}", (unsigned)h);
	return (size_t)sprintf(out, "%s%u.%u", odd[h % 5], (unsigned)part,
			       (unsigned)elem);
}

static int fake_values(struct tensor *t, uint32_t p, const struct box *b,
		       void (*put)(void *ctx, const char *s, size_t len),
		       void *ctx, struct error *err)
{
	struct fake *f = (struct fake *)t;
	const struct grid *g = &f->grid[p];
	uint64_t n = box_elements(b, g->rank);

	f->asked++;
	if (n > f->most)
		f->most = (unsigned)n;
	if (f->gone >> p & 1)
		return error_set(err, -ENODATA, "part %u is not there", p);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = i, elem = 0, step = 1;
		char s[64];
		size_t len;

		for (unsigned a = g->rank; a-- > 0;) {
			CHECK(b->start[a] + b->count[a] <= g->shape[a]);
			elem += (b->start[a] + at % b->count[a]) * step;
			at /= b->count[a];
			step *= g->shape[a];
		}
		if (f->bad_part == p && f->bad == elem)
			return error_set(err, -EBADMSG, "element is damaged");
		len = value_of(f, p, elem, s);
		put(ctx, s, f->liar == elem ? len + 2 : len);
	}
	return 0;
}

/* Elements as they are in the file. */
static void records(const struct fake *f, uint32_t p, unsigned char *out)
{
	for (uint64_t e = 0; e < f->grid[p].chunk_bytes / RECORD; e++) {
		char s[64];
		uint32_t n = (uint32_t)value_of(f, p, e, s) / 2;

		memset(out + e * RECORD, 0, RECORD);
		out[e * RECORD] = (unsigned char)n;
		out[e * RECORD + 4] = n ? 1 : 0; /* an address */
		out[e * RECORD + 12] = 1;
		if (!n)
			out[e * RECORD + 1] = 9; /* without an address: none */
	}
}

static int fake_fetch(struct tensor *t, uint32_t p, const struct layout *l,
		      uint64_t chunk, void *out, size_t size, struct error *err)
{
	(void)l;
	(void)err;
	CHECK_EQ_U(chunk, 0);
	CHECK_EQ_U(size, ((struct fake *)t)->grid[p].chunk_bytes);
	records((struct fake *)t, p, out);
	return 0;
}

static int fake_learn(struct tensor *t, uint32_t p, struct layout **out,
		      struct error *err)
{
	struct fake *f = (struct fake *)t;
	struct layout *l;

	if (f->gone >> p & 1)
		return error_set(err, -ENODATA, "part %u is not there", p);
	l = calloc(1, sizeof *l);
	CHECK(l);
	l->kind = f->kind[p];
	l->grid = &f->grid[p];
	l->file = f->file;
	l->fill = t->fill;
	if (f->nested[p]) {
		l->nested = &f->nested[p]->t;
		f->nested[p] = NULL;
	}
	*out = l;
	return 0;
}

static const struct tensor_ops fake_ops = {
	.learn = fake_learn, .fetch = fake_fetch, .values = fake_values};

static const struct dtype_field pairs = {
	.rank = 0, .type = {.kind = DTYPE_UINT, .size = 2}};

static struct fake *fake_new(enum dtype_kind kind, unsigned rank,
			     const uint64_t *shape)
{
	struct fake *f = calloc(1, sizeof *f);
	struct tensor *t = &f->t;

	CHECK(f);
	t->ops = &fake_ops;
	t->set.ops = &tensor_chunk_ops;
	t->set.id = chunk_set_new_id();
	t->set.unit = 4096;
	t->handles = handles;
	t->dtype = (struct dtype){.kind = kind, .size = RECORD};
	if (kind == DTYPE_RAGGED) {
		t->dtype.nfields = 1;
		t->dtype.fields = &pairs;
	}
	t->stored = t->dtype;
	t->rank = rank;
	t->shape = f->shape;
	t->elements = 1;
	for (unsigned i = 0; i < rank; i++) {
		f->shape[i] = shape[i];
		t->elements *= shape[i];
	}
	t->bytes = t->elements * RECORD;
	t->name = strdup("/fake");
	t->parts = calloc(PARTS, sizeof *t->parts);
	f->bad_part = f->bad = f->liar = BAD;
	return f;
}

static void fake_part(struct fake *f, unsigned rank, const uint64_t *shape)
{
	uint32_t p = f->t.nparts++;
	struct grid *g = &f->grid[p];

	CHECK_EQ_I(grid_init(g, rank, shape, shape, RECORD), 0);
	f->kind[p] = LAYOUT_FETCHED;
}

/* One part that is all of it. */
TEST_MAYBE static struct fake *fake_plain(enum dtype_kind kind, unsigned rank,
					  const uint64_t *shape)
{
	struct fake *f = fake_new(kind, rank, shape);

	fake_part(f, rank, shape);
	for (uint64_t i = 0; i < f->t.elements && i < 4096; i++) {
		f->naive[i].part = 0;
		f->naive[i].elem = i;
	}
	return f;
}

/* Coordinate of element k (in C order) of a slab, as an element of an array. */
static uint64_t slab_at(const struct slab *s, unsigned rank,
			const uint64_t *shape, uint64_t k)
{
	uint64_t elem = 0, step = 1;

	for (unsigned a = rank; a-- > 0;) {
		uint64_t n = s->count[a] * s->block[a], i = k % n;

		elem += (s->start[a] + i / s->block[a] * s->stride[a] +
			 i % s->block[a]) *
			step;
		k /= n;
		step *= shape[a];
	}
	return elem;
}

/* Lay part p of n elements along one axis, as a vector, over slab `to`. */
static void fake_tile(struct fake *f, uint32_t p, const struct slab *to)
{
	struct tile t = {.part = p, .to = *to, .rank = f->grid[p].rank};
	struct error err = {0, ""};
	uint64_t n = 1;

	for (unsigned a = 0; a < f->t.rank; a++)
		n *= to->count[a] * to->block[a];
	for (unsigned a = 0; a < t.rank; a++) {
		t.from.count[a] = 1;
		t.from.stride[a] = t.from.block[a] = f->grid[p].shape[a];
	}
	mosaic_add(f->t.mosaic, &t, &err);
	CHECK_STR(err.text, "");
	for (uint64_t k = 0; k < n; k++) {
		uint64_t e = slab_at(to, f->t.rank, f->shape, k);

		f->naive[e].part = p;
		f->naive[e].elem = k;
	}
}

static void fake_mosaic(struct fake *f)
{
	struct error err;

	CHECK_OK(mosaic_new(&f->t.mosaic, f->t.rank, f->shape, &err));
	for (uint64_t i = 0; i < f->t.elements; i++)
		f->naive[i].part = GAP;
}

/* Part after part along the first axis, some gaps. */
static void fake_slabs(struct fake *f)
{
	struct error err;
	uint64_t row = 0, n;

	fake_mosaic(f);
	for (; row < f->shape[0] && f->t.nparts < PARTS; row += n) {
		uint64_t shape[RANK_MAX];
		struct slab to;

		n = 1 + rnd(f->shape[0] - row);
		if (rnd(4) == 0)
			continue;
		for (unsigned a = 0; a < f->t.rank; a++) {
			to.start[a] = a ? 0 : row;
			to.count[a] = 1;
			shape[a] = a ? f->shape[a] : n;
			to.stride[a] = to.block[a] = shape[a];
		}
		fake_part(f, f->t.rank, shape);
		fake_tile(f, f->t.nparts - 1, &to);
	}
	CHECK_OK(mosaic_finish(f->t.mosaic, &err));
}

/* Any slabs over each other, of vectors. */
static void fake_scatter(struct fake *f)
{
	struct error err;

	fake_mosaic(f);
	while (f->t.nparts < PARTS) {
		struct slab to;
		uint64_t n = 1;

		for (unsigned a = 0; a < f->t.rank; a++) {
			uint64_t all = f->shape[a];

			to.start[a] = rnd(all);
			to.block[a] = 1 + rnd(all - to.start[a]);
			if (rnd(2))
				to.block[a] = 1;
			to.stride[a] = to.block[a] + rnd(3);
			to.count[a] =
				1 + rnd((all - to.start[a] - to.block[a]) /
						to.stride[a] +
					1);
			n *= to.count[a] * to.block[a];
		}
		fake_part(f, 1, &n);
		fake_tile(f, f->t.nparts - 1, &to);
	}
	CHECK_OK(mosaic_finish(f->t.mosaic, &err));
}

static void fake_text(struct fake *f, unsigned axes)
{
	struct error err = {0, ""};

	text_new(&f->t.text, &f->t, axes, &err);
	CHECK_STR(err.text, "");
}

/* ---- what is expected ---------------------------------------------------- */

/* A value as it is shown; the bytes. */
static size_t shown(const struct fake *f, uint64_t i, unsigned char *out)
{
	char s[64];
	size_t n = 0, len;

	if (f->naive[i].part >= 0)
		len = value_of(f, (uint64_t)f->naive[i].part, f->naive[i].elem,
			       s);
	else
		len = f->t.dtype.kind == DTYPE_TEXT ? (size_t)sprintf(s, "null")
						    : 0;
	if (f->t.dtype.kind == DTYPE_RAGGED) {
		memcpy(out, "\x93NUMPY\x01\x00\x76\x00", 10);
		n = 10 + (size_t)sprintf((char *)out + 10,
					 "{'descr': '<u2', 'fortran_order': "
					 "False, 'shape': (%u,), }",
					 (unsigned)len / 2);
		memset(out + n, ' ', 127 - n);
		out[127] = '\n';
		memcpy(out + 128, s, len);
		return 128 + len;
	}
	for (size_t k = 0; k < len; k++) {
		bool text = f->t.dtype.kind == DTYPE_STRING;

		if (text && (s[k] == '\\' || s[k] == '\n'))
			out[n++] = '\\';
		out[n++] = text && s[k] == '\n' ? 'n' : (unsigned char)s[k];
	}
	out[n++] = '\n';
	return n;
}

static int gather(const struct plan *plan, unsigned char *out,
		  struct error *err)
{
	for (unsigned i = 0; i < plan->n; i++) {
		struct span s;
		int r = store_pin(store, &plan->ext[i], &s, err);

		if (r < 0)
			return r;
		CHECK_EQ_U(s.kind, SPAN_MEM);
		memcpy(out, s.mem, plan->ext[i].len);
		out += plan->ext[i].len;
		store_unpin(store, &s);
	}
	return 0;
}

/* A sample's bytes, or what is wrong with it. */
static int sample_read(struct fake *f, uint64_t sample, unsigned char *out,
		       uint64_t *size, struct error *err)
{
	struct plan plan;
	int r;

	r = text_sample_size(f->t.text, sample, store_pinner(store), size, err);
	if (r < 0)
		return r;
	plan_init(&plan, *size);
	CHECK_OK(text_map_sample(f->t.text, sample, 0, &plan));
	CHECK_EQ_U(plan.have, *size);
	return gather(&plan, out, err);
}

static void check_samples(struct fake *f, unsigned axes)
{
	uint64_t samples = 1, per = 1, size, want;
	unsigned char got[1 << 16], line[512];
	struct error err = {0, ""};

	for (unsigned a = 0; a < f->t.rank; a++)
		*(a < axes ? &samples : &per) *= f->shape[a];
	for (uint64_t k = 0; k < 2 * samples; k++) {
		uint64_t i = k < samples ? k : rnd(samples);

		sample_read(f, i, got, &size, &err);
		CHECK_STR(err.text, "");
		want = 0;
		for (uint64_t j = i * per; j < (i + 1) * per; j++) {
			size_t n = shown(f, j, line);

			CHECK(want + n <= size);
			CHECK_MEM(got + want, line, n);
			want += n;
		}
		CHECK_EQ_U(size, want);
	}
	CHECK_EQ_I(text_sample_size(f->t.text, samples, store_pinner(store),
				    &size, &err),
		   -ENOENT);
}

/* array.txt, in windows. */
static void check_whole(struct fake *f)
{
	unsigned char *want = malloc(f->t.elements * 64 + 1), got[1000];
	struct error err = {0, ""};
	uint64_t n = 0, size;

	for (uint64_t i = 0; i < f->t.elements; i++)
		n += shown(f, i, want + n);
	text_size(f->t.text, store_pinner(store), &size, &err);
	CHECK_STR(err.text, "");
	CHECK_EQ_U(size, n);
	for (unsigned round = 0; round < 30; round++) {
		uint64_t off = rnd(n), len = min_u64(1 + rnd(999), n - off);

		for (uint64_t have = 0; have < len;) {
			struct plan plan;

			plan_init(&plan, len - have);
			CHECK_OK(text_map(f->t.text, off + have, &plan, &err));
			CHECK(plan.have > 0);
			CHECK_OK(gather(&plan, got + have, &err));
			have += plan.have;
		}
		CHECK_MEM(got, want + off, len);
	}
	free(want);
}

TEST_MAYBE static void random_shape(unsigned *rank, uint64_t *shape)
{
	*rank = 1 + (unsigned)rnd(3);
	for (unsigned a = 0; a < *rank; a++)
		shape[a] = 1 + rnd(a ? 11 : 30);
}

TEST_MAYBE static void check_random(struct fake *f)
{
	unsigned axes = 1 + (unsigned)rnd(f->t.rank);

	f->t.text_bytes = rnd(3) ? rnd(1 << 17) : 0;
	if (f->t.dtype.kind == DTYPE_RAGGED)
		axes = f->t.rank;
	fake_text(f, axes);
	if (rnd(2))
		check_samples(f, axes);
	if (f->t.dtype.kind != DTYPE_RAGGED)
		check_whole(f);
	check_samples(f, axes);
	tensor_free(&f->t);
}

TEST_MAYBE static void fakes_begin(void)
{
	struct store_options o = {.cache_size = 16 << 20};
	struct error err;

	CHECK_OK(handles_new(&handles, 8, 1, &err));
	o.handles = handles;
	CHECK_OK(store_new(&store, &o, &err));
}

TEST_MAYBE static void fakes_end(void)
{
	store_free(store);
	handles_free(handles);
}

#endif
