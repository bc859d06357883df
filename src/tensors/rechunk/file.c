/* SPDX-License-Identifier: BSD-2-Clause */
/* The file around the new chunks: the dataset, and the rest of the source's file. */

/*
 * The type is the source's own wherever elements are served as they are stored, which is
 * so except in rare cases (dtype-order=source is set); otherwise the type that they are
 * converted to for readers of a mount.  Axes of array types become axes of the dataset,
 * as h5py shows them.
 *
 * The source's header is read here, in a child: see below.
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/place.h"
#include "formats/hdf5/type/dtype.h"
#include "formats/hdf5/layout/tensor.h"
#include "formats/hdf5/type/type.h"
#include "tensors/rechunk/private.h"

#define PIECE ((size_t)1 << 20)
/* Milliseconds between two checks of *stop. */
#define LOOK_MS 100

/* The HDF5 part of a tensor, or NULL if it is of another format. */
static const struct hdf5_tensor *rechunk_hdf5(const struct tensor *t)
{
	return t->ops == &hdf5_tensor_ops ? (const struct hdf5_tensor *)t
					  : NULL;
}

const char *rechunk_object(const struct tensor *t)
{
	const struct hdf5_tensor *h = rechunk_hdf5(t);

	return h ? h->object : t->name;
}

/* ---- type and shape ------------------------------------------------------ */

static bool rechunk_served_as_stored(const struct tensor *t)
{
	return !t->field && t->stored.size == t->dtype.size &&
	       dtype_equal(&t->stored, &t->dtype);
}

/* Return the type of one element, without axes of array types. */
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
	if (rechunk_served_as_stored(t) && H5Tget_size(type) == t->dtype.size)
		result = H5Tcopy(type);
	else
		result = hdf5_type_memory(type, &t->dtype, NULL);
	H5Tclose(type);
	return result;
}

static int output_type(const struct tensor *t, hid_t object, hid_t *type,
		       struct error *err)
{
	const struct hdf5_tensor *h = rechunk_hdf5(t);

	*type = object >= 0 && h && !h->member && !t->field
			? element_type(t, object)
			: H5I_INVALID_HID;
	if (*type >= 0 && H5Tget_size(*type) == t->dtype.size)
		return 0;
	if (*type >= 0)
		H5Tclose(*type);
	return hdf5_type_of_dtype(&t->dtype, type, err);
}

/* ---- the file ------------------------------------------------------------ */

/* The flags of creation order of the source's attributes. */
static unsigned rechunk_attribute_order(hid_t source)
{
	hid_t dcpl = H5Dget_create_plist(source);
	unsigned order = 0;

	if (dcpl < 0)
		return 0;
	H5Pget_attr_creation_order(dcpl, &order);
	H5Pclose(dcpl);
	return order;
}

/* Set *type to the type of the new dataset: the named one if the source's type is that
 * one. */
static int choose_type(const struct tensor *t, hid_t source, hid_t named,
		       hid_t *type, struct error *err)
{
	hid_t own = named >= 0 ? H5Dget_type(source) : H5I_INVALID_HID;
	bool same = own >= 0 && rechunk_served_as_stored(t) &&
		    H5Tget_size(own) == t->dtype.size;

	if (own >= 0)
		H5Tclose(own);
	if (!same)
		return output_type(t, source, type, err);
	*type = named;
	H5Iinc_ref(named);
	return 0;
}

/* Make the new dataset, without attributes.  `source`: the old one, or negative; `named`:
 * the named type of the new file that the dataset is to have, or negative. */
static int rechunk_make_dataset(struct rechunk *w, const char *name,
				hid_t group, hid_t source, hid_t named,
				hid_t *dset, struct error *err)
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
	int r = choose_type(t, source, named, &d.type, err);

	if (r < 0)
		return r;
	d.attr_order = source >= 0 ? rechunk_attribute_order(source) : 0;
	if (!d.attr_order && source >= 0 && hdf5_rest_large_attribute(source))
		d.attr_order = H5P_CRT_ORDER_TRACKED;
	if (w->fill.width == t->dtype.size && t->dtype.size) {
		fill = malloc(t->dtype.size);
		if (fill)
			memcpy(fill, w->fill.pattern, t->dtype.size);
		d.fill = fill;
	}
	r = build_dataset(w->build, group, &d, dset, err);
	H5Tclose(d.type);
	return r;
}

