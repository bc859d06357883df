/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a CSV file of labels: each sample is in one class, each name is one class. */
#include <errno.h>

#include "fuzz.h"
#include "views/classes.h"

static void check_index(const struct class_index *x)
{
	uint64_t before = 0;

	FUZZ_CHECK(x->n > 0 && x->n <= x->samples && x->start[0] == 0 &&
		   x->start[x->n] == x->samples);
	for (uint32_t i = 0; i < x->n; i++) {
		uint32_t k;

		FUZZ_CHECK(*x->name[i] && strlen(x->name[i]) < 256 &&
			   !strchr(x->name[i], '/') && *x->label[i]);
		FUZZ_CHECK(strcmp(x->name[i], ".") && strcmp(x->name[i], ".."));
		FUZZ_CHECK(i == 0 || strcmp(x->name[i - 1], x->name[i]) < 0);
		FUZZ_CHECK(class_find(x, x->name[i], &k) == 0 && k == i);
		FUZZ_CHECK(x->start[i + 1] > x->start[i]);
		for (uint64_t j = x->start[i]; j < x->start[i + 1]; j++) {
			FUZZ_CHECK(x->row[j] < x->samples &&
				   x->of[x->row[j]] == i);
			FUZZ_CHECK(j == x->start[i] || x->row[j] > before);
			before = x->row[j];
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const struct class_index *x;
	struct classes *c = NULL;
	struct error err = {0};
	int r;

	if (size)
		memcpy(text, data, size);
	r = classes_of_text(&c, text, size, "a", &err);
	FUZZ_CHECK(r == 0 || (r == -EBADMSG && *err.text) || r == -EEXIST);
	if (r == 0) {
		FUZZ_CHECK(classes_index(c, &x, &err) == 0 &&
			   classes_samples(c) == x->samples);
		check_index(x);
	}
	classes_free(c);
	free(text);
	return 0;
}
