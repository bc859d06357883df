/* SPDX-License-Identifier: BSD-2-Clause */
/* Our HDF5 driver: every chunk where the library's own driver finds it. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codec/pipeline.h"
#include "formats/hdf5/file/driver.h"

static char dir[] = "/tmp/source-driver-XXXXXX";
static struct handles *handles;
static struct error err;

static const char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof path[0], "%s/%s", dir, name);
	return p;
}

static hid_t created(const char *name, H5F_libver_t format, hsize_t userblock)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), f;

	H5Pset_libver_bounds(fapl, format, H5F_LIBVER_LATEST);
	H5Pset_userblock(fcpl, userblock);
	f = H5Fcreate(path_of(name), H5F_ACC_TRUNC, fcpl, fapl);
	CHECK(f >= 0);
	H5Pclose(fcpl);
	H5Pclose(fapl);
	return f;
}

static int opened(const char *name, hid_t *f)
{
	return hdf5_open(handles, handles_add(handles, path_of(name)), f, &err);
}

/* ---- every chunk index ---- */

enum { ROWS = 10, COLUMNS = 14 };
enum filters { PLAIN, DEFLATE, SHUFFLED };
struct layout {
	const char *name;
	H5F_libver_t format;
	H5D_chunk_index_t index;
	hsize_t max[2], chunk[2];
	enum filters filters;
	bool early; /* all space allocated at once */
};
#define INF H5S_UNLIMITED
#define OLD H5F_LIBVER_EARLIEST
#define NEW H5F_LIBVER_LATEST
static const struct layout layouts[] = {
	{"btree1", OLD, H5D_CHUNK_IDX_BTREE, {10, 14}, {4, 5}, DEFLATE, 0},
	{"btree1-inf", OLD, H5D_CHUNK_IDX_BTREE, {INF, INF}, {4, 5}, PLAIN, 0},
	{"btree1-shuf",
	 OLD,
	 H5D_CHUNK_IDX_BTREE,
	 {10, INF},
	 {3, 3},
	 SHUFFLED,
	 0},
	{"single", NEW, H5D_CHUNK_IDX_SINGLE, {10, 14}, {10, 14}, PLAIN, 0},
	{"single-z", NEW, H5D_CHUNK_IDX_SINGLE, {10, 14}, {10, 14}, DEFLATE, 0},
	{"implicit", NEW, H5D_CHUNK_IDX_NONE, {10, 14}, {4, 5}, PLAIN, 1},
	{"farray", NEW, H5D_CHUNK_IDX_FARRAY, {10, 14}, {4, 5}, PLAIN, 0},
	{"farray-z", NEW, H5D_CHUNK_IDX_FARRAY, {20, 30}, {1, 1}, DEFLATE, 0},
	{"earray-0", NEW, H5D_CHUNK_IDX_EARRAY, {INF, 14}, {4, 5}, SHUFFLED, 0},
	{"earray-1", NEW, H5D_CHUNK_IDX_EARRAY, {10, INF}, {4, 5}, SHUFFLED, 0},
	{"earray-1p", NEW, H5D_CHUNK_IDX_EARRAY, {30, INF}, {1, 1}, PLAIN, 0},
	{"btree2", NEW, H5D_CHUNK_IDX_BT2, {INF, INF}, {4, 5}, PLAIN, 0},
	{"btree2-z", NEW, H5D_CHUNK_IDX_BT2, {INF, INF}, {2, 1}, DEFLATE, 0},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void grid_of(const struct layout *l, hsize_t grid[2])
{
	grid[0] = (ROWS + l->chunk[0] - 1) / l->chunk[0];
	grid[1] = (COLUMNS + l->chunk[1] - 1) / l->chunk[1];
}
/* Chunk n of m: every fifth is left out, but not where all exist. */
static bool is_written(const struct layout *l, unsigned n)
{
	return l->early || l->index == H5D_CHUNK_IDX_SINGLE || n % 5 != 3;
}
static uint16_t value_at(hsize_t row, hsize_t column)
{
	return (uint16_t)(1 + row * 256 + column);
}

static void write_chunks(hid_t dset, const struct layout *l)
{
	static uint16_t values[ROWS * COLUMNS];
	size_t n = l->chunk[0] * l->chunk[1];
	hsize_t grid[2], at[2];
	uint32_t all = l->filters == PLAIN ? 0 : l->filters == DEFLATE ? 1 : 3;

	grid_of(l, grid);
	for (unsigned c = 0; c < grid[0] * grid[1]; c++) {
		at[0] = c / grid[1] * l->chunk[0];
		at[1] = c % grid[1] * l->chunk[1];
		for (size_t i = 0; i < n; i++)
			values[i] = value_at(at[0] + i / l->chunk[1],
					     at[1] + i % l->chunk[1]);
		if (!is_written(l, c))
			continue;
		if (c % 4 == 1) { /* filters skipped */
			CHECK(H5Dwrite_chunk(dset, H5P_DEFAULT, all, at, 2 * n,
					     values) >= 0);
			continue;
		}
		hid_t space = H5Dget_space(dset);
		hsize_t part[2] = {l->chunk[0], l->chunk[1]}, across = part[1];

		for (int k = 0; k < 2; k++)
			if (at[k] + part[k] > (k ? COLUMNS : ROWS))
				part[k] = (k ? COLUMNS : ROWS) - at[k];
		hsize_t zero[2] = {0, 0}, whole[2] = {l->chunk[0], across};
		hid_t mem = H5Screate_simple(2, whole, NULL);

		H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, part,
				    NULL);
		H5Sselect_hyperslab(mem, H5S_SELECT_SET, zero, NULL, part,
				    NULL);
		CHECK(H5Dwrite(dset, H5T_NATIVE_UINT16, mem, space, H5P_DEFAULT,
			       values) >= 0);
		H5Sclose(mem);
		H5Sclose(space);
	}
}

