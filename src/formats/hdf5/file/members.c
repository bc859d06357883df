/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 files that are several files on disk, by the family or the multi driver. */
/*
 * Two of libhdf5's file drivers divide the addresses of an HDF5 file among several files:
 *
 *   family   x_0.h5 x_1.h5 ...   pieces of one size, one behind the other
 *   multi    x-m.h5 x-r.h5 ...   by what bytes are for; `split` is a multi driver of
 *                                two: metadata, raw data.  The addresses of a member
 *                                begin mostly far above those of the one before
 *
 * The first member has the superblock, and there the driver's name and data (HDF5
 * file format 3.0, II.B and IV.A.2.u; H5FDfamily.c and H5FDmulti.c say what the data
 * are, all numbers little-endian):
 *
 *   "NCSAfami"  size of a member (8)
 *   "NCSAmult"  which member each of 6 kinds of bytes is in (6; 0: its own), 2 unused,
 *               for each member: its first address (8), its bytes (8); names with
 *               "%s" in them, each padded to 8 n bytes
 *
 * All members together become one row of the table of files
 * (formats/hdf5/file/members_rows.c).
 */
#include "formats/hdf5/file/members.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "extent/file.h"
#include "formats/hdf5/file/super.h"

#define MEMBERS_MAX 65536u /* members of a family */

void hdf5_members_free(struct hdf5_members *x)
{
	for (size_t i = 0; i < x->list.n; i++)
		free(x->list.at[i].path);
	vec_free(&x->list);
	free(x->name);
	*x = (struct hdf5_members){.name = NULL};
}

/* Return where the last component of a path begins. */
static size_t members_last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash + 1 - path) : 0;
}

/* Add a member.  Takes ownership of `path`; NULL means that there was no memory for
 * it. */
static int members_push(struct hdf5_members *x, char *path, uint64_t address,
			uint64_t size, struct error *err)
{
	struct hdf5_member m = {.path = path, .address = address, .size = size};

	if (path && vec_push(&x->list, m))
		return 0;
	free(path);
	return error_no_memory(err, "the members of an HDF5 file");
}

/* Check that all members are on disk and large enough.  The sentence names the first
 * that is not.  -ENODATA, -EBADMSG, and errors of stat. */
static int members_check_files(struct hdf5_members *x, struct error *err)
{
	for (size_t i = 0; i < x->list.n; i++) {
		struct hdf5_member *m = &x->list.at[i];
		struct stat st;

		if (stat(m->path, &st) < 0 && errno == ENOENT)
			return error_set(
				err, -ENODATA,
				"%s is missing: it is file %zu of %zu "
				"that the HDF5 driver '%s' divided one "
				"HDF5 file into",
				file_shown(m->path), i + 1, x->list.n,
				x->driver);
		if (stat(m->path, &st) < 0)
			return error_errno(err, -errno, "%s", m->path);
		m->st = st;
		m->is = (uint64_t)st.st_size;
		if (!S_ISREG(st.st_mode) || m->is < m->size)
			return error_set(err, -EBADMSG,
					 "%s is cut off: it has %llu bytes of "
					 "%llu (file %zu of %zu that the HDF5 "
					 "driver '%s' divided one HDF5 file "
					 "into)",
					 file_shown(m->path),
					 (unsigned long long)m->is,
					 (unsigned long long)m->size, i + 1,
					 x->list.n, x->driver);
		if (i == 0 || st.st_mtime > x->mtime)
			x->mtime = st.st_mtime;
	}
	return 0;
}

/* ---- the family driver --------------------------------------------------- */

/* The names of members: a number between two texts. */
struct pattern {
	const char *path;
	size_t before, after; /* the number is [before, after) of `path` */
	unsigned width;       /* least number of digits */
};

static char *family_member_path(const struct pattern *p, unsigned long long i)
{
	char *out;

	return asprintf(&out, "%.*s%0*llu%s", (int)p->before, p->path,
			(int)p->width, i, p->path + p->after) < 0
		       ? NULL
		       : out;
}

static char *family_pattern_text(const struct pattern *p)
{
	char digits[16] = "";
	char *out;

	if (p->width > 1)
		snprintf(digits, sizeof digits, "0%u", p->width);
	return asprintf(&out, "%.*s%%%sd%s", (int)p->before, p->path, digits,
			p->path + p->after) < 0
		       ? NULL
		       : out;
}

/* Parse a pattern: "x_%d.h5" or "x_%05d.h5", with one conversion, in the last
 * component. */
static bool pattern_parse(const char *path, struct pattern *p)
{
	const char *at = strchr(path + members_last_component(path), '%'), *end;

	if (!at)
		return false;
	*p = (struct pattern){.path = path, .before = (size_t)(at - path)};
	end = at + 1;
	while (*end >= '0' && *end <= '9' && p->width < 100)
		p->width = p->width * 10 + (unsigned)(*end++ - '0');
	p->after = (size_t)(end + 1 - path);
	return p->width < 100 && *end && strchr("diu", *end) &&
	       !strchr(end + 1, '%');
}

