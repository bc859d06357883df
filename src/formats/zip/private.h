/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files of the zip reader; other folders must not
 * include them.  Field numbers are those of PKWARE's APPNOTE.TXT. */
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
	/* Fixed part of a local header, in bytes (APPNOTE 4.3.7). */
	ZIP_LOCAL_SIZE = 30,
	/* Fixed part of an entry of the directory, in bytes (APPNOTE 4.3.12). */
	ZIP_ENTRY_SIZE = 46
};
#define ZIP_NO_REASON ZIP_WHYS

/* One entry of the directory. */
struct zip_entry {
	uint64_t header; /* position of its local header */
	uint64_t stored, size;
	/* Where its bytes are: a position in the archive, then (deflated) in the
	 * stream or (unreadable) among the bad bytes; UINT64_MAX if that is not
	 * known. */
	uint64_t data;
	int64_t mtime;
	uint32_t nsec;
	/* `uid` and `gid` are UINT32_MAX if no field has the owner. */
	uint32_t crc, mode, uid, gid;
	/* The name as stored: offset and length in the directory's bytes. */
	uint32_t raw, raw_len;
	char *name; /* UTF-8, malloc'ed */
	uint16_t method, flags;
	/* The fields that time and owner are from; a greater one wins. */
	uint8_t time_by, owner_by;
	bool local_owner; /* its owner is only in the local header */
	enum zip_why why; /* why it cannot be read; ZIP_NO_REASON: it can */
};
struct zip_directory {
	unsigned char *bytes;
	uint64_t pos, size; /* position and size in the archive, in bytes */
	uint64_t entries;   /* number of entries that the end record says */
	uint64_t shift;     /* bytes in front of the archive */
	vec(struct zip_entry) at;
};
void zip_directory_free(struct zip_directory *d);
/* Find the directory and read all its bytes.  Return 0, -EBADMSG, -ENOTSUP, -ENOMEM
 * or an error of the source. */
int zip_directory_read(struct zip_directory *d, const struct backing *b,
		       struct error *err);
/* Parse its entries; damage is noted.  Return 0, -EBADMSG if not even the first
 * entry is valid, or -ENOMEM. */
int zip_directory_parse(struct zip_directory *d, struct members_builder *notes,
			struct error *err);
/*
 * Set what an entry says beside its fixed fields: name, mode, times, owner, and
 * sizes of more than 32 bits.  `p` is the whole entry; `name` and `extra` are bytes
 * of the name and of the extra fields.  Return 0, -EBADMSG if sizes are missing, or
 * -ENOMEM.
 */
int zip_entry_text(struct zip_entry *e, const unsigned char *p, unsigned name,
		   unsigned extra, struct error *err);
/* Set the owner from the n bytes of extra fields of the local header. */
void zip_entry_local(struct zip_entry *e, const unsigned char *x, size_t n);
/* The input of zip_place, which finds where the bytes of each member are: it reads
 * local headers, finds members that overlap, and decodes large ones. */
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
/* Make a zip without members, to be freed with zip_free.  Return 0 or -ENOMEM. */
int zip_new(struct zip **out, const struct backing *stored, struct error *err);
/* Write the sentence for a reason, such as "it is encrypted", to `buf`. */
void zip_say_why(uint32_t why, uint32_t method, char *buf, size_t n);
/* Return the errno for a reason, negative. */
int zip_why_code(uint32_t why);

#endif
