/* SPDX-License-Identifier: BSD-2-Clause */
/* Rewrite a part that consists mostly of gaps. */

/*
 * libhdf5 forgets freed space when it closes a file.  So a part of many chunks that is
 * written a few rows at a time grows with each write: a chunk that became longer is moved
 * to the end.  When more than half of the copy is gaps, its chunks are copied as they are
 * stored to a new file, which becomes the copy.
 *
 * Only files that are nothing but a part, as skerch and `create` make them, are
 * rewritten: two datasets and no attributes.  Anything else (references between objects,
 * links, a user block) would have to survive, for which other tools are better
 * (h5repack).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/vlen.h"
#include "tensors/rows/private.h"

/* Bytes of gaps below which a rewrite does not pay. */
#define GAPS_LEAST (UINT64_C(256) << 10)
/* Bytes of a flag: its string in the heap, and its element in a chunk. */
#define FLAG_BYTES 64
/* Bytes of all strings of a part, at most. */
#define STRINGS_MOST (UINT64_C(1) << 30)

/* Is this a dataset of the root group, with one name and no attributes?  Set *bytes to
 * its stored size. */
static bool compact_is_plain(hid_t file, const char *path, uint64_t *bytes)
{
	hid_t dset = H5Dopen2(file, path, H5P_DEFAULT);
	H5O_info_t info;
	bool ok;

	if (dset < 0)
		return false;
	path += path[0] == '/';
	ok = !strchr(path, '/') &&
	     H5Oget_info2(dset, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) >=
		     0 &&
	     info.rc == 1 && info.num_attrs == 0;
	*bytes = H5Dget_storage_size(dset);
	H5Dclose(dset);
	return ok;
}

/* Are there bytes in front of the superblock? */
static bool has_user_block(hid_t file)
{
	hid_t fcpl = H5Fget_create_plist(file);
	hsize_t n = 1;
	bool has = fcpl < 0 || H5Pget_userblock(fcpl, &n) < 0 || n > 0;

	if (fcpl >= 0)
		H5Pclose(fcpl);
	return has;
}

/* Is the file nothing but a part, and more than half gaps? */
static bool compact_is_wanted(const struct writer *w, hid_t file)
{
	H5F_info2_t about;
	H5G_info_t root;
	H5O_info_t info;
	uint64_t data, flags, live, size;
	struct stat st;

	if (!w->rows->flags || fstat(w->copy.fd, &st) < 0 ||
	    H5Fget_info2(file, &about) < 0 || about.super.version != 0 ||
	    has_user_block(file) || H5Gget_info(file, &root) < 0 ||
	    root.nlinks != 2 ||
	    H5Oget_info2(file, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) <
		    0 ||
	    info.num_attrs != 0 ||
	    !compact_is_plain(file, w->rows->data, &data) ||
	    !compact_is_plain(file, w->rows->flags, &flags))
		return false;
	size = (uint64_t)st.st_size;
	live = data + flags + FLAG_BYTES * w->d.shape[0];
	return size / 2 > live && size - live > GAPS_LEAST;
}

/* Copy strings by reading and writing them.  H5Ocopy cannot be used, because only our
 * code reads strings of variable length (formats/hdf5/file/vlen.c). */
static bool compact_copy_strings(hid_t from, hid_t to, hid_t type, hid_t space)
{
	hssize_t n = H5Sget_simple_extent_npoints(space);
	size_t size = H5Tget_size(type);
	cleanup_free void *values = n > 0 ? calloc((size_t)n, size) : NULL;
	hid_t transfer;
	bool ok;

	hdf5_vlen_begin(from, STRINGS_MOST);
	transfer = hdf5_vlen_transfer();
	ok = values && transfer >= 0 &&
	     H5Dread(from, type, H5S_ALL, H5S_ALL, transfer, values) >= 0 &&
	     H5Dwrite(to, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
	if (transfer >= 0)
		H5Pclose(transfer);
	hdf5_vlen_end();
	return ok;
}

static bool copy_flags(const struct writer *w, hid_t file, hid_t to)
{
	const char *path = w->rows->flags;
	hid_t from = H5Dopen2(file, path, H5P_DEFAULT);
	hid_t type = H5Dget_type(from), space = H5Dget_space(from);
	hid_t dcpl = hdf5_vlen_create_plist(from), dset;
	bool ok;

	dset = H5Dcreate2(to, path, type, space, H5P_DEFAULT, dcpl,
			  H5P_DEFAULT);
	ok = dset >= 0 && H5Tget_class(type) == H5T_STRING &&
	     compact_copy_strings(from, dset, type, space);
	if (dset >= 0)
		ok = H5Dclose(dset) >= 0 && ok;
	H5Pclose(dcpl);
	H5Sclose(space);
	H5Tclose(type);
	H5Dclose(from);
	return ok;
}

/* Do the chunks of both files have the same size in total? */
static bool same_size(const struct writer *w, hid_t file, hid_t to)
{
	hid_t a = H5Dopen2(file, w->rows->data, H5P_DEFAULT);
	hid_t b = H5Dopen2(to, w->rows->data, H5P_DEFAULT);
	bool same = a >= 0 && b >= 0 &&
		    H5Dget_storage_size(a) == H5Dget_storage_size(b);

	if (a >= 0)
		H5Dclose(a);
	if (b >= 0)
		H5Dclose(b);
	return same;
}

/* Make the compact file.  Failures do not matter, because the copy with gaps is
 * correct. */
static bool make_compact(const struct writer *w, hid_t file, const char *path)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t fcpl = H5Fget_create_plist(file), to;
	bool ok;

	H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
	H5Pset_file_locking(fapl, false, true);
#endif
	to = H5Fcreate(path, H5F_ACC_EXCL, fcpl, fapl);
	ok = to >= 0 &&
	     H5Ocopy(file, w->rows->data, to, w->rows->data, H5P_DEFAULT,
		     H5P_DEFAULT) >= 0 &&
	     copy_flags(w, file, to) && same_size(w, file, to);
	if (to >= 0)
		ok = H5Fclose(to) >= 0 && ok;
	H5Pclose(fcpl);
	H5Pclose(fapl);
	return ok;
}

int write_compact(struct writer *w, struct error *err)
{
	struct hdf5_place at = {&w->source, UINT32_MAX, "/"};
	const char *path = w->copy.second;
	struct error ignored = {0};
	struct hdf5_opened o;
	bool ok;

	at.file = path ? handles_add(w->source.handles, w->copy.fresh)
		       : UINT32_MAX;
	if (at.file == UINT32_MAX || hdf5_place_open(&at, &o, &ignored) < 0)
		return 0;
	ok = compact_is_wanted(w, o.file);
	if (ok) {
		unlink(path);
		ok = make_compact(w, o.file, path);
		if (!ok)
			unlink(path);
	}
	hdf5_place_close(&o);
	return ok ? write_copy_second(&w->copy, err) : 0;
}
