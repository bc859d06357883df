/* SPDX-License-Identifier: BSD-2-Clause */
/* Element types: kind, size, byte order; their NumPy spelling. */
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/recode.h"
#include "extent/plan.h"

enum dtype_kind {
	DTYPE_INT, /* two's complement, 1 2 4 8 bytes */
	DTYPE_UINT,
	DTYPE_FLOAT,   /* IEEE 754 binary16, 32, 64; 16 bytes: x87 extended */
	DTYPE_COMPLEX, /* two floats (r, i) of 4, 8 or 16 bytes each */
	DTYPE_BOOL,    /* one byte, 0 or 1 */
	DTYPE_BYTES,   /* fixed-length string inside a structure: NumPy 'S' */
	DTYPE_OPAQUE,  /* bytes without meaning: NumPy 'V' */
	DTYPE_STRUCT,  /* named fields at offsets */
	/* Kinds from here on cannot be a NumPy array: */
	DTYPE_STRING, /* text, a line for each value; size: stored bytes */
	DTYPE_TEXT,   /* values that are shown as a line of JSON each */
	DTYPE_RAGGED, /* sequences that differ in length: a .npy file each */
	DTYPE_BLOB,   /* byte strings that differ in length: a file each */
	DTYPE_OTHER   /* not shown */
};
/* How a string that is shorter than its place is padded. */
enum dtype_padding { PADDED_NULS, PADDED_AFTER_NUL, PADDED_SPACES };
struct dtype_field;
/*
 * Plain data.  The pointers belong to the source that made the type, and stay valid as
 * long as the tree.
 */
struct dtype {
	enum dtype_kind kind;
	uint32_t size;   /* bytes of one element */
	bool big_endian; /* false where it does not matter */
	bool vlen;       /* DTYPE_STRING of variable length */
	uint8_t padding; /* DTYPE_BYTES: enum dtype_padding; NumPy's is 0 */
	uint32_t nfields;
	/* DTYPE_STRUCT: the fields, sorted by offset, not overlapping.  DTYPE_RAGGED:
	 * one field, the element of a sequence. */
	const struct dtype_field *fields;
	/* How the file describes the type, for people: "bfloat16, shown as its bits",
	 * "enum: RED = 0, GREEN = 1".  NULL when the kind says it all. */
	const char *text;
};
struct dtype_field {
	const char *name;
	uint32_t offset;
	uint32_t rank; /* axes of a subarray; 0: a single element */
	const uint64_t *dims;
	struct dtype type;
	/* For a field of an array of structures: bytes from one element to the next
	 * along each axis.  NULL: elements lie side by side, as in all of a dtype's
	 * `fields`. */
	const uint64_t *strides;
	const char *title; /* NumPy's second name for the field, or NULL */
	/* Place of the field in the order in which its file declares the fields, which
	 * need not be that of their offsets.  All 0: the two orders are the same. */
	uint32_t declared;
};

/* Can values of this type be a NumPy array? */
static inline bool dtype_is_binary(const struct dtype *d)
{
	return d->kind < DTYPE_STRING;
}
/* Set *count to the elements of a field's subarray and *size to their bytes.  Return
 * false if a product overflows. */
bool dtype_field_size(const struct dtype_field *f, uint64_t *count,
		      uint64_t *size);
/* Do two fields have the same offset and the same subarray?  Types are not compared. */
bool dtype_same_place(const struct dtype_field *a, const struct dtype_field *b);
/* Do two types have the same layout, names, byte order and description (`text`)? */
bool dtype_equal(const struct dtype *a, const struct dtype *b);
/* Write the indices of a type's fields in the order in which the file declares them;
 * `out` has room for d->nfields. */
void dtype_declared(const struct dtype *d, uint32_t *out);
/* Write NumPy's descr without quotes: "<f4", "|b1", "|V12".  Structures are spelled as
 * np.save does, "[('a', '<i4'), ('', '|V4'), ('b', '<f8', (3,))]": padding is a
 * nameless void, as in NumPy's dtype.descr, and a title makes a tuple of the name.
 * Strings are "str", TEXT is "json", ragged types "<f4 sequence", blobs "bytes", others
 * d->text.  The text is always terminated; return its length before any truncation, as
 * snprintf. */
size_t dtype_descr(const struct dtype *d, char *buf, size_t n);
/* Write the type's name for people: "float32", "complex64", "bool", "string", "opaque
 * of 12 bytes", "structure of 3 fields", "sequence of float32", "longdouble". */
void dtype_name(const struct dtype *d, char *buf, size_t n);

/*
 * Describe how stored elements become served ones: fields in the other byte order are
 * swapped, numbers of another type are converted, and `field` (may be NULL) is taken
 * out of a structure (`served` is then the type of the field, with all elements of its
 * subarray).  Return false when a recode cannot express it (too many swaps).
 */
bool dtype_recode(const struct dtype *stored, const struct dtype *served,
		  const struct dtype_field *field, struct recode *out);
/* Describe how to take the field out of a structure, its bytes unchanged.  Return false
 * when a recode cannot express it. */
bool dtype_take_field(const struct dtype *stored,
		      const struct dtype_field *field, struct recode *out);

/*
 * A .npy header as np.save writes it: version 1; version 2 where it is longer than 65
 * 535 bytes; version 3 for names that are not Latin-1.  It is kept in three pieces,
 * because structures have long descriptions and plans have little room: `front` and
 * `back` are stored here, `descr` is borrowed.  Source: numpy/lib/format.py 1.24.
 */
#define NPY_BACK_MAX 960
struct npy_header {
	size_t total; /* bytes of the header, a multiple of 64 */
	unsigned char front[24];
	size_t front_len;
	const char *descr;
	size_t descr_len;
	char simple[16]; /* the descr of types that are not structures */
	char back[NPY_BACK_MAX];
	size_t back_len;
};
/* Make the header.  `descr` is the dtype_descr of a structure, which must outlive the
 * header; NULL for other types.  Return false when the shape is too long for `back`. */
bool dtype_npy_header(const struct dtype *d, const char *descr, unsigned rank,
		      const uint64_t *shape, struct npy_header *out);
/* Append the header's bytes from `off` (< total) on to the plan; return how many were
 * appended. */
uint64_t dtype_npy_map(const struct npy_header *h, uint64_t off,
		       struct plan *plan);
/* Write the whole header into `buf`, which has h->total bytes. */
void dtype_npy_write(const struct npy_header *h, void *buf);

/* Write a shape as NumPy prints it: "(3, 4)", "(5,)", "()". */
void dtype_shape_text(const uint64_t *shape, unsigned rank, char *buf,
		      size_t n);

#endif
