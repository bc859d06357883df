/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a .npy file: what its header says is possible. */
#include <errno.h>

#include "fuzz.h"
#include "tensor/dtype_parse.h"
#include "tensor/npy_read.h"

static void check(const struct npy_file *f, size_t size)
{
	uint64_t n = 1;
	char text[32];
	struct dtype d;
	struct error ignored;

	FUZZ_CHECK(f->rank <= RANK_MAX);
	FUZZ_CHECK(f->data >= 10 && f->data <= size &&
		   f->data <= NPY_HEADER_MOST);
	for (unsigned i = 0; i < f->rank; i++)
		n = f->shape[i] ? n : 0;
	for (unsigned i = 0; i < f->rank && n; i++)
		FUZZ_CHECK(!__builtin_mul_overflow(n, f->shape[i], &n));
	FUZZ_CHECK(f->elements == n);
	FUZZ_CHECK(f->dtype.size > 0);
	FUZZ_CHECK(f->bytes / f->dtype.size == n);
	FUZZ_CHECK(f->bytes <= INT64_MAX - f->data);
	/* A type is spelled so that it is read again. */
	FUZZ_CHECK(dtype_descr(&f->dtype, text, sizeof text) < sizeof text);
	FUZZ_CHECK(dtype_parse(text, &d, &ignored) == 0);
	FUZZ_CHECK(dtype_equal(&d, &f->dtype));
}

/* The same dictionary in a file that is right. */
static void with_header(const uint8_t *data, size_t size)
{
	size_t n = size < 4096 ? size : 4096;
	struct error err = {0};
	struct npy_file f;
	uint8_t *copy = malloc(10 + n);

	memcpy(copy, "\x93NUMPY\1\0", 8);
	copy[8] = (uint8_t)n;
	copy[9] = (uint8_t)(n >> 8);
	if (n)
		memcpy(copy + 10, data, n);
	if (npy_read(copy, 10 + n, &f, &err) == 0)
		check(&f, 10 + n);
	else
		FUZZ_CHECK((err.code == -EBADMSG || err.code == -ENOTSUP) &&
			   *err.text);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct npy_file f;
	uint8_t *copy = malloc(size ? size : 1); /* of exactly this size */

	if (size)
		memcpy(copy, data, size);
	if (npy_read(copy, size, &f, &err) == 0)
		check(&f, size);
	else
		FUZZ_CHECK((err.code == -EBADMSG || err.code == -ENOTSUP) &&
			   *err.text);
	free(copy);
	with_header(data, size);
	return 0;
}
