/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a .safetensors file. */
#ifndef FORMATS_SAFETENSORS_HEADER_H
#define FORMATS_SAFETENSORS_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "tensor/dtype.h"

/* Limit of the header in bytes, set by the format. */
#define SAFETENSORS_HEADER_MOST UINT64_C(100000000)

struct safetensor {
	char *name;
	const char *why_not; /* why it cannot be shown, or NULL */
	struct dtype dtype;  /* all zeros if it cannot be shown */
	unsigned rank;
	uint64_t *shape;
	uint64_t begin, end; /* its bytes in the buffer, [begin, end) */
};
struct safetensors {
	struct safetensor *at; /* in order of `begin` */
	size_t n, room;
	json_t *metadata; /* an object with strings, or NULL */
};
/*
 * Parse the `n` bytes of JSON of a header, behind which the buffer has `bytes`
 * bytes.  The rules are those of the reference reader: the buffer is covered
 * without holes and overlaps, no name is there twice, type and shape agree with the
 * bytes.  Return 0, -EBADMSG with a sentence that names no file, or -ENOMEM.  The
 * caller frees *out after success.
 */
int safetensors_read(const char *text, size_t n, uint64_t bytes,
		     struct safetensors *out, struct error *err);
void safetensors_free(struct safetensors *s);

#endif
