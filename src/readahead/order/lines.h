/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of names: lines out of bytes, which may come in any pieces. */
#ifndef READAHEAD_ORDER_LINES_H
#define READAHEAD_ORDER_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes of the longest line: no path is longer. */
#define ORDER_LINE_MAX 4095

/* 0, or an error that ends it. */
typedef int order_line(void *ctx, uint64_t number, const char *text,
		       struct error *err);

/*
 * Lines end with "\n" or "\r\n", the last one may have no end.  Empty ones are left out, and
 * counted: the first one has number 1.  Takes no memory but this.
 */
struct order_lines {
	order_line *line;
	void *ctx;
	uint64_t number; /* of the line that is being read */
	size_t n;
	char text[ORDER_LINE_MAX + 2]; /* "\r" may follow, and NUL */
};
void order_lines_begin(struct order_lines *x, order_line *line, void *ctx);
/* 0; what `line` returned; -EINVAL with a sentence that begins with the line's number: it is
 * too long, or has a NUL byte.  No more is to be given after that. */
int order_lines_feed(struct order_lines *x, const char *bytes, size_t n,
		     struct error *err);
/* There are no more bytes. */
int order_lines_end(struct order_lines *x, struct error *err);

#endif
