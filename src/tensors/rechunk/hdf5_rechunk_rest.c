/* SPDX-License-Identifier: BSD-2-Clause */
/* The rest of the source's file: it comes along with the tensor. */
/*
 * A tensor that is a dataset of an HDF5 file takes all of that file with it: what else is
 * there (units, axes, metadata) makes the file one that its own program opens.  This is
 * looked at before any work is done, for who waits for hours does not want to hear then
 * that something cannot be copied.
 *
 * A field of a structure, a tensor of several files or of another format, and one that is
 * to have another name, come alone.
 */
#include "tensors/rechunk/hdf5_rechunk_private.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"

#define PIECE ((size_t)1 << 20)

bool rechunk_has_rest(const struct rechunk *w)
{
	const struct hdf5_tensor *h = rechunk_hdf5(w->t);

	return w->o->keep != RECHUNK_KEEP_NONE && !w->o->dataset && h &&
	       !w->t->field && !h->member && h->source->file != UINT32_MAX;
}

/* ---- in the child -------------------------------------------------------- */

/* The file, and the dataset: in it, or where its link leads to. */
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

static int make_target(void *ctx, hid_t group, const char *name, hid_t named,
		       hid_t *dset, struct error *err)
{
	struct opened *x = ctx;
	int r = rechunk_make_dataset(x->w, name, group, x->dset, named, dset,
				     err);

	/* Those of a dataset in the same file come with those of all others. */
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
				 .make = make_target,
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

/* What is in front of the file, unless no file may have so many bytes there. */
static void judge_user_block(struct rechunk_answer *a)
{
	if (a->user_block <= INT64_MAX / 4)
		return;
	a->user_block = 0;
	rest_say(&a->found.lost, "/",
		 "what is in front of the HDF5 file is no user block");
}

/* Data that are not there are found out before the library reads them.  A file that ends
 * before its half may be one of those whose addresses have gaps (the multi driver): that is
 * left to who reads them. */
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

static int look(struct rechunk *w, const char *name, struct rechunk_answer *a,
		struct error *err)
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

/* ---- before and after ---------------------------------------------------- */

static const char *source_name(const struct rechunk *w)
{
	return w->t->source ? w->t->source : w->t->name;
}

/* What is lost is no surprise to who asked for most of it. */
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
	int r = rechunk_apart(w, look, NULL, &a, err);

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
		return error_set(err, -ENOMEM, "out of memory");
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

/* Is the output beside the source, so that relative names lead to the same files? */
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

static void note(const struct rechunk *w, const char *what,
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
		note(w,
		     "attributes that refer to other objects, or cannot be "
		     "copied, were left out",
		     &found->lost);
		return;
	}
	note(w, "left out, for it cannot be copied", &found->lost);
	note(w,
	     "references that lead to no object of the file are null now, in",
	     &found->null);
	if (!is_beside(w))
		note(w,
		     "other files are named by relative paths, which lead "
		     "elsewhere from the output's directory, by",
		     &found->abroad);
}