static void write_layout(hid_t f, const struct layout *l)
{
	const hsize_t dims[2] = {ROWS, COLUMNS};
	hid_t space = H5Screate_simple(2, dims, l->max);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dset;
	H5D_chunk_index_t index;

	H5Pset_chunk(dcpl, 2, l->chunk);
	if (l->early)
		H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
	if (l->filters == SHUFFLED)
		H5Pset_shuffle(dcpl);
	if (l->filters != PLAIN)
		H5Pset_deflate(dcpl, 4);
	dset = H5Dcreate2(f, l->name, H5T_STD_U16LE, space, H5P_DEFAULT, dcpl,
			  H5P_DEFAULT);
	CHECK(dset >= 0);
	write_chunks(dset, l);
	CHECK(H5Dclose(dset) >= 0);
	/* Only now is the index what it will be. */
	dset = H5Dopen2(f, l->name, H5P_DEFAULT);
	CHECK(H5Dget_chunk_index_type(dset, &index) >= 0);
	CHECK_EQ_I(index, l->index);
	H5Dclose(dset);
	H5Pclose(dcpl);
	H5Sclose(space);
}

static void make_pipeline(const struct layout *l, struct pipeline *p)
{
	const uint32_t two = 2, level = 4;

	memset(p, 0, sizeof *p);
	if (l->filters == SHUFFLED)
		CHECK_OK(pipeline_add(p, 2, NULL, &two, 1, 2, &err));
	if (l->filters != PLAIN)
		CHECK_OK(pipeline_add(p, 1, NULL, &level, 1, 2, &err));
}

/* One chunk: its bytes are those the library's own driver reads, and they
 * decode to what was written. */
