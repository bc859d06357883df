/* SPDX-License-Identifier: BSD-2-Clause */
/* A team: each part is done once, whoever does it; which failure is told. */
#include "base/team.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "test.h"

#define PARTS 1000

struct seen {
	_Atomic unsigned times[PARTS];
	size_t fail_from,
		fail_each; /* every so many parts from there; 0: none */
	bool nested;
	_Atomic unsigned threads, together, most;
};

static int inner(void *ctx, size_t i, struct error *err)
{
	_Atomic size_t *sum = ctx;

	(void)err;
	atomic_fetch_add(sum, i + 1);
	return 0;
}

static int part(void *ctx, size_t i, struct error *err)
{
	struct timespec moment = {.tv_nsec = 20000};
	struct seen *s = ctx;
	unsigned now = atomic_fetch_add(&s->together, 1) + 1;
	_Atomic size_t sum = 0;

	if (now > atomic_load(&s->most))
		atomic_store(&s->most, now);
	atomic_fetch_add(&s->times[i], 1);
	if (s->nested) {
		CHECK_OK(team_run(20, inner, &sum, err));
		CHECK_EQ_U(atomic_load(&sum), 210);
	}
	/* Only makes it likelier that others are at work meanwhile. */
	nanosleep(&moment, NULL);
	atomic_fetch_sub(&s->together, 1);
	if (s->fail_each && i >= s->fail_from &&
	    (i - s->fail_from) % s->fail_each == 0)
		return error_set(err, -EBADMSG, "part %zu", i);
	return 0;
}

static void check_once(const struct seen *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ_U(atomic_load(&s->times[i]), 1);
}

TEST(alone)
{
	struct seen s = {.fail_each = 0};
	struct error err = {0};

	CHECK_EQ_U(team_size(), 1);
	CHECK_OK(team_run(PARTS, part, &s, &err));
	check_once(&s, PARTS);
	CHECK_EQ_U(atomic_load(&s.most), 1);
	CHECK_OK(team_run(0, part, &s, &err));
	/* Nobody else is at work: the others are not begun. */
	memset(&s, 0, sizeof s);
	s.fail_from = 3;
	s.fail_each = 2;
	CHECK_EQ_I(team_run(PARTS, part, &s, &err), -EBADMSG);
	CHECK_STR(err.text, "part 3");
	check_once(&s, 4);
}

/* Each of two parts waits for the other one, so two have to be at work. */
static int meets(void *ctx, size_t i, struct error *err)
{
	struct timespec moment = {.tv_nsec = 1000000};
	_Atomic unsigned *begun = ctx;

	atomic_fetch_add(begun, 1);
	/* It polls: the minute is only there to end a test that hangs. */
	for (unsigned k = 0; k < 60000 && atomic_load(begun) < 2; k++)
		nanosleep(&moment, NULL);
	return atomic_load(begun) == 2
		       ? 0
		       : error_set(err, -ETIMEDOUT, "part %zu is alone", i);
}

TEST(together)
{
	struct seen s = {.fail_each = 0};
	_Atomic unsigned begun = 0;
	struct error err = {0};

	CHECK_OK(team_start(3, &err));
	CHECK_EQ_U(team_size(), 4);
	/* The second one uses what is there. */
	CHECK_OK(team_start(7, &err));
	CHECK_EQ_U(team_size(), 4);
	for (size_t n = 0; n < PARTS; n = 2 * n + 1) {
		memset(&s, 0, sizeof s);
		CHECK_OK(team_run(n, part, &s, &err));
		check_once(&s, n);
		CHECK(atomic_load(&s.most) <= 4);
	}
	CHECK_OK(team_run(2, meets, &begun, &err));
	team_stop();
	CHECK_EQ_U(team_size(), 4);
	s = (struct seen){.nested = true};
	CHECK_OK(team_run(PARTS / 10, part, &s, &err));
	check_once(&s, PARTS / 10);
	team_stop();
	CHECK_EQ_U(team_size(), 1);
	/* No helpers is no team. */
	CHECK_OK(team_start(0, &err));
	CHECK_EQ_U(team_size(), 1);
	team_stop();
	team_stop();
}

TEST(the_first_failure)
{
	struct error err = {0};

	CHECK_OK(team_start(3, &err));
	for (size_t from = 0; from < 200; from += 7) {
		struct seen s = {.fail_from = from, .fail_each = 1 + from % 5};
		char text[32];

		snprintf(text, sizeof text, "part %zu", from);
		CHECK_EQ_I(team_run(200, part, &s, &err), -EBADMSG);
		CHECK_EQ_I(err.code, -EBADMSG);
		CHECK_STR(err.text, text);
		check_once(&s, 200);
		CHECK_EQ_I(team_run(200, part, &s, NULL), -EBADMSG);
	}
	team_stop();
}

static void *caller(void *arg)
{
	for (unsigned k = 0; k < 30; k++) {
		struct seen s = {.fail_each = 0};

		CHECK_OK(team_run(50, part, &s, NULL));
		check_once(&s, 50);
	}
	return arg;
}

TEST(many_callers)
{
	pthread_t t[6];

	CHECK_OK(team_start(2, NULL));
	for (unsigned i = 0; i < 6; i++)
		CHECK_EQ_I(pthread_create(&t[i], NULL, caller, NULL), 0);
	for (unsigned i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	team_stop();
}

int main(void)
{
	RUN(alone);
	RUN(together);
	RUN(the_first_failure);
	RUN(many_callers);
	return test_done();
}
