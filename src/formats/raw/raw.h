/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw binary files, whose layout the user describes. */
#ifndef FORMATS_RAW_RAW_H
#define FORMATS_RAW_RAW_H

#include "formats/source.h"
#include "tensor/dtype.h"

extern const struct source_ops source_raw;

/* A file is `offset` bytes, then records; a record is a header, one array and a
 * footer. */
struct raw_spec {
	struct dtype dtype;
	unsigned rank; /* axes of the array in a record; 0: one element */
	uint64_t shape[RANK_MAX];
	uint64_t offset, header, footer; /* in bytes */
	/* Number of records; 0: as many as there are. */
	uint64_t count;
	bool fortran;
};
/* Parse a text such as
 * "dtype=u2,shape=256x256,header=64,footer=0,offset=1024,order=C,count=9", in any
 * order; only dtype must be there.  Return 0, -EINVAL with a sentence, or -ENOMEM. */
int raw_parse(const char *text, struct raw_spec *out, struct error *err);
/* source_ops.open; a->raw is such a text. */
int raw_open(const struct source_args *a, struct source **out,
	     struct error *err);

#endif
