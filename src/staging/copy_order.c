/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of copying and the units of work, such that each chunk is decoded once. */

/*
 * Members of an archive are sorted by the places of their bytes.  One thread gets a
 * batch of neighbours, and a batch ends where another chunk begins, so that two threads
 * seldom need the same chunk.
 *
 * Samples of a tensor are in order already.  Where a row of chunks is larger than the
 * cache, copying one sample after the other would decode the whole row for each sample.
 * So they are copied in groups:
 *
 *	          chunk 0    chunk 1    chunk 2
 *	sample 0 |----------|----------|----------|     a group has all samples
 *	sample 1 |          |          |          |     that begin in the same chunk;
 *	sample 2 |          |          |          |     one window of each is copied,
 *	           window     window     window         then the next window of each
 *
 * and about as many bytes are decoded at a time as are written.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/number.h"
#include "staging/copy_private.h"

/* A batch of whole files for one thread ends when it has this many bytes or files ... */
#define BATCH_BYTES (UINT64_C(4) << 20)
#define BATCH_FILES 512
/* ... or, once it has this many bytes, where another chunk begins. */
#define BATCH_LEAST (UINT64_C(256) << 10)
/* In a file that is stored plainly, regions of 2^22 bytes count as chunks. */
#define REGION_SHIFT 22
/* The size of a window is a multiple of this, in bytes. */
#define WINDOW_STEP (UINT64_C(16) << 10)
/* Samples need no windows if they take at most 1/GROUP_SHARE of the cache; the windows of
 * all threads together take about 1/WINDOW_SHARE of it. */
#define GROUP_SHARE 2
#define WINDOW_SHARE 4

