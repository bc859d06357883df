/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens sources, makes tree, store and file system of them for a command, and frees
 * them. */

/*
 * The order of teardown is the order of borrowing: fs borrows tree and store;
 * the store's threads use chunk sets, which live in tensors, which the tree
 * owns; tensors use their source; everything uses handles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/audience.h"
#include "app/options_fit.h"
#include "app/progress.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/home.h"
#include "base/log.h"
#include "base/number.h"
#include "base/system.h"
#include "formats/bundles.h"
#include "formats/registry/nest.h"
#include "stream/stream.h"
#include "tree/graft.h"
#include "views/classes.h"
#include "views/zarr/store.h"

/* Memory for decoding a stream ahead, in bytes; the cache is empty then. */
#define SCAN_MEMORY (UINT64_C(256) << 20)
/* The share of the cache for copies of members that must be contiguous. */
#define STAGE_SHARE 4
/* The share for idle decoders in the middle of streams. */
#define DECODERS_SHARE 8
/* The share for freed pages of very large chunks, which the next ones reuse. */
#define REUSE_SHARE 4

/* The directory where all tensors form one Zarr hierarchy (v2); with "3" appended, that
 * of Zarr v3. */
#define ZARR_ROOT ".zarr"

/* Make the text of the root's attribute user.tensorfs.config. */
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
	if (s->shm_cache)
		fprintf(f, "shm-cache=%llu\nshm-dir=%s\n",
			(unsigned long long)s->shm_cache,
			s->shm_dir ? s->shm_dir : SHM_DEFAULT);
	if (s->no_prefetch)
		fprintf(f, "prefetch=off\n");
	if (s->order)
		fprintf(f, "order=%s\n", s->order);
	if (s->dataset)
		fprintf(f, "dataset=%s\n", s->dataset);
	if (s->concat_given)
		fprintf(f, "concat=%d\n", s->concat);
	if (s->zarr_root)
		fprintf(f, "zarr-root=%s\n", s->zarr_root);
	if (s->raw)
		fprintf(f, "raw=%s\n", s->raw);
	if (s->views.ext)
		fprintf(f, "ext=%s\n", s->views.ext);
	if (s->index)
		fprintf(f, "index=%s\n", s->index);
	if (s->subdir)
		fprintf(f, "subdir=%s\n", s->subdir);
	if (s->offset)
		fprintf(f, "offset=%llu\n", (unsigned long long)s->offset);
	fprintf(f, "%s%s%s", s->joined ? "union\n" : "",
		s->nested ? "recursive\n" : "",
		s->versions ? "versions\n" : "");
	if (s->views.labels)
		fprintf(f, "labels=%s\n", s->views.labels);
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

/* Return the name of source i as a directory (malloc'ed). */
static char *directory_name(const struct settings *s, char *const *paths,
			    size_t i)
{
	return s->names && s->names[i] ? strdup(s->names[i])
				       : session_base_name(paths[i]);
}

static int refuse_clashes(const struct settings *s, char *const *paths,
			  size_t n, struct error *err)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++) {
			cleanup_free char *a = directory_name(s, paths, i);
			cleanup_free char *b = directory_name(s, paths, j);

			if (!a || !b)
				return error_no_memory(
					err, "the names of the sources");
			if (!strcmp(a, b))
				return error_set(err, -EEXIST,
						 "'%s' and '%s' would both be "
						 "the directory '%s'; name "
						 "one: NAME=SOURCE",
						 paths[j], paths[i], a);
		}
	return 0;
}

struct opening {
	struct session *s;
	struct tree_builder *b;
	const struct settings *set;
	struct archive_options archive;
	struct progress progress;
	const char *path; /* the source whose progress is shown */
	struct error *err;
};

/* Show the progress: reading an archive for the first time may take minutes. */
static void show_progress(void *ctx, const char *path, uint64_t done,
			  uint64_t total)
{
	struct opening *o = ctx;

	if (o->path != path) {
		progress_clear(&o->progress);
		progress_init(&o->progress,
			      o->set->quiet      ? "none"
			      : o->set->progress ? o->set->progress
						 : "auto",
			      "reading", total);
		o->path = path;
	}
	progress_update(&o->progress, done);
}

static void set_source_args(struct opening *o, const char *path,
			    struct source_args *args)
{
	*args = (struct source_args){.path = path,
				     .handles = o->s->handles,
				     .pinner = store_pinner(o->s->store),
				     .archive = &o->archive,
				     .tree = o->b,
				     .dir = 0,
				     .views = o->set->views,
				     .prefix = o->set->prefix,
				     .dataset = o->set->dataset,
				     .joined = o->set->concat_given,
				     .concat = o->set->concat,
				     .raw = o->set->raw};
	args->views.labels_found = &o->s->labels_found;
	args->views.classes = o->s->classes;
	if (o->s->classes)
		args->views.labels = NULL;
}

