/* SPDX-License-Identifier: BSD-2-Clause */
/* follow: files are asked for in the order, and kept while the kernel has no memory. */
/*
 * The kernel reads what it is asked for at once, or has no memory to give, so that each
 * file comes from what is kept.  Every 50th file is vast: larger than what one read may
 * pin.
 */
#include <time.h>

#include "readahead/follow.h"
#include "store/thread.h"

#define FILES 6000u
#define SIZE 4000u
#define PER 100u
#define LARGE (5u << 20)
#define BAD 31u /* number of a chunk */
#include "pieces_fake.h"

#define CACHE (UINT64_C(24) << 20)
#define MANY \
	5000u /* files of an order, with 20 MB: half of the cache is less */
#define KEEPS (CACHE / 2 / SIZE) /* of the small ones, at once */
#define MIXED 1000u              /* 20 of them vast */

static struct room *room;
static struct follow *follow;
static uint64_t inos[FILES];
static uint32_t list[FILES];
static struct follow_order order;
static _Atomic bool has[FILES]; /* the kernel */
static _Atomic unsigned asked, asked_vast, decoded_for_it;
static _Atomic uint64_t memory_left;
static _Atomic int answer;

static int ask(void *ctx, const uint64_t *ino, unsigned n)
{
	CHECK(ctx == &follow);
	if (atomic_load(&answer))
		return atomic_load(&answer);
	for (unsigned k = 0; k < n; k++) {
		uint64_t i = ino[k] - base, before = store_thread.loads;
		struct reply r;

		CHECK(i < FILES);
		/* What does not decode it finds out like a reader. */
		if (fs_read(fs, ino[k], 0, SIZE, &r) == 0) {
			fs_release(fs, &r);
			atomic_store(&has[i], true);
		}
		if (is_large(i))
			atomic_fetch_add(&asked_vast, 1);
		else
			atomic_fetch_add(
				&decoded_for_it,
				(unsigned)(store_thread.loads - before));
	}
	atomic_fetch_add(&asked, n);
	return 0;
}
static uint64_t memory(void *ctx, uint64_t *total)
{
	(void)ctx;
	*total = 1 << 30;
	return atomic_load(&memory_left);
}

/* The list says `n` of the files inos[]. */
static void begin(uint32_t n)
{
	order = (struct follow_order){.spec = {.file = "names",
					       .world = 1,
					       .ranks = 1,
					       .batch = 2,
					       .workers = 1},
				      .ino = inos,
				      .n_inos = n,
				      .list = list,
				      .length = n};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = (uint32_t)(test_random() % (i + 1));

		list[i] = list[other];
		list[other] = i;
	}
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		atomic_store(&counter_values[i], 0);
	memset(has, 0, sizeof has);
	asked = asked_vast = decoded_for_it = 0;
	answer = 0;
	room = room_new(memory, NULL);
	CHECK(room);
	CHECK_OK(follow_new(&follow, fs, &order, room, ask, &follow, &err));
}
static void end(void)
{
	follow_stop(follow);
	follow_free(follow);
	room_free(room);
}

/* What a READ does; when the kernel has it, there is none. */
static int read_one(uint32_t position)
{
	uint64_t ino = inos[list[position]], i = ino - base, at = 0;
	struct reply r;
	int e;

	if (atomic_load(&has[i]))
		return 0;
	e = fs_read(fs, ino, 0, LARGE, &r);
	if (e < 0)
		return e;
	CHECK_EQ_U(r.len, is_large(i) ? LARGE : SIZE);
	for (unsigned k = 0; k < r.niov; k++) {
		CHECK(!memcmp(r.iov[k].iov_base,
			      bytes_of(i / PER, i % PER * SIZE + at),
			      r.iov[k].iov_len));
		at += r.iov[k].iov_len;
	}
	fs_release(fs, &r);
	follow_note(follow, ino);
	return 0;
}

static void pause_ms(unsigned ms)
{
	const struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	nanosleep(&t, NULL);
}
/* It polls: the minute is only there to end a test that hangs. */
static bool comes(unsigned counter, uint64_t n)
{
	for (unsigned i = 0; i < 60000 && counter_get(counter) < n; i++)
		pause_ms(1);
	return counter_get(counter) >= n;
}
static void small_files(void)
{
	uint32_t n = 0;

	for (unsigned f = 0; n < MANY; f++)
		if (!is_large(f) && f / PER != BAD)
			inos[n++] = base + f;
	begin(MANY);
	for (uint32_t i = 0; i < 64; i++)
		CHECK_OK(read_one(i));
	CHECK(comes(COUNT_ORDER_FOUND, 1));
}

