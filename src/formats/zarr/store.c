/* SPDX-License-Identifier: BSD-2-Clause */
/* A Zarr store in a directory, where a key is the path of a file. */
/*
 * A mount never changes.  So a chunk that was written after the store was opened is an
 * error, as for any other source: its neighbours may have been read before.  Only if
 * both mtime and ctime are later was it written: mtime alone may come from elsewhere,
 * and ctime alone may only mean that the file was renamed.
 */
#include "formats/zarr/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "extent/handles.h"

struct directory_store {
	struct zarr_store store; /* first member */
	struct timespec opened;
	struct handles *handles;
};

bool zarr_key(char out[ZARR_KEY_MAX], const char *dir, const char *name)
{
	int n = snprintf(out, ZARR_KEY_MAX, "%s%s%s", dir, *dir ? "/" : "",
			 name);

	return n >= 0 && n < ZARR_KEY_MAX;
}

const char *const zarr_root_documents[] = {"zarr.json", ".zgroup", ".zarray",
					   ".zmetadata", NULL};

bool zarr_is_store(const char *path)
{
	char key[ZARR_KEY_MAX];
	struct stat st;

	for (const char *const *name = zarr_root_documents; *name; name++)
		if (zarr_key(key, path, *name) && stat(key, &st) == 0 &&
		    S_ISREG(st.st_mode))
			return true;
	return false;
}

static bool time_is_later(const struct timespec *t, const struct timespec *than)
{
	return t->tv_sec > than->tv_sec ||
	       (t->tv_sec == than->tv_sec && t->tv_nsec > than->tv_nsec);
}

static int check_time(const struct directory_store *s, const char *key,
		      const struct stat *st, struct error *err)
{
	if (!time_is_later(&st->st_mtim, &s->opened) ||
	    !time_is_later(&st->st_ctim, &s->opened))
		return 0;
	return error_set(err, -ESTALE,
			 "%s/%s was written after the store was opened: mount "
			 "it again",
			 s->store.path, key);
}

static void directory_identify(const struct stat *st, uint64_t id[4])
{
	id[0] = (uint64_t)st->st_dev;
	id[1] = (uint64_t)st->st_ino;
	id[2] = (uint64_t)st->st_size;
	id[3] = (uint64_t)st->st_mtim.tv_sec * 1000000000u +
		(uint64_t)st->st_mtim.tv_nsec;
}

static int directory_key_open(struct zarr_store *store, const char *key,
			      struct zarr_value *v, struct error *err)
{
	const struct directory_store *s = (const void *)store;
	cleanup_free char *path = NULL;
	cleanup_close int fd = -1;
	struct stat st;
	int r;

	if (asprintf(&path, "%s/%s", store->path, key) < 0) {
		path = NULL;
		return error_no_memory(err, "the path of a key");
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EIO, "%s is not a regular file", path);
	r = check_time(s, key, &st, err);
	if (r == 0)
		r = handles_check_public(s->handles, fd, &st, path, err);
	if (r < 0)
		return r;
	v->size = (uint64_t)st.st_size;
	directory_identify(&st, v->identity);
	v->fd = steal_fd(&fd);
	return 0;
}

static int directory_key_read(struct zarr_store *s, struct zarr_value *v,
			      uint64_t pos, void *to, size_t n,
			      struct error *err)
{
	uint64_t id[4];
	struct stat st;
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(v->fd, (char *)to + done, n - done,
				    (off_t)(pos + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_errno(err, -EIO, "%s", s->path);
		if (!got)
			return error_set(err, -EIO,
					 "%s: a file ends before the bytes "
					 "that were to be read: truncated?",
					 s->path);
		done += (size_t)got;
	}
	if (fstat(v->fd, &st) < 0)
		return error_errno(err, -EIO, "%s", s->path);
	directory_identify(&st, id);
	if (memcmp(id, v->identity, sizeof id) != 0)
		return error_set(err, -ESTALE,
				 "%s: a file changed while it was read",
				 s->path);
	return 0;
}

static void directory_key_close(struct zarr_store *s, struct zarr_value *v)
{
	(void)s;
	close(v->fd);
	v->fd = -1;
}

/* Return true if `it` is the directory `path`, or one above it up to the directory of
 * the store, whose path has `top` bytes. */
static bool is_above(char *path, size_t top, const struct stat *it)
{
	size_t n = strlen(path);
	struct stat st;
	bool is;

	for (;;) {
		char end = path[n];

		path[n] = '\0';
		is = stat(path, &st) == 0 && st.st_dev == it->st_dev &&
		     st.st_ino == it->st_ino;
		path[n] = end;
		if (is || n <= top)
			return is;
		while (n > top && path[--n] != '/')
			;
	}
}

enum entry { ENTRY_FILE, ENTRY_DIR, ENTRY_LOOP };

/* Return what an entry of the directory `path` is; symlinks are followed.  ENTRY_LOOP is
 * one that leads back up: followed, the store would contain itself without end. */
static enum entry entry_kind(DIR *d, const struct dirent *e, char *path,
			     size_t top)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK)
		return e->d_type == DT_DIR ? ENTRY_DIR : ENTRY_FILE;
	if (fstatat(dirfd(d), e->d_name, &st, 0) < 0 || !S_ISDIR(st.st_mode))
		return ENTRY_FILE;
	return is_above(path, top, &st) ? ENTRY_LOOP : ENTRY_DIR;
}

