/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about objects of HDF5 files, answered by worker processes. */
#ifndef FORMATS_HDF5_WORKER_CALL_H
#define FORMATS_HDF5_WORKER_CALL_H

#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/export/export.h"
#include "formats/hdf5/value/value.h"

/*
 * libhdf5 may crash or hang on a damaged file, so once hdf5_isolate_start was called these
 * functions ask a worker process; before that they call their counterparts named
 * ..._here.  They block.  -EIO: the worker died or did not answer, and the sentence says
 * how; else the errors of the counterpart.
 */
int hdf5_call_describe(const struct hdf5_place *at,
		       const struct hdf5_type *wanted,
		       struct hdf5_description *out, struct error *err);
int hdf5_call_locate(const struct hdf5_place *at, const struct grid *g,
		     uint64_t first, uint32_t n, uint64_t *written,
		     struct location *out, struct error *err);
int hdf5_call_list(const struct hdf5_place *at, const struct grid *g,
		   uint64_t *from, struct written *out, uint32_t room,
		   uint32_t *n, uint64_t *count, struct error *err);
int hdf5_call_fetch(const struct hdf5_place *at, const struct grid *g,
		    uint64_t chunk, const struct dtype *as, const char *member,
		    void *out, size_t size, struct error *err);
int hdf5_call_values(const struct hdf5_place *at, const struct box *b,
		     unsigned rank, const struct dtype *as, const char *member,
		     hdf5_put *put, void *ctx, struct error *err);
char *hdf5_call_attributes(const struct hdf5_place *at, struct error *err);
char *hdf5_call_about(const struct hdf5_place *at, struct error *err);
/* Read the texts of `of` (NULL: of everything), then have the front of array.h5 or
 * merged.h5 made: hdf5_monolith_here. */
char *hdf5_monolith_new(struct hdf5_source *s, const struct hdf5_tensor *of,
			size_t *len, struct error *err);

#endif
