/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as users write them: sizes with suffixes, counts, ages, times. */
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"

/* All parsing is by hand: strtoull accepts signs and blanks, strtod the locale's
 * comma. */

/* A fraction is kept to millionths, which times the largest unit (2^40) still
 * fits in 64 bits. */
#define MILLION UINT64_C(1000000)

static bool parse_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read the digits at *p.  Return false if there are none or the value does not fit. */
static bool parse_digits(const char **p, uint64_t *out)
{
	uint64_t v = 0;

	if (!parse_is_digit(**p))
		return false;
	for (; parse_is_digit(**p); (*p)++)
		if (mul_overflows(v, 10, &v) ||
		    add_overflows(v, (uint64_t)(**p - '0'), &v))
			return false;
	*out = v;
	return true;
}

/* Read ".5" at *p, if it is there, in millionths; digits beyond are dropped. */
static bool parse_fraction(const char **p, uint64_t *millionths)
{
	uint64_t place = MILLION / 10;

	*millionths = 0;
	if (**p != '.')
		return true;
	(*p)++;
	if (!parse_is_digit(**p))
		return false;
	for (; parse_is_digit(**p); (*p)++, place /= 10)
		*millionths += place * (uint64_t)(**p - '0');
	return true;
}

/* Return the factor that "K", "KB", "KiB", "B" or "" stand for, or 0 for any other
 * unit. */
static uint64_t parse_unit(const char *s)
{
	static const char letters[] = "kmgt";
	uint64_t unit = 1;
	const char *at;

	if (*s) {
		at = strchr(letters, *s | 0x20);
		if (at) {
			unit = UINT64_C(1024) << 10 * (at - letters);
			s++;
			if (s[0] == 'i' && (s[1] | 0x20) == 'b')
				s++;
		}
		if ((*s | 0x20) == 'b')
			s++;
	}
	return *s ? 0 : unit;
}

static int size_too_large(const char *text, struct error *err)
{
	return error_set(err, -EINVAL, "size '%.40s' is too large", text);
}

/* Set *out to v.millionths percent of `whole`.  Both terms of the sum stay below 2^64. */
static int percent_of(const char *text, uint64_t v, uint64_t millionths,
		      uint64_t whole, uint64_t *out, struct error *err)
{
	uint64_t share;

	if (v > 100 || (v == 100 && millionths))
		return error_set(err, -EINVAL,
				 "size '%.40s' is more than 100%%", text);
	if (!whole)
		return error_set(err, -EINVAL,
				 "size '%.40s': a percentage is not possible "
				 "here; write bytes, such as 512M",
				 text);
	share = v * MILLION + millionths;
	*out = whole / (100 * MILLION) * share +
	       whole % (100 * MILLION) * share / (100 * MILLION);
	return 0;
}

int parse_size(const char *text, uint64_t whole, uint64_t *out,
	       struct error *err)
{
	const char *p = text;
	uint64_t v, millionths, unit;

	if (!parse_digits(&p, &v)) {
		if (parse_is_digit(*text))
			return size_too_large(text, err);
		return error_set(err, -EINVAL,
				 "'%.40s' is not a size such as 512M, 1.5G or "
				 "25%%",
				 text);
	}
	if (!parse_fraction(&p, &millionths))
		return error_set(err, -EINVAL,
				 "size '%.40s': digits must follow the point",
				 text);
	if (!strcmp(p, "%"))
		return percent_of(text, v, millionths, whole, out, err);
	if (p[0] == ' ' && p[1])
		p++;
	unit = parse_unit(p);
	if (!unit)
		return error_set(err, -EINVAL,
				 "size '%.40s': unknown unit '%.20s'; K, M, G, "
				 "T and %% are known",
				 text, p);
	if (unit == 1 && millionths)
		return error_set(
			err, -EINVAL,
			"size '%.40s': a number of bytes must be whole", text);
	if (mul_overflows(v, unit, &v) ||
	    add_overflows(v, millionths * unit / MILLION, &v))
		return size_too_large(text, err);
	*out = v;
	return 0;
}

int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *out,
		struct error *err)
{
	const char *p = text;
	uint64_t v = 0;
	bool fits;

