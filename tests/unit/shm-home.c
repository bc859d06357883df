/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/home: what is believed, what is locked, what is removed. */
#include "base/home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static char base[] = "/tmp/shm-home-XXXXXX";
static char home[64];

static void in_home(void)
{
	CHECK(mkdtemp(base));
	snprintf(home, sizeof home, "%s/tensorfs-%lu", base,
		 (unsigned long)geteuid());
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	CHECK_EQ_I(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static int rmdir_in_home(const char *name)
{
	char path[96];

	snprintf(path, sizeof path, "%s/%s", home, name);
	return rmdir(path);
}

TEST(made_and_closed)
{
	struct shm_dir d, e;
	struct error err = {0};

	CHECK_EQ_I(shm_home_open(&d, base, false, &err), -ENOENT);
	CHECK_EQ_I(d.fd, -1);
	umask(0);
	CHECK_EQ_I(shm_home_open(&d, base, true, &err), 0);
	CHECK(!strcmp(d.path, home));
	CHECK_EQ_U(mode_of(home), 0700);
	CHECK_EQ_I(shm_dir_open(&e, &d, "x", false, &err), -ENOENT);
	CHECK_EQ_I(shm_dir_open(&e, &d, "x", true, &err), 0);
	shm_dir_close(&e);
	shm_dir_close(&d);
	shm_dir_close(&d);
	/* One that others may look into is closed to them. */
	CHECK_EQ_I(chmod(home, 0755), 0);
	CHECK_EQ_I(shm_home_open(&d, base, false, &err), 0);
	CHECK_EQ_U(mode_of(home), 0700);
	shm_dir_close(&d);
	CHECK_EQ_I(shm_home_open(&d, "/nowhere", true, &err), -ENOENT);
	CHECK(strstr(err.text, "/nowhere"));
}

TEST(planted)
{
	struct error err = {0};
	struct shm_dir d;

	/* Others could have put anything into it. */
	CHECK_EQ_I(chmod(home, 0770), 0);
	CHECK_EQ_I(shm_home_open(&d, base, true, &err), -EPERM);
	CHECK(strstr(err.text, "other users may write"));
	CHECK_EQ_I(chmod(home, 0700), 0);
	if (geteuid() == 0) {
		CHECK_EQ_I(chown(home, 12345, 12345), 0);
		CHECK_EQ_I(shm_home_open(&d, base, true, &err), -EPERM);
		CHECK(strstr(err.text, "belongs to another user"));
		CHECK_EQ_I(chown(home, 0, 0), 0);
	}
	CHECK_EQ_I(rmdir_in_home("x"), 0);
	CHECK_EQ_I(rmdir(home), 0);
	CHECK_EQ_I(symlink("/etc", home), 0);
	CHECK_EQ_I(shm_home_open(&d, base, true, &err), -ELOOP);
	CHECK(strstr(err.text, "symlink"));
	CHECK_EQ_I(unlink(home), 0);
	CHECK_EQ_I(close(open(home, O_CREAT | O_WRONLY, 0600)), 0);
	CHECK_EQ_I(shm_home_open(&d, base, true, &err), -ENOTDIR);
	CHECK(strstr(err.text, "not a directory"));
	CHECK_EQ_I(unlink(home), 0);
}

/* Return once process `pid` waits for a file lock. */
static void wait_until_queued(pid_t pid)
{
	char line[256], *at;
	bool queued = false;
	FILE *f;

	while (!queued) {
		f = fopen("/proc/locks", "r");
		CHECK(f);
		while (fgets(line, sizeof line, f)) {
			at = strstr(line, "-> FLOCK");
			queued |= at && strtol(strstr(at, "WRITE") + 5, NULL,
					       10) == pid;
		}
		fclose(f);
	}
}

/* A lock whose file is removed by its holder passes to the file of that name. */
TEST(locks)
{
	struct error err = {0};
	struct shm_dir d;
	int a, b, c, status;
	pid_t pid;

	CHECK_EQ_I(shm_home_open(&d, base, true, &err), 0);
	a = shm_lock(&d, "l", SHM_SHARED, false, &err);
	b = shm_lock(&d, "l", SHM_SHARED, false, &err);
	CHECK(a >= 0 && b >= 0);
	CHECK_EQ_I(shm_lock(&d, "l", SHM_EXCLUSIVE, false, &err), -EWOULDBLOCK);
	CHECK(strstr(err.text, "in use"));
	close(a);
	close(b);
	a = shm_lock(&d, "l", SHM_EXCLUSIVE, false, &err);
	CHECK(a >= 0);
	pid = fork();
	if (pid == 0) {
		close(a);
		b = shm_lock(&d, "l", SHM_EXCLUSIVE, true, &err);
		_exit(b >= 0 && faccessat(d.fd, "l", F_OK, 0) == 0 ? 0 : 1);
	}
	wait_until_queued(pid);
	CHECK_EQ_I(shm_remove(&d, "l", &err), 0);
	close(a);
	CHECK_EQ_I(waitpid(pid, &status, 0), pid);
	CHECK_EQ_I(status, 0);
	CHECK_EQ_I(shm_remove(&d, "l", &err), 0);
	CHECK_EQ_I(symlinkat("/etc/passwd", d.fd, "l"), 0);
	c = shm_lock(&d, "l", SHM_SHARED, false, &err);
	CHECK_EQ_I(c, -ELOOP);
	CHECK_EQ_I(shm_remove(&d, "l", &err), 0);
	shm_dir_close(&d);
}

/* Deeper than descriptors and paths allow; with what must not be followed. */
TEST(removed)
{
	const struct rlimit few = {256, 256};
	struct error err = {0};
	char outside[64];
	struct shm_dir d;
	int fd, next;

	snprintf(outside, sizeof outside, "%s/outside", base);
	CHECK_EQ_I(setrlimit(RLIMIT_NOFILE, &few), 0);
	CHECK_EQ_I(mkdir(outside, 0700), 0);
	CHECK_EQ_I(shm_home_open(&d, base, true, &err), 0);
	CHECK_EQ_I(mkdirat(d.fd, "t", 0700), 0);
	fd = openat(d.fd, "t", O_RDONLY | O_DIRECTORY);
	CHECK_EQ_I(mkdirat(fd, ".deep-0", 0700), 0);
	/* 300 descriptors are too many, and a path of 300 such names is longer than
	 * PATH_MAX. */
	for (int i = 0; i < (test_full() ? 3000 : 300); i++) {
		CHECK_EQ_I(symlinkat(outside, fd, "link"), 0);
		CHECK_EQ_I(mkdirat(fd, "aaaaaaaaaaaaaaaa", 0700), 0);
		CHECK_EQ_I(mkdirat(fd, "b", 0), 0);
		next = openat(fd, "aaaaaaaaaaaaaaaa", O_RDONLY | O_DIRECTORY);
		CHECK(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	CHECK_EQ_I(shm_remove(&d, "t", &err), 0);
	CHECK_EQ_I(faccessat(d.fd, "t", F_OK, 0), -1);
	CHECK_EQ_I(shm_remove(&d, "t", &err), 0);
	CHECK_EQ_I(rmdir(outside), 0);
	shm_dir_close(&d);
}

TEST(space)
{
	uint64_t available, total;
	struct error err = {0};
	struct shm_dir d;

	CHECK_EQ_I(shm_home_open(&d, base, true, &err), 0);
	CHECK_EQ_I(shm_space(d.fd, &available, &total, &err), 0);
	CHECK(available <= total && total > 0);
	shm_dir_close(&d);
	CHECK_EQ_I(rmdir(home), 0);
	CHECK_EQ_I(rmdir(base), 0);
}

int main(void)
{
	in_home();
	RUN(made_and_closed);
	RUN(planted);
	RUN(locks);
	RUN(removed);
	RUN(space);
	return test_done();
}
