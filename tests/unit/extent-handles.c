/* SPDX-License-Identifier: BSD-2-Clause */
/* Backing files: bounded descriptors, identity, failures that heal. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/counters.h"
#include "extent/file.h"
#include "extent/handles.h"
#include "clock.h"
#include "test.h"

#define FILES 100
#define LIMIT 8

static char dir[64];

static const char *in_dir(const char *name)
{
	static _Thread_local char path[4][128];
	static _Thread_local unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
	return path[turn];
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	fputs(text, f);
	CHECK_EQ_I(fclose(f), 0);
}

static struct handles *new_handles(unsigned limit)
{
	struct handles *h;
	struct error err;

	CHECK_OK(handles_new(&h, limit, 1, &err));
	return h;
}

static void expect_text(struct handles *h, uint32_t file, const char *text)
{
	struct error err;
	char got[64] = "";

	CHECK_OK(handles_read(h, file, 0, got, strlen(text), &err));
	CHECK_STR(got, text);
}

static void expect_error(struct handles *h, uint32_t file, int code,
			 const char *words)
{
	struct error err = {0, ""};
	struct handle pin;

	CHECK_EQ_I(handles_get(h, file, &pin, &err), code);
	CHECK_EQ_I(err.code, code);
	CHECK_EQ_I(pin.fd, -1);
	if (!strstr(err.text, words))
		CHECK_STR(err.text, words);
}

TEST(same_path_same_number)
{
	struct handles *h = new_handles(0);
	char path[64];
	unsigned i;

	for (i = 0; i < 20000; i++) {
		snprintf(path, sizeof path, "/nowhere/part-%u.h5", i);
		CHECK_EQ_U(handles_add(h, path), i);
	}
	for (i = 0; i < 20000; i += 7) {
		snprintf(path, sizeof path, "/nowhere/part-%u.h5", i);
		CHECK_EQ_U(handles_add(h, path), i);
		CHECK_STR(handles_path(h, i), path);
	}
	CHECK_EQ_U(handles_count(h), 20000);
	CHECK_STR(handles_path(h, 20000), "?");
	expect_error(h, 20000, -EIO, "no backing file number 20000");
	handles_free(h);
}

TEST(long_paths_are_shortened_in_sentences)
{
	struct handles *h = new_handles(0);
	char path[3000];

	memset(path, 'x', sizeof path);
	path[0] = '/';
	strcpy(path + sizeof path - 8, "/end.h5");
	expect_error(h, handles_add(h, path), -EIO, "xx/end.h5: ");
	handles_free(h);
}

static void make_files(struct handles *h)
{
	char name[32], text[32];
	unsigned i;

	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "f%03u", i);
		snprintf(text, sizeof text, "this is file %03u", i);
		write_file(in_dir(name), text);
		CHECK_EQ_U(handles_add(h, in_dir(name)), i);
	}
}

static void check_file(struct handles *h, unsigned i)
{
	char text[32];

	snprintf(text, sizeof text, "this is file %03u", i);
	expect_text(h, i, text);
}

TEST(few_descriptors_for_many_files)
{
	struct handles *h = new_handles(LIMIT);
	unsigned i, now, limit;
	uint64_t opened;

	make_files(h);
	opened = counter_get(COUNT_FILES_OPENED);
	for (i = 0; i < 3 * FILES; i++) {
		check_file(h, i * 37 % FILES);
		handles_usage(h, &now, &limit);
		CHECK_EQ_U(limit, LIMIT);
		CHECK(now <= LIMIT);
	}
	CHECK_EQ_U(counter_get(COUNT_FILES_OPENED) - opened, 3 * FILES);
	/* What fits stays open. */
	opened = counter_get(COUNT_FILES_OPENED);
	for (i = 0; i < 10 * LIMIT; i++)
		check_file(h, i % LIMIT);
	CHECK_EQ_U(counter_get(COUNT_FILES_OPENED) - opened, LIMIT);
	/* The least recently used goes first: file 0 was used again. */
	check_file(h, 0);
	check_file(h, FILES - 1);
	opened = counter_get(COUNT_FILES_OPENED);
	check_file(h, 0);
	CHECK_EQ_U(counter_get(COUNT_FILES_OPENED) - opened, 0);
	check_file(h, 1);
	CHECK_EQ_U(counter_get(COUNT_FILES_OPENED) - opened, 1);
	handles_free(h);
}

