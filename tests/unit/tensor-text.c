/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of random mosaics: every line and every sequence, against naive lists. */
#include "text_fake.h"

TEST(one_dataset)
{
	uint64_t shape[RANK_MAX];
	unsigned rank;

	for (unsigned round = 0; round < 200; round++) {
		random_shape(&rank, shape);
		check_random(fake_plain(DTYPE_STRING + round % 3, rank, shape));
	}
}

TEST(scalars_and_nothing)
{
	const uint64_t none[3] = {0, UINT64_C(1) << 40, UINT64_C(1) << 40};
	struct error err = {0, ""};
	uint64_t size;

	for (int kind = DTYPE_STRING; kind <= DTYPE_RAGGED; kind++) {
		struct fake *f = fake_plain((enum dtype_kind)kind, 0, NULL);

		fake_text(f, 1);
		check_samples(f, 0);
		tensor_free(&f->t);
		f = fake_new((enum dtype_kind)kind, 3, none);
		fake_text(f, 1);
		CHECK_OK(
			text_size(f->t.text, store_pinner(store), &size, &err));
		CHECK_EQ_U(size, 0);
		CHECK_EQ_I(text_sample_size(f->t.text, 0, store_pinner(store),
					    &size, &err),
			   -ENOENT);
		tensor_free(&f->t);
	}
}

static void check_layouts(void (*lay)(struct fake *f))
{
	uint64_t shape[RANK_MAX];
	unsigned rank;

	for (unsigned round = 0; round < 300; round++) {
		struct fake *f;

		random_shape(&rank, shape);
		f = fake_new(DTYPE_STRING + round % 3, rank, shape);
		lay(f);
		check_random(f);
	}
}

TEST(parts_in_a_row)
{
	check_layouts(fake_slabs);
}

TEST(any_mosaic)
{
	check_layouts(fake_scatter);
}

/* A part that is a mosaic itself. */
TEST(mosaics_in_mosaics)
{
	for (unsigned round = 0; round < 60; round++) {
		const uint64_t shape[2] = {1 + rnd(20), 1 + rnd(5)};
		const struct slab all = {{0},
					 {shape[0], shape[1]},
					 {1, 1},
					 {shape[0], shape[1]}};
		enum dtype_kind kind = DTYPE_STRING + round % 3;
		struct fake *f = fake_new(kind, 2, shape),
			    *in = fake_new(kind, 2, shape);
		struct error err;

		fake_scatter(in);
		fake_mosaic(f);
		fake_part(f, 2, shape);
		fake_tile(f, 0, &all);
		CHECK_OK(mosaic_finish(f->t.mosaic, &err));
		f->kind[0] = LAYOUT_NESTED;
		f->nested[0] = in;
		memcpy(f->naive, in->naive, sizeof f->naive);
		check_random(f);
	}
}

/* One row slab is one question; large values come alone. */
TEST(no_more_is_asked_than_needed)
{
	const uint64_t shape[2] = {10000, 7};
	unsigned char got[1 << 16];
	struct error err;
	struct fake *f;
	uint64_t size;

	f = fake_plain(DTYPE_STRING, 2, shape);
	f->t.text_bytes = 20;
	fake_text(f, 1);
	CHECK_OK(sample_read(f, 5000, got, &size, &err));
	CHECK_EQ_U(f->asked, 1);
	CHECK_EQ_U(f->most, 4096 / 7 * 7);
	CHECK_OK(text_size(f->t.text, store_pinner(store), &size, &err));
	CHECK_EQ_U(f->asked, div_up(10000, 4096 / 7));
	tensor_free(&f->t);

	f = fake_plain(DTYPE_STRING, 2, shape);
	f->t.text_bytes = 20;
	fake_text(f, 2);
	CHECK_OK(sample_read(f, 5000, got, &size, &err));
	CHECK_EQ_U(f->asked, 1);
	tensor_free(&f->t);

	f = fake_plain(DTYPE_RAGGED, 2, shape);
	f->t.text_bytes = 2 << 20;
	fake_text(f, 1);
	CHECK_OK(text_sample_size(f->t.text, 6, store_pinner(store), &size,
				  &err));
	CHECK_EQ_U(f->asked, 0);
	CHECK_OK(sample_read(f, 6, got, &size, &err));
	CHECK_EQ_U(f->asked, 1);
	CHECK_EQ_U(f->most, 1);
	tensor_free(&f->t);
}

TEST(what_rows_have_in_common)
{
	const uint64_t shape[2] = {20, 3};
	struct fake *f = fake_plain(DTYPE_STRING, 2, shape);
	char buf[64], line[64];
	struct error err = {0, ""};

	fake_text(f, 2);
	CHECK_OK(text_common(f->t.text, 2, 5, store_pinner(store), buf, 64,
			     &err));
	CHECK_STR(buf, "mixed");
	CHECK_OK(text_common(f->t.text, 5, 5, store_pinner(store), buf, 64,
			     &err));
	CHECK_STR(buf, "");
	text_free(f->t.text);
	fake_text(f, 1);
	line[shown(f, 15, (unsigned char *)line)] = 0;
	CHECK_OK(text_common(f->t.text, 5, 6, store_pinner(store), buf, 64,
			     &err));
	CHECK(!strncmp(buf, line, strlen(line)));
	CHECK(!strchr(buf + strlen(buf) - 1, '\n'));
	f->bad_part = 0;
	f->bad = 16;
	text_free(f->t.text);
	fake_text(f, 1);
	CHECK_EQ_I(text_common(f->t.text, 0, 9, store_pinner(store), buf, 64,
			       &err),
		   0); /* mixed before it matters */
	CHECK_EQ_I(text_common(f->t.text, 5, 6, store_pinner(store), buf, 64,
			       &err),
		   -EBADMSG);
	tensor_free(&f->t);
}

static void *reader(void *fake)
{
	struct fake *f = fake;

	if (f->t.dtype.kind != DTYPE_RAGGED) {
		struct error err;
		uint64_t size;

		CHECK_OK(
			text_size(f->t.text, store_pinner(store), &size, &err));
	}
	check_samples(f, 2);
	return NULL;
}

TEST(many_readers)
{
	for (unsigned round = 0; round < 6; round++) {
		const uint64_t shape[2] = {30, 9};
		struct fake *f = fake_new(DTYPE_STRING + round % 3, 2, shape);
		pthread_t thread[4];

		round % 2 ? fake_scatter(f) : fake_slabs(f);
		f->t.text_bytes = 1 << 16;
		fake_text(f, 2);
		for (unsigned i = 0; i < 4; i++)
			CHECK_OK(pthread_create(&thread[i], NULL, reader, f));
		for (unsigned i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		tensor_free(&f->t);
	}
}

int main(void)
{
	fakes_begin();
	RUN(one_dataset);
	RUN(scalars_and_nothing);
	RUN(parts_in_a_row);
	RUN(any_mosaic);
	RUN(mosaics_in_mosaics);
	RUN(no_more_is_asked_than_needed);
	RUN(what_rows_have_in_common);
	RUN(many_readers);
	fakes_end();
	return test_done();
}
