/* SPDX-License-Identifier: BSD-2-Clause */
/* Listing what a sparse grid has: every index, in windows, and damaged. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/hdf5/chunk/chunk.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/file/index.h"

static char dir[] = "/tmp/source-index-XXXXXX";
static struct hdf5_source source;
static struct error err;
static unsigned files;

/* ---- files --------------------------------------------------------------- */

enum filters { PLAIN, DEFLATE };
struct shape {
	const char *name;
	H5F_libver_t format;
	H5D_chunk_index_t index;
	unsigned rank;
	hsize_t now[3], max[3], chunk[3];
	enum filters filters;
	unsigned addr, k; /* bytes of an address; half of a node's entries */
	unsigned chunks;
	bool early;
};
#define INF H5S_UNLIMITED
#define OLD H5F_LIBVER_EARLIEST
#define NEW H5F_LIBVER_LATEST
#define FA H5D_CHUNK_IDX_FARRAY
#define EA H5D_CHUNK_IDX_EARRAY
#define B1 H5D_CHUNK_IDX_BTREE
#define B2 H5D_CHUNK_IDX_BT2
static const struct shape shapes[] = {
	{"v1",
	 OLD,
	 B1,
	 2,
	 {900, 700},
	 {900, 700},
	 {3, 2},
	 DEFLATE,
	 8,
	 0,
	 90,
	 0},
	{"v1 deep",
	 OLD,
	 B1,
	 2,
	 {999, 701},
	 {INF, INF},
	 {3, 2},
	 PLAIN,
	 8,
	 2,
	 90,
	 0},
	{"v1 short",
	 OLD,
	 B1,
	 3,
	 {99, 70, 5},
	 {INF, 70, 5},
	 {1, 2, 5},
	 PLAIN,
	 4,
	 3,
	 50,
	 0},
	{"v1 line", OLD, B1, 1, {1 << 20}, {1 << 20}, {1}, PLAIN, 8, 0, 400, 0},
	{"v1 vast",
	 OLD,
	 B1,
	 2,
	 {UINT64_C(1) << 38, 4},
	 {INF, 4},
	 {1, 4},
	 PLAIN,
	 8,
	 0,
	 99,
	 0},
	{"v1 none",
	 OLD,
	 B1,
	 2,
	 {1000, 1000},
	 {1000, 1000},
	 {2, 2},
	 PLAIN,
	 8,
	 0,
	 0,
	 0},
	{"v2",
	 NEW,
	 B2,
	 2,
	 {900, 700},
	 {INF, INF},
	 {3, 2},
	 DEFLATE,
	 8,
	 0,
	 900,
	 0},
	{"v2 plain",
	 NEW,
	 B2,
	 3,
	 {99, 70, 50},
	 {INF, INF, 60},
	 {1, 2, 5},
	 PLAIN,
	 8,
	 0,
	 800,
	 0},
	{"v2 vast",
	 NEW,
	 B2,
	 2,
	 {UINT64_C(1) << 38, 4},
	 {INF, INF},
	 {1, 4},
	 PLAIN,
	 8,
	 0,
	 99,
	 0},
	{"fixed", NEW, FA, 2, {90, 70}, {90, 70}, {3, 2}, PLAIN, 8, 0, 50, 0},
	{"fixed, of more",
	 NEW,
	 FA,
	 2,
	 {90, 70},
	 {99, 91},
	 {3, 2},
	 DEFLATE,
	 8,
	 0,
	 50,
	 0},
	{"fixed, pages",
	 NEW,
	 FA,
	 2,
	 {900, 700},
	 {901, 705},
	 {3, 2},
	 PLAIN,
	 8,
	 0,
	 90,
	 0},
	{"fixed, filtered",
	 NEW,
	 FA,
	 2,
	 {900, 701},
	 {900, 701},
	 {3, 2},
	 DEFLATE,
	 8,
	 0,
	 90,
	 0},
	{"fixed, short",
	 NEW,
	 FA,
	 2,
	 {900, 701},
	 {900, 701},
	 {3, 2},
	 PLAIN,
	 4,
	 0,
	 90,
	 0},
	{"extensible",
	 NEW,
	 EA,
	 2,
	 {90, 70},
	 {INF, 70},
	 {3, 2},
	 PLAIN,
	 8,
	 0,
	 50,
	 0},
	{"extensible, 2nd",
	 NEW,
	 EA,
	 2,
	 {90, 70},
	 {99, INF},
	 {3, 2},
	 DEFLATE,
	 8,
	 0,
	 50,
	 0},
	{"extensible, pages",
	 NEW,
	 EA,
	 2,
	 {3000, 700},
	 {INF, 720},
	 {3, 2},
	 PLAIN,
	 8,
	 3,
	 90,
	 0},
	{"extensible, filtered",
	 NEW,
	 EA,
	 3,
	 {30, 700, 70},
	 {33, INF, 80},
	 {3, 2, 5},
	 DEFLATE,
	 8,
	 0,
	 90,
	 0},
	{"extensible, short",
	 NEW,
	 EA,
	 2,
	 {3000, 700},
	 {3000, INF},
	 {3, 2},
	 DEFLATE,
	 4,
	 3,
	 90,
	 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void grid_of(const struct shape *s, struct grid *g)
{
	CHECK_OK(grid_init(g, s->rank, (const uint64_t *)s->now,
			   (const uint64_t *)s->chunk, 1));
}

/* Chunk i of those that are written: the first, the last, some between. */
static uint64_t chunk_at(const struct shape *s, const struct grid *g,
			 unsigned i)
{
	uint64_t step = g->count / s->chunks;

	return i + 1 == s->chunks ? g->count - 1 : i * step + i * i % step;
}

static hid_t created(const struct shape *s, const char *path)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), f;

	H5Pset_libver_bounds(fapl, s->format, H5F_LIBVER_LATEST);
	H5Pset_sizes(fcpl, s->addr, 8); /* libhdf5 cannot do lengths of 4 */
	H5Pset_userblock(fcpl, s->k ? 512 : 0);
	if (s->k)
		H5Pset_istore_k(fcpl, s->k);
	f = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
	CHECK(f >= 0);
	H5Pclose(fcpl);
	H5Pclose(fapl);
	return f;
}

