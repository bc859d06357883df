/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed buffers of Arrow: wanted by many threads at once, decoded by one. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <zstd.h>

#include "base/bytes.h"
#include "formats/arrow/private.h"

#define BUFFERS 12             /* more of them than are kept */
#define SIZE ((size_t)3 << 20) /* decoded */
#define KEPT 8                 /* as many of them are */
#define THREADS 8

static char path[] = "/tmp/source-arrowbuffer-XXXXXX";
static struct arrays file = {.path = path};
static struct arrow_buffer buffer[BUFFERS];
static struct arrow_buffer whole; /* as large as what is kept */
static struct arrow_buffer large; /* larger */
static unsigned char *plain[BUFFERS], *plain_large;
static pthread_barrier_t together;

static void append(int fd, const void *p, size_t n)
{
	CHECK_EQ_I(write(fd, p, n), (int64_t)n);
	file.size += n;
}

/* With a checksum: damage of its end is found when all of it has been decoded. */
static unsigned char *add_buffer(int fd, struct arrow_buffer *b, size_t size,
				 unsigned step)
{
	size_t room = ZSTD_compressBound(size), n;
	unsigned char *out = malloc(room), *data = malloc(size);
	unsigned char head[ARROW_PREFIX];
	ZSTD_CCtx *c = ZSTD_createCCtx();

	CHECK(out && data && c);
	for (size_t k = 0; k < size; k++)
		data[k] = (unsigned char)(k * step >> 7);
	CHECK(!ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1)));
	n = ZSTD_compress2(c, out, room, data, size);
	CHECK(!ZSTD_isError(n));
	*b = (struct arrow_buffer){.s = &file,
				   .codec = ARROW_ZSTD,
				   .pos = file.size,
				   .size = ARROW_PREFIX + n,
				   .least = size,
				   .most = size};
	store_le64(head, size);
	append(fd, head, sizeof head);
	append(fd, out, n);
	ZSTD_freeCCtx(c);
	free(out);
	return data;
}

static void remove_file(void)
{
	unlink(path);
}

/* To handles, a file that changed is another one. */
static void open_again(void)
{
	handles_free(file.handles);
	CHECK_OK(handles_new(&file.handles, 4, THREADS, NULL));
	file.file = handles_add(file.handles, path);
}

static void make_file(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	atexit(remove_file);
	for (unsigned i = 0; i < BUFFERS; i++)
		plain[i] = add_buffer(fd, &buffer[i], SIZE, i + 3);
	free(add_buffer(fd, &whole, KEPT * SIZE, 1));
	plain_large = add_buffer(fd, &large, (KEPT + 4) * SIZE, 2);
	close(fd);
	open_again();
}

/* How many bytes were decoded for one of them. */
static uint64_t read_one(const struct arrow_buffer *b)
{
	unsigned char *out;
	uint64_t n;

	CHECK_OK(arrow_buffer_part(b, 5, 100, &out, &n, NULL));
	free(out);
	return n;
}

/* Its last byte is turned, or turned back. */
static void damage(const struct arrow_buffer *b)
{
	off_t at = (off_t)(b->pos + b->size - 1);
	int fd = open(path, O_RDWR);
	unsigned char c;

	CHECK_EQ_I(pread(fd, &c, 1, at), 1);
	c ^= 0xff;
	CHECK_EQ_I(pwrite(fd, &c, 1, at), 1);
	close(fd);
	open_again();
}

/* A piece of each buffer, at the same time as the others. */
static void *read_pieces(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	uint64_t *sum = calloc(BUFFERS, sizeof *sum);

	CHECK(sum);
	for (unsigned i = 0; i < BUFFERS; i++) {
		size_t from = SIZE / THREADS * me, n = SIZE / THREADS;
		unsigned char *out;

		pthread_barrier_wait(&together);
		CHECK_OK(arrow_buffer_part(&buffer[i], from, n, &out, &sum[i],
					   NULL));
		CHECK_MEM(out, plain[i] + from, n);
		free(out);
	}
	return sum;
}

/* Their results, to be freed. */
static void on_threads(void *(*fn)(void *), void *result[THREADS])
{
	pthread_t thread[THREADS];

	CHECK(!pthread_barrier_init(&together, NULL, THREADS));
	for (uintptr_t t = 0; t < THREADS; t++)
		CHECK(!pthread_create(&thread[t], NULL, fn, (void *)t));
	for (unsigned t = 0; t < THREADS; t++)
		CHECK(!pthread_join(thread[t], &result[t]));
	pthread_barrier_destroy(&together);
}

