/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy members to memory that must be in one piece but are not stored so. */
#include "formats/stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "stream/backing.h"

#define PIECE (UINT64_C(1) << 20)

/* Bytes of all copies in this process. */
static _Atomic uint64_t staged;

static int stage_copy(const struct backing *b, int fd, struct error *err)
{
	cleanup_free void *buf = malloc(PIECE);
	uint64_t n;

	if (!buf)
		return error_no_memory(err, "a copy of a member");
	for (uint64_t at = 0; at < b->size; at += n) {
		int r;

		n = min_u64(b->size - at, PIECE);
		r = backing_read(b, at, buf, n, err);
		if (r < 0)
			return r;
		if (pwrite(fd, buf, n, (off_t)at) != (ssize_t)n)
			return error_set(
				err, -ENOMEM,
				"out of memory for a copy of %llu bytes",
				(unsigned long long)b->size);
	}
	return 0;
}

static int stage_refuse(const struct source_args *a, struct error *err)
{
	char size[32], most[32];

	format_size(a->inside->size, size, sizeof size);
	format_size(a->archive->stage, most, sizeof most);
	return error_set(err, -EFBIG,
			 "it would have to be decompressed to memory (%s), "
			 "where such copies may take a quarter of cache-size "
			 "(%s in all): raise cache-size, or extract it",
			 size, most);
}

static uint32_t stage_anew(const struct source_args *a, const char *name,
			   struct error *err)
{
	const struct backing *b = a->inside;
	cleanup_close int fd = -1;
	uint32_t file = UINT32_MAX;

	if (atomic_fetch_add(&staged, b->size) > a->archive->stage ||
	    atomic_load(&staged) > a->archive->stage)
		stage_refuse(a, err);
	else if ((fd = memfd_create("tensorfs", MFD_CLOEXEC)) < 0)
		error_errno(err, -errno, "cannot make a copy of it in memory");
	else if (stage_copy(b, fd, err) == 0) {
		file = handles_add_open(a->handles, steal_fd(&fd), name);
		if (file == UINT32_MAX)
			error_no_memory(err, "the table of files");
	}
	if (file == UINT32_MAX)
		atomic_fetch_sub(&staged, b->size);
	return file;
}

/* Return a name that no other copy has (malloc'ed).  Long paths are cut in a->path, so
 * equal ones are numbered. */
static char *unique_name(const struct source_args *a)
{
	for (unsigned i = 1;; i++) {
		char *name;

		if ((i == 1 ? asprintf(&name, "%s (decoded)", a->path)
			    : asprintf(&name, "%s (decoded, %u)", a->path, i)) <
		    0)
			return NULL;
		if (handles_find_open(a->handles, name) == UINT32_MAX)
			return name;
		free(name);
	}
}

uint32_t source_staged(const struct source_args *a, struct error *err)
{
	cleanup_free char *name = unique_name(a);

	if (!name) {
		error_no_memory(err, "a copy of a member");
		return UINT32_MAX;
	}
	return stage_anew(a, name, err);
}
