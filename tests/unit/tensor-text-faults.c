/* SPDX-License-Identifier: BSD-2-Clause */
/* Values that are damaged, missing or lie: only they fail, and say why. */
#include <unistd.h>

#include "text_fake.h"

TEST(one_damaged_value_fails_alone)
{
	const uint64_t shape[2] = {60, 5};
	unsigned char got[1 << 16], want[512];

	for (int kind = DTYPE_STRING; kind <= DTYPE_RAGGED; kind++) {
		struct fake *f = fake_plain((enum dtype_kind)kind, 2, shape);
		struct error err = {0, ""};
		uint64_t size;

		f->bad_part = 0;
		f->bad = 122;
		fake_text(f, 2);
		for (uint64_t i = 0; i < 300; i++) {
			int r = sample_read(f, i, got, &size, &err);

			if (i == f->bad) {
				CHECK(r < 0);
				if (kind != DTYPE_RAGGED) {
					CHECK_EQ_I(r, -EBADMSG);
					CHECK_STR(err.text,
						  "element is damaged");
				}
				continue;
			}
			CHECK_OK(r);
			CHECK_EQ_U(size, shown(f, i, want));
			CHECK_MEM(got, want, size);
		}
		if (kind != DTYPE_RAGGED) {
			CHECK_EQ_I(text_size(f->t.text, store_pinner(store),
					     &size, &err),
				   -EBADMSG);
			CHECK_STR(err.text, "element is damaged");
		}
		tensor_free(&f->t);
	}
}

/* Rows of samples that lie in parts that are not there. */
TEST(missing_parts)
{
	unsigned char got[1 << 16], want[1 << 12];

	for (unsigned round = 0; round < 120; round++) {
		const uint64_t shape[2] = {1 + rnd(30), 1 + rnd(6)};
		bool fill = round % 2;
		struct error err = {0, ""};
		uint64_t size;
		struct fake *f;

		f = fake_new(DTYPE_STRING + round / 2 % 3, 2, shape);
		round % 5 ? fake_scatter(f) : fake_slabs(f);
		f->gone = (unsigned)rnd(256);
		f->t.missing = fill ? MISSING_FILL : MISSING_ERROR;
		fake_text(f, 2);
		for (uint64_t i = 0; i < f->t.elements; i++) {
			int64_t part = f->naive[i].part;
			bool gone = part >= 0 && (f->gone >> part & 1);

			if (gone && fill)
				f->naive[i].part = GAP;
			if (gone && !fill) {
				int r = sample_read(f, i, got, &size, &err);

				CHECK_EQ_I(r, -ENODATA);
				CHECK(strstr(err.text, "is not there"));
				continue;
			}
			CHECK_OK(sample_read(f, i, got, &size, &err));
			CHECK_EQ_U(size, shown(f, i, want));
			CHECK_MEM(got, want, size);
		}
		tensor_free(&f->t);
	}
}

TEST(a_sequence_of_another_length_is_an_error)
{
	const uint64_t shape[1] = {5};
	unsigned char got[1 << 12];
	struct error err = {0, ""};
	struct extent x = {.kind = EXTENT_CHUNK, .len = 1};
	struct span span;
	struct fake *f;
	uint64_t size;

	/* The size was asked first. */
	f = fake_plain(DTYPE_RAGGED, 1, shape);
	f->liar = 3;
	f->t.text_bytes = 2 << 20; /* alone in its segment */
	fake_text(f, 1);
	CHECK_OK(sample_read(f, 2, got, &size, &err));
	CHECK_EQ_I(sample_read(f, 3, got, &size, &err), -EBADMSG);
	CHECK(strstr(err.text, "sequence 3: the heap has"));
	CHECK(strstr(err.text, "elements where the index says"));
	CHECK_OK(sample_read(f, 4, got, &size, &err));
	tensor_free(&f->t);

	/* The elements were there first. */
	f = fake_plain(DTYPE_RAGGED, 1, shape);
	f->liar = 3;
	fake_text(f, 1);
	x.u.chunk.set = (struct chunk_set *)f->t.text;
	x.u.chunk.slice = EXTENT_WHOLE;
	CHECK_OK(store_pin(store, &x, &span, &err));
	store_unpin(store, &span);
	CHECK_EQ_I(sample_read(f, 3, got, &size, &err), -EBADMSG);
	CHECK(strstr(err.text, "sequence 3: the heap has"));
	tensor_free(&f->t);
}

