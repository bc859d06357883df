/* SPDX-License-Identifier: BSD-2-Clause */
/* From a source to its index: what identifies the source, and where the index file
 * is. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/xattr.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "members/index_private.h"

/*
 * An index can be copied with its archive: path, inode and device are not compared, but
 * size, mtime and a sample of the content.  Together they tell a source from its
 * earlier content and from other sources.  A copy that did not keep the time (cp
 * without -p) gets an index of its own.
 *
 * The sample works where times do not help: two shards of one size that were unpacked
 * with one mtime differ in their headers.  It is not a proof: if a byte in the middle
 * of a large archive is changed, its size kept and its mtime set back, that is not
 * noticed; but the members' bytes come from the archive anyway.
 *
 * The pieces are announced to the kernel before the first is read, so that a
 * network file system can fetch them at once rather than one after the other.
 */
#define END_PIECE (UINT64_C(64) << 10)
#define MID_PIECE UINT64_C(4096)
enum { MID_PIECES = 10, PIECES = MID_PIECES + 2 };

#define SUFFIX ".tfsidx"
/* The name of an index in the cache directory begins with up to this many bytes of
 * the source's name; a hash follows, 255 bytes in all. */
enum { NAME_SHOWN = 200 };

struct piece {
	uint64_t off, len;
};

/* Fill in the pieces to sample, ascending and not overlapping.  Return their number. */
static unsigned index_sample_pieces(uint64_t size, struct piece out[PIECES])
{
	const uint64_t whole = 2 * END_PIECE + MID_PIECES * MID_PIECE;
	uint64_t gap;

	out[0] = (struct piece){0, min_u64(size, whole)};
	if (size <= whole)
		return 1;
	out[0].len = END_PIECE;
	gap = (size - whole) / (MID_PIECES + 1);
	for (unsigned i = 0; i < MID_PIECES; i++)
		out[1 + i] = (struct piece){
			END_PIECE + gap + i * (MID_PIECE + gap), MID_PIECE};
	out[PIECES - 1] = (struct piece){size - END_PIECE, END_PIECE};
	return PIECES;
}

static int index_sample_read(const struct backing *b, const struct handle *h,
			     XXH3_state_t *hash, void *buf, struct error *err)
{
	struct piece piece[PIECES];
	unsigned n = index_sample_pieces(b->size, piece);

	for (unsigned i = 0; i < n; i++)
		posix_fadvise(h->fd, (off_t)(b->pos + piece[i].off),
			      (off_t)piece[i].len, POSIX_FADV_WILLNEED);
	for (unsigned i = 0; i < n; i++) {
		ssize_t got = file_read(h->fd, b->pos + piece[i].off, buf,
					piece[i].len);

		if (got < 0)
			return error_errno(err, (int)got, "%s",
					   backing_name(b));
		if ((uint64_t)got < piece[i].len)
			return error_set(
				err, -EIO,
				"%s ended after %llu bytes: truncated?",
				backing_name(b),
				(unsigned long long)(b->pos + piece[i].off) +
					(unsigned long long)got);
		XXH3_128bits_update(hash, buf, (size_t)got);
	}
	return handles_check(b->handles, h, err);
}

static void cleanup_hash_fn(XXH3_state_t **s)
{
	XXH3_freeState(*s);
}

int index_sample(const struct backing *b, unsigned char sample[16],
		 struct error *err)
{
	__attribute__((cleanup(cleanup_hash_fn))) XXH3_state_t *hash =
		XXH3_createState();
	cleanup_free void *buf = malloc(2 * END_PIECE + MID_PIECES * MID_PIECE);
	XXH128_canonical_t sum;
	struct handle h;
	int r;

	if (!hash || !buf)
		return error_no_memory(err,
				       "comparing an archive with its index");
	r = handles_get(b->handles, b->file, &h, err);
	if (r < 0)
		return r;
	XXH3_128bits_reset(hash);
	r = index_sample_read(b, &h, hash, buf, err);
	handles_put(b->handles, &h);
	if (r < 0)
		return r;
	XXH128_canonicalFromHash(&sum, XXH3_128bits_digest(hash));
	memcpy(sample, sum.digest, 16);
	return 0;
}

bool index_wanted(const struct index_key *key, const struct index_options *o)
{
	if (!key->path || !backing_is_plain(key->source))
		return false;
	return !o || !o->where || strcmp(o->where, "none") != 0;
}

static int index_source_stat(const struct backing *b, struct stat *st,
			     struct error *err)
{
	struct handle h;
	int r = handles_get(b->handles, b->file, &h, err);

