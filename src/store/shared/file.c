/* SPDX-License-Identifier: BSD-2-Clause */
/* A chunk as a file in memory: how it is made, and how it is checked. */

/*
 *	bytes of the chunk | 0s | text of its key | 0s | struct tail
 *
 * An entry is complete from the moment that it has its name, and is never written to
 * again.  Until then it is a *part*:
 *
 *	part_take     NAME.part is created and locked        dies here: an empty file
 *	part_room     it gets its size, then its memory      a file of some size
 *	(decoding, into its mapping)                         the same
 *	part_publish  the tail, read-only, link to NAME      both names of a whole file
 *	              NAME.part is removed, the lock ends
 *
 * The second name is given and the first one removed under the ledger's lock.  Without
 * it, a process that counts names would find both, or neither, and one that evicts one
 * name would leave the other uncounted.
 *
 * A lock ends with the process that has it.  A dead process leaves a part that is not
 * locked: the next process that wants that chunk makes it again in that part, from the
 * beginning, and a process that goes through the directory removes it.  So the lock for
 * which others wait, the reservation of bytes, and the file that is written to are one
 * thing, and nothing needs repair.
 *
 * The name is given to the open file (its descriptor), not to the file that is called
 * NAME.part by then: the directory may have been cleared meanwhile.
 *
 * Mapping.  Memory is allocated before a page is touched: on a full file system touching
 * it would be SIGBUS.  No daemon truncates entries; the user can, as well as kill the
 * daemon.  A change that the user makes is noticed when the entry is next mapped: the tail
 * has a hash of the bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "store/shared/private.h"

#define TAIL_MAGIC UINT64_C(0x314b4e5548434654) /* "TFCHUNK1" */
/* Seconds: a use is noted at most once in this time. */
#define TOUCH_SECONDS 1

struct tail {
	uint64_t magic;
	uint64_t size; /* bytes of the chunk */
	uint64_t text; /* bytes of the key's text */
	XXH128_hash_t sum;
};

static uint64_t align8(uint64_t n)
{
	return (n + 7) & ~UINT64_C(7);
}

/* The bytes of the file, or 0 if they are too many. */
static uint64_t entry_file_size(uint64_t size, uint64_t text)
{
	if (size > INT64_MAX / 2 || text > INT64_MAX / 2)
		return 0;
	return align8(size) + align8(text) + sizeof(struct tail);
}

static size_t mapped_size(uint64_t total)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size_t)((total + page - 1) / page * page);
}

static void unmap(void *ctx, void *data, size_t capacity)
{
	struct shared *sh = ctx;

	munmap(data, capacity);
	atomic_fetch_sub(&sh->mappings, 1);
}

/* Return a buffer around a mapping.  If memory for the buffer is out, unmap and return
 * NULL. */
static struct buf *buf_on_mapping(struct shared *sh, void *map, uint64_t total,
				  uint64_t size, _Atomic uint64_t *gauge)
{
	size_t capacity = mapped_size(total);
	struct buf *b =
		buf_around(map, (size_t)size, capacity, gauge, unmap, sh);

	if (b)
		atomic_fetch_add(&sh->mappings, 1);
	else
		munmap(map, capacity);
	return b;
}

/* ---- entries --------------------------------------------------------------- */

/* Check a mapped entry.  Return NULL if it is right, and set *size to the chunk's bytes;
 * otherwise return what is wrong with it. */
static const char *entry_fault(const unsigned char *map, uint64_t total,
			       const struct shared_key *k, uint64_t *size)
{
	struct tail t;
	XXH128_hash_t sum;

	memcpy(&t, map + total - sizeof t, sizeof t);
	if (t.magic != TAIL_MAGIC || (*size && t.size != *size) ||
	    t.text != k->len || entry_file_size(t.size, t.text) != total)
		return "its size is wrong";
	if (memcmp(map + align8(t.size), k->text, k->len))
		return "it belongs to another chunk";
	sum = XXH3_128bits(map, (size_t)t.size);
	if (!XXH128_isEqual(sum, t.sum))
		return "its checksum differs";
	*size = t.size;
	return NULL;
}

/* The file's modification time is about that of its last use. */
static void entry_mark_used(int fd, const struct stat *st)
{
	const struct timespec now[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (t.tv_sec - st->st_mtim.tv_sec > TOUCH_SECONDS)
		futimens(fd, now);
}

static int entry_damaged(struct shared *sh, const struct shared_key *k, int fd,
			 const char *why, struct error *err)
{
	ledger_remove(sh, k->name, fd, NULL);
	return error_set(err, -EBADMSG,
			 "'%s/%s' was damaged (%s) and has been removed",
			 sh->dir.path, k->name, why);
}

/* Return a copy on the heap, for when there are too many mappings already. */
static struct buf *entry_copy(const void *map, uint64_t size,
			      _Atomic uint64_t *gauge)
{
	struct buf *b = buf_new((size_t)size, gauge);

	if (b)
		memcpy(b->data, map, (size_t)size);
	return b;
}

/* With O_NONBLOCK, an entry that is being evicted counts as gone: there is no reason to
 * wait. */
static int entry_open_file(const struct shared *sh, const char *name)
{
	return openat(sh->dir.fd, name,
		      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
			      O_NOCTTY);
}

int entry_open(struct shared *sh, const struct shared_key *k, uint64_t size,
	       _Atomic uint64_t *gauge, struct buf **out, struct error *err)
{
	cleanup_close int fd = entry_open_file(sh, k->name);
	const char *fault;
	uint64_t total;
	struct stat st;
	void *map;

	*out = NULL;
	if (fd < 0)
		return errno == ENOENT || errno == EWOULDBLOCK
			       ? 0
			       : error_errno(err, -errno, "cannot open '%s/%s'",
					     sh->dir.path, k->name);
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot open '%s/%s'",
				   sh->dir.path, k->name);
	total = (uint64_t)st.st_size;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    total < entry_file_size(size, k->len))
		return entry_damaged(sh, k, fd, "its size is wrong", err);
	if (total > SIZE_MAX / 2)
		return error_set(err, -ENOMEM,
				 "'%s/%s' is too large to be mapped",
				 sh->dir.path, k->name);
	map = mmap(NULL, mapped_size(total), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return error_errno(err, -errno, "cannot map '%s/%s'",
				   sh->dir.path, k->name);
	fault = entry_fault(map, total, k, &size);
	if (fault) {
		munmap(map, mapped_size(total));
		return entry_damaged(sh, k, fd, fault, err);
	}
	entry_mark_used(fd, &st);
	if (shared_is_crowded(sh)) {
		*out = entry_copy(map, size, gauge);
		munmap(map, mapped_size(total));
	} else {
		*out = buf_on_mapping(sh, map, total, size, &sh->mapped);
	}
	return *out ? 0 : error_no_memory(err, "the buffer of a shared chunk");
}

