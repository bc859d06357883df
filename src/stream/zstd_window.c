/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of streams of Zstandard frames. */
#include <errno.h>
#include <stdlib.h>

#include "stream/parked.h"
#include "stream/zstd_frame.h"

static int cursor_open(void **out, const struct stream *s, uint64_t i,
		       struct error *err)
{
	struct zstd_cursor *c = calloc(1, sizeof *c);

	if (!c)
		return error_set(err, -ENOMEM, "zstd: out of memory");
	slide_of_stream(&c->feed, s, s->point[i].in);
	c->file_size = s->from.size;
	*out = c;
	return 0;
}

static int cursor_read(void *decoder, const struct stream *s, uint64_t i,
		       unsigned char *out, size_t n, struct error *err)
{
	struct zstd_cursor *c = decoder;
	int r = slide_need_window(&c->feed, i, n, err);
	size_t done = 0;

	(void)s;
	if (r < 0)
		return r;
	while (done < n) {
		size_t got;

		r = zstd_cursor_step(c, out + done, n - done, &got, err);
		if (r == 0)
			r = error_set(err, -EBADMSG,
				      "zstd: the data ends within a window");
		if (r < 0)
			return r == -EILSEQ ? error_set(err, -EBADMSG, "%s",
							"zstd: a checksum does "
							"not match")
					    : r;
		done += got;
	}
	return 0;
}

static size_t cursor_memory(void *decoder)
{
	struct zstd_cursor *c = decoder;

	return c->feed.room + (c->d ? ZSTD_sizeof_DCtx(c->d) : 0);
}

static void cursor_close(void *decoder)
{
	zstd_cursor_free(decoder);
	free(decoder);
}

static const struct parked_ops parked_ops = {
	.open = cursor_open,
	.read = cursor_read,
	.memory = cursor_memory,
	.close = cursor_close,
};

int zstd_window(struct stream *s, uint64_t i, unsigned char *out,
		struct error *err)
{
	return parked_window(s, &parked_ops, i, out, err);
}
