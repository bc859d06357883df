/* SPDX-License-Identifier: BSD-2-Clause */
/* What a first pass decodes and keeps: all of it, a part, nothing; taken once. */
#include "stream/first_pass.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "test.h"

#define MIB ((size_t)1 << 20)
#define STEP (2 * MIB)
#define SIZE (9 * MIB + 12345)
#define WINDOWS 40

static unsigned char *data;
static struct stream_point point[WINDOWS];
static _Atomic uint64_t gauge;

static void prepare(void)
{
	uint64_t at = 0;

	data = malloc(SIZE);
	CHECK(data);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)test_random();
	for (unsigned i = 0; i < WINDOWS; i++) {
		uint64_t left = SIZE - at, rest = WINDOWS - i;

		point[i].out = at;
		point[i].size =
			(uint32_t)(rest == 1 ? left
					     : 1 + test_random() % (2 * left /
								    rest));
		at += point[i].size;
	}
	CHECK_EQ_U(at, SIZE);
}

/* Windows that are kept are the first, whole. */
static struct first_pass *pass(uint64_t most)
{
	struct first_pass *k = first_pass_new();
	size_t n;

	for (size_t at = 0; at < SIZE; at += n) {
		n = 1 + test_random() % 300000;
		n = n < SIZE - at ? n : SIZE - at;
		first_pass_add(k, data + at, n);
		CHECK(stream_first_pass_bytes() <= most);
	}
	first_pass_end(k, point, WINDOWS);
	return k;
}

static struct first_pass *passed(uint64_t most, bool beside)
{
	stream_first_pass_limit(most, beside);
	return pass(most);
}

/* How many windows; each is what was passed, and there once. */
static unsigned take_all(struct first_pass *k)
{
	struct buf *held[WINDOWS] = {NULL};
	uint64_t bytes = 0;
	unsigned n = 0;

	for (unsigned i = WINDOWS; i-- > 0;) {
		uint64_t before = stream_first_pass_bytes();
		struct buf *b = first_pass_take(k, &point[i], i, &gauge);

		CHECK(!first_pass_take(k, &point[i], i, &gauge));
		if (!b) {
			CHECK(!n);
			continue;
		}
		n++;
		held[i] = b;
		bytes += point[i].size;
		CHECK_EQ_U(b->size, point[i].size);
		CHECK_EQ_U(stream_first_pass_bytes(), before - point[i].size);
		CHECK_EQ_U(atomic_load(&gauge), bytes);
	}
	CHECK_EQ_U(stream_first_pass_bytes(), 0);
	/* Each is given back, and the others are what they were. */
	for (unsigned i = 0; i < WINDOWS; i++) {
		unsigned j = i * 7 % WINDOWS;

		if (!held[j])
			continue;
		CHECK_MEM(held[j]->data, data + point[j].out, point[j].size);
		buf_unref(held[j]);
	}
	CHECK_EQ_U(atomic_load(&gauge), 0);
	return n;
}

TEST(all_of_it)
{
	struct first_pass *k = passed(64 * MIB, true);

	CHECK_EQ_U(stream_first_pass_bytes(), SIZE);
	CHECK_EQ_U(atomic_load(&buf_extra_bytes), SIZE);
	CHECK_EQ_U(take_all(k), WINDOWS);
	CHECK_EQ_U(atomic_load(&buf_extra_bytes), 0);
	first_pass_free(k);
}

TEST(a_part)
{
	for (size_t most = 0; most < SIZE + 5 * STEP; most += MIB) {
		struct first_pass *k = passed(most, false);
		unsigned want = 0;

		CHECK(!k == (most < STEP));
		CHECK_EQ_U(atomic_load(&buf_extra_bytes), 0);
		while (want < WINDOWS && point[want].out + point[want].size <=
						 stream_first_pass_bytes())
			want++;
		CHECK(stream_first_pass_bytes() + STEP + 4 * MIB > most ||
		      want == WINDOWS);
		CHECK_EQ_U(take_all(k), want);
		first_pass_free(k);
	}
}