static void check_chunk(const struct layout *l, int fd, hid_t mine, hid_t own,
			unsigned c, const hsize_t *at)
{
	static uint16_t values[ROWS * COLUMNS];
	static unsigned char stored[4096], want[4096];
	size_t n = l->chunk[0] * l->chunk[1];
	struct hdf5_location loc;
	struct pipeline p;
	uint32_t mask;
	hsize_t size;

	CHECK_OK(hdf5_locate(mine, at, &loc, &err));
	if (!is_written(l, c)) {
		CHECK_EQ_U(loc.pos, HDF5_ABSENT);
		return;
	}
	CHECK(loc.pos != HDF5_ABSENT);
	CHECK(H5Dget_chunk_storage_size(own, at, &size) >= 0);
	CHECK_EQ_U(loc.stored, size);
	CHECK(size <= sizeof stored);
	CHECK_EQ_I(pread(fd, stored, size, (off_t)loc.pos), (ssize_t)size);
	CHECK(H5Dread_chunk(own, H5P_DEFAULT, at, &mask, want) >= 0);
	CHECK_EQ_U(loc.mask, mask);
	CHECK_EQ_U(mask != 0, c % 4 == 1 && l->filters != PLAIN);
	CHECK_MEM(stored, want, size);
	make_pipeline(l, &p);
	CHECK_OK(pipeline_decode(&p, mask, stored, size, values, 2 * n, &err));
	for (size_t i = 0; i < n; i++) {
		hsize_t row = at[0] + i / l->chunk[1];
		hsize_t column = at[1] + i % l->chunk[1];

		if (row < ROWS && column < COLUMNS)
			CHECK_EQ_U(values[i], value_at(row, column));
	}
}

static void check_layout(const struct layout *l, hsize_t userblock)
{
	hid_t f = created("layout.h5", l->format, userblock), mine, own, set;
	hsize_t grid[2], at[2];
	int fd;

	write_layout(f, l);
	CHECK(H5Fclose(f) >= 0);
	CHECK_OK(handles_new(&handles, 4, 1, &err));
	CHECK_OK(opened("layout.h5", &f));
	mine = H5Dopen2(f, l->name, H5P_DEFAULT);
	own = H5Fopen(path_of("layout.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
	set = H5Dopen2(own, l->name, H5P_DEFAULT);
	fd = open(path_of("layout.h5"), O_RDONLY);
	CHECK(mine >= 0 && set >= 0 && fd >= 0);
	grid_of(l, grid);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned c = 0; c < grid[0] * grid[1]; c++) {
			at[0] = c / grid[1] * l->chunk[0];
			at[1] = c % grid[1] * l->chunk[1];
			check_chunk(l, fd, mine, set, c, at);
		}
		/* Again with chunks in the library's cache. */
		static uint16_t all[ROWS * COLUMNS];

		CHECK(H5Dread(mine, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL,
			      H5P_DEFAULT, all) >= 0);
		CHECK_EQ_U(all[COLUMNS], value_at(1, 0));
	}
	at[0] = 1000 * l->chunk[0], at[1] = 0;
	struct hdf5_location loc;

	CHECK_EQ_I(hdf5_locate(mine, at, &loc, &err), -EIO);
	close(fd);
	H5Fclose(f);
	H5Dclose(set);
	H5Fclose(own);
	handles_free(handles);
}

TEST(every_index)
{
	for (unsigned i = 0; i < LAYOUTS; i++) {
		check_layout(&layouts[i], 0);
		check_layout(&layouts[i], 512);
	}
}

TEST(nothing_written)
{
	struct hdf5_location loc;
	hsize_t at[2] = {0, 0};
	struct layout l;
	hid_t f, dset;

	CHECK_OK(handles_new(&handles, 4, 1, &err));
	for (unsigned i = 0; i < LAYOUTS; i++) {
		char name[32];

		l = layouts[i];
		if (l.early)
			continue;
		snprintf(name, sizeof name, "none%u.h5", i);
		f = created(name, l.format, 0);
		hid_t space = H5Screate_simple(
			2, (const hsize_t[2]){ROWS, COLUMNS}, l.max);
		hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);

		H5Pset_chunk(dcpl, 2, l.chunk);
		H5Dclose(H5Dcreate2(f, "d", H5T_STD_U16LE, space, H5P_DEFAULT,
				    dcpl, H5P_DEFAULT));
		H5Pclose(dcpl);
		H5Sclose(space);
		H5Fclose(f);
		CHECK_OK(opened(name, &f));
		dset = H5Dopen2(f, "d", H5P_DEFAULT);
		CHECK_OK(hdf5_locate(dset, at, &loc, &err));
		CHECK_EQ_U(loc.pos, HDF5_ABSENT);
		H5Fclose(f);
	}
	handles_free(handles);
}

