/* SPDX-License-Identifier: BSD-2-Clause */
/* mkzoo DIR: writes HDF5 files that h5py cannot, for the zoo of the tests.
 *
 * Values are such that a few lines of NumPy know them; they are in the comment of
 * each function. Existing files are overwritten. Any failure is an exit status of
 * 1 with the line of the call.
 */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 13
#define COLS 11

#define TRY(call) try_call((hid_t)(call), #call, __LINE__)

static hid_t try_call(hid_t got, const char *what, int line)
{
	if (got < 0) {
		fprintf(stderr, "mkzoo.c:%d: %s failed\n", line, what);
		exit(1);
	}
	return got;
}

static hid_t create(const char *dir, const char *name, hid_t fcpl, int latest)
{
	hid_t fapl = TRY(H5Pcreate(H5P_FILE_ACCESS)), file;
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (latest)
		TRY(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST,
					 H5F_LIBVER_LATEST));
	file = TRY(H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl));
	H5Pclose(fapl);
	return file;
}

/* A dataset of `type` over `space`, written with `data` unless that is NULL. */
static hid_t put(hid_t file, const char *name, hid_t type, hid_t space,
		 hid_t dcpl, const void *data)
{
	hid_t lcpl = TRY(H5Pcreate(H5P_LINK_CREATE)), d;

	TRY(H5Pset_create_intermediate_group(lcpl, 1));
	d = TRY(H5Dcreate2(file, name, type, space, lcpl, dcpl, H5P_DEFAULT));
	if (data)
		TRY(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
	H5Pclose(lcpl);
	return d;
}

static hid_t line(hsize_t n)
{
	return TRY(H5Screate_simple(1, &n, NULL));
}

/* x[i] = 7 i - 300, as 13 x 11. */
static void fill_grid(int x[ROWS * COLS])
{
	int i;

	for (i = 0; i < ROWS * COLS; i++)
		x[i] = 7 * i - 300;
}

/* Edge chunks that are not filtered, under each chunk index. */
static void edges(hid_t file)
{
	static const struct {
		const char *name;
		hsize_t max[2];
		int shuffle;
	} table[] = {
		{"edge_unfiltered/fixed", {ROWS, COLS}, 0},
		{"edge_unfiltered/extensible", {H5S_UNLIMITED, COLS}, 0},
		{"edge_unfiltered/btree2", {H5S_UNLIMITED, H5S_UNLIMITED}, 0},
		{"edge_unfiltered/shuffle_gz", {ROWS, COLS}, 1},
	};
	hsize_t dims[2] = {ROWS, COLS}, chunk[2] = {4, 3};
	int x[ROWS * COLS];
	size_t i;

	fill_grid(x);
	for (i = 0; i < sizeof table / sizeof *table; i++) {
		hid_t p = TRY(H5Pcreate(H5P_DATASET_CREATE)), s;

		TRY(H5Pset_chunk(p, 2, chunk));
		TRY(H5Pset_chunk_opts(p, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
		if (table[i].shuffle)
			TRY(H5Pset_shuffle(p));
		TRY(H5Pset_deflate(p, 6));
		s = TRY(H5Screate_simple(2, dims, table[i].max));
		H5Dclose(put(file, table[i].name, H5T_STD_I32LE, s, p, x));
		H5Sclose(s);
		H5Pclose(p);
	}
}

/* No fill value at all: never written elements are 0 for want of another. In
 * `part` the chunk at (0, 0) is 5.
 */
static void undefined_fill(hid_t file)
{
	hsize_t dims[2] = {7, 8}, chunk[2] = {3, 4}, at[2] = {0, 0};
	hid_t s = TRY(H5Screate_simple(2, dims, NULL)), m, d;
	hid_t flat = TRY(H5Pcreate(H5P_DATASET_CREATE));
	hid_t tiles = TRY(H5Pcreate(H5P_DATASET_CREATE));
	int x[12], i;

	for (i = 0; i < 12; i++)
		x[i] = 5;
	TRY(H5Pset_fill_value(flat, H5T_STD_I32LE, NULL));
	TRY(H5Pset_fill_value(tiles, H5T_STD_I32LE, NULL));
	TRY(H5Pset_chunk(tiles, 2, chunk));
	H5Dclose(put(file, "fill_undefined/contiguous", H5T_STD_I32LE, s, flat,
		     NULL));
	H5Dclose(put(file, "fill_undefined/chunked", H5T_STD_I32LE, s, tiles,
		     NULL));
	d = put(file, "fill_undefined/part", H5T_STD_I32LE, s, tiles, NULL);
	m = TRY(H5Screate_simple(2, chunk, NULL));
	TRY(H5Sselect_hyperslab(s, H5S_SELECT_SET, at, NULL, chunk, NULL));
	TRY(H5Dwrite(d, H5T_NATIVE_INT, m, s, H5P_DEFAULT, x));
	H5Dclose(d);
	H5Sclose(m);
	H5Sclose(s);
	H5Pclose(flat);
	H5Pclose(tiles);
}

static void layouts(const char *dir)
{
	hsize_t dims[2] = {ROWS, COLS}, chunk[2] = {4, 3};
	hid_t fcpl = TRY(H5Pcreate(H5P_FILE_CREATE)), f, s, p;
	int x[ROWS * COLS];

	f = create(dir, "layouts-c.h5", H5P_DEFAULT, 1);
	edges(f);
	undefined_fill(f);
	TRY(H5Fclose(f));

	/* Superblock 1: any other rank of the chunk B-tree. */
	fill_grid(x);
	TRY(H5Pset_istore_k(fcpl, 3));
	TRY(H5Pset_sym_k(fcpl, 3, 5));
	f = create(dir, "superblock1.h5", fcpl, 0);
	s = TRY(H5Screate_simple(2, dims, NULL));
	p = TRY(H5Pcreate(H5P_DATASET_CREATE));
	H5Dclose(put(f, "x", H5T_STD_I32LE, s, p, x));
	TRY(H5Pset_chunk(p, 2, chunk));
	TRY(H5Pset_deflate(p, 4));
	H5Dclose(put(f, "gz", H5T_STD_I32LE, s, p, x));
	H5Sclose(s);
	H5Pclose(p);
	H5Pclose(fcpl);
	TRY(H5Fclose(f));
}

struct mixed {
	int id;
	hvl_t v;
	hobj_ref_t r;
	hdset_reg_ref_t w;
};

/* Three of {id: i, v: [0, 10, ..] of length 2, 0, 3, r and w: /target}. */
static void mixed(hid_t file)
{
	static const size_t length[3] = {2, 0, 3};
	hid_t t = TRY(H5Tcreate(H5T_COMPOUND, sizeof(struct mixed))), v, s, d;
	int seq[3] = {0, 10, 20};
	struct mixed x[3];
	hsize_t at = 1, n = 2;
	size_t i;

	s = line(4);
	d = put(file, "target", H5T_STD_I16LE, s, H5P_DEFAULT, NULL);
	H5Dclose(d);
	TRY(H5Sselect_hyperslab(s, H5S_SELECT_SET, &at, NULL, &n, NULL));
	memset(x, 0, sizeof x);
	for (i = 0; i < 3; i++) {
		x[i].id = (int)i;
		x[i].v.len = length[i];
		x[i].v.p = seq;
		TRY(H5Rcreate(&x[i].r, file, "/target", H5R_OBJECT, -1));
		TRY(H5Rcreate(&x[i].w, file, "/target", H5R_DATASET_REGION, s));
	}
	H5Sclose(s);
	v = TRY(H5Tvlen_create(H5T_NATIVE_INT));
	TRY(H5Tinsert(t, "id", HOFFSET(struct mixed, id), H5T_NATIVE_INT));
	TRY(H5Tinsert(t, "v", HOFFSET(struct mixed, v), v));
	TRY(H5Tinsert(t, "r", HOFFSET(struct mixed, r), H5T_STD_REF_OBJ));
	TRY(H5Tinsert(t, "w", HOFFSET(struct mixed, w), H5T_STD_REF_DSETREG));
	s = line(3);
	H5Dclose(put(file, "mixed", t, s, H5P_DEFAULT, x));
	H5Sclose(s);
	H5Tclose(v);
	H5Tclose(t);
}

struct pair {
	int a;
	double b;
};

static hid_t pair_type(void)
{
	hid_t t = TRY(H5Tcreate(H5T_COMPOUND, 12));

	TRY(H5Tinsert(t, "a", 0, H5T_STD_I32LE));
	TRY(H5Tinsert(t, "b", 4, H5T_IEEE_F64LE));
	return t;
}

static hid_t pair_in_memory(void)
{
	hid_t t = TRY(H5Tcreate(H5T_COMPOUND, sizeof(struct pair)));

	TRY(H5Tinsert(t, "a", HOFFSET(struct pair, a), H5T_NATIVE_INT));
	TRY(H5Tinsert(t, "b", HOFFSET(struct pair, b), H5T_NATIVE_DOUBLE));
	return t;
}

/* Sequences of {a: k, b: k/2}, of 1, 3 and 0 elements; packed in the file. */
static void ragged_of_compound(hid_t file)
{
	struct pair x[3] = {{0, 0}, {1, 0.5}, {2, 1}};
	hvl_t v[3] = {{1, x}, {3, x}, {0, NULL}};
	hid_t p = pair_type(), m = pair_in_memory(), s = line(3);
	hid_t t = TRY(H5Tvlen_create(p)), mt = TRY(H5Tvlen_create(m)), d;

	d = put(file, "ragged_of_compound", t, s, H5P_DEFAULT, NULL);
	TRY(H5Dwrite(d, mt, H5S_ALL, H5S_ALL, H5P_DEFAULT, v));
	H5Dclose(d);
	H5Tclose(p);
	H5Tclose(m);
	H5Tclose(t);
	H5Tclose(mt);
	H5Sclose(s);
}

static hid_t vlen_string(void)
{
	hid_t t = TRY(H5Tcopy(H5T_C_S1));

	TRY(H5Tset_size(t, H5T_VARIABLE));
	return t;
}

/* Types that have no .npy: one dataset each, two elements. */
static void strange(hid_t file)
{
	hsize_t two = 2;
	hid_t s = line(2), str = vlen_string(), t, u;
	const char *words[2] = {"a", "bc"};
	int pairs[2][2] = {{1, 2}, {3, 4}};
	hvl_t arrays[2] = {{1, pairs}, {2, pairs}};
	hvl_t texts[2] = {{2, words}, {1, words}};
	hvl_t inner[2] = {{2, pairs}, {1, pairs}};
	hvl_t outer[2] = {{2, inner}, {0, NULL}};
	const char *grid[4] = {"p", "", "q", "rr"};
	hobj_ref_t refs[4];
	int i;

	u = TRY(H5Tarray_create2(H5T_NATIVE_INT, 1, &two));
	t = TRY(H5Tvlen_create(u));
	H5Dclose(put(file, "ragged_of_array", t, s, H5P_DEFAULT, arrays));
	H5Tclose(t);
	H5Tclose(u);
	t = TRY(H5Tvlen_create(str));
	H5Dclose(put(file, "ragged_of_strings", t, s, H5P_DEFAULT, texts));
	H5Tclose(t);
	u = TRY(H5Tvlen_create(H5T_NATIVE_INT));
	t = TRY(H5Tvlen_create(u));
	H5Dclose(put(file, "ragged_of_ragged", t, s, H5P_DEFAULT, outer));
	H5Tclose(t);
	H5Tclose(u);
	t = TRY(H5Tarray_create2(str, 1, &two));
	H5Dclose(put(file, "array_of_vlen", t, s, H5P_DEFAULT, grid));
	H5Tclose(t);
	for (i = 0; i < 4; i++)
		TRY(H5Rcreate(&refs[i], file, "/target", H5R_OBJECT, -1));
	t = TRY(H5Tarray_create2(H5T_STD_REF_OBJ, 1, &two));
	H5Dclose(put(file, "array_of_references", t, s, H5P_DEFAULT, refs));
	H5Tclose(t);
	H5Dclose(put(file, "time", H5T_UNIX_D32LE, s, H5P_DEFAULT, NULL));
	H5Tclose(str);
	H5Sclose(s);
}

static void attribute(hid_t d, const char *name, hid_t type, hid_t mem,
		      hsize_t n, const void *data)
{
	hid_t s = n ? line(n) : TRY(H5Screate(H5S_SCALAR)), a;

	a = TRY(H5Acreate2(d, name, type, s, H5P_DEFAULT, H5P_DEFAULT));
	if (data)
		TRY(H5Awrite(a, mem, data));
	H5Aclose(a);
	H5Sclose(s);
}

/* bits: 5; int3: -2; vlen_of_compound: [{a: 1, b: .5}]; array: [[1, 2, 3]]. */
static void odd_attributes(hid_t file, hid_t type, const short *x)
{
	struct pair one = {1, 0.5};
	hvl_t v = {1, &one};
	hid_t s = line(4), d, t, m, p;
	hsize_t three = 3;
	short bits = 5;
	int minus = -2, arr[3] = {1, 2, 3};

	d = put(file, "odd_attributes", type, s, H5P_DEFAULT, x);
	attribute(d, "bits", H5T_STD_B16LE, H5T_NATIVE_B16, 0, &bits);
	t = TRY(H5Tcopy(H5T_STD_I32LE));
	TRY(H5Tset_precision(t, 24));
	TRY(H5Tset_size(t, 3));
	attribute(d, "int3", t, H5T_NATIVE_INT, 0, &minus);
	H5Tclose(t);
	p = pair_type();
	t = TRY(H5Tvlen_create(p));
	H5Tclose(p);
	p = pair_in_memory();
	m = TRY(H5Tvlen_create(p));
	H5Tclose(p);
	attribute(d, "vlen_of_compound", t, m, 0, &v);
	H5Tclose(t);
	H5Tclose(m);
	t = TRY(H5Tarray_create2(H5T_NATIVE_INT, 1, &three));
	attribute(d, "array", t, t, 1, arr);
	H5Tclose(t);
	attribute(d, "time", H5T_UNIX_D32LE, H5T_UNIX_D32LE, 0, NULL);
	H5Dclose(d);
	H5Sclose(s);
}

static hid_t go_nowhere(const char *name, hid_t group, const void *data,
			size_t size, hid_t lapl, hid_t dxpl)
{
	(void)name, (void)group, (void)data, (void)size;
	(void)lapl, (void)dxpl;
	return -1;
}

/* A link of a class that only this program knows. */
static void user_link(hid_t file)
{
	static const H5L_class_t class = {H5L_LINK_CLASS_T_VERS,
					  (H5L_type_t)200,
					  "zoo",
					  NULL,
					  NULL,
					  NULL,
					  go_nowhere,
					  NULL,
					  NULL};

	TRY(H5Lregister(&class));
	TRY(H5Lcreate_ud(file, "user_link", class.id, "somewhere", 10,
			 H5P_DEFAULT, H5P_DEFAULT));
}

static void types(const char *dir)
{
	static const short x[4] = {0, 1, 2, 3};
	hid_t f = create(dir, "types-c.h5", H5P_DEFAULT, 0), t, s;

	mixed(f);
	ragged_of_compound(f);
	strange(f);
	user_link(f);
	t = TRY(H5Tcopy(H5T_STD_I16LE));
	TRY(H5Tcommit2(f, "a_type", t, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	s = line(4);
	H5Dclose(put(f, "committed", t, s, H5P_DEFAULT, x));
	H5Sclose(s);
	odd_attributes(f, H5T_STD_I16LE, x);
	H5Tclose(t);
	TRY(H5Fclose(f));
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "Usage: mkzoo DIR\n");
		return 2;
	}
	layouts(argv[1]);
	types(argv[1]);
	return 0;
}
