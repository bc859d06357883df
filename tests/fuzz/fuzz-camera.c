/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of camera files, and descriptions of raw records: numbers that can be used. */
#include <errno.h>

#include "fuzz.h"
#include "formats/numpy/camera.h"
#include "formats/raw/raw.h"

static void check_header(const struct camera_header *h)
{
	uint64_t frame;

	FUZZ_CHECK(h->dtype.kind == DTYPE_UINT && h->width && h->height);
	FUZZ_CHECK(!__builtin_mul_overflow(h->width * h->height, h->dtype.size,
					   &frame));
	FUZZ_CHECK(h->skip <= h->record && frame <= h->record - h->skip);
	FUZZ_CHECK(!h->scan[0] == !h->scan[1]);
}

static void check_raw(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct raw_spec spec;
	struct error err = {0};
	int r;

	memcpy(text, data, size);
	text[size] = '\0';
	r = raw_parse(text, &spec, &err);
	FUZZ_CHECK(r == 0 || (r == err.code && *err.text));
	if (r == 0)
		FUZZ_CHECK(spec.dtype.size && spec.rank < RANK_MAX);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"a.blo", "a.tvips", "a.mib",
					    "a.seq"};
	struct camera_header h;
	uint8_t *copy;
	unsigned format;
	int r;

	if (!size)
		return 0;
	format = *data++ % 5;
	size--;
	if (format == 4) {
		check_raw(data, size);
		return 0;
	}
	if (size > CAMERA_HEAD)
		size = CAMERA_HEAD;
	copy = malloc(size ? size : 1);
	memcpy(copy, data, size);
	(void)camera_probe((enum camera_format)format, copy, size,
			   paths[format]);
	r = camera_read((enum camera_format)format, copy, size, &h, NULL);
	FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ENOTSUP);
	if (r == 0)
		check_header(&h);
	free(copy);
	return 0;
}