/* Read the superblock of the first member.  Return false if it is not a member of a
 * family. */
static bool family_read_first(const struct pattern *p, struct hdf5_super *super)
{
	cleanup_free char *path = family_member_path(p, 0);

	return path && hdf5_super_read(path, super) &&
	       !strcmp(super->driver, "NCSAfami") && super->data_size >= 8;
}

static int find_family(const struct pattern *p, const struct hdf5_super *super,
		       struct hdf5_members *out, struct error *err)
{
	uint64_t size = load_le64(super->data), n;
	int r = 0;

	out->driver = "family";
	n = size ? max_u64(div_up(super->eof, size), 1) : 0;
	if (!n || n > MEMBERS_MAX)
		return error_set(err, -EBADMSG,
				 "%s: its superblock is damaged: a family of "
				 "files of %llu bytes each, %llu together",
				 p->path, (unsigned long long)size,
				 (unsigned long long)super->eof);
	for (uint64_t i = 0; i < n && !r; i++)
		r = members_push(out, family_member_path(p, i), i * size,
				 min_u64(super->eof - i * size, size), err);
	out->name = family_pattern_text(p);
	if (!r && !out->name)
		r = error_no_memory(err, "the members of an HDF5 file");
	return r ? r : members_check_files(out, err);
}

/* Is `number` that of a member of a family whose other members exist as well? */
static bool fits_family(const struct pattern *p, uint64_t number,
			struct hdf5_super *super)
{
	cleanup_free char *second = NULL;
	uint64_t size, n;

	if (!family_read_first(p, super))
		return false;
	size = load_le64(super->data);
	n = size ? div_up(super->eof, size) : 0;
	if (number || n <= 1)
		return number < max_u64(n, 1);
	second = family_member_path(p, 1);
	return second && access(second, F_OK) == 0;
}

/* Try the digits [begin, end) as the number of a member: padded with zeros to that
 * length, or as long as the number needs. */
static bool try_digits(const char *path, size_t begin, size_t end,
		       struct pattern *p, struct hdf5_super *super)
{
	uint64_t number = strtoull(path + begin, NULL, 10);

	*p = (struct pattern){path, begin, end, (unsigned)(end - begin)};
	if (fits_family(p, number, super))
		return true;
	p->width = 1;
	return path[begin] != '0' && fits_family(p, number, super);
}

/* Guess the pattern that the name of the member `path` follows. */
static bool guess_pattern(const char *path, struct pattern *p,
			  struct hdf5_super *super)
{
	size_t end = strlen(path), first = members_last_component(path), begin;
	bool found = false;

	for (; end > first; end = begin) {
		while (end > first &&
		       !(path[end - 1] >= '0' && path[end - 1] <= '9'))
			end--;
		begin = end;
		while (begin > first && path[begin - 1] >= '0' &&
		       path[begin - 1] <= '9')
			begin--;
		if (begin == end || end - begin > 15)
			continue;
		if (try_digits(path, begin, end, p, super))
			return true;
	}
	/* This may be a first member whose second is missing: the last zeros are its
	 * number. */
	if (!hdf5_super_read(path, super) ||
	    strcmp(super->driver, "NCSAfami") || super->data_size < 8)
		return false;
	for (end = strlen(path); end > first && !found; end--)
		if (path[end - 1] == '0' &&
		    (path[end] < '0' || path[end] > '9')) {
			begin = end - 1;
			while (begin > first && path[begin - 1] == '0')
				begin--;
			*p = (struct pattern){path, begin, end,
					      (unsigned)(end - begin)};
			found = true;
		}
	return found;
}

/* ---- the multi driver ---------------------------------------------------- */

/* The kinds are superblock, B-trees, raw data, global heap, local heaps, object
 * headers. */
