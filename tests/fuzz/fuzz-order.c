/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as the text of order=, and as a file of names that comes in pieces. */
#include <errno.h>

#include "fuzz.h"
#include "readahead/order/lines.h"
#include "readahead/order/order.h"

static void check_spec(const char *text)
{
	const struct order_spec before = {.seed = 77, .batch = 5};
	struct order_spec s = before, again = before;
	struct error err = {0};
	struct order o;
	int r = order_spec_parse(text, &s, &err);

	FUZZ_CHECK(order_spec_parse(text, &again, NULL) == r);
	FUZZ_CHECK(r == 0 || (r == -EINVAL && *err.text));
	if (r < 0) {
		FUZZ_CHECK(s.seed == 77 && s.batch == 5 && !s.file);
		return;
	}
	FUZZ_CHECK(!s.file || (s.file == text && *text));
	FUZZ_CHECK(s.world && s.world <= ORDER_WORLD_MAX);
	FUZZ_CHECK(s.rank + s.ranks <= s.world && (s.file || s.ranks));
	FUZZ_CHECK(s.batch && s.batch <= ORDER_BATCH_MAX &&
		   s.workers <= ORDER_WORKERS_MAX);
	FUZZ_CHECK(order_spec_slack(&s) > 0);
	if (!s.file && order_of_samples(&o, &s, 50, &err) == 0) {
		uint32_t *list = malloc((o.length + 1) * sizeof *list);

		FUZZ_CHECK(list && order_epoch(&o, 3, o.length, list));
		for (uint32_t i = 0; i < o.length; i++)
			FUZZ_CHECK(list[i] < 50);
		free(list);
	}
}

/* What came out of it. */
struct lines {
	uint64_t last, sum, n;
};

static int line(void *ctx, uint64_t number, const char *text, struct error *err)
{
	struct lines *l = ctx;
	size_t n = strlen(text);

	FUZZ_CHECK(n && n <= ORDER_LINE_MAX && !strchr(text, '\n'));
	FUZZ_CHECK(number > l->last);
	l->last = number;
	l->n++;
	for (size_t i = 0; i <= n; i++)
		l->sum = l->sum * 1099511628211u + (unsigned char)text[i] + 1;
	return l->n < 1000 ? 0 : error_set(err, -E2BIG, "enough");
}

static int read_lines(const char *data, size_t size, size_t piece,
		      struct lines *out, struct error *err)
{
	struct order_lines *x = malloc(sizeof *x);
	int r = 0;

	*out = (struct lines){0};
	order_lines_begin(x, line, out);
	for (size_t at = 0; at < size && r == 0; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		/* Nothing behind it is looked at. */
		char *copy = malloc(n);

		memcpy(copy, data + at, n);
		r = order_lines_feed(x, copy, n, err);
		free(copy);
	}
	if (r == 0)
		r = order_lines_end(x, err);
	free(x);
	return r;
}

static void check_lines(const char *data, size_t size)
{
	static const size_t pieces[] = {1, 7, 4096};
	struct error err = {0};
	struct lines whole;
	int r = read_lines(data, size, size + 1, &whole, &err);

	FUZZ_CHECK(r == 0 || ((r == -EINVAL || r == -E2BIG) && *err.text));
	FUZZ_CHECK(r < 0 || !memchr(data, '\0', size));
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		struct lines l;

		/* Too long, or a NUL byte: the same code, whichever is seen first. */
		FUZZ_CHECK(read_lines(data, size, pieces[i], &l, NULL) == r);
		FUZZ_CHECK(l.n == whole.n && l.sum == whole.sum &&
			   l.last == whole.last);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	check_spec(text);
	check_lines(text, size);
	free(text);
	return 0;
}
