/* SPDX-License-Identifier: BSD-2-Clause */
/* One HDF5 file that is several on disk: the family and the multi driver's. */
/*
 * Two of libhdf5's file drivers divide the addresses of a file among several:
 *
 *   family   x_0.h5 x_1.h5 ...   pieces of one size, one behind the other
 *   multi    x-m.h5 x-r.h5 ...   by what bytes are for; `split` is a multi driver of
 *                                two: metadata, raw data.  A member has addresses
 *                                from one of its own on, mostly far above the last
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
 * All of them become one row of the table of files (formats/hdf5/file/members_rows.c).
 */
#include "formats/hdf5/file/members_private.h"

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

#define MEMBERS_MAX 65536u /* of a family */

void hdf5_members_free(struct hdf5_members *x)
{
	for (size_t i = 0; i < x->list.n; i++)
		free(x->list.at[i].path);
	vec_free(&x->list);
	free(x->name);
	*x = (struct hdf5_members){.name = NULL};
}

int hdf5_members_no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory");
}

size_t hdf5_members_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash + 1 - path) : 0;
}

int hdf5_members_push(struct hdf5_members *x, char *path, uint64_t address,
		      uint64_t size, struct error *err)
{
	struct hdf5_member m = {.path = path, .address = address, .size = size};

	if (path && vec_push(&x->list, m))
		return 0;
	free(path);
	return hdf5_members_no_memory(err);
}

int hdf5_members_look(struct hdf5_members *x, struct error *err)
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

/* Names of members: a number between two texts. */
struct pattern {
	const char *path;
	size_t before, after; /* the number's place in `path` */
	unsigned width;       /* digits at least */
};

static char *member_path(const struct pattern *p, unsigned long long i)
{
	char *out;

	return asprintf(&out, "%.*s%0*llu%s", (int)p->before, p->path,
			(int)p->width, i, p->path + p->after) < 0
		       ? NULL
		       : out;
}

static char *pattern_text(const struct pattern *p)
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

/* "x_%d.h5", "x_%05d.h5": one conversion, in the last component. */
static bool pattern_parse(const char *path, struct pattern *p)
{
	const char *at = strchr(path + hdf5_members_base(path), '%'), *end;

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

/* The superblock of the first member, if it is one of a family. */
static bool read_first(const struct pattern *p, struct hdf5_super *super)
{
	cleanup_free char *path = member_path(p, 0);

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
		r = hdf5_members_push(out, member_path(p, i), i * size,
				      min_u64(super->eof - i * size, size),
				      err);
	out->name = pattern_text(p);
	if (!r && !out->name)
		r = hdf5_members_no_memory(err);
	return r ? r : hdf5_members_look(out, err);
}

/* Is it the number of a member of a family whose other members are there, too? */
static bool fits_family(const struct pattern *p, uint64_t number,
			struct hdf5_super *super)
{
	cleanup_free char *second = NULL;
	uint64_t size, n;

	if (!read_first(p, super))
		return false;
	size = load_le64(super->data);
	n = size ? div_up(super->eof, size) : 0;
	if (number || n <= 1)
		return number < max_u64(n, 1);
	second = member_path(p, 1);
	return second && access(second, F_OK) == 0;
}

/* The digits [begin, end) as the number of a member: padded with zeros to that length,
 * or as long as they need be. */
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

/* The pattern that a member's name follows. */
static bool guess_pattern(const char *path, struct pattern *p,
			  struct hdf5_super *super)
{
	size_t end = strlen(path), first = hdf5_members_base(path), begin;
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
	/* A first member whose second is missing: its last zeros are the number. */
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

/* ---- which it is --------------------------------------------------------- */

static int find(const char *path, struct hdf5_members *out, struct error *err)
{
	cleanup_free struct hdf5_super *super = malloc(sizeof *super);
	cleanup_free char *first = NULL;
	struct pattern p;
	bool is_file = access(path, F_OK) == 0;

	if (!super)
		return hdf5_members_no_memory(err);
	if (!is_file)
		return pattern_parse(path, &p) && read_first(&p, super)
			       ? find_family(&p, super, out, err)
			       : 1;
	if (hdf5_super_read(path, super) && !super->driver[0])
		return 1;
	if (!strcmp(super->driver, "NCSAmult"))
		return hdf5_members_multi(path, super, out, err);
	if (guess_pattern(path, &p, super))
		return find_family(&p, super, out, err);
	first = hdf5_members_beside(path, super);
	return first ? hdf5_members_multi(first, super, out, err) : 1;
}

int hdf5_members_find(const char *path, struct hdf5_members *out,
		      struct error *err)
{
	int r;

	*out = (struct hdf5_members){.name = NULL};
	r = find(path, out, err);
	if (r != 0)
		hdf5_members_free(out);
	return r;
}

bool hdf5_members_has(const char *path)
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
	    !read_first(&p, super))
		return 1;
	*out = member_path(&p, 0);
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