#define KINDS HDF5_MEMBER_KINDS
static int members_compare_addresses(const void *a, const void *b)
{
	const struct hdf5_member *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Return the text that "%s" stands for (malloc'ed) if `path` is the member that is
 * named by `name`; NULL if it is not. */
static char *multi_stem(const char *path, const char *name)
{
	const char *at = strstr(name, "%s"), *end;
	size_t before = members_last_component(path), n = strlen(path), after;

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

static char *multi_member_path(const char *path, const char *name,
			       const char *stem)
{
	const char *at = strstr(name, "%s");
	char *out;

	return asprintf(&out, "%.*s%.*s%s%s", (int)members_last_component(path),
			path, (int)(at - name), name, stem, at + 2) < 0
		       ? NULL
		       : out;
}

/* The members as the driver's data describe them: numbers, then names. */
struct table {
	unsigned n;
	unsigned of[KINDS]; /* the member that has each kind of bytes */
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
	/* The number of the member that is named after a kind, by kind. */
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

/* Return a name such as "/d/x-m.h5 + x-r.h5" (malloc'ed). */
static char *multi_row_name(const struct hdf5_members *x)
{
	char *out = strdup(x->list.at[0].path);

	for (size_t i = 1; out && i < x->list.n; i++) {
		cleanup_free char *before = out;
		const char *path = x->list.at[i].path;

		if (asprintf(&out, "%s + %s", before,
			     path + members_last_component(path)) < 0)
			out = NULL;
	}
	return out;
}

/* Find all members of a file of the multi driver, from the name and the superblock of
 * one.  -EBADMSG, -ENODATA, -ENOMEM. */
static int find_multi(const char *path, const struct hdf5_super *super,
		      struct hdf5_members *out, struct error *err)
{
	cleanup_free char *stem = NULL;
	struct table t;
	int r = 0;

	if (!table_parse(super, &t))
		return error_set(err, -EBADMSG,
				 "%s: its superblock is damaged: the members "
				 "of the multi driver cannot be found out",
				 path);
	out->driver = t.n == 2 ? "split" : "multi";
	for (unsigned i = 0; i < t.n && !stem; i++)
		stem = multi_stem(path, t.name[i]);
	if (!stem)
		return error_set(err, -EBADMSG,
				 "%s has been renamed: the HDF5 driver '%s' "
				 "named it after \"%s\", and its other files "
				 "are only found by such names",
				 path, out->driver, t.name[0]);
	for (unsigned i = 0; i < t.n && !r; i++)
		r = members_push(out, multi_member_path(path, t.name[i], stem),
				 t.address[i],
				 t.size[i] == UINT64_MAX ? 0 : t.size[i], err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < KINDS; i++)
		out->kind[i] = t.address[t.of[i]];
	qsort(out->list.at, out->list.n, sizeof *out->list.at,
	      members_compare_addresses);
	out->name = multi_row_name(out);
	if (!out->name)
		return error_no_memory(err, "the members of an HDF5 file");
	return members_check_files(out, err);
}

/* Return the path (malloc'ed) of the member with the superblock, given that of another
 * member: "x-m.h5" for "x-r.h5", by the driver's own names for them.  *super is set to
 * that superblock.  NULL if there is no such member. */
static char *multi_first_member(const char *path, struct hdf5_super *super)
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

/* ---- which it is --------------------------------------------------------- */

static int members_find_any(const char *path, struct hdf5_members *out,
			    struct error *err)
{
	cleanup_free struct hdf5_super *super = malloc(sizeof *super);
	cleanup_free char *first = NULL;
	struct pattern p;
	bool is_file = access(path, F_OK) == 0;

	if (!super)
		return error_no_memory(err, "the members of an HDF5 file");
	if (!is_file)
		return pattern_parse(path, &p) && family_read_first(&p, super)
			       ? find_family(&p, super, out, err)
			       : 1;
	if (hdf5_super_read(path, super) && !super->driver[0])
		return 1;
	if (!strcmp(super->driver, "NCSAmult"))
		return find_multi(path, super, out, err);
	if (guess_pattern(path, &p, super))
		return find_family(&p, super, out, err);
	first = multi_first_member(path, super);
	return first ? find_multi(first, super, out, err) : 1;
}

int hdf5_members_find(const char *path, struct hdf5_members *out,
		      struct error *err)
{
	int r;

	*out = (struct hdf5_members){.name = NULL};
	r = members_find_any(path, out, err);
	if (r != 0)
		hdf5_members_free(out);
	return r;
}

bool hdf5_members_named_by(const char *path)
{
	struct hdf5_members x;
	struct error err = {0};
	int r = hdf5_members_find(path, &x, &err);

	if (r == 0)
		hdf5_members_free(&x);
	return r != 1;
}

int hdf5_members_first(const char *path, char **out)
{
	cleanup_free struct hdf5_super *super = malloc(sizeof *super);
	struct pattern p;

	*out = NULL;
	if (!super)
		return -ENOMEM;
	if (access(path, F_OK) == 0 || !pattern_parse(path, &p) ||
	    !family_read_first(&p, super))
		return 1;
	*out = family_member_path(&p, 0);
	return *out ? 0 : -ENOMEM;
}

const char *hdf5_members_driver(const unsigned char *head, size_t n)
{
	cleanup_free struct hdf5_super *super = malloc(sizeof *super);

	if (!super || !hdf5_super_parse(head, n, super))
		return NULL;
	return !strcmp(super->driver, "NCSAfami")   ? "family"
	       : !strcmp(super->driver, "NCSAmult") ? "multi"
						    : NULL;
}
