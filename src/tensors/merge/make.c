/* SPDX-License-Identifier: BSD-2-Clause */
/* Make the file around the chunks: everything that the main file has is made anew. */

/*
 * Items are made in the order of the list: a group before its members, an object before
 * its other names.  A second pass writes what refers to objects.  Files are opened one at
 * a time; items of one file follow each other, as links do.
 *
 * If this is interrupted, all of it is done again from the beginning: it changes only
 * what is behind the chunks, in a file that has no name yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/merge/private.h"
#include "tensors/refer.h"

/* The state of making the file.  The library's lock is held all the time. */
struct making {
	struct merge *m;
	hid_t out;
	hid_t from; /* the file that is open, or -1 */
	uint32_t file;
	struct error *err;
};

/* Set -EIO and what the library said last; returns -EIO. */
static int making_failed(struct making *x, const struct item *it,
			 const char *what)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(x->err, -EIO, "%s: %s: %s", it->path, what, why);
}

static const char *making_place(const struct item *it)
{
	return *it->object ? it->object : "/";
}

static hid_t making_link(const struct item *it)
{
	hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);

	H5Pset_char_encoding(lcpl, it->cset);
	return lcpl;
}

/* ---- as it is ------------------------------------------------------------ */

/* Make libhdf5 forget the filters of a dataset, so that it copies chunks without decoding
 * them.  Returns 0: hdf5_filters_register must be called when the copy is written; 1 if
 * there was nothing to do; or -errno. */
static int forget_filters(struct making *x, hid_t from)
{
	hid_t dcpl;
	int r;

	if (H5Iget_type(from) != H5I_DATASET)
		return 1;
	dcpl = H5Dget_create_plist(from);
	r = dcpl < 0 ? 1 : build_filters_nameless(dcpl, x->err);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return r;
}

static int making_copy(struct making *x, const struct item *it, hid_t from,
		       hid_t *to)
{
	hid_t ocpypl = H5Pcreate(H5P_OBJECT_COPY), lcpl = making_link(it);
	int forgotten = forget_filters(x, from), r;
	struct error ignored;

	r = forgotten < 0 ? forgotten : 0;
	*to = H5I_INVALID_HID;
	if (r == 0 &&
	    H5Pset_copy_object(ocpypl, H5O_COPY_WITHOUT_ATTR_FLAG) >= 0 &&
	    H5Ocopy(x->from, making_place(it), x->out, it->path, ocpypl,
		    lcpl) >= 0)
		*to = H5Oopen(x->out, it->path, H5P_DEFAULT);
	if (r == 0 && (*to < 0 || (forgotten == 0 && H5Oflush(*to) < 0)))
		r = making_failed(x, it, "it cannot be copied");
	H5Pclose(lcpl);
	H5Pclose(ocpypl);
	if (forgotten == 0)
		hdf5_filters_register(&ignored);
	if (r < 0 && *to >= 0)
		H5Oclose(*to);
	return r;
}

/* The properties of a virtual dataset that the new dataset shall have. */
struct shape {
	hid_t type;
	unsigned rank;
	hsize_t dims[RANK_MAX], max[RANK_MAX];
	unsigned char *fill; /* NULL: zeros */
	bool fill_unknown;   /* there is a fill value that cannot be read */
};

static int make_read_shape(struct making *x, const struct item *it, hid_t from,
			   const struct tensor *t, struct shape *s)
{
	hid_t stored = H5Dget_type(from), space = H5Dget_space(from);
	hid_t dcpl = hdf5_vlen_create_plist(from);
	H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
	int rank = space < 0
			   ? -1
			   : H5Sget_simple_extent_dims(space, s->dims, s->max);
	bool ok = stored >= 0 && rank >= 0 && dcpl >= 0;
	int r;

	s->type = ok ? H5Tcopy(stored) : H5I_INVALID_HID;
	s->rank = ok ? (unsigned)rank : 0;
	s->fill = NULL;
	/* Unlimited axes are as long as the parts say. */
	for (unsigned i = 0; i < s->rank && t->rank >= s->rank; i++)
		s->dims[i] = t->shape[i];
	ok = ok && s->type >= 0 && H5Pfill_value_defined(dcpl, &defined) >= 0;
	s->fill_unknown = ok && defined == H5D_FILL_VALUE_USER_DEFINED &&
			  refer_points(s->type);
	if (ok && defined == H5D_FILL_VALUE_USER_DEFINED && !s->fill_unknown) {
		s->fill = calloc(1, H5Tget_size(s->type));
		ok = s->fill && H5Pget_fill_value(dcpl, s->type, s->fill) >= 0;
	}
	r = ok ? 0 : making_failed(x, it, "it cannot be read");
	if (stored >= 0)
		H5Tclose(stored);
	if (space >= 0)
		H5Sclose(space);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	return r;
}

