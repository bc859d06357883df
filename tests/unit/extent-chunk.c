/* SPDX-License-Identifier: BSD-2-Clause */
/* Loading chunks from real files: verbatim, filtered, recoded, damaged. */
#include <errno.h>
#include <libdeflate.h>
#include <unistd.h>

#include "base/counters.h"
#include "extent/chunk.h"
#include "test.h"

#define DEFLATE 1
#define SHUFFLE 2
#define SIZE 4000 /* 1000 numbers of 4 bytes */
#define AT 100    /* where the chunk begins in the file */

static char path[] = "/tmp/extent-chunk.XXXXXX";
static unsigned char plain[SIZE], shuffled[SIZE], packed[2 * SIZE];
static size_t packed_len;
static struct handles *h;
static struct pipeline pipeline; /* shuffle, deflate */

/* The file is AT bytes of nothing, then `data`; forgets what was there. */
static struct chunk stored_as(const void *data, size_t len)
{
	struct error err;
	FILE *f = fopen(path, "w");

	CHECK(f);
	CHECK(fwrite(shuffled, 1, AT, f) == AT);
	CHECK(fwrite(data, 1, len, f) == len);
	CHECK_EQ_I(fclose(f), 0);
	handles_free(h);
	CHECK_OK(handles_new(&h, 4, 1, &err));
	return (struct chunk){.state = CHUNK_STORED,
			      .file = handles_add(h, path),
			      .pos = AT,
			      .stored = len,
			      .size = SIZE};
}

static void expect(const struct chunk *c, const unsigned char *want)
{
	unsigned char out[SIZE + 1];
	struct error err = {0, ""};
	int r;

	out[SIZE] = 0x5a;
	r = chunk_load(h, c, out, &err);
	CHECK_STR(err.text, "");
	CHECK_OK(r);
	CHECK_MEM(out, want, SIZE);
	CHECK_EQ_U(out[SIZE], 0x5a);
}

/* The sentence names the file and has the words. */
static void refuse(const struct chunk *c, int code, const char *words)
{
	unsigned char out[SIZE];
	struct error err = {0, ""};

	CHECK_EQ_I(chunk_load(h, c, out, &err), code);
	CHECK_EQ_I(err.code, code);
	CHECK(strstr(err.text, path));
	if (!strstr(err.text, words))
		CHECK_STR(err.text, words);
	CHECK_EQ_I(chunk_load(h, c, out, NULL), code);
}

static void make_data(void)
{
	struct libdeflate_compressor *z = libdeflate_alloc_compressor(6);
	struct error err;
	unsigned i, j;

	for (i = 0; i < SIZE / 4; i++)
		for (j = 0; j < 4; j++) {
			plain[4 * i + j] = (unsigned char)((i * i) >> (8 * j));
			shuffled[j * (SIZE / 4) + i] = plain[4 * i + j];
		}
	CHECK(z);
	packed_len = libdeflate_zlib_compress(z, shuffled, SIZE, packed,
					      sizeof packed);
	CHECK(packed_len > 0 && packed_len < SIZE);
	libdeflate_free_compressor(z);
	CHECK_OK(pipeline_add(&pipeline, SHUFFLE, NULL, (uint32_t[]){4}, 1, 4,
			      &err));
	CHECK_OK(pipeline_add(&pipeline, DEFLATE, NULL, (uint32_t[]){6}, 1, 4,
			      &err));
}

TEST(verbatim)
{
	struct chunk c = stored_as(plain, SIZE);

	CHECK(chunk_is_verbatim(&c));
	CHECK_EQ_U(chunk_scratch(&c), 0);
	expect(&c, plain);
	c.pipeline = &pipeline;
	CHECK(!chunk_is_verbatim(&c));
	c.skip_mask = 3; /* both filters were skipped */
	CHECK(chunk_is_verbatim(&c));
	expect(&c, plain);
}

