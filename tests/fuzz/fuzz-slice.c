/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text as a slice: what it takes lies in the array, its pieces make up the whole. */
#include <errno.h>

#include "base/number.h"
#include "fuzz.h"
#include "tensor/slice.h"

#define AXES 4
#define LOOKS 200

static void check_axes(const struct slice *s, const uint64_t *shape)
{
	for (unsigned i = 0; i < s->rank; i++) {
		const struct slice_axis *a = &s->axis[i];
		uint64_t stride = (uint64_t)(a->step < 0 ? -a->step : a->step);
		uint64_t reach = a->count ? (a->count - 1) * stride : 0;

		FUZZ_CHECK(a->step && a->count <= shape[i]);
		FUZZ_CHECK(!a->dropped || a->count == 1);
		if (!a->count)
			continue;
		FUZZ_CHECK(a->start < shape[i]);
		FUZZ_CHECK(a->step > 0 ? reach < shape[i] - a->start
				       : reach <= a->start);
	}
}

/* Elements [at, at + some): inside the array, inside what is around them. */
static void check_pieces(const struct slice *s, const uint64_t *shape)
{
	uint64_t n = slice_elements(s), at = 0;
	struct box around, piece;

	for (unsigned looks = 0; at < n && looks < LOOKS; looks++) {
		uint64_t skip, left;

		slice_piece(s, at, &piece, &skip);
		left = box_elements(&piece, s->rank);
		FUZZ_CHECK(skip == 0 && left > 0 && left <= n - at);
		slice_around(s, at, left, &around);
		for (unsigned i = 0; i < s->rank; i++) {
			FUZZ_CHECK(piece.start[i] >= around.start[i]);
			FUZZ_CHECK(piece.start[i] + piece.count[i] <=
				   around.start[i] + around.count[i]);
			FUZZ_CHECK(around.start[i] + around.count[i] <=
				   shape[i]);
		}
		at += left;
	}
	FUZZ_CHECK(at <= n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t sizes[] = {0,  1,    2,     3,
					 17, 1000, 65536, UINT64_C(1) << 20};
	struct fuzz_input in = {data, size};
	uint64_t shape[AXES], elements = 1;
	unsigned rank = 1 + fuzz_u8(&in) % AXES;
	struct slice s;
	char *text;
	int r;

	for (unsigned i = 0; i < rank; i++)
		shape[i] = sizes[fuzz_u8(&in) % 8];
	for (unsigned i = 0; i < rank; i++)
		if (mul_overflows(elements, shape[i], &elements))
			return 0; /* there is no such tensor */
	text = malloc(in.size + 1);
	if (in.size)
		memcpy(text, in.data, in.size);
	r = slice_parse(text, in.size, rank, shape, &s);
	FUZZ_CHECK(r == 0 || r == -EINVAL || r == -ENOENT);
	if (r == 0) {
		check_axes(&s, shape);
		check_pieces(&s, shape);
	}
	free(text);
	return 0;
}
