/* SPDX-License-Identifier: BSD-2-Clause */
/* staging: what is held stays, what is transient goes, whoever dies when. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system.h"
#include "staging/private.h"
#include "test.h"

static char base[] = "/tmp/staging-place-XXXXXX";
static unsigned said;

static void count(void *ctx, const char *sentence)
{
	(void)ctx;
	CHECK(sentence[0]);
	said++;
}

static struct staging_want want_of(const char *name, const char *what)
{
	struct staging_want w = {
		.name = name, .source = what, .options = "none"};

	staging_key(what, w.key);
	return w;
}

static void put_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0);
	CHECK_EQ_I(write(fd, "data", 4), 4);
	close(fd);
}

/* Stage a file, made of nothing. */
static bool make(struct staging *s, const struct staging_want *w,
		 struct staged *out)
{
	const struct staging_result result = {.files = 1, .bytes = 4};
	const struct staging_sources none = {.list = VEC_EMPTY};
	struct staging_build b;
	struct error err = {0};

	CHECK_OK(staging_begin(s, w, count, NULL, out, &b, &err));
	if (out->reused)
		return false;
	CHECK_OK(staging_make(s, &b, &err));
	put_file(b.tree.fd, "file");
	CHECK_OK(
		staging_publish(s, &b, &result, &none, count, NULL, out, &err));
	return true;
}

static struct staging opened(void)
{
	struct staging s;
	struct error err = {0};

	CHECK_OK(staging_open(&s, base, true, &err));
	return s;
}

static bool exists(const char *name)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", base, name);
	return access(path, F_OK) == 0;
}

static size_t listed(struct staging *s)
{
	struct staging_list l;
	struct error err = {0};
	size_t n;

	CHECK_OK(staging_list(s, &l, &err));
	n = l.list.n;
	staging_list_free(&l);
	return n;
}

