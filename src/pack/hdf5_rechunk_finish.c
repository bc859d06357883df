/* SPDX-License-Identifier: BSD-2-Clause */
/* The file around new chunks: type, shape, fill value and attributes as they were. */
/*
 * The type is the source's own wherever elements are served as they are stored, which is
 * in all but odd cases (dtype-order=source is set); else the one that they are converted
 * to for readers of a mount.  Axes of array types have become axes of the dataset, as
 * h5py shows them.
 *
 * libhdf5 reads the source's header here, with whatever is wrong with it, and may not
 * survive that.  So all of this is done in a child, when no other thread is there; what it
 * has to say comes through a pipe.
 */
#include "pack/hdf5_rechunk_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "source/hdf5_dtype.h"
#include "source/hdf5.h"
#include "source/hdf5_lost.h"
#include "source/hdf5_vlen.h"

/* Bytes of an attribute, with what its values point to. */
#define ATTRIBUTE_MOST (UINT64_C(64) << 20)
/* An object header as old as those we write has room for one of 64 KiB, with its name and
 * type. */
#define ATTRIBUTE_LARGE (UINT64_C(32) << 10)

/* What the child says. */
struct answer {
	int code;
	char text[sizeof((struct error){0}.text)];
	char left_out[512];
};
/* Attributes that could not be kept. */
struct leavings {
	unsigned n;
	char *text;
	size_t room;
};

static const struct hdf5_tensor *hdf5_of(const struct tensor *t)
{
	return t->ops == &hdf5_tensor_ops ? (const struct hdf5_tensor *)t
					  : NULL;
}

const char *rechunk_object(const struct tensor *t)
{
	const struct hdf5_tensor *h = hdf5_of(t);

	return h ? h->object : t->name;
}

/* ---- type and shape ------------------------------------------------------ */

static bool served_as_stored(const struct tensor *t)
{
	return !t->field && t->stored.size == t->dtype.size &&
	       dtype_equal(&t->stored, &t->dtype);
}

/* The type of one element, behind axes of array types. */
static hid_t element_type(const struct tensor *t, hid_t object)
{
	hid_t type = H5Dget_type(object), result;

	while (type >= 0 && H5Tget_class(type) == H5T_ARRAY &&
	       H5Tget_size(type) != t->dtype.size) {
		hid_t super = H5Tget_super(type);

		H5Tclose(type);
		type = super;
	}
	if (type < 0)
		return type;
	if (served_as_stored(t) && H5Tget_size(type) == t->dtype.size)
		result = H5Tcopy(type);
	else
		result = hdf5_type_memory(type, &t->dtype, NULL);
	H5Tclose(type);
	return result;
}

static int output_type(const struct tensor *t, hid_t object, hid_t *type,
		       struct error *err)
{
	const struct hdf5_tensor *h = hdf5_of(t);

	*type = object >= 0 && h && !h->member && !t->field
			? element_type(t, object)
			: H5I_INVALID_HID;
	if (*type >= 0 && H5Tget_size(*type) == t->dtype.size)
		return 0;
	if (*type >= 0)
		H5Tclose(*type);
	return hdf5_type_of_dtype(&t->dtype, type, err);
}

/* ---- attributes ---------------------------------------------------------- */

static void leave_out(struct leavings *l, const char *name)
{
	size_t at = strlen(l->text);

	if (l->n++ < 8)
		snprintf(l->text + at, l->room - at, "%s'%.40s'",
			 at ? ", " : "", name);
	else if (l->n == 9)
		snprintf(l->text + at, l->room - at, ", ...");
}

/* Values through memory, as they are stored. */
static bool copy_values(hid_t from, hid_t to, hid_t type, hid_t space)
{
	hssize_t n = H5Sget_simple_extent_npoints(space);
	uint64_t bytes;
	cleanup_free char *data = NULL;
	bool ok;

	if (n <= 0)
		return n == 0; /* a null space, or no elements */
	if (mul_overflows((uint64_t)n, H5Tget_size(type), &bytes) ||
	    bytes > ATTRIBUTE_MOST)
		return false;
	data = calloc(1, bytes);
	hdf5_vlen_begin(from, ATTRIBUTE_MOST);
	ok = data && H5Aread(from, type, data) >= 0 &&
	     H5Awrite(to, type, data) >= 0;
	hdf5_vlen_end();
	return ok;
}

