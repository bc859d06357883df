/* SPDX-License-Identifier: BSD-2-Clause */
/* What tar, compressed streams, squashfs and zip have in common as sources. */
#ifndef FORMATS_ARCHIVE_ARCHIVE_H
#define FORMATS_ARCHIVE_ARCHIVE_H

#include "formats/source.h"
#include "formats/squashfs/squashfs.h"
#include "formats/zip/zip.h"
#include "members/member_files.h"
#include "stream/stream.h"

extern const struct source_ops source_tar, source_stream, source_squashfs,
	source_zip, source_npz, source_directory;

struct archive;
/* One archive format: how its member table is made, and what an index saves
 * besides. */
struct archive_kind {
	const struct source_ops *ops;
	const char *maker; /* as index_key.maker */
	/* The format's name; NULL: `scan` sets archive.format, or the name is "tar". */
	const char *format;
	/* Read the archive and set a->members (and a->stream, a->info, a->zip).
	 * Return 0 or -errno with a sentence; partial damage is a note in the
	 * table. */
	int (*scan)(struct archive *a, const struct members_options *o,
		    struct error *err);
	/* Fill in the format's own sections of an index.  Return how many, at most
	 * 4. */
	unsigned (*sections)(struct archive *a, struct index_section *out);
	/* Read these sections, before the members are read.  Return 0, -EBADMSG or
	 * -ENOMEM. */
	int (*load)(struct archive *a, const struct index *x,
		    struct error *err);
};
extern const struct archive_kind archive_tar, archive_stream, archive_squashfs;
/* The functions of an archive_kind that is a zip. */
int archive_zip_scan(struct archive *a, const struct members_options *o,
		     struct error *err);
unsigned archive_zip_sections(struct archive *a, struct index_section *out);
int archive_zip_load(struct archive *a, const struct index *x,
		     struct error *err);
/* An open archive, which is a source. */
struct archive {
	struct source source; /* first member */
	const struct archive_kind *kind;
	/* Valid only while it is being opened. */
	const struct archive_options *options;
	char *path;
	/* The file, or the part of it that is the archive. */
	struct backing stored;
	struct stream *stream; /* NULL: not compressed as a whole */
	struct members members;
	struct volume volume; /* what ranges of members are in */
	struct squashfs_info info;
	struct zip *zip;       /* NULL: not a zip */
	struct arrays *arrays; /* the arrays of an open .npz */
	/* The sources among its members; NULL: they are shown as files. */
	struct nest *nest;
	char *format;  /* shown to users, such as "tar.gz" */
	char *damage;  /* what is wrong with its stream, or NULL */
	char *index;   /* path of its index; NULL: it has none */
	bool is_tar;   /* the stream is a tar, not just one file */
	bool indexed;  /* the table is from an index */
	bool versions; /* members that later ones replace are shown, too */
	bool inside;   /* it is a member of another source */
	int64_t mtime; /* of the file, in seconds */
	uint32_t mode, uid, gid;
};

/* Read the members of an archive, or take them from its index; publish nothing.
 * The caller closes *out with archive_close or hands it to archive_publish.  Return
 * 0 or -errno with a sentence. */
int archive_load(const struct archive_kind *kind, const struct source_args *a,
		 struct archive **out, struct error *err);
/* Call archive_load for the archive format `ops`.  Return -ENOTSUP if it is not an
 * archive. */
int archive_load_as(const struct source_ops *ops, const struct source_args *a,
		    struct source **out, struct error *err);
/* source_ops.open of all kinds: load and publish. */
int archive_open(const struct archive_kind *kind, const struct source_args *a,
		 struct source **out, struct error *err);
/* Publish the tree of a loaded archive.  `a` is owned by *out, or closed after an
 * error. */
int archive_publish(struct archive *a, const struct source_args *args,
		    struct source **out, struct error *err);
void archive_close(struct source *s);
/* Scan an archive again, without its index; publish nothing.  The caller closes
 * *out. */
int archive_scan_again(const struct archive *a, const struct archive_options *o,
		       struct archive **out, struct error *err);
/* Single steps of archive_load, for a caller that already has an archive's table.
 * archive_find_bytes sets a->stored and the attributes of the file; a->path is set.
 * archive_save_index saves the index and sets a->index to its path. */
int archive_find_bytes(struct archive *a, const struct source_args *args,
		       struct error *err);
int archive_save_index(struct archive *a, struct error *err);
/* source_ops of all kinds. */
json_t *archive_about(const struct source *s, uint64_t node);
int archive_verify(struct source *s, uint64_t node, struct source_check *c,
		   struct error *err);
/* Return true if the checksums that archive_verify compares cover all bytes of the
 * members. */
bool archive_has_checksums(const struct archive *a);
void archive_usage(const struct source *s, uint64_t *bytes, uint64_t *inodes);
/* Return the archive that a source is, or NULL if it is something else. */
static inline struct archive *archive_of_source(struct source *s)
{
	return s->ops->archive ? (struct archive *)s : NULL;
}
/* Log the notes of a table as warnings, each with `path` in front unless that is
 * NULL (a union has none). */
void archive_log_notes(const struct members *m, const char *path);
/* Report that `done` stored bytes were read. */
void archive_progress(const struct archive *a, uint64_t done);

/* Merge archives into one tree, instead of the trees that each of them would show;
 * of equal names the later archive's member wins, which is noted.  Members are
 * still read from the archives, which must outlive *out.  Return -ENOTSUP if they
 * cannot be merged. */
int archive_union(struct source *const *archives, unsigned n,
		  const struct source_args *a, struct source **out,
		  struct error *err);

/* Make files of the members of a table below record `root`, with member views
 * (views/members); `tar`: the members are those of tars. */
int archive_files(struct files **out, const struct source_args *a,
		  const struct members *m, const struct volume *volumes,
		  unsigned n, uint64_t root, bool tar, struct error *err);
/* Show members that are sources as directories, and hide their files, which
 * archive_files has just made.  *out must be closed after the tree. */
int archive_show_nested(struct nest **out, const struct nest_ops *ops,
			const struct source_args *a, const struct members *m,
			const struct volume *volumes, unsigned n,
			struct files *f, uint64_t root, struct error *err);

/* A tar that this process has just written: what a first scan of it would find. */
struct archive_written {
	const char *path;
	const char
		/* Format of its stream, such as "zstd"; NULL: not compressed. */
		*format;
	const struct stream_point *points;
	uint64_t n_points;
	/* Owned by the callee from now on, also after an error. */
	struct members *members;
};
/* Save its index where a mount looks for it, and set *index to the path
 * (malloc'ed).  Return the error that a mount would have with an index that it does
 * not accept. */
int archive_index_written(const struct archive_written *m, char **index,
			  struct error *err);

/* Make an input that first returns the `n` bytes of `head` (copied), which were
 * read from `in` already, and then goes on with `in` (borrowed). */
int archive_input_again(struct input **out, const void *head, size_t n,
			struct input *in, struct error *err);

#endif
