/* SPDX-License-Identifier: BSD-2-Clause */
/* scan and feed: every entry, in order, with its bytes, whatever is done meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pack/feed.h"
#include "pack/scan_private.h"
#include "test.h"

static char base[] = "/tmp/pack-feed-XXXXXX";
static _Atomic int stop;

static void make_dir(const char *name)
{
	CHECK_EQ_I(mkdir(name, 0755), 0);
}

static unsigned char byte_of(uint64_t seed, uint64_t at)
{
	return (unsigned char)((at * 2654435761u + seed * 40503u) >> 7);
}

static void make_file(const char *name, uint64_t seed, size_t n)
{
	unsigned char *data = malloc(n + 1);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0 && data);
	for (size_t i = 0; i < n; i++)
		data[i] = byte_of(seed, i);
	CHECK_EQ_I(write(fd, data, n), (int64_t)n);
	close(fd);
	free(data);
}

static struct scan *scan(const struct scan_options *o)
{
	struct scan_options with = *o;
	struct error err = {0};
	struct scan *s;

	with.jobs = with.jobs ? with.jobs : 4;
	CHECK_OK(scan_new(&s, ".", &with, &stop, &err));
	return s;
}

static char *list_of(const struct scan *s)
{
	char *text = calloc(1, s->text.n + s->list.n + 1);

	for (size_t i = 0; i < s->list.n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, scan_path(s, i));
	}
	return text;
}

static void check_list(const struct scan_options *o, const char *want,
		       uint64_t problems)
{
	struct scan *s = scan(o);
	char *list = list_of(s);

	CHECK_STR(list, want);
	CHECK_EQ_U(s->n_problems, problems);
	free(list);
	scan_free(s);
}

static void make_tree(void)
{
	make_dir("a");
	make_dir("a/b");
	make_dir("c");
	make_file("a/x", 1, 10);
	make_file("a/b/y", 2, 20);
	make_file("a-", 3, 30);
	make_file("c/z", 4, 40);
	CHECK_EQ_I(link("a/x", "c/again"), 0);
	CHECK_EQ_I(symlink("../a", "c/link"), 0);
	CHECK_EQ_I(mkfifo("c/fifo", 0600), 0);
}

static const char *const all = "a a/b a/b/y a/x a- c c/again c/fifo c/link c/z";

TEST(sorts)
{
	check_list(&(struct scan_options){.jobs = 1}, all, 0);
	check_list(&(struct scan_options){.jobs = 8}, all, 0);
}

TEST(excludes)
{
	const char *const b[] = {"b", NULL}, *const z[] = {"*z", "c/l*", NULL};

	check_list(&(struct scan_options){.exclude = b},
		   "a a/x a- c c/again c/fifo c/link c/z", 0);
	check_list(&(struct scan_options){.exclude = z},
		   "a a/b a/b/y a/x a- c c/again c/fifo", 0);
}

TEST(takes_what_is_listed)
{
	const char *const one[] = {"./a//b/y", "c/z", "c/z", NULL};
	const char *const bad[] = {"c/link/x", "../a", "/etc/passwd",
				   "nowhere",  "a/b",  NULL};

	check_list(&(struct scan_options){.only = one}, "a a/b a/b/y c c/z", 0);
	check_list(&(struct scan_options){.only = bad}, "a a/b a/b/y c", 4);
}

/* As find says them, and in no order. */
TEST(takes_directories_and_what_is_in_them)
{
	const char *const some[] = {"a/b/y", "c/z", "a", "a/x", "a/b", NULL};
	const char *const every[] = {"c/z", ".", "a", "a/b/y", "c/link", NULL};
	const char *const bad[] = {"a",        "a/none", "a/x/y", "c/link",
				   "c/link/x", "c",      NULL};
	const char *const not [] = {"b", NULL};

	check_list(&(struct scan_options){.only = some},
		   "a a/b a/b/y a/x c c/z", 0);
	check_list(&(struct scan_options){.only = every}, all, 0);
	check_list(&(struct scan_options){.only = bad},
		   "a a/b a/b/y a/x c c/again c/fifo c/link c/z", 3);
	check_list(&(struct scan_options){.only = some, .exclude = not },
		   "a a/x c c/z", 0);
}

