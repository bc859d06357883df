/* SPDX-License-Identifier: BSD-2-Clause */
/* The HDF5 files of a directory, side by side along an axis, as one dataset. */
/*
 * An HDF5 file with only a virtual dataset of these files is made in memory and opened
 * in place of the directory.  So all that holds for virtual datasets holds here: ten
 * thousand parts need few descriptors, and an error names a missing part.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/concat_names.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/walk.h"

/* Type and shape of the dataset in one of the files. */
struct piece {
	hid_t type;
	unsigned rank;
	hsize_t shape[RANK_MAX];
};
struct concat {
	struct hdf5_source *s;
	struct dirent **names;
	int n;
	char *dataset; /* path of the dataset in each file */
	struct piece first;
	unsigned axis;
	uint64_t *along,
		total; /* elements of each file along the axis, and their sum */
	struct error *err;
};

static int fail_by_library(struct error *err, const char *what)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(err, -EIO, "%s: %s", what, why);
}

static char *path_of_joined(const struct concat *c, int i)
{
	char *path;

	return asprintf(&path, "%s/%s", c->s->dir, c->names[i]->d_name) < 0
		       ? NULL
		       : path;
}

/* ---- which dataset ------------------------------------------------------- */

struct only {
	char *path;
	unsigned n;
};

static herr_t count_dataset(hid_t file, const char *name,
			    const H5O_info_t *info, void *ctx)
{
	struct only *o = ctx;

	(void)file;
	hdf5_trial_beat();
	if (info->type != H5O_TYPE_DATASET || o->n++)
		return 0;
	o->path = strdup(name);
	return o->path ? 0 : -1;
}

/* Set the dataset to the only one in the first file. */
static int find_only_dataset(struct concat *c, hid_t file)
{
	struct only o = {NULL, 0};

	if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, count_dataset, &o,
		      H5O_INFO_BASIC) < 0) {
		free(o.path);
		return fail_by_library(c->err,
				       "the groups of the file cannot be read");
	}
	if (o.n == 1) {
		c->dataset = o.path;
		return 0;
	}
	free(o.path);
	return o.n ? error_set(
			     c->err, -EINVAL,
			     "the file has %u datasets: name one with dataset=",
			     o.n)
		   : error_set(c->err, -ENOTSUP, "the file has no dataset");
}

/* ---- the parts ----------------------------------------------------------- */

static int read_piece_shape(struct concat *c, hid_t file, struct piece *p)
{
	hid_t dset = H5Dopen2(file, c->dataset, H5P_DEFAULT);
	hid_t space = dset < 0 ? -1 : H5Dget_space(dset);
	int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
	int r = 0;

	p->type = rank < 0 ? -1 : H5Dget_type(dset);
	if (p->type < 0) {
		char what[300];

		snprintf(what, sizeof what, "no dataset '%.200s'", c->dataset);
		r = fail_by_library(c->err, what);
	} else {
		p->rank = (unsigned)rank; /* at most H5S_MAX_RANK */
		H5Sget_simple_extent_dims(space, p->shape, NULL);
	}
	if (space >= 0)
		H5Sclose(space);
	if (dset >= 0)
		H5Dclose(dset);
	return r;
}

static int set_joined_axis(struct concat *c, int axis)
{
	int rank = (int)c->first.rank;

	if (axis < 0)
		axis += rank;
	if (axis < 0 || axis >= rank)
		return error_set(c->err, SOURCE_USAGE,
				 "concat=: no such axis in arrays of %d axes",
				 rank);
	c->axis = (unsigned)axis;
	return 0;
}

static int check_piece_matches(const struct concat *c, const struct piece *p)
{
	bool same = p->rank == c->first.rank;

	if (H5Tequal(p->type, c->first.type) <= 0)
		return error_set(c->err, -EINVAL,
				 "the type of the dataset differs from the one "
				 "in the first file");
	for (unsigned i = 0; same && i < p->rank; i++)
		same = i == c->axis || p->shape[i] == c->first.shape[i];
	return same ? 0
		    : error_set(c->err, -EINVAL,
				"the shape of the dataset differs from the one "
				"in the first file along an axis other than %u",
				c->axis);
}

