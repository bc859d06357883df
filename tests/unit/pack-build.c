/* SPDX-License-Identifier: BSD-2-Clause */
/* Files around chunks that were there before: what libhdf5 itself reads in them. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensors/build.h"
#include "formats/hdf5/file/driver.h"

static char dir[] = "/tmp/pack-build-XXXXXX";
static struct error err;

static const char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof path[0], "%s/%s", dir, name);
	return p;
}

static int created(const char *name)
{
	int fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);

	CHECK(fd >= 0);
	return fd;
}

static hid_t reopened(const char *name)
{
	hid_t f = H5Fopen(path_of(name), H5F_ACC_RDONLY, H5P_DEFAULT);

	CHECK(f >= 0);
	return f;
}

/* The file ends where the library says, and other programs take it. */
static void check_whole(const char *name)
{
	hid_t f = reopened(name);
	struct stat st;
	hsize_t size;
	char cmd[512];

	CHECK(H5Fget_filesize(f, &size) >= 0);
	CHECK_OK(stat(path_of(name), &st));
	CHECK_EQ_U((uint64_t)st.st_size, size);
	H5Fclose(f);
	if (!test_has_tool("h5dump"))
		return;
	snprintf(cmd, sizeof cmd, "h5dump -pH %s >%s/dump 2>&1", path_of(name),
		 dir);
	CHECK_EQ_I(system(cmd), 0);
	snprintf(cmd, sizeof cmd, "h5stat %s >%s/dump 2>&1", path_of(name),
		 dir);
	CHECK_EQ_I(system(cmd), 0);
}

/* ---- chunks by many threads, and all that may be beside them ---- */

enum { ROWS = 70, COLUMNS = 45, CROWS = 8, CCOLUMNS = 10 };
enum { GROWS = 9, GCOLUMNS = 5, CHUNKS = GROWS * GCOLUMNS, THREADS = 4 };
static const uint64_t shape2[2] = {ROWS, COLUMNS};
static const uint64_t chunk2[2] = {CROWS, CCOLUMNS};
static struct build *shared;
static struct build_chunk chunks[CHUNKS];

static bool is_absent(unsigned chunk)
{
	return chunk % 7 == 3;
}

static void *put_some(void *arg)
{
	uint32_t data[CROWS * CCOLUMNS];
	struct error e = {.code = 0};

	for (unsigned c = *(unsigned *)arg; c < CHUNKS; c += THREADS) {
		struct build_chunk *k = &chunks[CHUNKS - 1 - c];
		unsigned row = c / GCOLUMNS * CROWS;
		unsigned col = c % GCOLUMNS * CCOLUMNS;

		for (unsigned i = 0; i < CROWS * CCOLUMNS; i++)
			data[i] = (row + i / CCOLUMNS) * 1000 + col +
				  i % CCOLUMNS;
		*k = (struct build_chunk){.number = c, .len = sizeof data};
		CHECK_OK(build_put(shared, data, sizeof data, &k->pos, &e));
	}
	return NULL;
}

static void put_all(void)
{
	pthread_t t[THREADS];
	unsigned turn[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		turn[i] = i;
		CHECK_OK(pthread_create(&t[i], NULL, put_some, &turn[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* What a user of h5py would put beside it. */
static void add_strings(hid_t f)
{
	hsize_t n = ROWS, cut = 16;
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &n, NULL);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), d;
	const char *word[ROWS];
	char text[ROWS][16];

	for (unsigned i = 0; i < ROWS; i++) {
		snprintf(text[i], sizeof text[i], "row %u", i);
		word[i] = text[i];
	}
	H5Tset_size(type, H5T_VARIABLE);
	H5Pset_chunk(dcpl, 1, &cut);
	H5Pset_deflate(dcpl, 4);
	d = H5Dcreate2(f, "flags", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	CHECK(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, word) >= 0);
	H5Dclose(d);
	d = H5Dcreate2(f, "plain", type, space, H5P_DEFAULT, H5P_DEFAULT,
		       H5P_DEFAULT);
	CHECK(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, word) >= 0);
	H5Dclose(d);
	H5Pclose(dcpl);
	H5Sclose(space);
	H5Tclose(type);
}

/* In a process of its own: in this one, reading of strings has been taken over. */
static void check_strings(hid_t f, const char *name)
{
	hid_t d = H5Dopen2(f, name, H5P_DEFAULT), type = H5Dget_type(d);
	hid_t space = H5Dget_space(d);
	char *word[ROWS], want[16];

	CHECK(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, word) >= 0);
	for (unsigned i = 0; i < ROWS; i++) {
		snprintf(want, sizeof want, "row %u", i);
		CHECK_STR(word[i], want);
	}
	H5Dvlen_reclaim(type, space, H5P_DEFAULT, word);
	H5Sclose(space);
	H5Tclose(type);
	H5Dclose(d);
}

static int strings_main(const char *path)
{
	hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);

	CHECK(f >= 0);
	check_strings(f, "flags");
	check_strings(f, "plain");
	H5Fclose(f);
	return 0;
}