/* Open the source's header: its own, or that behind an external link. */
static hid_t rechunk_open_source(const struct tensor *t, struct hdf5_opened *o)
{
	const struct hdf5_tensor *h = rechunk_hdf5(t);
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
	hid_t dset = rechunk_open_source(t, &o), space;
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

int rechunk_make_alone(struct rechunk *w, const char *name,
		       struct rechunk_answer *a, struct error *err)
{
	struct hdf5_opened o;
	hid_t file = H5I_INVALID_HID, source = rechunk_open_source(w->t, &o),
	      dset;
	int r;

	if (o.file < 0) /* hdf5_place_open took the lock */
		hdf5_lock();
	r = build_open(w->build, &file, err);
	if (r == 0) {
		r = rechunk_make_dataset(w, name, file, source, H5I_INVALID_HID,
					 &dset, err);
		if (r == 0 && source >= 0)
			hdf5_rest_attributes(source, dset, &a->found.lost);
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

/* ---- the rest of the file ------------------------------------------------ */

/*
 * A tensor that is a dataset of an HDF5 file takes everything else in that file along:
 * only with it (units, axes, metadata) can the program that made the file open the new
 * one.  The rest is checked before any work is done, so that a user does not wait for
 * hours to learn that something cannot be copied.
 *
 * A field of a structure, a tensor of several files or of another format, and a tensor
 * that gets another name, come alone.
 */
bool rechunk_has_rest(const struct rechunk *w)
{
	const struct hdf5_tensor *h = rechunk_hdf5(w->t);

	return w->o->keep != RECHUNK_KEEP_NONE && !w->o->dataset && h &&
	       !w->t->field && !h->member && h->source->file != UINT32_MAX;
}

/* ---- in the child -------------------------------------------------------- */

/* The source's file, and the dataset: in it, or where its link leads. */
struct opened {
	struct rechunk *w;
	struct rest_said *lost;
	hid_t file, other, dset;
	bool outside;
};

static int open_rest(struct rechunk *w, struct opened *x, struct error *err)
{
	const struct hdf5_tensor *h = rechunk_hdf5(w->t);
	struct handles *handles = h->source->handles;
	int r;

	*x = (struct opened){.w = w, .other = -1, .dset = -1};
	r = hdf5_open(handles, h->source->file, &x->file, err);
	if (r < 0)
		return r;
	if (h->file == h->source->file)
		x->dset = H5Oopen(x->file, h->object, H5P_DEFAULT);
	if (x->dset >= 0)
		return 0;
	x->outside = true;
	if (w->t->nparts == 1 &&
	    hdf5_open(handles, w->t->parts[0].file, &x->other, NULL) == 0)
		x->dset =
			H5Oopen(x->other, w->t->parts[0].dataset, H5P_DEFAULT);
	return 0;
}

static void close_rest(struct opened *x)
{
	if (x->dset >= 0)
		H5Oclose(x->dset);
	if (x->other >= 0)
		H5Fclose(x->other);
	H5Fclose(x->file);
}

static int rechunk_make_target(void *ctx, hid_t group, const char *name,
			       hid_t named, hid_t *dset, struct error *err)
{
	struct opened *x = ctx;
	int r = rechunk_make_dataset(x->w, name, group, x->dset, named, dset,
				     err);

	/* Attributes of a dataset in the same file are copied with those of all
	 * objects. */
	if (r == 0 && x->outside && x->dset >= 0)
		hdf5_rest_attributes(x->dset, *dset, x->lost);
	return r;
}

static int copy_rest(struct rechunk *w, struct opened *x, hid_t to,
		     struct rest_found *found, struct error *err)
{
	const struct hdf5_tensor *h = rechunk_hdf5(w->t);
	static const _Atomic int never;
	struct rest_options o = {.source = h->source,
				 .file = h->source->file,
				 .from = x->file,
				 .to = to,
				 .to_fd = w->out ? out_fd(w->out) : -1,
				 .user_block = w->user_block,
				 .target = HADDR_UNDEF,
				 .target_path = h->file == h->source->file
							? h->object
							: w->t->name,
				 .make = rechunk_make_target,
				 .ctx = x,
				 .trail = w->trail,
				 .deadly = w->deadly,
				 .n_deadly = w->n_deadly,
				 .memory = w->o->memory,
				 .stop = w->o->stop ? w->o->stop : &never};
	H5O_info_t info;

	x->lost = &found->lost;
	if (!x->outside && H5Oget_info2(x->dset, &info, H5O_INFO_BASIC) >= 0)
		o.target = info.addr;
	return hdf5_rest_copy(&o, found, err);
}

/* Check the size of the user block, which must be possible. */
static void judge_user_block(struct rechunk_answer *a)
{
	if (a->user_block <= INT64_MAX / 4)
		return;
	a->user_block = 0;
	rest_say(&a->found.lost, "/",
		 "the bytes in front of the HDF5 file are not a valid user "
		 "block");
}

/* Report a truncated file before the library reads it.  A file of less than half the
 * length may be one whose addresses have gaps (the multi driver): that is left to the
 * code that reads it. */
static void judge_length(const struct rechunk *w, hid_t file,
			 struct rest_found *found)
{
	uint64_t size = rechunk_hdf5(w->t)->source->size;
	haddr_t end;
	char why[96];

	if (H5Fget_eoa(file, &end) < 0 || end <= size || end / 2 > size)
		return;
	snprintf(why, sizeof why,
		 "the file is truncated: it has %" PRIu64 " bytes of %" PRIu64,
		 size, (uint64_t)end);
	rest_say(&found->lost, "/", why);
}

static int rechunk_look_task(struct rechunk *w, const char *name,
			     struct rechunk_answer *a, struct error *err)
{
	struct opened x;
	hid_t fcpl;
	int r;

	(void)name;
	hdf5_lock();
	r = open_rest(w, &x, err);
	if (r == 0) {
		fcpl = hdf5_rest_file_plist(x.file, &a->user_block);
		if (fcpl >= 0)
			H5Pclose(fcpl);
		r = copy_rest(w, &x, H5I_INVALID_HID, &a->found, err);
		judge_user_block(a);
		judge_length(w, x.file, &a->found);
		close_rest(&x);
	}
	hdf5_unlock();
	return r;
}

int rechunk_make_rest(struct rechunk *w, const char *name,
		      struct rechunk_answer *a, struct error *err)
{
	struct opened x;
	hid_t fcpl, to;
	int r;

	(void)name;
	hdf5_lock();
	r = open_rest(w, &x, err);
	if (r < 0) {
		hdf5_unlock();
		return r;
	}
	fcpl = hdf5_rest_file_plist(x.file, &a->user_block);
	r = build_open_with(w->build, fcpl, &to, err);
	if (r == 0) {
		build_stop(w->build, w->o->stop);
		r = copy_rest(w, &x, to, &a->found, err);
		judge_user_block(a);
		if (r == 0)
			r = build_close(w->build, to, err);
		else
			H5Fclose(to);
	}
	if (fcpl >= 0)
		H5Pclose(fcpl);
	close_rest(&x);
	hdf5_unlock();
	return r;
}

/* ---- in a process of its own --------------------------------------------- */

/*
 * libhdf5 reads these headers with all their damage, and may crash.  So this is done in a
 * child, while there is no other thread; its answer comes through a pipe.  A child that
 * copies other objects leaves a trail; if it dies, the next child leaves out the step
 * that killed it.  Nothing is lost: all that it wrote is behind the chunks, where the
 * next child writes the same.
 */
static void rechunk_child(struct rechunk *w, rechunk_task *task,
			  const char *name, int to)
{
	struct rechunk_answer a = {0};
	struct error err = {0};
	const char *at = (const char *)&a;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may copy for a long time */
	a.code = hdf5_init(&err);
	if (a.code == 0)
		a.code = task(w, name, &a, &err);
	memcpy(a.text, err.text, sizeof a.text);
	for (size_t n = 0; n < sizeof a;) {
		ssize_t done = write(to, at + n, sizeof a - n);

		if (done <= 0)
			_exit(1);
		n += (size_t)done;
	}
	_exit(0);
}

static bool is_stopped(const struct rechunk *w)
{
	return w->o->stop && atomic_load(w->o->stop);
}

/* Read the child's answer.  Pass on, once, a signal that only this process got. */
static bool read_answer(const struct rechunk *w, pid_t pid, int from,
			struct rechunk_answer *a)
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	bool told = false;
	size_t n = 0;

	while (n < sizeof *a) {
		ssize_t got;

		if (is_stopped(w) && !told) {
			told = true;
			kill(pid, SIGTERM);
		}
		if (poll(&p, 1, told ? -1 : LOOK_MS) <= 0)
			continue;
		got = read(from, (char *)a + n, sizeof *a - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

/* Return 1 if the child answered, 0 if it died, -errno. */
static int run_child(struct rechunk *w, rechunk_task *task, const char *name,
		     struct rechunk_answer *a, int *status, struct error *err)
{
	int ends[2];
	bool told;
	pid_t pid;

	if (pipe(ends) < 0)
		return error_errno(err, -errno, "cannot make a pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		rechunk_child(w, task, name, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error_errno(err, -errno, "cannot start a process");
	}
	told = read_answer(w, pid, ends[0], a);
	close(ends[0]);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return told;
}

/* Leave out the step in which the child died from now on.  Return false if it was left
 * out already, or is not known. */
static bool rechunk_learn_death(struct rechunk *w)
{
	char *was;

	if (!w->trail || !*w->trail || w->n_deadly == RECHUNK_DEADLY)
		return false;
	w->trail[REST_TRAIL - 1] = '\0';
	for (unsigned i = 0; i < w->n_deadly; i++)
		if (!strcmp(w->deadly[i], w->trail))
			return false;
	was = strdup(w->trail);
	if (!was)
		return false;
	w->deadly[w->n_deadly++] = was;
	return true;
}

static int rechunk_child_died(struct rechunk *w, int status, struct error *err)
{
	w->of_source = true;
	return error_set(err, -EBADMSG,
			 "%s: libhdf5 crashed while reading its header%s%s: "
			 "the file is damaged",
			 w->t->source ? w->t->source : w->t->name,
			 WIFSIGNALED(status) ? ": " : "",
			 WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
					     : "");
}

int rechunk_apart(struct rechunk *w, rechunk_task *task, const char *name,
		  struct rechunk_answer *a, struct error *err)
{
	int status = 0, told;

	if (w->rest && !w->trail) {
		w->trail = mmap(NULL, REST_TRAIL, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (w->trail == MAP_FAILED)
			w->trail = NULL;
	}
	do {
		if (w->trail)
			*w->trail = '\0';
		told = run_child(w, task, name, a, &status, err);
		if (told < 0)
			return told;
		if (!told && is_stopped(w))
			return error_set(err, -EINTR, "interrupted");
	} while (!told && rechunk_learn_death(w));
	if (!told)
		return rechunk_child_died(w, status, err);
	return a->code < 0 ? error_set(err, a->code, "%s", a->text) : 0;
}

void rechunk_apart_free(struct rechunk *w)
{
	if (w->trail)
		munmap(w->trail, REST_TRAIL);
	for (unsigned i = 0; i < w->n_deadly; i++)
		free(w->deadly[i]);
}

/* ---- before and after ---------------------------------------------------- */

static const char *source_name(const struct rechunk *w)
{
	return w->t->source ? w->t->source : w->t->name;
}

/* Objects may be lost if the user said --keep=most. */
int rechunk_judge_rest(struct rechunk *w, const struct rest_found *found,
		       struct error *err)
{
	if (!found->lost.n || w->o->keep != RECHUNK_KEEP_ALL)
		return 0;
	w->of_source = true;
	return error_set(err, -ENOTSUP,
			 "%s: not all of it can be copied; --keep=most leaves "
			 "out %s",
			 source_name(w), found->lost.text);
}

int rechunk_look_rest(struct rechunk *w, struct error *err)
{
	struct rechunk_answer a;
	int r = rechunk_apart(w, rechunk_look_task, NULL, &a, err);

	if (r == 0 && !a.found.placed) {
		w->of_source = true;
		r = error_set(err, -ENOTSUP,
			      "%s: %s is in another file, behind a link to a "
			      "group: name that file as the source, or take "
			      "the tensor alone (--keep=none)",
			      source_name(w), w->t->name);
	}
	w->user_block = r == 0 ? a.user_block : 0;
	return r < 0 ? r : rechunk_judge_rest(w, &a.found, err);
}

int rechunk_put_user_block(struct rechunk *w, struct error *err)
{
	const struct hdf5_tensor *h = rechunk_hdf5(w->t);
	cleanup_free char *piece = w->user_block ? malloc(PIECE) : NULL;
	int r = 0;

	if (!w->user_block)
		return 0;
	if (!piece)
		return error_no_memory(err, "the user block");
	build_user_block(w->build, w->user_block);
	for (uint64_t at = 0; at < w->user_block && r == 0; at += PIECE) {
		size_t n = min_u64(PIECE, w->user_block - at);

		r = handles_read(h->source->handles, h->source->file, at, piece,
				 n, err);
		w->of_source = r < 0;
		if (r == 0)
			r = build_put_at(w->build, piece, n, at, err);
	}
	return r;
}

/* Is the output in the directory of the source, so that relative names lead to the same
 * files? */
static bool is_beside(const struct rechunk *w)
{
	const struct hdf5_tensor *h = rechunk_hdf5(w->t);
	cleanup_free char *out = strdup(w->o->path), *in = NULL;
	const char *path = handles_path(h->source->handles, h->source->file);
	struct stat a, b;

	in = path ? strdup(path) : NULL;
	return out && in && stat(dirname(out), &a) == 0 &&
	       stat(dirname(in), &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static void rechunk_note(const struct rechunk *w, const char *what,
			 const struct rest_said *said)
{
	char text[REST_TEXT + 256];

	if (!said->n || !w->o->note)
		return;
	snprintf(text, sizeof text, "%s: %s", what, said->text);
	w->o->note(w->o->ctx, text);
}

void rechunk_note_rest(const struct rechunk *w, const struct rest_found *found)
{
	if (!w->rest) {
		rechunk_note(
			w,
			"attributes that refer to other objects, or cannot be "
			"copied, were left out",
			&found->lost);
		return;
	}
	rechunk_note(w, "left out, because it cannot be copied", &found->lost);
	rechunk_note(w,
		     "references to objects that are not in the file are null "
		     "now, in",
		     &found->null);
	if (!is_beside(w))
		rechunk_note(
			w,
			"other files are named by relative paths, which lead "
			"elsewhere from the output's directory, by",
			&found->abroad);
}
