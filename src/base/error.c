/* SPDX-License-Identifier: BSD-2-Clause */
/* One failure: a code for machines and a sentence for people. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
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
	return code;
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
	/* of names, in directories that list none */
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
