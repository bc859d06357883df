/* SPDX-License-Identifier: BSD-2-Clause */
/* merged.h5: everything in a mounted HDF5 file, as one plain HDF5 file. */
#ifndef FORMATS_HDF5_MERGED_H
#define FORMATS_HDF5_MERGED_H

#include "formats/hdf5/file/source.h"
#include "tree/files.h"

#define HDF5_MERGED_NAME "merged.h5"

struct hdf5_merged;
/* Make the file of all items of the source; the items must be complete when it is
 * first read. NULL when out of memory. */
struct hdf5_merged *hdf5_merged_new(struct hdf5_source *s);
void hdf5_merged_free(struct hdf5_merged *m);
/* Operations of a file, as in files.h. All but map may block. */
int hdf5_merged_attr(struct hdf5_merged *m, struct pinner *p, struct attr *out,
		     struct error *err);
int hdf5_merged_prepare(struct hdf5_merged *m, uint64_t off, uint64_t len,
			struct error *err);
int hdf5_merged_map(const struct hdf5_merged *m, uint64_t off,
		    struct plan *plan, struct error *err);
/* Return the value of the xattr left_out: a line for each object that is left out. */
ssize_t hdf5_merged_left_out(struct hdf5_merged *m, struct pinner *p, char *buf,
			     size_t n);

#endif
