/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared chunks: made once by all processes, right whatever dies when. */
#include "store/shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/counters.h"
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
static struct {
	_Atomic unsigned made[256];
	_Atomic unsigned stopped;
} * all;

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

static struct chunk fake_chunk(void)
{
	return (struct chunk){.state = CHUNK_FETCH, .file = file, .size = SIZE};
}

static struct shared_key key_of(struct shared *sh, uint64_t index)
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
static void check_bytes(const struct buf *b, uint64_t index)
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
	if (f->stop) {
		atomic_store(&all->stopped, 1);
		raise(SIGSTOP);
	}
	fill(f->index, to, SIZE / 2);
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

static int get_as(struct shared *sh, struct fake *f, uint64_t size,
		  struct buf **out, struct error *err)
{
	struct shared_maker m = {size, into, make, f};
	struct shared_key k = key_of(sh, f->index);
	int r = shared_get(sh, &k, &m, &heap, out, err);

	shared_key_free(&k);
	return r;
}

static struct buf *get(struct shared *sh, uint64_t index)
{
	struct fake f = {.index = index};
	struct error err = {0};
	struct buf *b;

	CHECK_OK(get_as(sh, &f, SIZE, &b, &err));
	check_bytes(b, index);
	return b;
}

static bool is_mapped(const struct buf *b)
{
	return b->gauge != &heap;
}

static struct shared *open_store(uint64_t size)
{
	struct shared_options o = {base, size, "test"};
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

static void clear(void)
{
	struct shared_summary was;
	struct error err = {0};

	CHECK_OK(shared_clear(base, &was, &err));
	CHECK(!was.live);
	CHECK(access(dir, F_OK) < 0);
	forget_counts();
}

/* What lies there.  Not a moment's picture, where others work: one in the making
 * may be seen under both of its names. */
struct seen {
	uint64_t bytes, entries, parts;
};
static struct seen look(void)
{
	struct seen s = {0, 0, 0};
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !strcmp(e->d_name, "ledger") ||
		    fstatat(dirfd(d), e->d_name, &st, 0) < 0)
			continue;
		s.bytes += ((uint64_t)st.st_size + 4095) / 4096 * 4096;
		s.parts += strchr(e->d_name, '.') != NULL;
		s.entries += !strchr(e->d_name, '.');
	}
	if (d)
		closedir(d);
	return s;
}

/* The same while nobody takes room or evicts. */
static struct seen look_locked(void)
{
	struct seen s;
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/ledger", dir);
	fd = open(path, O_RDONLY);
	if (fd >= 0)
		flock(fd, LOCK_EX);
	s = look();
	close(fd);
	return s;
}

static void path_of_entry(struct shared *sh, uint64_t index, char *path,
			  size_t n)
{
	struct shared_key k = key_of(sh, index);

	snprintf(path, n, "%s/%s", dir, k.name);
	shared_key_free(&k);
}

/* ---- keys ------------------------------------------------------------------ */

static void stored_name(struct shared *sh, const struct chunk *c, char *name)
{
	static const struct chunk_set tensor = {.ops = &silent};
	struct error err = {0};
	struct shared_key k;

	CHECK_EQ_I(shared_key_of(sh, &k, handles, &tensor, 7, c, &err), 0);
	CHECK(k.settled);
	strcpy(name, k.name);
	shared_key_free(&k);
}

TEST(all_that_decides_is_in_the_key)
{
	struct shared *sh = open_store(MIB);
	struct pipeline filters = {0}, others;
	struct recode swap = {.from = 2, .to = 2, .width = 2, .nswaps = 1};
	struct chunk c = {.file = file, .stored = 4096, .size = SIZE}, other;
	struct error err = {0};
	char a[33], b[33];

	swap.swap[0] = (struct recode_swap){0, 2, 1};
	CHECK_OK(pipeline_add(&filters, 1, NULL, (uint32_t[]){6}, 1, 2, &err));
	c.pipeline = &filters;
	stored_name(sh, &c, a);
#define DIFFERS(change)                     \
	do {                                \
		other = c;                  \
		change;                     \
		stored_name(sh, &other, b); \
		CHECK(strcmp(a, b));        \
	} while (0)
	DIFFERS(other.pos = 8);
	DIFFERS(other.stored = 4095);
	DIFFERS(other.size = SIZE + 2);
	DIFFERS(other.recode = &swap);
	others = filters;
	others.filter[0].params.cd[0] = 5;
	DIFFERS(other.pipeline = &others);
	others = filters;
	CHECK_OK(pipeline_add(&others, 2, NULL, (uint32_t[]){2}, 1, 2, &err));
	DIFFERS(other.pipeline = &others);
	/* A filter that was skipped decides nothing. */
	other.skip_mask = 2;
	stored_name(sh, &other, b);
	CHECK_STR(a, b);
	shared_close(sh);
	clear();
}

