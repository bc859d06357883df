/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a .npy file: what its header says is possible. */
#include <errno.h>

#include "fuzz.h"
#include "tensor/dtype_parse.h"
#include "tensor/npy_literal.h"
#include "tensor/npy_read.h"

/* Dates are spelled as the integers that they are shown as. */
static bool has_dates(const struct dtype *d)
{
	for (uint32_t i = 0; i < d->nfields; i++)
		if (has_dates(&d->fields[i].type))
			return true;
	return d->text;
}

/* A type is spelled so that it is read again. */
static void spell(const struct npy_file *f)
{
	size_t n = dtype_descr(&f->dtype, NULL, 0) + 1;
	char *text = malloc(n);
	struct error ignored;
	struct npy_text t;
	struct intern in;
	struct dtype d;

	intern_init(&in);
	FUZZ_CHECK(dtype_descr(&f->dtype, text, n) == n - 1);
	t = (struct npy_text){text, text + n - 1, true};
	if (f->dtype.kind == DTYPE_STRUCT)
		FUZZ_CHECK(npy_take_fields(&t, &in, &d, &ignored) == 0 &&
			   npy_ends(&t));
	else
		FUZZ_CHECK(dtype_parse(text, &d, &ignored) == 0);
	FUZZ_CHECK(dtype_equal(&d, &f->dtype) || has_dates(&f->dtype));
	intern_free(&in);
	free(text);
}

static void check(const struct npy_file *f, size_t size)
{
	uint64_t n = 1;
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
	spell(f);
}

static void try(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct npy_file f;
	struct intern in;

	intern_init(&in);
	if (npy_read(data, size, &in, &f, &err) == 0)
		check(&f, size);
	else
		FUZZ_CHECK((err.code == -EBADMSG || err.code == -ENOTSUP) &&
			   *err.text);
	intern_free(&in);
}

/* The same dictionary in a file that is right. */
static void with_header(const uint8_t *data, size_t size)
{
	size_t n = size < 4096 ? size : 4096;
	uint8_t *copy = malloc(10 + n);

	memcpy(copy, "\x93NUMPY\1\0", 8);
	copy[8] = (uint8_t)n;
	copy[9] = (uint8_t)(n >> 8);
	if (n)
		memcpy(copy + 10, data, n);
	try(copy, 10 + n);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = calloc(1, size ? size : 1); /* of exactly this size */

	if (size)
		memcpy(copy, data, size);
	try(copy, size);
	free(copy);
	with_header(data, size);
	return 0;
}