static void check_apart(void)
{
	char self[256] = "", cmd[512];

	CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	snprintf(cmd, sizeof cmd, "'%s' %s", self, path_of("all.h5"));
	CHECK_EQ_I(system(cmd), 0);
}

static void check_data(hid_t f, const char *name, uint32_t fill)
{
	hid_t d = H5Dopen2(f, name, H5P_DEFAULT);
	static uint32_t data[ROWS][COLUMNS];

	CHECK(H5Dread(d, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT,
		      data) >= 0);
	for (unsigned r = 0; r < ROWS; r++)
		for (unsigned c = 0; c < COLUMNS; c++)
			CHECK_EQ_U(data[r][c], is_absent(r / CROWS * GCOLUMNS +
							 c / CCOLUMNS)
						       ? fill
						       : r * 1000 + c);
	H5Dclose(d);
}

TEST(everything_is_there)
{
	static const uint64_t max[2] = {UINT64_MAX, COLUMNS};
	static const uint32_t fill = 77;
	struct build_dataset d = {.path = "a/b/data",
				  .type = H5T_STD_U32LE,
				  .rank = 2,
				  .shape = shape2,
				  .chunk = chunk2,
				  .max = max,
				  .fill = &fill,
				  .chunks = chunks};
	int fd = created("all.h5"), number = 5;
	unsigned n = 0;
	hid_t f, dset, space, a;

	CHECK_OK(build_new(&shared, fd, path_of("all.h5"), BUILD_FIRST, &err));
	put_all();
	for (unsigned i = 0; i < CHUNKS; i++) /* in reverse */
		if (!is_absent((unsigned)chunks[i].number))
			chunks[n++] = chunks[i];
	d.n_chunks = n;
	CHECK_OK(build_open(shared, &f, &err));
	CHECK_OK(build_dataset(shared, f, &d, &dset, &err));
	space = H5Screate(H5S_SCALAR);
	a = H5Acreate2(dset, "number", H5T_NATIVE_INT, space, H5P_DEFAULT,
		       H5P_DEFAULT);
	CHECK(H5Awrite(a, H5T_NATIVE_INT, &number) >= 0);
	H5Aclose(a);
	H5Sclose(space);
	add_strings(f); /* dset stays open: closing the file closes it */
	d.path = "same chunks";
	d.fill = NULL;
	CHECK_OK(build_dataset(shared, f, &d, &dset, &err));
	CHECK_OK(build_close(shared, f, &err));
	build_free(shared);
	close(fd);

	f = reopened("all.h5");
	check_data(f, "a/b/data", fill);
	check_data(f, "same chunks", 0);
	H5Fclose(f);
	check_whole("all.h5");
	check_apart();
}

/* ---- filters: stored bytes of another file, and what describes them ---- */

