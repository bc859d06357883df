/* SPDX-License-Identifier: BSD-2-Clause */
/* guess: neighbours and what is next are asked for, in time, and little else is. */
/*
 * Every 50th file is too large.  The kernel is an array that says how often each file was
 * asked for; it reads what it is asked for at once.
 */
#include <pthread.h>

#include "readahead/guess.h"
#include "readahead/idle.h"
#include "store/thread.h"

#define FILES 6000u
#define SIZE 1000u
#define PER 100u
#define LARGE 300000u
#define BAD 7u /* number of a chunk */
#include "clock.h"
#include "pieces_fake.h"

/* ---- the kernel ----------------------------------------------------------- */

static struct guess *guess;
static struct room *room;
static _Atomic unsigned asked[FILES];
static _Atomic uint64_t memory_left, reads, decoded_for_it;
static _Atomic int answer;

static void compare(const struct reply *r, uint64_t i)
{
	uint64_t at = 0;

	for (unsigned k = 0; k < r->niov; k++) {
		CHECK(!memcmp(r->iov[k].iov_base,
			      bytes_of(i / PER, i % PER * SIZE + at),
			      r->iov[k].iov_len));
		at += r->iov[k].iov_len;
	}
	CHECK_EQ_U(at, is_large(i) ? LARGE : SIZE);
}

static int ask(void *ctx, const uint64_t *ino, unsigned n)
{
	uint64_t before = store_thread.loads;

	CHECK(ctx == &guess);
	CHECK(n > 0 && n <= READAHEAD_FILES);
	if (atomic_load(&answer))
		return atomic_load(&answer);
	for (unsigned k = 0; k < n; k++) {
		uint64_t i = ino[k] - base;
		struct reply r;

		CHECK(i < FILES && !is_large(i));
		CHECK_OK(fs_read(fs, ino[k], 0, SIZE, &r));
		compare(&r, i);
		fs_release(fs, &r);
		atomic_fetch_add(&asked[i], 1);
	}
	atomic_fetch_add(&decoded_for_it, store_thread.loads - before);
	return 0;
}
static uint64_t memory(void *ctx, uint64_t *total)
{
	(void)ctx;
	*total = 1 << 30;
	return atomic_load(&memory_left);
}

/* The clock of idle.c passes only here, so that no reader is forgotten by chance. */
static void time_passes(unsigned ms)
{
	static int64_t now = INT64_C(1000000000);

	now += ms * INT64_C(1000000);
	clock_stops(CLOCK_MONOTONIC_COARSE, now);
}

/* Chunks are decoded anew. */
static void forget(void)
{
	for (uint64_t i = 0; i <= FILES / PER; i++)
		cache_drop(store_cache(store), set.id, i);
}
static void begin(void)
{
	time_passes(1000);
	memset(asked, 0, sizeof asked);
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		atomic_store(&counter_values[i], 0);
	answer = 0;
	reads = decoded_for_it = 0;
	memory_left = 1 << 30;
	forget();
	room = room_new(memory, NULL);
	CHECK(room);
	CHECK_OK(guess_new(&guess, fs, room, ask, &guess, &err));
	guess_set_cores(guess, 2);
}
static void end(void)
{
	guess_free(guess);
	room_free(room);
	guess = NULL;
}
/* What a READ does; when the kernel has it, there is none. */
static pid_t reader = 1;
static int read_file(unsigned i)
{
	uint64_t before = store_thread.loads;
	struct reply r;
	int e;

	if (atomic_load(&asked[i]))
		return 0;
	reads++;
	e = fs_read(fs, base + i, 0, LARGE, &r);
	if (e < 0)
		return e;
	compare(&r, i);
	fs_release(fs, &r);
	guess_note(guess, reader, base + i, 0, &r,
		   store_thread.loads != before);
	guess_drain(guess);
	return 0;
}
static unsigned asked_in(unsigned from, unsigned to)
{
	unsigned n = 0;

	for (; from < to; from++)
		n += asked[from];
	return n;
}
/* So many small files of a chunk, in no order that goes on; those before were read. */
static void read_some(unsigned chunk, unsigned before, unsigned n)
{
	for (unsigned i = 1, k = 0; k < before + n; i++) {
		unsigned f = chunk * PER + i * i * 7 % 101 % PER;

		if (!is_large(f) && ++k > before)
			CHECK_OK(read_file(f));
	}
}

/* ---- tests ---------------------------------------------------------------- */

