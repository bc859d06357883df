/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a directory on disk, whose archives and HDF5 files are shown as directories. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bisect.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/archive/about.h"
#include "formats/archive/archive.h"
#include "formats/check.h"
#include "formats/registry/nest.h"
#include "formats/zarr/zarr.h"

/*
 * The directory is read once, when it is mounted, into a member table as of an archive,
 * whose members' bytes are files.  Entries that look like sources are opened when they
 * are first looked up.  A link to a regular file is shown as that file; other links stay
 * links.  A link that leads out of the directory gets an absolute target, so that it does
 * not lead to what is beside the mount point.  Index files of tensorfs are left out.
 */
#define DEPTH_MAX 256

struct directory {
	struct source source; /* first member */
	struct members members;
	struct handles *handles;
	struct nest *nest;
};

struct reading {
	struct members_builder *b;
	struct handles *handles;
	char *path; /* of the entry that is being read, as the kernel knows it */
	size_t inner; /* where in `path` the path inside the source begins, in bytes */
	unsigned depth;
	bool as_is; /* read Zarr stores as plain directories */
	struct error *err;
};

static bool directory_is_index(const char *name)
{
	size_t n = strlen(name);

	return n > 7 && !strcmp(name + n - 7, ".tfsidx");
}

/* Return true if the text of a link whose path in the source is `inner` leads out of the
 * source. */
static bool leads_out(const char *inner, const char *target)
{
	long depth = -1;

	for (const char *p = inner; *p; p++)
		depth += *p == '/';
	for (const char *p = target; *p && depth >= 0;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && !memcmp(p, "..", 2))
			depth--;
		else if (n && !(n == 1 && *p == '.'))
			depth++;
		p += n;
		p += strspn(p, "/");
	}
	return *target != '/' && depth < 0;
}

/* Read the target of the link at rd->path.  Return false if it cannot be read or is too
 * long. */
static bool directory_read_link(const struct reading *rd, char target[PATH_MAX])
{
	char text[PATH_MAX];
	ssize_t n = readlink(rd->path, text, sizeof text - 1);
	int len, above;

	if (n < 0)
		return false;
	text[n] = '\0';
	above = leads_out(rd->path + rd->inner, text)
			? (int)(strrchr(rd->path, '/') + 1 - rd->path)
			: 0;
	len = snprintf(target, PATH_MAX, "%.*s%s", above, rd->path, text);
	return len >= 0 && len < PATH_MAX;
}

/* Fill in a member from a stat.  Return false if it is not shown. */
static bool directory_fill_member(struct reading *rd, const struct stat *st,
				  struct member *m, char target[PATH_MAX])
{
	*m = (struct member){.path = rd->path + rd->inner,
			     .mode = st->st_mode,
			     .uid = st->st_uid,
			     .gid = st->st_gid,
			     .mtime = st->st_mtim.tv_sec,
			     .nsec = (uint32_t)st->st_mtim.tv_nsec,
			     .kind = MEMBER_NONE};
	if (S_ISREG(st->st_mode)) {
		m->size = (uint64_t)st->st_size;
		m->kind = MEMBER_FILE;
	} else if (S_ISLNK(st->st_mode)) {
		if (!directory_read_link(rd, target))
			return false;
		m->link = target;
	} else if (S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode)) {
		m->data = st->st_rdev;
	}
	return true;
}

static int directory_read_entries(struct reading *rd, DIR *d);

/* Return the bytes of a file that its file system does not store. */
static uint64_t hole_of(const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size;
	uint64_t stored = (uint64_t)st->st_blocks * 512;
	uint64_t hole = stored < size ? size - stored : 0;

	return min_u64(hole, (uint64_t)UINT32_MAX * 4096);
}

/* Add the entry at rd->path, and if it is a directory what is in it.  Return 0 or
 * -ENOMEM. */
