/* SPDX-License-Identifier: BSD-2-Clause */
/* A regular file as a member of a tar whose header is one block (POSIX ustar). */

/*
 * Headers are byte for byte those of libarchive, which writes the other members of a
 * pack: six octal digits and a space where there is room for seven, eleven for sizes
 * and times, and long names cut at the first '/' that leaves no more than 100 bytes
 * behind it.
 */
#include "shards/ustar.h"

#include <string.h>

#define NAME_MOST 100
#define PREFIX_MOST 155
#define OWNER_MOST 32

/* Return the '/' at which a name that is too long is cut; NULL if there is none. */
static const char *ustar_path_cut(const char *path, size_t n)
{
	const char *cut = strchr(path + n - NAME_MOST - 1, '/');

	if (cut == path)
		cut = strchr(cut + 1, '/');
	return cut && cut[1] && cut - path <= PREFIX_MOST ? cut : NULL;
}

static bool ustar_owner_fits(const char *name)
{
	return !name || strlen(name) <= OWNER_MOST;
}

bool ustar_fits(const struct ustar *m)
{
	size_t n = strlen(m->path);

	return m->mtime >= 0 && m->mtime < INT32_MAX && m->uid < 1u << 18 &&
	       m->gid < 1u << 18 && m->size < UINT64_C(1) << 33 &&
	       ustar_owner_fits(m->user) && ustar_owner_fits(m->group) &&
	       (n <= NAME_MOST || ustar_path_cut(m->path, n));
}

static void ustar_put_octal(unsigned char *to, unsigned digits, uint64_t v)
{
	while (digits-- > 0) {
		to[digits] = (unsigned char)('0' + (v & 7));
		v >>= 3;
	}
}

static void ustar_put_path(unsigned char *out, const char *path)
{
	size_t n = strlen(path);
	const char *cut;

	if (n <= NAME_MOST) {
		memcpy(out, path, n);
		return;
	}
	cut = ustar_path_cut(path, n);
	memcpy(out + 345, path, (size_t)(cut - path));
	memcpy(out, cut + 1, n - (size_t)(cut + 1 - path));
}

void ustar_header(unsigned char out[USTAR_BLOCK], const struct ustar *m)
{
	unsigned sum = 0;

	memset(out, 0, USTAR_BLOCK);
	ustar_put_path(out, m->path);
	ustar_put_octal(out + 100, 6, m->mode & 07777);
	ustar_put_octal(out + 108, 6, m->uid);
	ustar_put_octal(out + 116, 6, m->gid);
	out[106] = out[114] = out[122] = ' ';
	ustar_put_octal(out + 124, 11, m->size);
	ustar_put_octal(out + 136, 11, (uint64_t)m->mtime);
	out[135] = out[147] = ' ';
	/* The checksum counts its own field as spaces. */
	memset(out + 148, ' ', 8);
	out[156] = '0'; /* a regular file */
	memcpy(out + 257,
	       "ustar\0"
	       "00",
	       8);
	if (m->user)
		memcpy(out + 265, m->user, strlen(m->user));
	if (m->group)
		memcpy(out + 297, m->group, strlen(m->group));
	ustar_put_octal(out + 329, 6, 0); /* device numbers: none  */
	ustar_put_octal(out + 337, 6, 0);
	out[335] = out[343] = ' ';
	for (unsigned i = 0; i < USTAR_BLOCK; i++)
		sum += out[i];
	ustar_put_octal(out + 148, 6, sum);
	out[154] = '\0';
}
