/* SPDX-License-Identifier: BSD-2-Clause */
/* Does this libhdf5 tell our driver where chunks are?  Try it on a small file. */

/*
 * H5Dread_chunk makes one read of the chunk's stored bytes and leaves its buffer alone.
 * libhdf5 behaves so, but does not promise it.  So each process tests it once, in a file
 * that exists in memory only and is also written through the driver (the library opens
 * nothing without a name): with the chunk index of old files, and with the newest index
 * for a dataset whose second axis may grow, where the library's own functions go wrong.
 * The test also learns what the library complains of if there is no chunk.
 *
 * The file has a user block of 512 bytes, a dataset of 2 x 2 chunks whose last is absent,
 * and a dataset without chunks.  The stored bytes of chunk i, which no filter made, are
 * 20 + i times the letter 'a' + i; the filter mask of odd chunks says that the filter was
 * skipped.
 */

#include "formats/hdf5/file/driver_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "extent/file.h"

enum { CHUNKS = 3, STORED = 20, USER_BLOCK = 512, ROOM = 64 };
static const hsize_t self_offset[CHUNKS + 1][2] = {
	{0, 0}, {0, 3}, {2, 0}, {2, 3}};

static bool self_dataset(hid_t file, const char *name, unsigned chunks)
{
	const hsize_t dims[2] = {4, 6}, max[2] = {4, H5S_UNLIMITED};
	const hsize_t chunk[2] = {2, 3};
	hid_t space = H5Screate_simple(2, dims, max);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
	bool ok =
		H5Pset_chunk(dcpl, 2, chunk) >= 0 && H5Pset_shuffle(dcpl) >= 0;
	hid_t dset = H5Dcreate2(file, name, H5T_STD_U16LE, space, H5P_DEFAULT,
				dcpl, H5P_DEFAULT);
	char bytes[ROOM];

	for (unsigned i = 0; i < chunks; i++) {
		memset(bytes, 'a' + (int)i, sizeof bytes);
		ok = ok &&
		     H5Dwrite_chunk(dset, H5P_DEFAULT, i & 1, self_offset[i],
				    STORED + i, bytes) >= 0;
	}
	ok = H5Dclose(dset) >= 0 && ok;
	H5Pclose(dcpl);
	H5Sclose(space);
	return ok;
}

static bool self_create(const struct hdf5_driver_info *info,
			H5F_libver_t format)
{
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
	bool ok;

	H5Pset_userblock(fcpl, USER_BLOCK);
	H5Pset_libver_bounds(fapl, format, H5F_LIBVER_LATEST);
	hdf5_driver_set(fapl, info);
	file = H5Fcreate("self-test", H5F_ACC_TRUNC, fcpl, fapl);
	ok = file >= 0 && self_dataset(file, "some", CHUNKS) &&
	     self_dataset(file, "none", 0);
	if (file >= 0)
		ok = H5Fclose(file) >= 0 && ok;
	H5Pclose(fapl);
	H5Pclose(fcpl);
	return ok;
}

/* Return NULL, or in words what is wrong with the locations. */
static const char *self_check(int fd, hid_t some, hid_t none,
			      struct hdf5_complaint *absent)
{
	unsigned char dummy[ROOM] = {0}, bytes[ROOM], want[ROOM];
	static const unsigned char zero[ROOM];
	struct hdf5_location at;

	for (unsigned i = 0; i < CHUNKS; i++) {
		if (hdf5_spy(some, self_offset[i], dummy, &at, &absent[0]) !=
		    HDF5_FOUND_CHUNK)
			return "it does not find a chunk";
		if (at.stored != STORED + i || at.mask != (i & 1))
			return "it finds another chunk";
		memset(want, 'a' + (int)i, sizeof want);
		if (file_read(fd, at.pos, bytes, at.stored) !=
			    STORED + (ssize_t)i ||
		    memcmp(bytes, want, at.stored))
			return "it finds a chunk in the wrong place";
	}
	if (hdf5_spy(none, self_offset[0], dummy, &at, &absent[0]) !=
		    HDF5_FOUND_COMPLAINT ||
	    hdf5_spy(some, self_offset[CHUNKS], dummy, &at, &absent[1]) !=
		    HDF5_FOUND_COMPLAINT ||
	    !absent[0].text[0] || !absent[1].text[0])
		return "it finds a chunk that does not exist";
	if (memcmp(dummy, zero, sizeof dummy))
		return "it writes to the buffer that nothing was read into";
	return NULL;
}

static const char *self_test(H5F_libver_t format, struct hdf5_complaint *absent)
{
	cleanup_close int fd = memfd_create("tensorfs-self-test", MFD_CLOEXEC);
	const struct hdf5_driver_info info = {NULL, 0, fd};
	hid_t file, some, none;
	const char *wrong;
	char why[HDF5_WHY];

	if (fd < 0 || !self_create(&info, format))
		return "its test file cannot be written";
	file = hdf5_driver_fopen("self-test", &info, 0, why);
	if (file < 0)
		return "it does not open a file with our driver";
	some = H5Dopen2(file, "some", H5P_DEFAULT);
	none = H5Dopen2(file, "none", H5P_DEFAULT);
	wrong = some < 0 || none < 0 ? "it does not open a dataset"
				     : self_check(fd, some, none, absent);
	H5Fclose(file);
	return wrong;
}

const char *hdf5_selftest(struct hdf5_complaint *absent)
{
	const char *choice = getenv("TENSORFS_HDF5_DRIVER");
	const char *wrong = self_test(H5F_LIBVER_EARLIEST, absent);

	/* For tests, and for users who want to find out whether the driver is at
	 * fault. */
	if (choice && !strcmp(choice, "off"))
		return "TENSORFS_HDF5_DRIVER=off";
	return wrong ? wrong : self_test(H5F_LIBVER_LATEST, absent);
}
