/* SPDX-License-Identifier: BSD-2-Clause */
/* A regular file as a member of a tar, where one block says all of it (POSIX ustar). */
#ifndef SHARDS_USTAR_H
#define SHARDS_USTAR_H

#include <stdbool.h>
#include <stdint.h>

#define USTAR_BLOCK 512
/* As tars end, since tapes: two zero blocks, then to a multiple of this. */
#define USTAR_RECORD 10240

struct ustar {
	const char *path;         /* no '/' in front */
	const char *user, *group; /* NULL: their numbers have to do */
	uint64_t size;            /* bytes */
	int64_t mtime;            /* seconds since 1970 */
	uint32_t mode;            /* permissions; a type is passed over */
	uint32_t uid, gid;
};
/* Do the fields of a header hold it?  Else it needs an extended one. */
bool ustar_fits(const struct ustar *m);
/* The header of what fits; the file's bytes follow, and zeros up to a whole block. */
void ustar_header(unsigned char out[USTAR_BLOCK], const struct ustar *m);
/* Bytes of a file in whole blocks; size < 2^63. */
static inline uint64_t ustar_padded(uint64_t size)
{
	return (size + USTAR_BLOCK - 1) / USTAR_BLOCK * USTAR_BLOCK;
}
/* Bytes of a tar whose members, with headers and padding, take `members` (< 2^63). */
static inline uint64_t ustar_archive_size(uint64_t members)
{
	return (members + 2 * USTAR_BLOCK + USTAR_RECORD - 1) / USTAR_RECORD *
	       USTAR_RECORD;
}

#endif
