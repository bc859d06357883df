/* SPDX-License-Identifier: BSD-2-Clause */
/* Describes a request: a key that is equal for requests of the same thing, a name,
 * texts. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/stage_private.h"
#include "base/number.h"
#include "base/system.h"
#include "stream/stream.h"

/* The most bytes of cache: decoded chunks are used once, so more would not help. */
#define CACHE_MOST (UINT64_C(512) << 20)
/* The share 1/KEEP_SHARE of free memory is for bytes that a first pass decodes. */
#define KEEP_SHARE 2

void stage_defaults(struct settings *s)
{
	if (!s->stage.cache_given)
		s->cache_size = min_u64(s->cache_size, CACHE_MOST);
	if (!s->threads)
		s->threads = system_cores();
	/* Views of members repeat what is staged already. */
	s->member_views.listed = 0;
	/* A tensor without samples is staged as an array, or as text. */
	if (!s->stage.views_given)
		view_options_parse(&s->views, "samples,array,text", NULL);
}

void stage_keep(const struct stage_request *q, const struct settings *s)
{
	struct system_headroom group;
	uint64_t most;

	/* For a part of a source, it is not known how much of the rest would be kept. */
	if (q->n_paths && *q->paths[0]) {
		stream_first_pass_limit(0, false);
		return;
	}
	system_headroom(&group);
	most = min_u64(system_available(), group.left) / KEEP_SHARE;
	if (s->stage.cache_given)
		most = min_u64(most, s->cache_size);
	stream_first_pass_limit(most, false);
}

bool stage_may_be_empty(const struct settings *s)
{
	return !s->stage.to || access(s->stage.to, F_OK) == 0;
}

