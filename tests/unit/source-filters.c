/* SPDX-License-Identifier: BSD-2-Clause */
/* Our decoders as filters of libhdf5: what only H5Dread can read. */
#include "test.h"

#include <unistd.h>

#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/vlen.h"

enum { STRINGS = 5000, ZEROS = 1 << 20 };
static char path[] = "/tmp/source-filters-XXXXXX";
static struct error err;

/* The least LZF: bytes as they are, or as 32 bytes before. */
static size_t lzf_encode(unsigned flags, size_t n_cd, const unsigned *cd,
			 size_t n, size_t *room, void **buf)
{
	unsigned char *out = malloc(2 * n), *o = out;
	const unsigned char *in = *buf;
	size_t i = 0;

	(void)flags, (void)n_cd, (void)cd;
	while (i < n) {
		size_t m = 0;

		while (i >= 32 && i + m < n && m < 264 &&
		       in[i + m] == in[i + m - 32])
			m++;
		if (m < 9) { /* one literal */
			*o++ = 0;
			*o++ = in[i++];
			continue;
		}
		*o++ = 7 << 5; /* 9 bytes and more, from 31 + 1 before */
		*o++ = (unsigned char)(m - 9);
		*o++ = 31;
		i += m;
	}
	free(*buf);
	*buf = out;
	*room = 2 * n;
	return (size_t)(o - out);
}

static hid_t packed(hid_t file, const char *name, hid_t type, hsize_t n,
		    const void *data)
{
	hid_t space = H5Screate_simple(1, &n, NULL);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dset;

	/* With strings a filter has to be optional. */
	H5Pset_chunk(dcpl, 1, &n);
	H5Pset_filter(dcpl, 32000, H5Z_FLAG_OPTIONAL, 0, NULL);
	dset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, dcpl,
			  H5P_DEFAULT);
	CHECK(dset >= 0);
	CHECK(H5Dwrite(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	H5Pclose(dcpl);
	H5Sclose(space);
	return dset;
}

/* As a writer does that has a whole LZF; hdf5_init then puts our decoder in
 * its place. */
static void write_file(void)
{
	const H5Z_class2_t lzf = {
		H5Z_CLASS_T_VERS, 32000, 1, 1, "lzf", NULL, NULL, lzf_encode};
	static const char *text[STRINGS];
	static unsigned char zeros[ZEROS];
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t type = H5Tcopy(H5T_C_S1);

	CHECK(H5Zregister(&lzf) >= 0);
	H5Tset_size(type, H5T_VARIABLE);
	for (unsigned i = 0; i < STRINGS; i++)
		text[i] = i % 2 ? "OK" : "initialized";
	H5Dclose(packed(f, "flags", type, STRINGS, text));
	H5Dclose(packed(f, "zeros", H5T_STD_U8LE, ZEROS, zeros));
	H5Tclose(type);
	CHECK(H5Fclose(f) >= 0);
}

static void check_stored(hid_t dset, hsize_t below)
{
	const hsize_t at = 0;
	struct hdf5_location loc;

	CHECK_OK(hdf5_locate(dset, &at, &loc, &err));
	CHECK_EQ_U(loc.mask, 0);
	CHECK(loc.stored < below);
}

static void check_strings(hid_t f)
{
	static char *text[STRINGS];
	hid_t dset = H5Dopen2(f, "flags", H5P_DEFAULT);
	hid_t type = H5Dget_type(dset);

	check_stored(dset, STRINGS * 16);
	hdf5_vlen_begin(dset, 16 << 20);
	CHECK(H5Dread(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
	for (unsigned i = 0; i < STRINGS; i++)
		CHECK_STR(text[i], i % 2 ? "OK" : "initialized");
	hdf5_vlen_end();
	H5Tclose(type);
	H5Dclose(dset);
}

/* 85 times as long as stored: the room has to grow. */
static void check_zeros(hid_t f)
{
	static unsigned char bytes[ZEROS];
	hid_t dset = H5Dopen2(f, "zeros", H5P_DEFAULT);

	check_stored(dset, ZEROS / 64);
	memset(bytes, 1, sizeof bytes);
	CHECK(H5Dread(dset, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
		      bytes) >= 0);
	for (unsigned i = 0; i < ZEROS; i++)
		CHECK_EQ_U(bytes[i], 0);
	H5Dclose(dset);
}

static void check_limit(hid_t f)
{
	static unsigned char bytes[ZEROS];
	hid_t dset = H5Dopen2(f, "zeros", H5P_DEFAULT);
	char why[200];

	CHECK_EQ_U(hdf5_filters_limit(100000), HDF5_FILTERS_LIMIT);
	CHECK(H5Dread(dset, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
		      bytes) < 0);
	hdf5_why(why, sizeof why);
	/* 1.14 keeps to itself what a filter says. */
	if (strcmp(why, "filter returned failure during read"))
		CHECK_STR(why,
			  "lzf: the data decode to more than 100000 bytes");
	CHECK_EQ_U(hdf5_filters_limit(ZEROS), 100000);
	CHECK(H5Dread(dset, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
		      bytes) >= 0);
	CHECK_EQ_U(hdf5_filters_limit(0), ZEROS);
	H5Dclose(dset);
}

TEST(lzf_behind_the_driver)
{
	struct handles *handles;
	hid_t f;

	CHECK_OK(handles_new(&handles, 4, 1, &err));
	CHECK_OK(hdf5_open(handles, handles_add(handles, path), &f, &err));
	check_limit(f);
	check_zeros(f);
	check_strings(f);
	H5Fclose(f);
	handles_free(handles);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	hdf5_lock();
	write_file();
	hdf5_unlock();
	CHECK_OK(hdf5_init(&err));
	hdf5_lock();
	RUN(lzf_behind_the_driver);
	hdf5_unlock();
	unlink(path);
	return test_done();
}