static int by_place(const void *a, const void *b)
{
	const struct copy_file *x = a, *y = b;

	if (x->set != y->set)
		return x->set < y->set ? -1 : 1;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	if (x->skip != y->skip)
		return x->skip < y->skip ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

/* ---- groups -------------------------------------------------------------- */

/* Find the chunk that a sample begins in, using *map.  Return false if it is not
 * known: reading the sample will report the reason. */
static bool first_chunk(const struct copy_plan *p, const struct copy_file *f,
			struct plan *map, uint64_t *set, uint64_t *index)
{
	struct node n;

	if (tree_node(fs_tree(p->fs), f->ino, &n) < 0 || !n.files ||
	    n.files->ops->prepare(n.files, n.node, 0, 4096, NULL) < 0)
		return false;
	plan_init(map, min_u64(f->size, 4096));
	if (n.files->ops->map(n.files, n.node, 0, map, NULL) < 0)
		return false;
	for (unsigned i = 0; i < map->n; i++)
		if (map->ext[i].kind == EXTENT_CHUNK) {
			*set = map->ext[i].u.chunk.set->id;
			*index = map->ext[i].u.chunk.index;
			return true;
		}
	return false;
}

/* Add files [first, first + n) as a group, if they need windows.  Return false if
 * there is no memory. */
static bool push_group(struct copy_plan *p, const struct copy_options *o,
		       uint64_t first, uint64_t n)
{
	uint64_t size = p->files.at[first].size, all;
	uint64_t most = o->cache_size / WINDOW_SHARE / o->threads;
	struct copy_group g = {first, n, 0};

	if (n < 2 || mul_overflows(size, n, &all) ||
	    all <= o->cache_size / GROUP_SHARE)
		return true;
	g.window = max_u64(most / n / WINDOW_STEP, 1) * WINDOW_STEP;
	if (g.window >= size)
		return true;
	for (uint64_t i = first; i < first + n; i++)
		p->files.at[i].flags |= COPY_APART;
	return vec_push(&p->groups, g);
}

/* Group samples [first, end) of one directory, which all have one size.  Return false if
 * there is no memory. */
static bool find_groups(struct copy_plan *p, const struct copy_options *o,
			uint64_t first, uint64_t end, struct plan *map,
			const _Atomic int *stop)
{
	uint64_t set = 0, index = 0, begin = first;

	for (uint64_t i = first; i < end && !*stop; i++) {
		uint64_t s = 0, x = 0;
		bool known = first_chunk(p, &p->files.at[i], map, &s, &x);

		if (i > first && known && s == set && x == index)
			continue;
		if (!push_group(p, o, begin, i - begin))
			return false;
		begin = i;
		set = known ? s : 0;
		index = x;
	}
	return push_group(p, o, begin, end - begin);
}

/* ---- order --------------------------------------------------------------- */

int copy_order(struct copy_plan *p, const struct copy_options *o,
	       const _Atomic int *stop, struct error *err)
{
	struct plan *map = malloc(sizeof *map);
	struct copy_file *f = p->files.at;
	uint64_t n = p->files.n, end;
	bool ok = map, sorted = true;

	for (uint64_t i = 1; i < n && sorted; i++)
		sorted = by_place(&f[i - 1], &f[i]) <= 0;
	if (!sorted)
		qsort(f, n, sizeof *f, by_place);
	for (uint64_t i = 0; i < n && ok; i = end) {
		uint64_t all = f[i].size;

		for (end = i + 1;
		     end < n && (f[i].flags & f[end].flags & COPY_TENSOR) &&
		     f[end].dir == f[i].dir && f[end].size == f[i].size;
		     end++)
			all += f[i].size;
		if ((f[i].flags & COPY_TENSOR) && end - i > 1 &&
		    all > o->cache_size / GROUP_SHARE)
			ok = find_groups(p, o, i, end, map, stop);
	}
	for (uint64_t i = 0; i < n; i++) {
		if (f[i].size > COPY_LARGE)
			f[i].flags |= COPY_APART;
		if ((f[i].flags & (COPY_APART | COPY_HOLES)) == COPY_APART)
			p->apart += f[i].size;
	}
	free(map);
	if (!ok)
		return error_no_memory(err, "the order of the files to copy");
	return 0;
}

/* ---- the queue ----------------------------------------------------------- */

void copy_queue_init(struct copy_queue *q, const struct copy_plan *p)
{
	*q = (struct copy_queue){.plan = p};
	pthread_mutex_init(&q->lock, NULL);
}

static bool same_chunk(const struct copy_file *a, const struct copy_file *b)
{
	unsigned shift = a->set >> 31 ? REGION_SHIFT : 0;

	return a->set == b->set && a->index >> shift == b->index >> shift;
}

/* Take one window of the n files of a group, or a piece of one file. */
static void take_piece(struct copy_queue *q, uint64_t n, uint64_t window,
		       struct copy_unit *out)
{
	uint64_t size = q->plan->files.at[q->next].size;

	*out = (struct copy_unit){.first = q->next,
				  .n = n,
				  .off = q->off,
				  .len = min_u64(window, size - q->off)};
	q->off += out->len;
	if (q->off < size)
		return;
	q->off = 0;
	q->next += n;
}

/* Take a batch of whole files. */
static void take_batch(struct copy_queue *q, struct copy_unit *out)
{
	const struct copy_file *f = q->plan->files.at;
	uint64_t bytes = 0, i = q->next;

	do
		bytes += f[i++].size;
	while (i < q->plan->files.n && !(f[i].flags & COPY_APART) &&
	       bytes < BATCH_BYTES && i - q->next < BATCH_FILES &&
	       (bytes < BATCH_LEAST || (f[i].flags & COPY_TENSOR) ||
		same_chunk(&f[i - 1], &f[i])));
	*out = (struct copy_unit){
		.first = q->next, .n = i - q->next, .whole = true};
	q->next = i;
}

bool copy_queue_take(struct copy_queue *q, struct copy_unit *out)
{
	const struct copy_plan *p = q->plan;
	const struct copy_group *g;
	bool any;

	pthread_mutex_lock(&q->lock);
	any = q->next < p->files.n;
	while (q->group < p->groups.n &&
	       p->groups.at[q->group].first + p->groups.at[q->group].n <=
		       q->next)
		q->group++;
	g = q->group < p->groups.n ? &p->groups.at[q->group] : NULL;
	if (any && g && q->next >= g->first)
		take_piece(q, g->n, g->window, out);
	else if (any && p->files.at[q->next].flags & COPY_APART)
		take_piece(q, 1, COPY_PIECE, out);
	else if (any)
		take_batch(q, out);
	pthread_mutex_unlock(&q->lock);
	return any;
}
