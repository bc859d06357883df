/* SPDX-License-Identifier: BSD-2-Clause */
/* For fuzz targets of compressed streams: a file, its windows, points for it. */
#ifndef TESTS_FUZZ_FUZZ_STREAM_H
#define TESTS_FUZZ_FUZZ_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream/stream_private.h"
#include "base/log.h"
#include "fuzz.h"

/* Some of the input as a file. */
struct fuzz_file {
	struct handles *handles;
	struct backing backing;
	int fd;
};
static inline void fuzz_file_open(struct fuzz_file *f, const uint8_t *data,
				  size_t size)
{
	struct error err = {0};
	char path[64];

	log_set_level(LOG_LEVEL_ERROR);
	f->fd = memfd_create("fuzz", MFD_CLOEXEC);
	FUZZ_CHECK(f->fd >= 0);
	FUZZ_CHECK(write(f->fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
	FUZZ_CHECK(handles_new(&f->handles, 4, 1, &err) == 0);
	FUZZ_CHECK(backing_file(&f->backing, f->handles, NULL,
				handles_add(f->handles, path), 0, &err) == 0);
}
static inline void fuzz_file_close(struct fuzz_file *f)
{
	handles_free(f->handles);
	close(f->fd);
}

/* A first pass: bytes of it, at most `room`, in pieces of all sizes below `piece`. */
static inline size_t fuzz_read(struct stream_scan *scan, unsigned char *to,
			       size_t room, size_t seed, size_t piece,
			       struct error *err)
{
	size_t had = 0;
	ssize_t got;

	do {
		size_t n = 1 + (had * 31 + seed) % piece;

		n = n < room - had ? n : room - had;
		got = input_read(stream_scan_input(scan), to + had, n, err);
		had += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	return had;
}

/* Window `i` has the bytes of the `whole`, unless it is bad; where that is NULL, any
 * bytes or an error that damage may be.  `memory`: or that there is too little of
 * it, for what is asked for. */
static inline void fuzz_window(struct stream *s, uint64_t i,
			       const unsigned char *whole, bool memory)
{
	struct chunk_set *set = stream_set(s);
	_Atomic uint64_t gauge = 0;
	struct error err = {0};
	struct buf *b = NULL;
	uint64_t n;
	const struct stream_point *p = stream_points(s, &n);
	int r;

	FUZZ_CHECK(i < n);
	r = set->ops->fetch(set, i, &gauge, &b, &err);
	if (r < 0)
		FUZZ_CHECK(r == err.code && *err.text);
	if (r < 0 && !whole)
		FUZZ_CHECK(r == -EBADMSG || r == -EIO || r == -ENOTSUP ||
			   (r == -ENOMEM && memory));
	if (whole && !(p[i].flags & POINT_BAD))
		FUZZ_CHECK(r == 0 &&
			   !memcmp(b->data, whole + p[i].out, p[i].size));
	buf_unref(b);
	FUZZ_CHECK(gauge == 0);
}

/* Bytes of an input that make a point. */
#define FUZZ_POINT 11u
#define FUZZ_POINTS 16
/* `n` of these from `in`, below FUZZ_POINTS, are taken for an index of the file: they
 * may lead anywhere but out of bounds. */
static inline void fuzz_index(const struct stream_format *f,
			      const struct backing *b, struct fuzz_input *in,
			      uint8_t n, const uint8_t *state,
			      size_t state_size, bool memory)
{
	struct stream_point points[FUZZ_POINTS] = {{0}};
	struct error err = {0};
	struct blob *states;
	struct stream *s;
	uint64_t out = 0;

	for (unsigned i = 0; i < n; i++) {
		struct stream_point *p = &points[i];

		p->out = out;
		p->in = fuzz_u16(in);
		p->state = fuzz_u8(in);
		p->state_size = fuzz_u16(in);
		p->size = 1 + fuzz_u32(in) % 200000;
		p->bits = fuzz_u8(in);
		p->flags = fuzz_u8(in) & ~POINT_BAD;
		out += p->size;
	}
	FUZZ_CHECK(blob_of_memory(&states, state, state_size, &err) == 0);
	if (stream_of_points(&s, f, b, points, n, states, &err) < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		fuzz_window(s, i, NULL, memory);
	stream_free(s);
}

#endif