TEST(what_is_not_worth_it)
{
	struct shared *sh = open_store(MIB);
	struct chunk_set none = {.ops = &silent};
	struct chunk c = fake_chunk();
	struct error err = {0};
	struct shared_key k;

	CHECK_EQ_I(shared_key_of(sh, &k, handles, &none, 0, &c, &err), 1);
	c.size = SHARED_CHUNK_MIN - 1;
	CHECK_EQ_I(shared_key_of(sh, &k, handles, &set, 0, &c, &err), 1);
	c = (struct chunk){.file = file, .stored = SIZE, .size = SIZE};
	CHECK_EQ_I(shared_key_of(sh, &k, handles, &none, 0, &c, &err), 1);
	c.file = handles_add(handles, "/tmp/there-is-no-such-file");
	c.stored = 1;
	CHECK_EQ_I(shared_key_of(sh, &k, handles, &none, 0, &c, &err),
		   -ENODATA);
	shared_close(sh);
	clear();
}

TEST(a_file_just_written_is_not_kept)
{
	struct shared *sh = open_store(MIB);
	struct fake f = {.index = 1};
	struct error err = {0};
	struct shared_key k;
	struct buf *b;

	/* Its ctime, whatever else: a chmod will do. */
	CHECK_OK(chmod(source, 0640));
	k = key_of(sh, 1);
	CHECK(!k.settled);
	shared_key_free(&k);
	CHECK_OK(get_as(sh, &f, SIZE, &b, &err));
	CHECK(!is_mapped(b));
	check_bytes(b, 1);
	buf_unref(b);
	CHECK_EQ_U(look().entries + look().parts, 0);
	sleep(4);
	b = get(sh, 1);
	CHECK(is_mapped(b));
	buf_unref(b);
	shared_close(sh);
	clear();
}

/* ---- one process ----------------------------------------------------------- */

TEST(made_once_and_kept)
{
	struct shared *sh = open_store(MIB), *other = open_store(MIB);
	struct shared_usage u;
	struct buf *a, *b;
	struct stat st;
	char path[160];

	a = get(sh, 3);
	b = get(other, 3);
	CHECK(is_mapped(a) && is_mapped(b));
	CHECK_EQ_U(all->made[3], 1);
	CHECK_EQ_U(counter_get(COUNT_SHARED_HITS), 1);
	CHECK_EQ_U(counter_get(COUNT_SHARED_ADDED), 1);
	CHECK_EQ_U(atomic_load(&heap), 0);
	shared_usage(sh, &u);
	CHECK_EQ_U(u.bytes, COST);
	CHECK_EQ_U(u.entries, 1);
	CHECK_EQ_U(u.mapped, COST);
	path_of_entry(sh, 3, path, sizeof path);
	CHECK_OK(stat(path, &st));
	CHECK_EQ_U(st.st_mode & 07777, 0400);
	CHECK_EQ_U(st.st_nlink, 1);
	buf_unref(a);
	buf_unref(b);
	shared_close(sh);
	shared_close(other);
	/* Nobody has it open now. */
	sh = open_store(MIB);
	b = get(sh, 3);
	CHECK_EQ_U(all->made[3], 1);
	buf_unref(b);
	shared_close(sh);
	clear();
}

TEST(size_known_when_made)
{
	struct shared *sh = open_store(MIB);
	struct fake f = {.index = 4};
	struct error err = {0};
	struct buf *b;

	for (unsigned i = 0; i < 2; i++) {
		CHECK_OK(get_as(sh, &f, 0, &b, &err));
		CHECK(is_mapped(b));
		check_bytes(b, 4);
		buf_unref(b);
	}
	CHECK_EQ_U(all->made[4], 1);
	CHECK_EQ_U(atomic_load(&heap), 0);
	shared_close(sh);
	clear();
}

TEST(failures_leave_nothing)
{
	struct shared *sh = open_store(MIB);
	struct fake f = {.index = 5, .fail = -EBADMSG};
	struct error err = {0};
	struct shared_usage u;
	struct buf *b;

	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ_I(get_as(sh, &f, i * SIZE, &b, &err), -EBADMSG);
		CHECK_STR(err.text, "chunk is bad");
	}
	CHECK_EQ_U(all->made[5], 2);
	CHECK_EQ_U(look().parts + look().entries, 0);
	shared_usage(sh, &u);
	CHECK_EQ_U(u.bytes, 0);
	shared_close(sh);
	clear();
}