static void write_file(const struct shape *s, const char *path)
{
	static const char bytes[64];
	hid_t f = created(s, path), dset, dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t space = H5Screate_simple((int)s->rank, s->now, s->max);
	H5D_chunk_index_t index;
	struct grid g;

	H5Pset_chunk(dcpl, (int)s->rank, s->chunk);
	if (s->early)
		H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
	if (s->filters)
		H5Pset_deflate(dcpl, 1);
	dset = H5Dcreate2(f, "d", H5T_STD_U8LE, space, H5P_DEFAULT, dcpl,
			  H5P_DEFAULT);
	CHECK(dset >= 0);
	grid_of(s, &g);
	for (unsigned i = 0; i < s->chunks; i++) {
		uint64_t at[RANK_MAX];

		grid_origin(&g, chunk_at(s, &g, i), at);
		CHECK(H5Dwrite_chunk(dset, H5P_DEFAULT, 0, (hsize_t *)at,
				     s->filters ? 20 + i % 9 : g.chunk_bytes,
				     bytes) >= 0);
	}
	H5Dclose(dset);
	dset = H5Dopen2(f, "d", H5P_DEFAULT);
	CHECK(H5Dget_chunk_index_type(dset, &index) >= 0);
	CHECK_EQ_I(index, s->index);
	H5Dclose(dset);
	H5Pclose(dcpl);
	H5Sclose(space);
	CHECK(H5Fclose(f) >= 0);
}

/* A file of its own for each, as handles remember what they saw. */
static struct hdf5_place new_file(char *path, size_t n)
{
	struct hdf5_place at = {&source, 0, "d"};

	snprintf(path, n, "%s/%u.h5", dir, files++);
	at.file = handles_add(source.handles, path);
	return at;
}

/* ---- what is listed ------------------------------------------------------ */

static void check_window(const struct shape *s, const struct hdf5_place *at,
			 uint64_t first, uint32_t room)
{
	static struct written out[1024];
	uint64_t from = first, count;
	struct grid g;
	unsigned i = 0;
	uint32_t n;

	grid_of(s, &g);
	while (i < s->chunks && chunk_at(s, &g, i) < first)
		i++;
	while (from != UINT64_MAX) {
		if (hdf5_list_here(at, &g, &from, out, room, &n, &count, &err))
			test_fail(__FILE__, __LINE__, "%s", err.text);
		CHECK_EQ_U(count, s->chunks);
		CHECK(n <= room);
		for (uint32_t k = 0; k < n; k++, i++) {
			struct location is;
			uint64_t written = count + 1;

			CHECK(i < s->chunks);
			CHECK_EQ_U(out[k].chunk, chunk_at(s, &g, i));
			CHECK_OK(hdf5_locate_here(at, &g, out[k].chunk, 1,
						  &written, &is, &err));
			CHECK_MEM(&is, &out[k].at, sizeof is);
		}
	}
	CHECK_EQ_U(i, s->chunks);
}

