/* SPDX-License-Identifier: BSD-2-Clause */
/* The label of each sample, according to --labels. */
#include "pack/hdf5/sample_labels.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/csv.h"
#include "base/vec.h"

/* Largest file of labels, in bytes. */
#define TEXT_MOST (INT64_C(4) << 30)

struct labeled {
	const char *path;
	const char *text; /* NULL: not labelled so far */
	uint64_t line;
	int64_t label;
};
struct labels {
	const struct sample_list *samples;
	vec(const char *) classes; /* sorted by name */
	bool by_dirs, numbers;
	/* If the labels are in a file: */
	char *text;
	vec(struct labeled) list; /* samples, sorted by path */
	size_t path_at, label_at; /* columns of path and label */
	size_t columns;           /* number of columns; 0: not known */
	uint64_t unknown;
	char unknown_path[128];
};

static int labels_compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int64_t class_of(const struct labels *l, const char *name)
{
	const char **at = l->classes.n
				  ? bsearch(&name, l->classes.at, l->classes.n,
					    sizeof name, labels_compare_texts)
				  : NULL;

	return at ? at - l->classes.at : -1;
}

/* ---- directories ------------------------------------------------------------- */

/* The class of a path is its first component.  Return it (malloc'ed), or NULL if there is
 * no directory or no memory. */
static char *labels_top_directory(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path)) : NULL;
}

static int from_dirs(struct labels *l, struct error *err)
{
	const struct scan *s = l->samples->scan;

	l->by_dirs = true;
	for (uint64_t i = 0; i < s->list.n; i++)
		if (S_ISDIR(s->list.at[i].mode) &&
		    !strchr(scan_path(s, i), '/') &&
		    !vec_push(&l->classes, scan_path(s, i)))
			return error_no_memory(err, "the labels of samples");
	if (l->classes.n)
		qsort(l->classes.at, l->classes.n, sizeof *l->classes.at,
		      labels_compare_texts);
	for (uint64_t i = 0; i < s->list.n; i++)
		if (sample_is(l->samples, i) && labels_at(l, i) < 0)
			return error_set(err, -EBADMSG,
					 "'%s' is not in a directory that "
					 "could be its label; move it into "
					 "one, or leave it out with --exclude",
					 scan_path(s, i));
	return 0;
}

/* ---- a file ------------------------------------------------------------------ */

static int labels_read_file(struct labels *l, const char *path, size_t *n,
			    struct error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "labels: '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_size > TEXT_MOST)
		return error_set(err, -EINVAL,
				 "labels: '%s' is not a file of at most 4 GiB; "
				 "--labels takes 'dirs' or the name of a file",
				 path);
	l->text = malloc((size_t)st.st_size + 1);
	if (!l->text)
		return error_no_memory(err, "the labels of samples");
	for (*n = 0; *n < (size_t)st.st_size && got; *n += (size_t)got) {
		got = read(fd, l->text + *n, (size_t)st.st_size - *n);
		if (got < 0)
			return error_errno(err, -errno, "labels: '%s'", path);
	}
	return 0;
}