/* Change what lies there, and see it made anew. */
static void after_damage(void (*damage)(const char *path))
{
	struct shared *sh = open_store(MIB);
	struct shared_usage u;
	char path[160];

	buf_unref(get(sh, 6));
	path_of_entry(sh, 6, path, sizeof path);
	CHECK_OK(chmod(path, 0600));
	damage(path);
	buf_unref(get(sh, 6));
	CHECK_EQ_U(all->made[6], 2);
	CHECK_EQ_U(counter_get(COUNT_SHARED_DAMAGED), 1);
	buf_unref(get(sh, 6));
	CHECK_EQ_U(all->made[6], 2);
	shared_usage(sh, &u); /* counted anew */
	CHECK_EQ_U(u.bytes, COST);
	CHECK_EQ_U(u.entries, 1);
	shared_close(sh);
	clear();
}
static void scribble(const char *path)
{
	int fd = open(path, O_WRONLY);

	CHECK_EQ_I(pwrite(fd, "x", 1, 1000), 1);
	close(fd);
}
static void scribble_text(const char *path)
{
	int fd = open(path, O_WRONLY);

	CHECK_EQ_I(pwrite(fd, "x", 1, SIZE + 9), 1);
	close(fd);
}
static void cut(const char *path)
{
	CHECK_OK(truncate(path, SIZE));
}
static void empty(const char *path)
{
	CHECK_OK(truncate(path, 0));
}
TEST(damage_is_noticed)
{
	after_damage(scribble);
	after_damage(scribble_text);
	after_damage(cut);
}
TEST(an_empty_file_is_noticed)
{
	struct shared *sh = open_store(MIB);
	char path[160];

	buf_unref(get(sh, 6));
	path_of_entry(sh, 6, path, sizeof path);
	CHECK_OK(chmod(path, 0600));
	empty(path);
	buf_unref(get(sh, 6));
	CHECK_EQ_U(all->made[6], 2);
	shared_close(sh);
	clear();
}

/* Whoever removes everything while a chunk is made does not get half of one. */
static void remove_all(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -f %s/*", dir);
	CHECK_OK(system(command));
}
TEST(removed_meanwhile)
{
	struct shared *sh = open_store(MIB);
	struct fake f = {.index = 8, .meanwhile = remove_all};
	struct error err = {0};
	struct buf *b;

	CHECK_OK(get_as(sh, &f, SIZE, &b, &err));
	check_bytes(b, 8);
	/* Without a name it counts as ours. */
	CHECK(!is_mapped(b));
	buf_unref(b);
	CHECK_EQ_U(atomic_load(&heap), 0);
	CHECK_EQ_U(look().entries + look().parts, 0);
	buf_unref(get(sh, 8));
	CHECK_EQ_U(look().entries, 1);
	shared_close(sh);
	clear();
}

/* ---- the limit ------------------------------------------------------------- */

#define LIMIT (20 * COST)

TEST(old_ones_make_room)
{
	struct shared *sh = open_store(LIMIT);
	struct shared_usage u;
	struct buf *first = get(sh, 0);
	char path[160];

	path_of_entry(sh, 0, path, sizeof path);
	for (uint64_t i = 1; i < 100; i++) {
		buf_unref(get(sh, i));
		CHECK(look().bytes <= LIMIT);
		shared_usage(sh, &u);
		CHECK_EQ_U(u.bytes, look().bytes);
		CHECK_EQ_U(u.entries, look().entries);
	}
	/* What somebody has mapped is not evicted, however old. */
	CHECK_OK(access(path, F_OK));
	check_bytes(first, 0);
	buf_unref(first);
	CHECK(look().entries > 15);
	/* Another one's limit is his own. */
	shared_close(sh);
	sh = open_store(4 * COST);
	CHECK(look().bytes <= 4 * COST);
	shared_close(sh);
	clear();
}

