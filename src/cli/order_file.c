/* SPDX-License-Identifier: BSD-2-Clause */
/* Option order=: what is to be followed, of a tree that is there. */
/*
 * A name is a path from the root; or from the root of a tensor's samples/ (of any tensor,
 * that which had the name before first), where the ending may be missing, as in order.txt.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/order_file.h"
#include "order/order.h"

/* Tensors among whose samples a name is looked for. */
#define TENSORS_MAX 256

struct names {
	const struct tree *tree;
	vec(uint64_t) ino;     /* of each line */
	vec(uint64_t) samples; /* directories called so */
	size_t last;           /* the one that had the last name */
};

static bool find_samples(struct names *x)
{
	uint64_t dirs, bytes;

	tree_usage(x->tree, &dirs, &bytes);
	for (uint64_t d = 0; d < dirs && x->samples.n < TENSORS_MAX; d++) {
		struct node dir, n;

		if (tree_node(x->tree, d << 40 | 1, &dir) == 0 && dir.files &&
		    tree_lookup(x->tree, dir.ino, "samples", &n) == 0 &&
		    S_ISDIR(n.type) && n.files == dir.files &&
		    !vec_push(&x->samples, n.ino))
			return false;
	}
	return true;
}

/* "a/b" from a directory on. */
static bool walk(const struct tree *t, uint64_t dir, const char *path,
		 struct node *out)
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

/* The ending of the files of a directory, or of those below it. */
static bool ending(const struct tree *t, uint64_t dir,
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

	if (walk(x->tree, dir, line, out))
		return true;
	if (line[strspn(line, "0123456789/")] || !ending(x->tree, dir, end) ||
	    asprintf(&longer, "%s%s", line, end) < 0)
		return false;
	return walk(x->tree, dir, longer, out);
}

static bool find(struct names *x, const char *line, struct node *out)
{
	while (*line == '/' || (line[0] == '.' && line[1] == '/'))
		line += *line == '/' ? 1 : 2;
	if (x->samples.n && in_samples(x, x->samples.at[x->last], line, out) &&
	    S_ISREG(out->type))
		return true;
	if (walk(x->tree, TREE_ROOT, line, out) && S_ISREG(out->type))
		return true;
	for (size_t i = 0; i < x->samples.n; i++)
		if (in_samples(x, x->samples.at[i], line, out) &&
		    S_ISREG(out->type)) {
			x->last = i;
			return true;
		}
	return false;
}

static int read_names(struct names *x, const char *path, FILE *f,
		      struct error *err)
{
	cleanup_free char *line = NULL;
	size_t room = 0;
	ssize_t n;

	for (uint64_t number = 1; (n = getline(&line, &room, f)) >= 0;
	     number++) {
		struct node node;

		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = '\0';
		if (!n)
			continue;
		if (strlen(line) != (size_t)n || !find(x, line, &node))
			return error_set(err, -EINVAL,
					 "order=%s: line %" PRIu64
					 ": there is no file '%.200s' in the "
					 "mount",
					 path, number, line);
		if (x->ino.n == ORDER_KEPT_MAX)
			return error_set(err, -E2BIG,
					 "order=%s: more than %" PRIu64
					 " names take too much memory",
					 path, ORDER_KEPT_MAX);
		if (!vec_push(&x->ino, node.ino))
			return error_set(err, -ENOMEM, "out of memory");
	}
	if (ferror(f))
		return error_errno(err, errno ? -errno : -EIO, "order=%s",
				   path);
	return x->ino.n ? 0
			: error_set(err, -EINVAL, "order=%s: it names nothing",
				    path);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Each number once, and which of them each line is. */
static int number_lines(const struct names *x, struct follow_order *out,
			struct error *err)
{
	size_t n = x->ino.n, k = 0;

	out->ino = malloc(n * sizeof *out->ino);
	out->list = malloc(n * sizeof *out->list);
	if (!out->ino || !out->list)
		return error_set(err, -ENOMEM, "out of memory");
	memcpy(out->ino, x->ino.at, n * sizeof *out->ino);
	qsort(out->ino, n, sizeof *out->ino, by_number);
	for (size_t i = 0; i < n; i++)
		if (!k || out->ino[k - 1] != out->ino[i])
			out->ino[k++] = out->ino[i];
	out->n_inos = (uint32_t)k;
	out->length = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const uint64_t *at = bsearch(&x->ino.at[i], out->ino, k,
					     sizeof *at, by_number);

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
	cleanup_fclose FILE *f = NULL;
	int r;

	*out = (struct follow_order){.ino = NULL};
	r = order_spec_parse(text, &out->spec, err);
	if (r < 0 || !out->spec.file)
		return r;
	f = fopen(out->spec.file, "re");
	if (!f)
		return error_errno(err, -errno, "order=%s", text);
	r = find_samples(&x) ? read_names(&x, text, f, err)
			     : error_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = number_lines(&x, out, err);
	if (r < 0)
		follow_order_free(out);
	vec_free(&x.ino);
	vec_free(&x.samples);
	return r;
}
