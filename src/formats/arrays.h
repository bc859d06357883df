/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of formats whose headers describe them completely: from a description to a
 * tensor. */
#ifndef FORMATS_ARRAYS_H
#define FORMATS_ARRAYS_H

#include "base/intern.h"
#include "formats/source.h"
#include "tensor/tensor.h"

/*
 * A format that knows type, shape and place of its arrays fills in an array_spec for
 * each; views, cache, verify and info then work without more code.  The format's struct
 * source begins with struct arrays.
 */
struct arrays {
	struct source source; /* first member; ops are those of the format */
	struct intern intern; /* memory that arrays borrow until arrays_end */
	struct handles *handles;
	struct view_options views;
	char *path;    /* for error sentences */
	uint32_t file; /* number in handles; UINT32_MAX: a directory */
	uint64_t size; /* of the file, bytes */
	int64_t mtime; /* seconds */
};
/*
 * Register the file of `a`, which may be a member of another source: a plain member
 * becomes a piece of its archive, any other is copied to memory (source_staged).  A
 * directory is not registered.  Return 0 or -errno; after an error arrays_end must be
 * called as well.
 */
int arrays_begin(struct arrays *s, const struct source_args *a,
		 struct error *err);
/* Free all that `s` owns, but not the struct itself. */
void arrays_end(struct arrays *s);
/*
 * Implements source_ops.open of format `ops`, whose struct has `size` bytes: begin,
 * publish, and if that fails close and prefix the sentence with the path.
 */
int arrays_open(const struct source_ops *ops, size_t size,
		int (*publish)(struct arrays *s, const struct source_args *a,
			       struct error *err),
		const struct source_args *a, struct source **out,
		struct error *err);
/* Read exactly `n` bytes of the file from byte `pos`; -EBADMSG if the file ends before.
 * Blocks. */
int arrays_read(const struct arrays *s, uint64_t pos, void *to, size_t n,
		struct error *err);
/* Implements source_ops.usage of single files. */
void arrays_usage(const struct source *s, uint64_t *bytes, uint64_t *inodes);

enum array_storage {
	ARRAY_LINEAR,  /* C order, one element after the other, in one file */
	ARRAY_CHUNKED, /* chunks in one file, found by ops->locate */
	ARRAY_MADE,    /* chunks whose bytes ops->make computes */
	ARRAY_ABSENT   /* never written: fill value */
};
/* How a part is stored.  Its chunks form a grid that begins at element 0; chunks at the
 * edge are stored (and made) whole. */
struct array_layout {
	enum array_storage kind;
	/* LINEAR, CHUNKED: number of the file of the bytes; MADE: of the file that
	 * determines them, or UINT32_MAX. */
	uint32_t file;
	uint64_t pos;             /* LINEAR: of the first byte, in bytes */
	struct dtype stored;      /* of this part; numbers are converted */
	uint64_t shape[RANK_MAX]; /* of this part; rank is the array's */
	uint64_t chunk[RANK_MAX]; /* CHUNKED, MADE: elements along each axis */
	struct pipeline pipeline; /* CHUNKED: filters, as written */
	/* MADE: what makes the chunks, for people; a static string. */
	const char *maker;
};

