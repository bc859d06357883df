/* SPDX-License-Identifier: BSD-2-Clause */
/* What an Arrow IPC file says of its columns and of one batch of rows. */
#ifndef FORMATS_ARROW_SCHEMA_H
#define FORMATS_ARROW_SCHEMA_H

#include "base/error.h"
#include "base/json.h"
#include "formats/arrow/cell.h"
#include "formats/arrow/flat.h"
#include "tensor/dtype.h"
#include "tensor/grid.h"

/* Format: arrow.apache.org/docs/format/Columnar.html, Schema.fbs, Message.fbs. */
enum arrow_kind {
	ARROW_NUMBERS, /* elements side by side */
	ARROW_BITS,    /* booleans, eight in a byte, the lowest bit first */
	ARROW_TEXT,    /* offsets, and where they lead: strings, or blobs */
	ARROW_LISTS,   /* the same, of numbers */
	ARROW_CELLS, /* anything else that `cell` says: formats/arrow/cells.c */
	ARROW_NOT    /* cannot be shown: why_not */
};
struct arrow_column {
	char *name;
	enum arrow_kind kind;
	const char *why_not;
	struct dtype dtype; /* of an element */
	char *note;         /* what the type means, or NULL */
	json_t *attributes; /* text by name */
	/* What its rows are, unless `cell_why`, and how much of a batch they take. */
	struct arrow_cell cell;
	const char *cell_why;
	struct arrow_counts all;
	char what[96]; /* CELLS: that in words */
	bool wide;     /* TEXT, LISTS: offsets of 8 bytes, else of 4 */
	bool inside;   /* TEXT: in a structure, whose node and validity are: */
	uint32_t outer_node, outer;
	struct dtype_field item; /* LISTS: what `dtype` is a sequence of */
	unsigned rank;           /* axes of a row; */
	uint64_t shape[RANK_MAX - 1];
	uint64_t per_row; /* elements in a row */
	/* In a batch: its first node, how many are looked at; its validity, which its
	 * other buffers follow; columns in front of it that have more of them. */
	uint32_t node, nodes, buffer, views;
	uint64_t lists[RANK_MAX - 1]; /* of all nodes but the last: size */
};
struct arrow_schema {
	struct arrow_column *at;
	uint32_t n;
	struct arrow_counts all; /* of a batch */
};
/* Each row has a length of its own. */
static inline bool arrow_varies(const struct arrow_column *c)
{
	return c->kind == ARROW_TEXT || c->kind == ARROW_LISTS ||
	       (c->kind == ARROW_CELLS && !dtype_is_binary(&c->dtype));
}
/* A column that is no array by itself, or has nulls that need to be seen, as its cells.
 * False: these are not shown, either. */
bool arrow_column_as_cells(struct arrow_column *c, bool nulls);
/* Strings as files of their bytes. */
void arrow_column_as_blob(struct arrow_column *c);
/* The table Schema; `version` as the message has it.  -EBADMSG, -ENOTSUP, -ENOMEM. */
int arrow_schema_read(const struct flat_table *t, int64_t version,
		      struct arrow_schema *out, struct error *err);
void arrow_schema_free(struct arrow_schema *s);

enum arrow_message { ARROW_SCHEMA = 1, ARROW_DICTIONARY, ARROW_BATCH };
/* The root of a message's metadata, checked as far as all messages are alike. */
struct arrow_head {
	uint64_t type; /* enum arrow_message, or another number */
	int64_t version;
	uint64_t body; /* bytes that follow the metadata */
	struct flat_table header;
};
int arrow_head_read(struct flat *f, struct arrow_head *out, struct error *err);

enum arrow_codec { ARROW_PLAIN, ARROW_LZ4, ARROW_ZSTD };
/* Where a column's bytes are in a batch: in its body. */
struct arrow_piece {
	uint64_t rows;
	uint64_t pos, size;             /* of the data */
	uint64_t offsets, offsets_size; /* TEXT, LISTS */
	/* Blobs, LISTS: bits of the rows that are not null, and of the structures
	 * that they are in; size 0: none is. */
	struct {
		uint64_t pos, size;
	} valid[2];
	uint64_t nulls; /* that cannot be shown */
};
struct arrow_batch {
	uint64_t rows;
	enum arrow_codec codec;
	struct flat_vector nodes, buffers, more;
};
/* The table RecordBatch, which has to have what `all` says; every buffer lies in the
 * body, of `body` bytes. */
int arrow_batch_read(const struct flat_table *t, uint64_t body,
		     const struct arrow_counts *all, struct arrow_batch *out,
		     struct error *err);
/* Of fields of views, number i: buffers that it has beyond the usual. */
uint64_t arrow_batch_more(const struct arrow_batch *b, uint32_t i);
/* Buffer i, with `views` such fields in front of it: where in the body it is. */
void arrow_batch_buffer(const struct arrow_batch *b, uint32_t i, uint32_t views,
			uint64_t *pos, uint64_t *size);
void arrow_batch_node(const struct arrow_batch *b, uint32_t i, uint64_t *rows,
		      uint64_t *nulls);
/* -EBADMSG: the column does not have what its rows take. */
int arrow_piece_read(const struct arrow_batch *b, const struct arrow_column *c,
		     struct arrow_piece *out, struct error *err);

#endif
