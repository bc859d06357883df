/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the HDF5 source: what its files share. */
#ifndef FORMATS_HDF5_HDF5_H
#define FORMATS_HDF5_HDF5_H

#include "base/intern.h"
#include "base/vec.h"
#include "formats/hdf5/driver.h"
#include "formats/hdf5/type.h"
#include "formats/source.h"

/* What the walk has met, in its order: a group before what is in it. */
struct hdf5_item {
	enum {
		HDF5_ITEM_GROUP,
		HDF5_ITEM_DATASET,
		HDF5_ITEM_LINK, /* to `target` */
		HDF5_ITEM_LOST  /* a link to what is not there */
	} kind;
	uint32_t file;      /* GROUP: it is in */
	const char *name;   /* path in the mount; the source's or tensor's */
	const char *object; /* GROUP: its path in the file; the source's */
	const char *target; /* LINK: path in the mount; the source's */
	struct hdf5_tensor *tensor; /* DATASET: borrowed, the tree's */
};
struct hdf5_source {
	struct source source;
	struct handles *handles;
	struct intern intern; /* grids, types, names shared by parts */
	uint32_t file;        /* the main file */
	char *path;           /* absolute */
	char *dir;            /* directory of path */
	char *real_dir;       /* directory behind symlinks; NULL: the same */
	int64_t mtime;
	uint64_t size; /* of the main file */
	struct view_options views;
	char *prefix; /* option prefix=: where else sources may be; or NULL */
	/* What it is a member of; NULL: it is a file. */
	const struct source_around *around;
	char *format; /* what it is called where it is several files; or NULL */
	char *archive; /* path of the file that this archive is in */
	vec(struct hdf5_item) items;
	struct pinner *pinner;
	vec(struct classes *) labels; /* that were found; owned */
};

/* The part of the tensor that every reader sees comes first. */
struct hdf5_tensor {
	struct tensor t;
	struct hdf5_source *source;
	const struct hdf5_type *type; /* that parts must have; the source's */
	uint32_t file;                /* it is in */
	const char *object;           /* its path there; the source's */
	const char *member; /* a field that is read as values; or NULL */
	bool null;          /* a null dataspace: listed only */
};

/* ---- what a dataset says of itself --------------------------------------- */

/* A piece of raw data in another file. */
struct hdf5_raw {
	char *name; /* as stored */
	uint64_t pos, len;
};
/*
 * One mapping of a virtual dataset, names as stored ("%b" and all).  A slab is
 * start, stride, count, block, `rank` (`from_rank`) numbers each; an axis without
 * end has count UINT64_MAX, or block UINT64_MAX when it is one endless block.
 */
struct hdf5_mapping {
	char *file, *dataset;
	bool all;           /* the whole source; `from` is NULL then */
	unsigned from_rank; /* axes of the source */
	uint64_t *to, *from;
};
enum hdf5_storage {
	HDF5_CHUNKED,
	HDF5_CONTIGUOUS,
	HDF5_COMPACT,
	HDF5_VIRTUAL,
	HDF5_UNALLOCATED /* contiguous, never written */
};
struct hdf5_description {
	unsigned null; /* no elements, not even none: a null dataspace */
	unsigned rank, own_rank;
	/* In served elements: array types add axes behind the dataset's own. */
	uint64_t shape[RANK_MAX];
	struct hdf5_type type; /* when none was asked for */
	enum hdf5_match match; /* how it relates to the one that was */
	struct dtype stored;   /* CONVERTIBLE: a number of this type */
	char said[128];        /* DIFFERENT: what it is instead */
	enum hdf5_storage storage;
	uint64_t pos, stored_bytes; /* CONTIGUOUS: address, what is there */
	uint64_t chunk[RANK_MAX];
	unsigned raw_edges;
	unsigned by_library; /* a filter that only libhdf5 can undo */
	struct pipeline pipeline;
	size_t fill_size; /* one element, as stored (stored.kind OTHER: as
			   * served), with its array; 0: zeros */
	unsigned char *fill;
	size_t nraw;
	struct hdf5_raw *raw;
	size_t nmappings;
	struct hdf5_mapping *mapping;
};
void hdf5_description_free(struct hdf5_description *d);

/*
 * Questions to the library about an object of a file.  The *_here functions ask
 * in this process and take the library's lock; the hdf5_call_* ones ask in a
 * worker process once hdf5_isolate_start was called, for libhdf5 may crash or
 * hang on a damaged file.
 */
struct hdf5_place {
	struct hdf5_source *s;
	uint32_t file;
	const char *object; /* path in the file */
};

/* All about a dataset; `wanted` (may be NULL) is the type that it should have.
 * One behind a link into another file is a virtual dataset that is mapped from
 * there.  -ENODATA: its file, or it, is not there. */
int hdf5_describe_here(const struct hdf5_place *at,
		       const struct hdf5_type *wanted,
		       struct hdf5_description *out, struct error *err);
