/* SPDX-License-Identifier: BSD-2-Clause */
/* An ordered list of filters, undone last to first, with a skip mask. */
#ifndef CODEC_PIPELINE_H
#define CODEC_PIPELINE_H

#include "codec/codec.h"

#define PIPELINE_MAX 32 /* H5Z_MAX_NFILTERS */

struct pipeline_filter {
	uint32_t id;
	const struct codec *codec; /* NULL: no decoder here */
	char name[32];             /* ours, else the file's, else "filter ID" */
	struct codec_params params;
};
/* Plain data: copied freely, compared with pipeline_equal. */
struct pipeline {
	unsigned n; /* 0: stored verbatim */
	struct pipeline_filter filter[PIPELINE_MAX];
};

/* Append filter `id` (in writing order).  `file_name` is the comment the file
 * holds, may be NULL.  -EBADMSG: bad parameters or too many filters.  A filter
 * without decoder is accepted: decoding then fails unless it is skipped.  So is
 * one with more than CODEC_CD_MAX parameters, which none of our decoders takes. */
int pipeline_add(struct pipeline *p, uint32_t id, const char *file_name,
		 const uint32_t *cd, unsigned n_cd, uint32_t elem_size,
		 struct error *err);
/* As pipeline_add, but the filter is never decoded by us, even where we could. */
int pipeline_add_undecoded(struct pipeline *p, uint32_t id,
			   const char *file_name, const uint32_t *cd,
			   unsigned n_cd, uint32_t elem_size,
			   struct error *err);
/* The first filter that we cannot undo and `skip_mask` does not skip, or NULL.*/
const struct pipeline_filter *pipeline_missing(const struct pipeline *p,
					       uint32_t skip_mask);
/* -ENOTSUP with what is missing, when there is such a filter; else 0. */
int pipeline_lacks(const struct pipeline *p, struct error *err);
/* True when chunks with this mask are stored as they are (bit i: filter i was
 * skipped, as H5Dread_chunk reports it; a shuffle of single bytes is nothing).
 */
bool pipeline_is_verbatim(const struct pipeline *p, uint32_t skip_mask);

/* True when decoding a chunk with this mask compares a checksum of its bytes. */
bool pipeline_has_checksum(const struct pipeline *p, uint32_t skip_mask);

/*
 * Decode one chunk: `stored` bytes to exactly `size` bytes at `out`.
 * -EBADMSG: does not decode, or to another length (HDF5 itself would accept a
 * short one); -ENOTSUP: a filter without decoder, named; -ENOMEM.
 * Uses scratch memory of the calling thread: nothing for one compressor, one
 * buffer for [shuffle, deflate], at most two of size + size / 8 + 4096 bytes
 * whatever the filters.  Kept for the next call up to PIPELINE_SCRATCH_KEEP.
 */
#define PIPELINE_SCRATCH_KEEP (1u << 20)
int pipeline_decode(const struct pipeline *p, uint32_t skip_mask,
		    const void *stored, size_t stored_len, void *out,
		    size_t size, struct error *err);
/*
 * Encode one chunk: `size` bytes at `data` (left alone) to at most `cap` at `out`, *len of
 * them.  A compressor that does not make it smaller is skipped, which *skip_mask says, as
 * the library does with optional filters; and so is what would be in front of it, but
 * for LZF.  cap >= pipeline_bound.  -ENOTSUP: a filter that
 * we cannot encode, named; -ENOMEM.  Scratch as for pipeline_decode.
 */
size_t pipeline_bound(const struct pipeline *p, size_t size);
int pipeline_encode(const struct pipeline *p, const void *data, size_t size,
		    void *out, size_t cap, size_t *len, uint32_t *skip_mask,
		    struct error *err);
/* Bytes that pipeline_encode needs for such a chunk, beside data and out. */
size_t pipeline_encode_memory(const struct pipeline *p, size_t size);
/* -ENOTSUP with its name, when there is a filter that we cannot encode; else 0. */
int pipeline_cannot_encode(const struct pipeline *p, struct error *err);
/* A scratch buffer of this thread for stored bytes, apart from those that
 * pipeline_decode uses; valid until the next call.  NULL: out of memory. */
void *pipeline_stored_scratch(size_t size);
/* Free or keep this thread's scratch as PIPELINE_SCRATCH_KEEP says. */
void pipeline_scratch_release(void);
/* Scratch bytes that pipeline_decode needs for such a chunk, beside out. */
size_t pipeline_scratch_size(const struct pipeline *p, size_t size);
bool pipeline_equal(const struct pipeline *a, const struct pipeline *b);
/* "shuffle, deflate" (writing order), "none" when empty; always terminated. */
void pipeline_describe(const struct pipeline *p, char *buf, size_t n);

/* Reverse the bytes of each `width`-byte number in place (2, 4, 8; other
 * widths bytewise); `size` is a multiple of width. */
void swap_bytes(void *data, size_t size, unsigned width);

#endif