	if (r < 0)
		return r;
	if (fstat(h.fd, st) < 0)
		r = error_errno(err, -errno, "%s", backing_name(b));
	handles_put(b->handles, &h);
	return r;
}

bool index_is_ours(const struct index_key *key, const struct stat *of)
{
	struct stat st;

	if (of->st_uid == geteuid() || of->st_uid == 0)
		return true;
	return index_source_stat(key->source, &st, NULL) == 0 &&
	       of->st_uid == st.st_uid;
}

int index_identify(const struct index_key *key, struct index_head *head,
		   struct error *err)
{
	struct stat st;
	int r;

	if (strlen(key->maker) >= sizeof head->maker)
		return error_set(err, -EINVAL, "'%s' is too long for an index",
				 key->maker);
	r = index_source_stat(key->source, &st, err);
	if (r < 0)
		return r;
	memcpy(head->magic, INDEX_MAGIC, sizeof head->magic);
	head->endian = INDEX_ENDIAN;
	head->layout = INDEX_LAYOUT;
	memset(head->maker, 0, sizeof head->maker);
	memcpy(head->maker, key->maker, strlen(key->maker));
	head->options = key->options;
	head->pos = key->source->pos;
	head->part = key->source->size;
	head->file_size = (uint64_t)st.st_size;
	head->mtime = st.st_mtim.tv_sec;
	head->nsec = (uint32_t)st.st_mtim.tv_nsec;
	return 0;
}

int index_compare(const struct index_key *key, const struct index_head *head,
		  struct error *err)
{
	struct index_head is = {0};
	int r = index_identify(key, &is, err);

	if (r < 0)
		return r;
	if (memcmp(head->maker, is.maker, sizeof is.maker) != 0)
		return error_set(err, -EINVAL,
				 "foreign: made by '%.*s', this is '%s'",
				 (int)strnlen(head->maker, sizeof head->maker),
				 head->maker, key->maker);
	if (head->options != is.options || head->pos != is.pos)
		return error_set(err, -EINVAL,
				 "foreign: made with other options");
	if (head->file_size != is.file_size)
		return error_set(
			err, -ESTALE,
			"out of date: %s had %llu bytes then, %llu now",
			backing_name(key->source),
			(unsigned long long)head->file_size,
			(unsigned long long)is.file_size);
	if (head->part != is.part)
		return error_set(err, -EINVAL,
				 "foreign: made of another part of %s",
				 backing_name(key->source));
	if (head->mtime != is.mtime || head->nsec != is.nsec)
		return error_set(err, -ESTALE,
				 "out of date: %s was modified since",
				 backing_name(key->source));
	r = index_sample(key->source, is.sample, err);
	if (r == 0 && memcmp(head->sample, is.sample, sizeof is.sample) != 0)
		r = error_set(err, -ESTALE,
			      "out of date: made of another file than %s with "
			      "the same size and time",
			      backing_name(key->source));
	return r;
}

/* ---- permissions --------------------------------------------------------- */

/* Return the umask. umask(2) cannot read it without changing it for all threads. */
static mode_t index_umask(void)
{
	cleanup_fclose FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned mask;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Umask: %o", &mask) == 1)
			return mask & 0777;
	return 077;
}

mode_t index_mode(const struct backing *b, int fd)
{
	mode_t allowed, common;
	struct stat is, st;
	struct handle h;
	ssize_t acl;

	if (handles_get(b->handles, b->file, &h, NULL) < 0)
		return 0600;
	acl = fgetxattr(h.fd, "system.posix_acl_access", NULL, 0);
	if (fstat(h.fd, &st) < 0)
		st.st_mode = 0;
	handles_put(b->handles, &h);
	/* With an ACL the group bits of st_mode are the mask, not the group's
	 * permissions. */
	if (acl > 0 || !st.st_mode || fstat(fd, &is) < 0)
		return 0600;
	allowed = st.st_mode & 066 & ~index_umask();
	if (is.st_gid == st.st_gid || fchown(fd, (uid_t)-1, st.st_gid) == 0)
		return 0600 | allowed;
	/* The groups differ: a member of one may be any user to the other.  Allow
	 * only what both the group and other users may do. */
	common = allowed >> 3 & allowed & 6;
	return 0600 | common << 3 | common;
}

/* ---- where index files are ------------------------------------------------ */

