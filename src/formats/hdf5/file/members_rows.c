/* SPDX-License-Identifier: BSD-2-Clause */
/* Several files that are one HDF5 file, as one row of the table of files. */
/*
 * Positions in the row are the addresses of the HDF5 file, except for the multi driver,
 * whose addresses may be any of 64 bits: there a position has the member's number in its
 * upper byte, and the position in that member below.  The file driver
 * (formats/hdf5/file/driver.c) turns the address of each read into a position.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/members.h"

#define MEMBER_SHIFT 56

/* A row of a file of the multi driver, whose addresses are not positions.  Guarded by
 * the library's lock. */
struct wide {
	const struct handles *h;
	uint32_t file;
	unsigned n;
	uint64_t address[HDF5_MEMBER_KINDS];
	uint64_t end[HDF5_MEMBER_KINDS]; /* by kind of bytes */
};
static struct {
	vec(struct wide) v;
} wides;

static const struct wide *wide_of(const struct handles *h, uint32_t file)
{
	for (size_t i = 0; i < wides.v.n; i++)
		if (wides.v.at[i].h == h && wides.v.at[i].file == file)
			return &wides.v.at[i];
	return NULL;
}

bool hdf5_members_is_wide(const struct handles *h, uint32_t file)
{
	return h && wide_of(h, file);
}

uint64_t hdf5_members_end(const struct handles *h, uint32_t file, int kind)
{
	const struct wide *w = wide_of(h, file);
	uint64_t end = 0;

	if (w && kind >= 1 && kind <= HDF5_MEMBER_KINDS)
		return w->end[kind - 1];
	for (unsigned i = 0; w && i < HDF5_MEMBER_KINDS; i++)
		end = max_u64(end, w->end[i]);
	return end;
}

uint64_t hdf5_members_position(const struct handles *h, uint32_t file,
			       uint64_t address)
{
	const struct wide *w = h ? wide_of(h, file) : NULL;
	unsigned i = w ? w->n : 0;

	if (!w)
		return address;
	while (i > 0 && w->address[i - 1] > address)
		i--;
	if (!i)
		return UINT64_MAX;
	address -= w->address[i - 1];
	return address >> MEMBER_SHIFT
		       ? UINT64_MAX
		       : (uint64_t)(i - 1) << MEMBER_SHIFT | address;
}

static int note_wide(const struct hdf5_members *x, const struct handles *h,
		     uint32_t file)
{
	struct wide w = {.h = h, .file = file, .n = (unsigned)x->list.n};
	const struct wide *before;
	bool ok = true;

	for (size_t i = 0; i < x->list.n; i++)
		w.address[i] = x->list.at[i].address;
	for (unsigned k = 0; k < HDF5_MEMBER_KINDS; k++)
		for (size_t i = 0; i < x->list.n; i++)
			if (x->list.at[i].address == x->kind[k] &&
			    add_overflows(x->kind[k], x->list.at[i].is,
					  &w.end[k]))
				w.end[k] = UINT64_MAX - 2;
	hdf5_lock();
	before = wide_of(h, file);
	if (!before)
		ok = vec_push(&wides.v, w);
	else
		wides.v.at[before - wides.v.at] = w;
	hdf5_unlock();
	return ok ? 0 : -ENOMEM;
}

/* Return a name for the row (malloc'ed) that no file has: a file that is really called
 * "x_%d.h5" has a row of that name.  NULL if out of memory. */
static char *row_name(const struct hdf5_members *x)
{
	char *name = strdup(x->name);

	while (name && access(name, F_OK) == 0) {
		cleanup_free char *taken = name;

		if (asprintf(&name, "%s (%s)", taken, x->driver) < 0)
			name = NULL;
	}
	return name;
}

int hdf5_members_add(const struct hdf5_members *x, struct handles *h,
		     uint32_t *file, struct error *err)
{
	bool wide = strcmp(x->driver, "family") != 0;
	cleanup_free char *name = row_name(x);
	cleanup_free struct handles_piece *piece =
		calloc(x->list.n, sizeof *piece);

	if (!piece || !name)
		return error_no_memory(err, "the members of an HDF5 file");
	for (size_t i = 0; i < x->list.n; i++) {
		const struct hdf5_member *m = &x->list.at[i];

		piece[i].begin =
			wide ? (uint64_t)i << MEMBER_SHIFT : m->address;
		piece[i].size = wide ? UINT64_C(1) << MEMBER_SHIFT : m->size;
		if (!wide && i + 1 == x->list.n)
			piece[i].size = max_u64(m->is, m->size);
		piece[i].file = handles_add(h, m->path);
		if (piece[i].file == UINT32_MAX)
			return error_no_memory(err,
					       "the members of an HDF5 file");
		/* Another member says where the data in this one are, so this one
		 * must stay as it is now. */
		handles_expect(h, piece[i].file, &m->st);
	}
	*file = handles_add_joined(h, name, piece, (unsigned)x->list.n);
	if (*file == UINT32_MAX || (wide && note_wide(x, h, *file) < 0))
		return error_no_memory(err, "the members of an HDF5 file");
	return 0;
}
