/* SPDX-License-Identifier: BSD-2-Clause */
/* The store: each kind of extent pins the right bytes; readers ahead prefetch. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counters.h"
#include "store/prefetch.h"
#include "store/store.h"
#include "store/thread.h"
#include "clock.h"
#include "test.h"

#define CHUNKS 64
#define SIZE 65536u

/* A set of chunks in one file: odd ones big-endian (so they must be swapped,
 * hence cached), every fourth absent, every eighth "fetched". */
struct set {
	struct chunk_set set;
	uint32_t file;
	bool swapped;
	_Atomic unsigned segments, fetches;
};

static uint64_t index_page_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	return index / 16;
}
static int load_index_page(struct chunk_set *s, uint64_t segment,
			   _Atomic uint64_t *gauge, struct buf **out,
			   struct error *err)
{
	(void)err;
	((struct set *)s)->segments++;
	*out = buf_new(16 * sizeof(uint64_t), gauge);
	for (uint64_t i = 0; i < 16; i++)
		((uint64_t *)(void *)(*out)->data)[i] =
			(segment * 16 + i) * SIZE;
	return 0;
}
static int locate(const struct chunk_set *s, uint64_t index,
		  const struct buf *segment, struct chunk *c, struct error *err)
{
	static const unsigned char fill[2] = {0xab, 0xcd};
	static const struct recode swap2 = {.from = 2,
					    .to = 2,
					    .width = 2,
					    .nswaps = 1,
					    .swap = {{0, 2, 1}}};
	const struct set *x = (const struct set *)s;

	memset(c, 0, sizeof *c);
	if (index >= CHUNKS + 1)
		return error_set(err, -EIO, "no chunk");
	c->file = x->file;
	c->pos = ((const uint64_t *)(const void *)segment->data)[index % 16];
	c->size = c->stored = SIZE;
	c->recode = x->swapped ? &swap2 : NULL;
	c->fill = (struct fill){fill, 2};
	if (index % 8 == 7)
		c->state = CHUNK_FETCH;
	else if (index % 4 == 3)
		c->state = CHUNK_ABSENT;
	return 0;
}
static int fetch(struct chunk_set *s, uint64_t index, _Atomic uint64_t *gauge,
		 struct buf **out, struct error *err)
{
	(void)err;
	((struct set *)s)->fetches++;
	*out = buf_new(SIZE, gauge);
	memset((*out)->data, (int)index, SIZE);
	return 0;
}
static unsigned line = CHUNKS, plane = CHUNKS; /* how the grid is folded */
static bool next(const struct chunk_set *s, uint64_t index, uint64_t *out,
		 unsigned *carry)
{
	(void)s;
	*out = index + 1;
	*carry = (index + 1) % line ? 0 : (index + 1) % plane ? 1 : 2;
	return index + 1 < CHUNKS;
}
static void describe(const struct chunk_set *s, uint64_t index, char *buf,
		     size_t n)
{
	(void)s;
	snprintf(buf, n, "set chunk %llu", (unsigned long long)index);
}
static const struct chunk_set_ops ops = {.index_page_of = index_page_of,
					 .load_index_page = load_index_page,
					 .locate = locate,
					 .fetch = fetch,
					 .next = next,
					 .describe = describe};

struct world {
	char path[64];
	int fd;
	struct handles *handles;
	struct store *store;
	struct set plain, swapped;
	struct shared *shared; /* set before world_new, or NULL */
};

static unsigned char byte_at(uint64_t pos)
{
	return (unsigned char)(pos * 2654435761u >> 13);
}

static void world_new(struct world *w, uint64_t cache, unsigned threads)
{
	unsigned char data[SIZE];
	struct store_options o;
	struct error err = {0};

	memset(w, 0, offsetof(struct world, shared));
	strcpy(w->path, "/tmp/store-test-XXXXXX");
	w->fd = mkstemp(w->path);
	CHECK(w->fd >= 0);
	for (uint64_t c = 0; c < CHUNKS; c++) {
		for (uint64_t i = 0; i < SIZE; i++)
			data[i] = byte_at(c * SIZE + i);
		CHECK(write(w->fd, data, SIZE) == SIZE);
	}
	CHECK_OK(handles_new(&w->handles, 8, 2, &err));
	o = (struct store_options){cache, threads, w->handles, w->shared,
				   false};
	CHECK_OK(store_new(&w->store, &o, &err));
	w->plain.set.ops = w->swapped.set.ops = &ops;
	w->plain.set.id = chunk_set_new_id();
	w->swapped.set.id = chunk_set_new_id();
	w->plain.set.unit = w->swapped.set.unit = SIZE;
	w->swapped.swapped = true;
	w->plain.file = w->swapped.file = handles_add(w->handles, w->path);
}

