/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of a box: strings, sequences, anything as JSON; members of them. */
#include "test.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/type/type.h"
#include "formats/hdf5/value/value.h"

static char path[] = "/tmp/source-values-XXXXXX";
static struct hdf5_source source;
static struct error err;

/* ---- what came ----------------------------------------------------------- */

struct got {
	char *text; /* values, each with '|' behind it */
	size_t len, n;
	FILE *f;
};

static void take(void *ctx, const char *s, size_t len)
{
	struct got *g = ctx;

	fwrite(s, 1, len, g->f);
	fputc('|', g->f);
	g->n++;
}

static int values(const char *object, unsigned rank, const struct box *b,
		  const struct dtype *as, const char *member, struct got *g)
{
	struct hdf5_place at = {&source, source.file, object};
	int r;

	*g = (struct got){.text = NULL};
	err.code = 0;
	g->f = open_memstream(&g->text, &g->len);
	r = hdf5_values_here(&at, b, rank, as, member, take, g, &err);
	fclose(g->f);
	return r;
}

static struct dtype served(const char *object, const char *member)
{
	struct hdf5_place at = {&source, source.file, object};
	struct hdf5_opened o;
	uint64_t dims[RANK_MAX];
	struct hdf5_type t;
	hid_t type, leaf;
	unsigned rank;

	CHECK_OK(hdf5_place_open(&at, &o, &err));
	type = H5Dget_type(o.object);
	leaf = hdf5_type_member(type, member, &rank, dims);
	CHECK_OK(hdf5_type_read(&source.intern, leaf, false, &t));
	H5Tclose(leaf);
	H5Tclose(type);
	hdf5_place_close(&o);
	return t.served;
}

static void check_member(const char *object, const char *member, unsigned rank,
			 struct box b, const char *want, size_t len)
{
	struct dtype as = served(object, member);
	struct got g;

	if (values(object, rank, &b, &as, member, &g) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", object, err.text);
	CHECK_EQ_U(g.len, len);
	CHECK_MEM(g.text, want, len);
	free(g.text);
}

static void check(const char *object, unsigned rank, struct box b,
		  const char *want)
{
	check_member(object, NULL, rank, b, want, strlen(want));
}

static void check_error(const char *object, unsigned rank, struct box b,
			struct dtype as, const char *member, int code,
			const char *sentence)
{
	struct got g;

	CHECK_EQ_I(values(object, rank, &b, &as, member, &g), code);
	free(g.text);
	if (!strstr(err.text, sentence))
		test_fail(__FILE__, __LINE__, "\"%s\" has no \"%s\"", err.text,
			  sentence);
}

#define BOX(s, c) ((struct box){.start = {s}, .count = {c}})
#define BOX2(s, t, c, d) ((struct box){.start = {s, t}, .count = {c, d}})

/* ---- the file ------------------------------------------------------------ */

static void write_data(hid_t f, const char *name, hid_t type, unsigned rank,
		       const hsize_t *dims, const hsize_t *chunk,
		       const void *data)
{
	hid_t s = rank ? H5Screate_simple((int)rank, dims, NULL)
		       : H5Screate(H5S_SCALAR);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), d;

