/* SPDX-License-Identifier: BSD-2-Clause */
/* Check, before a byte is written, whether a copy fits. */

/*
 * What is written to a tmpfs takes memory, and three limits hold: the file system's
 * (its free space without what other processes have still to write), that of the control
 * group that writes, and the machine's.  All are checked, and the error names the first
 * that has too little.  A file takes whole pages, and about 1 KiB of kernel memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/home.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/system.h"
#include "staging/copy_private.h"

/* Bytes of kernel memory for an inode, its name, and its table of pages. */
#define INODE_BYTES 1024

/* At most this many holes of a file are looked for; the rest of the file counts as
 * data. */
#define HOLES_MAX (1u << 16)

uint64_t copy_space(struct fs *fs, const struct copy_file *f)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), off = 0, space = 0;
	uint64_t data, hole;

	if (!(f->flags & COPY_HOLES))
		return div_up(f->size, page) * page;
	for (unsigned i = 0; off < f->size && i < HOLES_MAX; i++) {
		int r = fs_seek(fs, f->ino, off, SEEK_DATA, &data);

		if (r == -ENXIO)
			return space;
		if (r < 0 || fs_seek(fs, f->ino, data, SEEK_HOLE, &hole) < 0)
			break; /* reading the file will report the error */
		data = max_u64(data / page * page, off);
		off = div_up(hole, page) * page;
		space += off - data;
	}
	return off < f->size ? space + div_up(f->size - off, page) * page
			     : space;
}

struct number {
	char text[80];
};

/* Write a size such as "1.2 GiB (1288490189 bytes)" to *n; returns n->text. */
static const char *fits_spell_bytes(uint64_t bytes, struct number *n)
{
	char size[32];

	format_size(bytes, size, sizeof size);
	if (bytes < 1024)
		snprintf(n->text, sizeof n->text, "%" PRIu64 " bytes", bytes);
	else
		snprintf(n->text, sizeof n->text, "%s (%" PRIu64 " bytes)",
			 size, bytes);
	return n->text;
}

static int fits_files(const struct copy_plan *p, const struct copy_room *room,
		      struct error *err)
{
	uint64_t need = copy_plan_entries(p);
	struct statfs fs;

	if (fstatfs(room->fd, &fs) < 0)
		return error_errno(err, -errno,
				   "cannot ask for the free space of '%s'",
				   room->path);
	if (!fs.f_files || (uint64_t)fs.f_ffree >= need)
		return 0;
	return error_set(err, -ENOSPC,
			 "%s has %" PRIu64 " files and directories, and %s has "
			 "room for only %" PRIu64
			 " more: stage less (SOURCE:PATH), "
			 "or elsewhere (--to)",
			 room->name, need, room->path, (uint64_t)fs.f_ffree);
}

static uint64_t subtract_or_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static int fits_space(const struct copy_plan *p, const struct copy_room *room,
		      struct error *err)
{
	char kept[160] = "", taken[160] = "";
	struct number a, b, c, d;
	uint64_t have, total, left;
	int r = shm_space(room->fd, &have, &total, err);

	if (r < 0 || have == UINT64_MAX)
		return r;
	left = subtract_or_zero(subtract_or_zero(have, room->wanted),
				room->reserve);
	if (p->space <= left)
		return 0;
	if (room->reserve)
		snprintf(kept, sizeof kept,
			 ", of which %s stay free (--reserve)",
			 fits_spell_bytes(room->reserve, &c));
	if (room->wanted)
		snprintf(taken, sizeof taken,
			 ", of which other processes that stage still need %s",
			 fits_spell_bytes(room->wanted, &c));
	return error_set(err, -ENOSPC,
			 "%s needs %s; %s has %s free%s%s, which leaves %s: "
			 "unstage something, stage less (SOURCE:PATH), or "
			 "elsewhere (--to)",
			 room->name, fits_spell_bytes(p->space, &a), room->path,
			 fits_spell_bytes(have, &b), kept, taken,
			 fits_spell_bytes(left, &d));
}

/* Return the bytes of memory that the copy takes: pages, inodes, and work of decoding. */
static uint64_t memory_for(const struct copy_plan *p,
			   const struct copy_room *room)
{
	uint64_t kernel, all;

	if (mul_overflows(copy_plan_entries(p), INODE_BYTES, &kernel) ||
	    add_overflows(p->space, kernel, &all) ||
	    add_overflows(all, room->work, &all))
		return UINT64_MAX;
	return all;
}

static int fits_memory(const struct copy_plan *p, const struct copy_room *room,
		       struct error *err)
{
	uint64_t have =
		subtract_or_zero(system_available() + room->held, room->wanted);
	uint64_t need = memory_for(p, room), left;
	const struct system_headroom *h = room->group;
	struct number a, b, c, d, e;

	left = h->left == UINT64_MAX ? h->left
				     : subtract_or_zero(h->left + room->held,
							room->wanted_here);
	if (left < need && left < have)
		return error_set(
			err, -ENOSPC,
			"%s needs %s of memory; the control group %s leaves "
			"%s: its limit is %s, of which %s are in use%s%s; "
			"raise the limit, or stage less (SOURCE:PATH)",
			room->name, fits_spell_bytes(need, &a), h->group,
			fits_spell_bytes(left, &b),
			fits_spell_bytes(h->limit, &c),
			fits_spell_bytes(h->used - h->reclaimable, &d),
			room->wanted_here
				? ", and other processes that stage still need "
				: "",
			room->wanted_here
				? fits_spell_bytes(room->wanted_here, &e)
				: "");
	if (have < need)
		return error_set(
			err, -ENOSPC,
			"%s needs %s of memory, and the machine has %s "
			"available%s%s: stage less (SOURCE:PATH)",
			room->name, fits_spell_bytes(need, &a),
			fits_spell_bytes(have, &b),
			room->wanted ? ", not counting what other processes "
				       "that stage still need: "
				     : "",
			room->wanted ? fits_spell_bytes(room->wanted, &e) : "");
	return 0;
}

int copy_fits(const struct copy_plan *p, const struct copy_room *room,
	      struct error *err)
{
	int r = fits_files(p, room, err);

	if (r == 0)
		r = fits_space(p, room, err);
	if (r == 0 && room->memory)
		r = fits_memory(p, room, err);
	return r;
}