static void shape_free(struct shape *s)
{
	if (s->type >= 0)
		H5Tclose(s->type);
	free(s->fill);
}

/* Set *out to the chunks of one stream from the journal's list; the caller frees it. */
static int chunks_of(const struct merge *m, uint32_t stream,
		     struct build_chunk **out, uint64_t *count)
{
	uint64_t n = 0;

	for (size_t i = 0; i < m->j.chunks.n; i++)
		n += m->j.chunks.at[i].stream == stream &&
		     m->j.chunks.at[i].at.len;
	*count = n;
	*out = calloc(n ? n : 1, sizeof **out);
	if (!*out)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < m->j.chunks.n; i++)
		if (m->j.chunks.at[i].stream == stream &&
		    m->j.chunks.at[i].at.len)
			(*out)[n++] = m->j.chunks.at[i].at;
	return 0;
}

static int making_stream(struct making *x, const struct item *it, hid_t from,
			 hid_t *to)
{
	const struct stream *st = &x->m->streams.at[it->index];
	uint64_t dims[RANK_MAX], max[RANK_MAX];
	struct build_dataset d = {.path = it->path,
				  .shape = dims,
				  .max = max,
				  .chunk = st->grid.chunk,
				  .pipeline = &st->pipeline};
	struct shape s;
	int r = make_read_shape(x, it, from, st->t, &s);

	d.type = s.type;
	d.rank = s.rank;
	d.fill = s.fill;
	for (unsigned i = 0; i < s.rank; i++) {
		dims[i] = s.dims[i];
		max[i] = s.max[i] == H5S_UNLIMITED ? UINT64_MAX : s.max[i];
		max[i] = max_u64(max[i], dims[i]);
	}
	if (r == 0 &&
	    chunks_of(x->m, (uint32_t)it->index, &d.chunks, &d.n_chunks) < 0)
		r = error_no_memory(x->err, "the list of chunks");
	if (r == 0)
		r = build_dataset(x->m->b, x->out, &d, to, x->err);
	free(d.chunks);
	shape_free(&s);
	return r;
}

/* ---- strings and the like ------------------------------------------------ */

/* Return the stream, in the same group, whose rows a dataset of flags describes, or
 * NULL. */
static const struct stream *sibling(const struct merge *m, const char *path,
				    const struct tensor *t)
{
	size_t n = (size_t)(strrchr(path, '/') - path) + 1;

	for (size_t i = 0; i < m->streams.n; i++) {
		const struct stream *s = &m->streams.at[i];
		const char *name = s->t->name;

		if (!strncmp(name, path, n) && !strchr(name + n, '/') &&
		    s->t->shape[0] == t->shape[0])
			return s;
	}
	return NULL;
}

/* Give the flags chunks of as many rows as the data have, and the same compression if the
 * library can write it: deflate and LZF (filter 32000). */
static int store_as_sibling(const struct stream *s, hid_t dcpl,
			    struct error *err)
{
	hsize_t rows = s->grid.chunk[0];
	struct pipeline p = {.n = 0};
	int r = H5Pset_chunk(dcpl, 1, &rows) < 0
			? error_set(err, -EIO,
				    "the chunks of a dataset 'flags' cannot be "
				    "set")
			: 0;

	for (unsigned i = 0; i < s->pipeline.n && r == 0; i++) {
		const struct pipeline_filter *f = &s->pipeline.filter[i];

		if (f->id == 32000)
			r = pipeline_add(&p, f->id, NULL, NULL, 0, 16, err);
		else if (f->id == H5Z_FILTER_DEFLATE)
			r = pipeline_add(&p, f->id, NULL, f->params.cd, 1, 16,
					 err);
	}
	return r < 0 ? r : build_filters(dcpl, &p, err);
}

