/* SPDX-License-Identifier: BSD-2-Clause */
/* Closing all descriptors but some, with close_range(2) and where it is refused. */
#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define FILES 40
#define HIGH 200

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* From now on close_range(2) is answered as kernels before 5.9 do. */
static void forbid_close_range(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog p = {sizeof f / sizeof *f, f};

	CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p));
	CHECK(close_range(HIGH + 1, HIGH + 1, 0) < 0 && errno == ENOSYS);
}

/* In a child, which has standard streams, FILES more and one that is far away. */
static void child(bool forbidden, rlim_t limit)
{
	struct rlimit l = {limit, limit};
	int keep[] = {0, 5, 2};

	CHECK(descriptors_keep_only(NULL, 0, 3));
	for (int fd = 3; fd < FILES; fd++)
		CHECK(dup2(2, fd) == fd);
	CHECK(dup2(2, HIGH) == HIGH);
	if (forbidden)
		forbid_close_range();
	/* In no order, neighbours, the first of all, and the last. */
	keep[0] = 17;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &l));
	if (limit > 1 << 20) {
		CHECK(descriptors_keep_only(keep, 3, 3) == !forbidden);
		return;
	}
	CHECK(descriptors_keep_only(keep, 3, 3));
	for (int fd = 0; fd <= HIGH; fd++)
		CHECK(is_open(fd) == (fd <= 2 || fd == 5 || fd == 17));
	keep[0] = 2;
	keep[1] = 1;
	CHECK(descriptors_keep_only(keep, 2, 0));
	for (int fd = 0; fd <= HIGH; fd++)
		CHECK(is_open(fd) == (fd == 1 || fd == 2));
}

static void in_child(bool forbidden, rlim_t limit)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		child(forbidden, limit);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ_I(status, 0);
}

TEST(all_but_some_are_closed)
{
	in_child(false, HIGH + 50);
}

TEST(also_without_close_range)
{
	in_child(true, HIGH + 50);
}

/* Who may have a thousand millions open is not kept busy with them. */
TEST(too_many_to_try)
{
	struct rlimit l;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &l));
	if (l.rlim_max > 1 << 20)
		in_child(true, l.rlim_max);
}

int main(void)
{
	RUN(all_but_some_are_closed);
	RUN(also_without_close_range);
	RUN(too_many_to_try);
	return test_done();
}