static void world_free(struct world *w)
{
	store_free(w->store);
	handles_free(w->handles);
	close(w->fd);
	unlink(w->path);
}

static struct extent chunk_extent(struct set *s, uint64_t index, uint64_t skip,
				  uint64_t len)
{
	struct extent x = {.kind = EXTENT_CHUNK, .len = len};

	x.u.chunk.set = &s->set;
	x.u.chunk.index = index;
	x.u.chunk.skip = skip;
	x.u.chunk.slice = EXTENT_WHOLE;
	return x;
}

/* Pin, compare every byte with what the file was written with, unpin. */
static void check_chunk(struct world *w, struct set *s, uint64_t index,
			uint64_t skip, uint64_t len)
{
	struct extent x = chunk_extent(s, index, skip, len);
	struct error err = {0};
	struct span span;
	unsigned char *read = malloc(len);
	const unsigned char *got = read;

	CHECK_OK(store_pin(w->store, &x, &span, &err));
	CHECK_EQ_U(span.len, len);
	if (index % 8 != 7 && index % 4 == 3) {
		CHECK_EQ_I(span.kind, SPAN_FILL);
		CHECK_EQ_U(span.phase, skip % 2);
	} else {
		if (span.kind == SPAN_FD)
			CHECK(pread(span.handle.fd, read, len,
				    (off_t)span.pos) == (ssize_t)len);
		else
			got = span.mem;
		for (uint64_t i = 0; i < len; i++) {
			uint64_t at = index * SIZE +
				      ((skip + i) ^ (s->swapped ? 1 : 0));

			CHECK_EQ_U(got[i], index % 8 == 7 ? (unsigned char)index
							  : byte_at(at));
		}
	}
	store_unpin(w->store, &span);
	free(read);
}

TEST(every_kind_of_chunk)
{
	struct world w = {.shared = NULL};

	world_new(&w, 4 << 20, 0);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		check_chunk(&w, &w.plain, i, 0, SIZE);
		check_chunk(&w, &w.plain, i, 101, 17);
		check_chunk(&w, &w.swapped, i, 0, SIZE);
		check_chunk(&w, &w.swapped, i, SIZE - 3, 3);
	}
	CHECK_EQ_U(w.plain.segments, CHUNKS / 16);
	CHECK_EQ_U(w.plain.fetches, CHUNKS / 8);
	cache_verify(store_cache(w.store));
	world_free(&w);
}

static unsigned decoded_now(struct world *w)
{
	unsigned n = 0;

	for (uint64_t i = 0; i < CHUNKS; i++)
		n += cache_has(store_cache(w->store), w->swapped.set.id, i);
	return n;
}

static void check_parts(struct world *w, uint64_t skip, uint64_t len)
{
	for (uint64_t i = 0; i < CHUNKS; i++)
		check_chunk(w, &w->swapped, i, skip, len);
}

/* What is decoded for others is there until these were given all of it. */
TEST(what_is_only_decoded_was_handed_to_nobody)
{
	struct world w = {.shared = NULL};
	unsigned all;

	world_new(&w, 4 << 20, 0);
	store_thread.decodes = true;
	check_parts(&w, 0, SIZE);
	store_thread.decodes = false;
	all = decoded_now(&w);
	CHECK(all >= CHUNKS / 4 * 3);
	check_parts(&w, 0, SIZE / 2);
	CHECK_EQ_U(decoded_now(&w), all);
	check_parts(&w, SIZE / 2, SIZE / 2);
	CHECK(decoded_now(&w) <= all / 4);
	world_free(&w);
}

TEST(verbatim_chunks_are_not_copied)
{
	struct extent x;
	struct error err = {0};
	struct span span;
	struct world w = {.shared = NULL};

	world_new(&w, 4 << 20, 0);
	x = chunk_extent(&w.plain, 1, 5, 20000);
	CHECK_OK(store_pin(w.store, &x, &span, &err));
	CHECK_EQ_I(span.kind, SPAN_FD);
	CHECK_EQ_U(span.pos, SIZE + 5);
	store_unpin(w.store, &span);
	/* What one READ leaves of a chunk to the next is no reason to keep the chunk. */
	x = chunk_extent(&w.plain, 1, SIZE - 128, 128);
	x.u.chunk.alone = true;
	CHECK_OK(store_pin(w.store, &x, &span, &err));
	CHECK_EQ_I(span.kind, SPAN_FD);
	CHECK_EQ_U(span.pos, 2 * SIZE - 128);
	store_unpin(w.store, &span);
	x = chunk_extent(&w.plain, 1, 0, 128);
	x.u.chunk.alone = true;
	CHECK_OK(store_pin(w.store, &x, &span, &err));
	CHECK_EQ_I(span.kind, SPAN_FD);
	store_unpin(w.store, &span);
	/* Others of this size come in numbers. */
	x = chunk_extent(&w.plain, 1, 0, 128);
	CHECK_OK(store_pin(w.store, &x, &span, &err));
	CHECK_EQ_I(span.kind, SPAN_MEM);
	store_unpin(w.store, &span);
	world_free(&w);
}

