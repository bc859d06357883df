/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading index files: finding one, and checking everything that is used of it. */
#include "members/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/system.h"
#include "extent/file.h"
#include "members/index_private.h"

/*
 * An index may lie where other users can write: it may be hostile, and a file of any
 * kind.  This file checks that the header and the sections are complete and unchanged
 * since they were written.  Whether their content makes sense is checked by the code
 * that uses the sections.
 *
 * Everything but the lazy sections is read, not mapped.  Reading costs more: 100 MB (a
 * million members) in the page cache take 20 ms to read and 5 ms to map, plus 8 ms for
 * the checksums, and the memory is not shared.  But if the file is truncated by another
 * process, or lost by a network file system, access to a mapping is SIGBUS in the
 * middle of a lookup; and bytes that were read stay as they were when they were
 * checked.
 */
/* Smaller indexes are not compared with the available memory. */
#define LARGE (UINT64_C(64) << 20)

struct index {
	struct index_head head; /* the header, after it was checked */
	/* Holds the file up to the first lazy section. */
	struct buf *buf;
	const unsigned char *at; /* the same bytes, aligned */
	uint64_t eager;          /* bytes at `at` */
	char *path;
	/* The open index file, for its lazy sections; -1 if it has none. */
	int fd;
};

uint64_t index_head_sum(const struct index_head *head)
{
	struct index_head copy = *head;

	copy.sum = 0;
	return XXH3_64bits(&copy, sizeof copy);
}

static int index_file_damaged(struct error *err, const char *what)
{
	return error_set(err, -EBADMSG, "damaged: %s", what);
}

/* ---- checking ------------------------------------------------------------ */

static int index_check_head(const struct index_head *h, struct error *err)
{
	if (memcmp(h->magic, INDEX_MAGIC, sizeof h->magic) != 0)
		return index_file_damaged(
			err, "it does not begin with the header of an index");
	if (h->endian == __builtin_bswap32(INDEX_ENDIAN))
		return error_set(err, -EINVAL,
				 "foreign: made on a machine of the other byte "
				 "order");
	if (h->endian != INDEX_ENDIAN)
		return index_file_damaged(err, "its byte order is not valid");
	if (h->layout != INDEX_LAYOUT)
		return error_set(
			err, -EINVAL,
			"foreign: it has layout %lu, this program reads %d",
			(unsigned long)h->layout, INDEX_LAYOUT);
	if (h->sum != index_head_sum(h))
		return index_file_damaged(
			err, "the checksum of its header is wrong");
	return 0;
}

/* Check that the sections follow each other, the eager ones first, and that the last
 * one ends at the end of the file. */
static int index_check_table(const struct index_head *h, uint64_t size,
			     struct error *err)
{
	const struct index_entry none = {0}, *before = &none;
	uint64_t end = sizeof *h;

	if (h->n > INDEX_SECTIONS_MAX)
		return index_file_damaged(err, "it has too many sections");
	for (unsigned i = 0; i < h->n; i++) {
		const struct index_entry *e = &h->table[i];

		if (e->off % INDEX_ALIGN || e->off < end ||
		    e->off - end >= INDEX_ALIGN || e->flags > INDEX_LAZY ||
		    e->flags < before->flags ||
		    (before->flags && e->size < before->size) ||
		    add_overflows(e->off, e->size, &end) ||
		    end > INT64_MAX - INDEX_ALIGN)
			return index_file_damaged(err,
						  "a section is out of place");
		before = e;
	}
	if (end != h->size)
		return index_file_damaged(
			err, "its sections do not end where the file ends");
	if (h->size == size)
		return 0;
	return error_set(err, -EBADMSG,
			 "damaged: it should have %llu bytes, but has %llu",
			 (unsigned long long)h->size, (unsigned long long)size);
}

/* ---- reading ------------------------------------------------------------- */

static int index_read_whole(int fd, uint64_t pos, void *to, uint64_t len,
			    struct error *err)
{
	ssize_t n = file_read(fd, pos, to, len);

	if (n < 0)
		return error_errno(err, (int)n, "cannot be read");
	if ((uint64_t)n < len)
		return index_file_damaged(err, "it ends early");
	return 0;
}

/* Read the sections that are not lazy and verify their checksums. */
static int index_read_sections(struct index *x, int fd, uint64_t lazy,
			       struct error *err)
{
	const struct index_entry *e = x->head.table;
	unsigned n = 0;
	int r;

