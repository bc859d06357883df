/* SPDX-License-Identifier: BSD-2-Clause */
/* push: neighbours are found, bounds hold, and it ends when it does not pay. */
/*
 * Every 50th file is too large.  The kernel is an array that says how often each file was
 * stored, and checks every byte.
 */
#include <pthread.h>

#include "fs/push.h"
#include "store/thread.h"

#define FILES 6000u
#define SIZE 1000u
#define PER 100u
#define LARGE 20000u
#define BAD 7u /* number of a chunk */
#include "pieces_fake.h"

/* ---- the kernel ----------------------------------------------------------- */

static struct push *push;
static _Atomic unsigned stored[FILES];
static _Atomic int answer;
static _Atomic uint64_t memory_left, memory_all, reads;

static int keep(void *ctx, uint64_t ino, uint64_t off, const struct iovec *iov,
		unsigned niov)
{
	uint64_t i = ino - base;
	const unsigned char *b = iov->iov_base;

	CHECK(ctx == &push);
	CHECK_EQ_U(off, 0);
	CHECK_EQ_U(niov, 1);
	CHECK(i < FILES && !is_large(i));
	CHECK_EQ_U(iov->iov_len, SIZE);
	CHECK(!memcmp(b, bytes_of(i / PER, i % PER * SIZE), SIZE));
	if (atomic_load(&answer))
		return atomic_load(&answer);
	atomic_fetch_add(&stored[i], 1);
	return 0;
}
static uint64_t memory(void *ctx, uint64_t *total)
{
	(void)ctx;
	*total = atomic_load(&memory_all);
	return atomic_load(&memory_left);
}

static void begin(void)
{
	struct push_options o = {
		.threads = 2, .file_max = 4096, .memory = memory};

	memset(stored, 0, sizeof stored);
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		atomic_store(&counter_values[i], 0);
	answer = 0;
	reads = 0;
	memory_left = memory_all = 1 << 30;
	/* More than the cache has room for. */
	atomic_store(&set.unit, UINT64_MAX / 2);
	CHECK_OK(push_new(&push, fs, &o, keep, &push, &err));
}
static void end(void)
{
	push_free(push);
	push = NULL;
}
/* What a READ does; when the kernel has it, there is none. */
static int read_file(unsigned i)
{
	uint64_t before = store_thread.loads;
	struct reply r;
	int e;

	if (atomic_load(&stored[i]))
		return 0;
	reads++;
	e = fs_read(fs, base + i, 0, LARGE, &r);
	if (e < 0)
		return e;
	fs_release(fs, &r);
	push_note(push, base + i, 0, &r, store_thread.loads != before);
	push_drain(push);
	return 0;
}
static unsigned stored_in(unsigned from, unsigned to)
{
	unsigned n = 0;

	for (; from < to; from++)
		n += stored[from];
	return n;
}
/* Chunks are decoded anew. */
static void forget(void)
{
	for (uint64_t i = 0; i <= FILES / PER; i++)
		cache_drop(store_cache(store), set.id, i);
}

/* ---- tests ---------------------------------------------------------------- */

TEST(neighbours_are_pushed_once)
{
	unsigned n;

	forget();
	begin();
	CHECK_OK(read_file(250));
	n = stored_in(200, 300);
	CHECK_EQ_U(counter_get(COUNT_FILES_PUSHED), n);
	CHECK_EQ_U(counter_get(COUNT_BYTES_PUSHED), (uint64_t)n * SIZE);
	/* All but itself, the large ones and those that are held back. */
	CHECK_EQ_U(n + counter_get(COUNT_PUSH_HELD), 97);
	CHECK(n > 70);
	CHECK_EQ_U(stored_in(0, FILES), n);
	/* Those that are left were decoded by then. */
	for (unsigned i = 0; i < 100; i++) /* in no order that goes on */
		CHECK_OK(read_file(200 + i * i * 7 % 101 % 100));
	for (unsigned i = 200; i < 300; i++)
		CHECK(stored[i] <= 1);
	CHECK(counter_get(COUNT_PUSH_HELD_READ) <=
	      counter_get(COUNT_PUSH_HELD));
	CHECK_EQ_U(counter_get(COUNT_PUSH_VAIN), 0);
	/* What the kernel let go of is asked for in spite of it. */
	for (unsigned i = 201; i < 210; i++) {
		stored[i] = 0;
		CHECK_OK(read_file(i));
	}
	CHECK(counter_get(COUNT_PUSH_VAIN) >= 1);
	end();
}

