/* SPDX-License-Identifier: BSD-2-Clause */
/* Text and sequences of variable length, read for libhdf5 and not by it. */
#ifndef FORMATS_HDF5_FILE_VLEN_H
#define FORMATS_HDF5_FILE_VLEN_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Once per process, by hdf5_init: from then on H5Dread and H5Aread make values of
 * variable length with this.  Lock of the library held, as for all below. */
int hdf5_vlen_register(struct error *err);

/*
 * Between these two H5Dread and H5Aread may be called on an object; without them
 * they fail when there is a value of variable length.  What values point to is
 * freed by hdf5_vlen_forget and hdf5_vlen_end, and by nobody else; until then it
 * may be `most` bytes.
 */
void hdf5_vlen_begin(hid_t object, uint64_t most);
/* What H5Dread is to be called with: where nothing was written the library makes
 * values of the fill value, and gives back the memory of some itself.  To be
 * closed by H5Pclose; negative: it cannot be had. */
hid_t hdf5_vlen_transfer(void);
/* Until hdf5_vlen_end, a sequence is its length, and no pointer: nothing of it is
 * read. */
void hdf5_vlen_begin_lengths(void);
void hdf5_vlen_forget(void);
void hdf5_vlen_end(void);
/* Bytes that values refer to now. */
uint64_t hdf5_vlen_used(void);
/*
 * Where the library fills what it allocates for H5Dwrite, it reads the fill value from the
 * file that it writes.  That file, until hdf5_vlen_end; false: no memory.  hdf5_vlen_turn,
 * before H5Dwrite and after it, makes values those of one file, then of the other again.
 */
struct hdf5_heap_file;
bool hdf5_vlen_output(const struct hdf5_heap_file *f);
void hdf5_vlen_turn(void);
/* Why a call since _begin or _forget failed, when that was here: its code, with a
 * sentence; else 0. */
int hdf5_vlen_failed(struct error *err);

/* H5Dget_create_plist, with a fill value of variable length (which nobody looks
 * at) left empty. */
hid_t hdf5_vlen_create_plist(hid_t dset);
/* The same with that fill value, between hdf5_vlen_begin and hdf5_vlen_end. */
hid_t hdf5_vlen_fill_plist(hid_t dset);

#endif
