/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of variable length: small addresses, sequences in sequences, damage. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "formats/hdf5/dataset/description.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/value/value.h"

static char path[] = "/tmp/source-heap-XXXXXX";
static struct hdf5_source source;
static struct error err;

/* ---- files --------------------------------------------------------------- */

static void write_data(hid_t f, const char *name, hid_t type, hsize_t n,
		       const void *data)
{
	hid_t s = H5Screate_simple(1, &n, NULL);
	hid_t d = H5Dcreate2(f, name, type, s, H5P_DEFAULT, H5P_DEFAULT,
			     H5P_DEFAULT);

	CHECK(d >= 0);
	CHECK(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	H5Dclose(d);
	H5Sclose(s);
}

static void write_attribute(hid_t f, hid_t type, hsize_t n, const void *data)
{
	hid_t s = H5Screate_simple(1, &n, NULL);
	hid_t a = H5Acreate2(f, "names", type, s, H5P_DEFAULT, H5P_DEFAULT);

	CHECK(H5Awrite(a, type, data) >= 0);
	H5Aclose(a);
	H5Sclose(s);
}

struct pair {
	int16_t n;
	char *text;
};

/* Addresses and lengths of `width` bytes, behind `before` bytes. */
static void make_file(size_t width, hsize_t before)
{
	static int32_t a[] = {1, 2, 3}, b[] = {-4};
	static char *words[4] = {(char *)"first", (char *)"", NULL,
				 (char *)"the fourth"};
	hvl_t rows[3] = {{3, a}, {0, NULL}, {1, b}};
	hvl_t inner[2] = {{2, &words[0]}, {1, &words[3]}};
	hvl_t outer[2] = {{2, inner}, {0, NULL}};
	struct pair pairs[2] = {{7, (char *)"seven"}, {8, NULL}};
	hvl_t many[1] = {{2, pairs}};
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), f;
	hid_t text = H5Tcopy(H5T_C_S1), row = H5Tvlen_create(H5T_NATIVE_INT32);
	hid_t big = H5Tvlen_create(H5T_STD_I64BE), lists, pair, tables;

	H5Tset_size(text, H5T_VARIABLE);
	lists = H5Tvlen_create(text);
	tables = H5Tvlen_create(lists);
	pair = H5Tcreate(H5T_COMPOUND, sizeof(struct pair));
	H5Tinsert(pair, "n", HOFFSET(struct pair, n), H5T_NATIVE_INT16);
	H5Tinsert(pair, "text", HOFFSET(struct pair, text), text);
	CHECK(H5Pset_sizes(fcpl, width, width) >= 0);
	CHECK(H5Pset_userblock(fcpl, before) >= 0);
	f = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);
	CHECK(f >= 0);
	write_data(f, "words", text, 4, words);
	write_data(f, "rows", row, 3, rows);
	write_data(f, "big", big, 0, rows);
	write_data(f, "tables", tables, 2, outer);
	write_attribute(f, text, 4, words);
	H5Tclose(tables);
	tables = H5Tvlen_create(pair);
	write_data(f, "pairs", tables, 1, many);
	H5Tclose(text);
	H5Tclose(row);
	H5Tclose(big);
	H5Tclose(lists);
	H5Tclose(pair);
	H5Tclose(tables);
	H5Pclose(fcpl);
	CHECK(H5Fclose(f) >= 0);
}

static void open_source(size_t width, hsize_t before)
{
	hdf5_lock();
	make_file(width, before);
	hdf5_unlock();
	CHECK_OK(handles_new(&source.handles, 4, 1, &err));
	source.file = handles_add(source.handles, path);
}

/* ---- values -------------------------------------------------------------- */

static void take(void *ctx, const char *s, size_t len)
{
	fwrite(s, 1, len, ctx);
	fputc('|', ctx);
}

/* All values, each with '|' behind it; NULL when they cannot be read. */
static char *values(const char *object, uint64_t first, uint64_t n, size_t *len)
{
	struct hdf5_place at = {&source, source.file, object};
	struct box b = {.start = {first}, .count = {n}};
	struct hdf5_description d;
	char *text = NULL;
	FILE *f = open_memstream(&text, len);
	int r;

	err.code = 0;
	CHECK_OK(hdf5_describe_here(&at, NULL, &d, &err));
	r = hdf5_values_here(&at, &b, 1, &d.type.served, NULL, take, f, &err);
	hdf5_description_free(&d);
	fclose(f);
	if (r == 0)
		return text;
	CHECK_EQ_I(r, err.code);
	free(text);
	return NULL;
}

static void check(const char *object, uint64_t first, uint64_t n,
		  const char *want, size_t len)
{
	size_t have = 0;
	cleanup_free char *got = values(object, first, n, &have);

	if (!got)
		test_fail(__FILE__, __LINE__, "%s: %s", object, err.text);
	CHECK_EQ_U(have, len);
	CHECK_MEM(got, want, len);
}
#define CHECK_TEXT(object, first, n, want) \
	check(object, first, n, want, sizeof(want) - 1)

