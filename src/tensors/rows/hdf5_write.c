/* SPDX-License-Identifier: BSD-2-Clause */
/* Write rows of one part of a tensor: all of them or none. */

/*
 *	lock the part                 other writers wait
 *	look at it                    through our driver, as a mount does
 *	copy it beside itself         with shared blocks, where the file system can
 *	new chunks into the copy      encoded by all threads
 *	flags into the copy
 *	sync, rename over the part    here the rows appear
 *
 * Rows and their flags become visible in one step.  A process that is killed on the way
 * leaves the part as it was, and a copy that the next writer removes.  Programs that have
 * the old file open go on reading it.  Everything else in the file is in the copy, too.
 *
 * The price is that the part is copied for each write: write many of its rows at a time.
 */
#include "tensors/rows/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/hdf5/file/driver.h"

int write_failed(const struct writer *w, const char *what, struct error *err)
{
	char why[400];
	int code;

	hdf5_why(why, sizeof why);
	code = hdf5_why_errno(why);
	if (code > 0)
		return error_errno(err, -code, "cannot write %s of '%s'", what,
				   w->rows->path);
	return error_set(err, -EBADMSG, "cannot write %s of '%s': %s", what,
			 w->rows->path, why);
}

/* A link may lead into another file, which would be changed in place. */
int write_open_dataset(const struct writer *w, const char *path, hid_t *out,
		       struct error *err)
{
	H5O_info_t here, root;

	*out = H5Dopen2(w->file, path, H5P_DEFAULT);
	if (*out < 0)
		return write_failed(w, path, err);
	if (H5Oget_info2(*out, &here, H5O_INFO_BASIC) >= 0 &&
	    H5Oget_info2(w->file, &root, H5O_INFO_BASIC) >= 0 &&
	    here.fileno == root.fileno)
		return 0;
	H5Dclose(*out);
	*out = H5I_INVALID_HID;
	return error_set(
		err, -ENOTSUP,
		"'%s': %s is a link into another file; write to that file",
		w->rows->path, path);
}

int write_read_rows(struct writer *w, uint64_t first, uint64_t rows, void *buf,
		    struct error *err)
{
	uint64_t n = rows * w->row_bytes;
	int r = write_input_read(
		w->in, (w->rows->input + first - w->rows->first) * w->row_bytes,
		buf, n, w->o->stop, err);

	if (r == 0 && w->swap)
		swap_bytes(buf, n, w->swap);
	return r;
}

/* ---- checking the part ------------------------------------------------------------- */

static int write_shape_differs(const struct writer *w, struct error *err)
{
	char is[200], should[200];
	uint64_t want[RANK_MAX];

	memcpy(want, w->o->shape, w->o->rank * sizeof *want);
	want[0] = w->rows->first + w->rows->rows;
	dtype_shape_text(w->d.shape, w->d.rank, is, sizeof is);
	dtype_shape_text(want, w->o->rank, should, sizeof should);
	return error_set(err, -EINVAL,
			 "'%s': %s has the shape %s, at least %s is needed",
			 w->rows->path, w->rows->data, is, should);
}

/* Check that elements are of the wanted type, in either byte order, and set w->swap. */
static int write_check_type(struct writer *w, struct error *err)
{
	const struct dtype *stored = &w->d.type.stored, *want = w->o->dtype;
	bool npy_big = w->in->npy && w->in->head.dtype.big_endian;
	enum dtype_kind kind = stored->kind;
	char is[64], should[64];

	w->swap = 0;
	if (kind == DTYPE_STRING && !stored->vlen)
		kind = DTYPE_BYTES;
	if (kind == want->kind && stored->size == want->size &&
	    kind < DTYPE_STRUCT) {
		if (stored->big_endian != npy_big)
			w->swap = want->kind == DTYPE_COMPLEX ? want->size / 2
							      : want->size;
		if (want->kind == DTYPE_BYTES || want->kind == DTYPE_OPAQUE ||
		    w->swap == 1)
			w->swap = 0;
		return 0;
	}
	dtype_name(stored, is, sizeof is);
	dtype_name(want, should, sizeof should);
	return error_set(err, -EINVAL, "'%s': %s is stored as %s, not as %s",
			 w->rows->path, w->rows->data, is, should);
}

static int write_check_part(struct writer *w, struct error *err)
{
	const struct write_options *o = w->o;
	uint64_t end;
	bool same = !w->d.null && w->d.rank == o->rank && w->d.rank > 0 &&
		    w->d.own_rank > 0;

	for (unsigned i = 1; i < o->rank && same; i++)
		same = w->d.shape[i] == o->shape[i];
	if (!same || add_overflows(w->rows->first, w->rows->rows, &end) ||
	    end > w->d.shape[0])
		return write_shape_differs(w, err);
	if (w->d.storage == HDF5_VIRTUAL)
		return error_set(err, -ENOTSUP,
				 "'%s': %s is itself virtual: write to the "
				 "files that it names",
				 w->rows->path, w->rows->data);
	if (w->d.nraw)
		return error_set(err, -ENOTSUP,
				 "'%s': %s is stored in other files",
				 w->rows->path, w->rows->data);
	if (grid_init(&w->grid, w->d.rank, w->d.shape,
		      w->d.storage == HDF5_CHUNKED ? w->d.chunk : w->d.shape,
		      w->d.type.stored.size) < 0)
		return error_set(err, -EBADMSG,
				 "'%s': the dataset is too large",
				 w->rows->path);
	w->row_bytes = w->d.type.stored.size;
	for (unsigned i = 1; i < w->d.rank; i++)
		w->row_bytes *= w->d.shape[i];
	return write_check_type(w, err);
}