TEST(with_room_in_the_cache_an_eighth_is_waited_for)
{
	unsigned n, k = 0, f = 0;

	forget();
	begin();
	atomic_store(&set.unit, CHUNK);
	for (unsigned i = 1; k < PER / 8; i++) { /* in no order that goes on */
		CHECK_EQ_U(stored_in(0, FILES), 0);
		f = 400 + i * i * 7 % 101 % 100;
		if (is_large(f))
			continue;
		CHECK_OK(read_file(f));
		k++;
	}
	n = stored_in(400, 500);
	CHECK_EQ_U(n + counter_get(COUNT_PUSH_HELD) + k, 98);
	/* Nobody waits for the next ones, either. */
	CHECK_EQ_U(stored_in(0, FILES), n);
	/* What was decoded twice had no room. */
	CHECK_OK(read_file(600));
	CHECK_EQ_U(stored_in(600, 700), 0);
	forget();
	CHECK_OK(read_file(650));
	CHECK(stored_in(600, 700) > 70);
	end();
}

/* Small files of a chunk, in no order that goes on. */
static void read_some(unsigned from, unsigned n)
{
	for (unsigned i = 1; n; i++) {
		unsigned f = from + i * i * 7 % 101 % PER;

		if (is_large(f))
			continue;
		CHECK_OK(read_file(f));
		n--;
	}
}

TEST(who_reads_few_of_most_chunks_gets_none)
{
	forget();
	begin();
	atomic_store(&set.unit, CHUNK);
	for (unsigned i = 0; i < FILES / PER; i++)
		if (i != BAD)
			read_some(i * PER, 2);
	/* An eighth of a few, but little of all. */
	for (unsigned i = 0; i < 4; i++)
		read_some(i * PER, PER / 8);
	CHECK_EQ_U(stored_in(0, FILES), 0);
	for (unsigned i = BAD + 1; i < FILES / PER; i++)
		read_some(i * PER, PER / 8);
	CHECK(stored_in(FILES - PER, FILES) > 70);
	end();
}

TEST(an_epoch_needs_few_reads)
{
	static unsigned order[FILES];
	unsigned twice = 0;

	forget();
	begin();
	for (unsigned i = 0; i < FILES; i++) {
		unsigned other = (unsigned)(test_random() % (i + 1));

		order[i] = order[other];
		order[other] = i;
	}
	for (unsigned i = 0; i < FILES; i++) {
		unsigned f = order[i];

		if (f / PER != BAD && !is_large(f))
			CHECK_OK(read_file(f));
	}
	CHECK(reads < FILES / 15);
	for (unsigned i = 0; i < FILES; i++)
		twice += stored[i] > 1;
	CHECK(twice < FILES / 100);
	end();
}

TEST(what_does_not_decode_is_its_readers_matter)
{
	uint64_t errors;

	forget();
	begin();
	CHECK_EQ_I(read_file(BAD * PER + 5), -ESTALE);
	errors = counter_get(COUNT_ERRORS);
	CHECK_EQ_U(errors, 1);
	/* The next one of a reader who leaves out 169 is tried. */
	atomic_store(&fetched_bad, 0);
	for (unsigned i = 4; i; i--)
		CHECK_OK(read_file(BAD * PER - i * 170));
	CHECK(atomic_load(&fetched_bad) > 0);
	CHECK_EQ_U(counter_get(COUNT_ERRORS), errors);
	CHECK_EQ_U(stored_in(BAD * PER, (BAD + 1) * PER), 0);
	CHECK_EQ_I(read_file(BAD * PER + 6), -ESTALE);
	end();
}

