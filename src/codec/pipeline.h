/* SPDX-License-Identifier: BSD-2-Clause */
/* An ordered list of filters, undone last to first, with a skip mask. */
#ifndef CODEC_PIPELINE_H
#define CODEC_PIPELINE_H

#include "codec/codec.h"

#define PIPELINE_MAX 32 /* H5Z_MAX_NFILTERS */

struct pipeline_filter {
	uint32_t id;
	const struct codec *codec; /* NULL: we have no decoder */
	char name[32]; /* our name, else the file's, else "filter ID" */
	struct codec_params params;
};
/* Plain data: copied freely, compared with pipeline_equal. */
struct pipeline {
	unsigned n; /* 0: stored verbatim */
	struct pipeline_filter filter[PIPELINE_MAX];
};

/* Append filter `id` (in writing order).  `file_name` is the comment that the file holds;
 * it may be NULL.  Return 0, or -EBADMSG for bad parameters or too many filters.  A
 * filter without a decoder is accepted: decoding then fails unless it is skipped.  So is
 * a filter with more than CODEC_CD_MAX parameters, which none of our decoders takes. */
int pipeline_add(struct pipeline *p, uint32_t id, const char *file_name,
		 const uint32_t *cd, unsigned n_cd, uint32_t elem_size,
		 struct error *err);
/* As pipeline_add, but we never decode the filter, even if we could. */
int pipeline_add_undecoded(struct pipeline *p, uint32_t id,
			   const char *file_name, const uint32_t *cd,
			   unsigned n_cd, uint32_t elem_size,
			   struct error *err);
/* Return the first filter that we cannot undo and `skip_mask` does not skip, or NULL. */
const struct pipeline_filter *pipeline_missing(const struct pipeline *p,
					       uint32_t skip_mask);
/* Return -ENOTSUP with the missing filter's name if there is one, else 0. */
int pipeline_lacks(const struct pipeline *p, struct error *err);
/* Return true if chunks with this mask are stored verbatim.  Bit i of the mask means that
 * filter i was skipped, as H5Dread_chunk reports it.  A shuffle of single bytes changes
 * nothing. */
bool pipeline_is_verbatim(const struct pipeline *p, uint32_t skip_mask);

/* Return true if decoding a chunk with this mask compares a checksum of its bytes. */
bool pipeline_has_checksum(const struct pipeline *p, uint32_t skip_mask);

/*
 * Decode one chunk: `stored` bytes to exactly `size` bytes at `out`.  Return 0; -EBADMSG
 * if it does not decode, or to another length (HDF5 itself would accept a shorter one);
 * -ENOTSUP with the name of a filter without decoder; or -ENOMEM.  Uses scratch memory of
 * the calling thread: none for one compressor, one buffer for [shuffle, deflate], at most
 * two of size + size / 8 + 4096 bytes whatever the filters.  Buffers up to
 * PIPELINE_SCRATCH_KEEP bytes are kept for the next call.
 */
#define PIPELINE_SCRATCH_KEEP (1u << 20)
int pipeline_decode(const struct pipeline *p, uint32_t skip_mask,
		    const void *stored, size_t stored_len, void *out,
		    size_t size, struct error *err);
/*
 * Encode one chunk: `size` bytes at `data` (left unchanged) to at most `cap` bytes at
 * `out`; *len is set to their number. cap >= pipeline_bound must hold.  A compressor that
 * does not make the chunk smaller is skipped, which *skip_mask says, as the library does
 * with optional filters; then the filters in front of it are skipped, too, except in
 * front of LZF.  Return 0, -ENOTSUP with the name of a filter that we cannot encode, or
 * -ENOMEM.  Uses scratch as pipeline_decode does.
 */
size_t pipeline_bound(const struct pipeline *p, size_t size);
int pipeline_encode(const struct pipeline *p, const void *data, size_t size,
		    void *out, size_t cap, size_t *len, uint32_t *skip_mask,
		    struct error *err);
/* The bytes of memory that pipeline_encode needs for such a chunk, in addition to data
 * and out. */
size_t pipeline_encode_memory(const struct pipeline *p, size_t size);
/* Return -ENOTSUP with the name of the first filter that we cannot encode, or 0. */
int pipeline_cannot_encode(const struct pipeline *p, struct error *err);
/* A scratch buffer of this thread for stored bytes, apart from those that pipeline_decode
 * uses; valid until the next call.  NULL if memory is out. */
void *pipeline_stored_scratch(size_t size);
/* Free this thread's scratch buffers that are larger than PIPELINE_SCRATCH_KEEP. */
void pipeline_scratch_release(void);
/* The bytes of scratch that pipeline_decode needs for such a chunk, in addition to
 * out. */
size_t pipeline_scratch_size(const struct pipeline *p, size_t size);
bool pipeline_equal(const struct pipeline *a, const struct pipeline *b);
/* Write the filters' names in writing order, such as "shuffle, deflate", or "none";
 * always terminated. */
void pipeline_describe(const struct pipeline *p, char *buf, size_t n);

/* Reverse the bytes of each `width`-byte number in place (widths 2, 4 and 8 are fast,
 * others go byte by byte); `size` is a multiple of width. */
void swap_bytes(void *data, size_t size, unsigned width);

#endif