/* Wait for a process that killed itself. */
static void reap(pid_t pid)
{
	int status;

	CHECK_EQ_I(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
}

static void all_gone(struct staging *s)
{
	struct error err = {0};

	CHECK_OK(staging_sweep(s, &err));
	CHECK_EQ_U(listed(s), 0);
	staging_tidy(s);
	staging_close(s);
	CHECK_OK(rmdir(base));
	CHECK_OK(mkdir(base, 0700));
}

TEST(made_and_used_again)
{
	struct staging s = opened();
	struct staging_want w = want_of("a", "source a");
	struct staged one, two;
	struct error err = {0};

	CHECK(make(&s, &w, &one));
	CHECK(exists("a/file"));
	CHECK(!one.reused && one.use >= 0);
	CHECK(!make(&s, &w, &two));
	CHECK_STR(one.path, two.path);
	CHECK_EQ_I(staging_remove(&s, "a", false, &err), -EBUSY);
	staging_release(&s, &one);
	CHECK_EQ_I(staging_remove(&s, "a", false, &err), -EBUSY);
	staging_release(&s, &two);
	CHECK(exists("a/file"));
	CHECK_OK(staging_remove(&s, "a", false, &err));
	CHECK_EQ_I(staging_remove(&s, "a", false, &err), -ENOENT);
	CHECK(!exists("a"));
	all_gone(&s);
}

TEST(names)
{
	struct staging s = opened();
	struct staging_want a = want_of("n", "source a");
	struct staging_want b = want_of("n", "source b");
	struct staging_build build;
	struct staged one, two;
	struct error err = {0};

	CHECK(make(&s, &a, &one));
	CHECK(make(&s, &b, &two));
	CHECK_STR(one.name, "n");
	CHECK(!strncmp(two.name, "n-", 2));
	b.exact = true;
	staging_release(&s, &two);
	CHECK_EQ_I(staging_begin(&s, &b, count, NULL, &two, &build, &err),
		   -EEXIST);
	b.name = "../n";
	CHECK_EQ_I(staging_begin(&s, &b, count, NULL, &two, &build, &err),
		   -EINVAL);
	/* Anew while it is in use: beside. */
	a.force = true;
	said = 0;
	CHECK(make(&s, &a, &two));
	CHECK_EQ_U(said, 1);
	CHECK(strcmp(one.path, two.path));
	CHECK(exists("n/file"));
	staging_release(&s, &two);
	staging_release(&s, &one);
	/* Nobody uses any of them: one of them is replaced. */
	CHECK(make(&s, &a, &one));
	staging_release(&s, &one);
	CHECK_EQ_U(listed(&s), 3);
	for (int i = 0; i < 3; i++) {
		struct staging_list l;

		CHECK_OK(staging_list(&s, &l, &err));
		CHECK_OK(staging_remove(&s, l.list.at[0].name, false, &err));
		staging_list_free(&l);
	}
	all_gone(&s);
}

TEST(transient)
{
	struct staging s = opened();
	struct staging_want w = want_of("t", "source t");
	struct staged one, two;

	w.transient = true;
	CHECK(make(&s, &w, &one));
	CHECK(!make(&s, &w, &two));
	staging_release(&s, &one);
	CHECK(exists("t/file"));
	staging_release(&s, &two);
	CHECK(!exists("t"));
	/* Whoever wants it to stay makes it stay. */
	CHECK(make(&s, &w, &one));
	w.transient = false;
	CHECK(!make(&s, &w, &two));
	staging_release(&s, &two);
	staging_release(&s, &one);
	CHECK(exists("t/file"));
	/* And whoever does not mind leaves it at that. */
	w.transient = true;
	CHECK(!make(&s, &w, &one));
	CHECK(!one.transient);
	staging_release(&s, &one);
	CHECK(exists("t/file"));
	CHECK_OK(staging_remove(&s, "t", false, NULL));
	all_gone(&s);
}

/* A transient tree whose users were all killed. */
TEST(users_die)
{
	struct staging s = opened();
	struct staging_want w = want_of("u", "source u");
	struct staged one;
	int ready[2];
	char c;

	CHECK_OK(pipe(ready));
	w.transient = true;
	pid_t a = fork();

	if (a == 0) {
		make(&s, &w, &one);
		CHECK_EQ_I(write(ready[1], "x", 1), 1);
		pause();
	}
	CHECK_EQ_I(read(ready[0], &c, 1), 1);
	CHECK_EQ_U(listed(&s), 1);
	CHECK(!make(&s, &w, &one));
	kill(a, SIGKILL);
	reap(a);
	CHECK_EQ_U(listed(&s), 1); /* we use it */
	pid_t b = fork();

	if (b == 0) {
		kill(getpid(), SIGKILL);
	}
	reap(b);
	place_unlock(&one.use); /* as if we were dead */
	free(one.path);
	free(one.name);
	CHECK_EQ_U(listed(&s), 0);
	CHECK(!exists("u"));
	all_gone(&s);
}

/* Who looks while the last user removes a tree may lock a name that is gone by then, and so
 * make an empty file of it.  It does not keep the place. */
TEST(a_lock_that_came_late)
{
	struct staging s = opened();
	char path[200];
	int fd;

	snprintf(path, sizeof path, "%s/0123456789abcdef.use", s.control.path);
	CHECK_EQ_U(strlen("0123456789abcdef"), STAGING_ID - 1);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ_U(listed(&s), 0);
	staging_tidy(&s);
	staging_close(&s);
	CHECK_OK(rmdir(base));
	CHECK_OK(mkdir(base, 0700));
}

/* At every step a builder may be killed: nothing is seen of it, and the next one
 * has its way. */
TEST(builders_die)
{
	const struct staging_result result = {.files = 1, .bytes = 4};
	const struct staging_sources none = {.list = VEC_EMPTY};

	for (int step = 0; step < 4; step++) {
		struct staging s = opened();
		struct staging_want w = want_of("b", "source b");
		struct staging_build b;
		struct staged out;
		pid_t pid = fork();

		if (pid == 0) {
			staging_begin(&s, &w, count, NULL, &out, &b, NULL);
			if (step > 0)
				staging_make(&s, &b, NULL);
			if (step > 1)
				put_file(b.tree.fd, "half");
			if (step > 2)
				staging_publish(&s, &b, &result, &none, count,
						NULL, &out, NULL);
			kill(getpid(), SIGKILL);
		}
		reap(pid);
		CHECK(exists("b") == (step == 3));
		/* Before there is a tree there is nothing to be seen of it. */
		CHECK_EQ_U(listed(&s), step > 0);
		CHECK(make(&s, &w, &out) == (step < 3));
		CHECK(exists(step == 3 ? "b/half" : "b/file"));
		staging_release(&s, &out);
		CHECK_OK(staging_remove(&s, "b", false, NULL));
		all_gone(&s);
	}
}

/* Put `text` where the record of instance ID would be. */
#define ID "00112233445566aa"
static void put_record(const struct staging *s, const char *text)
{
	int fd = openat(s->control.fd, ID ".json", O_WRONLY | O_CREAT, 0600);

	CHECK_EQ_I(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* What the list says of the only thing there is. */
static enum staging_state state_of(struct staging *s)
{
	struct staging_list l;
	struct error err = {0};
	enum staging_state state;

	CHECK_OK(staging_list(s, &l, &err));
	CHECK_EQ_U(l.list.n, 1);
	state = l.list.at[0].state;
	staging_list_free(&l);
	return state;
}

/* Whatever a record says: what is not ours stays.  And a record that cannot be
 * believed stays until somebody removes it, for its tree is not known. */
TEST(records_lie)
{
	static const char *const lies[] = {
		"",
		"[]",
		"{}",
		"{\"version\": 2, \"name\": \"..\", \"ino\": 1}",
		"{\"version\": 2, \"key\": \"0123456789abcdef\", \"name\": "
		"\"../precious\", \"source\": \"\", \"options\": \"\", "
		"\"ino\": 1}",
		"{\"version\": 2, \"key\": \"0123456789abcdef\", \"name\": "
		"\"precious\", \"source\": \"\", \"options\": \"\", "
		"\"ino\": 1, \"transient\": true}"};

	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		struct staging s = opened();

		put_record(&s, lies[i]);
		CHECK_OK(mkdirat(s.at.fd, "precious", 0700));
		CHECK_EQ_I(staging_remove(&s, "precious", true, NULL), -ENOENT);
		CHECK_OK(staging_sweep(&s, NULL));
		CHECK_EQ_I(state_of(&s), STAGING_DAMAGED);
		CHECK_OK(staging_remove(&s, ID, false, NULL));
		CHECK(exists("precious"));
		CHECK_OK(unlinkat(s.at.fd, "precious", AT_REMOVEDIR));
		all_gone(&s);
	}
}

/* What another version has staged is listed and removed, and never taken for what
 * this one wants. */
TEST(other_versions)
{
	struct staging_want w = want_of("n", "source n");
	struct staging s = opened();
	struct staged u;
	char text[400];
	struct stat st;

	CHECK_OK(mkdirat(s.at.fd, "n", 0700));
	CHECK_OK(fstatat(s.at.fd, "n", &st, 0));
	snprintf(text, sizeof text,
		 "{\"version\": 99, \"name\": \"n\", \"source\": \"x\", "
		 "\"options\": \"\", \"dev\": %lu, \"ino\": %lu, "
		 "\"key\": \"%s\"}",
		 (unsigned long)st.st_dev, (unsigned long)st.st_ino, w.key);
	put_record(&s, text);
	CHECK_OK(staging_sweep(&s, NULL));
	CHECK_EQ_I(state_of(&s), STAGING_READY);
	CHECK(make(&s, &w, &u));
	CHECK(strcmp(u.name, "n") != 0);
	CHECK_EQ_U(listed(&s), 2);
	CHECK_OK(staging_remove(&s, "n", false, NULL));
	CHECK(!exists("n"));
	CHECK(exists(u.name));
	CHECK_OK(staging_remove(&s, u.name, true, NULL));
	staging_release(&s, &u);
	all_gone(&s);
}

/* Who asks for room learns what others are going to fill. */
TEST(room)
{
	struct staging_want w[2] = {want_of("a", "a"), want_of("b", "b")};
	struct staging_build b[2];
	struct staging s[2] = {opened(), opened()};
	struct staging_others others;
	struct staged u;
	struct error err = {0};
	char group[256];

	system_group(group);
	for (int i = 0; i < 2; i++)
		CHECK_OK(staging_begin(&s[i], &w[i], count, NULL, &u, &b[i],
				       &err));
	CHECK_OK(staging_ask(&s[0], &b[0], "/", &others, &err));
	CHECK_EQ_U(others.bytes, 0);
	staging_promise(&b[0], 1000);
	CHECK_OK(staging_ask(&s[1], &b[1], group, &others, &err));
	CHECK_EQ_U(others.bytes, 1000);
	CHECK_EQ_U(others.group, *group ? 1000 : 0);
	staging_promise(&b[1], 0);
	staging_promise_left(&b[0], 400);
	CHECK_OK(staging_ask(&s[1], &b[1], "/elsewhere", &others, &err));
	CHECK_EQ_U(others.bytes, 400);
	CHECK_EQ_U(others.group, 0);
	staging_promise(&b[1], 7);
	staging_cancel(&s[0], &b[0]);
	CHECK_OK(staging_ask(&s[1], &b[1], "", &others, &err));
	CHECK_EQ_U(others.bytes, 0);
	staging_promise(&b[1], 7);
	staging_cancel(&s[1], &b[1]);
	staging_close(&s[1]);
	all_gone(&s[0]);
}

/* Sources: what they were, whatever their names are. */
TEST(sources)
{
	char path[300], odd[300];
	struct staging_sources d = {.list = VEC_EMPTY};
	struct staging_source there = {.there = true}, missing = {0};
	struct staging s = opened();
	struct error err = {0};
	struct stat st;
	int fd;

	snprintf(odd, sizeof odd, "%s/\xff\"odd\n 1 2", base);
	snprintf(path, sizeof path, "%s/missing", base);
	put_file(AT_FDCWD, odd);
	CHECK_OK(stat(odd, &st));
	CHECK(!sources_are_current(&s, ID)); /* nobody wrote them down */
	identity_of(&st, &there.id);
	CHECK(staging_sources_add(&d, odd, &there));
	CHECK_OK(sources_write(&s, ID, &d, &err));
	CHECK(!sources_are_current(&s, ID)); /* nobody knows when it changed */
	d.list.at[0].changed = file_time(&st.st_ctim);
	CHECK(staging_sources_add(&d, path, &missing));
	CHECK_OK(sources_write(&s, ID, &d, &err));
	CHECK(sources_are_current(&s, ID));
	put_file(AT_FDCWD, path);
	CHECK(!sources_are_current(&s, ID));
	CHECK_OK(unlink(path));
	CHECK(sources_are_current(&s, ID));
	/* Whatever is cut off it: what is left is not believed. */
	fd = openat(s.control.fd, ID ".from", O_RDWR);
	for (off_t size = lseek(fd, 0, SEEK_END); size > 0; size--) {
		CHECK_OK(ftruncate(fd, size - 1));
		CHECK(!sources_are_current(&s, ID));
	}
	close(fd);
	CHECK_OK(sources_write(&s, ID, &d, &err));
	CHECK(sources_are_current(&s, ID));
	CHECK_OK(truncate(odd, 3));
	CHECK(!sources_are_current(&s, ID));
	CHECK_OK(unlink(odd));
	CHECK(!sources_are_current(&s, ID));
	sources_forget(&s, ID);
	CHECK(!sources_are_current(&s, ID));
	staging_sources_free(&d);
	all_gone(&s);
}

int main(void)
{
	CHECK(mkdtemp(base));
	RUN(made_and_used_again);
	RUN(names);
	RUN(transient);
	RUN(users_die);
	RUN(a_lock_that_came_late);
	RUN(builders_die);
	RUN(records_lie);
	RUN(other_versions);
	RUN(room);
	RUN(sources);
	CHECK_OK(rmdir(base));
	return test_done();
}