/* Add the state of the labels: after a change a file has other labels. */
static void print_labels(FILE *f, const char *labels)
{
	struct stat st;

	fprintf(f, " labels=%s", labels);
	if (stat(labels, &st) < 0)
		return;
	fprintf(f,
		" %" PRIu64 " %" PRIu64 " %" PRId64 ".%09ld %" PRId64 ".%09ld",
		(uint64_t)st.st_ino, (uint64_t)st.st_size,
		(int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		(int64_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

/* Print every option that affects the bytes that are staged. */
static void print_options(FILE *f, const struct settings *s)
{
	fprintf(f, "views=%s%" PRIx64 " sample-axes=%u%s",
		s->stage.views_given ? "" : "~", s->views.views,
		s->views.sample_axes, s->views.sample_axes_given ? "!" : "");
	fprintf(f, " dtype-order=%s missing=%s",
		s->views.source_order ? "source" : "little",
		s->stage.skip_missing              ? "skip"
		: s->views.missing == MISSING_FILL ? "fill"
						   : "error");
	if (s->dataset)
		fprintf(f, " dataset=%s", s->dataset);
	if (s->concat_given)
		fprintf(f, " concat=%d", s->concat);
	if (s->views.labels)
		print_labels(f, s->views.labels);
	if (s->raw)
		fprintf(f, " raw=%s", s->raw);
	if (s->views.ext)
		fprintf(f, " ext=%s", s->views.ext);
	if (s->prefix)
		fprintf(f, " prefix=%s", s->prefix);
	if (s->zarr_root && *s->zarr_root != '.')
		fprintf(f, " zarr-root=%s", s->zarr_root);
	if (s->subdir)
		fprintf(f, " subdir=%s", s->subdir);
	if (s->offset)
		fprintf(f, " offset=%" PRIu64, s->offset);
	fprintf(f, "%s%s%s", s->joined ? " union" : "",
		s->nested ? " nested" : "", s->versions ? " versions" : "");
}

static char *options_text(const struct settings *s)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	print_options(f, s);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* Return a text like "/data/a.tar" or "/data/a.tar:train and 3 more". */
static char *source_text(const struct stage_request *q, char *const *real)
{
	bool path = q->n_paths && *q->paths[0] && q->n_sources == 1;
	size_t more = q->n_sources - 1 + (path ? q->n_paths - 1 : 0);
	char *text;
	int n = more ? asprintf(&text, "%s%s%s and %zu more", real[0],
				path ? ":" : "", path ? q->paths[0] : "", more)
		     : asprintf(&text, "%s%s%s", real[0], path ? ":" : "",
				path ? q->paths[0] : "");

	return n < 0 ? NULL : text;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Print a text after its length, so that no two lists of texts give the same key. */
static void print_counted_text(FILE *f, const char *text)
{
	fprintf(f, "%zu:%s ", strlen(text), text);
}

/* Make the key: the names of the sources, their real paths, the paths in them, the
 * options. */
static bool make_key(const struct stage_request *q, const struct settings *s,
		     char *const *real, const char *options,
		     char key[STAGING_KEY])
{
	char **paths = calloc(q->n_paths + 1, sizeof *paths), *text = NULL;
	size_t n;
	FILE *f = paths ? open_memstream(&text, &n) : NULL;

	if (!f) {
		free(paths);
		return false;
	}
	fprintf(f, "%zu ", q->n_sources);
	for (size_t i = 0; i < q->n_sources; i++) {
		print_counted_text(f,
				   s->names && s->names[i] ? s->names[i] : "");
		print_counted_text(f, real[i]);
	}
	for (size_t i = 0; i < q->n_paths; i++)
		paths[i] = q->paths[i];
	qsort(paths, q->n_paths, sizeof *paths, compare_texts);
	/* An empty path is the whole tree, as is no path at all. */
	for (size_t i = 0; i < q->n_paths && *paths[0]; i++)
		print_counted_text(f, paths[i]);
	print_counted_text(f, options);
	print_counted_text(f, s->dataset ? s->dataset : "");
	print_counted_text(f, s->prefix ? s->prefix : "");
	print_counted_text(f, s->subdir ? s->subdir : "");
	free(paths);
	if (fclose(f) == 0)
		staging_key(text, key);
	else
		text[0] = '\0';
	n = strlen(text);
	free(text);
	return n > 0;
}

/* Return the name of a stage: "imagenet.tar.zst" gives "imagenet".  malloc'ed; NULL if
 * out of memory. */
static char *plain_name(const char *source)
{
	static const char *const outer[] = {".gz",  ".bz2", ".xz", ".zst",
					    ".lz4", ".Z",   NULL};
	static const char *const inner[] = {
		".tar",  ".tgz",  ".tbz2",     ".tbz", ".txz",  ".tzst",
		".sqfs", ".sqsh", ".squashfs", ".h5",  ".hdf5", ".he5",
		".nxs",  ".hspy", ".zip",      ".npz", ".zspy", NULL};
	const char *const *lists[] = {outer, inner};
	char *name = session_base_name(source);
	size_t n = name ? strlen(name) : 0, dots;

	for (unsigned k = 0; name && k < 2; k++)
		for (const char *const *s = lists[k]; *s; s++) {
			size_t len = strlen(*s);

			if (n > len && !strcmp(name + n - len, *s)) {
				name[n -= len] = '\0';
				break;
			}
		}
	if (!name)
		return NULL;
	dots = strspn(name, ".");
	memmove(name, name + dots, n - dots + 1);
	if (*name && !strchr(name, '/'))
		return name;
	free(name);
	return strdup("stage");
}

void stage_texts_free(struct stage_texts *t)
{
	free(t->name);
	free(t->source);
	free(t->options);
}

int stage_want(const struct stage_request *q, const struct settings *s,
	       struct staging_want *want, struct stage_texts *texts,
	       struct error *err)
{
	char **real = calloc(q->n_sources, sizeof *real);
	int r = real ? 0 : error_no_memory(err, "the paths of the sources");

	*want = (struct staging_want){.transient = q->transient,
				      .exact = q->name,
				      .force = s->stage.force};
	*texts = (struct stage_texts){.name = NULL};
	for (size_t i = 0; r == 0 && i < q->n_sources; i++) {
		real[i] = realpath(q->sources[i], NULL);
		if (!real[i])
			r = error_errno(err, -errno, "'%s'", q->sources[i]);
	}
	if (r == 0) {
		texts->name =
			q->name ? strdup(q->name) : plain_name(q->sources[0]);
		texts->options = options_text(s);
		texts->source = source_text(q, real);
		if (!texts->name || !texts->options || !texts->source ||
		    !make_key(q, s, real, texts->options, want->key))
			r = error_no_memory(
				err, "the description of what is staged");
	}
	want->name = texts->name;
	want->source = texts->source;
	want->options = texts->options;
	for (size_t i = 0; real && i < q->n_sources; i++)
		free(real[i]);
	free(real);
	return r;
}