static void reference_file(void)
{
	const hsize_t shape[2] = {ROWS, COLUMNS}, cut[2] = {CROWS, CCOLUMNS};
	hid_t f = H5Fcreate(path_of("ref.h5"), H5F_ACC_TRUNC, H5P_DEFAULT,
			    H5P_DEFAULT);
	hid_t space = H5Screate_simple(2, shape, NULL);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), d;
	static uint32_t data[ROWS][COLUMNS];

	for (unsigned i = 0; i < ROWS * COLUMNS; i++)
		data[i / COLUMNS][i % COLUMNS] =
			i / COLUMNS * 1000 + i % COLUMNS;
	H5Pset_chunk(dcpl, 2, cut);
	H5Pset_shuffle(dcpl);
	H5Pset_deflate(dcpl, 6);
	H5Pset_fletcher32(dcpl);
	d = H5Dcreate2(f, "data", H5T_STD_U32LE, space, H5P_DEFAULT, dcpl,
		       H5P_DEFAULT);
	CHECK(H5Dwrite(d, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT,
		       data) >= 0);
	H5Dclose(d);
	H5Pclose(dcpl);
	H5Sclose(space);
	H5Fclose(f);
}

/* Copy all chunks of ref.h5, by way of the kernel. */
static unsigned copy_chunks(struct build *b)
{
	struct handles *h;
	struct hdf5_location at;
	int from = open(path_of("ref.h5"), O_RDONLY | O_CLOEXEC);
	unsigned n = 0;
	hid_t f, d;

	CHECK_OK(handles_new(&h, 4, 1, &err));
	CHECK_OK(hdf5_open(h, handles_add(h, path_of("ref.h5")), &f, &err));
	d = H5Dopen2(f, "data", H5P_DEFAULT);
	for (unsigned c = 0; c < CHUNKS; c++) {
		const hsize_t at_chunk[2] = {c / GCOLUMNS * CROWS,
					     c % GCOLUMNS * CCOLUMNS};

		CHECK_OK(hdf5_locate(d, at_chunk, &at, &err));
		if (is_absent(c))
			continue;
		chunks[n] = (struct build_chunk){.number = c,
						 .len = (uint32_t)at.stored,
						 .mask = at.mask};
		CHECK_OK(build_copy(b, from, at.pos, at.stored, &chunks[n].pos,
				    &err));
		n++;
	}
	CHECK_EQ_I(build_copy(b, from, at.pos, 1 << 20, &chunks[n].pos, &err),
		   -ENODATA);
	H5Fclose(f);
	handles_free(h);
	close(from);
	return n;
}

static void check_filter(hid_t dcpl, unsigned i, H5Z_filter_t id,
			 unsigned flags, size_t n, const unsigned *cd)
{
	unsigned got_cd[32], got_flags;
	size_t got_n = 32;

	CHECK_EQ_I(H5Pget_filter2(dcpl, i, &got_flags, &got_n, got_cd, 0, NULL,
				  NULL),
		   id);
	CHECK_EQ_U(got_flags, flags);
	CHECK_EQ_U(got_n, n);
	CHECK_MEM(got_cd, cd, n * sizeof *cd);
}

TEST(stored_bytes_stay)
{
	static struct pipeline p;
	struct build_dataset d = {.path = "data",
				  .type = H5T_STD_U32LE,
				  .rank = 2,
				  .shape = shape2,
				  .chunk = chunk2,
				  .pipeline = &p,
				  .chunks = chunks};
	const uint32_t four = 4, six = 6;
	int fd = created("copy.h5");
	hid_t f, dset, dcpl;
	struct build *b;

	reference_file();
	CHECK_OK(pipeline_add(&p, 2, NULL, &four, 1, 4, &err));
	CHECK_OK(pipeline_add(&p, 1, NULL, &six, 1, 4, &err));
	CHECK_OK(pipeline_add(&p, 3, NULL, NULL, 0, 4, &err));
	CHECK_OK(build_new(&b, fd, path_of("copy.h5"), BUILD_FIRST, &err));
	d.n_chunks = copy_chunks(b);
	CHECK_OK(build_open(b, &f, &err));
	CHECK_OK(build_dataset(b, f, &d, &dset, &err));
	dcpl = H5Dget_create_plist(dset);
	check_filter(dcpl, 0, 2, H5Z_FLAG_OPTIONAL, 1, &four);
	check_filter(dcpl, 1, 1, H5Z_FLAG_OPTIONAL, 1, &six);
	check_filter(dcpl, 2, 3, H5Z_FLAG_MANDATORY, 0, NULL);
	H5Pclose(dcpl);
	CHECK_OK(build_close(b, f, &err));
	build_free(b);
	close(fd);
	f = reopened("copy.h5");
	check_data(f, "data", 0);
	H5Fclose(f);
	check_whole("copy.h5");
}

