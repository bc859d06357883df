/* SPDX-License-Identifier: BSD-2-Clause */
/* Finishing a member table: entries and inodes are sorted, numbered and packed as
 * records. */
#include "members/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/number.h"

/*
 * As in tree/build.c, a counting sort groups entries by directory, each group is sorted
 * by name, and records are numbered breadth-first, one whole directory after the other.
 * The first entry of an inode in that order becomes the inode's record; other entries
 * of the inode become records that refer to it.
 */

struct packing {
	struct members_builder *b;
	/* Where the run of each parent begins in `kids`; n + 2 numbers. */
	uint32_t *start;
	uint32_t *kids;
	uint32_t *order;  /* entry of each record */
	uint64_t *record; /* record of each inode, plus 1; 0: none yet */
	struct member_record *at;
	uint64_t n;
	vec(struct member_common) common;
	uint32_t *slots; /* hash table of `common`: number plus 1; 0: free */
	size_t n_slots;  /* a power of two */
};

/* ---- versions ------------------------------------------------------------ */

/* Add the replaced versions of an entry as NAME.versions/1, 2, ...: the oldest is 1. */
static int finish_add_versions(struct members_builder *b, uint32_t entry)
{
	uint32_t v = b->entries.at[entry].version, parent, dir, numbers = 0;
	const char *name = b->names.at + b->entries.at[entry].name;
	struct build_inode r = {.kind = MEMBER_DIR, .mode = S_IFDIR | 0755};
	cleanup_free char *longer = NULL;

	for (uint32_t i = v; i; i = b->versions.at[i - 1].before)
		numbers++;
	if (asprintf(&longer, "%s.versions", name) < 0) {
		longer = NULL;
		return -ENOMEM;
	}
	parent = b->entries.at[entry].parent;
	if (strlen(longer) > 255 ||
	    ((dir = build_find(b, parent, longer, strlen(longer))) !=
		     ENTRY_NONE &&
	     b->entries.at[dir].inode != ENTRY_NONE)) {
		members_note(b, "versions without a name",
			     "%s: its earlier versions are not shown: '%s' "
			     "cannot be a directory for them",
			     name, longer);
		return 0;
	}
	dir = build_name(b, parent, longer, strlen(longer));
	r.mtime = b->inodes.at[b->versions.at[v - 1].inode].mtime;
	if (dir == ENTRY_NONE)
		return -ENOMEM;
	build_lead(b, dir, build_new_inode(b, &r));
	if (b->entries.at[dir].inode == ENTRY_NONE)
		return -ENOMEM;
	for (; v; v = b->versions.at[v - 1].before, numbers--) {
		char number[16];
		uint32_t e;

		snprintf(number, sizeof number, "%u", numbers);
		e = build_name(b, dir, number, strlen(number));
		if (e == ENTRY_NONE)
			return -ENOMEM;
		build_lead(b, e, b->versions.at[v - 1].inode);
	}
	return 0;
}

/* ---- gather, sort -------------------------------------------------------- */

static bool finish_is_live(const struct members_builder *b, size_t entry)
{
	return entry > 0 && b->entries.at[entry].inode != ENTRY_NONE;
}

static int finish_gather_entries(struct packing *p)
{
	const struct members_builder *b = p->b;
	size_t n = b->entries.n;

	p->start = calloc(n + 2, sizeof *p->start);
	p->kids = malloc(n * sizeof *p->kids);
	if (!p->start || !p->kids)
		return -ENOMEM;
	for (size_t i = 1; i < n; i++)
		if (finish_is_live(b, i))
			p->start[b->entries.at[i].parent + 2]++;
	for (size_t i = 2; i < n + 2; i++)
		p->start[i] += p->start[i - 1];
	for (size_t i = 1; i < n; i++)
		if (finish_is_live(b, i))
			p->kids[p->start[b->entries.at[i].parent + 1]++] =
				(uint32_t)i;
	return 0;
}

static int finish_compare_names(const void *a, const void *b, void *builder)
{
	const struct members_builder *m = builder;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return strcmp(m->names.at + m->entries.at[x].name,
		      m->names.at + m->entries.at[y].name);
}

static void finish_sort_run(struct packing *p, uint32_t *run, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++) /* most archives are sorted already */
		if (finish_compare_names(&run[i - 1], &run[i], p->b) > 0)
			break;
	if (i < n)
		qsort_r(run, n, sizeof *run, finish_compare_names, p->b);
}

