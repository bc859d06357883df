/* SPDX-License-Identifier: BSD-2-Clause */
/* zip: what an entry of the directory says: name, mode, times, sizes of more than
 * 32 bits. */
/*
 * A name is UTF-8 if a flag or an extra field says so (APPNOTE.TXT 4.4.4, 4.6.9).
 * Other names are in code page 437 by the specification; but those that Unix
 * programs wrote and that are valid UTF-8 are read as UTF-8.
 *
 * A DOS time has no zone: it is read as UTC, so that it is the same on all
 * machines.  Extra fields of Unix and NTFS have real times.  If several fields have
 * a time or an owner, the newer field wins (Info-ZIP's extrafld.txt describes
 * them):
 *
 *	time   0x5855 (mac OS) < 0x000a (NTFS) < 0x5455
 *	owner  0x5855, 0x7855 (16 bits, in the local header only) < 0x7875
 *
 * The file type in a mode is only a hint, as in unzip: the bytes of a pipe are
 * stored with the mode of a pipe, and are shown as a file.
 */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "formats/zip/private.h"

enum { HOST_DOS = 0, HOST_UNIX = 3, HOST_NTFS = 10, HOST_OSX = 19 };
enum {
	EXTRA_ZIP64 = 1,
	EXTRA_NTFS = 0x000a,
	EXTRA_TIME = 0x5455,
	EXTRA_UNIX1 = 0x5855,
	EXTRA_NAME = 0x7075,
	EXTRA_UNIX2 = 0x7855,
	EXTRA_OWNER = 0x7875
};
enum { TIME_DOS, TIME_UNIX1, TIME_NTFS, TIME_UNIX };
enum { OWNER_NONE, OWNER_16_BIT, OWNER_ANY_SIZE };

/* Characters 128 to 255 of code page 437 in Unicode. */
static const uint16_t cp437[128] = {
	0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea,
	0x00eb, 0x00e8, 0x00ef, 0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6,
	0x00c6, 0x00f4, 0x00f6, 0x00f2, 0x00fb, 0x00f9, 0x00ff, 0x00d6, 0x00dc,
	0x00a2, 0x00a3, 0x00a5, 0x20a7, 0x0192, 0x00e1, 0x00ed, 0x00f3, 0x00fa,
	0x00f1, 0x00d1, 0x00aa, 0x00ba, 0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc,
	0x00a1, 0x00ab, 0x00bb, 0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561,
	0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557, 0x255d, 0x255c, 0x255b,
	0x2510, 0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c, 0x255e, 0x255f,
	0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567, 0x2568,
	0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553, 0x256b, 0x256a, 0x2518,
	0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580, 0x03b1, 0x00df, 0x0393,
	0x03c0, 0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4,
	0x221e, 0x03c6, 0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320,
	0x2321, 0x00f7, 0x2248, 0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2,
	0x25a0, 0x00a0};

/* ---- names --------------------------------------------------------------- */

/* Return the length in bytes of the UTF-8 character that begins here, or 0 if there
 * is none. */