/* Filters that this libhdf5 cannot apply are described all the same. */
TEST(any_filter)
{
	static struct pipeline p;
	static const uint32_t lzf[3] = {4, 261, CROWS * CCOLUMNS * 4};
	static const uint32_t other[5] = {9, 8, 7, 6, 5};
	struct build_chunk one = {.number = 12, .len = 5, .mask = 0};
	struct build_dataset d = {.path = "data",
				  .type = H5T_STD_U32LE,
				  .rank = 2,
				  .shape = shape2,
				  .chunk = chunk2,
				  .pipeline = &p,
				  .chunks = &one,
				  .n_chunks = 1};
	int fd = created("any.h5");
	hid_t f, dset, dcpl;
	struct build *b;

	CHECK_OK(pipeline_add(&p, 32000, NULL, lzf, 3, 4, &err));
	CHECK_OK(pipeline_add(&p, 32026, NULL, other, 5, 4, &err));
	CHECK_OK(pipeline_add(&p, 40000, NULL, NULL, 0, 4, &err));
	CHECK_OK(build_new(&b, fd, path_of("any.h5"), BUILD_FIRST, &err));
	CHECK_OK(build_put(b, "bytes", 5, &one.pos, &err));
	CHECK_OK(build_open(b, &f, &err));
	CHECK_OK(build_dataset(b, f, &d, &dset, &err));
	CHECK_OK(build_close(b, f, &err));
	build_free(b);
	close(fd);
	f = reopened("any.h5");
	dset = H5Dopen2(f, "data", H5P_DEFAULT);
	dcpl = H5Dget_create_plist(dset);
	check_filter(dcpl, 0, 32000, H5Z_FLAG_OPTIONAL, 3, lzf);
	check_filter(dcpl, 1, 32026, H5Z_FLAG_OPTIONAL, 5, other);
	check_filter(dcpl, 2, 40000, H5Z_FLAG_OPTIONAL, 0, NULL);
	H5Pclose(dcpl);
	CHECK_EQ_U(H5Dget_storage_size(dset), 5);
	H5Fclose(f);
	check_whole("any.h5");
}

/* ---- what is in front, and what stops it ---- */

TEST(user_block)
{
	const uint64_t shape = 3;
	const unsigned char text[4] = "text";
	unsigned char data[3] = {7, 8, 9}, back[4];
	struct build_chunk one = {.len = 3};
	struct build_dataset d = {.path = "data",
				  .type = H5T_STD_U8LE,
				  .rank = 1,
				  .shape = &shape,
				  .chunk = &shape,
				  .chunks = &one,
				  .n_chunks = 1};

	for (uint64_t n = 512; n <= 16384; n *= 2) {
		int fd = created("block.h5");
		hid_t f, dset, fcpl = H5Pcreate(H5P_FILE_CREATE);
		struct build *b;
		hsize_t is;

		CHECK_OK(build_new(&b, fd, path_of("block.h5"), BUILD_FIRST,
				   &err));
		build_user_block(b, n);
		CHECK_OK(build_put_at(b, text, 4, n - 4, &err));
		CHECK_OK(build_put(b, data, 3, &one.pos, &err));
		CHECK(one.pos >= n + 96); /* behind the superblock */
		CHECK(H5Pset_userblock(fcpl, n) >= 0);
		CHECK_OK(build_open_with(b, fcpl, &f, &err));
		CHECK_OK(build_dataset(b, f, &d, &dset, &err));
		CHECK_OK(build_close(b, f, &err));
		build_free(b);
		CHECK_EQ_I(pread(fd, back, 4, (off_t)n - 4), 4);
		CHECK(!memcmp(back, text, 4));
		close(fd);
		H5Pclose(fcpl);
		f = reopened("block.h5");
		fcpl = H5Fget_create_plist(f);
		CHECK(H5Pget_userblock(fcpl, &is) >= 0);
		CHECK_EQ_U(is, n);
		H5Pclose(fcpl);
		dset = H5Dopen2(f, "data", H5P_DEFAULT);
		CHECK(H5Dread(dset, H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL,
			      H5P_DEFAULT, back) >= 0);
		CHECK(!memcmp(back, data, 3));
		H5Dclose(dset);
		H5Fclose(f);
		check_whole("block.h5");
	}
}

