/* SPDX-License-Identifier: BSD-2-Clause */
/* What the header of a .safetensors file says. */
#ifndef FORMATS_SAFETENSORS_HEADER_H
#define FORMATS_SAFETENSORS_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "tensor/dtype.h"

/* Bytes of JSON at most; the format's own limit. */
#define SAFETENSORS_HEADER_MOST UINT64_C(100000000)

struct safetensor {
	char *name;
	const char *why_not; /* it cannot be shown, because; or NULL */
	struct dtype dtype;  /* nothing where it cannot be shown */
	unsigned rank;
	uint64_t *shape;
	uint64_t begin, end; /* bytes of the buffer, [begin, end) */
};
struct safetensors {
	struct safetensor *at; /* in order of `begin` */
	size_t n, room;
	json_t *metadata; /* text by name; or NULL */
};
/*
 * From the `n` bytes of JSON; `bytes` is what the buffer behind it has.  The rules are
 * those of the reference reader: the buffer is covered, without holes and overlaps; no
 * name twice; type and shape agree with the bytes.  -EBADMSG with a sentence that
 * names no file, -ENOMEM.
 */
int safetensors_read(const char *text, size_t n, uint64_t bytes,
		     struct safetensors *out, struct error *err);
void safetensors_free(struct safetensors *s);

#endif