/* Is hardly anything decoded for a while? */
static bool is_quiet(void)
{
	uint64_t decoded = counter_get(COUNT_ORDER_DECODED);

	/* The caller looks again until this is true once, so it does not matter how
	 * long a single pause turns out. */
	pause_ms(100);
	return counter_get(COUNT_ORDER_DECODED) - decoded <= 4;
}

static void goes_on(void)
{
	uint64_t reads = counter_get(COUNT_ORDER_KEPT_READ);
	unsigned tries = 0;

	/* There is no room: nothing is tried again and again meanwhile, once what was
	 * under way has come. */
	while (!is_quiet())
		CHECK(++tries < 600);
	/* What is read makes room. */
	for (uint32_t i = 64; i < 2000; i++)
		CHECK_OK(read_one(i));
	CHECK(counter_get(COUNT_ORDER_KEPT_READ) - reads > 500);
	CHECK_EQ_U(counter_get(COUNT_ORDER_LOST), 0);
}

/* All have room, and the reader waits until they are ready. */
TEST(in_its_order_it_is_asked_for)
{
	uint32_t misses = 0; /* neither asked for nor kept in time */

	memory_left = 1 << 30;
	small_files();
	CHECK(comes(COUNT_ORDER_READY, MANY - 200));
	for (uint32_t i = 64; i < MANY; i++) {
		uint64_t kept = counter_get(COUNT_ORDER_KEPT_READ);

		CHECK_OK(read_one(i));
		misses += !atomic_load(&has[inos[list[i]] - base]) &&
			  counter_get(COUNT_ORDER_KEPT_READ) == kept;
	}
	/* The first ones were not waited for. */
	CHECK(misses < 200 + MANY / 50);
	CHECK(atomic_load(&asked) > MANY * 9 / 10);
	CHECK(counter_get(COUNT_ORDER_KEPT_READ) > MANY / 64);
	/* Hardly anything was left to decode for those who answer. */
	CHECK(atomic_load(&decoded_for_it) < 100);
	CHECK_EQ_U(counter_get(COUNT_ORDER_LOST), 0);
	end();
}

TEST(without_memory_for_the_kernel_it_is_kept)
{
	memory_left = 0;
	small_files();
	/* But for positions behind the one that is read, and those read while the order was
	 * looked for. */
	CHECK(comes(COUNT_ORDER_KEPT, KEEPS - 256));
	CHECK_EQ_U(atomic_load(&asked), 0);
	goes_on();
	end();
}

TEST(when_nobody_can_be_asked_it_is_kept)
{
	memory_left = 1 << 30;
	small_files();
	answer = -EPIPE;
	for (uint32_t i = 64; i < MANY && counter_get(COUNT_ORDER_KEPT) < 500;
	     i++) {
		CHECK_OK(read_one(i));
		pause_ms(1);
	}
	CHECK(counter_get(COUNT_ORDER_KEPT) >= 500);
	end();
}

/* A chunk does not decode, which is its readers' matter. */
TEST(vast_files_are_asked_for)
{
	struct cache_usage u;
	uint32_t bad = 0, epochs = 0;

	memory_left = 1 << 30;
	for (uint32_t i = 0; i < MIXED; i++)
		inos[i] = base + BAD * PER - MIXED / 2 + i;
	begin(MIXED);
	/* As many epochs as a thread that is held up needs. */
	while (epochs < 2 || !counter_get(COUNT_ORDER_FOUND) ||
	       !atomic_load(&asked_vast)) {
		CHECK(++epochs < 600);
		for (uint32_t i = 0; i < MIXED; i++) {
			int e = read_one(i);

			CHECK(e == 0 || e == -ESTALE);
			bad += e != 0;
			if (i % 16)
				continue;
			/* Only lets the thread come first now and then. */
			pause_ms(1);
			cache_usage(store_cache(store), &u);
			CHECK(u.bytes <= CACHE + 2 * (uint64_t)LARGE);
		}
	}
	CHECK_EQ_U(bad, epochs * PER);
	CHECK(counter_get(COUNT_ERRORS) >= bad);
	end();
	cache_verify(store_cache(store));
}

int main(void)
{
	pieces_setup(CACHE);
	RUN(in_its_order_it_is_asked_for);
	RUN(without_memory_for_the_kernel_it_is_kept);
	RUN(when_nobody_can_be_asked_it_is_kept);
	RUN(vast_files_are_asked_for);
	return test_done();
}