TEST(stopped)
{
	_Atomic int stop = 0;
	int fd = created("stop.h5");
	struct build *b;
	hid_t f;

	CHECK_OK(build_new(&b, fd, path_of("stop.h5"), BUILD_FIRST, &err));
	CHECK_OK(build_open(b, &f, &err));
	build_stop(b, &stop);
	stop = SIGTERM;
	CHECK_EQ_I(build_close(b, f, &err), -EINTR);
	CHECK(strstr(err.text, "interrupted"));
	build_free(b);
	close(fd);
}

/* ---- sizes ---- */

TEST(many_chunks)
{
	enum { N = 100000 };
	struct build_chunk *list = calloc(N, sizeof *list);
	const uint64_t shape = N, chunk = 1;
	struct build_dataset d = {.path = "data",
				  .type = H5T_STD_U64LE,
				  .rank = 1,
				  .shape = &shape,
				  .chunk = &chunk,
				  .chunks = list,
				  .n_chunks = N};
	uint64_t *data = malloc(N * sizeof *data);
	int fd = created("many.h5");
	hid_t f, dset;
	struct build *b;

	CHECK_OK(build_new(&b, fd, path_of("many.h5"), BUILD_FIRST, &err));
	for (uint64_t i = 0; i < N; i++) {
		list[i] = (struct build_chunk){.number = N - 1 - i, .len = 8};
		CHECK_OK(build_put(b, &list[i].number, 8, &list[i].pos, &err));
	}
	CHECK_EQ_U(build_end(b), BUILD_FIRST + N * 8);
	CHECK_OK(build_open(b, &f, &err));
	CHECK_OK(build_dataset(b, f, &d, &dset, &err));
	CHECK_OK(build_close(b, f, &err));
	build_free(b);
	close(fd);
	f = reopened("many.h5");
	dset = H5Dopen2(f, "data", H5P_DEFAULT);
	CHECK(H5Dread(dset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT,
		      data) >= 0);
	for (uint64_t i = 0; i < N; i++)
		CHECK_EQ_U(data[i], i);
	H5Fclose(f);
	check_whole("many.h5");
	free(data);
	free(list);
}

TEST(nothing_in_it)
{
	const uint64_t shape[2] = {0, 5}, chunk[2] = {1, 5};
	struct build_dataset d = {.path = "empty",
				  .type = H5T_STD_U8LE,
				  .rank = 2,
				  .shape = shape,
				  .chunk = chunk};
	int fd = created("none.h5");
	hid_t f, dset;
	struct build *b;

	CHECK_OK(ftruncate(fd, 1 << 20)); /* garbage of an earlier attempt */
	CHECK_OK(build_new(&b, fd, path_of("none.h5"), BUILD_FIRST, &err));
	CHECK_OK(build_open(b, &f, &err));
	CHECK_OK(build_dataset(b, f, &d, &dset, &err));
	d.path = "unwritten";
	d.shape = d.chunk = shape2;
	CHECK_OK(build_dataset(b, f, &d, &dset, &err));
	CHECK_OK(build_close(b, f, &err));
	build_free(b);
	close(fd);
	check_whole("none.h5");
}

/* ---- what is refused, and what goes wrong ---- */