static int open_session_source(struct opening *o, char *const *paths, size_t i,
			       bool alone)
{
	const char *path = paths[i];
	struct session *s = o->s;
	struct source_args args;
	int r;

	set_source_args(o, path, &args);
	if (!alone) {
		cleanup_free char *name = directory_name(o->set, paths, i);
		struct stat st = {0};

		if (stat(path, &st) < 0)
			st.st_mtime = 0;
		args.dir = name ? tree_add_dir(o->b, 0, name, st.st_mtime)
				: UINT32_MAX;
		if (args.dir == UINT32_MAX)
			return error_no_memory(o->err,
					       "the directory of a source");
	}
	r = source_open(&args, &s->sources[s->n_sources], o->err);
	if (r == 0)
		s->n_sources++;
	return r;
}

static int open_union(struct opening *o, char *const *paths, size_t n)
{
	struct session *s = o->s;
	struct source_args args;
	int r;

	set_source_args(o, NULL, &args);
	r = source_open_union(&args, paths, n, s->sources, o->err);
	if (r == 0)
		s->n_sources = n + 1;
	return r;
}

/* Open the grafts that can only be opened before there are threads. */
static void open_grafts(const struct tree *t)
{
	struct error err;
	struct graft *g;

	for (uint32_t i = 0; (g = tree_graft(t, i)); i++)
		if (g->eager && tree_graft_open(t, g, &err) < 0)
			log_warn("%s", err.text);
}

/* Read the labels if they are in a file.  They apply to every tensor with as many
 * samples. */
static int open_labels(struct session *s, const struct settings *set,
		       struct error *err)
{
	const char *path = set->views.labels;
	size_t n = path ? strlen(path) : 0;

	if (n < 4 || (strcasecmp(path + n - 4, ".csv") &&
		      strcasecmp(path + n - 4, ".txt")))
		return 0;
	return classes_of_csv(&s->classes, path, err);
}

/* Call when everything that can have labels is open.  Labels that were given but not
 * used are an error. */
static int check_labels(const struct session *s, const char *labels,
			struct error *err)
{
	if (s->classes)
		return classes_used(s->classes)
			       ? 0
			       : classes_fail_unused(s->classes,
						     classes_name(s->classes),
						     err);
	if (!labels || s->labels_found)
		return 0;
	return error_set(
		err, -EINVAL,
		"labels: no file has '%s' for its samples; labels= is a "
		"dataset, an attribute (OBJECT@NAME), a column of an Arrow or "
		"Parquet file, or a .csv or .txt file",
		labels);
}

/* Add the directories of the Zarr hierarchies, v2 and v3. */
static int add_zarr(struct opening *o, struct files *store[2])
{
	const char *name = o->set->zarr_root ? o->set->zarr_root : ZARR_ROOT;
	bool hidden = *name == '.';

	for (unsigned v3 = 0; v3 < 2; v3++) {
		cleanup_free char *full = NULL;
		uint32_t dir;

		if (asprintf(&full, "%s%s", name, v3 ? "3" : "") < 0) {
			full = NULL;
			return error_no_memory(
				o->err, "the name of the Zarr hierarchy");
		}
		dir = hidden ? tree_add_hidden(o->b, 0, full, 0)
			     : tree_add_dir(o->b, 0, full, 0);
		store[v3] = zarr_store_new(v3, hidden);
		if (dir == UINT32_MAX || !store[v3])
			return error_no_memory(o->err, "the Zarr hierarchy");
		tree_set_files(o->b, dir, store[v3]);
	}
	return 0;
}

/* Refuse a Zarr root that the user named if a source has that name: it would be renamed. */
static int check_zarr_root(const struct session *s, const struct settings *set,
			   struct files *const store[2], struct error *err)
{
	for (unsigned v3 = 0; set->zarr_root && v3 < 2; v3++) {
		cleanup_free char *name = NULL;
		struct node n;

		if (asprintf(&name, "%s%s", set->zarr_root, v3 ? "3" : "") <
		    0) {
			name = NULL;
			return error_no_memory(
				err, "the name of the Zarr hierarchy");
		}
		if (tree_lookup(s->tree, TREE_ROOT, name, &n) == 0 &&
		    n.files != store[v3])
			return error_set(err, SOURCE_USAGE,
					 "zarr-root=%s: there is a '%s' in the "
					 "root already; choose another name",
					 set->zarr_root, name);
	}
	return 0;
}

