/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as users write them: sizes with suffixes, counts, ages, times. */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Read a size in bytes: "512M", "1.5G", "25%" (of `whole`; refused if that is 0), or
 * plain bytes.  K, M, G and T are powers of 1024; "B" or "iB" may follow.  Return 0, or
 * -EINVAL with a sentence, as all of these do. */
int parse_size(const char *text, uint64_t whole, uint64_t *out,
	       struct error *err);
/* Read a decimal number within [min, max]. */
int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *out,
		struct error *err);
/* Read octal permission bits, such as "022". */
int parse_mode(const char *text, unsigned *out, struct error *err);
/* Read an age ("90", "45s", "30m", "2h", "1d", "1w") in seconds. */
int parse_age(const char *text, uint64_t *seconds, struct error *err);
/* Read a time, in seconds since 1970: "@SECONDS", "2026-11-22", "2026-11-22T08:30:00", or
 * that with "Z" at the end or a blank for the "T".  A time without a zone is UTC, so that
 * it means the same everywhere. */
int parse_time(const char *text, int64_t *seconds, struct error *err);
/* Decode the octal escapes of a field of /proc/self/mountinfo ("\\040" is a blank), in place;
 * proc_pid_mountinfo(5). */
void parse_mount_field(char *s);
/* Write a size for users: "1.2 GiB". */
void format_size(uint64_t bytes, char *buf, size_t n);

#endif