/* Files from this one on, which somebody says will be read; not the large ones. */
static struct push_batch batch;
static unsigned batches_done;
static void batch_done(struct push_batch *b)
{
	CHECK(b == &batch);
	batches_done++;
}
static void give(unsigned from, unsigned n)
{
	batch = (struct push_batch){.n = n, .done = batch_done};
	batches_done = 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t f = from + i;

		batch.ino[i] = base + f;
		batch.bytes[i] = buf_new(SIZE, NULL);
		memcpy(batch.bytes[i]->data, bytes_of(f / PER, f % PER * SIZE),
		       SIZE);
	}
	push_batch(push, &batch);
	push_drain(push);
	CHECK_EQ_U(batches_done, 1);
	for (unsigned i = 0; i < n; i++)
		buf_unref(batch.bytes[i]);
}
static void all_are(int result)
{
	for (unsigned i = 0; i < batch.n; i++)
		CHECK_EQ_I(batch.result[i], result);
}

TEST(known_files_are_pushed)
{
	begin();
	give(0, PUSH_BATCH);
	all_are(0);
	CHECK_EQ_U(stored_in(0, FILES), PUSH_BATCH);
	CHECK_EQ_U(counter_get(COUNT_FILES_PUSHED), PUSH_BATCH);
	CHECK_EQ_U(counter_get(COUNT_PUSH_HELD), 0);
	/* None of them is a guess that has to prove itself, nor pushed again. */
	forget();
	CHECK_OK(read_file(PER - 10));
	for (unsigned i = 0; i < PER; i++)
		CHECK(stored[i] <= 1);
	CHECK(stored_in(PUSH_BATCH, PER) > 40);
	/* The kernel does not know them; its owner hears of it. */
	answer = -ENOENT;
	give(PER, 3);
	all_are(-ENOENT);
	CHECK_EQ_U(counter_get(COUNT_PUSH_UNKNOWN), 3);
	end();
}

/* The kernel had no memory for them: they are offered again. */
TEST(what_was_not_stored_is_forgotten)
{
	unsigned n;

	forget();
	begin();
	answer = -ENOMEM;
	CHECK_OK(read_file(350));
	CHECK_EQ_U(stored_in(0, FILES), 0);
	CHECK_EQ_U(counter_get(COUNT_FILES_PUSHED), 0);
	n = (unsigned)counter_get(COUNT_PUSH_HELD);
	answer = 0;
	forget();
	CHECK_OK(read_file(360));
	/* All but the two that were read, large ones and those held back. */
	n -= (unsigned)counter_get(COUNT_PUSH_HELD_READ);
	CHECK_EQ_U(stored_in(300, 400) + n, 96);
	/* Nor is it in vain that they are asked for. */
	CHECK_EQ_U(counter_get(COUNT_PUSH_VAIN), 0);
	end();
}

TEST(short_memory_ends_it_for_a_while)
{
	forget();
	begin();
	memory_left = 1 << 20;
	give(0, 5);
	all_are(-EAGAIN);
	CHECK_EQ_U(counter_get(COUNT_PUSH_REFUSED), 5);
	CHECK_OK(read_file(0));
	CHECK_EQ_U(stored_in(0, FILES), 0);
	CHECK(counter_get(COUNT_PUSH_REFUSED) >= 6);
	end();
	begin();
	CHECK_OK(read_file(100));
	CHECK(stored_in(0, FILES) > 70);
	end();
}

TEST(what_waits_to_be_read_is_bounded)
{
	forget();
	begin();
	/* A quarter of it may wait. */
	memory_left = memory_all = 4 * 300 * SIZE;
	for (unsigned c = 0; c < FILES / PER; c++)
		if (c != BAD)
			CHECK_OK(read_file(c * PER + 50));
	CHECK(stored_in(0, FILES) > 150);
	CHECK(stored_in(0, FILES) < 1000);
	/* Fewer when it was found out early that few are read. */
	CHECK(counter_get(COUNT_PUSH_REFUSED) > 10);
	end();
}

