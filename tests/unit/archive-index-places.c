/* SPDX-License-Identifier: BSD-2-Clause */
/* Where index files go, who may read them, and several who write at once. */
#include <signal.h>
#include <sys/resource.h>

#include "index_fake.h"

#define INDEX "a.tar.tfsidx"

/* Run `fn` in a process of its own, without root's powers; its exit status. */
static int as_nobody(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 &&
		    (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(99);
		_exit(fn());
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Save and load; where it went, malloc'ed, or NULL: it could not be saved. */
static char *saved_at(const struct index_options *o)
{
	struct index_section s[FAKE_SECTIONS];
	unsigned n = fake_sections(s);
	struct index *x;
	struct fake f;
	char *path;

	fake_open(&f);
	if (index_save(&f.key, o, s, n, &path, NULL) == 0) {
		CHECK_OK(index_load(&f.key, o, FAKE_LAZY, &x, NULL));
		fake_check(x);
		CHECK_STR(index_path(x), path);
		index_free(x);
	}
	fake_close(&f);
	return path;
}

static bool under(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return path && !strncmp(path, dir, n) && path[n] == '/';
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	CHECK(stat(path, &st) == 0);
	return st.st_mode & 07777;
}

/* ---- the cache ----------------------------------------------------------- */

static int goes_to_cache(void)
{
	char path[700], *at = saved_at(NULL);

	snprintf(path, sizeof path, "%s/tensorfs", fake_cache);
	CHECK(under(at, path));
	CHECK(strstr(at, "/a.tar-") && strstr(at, ".tfsidx"));
	CHECK_EQ_U(count_entries(path), 1);
	CHECK_EQ_U(mode_of(path), 0700);
	CHECK_EQ_U(mode_of(fake_cache), 0700);
	CHECK_EQ_U(mode_of(at), 0600);
	/* One that is beside the source again, but no longer right: the other is
	 * still found. */
	free(at);
	return 0;
}

static void forget_cache(void)
{
	char command[700];

	snprintf(command, sizeof command, "rm -rf '%s'", fake_cache);
	CHECK(system(command) == 0);
}

TEST(read_only_directory)
{
	char *slash = strrchr(fake_dir, '/');

	CHECK(chmod(".", 0555) == 0);
	CHECK(chmod("a.tar", 0644) == 0);
	*slash = 0;
	CHECK(chmod(fake_dir, 0777) == 0);
	*slash = '/';
	/* Mode 0600: the group of the source is another. */
	umask(077);
	CHECK_EQ_I(as_nobody(goes_to_cache), 0);
	umask(022);
	CHECK(chmod(".", 0755) == 0);
	CHECK_EQ_U(count_entries("."), 1);
	forget_cache();
}

/* A damaged or stale one beside the source, which stays, does not hide the other. */
static int finds_the_other(void)
{
	char *at = saved_at(NULL);

	CHECK(under(at, fake_cache));
	free(at);
	return 0;
}
TEST(two_places)
{
	struct error err;
	char *slash = strrchr(fake_dir, '/');

	write_file(INDEX, "not an index", 12);
	CHECK_EQ_I(fake_load_said(NULL, &err), -EBADMSG);
	CHECK(strstr(err.text, INDEX));
	CHECK(chmod(".", 0555) == 0);
	*slash = 0;
	CHECK(chmod(fake_dir, 0777) == 0);
	*slash = '/';
	CHECK_EQ_I(as_nobody(finds_the_other), 0);
	CHECK(chmod(".", 0755) == 0);
	forget_cache();
	/* Where it can be written it is replaced. */
	fake_save(NULL);
	CHECK_OK(fake_load());
	CHECK_EQ_U(count_entries("."), 2);
	CHECK(unlink(INDEX) == 0);
}

static int goes_nowhere(void)
{
	struct error err;
	struct fake f;

	CHECK(setenv("XDG_CACHE_HOME", "relative", 1) == 0);
	CHECK(unsetenv("HOME") == 0);
	CHECK(!saved_at(NULL));
	fake_open(&f);
	CHECK_EQ_I(index_save(&f.key, NULL, NULL, 0, NULL, &err), -EACCES);
	CHECK(strstr(err.text, "cannot save an index in ."));
	CHECK_EQ_I(err.code, -EACCES);
	fake_close(&f);
	/* A cache that cannot be made either: both are said. */
	CHECK(setenv("XDG_CACHE_HOME", "/dev/null/x", 1) == 0);
	fake_open(&f);
	CHECK(index_save(&f.key, NULL, NULL, 0, NULL, &err) < 0);
	CHECK(strstr(err.text, "; /dev/null/x/tensorfs"));
	fake_close(&f);
	return 0;
}
static int goes_home(void)
{
	char path[700], *at;

	CHECK(setenv("XDG_CACHE_HOME", "relative", 1) == 0);
	CHECK(mkdir(fake_cache, 0700) == 0);
	CHECK(setenv("HOME", fake_cache, 1) == 0);
	at = saved_at(NULL);
	snprintf(path, sizeof path, "%s/.cache/tensorfs", fake_cache);
	CHECK(under(at, path));
	free(at);
	return 0;
}
TEST(relative_cache)
{
	CHECK(chmod(".", 0555) == 0);
	CHECK_EQ_I(as_nobody(goes_nowhere), 0);
	CHECK_EQ_I(as_nobody(goes_home), 0);
	CHECK(chmod(".", 0755) == 0);
	CHECK_EQ_U(count_entries("."), 1);
	forget_cache();
}

/* ---- where it was asked for ---------------------------------------------- */

TEST(asked)
{
	struct index_options o = {.where = "x.idx"};
	struct error err;
	struct fake f;
	char *at;

	at = saved_at(&o);
	CHECK_STR(at, "./x.idx");
	free(at);
	CHECK_EQ_I(fake_load(), -ENOENT);
	CHECK(mkdir("d", 0755) == 0);
	for (int i = 0; i < 2; i++) {
		o.where = i ? "d/" : "d";
		at = saved_at(&o);
		CHECK(under(at, "d") && strstr(at, "/a.tar-"));
		free(at);
	}
	CHECK_EQ_U(count_entries("d"), 1);
	fake_open(&f);
	o.where = "e/x.idx";
	CHECK_EQ_I(index_save(&f.key, &o, NULL, 0, NULL, &err), -ENOENT);
	CHECK(strstr(err.text, "e:"));
	o.where = "e/";
	CHECK_EQ_I(index_save(&f.key, &o, NULL, 0, NULL, &err), -ENOENT);
	o.where = "";
	CHECK_EQ_I(index_save(&f.key, &o, NULL, 0, NULL, &err), -ENOENT);
	/* By mistake: the source itself. */
	o.where = "a.tar";
	CHECK_EQ_I(index_save(&f.key, &o, NULL, 0, NULL, &err), -EEXIST);
	CHECK(strstr(err.text, "a.tar"));
	CHECK(symlink("a.tar", "link") == 0);
	o.where = "link";
	CHECK_EQ_I(index_save(&f.key, &o, NULL, 0, NULL, &err), -EEXIST);
	write_file("empty", "", 0);
	o.where = "empty";
	CHECK_OK(index_save(&f.key, &o, NULL, 0, NULL, &err));
	CHECK_OK(index_save(&f.key, &o, NULL, 0, NULL, &err));
	fake_close(&f);
	CHECK(system("rm -r x.idx link empty d") == 0);
	CHECK_EQ_U(count_entries("."), 1);
}

/* Names of 255 bytes: no room for a suffix. */
TEST(long_name)
{
	struct index_section s[FAKE_SECTIONS];
	unsigned n = fake_sections(s);
	char name[256], *path;
	struct index *x;
	struct fake f;

	for (unsigned i = 0; i < 255; i++)
		name[i] = "\xc3\xa4"[i % 2];
	name[255] = 0;
	fake_source(name);
	fake_open_at(&f, name, 0);
	CHECK_OK(index_save(&f.key, NULL, s, n, &path, NULL));
	CHECK(under(path, fake_cache));
	CHECK(strstr(path, "\xc3\xa4-"));
	CHECK_OK(index_load(&f.key, NULL, FAKE_LAZY, &x, NULL));
	index_free(x);
	fake_close(&f);
	free(path);
	CHECK(unlink(name) == 0);
	CHECK_EQ_U(count_entries("."), 1);
	forget_cache();
}

/* ---- planted things ------------------------------------------------------ */

TEST(planted_symlink)
{
	struct stat st;
	unsigned char *p;
	size_t n;

	write_file("victim", "precious", 8);
	CHECK(symlink("victim", INDEX) == 0);
	CHECK_EQ_I(fake_load(), -EBADMSG);
	fake_save(NULL);
	CHECK_OK(fake_load());
	CHECK(lstat(INDEX, &st) == 0 && S_ISREG(st.st_mode));
	p = read_file("victim", &n);
	CHECK(n == 8 && !memcmp(p, "precious", 8));
	free(p);
	CHECK(unlink(INDEX) == 0);
	/* One that leads nowhere is not what makes a file there. */
	CHECK(symlink("nowhere", INDEX) == 0);
	CHECK_EQ_I(fake_load(), -ENOENT);
	fake_save(NULL);
	CHECK(lstat("nowhere", &st) < 0);
	CHECK(unlink(INDEX) == 0 && unlink("victim") == 0);
}

TEST(planted_others)
{
	struct error err;
	char *at;

	CHECK(mkfifo(INDEX, 0666) == 0);
	CHECK_EQ_I(fake_load_said(NULL, &err), -EIO);
	CHECK(strstr(err.text, "FIFO"));
	CHECK(unlink(INDEX) == 0);
	CHECK(symlink("/dev/zero", INDEX) == 0);
	CHECK_EQ_I(fake_load_said(NULL, &err), -EIO);
	CHECK(unlink(INDEX) == 0);
	/* A directory cannot be replaced: the cache has it then. */
	CHECK(mkdir(INDEX, 0755) == 0);
	CHECK_EQ_I(fake_load_said(NULL, &err), -EIO);
	at = saved_at(NULL);
	CHECK(under(at, fake_cache));
	free(at);
	CHECK(rmdir(INDEX) == 0);
	CHECK_EQ_U(count_entries("."), 1);
	forget_cache();
}

/* A huge file that is nothing but a hole, and one of a huge size within. */
TEST(huge)
{
	struct index_head head;
	struct error err;
	int fd;

	fake_save(NULL);
	fd = open(INDEX, O_RDWR);
	CHECK(fd >= 0);
	CHECK(pread(fd, &head, sizeof head, 0) == sizeof head);
	head.table[head.n - 1].size = UINT64_C(1) << 42;
	head.table[head.n - 1].flags = INDEX_LAZY;
	head.size = head.table[head.n - 1].off + (UINT64_C(1) << 42);
	head.sum = index_head_sum(&head);
	CHECK(pwrite(fd, &head, sizeof head, 0) == sizeof head);
	if (ftruncate(fd, (off_t)head.size) == 0) {
		struct index_options o = {.where = NULL};
		struct index *x;
		struct fake f;

		fake_open(&f);
		CHECK_EQ_I(index_load(&f.key, &o, UINT64_MAX, &x, &err),
			   -ENOMEM);
		/* Not read, nobody knows what is in it. */
		CHECK_OK(index_load(&f.key, &o, FAKE_LAZY, &x, &err));
		index_free(x);
		fake_close(&f);
	}
	close(fd);
	CHECK(unlink(INDEX) == 0);
}

/* ---- who may read -------------------------------------------------------- */

TEST(modes)
{
	static const struct {
		mode_t source, mask, index;
	} cases[] = {{0644, 022, 0644}, {0644, 077, 0600}, {0640, 022, 0640},
		     {0600, 022, 0600}, {0400, 022, 0600}, {0444, 022, 0644},
		     {0755, 022, 0644}, {0666, 002, 0664}, {0604, 022, 0604},
		     {0666, 000, 0666}};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(chmod("a.tar", cases[i].source) == 0);
		umask(cases[i].mask);
		fake_save(NULL);
		CHECK_EQ_U(mode_of(INDEX), cases[i].index);
	}
	umask(022);
	CHECK(chmod("a.tar", 0644) == 0);
	CHECK(unlink(INDEX) == 0);
}

/* Who can write beside the source may not be who the source is of. */
TEST(of_somebody_else)
{
	struct error err;

	if (geteuid() != 0)
		return; /* only root gives files away */
	fake_save(NULL);
	CHECK(chown(INDEX, 12345, 12345) == 0);
	CHECK_EQ_I(fake_load_said(NULL, &err), -EINVAL);
	CHECK(strstr(err.text, "another user"));
	CHECK(chown("a.tar", 12345, (gid_t)-1) == 0);
	CHECK_OK(fake_load());
	CHECK(chown("a.tar", 0, (gid_t)-1) == 0);
	CHECK(unlink(INDEX) == 0);
}

/* The source belongs to a group that the writer is not in. */
static int is_not_shown_to_a_group(void)
{
	fake_save(NULL);
	CHECK_EQ_U(mode_of(INDEX), 0600);
	CHECK(unlink(INDEX) == 0);
	return 0;
}
TEST(other_group)
{
	if (geteuid() != 0)
		return;
	CHECK(chown("a.tar", 65534, 0) == 0 && chmod("a.tar", 0640) == 0);
	CHECK(chmod(".", 0777) == 0);
	CHECK_EQ_I(as_nobody(is_not_shown_to_a_group), 0);
	/* But root can give it to the group. */
	CHECK(chown("a.tar", 0, 65534) == 0);
	fake_save(NULL);
	CHECK_EQ_U(mode_of(INDEX), 0640);
	CHECK(chmod(".", 0755) == 0);
	CHECK(chown("a.tar", 0, 0) == 0 && chmod("a.tar", 0644) == 0);
	CHECK(unlink(INDEX) == 0);
}

/* ---- what can go wrong while writing ------------------------------------- */

static int cannot_write_much(void)
{
	struct rlimit some = {50000, 50000};
	struct index_section s[FAKE_SECTIONS];
	unsigned n = fake_sections(s);
	struct error err;
	struct fake f;

	signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &some) == 0);
	fake_open(&f);
	CHECK_EQ_I(index_save(&f.key, NULL, s, n, NULL, &err), -EFBIG);
	CHECK(strstr(err.text, "cannot save an index in .: "));
	fake_close(&f);
	return 0;
}
TEST(full_disk)
{
	char path[700];

	fake_save(NULL);
	CHECK(chmod(".", 0777) == 0);
	CHECK_EQ_I(as_nobody(cannot_write_much), 0);
	CHECK(chmod(".", 0755) == 0);
	/* The one that was there is still whole. */
	CHECK_OK(fake_load());
	CHECK_EQ_U(count_entries("."), 2);
	snprintf(path, sizeof path, "%s/tensorfs", fake_cache);
	CHECK_EQ_U(count_entries(path), 0);
	CHECK(unlink(INDEX) == 0);
	forget_cache();
}