/* Elements of sequences that are arrays; lengths that no file has. */
TEST(lengths_are_hostile)
{
	static const uint64_t dims[2] = {3, 2}, huge[2] = {1 << 30, 1 << 30};
	struct dtype_field f3 = {.rank = 2,
				 .dims = dims,
				 .type = {.kind = DTYPE_FLOAT, .size = 8}};
	const uint64_t shape[1] = {3};
	static const unsigned char all[RECORD] = {255, 255, 255, 255, 1};
	struct fake *f = fake_plain(DTYPE_RAGGED, 1, shape);
	struct error err = {0, ""};
	uint64_t size;

	f->t.dtype.fields = &f3;
	f->kind[0] = LAYOUT_ABSENT;
	f->t.fill = (struct fill){all, RECORD};
	fake_text(f, 1);
	CHECK_OK(text_sample_size(f->t.text, 1, store_pinner(store), &size,
				  &err));
	CHECK_EQ_U(size, 128 + UINT64_C(48) * UINT32_MAX);
	text_free(f->t.text);
	f3.dims = huge;
	fake_text(f, 1);
	CHECK_EQ_I(text_sample_size(f->t.text, 1, store_pinner(store), &size,
				    &err),
		   -EBADMSG);
	CHECK(strstr(err.text, "sequence 1 claims 4294967295 elements"));
	text_free(f->t.text);
	f3.rank = RANK_MAX + 1;
	CHECK_EQ_I(text_new(&f->t.text, &f->t, 1, &err), -ENOTSUP);
	f3.rank = 2;
	f3.type.size = UINT32_C(1) << 31;
	CHECK_EQ_I(text_new(&f->t.text, &f->t, 1, &err), -ENOTSUP);
	f->t.text = NULL;
	tensor_free(&f->t);
}

/* The records lie in a file; where nothing was written, all are empty. */
TEST(records_in_files)
{
	char path[] = "/tmp/tensor-text-XXXXXX";
	int fd = mkstemp(path);
	const uint64_t shape[2] = {6, 7};
	unsigned char bytes[42 * RECORD];
	struct fake *f = fake_plain(DTYPE_RAGGED, 2, shape);
	struct error err = {0, ""};
	uint64_t size;

	records(f, 0, bytes);
	CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes);
	f->file = handles_add(handles, path);
	f->kind[0] = LAYOUT_LINEAR;
	fake_text(f, 2);
	check_samples(f, 2);
	CHECK_OK(ftruncate(fd, sizeof bytes - 1));
	CHECK(text_sample_size(f->t.text, 41, store_pinner(store), &size,
			       &err) < 0);
	tensor_free(&f->t);
	close(fd);
	unlink(path);

	f = fake_plain(DTYPE_RAGGED, 2, shape);
	f->kind[0] = LAYOUT_ABSENT;
	f->t.fill = (struct fill){NULL, 1};
	fake_text(f, 2);
	CHECK_OK(text_sample_size(f->t.text, 9, store_pinner(store), &size,
				  &err));
	CHECK_EQ_U(size, 128);
	tensor_free(&f->t);
}

int main(void)
{
	fakes_begin();
	RUN(one_damaged_value_fails_alone);
	RUN(missing_parts);
	RUN(a_sequence_of_another_length_is_an_error);
	RUN(lengths_are_hostile);
	RUN(records_in_files);
	fakes_end();
	return test_done();
}