/* Refuse strings that are padded with a NUL or blanks, because NumPy's strings of full
 * length are not. */
static int check_padding(const struct writer *w, hid_t dset, struct error *err)
{
	hid_t type = H5Dget_type(dset);
	bool other = type >= 0 && H5Tget_class(type) == H5T_STRING &&
		     H5Tget_strpad(type) != H5T_STR_NULLPAD;

	if (type >= 0)
		H5Tclose(type);
	return other ? error_set(
			       err, -ENOTSUP,
			       "'%s': strings of %s are not padded with NULs, "
			       "as NumPy's are",
			       w->rows->path, w->rows->data)
		     : 0;
}

/* Report a failure to read as damage: most such files are not HDF5 files. */
static int write_damaged(struct error *err)
{
	if (err->code == -EIO)
		err->code = -EBADMSG;
	return err->code;
}

static int write_look_at_part(struct writer *w, struct error *err)
{
	struct hdf5_opened opened;
	int r = handles_new(&w->source.handles, 0, w->o->threads, err);

	if (r < 0)
		return r;
	w->source.file = handles_add(w->source.handles, w->copy.path);
	if (w->source.file == UINT32_MAX)
		return error_no_memory(err, "the name of the part");
	w->at = (struct hdf5_place){&w->source, w->source.file, w->rows->data};
	r = hdf5_place_open(&w->at, &opened, err);
	if (r < 0)
		return write_damaged(err);
	if (H5Iget_type(opened.object) != H5I_DATASET)
		r = error_set(err, -EINVAL, "it is not a dataset");
	else
		r = hdf5_describe(&w->source, opened.object, NULL, &w->d, err);
	if (r < 0)
		hdf5_place_prefix(&w->at, err);
	else
		r = check_padding(w, opened.object, err);
	hdf5_place_close(&opened);
	return r < 0 ? r : write_check_part(w, err);
}

/* ---- changing the copy ------------------------------------------------------- */

static int open_copy(struct writer *w, struct error *err)
{
	hid_t fapl;
	int r = 0;

	hdf5_lock();
	fapl = H5Pcreate(H5P_FILE_ACCESS);
	H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
	/* No other process knows the copy, and not every file system has locks. */
	H5Pset_file_locking(fapl, false, true);
#endif
	w->file = H5Fopen(w->copy.fresh, H5F_ACC_RDWR, fapl);
	if (w->file < 0)
		r = write_failed(w, "the file", err);
	H5Pclose(fapl);
	hdf5_unlock();
	return r;
}

static int close_copy(struct writer *w, struct error *err)
{
	int r = 0;

	hdf5_lock();
	if (w->file >= 0 && H5Fclose(w->file) < 0)
		r = write_failed(w, "the file", err);
	w->file = H5I_INVALID_HID;
	hdf5_unlock();
	return r;
}

static int write_change_copy(struct writer *w, struct error *err)
{
	struct error later = {0};
	int r = open_copy(w, err), closed;

	if (r < 0)
		return r;
	if (w->in->fd >= 0)
		r = write_data(w, err);
	if (r == 0 && w->o->flag)
		r = write_flags(w, err);
	closed = close_copy(w, r < 0 ? &later : err);
	if (r == 0)
		r = closed;
	return r < 0 ? r : write_compact(w, err);
}

static int write_it(struct writer *w, struct error *err)
{
	int r = write_copy_lock(&w->copy, w->rows->path, w->o->no_lock,
				w->o->stop, err);

	if (r == 0)
		r = write_look_at_part(w, err);
	if (r == 0)
		r = write_copy_make(&w->copy, w->o->no_lock, w->o->stop, err);
	if (r == 0)
		r = write_change_copy(w, err);
	if (r == 0 && w->rows->last)
		r = write_input_end(w->in, w->o->stop, err);
	if (r == 0 && *w->o->stop)
		r = error_set(err, -EINTR, "interrupted");
	return r < 0 ? r : write_copy_publish(&w->copy, err);
}

int hdf5_write_rows(const struct write_rows *rows,
		    const struct write_options *o, struct write_input *in,
		    struct error *err)
{
	struct writer w = {.rows = rows,
			   .o = o,
			   .in = in,
			   .copy = WRITE_COPY_INIT,
			   .file = H5I_INVALID_HID};
	int r = hdf5_init(err);

	if (r < 0)
		return r;
	intern_init(&w.source.intern);
	r = write_it(&w, err);
	write_copy_free(&w.copy);
	hdf5_description_free(&w.d);
	handles_free(w.source.handles);
	intern_free(&w.source.intern);
	return r;
}
