/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits a file of names into lines; its bytes may come in any pieces. */
#include "readahead/order/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void order_lines_begin(struct order_lines *x, order_line *line, void *ctx)
{
	x->line = line;
	x->ctx = ctx;
	x->number = 1;
	x->n = 0;
}

static int line_is_too_long(const struct order_lines *x, struct error *err)
{
	return error_set(err, -EINVAL,
			 "line %" PRIu64 " is longer than %d bytes", x->number,
			 ORDER_LINE_MAX);
}

static int lines_append_piece(struct order_lines *x, const char *bytes,
			      size_t n, struct error *err)
{
	if (memchr(bytes, '\0', n))
		return error_set(err, -EINVAL,
				 "line %" PRIu64
				 " has a NUL byte: it is not a list of names",
				 x->number);
	if (n > sizeof x->text - 1 - x->n)
		return line_is_too_long(x, err);
	memcpy(x->text + x->n, bytes, n);
	x->n += n;
	return 0;
}

static int lines_end_line(struct order_lines *x, struct error *err)
{
	int r = 0;

	if (x->n && x->text[x->n - 1] == '\r')
		x->n--;
	if (x->n > ORDER_LINE_MAX)
		return line_is_too_long(x, err);
	x->text[x->n] = '\0';
	if (x->n)
		r = x->line(x->ctx, x->number, x->text, err);
	x->n = 0;
	x->number++;
	return r;
}

int order_lines_feed(struct order_lines *x, const char *bytes, size_t n,
		     struct error *err)
{
	int r = 0;

	while (n && r == 0) {
		const char *end = memchr(bytes, '\n', n);
		size_t piece = end ? (size_t)(end - bytes) : n;

		r = lines_append_piece(x, bytes, piece, err);
		if (r == 0 && end)
			r = lines_end_line(x, err);
		bytes += piece + (end ? 1 : 0);
		n -= piece + (end ? 1 : 0);
	}
	return r;
}

int order_lines_end(struct order_lines *x, struct error *err)
{
	return x->n ? lines_end_line(x, err) : 0;
}
