/* SPDX-License-Identifier: BSD-2-Clause */
/* What tar, compressed tar, squashfs and zip have in common as sources. */
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
/* One format: how its member table is made, and what an index keeps beside it. */
struct archive_kind {
	const struct source_ops *ops;
	const char *maker; /* as index_key.maker */
	/* What its files are called; NULL: `scan` sets archive.format, or it is "tar". */
	const char *format;
	/* Make a->members (and a->stream, a->info).  0 or an error; what is only
	 * partly damaged is a note in the table. */
	int (*scan)(struct archive *a, const struct members_options *o,
		    struct error *err);
	/* Sections of an index of its own: at most 4; how many. */
	unsigned (*sections)(struct archive *a, struct index_section *out);
	/* From these, before members are taken.  -EBADMSG. */
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
/* An open archive; a source. */
struct archive {
	struct source source; /* first member */
	const struct archive_kind *kind;
	const struct archive_options *options; /* while it is being opened */
	char *path;
	struct backing stored; /* the file, or what of it is the archive */
	struct stream *stream; /* NULL: not compressed as a whole */
	struct members members;
	struct volume volume; /* where members' ranges are */
	struct squashfs_info info;
	struct zip *zip;       /* NULL: it is none */
	struct arrays *arrays; /* of a .npz, once it is open */
	struct nest *nest;     /* for sources inside; NULL: they are files */
	char *format;          /* "tar.gz", for people */
	char *damage;          /* the sentence, or NULL */
	char *index;           /* where its index is; NULL: there is none */
	bool is_tar;   /* a stream with a tar inside, not just one file */
	bool indexed;  /* it came from an index */
	bool versions; /* what is replaced is shown, too */
	bool inside;   /* it is a member of another source */
	int64_t mtime; /* of the file */
	uint32_t mode, uid, gid;
};

/* Read (or take from its index) what is in an archive; publishes nothing. */
int archive_load(const struct archive_kind *kind, const struct source_args *a,
		 struct archive **out, struct error *err);
/* The same for the archive format `ops`. */
int archive_load_as(const struct source_ops *ops, const struct source_args *a,
		    struct source **out, struct error *err);
/* source_ops.open of all kinds: load, publish. */
int archive_open(const struct archive_kind *kind, const struct source_args *a,
		 struct source **out, struct error *err);
/* The second step: the tree of a loaded archive, which is taken over. */
int archive_publish(struct archive *a, const struct source_args *args,
		    struct source **out, struct error *err);
void archive_close(struct source *s);
/* Read it once more, whatever its index says; publishes nothing. */
int archive_again(const struct archive *a, const struct archive_options *o,
		  struct archive **out, struct error *err);
/* Steps of these, for who has an archive's table already: where its bytes are (a->path
 * is set); save its index, a->index is where. */
int archive_find_bytes(struct archive *a, const struct source_args *args,
		       struct error *err);
int archive_save_index(struct archive *a, struct error *err);
/* source_ops of all kinds. */
json_t *archive_about(const struct source *s, uint64_t node);
int archive_verify(struct source *s, uint64_t node, struct source_check *c,
		   struct error *err);
/* Do checksums that archive_verify compares cover all bytes of its members? */
bool archive_has_checksums(const struct archive *a);
void archive_usage(const struct source *s, uint64_t *bytes, uint64_t *inodes);
/* The archive that a source is; NULL: something else. */
static inline struct archive *archive_of_source(struct source *s)
{
	return s->ops->archive ? (struct archive *)s : NULL;
}
/* What was odd, as warnings, each with `path` in front unless that is NULL (a union
 * has none). */
void archive_say_notes(const struct members *m, const char *path);
/* Say how far it is; `done` stored bytes. */
void archive_progress(const struct archive *a, uint64_t done);

/* Merge archives into one tree, which replaces what each of them would show; of
 * equal names the later archive's wins, which is noted.  They stay what the members
 * are read from, and outlive *out.  -ENOTSUP: they cannot be merged. */
int archive_union(struct source *const *archives, unsigned n,
		  const struct source_args *a, struct source **out,
		  struct error *err);

/* The members of a table under record `root`, with views beside them; `tar`: they are those
 * of tars. */
int archive_files(struct files **out, const struct source_args *a,
		  const struct members *m, const struct volume *volumes,
		  unsigned n, uint64_t root, bool tar, struct error *err);
/* Show members that are sources as directories, and hide the files of them that archive_files
 * has just shown.  *out is to be closed after the tree. */
int archive_nest(struct nest **out, const struct nest_ops *ops,
		 const struct source_args *a, const struct members *m,
		 const struct volume *volumes, unsigned n, struct files *f,
		 uint64_t root, struct error *err);

/* A tar that was written by us: what reading it for the first time would learn. */
struct archive_made {
	const char *path;
	const char
		*format; /* of the stream, "zstd"; NULL: it is not compressed */
	const struct stream_point *points;
	uint64_t n_points;
	struct members *members; /* taken over, whatever happens */
};
/* Save its index where a mount looks for it; *index (malloc'ed) is that.  What a mount
 * would say of an index that it does not believe, this says. */
int archive_index_made(const struct archive_made *m, char **index,
		       struct error *err);

/* An input that first gives `n` bytes that were read
 * from `in` already, and goes on with `in` (borrowed).  `head` is copied. */
int archive_input_again(struct input **out, const void *head, size_t n,
			struct input *in, struct error *err);

#endif