static int build_session_tree(struct session *s, char *const *paths, size_t n,
			      const struct settings *set, struct error *err)
{
	struct opening o = {
		.s = s,
		.b = tree_builder_new(),
		.set = set,
		.archive = {.index = set->index,
			    .subdir = set->subdir,
			    .offset = set->offset,
			    .versions = set->versions,
			    .nest = set->nested || set->within
					    ? &nest_in_members
					    : NULL,
			    .looks = set->looks,
			    .as_is = set->as_is,
			    .member_views = set->member_views,
			    .stage = set->cache_size / STAGE_SHARE,
			    .threads = set->cache_size >= SCAN_MEMORY
					       ? system_cores()
					       : 1,
			    .progress = show_progress,
			    .progress_ctx = &o},
		.err = err,
	};
	struct files *store[2];
	int r = 0;

	progress_init(&o.progress, "none", "", 0);
	s->sources = calloc(n + 1, sizeof *s->sources);
	if (!o.b || !s->sources)
		r = error_no_memory(err, "the tree of files");
	if (r == 0)
		r = open_labels(s, set, err);
	if (r == 0 && set->joined && n > 1)
		r = open_union(&o, paths, n);
	for (size_t i = 0; i < n && r == 0 && !(set->joined && n > 1); i++)
		r = open_session_source(
			&o, paths, i, n == 1 && !(set->names && set->names[0]));
	progress_clear(&o.progress);
	if (r == 0)
		r = options_fit(set, s->sources, s->n_sources, err);
	if (r == 0)
		r = add_zarr(&o, store);
	if (r == 0)
		r = tree_finish(o.b, &s->tree, err);
	tree_builder_free(o.b);
	if (r == 0)
		r = bundles_add(s->tree, err);
	if (r == 0)
		r = check_zarr_root(s, set, store, err);
	if (r < 0)
		return r;
	if (zarr_name_axes(s->tree) < 0)
		return error_no_memory(err, "the axes of the Zarr hierarchy");
	zarr_store_bind(store[0], s->tree);
	zarr_store_bind(store[1], s->tree);
	open_grafts(s->tree);
	return check_labels(s, set->views.labels, err);
}

/* Add the numbers for statfs: bytes and inodes of the sources. */
static void add_usage(const struct session *s, struct fs_options *o)
{
	for (size_t i = 0; i < s->n_sources; i++) {
		const struct source *source = s->sources[i];
		uint64_t bytes, inodes;

		if (!source->ops->usage)
			continue;
		source->ops->usage(source, &bytes, &inodes);
		if (add_overflows(o->bytes, bytes, &o->bytes))
			o->bytes = UINT64_MAX;
		o->inodes += inodes;
	}
}

static int make_file_system(struct session *s, char *const *paths, size_t n,
			    const struct settings *set, struct error *err)
{
	struct fs_options fo = {
		.uid = set->uid == OWNER_DEFAULT ? geteuid() : set->uid,
		.gid = set->gid == OWNER_DEFAULT ? getegid() : set->gid,
		.uid_given = set->uid != OWNER_DEFAULT,
		.gid_given = set->gid != OWNER_DEFAULT,
		.shared = set->allow_other || set->allow_root,
		.fmask = set->fmask,
		.dmask = set->dmask,
		.owner_only = audience_owner_only(s->handles, paths, n, set),
		.version = cli_version};

	s->config = describe_config(paths, n, set);
	if (!s->config)
		return error_no_memory(err, "the description of the mount");
	fo.config = s->config;
	add_usage(s, &fo);
	return fs_new(&s->fs, s->tree, s->store, &fo, err);
}

int session_share(struct shared **out, const struct settings *s,
		  struct error *err)
{
	struct shared_options o = {.base = s->shm_dir,
				   .size = s->shm_cache,
				   .version = cli_version};

	*out = NULL;
	return s->shm_cache ? shared_open(out, &o, err) : 0;
}

int session_open(struct session **out, char *const *paths, size_t n,
		 const struct settings *set, unsigned prefetch,
		 struct error *err)
{
	return session_open_shared(out, paths, n, set, prefetch, NULL, err);
}

int session_open_shared(struct session **out, char *const *paths, size_t n,
			const struct settings *set, unsigned prefetch,
			struct shared *shared, struct error *err)
{
	struct store_options so = {.cache_size = set->cache_size,
				   .prefetch_threads = prefetch,
				   .no_guesses = set->no_prefetch,
				   .shared = shared};
	struct session *s = calloc(1, sizeof *s);
	int r;

	*out = NULL;
	if (!s) {
		shared_close(shared);
		return error_no_memory(err, "the sources");
	}
	s->shared = shared;
	system_raise_files();
	stream_idle_decoders_limit(set->cache_size / DECODERS_SHARE);
	buf_reuse_large(set->cache_size / REUSE_SHARE);
	r = set->joined ? 0 : refuse_clashes(set, paths, n, err);
	if (r == 0)
		r = handles_new(&s->handles, 0, set->threads + prefetch, err);
	so.handles = s->handles;
	if (r == 0)
		r = audience_limit(s->handles, paths, n, set, err);
	if (r == 0)
		r = store_new(&s->store, &so, err);
	if (r == 0)
		r = build_session_tree(s, paths, n, set, err);
	if (r == 0)
		r = make_file_system(s, paths, n, set, err);
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
	source_isolate_end();
	for (size_t i = s->n_sources; i-- > 0;)
		source_close(s->sources[i]);
	free(s->sources);
	follow_order_free(&s->order);
	classes_free(s->classes);
	if (s->handles)
		handles_free(s->handles);
	shared_close(s->shared);
	free(s->config);
	free(s);
}