TEST(full_of_what_is_in_use)
{
	struct shared *sh = open_store(LIMIT);
	struct buf *held[20], *b;

	for (uint64_t i = 0; i < 20; i++)
		held[i] = get(sh, i);
	CHECK(!shared_is_wanted(sh));
	b = get(sh, 20);
	CHECK(!is_mapped(b));
	CHECK_EQ_U(look().bytes, LIMIT);
	CHECK_EQ_U(look().parts, 0);
	CHECK_EQ_U(counter_get(COUNT_SHARED_REFUSED), 1);
	CHECK(shared_is_wanted(sh));
	buf_unref(b);
	CHECK_EQ_U(atomic_load(&heap), 0);
	buf_unref(held[7]);
	usleep(500000); /* nothing is tried in between */
	b = get(sh, 20);
	CHECK(is_mapped(b));
	buf_unref(b);
	for (uint64_t i = 0; i < 20; i++) {
		if (i != 7)
			buf_unref(held[i]);
	}
	shared_close(sh);
	clear();
}

TEST(larger_than_all_of_it)
{
	struct shared *sh = open_store(COST - 1);
	struct buf *b = get(sh, 1);

	CHECK(!is_mapped(b));
	buf_unref(b);
	shared_close(sh);
	clear();
}

/* ---- processes ------------------------------------------------------------- */

