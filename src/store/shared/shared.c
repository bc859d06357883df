/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoded chunks in shared memory: each is decoded once on a node. */

/*
 *	DIR/tensorfs-UID/.chunks/    0700, ours, in memory
 *	    ledger                   the sum of all bytes, and its lock
 *	    NAME                     a decoded chunk, 0400, whole (store/shared/file.c)
 *	    NAME.part                one in the making, locked by its maker
 *
 * A chunk that is wanted and not in the cache:
 *
 *	NAME is there ------------------------------> map it, compare, use it
 *	   | no
 *	NAME.part: take its lock
 *	   | held by another process --- wait, look for NAME again, ...
 *	room for it? -------------- no -------------> decode on the heap
 *	   | yes
 *	decode into its mapping, give it its name --> use that mapping
 *
 * Only locks that die with their holder keep processes apart, and nothing but work
 * depends on them: two processes that make the same chunk make the same bytes, and one of
 * them gets the name.  So a waiting process does not wait for ever (the holder may have
 * been stopped), and every failure of this store ends in decoding on the heap, as if
 * there were no store.  Only failures to decode are failures.
 *
 * This is the one place where a thread waits for a lock that a thread of another process
 * holds while it decodes.  It cannot deadlock: chunks that are made from other chunks
 * never depend on themselves, so waiting follows that order; and the wait ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/number.h"
#include "base/parse.h"
#include "store/shared/private.h"

/* A process that decodes is waited for WAIT_NS, and a second for each WAIT_BYTES_PER_S
 * bytes. */
#define WAIT_NS (UINT64_C(5) * 1000000000)
#define WAIT_BYTES_PER_S (UINT64_C(32) << 20)
/* The pause between two looks grows from PAUSE_MIN_NS to PAUSE_MAX_NS. */
#define PAUSE_MIN_NS 50000
#define PAUSE_MAX_NS 4000000
/* Nothing is added for this long after there was no room, or another error. */
#define REFUSE_NS (UINT64_C(200) * 1000000)
#define REFUSE_LONG_NS (UINT64_C(5) * 1000000000)
/* At most 1/MAPPINGS_SHARE of the mappings that a process may have are used. */
#define MAPPINGS_SHARE 2
#define MAPPINGS_GUESS 65530
/* 1/CROWD_SHARE of these are given up at once. */
#define CROWD_SHARE 16
#define WANTED_NS (UINT64_C(10) * 1000000000)

/* ---- opening --------------------------------------------------------------- */

static uint64_t mappings_max(void)
{
	cleanup_fclose FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long n;

	if (!f || fscanf(f, "%lu", &n) != 1)
		n = MAPPINGS_GUESS;
	return max_u64(n / MAPPINGS_SHARE, 16);
}

/* Open the directory of entries and lock it shared, so that no process removes it while
 * the store is open. */
static int shared_open_dir(struct shared *sh, struct error *err)
{
	for (unsigned i = 0; i < 100; i++) {
		struct stat own, named;
		int r = shm_dir_open(&sh->dir, &sh->home, SHARED_DIR, true,
				     err);

		if (r == -ENOENT && fstat(sh->home.fd, &own) == 0 &&
		    own.st_nlink > 0) /* it was removed in between */
			continue;
		if (r < 0)
			return r;
		if (flock(sh->dir.fd, LOCK_SH | LOCK_NB) == 0 &&
		    fstat(sh->dir.fd, &own) == 0 &&
		    fstatat(sh->home.fd, SHARED_DIR, &named,
			    AT_SYMLINK_NOFOLLOW) == 0 &&
		    own.st_ino == named.st_ino)
			return 0;
		shm_dir_close(&sh->dir);
		nanosleep(&(struct timespec){0, 20000000}, NULL);
	}
	return error_set(err, -EBUSY, "'%s' is being removed; try again",
			 sh->home.path);
}

static int shared_open_once(struct shared *sh, const char *base,
			    struct error *err)
{
	int r = shm_home_open(&sh->home, base, true, err);

	if (r < 0)
		return r;
	if (!shm_in_memory(sh->home.fd))
		return error_set(err, -EINVAL,
				 "'%s' is not in memory (not on a tmpfs): "
				 "decoded chunks cannot be shared there",
				 sh->home.path);
	return shared_open_dir(sh, err);
}

/* Open the user's directory and that of entries, again if another process found the
 * user's directory empty and has just removed it. */
