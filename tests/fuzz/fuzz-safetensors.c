/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as the header of a .safetensors file: what is taken covers the buffer. */
#include <errno.h>

#include "fuzz.h"
#include "formats/safetensors/header.h"
#include "tensor/grid.h"

static void check(const struct safetensors *s, uint64_t bytes)
{
	uint64_t at = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct safetensor *t = &s->at[i];
		uint64_t n = 1;

		FUZZ_CHECK(t->begin == at && t->end >= at);
		at = t->end;
		if (t->why_not)
			continue;
		FUZZ_CHECK(t->rank <= RANK_MAX && t->dtype.size);
		for (unsigned k = 0; k < t->rank; k++)
			n *= t->shape[k];
		FUZZ_CHECK(n * t->dtype.size == t->end - t->begin);
	}
	FUZZ_CHECK(at == bytes);
}

/* Two bytes say how long the buffer is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint64_t bytes = fuzz_u16(&in);
	char *copy = malloc(in.size ? in.size : 1); /* of exactly this size */
	struct error err = {0};
	struct safetensors s;

	if (in.size)
		memcpy(copy, in.data, in.size);
	if (safetensors_read(copy, in.size, bytes, &s, &err) == 0) {
		check(&s, bytes);
		safetensors_free(&s);
	} else {
		FUZZ_CHECK(err.code == -EBADMSG && *err.text);
		FUZZ_CHECK(!s.at && !s.metadata);
	}
	free(copy);
	return 0;
}