struct array;
struct array_ops {
	/* Optional, for arrays of several parts: set the layout of one of them when it is
	 * first needed.  May block on I/O. */
	int (*learn)(struct array *a, uint32_t part, struct array_layout *out,
		     struct error *err);
	/* CHUNKED: set the locations of chunks [first, first + n) of the grid. */
	int (*locate)(struct array *a, uint32_t part, const struct grid *g,
		      uint64_t first, uint32_t n, struct location *out,
		      struct error *err);
	/* MADE: write all `size` bytes of a chunk in the served type and C order;
	 * elements that were never written are the fill value.  Several threads may call
	 * it at once. */
	int (*make)(struct array *a, uint32_t part, const struct grid *g,
		    uint64_t chunk, void *out, size_t size, struct error *err);
	/* MADE: print which bytes of the layout's file part `part` is made of, where
	 * these are not determined by name, part and stored type: tensor_ops.origin. */
	bool (*origin)(const struct array *a, uint32_t part, FILE *out);
	/* STRING, TEXT, RAGGED, BLOB: pass the elements of a box of a part to `put` in C
	 * order, as tensor_ops.values does. */
	int (*values)(struct array *a, uint32_t part, const struct box *b,
		      void (*put)(void *ctx, const char *s, size_t len),
		      void *ctx, struct error *err);
	/* Optional: see tensor_ops.length. */
	int (*length)(struct array *a, uint32_t part, const struct box *b,
		      uint64_t *bytes, struct error *err);
	/* Optional: return true if checksums that are compared cover the bytes from which
	 * `make` and `values` make a part.  May block on I/O. */
	bool (*has_checksum)(struct array *a, uint32_t part);
	/* Optional: return the attributes as an object, owned by the caller; NULL when
	 * out of memory. */
	json_t *(*attributes)(const struct array *a);
	/* Optional: return what info.json has besides the attributes, as an object:
	 * tensor_ops.about. */
	json_t *(*about)(const struct array *a);
	/* Optional: free `own` and what it owns. */
	void (*free)(struct array *a);
};
struct array {
	struct tensor t; /* first member */
	struct arrays *source;
	const struct array_ops *ops; /* NULL: LINEAR in one part */
	void *own;                   /* owned; only the format knows its type */
	/* Several parts: they lie side by side along this axis. */
	unsigned axis;
	uint64_t *along; /* elements of each part along `axis` */
};
/* One file, or piece of a file, of an array whose parts lie side by side along an
 * axis. */
struct array_part {
	uint32_t file;    /* number in handles, for sentences and statistics */
	const char *name; /* of the array in it; the source keeps it */
	uint64_t n;       /* elements along the axis */
};
struct array_spec {
	const char *name;    /* "/a/b"; copied */
	struct dtype stored; /* its fields are interned by the format */
	/* Unless NULL, the array is this field of each element of `stored`, and its last
	 * axes are those of the field.  Only for LINEAR; the format keeps it. */
	const struct dtype_field *field;
	unsigned rank;
	uint64_t shape[RANK_MAX];
	/* As the format suggests; 0: it suggests nothing. */
	unsigned sample_axes;
	const void *fill;    /* one element as served; NULL: zeros */
	const char *note;    /* or NULL; copied */
	uint64_t text_bytes; /* average bytes of a value; 0: unknown */
	/* The layout of a single part; NULL if there are several, which ops->learn
	 * describes. */
	const struct array_layout *layout;
	unsigned axis;
	uint32_t nparts; /* 0: one part */
	const struct array_part *parts;
	const struct array_ops *ops;
	void *own; /* owned by the array from now on, also after a failure */
};
/*
 * Set *out to the type as which elements of `stored` are served: the same type,
 * little-endian unless the user wants the source's byte order.  Return false when out of
 * memory.
 */
bool arrays_served(struct arrays *s, const struct dtype *stored,
		   struct dtype *out);
/* Make an array.  Return 0; -ENOTSUP if it is too large, has too many axes or a type that
 * NumPy arrays do not have; -EBADMSG if it does not fit in its file; -ENOMEM. */
int array_new(struct arrays *s, const struct array_spec *spec,
	      struct array **out, struct error *err);
/* Implements tensor_ops.monolith of arrays; in formats/hdf5/export/monolith.c. */
char *array_monolith(struct tensor *t, size_t *len, struct error *err);
/* Add a directory `name` with the array's views to `parent`; if `name` is NULL, `parent`
 * itself gets them.  The tree owns the array, also after a failure.  *dir is set to the
 * directory; `dir` may be NULL. */
int array_publish(struct tree_builder *b, uint32_t parent, const char *name,
		  struct array *a, uint32_t *dir, struct error *err);
/* Add an array that is listed but cannot be shown, for the reason `why` (-ENOTSUP if
 * nothing is wrong with the file). */
int array_publish_not(struct arrays *s, struct tree_builder *b, uint32_t parent,
		      const char *name, const struct error *why,
		      struct error *err);

#endif