TEST(bad_chunks)
{
	static const struct build_chunk bad[][2] = {
		{{0, BUILD_FIRST, 4, 0}, {0, BUILD_FIRST + 4, 4, 0}},
		{{CHUNKS, BUILD_FIRST, 4, 0}, {0, BUILD_FIRST, 4, 0}},
		{{0, BUILD_FIRST - 1, 4, 0}, {1, BUILD_FIRST, 4, 0}},
		{{0, BUILD_FIRST + 97, 8, 0}, {1, BUILD_FIRST, 4, 0}},
		{{0, UINT64_MAX - 1, 4, 0}, {1, BUILD_FIRST, 4, 0}},
		{{0, BUILD_FIRST, 0, 0}, {1, BUILD_FIRST, 4, 0}},
	};
	struct build_dataset d = {.type = H5T_STD_U32LE,
				  .rank = 2,
				  .shape = shape2,
				  .chunk = chunk2,
				  .n_chunks = 2};
	const char zeros[100] = "";
	int fd = created("bad.h5");
	hid_t f, dset;
	struct build *b;
	uint64_t pos;

	CHECK_EQ_I(build_new(&b, fd, path_of("bad.h5"), 4095, &err), -EINVAL);
	CHECK_OK(build_new(&b, fd, path_of("bad.h5"), BUILD_FIRST, &err));
	CHECK_OK(build_put(b, zeros, sizeof zeros, &pos, &err));
	CHECK_OK(build_open(b, &f, &err));
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct build_chunk two[2] = {bad[i][0], bad[i][1]};
		char name[8];

		snprintf(name, sizeof name, "d%u", i);
		d.path = name;
		d.chunks = two;
		CHECK_EQ_I(build_dataset(b, f, &d, &dset, &err), -EINVAL);
	}
	build_free(b); /* without build_close */
	H5Fclose(f);
	close(fd);
}

/* A disk that is full when the library writes: said at the end at the latest. */
static void full_after(rlim_t bytes)
{
	struct build_chunk one = {.number = 0};
	struct build_dataset d = {.path = "data",
				  .type = H5T_STD_U32LE,
				  .rank = 2,
				  .shape = shape2,
				  .chunk = chunk2,
				  .chunks = &one,
				  .n_chunks = 1};
	const char zeros[100] = "";
	struct rlimit was, now;
	int fd = created("full.h5"), r;
	hid_t f, dset;
	struct build *b;

	getrlimit(RLIMIT_FSIZE, &was);
	now = (struct rlimit){bytes, was.rlim_max};
	CHECK_OK(build_new(&b, fd, path_of("full.h5"), BUILD_FIRST, &err));
	CHECK_OK(build_put(b, zeros, one.len = 100, &one.pos, &err));
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &now));
	r = build_open(b, &f, &err);
	if (r == 0) {
		r = build_dataset(b, f, &d, &dset, &err);
		r = build_close(b, f, &err) ? err.code : r;
	}
	CHECK_OK(setrlimit(RLIMIT_FSIZE, &was));
	CHECK_EQ_I(r, -EFBIG);
	CHECK(strstr(err.text, "cannot write"));
	build_free(b);
	close(fd);
}

TEST(disk_full)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, was;

	sigaction(SIGXFSZ, &ignore, &was);
	for (rlim_t n = 0; n < 600; n += 50)
		full_after(BUILD_FIRST + n);
	sigaction(SIGXFSZ, &was, NULL);
}

int main(int argc, char **argv)
{
	char cmd[64];

	if (argc == 2)
		return strings_main(argv[1]);
	CHECK(mkdtemp(dir));
	CHECK_OK(hdf5_init(&err));
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	RUN(everything_is_there);
	RUN(stored_bytes_stay);
	RUN(any_filter);
	RUN(user_block);
	RUN(stopped);
	RUN(many_chunks);
	RUN(nothing_in_it);
	RUN(bad_chunks);
	RUN(disk_full);
	snprintf(cmd, sizeof cmd, "rm -r %s", dir);
	CHECK_OK(system(cmd));
	return test_done();
}