TEST(filters_are_undone)
{
	struct chunk c = stored_as(packed, packed_len);
	uint64_t chunks = counter_get(COUNT_CHUNKS_DECODED);
	uint64_t stored = counter_get(COUNT_BYTES_STORED);
	uint64_t decoded = counter_get(COUNT_BYTES_DECODED);

	c.pipeline = &pipeline;
	CHECK(!chunk_is_verbatim(&c));
	CHECK(chunk_scratch(&c) >= packed_len + SIZE);
	expect(&c, plain);
	CHECK_EQ_U(counter_get(COUNT_CHUNKS_DECODED), chunks + 1);
	CHECK_EQ_U(counter_get(COUNT_BYTES_STORED), stored + packed_len);
	CHECK_EQ_U(counter_get(COUNT_BYTES_DECODED), decoded + SIZE);
	c.skip_mask = 1; /* shuffle was skipped */
	expect(&c, shuffled);
}

static const struct recode swap4 = {
	.from = 4, .to = 4, .width = 4, .nswaps = 1, .swap = {{0, 4, 1}}};

TEST(numbers_are_swapped)
{
	static const struct recode same = {.from = 4, .to = 4, .width = 4};
	unsigned char want[SIZE];
	struct chunk c = stored_as(plain, SIZE);
	unsigned i;

	for (i = 0; i < SIZE; i++)
		want[i] = plain[i ^ 3];
	c.recode = &swap4;
	CHECK(!chunk_is_verbatim(&c));
	CHECK_EQ_U(chunk_scratch(&c), 0);
	expect(&c, want);
	c.recode = &same;
	CHECK(chunk_is_verbatim(&c));
	expect(&c, plain);
	c = stored_as(packed, packed_len);
	c.pipeline = &pipeline;
	c.recode = &swap4;
	expect(&c, want);
}

/* The upper half of each number, as a double: 4 stored bytes become 8. */
TEST(elements_change_their_size)
{
	static const struct recode r = {.from = 4,
					.to = 8,
					.offset = 2,
					.width = 2,
					.of = RECODE_I16,
					.into = RECODE_F64};
	struct chunk stored = stored_as(plain, SIZE), c;
	uint64_t decoded = counter_get(COUNT_BYTES_DECODED);
	double got[SIZE / 4];
	struct error err;
	size_t unfiltered;

	stored.size = SIZE * 2;
	stored.recode = &r;
	CHECK(!chunk_is_verbatim(&stored));
	unfiltered = chunk_scratch(&stored);
	CHECK_EQ_U(unfiltered, SIZE);
	for (unsigned filtered = 0; filtered < 2; filtered++) {
		memset(got, 0x5a, sizeof got);
		CHECK_OK(chunk_load(h, &stored, got, &err));
		for (unsigned i = 0; i < SIZE / 4; i++)
			CHECK(got[i] == (int16_t)((i * i) >> 16));
		if (filtered)
			break;
		c = stored_as(packed, packed_len);
		c.size = SIZE * 2;
		c.recode = &r;
		c.pipeline = &pipeline;
		CHECK(chunk_scratch(&c) >= unfiltered + packed_len + SIZE);
		stored = c;
	}
	CHECK_EQ_U(counter_get(COUNT_BYTES_DECODED), decoded + 2 * SIZE);
}

/* A byte of each: 4 stored bytes become 1. */
TEST(a_field_is_taken_out)
{
	static const struct recode r = {
		.from = 4, .to = 1, .offset = 1, .width = 1};
	struct chunk c = stored_as(packed, packed_len);
	unsigned char got[SIZE / 4 + 1];
	struct error err;

	c.pipeline = &pipeline;
	c.size = SIZE / 4;
	c.recode = &r;
	got[SIZE / 4] = 0x5a;
	CHECK_OK(chunk_load(h, &c, got, &err));
	for (unsigned i = 0; i < SIZE / 4; i++)
		CHECK_EQ_U(got[i], plain[4 * i + 1]);
	CHECK_EQ_U(got[SIZE / 4], 0x5a);
}

