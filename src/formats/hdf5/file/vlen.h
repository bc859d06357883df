/* SPDX-License-Identifier: BSD-2-Clause */
/* Text and sequences of variable length, which our code reads in place of libhdf5. */
#ifndef FORMATS_HDF5_FILE_VLEN_H
#define FORMATS_HDF5_FILE_VLEN_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Register our conversion: from then on H5Dread and H5Aread make values of variable
 * length with it.  hdf5_init calls this once per process.  The library's lock must be
 * held, as for all functions below.  -EIO. */
int hdf5_vlen_register(struct error *err);

/*
 * H5Dread and H5Aread may read values of variable length of `object` between
 * hdf5_vlen_begin and hdf5_vlen_end; at other times they fail if there are any.  Only
 * hdf5_vlen_free_values and hdf5_vlen_end free the memory that values point to; until then it
 * may be at most `most` bytes.
 */
void hdf5_vlen_begin(hid_t object, uint64_t most);
/* Return the transfer property list that H5Dread must be called with: where nothing
 * was written, the library makes values of the fill value, and frees the memory of
 * some itself.  The caller closes it by H5Pclose.  Negative on failure. */
hid_t hdf5_vlen_transfer(void);
/* Until hdf5_vlen_end, each sequence is read as its length and a NULL pointer; its
 * items are not read. */
void hdf5_vlen_begin_lengths(void);
void hdf5_vlen_free_values(void);
void hdf5_vlen_end(void);
/* Return the bytes of memory that values point to now. */
uint64_t hdf5_vlen_used(void);
/*
 * When the library fills space that it allocates for H5Dwrite, it reads the fill value
 * from the file that it writes.  hdf5_vlen_output sets that file, until hdf5_vlen_end; it
 * returns false if out of memory.  hdf5_vlen_swap_files, called before H5Dwrite and after it,
 * switches from the file that is read to that one, and back.
 */
struct hdf5_heap_file;
bool hdf5_vlen_output(const struct hdf5_heap_file *f);
void hdf5_vlen_swap_files(void);
/* If a call since hdf5_vlen_begin or hdf5_vlen_free_values failed in this code, set the
 * sentence and return the code, else return 0. */
int hdf5_vlen_failed(struct error *err);

/* Do H5Dget_create_plist, but leave a fill value of variable length empty (callers do
 * not use it). */
hid_t hdf5_vlen_create_plist(hid_t dset);
/* Do H5Dget_create_plist with a fill value of variable length.  Call this between
 * hdf5_vlen_begin and hdf5_vlen_end. */
hid_t hdf5_vlen_fill_plist(hid_t dset);

#endif
