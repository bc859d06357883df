/* SPDX-License-Identifier: BSD-2-Clause */
/* verify: read and decode an archive once, and report what is bad as members. */
/*
 *	scan      the archive is read as if it had no index, with all checksums of its
 *	          format, unless that has just been done; the result is compared with
 *	          what the index says (compare.c)
 *	places    all windows or blocks are decoded by several threads; an index has the
 *	          checksum of each window
 *	members   those whose bytes are in a bad place, or beyond the end, are reported
 *
 * With an index, the windows behind damage are decoded like any other: bytes that a
 * mount can read are not called bad.
 *
 * For a part of an archive, only its places are checked.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/archive/places.h"
#include "formats/archive/verify.h"

#define PATH_ROOM 4096

void archive_bad_member(struct archive_check *k, uint64_t record, int code,
			const char *why)
{
	struct source_bad bad = {.code = code, .why = why};
	cleanup_free char *name = NULL;
	char path[PATH_ROOM];

	if (k->said[record])
		return;
	k->said[record] = 1;
	members_path(&k->a->members, record, path, sizeof path);
	if (asprintf(&name, "%s%s", k->c->prefix, path) < 0)
		name = NULL;
	bad.name = name ? name : path;
	k->c->bad(k->c, &bad);
}

void archive_bad(struct archive_check *k, int code, const char *why)
{
	const struct source_bad bad = {
		.name = k->a->path, .code = code, .why = why};

	k->c->bad(k->c, &bad);
}

/* ---- scanning again ------------------------------------------------------ */

struct again {
	struct source_check *c;
	uint64_t done;
};

static void advance_again(void *ctx, const char *path, uint64_t done,
			  uint64_t total)
{
	struct again *s = ctx;

	(void)path;
	(void)total;
	if (done <= s->done)
		return;
	s->c->advance(s->c, done - s->done);
	s->done = done;
}

/* Return what is wrong with the stream, without the name of the file. */
static const char *damage_of(const struct archive *a)
{
	size_t n = strlen(a->path);

	if (a->damage && !strncmp(a->damage, a->path, n) &&
	    !strncmp(a->damage + n, ": ", 2))
		return a->damage + n + 2;
	return a->damage;
}

/* Report the damage that a scan noted.  If a stream is damaged, the index knows the
 * tar in it better. */
static void list_damage(struct archive_check *k, const struct archive *now)
{
	const struct members *m = &(now->damage ? k->a : now)->members;
	const char *at = m->notes, *end = at ? at + m->damage_size : NULL;
	const char *damage = damage_of(now);

	if (damage)
		archive_bad(k, -EBADMSG, damage);
	while (at && at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t n = line ? (size_t)(line - at) : (size_t)(end - at);
		cleanup_free char *why = strndup(at, n);

		/* The damage that ended a stream has ended the tar in it, too:
		 * report it once. */
		if (!why || !damage || !strstr(why, damage))
			archive_bad(k, -EBADMSG, why ? why : "it is damaged");
		at += n + 1;
	}
}

/* Return true if all blocks of an image have checksums.  Only a compressor may have
 * them, so blocks that are not compressed have none. */
static bool blocks_have_checksums(const struct archive *a)
{
	const struct members *m = &a->members;
	const struct codec *codec = squashfs_block_codec(&a->info);
	bool all = codec && codec->has_checksum;

	for (uint64_t i = 0; all && i < m->n_blocks; i++)
		all = !m->blocks[i].stored ||
		      !(m->blocks[i].flags & MEMBER_STORED);
	return all;
}

/* A plain tar has checksums of its headers, and none of the data of members. */
bool archive_has_checksums(const struct archive *a)
{
	if (a->volume.blocks)
		return blocks_have_checksums(a);
	return a->stream ? stream_has_checksums(a->stream) : a->zip != NULL;
}

/* Report what was not checked. */
static void report_coverage(struct archive_check *k)
{
	const struct archive *now = k->fresh ? k->fresh : k->a;
	uint32_t left_out = now->members.left_out;

	if (k->root == 0 && left_out)
		k->c->left_out(k->c, k->a->path, left_out);
	/* The newly scanned archive has no set of blocks, so the open one is asked
	 * for an image. */
	k->c->covered = archive_has_checksums(k->a->volume.blocks ? k->a : now);
	if (!k->c->covered)
		k->c->no_checksums(k->c);
}

static int verify_scan(struct archive_check *k, struct error *err)
{
	struct again s = {.c = k->c};
	const struct archive_options o = {.threads = k->c->threads,
					  .progress = advance_again,
					  .progress_ctx = &s};
	struct error why = {0};
	int r = archive_scan_again(k->a, &o, &k->fresh, &why);

	if (r == -ENOMEM)
		return error_no_memory(err, "scanning the archive again");
	advance_again(&s, NULL, k->a->stored.size, 0);
	if (r < 0) {
		archive_bad(k, r, why.text);
		return 0;
	}
	list_damage(k, k->fresh);
	return archive_compare(k, err);
}

/* ---- members ------------------------------------------------------------- */

/* Return true if a record is the one to verify or below it. */
static bool is_record_wanted(const struct archive_check *k, uint64_t i)
{
	return !k->below || k->below[i];
}

static bool want_places(void *ctx, uint64_t first, uint64_t last)
{
	struct archive_check *k = ctx;

	memset(k->wanted + first, 1, last - first + 1);
	return true;
}

/* Return the record that has the content: for a hard link, its inode's. */
static const struct member_record *content_of(const struct archive_check *k,
					      uint64_t i)
{
	const struct member_record *r = &k->a->members.at[i];

	return r->kind == MEMBER_LINK ? &k->a->members.at[r->data] : r;
}

