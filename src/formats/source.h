/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface of a format: recognise a file, publish its tree. */
#ifndef FORMATS_SOURCE_H
#define FORMATS_SOURCE_H

#include <errno.h>
#include <stdbool.h>

#include "base/json.h"
#include "base/vec.h"
#include "extent/handles.h"
#include "extent/pinner.h"
#include "tree/tree.h"
#include "views/members/member_views.h"
#include "views/view.h"

struct files;
struct members;
struct source_args;
struct volume;
/* The members of a table that are sources themselves.  Each is shown as a directory, and
 * opened when that is first looked up, with the options of the source that contains it.
 * The only implementation is formats/registry/nest.c, which includes all formats; so
 * formats call it through these functions. */
struct nest {
	const struct nest_ops *ops;
	vec(uint64_t) shown; /* numbers of their records, ascending */
};
struct nest_ops {
	/* Find sources among the members below record `root`, which `files` shows as the
	 * tree directory a->dir.  They are found by name, and by their first bytes where
	 * reading these costs little.  If `n_volumes` is 0, the members are the files of a
	 * directory.  Strings of `a` are copied; its handles and pinner, and all other
	 * arguments, are borrowed until close.  Return 0, or -ENOMEM or another error with
	 * a sentence. */
	int (*open)(struct nest **out, const struct source_args *a,
		    const struct members *m, const struct volume *volumes,
		    unsigned n_volumes, struct files *files, uint64_t root,
		    struct error *err);
	/* Free it, after the tree that shows the sources. */
	void (*close)(struct nest *n);
};

/* Options of archives. */
struct archive_options {
	const char *index;  /* see index_options.where */
	const char *subdir; /* what to show as the root; NULL: everything */
	uint64_t offset;    /* where in its file an archive begins, in bytes */
	bool versions;      /* show members that later ones replace */
	/* Shows members that are sources as directories; NULL: they stay files. */
	const struct nest_ops *nest;
	bool looks; /* see index_options.looks */
	bool as_is; /* show the files of a directory as files, whatever they hold */
	unsigned depth;   /* number of sources that contain this one */
	uint64_t stage;   /* most bytes of members to copy to memory */
	unsigned threads; /* threads of the first pass over a stream */
	struct member_view_options member_views; /* which views are listed */
	/* Called while an archive is read for the first time, with the bytes read so far;
	 * may be NULL. */
	void (*progress)(void *ctx, const char *path, uint64_t done,
			 uint64_t total);
	void *progress_ctx;
};
struct archive_kind;
struct backing;
struct source_check;
/*
 * The source that contains a member, for a format that may name other files: such names
 * mean members of that source, never anything outside it.
 */
struct source_around {
	const struct archive_options *archive;
	uint64_t self; /* number of the member itself */
	/* All members that were copied to memory, whichever member named them. */
	struct source_kept *kept;
	/* Set *out to the bytes of the file at `path`, from the root of that source, and
	 * *member to the number of the member that the path names, which may be a link.
	 * Return 0, -ENOENT if there is no such file, or -ENOMEM.  Does not block. */
	int (*find)(const struct source_around *a, const char *path,
		    struct backing *out, uint64_t *member);
	/* Return the path of a member from that root (malloc'ed), with `follow` of the
	 * member that a symlink leads to.  NULL when out of memory or if there is no such
	 * member. */
	char *(*path)(const struct source_around *a, uint64_t member,
		      bool follow);
	/* Return the source's name and that of a member, for sentences (malloc'ed). */
	char *(*shown)(const struct source_around *a, const char *path);
};
struct source_kept_member {
	uint64_t member;
	uint32_t file; /* number in the table of files */
};
struct source_kept {
	vec(struct source_kept_member) v;
};
struct source_args {
	const char *path; /* as the user gave it */
	/* Unless NULL, the source is a member of another one, with these bytes and
	 * attributes; `path` is for sentences. */
	const struct backing *inside;
	const struct attr *like;
	/* The source that contains it, which lives as long; NULL if other members cannot
	 * be found. */
	const struct source_around *around;
	struct handles *handles; /* backing files are registered here */
	struct pinner *pinner;   /* the store, for bytes that must be decoded */
	const struct archive_options *archive;
	struct tree_builder *tree; /* where to publish ... */
	uint32_t dir;              /* ... under which directory */
	struct view_options views; /* sample axes, byte order, ... */
	const char *prefix;        /* directories separated by ':', or NULL */
	const char *dataset; /* what to show as the root; NULL: everything */
	/* The arrays of a directory are one, side by side along axis `concat` (-1: the
	 * last axis, and so on). */
	bool joined;
	int concat;
	/* Description of raw records, see raw_parse; NULL: files are not raw. */
	const char *raw;
};
struct source; /* lives as long as the tree */
/* Properties of a format, which decide which options apply to it besides those of
 * archives. */
