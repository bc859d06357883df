/* SPDX-License-Identifier: BSD-2-Clause */
/* The multi driver's files, which it tells apart by what bytes are for. */
#include "formats/hdf5/file/members_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"

/* ---- the multi driver ---------------------------------------------------- */

/* Superblock, B-trees, raw data, global heap, local heaps, object headers. */
#define KINDS HDF5_MEMBER_KINDS
static int by_address(const void *a, const void *b)
{
	const struct hdf5_member *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* What "%s" stands for in the names of members, given that of one of them: the path up
 * to there.  Malloc'ed; NULL: it is not that name. */
static char *stem_of(const char *path, const char *name)
{
	const char *at = strstr(name, "%s"), *end;
	size_t before = hdf5_members_base(path), n = strlen(path), after;

	if (!at || strchr(at + 2, '%') ||
	    memchr(name, '%', (size_t)(at - name)))
		return NULL;
	after = strlen(at + 2);
	end = path + n - after;
	if (n < before + (size_t)(at - name) + after || strcmp(end, at + 2) ||
	    strncmp(path + before, name, (size_t)(at - name)))
		return NULL;
	return strndup(path + before + (at - name),
		       n - after - before - (size_t)(at - name));
}

static char *named(const char *path, const char *name, const char *stem)
{
	const char *at = strstr(name, "%s");
	char *out;

	return asprintf(&out, "%.*s%.*s%s%s", (int)hdf5_members_base(path),
			path, (int)(at - name), name, stem, at + 2) < 0
		       ? NULL
		       : out;
}

/* The members as the driver's data have them: numbers, then names. */
struct table {
	unsigned n;
	unsigned of[KINDS]; /* which one each kind of bytes is in */
	const char *name[KINDS];
	uint64_t address[KINDS], size[KINDS];
};

static bool table_names(const struct hdf5_super *super, size_t at,
			struct table *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		size_t n = strnlen((const char *)super->data + at,
				   super->data_size - at);

		if (n == super->data_size - at || !n)
			return false;
		t->name[i] = (const char *)super->data + at;
		if (!strstr(t->name[i], "%s"))
			return false;
		at = min_u64(super->data_size, at + (n / 8 + 1) * 8);
	}
	return true;
}

static bool table_parse(const struct hdf5_super *super, struct table *t)
{
	/* Of a member, by the kind that it is named after. */
	unsigned number[KINDS + 1];
	const unsigned char *map = super->data;
	size_t at = 8;

	*t = (struct table){.n = 0};
	memset(number, 0xff, sizeof number);
	if (super->data_size < 8)
		return false;
	for (unsigned i = 0; i < KINDS; i++) {
		unsigned kind = map[i] ? map[i] : i + 1;

		if (kind > KINDS)
			return false;
		if (number[kind] > KINDS) {
			if (super->data_size - at < 16)
				return false;
			number[kind] = t->n;
			t->address[t->n] = load_le64(super->data + at);
			t->size[t->n++] = load_le64(super->data + at + 8);
			at += 16;
		}
		t->of[i] = number[kind];
	}
	return table_names(super, at, t);
}

/* "/d/x-m.h5 + x-r.h5" */
static char *joined_name(const struct hdf5_members *x)
{
	char *out = strdup(x->list.at[0].path);

	for (size_t i = 1; out && i < x->list.n; i++) {
		cleanup_free char *before = out;
		const char *path = x->list.at[i].path;

		if (asprintf(&out, "%s + %s", before,
			     path + hdf5_members_base(path)) < 0)
			out = NULL;
	}
	return out;
}

int hdf5_members_multi(const char *path, const struct hdf5_super *super,
		       struct hdf5_members *out, struct error *err)
{
	cleanup_free char *stem = NULL;
	struct table t;
	int r = 0;

	if (!table_parse(super, &t))
		return error_set(err, -EBADMSG,
				 "%s: its superblock is damaged: the members "
				 "of the multi driver cannot be told",
				 path);
	out->driver = t.n == 2 ? "split" : "multi";
	for (unsigned i = 0; i < t.n && !stem; i++)
		stem = stem_of(path, t.name[i]);
	if (!stem)
		return error_set(err, -EBADMSG,
				 "%s has been renamed: the HDF5 driver '%s' "
				 "named it after \"%s\", and its other files "
				 "are only found by such names",
				 path, out->driver, t.name[0]);
	for (unsigned i = 0; i < t.n && !r; i++)
		r = hdf5_members_push(
			out, named(path, t.name[i], stem), t.address[i],
			t.size[i] == UINT64_MAX ? 0 : t.size[i], err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < KINDS; i++)
		out->kind[i] = t.address[t.of[i]];
	qsort(out->list.at, out->list.n, sizeof *out->list.at, by_address);
	out->name = joined_name(out);
	if (!out->name)
		return hdf5_members_no_memory(err);
	return hdf5_members_look(out, err);
}

char *hdf5_members_beside(const char *path, struct hdf5_super *super)
{
	static const char *const ends[] = {"-m.h5", "-s.h5", ".meta"};
	static const char *const others[] = {"-r.h5", "-b.h5", "-g.h5",
					     "-l.h5", "-o.h5", ".raw"};
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		size_t len = strlen(others[i]);

		if (n <= len || strcmp(path + n - len, others[i]))
			continue;
		for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
			char *first;

			if (asprintf(&first, "%.*s%s", (int)(n - len), path,
				     ends[k]) < 0)
				return NULL;
			if (hdf5_super_read(first, super) &&
			    !strcmp(super->driver, "NCSAmult"))
				return first;
			free(first);
		}
	}
	return NULL;
}
