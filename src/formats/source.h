/* SPDX-License-Identifier: BSD-2-Clause */
/* What a format is: recognise a file, publish its tree. */
#ifndef FORMATS_SOURCE_H
#define FORMATS_SOURCE_H

#include <errno.h>
#include <stdbool.h>

#include "base/json.h"
#include "base/vec.h"
#include "extent/handles.h"
#include "extent/pinner.h"
#include "tree/tree.h"
#include "views/members/beside.h"
#include "views/view.h"

struct files;
struct members;
struct source_args;
struct volume;
/* The members of a table that are sources themselves.  Each is shown as a directory, and opened
 * when that is first looked up, with the options of the source that it is in.  The only
 * implementation is formats/registry/nest.c, which includes all formats; so formats call it
 * through these functions. */
struct nest {
	const struct nest_ops *ops;
	vec(uint64_t) shown; /* their records, ascending */
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
	/* After the tree that shows them. */
	void (*close)(struct nest *n);
};

/* How archives are opened. */
struct archive_options {
	const char *index;  /* as index_options.where */
	const char *subdir; /* what to show as the root; NULL: everything */
	uint64_t offset;    /* where in its file an archive begins */
	bool versions;      /* show what later members replace */
	/* Shows members that are sources as directories; NULL: they stay files. */
	const struct nest_ops *nest;
	bool looks;       /* as index_options.looks */
	bool as_is;       /* a directory's own files are just files */
	unsigned depth;   /* how many sources this one is in */
	uint64_t stage;   /* bytes of members that may be copied to memory */
	unsigned threads; /* to decode a stream with for the first time */
	struct beside_options beside; /* which views are listed */
	/* How far reading an archive for the first time is, in bytes of `total`;
	 * may be NULL. */
	void (*progress)(void *ctx, const char *path, uint64_t done,
			 uint64_t total);
	void *progress_ctx;
};
struct archive_kind;
struct backing;
struct source_check;
/*
 * The source that a member is in, for a format that may name other files: these are
 * members, too, and nothing outside of that source is meant.
 */
struct source_around {
	const struct archive_options *archive;
	uint64_t self; /* number of the member itself */
	/* Members that were copied to memory, whichever member named them. */
	struct source_kept *kept;
	/* Bytes of the file at `path`, from the root of that source, and the number of the
	 * member that the path names; it may be a link.  -ENOENT: there is no file;
	 * -ENOMEM.  Does not block. */
	int (*find)(const struct source_around *a, const char *path,
		    struct backing *out, uint64_t *member);
	/* Path of a member from there (malloc'ed); `follow`: of what it leads to, where it
	 * is a symlink.  NULL: no memory, or no such member. */
	char *(*path)(const struct source_around *a, uint64_t member,
		      bool follow);
	/* The source's name and that of a member, for sentences (malloc'ed). */
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
	/* A member of another source is meant: these bytes, these attributes;
	 * `path` is for sentences. */
	const struct backing *inside;
	const struct attr *like;
	/* What it is a member of; lives as long as the source.  NULL: nothing that other
	 * members can be found in. */
	const struct source_around *around;
	struct handles *handles; /* backing files are registered here */
	struct pinner *pinner;   /* the store, for what has to be decoded */
	const struct archive_options *archive;
	struct tree_builder *tree; /* where to publish ... */
	uint32_t dir;              /* ... under which directory */
	struct view_options views; /* sample axes, byte order, missing, ... */
	const char *prefix;        /* directories, ':' between; or NULL */
	const char *dataset; /* what to show as the root; NULL: everything */
	/* A directory of arrays is one, of these side by side along axis `concat`
	 * (-1: the last one, and so on). */
	bool joined;
	int concat;
	const char *raw; /* files are raw records; as raw_parse; or NULL */
};
struct source; /* what stays alive as long as the tree */
/* Which options mean something for a format, besides those of archives. */
enum source_flags {
	/* It is a directory of files that are not one data set. */
	SOURCE_DIRECTORY = 1,
	/* dataset= may name the object that is shown as the root. */
	SOURCE_HAS_DATASETS = 2,
	/* labels= may name a dataset, an attribute or a column in it. */
	SOURCE_HAS_LABELS = 4,
	/* It may name other files, which prefix= helps to find. */
	SOURCE_NAMES_FILES = 8,
	/* concat=: `open` takes a directory of its files (source_args.joined). */
	SOURCE_JOINS = 16,
	/* It is stored in an archive, though it is not shown as one. */
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
	/* How its table of members is read (archive.h): it is an archive, and the options
	 * of archives (offset, subdir) mean something.  NULL if it is not an archive. */
	const struct archive_kind *archive;
	/* Publish the tree.  -ENOENT, -EACCES, -EBADMSG, ... with a sentence. */
	int (*open)(const struct source_args *a, struct source **out,
		    struct error *err);
	/* Optional, for sources that are more than their tensors: what there is to
	 * know about node `node` of their files (0: all of it), as a JSON object;
	 * NULL: no memory. */
	json_t *(*about)(const struct source *s, uint64_t node);
	/* Optional, the same: read and decode everything below node `node` once,
	 * past the cache; with 0, what was learnt of the source is learnt again
	 * and compared, too.  -ENOMEM; all else is listed. */
	int (*verify)(struct source *s, uint64_t node, struct source_check *c,
		      struct error *err);
	/* Optional: what the format is called; else `name` is. */
	const char *(*format)(const struct source *s);
	/* Optional: bytes that it takes where it is stored, and inodes that it
	 * shows beside directories of the tree; for statfs. */
	void (*usage)(const struct source *s, uint64_t *bytes,
		      uint64_t *inodes);
	void (*close)(struct source *s);
};
struct source {
	const struct source_ops *ops;
};

/* What option views= lists: "array,samples,by-key" or "all", names of views of tensors and
 * of members of archives.  Those of tensors stay as they are where none of them is named.
 * -EINVAL names the unknown one. */
int source_views_parse(struct view_options *tensors,
		       struct beside_options *members, const char *list,
		       struct error *err);

/* The code of what is wrong with an option, not with a source: it is for other kinds of
 * sources, or its value is for none like this. */
#define SOURCE_USAGE (-EDOM)

/* Rows end with NULL. */
extern const struct source_ops *const source_table[];
/* The format that bids best for these first bytes; NULL: none knows them. */
const struct source_ops *source_probe(const unsigned char *head, size_t n,
				      const char *path);
/* A format that is known by other bytes than these, where source_probe finds none:
 * a zip's directory, an HDF5 superblock behind a long user block. */
const struct source_ops *source_probe_beyond(const struct source_args *a);
/* Bytes that source_probe wants. */
#define SOURCE_HEAD 16384
/* Open with whichever format bids best.  The error's sentence names the path;
 * -ENOTSUP: no format recognises it. */
int source_open(const struct source_args *a, struct source **out,
		struct error *err);
/* Open archives as one tree (a->path is not used): the later one wins.  `sources`
 * has room for n + 1; all are set, or none.  -ENOTSUP: one of them is no archive. */
int source_open_union(const struct source_args *a, char *const *paths, size_t n,
		      struct source **sources, struct error *err);
void source_close(struct source *s);
/*
 * From now on let libraries that crash on damaged files do it in processes of
 * their own; those end with source_isolate_end, or with this process.  Call
 * when all sources are open, before the first thread starts.
 */
int source_isolate(bool keep_stderr, struct error *err);
/* When nothing of the sources is used any more; nothing if there are none. */
void source_isolate_end(void);
/* True meanwhile: HDF5 files cannot be opened any more. */
bool source_isolated(void);

#endif