TEST(a_short_source_is_an_error_not_zeros)
{
	struct error err = {0};
	struct extent x;
	struct span span;
	uint64_t size, stored;
	struct world w = {.shared = NULL};

	world_new(&w, 4 << 20, 0);
	x = chunk_extent(&w.plain, 64, 0, SIZE); /* beyond the end */
	CHECK_EQ_I(store_pin(w.store, &x, &span, &err), -EIO);
	CHECK(strstr(err.text, "truncated"));
	CHECK_OK(store_check_chunk(w.store, &w.plain.set, 0, NULL, &size,
				   &stored, &err));
	CHECK_EQ_U(size, SIZE);
	CHECK(ftruncate(w.fd, SIZE) == 0);
	x = chunk_extent(&w.plain, 9, 0, SIZE);
	CHECK_EQ_I(store_pin(w.store, &x, &span, &err), -ESTALE);
	x = chunk_extent(&w.swapped, 9, 0, SIZE);
	CHECK_EQ_I(store_pin(w.store, &x, &span, &err), -ESTALE);
	CHECK_EQ_I(store_check_chunk(w.store, &w.plain.set, 9, NULL, &size,
				     &stored, &err),
		   -ESTALE);
	world_free(&w);
}

TEST(windows_outside_a_chunk_are_refused)
{
	struct error err = {0};
	struct extent x;
	struct span span;
	struct world w = {.shared = NULL};

	world_new(&w, 4 << 20, 0);
	x = chunk_extent(&w.swapped, 2, SIZE - 2, 4);
	CHECK_EQ_I(store_pin(w.store, &x, &span, &err), -EIO);
	x = chunk_extent(&w.swapped, 2, UINT64_MAX - 1, 4);
	CHECK_EQ_I(store_pin(w.store, &x, &span, &err), -EIO);
	world_free(&w);
}

TEST(a_chunk_larger_than_the_cache_is_right)
{
	struct world w = {.shared = NULL};

	world_new(&w, SIZE / 2, 0);
	for (uint64_t i = 0; i < 8; i++)
		check_chunk(&w, &w.swapped, i, 3, 1000);
	CHECK(atomic_load(&w.swapped.set.warned));
	world_free(&w);
}

/* ---- prefetching --------------------------------------------------------- */

static _Atomic uint64_t asked[CHUNKS];
static void ahead_load(void *ctx, struct chunk_set *set, uint64_t index)
{
	(void)ctx;
	(void)set;
	asked[index]++;
}
static bool ahead_has(void *ctx, struct chunk_set *set, uint64_t index)
{
	(void)ctx;
	(void)set;
	return asked[index];
}

TEST(forward_readers_are_followed_random_ones_are_not)
{
	static const uint64_t jumps[] = {40, 3, 22, 61, 7, 50, 14, 36};
	struct set s = {.set = {.ops = &ops, .id = 77, .unit = SIZE}};
	struct error err = {0};
	struct prefetch *p;
	unsigned n = 0;

	CHECK_OK(prefetch_new(&p, 2, 8 * SIZE, 8 * SIZE, ahead_load, ahead_has,
			      NULL, &err));
	for (unsigned i = 0; i < 8; i++)
		prefetch_note(p, &s.set, jumps[i]);
	prefetch_free(p); /* finishes what is queued */
	for (unsigned i = 0; i < CHUNKS; i++)
		n += asked[i] != 0;
	CHECK_EQ_U(n, 0);
	CHECK_OK(prefetch_new(&p, 2, 8 * SIZE, 8 * SIZE, ahead_load, ahead_has,
			      NULL, &err));
	for (unsigned i = 0; i < 8; i++)
		prefetch_note(p, &s.set, jumps[i]);
	for (uint64_t i = 10; i < 30; i++)
		prefetch_note(p, &s.set, i);
	prefetch_free(p);
	/* Ahead of the reader: asked for once.  Where it came first: perhaps
	 * not.  Before it was known to go forward: not. */
	for (unsigned i = 0; i < CHUNKS; i++)
		CHECK(asked[i] <= (i >= 13));
	for (unsigned i = 30; i <= 33; i++)
		CHECK_EQ_U(asked[i], 1);
	for (unsigned i = 29 + 9; i < CHUNKS; i++)
		CHECK_EQ_U(asked[i], 0);
}

