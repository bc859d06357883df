/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of streams of Zstandard frames. */
#include <errno.h>
#include <stdlib.h>

#include "stream/idle_decoders.h"
#include "stream/zstd_frame.h"

static int zstd_window_open(void **out, const struct stream *s, uint64_t i,
			    struct error *err)
{
	struct zstd_cursor *c = calloc(1, sizeof *c);

	if (!c)
		return error_no_memory(err, "decoding zstd data");
	slide_of_stream(&c->feed, s, s->point[i].in);
	c->file_size = s->from.size;
	*out = c;
	return 0;
}

static int zstd_window_read(void *decoder, const struct stream *s, uint64_t i,
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

static size_t zstd_window_memory(void *decoder)
{
	struct zstd_cursor *c = decoder;

	return c->feed.room + (c->d ? ZSTD_sizeof_DCtx(c->d) : 0);
}

static void zstd_window_close(void *decoder)
{
	zstd_cursor_free(decoder);
	free(decoder);
}

static const struct idle_decoder_ops idle_decoder_ops = {
	.open = zstd_window_open,
	.read = zstd_window_read,
	.memory = zstd_window_memory,
	.close = zstd_window_close,
};

int zstd_window(struct stream *s, uint64_t i, unsigned char *out,
		struct error *err)
{
	return idle_decoder_window(s, &idle_decoder_ops, i, out, err);
}
