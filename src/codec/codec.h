/* SPDX-License-Identifier: BSD-2-Clause */
/* What a filter is, and the table of those that we decode ourselves. */
#ifndef CODEC_CODEC_H
#define CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Client data of one filter in one pipeline, as the file stores it. */
#define CODEC_CD_MAX 32
struct codec_params {
	uint32_t n;                /* values in cd */
	uint32_t cd[CODEC_CD_MAX]; /* HDF5 "client data" */
	/* Bytes of one element of the dataset, that is of its whole type: the axes of an
	 * array type are part of it.  0: not known. */
	uint32_t elem_size;
};

/* How the size of a filter's output relates to its input (writing side). */
enum codec_kind {
	CODEC_SAME_SIZE, /* shuffle: as many bytes out as in */
	CODEC_TRAILER,   /* fletcher32: input, then codec->trailer bytes */
	CODEC_COMPRESS   /* deflate, lzf, ...: any size */
};

struct codec {
	const char *name; /* its usual name, as shown to users */
	uint32_t id;      /* HDF5 filter id (registered number) */
	enum codec_kind kind;
	uint32_t trailer; /* CODEC_TRAILER: bytes added */
	/* True if decoding compares a checksum of all decoded bytes. */
	bool has_checksum;
	/* Optional: refuse impossible parameters.  Return 0, or -EBADMSG with a
	 * sentence. */
	int (*check)(const struct codec_params *p, struct error *err);
	/*
	 * Undo the filter: `in` holds in_len stored bytes; write at most out_cap bytes to
	 * `out` and set *out_len to their number.  Thread-safe; never writes beyond
	 * out_cap or reads beyond in_len, whatever the input.  `in` and `out` never
	 * overlap.  Return 0, -EBADMSG with a sentence if the bytes do not decode,
	 * -ENOSPC if out_cap is too small, or -ENOMEM.  Unread input (trailing garbage)
	 * is an error where the format lets one tell.
	 */
	int (*decode)(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err);
	/*
	 * Optional: apply the filter.  Write at most out_cap bytes to `out` (for
	 * trailers, the trailer only) and set *out_len to their number.  Thread-safe.
	 * Return 0, 1 if the result does not fit in out_cap and the filter is to be
	 * skipped, -ENOMEM, or -EINVAL with a sentence.
	 */
	int (*encode)(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err);
	/* Optional: the bytes of memory that a thread needs to encode `size` bytes. */
	size_t (*encode_memory)(const struct codec_params *p, size_t size);
	/* CODEC_TRAILER only, else NULL: check the trailer of `in`; the decoded bytes are
	 * its first in_len - trailer ones.  Return 0 or -EBADMSG. */
	int (*verify)(const void *in, size_t in_len, struct error *err);
	/* Optional: return true if the filter changes nothing (a shuffle of single
	 * bytes), so that its stage can be left out. */
	bool (*is_identity)(const struct codec_params *p);
};

/* The codecs in the order of `tensorfs --version`; NULL ends the table. */
extern const struct codec *const codec_table[];
/* Return the codec of an HDF5 filter id, or NULL if we have no decoder for it. */
const struct codec *codec_by_id(uint32_t id);
/* Return a registered filter's name, whether we decode it or not, or NULL if it is
 * unknown. */
const char *codec_name_of_id(uint32_t id);

/* Return the name of the Debian package with an HDF5 plugin for that filter, or NULL. */
const char *codec_package_of_id(uint32_t id);

/* Free the memory that codecs keep for this thread (thread destructors call this,
 * too). */
void codec_thread_cleanup(void);
/* Register `fn` to be called once when this thread ends or calls codec_thread_cleanup.
 * Registering the same `fn` again does nothing.  Return 0 or -ENOMEM. */
typedef void codec_cleanup_fn(void);
int codec_thread_at_exit(codec_cleanup_fn *fn);

/* The loops behind codec_shuffle, separate for tests and measurements. */
enum shuffle_path {
	SHUFFLE_PLAIN,
	SHUFFLE_V128, /* registers of 16 bytes: SSE2, NEON */
	SHUFFLE_AVX2
};
/* The fastest path on this CPU. */
enum shuffle_path shuffle_best_path(void);
/* Undo a shuffle of in_len bytes in elements of `elem` bytes (> 0); `in` and `out` must
 * not overlap. */
void shuffle_undo(enum shuffle_path path, const void *in, size_t in_len,
		  size_t elem, void *out);
/* Shuffle, the inverse of shuffle_undo. */
void shuffle_do(enum shuffle_path path, const void *in, size_t in_len,
		size_t elem, void *out);

extern const struct codec codec_deflate, codec_shuffle, codec_fletcher32,
	codec_lzf, codec_lz4, codec_zstd, codec_bitshuffle, codec_nbit,
	codec_scaleoffset;
/* Defined only if their libraries were present when this was built (HAVE_SZIP, ...). */
extern const struct codec codec_szip, codec_bzip2, codec_blosc;

#endif
