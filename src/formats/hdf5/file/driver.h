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

/* Prepare libhdf5 in this process; further calls do nothing.  Registers our driver,
 * and our codecs (lzf, lz4, zstd, whatever libhdf5 lacks) as filters, so that the
 * library can read and write variable-length data behind them.  Then tests on a small
 * file whether the driver sees where chunks are.  Takes the lock itself.  A failed
 * self-test is logged and is not an error: hdf5_driver_ok returns false then.  -EIO or
 * -ENOSPC if libhdf5 refuses the driver or a filter. */
int hdf5_init(struct error *err);
/* Did the self-test pass?  If not, hdf5_locate always returns -ENOTSUP, and the caller
 * has to read chunks by H5Dread. */
bool hdf5_driver_ok(void);

/* Open the registered file `file` read-only through our driver.  The lock must be
 * held.  No file locks are taken: files that another process has open for writing can
 * be opened, and so can truncated files (the driver reports a larger end of file;
 * reads beyond the real end fail). handles_get checks that the file is still the one
 * that was registered.  The caller closes *out by H5Fclose while the lock is held;
 * that also closes whatever is still open in the file.  -ENODATA: the file is missing;
 * -ESTALE: it changed; -EIO with "not an HDF5 file", "truncated", or the library's own
 * words.  The sentence begins with the file's path.
 *
 * The library opens no other file.  External links that it would follow by itself
 * fail, and virtual datasets read as fill values, so the caller has to resolve both. */
int hdf5_open(struct handles *h, uint32_t file, hid_t *out, struct error *err);
/*
 * Find the superblock of a file, and set *flags if H5Fopen needs any.  A file that a SWMR
 * writer has open, or had open when it died, can only be read with H5F_ACC_SWMR_READ,
 * because its superblock lags behind; it may grow from now on (handles_may_grow).  -EIO
 * if there is no superblock; errors of handles_get.
 */
int hdf5_superblock_find(struct handles *h, uint32_t file, unsigned *flags,
			 struct error *err);

/* Copy the innermost reason that the library gave for the last failed call of this
 * thread to `buf` (`n` bytes), or "no reason given".  Always terminated by NUL.  The
 * lock must be held. */
void hdf5_why(char *buf, size_t n);
/* Return the errno that a reason of hdf5_why names ("errno = 28"), or 0 if it names
 * none. */
int hdf5_why_errno(const char *why);

/* Return the position of the bytes at `address` in the row that the file of `object`
 * has in the table of files.  The lock must be held. */
uint64_t hdf5_driver_position(hid_t object, uint64_t address);

struct hdf5_location {
	uint64_t pos;    /* in bytes, in the file; HDF5_ABSENT: never written */
	uint64_t stored; /* size in bytes */
	uint32_t mask;   /* bit i is set if filter i was skipped */
};
#define HDF5_ABSENT UINT64_MAX
/*
 * Find the chunk whose first element is at `offset`: one number for each axis, in
 * elements, multiples of the chunk shape.  `dset` is chunked and was opened from a file
 * of hdf5_open.  The lock must be held.  A call takes about 0.5 us and allocates nothing
 * beside what the library allocates.  The location may be beyond the end of a truncated
 * file: only reading the bytes shows that.  -EIO: the index cannot be read; -ESTALE,
 * -ENODATA: the file changed or is missing; -ENOTSUP: the driver is not usable.
 */
int hdf5_locate(hid_t dset, const hsize_t *offset, struct hdf5_location *out,
		struct error *err);

/* Register the codecs of codec_table that libhdf5 lacks as its filters, for decoding
 * and, where our codec can, for encoding (file/filters.c).  hdf5_init calls this.  The
 * lock must be held.  -EIO, -ENOSPC. */
int hdf5_filters_register(struct error *err);
/* Set the most bytes that one of these filters may produce in an H5Dread of this
 * thread (the chunk's decoded size, if the caller knows it); 0 means
 * HDF5_FILTERS_LIMIT.  Return the previous limit. */
#define HDF5_FILTERS_LIMIT ((size_t)256 << 20)
size_t hdf5_filters_limit(size_t bytes);
/* Set the size in bytes of one element of the dataset that this thread is about to
 * read, for filters that take it from the type; 0 means that it is not known. */
void hdf5_filters_element(uint32_t bytes);

#endif