/* Who never left a line, or a plane, is not expected to. */
TEST(prefetching_ends_where_axes_end)
{
	struct set s = {.set = {.ops = &ops, .id = 78, .unit = SIZE}};
	struct error err = {0};
	struct prefetch *p;

	memset(asked, 0, sizeof asked);
	line = 8;
	plane = 32;
	CHECK_OK(prefetch_new(&p, 1, 16 * SIZE, 16 * SIZE, ahead_load,
			      ahead_has, NULL, &err));
	for (uint64_t i = 0; i < 8; i++)
		prefetch_note(p, &s.set, i);
	prefetch_free(p);
	CHECK_EQ_U(asked[8], 0);
	memset(asked, 0, sizeof asked);
	CHECK_OK(prefetch_new(&p, 1, 16 * SIZE, 16 * SIZE, ahead_load,
			      ahead_has, NULL, &err));
	for (uint64_t i = 0; i < 31; i++)
		prefetch_note(p, &s.set, i);
	prefetch_free(p);
	CHECK_EQ_U(asked[31], 1);
	CHECK_EQ_U(asked[32], 0);
	memset(asked, 0, sizeof asked);
	CHECK_OK(prefetch_new(&p, 1, 16 * SIZE, 16 * SIZE, ahead_load,
			      ahead_has, NULL, &err));
	for (uint64_t i = 0; i < 60; i++)
		prefetch_note(p, &s.set, i);
	prefetch_free(p);
	CHECK_EQ_U(asked[63], 1);
	line = plane = CHUNKS;
}

/* One that stops anywhere has made us decode half as much again, at most. */
TEST(the_window_grows_with_what_was_read)
{
	struct set s = {.set = {.ops = &ops, .id = 79, .unit = SIZE}};
	struct error err = {0};

	for (uint64_t stop = 1; stop < 40; stop++) {
		struct prefetch *p;
		uint64_t over = 0;

		memset(asked, 0, sizeof asked);
		CHECK_OK(prefetch_new(&p, 2, 64 * SIZE, 64 * SIZE, ahead_load,
				      ahead_has, NULL, &err));
		for (uint64_t i = 0; i < stop; i++)
			prefetch_note(p, &s.set, i);
		prefetch_free(p);
		for (uint64_t i = stop; i < CHUNKS; i++)
			over += asked[i];
		CHECK(over <= (stop > 4 ? stop / 2 : 2));
	}
}

static void wait_for_prefetched(uint64_t n)
{
	/* It polls: the minute is only there to end a test that hangs. */
	for (unsigned i = 0; i < 60000; i++) {
		if (counter_get(COUNT_PREFETCHED) >= n)
			return;
		usleep(1000);
	}
	test_fail(__FILE__, __LINE__, "%" PRIu64 " of %" PRIu64 " prefetched",
		  counter_get(COUNT_PREFETCHED), n);
}

TEST(what_is_wanted_is_decoded_by_others)
{
	struct error err = {0};
	uint64_t bytes, before = counter_get(COUNT_PREFETCHED), ahead = 0;
	struct extent x;
	struct world w = {.shared = NULL};
	unsigned n = 0;

	world_new(&w, 4 << 20, 2);
	x = chunk_extent(&w.swapped, 40, 0, 64);
	CHECK(store_want(w.store, &x, 0, &bytes));
	CHECK_EQ_U(bytes, 0); /* nobody is there to do it */
	CHECK_OK(store_start(w.store, &err));
	for (uint64_t i = 40; i < 64; i++, ahead += bytes) {
		x = chunk_extent(&w.swapped, i, 0, 64);
		if (!store_want(w.store, &x, ahead, &bytes))
			break;
		n++;
	}
	/* As many as stay in an eighth of the cache; absent ones are none. */
	CHECK(ahead > 0 && ahead <= 512 << 10);
	CHECK(n >= ahead / SIZE && n < 24);
	wait_for_prefetched(before + ahead / SIZE);
	CHECK_EQ_U(counter_get(COUNT_PREFETCHED), before + ahead / SIZE);
	/* What is there, verbatim or never written needs nobody. */
	x = chunk_extent(&w.swapped, 40, 0, 64);
	CHECK(store_want(w.store, &x, 0, &bytes) && bytes == 0);
	x = chunk_extent(&w.swapped, 3, 0, 64);
	CHECK(store_want(w.store, &x, 0, &bytes) && bytes == 0);
	x = chunk_extent(&w.plain, 40, 0, SIZE);
	CHECK(store_want(w.store, &x, 0, &bytes) && bytes == 0);
	world_free(&w);
}