	if (chunk) {
		H5Pset_chunk(dcpl, (int)rank, chunk);
		H5Pset_deflate(dcpl, 4);
	}
	d = H5Dcreate2(f, name, type, s, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	CHECK(d >= 0);
	if (data)
		CHECK(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >=
		      0);
	H5Dclose(d);
	H5Pclose(dcpl);
	H5Sclose(s);
}

static hid_t string_of(size_t size, H5T_str_t pad)
{
	hid_t t = H5Tcopy(H5T_C_S1);

	H5Tset_size(t, size);
	H5Tset_strpad(t, pad);
	return t;
}

enum { MANY = 150000 };

static void write_strings(hid_t f)
{
	static const char *const words[6] = {"zero", "one",  "",
					     NULL,   "four", "five"};
	static const hsize_t six = 6, grid[2] = {2, 3}, chunk[2] = {1, 2};
	static const hsize_t many[2] = {MANY / 3, 3}, some[2] = {1000, 2};
	static char text[MANY][12];
	static const char *all[MANY];
	hid_t v = string_of(H5T_VARIABLE, H5T_STR_NULLTERM);
	hid_t z = string_of(4, H5T_STR_SPACEPAD);

	write_data(f, "words", v, 1, &six, NULL, words);
	write_data(f, "grid", v, 2, grid, chunk, words);
	write_data(f, "never", v, 1, &six, &six, NULL);
	write_data(f, "padded", z, 1, &grid[0], NULL, "ab    cd");
	write_data(f, "scalar", v, 0, NULL, NULL, &words[1]);
	for (int i = 0; i < MANY; i++) {
		snprintf(text[i], sizeof text[i], "%d", i);
		all[i] = text[i];
	}
	write_data(f, "many", v, 2, many, some, all);
	H5Tclose(v);
	H5Tclose(z);
}

static void write_sequences(hid_t f)
{
	static const hsize_t three = 3;
	static unsigned char a[] = "\0\1\0\2", b[] = "\xff\xff";
	const hvl_t rows[3] = {{2, a}, {0, NULL}, {1, b}};
	hid_t v = H5Tvlen_create(H5T_STD_I16BE);
	hid_t odd = H5Tcopy(H5T_STD_U32LE), w;
	const hvl_t odds[3] = {{1, a}, {0, NULL}, {0, NULL}};

	write_data(f, "ragged", v, 1, &three, &three, rows);
	H5Tset_precision(odd, 24);
	H5Tset_size(odd, 3);
	w = H5Tvlen_create(odd);
	write_data(f, "odd", w, 1, &three, NULL, odds);
	H5Tclose(v);
	H5Tclose(w);
	H5Tclose(odd);
}

struct row {
	int32_t n;
	char *text;
	hobj_ref_t object;
	struct {
		hvl_t v;
		double d;
	} deep;
};

static void write_rows(hid_t f)
{
	static const hsize_t two = 2;
	static int8_t numbers[] = {5, 6};
	struct row rows[2] = {{1, (char *)"a\nb", 0, {{2, numbers}, 0.5}},
			      {-2, NULL, 0, {{0, NULL}, 1.0}}};
	hid_t s = string_of(H5T_VARIABLE, H5T_STR_NULLTERM);
	hid_t v = H5Tvlen_create(H5T_STD_I8LE);
	hid_t d = H5Tcreate(H5T_COMPOUND, 24);
	hid_t t = H5Tcreate(H5T_COMPOUND, sizeof(struct row));

	CHECK(H5Rcreate(&rows[0].object, f, "/words", H5R_OBJECT, -1) >= 0);
	H5Tinsert(d, "v", 0, v);
	H5Tinsert(d, "d", 16, H5T_NATIVE_DOUBLE);
	H5Tinsert(t, "n", HOFFSET(struct row, n), H5T_NATIVE_INT32);
	H5Tinsert(t, "text", HOFFSET(struct row, text), s);
	H5Tinsert(t, "object", HOFFSET(struct row, object), H5T_STD_REF_OBJ);
	H5Tinsert(t, "deep", HOFFSET(struct row, deep), d);
	write_data(f, "rows", t, 1, &two, &two, rows);
	H5Tclose(s);
	H5Tclose(v);
	H5Tclose(d);
	H5Tclose(t);
}

static void write_references(hid_t f)
{
	static const hsize_t three = 3, start = 1, count = 2;
	hobj_ref_t r[3] = {0, 0, 0};
	hdset_reg_ref_t region[3];
	hid_t d = H5Dopen2(f, "words", H5P_DEFAULT), s = H5Dget_space(d);

	memset(region, 0, sizeof region);
	H5Rcreate(&r[0], f, "/words", H5R_OBJECT, -1);
	H5Rcreate(&r[2], f, "/", H5R_OBJECT, -1);
	H5Sselect_hyperslab(s, H5S_SELECT_SET, &start, NULL, &count, NULL);
	H5Rcreate(&region[1], f, "/words", H5R_DATASET_REGION, s);
	write_data(f, "references", H5T_STD_REF_OBJ, 1, &three, NULL, r);
	write_data(f, "regions", H5T_STD_REF_DSETREG, 1, &three, NULL, region);
	H5Sclose(s);
	H5Dclose(d);
}

static void write_virtual(hid_t f)
{
	static const hsize_t six = 6;
	hid_t s = H5Screate_simple(1, &six, NULL);
	hid_t v = string_of(4, H5T_STR_NULLPAD);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);

	H5Pset_virtual(dcpl, s, ".", "words", s);
	H5Dclose(
		H5Dcreate2(f, "virtual", v, s, H5P_DEFAULT, dcpl, H5P_DEFAULT));
	H5Pclose(dcpl);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_external(dcpl, "raw", 0, 24);
	H5Dclose(H5Dcreate2(f, "external", v, s, H5P_DEFAULT, dcpl,
			    H5P_DEFAULT));
	H5Pclose(dcpl);
	H5Tclose(v);
	H5Sclose(s);
}