static int labels_compare_paths(const void *a, const void *b)
{
	const struct labeled *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static struct labeled *labels_find(const struct labels *l, const char *path)
{
	struct labeled key = {.path = path};

	while (path[0] == '.' && path[1] == '/')
		path += 2;
	key.path = path;
	return bsearch(&key, l->list.at, l->list.n, sizeof key,
		       labels_compare_paths);
}

/* Strip blanks, because many lists have "path, label". */
static char *labels_trim(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	for (n = strlen(text); n && strchr(" \t", text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcasecmp(word, *list))
			return true;
	return false;
}

/* Find the columns by their names.  Return false if this row is not a header. */
static bool labels_read_header(struct labels *l, char **field, size_t n)
{
	static const char *const paths[] = {"path",     "file",   "file_name",
					    "filename", "fname",  "name",
					    "image",    "sample", NULL};
	static const char *const labels[] = {"label",  "labels",   "class",
					     "target", "category", NULL};
	size_t path = n, label = n;

	for (size_t i = n; i-- > 0;) {
		const char *name = labels_trim(field[i]);

		if (is_one_of(name, paths))
			path = i;
		if (is_one_of(name, labels))
			label = i;
	}
	if (path == n || label == n || path == label)
		return false;
	l->path_at = path;
	l->label_at = label;
	l->columns = n;
	return true;
}

static int labels_add_row(void *ctx, uint64_t line, char **field, size_t n,
			  struct error *err)
{
	struct labels *l = ctx;
	struct labeled *of;

	if (!l->columns) {
		if (!labels_find(l, field[0]) &&
		    labels_read_header(l, field, n))
			return 0;
		l->label_at = 1;
		l->columns = 2;
	}
	if (n != l->columns)
		return error_set(
			err, -EBADMSG,
			"line %" PRIu64
			": %zu field%s instead of %zu; rows are path,label",
			line, n, n == 1 ? "" : "s", l->columns);
	of = labels_find(l, field[l->path_at]);
	if (!of) {
		if (l->unknown++ == 0)
			snprintf(l->unknown_path, sizeof l->unknown_path, "%s",
				 field[l->path_at]);
		return 0;
	}
	if (of->text)
		return error_set(err, -EBADMSG,
				 "line %" PRIu64
				 ": '%s' has a label already, in line "
				 "%" PRIu64,
				 line, of->path, of->line);
	of->text = labels_trim(field[l->label_at]);
	if (!*of->text)
		return error_set(err, -EBADMSG,
				 "line %" PRIu64 ": the label is empty", line);
	of->line = line;
	return 0;
}

/* Parse a whole number that is written as printf would write it. */
static bool labels_read_number(const char *text, int64_t *out)
{
	char again[32];
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	snprintf(again, sizeof again, "%" PRId64, *out);
	return !errno && !strcmp(text, again);
}

static int number_classes(struct labels *l, struct error *err)
{
	size_t n = 0;

	l->numbers = true;
	for (size_t i = 0; i < l->list.n && l->numbers; i++)
		l->numbers = labels_read_number(l->list.at[i].text,
						&l->list.at[i].label);
	if (l->numbers)
		return 0;
	for (size_t i = 0; i < l->list.n; i++)
		if (!vec_push(&l->classes, l->list.at[i].text))
			return error_no_memory(err, "the labels of samples");
	qsort(l->classes.at, l->classes.n, sizeof *l->classes.at,
	      labels_compare_texts);
	for (size_t i = 0; i < l->classes.n; i++)
		if (n == 0 || strcmp(l->classes.at[n - 1], l->classes.at[i]))
			l->classes.at[n++] = l->classes.at[i];
	l->classes.n = n;
	for (size_t i = 0; i < l->list.n; i++)
		l->list.at[i].label = class_of(l, l->list.at[i].text);
	return 0;
}

static int check_missing(const struct labels *l, const char *file,
			 struct error *err)
{
	const char *first = NULL;
	uint64_t missing = 0;

	for (size_t i = l->list.n; i-- > 0;)
		if (!l->list.at[i].text) {
			first = l->list.at[i].path;
			missing++;
		}
	if (!missing)
		return 0;
	return error_set(err, -EBADMSG,
			 "labels: '%s' has no label for %" PRIu64
			 " of %zu samples, the first is '%.150s'%s%.120s%s",
			 file, missing, l->list.n, first,
			 l->unknown ? "; it has a label for '" : "",
			 l->unknown_path,
			 l->unknown ? "', which is not a sample" : "");
}

static void note_unknown(const struct labels *l, const struct sink_args *a)
{
	char sentence[400];

	if (!l->unknown || !a->note)
		return;
	snprintf(sentence, sizeof sentence,
		 "labels: ignored %" PRIu64
		 " row%s for files that are not samples, the first is '%s'",
		 l->unknown, l->unknown == 1 ? "" : "s", l->unknown_path);
	a->note(a->note_ctx, sentence);
}

static int from_file(struct labels *l, const char *file,
		     const struct sink_args *a, struct error *err)
{
	const struct scan *s = l->samples->scan;
	size_t n = 0;
	int r = labels_read_file(l, file, &n, err);

	if (r < 0)
		return r;
	for (uint64_t i = 0; i < s->list.n; i++) {
		struct labeled one = {.path = scan_path(s, i)};

		if (sample_is(l->samples, i) && !vec_push(&l->list, one))
			return error_no_memory(err, "the labels of samples");
	}
	qsort(l->list.at, l->list.n, sizeof *l->list.at, labels_compare_paths);
	r = csv_parse(l->text, n, labels_add_row, l, err);
	if (r < 0)
		return error_prefix(err, "labels: '%s': ", file);
	r = check_missing(l, file, err);
	if (r == 0)
		r = number_classes(l, err);
	if (r == 0)
		note_unknown(l, a);
	return r;
}

/* ---- interface
 * ------------------------------------------------------------------------ */

int labels_new(struct labels **out, const char *how,
	       const struct sample_list *samples, const struct sink_args *a,
	       struct error *err)
{
	struct labels *l = calloc(1, sizeof *l);
	int r;

	*out = NULL;
	if (!l)
		return error_no_memory(err, "the labels of samples");
	l->samples = samples;
	r = strcmp(how, "dirs") ? from_file(l, how, a, err) : from_dirs(l, err);
	if (r < 0)
		labels_free(l);
	else
		*out = l;
	return r;
}

int64_t labels_at(const struct labels *l, uint64_t entry)
{
	const char *path = scan_path(l->samples->scan, entry);
	const struct labeled *of;

	if (l->by_dirs) {
		cleanup_free char *name = labels_top_directory(path);

		return name ? class_of(l, name) : -1;
	}
	of = labels_find(l, path);
	return of ? of->label : -1;
}

const char *const *labels_classes(const struct labels *l, size_t *n)
{
	*n = l->classes.n;
	return l->numbers ? NULL : l->classes.at;
}

void labels_free(struct labels *l)
{
	if (!l)
		return;
	vec_free(&l->classes);
	vec_free(&l->list);
	free(l->text);
	free(l);
}
