/* SPDX-License-Identifier: BSD-2-Clause */
/* The schema of a Parquet file: which columns there are, and of which types. */
#ifndef SOURCE_PARQUET_SCHEMA_H
#define SOURCE_PARQUET_SCHEMA_H

#include "source/parquet_meta.h"
#include "source/thrift.h"

/* The list of SchemaElement at `f`: leaves in order become columns of `m`, which had
 * none.  -EBADMSG, -ENOMEM. */
int parquet_schema_read(struct thrift *t, const struct thrift_field *f,
			struct parquet_meta *m, struct error *err);

#endif