TEST(orders)
{
	const char *const first[] = {"c/z", "a/x", "./a/b/y",
				     "no",  "c/z", NULL};

	check_list(&(struct scan_options){.first = first},
		   "a a/b c c/z a/x a/b/y a- c/again c/fifo c/link", 1);
}

TEST(orders_what_is_in_directories)
{
	const char *const first[] = {"c//z", "./a/b/", "a", NULL};

	check_list(&(struct scan_options){.first = first},
		   "a a/b c c/z a/b/y a/x a- c/again c/fifo c/link", 0);
}

TEST(knows_names_of_one_file)
{
	struct scan *s = scan(&(struct scan_options){.jobs = 2});

	CHECK_STR(scan_path(s, 3), "a/x");
	CHECK_STR(scan_path(s, 6), "c/again");
	CHECK_EQ_U(s->list.at[6].same_as, 3);
	CHECK_EQ_U(s->list.at[3].same_as, 3);
	CHECK_EQ_U(s->bytes, 100);
	scan_free(s);
}

/* While it is listed, a file goes, and another one gets its number. */
TEST(numbers_alone_are_no_links)
{
	struct scan *s = scan(&(struct scan_options){.jobs = 1});
	struct error err = {0};

	s->list.at[6].ctime_ns ^= 1;
	CHECK_OK(scan_order(s, &(struct scan_options){0}, &err));
	CHECK_EQ_U(s->list.at[6].same_as, 6);
	scan_free(s);
}

/* More names than a bundle, for several threads. */
TEST(reads_a_large_directory)
{
	struct scan *s;

	make_dir("many");
	for (unsigned i = 0; i < 3000; i++) {
		char name[40];

		snprintf(name, sizeof name, "many/%04u", i);
		make_file(name, i, i % 7);
	}
	s = scan(&(struct scan_options){.jobs = 16});
	CHECK_EQ_U(s->list.n, 10 + 3001);
	for (unsigned i = 0; i < 3000; i++) {
		char name[40];

		snprintf(name, sizeof name, "many/%04u", i);
		CHECK_STR(scan_path(s, 11 + i), name);
		CHECK_EQ_U(s->list.at[11 + i].size, i % 7);
	}
	scan_free(s);
}

/* ---- feed ---------------------------------------------------------------- */

static struct feed_options plain(unsigned jobs, uint64_t memory)
{
	return (struct feed_options){.jobs = jobs,
				     .memory = memory,
				     .data = true,
				     .xattrs = true,
				     .uid = UINT32_MAX,
				     .gid = UINT32_MAX,
				     .mtime = INT64_MIN,
				     .mtime_most = INT64_MAX};
}

static void check_bytes(const struct feed_unit *u, int fd)
{
	unsigned char *want = calloc(1, u->size + 1);

	CHECK_EQ_I(pread(fd, want, u->size, (off_t)u->at), (int64_t)u->size);
	if (u->data)
		CHECK_MEM(u->data, want, u->size);
	for (uint64_t i = 0; !u->data && i < u->size; i++)
		CHECK_EQ_U(want[i], 0);
	free(want);
}

static void check_extents(const struct feed_unit *u, int fd)
{
	uint64_t end = 0;

	for (size_t i = 0; i < u->n_extents; i++) {
		const struct feed_extent *e = &u->extents[i];

		CHECK(e->len > 0 && e->at >= end);
		CHECK_EQ_I(lseek(fd, (off_t)e->at, SEEK_DATA), (int64_t)e->at);
		end = e->at + e->len;
	}
	CHECK(end <= u->attr.size);
}