/* Where no member gives the root a time, it gets the latest time of its entries. */
static void finish_date_root(struct packing *p)
{
	struct members_builder *b = p->b;
	struct build_inode *root = &b->inodes.at[b->entries.at[0].inode];

	if (root->mtime)
		return;
	for (uint32_t i = p->start[0]; i < p->start[1]; i++) {
		const struct build_inode *kid = build_inode(b, p->kids[i]);

		if (kid->mtime > root->mtime)
			root->mtime = kid->mtime;
	}
}

/* ---- number, pack -------------------------------------------------------- */

/* Return the multiple of 2^34 seconds (544 years) at or before the inode's time: a
 * record has 34 bits for the seconds since then. */
static int64_t finish_since(const struct build_inode *inode)
{
	return (int64_t)((uint64_t)inode->mtime & ~((UINT64_C(1) << 34) - 1));
}

/* Fill in record `i`.  Until finish_pack_common, its field `common` counts the names
 * of its inode. */
static void finish_pack_entry(struct packing *p, uint64_t i, uint64_t parent)
{
	struct members_builder *b = p->b;
	const struct build_entry *e = &b->entries.at[p->order[i]];
	const struct build_inode *inode = &b->inodes.at[e->inode];
	struct member_record *r = &p->at[i];

	*r = (struct member_record){
		.size = inode->size,
		.data = inode->data,
		.when = (uint64_t)(inode->mtime - finish_since(inode)) << 30 |
			inode->nsec,
		.parent = (uint32_t)parent,
		.common = 1,
		.name = (uint32_t)e->name,
		.name_high = (uint8_t)(e->name >> 32),
		.kind = inode->kind,
		.mode = inode->mode};
	if (r->kind == MEMBER_DIR) {
		r->common = 2;
		p->at[parent].common += i > 0;
	} else if (p->record[e->inode]) {
		r->kind = MEMBER_LINK;
		r->data = p->record[e->inode] - 1;
		r->size = 0;
		r->common = 0;
		p->at[r->data].common++;
	} else {
		p->record[e->inode] = i + 1;
	}
}

static void finish_pack_records(struct packing *p)
{
	uint64_t next = 1;

	p->order[0] = 0;
	finish_pack_entry(p, 0, 0);
	for (uint64_t i = 0; i < next; i++) {
		uint32_t e = p->order[i];
		uint32_t first = p->start[e], n = p->start[e + 1] - first;

		if (p->at[i].kind != MEMBER_DIR)
			continue;
		finish_sort_run(p, &p->kids[first], n);
		p->at[i].data = next;
		p->at[i].size = n;
		for (uint32_t j = 0; j < n; j++) {
			p->order[next + j] = p->kids[first + j];
			finish_pack_entry(p, next + j, i);
		}
		next += n;
	}
	p->n = next;
}

/* ---- what they have in common -------------------------------------------- */

/* Return the slot of `c`; if there is no equal, the free slot where it would go. */
static size_t finish_common_slot(const struct packing *p,
				 const struct member_common *c)
{
	size_t i = (size_t)XXH3_64bits_withSeed(c, sizeof *c, p->b->seed) &
		   (p->n_slots - 1);

	while (p->slots[i] &&
	       memcmp(&p->common.at[p->slots[i] - 1], c, sizeof *c))
		i = (i + 1) & (p->n_slots - 1);
	return i;
}

static bool finish_grow_common(struct packing *p)
{
	size_t want = p->n_slots ? 2 * p->n_slots : 64;
	uint32_t *slots = calloc(want, sizeof *slots);

	if (!slots)
		return false;
	free(p->slots);
	p->slots = slots;
	p->n_slots = want;
	for (size_t i = 0; i < p->common.n; i++)
		slots[finish_common_slot(p, &p->common.at[i])] =
			(uint32_t)i + 1;
	return true;
}

/* Return the number of `c` in `common`, where it is added if it is new, or
 * UINT32_MAX when memory is out. */
static uint32_t finish_common_number(struct packing *p,
				     const struct member_common *c)
{
	size_t slot;

	if (2 * p->common.n >= p->n_slots && !finish_grow_common(p))
		return UINT32_MAX;
	slot = finish_common_slot(p, c);
	if (!p->slots[slot]) {
		if (!vec_push(&p->common, *c))
			return UINT32_MAX;
		p->slots[slot] = (uint32_t)p->common.n;
	}
	return p->slots[slot] - 1;
}

