/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as files store them: in either byte order, at any address. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Little-endian.  The bytes read or written are as many as the name has bits, divided by
 * 8; the caller has checked that they are there. */
static inline uint16_t load_le16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return le16toh(v);
}
static inline uint32_t load_le32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return le32toh(v);
}
static inline uint64_t load_le64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return le64toh(v);
}
/* A little-endian number of n bytes, 0 to 8. */
static inline uint64_t load_le(const void *p, unsigned n)
{
	const unsigned char *b = p;
	uint64_t v = 0;

	while (n--)
		v = v << 8 | b[n];
	return v;
}

/* Big-endian. */
static inline uint16_t load_be16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof v);
	return be16toh(v);
}
static inline uint32_t load_be32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return be32toh(v);
}
static inline uint64_t load_be64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return be64toh(v);
}

static inline void store_be32(void *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof v);
}
static inline void store_be64(void *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof v);
}
static inline void store_le32(void *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof v);
}
static inline void store_le64(void *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof v);
}

#endif
