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
	/* From here on there is no NumPy array of it: */
	DTYPE_STRING, /* text, shown one value a line; size = stored bytes */
	DTYPE_TEXT,   /* anything that is shown as a line of JSON */
	DTYPE_RAGGED, /* sequences of their own length: a .npy each */
	DTYPE_BLOB,   /* bytes of their own length: a file each, as they are */
	DTYPE_OTHER   /* not shown */
};
/* How a string that is shorter than its place ends. */
enum dtype_padding { PADDED_NULS, PADDED_AFTER_NUL, PADDED_SPACES };
struct dtype_field;
/*
 * Plain data; the pointers belong to whoever made the type (the source) and
 * stay valid as long as the tree.
 */
struct dtype {
	enum dtype_kind kind;
	uint32_t size;   /* bytes of one element */
	bool big_endian; /* false where it does not matter */
	bool vlen;       /* DTYPE_STRING of variable length */
	uint8_t padding; /* DTYPE_BYTES: enum dtype_padding; NumPy's is 0 */
	uint32_t nfields;
	/* DTYPE_STRUCT: by offset, not overlapping; DTYPE_RAGGED: one, what a
	 * sequence consists of. */
	const struct dtype_field *fields;
	/* What the file says it is, for people: "bfloat16, shown as its bits",
	 * "enum: RED = 0, GREEN = 1"; NULL when the kind says it all. */
	const char *text;
};
struct dtype_field {
	const char *name;
	uint32_t offset;
	uint32_t rank; /* a subarray's axes */
	const uint64_t *dims;
	struct dtype type;
	/* Of a field of an array of structures: bytes from one element to the
	 * next along each axis.  NULL: they lie side by side, as those of a
	 * dtype's `fields` always do. */
	const uint64_t *strides;
	const char *title; /* NumPy's second name for it, or NULL */
	/* Which one it is in the order that its file declares them in, which need
	 * not be that of their offsets; all 0: it is. */
	uint32_t declared;
};

/* Is there a NumPy array of it? */
static inline bool dtype_is_binary(const struct dtype *d)
{
	return d->kind < DTYPE_STRING;
}
/* Bytes of a field with all elements of its subarray; false: no number. */
bool dtype_field_size(const struct dtype_field *f, uint64_t *count,
		      uint64_t *size);
/* The same place and number; the type is not looked at. */
bool dtype_same_place(const struct dtype_field *a, const struct dtype_field *b);
/* The same layout, names and order of bytes, and the same to people (`text`). */
bool dtype_equal(const struct dtype *a, const struct dtype *b);
/* Numbers of a type's fields in the order that they are declared in; `out` has room
 * for d->nfields. */
void dtype_declared(const struct dtype *d, uint32_t *out);
/* NumPy's descr without quotes: "<f4", "|b1", "|V12"; structures as np.save
 * spells them, "[('a', '<i4'), ('', '|V4'), ('b', '<f8', (3,))]" (padding is a
 * nameless void, as dtype.descr of NumPy; a title makes a tuple of the name); strings "str"; TEXT "json"; ragged
 * "<f4 sequence"; blobs "bytes"; others d->text.  Always terminated; returns the length it
 * has when nothing is cut off, as snprintf. */
size_t dtype_descr(const struct dtype *d, char *buf, size_t n);
/* For people: "float32", "complex64", "bool", "string", "opaque of 12 bytes",
 * "structure of 3 fields", "sequence of float32", "longdouble". */
void dtype_name(const struct dtype *d, char *buf, size_t n);

/*
 * How stored elements become served ones: fields in the other byte order are
 * swapped, a number of another type is converted, `field` (may be NULL) is
 * taken out of a structure (`served` is then the type of the field, with all
 * `count` elements of its subarray).  False when it takes more than a recode
 * can say (too many swaps).
 */
bool dtype_recode(const struct dtype *stored, const struct dtype *served,
		  const struct dtype_field *field, struct recode *out);
/* Only take the field out, its bytes as they are stored. */
bool dtype_take(const struct dtype *stored, const struct dtype_field *field,
		struct recode *out);

/*
 * A .npy header as np.save writes it: version 1, 2 where it is longer than
 * 65 535 bytes, 3 for names that are not latin-1.  In three pieces, because
 * structures have long descriptions and plans are short: `front` and `back` are
 * here, `descr` is borrowed.  Source: numpy/lib/format.py 1.24.
 */
#define NPY_BACK_MAX 960
struct npy_header {
	size_t total; /* bytes, a multiple of 64 */
	unsigned char front[24];
	size_t front_len;
	const char *descr;
	size_t descr_len;
	char simple[16]; /* descr of types that are not structures */
	char back[NPY_BACK_MAX];
	size_t back_len;
};
/* `descr`: dtype_descr of a structure, kept by the caller; others: NULL.  False
 * when the shape is too long for `back`. */
bool dtype_npy_header(const struct dtype *d, const char *descr, unsigned rank,
		      const uint64_t *shape, struct npy_header *out);
/* Append its bytes from `off` (< total) on; the bytes taken. */
uint64_t dtype_npy_map(const struct npy_header *h, uint64_t off,
		       struct plan *plan);
/* All of it into `buf` of h->total bytes. */
void dtype_npy_write(const struct npy_header *h, void *buf);

/* A shape as NumPy prints it: "(3, 4)", "(5,)", "()". */
void dtype_shape_text(const uint64_t *shape, unsigned rank, char *buf,
		      size_t n);

#endif
