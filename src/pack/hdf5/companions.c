/* SPDX-License-Identifier: BSD-2-Clause */
/* The datasets beside a packed tensor: names of files, labels, classes. */
#include "pack/hdf5/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/driver.h"

/* ---- names ------------------------------------------------------------------- */

static char *companion_path(const char *data, const char *name)
{
	const char *slash = strrchr(data, '/');
	char *out;

	if (asprintf(&out, "%.*s%s", slash ? (int)(slash + 1 - data) : 0, data,
		     name) < 0)
		return NULL;
	return out;
}

int hdf5_check_path(const char *path, struct error *err)
{
	for (const char *at = path + strspn(path, "/");; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n == 1 && *at == '.') ||
		    (n == 2 && at[0] == '.' && at[1] == '.'))
			return error_set(err, -EINVAL,
					 "--dataset=%.200s is not a path in "
					 "the file; give one like entry/data",
					 path);
		at += n;
		if (!*at)
			return 0;
	}
}

int hdf5_names_init(struct hdf5_names *n, const char *dataset,
		    struct error *err)
{
	const char *path = dataset ? dataset : "data";
	int r;

	*n = (struct hdf5_names){NULL, NULL, NULL, NULL};
	r = hdf5_check_path(path, err);
	path += strspn(path, "/");
	if (r < 0)
		return r;
	n->data = strdup(path);
	n->names = companion_path(path, "names");
	n->labels = companion_path(path, "labels");
	n->classes = companion_path(path, "classes");
	if (!n->data || !n->names || !n->labels || !n->classes)
		return error_no_memory(err, "the names of datasets");
	if (!strcmp(path, n->names) || !strcmp(path, n->labels) ||
	    !strcmp(path, n->classes))
		return error_set(err, -EINVAL,
				 "--dataset=%.200s is taken by the names of "
				 "files or their labels; give another path",
				 path);
	return 0;
}

void hdf5_names_free(struct hdf5_names *n)
{
	free(n->data);
	free(n->names);
	free(n->labels);
	free(n->classes);
	*n = (struct hdf5_names){NULL, NULL, NULL, NULL};
}

/* ---- datasets ---------------------------------------------------------------- */

static int companion_failed(const char *path, struct error *err)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(err, -EIO, "cannot make dataset '%s': %s", path, why);
}

/* Write a contiguous vector, without times, so that equal input gives equal files. */
static int write_vector(hid_t file, const char *path, hid_t type, hid_t memory,
			hsize_t n, const void *data, struct error *err)
{
	hid_t space = H5Screate_simple(1, &n, NULL);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dset = H5I_INVALID_HID;
	bool ok = space >= 0 && dcpl >= 0 &&
		  H5Pset_obj_track_times(dcpl, false) >= 0;
	int r = 0;

	if (ok)
		dset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, dcpl,
				  H5P_DEFAULT);
	ok = dset >= 0 && (n == 0 || H5Dwrite(dset, memory, H5S_ALL, H5S_ALL,
					      H5P_DEFAULT, data) >= 0);
	if (!ok)
		r = companion_failed(path, err);
	if (dset >= 0 && H5Dclose(dset) < 0 && r == 0)
		r = companion_failed(path, err);
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	return r;
}

/* Write strings of variable length in UTF-8, as h5py writes str. */
static int companion_write_texts(hid_t file, const char *path,
				 const char *const *texts, size_t n,
				 struct error *err)
{
	hid_t type = H5Tcopy(H5T_C_S1);
	int r;

	if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 ||
	    H5Tset_cset(type, H5T_CSET_UTF8) < 0)
		r = companion_failed(path, err);
	else
		r = write_vector(file, path, type, type, n, texts, err);
	if (type >= 0)
		H5Tclose(type);
	return r;
}

static int write_names(hid_t file, const char *path,
		       const struct hdf5_rows *rows, struct error *err)
{
	cleanup_free const char **list = calloc(rows->entry.n, sizeof *list);

	if (!list)
		return error_no_memory(err, "the names of files");
	for (size_t i = 0; i < rows->entry.n; i++)
		list[i] = scan_path(rows->scan, rows->entry.at[i]);
	return companion_write_texts(file, path, list, rows->entry.n, err);
}

static int write_labels(hid_t file, const struct hdf5_names *n,
			const struct hdf5_rows *rows,
			const struct labels *labels, struct error *err)
{
	cleanup_free int64_t *list = calloc(rows->entry.n, sizeof *list);
	const char *const *classes;
	size_t count;
	int r;

	if (!list)
		return error_no_memory(err, "the labels of samples");
	for (size_t i = 0; i < rows->entry.n; i++)
		list[i] = labels_at(labels, rows->entry.at[i]);
	r = write_vector(file, n->labels, H5T_STD_I64LE, H5T_NATIVE_INT64,
			 rows->entry.n, list, err);
	classes = labels_classes(labels, &count);
	if (r == 0 && classes)
		r = companion_write_texts(file, n->classes, classes, count,
					  err);
	return r;
}

int hdf5_companions_write(hid_t file, const struct hdf5_names *n,
			  const struct hdf5_rows *rows,
			  const struct labels *labels, struct error *err)
{
	int r = write_names(file, n->names, rows, err);

	return r < 0 || !labels ? r : write_labels(file, n, rows, labels, err);
}

int hdf5_number_attribute(hid_t of, const char *name, uint32_t value,
			  struct error *err)
{
	hid_t space = H5Screate(H5S_SCALAR), a = H5I_INVALID_HID;
	bool ok;

	if (space >= 0)
		a = H5Acreate2(of, name, H5T_STD_U32LE, space, H5P_DEFAULT,
			       H5P_DEFAULT);
	ok = a >= 0 && H5Awrite(a, H5T_NATIVE_UINT32, &value) >= 0;
	if (a >= 0)
		H5Aclose(a);
	if (space >= 0)
		H5Sclose(space);
	return ok ? 0 : companion_failed(name, err);
}
