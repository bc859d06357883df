/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters as numcodecs and Zarr write them, where HDF5 has none or another. */
#ifndef CODEC_NUMCODECS_H
#define CODEC_NUMCODECS_H

#include "codec/codec.h"

/* These have no HDF5 number, and are in no table: id is 0.  zlib, zstd, blosc, bz2,
 * shuffle and fletcher32 are the same in both. */
extern const struct codec codec_gzip; /* RFC 1952, one or more members */
extern const struct codec
	codec_lz4_sized; /* u32 LE plain bytes, one LZ4 block */
#if HAVE_LZMA
extern const struct codec codec_lzma; /* .xz, or .lzma with cd[0] = 2 */
#endif
/* cd: enum delta_type of the decoded numbers, of the differences. */
extern const struct codec codec_delta;
/* cd[0]: 1: the checksum (u32 LE) is behind the bytes, 0: in front of them. */
extern const struct codec codec_crc32, codec_crc32c, codec_adler32;

/* Numbers that are added up: DELTA_INT | bytes (1 2 4 8), ... */
#define DELTA_BYTES 0xfu
#define DELTA_INT 0x10u
#define DELTA_UINT 0x20u
#define DELTA_FLOAT 0x40u /* 4 or 8 bytes; both the same */
#define DELTA_BIG 0x80u   /* big-endian */

/* CRC-32C (Castagnoli) of n bytes. */
uint32_t crc32c(const void *data, size_t n);

#endif
