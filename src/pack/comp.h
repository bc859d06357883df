/* SPDX-License-Identifier: BSD-2-Clause */
/* What --comp means. */
#ifndef PACK_COMP_H
#define PACK_COMP_H

#include "codec/pipeline.h"
#include "pack/sink.h"

/* "zstd:9", "gzip", "none", ...; -EINVAL with what there is. */
int comp_parse(const char *text, struct pack_comp *out, struct error *err);
/* "zstd:9" */
void comp_describe(const struct pack_comp *c, char *buf, size_t n);
/* Filters of an HDF5 dataset with elements of `elem` bytes and chunks of `chunk` bytes:
 * shuffle in front of all but lzf (as skerch and h5py have it: alone) and none.  PACK_AUTO:
 * shuffle and deflate 4.  -EINVAL: HDF5 has none of that name (xz). */
int comp_pipeline(const struct pack_comp *c, uint32_t elem, uint64_t chunk,
		  struct pipeline *out, struct error *err);

#endif
