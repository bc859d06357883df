/* SPDX-License-Identifier: BSD-2-Clause */
/* One failure: a code for machines and a sentence for people. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The sentence may quote names and text from untrusted files.  Replace control
 * characters, so that they neither move a terminal's cursor nor begin a line of the
 * log. */
static void make_harmless(struct error *e)
{
	for (unsigned char *c = (unsigned char *)e->text; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
		else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = '?'; /* U+0080 to U+009F in UTF-8 */
}

int error_set(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	make_harmless(e);
	return code;
}

int error_errno(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;
	char what[128];
	size_t n;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof e->text - n, ": %s",
		 strerror_r(-code, what, sizeof what));
	make_harmless(e);
	return code;
}

int error_no_memory(struct error *e, const char *what)
{
	return error_set(e, -ENOMEM, "out of memory for %s", what);
}

int error_prefix(struct error *e, const char *fmt, ...)
{
	va_list ap;
	char old[sizeof e->text];
	size_t n;

	if (!e)
		return -1;
	memcpy(old, e->text, sizeof old);
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof e->text - n, "%s", old);
	make_harmless(e);
	return e->code;
}

const char *error_name(int code)
{
	switch (-code) {
	case ENODATA:
		return "ENODATA";
	case EBADMSG:
		return "EBADMSG";
	case ESTALE:
		return "ESTALE";
	case ENOTSUP:
		return "ENOTSUP";
	case ENOMEM:
		return "ENOMEM";
	/* for names that are looked up in a directory which lists nothing */
	case ENOENT:
		return "ENOENT";
	case EINVAL:
		return "EINVAL";
	case ENOSPC:
		return "ENOSPC";
	default:
		return "EIO";
	}
}
