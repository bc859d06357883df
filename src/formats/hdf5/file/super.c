/* SPDX-License-Identifier: BSD-2-Clause */
/* The superblock of an HDF5 file: how long it is, and which driver wrote it. */
/*
 * HDF5 file format 3.0, section II (O: bytes of an address):
 *
 *   version 0, 1   signature (8), versions (5), O, bytes of a length, unused, two
 *                  numbers of B-trees (2 each), flags (4), [1: (2), unused (2)],
 *                  base, free space, end of file, driver information (O each)
 *   version 2, 3   signature (8), version, O, bytes of a length, flags,
 *                  base, extension, end of file, root (O each), checksum
 *
 * Driver information is a block of its own: version, 3 unused, size (4), name (8),
 * data; or from version 2 on a message in the object header that the extension is:
 * version 0, name (8), size (2), data.
 */
#include "formats/hdf5/file/super.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "formats/hdf5/file/driver.h"

static const unsigned char magic[8] = {0x89, 'H',  'D',  'F',
				       '\r', '\n', 0x1a, '\n'};

/* Read an address; return UINT64_MAX if it is undefined (all bits set). */
static uint64_t super_address(const unsigned char *p, unsigned bytes)
{
	uint64_t v = load_le(p, bytes);

	return bytes < 8 && v == (UINT64_C(1) << bytes * 8) - 1 ? UINT64_MAX
								: v;
}

static void super_set_driver(const unsigned char *name,
			     const unsigned char *data, size_t size,
			     struct hdf5_super *out)
{
	memcpy(out->driver, name, 8);
	out->driver[8] = '\0';
	out->data_size = min_u64(size, HDF5_SUPER_DATA);
	memcpy(out->data, data, out->data_size);
}

/* Read driver information from a block of its own at `at`. */
static void super_read_block(const unsigned char *p, size_t n, uint64_t at,
			     struct hdf5_super *out)
{
	if (at >= n || n - at < 16 || p[at] != 0 ||
	    load_le32(p + at + 4) > n - at - 16)
		return;
	super_set_driver(p + at + 8, p + at + 16, load_le32(p + at + 4), out);
}

/* Read driver information from a message in the first block of the object header at
 * `at`.  The message is found by the name with which its data begin. */
static void super_read_message(const unsigned char *p, size_t n, uint64_t at,
			       struct hdf5_super *out)
{
	static const char *const names[] = {"NCSAfami", "NCSAmult"};
	const unsigned char *head, *found;

	if (at >= n || n - at < 4 || memcmp(p + at, "OHDR", 4))
		return;
	head = p + at;
	n = min_u64(n - at, 1024);
	for (unsigned i = 0; i < 2; i++) {
		found = memmem(head, n, names[i], 8);
		if (found && found > head && found[-1] == 0 &&
		    n - (size_t)(found - head) >= 10 &&
		    load_le(found + 8, 2) <= n - (size_t)(found - head) - 10)
			super_set_driver(found, found + 10,
					 load_le(found + 8, 2), out);
	}
}

/* Parse the superblock that begins at p[0]; addresses count from there. */
static bool super_parse_at(const unsigned char *p, size_t n,
			   struct hdf5_super *out)
{
	unsigned version, bytes, at;

	if (n < 96)
		return false;
	version = p[8];
	if (version > 3)
		return false;
	bytes = version < 2 ? p[13] : p[9];
	if (bytes != 2 && bytes != 4 && bytes != 8)
		return false;
	at = version == 0 ? 24 : version == 1 ? 28 : 12;
	out->eof = super_address(p + at + 2 * bytes, bytes);
	if (version < 2)
		super_read_block(p, n, super_address(p + at + 3 * bytes, bytes),
				 out);
	else
		super_read_message(p, n, super_address(p + at + bytes, bytes),
				   out);
	return true;
}

bool hdf5_super_parse(const unsigned char *head, size_t n,
		      struct hdf5_super *out)
{
	out->driver[0] = '\0';
	out->data_size = 0;
	for (size_t at = 0; at + sizeof magic <= n; at = at ? 2 * at : 512)
		if (!memcmp(head + at, magic, sizeof magic))
			return super_parse_at(head + at, n - at, out);
	return false;
}

bool hdf5_super_read(const char *path, struct hdf5_super *out)
{
	cleanup_close int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	unsigned char head[HDF5_SUPER_HEAD];
	ssize_t n = fd < 0 ? -1 : file_read(fd, 0, head, sizeof head);

	out->driver[0] = '\0';
	out->data_size = 0;
	return n > 0 && hdf5_super_parse(head, (size_t)n, out);
}

/* ---- what is open for writing ---------------------------------------------- */

/* The superblock is at 0, or after a user block of 512, 1024, ... bytes. */
int hdf5_superblock_find(struct handles *h, uint32_t file, unsigned *flags,
			 struct error *err)
{
	enum { VERSION = 8, STATUS = 11, HEAD = 12, SWMR_WRITER = 1 | 4 };
	unsigned char head[HEAD];
	struct handle pin;
	uint64_t pos = 0, at = 0;
	ssize_t n;
	int r;

	r = handles_get(h, file, &pin, err);
	if (r < 0)
		return r;
	r = -ENOMSG;
	while (r == -ENOMSG && pin.size >= HEAD && pos <= pin.size - HEAD) {
		at = pos;
		n = file_read(pin.fd, pin.base + pos, head, HEAD);
		if (n < 0)
			r = (int)n;
		else if (n == HEAD && !memcmp(head, magic, sizeof magic))
			r = 0;
		pos = pos ? pos * 2 : 512;
	}
	if (r == -ENOMSG)
		r = error_set(err, -EIO, "%s: not an HDF5 file%s",
			      file_shown(handles_path(h, file)),
			      pin.size ? "" : ", it is empty");
	else if (r < 0)
		r = error_errno(err, r, "%s",
				file_shown(handles_path(h, file)));
	else if (head[VERSION] >= 3 &&
		 (head[STATUS] & SWMR_WRITER) == SWMR_WRITER) {
		*flags = H5F_ACC_SWMR_READ;
		/* Such a writer neither moves nor frees what readers may use, and
		 * clears the mark when it closes the file. */
		handles_may_grow(h, file, pin.base + at + STATUS, SWMR_WRITER);
	}
	handles_put(h, &pin);
	return r;
}
