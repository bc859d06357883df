/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared chunks: made once by all processes, right whatever dies when. */
#include "shared_fake.h"

#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

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

	/* Whoever is held up is waited for, however long it takes. */
	patience = UINT64_C(120) * 1000000000;
	in_children(8, read_all);
	patience = 0;
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
	struct shared *sh = open_store(limit);
	struct shared_usage u;
	pid_t pid[3] = {0};
	struct seen s;
	int status;

	for (unsigned round = 0; round < test_rounds(300); round++) {
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
		/* Any moment is as good as any other: what must hold holds
		 * whenever the process is killed. */
		usleep((useconds_t)(test_random() % 9000));
		CHECK(look_locked().bytes <= limit + 3 * COST);
	}
	for (unsigned i = 0; i < 3; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
	}
	/* Whoever changes something finds that somebody died over the ledger. */
	buf_unref(get(sh, 200));
	s = look();
	shared_usage(sh, &u);
	CHECK_EQ_U(u.bytes, s.bytes);
	shared_close(sh);
	/* Whoever comes removes what the dead left. */
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
	CHECK_EQ_I(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	/* It is stopped for longer than any patience, so for this one. */
	patience = 1000000;
	sh = open_store(MIB);
	patience = 0;
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

int main(void)
{
	set_up();
	RUN(eight_processes_make_each_once);
	RUN(killed_at_any_time);
	RUN(nobody_waits_for_the_stopped);
	RUN(threads_of_one_process);
	tear_down();
	return test_done();
}