TEST(every_index)
{
	for (unsigned i = 0; i < SHAPES; i++) {
		const struct shape *s = &shapes[i];
		char path[64];
		struct hdf5_place at = new_file(path, sizeof path);
		struct grid g;

		test_name = s->name;
		grid_of(s, &g);
		write_file(s, path);
		check_window(s, &at, 0, 1024);
		check_window(s, &at, g.count / 3, 1024);
		check_window(s, &at, g.count - 1, 1024);
		check_window(s, &at, 0, 40);
		check_window(s, &at, g.count - g.count / 50, 1);
	}
}

TEST(not_for_a_dense_grid)
{
	static const struct shape dense = {"dense", OLD,   B1, 1, {64}, {64},
					   {1},     PLAIN, 8,  0, 16,   0};
	struct written out[64];
	uint64_t from = 0, count;
	struct hdf5_place at;
	struct grid g;
	char path[64];
	uint32_t n;

	at = new_file(path, sizeof path);
	write_file(&dense, path);
	grid_of(&dense, &g);
	CHECK_EQ_I(hdf5_list_here(&at, &g, &from, out, 64, &n, &count, &err),
		   -ENOTSUP);
	CHECK_EQ_U(count, 16);
}

TEST(all_at_once_are_a_row)
{
	static const struct shape row = {"row",  NEW,      H5D_CHUNK_IDX_NONE,
					 2,      {90, 70}, {90, 70},
					 {3, 7}, PLAIN,    8,
					 0,      2,        true};
	struct written out[4];
	uint64_t from = 0, count, written = 0;
	struct location last;
	struct hdf5_place at;
	struct grid g;
	char path[64];
	uint32_t n;

	at = new_file(path, sizeof path);
	write_file(&row, path);
	grid_of(&row, &g);
	CHECK_EQ_I(hdf5_list_here(&at, &g, &from, out, 4, &n, &count, &err), 1);
	CHECK_EQ_U(count, g.count);
	CHECK_EQ_U(out[0].at.stored, 21);
	CHECK_OK(hdf5_locate_here(&at, &g, g.count - 1, 1, &written, &last,
				  &err));
	CHECK_EQ_U(last.pos, out[0].at.pos + 21 * (g.count - 1));
}

/* ---- damage -------------------------------------------------------------- */

static size_t read_all(const char *path, unsigned char *bytes, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, bytes, room);

	CHECK(n > 0 && (size_t)n < room);
	close(fd);
	return (size_t)n;
}

