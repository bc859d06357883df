/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended attributes in pax records, as star and as libarchive write them. */
#include <errno.h>
#include <string.h>

#include "formats/tar/private.h"

/* Limits of the kernel: bytes of a name, bytes of a value, and names in a list (of
 * at least three bytes each). */
enum { NAME_MAX_BYTES = 255, VALUE_MAX_BYTES = 65536, COUNT_MAX = 2048 };

/* ---- encodings ----------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode "%41" to "A" in place; with `few` set, only the codes of '=' and '%'.
 * Return the new length. */
static size_t decode_percent(char *s, bool few)
{
	char *to = s;

	for (const char *p = s; *p; p++) {
		int high = *p == '%' ? hex_digit(p[1]) : -1;
		int low = high < 0 ? -1 : hex_digit(p[2]);
		char c = (char)(high * 16 + low);

		if (low < 0 || c == '\0' || (few && c != '=' && c != '%')) {
			*to++ = *p;
			continue;
		}
		*to++ = c;
		p += 2;
	}
	*to = '\0';
	return (size_t)(to - s);
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

/* Decode base64 in place, which makes it shorter.  Return the new length. */
static size_t decode_base64(char *s, size_t n)
{
	unsigned bits = 0, have = 0;
	size_t to = 0;

	for (size_t i = 0; i < n && s[i] != '='; i++) {
		int digit = base64_digit(s[i]);

		if (digit < 0)
			continue;
		bits = (bits << 6 | (unsigned)digit) & 0xffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			s[to++] = (char)(bits >> have & 0xff);
		}
	}
	return to;
}

/* ---- records ------------------------------------------------------------- */

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Return the attribute of this name or a new one, or NULL if there is no memory.  A
 * linear search will do: names are few. */
static struct tar_xattr *attribute_slot(struct tar_pax *p, const char *name)
{
	for (size_t i = 0; i < p->xattr.n; i++)
		if (strcmp(p->bytes.at + p->xattr.at[i].name, name) == 0)
			return &p->xattr.at[i];
	if (!vec_push(&p->xattr, ((struct tar_xattr){0})))
		return NULL;
	return &p->xattr.at[p->xattr.n - 1];
}

/* Store attribute `x`, whose name and value are the last bytes of p->bytes.  Return
 * 1 or -ENOMEM. */
static int store_attribute(struct tar_pax *p, struct tar_xattr x,
			   struct members_builder *b)
{
	size_t length = strlen(p->bytes.at + x.name);
	struct tar_xattr *slot;
	char shown[TAR_SHOWN];

	if (length == 0 || length > NAME_MAX_BYTES ||
	    x.size > VALUE_MAX_BYTES) {
		members_note(
			b, "attribute",
			"attribute \"%s\" of %zu bytes is too large: left out",
			tar_shown(p->bytes.at + x.name, shown), x.size);
		tar_text_cut(&p->bytes, x.name);
		return 1;
	}
	slot = attribute_slot(p, p->bytes.at + x.name);
	if (!slot)
		return -ENOMEM;
	*slot = x;
	return 1;
}

int tar_xattr_record(struct tar_pax *p, const char *key, const char *value,
		     size_t n, struct members_builder *b)
{
	static const char schily[] = "SCHILY.xattr.";
	static const char libarchive[] = "LIBARCHIVE.xattr.";
	bool coded = starts_with(key, libarchive);
	struct tar_xattr x = {p->bytes.n, 0, n};

	if (!coded && !starts_with(key, schily))
		return 0;
	if (p->xattr.n >= COUNT_MAX) {
		members_note(b, "attribute",
			     "a member has more than %d attributes: the others "
			     "are left out",
			     COUNT_MAX);
		return 1;
	}
	key += coded ? sizeof libarchive - 1 : sizeof schily - 1;
	if (!tar_text_add(&p->bytes, key, strlen(key) + 1))
		return -ENOMEM;
	x.value = x.name + decode_percent(p->bytes.at + x.name, !coded) + 1;
	tar_text_cut(&p->bytes, x.value);
	if (!tar_text_add(&p->bytes, value, n))
		return -ENOMEM;
	if (coded)
		x.size = decode_base64(p->bytes.at + x.value, n);
	tar_text_cut(&p->bytes, x.value + x.size);
	return store_attribute(p, x, b);
}

int tar_xattr_list(struct tar_xattrs *out, const struct tar_pax *p)
{
	out->at.n = 0;
	for (size_t i = 0; i < p->xattr.n; i++) {
		const struct tar_xattr *x = &p->xattr.at[i];
		struct member_xattr m = {p->bytes.at + x->name,
					 p->bytes.at + x->value, x->size};

		if (!vec_push(&out->at, m))
			return -ENOMEM;
	}
	return 0;
}