bool index_is_file(int dir, const char *path)
{
	const size_t n = strlen(path), suffix = strlen(SUFFIX);
	char magic[sizeof INDEX_MAGIC - 1];
	cleanup_close int fd = -1;
	struct stat st;

	if (n <= suffix || strcmp(path + n - suffix, SUFFIX) != 0)
		return false;
	return file_open(dir, path, &fd, &st, NULL) == 0 &&
	       file_read(fd, 0, magic, sizeof magic) == sizeof magic &&
	       !memcmp(magic, INDEX_MAGIC, sizeof magic);
}

static const char *index_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return the directory part of `path`, malloc'ed: "." if it has none, "/" for the
 * root. */
static char *index_dir_name(const char *path)
{
	size_t n = (size_t)(index_base_name(path) - path);

	if (n == 0)
		return strdup(".");
	return strndup(path, n > 1 ? n - 1 : 1);
}

/* Return the name of the source's index in the cache directory, malloc'ed.  It is
 * the same by whichever path the source is reached. */
static char *index_cache_name(const char *path)
{
	cleanup_free char *real = realpath(path, NULL);
	const char *id = real ? real : path;
	const char *base = index_base_name(id);
	int n = (int)strnlen(base, NAME_SHOWN);
	char *name;

	/* Do not cut a UTF-8 character. */
	while (base[n] && n > 0 && ((unsigned char)base[n] & 0xc0) == 0x80)
		n--;
	if (asprintf(&name, "%.*s-%016" PRIx64 SUFFIX, n, base,
		     (uint64_t)XXH3_64bits(id, strlen(id))) < 0)
		return NULL;
	return name;
}

/* Set *out to the cache directory, malloc'ed, or NULL if there is none.  As the XDG
 * Base Directory Specification says, a path that is not absolute is ignored. */
static int index_cache_dir(char **out, struct error *err)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n = 0;

	*out = NULL;
	if (xdg && xdg[0] == '/')
		n = asprintf(out, "%s/tensorfs", xdg);
	else if (home && home[0] == '/')
		n = asprintf(out, "%s/.cache/tensorfs", home);
	if (n >= 0)
		return 0;
	*out = NULL;
	return error_no_memory(err, "the names of index files");
}

static int index_places_add(struct index_places *p, char *dir, char *name,
			    bool cache, struct error *err)
{
	p->at[p->n++] = (struct index_place){dir, name, cache, false};
	return dir && name ? 0
			   : error_no_memory(err, "the names of index files");
}

static int index_places_asked(struct index_places *p,
			      const struct index_key *key, const char *where,
			      struct error *err)
{
	struct stat st;
	int r;

	if (stat(where, &st) == 0 && S_ISDIR(st.st_mode))
		return index_places_add(p, strdup(where),
					index_cache_name(key->path), false,
					err);
	if (!*index_base_name(where))
		return error_set(err, -ENOENT, "%s is no directory",
				 *where ? file_shown(where) : "''");
	r = index_places_add(p, index_dir_name(where),
			     strdup(index_base_name(where)), false, err);
	p->at[0].asked = true;
	return r;
}

static int index_places_usual(struct index_places *p,
			      const struct index_key *key, struct error *err)
{
	char *beside, *cache;
	int r;

	if (asprintf(&beside, "%s" SUFFIX, index_base_name(key->path)) < 0)
		beside = NULL;
	r = index_places_add(p, index_dir_name(key->path), beside, false, err);
	if (r == 0)
		r = index_cache_dir(&cache, err);
	if (r == 0 && cache)
		r = index_places_add(p, cache, index_cache_name(key->path),
				     true, err);
	return r;
}

int index_places(const struct index_key *key, const struct index_options *o,
		 struct index_places *out, struct error *err)
{
	int r;

	*out = (struct index_places){.n = 0};
	if (o && o->where)
		r = index_places_asked(out, key, o->where, err);
	else
		r = index_places_usual(out, key, err);
	if (r < 0)
		index_places_free(out);
	return r;
}

void index_places_free(struct index_places *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		free(p->at[i].dir);
		free(p->at[i].name);
	}
	p->n = 0;
}

/* Create the cache directory and its parent, closed to other users: names of files
 * are private.  Errors show when the directory is opened. */
static int index_make_cache(const char *dir, struct error *err)
{
	cleanup_free char *above = index_dir_name(dir);

	if (!above)
		return error_no_memory(err, "the names of index files");
	(void)mkdir(above, 0700);
	(void)mkdir(dir, 0700);
	return 0;
}

int index_place_open(const struct index_place *p, struct error *err)
{
	int fd, r = p->cache ? index_make_cache(p->dir, err) : 0;

	if (r < 0)
		return r;
	fd = open(p->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, -errno, "%s", file_shown(p->dir));
	return fd;
}
