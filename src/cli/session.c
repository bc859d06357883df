/* SPDX-License-Identifier: BSD-2-Clause */
/* Wire sources, tree, store and fs for a command, and take them apart. */

/*
 * The order of teardown is the order of borrowing: fs borrows tree and store;
 * the store's threads use chunk sets, which live in tensors, which the tree
 * owns; tensors use their source; everything uses handles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/system.h"
#include "cli/cli.h"

char *session_base_name(const char *path)
{
	size_t end = strlen(path), begin;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--)
		;
	return strndup(path + begin, end - begin);
}

/* Text for the root's user.tensorfs.config. */
static char *describe_config(char *const *paths, size_t n,
			     const struct settings *s)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (size_t i = 0; i < n; i++)
		fprintf(f, "source=%s\n", paths[i]);
	fprintf(f, "cache-size=%llu\nthreads=%u\nsample-axes=%u\n",
		(unsigned long long)s->cache_size, s->threads,
		s->views.sample_axes);
	if (s->dataset)
		fprintf(f, "dataset=%s\n", s->dataset);
	if (s->prefix)
		fprintf(f, "prefix=%s\n", s->prefix);
	fprintf(f, "dtype-order=%s\nmissing=%s\ntimeout=%u\n",
		s->views.source_order ? "source" : "little",
		s->views.missing == MISSING_FILL ? "fill" : "error",
		s->timeout);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int refuse_clashes(char *const *paths, size_t n, struct error *err)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++) {
			cleanup_free char *a = session_base_name(paths[i]);
			cleanup_free char *b = session_base_name(paths[j]);

			if (!a || !b)
				return error_set(err, -ENOMEM, "out of memory");
			if (!strcmp(a, b))
				return error_set(err, -EEXIST,
						 "'%s' and '%s' would both be "
						 "the directory '%s'; mount "
						 "them apart",
						 paths[j], paths[i], a);
		}
	return 0;
}

static int open_source(struct session *s, struct tree_builder *b,
		       const char *path, bool alone, const struct settings *set,
		       struct error *err)
{
	struct source_args args = {.path = path,
				   .handles = s->handles,
				   .tree = b,
				   .dir = 0,
				   .views = set->views,
				   .prefix = set->prefix,
				   .dataset = set->dataset};
	int r;

	if (!alone) {
		cleanup_free char *name = session_base_name(path);
		struct stat st = {0};

		if (stat(path, &st) < 0)
			st.st_mtime = 0;
		args.dir = name ? tree_add_dir(b, 0, name, st.st_mtime)
				: UINT32_MAX;
		if (args.dir == UINT32_MAX)
			return error_set(err, -ENOMEM, "out of memory");
	}
	r = source_open(&args, &s->sources[s->n_sources], err);
	if (r == 0)
		s->n_sources++;
	return r;
}

static int build_tree(struct session *s, char *const *paths, size_t n,
		      const struct settings *set, struct error *err)
{
	struct tree_builder *b = tree_builder_new();
	int r = 0;

	s->sources = calloc(n, sizeof *s->sources);
	if (!b || !s->sources)
		r = error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n && r == 0; i++)
		r = open_source(s, b, paths[i], n == 1, set, err);
	if (r == 0)
		r = tree_finish(b, &s->tree, err);
	tree_builder_free(b);
	return r;
}

/* Files that not everybody may read are not shown as if everybody might. */
static bool all_world_readable(char *const *paths, size_t n)
{
	struct stat st;

	for (size_t i = 0; i < n; i++)
		if (stat(paths[i], &st) < 0 || !(st.st_mode & S_IROTH))
			return false;
	return true;
}

static int wire(struct session *s, char *const *paths, size_t n,
		const struct settings *set, unsigned prefetch,
		struct error *err)
{
	struct store_options so = {.cache_size = set->cache_size,
				   .prefetch_threads = prefetch,
				   .handles = s->handles};
	struct fs_options fo = {.uid = set->uid,
				.gid = set->gid,
				.fmask = set->fmask,
				.dmask = set->dmask,
				.owner_only = !all_world_readable(paths, n),
				.version = cli_version};
	int r = store_new(&s->store, &so, err);

	if (r < 0)
		return r;
	s->config = describe_config(paths, n, set);
	if (!s->config)
		return error_set(err, -ENOMEM, "out of memory");
	fo.config = s->config;
	return fs_new(&s->fs, s->tree, s->store, &fo, err);
}

int session_open(struct session **out, char *const *paths, size_t n,
		 const struct settings *set, unsigned prefetch,
		 struct error *err)
{
	struct session *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	system_raise_files();
	r = refuse_clashes(paths, n, err);
	if (r == 0)
		r = handles_new(&s->handles, 0, set->threads + prefetch, err);
	if (r == 0)
		r = build_tree(s, paths, n, set, err);
	if (r == 0)
		r = wire(s, paths, n, set, prefetch, err);
	if (r < 0) {
		session_free(s);
		return r;
	}
	*out = s;
	return 0;
}

int session_start(struct session *s, struct error *err)
{
	return store_start(s->store, err);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	if (s->fs)
		fs_free(s->fs);
	if (s->store)
		store_free(s->store);
	if (s->tree)
		tree_free(s->tree);
	for (size_t i = s->n_sources; i-- > 0;)
		source_close(s->sources[i]);
	free(s->sources);
	if (s->handles)
		handles_free(s->handles);
	free(s->config);
	free(s);
}
