/* SPDX-License-Identifier: BSD-2-Clause */
/* The key of a chunk: all that decides its bytes, as text, and the hash of it. */

/*
 * An entry outlives the process that made it, so it must never be mistaken for another
 * one: the text of a key has everything that goes into the bytes of a chunk, and nothing
 * else.
 *
 *	the program's version       a decoder that was wrong once is not trusted
 *	path, device, inode         two are not enough: some file systems give out
 *	                            inode numbers anew at each mount
 *	size, mtime, ctime          a program that sets mtime back changes ctime
 *	position, length, filters,  of stored chunks; for other chunks, the text
 *	recoding                    of their set (`origin` in extent/chunk.h)
 *
 * The hash of the text is only a name: an entry has the text in it, which is compared.
 * So entries of a file that was written to are never stale, only unused.
 *
 * Time stamps cannot tell a second write within the same tick of the file system's clock.
 * So chunks of a file that changed less than SETTLE_NS ago are not kept (git does the
 * same for its index): if the file was older when they were read, a later write was
 * certain to give another ctime.
 */
#include "store/shared/shared.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "store/shared/private.h"

/* Longer than the tick of the coarsest clock of any file system (FAT: 2 s). */
#define SETTLE_NS (INT64_C(3) * 1000000000)
#define ORIGIN_MAX 8192
#define PATH_ROOM 4200

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static void source_identity(const struct stat *st, uint64_t source[5])
{
	source[0] = st->st_dev;
	source[1] = st->st_ino;
	source[2] = (uint64_t)st->st_size;
	source[3] = (uint64_t)ns_of(&st->st_mtim);
	source[4] = (uint64_t)ns_of(&st->st_ctim);
}

static bool source_is_settled(const struct stat *st)
{
	struct timespec now;
	int64_t t;

	clock_gettime(CLOCK_REALTIME, &now);
	t = ns_of(&now);
	/* An mtime in the future may have been set by a program; a ctime cannot. */
	return ns_of(&st->st_ctim) < t - SETTLE_NS &&
	       (ns_of(&st->st_mtim) < t - SETTLE_NS || ns_of(&st->st_mtim) > t);
}

/* Set `path` to the file's path without symlinks.  Return false if it has none any
 * more. */
static bool path_of_source(int fd, const struct stat *st, char *path,
			   size_t room)
{
	char link[40];
	ssize_t n;

	if (st->st_nlink == 0)
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, room);
	if (n <= 0 || (size_t)n >= room)
		return false;
	path[n] = '\0';
	return path[0] == '/';
}

static bool key_write_origin(const struct chunk_set *set, uint64_t index,
			     const struct chunk *c, FILE *out)
{
	char text[ORIGIN_MAX];

	if (c->state == CHUNK_STORED) {
		chunk_origin(c, out);
		return true;
	}
	if (!set->ops->origin(set, index, c, text, sizeof text))
		return false;
	fprintf(out, "%s\n", text);
	return true;
}

/* Write the key's text.  Return false if memory is out, or a part of it is not known. */
static bool key_write_text(const struct shared *sh, struct shared_key *k,
			   const struct handle *pin, const struct stat *st,
			   const struct chunk_set *set, uint64_t index,
			   const struct chunk *c)
{
	char path[PATH_ROOM];
	FILE *out;
	bool ok;

	if (!path_of_source(pin->fd, st, path, sizeof path))
		return false;
	out = open_memstream(&k->text, &k->len);
	if (!out)
		return false;
	fprintf(out,
		"tensorfs %s chunk\n%zu %s\n"
		"device %" PRIu64 " inode %" PRIu64 " size %" PRIu64
		" mtime %" PRIu64 " ctime %" PRIu64 " from %" PRIu64 "\n",
		sh->version, strlen(path), path, k->source[0], k->source[1],
		k->source[2], k->source[3], k->source[4], pin->base);
	ok = key_write_origin(set, index, c, out);
	ok &= !ferror(out);
	return fclose(out) == 0 && ok;
}

static bool chunk_is_worth_sharing(const struct chunk_set *set,
				   const struct chunk *c)
{
	/* A chunk made of many files, or of none, has no file to identify it by. */
	if (c->size < SHARED_CHUNK_MIN || c->file == UINT32_MAX)
		return false;
	if (c->state == CHUNK_STORED) /* the page cache has verbatim ones */
		return !chunk_is_verbatim(c);
	return c->state == CHUNK_FETCH && set->ops->origin;
}

int shared_key_of(const struct shared *sh, struct shared_key *k,
		  struct handles *h, const struct chunk_set *set,
		  uint64_t index, const struct chunk *c, struct error *err)
{
	XXH128_canonical_t sum;
	struct handle pin;
	struct stat st;
	int r;

	*k = (struct shared_key){.handles = h, .file = c->file};
	if (!chunk_is_worth_sharing(set, c))
		return 1;
	r = handles_get(h, c->file, &pin, err);
	if (r < 0)
		return r;
	r = 1;
	if (fstat(pin.fd, &st) == 0) {
		source_identity(&st, k->source);
		k->settled = source_is_settled(&st);
		r = key_write_text(sh, k, &pin, &st, set, index, c) ? 0 : 1;
	}
	handles_put(h, &pin);
	if (r) {
		shared_key_free(k);
		return r;
	}
	XXH128_canonicalFromHash(&sum, XXH3_128bits(k->text, k->len));
	for (unsigned i = 0; i < sizeof sum.digest; i++)
		snprintf(k->name + 2 * i, 3, "%02x", sum.digest[i]);
	return 0;
}

void shared_key_free(struct shared_key *k)
{
	free(k->text);
	k->text = NULL;
}

bool shared_key_holds(const struct shared_key *k)
{
	uint64_t source[5];
	struct handle pin;
	struct stat st;
	bool same;

	if (handles_get(k->handles, k->file, &pin, NULL) < 0)
		return false;
	same = fstat(pin.fd, &st) == 0;
	handles_put(k->handles, &pin);
	if (!same)
		return false;
	source_identity(&st, source);
	return !memcmp(source, k->source, sizeof source);
}