static int finish_pack_common(struct packing *p)
{
	for (uint64_t i = 0; i < p->n; i++) {
		const struct build_entry *e = &p->b->entries.at[p->order[i]];
		const struct build_inode *inode = &p->b->inodes.at[e->inode];
		struct member_record *r = &p->at[i];
		const struct member_common c = {
			.since = finish_since(inode),
			.uid = inode->uid,
			.gid = inode->gid,
			.nlink = r->common,
			.xattrs = r->kind == MEMBER_LINK ? 0 : inode->xattrs,
			.volume = inode->volume};

		r->common = finish_common_number(p, &c);
		if (r->common == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

/* Number and pack all entries that can be reached from the root.  Entries of a
 * directory that was replaced by a file are never reached: they take memory until
 * the builder is freed. */
static int finish_pack(struct packing *p)
{
	size_t n = p->b->entries.n;
	int r = finish_gather_entries(p);

	if (r < 0)
		return r;
	p->order = malloc(n * sizeof *p->order);
	p->record = calloc(p->b->inodes.n, sizeof *p->record);
	p->at = malloc(n * sizeof *p->at);
	if (!p->order || !p->record || !p->at)
		return -ENOMEM;
	finish_date_root(p);
	finish_pack_records(p);
	return finish_pack_common(p);
}

/* Write into the head of each sparse member's map how many of its bytes are stored. */
static void finish_sum_maps(struct packing *p)
{
	struct member_extent *x = p->b->extents.at;

	for (uint64_t i = 0; i < p->n; i++) {
		const struct member_record *r = &p->at[i];
		uint64_t sum = 0;

		if (r->kind != MEMBER_SPARSE || r->data >= p->b->extents.n)
			continue;
		for (uint64_t k = 1;
		     k <= x[r->data].off && r->data + k < p->b->extents.n; k++)
			sum += x[r->data + k].len;
		x[r->data].pos = sum;
	}
}

static void *finish_move_array(void **from, void **own)
{
	void *p = *from;

	*own = p;
	*from = NULL;
	return p;
}

static int finish_hand_over(struct packing *p, struct members *out)
{
	struct members_builder *b = p->b;
	size_t notes, damage;
	void *text = build_notes_text(b, &notes, &damage);
	void *smaller = realloc(p->at, p->n * sizeof *p->at);

	memset(out, 0, sizeof *out);
	if (smaller)
		p->at = smaller;
	out->n = p->n;
	out->at = finish_move_array((void **)&p->at, &out->own[0]);
	out->names_size = b->names.n;
	out->names = finish_move_array((void **)&b->names.at, &out->own[1]);
	out->n_extents = b->extents.n;
	out->extents = finish_move_array((void **)&b->extents.at, &out->own[2]);
	out->n_blocks = b->blocks.n;
	out->blocks = finish_move_array((void **)&b->blocks.at, &out->own[3]);
	out->block_size = b->block_size;
	out->xattrs_size = b->xattrs.n;
	out->xattrs = finish_move_array((void **)&b->xattrs.at, &out->own[4]);
	out->n_common = p->common.n;
	out->common = finish_move_array((void **)&p->common.at, &out->own[6]);
	out->notes_size = text ? notes : 0;
	out->damage_size = text ? damage : 0;
	out->left_out = b->left_out;
	out->notes = out->own[5] = text;
	return text ? 0 : -ENOMEM;
}

static void finish_count_holes(struct packing *p)
{
	struct members_builder *b = p->b;

	for (uint64_t i = 0; i < p->n && b->block_size; i++) {
		const struct member_record *r = &p->at[i];
		uint64_t n = div_up(r->size, b->block_size);
		uint32_t holes = 0;

		if (r->kind != MEMBER_BLOCKS || r->data >= b->blocks.n ||
		    n > b->blocks.n - r->data)
			continue;
		for (uint64_t k = r->data; k < r->data + n; k++)
			holes += member_block_is_hole(&b->blocks.at[k]);
		b->blocks.at[r->data].holes = holes;
	}
}

int members_finish(struct members_builder *b, struct members *out,
		   struct error *err)
{
	struct packing p = {.b = b};
	size_t n = b->entries.n;
	int r = 0;

	memset(out, 0, sizeof *out);
	for (uint32_t i = 1; i < n && r == 0; i++)
		if (b->entries.at[i].version && finish_is_live(b, i))
			r = finish_add_versions(b, i);
	if (r == 0)
		r = finish_pack(&p);
	if (r == 0) {
		finish_count_holes(&p);
		finish_sum_maps(&p);
		r = finish_hand_over(&p, out);
	}
	if (r < 0)
		error_no_memory(err, "the table of members");
	free(p.start);
	free(p.kids);
	free(p.order);
	free(p.record);
	free(p.at);
	free(p.slots);
	vec_free(&p.common);
	members_builder_free(b);
	if (r == 0)
		r = members_check(out, true, err);
	if (r < 0)
		members_free(out);
	return r;
}