/* Of the first chunk: with the first of it, an eighth of the others' bytes. */
#define ENOUGH (1 + (PER - 1 + 7) / 8)

TEST(when_an_eighth_was_read_the_others_follow)
{
	begin();
	read_some(3, 0, ENOUGH - 1);
	CHECK_EQ_U(asked_in(0, FILES), 0);
	read_some(3, ENOUGH - 1, 1);
	/* All but the large ones and the one that was read last, once each. */
	CHECK_EQ_U(asked_in(300, 400), 97);
	CHECK_EQ_U(asked_in(0, FILES), 97);
	CHECK_EQ_U(counter_get(COUNT_AHEAD_REFUSED), 0);
	CHECK_EQ_U(decoded_for_it, 0);
	/* Whatever else of it is asked for: the kernel may lose it, and others not. */
	memset(asked, 0, sizeof asked);
	read_some(3, ENOUGH, 10);
	CHECK_EQ_U(asked_in(0, FILES), 0);
	/* Who reads so many gets those of the next chunk when he comes back to it. */
	read_some(4, 0, 1);
	CHECK_EQ_U(asked_in(0, FILES), 0);
	read_some(4, 1, ENOUGH);
	CHECK_EQ_U(asked_in(400, 500), 97);
	end();
}

TEST(where_no_processor_is_idle_nothing_follows)
{
	begin();
	for (unsigned i = 0; i < PER; i++) {
		reader = 1 + (pid_t)(i % 2);
		read_some(3, i, i < 98);
	}
	CHECK_EQ_U(asked_in(0, FILES), 0);
	/* But what was decoded twice. */
	CHECK_OK(read_file(600));
	forget();
	CHECK_OK(read_file(650));
	CHECK_EQ_U(asked_in(600, 700), 97);
	CHECK_EQ_U(asked_in(0, FILES), 97);
	reader = 1;
	end();
}

TEST(idle_processors)
{
	struct idle *i = idle_new();

	CHECK(i);
	time_passes(1000);
	idle_set_cores(i, 2);
	for (unsigned k = 0; k < 100; k++)
		idle_note(i, 1);
	CHECK(idle_now(i));
	idle_note(i, 2);
	CHECK(!idle_now(i));
	/* The second reader waits for a chunk meanwhile ... */
	time_passes(60);
	for (unsigned k = 0; k < 100; k++)
		idle_note(i, 1);
	CHECK(!idle_now(i));
	/* ... and has gone away by now. */
	time_passes(60);
	CHECK(idle_now(i));
	/* Readers are not counted where there are many processors. */
	idle_set_cores(i, 64);
	CHECK(!idle_now(i));
	idle_free(i);
	/* Whatever this machine says. */
	i = idle_new();
	CHECK(i);
	for (pid_t k = 1; k < 100; k++) {
		idle_note(i, k);
		idle_now(i);
	}
	idle_free(i);
}

TEST(what_was_decoded_twice_follows_at_once)
{
	begin();
	CHECK_OK(read_file(600));
	CHECK_EQ_U(asked_in(0, FILES), 0);
	forget();
	CHECK_OK(read_file(650));
	CHECK_EQ_U(asked_in(600, 700), 97);
	CHECK_EQ_U(asked_in(0, FILES), 97);
	end();
}

TEST(who_reads_a_tenth_gets_none)
{
	begin();
	for (unsigned i = 0; i < FILES / PER; i++)
		if (i != BAD)
			read_some(i, 0, PER / 10);
	CHECK_EQ_U(asked_in(0, FILES), 0);
	end();
}

TEST(an_epoch_in_any_order_needs_few_reads)
{
	static unsigned order[FILES];
	unsigned twice = 0;

	begin();
	for (unsigned i = 0; i < FILES; i++) {
		unsigned other = (unsigned)(test_random() % (i + 1));

		order[i] = order[other];
		order[other] = i;
	}
	for (unsigned i = 0; i < FILES; i++)
		if (order[i] / PER != BAD && !is_large(order[i]))
			CHECK_OK(read_file(order[i]));
	CHECK(reads < FILES / 5);
	for (unsigned i = 0; i < FILES; i++)
		twice += asked[i] > 1;
	CHECK(twice < FILES / 100);
	end();
}

