/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger: one sum of the bytes of all processes, and how it is kept right. */

/*
 * The directory is what counts: an entry or part takes its size, whether its memory is
 * allocated yet or not.  Adding that up for each chunk would be a stat for each entry, so
 * the sum stands in a file.  It is changed under the file's lock, together with the names
 * that it counts:
 *
 *	lock - read - mark dirty - change names or sizes - write - unlock
 *
 * The lock ends with the process that has it.  A process that finds the mark, or a file
 * that makes no sense, counts everything anew.  Files that a user removes by hand are
 * noticed at the next count, which comes when the store seems full.
 *
 * When it is full, the oldest entries that no process has mapped are removed, a sixteenth
 * of the limit more than necessary, so that going through the directory pays.  Where all
 * entries are in use nothing is added: chunks are decoded on the heap, for their process
 * alone, and the ledger says that a process is starved, upon which all processes give up
 * mappings that they did not use lately.  Counts that did not make enough room take a
 * twentieth of the time at most.
 *
 * Each process has a limit of its own; the smallest limit of those that add entries
 * decides.
 *
 * No process waits for a lock longer than SHARED_LOCK_NS: its holder may have been
 * stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "store/shared/private.h"

#define LEDGER_MAGIC "TFLEDGE1"
#define SPARE_SHARE 16
/* A count that took t is not repeated for SCAN_SHARE * t. */
#define SCAN_SHARE 20
#define STARVED_NS (UINT64_C(200) * 1000000)
/* Nanoseconds: times further ahead than this are not of this boot. */
#define TIME_MAX (UINT64_C(600) * 1000000000)

uint64_t ledger_cost(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return size > INT64_MAX ? size : (size + page - 1) / page * page;
}

/* ---- the file -------------------------------------------------------------- */

int ledger_lock(struct shared *sh, struct error *err)
{
	uint64_t end = shared_now() + sh->lock_ns;
	struct timespec pause = {0, 50000};
	int fd;

	for (;;) {
		fd = shm_lock(&sh->dir, SHARED_LEDGER, SHM_EXCLUSIVE, false,
			      err);
		if (fd != -EWOULDBLOCK || shared_now() > end)
			return fd;
		nanosleep(&pause, NULL);
		pause.tv_nsec =
			pause.tv_nsec < 2000000 ? pause.tv_nsec * 2 : 2000000;
	}
}

static bool ledger_load(int fd, struct ledger *l)
{
	return pread(fd, l, sizeof *l, 0) == (ssize_t)sizeof *l &&
	       !memcmp(l->magic, LEDGER_MAGIC, sizeof l->magic);
}

static int ledger_save(int fd, const struct ledger *l, struct error *err)
{
	ssize_t n = pwrite(fd, l, sizeof *l, 0);

	if (n == (ssize_t)sizeof *l)
		return 0;
	return error_errno(err, n < 0 ? -errno : -ENOSPC,
			   "cannot write the ledger of the shared chunks");
}

static int ledger_recount(struct shared *sh, struct ledger *l, struct scan *s,
			  struct error *err)
{
	int r = scan_run(sh, s, err);

	if (r < 0)
		return r;
	l->bytes = s->bytes;
	l->entries = s->entries;
	return 0;
}

/* Lock the ledger, count anew if it is not right, and mark it dirty.  Return the
 * descriptor, or -errno. */
