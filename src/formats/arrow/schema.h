/* SPDX-License-Identifier: BSD-2-Clause */
/* The columns that an Arrow IPC file declares, and where a batch has them. */
#ifndef FORMATS_ARROW_SCHEMA_H
#define FORMATS_ARROW_SCHEMA_H

#include "base/error.h"
#include "base/json.h"
#include "formats/arrow/cell.h"
#include "formats/arrow/flat.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

/* The format is described at arrow.apache.org/docs/format/Columnar.html and in
 * Schema.fbs and Message.fbs of Apache Arrow. */
enum arrow_kind {
	ARROW_NUMBERS, /* elements side by side */
	ARROW_BITS,    /* booleans, eight in a byte, the lowest bit first */
	/* Offsets into a buffer of bytes: strings, or blobs. */
	ARROW_TEXT,
	ARROW_LISTS, /* offsets into a buffer of numbers */
	/* Any other type that `cell` describes: see formats/arrow/cells.c. */
	ARROW_CELLS,
	ARROW_NOT /* cannot be shown; why_not is the reason */
};
struct arrow_column {
	char *name;
	enum arrow_kind kind;
	const char *why_not;
	struct dtype dtype; /* type of an element */
	char *note;         /* what the type means, or NULL */
	json_t *attributes; /* an object whose values are strings */
	/* The type of its rows, unless `cell_why` says why that type is not supported;
	 * `all`: the nodes, buffers and views that the column takes in a batch. */
	struct arrow_cell cell;
	const char *cell_why;
	struct arrow_counts all;
	char what[96]; /* CELLS: the type in words */
	bool wide;     /* TEXT, LISTS: offsets of 8 bytes, else of 4 */
	/* TEXT: it is a member of a structure, whose node and validity buffer are: */
	bool inside;
	uint32_t outer_node, outer;
	/* LISTS: the type of an item; `dtype` refers to it. */
	struct dtype_field item;
	unsigned rank; /* axes of a row, and their lengths: */
	uint64_t shape[RANK_MAX - 1];
	uint64_t per_row; /* elements in a row */
	/* In a batch: the number of its first node; how many of its nodes are checked;
	 * the number of its validity buffer, which its other buffers follow; how many
	 * view fields lie in front of it (each of them may have further buffers). */
	uint32_t node, nodes, buffer, views;
	/* List size of each node but the last. */
	uint64_t lists[RANK_MAX - 1];
};
struct arrow_schema {
	struct arrow_column *at;
	uint32_t n;
	struct arrow_counts all; /* what a batch consists of */
};
/* Return true if each row has a length of its own. */
static inline bool arrow_varies(const struct arrow_column *c)
{
	return c->kind == ARROW_TEXT || c->kind == ARROW_LISTS ||
	       (c->kind == ARROW_CELLS && !dtype_is_binary(&c->dtype));
}
/* Show a column by its cells: one that cannot be an array by its own type, or one whose
 * nulls must be visible.  Returns false if its cells cannot be shown, either. */
bool arrow_column_as_cells(struct arrow_column *c, bool nulls);
/* Show the strings of a column as files of their bytes. */
void arrow_column_as_blob(struct arrow_column *c);
/* Read the table Schema; `version` is the number in the message.  Returns 0, -EBADMSG,
 * -ENOTSUP or -ENOMEM; after a failure *out need not be freed. */
int arrow_schema_read(const struct flat_table *t, int64_t version,
		      struct arrow_schema *out, struct error *err);
void arrow_schema_free(struct arrow_schema *s);

enum arrow_message { ARROW_SCHEMA = 1, ARROW_DICTIONARY, ARROW_BATCH };
/* The root of a message's metadata: the part that all kinds of messages share.
 * arrow_head_read returns 0 or -EBADMSG. */
struct arrow_head {
	uint64_t type; /* enum arrow_message, or another number */
	int64_t version;
	uint64_t body; /* bytes that follow the metadata */
	struct flat_table header;
};
int arrow_head_read(struct flat *f, struct arrow_head *out, struct error *err);

enum arrow_codec { ARROW_PLAIN, ARROW_LZ4, ARROW_ZSTD };
/* Where a column's bytes are in a batch; positions count from the beginning of its
 * body. */
struct arrow_piece {
	uint64_t rows;
	uint64_t pos, size; /* of the data, in bytes */
	/* TEXT, LISTS: where the offsets are. */
	uint64_t offsets, offsets_size;
	/* Blobs, LISTS: the validity bits of the rows, and of the structures that they
	 * are in; size is 0 if no row is null. */
	struct {
		uint64_t pos, size;
	} valid[2];
	uint64_t nulls; /* nulls that cannot be shown */
};
struct arrow_batch {
	uint64_t rows;
	enum arrow_codec codec;
	struct flat_vector nodes, buffers, more;
};
/* Read the table RecordBatch, which must have the nodes, buffers and views of `all`.
 * Each of its buffers is checked to lie in the body, which has `body` bytes.  Returns 0,
 * -EBADMSG, or -ENOTSUP for an unknown compression. */
int arrow_batch_read(const struct flat_table *t, uint64_t body,
		     const struct arrow_counts *all, struct arrow_batch *out,
		     struct error *err);
/* The number of variadic buffers of view field `i` (variadicBufferCounts of
 * Message.fbs). */
uint64_t arrow_batch_more(const struct arrow_batch *b, uint32_t i);
/* Set *pos and *size to where buffer `i` is in the body; `i` does not count the variadic
 * buffers of the `views` view fields in front of it. */
void arrow_batch_buffer(const struct arrow_batch *b, uint32_t i, uint32_t views,
			uint64_t *pos, uint64_t *size);
void arrow_batch_node(const struct arrow_batch *b, uint32_t i, uint64_t *rows,
		      uint64_t *nulls);
/* Find where column `c` is in batch `b`.  Returns 0, or -EBADMSG if the batch has too few
 * values or bytes for its rows. */
int arrow_piece_read(const struct arrow_batch *b, const struct arrow_column *c,
		     struct arrow_piece *out, struct error *err);

#endif
