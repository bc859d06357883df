/* SPDX-License-Identifier: BSD-2-Clause */
/* What an Arrow source keeps between opening its file and reading its columns. */
#ifndef FORMATS_ARROW_PRIVATE_H
#define FORMATS_ARROW_PRIVATE_H

#include "base/vec.h"
#include "formats/arrays.h"
#include "formats/arrow/schema.h"
#include "formats/column_labels.h"

/* A record batch whose metadata are kept, because reads of its columns need them
 * again. */
struct arrow_kept {
	char *metadata; /* malloc'ed, owned */
	struct flat flat;
	struct arrow_batch batch;
	uint64_t body; /* position of its body in the file */
	/* Number of dictionary batches in front of it; dictionary batches behind it do
	 * not count for it.  UINT64_MAX in a file, where all of them count. */
	uint64_t time;
};
/* Values that one dictionary batch adds: they are the values from number `first` on. */
struct arrow_addition {
	const struct arrow_kept *kept;
	uint64_t first;
	bool delta; /* added to the values before; else it replaces them */
};
struct arrow_dictionary {
	int64_t id;
	/* The first cell with this dictionary; owned by the schema. */
	const struct arrow_cell *cell;
	vec(struct arrow_addition) batches;
};
/* What one batch holds of one column; positions count from the beginning of the file. */
struct arrow_part {
	struct arrow_piece piece;
	enum arrow_codec codec;
	const struct arrow_kept *batch;
};
struct arrow_own {
	const struct arrow_column *column; /* owned by the source */
	/* One for each batch that has rows. */
	vec(struct arrow_part) parts;
};
struct arrow {
	struct arrays arrays; /* first member */
	struct arrow_schema schema;
	uint64_t rows;
	/* One for each column, until its array owns it. */
	struct arrow_own **own;
	vec(struct arrow_kept *) kept;
	vec(struct arrow_dictionary) dictionaries;
	struct column_labels labels;
	uint64_t time; /* dictionary batches read so far */
	/* The file format: all dictionary batches count for all batches. */
	bool is_file;
};

/* Read the batch whose metadata are `metadata` and keep it in s->kept; the source owns
 * it.  The function takes ownership of `metadata` (malloc'ed), also when it fails.
 * Returns 0, -EBADMSG, -ENOTSUP or -ENOMEM. */
int arrow_keep(struct arrow *s, const struct arrow_head *h, char *metadata,
	       size_t n, uint64_t body, const struct arrow_counts *all,
	       struct arrow_kept **out, struct error *err);
/* Free all batches and dictionaries that are kept. */
void arrow_forget(struct arrow *s);
/* Fill s->dictionaries with the dictionaries of the schema, without values.  Returns 0,
 * -EBADMSG if two columns use one number for dictionaries of different types, or
 * -ENOMEM. */
int arrow_dictionaries_find(struct arrow *s, struct error *err);
/* Read a dictionary batch and add it to its dictionary.  Takes ownership of `metadata` as
 * arrow_keep does. */
int arrow_dictionary_add(struct arrow *s, const struct arrow_head *h,
			 char *metadata, size_t n, uint64_t body,
			 struct error *err);
/* Set *out to the batches that make up dictionary `id` for a batch of that `time`, in the
 * order of their values; return how many there are.  *out belongs to the source. */
size_t arrow_dictionary_at(const struct arrow *s, int64_t id, uint64_t time,
			   const struct arrow_addition **out);

/* Most bytes by which writers pad a buffer. */
#define ARROW_PADDING 4096
/* A compressed buffer of a batch. */
struct arrow_buffer {
	const struct arrays *s;
	enum arrow_codec codec;
	/* Position and length in the file, in bytes. */
	uint64_t pos, size;
	uint64_t least, most; /* how many bytes it may decode to */
	/* Do not keep it decoded: it is not wanted again soon. */
	bool once;
};
/* Set *out to the number of bytes that the buffer decodes to.  *plain is set if the
 * buffer is stored uncompressed, ARROW_PREFIX bytes behind its position.  Returns 0;
 * -EBADMSG if that number is not within `least` and `most`, or cannot come from so few
 * bytes; -ENOTSUP if it is too large; or an error of arrays_read. */
int arrow_buffer_size(const struct arrow_buffer *b, uint64_t *out, bool *plain,
		      struct error *err);
#define ARROW_PREFIX 8
/* Set *out (malloc'ed, owned by the caller) to the decoded bytes [from, from + n) of the
 * buffer.  If another thread is decoding it, wait for that thread's data or error.
 * *decoded, if not NULL, is set to the number of bytes that this call decoded: 0 if
 * another call had done it.  Errors: those of arrow_buffer_size and of unpack,
 * -ENOMEM. */
int arrow_buffer_part(const struct arrow_buffer *b, uint64_t from, uint64_t n,
		      unsigned char **out, uint64_t *decoded,
		      struct error *err);
/* Free the decoded buffers of a source that is about to be freed; no read of it may be
 * running. */
void arrow_buffers_forget(const struct arrays *of);
/* Most bytes that a batch's compressed values may decode to, where nothing tells their
 * size. */
#define ARROW_VALUES_MOST (UINT64_C(1) << 30)
/* Operations of columns of kind ARROW_CELLS: those with one number in each row, and all
 * others. */
extern const struct array_ops arrow_cells_number_ops, arrow_cells_ops;
/* Set *out to the layout of one part.  Returns 0, or -ENOTSUP if its batch is too
 * large. */
int arrow_cells_layout(const struct arrow *s, const struct arrow_column *c,
		       const struct arrow_part *p, struct array_layout *out,
		       struct error *err);
/* Bytes of a row on average, in the part where the average is largest; an estimate. */
uint64_t arrow_cells_mean(const struct arrow *s, const struct arrow_own *own);
/* Operations of columns of kind ARROW_TEXT and ARROW_LISTS, whose rows vary in length. */
extern const struct array_ops arrow_values_ops;
uint64_t arrow_values_mean(const struct arrow_own *own);
/* Return true if reading the first value means decoding a large buffer. */
bool arrow_values_costly(const struct array *a);
/* Functions for `attributes` and `free` of the array_ops of all kinds of columns. */
json_t *arrow_own_attributes(const struct array *a);
void arrow_own_done(struct array *a);
/* Make the array of column `i` from its parts; the array becomes the owner of s->own[i],
 * which is NULL then.  Returns 0 or -errno. */
int arrow_array(struct arrow *s, uint32_t i, struct array **out,
		struct error *err);
void arrow_own_free(struct arrow_own *own);
/* Return a copy, or NULL if memory is short. */
struct arrow_own *arrow_own_copy(const struct arrow_own *own);

#endif
