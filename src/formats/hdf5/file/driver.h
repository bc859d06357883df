/* SPDX-License-Identifier: BSD-2-Clause */
/* Our read-only HDF5 file driver, the library's lock, and chunk locations. */
#ifndef FORMATS_HDF5_FILE_DRIVER_H
#define FORMATS_HDF5_FILE_DRIVER_H

#include <hdf5.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "extent/handles.h"

/*
 * Every call into libhdf5 happens between hdf5_lock and hdf5_unlock (one global
 * mutex, not recursive; the only lock of the program that is held across I/O).
 * hdf5_lock also silences the library's error printing for this thread.
 */
void hdf5_lock(void);
void hdf5_unlock(void);

/* Once per process, idempotent: H5dont_atexit, register our driver, register
 * our codecs (lzf, lz4, zstd, whatever libhdf5 lacks) as libhdf5 filters so
 * that it can read and write variable-length data behind them, and self-test the
 * driver trick on a small file.  Takes the lock itself.  A failed self-test is
 * no error here: it is logged, and hdf5_driver_ok says so. */
int hdf5_init(struct error *err);
/* Did the self-test pass?  If not, hdf5_locate always says -ENOTSUP and the
 * caller goes through H5Dread. */
bool hdf5_driver_ok(void);

/* Open a registered file read-only through our driver: takes no file locks,
 * opens what a writer has open, and opens truncated files (end of file is
 * over-reported; reads beyond the real end fail).  Lock held.  Identity of the
 * file is checked by handles_get.  -ENODATA missing, -ESTALE, -EIO with
 * "not an HDF5 file", "truncated", or the library's own words; the sentence
 * begins with the file's path.  *out is closed with H5Fclose while the lock is
 * held; that also closes whatever is still open in the file.
 *
 * Nothing else is ever opened behind the caller's back: external links and
 * virtual datasets that the library would follow by itself fail (a link) or
 * read as fill (a virtual dataset!), so resolve both by hand. */
int hdf5_open(struct handles *h, uint32_t file, hid_t *out, struct error *err);
/*
 * Look at the superblock.  *flags is how to open the file: what a SWMR writer has open,
 * or left so when it died, is only readable as such, for its superblock lags behind; it
 * may grow from now on (handles_may_grow).
 */
int hdf5_superblock_find(struct handles *h, uint32_t file, unsigned *flags,
			 struct error *err);

/* The library's innermost complaint for the last failed call of this thread,
 * "no reason given" when there is none.  Always terminated.  Lock held. */
void hdf5_why(char *buf, size_t n);
/* What its driver was told by the system, which is in there as "errno = 28, error
 * message = ..."; 0: nothing. */
int hdf5_why_errno(const char *why);

/* Where in its row of the table of files the bytes at an address are; lock held. */
uint64_t hdf5_driver_position(hid_t object, uint64_t address);

struct hdf5_location {
	uint64_t pos;    /* absolute in the file, HDF5_ABSENT: not allocated */
	uint64_t stored; /* bytes */
	uint32_t mask;   /* filters skipped */
};
#define HDF5_ABSENT UINT64_MAX
/*
 * Where is the chunk whose first element is at `offset` (rank numbers, in
 * elements, multiples of the chunk shape)?  `dset` was opened from a file of
 * hdf5_open and is chunked.  Lock held; no allocation beyond the library's;
 * ~0.5 us a call.  The place may lie beyond the end of a truncated file: that
 * is for the reader of the bytes to say.  -EIO when the index cannot be read;
 * -ESTALE or -ENODATA when the file changed or went; -ENOTSUP when the driver
 * is not usable.
 */
int hdf5_locate(hid_t dset, const hsize_t *offset, struct hdf5_location *out,
		struct error *err);

/* formats/hdf5/file/filters.c, called by hdf5_init: let libhdf5 decode, and encode where we
 * can, with codec_table what it cannot itself.  Lock held. */
int hdf5_filters_register(struct error *err);
/* Most bytes that one of these filters may produce for an H5Dread of this
 * thread (the chunk's decoded size, when the caller knows it); 0 goes back to
 * HDF5_FILTERS_LIMIT.  Returns what was set before. */
#define HDF5_FILTERS_LIMIT ((size_t)256 << 20)
size_t hdf5_filters_limit(size_t bytes);
/* Bytes of one element of the dataset that this thread is about to read, for filters
 * that take it from the type; 0: not known. */
void hdf5_filters_element(uint32_t bytes);

#endif