static int directory_read_entry(struct reading *rd)
{
	char target[PATH_MAX];
	struct stat st, to;
	struct member m;
	uint32_t file;
	int64_t r;

	/* An entry that was deleted meanwhile is left out. */
	if (lstat(rd->path, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode) && stat(rd->path, &to) == 0 &&
	    S_ISREG(to.st_mode))
		st = to;
	if (!directory_fill_member(rd, &st, &m, target))
		return 0;
	if (m.kind == MEMBER_FILE) {
		file = handles_add(rd->handles, rd->path);
		if (file == UINT32_MAX)
			return error_no_memory(rd->err, "the table of files");
		handles_expect(rd->handles, file, &st);
		m.data = MEMBER_IN_FILE(file, hole_of(&st) / 4096);
	}
	r = members_add(rd->b, &m, rd->err);
	if (r < 0 || !S_ISDIR(st.st_mode))
		return r == -ENOMEM ? -ENOMEM : 0;
	if (!rd->as_is && zarr_is_store(rd->path))
		return 0; /* nest.c shows it as a store */
	if (++rd->depth > DEPTH_MAX) {
		members_note(rd->b, "deep directories", "%s: nested too deeply",
			     rd->path);
		rd->depth--;
		return 0;
	}
	r = 0;
	DIR *d = opendir(rd->path);

	if (d)
		r = directory_read_entries(rd, d);
	else
		members_note(rd->b, "unreadable directories", "%s: %s",
			     rd->path, strerror(errno));
	rd->depth--;
	return (int)r;
}

/* Add all entries of directory rd->path.  Closes `d`. */
static int directory_read_entries(struct reading *rd, DIR *d)
{
	char *above = rd->path;
	struct dirent *e;
	int r = 0;

	while (r == 0 && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    directory_is_index(e->d_name))
			continue;
		if (asprintf(&rd->path, "%s/%s", above, e->d_name) < 0) {
			rd->path = above;
			r = error_no_memory(rd->err, "the path of a file");
			break;
		}
		r = directory_read_entry(rd);
		free(rd->path);
		rd->path = above;
	}
	closedir(d);
	return r;
}

static int directory_read_all(struct directory *s, const struct source_args *a,
			      struct error *err)
{
	struct reading rd = {.handles = a->handles,
			     .as_is = a->archive && a->archive->as_is,
			     .err = err};
	struct member root;
	char target[PATH_MAX];
	struct stat st;
	DIR *d;
	int64_t r;

	rd.path = realpath(a->path, NULL);
	d = rd.path ? opendir(rd.path) : NULL;
	if (!d || stat(rd.path, &st) < 0) {
		r = error_errno(err, -errno, "%s", a->path);
		free(rd.path);
		if (d)
			closedir(d);
		return (int)r;
	}
	rd.inner = strlen(rd.path);
	r = members_builder_new(&rd.b, NULL, err);
	if (r == 0) {
		directory_fill_member(&rd, &st, &root, target);
		r = members_add(rd.b, &root, err);
		if (r >= 0)
			r = directory_read_entries(&rd, d);
		else
			closedir(d);
		if (r == 0)
			r = members_finish(rd.b, &s->members, err);
		else
			members_builder_free(rd.b);
	} else {
		closedir(d);
	}
	free(rd.path);
	return (int)r;
}

static void directory_close(struct source *source)
{
	struct directory *s = (struct directory *)source;

	if (!s)
		return;
	if (s->nest)
		s->nest->ops->close(s->nest);
	members_free(&s->members);
	free(s);
}

static json_t *directory_about(const struct source *source, uint64_t node)
{
	const struct directory *s = (const struct directory *)source;
	uint64_t counts[5];
	json_t *o;

	if (node)
		return about_record(&s->members, node);
	memcpy(counts, s->members.counts, sizeof counts);
	counts[1]--; /* the root itself */
	o = json_object();
	about_text(o, "format", "directory");
	about_counts(o, counts, s->members.bytes);
	return o;
}

static void directory_usage(const struct source *source, uint64_t *bytes,
			    uint64_t *inodes)
{
	const struct directory *s = (const struct directory *)source;

	*bytes = s->members.bytes;
	*inodes = s->members.n - s->members.counts[3] - 1;
}

/* ---- verify -------------------------------------------------------------- */

struct file_check {
	const struct directory *s;
	struct source_check *c;
	uint64_t record;
};

