/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of the table of backing files: paths, parts of files, open descriptors. */
#include "extent/handles_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/number.h"

#define LIMIT_MIN 4
#define LIMIT_MAX 4096
/* Never part of a path that was resolved. */
#define PART_MARK "//@"

static unsigned limit_default(unsigned threads)
{
	struct rlimit rl = {1024, 1024};
	uint64_t own = 16 + UINT64_C(6) * threads;

	getrlimit(RLIMIT_NOFILE, &rl);
	if (rl.rlim_cur < own + LIMIT_MIN)
		return LIMIT_MIN;
	return (unsigned)min_u64(rl.rlim_cur - own, LIMIT_MAX);
}

int handles_new(struct handles **out, unsigned max_open, unsigned threads,
		struct error *err)
{
	struct handles *h = calloc(1, sizeof *h);

	*out = NULL;
	if (!h)
		return error_no_memory(err, "the table of backing files");
	pthread_mutex_init(&h->lock, NULL);
	h->oldest = h->newest = NONE;
	h->limit = max_open ? max_open : limit_default(threads);
	h->cwd = AT_FDCWD;
	*out = h;
	return 0;
}

void handles_free(struct handles *h)
{
	size_t i;

	if (!h)
		return;
	for (i = 0; i < h->files.n; i++) {
		if (h->files.at[i].fd >= 0)
			close(h->files.at[i].fd);
		free(h->files.at[i].part);
		free(h->files.at[i].joined);
	}
	vec_free(&h->files);
	paths_free(&h->paths);
	guard_free(&h->guard);
	if (h->cwd >= 0)
		close(h->cwd);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Remember the current directory, the first time this is called. */
static void cwd_keep(struct handles *h)
{
	cleanup_close int fd = -1;

	{
		lock_scope(&h->lock);
		if (h->cwd != AT_FDCWD)
			return;
	}
	fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	lock_scope(&h->lock);
	if (h->cwd == AT_FDCWD && fd >= 0)
		h->cwd = steal_fd(&fd);
}

/* Parse "PATH//@POS+SIZE" or "PATH//@POS+SIZE+TAG" into a new *part, which is NULL for
 * any other path.  Returns false if memory ran out. */
static bool part_parse(const char *path, struct part **part)
{
	const char *mark = strstr(path, PART_MARK), *rest;
	unsigned long long pos, size, tag = 0;
	bool tagged;
	int end = 0;
	size_t n;

	*part = NULL;
	if (!mark || sscanf(mark + strlen(PART_MARK), "%20llu+%20llu%n", &pos,
			    &size, &end) != 2)
		return true;
	rest = mark + strlen(PART_MARK) + (size_t)end;
	tagged = sscanf(rest, "+%20llu%n", &tag, &end) == 1;
	if (rest[tagged ? (size_t)end : 0])
		return true;
	n = (size_t)(mark - path);
	*part = malloc(sizeof **part + n + 1);
	if (!*part)
		return false;
	**part = (struct part){
		.pos = pos, .size = size, .tagged = tagged, .tag = tag};
	memcpy((*part)->path, path, n);
	(*part)->path[n] = '\0';
	return true;
}

/* Return the row of `path`, which is added if it is new; NONE if memory ran out.  The
 * lock is held. */
static uint32_t handles_add_row(struct handles *h, const char *path)
{
	struct file f = {.fd = -1, .newer = NONE, .older = NONE};
	uint32_t file = paths_add(&h->paths, path);

	/* A path whose row could not be allocated before gets it now. */
	while (file != NONE && h->files.n <= file) {
		if (!part_parse(h->paths.at[h->files.n], &f.part))
			return NONE;
		if (!vec_push(&h->files, f)) {
			free(f.part);
			return NONE;
		}
	}
	return file;
}

uint32_t handles_add(struct handles *h, const char *path)
{
	if (path[0] != '/')
		cwd_keep(h);
	lock_scope(&h->lock);
	return handles_add_row(h, path);
}

static uint32_t part_add(struct handles *h, uint32_t file, uint64_t pos,
			 uint64_t size, const uint64_t *tag)
{
	cleanup_free char *path = NULL;
	char suffix[24] = "";
	uint64_t end;

	if (tag)
		snprintf(suffix, sizeof suffix, "+%llu",
			 (unsigned long long)*tag);
	lock_scope(&h->lock);
	if (file >= h->files.n || h->files.at[file].part ||
	    add_overflows(pos, size, &end) ||
	    asprintf(&path, "%s" PART_MARK "%llu+%llu%s", h->paths.at[file],
		     (unsigned long long)pos, (unsigned long long)size,
		     suffix) < 0) {
		path = NULL;
		return NONE;
	}
	return handles_add_row(h, path);
}

uint32_t handles_add_part(struct handles *h, uint32_t file, uint64_t pos,
			  uint64_t size)
{
	return part_add(h, file, pos, size, NULL);
}

uint32_t handles_add_tagged(struct handles *h, uint32_t file, uint64_t pos,
			    uint64_t size, uint64_t tag)
{
	return part_add(h, file, pos, size, &tag);
}

bool handles_tag(struct handles *h, uint32_t file, uint64_t *tag)
{
	lock_scope(&h->lock);
	const struct part *part =
		file < h->files.n ? h->files.at[file].part : NULL;

	if (!part || !part->tagged)
		return false;
	*tag = part->tag;
	return true;
}

uint32_t handles_add_open(struct handles *h, int fd, const char *name)
{
	cleanup_close int own = fd;
	struct stat st;
	uint32_t file;
	struct file *f;

	if (fstat(fd, &st) < 0)
		return NONE;
	lock_scope(&h->lock);
	file = handles_add_row(h, name);
	if (file == NONE || h->files.at[file].fd >= 0)
		return NONE;
	f = &h->files.at[file];
	identity_of(&st, &f->id);
	f->fd = steal_fd(&own);
	f->known = f->opened = f->kept = true;
	f->pins = 1;
	h->open_now++;
	return file;
}

uint32_t handles_find_open(struct handles *h, const char *name)
{
	lock_scope(&h->lock);
	uint32_t file = handles_add_row(h, name);

	return file != NONE && h->files.at[file].kept ? file : NONE;
}

void handles_expect(struct handles *h, uint32_t file, const struct stat *st)
{
	lock_scope(&h->lock);
	struct file *f = &h->files.at[file];

	if (f->known)
		return;
	identity_of(st, &f->id);
	f->known = true;
}

void handles_may_grow(struct handles *h, uint32_t file, uint64_t mark,
		      unsigned char bits)
{
	lock_scope(&h->lock);
	struct file *f = &h->files.at[file];

	f->mark = mark;
	f->mark_bits = bits;
}

const char *handles_path(const struct handles *h, uint32_t file)
{
	lock_scope((pthread_mutex_t *)&h->lock);
	return file < h->files.n ? h->paths.at[file] : "?";
}

const char *handles_name(const struct handles *h, uint32_t file)
{
	return file_shown(handles_path(h, file));
}

uint32_t handles_count(const struct handles *h)
{
	lock_scope((pthread_mutex_t *)&h->lock);
	return (uint32_t)h->files.n;
}

bool handles_known(struct handles *h, uint32_t file, const char **path,
		   struct identity *id)
{
	lock_scope(&h->lock);
	const struct file *f = &h->files.at[file];

	*path = f->kept || f->joined ? NULL
		: f->part            ? f->part->path
				     : h->paths.at[file];
	if (f->opened)
		*id = f->id;
	return f->opened;
}

void handles_usage(struct handles *h, unsigned *open_now, unsigned *limit)
{
	lock_scope(&h->lock);
	*open_now = h->open_now;
	*limit = h->limit;
}
