/* SPDX-License-Identifier: BSD-2-Clause */
/* From time to time: what was copied is made safe, and what it was copied from goes. */

/*
 *   chunks in the data file   synced          then
 *   records in the journal    synced          then
 *   parts                     deleted
 *
 * in this order, so that at every moment each element is in a part that is there, or in a
 * chunk that the journal knows.  Threads go on meanwhile: only chunks that were in the
 * list before the first sync began are written down after it.
 */
#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/worker/worker.h"
#include "tensors/merge/bits.h"

/* Chunks of the list, whose data is written. */
static size_t seen(struct merge *m)
{
	lock_scope(&m->lock);

	return m->j.chunks.n;
}

/* Those that are not in the journal, and where their data ends.  Behind that there may be
 * room for chunks in the making: the file need not be so long when we are killed. */
static int list_chunks(struct merge *m, size_t n, struct journal *some,
		       struct error *err)
{
	lock_scope(&m->lock);

	*some = m->j; /* the list may move while we write */
	some->chunks = (__typeof__(some->chunks))VEC_EMPTY;
	for (size_t i = m->written; i < n; i++) {
		const struct journal_chunk *c = &m->j.chunks.at[i];

		if (c->at.len)
			some->end = max_u64(some->end, c->at.pos + c->at.len);
		if (!vec_push(&some->chunks, *c)) {
			vec_free(&some->chunks);
			return merge_no_memory(err);
		}
	}
	return 0;
}

static int journal_up_to(struct merge *m, size_t n, struct error *err)
{
	struct journal some;
	int r = list_chunks(m, n, &some, err);

	if (r < 0)
		return r;
	r = journal_write_chunks(&some, m->lock_fd, 0, some.end, err);
	m->j.whole = some.whole;
	m->j.end = some.end;
	for (size_t i = 0; i < some.chunks.n && r == 0; i++) {
		const struct journal_chunk *c = &some.chunks.at[i];

		for (uint64_t k = 0; k < (c->at.len ? 1 : c->at.pos); k++)
			bits_set(m->streams.at[c->stream].safe,
				 c->at.number + k);
	}
	vec_free(&some.chunks);
	return r;
}

static bool file_is_safe(const struct merge *m, const struct merge_file *f)
{
	for (size_t i = 0; i < f->uses.n; i++) {
		const struct merge_use *u = &f->uses.at[i];

		if (!merge_part_is_safe(&m->streams.at[u->stream], u->part))
			return false;
	}
	return f->uses.n > 0;
}

/* Nobody may have them open, or their room is not free. */
static int delete_parts(struct merge *m, struct error *err)
{
	uint64_t before = m->result->deleted;
	int r = 0;

	for (size_t i = 0; i < m->files.n && r == 0; i++) {
		struct merge_file *f = &m->files.at[i];

		if (f->gone || f->late || f->kept || !file_is_safe(m, f))
			continue;
		handles_let_go(m->handles, f->file);
		r = merge_place_delete(m, handles_path(m->handles, f->file),
				       &f->id, err);
		f->gone = r == 0;
	}
	if (m->result->deleted > before)
		hdf5_isolate_let_go();
	return r;
}

int merge_commit(struct merge *m, struct error *err)
{
	size_t n = seen(m);
	int r = 0;

	if (n > m->written) {
		if (fdatasync(m->data_fd) < 0)
			return error_errno(err, -errno, "cannot write '%s'",
					   file_shown(m->data_path));
		r = journal_up_to(m, n, err);
		if (r < 0)
			return r;
		m->written = n;
	}
	return delete_parts(m, err);
}