/* ---- parts ----------------------------------------------------------------- */

int part_take(struct shared *sh, const struct shared_key *k, struct part *p,
	      struct error *err)
{
	*p = (struct part){.fd = -1};
	snprintf(p->name, sizeof p->name, "%s" SHARED_PART, k->name);
	p->fd = shm_lock(&sh->dir, p->name, SHM_EXCLUSIVE, false, err);
	return p->fd < 0 ? p->fd : 0;
}

static int part_allocate(int fd, uint64_t total, struct error *err)
{
	int r;

	do
		r = fallocate(fd, 0, 0, (off_t)total);
	while (r < 0 && errno == EINTR);
	return r < 0 ? error_errno(
			       err, -errno,
			       "cannot allocate %llu bytes of shared memory",
			       (unsigned long long)total)
		     : 0;
}

int part_room(struct shared *sh, const struct shared_key *k, struct part *p,
	      uint64_t size, struct error *err)
{
	uint64_t total = entry_file_size(size, k->len);
	void *map;
	int r;

	if (!total || total > SIZE_MAX / 2)
		return error_set(
			err, -EFBIG,
			"a chunk of %llu bytes is too large to be shared",
			(unsigned long long)size);
	if (shared_is_crowded(sh))
		return error_set(
			err, -ENOMEM,
			"this process has too many shared chunks mapped");
	r = ledger_grow(sh, p->fd, total, err);
	if (r == 0)
		r = part_allocate(p->fd, total, err);
	if (r < 0)
		return r;
	map = mmap(NULL, mapped_size(total), PROT_READ | PROT_WRITE, MAP_SHARED,
		   p->fd, 0);
	if (map == MAP_FAILED)
		return error_errno(err, -errno,
				   "cannot map %llu bytes of shared memory",
				   (unsigned long long)total);
	p->map = map;
	p->total = total;
	p->size = size;
	return 0;
}

/* Write the text and the tail; nothing is written after this. */
static bool part_seal(const struct shared_key *k, const struct part *p)
{
	struct tail t = {.magic = TAIL_MAGIC,
			 .size = p->size,
			 .text = k->len,
			 .sum = XXH3_128bits(p->map, (size_t)p->size)};
	unsigned char *at = p->map + align8(p->size);

	/* A part left by a dead process may have had bytes here. */
	memset(p->map + p->size, 0, (size_t)(p->total - p->size));
	memcpy(at, k->text, k->len);
	memcpy(p->map + p->total - sizeof t, &t, sizeof t);
	return mprotect(p->map, mapped_size(p->total), PROT_READ) == 0 &&
	       fchmod(p->fd, 0400) == 0;
}

/* Give the open file a name.  Without /proc only a process that may read everything can
 * do it by descriptor alone. */
static bool part_give_name(const struct shared *sh, int fd, const char *name)
{
	char self[40];

	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, sh->dir.fd, name, AT_SYMLINK_FOLLOW) ==
		       0 ||
	       (errno == ENOENT &&
		linkat(fd, "", sh->dir.fd, name, AT_EMPTY_PATH) == 0);
}

/* Give the part the entry's name.  If the ledger cannot be locked, its sum may be wrong
 * until the next count. */
static bool part_rename(struct shared *sh, const struct part *p,
			const char *name)
{
	int book = ledger_lock(sh, NULL);
	bool named = part_give_name(sh, p->fd, name);

	if (named)
		unlinkat(sh->dir.fd, p->name, 0);
	if (book >= 0)
		close(book);
	return named;
}

static void part_end(struct part *p)
{
	/* The mapping keeps the file open, and with it the lock. */
	flock(p->fd, LOCK_UN);
	close(p->fd);
	p->fd = -1;
	p->map = NULL;
}

struct buf *part_publish(struct shared *sh, const struct shared_key *k,
			 struct part *p, _Atomic uint64_t *gauge)
{
	struct buf *b;
	bool named = part_seal(k, p) && shared_key_holds(k) &&
		     part_rename(sh, p, k->name);

	/* Without a name no other process has it: it counts as this process's own
	 * memory. */
	b = buf_on_mapping(sh, p->map, p->total, p->size,
			   named ? &sh->mapped : gauge);
	p->map = NULL;
	if (!named) {
		part_drop(sh, p);
		return b;
	}
	part_end(p);
	return b;
}

void part_drop(struct shared *sh, struct part *p)
{
	if (p->map)
		munmap(p->map, mapped_size(p->total));
	if (p->fd < 0)
		return;
	ledger_remove(sh, p->name, p->fd, NULL);
	part_end(p);
}
