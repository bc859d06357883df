/* SPDX-License-Identifier: BSD-2-Clause */
/* info: what is known about an archive, and warnings about what will be slow. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "formats/archive/about.h"

/*
 * Warnings are computed from the tables.  Each is true of this archive, says what
 * it costs, and how to avoid it.
 */
/* Decoded bytes that take about a minute on one core. */
#define LONG_STREAM (UINT64_C(1) << 30)
/* Decoded bytes that make a jump noticeably slow. */
#define FAR_JUMP (UINT64_C(32) << 20)
/* Bytes of blocks that are large for small files. */
#define LARGE_BLOCK (256u << 10)

void about_put(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

void about_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key,
			    text ? json_text(text, strlen(text)) : json_null());
}

/* ---- streams ------------------------------------------------------------- */

struct stream_facts {
	const char *format;
	uint64_t windows, starts, later, largest, states, size, worst, stored;
};

static void gather_stream_facts(const struct archive *a, struct stream_facts *f)
{
	const struct stream_point *p = stream_points(a->stream, &f->windows);

	f->format = stream_format_name(stream_format_of(a->stream));
	f->size = stream_size(a->stream);
	f->worst = stream_worst(a->stream);
	f->states = blob_size(stream_states(a->stream));
	f->stored = a->stored.size;
	for (uint64_t i = 0; i < f->windows; i++) {
		f->starts += (p[i].flags & POINT_START) != 0;
		f->later += (p[i].flags & POINT_LATER) != 0;
		f->largest = max_u64(f->largest, p[i].size);
	}
}

static json_t *stream_json(const struct stream_facts *f)
{
	json_t *o = json_object();

	about_text(o, "compression", f->format);
	about_put(o, "decoded_bytes", f->size);
	about_put(o, "windows", f->windows);
	about_put(o, "window_mean_bytes",
		  f->windows ? f->size / f->windows : 0);
	about_put(o, "window_largest_bytes", f->largest);
	about_put(o, "starts", f->starts);
	about_put(o, "states_bytes", f->states);
	about_put(o, "farthest_jump_bytes", f->worst);
	return o;
}

static void add_slow(json_t *slow, const char *text)
{
	json_array_append_new(slow, json_text(text, strlen(text)));
}

/* Return the advice how to write the format in pieces. */
static const char *advice_for_pieces(const char *format)
{
	static const char *const how[][2] = {
		{"gzip", "compress it with bgzip"},
		{"xz", "compress it with xz -T0 --block-size=1MiB"},
		{"zstd", "compress it with pzstd, or in zstd frames of 1 MiB"},
		{"lz4", "compress it with lz4 -B4 -BI"}};

	for (size_t i = 0; i < sizeof how / sizeof how[0]; i++)
		if (!strcmp(how[i][0], format))
			return how[i][1];
	return "compress it in zstd frames of 1 MiB";
}

static void warn_of_stream(json_t *slow, const struct archive *a,
			   const struct stream_facts *f)
{
	char text[512], size[32], far[32];

	format_size(f->size, size, sizeof size);
	format_size(f->worst, far, sizeof far);
	if (f->starts <= 1 && f->size >= LONG_STREAM &&
	    (!a->index || a->inside)) {
		snprintf(text, sizeof text,
			 "it is one %s stream of %s and has no index: each "
			 "mount decodes all of it first, on one core; cure: "
			 "let its index be kept, %s, or pack the files as "
			 "squashfs",
			 f->format, size, advice_for_pieces(f->format));
		add_slow(slow, text);
	} else if (f->starts <= 1 && f->size >= LONG_STREAM) {
		snprintf(text, sizeof text,
			 "it is one %s stream of %s: a mount without its index "
			 "decodes all of it first, on one core; cure: keep "
			 "the index with it, %s, or pack the files as squashfs",
			 f->format, size, advice_for_pieces(f->format));
		add_slow(slow, text);
	}
	if (f->worst >= FAR_JUMP) {
		snprintf(text, sizeof text,
			 "reading one byte may decode %s: nothing of the %s "
			 "data can begin in between, and each jump back does "
			 "it again; cure: %s, or pack the files as squashfs",
			 far, f->format, advice_for_pieces(f->format));
		add_slow(slow, text);
	}
}

/* ---- squashfs ------------------------------------------------------------ */

struct image_facts {
	uint64_t blocks, fragments, holes, plain;
	uint64_t in_fragments, files; /* files that have content */
	/* The files in fragments whose block is compressed. */
	uint64_t in_compressed;
	uint64_t median; /* median size of files, in bytes */
};

static int compare_file_sizes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int gather_file_facts(const struct members *m, struct image_facts *f)
{
	cleanup_free uint64_t *sizes = malloc(m->n * sizeof *sizes);

	if (!sizes)
		return -ENOMEM;
	for (uint64_t i = 0; i < m->n; i++) {
		const struct member_record *r = &m->at[i];

		if (r->kind != MEMBER_BLOCKS && r->kind != MEMBER_FRAGMENT)
			continue;
		sizes[f->files++] = r->size;
		if (r->kind != MEMBER_FRAGMENT)
			continue;
		f->in_fragments++;
		if (!(m->blocks[r->data >> 20].flags & MEMBER_STORED))
			f->in_compressed++;
	}
	if (!f->files)
		return 0;
	qsort(sizes, f->files, sizeof *sizes, compare_file_sizes);
	f->median = sizes[f->files / 2];
	return 0;
}

static int gather_image_facts(const struct members *m, struct image_facts *f)
{
	for (uint64_t i = 0; i < m->n_blocks; i++) {
		const struct member_block *b = &m->blocks[i];

		if (b->flags & MEMBER_TAIL)
			continue;
		f->holes += !b->stored;
		f->fragments += (b->flags & MEMBER_SHARED) != 0;
		f->blocks += b->stored && !(b->flags & MEMBER_SHARED);
		f->plain += (b->flags & MEMBER_STORED) != 0;
	}
	return gather_file_facts(m, f);
}

