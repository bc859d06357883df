/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits a file of names into lines; its bytes may come in any pieces. */
#ifndef READAHEAD_ORDER_LINES_H
#define READAHEAD_ORDER_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Most bytes of a line: no path is longer. */
#define ORDER_LINE_MAX 4095

/* Gets a line.  Returns 0, or -errno, which ends the splitting. */
typedef int order_line(void *ctx, uint64_t number, const char *text,
		       struct error *err);

/*
 * Lines end with "\n" or "\r\n"; the last one may have no end.  Empty lines are left out
 * but counted: the first line has number 1.  No other memory is needed.
 */
struct order_lines {
	order_line *line;
	void *ctx;
	uint64_t number; /* number of the line that is being read */
	size_t n;
	char text[ORDER_LINE_MAX + 2]; /* with room for "\r" and NUL */
};
void order_lines_begin(struct order_lines *x, order_line *line, void *ctx);
/* Split the next `n` bytes.  Returns 0; what `line` returned; or -EINVAL, with a
 * sentence that begins with the line's number, if it is too long or has a NUL byte.
 * After an error no more bytes may be given. */
int order_lines_feed(struct order_lines *x, const char *bytes, size_t n,
		     struct error *err);
/* End the last line.  Returns as order_lines_feed. */
int order_lines_end(struct order_lines *x, struct error *err);

#endif