static int making_values(struct making *x, const struct item *it, hid_t from,
			 hid_t *to)
{
	const struct values *v = &x->m->values.at[it->index];
	const struct stream *beside =
		v->is_flags ? sibling(x->m, it->path, v->t) : NULL;
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = -1, lcpl;
	struct shape s;
	int r = make_read_shape(x, it, from, v->t, &s);

	H5Pset_obj_track_times(dcpl, false);
	H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC); /* as h5py does */
	if (r == 0 && refer_is_in(s.type))
		r = error_set(x->err, -ENOTSUP,
			      "%s: references that are stored in other files "
			      "cannot be merged",
			      it->path);
	if (r == 0 && beside && v->t->elements)
		r = store_as_sibling(beside, dcpl, x->err);
	if (r == 0 && s.fill && H5Pset_fill_value(dcpl, s.type, s.fill) < 0)
		r = making_failed(x, it, "its fill value cannot be set");
	if (r == 0) {
		lcpl = making_link(it);
		space = H5Screate_simple((int)s.rank, s.dims, NULL);
		*to = H5Dcreate2(x->out, it->path, s.type, space, lcpl, dcpl,
				 H5P_DEFAULT);
		r = *to < 0 ? making_failed(x, it, "it cannot be created") : 0;
		H5Pclose(lcpl);
		H5Sclose(space);
	}
	if (r == 0) {
		/* Writing the values opens parts, so this file is closed. */
		H5Fclose(x->from);
		x->from = H5I_INVALID_HID;
		r = merge_values_write(x->m, it, *to, s.fill_unknown, x->err);
		if (r < 0)
			H5Dclose(*to);
	}
	H5Pclose(dcpl);
	shape_free(&s);
	return r;
}

/* Remove the filters that libhdf5 cannot apply. */
static void drop_filters(hid_t dcpl)
{
	for (int i = H5Pget_nfilters(dcpl); i-- > 0;) {
		unsigned flags, can = 0;
		size_t n = 0;
		H5Z_filter_t id = H5Pget_filter2(dcpl, (unsigned)i, &flags, &n,
						 NULL, 0, NULL, NULL);

		if (id >= 0 && (H5Zget_filter_info(id, &can) < 0 ||
				!(can & H5Z_FILTER_CONFIG_ENCODE_ENABLED)))
			H5Premove_filter(dcpl, id);
	}
}

/* Make a dataset as it is in its file, whose elements point to others. */
static int making_pointing(struct making *x, const struct item *it, hid_t from,
			   hid_t *to)
{
	hid_t stored = H5Dget_type(from), space = H5Dget_space(from);
	hid_t type = stored < 0 ? stored : H5Tcopy(stored),
	      lcpl = making_link(it);
	hid_t dcpl = hdf5_vlen_create_plist(from);
	int r;

	*to = H5I_INVALID_HID;
	if (type >= 0 && space >= 0 && dcpl >= 0) {
		drop_filters(dcpl);
		*to = H5Dcreate2(x->out, it->path, type, space, lcpl, dcpl,
				 H5P_DEFAULT);
	}
	r = *to < 0 ? making_failed(x, it, "it cannot be created") : 0;
	H5Pclose(lcpl);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	if (type >= 0)
		H5Tclose(type);
	if (stored >= 0)
		H5Tclose(stored);
	if (r < 0)
		return r;
	H5Fclose(x->from); /* writing the values opens this file itself */
	x->from = H5I_INVALID_HID;
	r = merge_values_write(x->m, it, *to, false, x->err);
	if (r < 0)
		H5Dclose(*to);
	return r;
}

static bool making_points(hid_t dset)
{
	hid_t type = H5Dget_type(dset);
	bool is = type >= 0 && (refer_points(type) || refer_is_in(type));

	if (type >= 0)
		H5Tclose(type);
	return is;
}

/* ---- files of items ------------------------------------------------------ */

/* Open the object of an item, and its file if another one is open. */
static int make_open_object(struct making *x, const struct item *it, hid_t *out)
{
	int r;

	if (x->from >= 0 && x->file != it->file) {
		H5Fclose(x->from);
		x->from = H5I_INVALID_HID;
	}
	if (x->from < 0) {
		r = hdf5_open(x->m->handles, it->file, &x->from, x->err);
		if (r < 0) {
			x->from = H5I_INVALID_HID;
			return r;
		}
		x->file = it->file;
	}
	*out = H5Oopen(x->from, making_place(it), H5P_DEFAULT);
	return *out < 0 ? making_failed(x, it, "it cannot be opened") : 0;
}

/* ---- names --------------------------------------------------------------- */