static void in_children(unsigned n, void (*work)(unsigned))
{
	pid_t pid[16];
	int status;

	for (unsigned i = 0; i < n; i++) {
		pid[i] = fork();
		CHECK(pid[i] >= 0);
		if (pid[i] == 0) {
			work(i);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ_I(waitpid(pid[i], &status, 0), pid[i]);
		CHECK_EQ_I(status, 0);
	}
}

static void read_all(unsigned which)
{
	struct shared *sh = open_store(16 * MIB);
	struct error err = {0};
	unsigned order[64];

	for (unsigned i = 0; i < 64; i++)
		order[i] = i;
	for (unsigned i = 0; i < which; i++)
		test_random();
	for (unsigned i = 64; i-- > 1;) {
		unsigned j = (unsigned)(test_random() % (i + 1));
		unsigned t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	for (unsigned i = 0; i < 64; i++) {
		struct fake f = {.index = order[i], .delay_us = 1000};
		struct buf *b;

		CHECK_OK(get_as(sh, &f, i & 1 ? SIZE : 0, &b, &err));
		check_bytes(b, order[i]);
		CHECK(is_mapped(b));
		buf_unref(b);
	}
	shared_close(sh);
}

TEST(eight_processes_make_each_once)
{
	struct shared_summary s;
	struct error err = {0};

	in_children(8, read_all);
	for (unsigned i = 0; i < 64; i++)
		CHECK_EQ_U(all->made[i], 1);
	CHECK_OK(shared_survey(base, &s, &err));
	CHECK_EQ_U(s.entries, 64);
	CHECK_EQ_U(s.bytes, 64 * COST);
	CHECK_EQ_U(s.used, 0);
	CHECK(!s.live);
	clear();
}

static void *read_in_thread(void *ctx)
{
	struct shared *sh = ctx;

	for (uint64_t i = 0; i < 64; i++)
		buf_unref(get(sh, i));
	return NULL;
}

TEST(threads_of_one_process)
{
	struct shared *sh = open_store(24 * COST);
	pthread_t t[4];

	for (unsigned i = 0; i < 4; i++)
		CHECK_OK(pthread_create(&t[i], NULL, read_in_thread, sh));
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(look().bytes <= 24 * COST);
	CHECK_EQ_U(look().parts, 0);
	shared_close(sh);
	clear();
}

/* Reads for ever, with a limit that makes it evict. */
static void read_until_killed(uint64_t limit)
{
	struct shared *sh;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sh = open_store(limit);
	srand((unsigned)getpid());
	for (;;)
		buf_unref(get(sh, (uint64_t)rand() % 64));
}

TEST(killed_at_any_time)
{
	const uint64_t limit = 40 * COST;
	struct shared_usage u;
	struct shared *sh;
	pid_t pid[3] = {0};
	struct seen s;
	int status;

	for (unsigned round = 0; round < 300; round++) {
		unsigned i = round % 3;

		if (pid[i]) {
			kill(pid[i], SIGKILL);
			waitpid(pid[i], &status, 0);
			CHECK(WIFSIGNALED(status) &&
			      WTERMSIG(status) == SIGKILL);
		}
		pid[i] = fork();
		if (pid[i] == 0)
			read_until_killed(limit);
		usleep((useconds_t)(test_random() % 9000));
		CHECK(look_locked().bytes <= limit + 3 * COST);
	}
	for (unsigned i = 0; i < 3; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
	}
	sh = open_store(limit);
	s = look();
	shared_usage(sh, &u);
	CHECK_EQ_U(s.parts, 0);
	CHECK_EQ_U(u.bytes, s.bytes);
	CHECK_EQ_U(u.entries, s.entries);
	for (uint64_t i = 0; i < 64; i++)
		buf_unref(get(sh, i));
	CHECK_EQ_U(counter_get(COUNT_SHARED_DAMAGED), 0);
	shared_close(sh);
	clear();
}

TEST(nobody_waits_for_the_stopped)
{
	struct shared *sh;
	struct buf *b;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct fake f = {.index = 9, .stop = true};
		struct error err = {0};

		sh = open_store(MIB);
		CHECK_OK(get_as(sh, &f, SIZE, &b, &err));
		check_bytes(b, 9);
		CHECK(is_mapped(b));
		_exit(0);
	}
	while (!atomic_load(&all->stopped))
		usleep(1000);
	sh = open_store(MIB);
	CHECK_EQ_U(look().parts, 1); /* it lives */
	b = get(sh, 9);
	CHECK(!is_mapped(b));
	buf_unref(b);
	buf_unref(get(sh, 10)); /* others are not held up */
	CHECK_EQ_U(look().entries, 1);
	kill(pid, SIGCONT);
	CHECK_EQ_I(waitpid(pid, &status, 0), pid);
	CHECK_EQ_I(status, 0);
	b = get(sh, 9);
	CHECK(is_mapped(b));
	CHECK_EQ_U(all->made[9], 2);
	buf_unref(b);
	shared_close(sh);
	clear();
}

/* ---- places, and clearing them --------------------------------------------- */

TEST(places_that_are_refused)
{
	struct shared_options o = {base, MIB, "test"};
	struct error err = {0};
	struct shared *sh;
	char home[64], real[64];

	snprintf(home, sizeof home, "%s/tensorfs-%lu", base,
		 (unsigned long)geteuid());
	snprintf(real, sizeof real, "%s/real", base);
	CHECK_OK(mkdir(real, 0700));
	rmdir(home);
	CHECK_OK(symlink(real, home));
	CHECK_EQ_I(shared_open(&sh, &o, &err), -ELOOP);
	CHECK(sh == NULL && strstr(err.text, "symlink"));
	CHECK_OK(unlink(home));
	CHECK_OK(mkdir(home, 0700));
	CHECK_OK(symlink(real, dir));
	CHECK_EQ_I(shared_open(&sh, &o, &err), -ELOOP);
	CHECK_OK(unlink(dir));
	CHECK_OK(rmdir(real));
	o.base = "/proc";
	CHECK(shared_open(&sh, &o, &err) < 0);
	o.base = "/tmp/there/is/no/such/place";
	CHECK_EQ_I(shared_open(&sh, &o, &err), -ENOENT);
}

TEST(looking_and_clearing)
{
	struct shared_summary s;
	struct error err = {0};
	struct shared *sh;
	struct buf *b;

	CHECK_OK(shared_survey(base, &s, &err));
	CHECK_EQ_U(s.entries + s.bytes + s.used + s.live, 0);
	sh = open_store(MIB);
	b = get(sh, 1);
	buf_unref(get(sh, 2));
	CHECK_OK(shared_survey(base, &s, &err));
	CHECK_EQ_U(s.entries, 2);
	CHECK_EQ_U(s.used, 1);
	CHECK(s.live);
	CHECK_OK(shared_clear(base, &s, &err));
	CHECK_EQ_U(s.entries, 2);
	CHECK_EQ_U(look().entries, 0);
	CHECK_OK(access(dir, F_OK));
	check_bytes(b, 1); /* who has it keeps it */
	buf_unref(b);
	buf_unref(get(sh, 1));
	CHECK_EQ_U(look().entries, 1);
	CHECK_EQ_U(all->made[1], 2);
	shared_close(sh);
	clear();
}

static void set_up(void)
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
	sleep(4); /* until the source is old enough to be believed */
}

static void tear_down(void)
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

int main(void)
{
	set_up();
	RUN(places_that_are_refused);
	RUN(all_that_decides_is_in_the_key);
	RUN(what_is_not_worth_it);
	RUN(made_once_and_kept);
	RUN(size_known_when_made);
	RUN(failures_leave_nothing);
	RUN(damage_is_noticed);
	RUN(an_empty_file_is_noticed);
	RUN(removed_meanwhile);
	RUN(old_ones_make_room);
	RUN(full_of_what_is_in_use);
	RUN(larger_than_all_of_it);
	RUN(looking_and_clearing);
	RUN(eight_processes_make_each_once);
	RUN(killed_at_any_time);
	RUN(nobody_waits_for_the_stopped);
	RUN(threads_of_one_process);
	RUN(a_file_just_written_is_not_kept);
	tear_down();
	return test_done();
}
