/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the settings of `pack` into options: lists of names, times, owners, limits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/netfs.h"
#include "app/pack.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "base/system.h"
#include "base/vec.h"

/* A network file system answers many requests at once.  A local one is limited by cores,
 * or by a disk that needs a queue. */
#define JOBS_FAR 16
#define JOBS_NEAR 4
#define MEMORY_LEAST (UINT64_C(64) << 20)

void pack_defaults(struct settings *s, const char *top)
{
	if (!s->threads)
		s->threads = system_cores();
	if (!s->pack.jobs)
		s->pack.jobs = network_fs(top) ? JOBS_FAR : JOBS_NEAR;
	if (!s->pack.memory)
		s->pack.memory = system_memory() / 4;
	if (s->pack.memory < MEMORY_LEAST)
		s->pack.memory = MEMORY_LEAST;
}

bool pack_chunk_is_sample(const struct settings *s)
{
	return s->pack.chunk && !strcmp(s->pack.chunk, "sample");
}

static int read_list_file(FILE *f, const char *file, char **text, size_t *n,
			  struct error *err)
{
	struct {
		char *at;
		size_t n, room;
	} v = VEC_EMPTY;
	size_t got;

	do {
		if (v.room - v.n < 65536 &&
		    !vec_grow((void **)&v.at, v.room, &v.room, 1))
			return free(v.at),
			       error_no_memory(err, "a list of names");
		if (v.room - v.n < 4096)
			continue;
		errno = 0;
		got = fread(v.at + v.n, 1, v.room - v.n - 1, f);
		v.n += got;
		if (!got)
			break;
	} while (true);
	if (ferror(f)) {
		int code = errno ? -errno : -EIO;

		free(v.at);
		return error_errno(err, code, "cannot read '%s'", file);
	}
	v.at[v.n] = '\0';
	*text = v.at;
	*n = v.n;
	return 0;
}

/* Split the text into names.  Empty lines are skipped, and so is a carriage return at
 * the end of a line. */
static bool split_list(struct pack_list *l, size_t n, bool null)
{
	vec(const char *) list = VEC_EMPTY;
	char *end = l->text + n;
	bool ok = true;

	for (char *at = l->text; at < end && ok;) {
		char *stop = memchr(at, null ? '\0' : '\n', (size_t)(end - at));
		size_t len;

		if (!stop)
			stop = end;
		*stop = '\0';
		len = (size_t)(stop - at);
		if (!null && len && at[len - 1] == '\r')
			at[len - 1] = '\0';
		if (*at)
			ok = vec_push(&list, at);
		at = stop + 1;
	}
	ok = ok && vec_push(&list, NULL);
	l->at = list.at;
	return ok;
}

int pack_list_read(struct pack_list *out, const char *file, bool null,
		   struct error *err)
{
	bool own = strcmp(file, "-") != 0;
	FILE *f = own ? fopen(file, "re") : stdin;
	size_t n = 0;
	int r;

	*out = (struct pack_list){NULL, NULL};
	if (!f)
		return error_errno(err, -errno, "'%s'", file);
	r = read_list_file(f, file, &out->text, &n, err);
	if (own)
		fclose(f);
	/* A list from find -print0 would be read as one name, its first. */
	if (r == 0 && !null && memchr(out->text, '\0', n))
		r = error_set(err, -EINVAL,
			      "'%s' has NUL bytes, which no name has; if they "
			      "end its names, use --null",
			      file);
	if (r == 0 && !split_list(out, n, null))
		r = error_no_memory(err, "a list of names");
	if (r < 0)
		pack_list_free(out);
	return r;
}

void pack_list_free(struct pack_list *l)
{
	free(l->text);
	free(l->at);
	*l = (struct pack_list){NULL, NULL};
}

void pack_lists_free(struct pack_lists *l)
{
	pack_list_free(&l->only);
	pack_list_free(&l->first);
}

/* Read SOURCE_DATE_EPOCH. Modification times after it are set to it, so that building
 * again from the same sources gives the same bytes
 * (reproducible-builds.org/specs/source-date-epoch). */
static int source_date_epoch(int64_t *out, struct error *err)
{
	const char *text = getenv("SOURCE_DATE_EPOCH");
	uint64_t n;

	*out = INT64_MAX;
	if (!text || !*text)
		return 0;
	if (parse_count(text, 0, INT64_MAX, &n, err) < 0)
		return error_set(
			err, -EINVAL,
			"SOURCE_DATE_EPOCH='%s' is not a number of seconds",
			text);
	*out = (int64_t)n;
	return 0;
}

/* Leave a file of the output out of the scan.  Symlinks are followed, because their
 * target is what gets replaced. */
static void skip_output(struct scan_options *o, const char *path)
{
	cleanup_free char *real = realpath(path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	struct scan_skip *to = &o->skip[o->n_skip];
	struct stat st, dir;

	if (!slash || stat(real, &st) < 0)
		return;
	snprintf(to->name, sizeof to->name, "%s", slash + 1);
	slash[slash == real] = '\0';
	if (stat(real, &dir) < 0)
		return;
	to->dev = st.st_dev;
	to->ino = st.st_ino;
	to->dir_dev = dir.st_dev;
	to->dir_ino = dir.st_ino;
	o->n_skip++;
}

int pack_options(const struct command *c, const struct settings *s,
		 const char *out, struct scan_options *scan,
		 struct feed_options *feed, struct pack_lists *lists)
{
	cleanup_free char *index = NULL;
	struct error err = {0};
	int r;

	*lists = (struct pack_lists){{NULL, NULL}, {NULL, NULL}};
	*scan = (struct scan_options){.exclude = s->pack.exclude,
				      .one_file_system =
					      s->pack.one_file_system,
				      .jobs = s->pack.jobs};
	*feed = (struct feed_options){.jobs = s->pack.jobs,
				      .memory = s->pack.memory / 2,
				      .xattrs = !s->pack.no_xattrs,
				      .data = true,
				      .uid = s->pack.uid,
				      .gid = s->pack.gid,
				      .mtime = s->pack.mtime};
	if (asprintf(&index, "%s.tfsidx", out) < 0) {
		index = NULL;
		cli_say(c, "out of memory for the name of the index file");
		return CLI_MEMORY;
	}
	skip_output(scan, out);
	skip_output(scan, index);
	r = source_date_epoch(&feed->mtime_most, &err);
	if (r < 0)
		return cli_usage(c, "%s", err.text);
	if (s->pack.files_from && s->pack.order &&
	    !strcmp(s->pack.files_from, "-") && !strcmp(s->pack.order, "-"))
		return cli_usage(c, "--files-from and --order cannot both be "
				    "standard input");
	if (s->pack.null && !s->pack.files_from && !s->pack.order)
		return cli_usage(c, "--null needs --files-from or --order");
	if (s->pack.files_from)
		r = pack_list_read(&lists->only, s->pack.files_from,
				   s->pack.null, &err);
	if (r == 0 && s->pack.order)
		r = pack_list_read(&lists->first, s->pack.order, s->pack.null,
				   &err);
	if (r < 0) {
		cli_say(c, "%s", err.text);
		return r == -ENOMEM   ? CLI_MEMORY
		       : r == -EINVAL ? CLI_USAGE
				      : CLI_SOURCE;
	}
	scan->only = lists->only.at;
	scan->first = lists->first.at;
	return 0;
}