static int ledger_begin(struct shared *sh, struct ledger *l, struct error *err)
{
	int fd = ledger_lock(sh, err), r = 0;
	struct scan s = {0};

	if (fd < 0)
		return fd;
	if (!ledger_load(fd, l) || l->dirty) {
		*l = (struct ledger){.magic = LEDGER_MAGIC};
		r = ledger_recount(sh, l, &s, err);
		free(s.oldest);
	}
	/* From here on a count is due unless ledger_end is reached. */
	l->dirty = 1;
	if (r == 0)
		r = ledger_save(fd, l, err);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

static int ledger_end(int fd, struct ledger *l, struct error *err)
{
	int r;

	l->dirty = 0;
	r = ledger_save(fd, l, err);
	close(fd);
	return r;
}

void ledger_read(const struct shared *sh, struct ledger *out)
{
	cleanup_close int fd =
		openat(sh->dir.fd, SHARED_LEDGER,
		       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || !ledger_load(fd, out))
		*out = (struct ledger){0};
}

/* ---- making room ----------------------------------------------------------- */

/* Remove old entries until the sum is `target`, as far as possible. */
static int ledger_evict(struct shared *sh, struct ledger *l, uint64_t target,
			struct error *err)
{
	uint64_t began = shared_now(), now;
	struct scan s;
	int r = ledger_recount(sh, l, &s, err);

	for (unsigned i = 0; r == 0 && i < s.n && l->bytes > target; i++) {
		if (!scan_evict(sh, s.oldest[i].name))
			continue;
		l->bytes -= min_u64(l->bytes, s.oldest[i].cost);
		l->entries -= l->entries > 0;
	}
	free(s.oldest);
	now = shared_now();
	l->next_scan =
		l->bytes <= target ? 0 : now + (now - began) * SCAN_SHARE;
	return r;
}

/* Make `cost` bytes fit in addition to those in use.  Return 0, -ENOSPC if they do not
 * fit, or another -errno. */
static int ledger_make_room(struct shared *sh, struct ledger *l, uint64_t cost,
			    struct error *err)
{
	uint64_t now = shared_now(), most, least;
	int r;

	if (add_overflows(l->bytes, room_now(sh), &most))
		most = UINT64_MAX;
	most = min_u64(most, sh->limit);
	if (cost <= most && l->bytes <= most - cost)
		return 0;
	if (l->next_scan > now && l->next_scan < now + TIME_MAX)
		goto full;
	least = cost + most / SPARE_SHARE;
	r = ledger_evict(sh, l, least < most ? most - least : 0, err);
	if (r < 0)
		return r;
	if (cost <= most && l->bytes <= most - cost)
		return 0;
	l->starved = shared_now();
	l->next_scan = max_u64(l->next_scan, l->starved + STARVED_NS);
full:
	return error_set(err, -ENOSPC,
			 "%" PRIu64 " bytes do not fit: %" PRIu64
			 " are in use, and the limit is now %" PRIu64,
			 cost, l->bytes, most);
}

int ledger_grow(struct shared *sh, int part, uint64_t size, struct error *err)
{
	uint64_t cost = ledger_cost(size), had;
	struct ledger l;
	struct stat st;
	int fd, r;

	if (cost > sh->limit)
		return error_set(err, -EFBIG,
				 "a chunk of %" PRIu64
				 " bytes is larger than shm-cache",
				 size);
	fd = ledger_begin(sh, &l, err);
	if (fd < 0)
		return fd;
	r = fstat(part, &st) < 0
		    ? error_errno(err, -errno, "cannot make room for a chunk")
		    : 0;
	/* A dead process left these bytes; they are counted under a name that is ours
	 * now. */
	had = r < 0 ? 0 : ledger_cost((uint64_t)st.st_size);
	if (r == 0 && cost > had)
		r = ledger_make_room(sh, &l, cost - had, err);
	if (r == 0 && ftruncate(part, (off_t)size) < 0)
		r = error_errno(err, -errno, "cannot make room for a chunk");
	if (r == 0) {
		l.bytes = l.bytes - min_u64(l.bytes, had) + cost;
		l.entries += had == 0;
		room_take(sh, cost - min_u64(cost, had));
	}
	if (ledger_end(fd, &l, r == 0 ? err : NULL) < 0 && r == 0)
		r = err ? err->code : -EIO;
	return r;
}

/* ---- names ----------------------------------------------------------------- */

static bool name_is_of_file(const struct shared *sh, const char *name, int fd,
			    struct stat *st)
{
	struct stat own;

	return fstatat(sh->dir.fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (fd < 0 || (fstat(fd, &own) == 0 && own.st_ino == st->st_ino &&
			   own.st_dev == st->st_dev));
}

int ledger_remove(struct shared *sh, const char *name, int fd,
		  struct error *err)
{
	struct ledger l = {0};
	struct stat st;
	int book = ledger_begin(sh, &l, err);

	/* If the ledger cannot be locked, the sum is too large until the next count. */
	if (name_is_of_file(sh, name, fd, &st) &&
	    unlinkat(sh->dir.fd, name, 0) == 0 && st.st_nlink == 1) {
		l.bytes -= min_u64(l.bytes, ledger_cost((uint64_t)st.st_size));
		l.entries -= st.st_size > 0 && l.entries > 0;
	}
	if (book < 0)
		return book;
	if (!scan_is_entry(name))
		return ledger_end(book, &l, err);
	/* A damaged entry may have had another size before: leave the mark, so that all
	 * is counted anew. */
	close(book);
	return 0;
}

int ledger_settle(struct shared *sh, struct error *err)
{
	struct ledger l;
	int fd = ledger_begin(sh, &l, err), r;

	if (fd < 0)
		return fd;
	r = ledger_evict(sh, &l, sh->limit, err);
	if (ledger_end(fd, &l, r == 0 ? err : NULL) < 0 && r == 0)
		r = err ? err->code : -EIO;
	return r;
}