TEST(it_ends_when_nobody_reads_them)
{
	unsigned before;

	begin();
	answer = -ENOENT;
	for (unsigned round = 0; round < 3; round++) {
		forget();
		for (unsigned c = 0; c < FILES / PER; c++)
			if (c != BAD)
				read_file(c * PER + 50 + round);
	}
	before = (unsigned)counter_get(COUNT_PUSH_UNKNOWN);
	CHECK(before > 50);
	/* All of them were three times 59 chunks of 97. */
	CHECK(before < 3 * 59 * 97 / 4);
	end();
}

TEST(a_broken_connection_is_the_end)
{
	begin();
	answer = -ENODEV;
	give(0, 1);
	all_are(-ENODEV);
	CHECK(push_is_still(push));
	/* Whatever the kernel would say now. */
	answer = 0;
	give(0, 1);
	all_are(-ECANCELED);
	forget();
	CHECK_OK(read_file(350));
	CHECK_EQ_U(stored_in(0, FILES), 0);
	CHECK_EQ_U(counter_get(COUNT_FILES_PUSHED), 0);
	CHECK_EQ_U(counter_get(COUNT_PUSH_HELD), 0);
	end();
}

/* Those that come next, by the reader's step; chunks are decoded for it. */
static void follow(unsigned from, unsigned step, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if ((from + i * step) / PER != BAD)
			CHECK_OK(read_file(from + i * step));
}
TEST(file_after_file_is_read_ahead)
{
	unsigned first, later;

	forget();
	begin();
	fetched = 0;
	/* Its chunk, and whatever the window reaches of the next one. */
	follow(1000, 1, 90);
	first = fetched;
	CHECK(first >= 1 && first <= 3);
	follow(1090, 1, 1000);
	later = (unsigned)reads;
	CHECK(later < 150);
	/* Always ahead: hardly a chunk was left for a READ to decode. */
	CHECK(counter_get(COUNT_FILES_PUSHED) > 900);
	CHECK(counter_get(COUNT_PUSH_HELD_READ) > 5);
	CHECK_EQ_U(counter_get(COUNT_PUSH_VAIN), 0);
	end();
}

/* Every 250th file: no two in a chunk, so it is not for neighbours. */
TEST(strides_are_read_ahead)
{
	forget();
	begin();
	follow(1010, 250, 4);
	CHECK_EQ_U(stored[1760], 0);
	CHECK(stored[2010] || stored[2260]);
	CHECK(fetched > 4);
	end();
}

TEST(random_reading_looks_like_no_stream)
{
	forget();
	begin();
	fetched = 0;
	for (unsigned i = 0; i < 30; i++) {
		unsigned f = (unsigned)(test_random() % FILES);

		if (f / PER != BAD && !is_large(f))
			CHECK_OK(read_file(f));
	}
	CHECK(fetched <= reads + 2);
	end();
}

static bool always(void *ctx, uint64_t ino)
{
	(void)ino;
	atomic_fetch_add((_Atomic unsigned *)ctx, 1);
	return true;
}
TEST(who_knows_the_course_has_the_first_word)
{
	static _Atomic unsigned asked;

	forget();
	begin();
	push_set_first(push, always, &asked);
	CHECK_OK(read_file(350));
	CHECK_EQ_U(asked, 1);
	CHECK_EQ_U(stored_in(0, FILES), 0);
	end();
}

int main(void)
{
	pieces_setup(64 << 20);
	RUN(neighbours_are_pushed_once);
	RUN(with_room_in_the_cache_an_eighth_is_waited_for);
	RUN(who_reads_few_of_most_chunks_gets_none);
	RUN(an_epoch_needs_few_reads);
	RUN(what_does_not_decode_is_its_readers_matter);
	RUN(known_files_are_pushed);
	RUN(what_was_not_stored_is_forgotten);
	RUN(short_memory_ends_it_for_a_while);
	RUN(what_waits_to_be_read_is_bounded);
	RUN(it_ends_when_nobody_reads_them);
	RUN(file_after_file_is_read_ahead);
	RUN(strides_are_read_ahead);
	RUN(random_reading_looks_like_no_stream);
	RUN(a_broken_connection_is_the_end);
	RUN(who_knows_the_course_has_the_first_word);
	return test_done();
}
