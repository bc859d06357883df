/* SPDX-License-Identifier: BSD-2-Clause */
/* follow: what the kernel does not take is kept, as far as there is room. */
/*
 * The kernel takes nothing, or there is no memory to give it anything, so that each
 * file is asked for, and comes from what is kept.  Every 50th file is vast: larger than
 * what one read may pin.
 */
#include <time.h>

#include "fs/follow.h"
#include "fs/push.h"
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

static struct push *push;
static struct follow *follow;
static uint64_t inos[FILES];
static uint32_t list[FILES];
static struct follow_order order;
static _Atomic unsigned offered; /* to the kernel */
static _Atomic uint64_t memory_left;
static unsigned
	vast_kept; /* READs answered with what was kept of a vast file */

static int refuse(void *ctx, uint64_t ino, uint64_t off,
		  const struct iovec *iov, unsigned niov)
{
	(void)ctx;
	(void)ino;
	(void)off;
	(void)iov;
	(void)niov;
	atomic_fetch_add(&offered, 1);
	return -ENOENT;
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
	struct push_options o = {.threads = 1, .memory = memory};

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
	atomic_store(&offered, 0);
	CHECK_OK(push_new(&push, fs, &o, refuse, NULL, &err));
	CHECK_OK(follow_new(&follow, fs, push, &order, &err));
}
static void end(void)
{
	follow_stop(follow);
	push_stop(push);
	follow_join(follow);
	push_free(push);
	follow_free(follow);
}

/* What a READ does. */
static int read_one(uint32_t position)
{
	uint64_t ino = inos[list[position]], i = ino - base;
	uint64_t before = store_thread.loads, at = 0;
	struct reply r;
	int e = fs_read(fs, ino, 0, LARGE, &r);

	if (e < 0)
		return e;
	CHECK_EQ_U(r.len, is_large(i) ? LARGE : SIZE);
	for (unsigned k = 0; k < r.niov; k++) {
		CHECK(!memcmp(r.iov[k].iov_base,
			      bytes_of(i / PER, i % PER * SIZE + at),
			      r.iov[k].iov_len));
		at += r.iov[k].iov_len;
	}
	vast_kept += is_large(i) && !r.npins;
	fs_release(fs, &r);
	push_note(push, ino, 0, &r, store_thread.loads != before);
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
	CHECK(comes(COUNT_ORDER_KEPT, KEEPS - PUSH_BATCH));
}

/* Is hardly anything asked or decoded for a while? */
static bool is_quiet(void)
{
	unsigned asked = atomic_load(&offered);
	uint64_t decoded = counter_get(COUNT_ORDER_DECODED);
	uint64_t refused = counter_get(COUNT_PUSH_REFUSED);

	/* The caller looks again until this is true once, so it does not matter how
	 * long a single pause turns out. */
	pause_ms(100);
	return atomic_load(&offered) - asked <= 2 * PUSH_BATCH &&
	       counter_get(COUNT_PUSH_REFUSED) - refused <= 2 * PUSH_BATCH &&
	       counter_get(COUNT_ORDER_DECODED) - decoded <= 4;
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

TEST(what_the_kernel_refuses_is_kept)
{
	memory_left = 1 << 30;
	small_files();
	CHECK(atomic_load(&offered) > 1000);
	goes_on();
	end();
}

/* A reader pauses after each 16 files, until three quarters of what has room is kept
 * ahead of it.  Most of its READs are answered with what is kept, though much more
 * would fit into the kernel. */
TEST(paced)
{
	uint64_t before, read, left;

	memory_left = 1 << 30;
	small_files();
	before = counter_get(COUNT_ORDER_KEPT_READ);
	for (uint32_t i = 64; i < MANY; i++) {
		CHECK_OK(read_one(i));
		if (i % 16)
			continue;
		read = counter_get(COUNT_ORDER_KEPT_READ);
		left = MANY - i;
		left = left < KEEPS ? left : KEEPS;
		left -= left < KEEPS / 4 ? left : KEEPS / 4;
		CHECK(comes(COUNT_ORDER_KEPT, read + left));
	}
	CHECK(counter_get(COUNT_ORDER_KEPT_READ) - before > MANY / 2);
	end();
}

TEST(without_memory_for_the_kernel_it_is_kept)
{
	memory_left = 0;
	small_files();
	CHECK(counter_get(COUNT_PUSH_REFUSED) > 1000);
	CHECK_EQ_U(atomic_load(&offered), 0);
	goes_on();
	end();
}

/* A chunk does not decode, which is its readers' matter. */
TEST(vast_files_are_kept)
{
	struct cache_usage u;
	uint32_t bad = 0, epochs = 0;

	memory_left = 1 << 30;
	vast_kept = 0;
	for (uint32_t i = 0; i < MIXED; i++)
		inos[i] = base + BAD * PER - MIXED / 2 + i;
	begin(MIXED);
	/* As many epochs as a thread that is held up needs. */
	while (epochs < 2 || !counter_get(COUNT_ORDER_FOUND) || !vast_kept) {
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
	CHECK_EQ_U(counter_get(COUNT_ERRORS), bad);
	end();
	cache_verify(store_cache(store));
}

int main(void)
{
	pieces_setup(CACHE);
	RUN(what_the_kernel_refuses_is_kept);
	RUN(paced);
	RUN(without_memory_for_the_kernel_it_is_kept);
	RUN(vast_files_are_kept);
	return test_done();
}