TEST(all_pinned_exceeds_the_limit_for_a_while)
{
	struct handles *h = new_handles(LIMIT);
	struct handle pin[FILES], again;
	struct error err;
	unsigned i, now, limit;

	make_files(h);
	for (i = 0; i < FILES; i++)
		CHECK_OK(handles_get(h, i, &pin[i], &err));
	CHECK_OK(handles_get(h, 5, &again, &err));
	CHECK_EQ_I(again.fd, pin[5].fd);
	handles_put(h, &again);
	handles_usage(h, &now, &limit);
	CHECK_EQ_U(now, FILES);
	for (i = 0; i < FILES; i++) {
		CHECK(fcntl(pin[i].fd, F_GETFD) == FD_CLOEXEC);
		handles_put(h, &pin[i]);
	}
	handles_usage(h, &now, &limit);
	CHECK_EQ_U(now, LIMIT);
	handles_free(h);
}

TEST(out_of_descriptors_closes_idle_ones)
{
	struct handles *h = new_handles(1000);
	struct rlimit old, few;
	unsigned i;

	make_files(h);
	CHECK_EQ_I(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 24;
	CHECK_EQ_I(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (i = 0; i < FILES; i++)
		check_file(h, i);
	CHECK_EQ_I(setrlimit(RLIMIT_NOFILE, &old), 0);
	handles_free(h);
}

TEST(out_of_descriptors_with_all_pinned_says_so)
{
	struct handles *h = new_handles(1000);
	struct handle pin[FILES];
	struct error err;
	struct rlimit old, few;
	unsigned n = 0;
	int r = 0;

	make_files(h);
	CHECK_EQ_I(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 24;
	CHECK_EQ_I(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < FILES && (r = handles_get(h, n, &pin[n], &err)) == 0)
		n++;
	CHECK_EQ_I(setrlimit(RLIMIT_NOFILE, &old), 0);
	CHECK_EQ_I(r, -EIO);
	CHECK_EQ_I(err.code, -EIO);
	CHECK(strstr(err.text, "too many open files"));
	check_file(h, n); /* the failure is not remembered */
	while (n > 0)
		handles_put(h, &pin[--n]);
	handles_free(h);
}

TEST(default_limit_follows_rlimit)
{
	struct rlimit old, few;
	unsigned now, limit;
	struct handles *h;
	struct error err;

	CHECK_EQ_I(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 100;
	CHECK_EQ_I(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_OK(handles_new(&h, 0, 4, &err));
	handles_usage(h, &now, &limit);
	CHECK_EQ_U(limit, 100 - 16 - 24);
	handles_free(h);
	CHECK_OK(handles_new(&h, 0, 1000, &err));
	handles_usage(h, &now, &limit);
	CHECK_EQ_U(limit, 4);
	handles_free(h);
	CHECK_EQ_I(setrlimit(RLIMIT_NOFILE, &old), 0);
}

TEST(a_missing_file_may_appear)
{
	struct handles *h = new_handles(LIMIT);
	uint32_t f = handles_add(h, in_dir("later"));
	uint32_t g = handles_add(h, in_dir("no-dir/later"));
	unsigned now, limit;
	struct error err;
	struct stat st;

	expect_error(h, f, -ENODATA, "/later is missing");
	expect_error(h, g, -ENODATA, "no-dir/later is missing");
	CHECK_EQ_I(handles_probe(h, f, &st, &err), -ENODATA);
	handles_usage(h, &now, &limit);
	CHECK_EQ_U(now, 0);
	write_file(in_dir("later"), "here");
	expect_text(h, f, "here");
	CHECK_OK(handles_probe(h, f, &st, &err));
	CHECK_EQ_I(st.st_size, 4);
	handles_free(h);
}

TEST(only_regular_files)
{
	struct handles *h = new_handles(LIMIT);
	struct error err;
	struct stat st;
	uint32_t f;

	CHECK_EQ_I(mkfifo(in_dir("fifo"), 0600), 0);
	CHECK_EQ_I(mkdir(in_dir("sub"), 0700), 0);
	expect_error(h, handles_add(h, in_dir("fifo")), -EIO, "is a FIFO");
	expect_error(h, handles_add(h, in_dir("sub")), -EIO, "is a directory");
	expect_error(h, handles_add(h, "/dev/zero"), -EIO, "is a device");
	CHECK_EQ_I(handles_probe(h, handles_add(h, "/dev/zero"), &st, &err),
		   -EIO);
	CHECK_EQ_I(symlink("self", in_dir("self")), 0);
	expect_error(h, handles_add(h, in_dir("self")), -EIO, "self: ");
	write_file(in_dir("real"), "through a link");
	CHECK_EQ_I(symlink("real", in_dir("alias")), 0);
	f = handles_add(h, in_dir("alias"));
	expect_text(h, f, "through a link");
	if (geteuid() != 0) {
		CHECK_EQ_I(chmod(in_dir("real"), 0), 0);
		f = handles_add(h, in_dir("real"));
		expect_error(h, f, -EIO, "permission denied");
	}
	handles_free(h);
}

TEST(writes_are_noticed)
{
	struct handles *h = new_handles(LIMIT);
	uint32_t f = handles_add(h, in_dir("shrink"));
	uint32_t g = handles_add(h, in_dir("touch"));
	struct handle pin;
	struct error err;

	write_file(in_dir("shrink"), "0123456789");
	write_file(in_dir("touch"), "abc");
	expect_text(h, f, "0123456789");
	expect_text(h, g, "abc");
	CHECK_OK(handles_get(h, f, &pin, &err));
	CHECK_EQ_U(pin.size, 10);
	CHECK_OK(handles_check(h, &pin, &err));
	clock_of_files_ticks(in_dir("tick"));
	CHECK_EQ_I(truncate(in_dir("shrink"), 4), 0);
	write_file(in_dir("touch"), "xyz");
	CHECK_EQ_I(handles_check(h, &pin, &err), -ESTALE);
	CHECK(strstr(err.text, "10 bytes then, 4 now"));
	handles_put(h, &pin);
	expect_error(h, f, -ESTALE, "changed since it was first read");
	expect_error(h, g, -ESTALE, "it was written to");
	handles_free(h);
}

/* Somebody was told its size before it was opened. */
TEST(what_was_expected_is_compared)
{
	struct handles *h = new_handles(1);
	uint32_t f = handles_add(h, in_dir("listed"));
	struct identity id;
	const char *path;
	struct stat st;

	write_file(in_dir("listed"), "short");
	CHECK_EQ_I(stat(in_dir("listed"), &st), 0);
	handles_expect(h, f, &st);
	CHECK(!handles_known(h, f, &path, &id));
	write_file(in_dir("listed"), "longer");
	expect_error(h, f, -ESTALE, "changed");
	CHECK(!handles_known(h, f, &path, &id));
	CHECK_EQ_I(stat(in_dir("listed"), &st), 0);
	handles_free(h);

	h = new_handles(1);
	f = handles_add(h, in_dir("listed"));
	handles_expect(h, f, &st);
	expect_text(h, f, "longer");
	CHECK(handles_known(h, f, &path, &id));
	handles_free(h);
}

/* Also when the descriptor was closed in between. */
TEST(identity_outlives_the_descriptor)
{
	struct handles *h = new_handles(1);
	uint32_t f = handles_add(h, in_dir("first"));
	uint32_t g = handles_add(h, in_dir("second"));

	write_file(in_dir("first"), "first");
	write_file(in_dir("second"), "second");
	expect_text(h, f, "first");
	expect_text(h, g, "second");
	clock_of_files_ticks(in_dir("tick"));
	write_file(in_dir("other"), "FIRST");
	CHECK_EQ_I(rename(in_dir("first"), in_dir("kept")), 0);
	CHECK_EQ_I(rename(in_dir("other"), in_dir("first")), 0);
	expect_error(h, f, -ESTALE, "another file took its place");
	CHECK_EQ_I(rename(in_dir("kept"), in_dir("first")), 0);
	expect_text(h, f, "first");
	handles_free(h);
}

TEST(replacement_behind_an_open_descriptor_is_noticed)
{
	struct handles *h = new_handles(LIMIT);
	uint32_t f = handles_add(h, in_dir("one"));
	struct handle pin;
	struct error err;

	write_file(in_dir("one"), "one");
	CHECK_OK(handles_get(h, f, &pin, &err));
	write_file(in_dir("two"), "two");
	CHECK_EQ_I(rename(in_dir("one"), in_dir("zero")), 0);
	CHECK_EQ_I(rename(in_dir("two"), in_dir("one")), 0);
	clock_forward(CLOCK_MONOTONIC_COARSE,
		      1100); /* it looks once a second */
	CHECK_EQ_I(handles_check(h, &pin, &err), -ESTALE);
	/* Not only once a second from now on. */
	expect_error(h, f, -ESTALE, "another file took its place");
	/* Nothing took its place: the open descriptor is as good as before. */
	CHECK_EQ_I(unlink(in_dir("one")), 0);
	expect_text(h, f, "one");
	CHECK_EQ_I(rename(in_dir("zero"), in_dir("one")), 0);
	expect_text(h, f, "one");
	handles_put(h, &pin);
	handles_free(h);
}

TEST(reads_are_whole_or_fail)
{
	struct handles *h = new_handles(LIMIT);
	uint32_t f = handles_add(h, in_dir("short"));
	struct error err;
	char buf[16];

	write_file(in_dir("short"), "0123456789");
	CHECK_OK(handles_read(h, f, 3, buf, 7, &err));
	CHECK_MEM(buf, "3456789", 7);
	CHECK_OK(handles_read(h, f, 10, buf, 0, &err));
	CHECK_EQ_I(handles_read(h, f, 3, buf, 8, &err), -EIO);
	CHECK(strstr(err.text, "(10 bytes): truncated?"));
	CHECK_EQ_I(handles_read(h, f, UINT64_MAX - 2, buf, 8, &err), -EIO);
	CHECK_EQ_I(handles_read(h, f, 11, buf, 0, NULL), -EIO);
	handles_free(h);
}

TEST(relative_paths_survive_chdir)
{
	struct handles *h = new_handles(LIMIT);
	char before[4096];
	uint32_t f;

	CHECK(getcwd(before, sizeof before));
	write_file(in_dir("rel"), "relative");
	CHECK_EQ_I(chdir(dir), 0);
	f = handles_add(h, "rel");
	CHECK_EQ_I(chdir("/"), 0);
	expect_text(h, f, "relative");
	CHECK_EQ_I(chdir(before), 0);
	handles_free(h);
}

#define THREADS 8
#define ROUNDS 4000
static void *hammer(void *arg)
{
	struct handles *h = arg;
	unsigned seed = (unsigned)(uintptr_t)&seed ^ (unsigned)time(NULL), i;

	for (i = 0; i < ROUNDS; i++) {
		struct handle a, b;
		struct error err;
		char got[4] = "", want[4];
		unsigned n = (unsigned)rand_r(&seed) % FILES;
		unsigned m = (unsigned)rand_r(&seed) % 12;

		CHECK_OK(handles_get(h, n, &a, &err));
		CHECK_OK(handles_get(h, m, &b, &err));
		CHECK_EQ_I(pread(a.fd, got, 3, 13), 3);
		snprintf(want, sizeof want, "%03u", n);
		CHECK_STR(got, want);
		CHECK_OK(handles_check(h, &a, &err));
		handles_put(h, &a);
		check_file(h, m);
		handles_put(h, &b);
	}
	return NULL;
}

TEST(threads_share_the_table)
{
	struct handles *h = new_handles(LIMIT);
	pthread_t t[THREADS];
	unsigned i, now, limit;

	make_files(h);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ_I(pthread_create(&t[i], NULL, hammer, h), 0);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ_I(pthread_join(t[i], NULL), 0);
	handles_usage(h, &now, &limit);
	CHECK(now <= LIMIT);
	handles_free(h);
}

TEST(several_files_are_one)
{
	struct handles *h = new_handles(0);
	struct handles_piece p[3] = {{0, 4, 0}, {4, 3, 0}, {100, 5, 0}}, at;
	const char *names[] = {"j0", "j1", "j2"};
	const char *texts[] = {"abcd", "efg", "vwxyz"};
	struct error err = {0, ""};
	struct stat st;
	uint64_t pos = 5;
	uint32_t all, file;
	char got[8] = "";

	for (int i = 0; i < 3; i++) {
		write_file(in_dir(names[i]), texts[i]);
		p[i].file = handles_add(h, in_dir(names[i]));
	}
	all = handles_add_joined(h, in_dir("j0 + j1 + j2"), p, 3);
	CHECK(all != UINT32_MAX && handles_is_joined(h, all));
	CHECK(!handles_is_joined(h, p[0].file));
	expect_text(h, all, "abcdefg");
	CHECK_OK(handles_read(h, all, 2, got, 4, &err));
	CHECK_STR(got, "cdef");
	CHECK_OK(handles_read(h, all, 101, got, 4, &err));
	CHECK_STR(got, "wxyz");
	/* Between pieces, behind them, and across a gap. */
	CHECK_EQ_I(handles_read(h, all, 7, got, 1, &err), -EIO);
	CHECK_EQ_I(handles_read(h, all, 105, got, 1, &err), -EIO);
	CHECK_EQ_I(handles_read(h, all, 6, got, 2, &err), -EIO);
	file = all;
	CHECK(handles_in_one(h, &file, &pos, 2));
	CHECK(file == p[1].file && pos == 1);
	file = all;
	pos = 3;
	CHECK(!handles_in_one(h, &file, &pos, 2));
	CHECK(file == all && pos == 3);
	CHECK(handles_piece_at(h, all, 102, &at));
	CHECK_EQ_I(at.file, p[2].file);
	CHECK_OK(handles_probe(h, all, &st, &err));
	CHECK_EQ_I(unlink(in_dir("j1")), 0);
	CHECK_EQ_I(handles_probe(h, all, &st, &err), -ENODATA);
	handles_free(h);
}

static void remove_dir(void)
{
	char command[96];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	if (system(command) != 0)
		fprintf(stderr, "%s stays behind\n", dir);
}

/* Equal bytes under two tags are two rows, and each name leads to its own again. */
static void test_tags_make_rows_of_equal_pieces(void)
{
	struct handles *h = new_handles(LIMIT);
	uint32_t all, plain, one, two;
	uint64_t tag = 7;

	write_file(in_dir("tagged"), "0123456789");
	all = handles_add(h, in_dir("tagged"));
	plain = handles_add_part(h, all, 2, 3);
	one = handles_add_tagged(h, all, 2, 3, 0);
	two = handles_add_tagged(h, all, 2, 3, UINT64_MAX);
	CHECK(plain != one && plain != two && one != two);
	CHECK(handles_add_tagged(h, all, 2, 3, 0) == one);
	CHECK(handles_add(h, handles_path(h, two)) == two);
	expect_text(h, plain, "234");
	expect_text(h, one, "234");
	expect_text(h, two, "234");
	CHECK(!handles_tag(h, plain, &tag) && !handles_tag(h, all, &tag));
	CHECK_EQ_I(tag, 7);
	CHECK(handles_tag(h, one, &tag) && !tag);
	CHECK(handles_tag(h, two, &tag) && tag == UINT64_MAX);
	CHECK(handles_add_tagged(h, one, 0, 1, 0) == UINT32_MAX);
	handles_free(h);
}

int main(void)
{
	strcpy(dir, "/tmp/extent-handles.XXXXXX");
	CHECK(mkdtemp(dir));
	atexit(remove_dir);
	RUN(same_path_same_number);
	RUN(long_paths_are_shortened_in_sentences);
	RUN(few_descriptors_for_many_files);
	RUN(all_pinned_exceeds_the_limit_for_a_while);
	RUN(out_of_descriptors_closes_idle_ones);
	RUN(out_of_descriptors_with_all_pinned_says_so);
	RUN(default_limit_follows_rlimit);
	RUN(a_missing_file_may_appear);
	RUN(only_regular_files);
	RUN(writes_are_noticed);
	RUN(what_was_expected_is_compared);
	RUN(identity_outlives_the_descriptor);
	RUN(replacement_behind_an_open_descriptor_is_noticed);
	RUN(reads_are_whole_or_fail);
	RUN(relative_paths_survive_chdir);
	RUN(threads_share_the_table);
	RUN(several_files_are_one);
	RUN(tags_make_rows_of_equal_pieces);
	return test_done();
}
