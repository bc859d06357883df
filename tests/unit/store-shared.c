/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared chunks: what they are told by, kept as, limited to. */
#include "shared_fake.h"

#include <fcntl.h>

#include "base/number.h"
#include "store/shared/private.h"

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
	static const unsigned ages[] = {0, 2999, 3001}; /* milliseconds */
	struct shared *sh = open_store(MIB);
	struct fake f = {.index = 1};
	struct error err = {0};
	struct shared_key k;
	struct stat st;
	struct buf *b;

	/* Its ctime, whatever else: a chmod will do. */
	CHECK_OK(chmod(source, 0640));
	CHECK_OK(stat(source, &st));
	for (unsigned i = 0; i < 3; i++) {
		clock_stops(CLOCK_REALTIME,
			    (int64_t)st.st_ctim.tv_sec * 1000000000 +
				    st.st_ctim.tv_nsec +
				    (int64_t)ages[i] * 1000000);
		k = key_of(sh, 1);
		CHECK_EQ_U(k.settled, ages[i] > 3000);
		shared_key_free(&k);
		CHECK_OK(get_as(sh, &f, SIZE, &b, &err));
		CHECK_EQ_U(is_mapped(b), ages[i] > 3000);
		check_bytes(b, 1);
		buf_unref(b);
		CHECK_EQ_U(look().entries, ages[i] > 3000);
		CHECK_EQ_U(look().parts, 0);
	}
	clock_runs(CLOCK_REALTIME);
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
static void run_there(const char *what)
{
	char command[256];

	snprintf(command, sizeof command, "cd %s && %s", dir, what);
	CHECK_OK(system(command));
}
static void remove_all(void)
{
	run_there("rm -f *");
}
static void replace(void)
{
	run_there("for f in *.part; do rm $f; echo junk >$f; done");
}

static void disturbed_by(void (*meanwhile)(void))
{
	struct shared *sh = open_store(MIB);
	struct fake f = {.index = 8, .meanwhile = meanwhile};
	struct error err = {0};
	struct buf *b;

	CHECK_OK(get_as(sh, &f, SIZE, &b, &err));
	check_bytes(b, 8);
	/* Without a name it counts as ours. */
	CHECK(!is_mapped(b));
	buf_unref(b);
	CHECK_EQ_U(atomic_load(&heap), 0);
	CHECK_EQ_U(look().entries, 0);
	buf_unref(get(sh, 8));
	CHECK_EQ_U(look().entries, 1);
	CHECK_EQ_U(look().parts, 0);
	CHECK_EQ_U(counter_get(COUNT_SHARED_DAMAGED), 0);
	shared_close(sh);
	clear();
}
TEST(disturbed)
{
	disturbed_by(remove_all);
	disturbed_by(replace);
}

/* Somebody died over the ledger, or wrote to it: the sum is made anew. */
static void with_ledger(const void *bytes, size_t n, off_t at)
{
	struct shared *sh = open_store(MIB);
	struct shared_usage u;
	char path[128];
	int fd;

	buf_unref(get(sh, 1));
	snprintf(path, sizeof path, "%s/ledger", dir);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	CHECK_EQ_I(pwrite(fd, bytes, n, at), (ssize_t)n);
	CHECK(n > 8 || ftruncate(fd, at + 8) == 0);
	close(fd);
	buf_unref(get(sh, 2));
	shared_usage(sh, &u);
	CHECK_EQ_U(u.bytes, 2 * COST);
	CHECK_EQ_U(u.entries, 2);
	shared_close(sh);
	clear();
}
TEST(the_ledger_is_counted_anew)
{
	/* Behind eight bytes of magic: the mark, bytes, entries. */
	static const uint64_t died[3] = {1, 12345, 99};
	static const uint64_t junk[3] = {77, 77, 77};

	with_ledger(died, sizeof died, 8);
	with_ledger(junk, sizeof junk, 0);
	with_ledger(junk, 8, 0); /* and cut off there */
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
	uint64_t before;
	struct ledger l;

	for (uint64_t i = 0; i < 20; i++)
		held[i] = get(sh, i);
	CHECK(!shared_is_wanted(sh));
	before = shared_now();
	clock_stops(CLOCK_MONOTONIC, (int64_t)before);
	b = get(sh, 20);
	CHECK(!is_mapped(b));
	CHECK_EQ_U(look().bytes, LIMIT);
	CHECK_EQ_U(look().parts, 0);
	CHECK_EQ_U(counter_get(COUNT_SHARED_REFUSED), 1);
	ledger_read(sh, &l);
	CHECK(l.starved >= before);
	CHECK(shared_is_wanted(sh));
	buf_unref(b);
	CHECK_EQ_U(atomic_load(&heap), 0);
	buf_unref(held[7]);
	/* Nothing is tried for a while. */
	b = get(sh, 20);
	CHECK(!is_mapped(b));
	buf_unref(b);
	CHECK_EQ_U(counter_get(COUNT_SHARED_REFUSED), 2);
	ledger_read(sh, &l);
	CHECK(l.next_scan > before);
	CHECK(atomic_load(&sh->refuse_until) > before);
	clock_stops(
		CLOCK_MONOTONIC,
		(int64_t)max_u64(l.next_scan, atomic_load(&sh->refuse_until)));
	b = get(sh, 20);
	CHECK(is_mapped(b));
	clock_runs(CLOCK_MONOTONIC);
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

/* ---- places, and clearing them --------------------------------------------- */

TEST(places_that_are_refused)
{
	struct shared_options o = {
		.base = base, .size = MIB, .version = "test"};
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
	RUN(disturbed);
	RUN(the_ledger_is_counted_anew);
	RUN(old_ones_make_room);
	RUN(full_of_what_is_in_use);
	RUN(larger_than_all_of_it);
	RUN(looking_and_clearing);
	RUN(a_file_just_written_is_not_kept);
	tear_down();
	return test_done();
}