static json_t *image_json(const struct archive *a, const struct image_facts *f)
{
	json_t *o = json_object();

	about_text(o, "compression",
		   squashfs_compressor_name(a->info.compressor));
	about_put(o, "block_bytes", a->info.block_size);
	about_put(o, "data_blocks", f->blocks);
	about_put(o, "fragment_blocks", f->fragments);
	about_put(o, "blocks_not_compressed", f->plain);
	about_put(o, "holes", f->holes);
	about_put(o, "files_in_fragments", f->in_fragments);
	about_put(o, "median_file_bytes", f->median);
	return o;
}

static void warn_of_image(json_t *slow, const struct archive *a,
			  const struct image_facts *f)
{
	char text[512], block[32], median[32];
	const char *name = squashfs_compressor_name(a->info.compressor);

	format_size(a->info.block_size, block, sizeof block);
	format_size(f->median, median, sizeof median);
	if (a->info.block_size > LARGE_BLOCK &&
	    f->in_compressed > f->files / 2 &&
	    f->median <= a->info.block_size / 8) {
		snprintf(text, sizeof text,
			 "half of its files have at most %s, and lie in "
			 "compressed blocks of %s: reading one of them alone "
			 "decodes such a block; cure: pack it with smaller "
			 "blocks (mksquashfs -b 128K)",
			 median, block);
		add_slow(slow, text);
	}
	if (!strcmp(name, "xz") && f->blocks + f->fragments > f->plain) {
		snprintf(text, sizeof text,
			 "xz decodes several times more slowly than zstd; "
			 "cure: pack it with zstd (mksquashfs -comp zstd)");
		add_slow(slow, text);
	}
}

/* ---- the whole archive --------------------------------------------------- */

static json_t *note_lines(const char *at, uint64_t size)
{
	json_t *list = json_array();
	const char *end = at ? at + size : NULL;

	while (at && at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t n = line ? (size_t)(line - at) : (size_t)(end - at);

		json_array_append_new(list, json_text(at, n));
		at += n + 1;
	}
	return list;
}

static void about_notes(json_t *o, const struct archive *a)
{
	const struct members *m = &a->members;
	json_t *damage = note_lines(m->notes, m->damage_size);

	if (a->damage)
		json_array_insert_new(damage, 0,
				      json_text(a->damage, strlen(a->damage)));
	json_object_set_new(o, "damage", damage);
	json_object_set_new(
		o, "notes",
		note_lines(m->notes ? m->notes + m->damage_size : NULL,
			   m->notes_size - m->damage_size));
}

void about_counts(json_t *o, const uint64_t counts[5], uint64_t bytes)
{
	static const char *const names[5] = {"files", "directories", "symlinks",
					     "hard_links", "devices_and_fifos"};

	for (unsigned i = 0; i < 5; i++)
		about_put(o, names[i], counts[i]);
	about_put(o, "bytes", bytes);
}

static json_t *zip_json(const struct archive *a)
{
	json_t *o = json_object();
	uint64_t windows;
	const struct stream_point *p = stream_points(a->zip->stream, &windows);
	uint64_t largest = 0;

	for (uint64_t i = 0; i < windows; i++)
		largest = max_u64(largest, p[i].size);
	about_text(o, "compression", windows ? "deflate" : "stored");
	about_put(o, "decoded_bytes", stream_size(a->zip->stream));
	about_put(o, "windows", windows);
	about_put(o, "window_largest_bytes", largest);
	about_put(o, "states_bytes", blob_size(stream_states(a->zip->stream)));
	about_put(o, "stored_members", a->zip->n_plain);
	about_put(o, "unreadable_members", a->zip->n_bad);
	return o;
}

static json_t *about_storage(const struct archive *a, json_t *slow)
{
	struct image_facts image = {0};
	struct stream_facts stream = {0};

	if (a->stream) {
		gather_stream_facts(a, &stream);
		warn_of_stream(slow, a, &stream);
		return stream_json(&stream);
	}
	if (a->zip)
		return zip_json(a);
	if (a->kind != &archive_squashfs)
		return json_null();
	if (gather_image_facts(&a->members, &image) < 0)
		return NULL;
	warn_of_image(slow, a, &image);
	return image_json(a, &image);
}

static json_t *about_archive(const struct archive *a)
{
	const uint64_t stored =
		a->info.bytes_used ? a->info.bytes_used : a->stored.size;
	uint64_t counts[5];
	json_t *o = json_object(), *slow = json_array();
	json_t *storage = about_storage(a, slow);

	if (!o || !storage) {
		json_decref(o);
		json_decref(slow);
		return NULL;
	}
	memcpy(counts, a->members.counts, sizeof counts);
	counts[1]--; /* without the root */
	about_text(o, "format",
		   a->kind->format ? a->kind->format
		   : a->format     ? a->format
				   : "tar");
	about_counts(o, counts, a->members.bytes);
	about_put(o, "stored_bytes", stored);
	json_object_set_new(
		o, "ratio",
		json_real(stored ? (double)a->members.bytes / (double)stored
				 : 0));
	about_put(o, "offset", a->inside ? 0 : a->stored.pos);
	json_object_set_new(o, "storage", storage);
	about_text(o, "index", a->index);
	json_object_set_new(o, "index_used", json_boolean(a->indexed));
	about_notes(o, a);
	json_object_set_new(o, "slow", slow);
	return o;
}

json_t *archive_about(const struct source *s, uint64_t node)
{
	const struct archive *a = (const struct archive *)s;

	return node ? about_member(a, node) : about_archive(a);
}
