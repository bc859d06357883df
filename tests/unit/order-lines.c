/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of names: which lines there are, whatever pieces it comes in. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "readahead/order/lines.h"
#include "test.h"

static char seen[4 * ORDER_LINE_MAX];

static int line(void *ctx, uint64_t number, const char *text, struct error *err)
{
	size_t n = strlen(seen);

	(void)ctx;
	snprintf(seen + n, sizeof seen - n, "%" PRIu64 "=%s;", number, text);
	return strcmp(text, "stop") ? 0 : error_set(err, -ENOENT, "stopped");
}

static int feed(const char *bytes, size_t n, size_t piece, struct error *err)
{
	struct order_lines x;
	int r = 0;

	*seen = '\0';
	order_lines_begin(&x, line, NULL);
	for (size_t at = 0; at < n && r == 0; at += piece)
		r = order_lines_feed(&x, bytes + at,
				     n - at < piece ? n - at : piece, err);
	return r == 0 ? order_lines_end(&x, err) : r;
}

static void check(const char *bytes, size_t n, int code, const char *want,
		  const char *says)
{
	for (size_t piece = 1; piece <= n + 1; piece = piece * 2 + 1) {
		struct error err = {0};

		CHECK_EQ_I(feed(bytes, n, piece, &err), code);
		CHECK_STR(seen, want);
		CHECK(strstr(err.text, says));
	}
}

#define IS(bytes, code, want, says) \
	check(bytes, sizeof(bytes) - 1, code, want, says)

TEST(lines)
{
	IS("", 0, "", "");
	IS("\n\r\n\n", 0, "", "");
	IS("a\nb", 0, "1=a;2=b;", "");
	IS("a\r\n\n b \r\n", 0, "1=a;3= b ;", "");
	IS("a\rb\n", 0, "1=a\rb;", "");
	IS("a\nstop\nb\n", -ENOENT, "1=a;2=stop;", "stopped");
}

TEST(what_is_no_line)
{
	IS("a\n\nb\0c\n", -EINVAL, "1=a;", "line 3 has a NUL byte");
	IS("\0", -EINVAL, "", "line 1 has a NUL byte");
}

/* As long as a path may be; not a byte more, however much there is. */
TEST(long_ones)
{
	char text[3 * ORDER_LINE_MAX], want[ORDER_LINE_MAX + 4];

	memset(text, 'a', sizeof text);
	snprintf(want, sizeof want, "1=%.*s;", ORDER_LINE_MAX, text);
	check(text, ORDER_LINE_MAX, 0, want, "");
	memcpy(text + ORDER_LINE_MAX, "\r\n", 2);
	check(text, ORDER_LINE_MAX + 2, 0, want, "");
	memcpy(text + ORDER_LINE_MAX, "a\n", 2);
	check(text, ORDER_LINE_MAX + 2, -EINVAL, "",
	      "line 1 is longer than 4095 bytes");
	check(text, ORDER_LINE_MAX + 1, -EINVAL, "", "longer");
	check(text, sizeof text, -EINVAL, "", "longer");
}

int main(void)
{
	RUN(lines);
	RUN(what_is_no_line);
	RUN(long_ones);
	return test_done();
}
