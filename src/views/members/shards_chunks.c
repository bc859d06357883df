/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the view shards/ that are made when they are read: long headers, the
 * index. */
#include "views/members/shards.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "shards/tar_entry.h"
#include "shards/ustar.h"

static struct member_view_shards *shards_of_set(const struct chunk_set *set)
{
	return (struct member_view_shards *)((char *)(uintptr_t)set -
					     offsetof(struct member_view_shards,
						      set));
}

static void shards_set_index_line(const void *ctx, uint64_t k,
				  struct shards_line *out)
{
	const struct member_view_shards *s = ctx;
	const struct member_view_shard *x = &s->shard[k];

	*out = (struct shards_line){
		.samples = x->samples,
		.files = x->files,
		.size = ustar_archive_size(member_view_shard_taken(s, x))};
}

struct header {
	unsigned char *at;
	size_t n, room;
};

static int header_keep_bytes(void *ctx, const void *bytes, size_t n, bool data,
			     struct error *err)
{
	struct header *h = ctx;

	(void)data;
	if (n > h->room - h->n)
		return error_set(err, -EIO,
				 "the tar header of a member is longer than "
				 "when shards/ was laid out");
	memcpy(h->at + h->n, bytes, n);
	h->n += n;
	return 0;
}

/* Make the header of member i in `h`, with the writer that `pack` uses. */
static int shards_set_make_header(const struct member_view_shards *s,
				  uint64_t i, struct header *h,
				  struct error *err)
{
	const struct members *m = member_views_args(s->b)->m;
	const struct member_record *r =
		&m->at[member_view_node(s->b, s->record[i])];
	struct member_view_path path = {0};
	struct feed_unit u = {.attr = {.mode = r->mode,
				       .size = r->size,
				       .mtime = member_mtime(m, r)},
			      .first = true,
			      .last = true};
	struct tar_writer *w;
	int code;

	if (member_view_path(s->b, s->record[i], &path) < 0)
		return error_no_memory(err, "the path of a member");
	u.path = path.at;
	code = tar_writer_new(&w, true, header_keep_bytes, h, err);
	if (code == 0) {
		code = tar_writer_begin(w, &u, err);
		tar_writer_free(w);
	}
	free(path.at);
	if (code == 0 && h->n != h->room)
		code = error_set(err, -EIO,
				 "the tar header of a member is shorter than "
				 "when shards/ was laid out");
	return code;
}

static struct buf *shards_set_copy(const void *data, size_t n,
				   _Atomic uint64_t *gauge)
{
	struct buf *b = data ? buf_new(n, gauge) : NULL;

	if (b)
		memcpy(b->data, data, n);
	return b;
}

static int shards_set_fetch(struct chunk_set *set, uint64_t index,
			    _Atomic uint64_t *gauge, struct buf **out,
			    struct error *err)
{
	const struct member_view_shards *s = shards_of_set(set);
	cleanup_free void *bytes = NULL;
	struct header h = {0};
	int r = 0;

	if (index >= s->n) {
		bytes = shards_index_text(s->name, s->n_shards,
					  shards_set_index_line, s, &h.n);
	} else {
		const struct member_record *m =
			&member_views_args(s->b)->m->at[member_view_node(
				s->b, s->record[index])];

		h.room = (size_t)(s->at[index + 1] - s->at[index] -
				  ustar_padded(m->size));
		bytes = h.at = malloc(h.room);
		r = bytes ? shards_set_make_header(s, index, &h, err) : 0;
	}
	if (r < 0)
		return r;
	*out = shards_set_copy(bytes, h.n, gauge);
	return *out ? 0
		    : error_no_memory(err, "a header or the index of shards/");
}

static void shards_set_describe(const struct chunk_set *set, uint64_t index,
				char *buf, size_t n)
{
	const struct member_view_shards *s = shards_of_set(set);

	if (index >= s->n)
		snprintf(buf, n, "%s shards/%s-index.json",
			 member_views_args(s->b)->source, s->name);
	else
		snprintf(buf, n, "%s shards: header of a member",
			 member_views_args(s->b)->source);
}

static const struct chunk_set_ops shards_set_ops = {
	.index_page_of = chunk_text_index_page_of,
	.locate = chunk_text_locate,
	.fetch = shards_set_fetch,
	.describe = shards_set_describe,
};

void member_view_shards_chunks(struct member_view_shards *s)
{
	s->set.ops = &shards_set_ops;
	s->set.id = chunk_set_new_id();
	s->set.unit = 4096;
}