	while (n < x->head.n && (!e[n].flags || e[n].size <= lazy))
		n++;
	x->eager = n ? e[n - 1].off + e[n - 1].size : 0;
	if (x->eager > LARGE && x->eager > system_memory() / 2)
		return error_set(err, -ENOMEM,
				 "loading it takes %llu bytes, more than half "
				 "of the memory",
				 (unsigned long long)x->eager);
	x->buf = buf_new(x->eager + INDEX_ALIGN, NULL);
	if (!x->buf)
		return error_no_memory(err, "an index file");
	x->at = x->buf->data +
		(INDEX_ALIGN - (uintptr_t)x->buf->data % INDEX_ALIGN) %
			INDEX_ALIGN;
	r = index_read_whole(fd, 0, (void *)(uintptr_t)x->at, x->eager, err);
	for (unsigned i = 0; i < n && r == 0; i++)
		if (XXH3_64bits(x->at + e[i].off, e[i].size) != e[i].sum)
			r = index_file_damaged(
				err, "the checksum of a section is wrong");
	return r;
}

static int index_read_file(struct index *x, const struct index_key *key,
			   int *fd, uint64_t size, uint64_t lazy,
			   struct error *err)
{
	int r;

	r = index_read_whole(*fd, 0, &x->head, min_u64(size, sizeof x->head),
			     err);
	if (r < 0)
		return r;
	if (size < sizeof x->head)
		return index_file_damaged(err, "it is shorter than its header");
	r = index_check_head(&x->head, err);
	if (r == 0)
		r = index_check_table(&x->head, size, err);
	if (r == 0)
		r = index_compare(key, &x->head, err);
	if (r == 0)
		r = index_read_sections(x, *fd, lazy, err);
	if (r == 0 && max_u64(x->eager, sizeof x->head) < size)
		x->fd = steal_fd(fd);
	return r;
}

/* ---- finding ------------------------------------------------------------- */

static int index_load_at(const struct index_key *key,
			 const struct index_place *at, uint64_t lazy,
			 struct index **out, struct error *err)
{
	struct index *x = calloc(1, sizeof *x);
	cleanup_close int fd = -1;
	struct stat st;
	int r;

	if (!x)
		return error_no_memory(err, "an index file");
	x->fd = -1;
	if (asprintf(&x->path, "%s/%s", at->dir, at->name) < 0) {
		x->path = NULL;
		r = error_no_memory(err, "an index file");
	} else {
		r = file_open(AT_FDCWD, x->path, &fd, &st, err);
		if (r == -ENODATA)
			r = error_set(err, -ENOENT, "there is no index");
	}
	if (fd >= 0 && !at->asked && !index_is_ours(key, &st))
		r = error_set(err, -EINVAL,
			      "%s: it belongs to another user than the archive "
			      "and is not used",
			      file_shown(x->path));
	else if (fd >= 0) {
		r = index_read_file(x, key, &fd, (uint64_t)st.st_size, lazy,
				    err);
		if (r < 0)
			error_prefix(err, "%s: ", file_shown(x->path));
	}
	if (r == 0)
		*out = x;
	else
		index_free(x);
	return r;
}

int index_load(const struct index_key *key, const struct index_options *o,
	       uint64_t lazy, struct index **out, struct error *err)
{
	struct index_places p;
	struct error why;
	int r, first;

	*out = NULL;
	if (!index_wanted(key, o))
		return error_set(err, -ENOENT, "no index is wanted");
	r = index_places(key, o, &p, err);
	if (r < 0)
		return r;
	first = r = index_load_at(key, &p.at[0], lazy, out, err);
	if (r < 0 && p.n > 1) {
		r = index_load_at(key, &p.at[1], lazy, out, &why);
		/* If the first index is missing, report what is wrong with the
		 * second one. */
		if (r < 0 && first == -ENOENT)
			error_set(err, r, "%s", why.text);
		else if (r < 0)
			r = first;
	}
	index_places_free(&p);
	return r;
}

/* ---- using --------------------------------------------------------------- */

static const struct index_entry *index_find_section(const struct index *x,
						    uint32_t id)
{
	for (unsigned i = 0; i < x->head.n; i++)
		if (x->head.table[i].id == id)
			return &x->head.table[i];
	return NULL;
}

const void *index_section(const struct index *x, uint32_t id, uint64_t *size)
{
	const struct index_entry *e = index_find_section(x, id);

	*size = 0;
	if (!e || e->off + e->size > x->eager)
		return NULL;
	*size = e->size;
	return x->at + e->off;
}

int index_blob(const struct index *x, uint32_t id, struct blob **out,
	       struct error *err)
{
	const struct index_entry *e = index_find_section(x, id);
	int fd;

	*out = NULL;
	if (!e || !e->size)
		return blob_of_memory(out, "", 0, err);
	if (e->off + e->size <= x->eager)
		return blob_of_memory(out, x->at + e->off, e->size, err);
	fd = fcntl(x->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return error_errno(err, -errno, "%s", file_shown(x->path));
	return blob_of_file(out, fd, e->off, e->size, err);
}

const char *index_path(const struct index *x)
{
	return x->path;
}

void index_free(struct index *x)
{
	if (!x)
		return;
	buf_unref(x->buf);
	free(x->path);
	if (x->fd >= 0)
		close(x->fd);
	free(x);
}