static int make_item_link(struct making *x, const struct item *it)
{
	hid_t lcpl = making_link(it);
	herr_t ok;
	int r;

	if (it->kind == ITEM_SOFT)
		ok = H5Lcreate_soft(it->target, x->out, it->path, lcpl,
				    H5P_DEFAULT);
	else
		ok = H5Lcreate_hard(x->out, it->target, x->out, it->path, lcpl,
				    H5P_DEFAULT);
	r = ok < 0 ? making_failed(x, it, "the link cannot be created") : 0;

	H5Pclose(lcpl);
	return r;
}

/* Return the creation properties of a group's links and attributes.  They are copied one
 * by one, because the list as a whole also says where the old group stores its links. */
static hid_t group_plist(hid_t group)
{
	hid_t from = H5Gget_create_plist(group),
	      to = H5Pcreate(H5P_GROUP_CREATE);
	unsigned a, b;

	if (from < 0)
		return to;
	if (H5Pget_link_creation_order(from, &a) >= 0)
		H5Pset_link_creation_order(to, a);
	if (H5Pget_link_phase_change(from, &a, &b) >= 0)
		H5Pset_link_phase_change(to, a, b);
	if (H5Pget_attr_creation_order(from, &a) >= 0)
		H5Pset_attr_creation_order(to, a);
	H5Pclose(from);
	return to;
}

