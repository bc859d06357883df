/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrow IPC: what is kept of a file between reading its head and its columns. */
#ifndef FORMATS_ARROW_PRIVATE_H
#define FORMATS_ARROW_PRIVATE_H

#include "base/vec.h"
#include "formats/arrays.h"
#include "formats/arrow/schema.h"
#include "formats/column_labels.h"

/* A batch, for what has to look at it again. */
struct arrow_kept {
	char *metadata; /* owned */
	struct flat flat;
	struct arrow_batch batch;
	uint64_t body; /* where in the file it begins */
	/* Batches of dictionaries in front of it; those behind it do not count. */
	uint64_t time;
};
/* Values of a dictionary, behind `first` others. */
struct arrow_addition {
	const struct arrow_kept *kept;
	uint64_t first;
	bool delta; /* to what was before; else in its place */
};
struct arrow_dictionary {
	int64_t id;
	const struct arrow_cell *cell; /* the first that has it; the schema's */
	vec(struct arrow_addition) batches;
};
/* A column's part of one batch, at places of the file. */
struct arrow_part {
	struct arrow_piece piece;
	enum arrow_codec codec;
	const struct arrow_kept *batch;
};
struct arrow_own {
	const struct arrow_column *column; /* the source's */
	vec(struct arrow_part) parts;      /* those that have rows */
};
struct arrow {
	struct arrays arrays; /* first member */
	struct arrow_schema schema;
	uint64_t rows;
	struct arrow_own **own; /* of each column; moves to its array */
	vec(struct arrow_kept *) kept;
	vec(struct arrow_dictionary) dictionaries;
	struct column_labels labels;
	uint64_t time; /* batches of them, so far */
	bool is_file;  /* in which all of them count everywhere */
};

/* A batch that was read from `metadata`, which is owned, also when it fails. */
int arrow_keep(struct arrow *s, const struct arrow_head *h, char *metadata,
	       size_t n, uint64_t body, const struct arrow_counts *all,
	       struct arrow_kept **out, struct error *err);
/* Forget all batches and dictionaries. */
void arrow_forget(struct arrow *s);
/* Learn which dictionaries the schema has. */
int arrow_dictionaries_find(struct arrow *s, struct error *err);
/* A message of values; the metadata as in arrow_keep. */
int arrow_dictionary_add(struct arrow *s, const struct arrow_head *h,
			 char *metadata, size_t n, uint64_t body,
			 struct error *err);
/* What a dictionary consists of at that time, in order; how many. */
size_t arrow_dictionary_at(const struct arrow *s, int64_t id, uint64_t time,
			   const struct arrow_addition **out);

/* What a writer may have aligned a buffer to. */
#define ARROW_PADDING 4096
/* A compressed buffer of a batch. */
struct arrow_buffer {
	const struct arrays *s;
	enum arrow_codec codec;
	uint64_t pos, size;   /* in the file */
	uint64_t least, most; /* bytes that it may decode to */
	bool once;            /* it will not be wanted again soon */
};
/* How many bytes it decodes to; *plain: or has, ARROW_PREFIX bytes behind its place.
 * -EBADMSG: not `least` to `most`, or not so many from so few; -ENOTSUP: too many;
 * errors of arrays_read. */
int arrow_buffer_size(const struct arrow_buffer *b, uint64_t *out, bool *plain,
		      struct error *err);
#define ARROW_PREFIX 8
/* Bytes [from, from + n) of it, decoded (malloc'ed).  When another thread is decoding it,
 * its data are waited for, or its error.  *decoded, which may be NULL: the bytes that
 * this call decoded, 0 when another one had or did.  As above; errors of unpack; -ENOMEM. */
int arrow_buffer_part(const struct arrow_buffer *b, uint64_t from, uint64_t n,
		      unsigned char **out, uint64_t *decoded,
		      struct error *err);
/* Of a source that is about to be freed, and that nobody reads any more. */
void arrow_buffers_forget(const struct arrays *of);
/* Of a batch's compressed values, decoded. */
#define ARROW_VALUES_MOST (UINT64_C(1) << 30)
/* Of columns that are cells: one number a row; anything else. */
extern const struct array_ops arrow_cells_number_ops, arrow_cells_ops;
/* The layout of one part. */
int arrow_cells_layout(const struct arrow *s, const struct arrow_column *c,
		       const struct arrow_part *p, struct array_layout *out,
		       struct error *err);
/* Bytes of a row on average. */
uint64_t arrow_cells_mean(const struct arrow *s, const struct arrow_own *own);
/* Of columns whose rows vary. */
extern const struct array_ops arrow_values_ops;
uint64_t arrow_values_mean(const struct arrow_own *own);
/* Is looking at one of them work? */
bool arrow_values_costly(const struct array *a);
/* array_ops of all of them. */
json_t *arrow_own_attributes(const struct array *a);
void arrow_own_done(struct array *a);
/* The array of column `i`, from its parts. */
int arrow_array(struct arrow *s, uint32_t i, struct array **out,
		struct error *err);
void arrow_own_free(struct arrow_own *own);
/* NULL: no memory. */
struct arrow_own *arrow_own_copy(const struct arrow_own *own);

#endif