TEST(what_nobody_takes)
{
	struct first_pass *k = passed(64 * MIB, true);
	struct buf *b = first_pass_take(k, &point[3], 3, &gauge);

	CHECK(b);
	/* The stream may go before what was taken of it. */
	first_pass_free(k);
	CHECK_EQ_U(stream_first_pass_bytes(), 0);
	CHECK_EQ_U(atomic_load(&buf_extra_bytes), 0);
	CHECK_MEM(b->data, data + point[3].out, point[3].size);
	buf_unref(b);
	/* A pass that fails. */
	k = first_pass_new();
	first_pass_add(k, data, 100);
	CHECK(stream_first_pass_bytes() > 0);
	first_pass_free(k);
	CHECK_EQ_U(stream_first_pass_bytes(), 0);
	first_pass_free(NULL);
}

TEST(one_bound)
{
	struct first_pass *a = passed(12 * MIB, false), *b;
	unsigned n;

	CHECK_EQ_U(stream_first_pass_bytes(), SIZE);
	b = first_pass_new();
	CHECK(b);
	for (size_t at = 0; at + MIB <= SIZE; at += MIB)
		first_pass_add(b, data + at, MIB);
	CHECK(stream_first_pass_bytes() <= 12 * MIB);
	first_pass_end(b, point, WINDOWS);
	first_pass_free(a);
	n = take_all(b);
	CHECK(n < WINDOWS);
	first_pass_free(b);
}

/* How a process ends that writes there. */
static int child_writes(unsigned char *at)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		*at = (unsigned char)~*at;
		_exit(0);
	}
	CHECK_EQ_I(waitpid(pid, &status, 0), pid);
	return status;
}

TEST(no_child_has_it)
{
	struct first_pass *k = passed(64 * MIB, true), *later;
	struct buf *b = first_pass_take(k, &point[0], 0, &gauge), *c;

	CHECK(b);
	CHECK_EQ_I(child_writes(b->data + 1), 0); /* as the daemon may */
	b->data[1] = data[1];
	stream_first_pass_no_fork();
	later = pass(64 * MIB);
	c = first_pass_take(later, &point[0], 0, &gauge);
	CHECK(c);
	CHECK(child_writes(b->data) != 0);
	CHECK(child_writes(c->data) != 0);
	CHECK_MEM(b->data, data, point[0].size);
	CHECK_MEM(c->data, data, point[0].size);
	buf_unref(b);
	buf_unref(c);
	first_pass_free(k);
	first_pass_free(later);
	/* Another daemon may be forked after another pass. */
	k = passed(64 * MIB, true);
	b = first_pass_take(k, &point[0], 0, &gauge);
	CHECK(b);
	CHECK_EQ_I(child_writes(b->data), 0);
	buf_unref(b);
	first_pass_free(k);
}

static void *takes(void *arg)
{
	uintptr_t n = 0;

	for (unsigned i = 0; i < WINDOWS; i++) {
		struct buf *b = first_pass_take(arg, &point[i], i, &gauge);

		if (!b)
			continue;
		CHECK_MEM(b->data, data + point[i].out, point[i].size);
		buf_unref(b);
		n++;
	}
	return (void *)n;
}

TEST(many_threads)
{
	struct first_pass *k = passed(64 * MIB, true);
	pthread_t t[4];
	uintptr_t n = 0;
	void *one;

	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ_I(pthread_create(&t[i], NULL, takes, k), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(t[i], &one);
		n += (uintptr_t)one;
	}
	CHECK_EQ_U(n, WINDOWS);
	CHECK_EQ_U(stream_first_pass_bytes(), 0);
	first_pass_free(k);
}

int main(void)
{
	prepare();
	RUN(all_of_it);
	RUN(a_part);
	RUN(what_nobody_takes);
	RUN(one_bound);
	RUN(many_threads);
	RUN(no_child_has_it);
	free(data);
	return test_done();
}