static int read_piece(struct concat *c, int i, hid_t file, int axis)
{
	struct piece p = {.type = -1};
	int r = c->dataset ? 0 : find_only_dataset(c, file);

	hdf5_trial_beat();
	if (r == 0)
		r = read_piece_shape(c, file, &p);
	if (r == 0 && i == 0) {
		c->first = p;
		r = set_joined_axis(c, axis);
	} else if (r == 0) {
		r = check_piece_matches(c, &p);
		H5Tclose(p.type);
	}
	if (r < 0)
		return r;
	c->along[i] = p.shape[c->axis];
	return add_overflows(c->total, c->along[i], &c->total)
		       ? error_set(c->err, -ENOTSUP,
				   "the joined dataset is too large")
		       : 0;
}

static int read_joined_part(struct concat *c, int i, int axis)
{
	cleanup_free char *path = path_of_joined(c, i);
	uint32_t number;
	hid_t file;
	int r;

	number = path ? handles_add(c->s->handles, path) : UINT32_MAX;
	if (number == UINT32_MAX)
		return error_no_memory(c->err, "the files of the directory");
	r = hdf5_open(c->s->handles, number, &file, c->err);
	if (r == 0) {
		r = read_piece(c, i, file, axis);
		H5Fclose(file);
	}
	if (r < 0 && !strstr(c->err->text, c->names[i]->d_name))
		error_prefix(c->err, "%s: ", path);
	return r;
}

/* ---- the virtual dataset ------------------------------------------------- */

/* Escape a name of a virtual source: "%%" is '%', "%b" would be a pattern. */
static char *quote_source_name(const char *name)
{
	char *out = malloc(2 * strlen(name) + 1), *at = out;

	for (; out && *name; *at++ = *name++)
		if (*name == '%')
			*at++ = '%';
	if (out)
		*at = '\0';
	return out;
}

static int map_joined_part(const struct concat *c, int i, hsize_t begin,
			   hid_t space, hid_t dcpl)
{
	hsize_t start[RANK_MAX] = {0}, one[RANK_MAX], block[RANK_MAX];
	cleanup_free char *path = path_of_joined(c, i);
	cleanup_free char *name = path ? quote_source_name(path) : NULL;
	cleanup_free char *dataset = quote_source_name(c->dataset);
	hid_t from;
	int r = 0;

	if (!name || !dataset)
		return error_no_memory(c->err,
				       "a virtual dataset of the files");
	for (unsigned k = 0; k < c->first.rank; k++) {
		one[k] = 1;
		block[k] = c->first.shape[k];
		if (k == c->axis)
			block[k] = c->along[i];
		if (!block[k])
			return 0;
	}
	start[c->axis] = begin;
	from = H5Screate_simple((int)c->first.rank, block, NULL);
	if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, one,
				block) < 0 ||
	    H5Pset_virtual(dcpl, space, name, dataset, from) < 0)
		r = fail_by_library(c->err, "cannot map the dataset of a file");
	H5Sclose(from);
	return r;
}

static int make_joined_dataset(const struct concat *c, hid_t file)
{
	const char *slash = strrchr(c->dataset, '/');
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space, dset;
	hsize_t shape[RANK_MAX], begin = 0;
	int r = 0;

	memcpy(shape, c->first.shape, sizeof shape);
	shape[c->axis] = c->total;
	space = H5Screate_simple((int)c->first.rank, shape, NULL);
	if (space < 0)
		r = fail_by_library(c->err, "the joined dataset is too large");
	for (int i = 0; r == 0 && i < c->n; begin += c->along[i++]) {
		hdf5_trial_beat();
		r = map_joined_part(c, i, begin, space, dcpl);
	}
	if (r == 0) {
		H5Sselect_all(space);
		dset = H5Dcreate2(file, slash ? slash + 1 : c->dataset,
				  c->first.type, space, H5P_DEFAULT, dcpl,
				  H5P_DEFAULT);
		if (dset < 0)
			r = fail_by_library(c->err,
					    "cannot create the joined dataset");
		else
			H5Dclose(dset);
	}
	if (space >= 0)
		H5Sclose(space);
	H5Pclose(dcpl);
	return r;
}

