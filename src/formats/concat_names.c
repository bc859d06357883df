/* SPDX-License-Identifier: BSD-2-Clause */
/* List the parts of a directory in order, and detect missing ones. */
/*
 * If most neighbouring names differ only in a number, by a constant step, a number that
 * is left out is a part that was lost: without it all parts behind it would be in the
 * wrong place.  Numbers that begin with 0 or 1 certainly count parts; for others (times,
 * for example) a gap is only a warning.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "formats/concat_names.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* ---- order --------------------------------------------------------------- */

static size_t digit_count(const char *s)
{
	size_t n = 0;

	while (is_digit(s[n]))
		n++;
	return n;
}

/* Compare two numbers of any length, and move both pointers behind them. */
static int compare_numbers(const char **a, const char **b)
{
	size_t n, m;
	int r;

	while (**a == '0' && is_digit((*a)[1]))
		++*a;
	while (**b == '0' && is_digit((*b)[1]))
		++*b;
	n = digit_count(*a);
	m = digit_count(*b);
	r = n != m ? (n < m ? -1 : 1) : memcmp(*a, *b, n);
	*a += n;
	*b += m;
	return r;
}

/* Compare two names, numbers in them by value.  0 if they differ at most in leading zeros
 * of numbers. */
static int compare_natural(const char *a, const char *b)
{
	while (*a && *b) {
		int r = (unsigned char)*a - (unsigned char)*b;

		if (is_digit(*a) && is_digit(*b)) {
			r = compare_numbers(&a, &b);
		} else {
			a++;
			b++;
		}
		if (r)
			return r;
	}
	return (unsigned char)*a - (unsigned char)*b;
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	int r = compare_natural((*a)->d_name, (*b)->d_name);

	return r ? r : strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static bool is_directory(const char *dir, const struct dirent *e)
{
	cleanup_free char *path = NULL;
	struct stat st;

	if (e->d_type == DT_REG)
		return false;
	if (asprintf(&path, "%s/%s", dir, e->d_name) < 0)
		path = NULL;
	return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int concat_list(const char *path, struct dirent ***names, struct error *err)
{
	int n = scandir(path, names, is_shown, compare_entries), r = n;

	if (n < 0)
		return error_errno(err, -errno, "%s", path);
	if (n == 0)
		r = error_set(err, -ENOTSUP, "the directory is empty");
	for (int i = 0; i < n && r == n; i++)
		if (is_directory(path, (*names)[i]))
			r = error_set(err, SOURCE_USAGE,
				      "%s is a directory, but concat= takes a "
				      "directory that contains only files",
				      (*names)[i]->d_name);
	if (r <= 0) {
		concat_list_free(*names, n);
		*names = NULL;
	}
	return r;
}

void concat_list_free(struct dirent **names, int n)
{
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* ---- gaps ---------------------------------------------------------------- */

/* Two names that differ only in a number. */
struct step {
	size_t at; /* where the number begins in both names, in bytes */
	uint64_t from,
		by; /* the first number, and the difference to the second */
};

static bool read_name_number(const char *s, size_t *n, uint64_t *out)
{
	*n = digit_count(s);
	*out = 0;
	for (size_t i = 0; i < *n; i++)
		if (mul_overflows(*out, 10, out) ||
		    add_overflows(*out, (uint64_t)(s[i] - '0'), out))
			return false;
	return *n > 0;
}

static bool step_of(const char *a, const char *b, struct step *s)
{
	size_t at = 0, n, m;
	uint64_t to;

	while (a[at] && a[at] == b[at])
		at++;
	while (at && is_digit(a[at - 1]))
		at--;
	s->at = at;
	if (!read_name_number(a + at, &n, &s->from) ||
	    !read_name_number(b + at, &m, &to) ||
	    strcmp(a + at + n, b + at + m) != 0 || to <= s->from)
		return false;
	s->by = to - s->from;
	return true;
}

/* Return the end of the run of names that begins at `from`: neighbours in it differ in
 * one number only, which is at the same place in all. */
static int run_end(struct dirent *const *names, int from, int n)
{
	struct step s = {0}, first = {0};
	int to = from + 1;

	while (to < n &&
	       step_of(names[to - 1]->d_name, names[to]->d_name, &s) &&
	       (to == from + 1 || s.at == first.at)) {
		first = s;
		to++;
	}
	return to;
}

/* Write the name whose number is larger by `by`. */
static void next_name(const char *name, const struct step *s, uint64_t by,
		      char *out, size_t room)
{
	int n = (int)digit_count(name + s->at);

	snprintf(out, room, "%.*s%0*" PRIu64 "%s", (int)s->at, name, n,
		 s->from + by, name + s->at + n);
}

static int check_run(const char *path, struct dirent *const *names, int from,
		     int to, struct error *err)
{
	uint64_t least = UINT64_MAX;
	int gap = -1, wider = 0;
	char missing[2 * 256];
	struct step s = {0}, first = {0};

	for (int i = from + 1; i < to; i++) {
		step_of(names[i - 1]->d_name, names[i]->d_name, &s);
		if (i == from + 1)
			first = s;
		least = min_u64(least, s.by);
	}
	for (int i = to - 1; i > from; i--) {
		step_of(names[i - 1]->d_name, names[i]->d_name, &s);
		if (s.by != least) {
			gap = i;
			wider++;
		}
	}
	/* If wide steps are not the exception (0, 100, 300), no step is known to be a
	 * gap. */
	if (gap < 0 || 2 * wider > to - from - 1 - (least > 1))
		return 0;
	step_of(names[gap - 1]->d_name, names[gap]->d_name, &s);
	next_name(names[gap - 1]->d_name, &s, least, missing, sizeof missing);
	if (first.from > 1) {
		log_warn("%s: is %s missing?  %s follows %s", path, missing,
			 names[gap]->d_name, names[gap - 1]->d_name);
		return 0;
	}
	return error_set(err, -EINVAL,
			 "%s: %s is missing: after %s comes %s.  To leave it "
			 "out, link the other files into another directory, "
			 "under names without a gap",
			 path, missing, names[gap - 1]->d_name,
			 names[gap]->d_name);
}

int concat_check(const char *path, struct dirent *const *names, int n,
		 struct error *err)
{
	int r = 0;

	for (int i = 1; i < n; i++)
		if (compare_natural(names[i - 1]->d_name, names[i]->d_name) ==
		    0)
			return error_set(err, -EINVAL,
					 "%s: %s and %s have the same number: "
					 "which is first?",
					 path, names[i - 1]->d_name,
					 names[i]->d_name);
	for (int from = 0, to; r == 0 && from < n; from = to) {
		to = run_end(names, from, n);
		r = check_run(path, names, from, to, err);
	}
	return r;
}