/* ---- damage ---- */

static void write_bytes(const char *name, const void *bytes, size_t n)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK_EQ_I(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}
static size_t read_bytes(const char *name, unsigned char *bytes, size_t room)
{
	int fd = open(path_of(name), O_RDONLY);
	ssize_t n = read(fd, bytes, room);

	CHECK(n > 0 && (size_t)n < room);
	close(fd);
	return (size_t)n;
}

TEST(no_hdf5_file)
{
	unsigned char text[3000];
	hid_t f;

	CHECK_OK(handles_new(&handles, 4, 1, &err));
	memset(text, 'x', sizeof text);
	write_bytes("text", text, sizeof text);
	write_bytes("empty", text, 0);
	write_bytes("magic", "\x89HDF\r\n\x1a\n\0\0\0\0\0\0", 14);
	CHECK_EQ_I(opened("text", &f), -EIO);
	CHECK(strstr(err.text, "text: not an HDF5 file"));
	CHECK_EQ_I(opened("empty", &f), -EIO);
	CHECK(strstr(err.text, "empty: not an HDF5 file, it is empty"));
	CHECK_EQ_I(opened("magic", &f), -EIO);
	CHECK(strstr(err.text, "truncated"));
	CHECK_EQ_I(opened("missing", &f), -ENODATA);
	CHECK(strstr(err.text, "missing"));
	CHECK_EQ_I(opened("", &f), -EIO); /* a directory */
	handles_free(handles);
}

/* A superblock that only seems to be a SWMR writer's: the library would wait
 * for its checksum to become right. */
TEST(seeming_writer)
{
	static unsigned char whole[1 << 20];
	hid_t f = created("seems.h5", NEW, 0);
	size_t n;

	H5Fclose(f);
	n = read_bytes("seems.h5", whole, sizeof whole);
	CHECK_EQ_U(whole[8], 3);
	whole[11] |= 5;
	write_bytes("seems.h5", whole, n);
	CHECK_OK(handles_new(&handles, 4, 1, &err));
	CHECK_EQ_I(opened("seems.h5", &f), -EIO);
	CHECK(strstr(err.text, "checksum"));
	handles_free(handles);
}

/* Cut a file at every length: it opens or says why, and what is located lies
 * where it lay in the whole file. */
TEST(truncated)
{
	static unsigned char whole[1 << 20];
	const struct layout *l = &layouts[0];
	struct hdf5_location full[12], loc;
	unsigned intact = 0, refused = 0;
	hid_t f = created("whole.h5", OLD, 0), dset;
	hsize_t at[2];
	size_t n;

	write_layout(f, l);
	H5Fclose(f);
	n = read_bytes("whole.h5", whole, sizeof whole);
	for (size_t cut = n; cut > 0; cut -= cut > 40 ? 37 : 1) {
		CHECK_OK(handles_new(&handles, 4, 1, &err));
		write_bytes("cut.h5", whole, cut);
		int r = opened("cut.h5", &f);

		dset = r < 0 ? -1 : H5Dopen2(f, l->name, H5P_DEFAULT);
		for (unsigned c = 0; c < 9 && dset >= 0; c++) {
			at[0] = c / 3 * l->chunk[0];
			at[1] = c % 3 * l->chunk[1];
			r = hdf5_locate(dset, at, &loc, &err);
			CHECK(r == 0 || r == -EIO);
			if (cut == n)
				full[c] = loc;
			if (r == 0)
				CHECK(loc.pos == full[c].pos &&
				      loc.stored == full[c].stored &&
				      loc.mask == full[c].mask);
			intact += r == 0 && cut < n && loc.pos != HDF5_ABSENT &&
				  loc.pos + loc.stored <= cut;
		}
		if (r < 0) {
			refused++;
			CHECK(strstr(err.text, "truncated") ||
			      strstr(err.text, "not an HDF5 file"));
		}
		if (dset >= 0)
			H5Dclose(dset);
		if (H5Iis_valid(f) > 0)
			H5Fclose(f);
		handles_free(handles);
	}
	CHECK(intact > 0 && refused > 0);
}

