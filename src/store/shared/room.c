/* SPDX-License-Identifier: BSD-2-Clause */
/* How much shared memory may be taken without taking it from others. */

/*
 * PyTorch's workers pass batches in shared memory, and when it is full it is full for all
 * users of the node.  Its bytes count in the memory of the control group that touches
 * them first, and that group is killed when there are too many.  So a quarter of the file
 * system stays free, an eighth of a group's limit (and enough for what a daemon has in
 * addition to its cache), and a sixteenth of the machine's memory.
 *
 * A group may still take its limit less the bytes in use, not counting page cache that
 * was not used lately; the smallest such number of the group and its ancestors counts.
 */
#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"
#include "store/shared/private.h"

#define KEEP_OF_TMPFS 4
#define KEEP_OF_GROUP 8
#define KEEP_AT_LEAST (UINT64_C(16) << 20)
#define KEEP_OF_MACHINE 16
/* Looking at memory reads a dozen files.  So its result is trusted for BELIEVED_NS, or
 * until 1/TAKEN_SHARE of it was taken (other processes take some, too). */
#define BELIEVED_NS (UINT64_C(100) * 1000000)
#define TAKEN_SHARE 16

uint64_t room_most(int fd)
{
	uint64_t available, total;

	if (shm_space(fd, &available, &total, NULL) < 0)
		return 0;
	return total == UINT64_MAX ? total : total - total / KEEP_OF_TMPFS;
}

static uint64_t less_or_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t room_of_tmpfs(int fd)
{
	uint64_t available, total;

	if (shm_space(fd, &available, &total, NULL) < 0)
		return 0;
	return total == UINT64_MAX
		       ? total
		       : less_or_zero(available, total / KEEP_OF_TMPFS);
}

uint64_t room_memory(void)
{
	uint64_t available = system_available();
	struct system_headroom group;

	system_headroom(&group);
	if (available != UINT64_MAX)
		available = less_or_zero(available,
					 system_memory() / KEEP_OF_MACHINE);
	if (group.left == UINT64_MAX)
		return available;
	return min_u64(
		available,
		less_or_zero(group.left, max_u64(group.limit / KEEP_OF_GROUP,
						 KEEP_AT_LEAST)));
}

/* The bytes of memory that may be taken, as last seen; *look: look again. */
static uint64_t memory_believed(struct room *r, bool *look)
{
	uint64_t now = shared_now();

	lock_scope(&r->lock);
	*look = now >= r->until || r->taken > r->memory / TAKEN_SHARE;
	if (*look) {
		r->until = now + BELIEVED_NS;
		r->taken = 0;
	}
	return less_or_zero(r->memory, r->taken);
}

uint64_t room_now(struct shared *sh)
{
	bool look;
	uint64_t memory = memory_believed(&sh->room, &look);

	if (look) {
		memory = sh->memory_left();
		lock_scope(&sh->room.lock);
		sh->room.memory = memory;
	}
	return min_u64(memory, room_of_tmpfs(sh->dir.fd));
}

void room_take(struct shared *sh, uint64_t bytes)
{
	lock_scope(&sh->room.lock);
	sh->room.taken += bytes;
}