static int shared_open_home(struct shared *sh, const char *base,
			    struct error *err)
{
	int r;

	for (unsigned i = 0; i < 100; i++) {
		r = shared_open_once(sh, base, err);
		if (r != -ENOENT || sh->home.fd < 0)
			break;
		shm_dir_close(&sh->home);
	}
	return r;
}

static void shared_fit_limit(struct shared *sh, uint64_t size)
{
	uint64_t most = room_most(sh->dir.fd);
	char asked[32], used[32];

	sh->limit = min_u64(size, most);
	if (size <= most)
		return;
	format_size(size, asked, sizeof asked);
	format_size(most, used, sizeof used);
	log_warn("'%s' cannot hold %s of decoded chunks, because a quarter of "
		 "its file system stays free: shm-cache is reduced to %s",
		 sh->home.path, asked, used);
}

int shared_open(struct shared **out, const struct shared_options *o,
		struct error *err)
{
	struct shared *sh = calloc(1, sizeof *sh);
	struct error why = {0};
	int r;

	*out = NULL;
	if (!sh)
		return error_no_memory(err, "the chunks in shared memory");
	sh->home = sh->dir = (struct shm_dir)SHM_DIR_INIT;
	sh->version = o->version;
	sh->wait_ns = o->patience ? o->patience : WAIT_NS;
	sh->lock_ns = o->patience ? o->patience : SHARED_LOCK_NS;
	sh->memory_left = o->memory ? o->memory : room_memory;
	sh->mappings_max = mappings_max();
	pthread_mutex_init(&sh->room.lock, NULL);
	r = shared_open_home(sh, o->base, err);
	if (r < 0) {
		shared_close(sh);
		return r;
	}
	shared_fit_limit(sh, o->size);
	if (ledger_settle(sh, &why) < 0)
		log_warn("shared chunks: %s", why.text);
	*out = sh;
	return 0;
}

void shared_close(struct shared *sh)
{
	if (!sh)
		return;
	shm_dir_close(&sh->dir);
	shm_dir_close(&sh->home);
	pthread_mutex_destroy(&sh->room.lock);
	free(sh);
}

/* ---- getting --------------------------------------------------------------- */

