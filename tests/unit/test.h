/* SPDX-License-Identifier: BSD-2-Clause */
/* The unit tests' whole framework: checks that print both values, then exit. */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

/*
 *	TEST(adds)
 *	{
 *		CHECK_EQ_U(add(1, 2), 3);
 *	}
 *	int main(void)
 *	{
 *		RUN(adds);
 *		return test_done();
 *	}
 *
 * The first check that fails names its place and ends the program with status
 * 1, from whatever thread it is in.  Every argument is evaluated once.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST_MAYBE __attribute__((unused))

static const char *test_name = "(no test)";
static unsigned test_count;

TEST_MAYBE __attribute__((noreturn, format(printf, 3, 4))) static void
test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s:%d: %s: ", file, line, test_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	fflush(stderr);
	exit(1);
}
TEST_MAYBE static inline void
test_eq_u(const char *file, int line, const char *what, uint64_t a, uint64_t b)
{
	if (a != b)
		test_fail(file, line, "%s: %" PRIu64 " is not %" PRIu64, what,
			  a, b);
}
TEST_MAYBE static inline void test_eq_i(const char *file, int line,
					const char *what, int64_t a, int64_t b)
{
	if (a != b)
		test_fail(file, line, "%s: %" PRId64 " is not %" PRId64, what,
			  a, b);
}
TEST_MAYBE static inline void test_str(const char *file, int line,
				       const char *what, const char *a,
				       const char *b)
{
	if (a == b)
		return;
	if (!a || !b || strcmp(a, b))
		test_fail(file, line, "%s: \"%s\" is not \"%s\"", what,
			  a ? a : "(NULL)", b ? b : "(NULL)");
}
TEST_MAYBE static inline void test_mem(const char *file, int line,
				       const char *what, const void *a,
				       const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	if (!n || !memcmp(a, b, n))
		return;
	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			test_fail(file, line,
				  "%s: byte %zu: 0x%02x is not "
				  "0x%02x",
				  what, i, x[i], y[i]);
}

/* What a test needs is not here: says so, and is true.  Where CI is set in the
 * environment it is a failure instead: there, nothing is left out in silence. */
TEST_MAYBE static inline bool test_lacks(const char *what)
{
	const char *ci = getenv("CI");

	if (ci && *ci)
		test_fail(__FILE__, __LINE__, "there is no %s here", what);
	printf("# skipped: there is no %s here\n", what);
	return true;
}
/* Is there a program of that name? */
TEST_MAYBE static inline bool test_has_tool(const char *name)
{
	char cmd[128];

	snprintf(cmd, sizeof cmd, "command -v %s >/dev/null", name);
	return system(cmd) == 0 || !test_lacks(name);
}

/* Return the next of a fixed sequence of random numbers.  Each thread has its own,
 * and that of main() begins anew with each test, so that a test has the same numbers
 * when it is run alone. */
#define TEST_SEED UINT64_C(88172645463325252)
TEST_MAYBE static _Thread_local uint64_t test_random_state = TEST_SEED;
TEST_MAYBE static inline uint64_t test_random(void)
{
	uint64_t x = test_random_state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return test_random_state = x;
}

/* Return true if this is the full tier (contrib/check --full), or if the program was
 * started by hand.  Exhaustive loops and grids belong there; the other tiers run a
 * few cases of each kind. */
TEST_MAYBE static inline bool test_full(void)
{
	const char *tier = getenv("TENSORFS_TIER");

	return !tier || !strcmp(tier, "full");
}
/* Return how many random rounds to run: `n` in the full tier, a quarter of them (one
 * at least) in the others and under sanitizers, which slow every round down. */
TEST_MAYBE static inline unsigned test_rounds(unsigned n)
{
	if (test_full() && !getenv("TENSORFS_SANITIZED"))
		return n;
	return n / 4 ? n / 4 : 1;
}

/* The condition holds. */
#define CHECK(cond)       \
	((cond) ? (void)0 \
		: test_fail(__FILE__, __LINE__, "not true: %s", #cond))
/* Unsigned and signed numbers are equal. */
#define CHECK_EQ_U(a, b) test_eq_u(__FILE__, __LINE__, #a, (a), (b))
#define CHECK_EQ_I(a, b) test_eq_i(__FILE__, __LINE__, #a, (a), (b))
/* Strings are equal; NULL equals NULL only. */
#define CHECK_STR(a, b) test_str(__FILE__, __LINE__, #a, (a), (b))
/* `n` bytes are equal. */
#define CHECK_MEM(a, b, n) test_mem(__FILE__, __LINE__, #a, (a), (b), (n))
/* The call returns 0. */
#define CHECK_OK(call) test_eq_i(__FILE__, __LINE__, #call, (call), 0)

/* Is this test among those that $TENSORFS_CASES names?  Without it, all are. */
TEST_MAYBE static inline bool test_wanted(const char *name)
{
	const char *cases = getenv("TENSORFS_CASES");
	size_t n = strlen(name);

	if (!cases || !*cases)
		return true;
	for (const char *c = cases; (c = strstr(c, name)); c += n)
		if ((c == cases || c[-1] == ' ') && (!c[n] || c[n] == ' '))
			return true;
	return false;
}

#define TEST(name) static void test_##name(void)
#define RUN(name)                              \
	do {                                   \
		if (!test_wanted(#name))       \
			break;                 \
		test_name = #name;             \
		test_random_state = TEST_SEED; \
		test_##name();                 \
		test_count++;                  \
	} while (0)

/* For main, where no test can run for want of `what`: the status that says so. */
TEST_MAYBE static inline int test_skip(const char *what)
{
	test_lacks(what);
	return 77;
}
/* For the end of main: says how many tests passed, returns 0. */
TEST_MAYBE static inline int test_done(void)
{
	printf("%u tests passed\n", test_count);
	return 0;
}

#endif
