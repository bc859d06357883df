/* SPDX-License-Identifier: BSD-2-Clause */
/* A sliding buffer over compressed bytes. */
#include "stream/slide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* Bytes that are read at once, at least, if there are so many. */
#define PIECE ((size_t)128 << 10)

void slide_of_scan(struct slide *f, struct stream_scan *s)
{
	*f = (struct slide){.scan = s, .next = scan_got(s), .at = scan_got(s)};
}

void slide_of_stream(struct slide *f, const struct stream *s, uint64_t in)
{
	*f = (struct slide){
		.stream = s, .next = in, .at = in, .end = s->from.size};
}

void slide_of_memory(struct slide *f, const void *data, size_t n, uint64_t at)
{
	*f = (struct slide){.data = data, .n = n, .at = at, .next = at + n};
	f->end = f->next;
}

void slide_free(struct slide *f)
{
	free(f->buf);
	f->buf = NULL;
	f->data = NULL;
	f->n = f->room = 0;
}

/* Read up to n bytes that follow the buffered ones. */
static ssize_t slide_get(struct slide *f, void *to, size_t n, struct error *err)
{
	ssize_t r;

	if (f->scan) {
		r = scan_get(f->scan, to, n, err);
	} else {
		n = f->next < f->end ? (size_t)min_u64(n, f->end - f->next) : 0;
		if (n && !f->stream)
			n = 0;
		r = n ? stream_get(f->stream, f->next, to, n, err) : 0;
		if (r == 0)
			r = (ssize_t)n;
	}
	if (r > 0)
		f->next += (uint64_t)r;
	return r;
}

/* Make room for n bytes from f->data on. */
static int slide_make_room(struct slide *f, size_t n, struct error *err)
{
	size_t want;
	unsigned char *p;

	if (n <= f->room) {
		if (f->n && f->data != f->buf)
			memmove(f->buf, f->data, f->n);
		f->data = f->buf;
		return 0;
	}
	want = max_u64(n, min_u64(2 * f->room, f->room + (1 << 20)));
	p = malloc(want);
	if (!p)
		return error_set(err, -ENOMEM,
				 "out of memory for %zu compressed bytes", n);
	if (f->n)
		memcpy(p, f->data, f->n);
	free(f->buf);
	f->data = f->buf = p;
	f->room = want;
	return 0;
}

ssize_t slide_need(struct slide *f, size_t n, struct error *err)
{
	if (f->n >= n)
		return (ssize_t)n;
	/* Bytes in memory are all that there are. */
	if (!f->scan && (!f->stream || f->next >= f->end))
		return (ssize_t)f->n;
	if (slide_make_room(f, max_u64(n, PIECE), err) < 0)
		return -ENOMEM;
	while (f->n < n) {
		ssize_t r = slide_get(f, f->buf + f->n, f->room - f->n, err);

		if (r < 0)
			return r;
		if (r == 0)
			return (ssize_t)f->n;
		f->n += (size_t)r;
	}
	return (ssize_t)n;
}

int slide_need_window(struct slide *f, uint64_t i, size_t n, struct error *err)
{
	const struct stream *s = f->stream;
	uint64_t end = i + 1 < s->n ? s->point[i + 1].in : s->from.size;
	ssize_t r = 0;

	if (end > f->at && end - f->at <= n + n / 8 + 65536)
		r = slide_need(f, (size_t)(end - f->at), err);
	return r < 0 ? (int)r : 0;
}

void slide_drop(struct slide *f, size_t n)
{
	f->data += n;
	f->n -= n;
	f->at += n;
}

int64_t slide_skip(struct slide *f, uint64_t n, struct error *err)
{
	uint64_t done = 0;

	if (!f->scan && f->stream && n > f->n) {
		/* Bytes of a file can be passed without reading them. */
		done = min_u64(n, f->end - f->at);
		f->at += done;
		f->next = f->at;
		f->n = 0;
		return (int64_t)done;
	}
	while (done < n) {
		size_t step = (size_t)min_u64(n - done, PIECE);
		ssize_t r = slide_need(f, step, err);

		if (r < 0)
			return r;
		slide_drop(f, (size_t)r);
		done += (uint64_t)r;
		if ((size_t)r < step)
			break;
	}
	return (int64_t)done;
}

ssize_t slide_read(struct slide *f, void *to, size_t n, struct error *err)
{
	size_t done = (size_t)min_u64(n, f->n);

	if (done)
		memcpy(to, f->data, done);
	slide_drop(f, done);
	while (done < n) {
		ssize_t r =
			slide_get(f, (unsigned char *)to + done, n - done, err);

		if (r < 0)
			return r;
		if (r == 0)
			break;
		f->at += (uint64_t)r;
		done += (size_t)r;
	}
	return (ssize_t)done;
}