/* Each byte of the old index damaged in turn.  It has no checksum, so another
 * place, or none, may be found; but what cannot be an index is an error. */
TEST(damaged_index)
{
	static unsigned char whole[1 << 20];
	const hsize_t at[2] = {0, 0};
	struct hdf5_location loc;
	unsigned failed = 0;
	size_t n, i;
	hid_t f = created("sound.h5", OLD, 0), dset;

	write_layout(f, &layouts[0]);
	H5Fclose(f);
	n = read_bytes("sound.h5", whole, sizeof whole);
	for (i = 0; i + 5 < n; i++)
		if (!memcmp(whole + i, "TREE\1", 5))
			break;
	CHECK(i + 5 < n);
	for (unsigned k = 0; k < 64; k++) {
		CHECK_OK(handles_new(&handles, 4, 1, &err));
		whole[i + k] ^= 0xff;
		write_bytes("damaged.h5", whole, n);
		whole[i + k] ^= 0xff;
		CHECK_OK(opened("damaged.h5", &f));
		dset = H5Dopen2(f, layouts[0].name, H5P_DEFAULT);
		CHECK(dset >= 0);
		int r = hdf5_locate(dset, at, &loc, &err);

		CHECK(r == 0 || r == -EIO);
		if (k < 6) /* signature, kind, level */
			CHECK_EQ_I(r, -EIO);
		failed += r < 0;
		H5Fclose(f);
		handles_free(handles);
	}
	CHECK(failed >= 6);
}

/* ---- writers ---- */

static void copy_file(const char *from, const char *to)
{
	static unsigned char bytes[1 << 20];

	write_bytes(to, bytes, read_bytes(from, bytes, sizeof bytes));
}

