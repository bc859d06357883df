/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as people write them: sizes with suffixes, counts, durations. */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* "512M", "1.5G", "25%" (of `whole`; refused when whole is 0), plain bytes; K M
 * G T are powers of 1024, optional "B"/"iB".  -EINVAL with a sentence. */
int parse_size(const char *text, uint64_t whole, uint64_t *out,
	       struct error *err);
/* A decimal number within [min, max]. */
int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *out,
		struct error *err);
/* Octal permission bits, "022". */
int parse_mode(const char *text, unsigned *out, struct error *err);
/* "90", "45s", "30m", "2h", "1d", "1w": seconds. */
int parse_age(const char *text, uint64_t *seconds, struct error *err);
/* "@SECONDS", "2026-11-22", "2026-11-22T08:30:00", that with "Z" or a blank for the "T":
 * seconds since 1970; what says no zone is UTC, so that it means the same everywhere. */
int parse_time(const char *text, int64_t *seconds, struct error *err);
/* "1.2 GiB", for people. */
void format_size(uint64_t bytes, char *buf, size_t n);

#endif
