/* SPDX-License-Identifier: BSD-2-Clause */
/* A regular file as a member of a tar whose header is one block (POSIX ustar). */
#ifndef SHARDS_USTAR_H
#define SHARDS_USTAR_H

#include <stdbool.h>
#include <stdint.h>

#define USTAR_BLOCK 512
/* A tar ends with two zero blocks, then zeros up to a multiple of this number of bytes. */
#define USTAR_RECORD 10240

struct ustar {
	const char *path;         /* without a leading '/' */
	const char *user, *group; /* NULL: only the number is stored */
	uint64_t size;            /* in bytes */
	int64_t mtime;            /* seconds since 1970 */
	uint32_t mode;            /* permissions; the type is ignored */
	uint32_t uid, gid;
};
/* Return true if the fields of a header hold the member; else it needs an extended one. */
bool ustar_fits(const struct ustar *m);
/* Make the header of a member that fits; the file's bytes follow, and zeros up to a
 * whole block. */
void ustar_header(unsigned char out[USTAR_BLOCK], const struct ustar *m);
/* Return `size` (< 2^63) rounded up to whole blocks. */
static inline uint64_t ustar_padded(uint64_t size)
{
	return (size + USTAR_BLOCK - 1) / USTAR_BLOCK * USTAR_BLOCK;
}
/* Return the bytes of a tar whose members, with headers and padding, take `members`
 * bytes (< 2^63). */
static inline uint64_t ustar_archive_size(uint64_t members)
{
	return (members + 2 * USTAR_BLOCK + USTAR_RECORD - 1) / USTAR_RECORD *
	       USTAR_RECORD;
}

#endif
