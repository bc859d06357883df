/* SPDX-License-Identifier: BSD-2-Clause */
/* What a filter is, and the table of those we can decode ourselves. */
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
	/* Bytes of one element of the dataset, that is of its whole type: an array
	 * type's axes are part of it.  0: not known. */
	uint32_t elem_size;
};

/* How the size of a filter's output relates to its input (writing side). */
enum codec_kind {
	CODEC_SAME_SIZE, /* shuffle: as many bytes out as in */
	CODEC_TRAILER,   /* fletcher32: input, then codec->trailer bytes */
	CODEC_COMPRESS   /* deflate, lzf, ...: any size */
};

struct codec {
	const char *name; /* "deflate": the field's word, shown to users */
	uint32_t id;      /* HDF5 filter id (registered number) */
	enum codec_kind kind;
	uint32_t trailer; /* CODEC_TRAILER: bytes added */
	/* Decoding compares a checksum that covers all decoded bytes. */
	bool has_checksum;
	/* Optional: refuse parameters that cannot be right (-EBADMSG). */
	int (*check)(const struct codec_params *p, struct error *err);
	/*
	 * Undo the filter: `in` holds in_len stored bytes; write at most
	 * out_cap bytes to `out`, set *out_len to how many.  Thread-safe, never
	 * writes beyond out_cap or reads beyond in_len whatever the input;
	 * in and out never overlap.  -EBADMSG with a sentence when the bytes
	 * do not decode, -ENOSPC when out_cap is too small, -ENOMEM.
	 * A decoder that leaves input unread (trailing garbage) is an error
	 * where the format lets one tell.
	 */
	int (*decode)(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err);
	/*
	 * Optional: do the filter.  At most out_cap bytes to `out`, *out_len says how
	 * many.  1: it does not get smaller than out_cap, skip the filter.  Thread-safe.
	 * Trailers: `out` gets the trailer only.  -ENOMEM, -EINVAL with a sentence.
	 */
	int (*encode)(const struct codec_params *p, const void *in,
		      size_t in_len, void *out, size_t out_cap, size_t *out_len,
		      struct error *err);
	/* Optional: bytes that a thread keeps to encode `size` of them. */
	size_t (*encode_memory)(const struct codec_params *p, size_t size);
	/* CODEC_TRAILER, else NULL: check the trailer; the decoded bytes are
	 * the first in_len - trailer ones of `in`.  -EBADMSG. */
	int (*verify)(const void *in, size_t in_len, struct error *err);
	/* Optional: true when the filter changes nothing (shuffle of single
	 * bytes), so that its stage can be left out. */
	bool (*is_identity)(const struct codec_params *p);
};

/* Rows end with NULL; the order is that of `tensorfs --version`. */
extern const struct codec *const codec_table[];
/* NULL when we have no decoder for that HDF5 filter id. */
const struct codec *codec_by_id(uint32_t id);
/* A registered filter's name whether we decode it or not; NULL: unknown. */
const char *codec_name_of_id(uint32_t id);

/* The Debian package with an HDF5 plugin for that filter, or NULL. */
const char *codec_package_of_id(uint32_t id);

/* Free what codecs keep for this thread (called by thread destructors too). */
void codec_thread_cleanup(void);
/* Have `fn` called once when this thread ends or calls codec_thread_cleanup.
 * Asking again for the same `fn` does nothing.  0, -ENOMEM. */
typedef void codec_cleanup_fn(void);
int codec_thread_at_exit(codec_cleanup_fn *fn);

/* The loops behind codec_shuffle, apart for tests and measurements. */
enum shuffle_path {
	SHUFFLE_PLAIN,
	SHUFFLE_V128, /* registers of 16 bytes: SSE2, NEON */
	SHUFFLE_AVX2
};
/* The fastest one of this CPU. */
enum shuffle_path shuffle_best_path(void);
/* Undo a shuffle of in_len bytes in elements of `elem` bytes (> 0). */
void shuffle_undo(enum shuffle_path path, const void *in, size_t in_len,
		  size_t elem, void *out);
/* Do it. */
void shuffle_do(enum shuffle_path path, const void *in, size_t in_len,
		size_t elem, void *out);

extern const struct codec codec_deflate, codec_shuffle, codec_fletcher32,
	codec_lzf, codec_lz4, codec_zstd, codec_bitshuffle, codec_nbit,
	codec_scaleoffset;
/* Defined where the library was there when this was built (HAVE_SZIP, ...). */
extern const struct codec codec_szip, codec_bzip2, codec_blosc;

#endif