TEST(what_comes_next_is_decoded_ahead)
{
	uint64_t before = counter_get(COUNT_PREFETCHED);
	struct error err = {0};
	struct world w = {.shared = NULL};

	world_new(&w, 4 << 20, 2);
	CHECK_OK(store_start(w.store, &err));
	for (uint64_t i = 0; i < 3; i++)
		check_chunk(&w, &w.swapped, i, 0, 100);
	wait_for_prefetched(before + 1);
	world_free(&w);
}

static void *reader(void *arg)
{
	struct world *w = arg;

	for (int round = 0; round < 3; round++)
		for (uint64_t i = 0; i < CHUNKS; i++)
			check_chunk(w, &w->swapped, i, 64, 512);
	return NULL;
}

TEST(readers_and_prefetching_together)
{
	struct error err = {0};
	pthread_t t[4];
	struct world w = {.shared = NULL};

	world_new(&w, 1 << 20, 2);
	CHECK_OK(store_start(w.store, &err));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, reader, &w));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	world_free(&w);
}

/* Whatever the machine has left. */
static uint64_t much(void)
{
	return UINT64_C(1) << 30;
}

/* Two stores with a cache that holds little, and a shared one that holds less than
 * all: readers, prefetching, evicting and giving up at once. */
TEST(sharing_with_another_store)
{
	char base[] = "/dev/shm/store-test-XXXXXX";
	struct shared_options o = {.base = base,
				   .size = 40 * (SIZE + 8192),
				   .version = "test",
				   .patience = UINT64_C(120) * 1000000000,
				   .memory = much};
	struct shared_summary was;
	struct error err = {0};
	struct world w[2];
	pthread_t t[4];

	CHECK(mkdtemp(base));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(shared_open(&w[i].shared, &o, &err));
		world_new(&w[i], 1 << 20, 2);
	}
	/* Both read the same file, which is old enough to be kept. */
	w[1].swapped.file = handles_add(w[1].handles, w[0].path);
	clock_forward(CLOCK_REALTIME, 4000);
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		atomic_store(&counter_values[i], 0);
	for (int i = 0; i < 2; i++)
		CHECK_OK(store_start(w[i].store, &err));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, reader, &w[i % 2]));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(counter_get(COUNT_SHARED_ADDED) > 0);
	CHECK(counter_get(COUNT_SHARED_HITS) + counter_get(COUNT_SHARED_TAKEN) >
	      0);
	CHECK_EQ_U(counter_get(COUNT_SHARED_DAMAGED), 0);
	for (int i = 0; i < 2; i++)
		cache_verify(store_cache(w[i].store));
	/* What is decoded ahead ends when it has ended. */
	for (int round = 0; round < 3000; round++) {
		for (int i = 0; i < 2; i++)
			cache_drop_unused(store_cache(w[i].store), UINT64_MAX,
					  UINT64_MAX);
		CHECK_OK(shared_survey(base, &was, &err));
		if (was.used == 0)
			break;
		/* It polls: the minute is only there to end a test that hangs. */
		usleep(20000);
	}
	for (int i = 0; i < 2; i++)
		cache_verify(store_cache(w[i].store));
	CHECK(was.live && was.entries > 0);
	CHECK_EQ_U(was.used, 0);
	for (int i = 0; i < 2; i++) {
		world_free(&w[i]);
		shared_close(w[i].shared);
	}
	CHECK_OK(shared_clear(base, &was, &err));
	CHECK(!was.live);
	CHECK_OK(rmdir(base)); /* the user's directory went with it */
}

int main(void)
{
	RUN(every_kind_of_chunk);
	RUN(what_is_only_decoded_was_handed_to_nobody);
	RUN(verbatim_chunks_are_not_copied);
	RUN(a_short_source_is_an_error_not_zeros);
	RUN(windows_outside_a_chunk_are_refused);
	RUN(a_chunk_larger_than_the_cache_is_right);
	RUN(forward_readers_are_followed_random_ones_are_not);
	RUN(prefetching_ends_where_axes_end);
	RUN(the_window_grows_with_what_was_read);
	RUN(what_is_wanted_is_decoded_by_others);
	RUN(what_comes_next_is_decoded_ahead);
	RUN(readers_and_prefetching_together);
	RUN(sharing_with_another_store);
	return test_done();
}