static void check_chunk_at(const char *name, const struct layout *l,
			   hsize_t row)
{
	struct hdf5_location loc;
	hsize_t at[2] = {row, 0};
	hid_t f, dset;

	CHECK_OK(handles_new(&handles, 4, 1, &err));
	if (opened(name, &f) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	dset = H5Dopen2(f, l->name, H5P_DEFAULT);
	CHECK_OK(hdf5_locate(dset, at, &loc, &err));
	CHECK(loc.pos != HDF5_ABSENT);
	H5Fclose(f);
	handles_free(handles);
}
static void check_first_chunk(const char *name, const struct layout *l)
{
	check_chunk_at(name, l, 0);
}

/* What a writer adds lies beyond the end that the superblock tells of. */
static void append_rows(hid_t f, const struct layout *l)
{
	const hsize_t dims[2] = {404, COLUMNS};
	uint16_t values[20] = {1, 2, 3};
	hid_t dset = H5Dopen2(f, l->name, H5P_DEFAULT);

	CHECK(H5Dset_extent(dset, dims) >= 0);
	for (hsize_t row = 12; row <= 400; row += 4)
		CHECK(H5Dwrite_chunk(dset, H5P_DEFAULT, 3,
				     (const hsize_t[2]){row, 0}, sizeof values,
				     values) >= 0);
	CHECK(H5Dflush(dset) >= 0);
	H5Dclose(dset);
}

TEST(writers)
{
	const struct layout *l = &layouts[8];
	hid_t f = created("written.h5", NEW, 0);

	CHECK_EQ_I(l->index, H5D_CHUNK_IDX_EARRAY);
	write_layout(f, l);
	CHECK(H5Fflush(f, H5F_SCOPE_GLOBAL) >= 0);
	check_first_chunk("written.h5", l);
	copy_file("written.h5", "died.h5");
	check_first_chunk("died.h5", l);
	CHECK(H5Fstart_swmr_write(f) >= 0);
	check_first_chunk("written.h5", l);
	append_rows(f, l);
	check_chunk_at("written.h5", l, 400);
	copy_file("written.h5", "died-swmr.h5");
	check_chunk_at("died-swmr.h5", l, 400);
	H5Fclose(f);
}

/* ---- many ---- */

TEST(many_chunks)
{
	enum { SIDE = 256 };
	const hsize_t dims[2] = {SIDE, SIDE}, one[2] = {1, 1};
	static uint16_t values[SIDE][SIDE];
	struct timespec t0, t1;
	struct hdf5_location loc;
	hid_t f = created("many.h5", OLD, 0);
	hid_t space = H5Screate_simple(2, dims, NULL);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dset;
	int fd;

	H5Pset_chunk(dcpl, 2, one);
	dset = H5Dcreate2(f, "d", H5T_STD_U16LE, space, H5P_DEFAULT, dcpl,
			  H5P_DEFAULT);
	for (unsigned i = 0; i < SIDE * SIDE; i++)
		values[i / SIDE][i % SIDE] = (uint16_t)i;
	CHECK(H5Dwrite(dset, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT,
		       values) >= 0);
	H5Dclose(dset);
	H5Pclose(dcpl);
	H5Sclose(space);
	H5Fclose(f);
	CHECK_OK(handles_new(&handles, 4, 1, &err));
	CHECK_OK(opened("many.h5", &f));
	dset = H5Dopen2(f, "d", H5P_DEFAULT);
	fd = open(path_of("many.h5"), O_RDONLY);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (unsigned i = 0; i < SIDE * SIDE; i++) {
		hsize_t at[2] = {i / SIDE, i % SIDE};
		uint16_t v = 0;

		CHECK_OK(hdf5_locate(dset, at, &loc, &err));
		CHECK_EQ_I(pread(fd, &v, 2, (off_t)loc.pos), 2);
		CHECK_EQ_U(v, (uint16_t)i);
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	printf("65536 chunks located and read in %.3f s\n",
	       (double)(t1.tv_sec - t0.tv_sec) +
		       (double)(t1.tv_nsec - t0.tv_nsec) * 1e-9);
	close(fd);
	H5Fclose(f);
	handles_free(handles);
}

static unsigned descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* What is allocated; a sanitizer's allocator does not say, and is a leak checker. */
static size_t memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

TEST(open_and_close)
{
	enum { WARM = 500, CYCLES = 3000 };
	hid_t f = created("cycle.h5", OLD, 0), dset;
	const hsize_t at[2] = {0, 0};
	size_t before = 0;
	struct hdf5_location loc;
	unsigned open_before;

	write_layout(f, &layouts[0]);
	H5Fclose(f);
	open_before = descriptors();
	CHECK_OK(handles_new(&handles, 4, 1, &err));
	for (unsigned i = 0; i < WARM + CYCLES; i++) {
		if (i == WARM)
			before = memory();
		CHECK_OK(opened("cycle.h5", &f));
		dset = H5Dopen2(f, layouts[0].name, H5P_DEFAULT);
		CHECK_OK(hdf5_locate(dset, at, &loc, &err));
		H5Fclose(f); /* the dataset goes with it */
		CHECK(H5Iis_valid(dset) <= 0);
	}
	handles_free(handles);
	CHECK_EQ_U(descriptors(), open_before);
	CHECK(memory() <= before + (1 << 20));
	CHECK_EQ_I(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(dir));
	CHECK_OK(hdf5_init(&err));
	CHECK_OK(hdf5_init(&err));
	CHECK(hdf5_driver_ok());
	hdf5_lock();
	RUN(every_index);
	RUN(nothing_written);
	RUN(no_hdf5_file);
	RUN(seeming_writer);
	RUN(truncated);
	RUN(damaged_index);
	RUN(writers);
	RUN(many_chunks);
	RUN(open_and_close);
	hdf5_unlock();
	snprintf(command, sizeof command, "rm -rf %s", dir);
	CHECK_OK(system(command));
	return test_done();
}