static int directory_list(struct zarr_store *s, const char *dir,
			  int (*each)(void *ctx, const char *name, bool is_dir),
			  void *ctx, struct error *err)
{
	cleanup_free char *path = NULL;
	struct dirent *e;
	DIR *d;
	int r = 0;

	if (asprintf(&path, "%s/%s", s->path, dir) < 0) {
		path = NULL;
		return error_no_memory(err, "the path of a directory");
	}
	d = opendir(path);
	if (!d)
		return error_errno(err, -errno, "%s", path);
	errno = 0;
	while (r == 0 && (e = readdir(d))) {
		enum entry kind = ENTRY_LOOP;

		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			kind = entry_kind(d, e, path, strlen(s->path));
		if (kind != ENTRY_LOOP)
			r = each(ctx, e->d_name, kind == ENTRY_DIR);
		errno = 0;
	}
	if (r == 0 && errno)
		r = error_errno(err, -errno, "%s", path);
	closedir(d);
	return r;
}

static int directory_place(struct zarr_store *s, const char *key,
			   struct handles *h, struct zarr_place *out,
			   struct error *err)
{
	cleanup_free char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s/%s", s->path, key) < 0) {
		path = NULL;
		return error_no_memory(err, "the path of a key");
	}
	if (stat(path, &st) < 0)
		return errno == ENOENT ? -ENOENT
				       : error_errno(err, -errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EIO, "%s is not a regular file", path);
	*out = (struct zarr_place){.file = handles_add(h, path),
				   .size = (uint64_t)st.st_size};
	if (out->file == UINT32_MAX)
		return error_no_memory(err, "the table of files");
	handles_expect(h, out->file, &st);
	return 0;
}

static uint32_t directory_file(struct zarr_store *s, const char *key,
			       struct handles *h)
{
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%s/%s", s->path, key) < 0) {
		path = NULL;
		return UINT32_MAX;
	}
	return handles_add(h, path);
}

static void directory_free(struct zarr_store *s)
{
	free(s->path);
	free(s);
}

static const struct zarr_store_ops directory_ops = {
	.open = directory_key_open,
	.read = directory_key_read,
	.close = directory_key_close,
	.list = directory_list,
	.place = directory_place,
	.file = directory_file,
	.free = directory_free,
};

struct zarr_store *zarr_directory_new(const char *path, struct handles *handles)
{
	struct directory_store *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->store.ops = &directory_ops;
	s->handles = handles;
	s->store.path = strdup(path);
	if (!s->store.path) {
		free(s);
		return NULL;
	}
	clock_gettime(CLOCK_REALTIME, &s->opened);
	return &s->store;
}

void zarr_store_free(struct zarr_store *s)
{
	if (s)
		s->ops->free(s);
}

int zarr_store_read(struct zarr_store *s, const char *key, char **text,
		    size_t *n, uint64_t identity[4], struct error *err)
{
	struct zarr_value v;
	int r = s->ops->open(s, key, &v, err);

	*text = NULL;
	if (r < 0)
		return r;
	if (v.size > ZARR_DOCUMENT_MAX)
		r = error_set(err, -EFBIG, "%s/%s has %llu bytes", s->path, key,
			      (unsigned long long)v.size);
	*text = r < 0 ? NULL : malloc(v.size + 1);
	if (r == 0 && !*text)
		r = error_no_memory(err, "a document");
	if (r == 0)
		r = s->ops->read(s, &v, 0, *text, v.size, err);
	if (r == 0) {
		(*text)[v.size] = '\0';
		*n = v.size;
	} else {
		free(*text);
		*text = NULL;
	}
	if (identity)
		memcpy(identity, v.identity, sizeof v.identity);
	s->ops->close(s, &v);
	return r;
}