/* Everything, compared with the files themselves. */
static void check_feed(unsigned jobs, uint64_t memory)
{
	struct scan *s = scan(&(struct scan_options){.jobs = 4});
	struct feed_options o = plain(jobs, memory);
	uint64_t entry = 0, at = 0;
	struct error err = {0};
	struct feed_unit u;
	struct feed *f;
	int r;

	CHECK_OK(feed_new(&f, s, ".", &o, &stop, &err));
	while ((r = feed_next(f, &u, &err)) > 0) {
		const struct scan_entry *e = &s->list.at[entry];

		CHECK_EQ_U(u.entry, entry);
		CHECK_STR(u.path, scan_path(s, entry));
		CHECK_EQ_U(u.at, at);
		CHECK_EQ_U(u.first, at == 0);
		CHECK_EQ_U(u.attr.mode, e->mode);
		if (S_ISLNK(e->mode))
			CHECK_STR(u.link, "../a");
		if (e->same_as != entry)
			CHECK_STR(u.same_as, scan_path(s, e->same_as));
		if (S_ISREG(e->mode) && !u.same_as) {
			int fd = open(u.path, O_RDONLY);

			CHECK_EQ_U(u.attr.size, e->size);
			check_bytes(&u, fd);
			if (u.first && u.sparse)
				check_extents(&u, fd);
			close(fd);
		}
		at += u.size;
		CHECK_EQ_U(u.last, u.same_as || at == u.attr.size);
		if (u.last) {
			entry++;
			at = 0;
		}
	}
	CHECK_EQ_I(r, 0);
	CHECK_EQ_U(entry, s->list.n);
	CHECK_EQ_U(s->n_problems, 0);
	feed_close(f);
	scan_free(s);
}

static void make_large(void)
{
	int fd;

	make_file("large", 9, (9 << 20) + 5);
	make_file("whole", 10, FEED_WHOLE);
	make_file("piece", 11, FEED_WHOLE + 1);
	make_file("empty", 12, 0);
	make_file("holes", 13, 5000);
	CHECK_EQ_I(truncate("holes", 13 << 20), 0);
	fd = open("holes", O_WRONLY);
	CHECK_EQ_I(pwrite(fd, "end", 3, 12 << 20), 3);
	close(fd);
	make_file("hollow", 14, 0);
	CHECK_EQ_I(truncate("hollow", 300000), 0);
}

TEST(gives_everything)
{
	make_large();
	check_feed(1, 0);
	check_feed(3, 8 << 20);
	check_feed(16, 1 << 30);
}

TEST(gives_attributes)
{
	struct scan *s;
	struct feed_options o = plain(2, 1 << 20);
	struct feed_unit u;
	struct error err = {0};
	struct feed *f;
	bool has = setxattr("a", "user.b", "2", 1, 0) == 0 &&
		   setxattr("a", "user.a", "one", 3, 0) == 0;
	struct timespec old[2] = {{-5, 7}, {-5, 7}},
			new[2] = {{99, 7}, {99, 7}};

	CHECK_EQ_I(utimensat(AT_FDCWD, "a-", old, 0), 0);
	CHECK_EQ_I(utimensat(AT_FDCWD, "a/x", new, 0), 0);
	s = scan(&(struct scan_options){.jobs = 1});
	o.uid = 7;
	o.mtime_most = 50;
	CHECK_OK(feed_new(&f, s, ".", &o, &stop, &err));
	while (feed_next(f, &u, &err) > 0) {
		CHECK_EQ_U(u.attr.uid, 7);
		CHECK_EQ_U(u.attr.gid, getgid());
		if (!strcmp(u.path, "a-")) {
			CHECK_EQ_I(u.attr.mtime, -5);
			CHECK_EQ_U(u.attr.mtime_ns, 7);
		} else {
			CHECK_EQ_I(u.attr.mtime, 50);
			CHECK_EQ_U(u.attr.mtime_ns, 0);
		}
		if (strcmp(u.path, "a") || !has)
			continue;
		CHECK_EQ_U(u.n_xattrs, 2);
		CHECK_STR(u.xattrs[0].name, "user.a");
		CHECK_MEM(u.xattrs[0].value, "one", 3);
		CHECK_EQ_U(u.xattrs[1].len, 1);
	}
	feed_close(f);
	scan_free(s);
}