TEST(impossible_recodes)
{
	struct recode r = swap4;
	struct chunk c = stored_as(plain, SIZE);

	c.recode = &r;
	c.size = SIZE - 2;
	refuse(&c, -EBADMSG,
	       "3998 bytes are not a whole number of 4-byte elements");
	c.size = SIZE;
	r.swap[0].offset = 1;
	refuse(&c, -EINVAL, "invalid conversion");
	r = (struct recode){.from = UINT32_MAX, .to = 1, .width = 1};
	refuse(&c, -EBADMSG, "4000 bytes are stored without a filter, but");
	CHECK_EQ_U(chunk_scratch(&c), (uint64_t)SIZE * UINT32_MAX);
	c.size = UINT64_C(1) << 40;
	CHECK_EQ_U(chunk_scratch(&c), SIZE_MAX);
	refuse(&c, -EBADMSG, "not a whole number");
	r.to = 0;
	CHECK_EQ_U(chunk_scratch(&c), SIZE_MAX);
	refuse(&c, -EINVAL, "invalid conversion");
}

TEST(wrong_sizes)
{
	struct chunk c = stored_as(plain, SIZE);

	c.stored = SIZE - 1;
	CHECK(!chunk_is_verbatim(&c));
	refuse(&c, -EBADMSG, "3999 bytes are stored without a filter");
	c = stored_as(packed, packed_len);
	c.pipeline = &pipeline;
	c.size = SIZE - 4;
	refuse(&c, -EBADMSG, "chunk at 100: ");
	c.size = SIZE;
	c.stored = UINT64_MAX / 2;
	refuse(&c, -EBADMSG, "damaged index?");
	CHECK(chunk_scratch(&c) >= UINT64_MAX / 2);
	c.stored = UINT64_MAX;
	CHECK_EQ_U(chunk_scratch(&c), SIZE_MAX);
	refuse(&c, -EBADMSG, "damaged index?");
	c.size = UINT64_MAX;
	refuse(&c, -EBADMSG, "not a whole number");
}

TEST(damaged_bytes)
{
	unsigned char bad[2 * SIZE];
	struct chunk c;
	unsigned i;

	memcpy(bad, packed, packed_len);
	for (i = 20; i < 40; i++)
		bad[i] ^= 0x55;
	c = stored_as(bad, packed_len);
	c.pipeline = &pipeline;
	refuse(&c, -EBADMSG, "chunk at 100: ");
	c = stored_as(packed, packed_len);
	c.pipeline = &pipeline;
	c.stored -= 10;
	refuse(&c, -EBADMSG, "chunk at 100: ");
}

TEST(truncated_files)
{
	struct chunk c = stored_as(packed, packed_len - 1);

	c.pipeline = &pipeline;
	c.stored = packed_len;
	refuse(&c, -EIO, "truncated?");
	c.pos = UINT64_MAX - 5;
	refuse(&c, -EIO, "truncated?");
	c = stored_as(plain, SIZE - 1);
	c.stored = SIZE;
	refuse(&c, -EIO, "truncated?");
}

TEST(changed_and_missing_files)
{
	struct chunk c = stored_as(packed, packed_len);

	c.pipeline = &pipeline;
	expect(&c, plain);
	CHECK_EQ_I(truncate(path, AT + 10), 0);
	refuse(&c, -ESTALE, "changed since it was first read");
	handles_free(h);
	CHECK_OK(handles_new(&h, 4, 1, NULL));
	c.file = handles_add(h, path);
	CHECK_EQ_I(unlink(path), 0);
	refuse(&c, -ENODATA, "is missing");
}

TEST(other_states)
{
	struct chunk c = stored_as(plain, SIZE);

	c.state = CHUNK_ABSENT;
	CHECK(!chunk_is_verbatim(&c));
	CHECK_EQ_U(chunk_scratch(&c), 0);
	refuse(&c, -EINVAL, "no stored bytes");
	CHECK(chunk_set_new_id() != chunk_set_new_id());
}

static void remove_file(void)
{
	unlink(path);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	atexit(remove_file);
	make_data();
	RUN(verbatim);
	RUN(filters_are_undone);
	RUN(numbers_are_swapped);
	RUN(elements_change_their_size);
	RUN(a_field_is_taken_out);
	RUN(impossible_recodes);
	RUN(wrong_sizes);
	RUN(damaged_bytes);
	RUN(truncated_files);
	RUN(changed_and_missing_files);
	RUN(other_states);
	handles_free(h);
	return test_done();
}