TEST(decoded_by_one)
{
	void *sums[THREADS];

	/* More than are kept: the second time they are decoded again. */
	for (unsigned round = 0; round < 2; round++) {
		on_threads(read_pieces, sums);
		for (unsigned i = 0; i < BUFFERS; i++) {
			uint64_t all = 0;

			for (unsigned t = 0; t < THREADS; t++)
				all += ((uint64_t *)sums[t])[i];
			CHECK_EQ_U(all, SIZE);
		}
		for (unsigned t = 0; t < THREADS; t++)
			free(sums[t]);
	}
}

static void *read_damaged(void *arg)
{
	struct error *err = calloc(1, sizeof *err);
	unsigned char *out;
	uint64_t n = 1;

	(void)arg;
	CHECK(err);
	pthread_barrier_wait(&together);
	CHECK_EQ_I(arrow_buffer_part(&whole, 0, 1, &out, &n, err), -EBADMSG);
	CHECK_EQ_U(n, 0);
	return err;
}

/* All are told, whoever tried; others stay kept; and it is tried again when the file
 * has been mended. */
TEST(damage_is_told_to_all)
{
	void *said[THREADS];

	for (unsigned i = 0; i < KEPT; i++)
		read_one(&buffer[i]);
	damage(&whole);
	on_threads(read_damaged, said);
	for (unsigned t = 0; t < THREADS; t++) {
		struct error *err = said[t];

		CHECK_EQ_I(err->code, -EBADMSG);
		CHECK(err->text[0]);
		free(err);
	}
	for (unsigned i = 0; i < KEPT; i++)
		CHECK_EQ_U(read_one(&buffer[i]), 0);
	damage(&whole);
	CHECK_EQ_U(read_one(&whole), KEPT * SIZE);
	CHECK_EQ_U(read_one(&whole), 0);
	CHECK_EQ_U(read_one(&buffer[0]), SIZE);
}

static void *read_large(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	size_t n = large.least / THREADS;
	uint64_t *decoded = malloc(sizeof *decoded);
	unsigned char *out;

	CHECK(decoded);
	pthread_barrier_wait(&together);
	CHECK_OK(arrow_buffer_part(&large, n * me, n, &out, decoded, NULL));
	CHECK_MEM(out, plain_large + n * me, n);
	free(out);
	return decoded;
}

/* What is too large to be kept is decoded once for those who want it at that time: how
 * many these are is the scheduler's, so there are some rounds. */
TEST(large_ones_are_shared)
{
	uint64_t least = UINT64_MAX;

	for (unsigned round = 0; round < 20 && least > large.least; round++) {
		void *decoded[THREADS];
		uint64_t all = 0;

		on_threads(read_large, decoded);
		for (unsigned t = 0; t < THREADS; t++) {
			all += *(uint64_t *)decoded[t];
			free(decoded[t]);
		}
		CHECK(all % large.least == 0 && all > 0);
		if (all < least)
			least = all;
	}
	CHECK(least < THREADS * large.least);
	CHECK_EQ_U(read_one(&large), large.least);
}

/* What is wanted once takes nobody's place. */
TEST(once)
{
	struct arrow_buffer b = whole;

	arrow_buffers_forget(&file);
	for (unsigned i = 0; i < KEPT; i++)
		CHECK_EQ_U(read_one(&buffer[i]), SIZE);
	b.once = true;
	CHECK_EQ_U(read_one(&b), KEPT * SIZE);
	CHECK_EQ_U(read_one(&b), KEPT * SIZE);
	for (unsigned i = 0; i < KEPT; i++)
		CHECK_EQ_U(read_one(&buffer[i]), 0);
	b = buffer[KEPT - 1];
	b.once = true;
	CHECK_EQ_U(read_one(&b), 0);
	CHECK_EQ_U(read_one(&buffer[KEPT]), SIZE);
	CHECK_EQ_U(read_one(&buffer[0]), SIZE); /* the least recently used */
}

int main(void)
{
	make_file();
	RUN(decoded_by_one);
	RUN(damage_is_told_to_all);
	RUN(large_ones_are_shared);
	RUN(once);
	arrow_buffers_forget(&file);
	handles_free(file.handles);
	for (unsigned i = 0; i < BUFFERS; i++)
		free(plain[i]);
	free(plain_large);
	return test_done();
}
