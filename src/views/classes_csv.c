/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels in a file: each row is a label, or the number of a row and its label. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/csv.h"
#include "base/vec.h"
#include "views/classes.h"

#define CSV_MOST (INT64_C(4) << 30)

struct csv_labels {
	vec(struct class_label) list;
	bool begun, numbered;
};

static bool label_file_whole_number(const char *s, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(s, &end, 10);
	return *s && (isdigit((unsigned char)*s) || *s == '-') && !*end &&
	       !errno;
}

static char *label_file_trim(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	for (n = strlen(text); n && strchr(" \t", text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

/* Is this a header: "label", or two fields of which the first is not a number? */
static bool label_file_is_header(char **field, size_t n)
{
	static const char *const words[] = {"label",  "labels", "class",
					    "target", "y",      "category"};
	int64_t number;

	if (n == 2)
		return !label_file_whole_number(label_file_trim(field[0]),
						&number);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcasecmp(label_file_trim(field[0]), words[i]))
			return true;
	return false;
}

static int label_file_read_row(void *ctx, uint64_t line, char **field, size_t n,
			       struct error *err)
{
	struct csv_labels *c = ctx;
	struct class_label one = {.row = (uint32_t)c->list.n};
	bool first = !c->begun;
	int64_t row = 0;

	c->begun = true;
	if (first)
		c->numbered = n == 2;
	if (n != 1u + c->numbered)
		return error_set(
			err, -EBADMSG,
			"line %" PRIu64
			": %zu fields; a line has to be a label, or row,label",
			line, n);
	if (first && label_file_is_header(field, n))
		return 0;
	one.text = label_file_trim(field[n - 1]);
	if (!*one.text)
		return error_set(err, -EBADMSG,
				 "line %" PRIu64 ": the label is empty", line);
	if (c->numbered &&
	    (!label_file_whole_number(label_file_trim(field[0]), &row) ||
	     row < 0 || row >= CLASSES_SAMPLES_MAX))
		return error_set(err, -EBADMSG,
				 "line %" PRIu64
				 ": '%.40s' is not the number of a row",
				 line, field[0]);
	if (c->numbered)
		one.row = (uint32_t)row;
	if (c->list.n >= CLASSES_SAMPLES_MAX || !vec_push(&c->list, one))
		return error_no_memory(err, "labels");
	return 0;
}

static int label_file_compare_rows(const void *a, const void *b)
{
	const struct class_label *x = a, *y = b;

	return (x->row > y->row) - (x->row < y->row);
}

/* Set *row to the number that a label begins with.  Return false if there is none, or
 * if no blank or semicolon follows it. */
static bool label_file_begins_with_row(const char *text, int64_t *row)
{
	size_t n = strspn(text, "0123456789");

	*row = n && n < 18 && strchr(" \t;", text[n]) && text[n]
		       ? strtoll(text, NULL, 10)
		       : -1;
	return *row >= 0;
}

static int label_file_compare_numbers(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Lines of "row label" or "row;label" would silently make a class of each line.  They
 * are detected from numbers that all lines begin with, each line with another one; only
 * the first line may be a header.
 */
static int label_file_check_separator(const struct csv_labels *c,
				      struct error *err)
{
	cleanup_free int64_t *rows = malloc((c->list.n + 1) * sizeof *rows);
	size_t n = 0, from = 0;

	if (!rows)
		return error_no_memory(err, "the rows of labels");
	from = !label_file_begins_with_row(c->list.at[0].text, rows) &&
	       strpbrk(c->list.at[0].text, " \t;");
	while (from + n < c->list.n &&
	       label_file_begins_with_row(c->list.at[from + n].text, &rows[n]))
		n++;
	if (n < 2 || from + n < c->list.n)
		return 0;
	qsort(rows, n, sizeof *rows, label_file_compare_numbers);
	for (size_t i = 1; i < n; i++)
		if (rows[i] == rows[i - 1])
			return 0;
	return error_set(err, -EBADMSG,
			 "line %zu: '%.40s' looks like a row and its label: "
			 "separate them by a comma, or put labels that begin "
			 "with numbers in row,label lines",
			 from + 1, c->list.at[from].text);
}

/* Sort labels by row; each row must occur once, from 0 on. */
static int label_file_check_rows(struct csv_labels *c, struct error *err)
{
	if (!c->list.n)
		return error_set(err, -EBADMSG, "it has no labels");
	if (!c->numbered)
		return label_file_check_separator(c, err);
	qsort(c->list.at, c->list.n, sizeof *c->list.at,
	      label_file_compare_rows);
	for (size_t i = 0; i < c->list.n; i++)
		if (c->list.at[i].row != i)
			return error_set(
				err, -EBADMSG, "row %zu has %s", i,
				i && c->list.at[i].row == i - 1
					? "no label, the row before it has two"
					: "no label");
	return 0;
}

/* Make the labels numbers, if all are written as printf would write them. */
static void label_file_find_numbers(struct csv_labels *c)
{
	char again[32];
	bool all = true;

	for (size_t i = 0; i < c->list.n && all; i++) {
		struct class_label *l = &c->list.at[i];

		all = label_file_whole_number(l->text, &l->number);
		snprintf(again, sizeof again, "%" PRId64, l->number);
		all = all && !strcmp(again, l->text);
	}
	for (size_t i = 0; i < c->list.n && all; i++)
		c->list.at[i].text = NULL;
}

int classes_of_text(struct classes **out, char *text, size_t n,
		    const char *path, struct error *err)
{
	struct csv_labels csv = {.begun = false};
	struct class_labels l = {0};
	struct class_index *x = NULL;
	int r = csv_parse(text, n, label_file_read_row, &csv, err);

	if (r == 0)
		r = label_file_check_rows(&csv, err);
	if (r == 0) {
		label_file_find_numbers(&csv);
		l.at = csv.list.at;
		l.n = csv.list.n;
		r = class_index_new(&x, &l, err);
	}
	vec_free(&csv.list);
	return r < 0 ? error_prefix(err, "labels '%s': ", path)
		     : classes_of_index(out, x, path, err);
}

static int label_file_read(const char *path, char **text, size_t *n,
			   struct error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "labels '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_size > CSV_MOST)
		return error_set(err, -EINVAL,
				 "labels '%s': not a file of at most 4 GiB",
				 path);
	*text = malloc((size_t)st.st_size + 1);
	if (!*text)
		return error_no_memory(err, "the file of labels");
	for (*n = 0; *n < (size_t)st.st_size && got; *n += (size_t)got) {
		got = read(fd, *text + *n, (size_t)st.st_size - *n);
		if (got < 0)
			return error_errno(err, -errno, "labels '%s'", path);
	}
	return 0;
}

int classes_of_csv(struct classes **out, const char *path, struct error *err)
{
	cleanup_free char *text = NULL;
	size_t n = 0;
	int r = label_file_read(path, &text, &n, err);

	return r < 0 ? r : classes_of_text(out, text, n, path, err);
}