static bool copy_one(hid_t from, hid_t object, const char *name)
{
	hid_t type = H5Aget_type(from), space = H5Aget_space(from);
	hid_t acpl = H5Aget_create_plist(from), plain = H5I_INVALID_HID;
	hid_t to = H5I_INVALID_HID;
	bool ok = type >= 0 && space >= 0 && acpl >= 0 &&
		  /* what it refers to is elsewhere */
		  H5Tdetect_class(type, H5T_REFERENCE) == 0;

	if (ok)
		plain = H5Tcopy(type); /* not a named one of the source */
	if (plain >= 0)
		to = H5Acreate2(object, name, plain, space, acpl, H5P_DEFAULT);
	ok = ok && to >= 0 && copy_values(from, to, plain, space);
	if (to >= 0)
		H5Aclose(to);
	if (!ok && to >= 0)
		H5Adelete(object, name);
	if (plain >= 0)
		H5Tclose(plain);
	if (acpl >= 0)
		H5Pclose(acpl);
	if (type >= 0)
		H5Tclose(type);
	if (space >= 0)
		H5Sclose(space);
	return ok;
}

struct copying {
	hid_t to;
	struct leavings *left;
};

static herr_t each_attribute(hid_t from, const char *name,
			     const H5A_info_t *info, void *ctx)
{
	struct copying *c = ctx;
	hid_t a = H5Aopen(from, name, H5P_DEFAULT);

	(void)info;
	if (a < 0 || !copy_one(a, c->to, name))
		leave_out(c->left, name);
	if (a >= 0)
		H5Aclose(a);
	return 0;
}

static void copy_attributes(hid_t from, unsigned order, hid_t to,
			    struct leavings *left)
{
	struct copying c = {to, left};
	hsize_t at = 0;
	char why[256];

	if (hdf5_lost_rest(from, why, sizeof why) != HDF5_REST_NONE ||
	    H5Aiterate2(from,
			order & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER
						      : H5_INDEX_NAME,
			H5_ITER_INC, &at, each_attribute, &c) < 0)
		leave_out(left, "(those that cannot be listed)");
}

/* The order that the source keeps of its attributes. */
static unsigned attribute_order(hid_t source)
{
	hid_t dcpl = H5Dget_create_plist(source);
	unsigned order = 0;

	if (dcpl < 0)
		return 0;
	H5Pget_attr_creation_order(dcpl, &order);
	H5Pclose(dcpl);
	return order;
}

static herr_t look_for_large(hid_t from, const char *name,
			     const H5A_info_t *info, void *ctx)
{
	(void)from;
	(void)name;
	(void)ctx;
	return info->data_size >= ATTRIBUTE_LARGE;
}

static bool has_large_attribute(hid_t source)
{
	hsize_t at = 0;
	char why[256];

	return hdf5_lost_rest(source, why, sizeof why) == HDF5_REST_NONE &&
	       H5Aiterate2(source, H5_INDEX_NAME, H5_ITER_INC, &at,
			   look_for_large, NULL) > 0;
}

/* ---- the file ------------------------------------------------------------ */

static int make_dataset(struct rechunk *w, const char *name, hid_t file,
			hid_t source, struct leavings *left, struct error *err)
{
	struct tensor *t = w->t;
	cleanup_free unsigned char *fill = NULL;
	struct build_dataset d = {.path = name,
				  .rank = t->rank,
				  .shape = t->shape,
				  .chunk = w->grid.chunk,
				  .max = w->grows ? w->max : NULL,
				  .pipeline = &w->pipeline,
				  .chunks = w->chunks.at,
				  .n_chunks = w->chunks.n};
	unsigned order = source >= 0 ? attribute_order(source) : 0;
	hid_t dset;
	int r = output_type(t, source, &d.type, err);

	if (r < 0)
		return r;
	d.attr_order = order;
	if (!order && source >= 0 && has_large_attribute(source))
		d.attr_order = H5P_CRT_ORDER_TRACKED;
	if (w->fill.width == t->dtype.size && t->dtype.size) {
		fill = malloc(t->dtype.size);
		if (fill)
			memcpy(fill, w->fill.pattern, t->dtype.size);
		d.fill = fill;
	}
	r = build_dataset(w->build, file, &d, &dset, err);
	if (r == 0) {
		if (source >= 0)
			copy_attributes(source, order, dset, left);
		H5Dclose(dset);
	}
	H5Tclose(d.type);
	return r;
}