enum source_flags {
	/* The source is a directory of files that are not one data set. */
	SOURCE_DIRECTORY = 1,
	/* dataset= may name the object that is shown as the root. */
	SOURCE_HAS_DATASETS = 2,
	/* labels= may name a dataset, an attribute or a column in it. */
	SOURCE_HAS_LABELS = 4,
	/* It may name other files, which prefix= helps to find. */
	SOURCE_NAMES_FILES = 8,
	/* concat=: `open` takes a directory of its files (source_args.joined). */
	SOURCE_JOINS = 16,
	/* It is stored in an archive, but not shown as one. */
	SOURCE_IN_ARCHIVE = 32
};
struct source_ops {
	const char *name, *summary;
	unsigned flags; /* enum source_flags */
	/* Return how certainly these first bytes of the file at `path` are of this format:
	 * 0 (they are not) to 100. */
	int (*probe)(const unsigned char *head, size_t n, const char *path);
	/* Optional: `probe` for a format that may begin later in a file, or be known by its
	 * end; asked if no format knows the first bytes.  Reads from `b`. */
	int (*probe_beyond)(const struct backing *b);
	/* Optional: return true if `path`, which need not exist, names several files that
	 * are one source, such as "x_%d.h5". */
	bool (*is_files)(const char *path);
	/* How its table of members is read (archive.h), if the format is an archive, to
	 * which the options of archives (offset, subdir) apply; else NULL. */
	const struct archive_kind *archive;
	/* Publish the tree and set *out.  Return 0, or -ENOENT, -EACCES, -EBADMSG, ...
	 * with a sentence. */
	int (*open)(const struct source_args *a, struct source **out,
		    struct error *err);
	/* Optional, for sources that are more than their tensors: return what is known
	 * about node `node` of their files (0: the whole source) as a JSON object, owned
	 * by the caller; NULL when out of memory. */
	json_t *(*about)(const struct source *s, uint64_t node);
	/* Optional, for the same sources: read and decode everything below node `node`
	 * once, bypassing the cache; if `node` is 0, also read the source's table anew
	 * and compare it.  Return 0 or -ENOMEM; all other problems are listed with
	 * c->bad. */
	int (*verify)(struct source *s, uint64_t node, struct source_check *c,
		      struct error *err);
	/* Optional: return what the format is called, if that is not `name`. */
	const char *(*format)(const struct source *s);
	/* Optional, for statfs: set the bytes that the source takes where it is stored,
	 * and the inodes that it shows besides directories of the tree. */
	void (*usage)(const struct source *s, uint64_t *bytes,
		      uint64_t *inodes);
	void (*close)(struct source *s);
};
struct source {
	const struct source_ops *ops;
};

/* Parse the value of views=: "array,samples,by-key" or "all", names of views of tensors
 * and of members of archives.  The views of tensors do not change if none of them is
 * named.  -EINVAL with a sentence that names an unknown one. */
int source_views_parse(struct view_options *tensors,
		       struct member_view_options *members, const char *list,
		       struct error *err);

/* Error code for wrong options, as opposed to wrong sources: the option is for other
 * formats, or its value is impossible for this source. */
#define SOURCE_USAGE (-EDOM)

/* All formats but directories; ends with NULL. */
extern const struct source_ops *const source_table[];
/* Return the format that bids most for these first bytes; NULL if no format knows
 * them. */
const struct source_ops *source_probe(const unsigned char *head, size_t n,
				      const char *path);
/* If source_probe returned NULL: return a format that is recognised by other bytes than
 * the first ones, such as a zip's directory or an HDF5 superblock behind a long user
 * block; NULL if there is none.  Blocks. */
const struct source_ops *source_probe_beyond(const struct source_args *a);
/* Bytes of the head of a file that source_probe takes. */
#define SOURCE_HEAD 16384
/* Open a source with the format that bids most.  Return 0 or -errno with a sentence that
 * names the path; -ENOTSUP if no format recognises it.  Blocks. */
int source_open(const struct source_args *a, struct source **out,
		struct error *err);
/* Open archives as one tree, in which members of later archives replace those of earlier
 * ones; a->path is not used.  `sources` has room for n + 1, which are all set, or none.
 * Return 0 or -errno with a sentence; SOURCE_USAGE if one of them is not an archive. */
int source_open_union(const struct source_args *a, char *const *paths, size_t n,
		      struct source **sources, struct error *err);
void source_close(struct source *s);
/*
 * From now on run libraries that crash on damaged files in processes of their own, which
 * end with source_isolate_end or with this process.  Call it when all sources are open,
 * before the first thread starts.
 */
int source_isolate(bool keep_stderr, struct error *err);
/* End these processes, if there are any, when no source is used any more. */
void source_isolate_end(void);
/* Return true between the two: no further HDF5 file can be opened. */
bool source_isolated(void);

#endif