/* A file whose attributes are changed between the questions, on file systems that have
 * more kinds of them: instead of those of libc. */
static const char *odd; /* what such a file is called; NULL: there is none */

static bool is_odd(int fd)
{
	char path[40], to[4096];
	ssize_t n;

	if (!odd)
		return false;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof to);
	return n > (ssize_t)strlen(odd) &&
	       !memcmp(to + n - strlen(odd), odd, strlen(odd));
}

ssize_t flistxattr(int fd, char *list, size_t n)
{
	static const char names[] = "lustre.lov\0user.tensorfs.source\0"
				    "user.grows\0user.lost";

	if (!is_odd(fd))
		return syscall(SYS_flistxattr, fd, list, n);
	if (n)
		memcpy(list, names, sizeof names);
	return sizeof names;
}

ssize_t fgetxattr(int fd, const char *name, void *value, size_t n)
{
	static bool asked;

	if (!is_odd(fd))
		return syscall(SYS_fgetxattr, fd, name, value, n);
	if (!strcmp(name, "user.lost"))
		return errno = EIO, -1;
	if (!strcmp(name, "user.grows") && !asked) {
		asked = true;
		return 0; /* it is empty, now */
	}
	if (n && n < 1000)
		return errno = ERANGE, -1;
	if (n)
		memset(value, 'x', 1000);
	return 1000;
}

TEST(attributes_that_change_are_said)
{
	struct scan *s;
	struct feed_options o = plain(1, 1 << 20);
	struct feed_unit u;
	struct error err = {0};
	struct feed *f;
	bool seen = false;

	make_file("odd-one", 1, 3);
	odd = "/odd-one";
	s = scan(&(struct scan_options){.jobs = 1});
	CHECK_OK(feed_new(&f, s, ".", &o, &stop, &err));
	while (feed_next(f, &u, &err) > 0) {
		if (strcmp(u.path, "odd-one"))
			continue;
		seen = true;
		CHECK_EQ_U(u.n_xattrs, 0);
		CHECK_EQ_U(u.size, 3);
	}
	CHECK(seen);
	CHECK_EQ_U(s->n_problems, 1);
	CHECK(strstr(s->problems.at, "odd-one: not all of its extended"));
	feed_close(f);
	scan_free(s);
	odd = NULL;
	CHECK_EQ_I(unlink("odd-one"), 0);
}

/* What happened between the scan and the reading is said, once for each file. */
TEST(notices_changes)
{
	struct scan *s = scan(&(struct scan_options){.jobs = 1});
	struct feed_options o = plain(2, 1 << 20);
	struct feed_unit u;
	struct error err = {0};
	struct feed *f;
	uint64_t large = 0;
	bool seen = false;

	CHECK_EQ_I(unlink("a-"), 0);
	CHECK_EQ_I(unlink("a/x"), 0); /* c/again is another name of it */
	CHECK_EQ_I(truncate("large", 5 << 20), 0);
	make_file("empty", 1, 100); /* no problem: it is read as it is */
	CHECK_EQ_I(unlink("c/link"), 0);
	make_dir("c/link");
	CHECK_OK(feed_new(&f, s, ".", &o, &stop, &err));
	while (feed_next(f, &u, &err) > 0) {
		CHECK(strcmp(u.path, "a-") && strcmp(u.path, "c/again") &&
		      strcmp(u.path, "c/link"));
		if (!strcmp(u.path, "large")) {
			CHECK_EQ_U(u.attr.size, (9 << 20) + 5);
			large += u.size;
		}
		if (!strcmp(u.path, "empty")) {
			CHECK_EQ_U(u.size, 100);
			seen = true;
		}
	}
	CHECK_EQ_U(large, (9 << 20) + 5);
	CHECK(seen);
	CHECK_EQ_U(s->n_problems, 5);
	feed_close(f);
	scan_free(s);
}

/* Whoever may write in the directory puts other files and links in the place of what was
 * listed: nothing from elsewhere comes in, and nothing gets the attributes of another. */