/* Keep the image in a memory file, and open the source as that file. */
static int keep_joined_image(const struct concat *c, const void *image,
			     size_t n)
{
	cleanup_close int fd = memfd_create("tensorfs", MFD_CLOEXEC);
	cleanup_free char *name = NULL;

	for (size_t at = 0; fd >= 0 && at < n;) {
		ssize_t w =
			pwrite(fd, (const char *)image + at, n - at, (off_t)at);

		if (w <= 0)
			return error_errno(c->err, w ? -errno : -ENOMEM,
					   "cannot create a memory file for "
					   "the joined dataset");
		at += (size_t)w;
	}
	if (fd < 0)
		return error_errno(
			c->err, -errno,
			"cannot create a memory file for the joined dataset");
	if (asprintf(&name, "%s (concatenated)", c->s->path) < 0) {
		name = NULL;
		return error_no_memory(c->err,
				       "the path of the joined dataset");
	}
	c->s->file = handles_add_open(c->s->handles, steal_fd(&fd), name);
	return c->s->file == UINT32_MAX
		       ? error_no_memory(c->err, "the table of open files")
		       : 0;
}

static int make_joined_file(const struct concat *c)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
	cleanup_free void *image = NULL;
	ssize_t n;
	int r;

	H5Pset_fapl_core(fapl, 1 << 20, false);
	file = H5Fcreate("concatenated", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
	H5Pclose(fapl);
	if (file < 0)
		return fail_by_library(c->err,
				       "cannot create the joined dataset");
	r = make_joined_dataset(c, file);
	if (r == 0 && H5Fflush(file, H5F_SCOPE_LOCAL) < 0)
		r = fail_by_library(c->err, "cannot create the joined dataset");
	n = r < 0 ? 0 : H5Fget_file_image(file, NULL, 0);
	if (r == 0 && (n <= 0 || !(image = malloc((size_t)n))))
		r = error_no_memory(c->err, "the file that joins the datasets");
	if (r == 0 && H5Fget_file_image(file, image, (size_t)n) != n)
		r = fail_by_library(c->err, "cannot create the joined dataset");
	H5Fclose(file);
	return r < 0 ? r : keep_joined_image(c, image, (size_t)n);
}

/* ---- the source ---------------------------------------------------------- */

static int read_joined_parts(struct concat *c, const struct source_args *a)
{
	int r = 0;

	if (a->dataset && !(c->dataset = strdup(a->dataset)))
		return error_no_memory(c->err, "the name of the dataset");
	c->along = calloc((size_t)c->n, sizeof *c->along);
	if (!c->along)
		return error_no_memory(c->err, "the table of files to join");
	hdf5_lock();
	for (int i = 0; r == 0 && i < c->n; i++)
		r = read_joined_part(c, i, a->concat);
	if (r == 0)
		r = make_joined_file(c);
	if (c->first.type >= 0)
		H5Tclose(c->first.type);
	hdf5_unlock();
	return r;
}

int hdf5_concat_walk(struct hdf5_source *s, const struct source_args *a,
		     struct error *err)
{
	struct concat c = {.s = s, .err = err, .first = {.type = -1}};
	struct source_args inside = *a;
	int r;

	c.n = concat_list(s->dir, &c.names, err);
	r = c.n < 0 ? c.n : read_joined_parts(&c, a);
	concat_list_free(c.names, c.n);
	free(c.dataset);
	free(c.along);
	inside.dataset = NULL;
	return r < 0 ? r : hdf5_walk_file(s, &inside, err);
}