/* Where the header of the source is: its own, or behind an external link. */
static hid_t open_source(const struct tensor *t, struct hdf5_opened *o)
{
	const struct hdf5_tensor *h = hdf5_of(t);
	struct hdf5_place at;

	o->file = o->object = H5I_INVALID_HID;
	if (!h || t->field || h->member)
		return H5I_INVALID_HID;
	at = (struct hdf5_place){h->source, h->file, h->object};
	if (hdf5_place_open(&at, o, NULL) == 0)
		return o->object;
	o->file = H5I_INVALID_HID;
	if (t->nparts == 1) {
		at.file = t->parts[0].file;
		at.object = t->parts[0].dataset;
		if (hdf5_place_open(&at, o, NULL) == 0)
			return o->object;
		o->file = H5I_INVALID_HID;
	}
	return H5I_INVALID_HID;
}

bool rechunk_max_shape(const struct tensor *t, uint64_t *max)
{
	struct hdf5_opened o;
	hid_t dset = open_source(t, &o), space;
	hsize_t most[RANK_MAX];
	bool grows = false;

	if (dset < 0)
		return false;
	space = H5Dget_space(dset);
	if (space >= 0 && H5Sget_simple_extent_ndims(space) == (int)t->rank &&
	    H5Sget_simple_extent_dims(space, NULL, most) >= 0)
		for (unsigned i = 0; i < t->rank; i++) {
			max[i] = max_u64(most[i], t->shape[i]);
			grows |= max[i] > t->shape[i];
		}
	if (space >= 0)
		H5Sclose(space);
	hdf5_place_close(&o);
	return grows;
}

static int finish_here(struct rechunk *w, const char *name,
		       struct leavings *left, struct error *err)
{
	struct hdf5_opened o;
	hid_t file = H5I_INVALID_HID, source = open_source(w->t, &o);
	int r;

	if (o.file < 0) /* what is open has the lock */
		hdf5_lock();
	r = build_open(w->build, &file, err);
	if (r == 0) {
		r = make_dataset(w, name, file, source, left, err);
		if (r == 0)
			r = build_close(w->build, file, err);
		else
			H5Fclose(file);
	}
	if (o.file < 0)
		hdf5_unlock();
	else
		hdf5_place_close(&o);
	return r;
}

/* ---- in a child ---------------------------------------------------------- */

static void child(struct rechunk *w, const char *name, int to)
{
	struct answer a = {0};
	struct leavings left = {0, a.left_out, sizeof a.left_out};
	struct error err = {0};
	const char *at = (const char *)&a;

	a.code = hdf5_init(&err);
	if (a.code == 0)
		a.code = finish_here(w, name, &left, &err);
	memcpy(a.text, err.text, sizeof a.text);
	for (size_t n = 0; n < sizeof a;) {
		ssize_t done = write(to, at + n, sizeof a - n);

		if (done <= 0)
			_exit(1);
		n += (size_t)done;
	}
	_exit(0);
}

static bool read_answer(int from, struct answer *a)
{
	size_t n = 0;

	while (n < sizeof *a) {
		ssize_t got = read(from, (char *)a + n, sizeof *a - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

int rechunk_finish(struct rechunk *w, const char *name, char *left_out,
		   size_t n, struct error *err)
{
	struct answer a;
	int ends[2], status = 0;
	bool told;
	pid_t pid;

	if (pipe(ends) < 0)
		return error_errno(err, -errno, "cannot make a pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child(w, name, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error_errno(err, -errno, "cannot make a process");
	}
	told = read_answer(ends[0], &a);
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!told) {
		w->of_source = true;
		return error_set(
			err, -EBADMSG,
			"%s: libhdf5 did not survive reading its "
			"header%s%s: it is damaged",
			w->t->source ? w->t->source : w->t->name,
			WIFSIGNALED(status) ? ": " : "",
			WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
	}
	snprintf(left_out, n, "%s", a.left_out);
	return a.code < 0 ? error_set(err, a.code, "%s", a.text) : 0;
}