TEST(takes_nothing_from_elsewhere)
{
	struct scan *s;
	struct feed_options o = plain(2, 1 << 20);
	struct feed_unit u;
	struct error err = {0};
	struct feed *f;
	struct stat st;
	bool seen = false;

	make_dir("race");
	CHECK_EQ_I(chdir("race"), 0);
	make_dir("top");
	make_dir("top/sub");
	make_dir("else");
	make_file("else/secret", 1, 100);
	make_file("top/sub/secret", 2, 100);
	make_file("top/big", 3, FEED_WHOLE + 1);
	make_file("top/own", 4, 10);
	make_file("top/shared", 5, 10);
	CHECK_EQ_I(link("top/shared", "top/shared-too"), 0);
	CHECK_EQ_I(chdir("top"), 0);
	s = scan(&(struct scan_options){.jobs = 1});
	/* Another one's, as the scan has it. */
	for (size_t i = 0; i < s->list.n; i++)
		if (!strcmp(scan_path(s, i), "own"))
			s->list.at[i].uid = getuid() + 1;
	CHECK_EQ_I(rename("sub", "../sub"), 0);
	CHECK_EQ_I(symlink("../else", "sub"), 0);
	make_file("new", 6, FEED_WHOLE + 1);
	CHECK_EQ_I(rename("new", "big"), 0);
	make_file("new", 7, 10);
	CHECK_EQ_I(rename("new", "shared"), 0);
	make_file("new", 8, 10);
	CHECK_EQ_I(chmod("new", 04755), 0);
	CHECK_EQ_I(rename("new", "own"), 0);
	CHECK_OK(feed_new(&f, s, ".", &o, &stop, &err));
	while (feed_next(f, &u, &err) > 0) {
		CHECK(strcmp(u.path, "sub") && strcmp(u.path, "sub/secret") &&
		      strcmp(u.path, "big"));
		if (strcmp(u.path, "own"))
			continue;
		seen = true;
		CHECK_EQ_I(stat("own", &st), 0);
		CHECK_EQ_U(u.attr.mode, st.st_mode);
		CHECK_EQ_U(u.attr.uid, st.st_uid);
	}
	CHECK(seen);
	CHECK_EQ_U(s->n_problems, 4); /* "shared" is one of them */
	feed_close(f);
	scan_free(s);
	CHECK_EQ_I(chdir("../.."), 0);
}

TEST(stops)
{
	struct scan *s = scan(&(struct scan_options){.jobs = 1});
	struct feed_options o = plain(4, 1 << 20);
	struct feed_unit u;
	struct error err = {0};
	struct feed *f;

	CHECK_OK(feed_new(&f, s, ".", &o, &stop, &err));
	CHECK_EQ_I(feed_next(f, &u, &err), 1);
	stop = 2;
	while (feed_next(f, &u, &err) > 0)
		;
	CHECK_EQ_I(err.code, -EINTR);
	feed_close(f);
	scan_free(s);
	CHECK_EQ_I(scan_new(&s, ".", &(struct scan_options){.jobs = 2}, &stop,
			    &err),
		   -EINTR);
	stop = 0;
}

static int drop(const char *path, const struct stat *st, int flag,
		struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

int main(void)
{
	CHECK(mkdtemp(base) && chdir(base) == 0);
	make_tree();
	RUN(sorts);
	RUN(excludes);
	RUN(takes_what_is_listed);
	RUN(takes_directories_and_what_is_in_them);
	RUN(orders);
	RUN(orders_what_is_in_directories);
	RUN(knows_names_of_one_file);
	RUN(numbers_alone_are_no_links);
	RUN(reads_a_large_directory);
	RUN(gives_everything);
	RUN(gives_attributes);
	RUN(attributes_that_change_are_said);
	RUN(notices_changes);
	RUN(takes_nothing_from_elsewhere);
	RUN(stops);
	CHECK_EQ_I(chdir("/"), 0);
	nftw(base, drop, 16, FTW_DEPTH | FTW_PHYS);
	return test_done();
}