int hdf5_call_describe(const struct hdf5_place *at,
		       const struct hdf5_type *wanted,
		       struct hdf5_description *out, struct error *err);
/* formats/hdf5/linked.c: the same where the library does not get by itself. */
int hdf5_describe_linked(const struct hdf5_place *at,
			 const struct hdf5_type *wanted,
			 struct hdf5_description *out, struct error *err);
/* The same for one that is open; lock held. */
int hdf5_describe(struct hdf5_source *s, hid_t dset,
		  const struct hdf5_type *wanted, struct hdf5_description *out,
		  struct error *err);
/* Locations of chunks [first, first + n) of its grid.  `written`: the chunks
 * that the index counts, plus 1; 0: not asked yet (then it is set). */
int hdf5_locate_here(const struct hdf5_place *at, const struct grid *g,
		     uint64_t first, uint32_t n, uint64_t *written,
		     struct location *out, struct error *err);
int hdf5_call_locate(const struct hdf5_place *at, const struct grid *g,
		     uint64_t first, uint32_t n, uint64_t *written,
		     struct location *out, struct error *err);
/* tensor_ops.list; `count` is set to the chunks that the index counts, UINT64_MAX
 * when that is not known. */
int hdf5_list_here(const struct hdf5_place *at, const struct grid *g,
		   uint64_t *from, struct written *out, uint32_t room,
		   uint32_t *n, uint64_t *count, struct error *err);
int hdf5_call_list(const struct hdf5_place *at, const struct grid *g,
		   uint64_t *from, struct written *out, uint32_t room,
		   uint32_t *n, uint64_t *count, struct error *err);
/* One chunk of the grid through the library: as stored, or (`as` not NULL)
 * converted by it to a type as served; `member` as below. */
int hdf5_fetch_here(const struct hdf5_place *at, const struct grid *g,
		    uint64_t chunk, const struct dtype *as, const char *member,
		    void *out, size_t size, struct error *err);
int hdf5_call_fetch(const struct hdf5_place *at, const struct grid *g,
		    uint64_t chunk, const struct dtype *as, const char *member,
		    void *out, size_t size, struct error *err);
/* Do all chunks of a box of it decode to as much as they should?  H5Dread does
 * not look.  `dset` is open and `d` its description; lock held. */
int hdf5_fetch_check(const struct hdf5_place *at, hid_t dset,
		     const struct hdf5_description *d, const struct box *b,
		     struct error *err);
/*
 * The elements of a box of the dataset in C order, `put` once for each, axes of
 * array types (those of and around the member, too) being axes of the box: STRING
 * as it is; RAGGED as the bytes of its elements, converted to
 * `as->fields[0].type`; TEXT as a line of JSON (a reference: the path it means).
 * `as` is the tensor's served type; `member` (may be NULL) the path of a
 * compound's member ("a", or "a/b" for one of a nested compound) that is meant.
 * -EIO when the dataset's type or shape does not fit.
 */
typedef void hdf5_put(void *ctx, const char *s, size_t len);
int hdf5_values_here(const struct hdf5_place *at, const struct box *b,
		     unsigned rank, const struct dtype *as, const char *member,
		     hdf5_put *put, void *ctx, struct error *err);
int hdf5_call_values(const struct hdf5_place *at, const struct box *b,
		     unsigned rank, const struct dtype *as, const char *member,
		     hdf5_put *put, void *ctx, struct error *err);
/* Attributes of a group or dataset as a JSON object (malloc'ed text). */
char *hdf5_attributes_here(const struct hdf5_place *at, struct error *err);
char *hdf5_call_attributes(const struct hdf5_place *at, struct error *err);
/* What else info.json has of a dataset, as tensor_ops.about; of a group, its
 * attributes. */
char *hdf5_about_here(const struct hdf5_place *at, struct error *err);
char *hdf5_call_about(const struct hdf5_place *at, struct error *err);

/*
 * An HDF5 file without its data (views/monolith.h; malloc'ed, *len bytes): of one
 * tensor, with the attributes of groups around it, and its flags; or (`of` NULL) of
 * everything in the mount.  Its parts are the data of those tensors, in order of items,
 * that hdf5_has_data says.  Blocks.
 */
char *hdf5_monolith_new(struct hdf5_source *s, const struct hdf5_tensor *of,
			size_t *len, struct error *err);
bool hdf5_has_data(const struct hdf5_tensor *h);
/* The same, `text` being what hdf5_texts_read has read; at->object is not used. */
char *hdf5_monolith_here(const struct hdf5_place *at,
			 const struct hdf5_tensor *of, const void *text,
			 size_t text_len, size_t *len, struct error *err);
/* An object of a file, open while the lock is held. */
struct hdf5_opened {
	hid_t file, object;
};
/* Takes the lock and keeps it until hdf5_place_close; not when it fails. */
int hdf5_place_open(const struct hdf5_place *at, struct hdf5_opened *o,
		    struct error *err);