static unsigned utf8_char(const unsigned char *s, size_t n)
{
	unsigned len = s[0] < 0x80                   ? 1
		       : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		       : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		       : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						     : 0;

	if (!len || len > n)
		return 0;
	for (unsigned i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and code points beyond Unicode. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static bool is_valid_utf8(const unsigned char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		unsigned len = utf8_char(s + i, n - i);

		if (!len)
			return false;
		i += len;
	}
	return true;
}

static char *copy_entry_name(const unsigned char *s, size_t n)
{
	char *to = malloc(n + 1);

	if (!to)
		return NULL;
	memcpy(to, s, n);
	to[n] = '\0';
	return to;
}

static char *from_cp437(const unsigned char *s, size_t n)
{
	char *to = malloc(3 * n + 1), *p = to;

	for (size_t i = 0; to && i < n; i++) {
		unsigned c = s[i] < 128 ? s[i] : cp437[s[i] - 128];

		if (c < 0x80) {
			*p++ = (char)c;
			continue;
		}
		if (c >= 0x800) {
			*p++ = (char)(0xe0 | c >> 12);
			*p++ = (char)(0x80 | (c >> 6 & 0x3f));
		} else {
			*p++ = (char)(0xc0 | c >> 6);
		}
		*p++ = (char)(0x80 | (c & 0x3f));
	}
	if (to)
		*p = '\0';
	return to;
}

static char *decode_name(const struct zip_entry *e, const unsigned char *name,
			 size_t n, unsigned host)
{
	bool unix_host = host == HOST_UNIX || host == HOST_OSX;

	if (e->flags & ZIP_FLAG_UTF8 || (unix_host && is_valid_utf8(name, n)))
		return copy_entry_name(name, n);
	return from_cp437(name, n);
}

/* Replace '\\' by '/': programs of DOS and Windows separate directories by '\\', in
 * whichever field and encoding the name is.  As in unzip, a name that also has '/'
 * is left as it is. */
static void split_name(char *name, unsigned host)
{
	if ((host != HOST_DOS && host != HOST_NTFS) || strchr(name, '/'))
		return;
	for (char *p = name; *p; p++)
		if (*p == '\\')
			*p = '/';
}

/* ---- extra fields -------------------------------------------------------- */

/* Set the fields that do not fit into 32 bits, in the order in which they are
 * stored; the extra field has only those (APPNOTE.TXT 4.5.3).  Return false if
 * bytes are missing. */
static bool apply_zip64_sizes(struct zip_entry *e, const unsigned char *x,
			      size_t n)
{
	uint64_t *const fields[] = {&e->size, &e->stored, &e->header};

	for (unsigned i = 0; i < 3; i++) {
		if (*fields[i] != UINT32_MAX)
			continue;
		if (n < 8)
			return false;
		*fields[i] = load_le64(x);
		x += 8;
		n -= 8;
	}
	return true;
}

static void set_entry_time(struct zip_entry *e, unsigned by, int64_t sec,
			   uint32_t nsec)
{
	if (by < e->time_by)
		return;
	e->time_by = (uint8_t)by;
	e->mtime = sec;
	e->nsec = nsec;
}

/*
 * Set a time of 32 bits, which are signed by the specification.  Writers with 64
 * bits cut off times from 2038 on, which then look like times before 1970.  The DOS
 * time, from 1980 to 2107, tells which of the two is meant, as in unzip.
 */
static void set_time_32(struct zip_entry *e, unsigned by,
			const unsigned char *x, unsigned dos_date)
{
	uint32_t t = load_le32(x);
	bool far = t > INT32_MAX && 1980 + (dos_date >> 9) >= 2038;

	set_entry_time(e, by, far ? (int64_t)t : (int64_t)(int32_t)t, 0);
}

static void set_entry_owner(struct zip_entry *e, unsigned by, uint32_t uid,
			    uint32_t gid)
{
	if (by < e->owner_by)
		return;
	e->owner_by = (uint8_t)by;
	e->uid = uid;
	e->gid = gid;
}

static void apply_ntfs_time(struct zip_entry *e, const unsigned char *x,
			    size_t n)
{
	/* 1970 in units of 100 ns since 1601. */
	const uint64_t epoch = UINT64_C(116444736000000000);
	uint64_t t;

	if (n < 32 || load_le16(x + 4) != 1 || load_le16(x + 6) < 24)
		return;
	t = load_le64(x + 8);
	if (t < epoch || t > INT64_MAX)
		return;
	t -= epoch;
	set_entry_time(e, TIME_NTFS, (int64_t)(t / 10000000),
		       (uint32_t)(t % 10000000 * 100));
}

static void apply_unix_owner(struct zip_entry *e, const unsigned char *x,
			     size_t n)
{
	unsigned u = n > 1 ? x[1] : 0, g;

	if (n < 3 || x[0] != 1 || u > 8 || n < 3u + u)
		return;
	g = x[2 + u];
	if (g > 8 || n < 3u + u + g)
		return;
	set_entry_owner(e, OWNER_ANY_SIZE, (uint32_t)load_le(x + 2, u),
			(uint32_t)load_le(x + 3 + u, g));
}

/* Replace the name by the one in UTF-8, if its checksum shows that it belongs to
 * this name. */
static int apply_utf8_name(struct zip_entry *e, const unsigned char *x,
			   size_t n, const unsigned char *name, size_t name_len)
{
	char *to;

	if (n < 6 || x[0] != 1 || !is_valid_utf8(x + 5, n - 5) ||
	    load_le32(x + 1) != libdeflate_crc32(0, name, name_len))
		return 0;
	to = copy_entry_name(x + 5, n - 5);
	if (!to)
		return -ENOMEM;
	free(e->name);
	e->name = to;
	return 0;
}

/* The name as stored and the DOS date of an entry. */
struct raw_entry {
	const unsigned char *name;
	size_t name_len;
	unsigned dos_date;
};

static int apply_extra_field(struct zip_entry *e, unsigned id,
			     const unsigned char *x, size_t n,
			     const struct raw_entry *raw)
{
	switch (id) {
	case EXTRA_ZIP64:
		return apply_zip64_sizes(e, x, n) ? 0 : -EBADMSG;
	case EXTRA_NTFS:
		apply_ntfs_time(e, x, n);
		return 0;
	case EXTRA_TIME:
		if (n >= 5 && x[0] & 1)
			set_time_32(e, TIME_UNIX, x + 1, raw->dos_date);
		return 0;
	case EXTRA_UNIX1: /* atime, mtime */
		if (n >= 8)
			set_time_32(e, TIME_UNIX1, x + 4, raw->dos_date);
		e->local_owner = true;
		return 0;
	case EXTRA_UNIX2:
		e->local_owner = true;
		return 0;
	case EXTRA_OWNER:
		apply_unix_owner(e, x, n);
		return 0;
	case EXTRA_NAME:
		return apply_utf8_name(e, x, n, raw->name, raw->name_len);
	default:
		return 0;
	}
}

void zip_entry_local(struct zip_entry *e, const unsigned char *x, size_t n)
{
	while (n >= 4) {
		unsigned id = load_le16(x), size = load_le16(x + 2);
		/* The owner follows the two times, if they are there. */
		unsigned at = id == EXTRA_UNIX1 ? 8 : 0;

		x += 4;
		n -= 4;
		if (size > n)
			return;
		if ((id == EXTRA_UNIX1 || id == EXTRA_UNIX2) && size >= at + 4)
			set_entry_owner(e, OWNER_16_BIT, load_le16(x + at),
					load_le16(x + at + 2));
		x += size;
		n -= size;
	}
}

/* ---- modes and times ----------------------------------------------------- */

/* Return the days from 1970-01-01 to a day of the Gregorian calendar. */
static int64_t days_of(int64_t y, unsigned m, unsigned d)
{
	y -= m <= 2;
	return 365 * y + y / 4 - y / 100 + y / 400 +
	       (153 * (m + (m > 2 ? -3u : 9u)) + 2) / 5 + d - 1 - 719468;
}

static int64_t dos_time(unsigned time, unsigned date)
{
	unsigned month = date >> 5 & 15, day = date & 31;

	if (month < 1 || month > 12 || day < 1)
		return 0;
	return days_of(1980 + (date >> 9), month, day) * 86400 +
	       (time >> 11) * 3600 + (time >> 5 & 63) * 60 + (time & 31) * 2;
}

static uint32_t entry_mode(const struct zip_entry *e, unsigned host,
			   uint32_t attributes)
{
	size_t n = strlen(e->name);
	uint32_t mode = 0, type;
	bool dir = n && e->name[n - 1] == '/', says_dir = false;

	if (host == HOST_UNIX || host == HOST_OSX) {
		mode = attributes >> 16;
		says_dir = S_ISDIR(mode);
	} else {
		says_dir = attributes & 0x10;
	}
	/* An entry with bytes is a file, unless its name says otherwise. */
	dir = dir || (says_dir && !e->size);
	type = dir ? S_IFDIR : S_ISLNK(mode) ? S_IFLNK : S_IFREG;
	/* 0100000 is a mode: that of a file without any permission. */
	return type | (mode ? mode & 07777 : dir ? 0755u : 0644u);
}

int zip_entry_text(struct zip_entry *e, const unsigned char *p, unsigned name,
		   unsigned extra, struct error *err)
{
	const unsigned char *at = p + ZIP_ENTRY_SIZE, *x = at + name;
	const struct raw_entry raw = {at, name, load_le16(p + 14)};
	unsigned host = p[5], left = extra;
	bool large = e->size == UINT32_MAX || e->stored == UINT32_MAX ||
		     e->header == UINT32_MAX;
	int r = 0;

	e->mtime = dos_time(load_le16(p + 12), load_le16(p + 14));
	e->uid = e->gid = UINT32_MAX;
	e->name = decode_name(e, at, name, host);
	if (!e->name)
		return error_no_memory(err, "the name of a member");
	while (left >= 4 && r == 0) {
		unsigned id = load_le16(x), n = load_le16(x + 2);

		if (n > left - 4)
			break;
		r = apply_extra_field(e, id, x + 4, n, &raw);
		large &= id != EXTRA_ZIP64;
		x += 4 + n;
		left -= 4 + n;
	}
	if (large && r == 0 && load_le16(p + 6) >= 45)
		r = -EBADMSG;
	if (r < 0) {
		free(e->name);
		e->name = NULL;
		return r == -ENOMEM
			       ? error_no_memory(err, "the name of a member")
			       : error_set(err, r, "sizes are missing");
	}
	split_name(e->name, host);
	e->mode = entry_mode(e, host, load_le32(p + 38));
	return 0;
}