TEST(what_does_not_decode_is_its_readers_matter)
{
	begin();
	CHECK_EQ_I(read_file(BAD * PER + 5), -ESTALE);
	CHECK_EQ_U(counter_get(COUNT_ERRORS), 1);
	/* The next one of a reader who leaves out 169 is tried. */
	atomic_store(&fetched_bad, 0);
	for (unsigned i = 4; i; i--)
		CHECK_OK(read_file(BAD * PER - i * 170));
	CHECK(atomic_load(&fetched_bad) > 0);
	CHECK_EQ_U(counter_get(COUNT_ERRORS), 1);
	CHECK_EQ_U(asked_in(BAD * PER, (BAD + 1) * PER), 0);
	CHECK_EQ_I(read_file(BAD * PER + 6), -ESTALE);
	end();
}

TEST(short_memory_ends_it_for_a_while)
{
	begin();
	memory_left = 1 << 20;
	read_some(0, 0, ENOUGH);
	CHECK_EQ_U(asked_in(0, FILES), 0);
	CHECK_EQ_U(counter_get(COUNT_AHEAD_REFUSED), 1);
	memory_left = 1 << 30;
	read_some(0, ENOUGH, 1);
	CHECK_EQ_U(asked_in(0, FILES), 97);
	end();
}

TEST(it_ends_when_nobody_can_be_asked)
{
	begin();
	answer = -EPIPE;
	read_some(0, 0, ENOUGH);
	/* Whatever would be said now. */
	answer = 0;
	read_some(1, 0, ENOUGH);
	CHECK_EQ_U(asked_in(0, FILES), 0);
	end();
}

/* Those that come next, by the reader's step. */
static void read_by(unsigned from, unsigned step, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if ((from + i * step) / PER != BAD)
			CHECK_OK(read_file(from + i * step));
}

TEST(file_after_file_is_read_ahead)
{
	begin();
	fetched = 0;
	/* Its chunk, and whatever the window reaches of the next one. */
	read_by(1000, 1, 90);
	CHECK(fetched >= 1 && fetched <= 3);
	read_by(1090, 1, 1000);
	/* The large ones, and one of each window. */
	CHECK(reads < 60);
	CHECK(asked_in(0, FILES) > 900);
	/* Before it is asked for, not by those who answer. */
	CHECK_EQ_U(decoded_for_it, 0);
	for (unsigned i = 0; i < FILES; i++)
		CHECK(asked[i] <= 1);
	end();
}

TEST(backwards_too)
{
	begin();
	for (unsigned i = 0; i < 500; i++)
		CHECK_OK(read_file(3000 - i));
	CHECK(reads < 40);
	end();
}

/* Every 250th file: no two in a chunk, so it is not for neighbours. */
TEST(strides_are_read_ahead)
{
	begin();
	read_by(1010, 250, 4);
	CHECK_EQ_U(asked[1760], 0);
	CHECK(asked[2010] && asked[2260]);
	CHECK_EQ_U(asked_in(2011, 2260), 0);
	end();
}

/* Eight who take turns are one reader; each alone is one with a stride. */
TEST(ranks_are_read_ahead)
{
	begin();
	for (unsigned i = 1000; i < 2000; i += 8)
		for (unsigned rank = 0; rank < 8; rank++)
			CHECK_OK(read_file(i + rank * 5 % 8));
	CHECK(reads < 150);
	end();
	begin();
	read_by(1000, 8, 125);
	CHECK(reads < 25);
	CHECK_EQ_U(asked_in(1001, 1008), 0);
	end();
}

TEST(random_reading_looks_like_no_stream)
{
	begin();
	for (unsigned i = 0; i < 300; i++) {
		unsigned f = (unsigned)(test_random() % FILES);

		if (f / PER != BAD && !is_large(f))
			CHECK_OK(read_file(f));
	}
	CHECK_EQ_U(asked_in(0, FILES), 0);
	end();
}

int main(void)
{
	pieces_setup(64 << 20);
	RUN(when_an_eighth_was_read_the_others_follow);
	RUN(where_no_processor_is_idle_nothing_follows);
	RUN(idle_processors);
	RUN(what_was_decoded_twice_follows_at_once);
	RUN(who_reads_a_tenth_gets_none);
	RUN(an_epoch_in_any_order_needs_few_reads);
	RUN(what_does_not_decode_is_its_readers_matter);
	RUN(short_memory_ends_it_for_a_while);
	RUN(it_ends_when_nobody_can_be_asked);
	RUN(file_after_file_is_read_ahead);
	RUN(backwards_too);
	RUN(strides_are_read_ahead);
	RUN(ranks_are_read_ahead);
	RUN(random_reading_looks_like_no_stream);
	return test_done();
}