/* A blob that cannot be read is no reason to leave half a file. */
TEST(bad_blob)
{
	struct index_section s = {1, NULL, 1000, NULL};
	struct error err;
	struct blob *b;
	struct fake f;

	CHECK_OK(blob_of_memory(&b, "abc", 3, NULL));
	s.blob = b;
	fake_open(&f);
	CHECK(index_save(&f.key, NULL, &s, 1, NULL, &err) < 0);
	CHECK(*err.text);
	fake_close(&f);
	blob_free(b);
	CHECK_EQ_U(count_entries("."), 1);
	forget_cache();
}

static void save_for_ever(void)
{
	for (;;)
		fake_save(NULL);
}

/* Two write, one reads: there is a whole index or none.  Then the writers are
 * killed in the middle of something, again and again. */
TEST(several_at_once)
{
	pid_t pid[2];
	unsigned whole = 0;

	fflush(NULL);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 2; i++) {
			pid[i] = fork();
			CHECK(pid[i] >= 0);
			if (pid[i] == 0) {
				save_for_ever();
				_exit(1);
			}
		}
		unsigned looks = 20 + test_random() % 20, seen = 0;

		for (unsigned k = 0; k < looks || (!seen && k < 1000000); k++) {
			int r = fake_load();

			CHECK(r == 0 || r == -ENOENT);
			seen += r == 0;
		}
		whole += seen > 0;
		for (unsigned i = 0; i < 2; i++)
			kill(pid[i], SIGKILL);
		for (unsigned i = 0; i < 2; i++)
			CHECK(waitpid(pid[i], NULL, 0) == pid[i]);
		CHECK(fake_load() != -EBADMSG);
		if (round % 2)
			(void)unlink(INDEX);
	}
	CHECK(whole > 10);
	/* What is left of them, at most, has a hidden name; nobody loads it. */
	CHECK(system("rm -f .tfsidx-*") == 0);
	fake_save(NULL);
	CHECK_OK(fake_load());
	CHECK_EQ_U(count_entries("."), 2);
	CHECK(unlink(INDEX) == 0);
}

int main(void)
{
	umask(022);
	fake_begin();
	RUN(read_only_directory);
	RUN(two_places);
	RUN(relative_cache);
	RUN(asked);
	RUN(long_name);
	RUN(planted_symlink);
	RUN(planted_others);
	RUN(huge);
	RUN(modes);
	RUN(of_somebody_else);
	RUN(other_group);
	RUN(full_disk);
	RUN(bad_blob);
	RUN(several_at_once);
	fake_done();
	return test_done();
}
