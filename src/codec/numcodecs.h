/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of numcodecs and Zarr that HDF5 does not have, or has in another format. */
#ifndef CODEC_NUMCODECS_H
#define CODEC_NUMCODECS_H

#include "codec/codec.h"

/* These have no HDF5 number and are in no table: their id is 0. zlib, zstd, blosc, bz2,
 * shuffle and fletcher32 are the same in HDF5 and numcodecs. */
extern const struct codec codec_gzip; /* RFC 1952, one or more members */
extern const struct codec
	codec_lz4_sized; /* u32 LE: the decoded size; then one LZ4 block */
#if HAVE_LZMA
extern const struct codec codec_lzma; /* .xz, or .lzma with cd[0] = 2 */
#endif
/* cd[0] is the type of the decoded numbers, cd[1] that of the differences (DELTA_*). */
extern const struct codec codec_delta;
/* cd[0]: 1 if the checksum (u32 LE) is behind the bytes, 0 if it is in front of them. */
extern const struct codec codec_crc32, codec_crc32c, codec_adler32;

/* Types of numbers that are added up: DELTA_INT | bytes (1 2 4 8), ... */
#define DELTA_BYTES 0xfu
#define DELTA_INT 0x10u
#define DELTA_UINT 0x20u
#define DELTA_FLOAT \
	0x40u /* 4 or 8 bytes; both types must be equal but for byte order */
#define DELTA_BIG 0x80u /* big-endian */

/* The CRC-32C (Castagnoli, RFC 3720) of n bytes. */
uint32_t crc32c(const void *data, size_t n);

#endif