void hdf5_place_close(struct hdf5_opened *o);
/* "path: object 'x': " in front of the sentence. */
void hdf5_place_prefix(const struct hdf5_place *at, struct error *err);

/* ---- tensors ------------------------------------------------------------- */

/* A tensor of what a description says, or (d NULL) for something that is only
 * listed, with `why`; `name` for sentences.  NULL only when memory is out.
 * Sources of a virtual dataset are looked at only where its extent depends on
 * them; the lock must not be held. */
struct hdf5_tensor *hdf5_tensor_new(const struct hdf5_place *at,
				    const char *name,
				    const struct hdf5_description *d,
				    const struct error *why);
/* The virtual dataset behind a part of `outer`, as a tensor of its own; NULL
 * with a sentence. */
struct hdf5_tensor *hdf5_tensor_nested(struct hdf5_tensor *outer,
				       const struct hdf5_place *at,
				       const struct hdf5_description *d,
				       struct error *err);
/* A layout of part `p` of t out of its description; formats/hdf5/layout.c. */
int hdf5_layout_new(struct hdf5_tensor *h, uint32_t p,
		    const struct hdf5_description *d, struct layout **out,
		    struct error *err);
/* The fill value as served, kept by the source.  1: it is no simple pattern. */
int hdf5_fill_new(struct hdf5_source *s, const struct hdf5_description *d,
		  const struct recode *recode, const struct dtype *served,
		  struct fill *out, struct error *err);
/* Parts and mosaic of a virtual dataset: t->parts, t->nparts, t->mosaic.
 * `shape` is that of the description and is set right along axes whose length
 * depends on the sources.  formats/hdf5/virtual.c. */
int hdf5_virtual_new(struct hdf5_tensor *h, const struct hdf5_description *d,
		     uint64_t *shape, struct error *err);
/* The tensor of one field of a compound dataset (`of` and its description): `f`
 * as stored (offsets from the element's beginning), its type as served, `path`
 * like "a" or "a/b".  NULL with a sentence. */
struct hdf5_tensor *hdf5_tensor_field(const struct hdf5_tensor *of,
				      const struct hdf5_description *d,
				      const struct dtype_field *f,
				      const struct dtype *served,
				      const char *path, struct error *err);

/* Where is the file that `name` in file `from` means?  Tried in turn: the name
 * itself when absolute; beside `from`; the prefixes; for absolute names that are
 * gone their last two components and the last one beside `from`; beside the
 * file behind a symlink.  Never the working directory.  A file that is nowhere
 * gets the first of these places.  -ENOMEM. */
enum hdf5_prefix { HDF5_PREFIX_VDS, HDF5_PREFIX_LINK, HDF5_PREFIX_RAW };
int hdf5_resolve(struct hdf5_source *s, uint32_t from, const char *name,
		 enum hdf5_prefix kind, uint32_t *file, struct error *err);
/*
 * formats/hdf5/inside.c: the same where the file is a member of an archive.  1: there is no
 * such member, and *file is a row that is missing.  -ENOMEM; -EFBIG, -ENOTSUP: the
 * member is compressed, and cannot be kept in memory.
 */
int hdf5_inside_resolve(struct hdf5_source *s, uint32_t from, const char *name,
			uint32_t *file, struct error *err);
/* A name by which hdf5_resolve finds a file again, from any other (malloc'ed; NULL: no
 * memory). */
char *hdf5_inside_name(struct hdf5_source *s, uint32_t file);
/* The row of a member that was copied to memory; UINT32_MAX: it was not. */
uint32_t hdf5_inside_kept(const struct hdf5_source *s, uint64_t member);
/* Note that; -ENOMEM. */
int hdf5_inside_keep(struct hdf5_source *s, uint64_t member, uint32_t file);

/* ---- mount time ---------------------------------------------------------- */

/* Run `walk` in a child: does libhdf5 survive it?  -EBADMSG: no, and how.  It
 * calls hdf5_trial_beat for each object; a minute without means that it hangs. */
typedef int hdf5_walk(struct hdf5_source *s, const struct source_args *a,
		      struct error *err);
int hdf5_trial(hdf5_walk *walk, struct hdf5_source *s,
	       const struct source_args *a, struct error *err);
void hdf5_trial_beat(void);
/* Publish what a file (s->file) has; and the files of the directory s->dir as one
 * dataset, for which s->file is made. */
hdf5_walk hdf5_walk_file, hdf5_concat_walk;

/* Is it an HDF5 file behind a user block of SOURCE_HEAD bytes or more?  Reads 8
 * bytes at each power of two. */
bool hdf5_is_behind(const struct backing *b);

/* Operations of a tensor that is read from HDF5; no lock is wanted. */
extern const struct tensor_ops hdf5_tensor_ops;
extern const struct source_ops source_hdf5;

#endif
