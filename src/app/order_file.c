/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the option order=: the order in which files of a mount will be read. */
/* A name is a path from the root of the mount, or from the samples/ directory of a
 * tensor.  The tensor that had the previous name is tried first.  In samples/ the file
 * name extension may be missing, as in order.txt. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/order_file.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "readahead/order/lines.h"
#include "readahead/order/order.h"

/* The largest number of tensors whose samples/ are searched for a name. */
#define TENSORS_MAX 256
/* Bytes of the file that are read at once. */
#define BLOCK 16384

struct names {
	const struct tree *tree;
	vec(uint64_t) ino;     /* the inode of each line */
	vec(uint64_t) samples; /* inodes of the directories samples/ */
	size_t last; /* index in `samples` of the directory that had the last name */
};

static bool find_samples(struct names *x)
{
	uint32_t dirs = tree_dirs(x->tree);

	for (uint32_t d = 0; d < dirs && x->samples.n < TENSORS_MAX; d++) {
		struct node dir, n;

		if (tree_node(x->tree, tree_dir_ino(x->tree, d), &dir) == 0 &&
		    dir.files &&
		    tree_lookup(x->tree, dir.ino, "samples", &n) == 0 &&
		    S_ISDIR(n.type) && n.files == dir.files &&
		    !vec_push(&x->samples, n.ino))
			return false;
	}
	return true;
}

/* Look up a path like "a/b" from directory `dir`. */
static bool walk_named_path(const struct tree *t, uint64_t dir,
			    const char *path, struct node *out)
{
	char name[FILES_NAME_MAX + 1];

	for (;;) {
		size_t n = strcspn(path, "/");

		if (!n || n > FILES_NAME_MAX)
			return false;
		memcpy(name, path, n);
		name[n] = '\0';
		if (tree_lookup(t, dir, name, out) < 0)
			return false;
		if (!path[n])
			return true;
		dir = out->ino;
		path += n + 1;
	}
}

/* Find the file name extension of the files in a directory, or of those below it. */
static bool sample_ending(const struct tree *t, uint64_t dir,
			  char out[FILES_NAME_MAX + 1])
{
	char name[FILES_NAME_MAX + 1];
	struct node n;

	while (tree_entry(t, dir, 0, &n, name, sizeof name) == 0) {
		if (S_ISREG(n.type)) {
			const char *dot = strchr(name, '.');

			strcpy(out, dot ? dot : "");
			return dot;
		}
		dir = n.ino;
	}
	return false;
}

static bool in_samples(const struct names *x, uint64_t dir, const char *line,
		       struct node *out)
{
	char end[FILES_NAME_MAX + 1];
	cleanup_free char *longer = NULL;

	if (walk_named_path(x->tree, dir, line, out))
		return true;
	if (line[strspn(line, "0123456789/")] ||
	    !sample_ending(x->tree, dir, end) ||
	    asprintf(&longer, "%s%s", line, end) < 0)
		return false;
	return walk_named_path(x->tree, dir, longer, out);
}

static bool find_named_file(struct names *x, const char *line, struct node *out)
{
	while (*line == '/' || (line[0] == '.' && line[1] == '/'))
		line += *line == '/' ? 1 : 2;
	if (x->samples.n && in_samples(x, x->samples.at[x->last], line, out) &&
	    S_ISREG(out->type))
		return true;
	if (walk_named_path(x->tree, TREE_ROOT, line, out) &&
	    S_ISREG(out->type))
		return true;
	for (size_t i = 0; i < x->samples.n; i++)
		if (in_samples(x, x->samples.at[i], line, out) &&
		    S_ISREG(out->type)) {
			x->last = i;
			return true;
		}
	return false;
}

static int add_name(void *ctx, uint64_t number, const char *line,
		    struct error *err)
{
	struct names *x = ctx;
	struct node node;

	if (!find_named_file(x, line, &node))
		return error_set(err, -EINVAL,
				 "line %" PRIu64
				 ": there is no file '%.200s' in the mount",
				 number, line);
	if (x->ino.n == ORDER_KEPT_MAX)
		return error_set(err, -E2BIG,
				 "more than %" PRIu64
				 " names take too much memory",
				 ORDER_KEPT_MAX);
	return vec_push(&x->ino, node.ino)
		       ? 0
		       : error_no_memory(err, "the names of the list");
}

static int read_names(struct names *x, int fd, struct error *err)
{
	struct order_lines lines;
	char bytes[BLOCK];
	int r = 0;

	order_lines_begin(&lines, add_name, x);
	while (r == 0) {
		ssize_t n = read(fd, bytes, sizeof bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, -errno, "cannot be read");
		if (n == 0)
			break;
		r = order_lines_feed(&lines, bytes, (size_t)n, err);
	}
	if (r == 0)
		r = order_lines_end(&lines, err);
	if (r == 0 && !x->ino.n)
		r = error_set(err, -EINVAL, "the list names no file");
	return r;
}

/* Open the list.  A device is not opened at all, because that alone may have effects. */
static int open_names(const char *path, struct error *err)
{
	struct stat st;
	int fd;

	if (stat(path, &st) < 0)
		return error_set(err, -errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return error_set(err, -EINVAL,
				 "a list of names must be a file or a pipe, "
				 "but this is %s",
				 S_ISDIR(st.st_mode) ? "a directory"
						     : "a device or a socket");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? error_set(err, -errno, "%s", strerror(errno)) : fd;
}

static int compare_inodes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Make the sorted list of distinct inodes, and for each line the index in that list. */
static int number_lines(const struct names *x, struct follow_order *out,
			struct error *err)
{
	size_t n = x->ino.n, k = 0;

	out->ino = malloc(n * sizeof *out->ino);
	out->list = malloc(n * sizeof *out->list);
	if (!out->ino || !out->list)
		return error_no_memory(err, "the order of reading");
	memcpy(out->ino, x->ino.at, n * sizeof *out->ino);
	qsort(out->ino, n, sizeof *out->ino, compare_inodes);
	for (size_t i = 0; i < n; i++)
		if (!k || out->ino[k - 1] != out->ino[i])
			out->ino[k++] = out->ino[i];
	out->n_inos = (uint32_t)k;
	out->length = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const uint64_t *at = bsearch(&x->ino.at[i], out->ino, k,
					     sizeof *at, compare_inodes);

		out->list[i] = (uint32_t)(at - out->ino);
	}
	return 0;
}

int order_open(struct follow_order *out, const char *text,
	       const struct tree *tree, struct error *err)
{
	struct names x = {.tree = tree,
			  .ino = VEC_EMPTY,
			  .samples = VEC_EMPTY,
			  .last = 0};
	cleanup_close int fd = -1;
	int r;

	*out = (struct follow_order){.ino = NULL};
	r = order_spec_parse(text, &out->spec, err);
	if (r < 0 || !out->spec.file)
		return r;
	r = fd = open_names(out->spec.file, err);
	if (fd >= 0)
		r = find_samples(&x)
			    ? read_names(&x, fd, err)
			    : error_no_memory(err,
					      "the directories of samples");
	if (r < 0)
		error_prefix(err, "order=%s: ", text);
	if (r == 0)
		r = number_lines(&x, out, err);
	if (r < 0)
		follow_order_free(out);
	vec_free(&x.ino);
	vec_free(&x.samples);
	return r;
}