/* Choose the records to verify.  A directory precedes its entries. */
static int choose_records(struct archive_check *k, struct error *err)
{
	const struct members *m = &k->a->members;

	if (k->root == 0)
		return 0;
	k->below = calloc(m->n, 1);
	k->wanted = calloc(places_count(k->a) + 1, 1);
	if (!k->below || !k->wanted)
		return error_no_memory(err, "the list of members to check");
	for (uint64_t i = k->root; i < m->n; i++) {
		k->below[i] = i == k->root || k->below[m->at[i].parent];
		if (k->below[i])
			places_of(k->a, content_of(k, i), want_places, k);
	}
	return 0;
}

static uint64_t bytes_to_decode(const struct archive_check *k)
{
	uint64_t n = places_count(k->a), sum = 0;

	for (uint64_t i = 0; i < n; i++)
		if (!k->wanted || k->wanted[i])
			sum += places_size(k->a, i);
	return sum;
}

struct finding {
	struct archive_check *k;
	uint64_t record;
};

static void list_bad_place(struct archive_check *k, uint64_t record,
			   struct bad_place *bad)
{
	cleanup_free char *why = NULL;
	char where[512];

	places_describe(k->a, bad->place, where, sizeof where);
	if (asprintf(&why, "%s: %s", where,
		     bad->why ? bad->why : "it cannot be decoded") < 0)
		why = NULL;
	archive_bad_member(k, record, bad->code, why ? why : where);
}

/* Handle a run of places of a record.  Return false at the first bad one. */
static bool find_bad(void *ctx, uint64_t first, uint64_t last)
{
	struct finding *f = ctx;
	struct bad_places *all = f->k->places;
	struct bad_place *bad = places_bad(all, first, last);

	if (!bad)
		return true;
	if (f->k->a->volume.blocks) { /* reported with the block */
		if (bad->n_members < sizeof bad->members / 4)
			bad->members[bad->n_members] = (uint32_t)f->record;
		bad->n_members++;
		return true;
	}
	list_bad_place(f->k, f->record, bad);
	while (bad < all->at.at + all->at.n && bad->place <= last)
		bad++->reported = true;
	return false;
}

static void check_member_record(struct archive_check *k, uint64_t i)
{
	const struct member_record *r = content_of(k, i);
	struct finding f = {k, i};

	if (places_beyond(k->a, r))
		archive_bad_member(k, i, k->a->volume.blocks ? -EBADMSG : -EIO,
				   k->a->volume.blocks
					   ? "the list of its blocks is damaged"
					   : "its bytes lie beyond the end of "
					     "the archive");
	places_of(k->a, r, find_bad, &f);
}

/* Report a bad place with the members that it belongs to. */
static void list_bad_block(struct archive_check *k, const struct bad_place *bad)
{
	enum { LISTED = sizeof bad->members / sizeof bad->members[0] };
	char *names[LISTED] = {0}, where[512], path[PATH_ROOM];
	struct source_bad b = {
		.name = where, .code = bad->code, .n_members = bad->n_members};

	places_describe(k->a, bad->place, where, sizeof where);
	b.why = bad->why ? bad->why : "it cannot be decoded";
	while (b.listed < bad->n_members && b.listed < LISTED) {
		members_path(&k->a->members, bad->members[b.listed], path,
			     sizeof path);
		if (asprintf(&names[b.listed], "%s%s", k->c->prefix, path) < 0)
			break;
		b.listed++;
	}
	b.members = names;
	k->c->bad(k->c, &b);
	for (size_t i = 0; i < b.listed; i++)
		free(names[i]);
}

static void check_member_records(struct archive_check *k)
{
	const struct members *m = &k->a->members;
	uint64_t n = 0;

	for (uint64_t i = 0; i < m->n; i++) {
		if (!is_record_wanted(k, i) ||
		    (!k->below && m->at[i].kind == MEMBER_LINK))
			continue;
		n++;
		check_member_record(k, i);
	}
	k->c->members(k->c, n - (k->root == 0));
	for (size_t i = 0; i < k->places->at.n; i++)
		if (!k->places->at.at[i].reported)
			list_bad_block(k, &k->places->at.at[i]);
}

/* ---- the whole archive --------------------------------------------------- */

static int verify_archive(struct archive_check *k, struct error *err)
{
	struct bad_places places = {0};
	int r = choose_records(k, err);

	if (r < 0)
		return r;
	k->said = calloc(k->a->members.n, 1);
	if (!k->said)
		return error_no_memory(err, "the list of members to check");
	k->c->expect(k->c, bytes_to_decode(k));
	if (k->root == 0 && k->a->indexed) {
		k->c->expect(k->c, k->a->stored.size);
		r = verify_scan(k, err);
	} else if (k->root == 0) {
		list_damage(k, k->a);
	}
	if (r < 0)
		return r;
	report_coverage(k);
	k->places = &places;
	r = places_check(k->a, k->wanted, k->c, &places);
	if (r == 0)
		check_member_records(k);
	else
		error_no_memory(err, "the list of damaged places");
	places_free(&places);
	return r;
}

int archive_verify(struct source *s, uint64_t node, struct source_check *c,
		   struct error *err)
{
	struct archive_check k = {
		.a = (struct archive *)s, .c = c, .root = node};
	int r = verify_archive(&k, err);

	if (k.fresh)
		archive_close(&k.fresh->source);
	free(k.below);
	free(k.wanted);
	free(k.said);
	return r;
}
