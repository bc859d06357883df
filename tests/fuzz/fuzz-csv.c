/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a list of labels: fields lie in the text, which stays within its room. */
#include <errno.h>

#include "fuzz.h"
#include "base/csv.h"

struct seen {
	const char *text;
	size_t n;
	uint64_t line, rows;
};

static int row(void *ctx, uint64_t line, char **field, size_t n,
	       struct error *err)
{
	struct seen *s = ctx;

	(void)err;
	FUZZ_CHECK(n > 0 && n <= CSV_FIELDS_MOST);
	FUZZ_CHECK(line > s->line);
	s->line = line;
	for (size_t i = 0; i < n; i++) {
		FUZZ_CHECK(field[i] >= s->text && field[i] <= s->text + s->n);
		FUZZ_CHECK(field[i] + strlen(field[i]) <= s->text + s->n);
		FUZZ_CHECK(i == 0 || field[i] > field[i - 1]);
	}
	return ++s->rows == 1000 ? 7 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct seen s = {text, size, 0, 0};
	struct error err = {0};
	int r;

	if (size)
		memcpy(text, data, size);
	r = csv_parse(text, size, row, &s, &err);
	FUZZ_CHECK(r == 0 || (r == 7 && s.rows == 1000) ||
		   (r == -EBADMSG && *err.text));
	free(text);
	return 0;
}
