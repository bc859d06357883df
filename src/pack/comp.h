/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing of --comp, and the HDF5 filters that it stands for. */
#ifndef PACK_COMP_H
#define PACK_COMP_H

#include "codec/pipeline.h"
#include "pack/sink.h"

/* Parse "zstd:9", "gzip", "none", ...  Return 0, or -EINVAL with a sentence that lists
 * the known codecs or levels. */
int comp_parse(const char *text, struct pack_comp *out, struct error *err);
/* Write the codec and, if one was given, its level to `buf`: "zstd:9". */
void comp_describe(const struct pack_comp *c, char *buf, size_t n);
/* Set *out to the filters of an HDF5 dataset with elements of `elem` bytes and chunks of
 * `chunk` bytes.  A shuffle precedes every compressor except lzf, which skerch and h5py
 * use alone.  PACK_AUTO means shuffle and deflate level 4; PACK_NONE means no filters.
 * Return -EINVAL for a codec that HDF5 has no filter for (xz). */
int comp_pipeline(const struct pack_comp *c, uint32_t elem, uint64_t chunk,
		  struct pipeline *out, struct error *err);

#endif