bool shared_has(const struct shared *sh, const struct shared_key *k)
{
	return faccessat(sh->dir.fd, k->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Add nothing for a while; the first time, log why. */
static void shared_refuse(struct shared *sh, int code, const struct error *why)
{
	uint64_t pause = code == -ENOSPC ? REFUSE_NS : REFUSE_LONG_NS;

	if (code != -EFBIG &&
	    code != -ETIMEDOUT) /* these concern one chunk only */
		atomic_store(&sh->refuse_until, shared_now() + pause);
	if (!atomic_exchange(&sh->said, true))
		log_warn("shared chunks: %s; chunks that do not fit are "
			 "decoded for this mount alone",
			 why->text);
}

static bool may_add(const struct shared *sh, const struct shared_key *k)
{
	return k->settled && shared_now() >= atomic_load(&sh->refuse_until);
}

/* Return the entry's buffer, or NULL if there is no good one. */
static struct buf *shared_find(struct shared *sh, const struct shared_key *k,
			       const struct shared_maker *m,
			       _Atomic uint64_t *gauge, enum counter counts)
{
	struct error why = {0};
	struct buf *b;
	int r = entry_open(sh, k, m->size, gauge, &b, &why);

	if (r == -EBADMSG)
		counter_add(COUNT_SHARED_DAMAGED, 1);
	if (r < 0)
		log_warn("shared chunks: %s", why.text);
	if (b)
		counter_add(counts, 1);
	return b;
}

/* Wait while another process makes the chunk.  Return 0 with the result in *out, or 0
 * with *out NULL if it is our turn (`p` is then locked), or -errno if the chunk is not to
 * be had in time. */
static int wait_turn(struct shared *sh, const struct shared_key *k,
		     const struct shared_maker *m, _Atomic uint64_t *gauge,
		     struct part *p, struct buf **out, struct error *why)
{
	uint64_t allowed =
		sh->wait_ns + m->size / WAIT_BYTES_PER_S * 1000000000u;
	uint64_t until = shared_now() + allowed;
	struct timespec pause = {0, PAUSE_MIN_NS};
	bool waited = false;
	int r;

	for (;;) {
		r = part_take(sh, k, p, why);
		if (r < 0 && r != -EWOULDBLOCK)
			return r;
		/* The process that had the lock may have finished the chunk. */
		*out = shared_find(sh, k, m, gauge,
				   waited ? COUNT_SHARED_TAKEN
					  : COUNT_SHARED_HITS);
		if (*out && r == 0)
			part_drop(sh, p);
		if (*out || r == 0)
			return 0;
		if (shared_now() > until)
			return error_set(why, -ETIMEDOUT,
					 "another process has not finished a "
					 "chunk in time");
		waited = true;
		nanosleep(&pause, NULL);
		pause.tv_nsec = pause.tv_nsec * 3 / 2;
		if (pause.tv_nsec > PAUSE_MAX_NS)
			pause.tv_nsec = PAUSE_MAX_NS;
	}
}

/* The chunk's size is known: decode right into the entry. */
static int make_into(struct shared *sh, const struct shared_key *k,
		     const struct shared_maker *m, _Atomic uint64_t *gauge,
		     struct part *p, struct buf **out, struct error *err)
{
	struct error why = {0};
	int r = part_room(sh, k, p, m->size, &why);

	if (r < 0) {
		shared_refuse(sh, r, &why);
		return 0;
	}
	r = m->into(m->ctx, p->map, err);
	if (r == 0)
		*out = part_publish(sh, k, p, gauge);
	return r;
}

/* The size is known only when the chunk is made: make it on the heap and copy it. */
static int make_copy(struct shared *sh, const struct shared_key *k,
		     const struct shared_maker *m, _Atomic uint64_t *gauge,
		     struct part *p, struct buf **out, struct error *err)
{
	struct error why = {0};
	struct buf *made = NULL, *copy = NULL;
	int r = m->make(m->ctx, gauge, &made, err);

	if (r < 0)
		return r;
	r = part_room(sh, k, p, made->size, &why);
	if (r < 0) {
		shared_refuse(sh, r, &why);
	} else {
		memcpy(p->map, made->data, made->size);
		copy = part_publish(sh, k, p, gauge);
	}
	*out = copy ? copy : made;
	if (copy)
		buf_unref(made);
	return 0;
}

/* Make the chunk as an entry.  *out stays NULL if there was no room, or no turn in
 * time. */
static int make_shared(struct shared *sh, const struct shared_key *k,
		       const struct shared_maker *m, _Atomic uint64_t *gauge,
		       struct buf **out, struct error *err)
{
	struct error why = {0};
	struct part p;
	int r = wait_turn(sh, k, m, gauge, &p, out, &why);

	if (r < 0) {
		shared_refuse(sh, r, &why);
		return 0;
	}
	if (*out)
		return 0;
	r = m->size ? make_into(sh, k, m, gauge, &p, out, err)
		    : make_copy(sh, k, m, gauge, &p, out, err);
	part_drop(sh, &p);
	if (*out && (*out)->gauge == &sh->mapped)
		counter_add(COUNT_SHARED_ADDED, 1);
	return r;
}

int shared_get(struct shared *sh, const struct shared_key *k,
	       const struct shared_maker *m, _Atomic uint64_t *gauge,
	       struct buf **out, struct error *err)
{
	bool add = may_add(sh, k);
	int r;

	*out = shared_find(sh, k, m, gauge, COUNT_SHARED_HITS);
	if (*out)
		return 0;
	if (add) {
		r = make_shared(sh, k, m, gauge, out, err);
		if (r < 0 || *out)
			return r;
	}
	counter_add(COUNT_SHARED_REFUSED, 1);
	return m->make(m->ctx, gauge, out, err);
}

/* ---- the rest -------------------------------------------------------------- */

void shared_usage(const struct shared *sh, struct shared_usage *out)
{
	struct ledger l;

	ledger_read(sh, &l);
	*out = (struct shared_usage){sh->limit, l.bytes, l.entries,
				     atomic_load(&sh->mapped)};
}

bool shared_is_crowded(const struct shared *sh)
{
	return atomic_load(&sh->mappings) >= sh->mappings_max;
}

unsigned shared_crowd(const struct shared *sh)
{
	return (unsigned)(sh->mappings_max / CROWD_SHARE) + 1;
}

bool shared_is_wanted(const struct shared *sh)
{
	uint64_t now = shared_now();
	struct ledger l;

	ledger_read(sh, &l);
	return l.starved <= now && now - l.starved < WANTED_NS;
}
