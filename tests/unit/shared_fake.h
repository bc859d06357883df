/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks that tests of the shared store make, and count. */
#ifndef TESTS_UNIT_SHARED_FAKE_H
#define TESTS_UNIT_SHARED_FAKE_H

#include "store/shared/shared.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counters.h"
#include "clock.h"
#include "test.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define SIZE (64 * KIB)
/* What a file of such a chunk takes. */
#define COST (68 * KIB)

static char base[] = "/dev/shm/store-shared-XXXXXX";
static char source[] = "/tmp/store-shared-XXXXXX";
static char dir[96];
static struct handles *handles;
static uint32_t file;

/* In memory of all processes of the test. */
struct for_all {
	_Atomic unsigned made[256];
};
static struct for_all *all;

/* ---- a set of chunks, and how they are made -------------------------------- */

static bool origin(const struct chunk_set *s, uint64_t index,
		   const struct chunk *c, char *text, size_t n)
{
	(void)s;
	(void)c;
	return snprintf(text, n, "fake %llu", (unsigned long long)index) > 0;
}
static const struct chunk_set_ops ops = {.origin = origin};
static const struct chunk_set_ops silent;
static const struct chunk_set set = {.ops = &ops};

TEST_MAYBE static struct chunk fake_chunk(void)
{
	return (struct chunk){.state = CHUNK_FETCH, .file = file, .size = SIZE};
}

TEST_MAYBE static struct shared_key key_of(struct shared *sh, uint64_t index)
{
	struct chunk c = fake_chunk();
	struct shared_key k;
	struct error err = {0};

	CHECK_EQ_I(shared_key_of(sh, &k, handles, &set, index, &c, &err), 0);
	return k;
}

struct fake {
	uint64_t index;
	unsigned delay_us;
	int fail;
	bool stop; /* in the middle */
	void (*meanwhile)(void);
};

static void fill(uint64_t index, unsigned char *to, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		to[i] = (unsigned char)(index * 37 + i * 11 + (i >> 8));
}
TEST_MAYBE static void check_bytes(const struct buf *b, uint64_t index)
{
	unsigned char want[SIZE];

	fill(index, want, SIZE);
	CHECK_EQ_U(b->size, SIZE);
	CHECK_MEM(b->data, want, SIZE);
}

static int into(void *ctx, void *to, struct error *err)
{
	const struct fake *f = ctx;

	atomic_fetch_add(&all->made[f->index], 1);
	if (f->stop)
		raise(SIGSTOP);
	fill(f->index, to, SIZE / 2);
	/* Only makes it likelier that others come meanwhile. */
	if (f->delay_us)
		usleep(f->delay_us);
	if (f->meanwhile)
		f->meanwhile();
	fill(f->index, to, SIZE);
	return f->fail ? error_set(err, f->fail, "chunk is bad") : 0;
}

static int make(void *ctx, _Atomic uint64_t *gauge, struct buf **out,
		struct error *err)
{
	struct buf *b = buf_new(SIZE, gauge);
	int r = into(ctx, b->data, err);

	if (r < 0)
		buf_unref(b);
	else
		*out = b;
	return r;
}

static _Atomic uint64_t heap;

TEST_MAYBE static int get_as(struct shared *sh, struct fake *f, uint64_t size,
			     struct buf **out, struct error *err)
{
	struct shared_maker m = {size, into, make, f};
	struct shared_key k = key_of(sh, f->index);
	int r = shared_get(sh, &k, &m, &heap, out, err);

	shared_key_free(&k);
	return r;
}

TEST_MAYBE static struct buf *get(struct shared *sh, uint64_t index)
{
	struct fake f = {.index = index};
	struct error err = {0};
	struct buf *b;

	CHECK_OK(get_as(sh, &f, SIZE, &b, &err));
	check_bytes(b, index);
	return b;
}

TEST_MAYBE static bool is_mapped(const struct buf *b)
{
	return b->gauge != &heap;
}

/* Whatever the machine has left. */
static uint64_t much(void)
{
	return UINT64_C(1) << 30;
}

static uint64_t patience; /* see shared_options */

TEST_MAYBE static struct shared *open_store(uint64_t size)
{
	struct shared_options o = {base, size, "test", patience, much};
	struct error err = {0};
	struct shared *sh;

	if (shared_open(&sh, &o, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return sh;
}

static void forget_counts(void)
{
	for (unsigned i = 0; i < 256; i++)
		all->made[i] = 0;
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		atomic_store(&counter_values[i], 0);
}

TEST_MAYBE static void clear(void)
{
	struct shared_summary was;
	struct error err = {0};

	CHECK_OK(shared_clear(base, &was, &err));
	CHECK(!was.live);
	CHECK(access(dir, F_OK) < 0);
	forget_counts();
}

/* What lies there.  Of a file with two names, which a process left that died while it
 * published it, one counts.  Not a moment's picture, where others work. */
struct seen {
	uint64_t bytes, entries, parts;
};
TEST_MAYBE static struct seen look(void)
{
	struct seen s = {0, 0, 0};
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !strcmp(e->d_name, "ledger") ||
		    fstatat(dirfd(d), e->d_name, &st, 0) < 0 ||
		    (strchr(e->d_name, '.') && st.st_nlink > 1))
			continue;
		s.bytes += ((uint64_t)st.st_size + 4095) / 4096 * 4096;
		s.parts += strchr(e->d_name, '.') != NULL;
		s.entries += !strchr(e->d_name, '.');
	}
	if (d)
		closedir(d);
	return s;
}

TEST_MAYBE static void path_of_entry(struct shared *sh, uint64_t index,
				     char *path, size_t n)
{
	struct shared_key k = key_of(sh, index);

	snprintf(path, n, "%s/%s", dir, k.name);
	shared_key_free(&k);
}

TEST_MAYBE static void set_up(void)
{
	struct error err = {0};
	char byte[4096] = "source";
	int fd = mkstemp(source);

	CHECK(fd >= 0);
	CHECK_EQ_I(write(fd, byte, sizeof byte), sizeof byte);
	close(fd);
	CHECK(mkdtemp(base));
	snprintf(dir, sizeof dir, "%s/tensorfs-%lu/.chunks", base,
		 (unsigned long)geteuid());
	all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(all != MAP_FAILED);
	CHECK_OK(handles_new(&handles, 0, 1, &err));
	file = handles_add(handles, source);
	/* The source is old enough to be believed. */
	clock_forward(CLOCK_REALTIME, 4000);
}

TEST_MAYBE static void tear_down(void)
{
	char home[64];

	snprintf(home, sizeof home, "%s/tensorfs-%lu", base,
		 (unsigned long)geteuid());
	rmdir(home);
	CHECK_OK(rmdir(base));
	CHECK_OK(unlink(source));
	handles_free(handles);
	munmap(all, sizeof *all);
}

#endif