static void write_all(const char *path, const unsigned char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK_EQ_I(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

/* Whatever the file says: what is listed is what is found, and all of it. */
static bool check_damaged(const struct shape *s, const unsigned char *bytes,
			  size_t size)
{
	static struct written out[1024];
	static struct location found[1 << 14];
	char path[64];
	struct hdf5_place at = new_file(path, sizeof path);
	uint64_t from = 0, count, written = 0;
	struct grid g;
	uint32_t n, k = 0;
	int r;

	grid_of(s, &g);
	CHECK(g.count <= 1 << 14);
	write_all(path, bytes, size);
	r = hdf5_list_here(&at, &g, &from, out, 1024, &n, &count, &err);
	if (!r && !hdf5_locate_here(&at, &g, 0, (uint32_t)g.count, &written,
				    found, &err))
		for (uint64_t i = 0; i < g.count; i++) {
			if (found[i].pos == UINT64_MAX)
				continue;
			CHECK(k < n);
			CHECK_EQ_U(out[k].chunk, i);
			CHECK_MEM(&out[k++].at, &found[i], sizeof found[i]);
		}
	unlink(path);
	return r < 0;
}

/* One byte of an index's nodes at a time.  (Not of pointers from node to node:
 * libhdf5 goes round in circles.) */
static void damage(const struct shape *s, const char *magic, size_t begin,
		   size_t end, size_t period, size_t skip)
{
	static unsigned char bytes[1 << 20];
	unsigned refused = 0, tried = 0, step = 1;
	char path[64];
	size_t n;

	if (!test_full() && end - begin > 60)
		step = 4;
	new_file(path, sizeof path);
	write_file(s, path);
	n = read_all(path, bytes, sizeof bytes);
	for (size_t i = 0; i + end < n; i++) {
		if (memcmp(bytes + i, magic, 4))
			continue;
		for (size_t k = begin; k < end; k += step + k % 3) {
			if (period && (k - begin) % period >= skip)
				continue;
			bytes[i + k] ^= k & 1 ? 0x81 : 0x04;
			refused += check_damaged(s, bytes, n);
			tried++;
			bytes[i + k] ^= k & 1 ? 0x81 : 0x04;
		}
		i += end - 1;
	}
	CHECK(tried > 5);
	CHECK(refused > tried / 4);
}

TEST(damaged_keys_are_no_list)
{
	static const struct shape s = {"damaged v1", OLD,    B1,    2, {90, 70},
				       {90, 70},     {3, 2}, PLAIN, 8, 2,
				       30,           0};

	/* Siblings, then 4 pairs of key (8 + 3 * 8 bytes) and pointer. */
	damage(&s, "TREE", 24, 24 + 4 * 40, 40, 32);
}

TEST(damaged_nodes_are_no_list)
{
	static const struct shape s[] = {
		{"damaged v2",
		 NEW,
		 B2,
		 2,
		 {90, 70},
		 {INF, INF},
		 {3, 2},
		 PLAIN,
		 8,
		 0,
		 30,
		 0},
		{"damaged array",
		 NEW,
		 EA,
		 2,
		 {90, 70},
		 {INF, 70},
		 {3, 2},
		 PLAIN,
		 8,
		 0,
		 30,
		 0},
		{"damaged fixed",
		 NEW,
		 FA,
		 2,
		 {90, 70},
		 {90, 70},
		 {3, 2},
		 PLAIN,
		 8,
		 0,
		 30,
		 0},
	};

	damage(&s[0], "BTLF", 4, 300, 0, 0);
	damage(&s[0], "BTHD", 4, 38, 0, 0);
	damage(&s[1], "EADB", 4, 100, 0, 0);
	damage(&s[1], "EAHD", 4, 70, 0, 0);
	damage(&s[2], "FADB", 4, 300, 0, 0);
	damage(&s[2], "FAHD", 4, 26, 0, 0);
}

/* Anything at all may be shown to the watcher. */
TEST(any_bytes)
{
	static const char magic[][5] = {"TREE", "BTHD", "BTLF", "BTIN",
					"FAHD", "EAHD", "EAIB", "EASB",
					"EADB", "FADB", "none"};
	unsigned seed = 5;

	for (unsigned round = 0; round < test_rounds(20000); round++) {
		struct hdf5_index x = {.rank = 1 + round % 3,
				       .addr_size = round & 8 ? 8 : 4,
				       .len_size = 8,
				       .room = 1 + round % 50};
		const uint64_t shape[3] = {50, 60, 70}, chunk[3] = {5, 6, 7};
		struct grid g;

		CHECK_OK(grid_init(&g, x.rank, shape, chunk, 1));
		x.g = &g;
		for (unsigned i = 0; i < x.rank; i++)
			x.max[i] = round % 5 == i ? INF : shape[i] + i;
		hdf5_index_begin(&x);
		for (unsigned k = 0; k < 8; k++) {
			size_t n = (size_t)rand_r(&seed) % 400;
			unsigned char *p = malloc(n ? n : 1);

			for (size_t i = 0; i < n; i++)
				p[i] = rand_r(&seed) % 3
					       ? (unsigned char)(rand_r(&seed) %
								 12)
					       : (unsigned char)rand_r(&seed);
			if (n >= 4)
				memcpy(p, magic[(unsigned)rand_r(&seed) % 11],
				       4);
			CHECK_EQ_I(
				hdf5_index_saw((uint64_t)rand_r(&seed), p, n),
				0);
			free(p);
		}
		hdf5_index_end(&x);
		CHECK(x.chunks.n <= x.room);
		for (size_t i = 0; i < x.chunks.n; i++)
			CHECK(x.chunks.at[i] < g.count &&
			      (!i || x.chunks.at[i] > x.chunks.at[i - 1]));
		vec_free(&x.chunks);
	}
}

int main(void)
{
	char command[80];

	CHECK(mkdtemp(dir) != NULL);
	CHECK_OK(hdf5_init(&err));
	if (!hdf5_driver_ok())
		return test_skip("libhdf5 that tells where chunks are");
	CHECK_OK(handles_new(&source.handles, 4, 1, &err));
	RUN(every_index);
	RUN(not_for_a_dense_grid);
	RUN(all_at_once_are_a_row);
	RUN(damaged_keys_are_no_list);
	RUN(damaged_nodes_are_no_list);
	RUN(any_bytes);
	handles_free(source.handles);
	snprintf(command, sizeof command, "rm -r %s", dir);
	CHECK_EQ_I(system(command), 0);
	return test_done();
}
