/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed buffers of Arrow: wanted by many threads at once, decoded by one. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <zstd.h>

#include "base/bytes.h"
#include "source/arrow_private.h"

#define BUFFERS 12
#define SIZE ((size_t)3 << 20) /* decoded */
#define THREADS 8

static char path[] = "/tmp/source-arrowbuffer-XXXXXX";
static struct arrays file = {.path = path};
static struct arrow_buffer buffer[BUFFERS];
static unsigned char *plain[BUFFERS];
static pthread_barrier_t together;

static void append(int fd, const void *p, size_t n)
{
	CHECK_EQ_I(write(fd, p, n), (int64_t)n);
	file.size += n;
}

static void add_buffer(int fd, unsigned i)
{
	size_t room = ZSTD_compressBound(SIZE), n;
	unsigned char *out = malloc(room), head[ARROW_PREFIX];

	plain[i] = malloc(SIZE);
	CHECK(out && plain[i]);
	for (size_t k = 0; k < SIZE; k++)
		plain[i][k] = (unsigned char)(k * (i + 3) >> 7);
	n = ZSTD_compress(out, room, plain[i], SIZE, 1);
	CHECK(!ZSTD_isError(n));
	buffer[i] = (struct arrow_buffer){.s = &file,
					  .codec = ARROW_ZSTD,
					  .pos = file.size,
					  .size = ARROW_PREFIX + n,
					  .least = SIZE,
					  .most = SIZE};
	store_le64(head, SIZE);
	append(fd, head, sizeof head);
	append(fd, out, n);
	free(out);
}

static void make_file(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	for (unsigned i = 0; i < BUFFERS; i++)
		add_buffer(fd, i);
	close(fd);
	CHECK_OK(handles_new(&file.handles, 4, THREADS, NULL));
	file.file = handles_add(file.handles, path);
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
	CHECK_EQ_I(arrow_buffer_part(&buffer[0], 0, 1, &out, &n, err),
		   -EBADMSG);
	CHECK_EQ_U(n, 0);
	return err;
}

/* All are told, whoever tried; and it is tried again when the file has been mended. */
TEST(damage_is_told_to_all)
{
	unsigned char was[8] = {0}, bad[8] = {0};
	off_t at = (off_t)(buffer[0].pos + ARROW_PREFIX);
	int fd = open(path, O_RDWR);
	unsigned char *out;
	void *said[THREADS];

	arrow_buffers_forget(&file);
	CHECK_EQ_I(pread(fd, was, sizeof was, at), sizeof was);
	CHECK_EQ_I(pwrite(fd, bad, sizeof bad, at), sizeof bad);
	/* To handles, a file that changed is another one. */
	handles_free(file.handles);
	CHECK_OK(handles_new(&file.handles, 4, THREADS, NULL));
	file.file = handles_add(file.handles, path);
	on_threads(read_damaged, said);
	for (unsigned t = 0; t < THREADS; t++) {
		struct error *err = said[t];

		CHECK_EQ_I(err->code, -EBADMSG);
		CHECK(err->text[0]);
		free(err);
	}
	CHECK_EQ_I(pwrite(fd, was, sizeof was, at), sizeof was);
	handles_free(file.handles);
	CHECK_OK(handles_new(&file.handles, 4, THREADS, NULL));
	file.file = handles_add(file.handles, path);
	CHECK_OK(arrow_buffer_part(&buffer[0], 5, 100, &out, NULL, NULL));
	CHECK_MEM(out, plain[0] + 5, 100);
	free(out);
	close(fd);
}

int main(void)
{
	make_file();
	RUN(decoded_by_one);
	RUN(damage_is_told_to_all);
	arrow_buffers_forget(&file);
	handles_free(file.handles);
	for (unsigned i = 0; i < BUFFERS; i++)
		free(plain[i]);
	unlink(path);
	return test_done();
}