static void directory_say_bad(const struct file_check *k, int code,
			      const char *why)
{
	cleanup_free char *name = NULL;
	char path[PATH_MAX];
	struct source_bad bad = {.name = path, .code = code, .why = why};

	members_path(&k->s->members, k->record, path, sizeof path);
	if (asprintf(&name, "%s%s", k->c->prefix, path) > 0)
		bad.name = name;
	k->c->bad(k->c, &bad);
}

/* A job of the pool: read a file, bypassing the cache, to see whether it can be read. */
static void directory_check_file(void *arg)
{
	enum { STEP = 1 << 20 };
	struct file_check *k = arg;
	const struct member_record *m = &k->s->members.at[k->record];
	cleanup_free void *buf = malloc(STEP);
	struct error err = {0};
	int r = buf ? 0 : error_no_memory(&err, "a buffer to read files");
	uint64_t done = 0;

	while (r == 0 && done < m->size) {
		struct handles *h = k->s->handles;
		uint32_t file = (uint32_t)m->data;
		uint64_t n = handles_length_before(h, file, done,
						   m->size - done, SEEK_DATA);

		if (!n) { /* not in a hole */
			n = min_u64(m->size - done, STEP);
			r = handles_read(h, file, done, buf, n, &err);
		}
		done += r == 0 ? n : 0;
		k->c->advance(k->c, n);
	}
	if (r < 0)
		directory_say_bad(k, r, err.text);
	if (done)
		k->c->no_checksums(k->c);
	k->c->count(k->c, 0, done, done);
	k->c->members(k->c, 1);
	free(k);
}

static bool is_shown_apart(const struct directory *s, uint64_t record)
{
	const uint64_t *at = s->nest ? s->nest->shown.at : NULL;
	size_t n = s->nest ? s->nest->shown.n : 0;
	struct bisect b = bisect_in(0, n);

	while (bisect_next(&b))
		bisect_answer(&b, at[b.mid] >= record);
	return b.lo < n && at[b.lo] == record;
}

/* Check the directory's own files.  Files that are shown as sources are checked as
 * such. */
static int directory_verify(struct source *source, uint64_t node,
			    struct source_check *c, struct error *err)
{
	struct directory *s = (struct directory *)source;
	const struct members *m = &s->members;
	cleanup_free unsigned char *below = calloc(m->n, 1);
	int r = below ? 0 : error_no_memory(err, "the check of a directory");

	for (uint64_t i = node; i < m->n && r == 0; i++) {
		struct file_check *k;

		below[i] = i == node || below[m->at[i].parent];
		if (!below[i] || m->at[i].kind != MEMBER_FILE ||
		    is_shown_apart(s, i))
			continue;
		k = malloc(sizeof *k);
		if (!k) {
			r = error_no_memory(err, "the check of a directory");
			break;
		}
		*k = (struct file_check){s, c, i};
		c->expect(c, m->at[i].size);
		pool_submit(c->pool, directory_check_file, k);
	}
	pool_drain(c->pool);
	return r;
}

/* ---- the source ---------------------------------------------------------- */

static int directory_open(const struct source_args *a, struct source **out,
			  struct error *err)
{
	struct directory *s;
	struct files *f;
	int r;

	*out = NULL;
	s = calloc(1, sizeof *s);
	if (!s)
		return error_no_memory(err, "the directory");
	s->source.ops = &source_directory;
	s->handles = a->handles;
	r = directory_read_all(s, a, err);
	if (r == 0)
		r = archive_files(&f, a, &s->members, NULL, 0, 0, false, err);
	if (r == 0) {
		tree_set_files(a->tree, a->dir, f);
		if (!a->archive || !a->archive->as_is)
			r = archive_show_nested(&s->nest, &nest_in_members, a,
						&s->members, NULL, 0, f, 0,
						err);
	}
	if (r < 0) {
		directory_close(&s->source);
		return r;
	}
	*out = &s->source;
	return 0;
}

static int directory_probe(const unsigned char *head, size_t n,
			   const char *path)
{
	(void)head;
	(void)n;
	(void)path;
	return 0;
}

const struct source_ops source_directory = {
	.flags = SOURCE_DIRECTORY,
	.name = "directory",
	.summary = "directories: archives and HDF5 files in them",
	.probe = directory_probe,
	.open = directory_open,
	.about = directory_about,
	.verify = directory_verify,
	.usage = directory_usage,
	.close = directory_close,
};