static void check_fails(const char *object, uint64_t first, uint64_t n,
			const char *sentence)
{
	size_t len = 0;
	cleanup_free char *got = values(object, first, n, &len);

	CHECK(!got);
	CHECK_EQ_I(err.code, -EBADMSG);
	if (!strstr(err.text, sentence))
		test_fail(__FILE__, __LINE__, "\"%s\" has no \"%s\"", err.text,
			  sentence);
}

static void check_all(void)
{
	struct hdf5_place at = {&source, source.file, "/"};
	cleanup_free char *attributes = NULL;

	CHECK_TEXT("/words", 0, 4, "first|||the fourth|");
	CHECK_TEXT("/rows", 0, 3,
		   "\1\0\0\0\2\0\0\0\3\0\0\0||\xfc\xff\xff\xff|");
	CHECK_TEXT("/tables", 0, 2, "[[\"first\",\"\"],[\"the fourth\"]]|[]|");
	CHECK_TEXT("/pairs", 0, 1,
		   "[{\"n\":7,\"text\":\"seven\"},{\"n\":8,\"text\":\"\"}]|");
	attributes = hdf5_attributes_here(&at, &err);
	CHECK_STR(attributes,
		  "{\"names\":[\"first\",\"\",\"\",\"the fourth\"]}");
}

TEST(every_width)
{
	static const struct {
		size_t width;
		hsize_t before;
	} files[] = {{8, 0}, {4, 0}, {2, 0}, {8, 512}, {4, 2048}};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		open_source(files[i].width, files[i].before);
		check_all();
		handles_free(source.handles);
	}
}

/* ---- damage -------------------------------------------------------------- */

static unsigned char image[1 << 16];
static size_t image_size;

static void load(void)
{
	FILE *f = fopen(path, "rb");

	CHECK(f);
	image_size = fread(image, 1, sizeof image, f);
	fclose(f);
	CHECK(image_size > 0 && image_size < sizeof image);
}

static size_t find(const char *bytes)
{
	size_t len = strlen(bytes);

	for (size_t i = 0; i + len <= image_size; i++)
		if (!memcmp(image + i, bytes, len))
			return i;
	test_fail(__FILE__, __LINE__, "not in the file");
}

/* Where the elements of a dataset are. */
static size_t elements(const char *object)
{
	struct hdf5_place at = {&source, source.file, object};
	struct hdf5_description d;
	size_t pos;

	CHECK_OK(hdf5_describe_here(&at, NULL, &d, &err));
	pos = (size_t)d.pos;
	hdf5_description_free(&d);
	CHECK(pos > 0 && pos < image_size);
	return pos;
}

/* The file with other bytes at `pos`. */
static void put(size_t pos, const char *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");

	CHECK(f && fwrite(image, 1, image_size, f) == image_size);
	CHECK(!fseek(f, (long)pos, SEEK_SET) &&
	      fwrite(bytes, 1, len, f) == len);
	fclose(f);
	handles_free(source.handles);
	CHECK_OK(handles_new(&source.handles, 4, 1, &err));
	source.file = handles_add(source.handles, path);
}
#define PUT(pos, bytes) put(pos, bytes, sizeof(bytes) - 1)

/* The library itself would read beside a buffer, or what was in it. */
TEST(damage)
{
	size_t heap, first, fourth, word;

	open_source(8, 0);
	load();
	heap = find("GCOL");
	first = find("first");
	fourth = find("the fourth");
	word = elements("/words"); /* length, address, index */
	PUT(word, "\6");
	check_fails("/words", 0, 4, "length 6, 1 bytes each");
	CHECK_TEXT("/words", 1, 3, "||the fourth|");
	PUT(word, "\4");
	check_fails("/words", 0, 1, "its object in a heap has 5 bytes");
	PUT(word, "\377\377\377\377");
	check_fails("/words", 0, 1, "length 4294967295");
	PUT(word + 4, "\0\0");
	check_fails("/words", 0, 1, "has no address");
	PUT(word + 4, "\1");
	check_fails("/words", 0, 1, "is damaged: no heap begins there");
	PUT(word + 12, "\377\377");
	check_fails("/words", 0, 1, "has no object 65535");
	PUT(word + 12, "\0\0\1");
	check_fails("/words", 0, 1, "has no object");
	/* The object's own size, and what comes behind it: the library writes
	 * the last one first. */
	PUT(fourth - 8, "\377\377\377\377\377\377\377\377");
	check_fails("/words", 0, 1, "has no object");
	check_fails("/words", 3, 1, "has no object");
	PUT(first - 8, "\0\1");
	check_fails("/words", 0, 1, "object in a heap has 256 bytes");
	CHECK_TEXT("/words", 1, 3, "||the fourth|");
	PUT(heap + 8, "\10\0");
	check_fails("/words", 0, 1, "its size is impossible");
	PUT(heap + 4, "\2");
	check_fails("/words", 0, 1, "no heap begins there");
	CHECK_TEXT("/words", 1, 2, "||");
	handles_free(source.handles);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK_OK(hdf5_init(&err));
	intern_init(&source.intern);
	RUN(every_width);
	RUN(damage);
	intern_free(&source.intern);
	unlink(path);
	return test_done();
}