static void make_file(void)
{
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

	write_strings(f);
	write_sequences(f);
	write_rows(f);
	write_references(f);
	write_virtual(f);
	CHECK(H5Fclose(f) >= 0);
}

/* ---- tests --------------------------------------------------------------- */

TEST(strings)
{
	check("/words", 1, BOX(0, 6), "zero|one|||four|five|");
	check("/words", 1, BOX(1, 1), "one|");
	check("/words", 1, BOX(6, 0), "");
	check("/grid", 2, BOX2(0, 0, 2, 3), "zero|one|||four|five|");
	check("/grid", 2, BOX2(0, 1, 2, 2), "one||four|five|");
	check("/grid", 2, BOX2(1, 1, 1, 1), "four|");
	check("/never", 1, BOX(0, 6), "||||||");
	check("/padded", 1, BOX(0, 2), "ab|  cd|");
	check("/scalar", 0, BOX(0, 0), "one|");
}

/* More than a batch takes, in rows that do not divide one. */
TEST(batches)
{
	struct dtype as = served("/many", NULL);
	struct box b = BOX2(1, 1, MANY / 3 - 2, 2);
	char *p;
	struct got g;

	CHECK_OK(values("/many", 2, &b, &as, NULL, &g));
	CHECK_EQ_U(g.n, 2 * (MANY / 3 - 2));
	p = g.text;
	for (long i = 1; i < MANY / 3 - 1; i++)
		for (long k = 1; k < 3; k++) {
			CHECK_EQ_I(strtol(p, &p, 10), 3 * i + k);
			CHECK_EQ_I(*p++, '|');
		}
	free(g.text);
}

TEST(sequences)
{
	check_member("/ragged", NULL, 1, BOX(0, 3), "\1\0\2\0||\xff\xff|", 9);
	check_member("/odd", NULL, 1, BOX(0, 2), "\0\1\0\0||", 6);
	check_member("/rows", "deep/v", 1, BOX(0, 2), "\5\6||", 4);
}

TEST(json)
{
	check("/rows", 1, BOX(0, 2),
	      "{\"n\":1,\"text\":\"a\\nb\",\"object\":\"/words\","
	      "\"deep\":{\"v\":[5,6],\"d\":0.5}}|"
	      "{\"n\":-2,\"text\":\"\",\"object\":null,"
	      "\"deep\":{\"v\":[],\"d\":1.0}}|");
	check_member("/rows", "text", 1, BOX(0, 2), "a\nb||", 5);
	check_member("/rows", "object", 1, BOX(0, 2), "/words||", 8);
	check_member("/rows", "deep", 1, BOX(0, 1), "{\"v\":[5,6],\"d\":0.5}|",
		     20);
}

TEST(references)
{
	check("/references", 1, BOX(0, 3), "/words||/|");
	check("/regions", 1, BOX(0, 3), "|/words (1)-(2)||");
}

TEST(what_does_not_fit)
{
	struct dtype words = served("/words", NULL);
	struct dtype ragged = served("/ragged", NULL);

	check_error("/words", 1, BOX(5, 2), words, NULL, -EIO, "another shape");
	check_error("/words", 1, BOX(7, 0), words, NULL, -EIO, "another shape");
	check_error("/grid", 1, BOX(0, 1), words, NULL, -EIO, "another shape");
	check_error("/ragged", 1, BOX(0, 1), words, NULL, -EIO, "another type");
	check_error("/words", 1, BOX(0, 1), ragged, NULL, -EIO, "another type");
	check_error("/rows", 1, BOX(0, 1), words, "n", -EIO, "another type");
	check_error("/rows", 1, BOX(0, 1), words, "m", -EIO, "another type");
	check_error("/", 1, BOX(0, 1), words, NULL, -EIO, "not a dataset");
	check_error("/virtual", 1, BOX(0, 1), words, NULL, -EIO, "virtual");
	check_error("/external", 1, BOX(0, 1), words, NULL, -ENOTSUP, "raw");
	CHECK(strstr(err.text, path));
	CHECK(strstr(err.text, "object '/external': "));
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK_OK(hdf5_init(&err));
	hdf5_lock();
	make_file();
	hdf5_unlock();
	CHECK_OK(handles_new(&source.handles, 4, 1, &err));
	source.file = handles_add(source.handles, path);
	intern_init(&source.intern);
	RUN(strings);
	RUN(batches);
	RUN(sequences);
	RUN(json);
	RUN(references);
	RUN(what_does_not_fit);
	intern_free(&source.intern);
	handles_free(source.handles);
	unlink(path);
	return test_done();
}
