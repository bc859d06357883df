/* SPDX-License-Identifier: BSD-2-Clause */
/* Views of what is no array: lines of text, and sequences. */
#include "view_fake.h"

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

TEST(strings_are_lines)
{
	static char all[1 << 20], want[1 << 20];
	struct pinner p = {plain_pin, plain_unpin, NULL};

	for (int round = 0; round < 90; round++) {
		struct fake *f = fake_new(1 + (unsigned)rnd(2), 8,
					  (enum fake_kind)rnd(3));
		struct view_options o;
		struct error err = {0};
		struct files *files;
		uint64_t row, e = 0, samples;

		f->t.dtype.kind = DTYPE_STRING;
		view_options_default(&o);
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		row = f->t.elements / f->t.shape[0];
		want[0] = 0;
		samples = find(files, 0, "samples");
		CHECK_EQ_U(files->ops->count(files, samples), f->t.shape[0]);
		for (uint64_t i = 0; i < f->t.shape[0]; i++) {
			uint64_t from = strlen(want);
			uint32_t type;

			for (uint64_t k = 0; k < row; k++, e++) {
				if (f->owner[e] < 0)
					strcat(want, "\n");
				else
					value_text(want + strlen(want),
						   (uint32_t)f->owner[e],
						   f->source[e], true);
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

/* ---- sequences ----------------------------------------------------------- */

/* The index has 16 bytes a sequence, its length first. */
static int ragged_fetch(struct tensor *t, uint32_t p, const struct layout *l,
			uint64_t chunk, void *out, size_t size,
			struct error *err)
{
	(void)p;
	(void)l;
	(void)chunk;
	(void)err;
	memset(out, 1, size);
	for (uint64_t e = 0; e < t->elements; e++) {
		uint32_t n = (uint32_t)(e % 5);

		memcpy((char *)out + 16 * e, &n, sizeof n);
	}
	return 0;
}

static int ragged_values(struct tensor *t, uint32_t p, const struct box *b,
			 void (*put)(void *ctx, const char *s, size_t len),
			 void *ctx, struct error *err)
{
	(void)p;
	(void)err;
	for (uint64_t i = 0; i < box_elements(b, t->rank); i++) {
		uint64_t e = box_place(b, t->rank, t->shape, i);
		uint16_t v[5];

		for (unsigned k = 0; k < 5; k++)
			v[k] = (uint16_t)(100 * e + k);
		put(ctx, (const char *)v, 2 * (e % 5));
	}
	return 0;
}

static int ragged_learn(struct tensor *t, uint32_t p, struct layout **out,
			struct error *err)
{
	int r = fake_learn(t, p, out, err);

	(*out)->kind = LAYOUT_FETCHED;
	return r;
}

static const struct tensor_ops ragged_ops = {.learn = ragged_learn,
					     .fetch = ragged_fetch,
					     .values = ragged_values,
					     .free = fake_free};

static void check_sequence(struct files *files, uint64_t node, uint64_t e)
{
	struct pinner p = {plain_pin, plain_unpin, NULL};
	char out[256];
	struct attr a;
	uint16_t v;

	CHECK(files->ops->attr_is_slow(files, node));
	CHECK_OK(files->ops->attr(files, node, &p, &a, NULL));
	CHECK_EQ_U(a.size, 128 + 2 * (e % 5));
	read_text(files, node, &p, out, sizeof out);
	snprintf(out + 200, 40, "'shape': (%u,), }", (unsigned)(e % 5));
	CHECK(strstr(out + 10, out + 200));
	for (unsigned k = 0; k < e % 5; k++) {
		memcpy(&v, out + 128 + 2 * k, 2);
		CHECK_EQ_U(v, (uint16_t)(100 * e + k));
	}
}

TEST(sequences_are_files_of_their_own_length)
{
	static const struct dtype_field of = {
		.name = "", .type = {.kind = DTYPE_UINT, .size = 2}};

	for (unsigned rank = 0; rank < 3; rank++) {
		struct fake *f = fake_new(rank, 16, FAKE_PLAIN);
		struct view_options o;
		struct error err = {0};
		struct files *files;
		uint64_t node, e = 0, dir;
		uint32_t type;

		f->t.ops = &ragged_ops;
		free((void *)atomic_load(&f->t.parts[0].layout));
		atomic_store(&f->t.parts[0].layout, NULL);
		atomic_store(&f->t.learnt, 0);
		CHECK_EQ_I(grid_init(&f->grid[0], rank, f->shape, f->shape, 16),
			   0);
		f->t.dtype.kind = f->t.stored.kind = DTYPE_RAGGED;
		f->t.dtype.nfields = f->t.stored.nfields = 1;
		f->t.dtype.fields = f->t.stored.fields = &of;
		view_options_default(&o);
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		if (!rank) {
			check_sequence(files, find(files, 0, "array.npy"), 0);
			files->ops->free(files);
			continue;
		}
		CHECK_EQ_I(files->ops->find(files, 0, "array.npy", &node),
			   -ENOENT);
		dir = find(files, 0, "samples");
		for (uint64_t i = 0; i < f->shape[0]; i++) {
			node = files->ops->child(files, dir, i, &type);
			CHECK_EQ_U(S_ISDIR(type), rank == 2);
			if (rank == 1)
				check_sequence(files, node, e++);
			for (uint64_t k = 0; rank == 2 && k < f->shape[1]; k++)
				check_sequence(files,
					       files->ops->child(files, node, k,
								 &type),
					       e++);
		}
		files->ops->free(files);
	}
}

int main(void)
{
	RUN(strings_are_lines);
	RUN(sequences_are_files_of_their_own_length);
	return test_done();
}
