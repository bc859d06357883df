/* SPDX-License-Identifier: BSD-2-Clause */
/* merged.h5: everything in a mounted HDF5 file, as one plain HDF5 file. */
#ifndef FORMATS_HDF5_MERGED_H
#define FORMATS_HDF5_MERGED_H

#include "formats/hdf5/file/source.h"
#include "tree/files.h"

#define HDF5_MERGED_NAME "merged.h5"

struct hdf5_merged;
/* Of all that the source's items say once the walk is over; NULL: no memory. */
struct hdf5_merged *hdf5_merged_new(struct hdf5_source *s);
void hdf5_merged_free(struct hdf5_merged *m);
/* The operations of a file, as in files.h; all but map may block. */
int hdf5_merged_attr(struct hdf5_merged *m, struct pinner *p, struct attr *out,
		     struct error *err);
int hdf5_merged_prepare(struct hdf5_merged *m, uint64_t off, uint64_t len,
			struct error *err);
int hdf5_merged_map(const struct hdf5_merged *m, uint64_t off,
		    struct plan *plan, struct error *err);
/* xattr left_out: lines of what is not in it. */
ssize_t hdf5_merged_left_out(struct hdf5_merged *m, struct pinner *p, char *buf,
			     size_t n);

#endif
