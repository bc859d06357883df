/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual datasets: which file holds which rows. */
/*
 * Shown are mappings that give each source a block of whole rows of the first
 * axis, which is what distributed tensors are.  The library never reads through
 * the mapping: it turns whatever goes wrong with a source into fill values.
 */
#include "source/hdf5.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* One regular, gapless, bounded block of a selection. */
struct block {
	hsize_t start[RANK_MAX], count[RANK_MAX];
};
_Static_assert(sizeof(hsize_t) == sizeof(uint64_t), "hsize_t is 64 bits");

/* 1: a block; 0: everything (H5S_ALL); -1: some other selection. */
static int read_block(hid_t space, unsigned rank, struct block *b)
{
	hsize_t stride[RANK_MAX], block[RANK_MAX];
	H5S_sel_type kind = H5Sget_select_type(space);

	if (kind == H5S_SEL_ALL)
		return 0;
	if (kind != H5S_SEL_HYPERSLABS ||
	    H5Sget_simple_extent_ndims(space) != (int)rank ||
	    H5Sis_regular_hyperslab(space) <= 0 ||
	    H5Sget_regular_hyperslab(space, b->start, stride, b->count, block) <
		    0)
		return -1;
	for (unsigned i = 0; i < rank; i++) {
		if (b->count[i] == H5S_UNLIMITED || block[i] == H5S_UNLIMITED ||
		    (b->count[i] > 1 && stride[i] != block[i]) ||
		    __builtin_mul_overflow(b->count[i], block[i], &b->count[i]))
			return -1;
	}
	return 1;
}

/* The rows that mapping `i` covers; the block in the source in `from` (counts
 * 0 when all of it is meant). */
static int read_mapping(const struct tensor *t, hid_t dcpl, size_t i,
			struct part *part, struct block *from,
			struct error *err)
{
	hid_t vspace = H5Pget_virtual_vspace(dcpl, i);
	hid_t sspace = H5Pget_virtual_srcspace(dcpl, i);
	struct block to = {{0}, {0}};
	int v = read_block(vspace, t->rank, &to);
	int s = read_block(sspace, t->rank, from);
	bool rows = v >= 0 && s >= 0;

	H5Sclose(vspace);
	H5Sclose(sspace);
	if (v == 0)
		for (unsigned k = 0; k < t->rank; k++)
			to.count[k] = t->shape[k];
	for (unsigned k = 1; rows && k < t->rank; k++)
		rows = to.start[k] == 0 && to.count[k] == t->shape[k];
	for (unsigned k = 0; rows && s == 1 && k < t->rank; k++)
		rows = from->count[k] == to.count[k];
	if (!rows || to.start[0] > t->shape[0] ||
	    to.count[0] > t->shape[0] - to.start[0])
		return error_set(err, -ENOTSUP,
				 "mapping %zu of the virtual dataset is not a "
				 "block of whole rows: not supported",
				 i);
	if (s == 0)
		memset(from, 0, sizeof *from);
	part->begin = to.start[0];
	part->end = to.start[0] + to.count[0];
	return 0;
}

/* Undo the printf pattern: "%%" is '%', anything else is another mapping. */
static int unescape(char *name, struct error *err)
{
	char *out = name;

	for (const char *in = name; *in; in++) {
		if (*in == '%' && *++in != '%')
			return error_set(err, -ENOTSUP,
					 "its sources are named by a pattern "
					 "(%%b): not supported");
		*out++ = *in;
	}
	*out = 0;
	return 0;
}

static int read_name(hid_t dcpl, size_t i,
		     ssize_t (*get)(hid_t, size_t, char *, size_t), char *buf,
		     size_t n, struct error *err)
{
	ssize_t len = get(dcpl, i, buf, n);

	if (len <= 0 || (size_t)len >= n)
		return error_set(err, -EIO,
				 "the name of source %zu cannot be read", i);
	return unescape(buf, err);
}

/* Names are relative to the main file's directory, never to the working one;
 * where the main file is a symlink, then to the directory behind it. */
static int source_file(struct hdf5_source *s, const char *name, uint32_t *file,
		       struct error *err)
{
	cleanup_free char *path = NULL;
	int n;

	if (!strcmp(name, ".")) {
		*file = s->file;
		return 0;
	}
	if (name[0] == '/')
		n = asprintf(&path, "%s", name);
	else
		n = asprintf(&path, "%s/%s", s->dir, name);
	if (n >= 0 && name[0] != '/' && s->real_dir && access(path, F_OK)) {
		free(path);
		n = asprintf(&path, "%s/%s", s->real_dir, name);
	}
	if (n < 0) {
		path = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	*file = handles_add(s->handles, path);
	return *file == UINT32_MAX ? error_set(err, -ENOMEM, "out of memory")
				   : 0;
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Sorted by rows, and no row twice. */
static int parts_sort(struct tensor *t, struct error *err)
{
	qsort(t->parts, t->nparts, sizeof *t->parts, compare_parts);
	for (uint32_t i = 1; i < t->nparts; i++)
		if (t->parts[i].begin < t->parts[i - 1].end)
			return error_set(err, -ENOTSUP,
					 "rows %" PRIu64 " to %" PRIu64
					 " are mapped more than once: not "
					 "supported",
					 t->parts[i].begin,
					 t->parts[i - 1].end);
	return 0;
}

static int read_part(struct hdf5_source *s, struct tensor *t, hid_t dcpl,
		     size_t i, struct part *part, struct error *err)
{
	char name[4096];
	struct block from;
	int r = read_mapping(t, dcpl, i, part, &from, err);

	if (r < 0)
		return r;
	r = read_name(dcpl, i, H5Pget_virtual_filename, name, sizeof name, err);
	if (r < 0)
		return r;
	r = source_file(s, name, &part->file, err);
	if (r < 0)
		return r;
	r = read_name(dcpl, i, H5Pget_virtual_dsetname, name, sizeof name, err);
	if (r < 0)
		return r;
	part->dataset = intern_bytes(&s->intern, name, strlen(name) + 1);
	if (!part->dataset)
		return error_set(err, -ENOMEM, "out of memory");
	part->origin = NULL;
	if (from.count[0]) {
		part->origin = intern_bytes(&s->intern, from.start,
					    t->rank * sizeof *from.start);
		if (!part->origin)
			return error_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

int hdf5_virtual_read(struct hdf5_source *s, struct tensor *t, hid_t dcpl,
		      struct error *err)
{
	size_t n = 0, k = 0;
	int r;

	if (H5Pget_virtual_count(dcpl, &n) < 0 || n >= TENSOR_PARTS_MAX)
		return error_set(err, -EIO,
				 "the virtual mapping cannot be read");
	if (!t->rank)
		return error_set(err, -ENOTSUP,
				 "a virtual dataset without axes: not "
				 "supported");
	t->parts = calloc(n + 1, sizeof *t->parts);
	if (!t->parts)
		return error_set(err, -ENOMEM, "out of memory");
	t->distributed = true;
	for (size_t i = 0; i < n; i++) {
		r = read_part(s, t, dcpl, i, &t->parts[k], err);
		if (r < 0)
			return r;
		/* A mapping of no rows maps nothing. */
		k += t->parts[k].end > t->parts[k].begin;
	}
	t->nparts = (uint32_t)k;
	return parts_sort(t, err);
}
