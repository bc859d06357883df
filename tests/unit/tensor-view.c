/* SPDX-License-Identifier: BSD-2-Clause */
/* Views of random tensors: map and gather equals a naive copy in C order. */
#include <errno.h>
#include <sys/stat.h>

#include "tensor/text.h"
#include "tensor/view.h"
#include "test.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;
static uint64_t rnd(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* ---- a tensor whose parts and chunks live in memory ---------------------- */

struct fake {
	struct tensor t;
	unsigned char *whole; /* the values in C order */
	struct grid grid[8];  /* of each part */
	uint64_t origin[8][RANK_MAX];
	struct pipeline none;
	unsigned learned;
};

static int fake_learn(struct tensor *t, uint32_t p, struct layout **out,
		      struct error *err)
{
	struct fake *f = (struct fake *)t;
	struct layout *l = calloc(1, sizeof *l);

	(void)err;
	f->learned++;
	l->kind = LAYOUT_CHUNKED;
	l->grid = &f->grid[p];
	l->pipeline = &f->none;
	l->origin = t->parts[p].origin;
	l->fill = t->fill;
	*out = l;
	return 0;
}

static void fake_free(struct tensor *t)
{
	struct fake *f = (struct fake *)t;

	free(f->whole);
	free(f);
}

static int fake_strings(struct tensor *t, uint32_t p, uint64_t first,
			uint64_t n,
			void (*put)(void *ctx, const char *s, size_t len),
			void *ctx, struct error *err)
{
	uint64_t row = 1;

	(void)err;
	for (unsigned i = 1; i < t->rank; i++)
		row *= t->shape[i];
	first += t->parts[p].begin * row;
	for (uint64_t i = first; i < first + n; i++) {
		char s[64];

		snprintf(s, sizeof s,
			 i % 7 == 3 ? "a\\b\n%" PRIu64 : "v%" PRIu64, i);
		put(ctx, i % 11 == 5 ? "" : s, i % 11 == 5 ? 0 : strlen(s));
	}
	return 0;
}

static const struct tensor_ops fake_ops = {
	.learn = fake_learn, .strings = fake_strings, .free = fake_free};

/* Rows in up to 8 parts, some gaps; each part a window of a larger dataset. */
static void fake_parts(struct fake *f)
{
	struct tensor *t = &f->t;
	uint64_t row = 0;

	t->parts = calloc(8, sizeof *t->parts);
	while (t->rank && row < t->shape[0] && t->nparts < 8) {
		struct part *p = &t->parts[t->nparts];
		uint64_t n = 1 + rnd(t->shape[0] - row), shape[RANK_MAX],
			 chunk[RANK_MAX];

		if (rnd(4) == 0) {
			row += n;
			continue;
		}
		p->begin = row;
		p->end = row + n;
		for (unsigned i = 0; i < t->rank; i++) {
			f->origin[t->nparts][i] = rnd(3);
			shape[i] = f->origin[t->nparts][i] +
				   (i ? t->shape[i] : n) + rnd(3);
			chunk[i] = 1 + rnd(7);
		}
		p->origin = f->origin[t->nparts];
		CHECK_EQ_I(grid_init(&f->grid[t->nparts], t->rank, shape, chunk,
				     t->dtype.size),
			   0);
		t->nparts++;
		row += n;
	}
	if (t->rank)
		return;
	CHECK_EQ_I(grid_init(&f->grid[0], 0, NULL, NULL, t->dtype.size), 0);
	t->parts[0].end = 1;
	t->nparts = 1;
}

static struct fake *fake_new(unsigned rank, uint32_t elem)
{
	struct fake *f = calloc(1, sizeof *f);
	struct tensor *t = &f->t;
	static const unsigned char fill[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	t->ops = &fake_ops;
	t->set.ops = &tensor_chunk_ops;
	t->set.id = chunk_set_new_id();
	t->dtype = (struct dtype){DTYPE_UINT, elem, false, false, ""};
	t->stored = t->dtype;
	t->rank = rank;
	t->elements = 1;
	for (unsigned i = 0; i < rank; i++) {
		t->shape[i] = 1 + rnd(i ? 9 : 20);
		t->elements *= t->shape[i];
	}
	t->bytes = t->elements * elem;
	t->fill = (struct fill){fill, elem};
	t->distributed = rank > 0;
	t->name = strdup("/fake");
	t->source = strdup("fake.h5");
	fake_parts(f);
	f->whole = malloc(t->bytes);
	for (uint64_t i = 0; i < t->bytes; i++)
		f->whole[i] = (unsigned char)rnd(256);
	return f;
}

/* The byte at `inside` of a part's chunk: where does it lie in the whole?  The
 * naive way: coordinates, one axis at a time. */
static unsigned char chunk_byte(const struct fake *f, uint32_t p,
				uint64_t chunk, uint64_t inside)
{
	const struct grid *g = &f->grid[p];
	const struct part *part = &f->t.parts[p];
	uint64_t at[RANK_MAX], e = inside / g->elem, flat = 0;

	for (unsigned i = g->rank; i-- > 0;) {
		at[i] = chunk % g->chunks[i] * g->chunk[i] + e % g->chunk[i];
		chunk /= g->chunks[i];
		e /= g->chunk[i];
		CHECK(at[i] >= part->origin[i]);
		at[i] -= part->origin[i];
	}
	if (g->rank)
		at[0] += part->begin;
	for (unsigned i = 0; i < g->rank; i++) {
		CHECK(at[i] < f->t.shape[i]);
		flat = flat * f->t.shape[i] + at[i];
	}
	return f->whole[flat * g->elem + inside % g->elem];
}

/* Bytes of one extent, as a store would pin them. */
static void gather(const struct fake *f, const struct extent *x,
		   unsigned char *out)
{
	for (uint64_t i = 0; i < x->len; i++) {
		switch (x->kind) {
		case EXTENT_MEM:
			out[i] = ((const unsigned char *)x->u.mem.data)[i];
			break;
		case EXTENT_FILL:
			out[i] = ((const unsigned char *)x->u.fill.of
					  .pattern)[(x->u.fill.phase + i) %
						    x->u.fill.of.width];
			break;
		case EXTENT_CHUNK:
			out[i] = chunk_byte(
				f, (uint32_t)(x->u.chunk.index >> 40),
				x->u.chunk.index & (TENSOR_CHUNK_MAX - 1),
				x->u.chunk.skip + i);
			break;
		case EXTENT_FILE:
			CHECK(!"a fake tensor has no files");
		}
	}
}

static void read_window(struct files *files, const struct fake *f,
			uint64_t node, uint64_t off, uint64_t len,
			unsigned char *out)
{
	struct error err = {0};
	struct plan p;

	CHECK_OK(files->ops->prepare(files, node, off, len, &err));
	while (len) {
		uint64_t at = 0;

		plan_init(&p, len);
		CHECK_OK(files->ops->map(files, node, off, &p, &err));
		CHECK(p.have > 0 && p.have <= len);
		for (unsigned i = 0; i < p.n; i++) {
			gather(f, &p.ext[i], out + at);
			at += p.ext[i].len;
		}
		CHECK_EQ_U(at, p.have);
		off += p.have;
		out += p.have;
		len -= p.have;
	}
}

/* The value that byte `i` of the whole array must have: its own, or fill. */
static unsigned char expected(const struct fake *f, uint64_t i)
{
	const struct tensor *t = &f->t;
	uint64_t row_bytes = t->rank ? t->bytes / t->shape[0] : t->bytes, end;

	if (tensor_part_at(t, i / row_bytes, &end) < 0)
		return ((const unsigned char *)
				t->fill.pattern)[i % t->fill.width];
	return f->whole[i];
}

static uint64_t find(struct files *files, uint64_t dir, const char *name)
{
	uint64_t node = 0;

	CHECK_EQ_I(files->ops->find(files, dir, name, &node), 0);
	return node;
}

static void check_array(struct files *files, const struct fake *f)
{
	uint64_t node = find(files, 0, "array.bin");
	struct attr a;
	unsigned char *out;

	CHECK_EQ_I(files->ops->attr(files, node, NULL, &a, NULL), 0);
	CHECK_EQ_U(a.size, f->t.bytes);
	out = malloc(a.size);
	for (int i = 0; i < 8; i++) {
		uint64_t off = rnd(a.size), len = 1 + rnd(a.size - off);

		read_window(files, f, node, off, len, out);
		for (uint64_t k = 0; k < len; k++)
			CHECK_EQ_U(out[k], expected(f, off + k));
	}
	free(out);
}

/* Every file below `dir`: names find their nodes, parents their directories,
 * and the numbers in C order give the bytes of the whole array. */
static void check_samples(struct files *files, const struct fake *f,
			  uint64_t dir, uint64_t *at)
{
	uint64_t n = files->ops->count(files, dir), node, up, again;
	char name[256], before[256] = "";
	uint32_t type;

	for (uint64_t i = 0; i < n; i++) {
		struct attr a;
		unsigned char out[8192];

		CHECK_EQ_I(files->ops->name(files, dir, i, name, sizeof name),
			   0);
		CHECK(strcmp(before, name) < 0);
		strcpy(before, name);
		node = files->ops->child(files, dir, i, &type);
		CHECK_EQ_I(files->ops->find(files, dir, name, &again), 0);
		CHECK_EQ_U(again, node);
		CHECK_EQ_I(files->ops->parent(files, node, &up), 0);
		CHECK_EQ_U(up, dir);
		if (S_ISDIR(type)) {
			check_samples(files, f, node, at);
			continue;
		}
		CHECK_EQ_I(files->ops->attr(files, node, NULL, &a, NULL), 0);
		CHECK(a.size <= sizeof out);
		read_window(files, f, node, 0, a.size, out);
		CHECK(!memcmp(out, "\x93NUMPY", 6));
		for (uint64_t k = 128; k < a.size; k++)
			CHECK_EQ_U(out[k], expected(f, (*at)++));
	}
}

TEST(views_of_random_tensors)
{
	for (int round = 0; round < 400; round++) {
		unsigned rank = (unsigned)rnd(4);
		struct fake *f = fake_new(rank, 1u << rnd(4));
		struct view_options o;
		struct error err = {0};
		struct files *files;
		uint64_t at = 0, node;

		view_options_default(&o);
		o.sample_axes = 1 + (unsigned)rnd(3);
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		CHECK(tensor_of_files(files) == &f->t);
		check_array(files, f);
		if (rank) {
			check_samples(files, f, find(files, 0, "samples"), &at);
			CHECK_EQ_U(at, f->t.bytes);
			at = find(files, 0, "blocks");
			CHECK_EQ_U(files->ops->count(files, at), f->t.nparts);
		}
		CHECK_EQ_I(files->ops->find(files, 0, "sample", &node),
			   -ENOENT);
		files->ops->free(files);
	}
}

TEST(names_that_we_do_not_make_are_not_found)
{
	static const char *const wrong[] = {
		"0.npy",      "00000.npy",  "0000000.npy",
		"000000.np",  "000000",     "000000.npyx",
		"-00001.npy", "999999.npy", "00000a.npy",
		"",           "000000.NPY", "18446744073709551616.npy"};
	struct fake *f = fake_new(2, 4);
	struct view_options o;
	struct error err = {0};
	struct files *files;
	uint64_t samples, blocks, node;

	view_options_default(&o);
	CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
	samples = find(files, 0, "samples");
	blocks = find(files, 0, "blocks");
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CHECK_EQ_I(files->ops->find(files, samples, wrong[i], &node),
			   -ENOENT);
		CHECK_EQ_I(files->ops->find(files, blocks, wrong[i], &node),
			   -ENOENT);
	}
	files->ops->free(files);
}

/* ---- strings ------------------------------------------------------------- */

/* A pinner without a cache: fetches, and forgets at unpin. */
static int plain_pin(struct pinner *p, const struct extent *x, struct span *out,
		     struct error *err)
{
	static _Atomic uint64_t gauge;
	struct chunk_set *set = x->u.chunk.set;
	size_t off = 0, len;
	int r;

	(void)p;
	memset(out, 0, sizeof *out);
	r = set->ops->fetch(set, x->u.chunk.index, &gauge, &out->buf, err);
	if (r < 0)
		return r;
	len = out->buf->size;
	if (x->u.chunk.slice != EXTENT_WHOLE)
		CHECK_EQ_I(set->ops->slice(set, out->buf, x->u.chunk.slice,
					   &off, &len),
			   0);
	CHECK(x->u.chunk.skip + x->len <= len);
	out->mem = out->buf->data + off + x->u.chunk.skip;
	out->len = x->len;
	return 0;
}
static void plain_unpin(struct pinner *p, struct span *s)
{
	(void)p;
	buf_unref(s->buf);
}

static void read_text(struct files *files, uint64_t node, struct pinner *p,
		      char *out, size_t room)
{
	struct error err = {0};
	struct attr a;
	uint64_t done = 0;

	CHECK_OK(files->ops->attr(files, node, p, &a, &err));
	CHECK(a.size < room);
	while (done < a.size) {
		struct plan plan;

		plan_init(&plan, a.size - done);
		CHECK_OK(files->ops->map(files, node, done, &plan, &err));
		CHECK(plan.have > 0);
		for (unsigned i = 0; i < plan.n; i++) {
			struct span s;

			CHECK_OK(p->pin(p, &plan.ext[i], &s, &err));
			memcpy(out + done, s.mem, s.len);
			done += s.len;
			p->unpin(p, &s);
		}
	}
	out[done] = 0;
}

static void append_line(char *to, uint64_t i)
{
	if (i % 11 == 5)
		strcat(to, "\n");
	else
		sprintf(to + strlen(to),
			i % 7 == 3 ? "a\\\\b\\n%" PRIu64 "\n"
				   : "v%" PRIu64 "\n",
			i);
}

TEST(strings_are_lines)
{
	static char all[1 << 20], want[1 << 20];
	struct pinner p = {plain_pin, plain_unpin};

	for (int round = 0; round < 60; round++) {
		struct fake *f = fake_new(1 + (unsigned)rnd(2), 8);
		struct view_options o;
		struct error err = {0};
		struct files *files;
		uint64_t row, values = 0, samples;

		f->t.dtype.kind = DTYPE_STRING;
		view_options_default(&o);
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		row = f->t.elements / f->t.shape[0];
		want[0] = 0;
		samples = find(files, 0, "samples");
		CHECK_EQ_U(files->ops->count(files, samples), f->t.shape[0]);
		for (uint64_t i = 0; i < f->t.shape[0]; i++) {
			uint32_t type;
			uint64_t end, from = strlen(want);
			bool gap = tensor_part_at(&f->t, i, &end) < 0;

			for (uint64_t k = 0; k < row; k++, values++) {
				if (gap)
					strcat(want, "\n");
				else
					append_line(want, values);
			}
			read_text(files,
				  files->ops->child(files, samples, i, &type),
				  &p, all, sizeof all);
			CHECK_STR(all, want + from);
		}
		read_text(files, find(files, 0, "array.txt"), &p, all,
			  sizeof all);
		CHECK_STR(all, want);
		files->ops->free(files);
	}
}

int main(void)
{
	RUN(views_of_random_tensors);
	RUN(names_that_we_do_not_make_are_not_found);
	RUN(strings_are_lines);
	return test_done();
}
