/* SPDX-License-Identifier: BSD-2-Clause */
/* A dataset whose path leads through links into other files. */
/*
 * The walk through the groups resolves such links once and keeps where they end.  But the
 * sources of a virtual dataset have paths as they were written, and in master files of
 * beamlines these lead through external links to the files of the detector.  The chunks
 * of a part are read from one file.  So a dataset behind links is described as a virtual
 * dataset that maps all of the dataset at the end of the links, over all hops at once.
 * The caller then opens that file by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/dataset/mapping.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/find.h"
#include "formats/hdf5/file/resolve.h"

/* Return a name as mappings have it: "%%" in place of '%' (malloc'ed). */
static char *escaped(const char *s)
{
	char *out = malloc(2 * strlen(s) + 1), *p = out;

	for (; out && *s; s++) {
		*p++ = *s;
		if (*s == '%')
			*p++ = '%';
	}
	if (out)
		*p = '\0';
	return out;
}

/* Return the axis that the mappings of a virtual dataset leave unlimited; -1 if there
 * is none, -2 if there are several, which one mapping cannot express. */
static int open_axis(const struct hdf5_description *d)
{
	unsigned n = d->own_rank;
	int axis = -1;

	for (size_t i = 0; i < d->nmappings; i++) {
		const uint64_t *count = d->mapping[i].to + 2 * (size_t)n;

		for (unsigned k = 0; k < n; k++) {
			if (count[k] != UINT64_MAX &&
			    count[n + k] != UINT64_MAX)
				continue;
			if (axis >= 0 && axis != (int)k)
				return -2;
			axis = (int)k;
		}
	}
	return axis;
}

static uint64_t *slab_of(const struct hdf5_description *d, int open)
{
	uint64_t *out = hdf5_mapping_whole(d);

	if (out && open >= 0) {
		unsigned n = d->own_rank, u = (unsigned)open;

		out[n + u] = out[3 * n + u] = 1;
		out[2 * n + u] = UINT64_MAX;
	}
	return out;
}

/* Replace `d`, the description of the dataset at `to`, by one with a single mapping of
 * all of that dataset. */
static int map_all(struct hdf5_description *d, const struct hdf5_place *to,
		   struct error *err)
{
	int open = d->storage == HDF5_VIRTUAL ? open_axis(d) : -1;
	struct hdf5_mapping *m = calloc(1, sizeof *m);
	cleanup_free char *name = NULL;
	struct hdf5_description all = {.null = d->null,
				       .rank = d->rank,
				       .own_rank = d->own_rank,
				       .type = d->type,
				       .match = d->match,
				       .stored = d->stored,
				       .storage = HDF5_VIRTUAL,
				       .nmappings = 1,
				       .mapping = m};

	if (!m)
		return error_no_memory(err, "the description of a dataset");
	/* The reader of the source converts its elements. */
	if (all.match == HDF5_CONVERTIBLE)
		all.match = HDF5_SAME;
	memcpy(all.shape, d->shape, sizeof all.shape);
	memcpy(all.said, d->said, sizeof all.said);
	name = hdf5_inside_name(to->s, to->file);
	m->file = name ? escaped(name) : NULL;
	m->dataset = escaped(to->object);
	m->to = slab_of(d, open);
	m->all = open < 0;
	if (!m->all) {
		m->from_rank = d->own_rank;
		m->from = slab_of(d, open);
	}
	hdf5_description_free(d);
	*d = all;
	if (!m->file || !m->dataset || !m->to || (!m->all && !m->from))
		return error_no_memory(err, "the description of a dataset");
	return open == -2 ? error_set(err, -ENOTSUP,
				      "it is behind a link to another file and "
				      "has several unlimited axes, which "
				      "cannot be served")
			  : 0;
}

/* Do hdf5_describe_linked.  The lock must be held; `file` is open. */
static int describe_end(const struct hdf5_place *at, hid_t file,
			const struct hdf5_type *wanted,
			struct hdf5_description *out, struct error *err)
{
	struct hdf5_place to = *at;
	hid_t id, end;
	int r = hdf5_find_object(at->s, file, at->object, &to, &id, err);

	if (r == -ENOENT)
		return err->code = -ENODATA;
	if (r == -ELOOP)
		return err->code = -EIO;
	if (r < 0)
		return r;
	end = H5Iget_file_id(id);
	if (H5Iget_type(id) != H5I_DATASET)
		r = error_set(err, -EIO, "it is not a dataset");
	else
		r = hdf5_describe(at->s, id, wanted, out, err);
	if (!r && (r = map_all(out, &to, err)) < 0)
		hdf5_description_free(out);
	H5Oclose(id);
	if (end >= 0 && end != file)
		H5Fclose(end); /* the reference of hdf5_find_object */
	if (end >= 0)
		H5Fclose(end);
	return r;
}

int hdf5_describe_linked(const struct hdf5_place *at,
			 const struct hdf5_type *wanted,
			 struct hdf5_description *out, struct error *err)
{
	struct error why = {0};
	hid_t file;
	int r;

	hdf5_lock();
	r = hdf5_open(at->s->handles, at->file, &file, &why);
	if (r == 0) {
		r = describe_end(at, file, wanted, out, &why);
		H5Fclose(file);
		if (r < 0)
			hdf5_place_prefix(at, &why);
	}
	hdf5_unlock();
	return r < 0 ? error_set(err, r, "%s", why.text) : 0;
}