	while (parse_is_digit(*p))
		p++;
	if (p == text || *p)
		return error_set(err, -EINVAL, "'%.40s' is not a whole number",
				 text);
	p = text;
	fits = parse_digits(&p, &v);
	if (!fits || v < min || v > max)
		return error_set(err, -EINVAL,
				 "%.40s is not between %" PRIu64
				 " and %" PRIu64,
				 text, min, max);
	*out = v;
	return 0;
}

int parse_mode(const char *text, unsigned *out, struct error *err)
{
	unsigned v = 0;

	for (const char *p = text; *p || p == text; p++) {
		if (*p < '0' || *p > '7' ||
		    (v = v * 8 + (unsigned)(*p - '0')) > 0777)
			return error_set(err, -EINVAL,
					 "'%.40s' is not a mode of octal "
					 "digits up to 777",
					 text);
	}
	*out = v;
	return 0;
}

int parse_age(const char *text, uint64_t *seconds, struct error *err)
{
	static const char letters[] = "smhdw";
	static const uint64_t units[] = {1, 60, 3600, 86400, 604800};
	const char *p = text, *unit = letters;
	uint64_t v;

	if (!parse_digits(&p, &v) ||
	    (*p && (!(unit = strchr(letters, *p)) || p[1])))
		return error_set(
			err, -EINVAL,
			"'%.40s' is not an age such as 45s, 30m, 2h or "
			"1d",
			text);
	if (mul_overflows(v, units[unit - letters], seconds))
		return error_set(err, -EINVAL, "age '%.40s' is too long", text);
	return 0;
}

void parse_mount_field(char *s)
{
	char *to = s;

	for (; *s; s++)
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
		    s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
				       (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	*to = '\0';
}

void format_size(uint64_t bytes, char *buf, size_t n)
{
	static const char units[] = "KMGTPE";
	unsigned u = 0;
	uint64_t unit = 1024, tenths;

	if (bytes < 1024) {
		snprintf(buf, n, "%" PRIu64 " B", bytes);
		return;
	}
	while (u < 5 && bytes / unit >= 1024) {
		unit *= 1024;
		u++;
	}
	if (bytes % unit == 0) {
		snprintf(buf, n, "%" PRIu64 " %ciB", bytes / unit, units[u]);
		return;
	}
	/* The remainder is below 2^60, so ten times it fits. */
	tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
	if (tenths >= 10240 && u < 5) {
		tenths = 10;
		u++;
	}
	snprintf(buf, n, "%" PRIu64 ".%" PRIu64 " %ciB", tenths / 10,
		 tenths % 10, units[u]);
}

/* Seconds of the first and the last moment of the years 1000 to 9999.  Other years are
 * typing errors, and no program shows them. */
#define TIME_LEAST INT64_C(-30610224000)
#define TIME_MOST INT64_C(253402300799)

/* timegm turns February 31 into March 3: such a date is refused. */
static bool is_same_date(const struct tm *a, const struct tm *b)
{
	return a->tm_sec == b->tm_sec && a->tm_mday == b->tm_mday &&
	       a->tm_mon == b->tm_mon && a->tm_year == b->tm_year;
}

/* Read a date that begins with a digit.  (strptime alone would accept blanks and
 * signs.) */
static bool read_date(const char *text, const char *form, int64_t *seconds)
{
	struct tm tm = {0}, said;
	const char *rest =
		parse_is_digit(*text) ? strptime(text, form, &tm) : NULL;

	if (!rest || *rest)
		return false;
	said = tm;
	*seconds = timegm(&tm);
	return is_same_date(&said, &tm);
}

static bool read_seconds(const char *text, int64_t *seconds)
{
	char *end;

	errno = 0;
	*seconds = strtoll(text, &end, 10);
	return (parse_is_digit(*text) || *text == '-') && end > text && !*end &&
	       !errno;
}

int parse_time(const char *text, int64_t *seconds, struct error *err)
{
	static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%S",
					    "%Y-%m-%d %H:%M:%S",
					    "%Y-%m-%dT%H:%M:%SZ"};
	bool ok = *text == '@' && read_seconds(text + 1, seconds);

	for (size_t i = 0; i < sizeof forms / sizeof *forms && !ok; i++)
		ok = read_date(text, forms[i], seconds);
	if (ok && *seconds >= TIME_LEAST && *seconds <= TIME_MOST)
		return 0;
	return error_set(err, -EINVAL,
			 "'%s' is not a time; write @SECONDS, YYYY-MM-DD or "
			 "YYYY-MM-DDTHH:MM:SS, in UTC",
			 text);
}
