/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of zip share; nobody else includes it. */
#ifndef FORMATS_ZIP_PRIVATE_H
#define FORMATS_ZIP_PRIVATE_H

#include "base/vec.h"
#include "formats/zip/zip.h"
#include "stream/deflate.h"

enum {
	ZIP_STORED = 0,
	ZIP_DEFLATED = 8,
	ZIP_FLAG_ENCRYPTED = 1,
	ZIP_FLAG_BEHIND = 1 << 3, /* sizes and CRC-32 follow the data */
	ZIP_FLAG_STRONG = 1 << 6,
	ZIP_FLAG_UTF8 = 1 << 11,
	ZIP_FLAG_MASKED = 1 << 13,
	ZIP_LOCAL_SIZE = 30, /* of a local header, without what varies */
	ZIP_ENTRY_SIZE = 46  /* of one in the directory */
};
#define ZIP_NO_REASON ZIP_WHYS

/* One entry of the directory. */
struct zip_entry {
	uint64_t header; /* where its local header is */
	uint64_t stored, size;
	uint64_t data; /* where its bytes are: the archive, then the stream's */
	int64_t mtime;
	uint32_t nsec;
	uint32_t crc, mode, uid, gid; /* UINT32_MAX: no owner is said */
	uint32_t raw,
		raw_len; /* the name as stored, in the directory's bytes */
	char *name;      /* UTF-8, malloc'ed */
	uint16_t method, flags;
	uint8_t time_by,
		owner_by; /* which field said so; a greater one counts */
	bool local_owner; /* only the local header has its owner */
	enum zip_why why; /* ZIP_NO_REASON: it can be read */
};
struct zip_directory {
	unsigned char *bytes;
	uint64_t pos, size; /* in the archive */
	uint64_t entries;   /* as its end says */
	uint64_t shift;     /* bytes in front of the archive */
	vec(struct zip_entry) at;
};
void zip_directory_free(struct zip_directory *d);
/* Find the directory and read all of it. */
int zip_directory_read(struct zip_directory *d, const struct backing *b,
		       struct error *err);
/* Its entries; what is damaged is noted. */
int zip_directory_parse(struct zip_directory *d, struct members_builder *notes,
			struct error *err);
/*
 * What an entry says beside its fixed fields: name, mode, times, owner, and sizes
 * beyond 32 bits.  `p` is the entry with all that belongs to it.  -EBADMSG: sizes are
 * missing; -ENOMEM.
 */
int zip_entry_text(struct zip_entry *e, const unsigned char *p, unsigned name,
		   unsigned extra, struct error *err);
/* The owner, from the n bytes of extra fields of its local header. */
void zip_entry_local(struct zip_entry *e, const unsigned char *x, size_t n);
/* Where the bytes of each are: local headers are read, members that overlap found,
 * large ones decoded. */
struct zip_placing {
	const struct backing *from;
	struct zip_directory *directory;
	struct members_builder *notes;
	struct zip *zip;
	unsigned threads;
	void (*so_far)(void *ctx, uint64_t done);
	void *ctx;
};
int zip_place(struct zip_placing *p, struct error *err);
/* A zip without members.  -ENOMEM. */
int zip_new(struct zip **out, const struct backing *stored, struct error *err);
/* "is encrypted ...", of `why`. */
void zip_say_why(uint32_t why, uint32_t method, char *buf, size_t n);
int zip_why_code(uint32_t why);

#endif