static int make_item_group(struct making *x, const struct item *it, hid_t from,
			   hid_t *to)
{
	hid_t gcpl, lcpl;
	int r;

	if (!strcmp(it->path, "/")) {
		*to = H5Gopen2(x->out, "/", H5P_DEFAULT);
		return *to < 0 ? making_failed(x, it, "it cannot be opened")
			       : 0;
	}
	lcpl = making_link(it);
	gcpl = group_plist(from);
	*to = gcpl < 0 ? -1
		       : H5Gcreate2(x->out, it->path, lcpl, gcpl, H5P_DEFAULT);
	r = *to < 0 ? making_failed(x, it, "the group cannot be created") : 0;
	if (gcpl >= 0)
		H5Pclose(gcpl);
	H5Pclose(lcpl);
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

static int make_item_object(struct making *x, const struct item *it, hid_t from,
			    hid_t *to)
{
	switch (it->kind) {
	case ITEM_GROUP:
		return make_item_group(x, it, from, to);
	case ITEM_STREAM:
		return making_stream(x, it, from, to);
	case ITEM_VALUES:
		return making_values(x, it, from, to);
	case ITEM_KEPT:
		if (making_points(from))
			return making_pointing(x, it, from, to);
		/* fall through */
	default:
		return making_copy(x, it, from, to);
	}
}

static int make_item(struct making *x, const struct item *it)
{
	hid_t from, to;
	int r;

	if (it->kind == ITEM_SAME || it->kind == ITEM_SOFT)
		return make_item_link(x, it);
	r = make_open_object(x, it, &from);
	if (r < 0)
		return r;
	r = make_item_object(x, it, from, &to);
	if (r == 0) {
		/* Making the object may have closed its file. */
		hid_t again = from;

		if (x->from < 0)
			r = make_open_object(x, it, &again);
		if (r == 0)
			r = merge_attributes(x->m, it, again, to, false,
					     x->err);
		if (again != from && again >= 0)
			H5Oclose(again);
		H5Oclose(to);
	}
	if (H5Iis_valid(from) > 0)
		H5Oclose(from);
	return r;
}

/* Write what refers to objects, which all exist now. */
static int make_item_references(struct making *x, const struct item *it)
{
	hid_t from, to, type = H5I_INVALID_HID;
	int r;

	if (it->kind == ITEM_SAME || it->kind == ITEM_SOFT)
		return 0;
	r = make_open_object(x, it, &from);
	if (r < 0)
		return r;
	to = H5Oopen(x->out, it->path, H5P_DEFAULT);
	if (to < 0)
		r = making_failed(x, it, "it cannot be opened");
	if (r == 0)
		r = merge_attributes(x->m, it, from, to, true, x->err);
	if (r == 0 && it->kind == ITEM_KEPT) {
		type = H5Dget_type(from);
		if (type >= 0 && refer_is_in(type))
			r = merge_references(x->m, it, from, to, x->err);
	}
	if (type >= 0)
		H5Tclose(type);
	if (to >= 0)
		H5Oclose(to);
	H5Oclose(from);
	return r;
}

static int make_items(struct making *x)
{
	struct merge *m = x->m;
	int r = 0;

	for (size_t i = 0; i < m->items.n && r == 0; i++) {
		r = make_item(x, &m->items.at[i]);
		if (r == 0 && *m->o.stop)
			r = error_set(x->err, -EINTR, "interrupted");
	}
	for (size_t i = 0; i < m->items.n && r == 0; i++)
		r = make_item_references(x, &m->items.at[i]);
	if (x->from >= 0)
		H5Fclose(x->from);
	return r;
}

/* Check that every object can be opened in the file that the library has written. */
static int make_check_output(struct merge *m, struct error *err)
{
	uint32_t number = handles_add(m->handles, m->data_path);
	hid_t file, object;
	int r = number == UINT32_MAX
			? error_no_memory(err, "the name of the output")
			: hdf5_open(m->handles, number, &file, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < m->items.n && r == 0; i++) {
		const struct item *it = &m->items.at[i];

		if (it->kind == ITEM_SOFT)
			continue;
		object = H5Oopen(file, it->path, H5P_DEFAULT);
		if (object < 0)
			r = error_set(err, -EIO,
				      "%s: libhdf5 cannot open the object that "
				      "it has written",
				      it->path);
		else
			H5Oclose(object);
	}
	H5Fclose(file);
	return r;
}

static int make_output(struct merge *m, struct error *err)
{
	struct making x = {.m = m, .from = H5I_INVALID_HID, .err = err};
	struct error late = {.code = 0};
	int r, end;

	hdf5_lock();
	r = build_open(m->b, &x.out, err);
	if (r == 0) {
		r = make_items(&x);
		end = build_close(m->b, x.out, r ? &late : err);
		/* If writing failed, that is why the rest did. */
		if (r < 0 && end < 0)
			*err = late;
		r = r < 0 ? err->code : end;
	}
	if (r == 0)
		r = make_check_output(m, err);
	hdf5_unlock();
	return r;
}

/* ---- in a process of its own --------------------------------------------- */

/*
 * libhdf5 reads what it copies (objects behind links, attributes), and a damaged file may
 * crash it, or make it loop for ever.  So the file is made in a child process.  No other
 * thread of this process is running now, so a fork has everything; what the child writes
 * is in the data file, which the parent publishes when the child reports success.  The
 * child dies with the parent, and is killed if it does not stop in time.
 */
#define LOOK_MS 100
#define PATIENCE 50 /* number of looks at the child after it was told to stop */

/* Read the child's error; return false unless all of it arrives. */
static bool make_receive_error(int fd, struct error *err)
{
	size_t have = 0;

	while (have < sizeof *err) {
		ssize_t n = read(fd, (char *)err + have, sizeof *err - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	err->text[sizeof err->text - 1] = '\0';
	return true;
}

/* Wait until the child reports or is gone; pass on the request to stop. */
static void make_wait_for_child(const struct merge *m, int fd, pid_t pid)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int looks = 0;

	while (poll(&p, 1, LOOK_MS) <= 0) {
		if (!*m->o.stop)
			continue;
		if (looks == 0)
			kill(pid, SIGTERM);
		if (looks++ == PATIENCE)
			kill(pid, SIGKILL);
	}
}

static void make_child_main(struct merge *m, int fd, pid_t parent)
{
	struct error err = {.code = 0, .text = ""};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		make_output(m, &err);
	if (write(fd, &err, sizeof err) < 0)
		_exit(1);
	_exit(0);
}

int merge_make_apart(struct merge *m, struct error *err)
{
	struct error said = {.code = 0};
	pid_t parent = getpid(), pid;
	int pair[2], status = 0;
	bool heard;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "cannot start a process");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		make_child_main(m, pair[1], parent);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return error_errno(err, -errno, "cannot start a process");
	}
	make_wait_for_child(m, pair[0], pid);
	heard = make_receive_error(pair[0], &said);
	close(pair[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!heard && *m->o.stop)
		return error_set(err, -EINTR, "interrupted");
	if (!heard)
		return error_set(err, -EBADMSG,
				 "%s: libhdf5 crashed while it copied from "
				 "this file (%s)",
				 file_shown(m->o.main),
				 WIFSIGNALED(status)
					 ? strsignal(WTERMSIG(status))
					 : "it ended early");
	if (said.code)
		*err = said;
	return said.code;
}
