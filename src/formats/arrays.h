/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of formats whose headers say it all: from a description to a tensor. */
#ifndef FORMATS_ARRAYS_H
#define FORMATS_ARRAYS_H

#include "base/intern.h"
#include "formats/source.h"
#include "tensor/tensor.h"

/*
 * A format that knows type, shape and place of its arrays fills in a spec for each;
 * views, cache, verify and info follow.  The format's struct source begins with this.
 */
struct arrays {
	struct source source; /* first member; ops are the format's */
	struct intern intern; /* what arrays borrow: kept until arrays_end */
	struct handles *handles;
	struct view_options views;
	char *path;    /* for sentences */
	uint32_t file; /* number in handles; UINT32_MAX: a directory */
	uint64_t size; /* of the file, bytes */
	int64_t mtime; /* seconds */
};
/*
 * Register the file that is meant, which may be a member of another source: plain
 * members are a piece of their archive, others are copied to memory (source_staged).
 * Directories are registered as nothing.  After an error arrays_end is due as well.
 */
int arrays_begin(struct arrays *s, const struct source_args *a,
		 struct error *err);
/* Not the struct itself. */
void arrays_end(struct arrays *s);
/*
 * source_ops.open of format `ops`, whose struct has `size` bytes: begin, publish, or close
 * and say of which path.
 */
int arrays_open(const struct source_ops *ops, size_t size,
		int (*publish)(struct arrays *s, const struct source_args *a,
			       struct error *err),
		const struct source_args *a, struct source **out,
		struct error *err);
/* Exactly `n` bytes of the file at `pos`; -EBADMSG: it ends before. */
int arrays_read(const struct arrays *s, uint64_t pos, void *to, size_t n,
		struct error *err);
/* source_ops.usage of files. */
void arrays_usage(const struct source *s, uint64_t *bytes, uint64_t *inodes);

enum array_storage {
	ARRAY_LINEAR,  /* C order, one element after the other, in one file */
	ARRAY_CHUNKED, /* chunks in one file, found by ops->locate */
	ARRAY_MADE,    /* chunks that ops->make makes */
	ARRAY_ABSENT   /* never written: fill value */
};
/* How a part is stored.  Its chunks are those of a grid from element 0 on; those at
 * the edge are stored (and made) whole. */
struct array_layout {
	enum array_storage kind;
	uint32_t file;       /* LINEAR, CHUNKED: where; MADE: that decides the
			      * bytes, or UINT32_MAX */
	uint64_t pos;        /* LINEAR: of the first byte */
	struct dtype stored; /* of this part; numbers are converted */
	uint64_t shape[RANK_MAX]; /* of this part; rank is the array's */
	uint64_t chunk[RANK_MAX]; /* CHUNKED, MADE: elements along each axis */
	struct pipeline pipeline; /* CHUNKED: filters, as written */
	const char *maker;        /* MADE: who makes them, for people; static */
};

struct array;
struct array_ops {
	/* Optional, arrays of several parts: the layout of one of them, learnt
	 * when it is first needed.  May block on I/O. */
	int (*learn)(struct array *a, uint32_t part, struct array_layout *out,
		     struct error *err);
	/* CHUNKED: locations of chunks [first, first + n) of the grid. */
	int (*locate)(struct array *a, uint32_t part, const struct grid *g,
		      uint64_t first, uint32_t n, struct location *out,
		      struct error *err);
	/* MADE: all `size` bytes of a chunk, served type, C order; what was never
	 * written is the fill value.  May be called by several threads. */
	int (*make)(struct array *a, uint32_t part, const struct grid *g,
		    uint64_t chunk, void *out, size_t size, struct error *err);
	/* MADE: which bytes of the layout's file part `part` is made of, where the
	 * same name, part and stored type may mean others: tensor_ops.origin. */
	bool (*origin)(const struct array *a, uint32_t part, FILE *out);
	/* STRING, TEXT, RAGGED, BLOB: the elements of a box of a part in C order; as
	 * tensor_ops.values. */
	int (*values)(struct array *a, uint32_t part, const struct box *b,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err);
	/* Optional: as tensor_ops.length. */
	int (*length)(struct array *a, uint32_t part, const struct box *b,
		      uint64_t *bytes, struct error *err);
	/* Optional: do checksums that are compared cover the bytes that `make` and
	 * `values` make a part of?  May block on I/O. */
	bool (*has_checksum)(struct array *a, uint32_t part);
	/* Optional: attributes, an object; NULL: no memory. */
	json_t *(*attributes)(const struct array *a);
	/* Optional: what info.json has beside those, an object: tensor_ops.about. */
	json_t *(*about)(const struct array *a);
	/* Optional: what `own` has. */
	void (*free)(struct array *a);
};
struct array {
	struct tensor t; /* first member */
	struct arrays *source;
	const struct array_ops *ops; /* NULL: LINEAR in one part */
	void *own;                   /* the format's */
	unsigned axis;   /* several parts: side by side along this one, */
	uint64_t *along; /* with so many elements each */
};
/* One file (or piece) of an array that is in several, side by side along an axis. */
struct array_part {
	uint32_t file;    /* number in handles, for sentences and statistics */
	const char *name; /* of the array in it; kept by the source */
	uint64_t n;       /* elements along the axis */
};
struct array_spec {
	const char *name;    /* "/a/b"; copied */
	struct dtype stored; /* its fields: interned by the format */
	/* Not NULL: the array is this field of each element of `stored`, and has
	 * the field's axes behind the others.  LINEAR; kept by the format. */
	const struct dtype_field *field;
	unsigned rank;
	uint64_t shape[RANK_MAX];
	unsigned sample_axes; /* that the format suggests; 0: it does not */
	const void *fill;     /* one element as served; NULL: zeros */
	const char *note;     /* or NULL; copied */
	uint64_t text_bytes;  /* of a value on average; 0: not known */
	/* One part: its layout.  Several: NULL, ops->learn has them. */
	const struct array_layout *layout;
	unsigned axis;
	uint32_t nparts; /* 0: one part */
	const struct array_part *parts;
	const struct array_ops *ops;
	void *own; /* the array's from now on, also when it fails */
};
/*
 * The type that elements of `stored` are served as: the same, little-endian unless
 * the user wants the source's order.  False: no memory.
 */
bool arrays_served(struct arrays *s, const struct dtype *stored,
		   struct dtype *out);
/* -ENOTSUP: too large, too many axes, a type without NumPy array; -EBADMSG: it does not
 * fit in its file; -ENOMEM. */
int array_new(struct arrays *s, const struct array_spec *spec,
	      struct array **out, struct error *err);
/* formats/hdf5/export/monolith.c: tensor_ops.monolith of arrays. */
char *array_monolith(struct tensor *t, size_t *len, struct error *err);
/* A directory `name` of `parent` with its views; NULL: `parent` itself is that.  The
 * tree owns the array, also when it fails.  *dir may be NULL. */
int array_publish(struct tree_builder *b, uint32_t parent, const char *name,
		  struct array *a, uint32_t *dir, struct error *err);
/* An array that is listed, and cannot be shown: why (-ENOTSUP: nothing is wrong with
 * it). */
int array_publish_not(struct arrays *s, struct tree_builder *b, uint32_t parent,
		      const char *name, const struct error *why,
		      struct error *err);

#endif
