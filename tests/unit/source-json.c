/* SPDX-License-Identifier: BSD-2-Clause */
/* Any HDF5 element as JSON; attributes of every kind. */
#include <errno.h>
#include "formats/hdf5/file/driver.h"
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "formats/hdf5/group.h"
#include "formats/hdf5/value/json.h"
#include "formats/hdf5/value/value.h"

static char path[] = "/tmp/source-json-XXXXXX";
static struct hdf5_source source;
static struct error err;
static hid_t file;

static char *dump(hid_t type, const void *data)
{
	struct hdf5_paths *paths = hdf5_paths_new(file);
	struct hdf5_json *j;
	json_t *v;
	char *text;

	CHECK_OK(hdf5_json_new(type, paths, &j, &err));
	CHECK_OK(hdf5_json_value(j, data, &v, &err));
	text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY |
				     JSON_REAL_PRECISION(17));
	json_decref(v);
	hdf5_json_free(j);
	hdf5_paths_free(paths);
	return text;
}

static void check(hid_t type, const void *data, const char *want)
{
	char *text = dump(type, data);

	CHECK_STR(text, want);
	free(text);
}

/* The same, and `type` is closed. */
static void check_made(hid_t type, const void *data, const char *want)
{
	check(type, data, want);
	H5Tclose(type);
}

static hid_t sized(hid_t from, size_t size, size_t precision, size_t offset)
{
	hid_t t = H5Tcopy(from);

	if (size > H5Tget_size(t))
		CHECK(H5Tset_size(t, size) >= 0);
	CHECK(H5Tset_precision(t, precision) >= 0);
	CHECK(H5Tset_offset(t, offset) >= 0);
	CHECK(H5Tset_size(t, size) >= 0);
	return t;
}

TEST(integers)
{
	static const uint64_t big = UINT64_MAX;
	static const int64_t least = INT64_MIN;

	check(H5T_STD_I8LE, "\x80", "-128");
	check(H5T_STD_U8LE, "\x80", "128");
	check(H5T_STD_I16BE, "\xff\xfe", "-2");
	check(H5T_STD_U32LE, "\xff\xff\xff\xff", "4294967295");
	check(H5T_NATIVE_INT64, &least, "-9223372036854775808");
	check(H5T_NATIVE_UINT64, &big, "\"18446744073709551615\"");
	check_made(sized(H5T_STD_I32LE, 3, 24, 0), "\xfe\xff\xff", "-2");
	check_made(sized(H5T_STD_U16LE, 2, 7, 3), "\xff\x07", "127");
	check_made(sized(H5T_STD_I16LE, 2, 7, 3), "\xff\x07", "-1");
	check(H5T_STD_B16BE, "\1\2", "258");
	check_made(sized(H5T_STD_B16LE, 2, 9, 2), "\xff\x07", "511");
	check(H5T_UNIX_D32BE, "\0\0\1\0", "256");
	check(H5T_UNIX_D64LE, "\xff\xff\xff\xff\xff\xff\xff\xff", "-1");
}

/* 2^100 - 1 and friends: Python says 1267650600228229401496703205375. */
TEST(wide_integers)
{
	unsigned char v[16] = {0};
	hid_t t = sized(H5T_STD_I64LE, 16, 128, 0);

	check(t, v, "\"0\"");
	memset(v, 0xff, 16);
	check(t, v, "\"-1\"");
	v[12] = 0x0f;
	v[13] = v[14] = v[15] = 0;
	check(t, v, "\"1267650600228229401496703205375\"");
	memset(v, 0, 15);
	v[15] = 0x80;
	check(t, v, "\"-170141183460469231731687303715884105728\"");
	H5Tclose(t);
	t = sized(H5T_STD_U64BE, 16, 128, 0);
	check(t, v, "\"128\"");
	H5Tclose(t);
}

TEST(floats)
{
	const double d = 0.1, nan_ = NAN, inf = -INFINITY;
	const long double half = 0.5L, tenth = 0.1L;
	char *text;

	check(H5T_IEEE_F32BE, "\x3f\xc0\0\0", "1.5");
	check(H5T_IEEE_F32LE, "\0\0\xc0\xbf", "-1.5");
	check(H5T_NATIVE_DOUBLE, &d, "0.10000000000000001");
	check(H5T_NATIVE_DOUBLE, &nan_, "\"NaN\"");
	check(H5T_NATIVE_DOUBLE, &inf, "\"-Infinity\"");
	check(H5T_NATIVE_LDOUBLE, &half, "0.5");
	text = dump(H5T_NATIVE_LDOUBLE, &tenth);
	CHECK(text[0] == '"');
	CHECK(strtold(text + 1, NULL) == tenth);
	free(text);
}

TEST(enums)
{
	static const int8_t values[] = {0, 1, 2};
	static const int16_t red = -5, blue = 300;
	hid_t t = H5Tenum_create(H5T_STD_I8LE);

	H5Tenum_insert(t, "FALSE", &values[0]);
	H5Tenum_insert(t, "TRUE", &values[1]);
	check(t, &values[0], "false");
	check(t, &values[1], "true");
	check(t, &values[2], "2");
	H5Tclose(t);
	t = H5Tenum_create(H5T_NATIVE_INT16);
	H5Tenum_insert(t, "blue \"\xe9\"", &blue);
	H5Tenum_insert(t, "red", &red);
	check(t, &red, "\"red\"");
	check(t, &blue, "\"blue \\\"\xc3\xa9\\\"\"");
	check(t, "\0\0", "0");
	H5Tclose(t);
}

static hid_t string_of(size_t size, H5T_str_t pad)
{
	hid_t t = H5Tcopy(H5T_C_S1);

	H5Tset_size(t, size);
	H5Tset_strpad(t, pad);
	return t;
}

TEST(strings)
{
	static const char *const s = "line\nbreak", *const none = NULL;

	check_made(string_of(5, H5T_STR_NULLTERM), "ab\0cd", "\"ab\"");
	check_made(string_of(5, H5T_STR_NULLPAD), "a\0b\0\0", "\"a\\u0000b\"");
	check_made(string_of(5, H5T_STR_SPACEPAD), " ab  ", "\" ab\"");
	check_made(string_of(3, H5T_STR_NULLPAD), "abc", "\"abc\"");
	check_made(string_of(2, H5T_STR_NULLPAD), "\xc3\xa9", "\"\xc3\xa9\"");
	check_made(string_of(2, H5T_STR_NULLPAD), "\xe9!", "\"\xc3\xa9!\"");
	check_made(string_of(H5T_VARIABLE, H5T_STR_NULLTERM), &s,
		   "\"line\\nbreak\"");
	check_made(string_of(H5T_VARIABLE, H5T_STR_NULLTERM), &none, "\"\"");
	check_made(H5Tcreate(H5T_OPAQUE, 3), "\x01\xab\xff", "\"01abff\"");
}

TEST(many)
{
	static const hsize_t dims[2] = {2, 3};
	static int16_t numbers[] = {1, 2, 3, 4, 5, 6};
	hid_t a = H5Tarray_create2(H5T_NATIVE_INT16, 2, dims), v, c;
	struct {
		int16_t array[6];
		hvl_t sequence;
		double d;
	} row = {{1, 2, 3, 4, 5, 6}, {3, numbers}, 2.0};

	check(a, numbers, "[[1,2,3],[4,5,6]]");
	v = H5Tvlen_create(H5T_NATIVE_INT16);
	check(v, &row.sequence, "[1,2,3]");
	c = H5Tcreate(H5T_COMPOUND, sizeof row);
	H5Tinsert(c, "d\xe9", 32, H5T_NATIVE_DOUBLE);
	H5Tinsert(c, "s", 16, v);
	H5Tinsert(c, "a", 0, a);
	check(c, &row,
	      "{\"d\xc3\xa9\":2.0,\"s\":[1,2,3],\"a\":[[1,2,3],[4,5,6]]}");
	row.sequence.len = 0;
	row.sequence.p = NULL;
	check(v, &row.sequence, "[]");
	H5Tclose(a);
	H5Tclose(v);
	H5Tclose(c);
}

/* Lengths come from files: letters, and the string itself, are counted. */
TEST(a_limit)
{
	hid_t t = string_of(H5T_VARIABLE, H5T_STR_NULLTERM);
	char *text = malloc(HDF5_JSON_MAX + 1);
	struct hdf5_json *j;
	json_t *out;

	CHECK(text);
	memset(text, 'a', HDF5_JSON_MAX);
	text[HDF5_JSON_MAX] = '\0';
	CHECK_OK(hdf5_json_new(t, NULL, &j, &err));
	CHECK_EQ_I(hdf5_json_value(j, &text, &out, &err), -95);
	CHECK(!out);
	text[HDF5_JSON_MAX - 1] = '\0';
	CHECK_OK(hdf5_json_value(j, &text, &out, &err));
	CHECK_EQ_U(json_string_length(out), HDF5_JSON_MAX - 1);
	json_decref(out);
	hdf5_json_free(j);
	H5Tclose(t);
	free(text);
}

/* ---- references ---------------------------------------------------------- */

static void reference(const char *to, hobj_ref_t *r)
{
	CHECK(H5Rcreate(r, file, to, H5R_OBJECT, -1) >= 0);
}

TEST(references)
{
	static const hsize_t start[2] = {1, 2}, count[2] = {2, 2};
	static const hsize_t stride[2] = {3, 3}, points[4] = {0, 1, 7, 7};
	hid_t d = H5Dopen2(file, "/g/x", H5P_DEFAULT), s = H5Dget_space(d);
	hobj_ref_t r[2] = {0, 0};
	hdset_reg_ref_t region;

	reference("/g/x", &r[0]);
	check(H5T_STD_REF_OBJ, &r[0], "\"/g/x\"");
	check(H5T_STD_REF_OBJ, &r[1], "null");
	reference("/", &r[0]);
	check(H5T_STD_REF_OBJ, &r[0], "\"/\"");
	r[0] = 123456;
	check(H5T_STD_REF_OBJ, &r[0], "\"(nothing: the object is gone)\"");
	memset(&region, 0, sizeof region);
	check(H5T_STD_REF_DSETREG, &region, "null");
	H5Sselect_hyperslab(s, H5S_SELECT_SET, start, NULL, count, NULL);
	H5Rcreate(&region, file, "/g/x", H5R_DATASET_REGION, s);
	check(H5T_STD_REF_DSETREG, &region,
	      "{\"path\":\"/g/x\",\"selection\":\"(1,2)-(2,3)\"}");
	H5Sselect_hyperslab(s, H5S_SELECT_SET, start, stride, count, NULL);
	H5Rcreate(&region, file, "/g/x", H5R_DATASET_REGION, s);
	check(H5T_STD_REF_DSETREG, &region,
	      "{\"path\":\"/g/x\",\"selection\":\"(1,2)-(1,2), (1,5)-(1,5), "
	      "(4,2)-(4,2), (4,5)-(4,5)\"}");
	H5Sselect_elements(s, H5S_SELECT_SET, 2, points);
	H5Rcreate(&region, file, "/g/x", H5R_DATASET_REGION, s);
	check(H5T_STD_REF_DSETREG, &region,
	      "{\"path\":\"/g/x\",\"selection\":\"(0,1), (7,7)\"}");
	H5Sclose(s);
	H5Dclose(d);
}

/* ---- attributes ---------------------------------------------------------- */

static void put(hid_t object, const char *name, hid_t type, int rank,
		const hsize_t *dims, const void *data)
{
	hid_t s = rank < 0   ? H5Screate(H5S_NULL)
		  : rank > 0 ? H5Screate_simple(rank, dims, NULL)
			     : H5Screate(H5S_SCALAR);
	hid_t a = H5Acreate2(object, name, type, s, H5P_DEFAULT, H5P_DEFAULT);

	CHECK(a >= 0);
	if (data)
		CHECK(H5Awrite(a, type, data) >= 0);
	H5Aclose(a);
	H5Sclose(s);
}

static void put_attributes(hid_t g)
{
	static const hsize_t dims[2] = {2, 2}, many = 140000, none[2] = {3, 0};
	static int32_t numbers[140000] = {1, 2, 3, 4};
	static const char *const text[] = {"a", "b\n", "", "d"};
	hid_t vs = string_of(H5T_VARIABLE, H5T_STR_NULLTERM), refs;
	hobj_ref_t r = 0;
	hvl_t s = {1, &r};

	put(g, "array", H5T_NATIVE_INT32, 2, dims, numbers);
	put(g, "empty", H5T_NATIVE_INT32, 2, none, NULL);
	put(g, "many", H5T_NATIVE_INT32, 1, &many, numbers);
	put(g, "null", H5T_NATIVE_INT32, -1, NULL, NULL);
	reference("/g/x", &r);
	put(g, "reference", H5T_STD_REF_OBJ, 0, NULL, &r);
	refs = H5Tvlen_create(H5T_STD_REF_OBJ);
	put(g, "references", refs, 0, NULL, &s);
	put(g, "scalar", H5T_NATIVE_INT32, 0, NULL, &numbers[3]);
	put(g, "strings", vs, 2, dims, text);
	H5Tclose(vs);
	H5Tclose(refs);
}

static void make_file(void)
{
	static const hsize_t dims[2] = {8, 8};
	hid_t g, s = H5Screate_simple(2, dims, NULL);
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

	/* Large attributes want dense storage. */
	H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
	file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
	H5Pclose(fapl);
	g = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dclose(H5Dcreate2(g, "x", H5T_STD_I8LE, s, H5P_DEFAULT, H5P_DEFAULT,
			    H5P_DEFAULT));
	put_attributes(g);
	H5Gclose(g);
	H5Sclose(s);
}

TEST(attributes)
{
	struct hdf5_place at = {&source, source.file, "/g"};
	char *text = hdf5_attributes_here(&at, &err);

	CHECK_STR(text, "{\"array\":[[1,2],[3,4]],\"empty\":[],"
			"\"many\":\"(140000 values of type int32: too many to "
			"list)\",\"null\":null,\"reference\":\"/g/x\","
			"\"references\":[\"/g/x\"],\"scalar\":4,"
			"\"strings\":[[\"a\",\"b\\n\"],[\"\",\"d\"]]}");
	free(text);
	at.object = "/g/x";
	text = hdf5_attributes_here(&at, &err);
	CHECK_STR(text, "{}");
	free(text);
	text = hdf5_about_here(&at, &err);
	CHECK_STR(text, "{\"attributes\":{}}");
	free(text);
	at.object = "/nothing";
	CHECK(!hdf5_about_here(&at, &err));
	CHECK_EQ_I(err.code, -ENOENT);
	err.code = 0;
	CHECK(!hdf5_attributes_here(&at, &err));
	CHECK_EQ_I(err.code, -ENOENT);
	CHECK(strstr(err.text, "object '/nothing': there is no such object"));
}

/* ---- the directory of a group -------------------------------------------- */

static ssize_t attrs_of(const char *object, char *buf, size_t n)
{
	struct files *f =
		hdf5_group_files_new(&source, source.file, object, 7, false);
	struct attr a;
	size_t len;
	ssize_t r;

	CHECK_OK(f->ops->attr(f, 0, NULL, &a, &err));
	CHECK_EQ_U(a.mode, S_IFDIR | 0555);
	CHECK_EQ_I(a.mtime, 7);
	CHECK_EQ_U(f->ops->count(f, 0), 0);
	CHECK_STR(f->ops->xattr_keys(f, 0, &len), "attrs");
	CHECK_EQ_U(len, 6);
	CHECK_EQ_I(f->ops->xattr(f, 0, "shape", NULL, NULL, 0), -61);
	r = f->ops->xattr(f, 0, "attrs", NULL, buf, n);
	CHECK_EQ_I(f->ops->xattr(f, 0, "attrs", NULL, NULL, 0), r);
	if (r > 2)
		CHECK_EQ_I(f->ops->xattr(f, 0, "attrs", NULL, buf, 2), -34);
	f->ops->free(f);
	return r;
}

/* More than an xattr holds: what fits, and what was left out. */
static void make_large(void)
{
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	static int64_t numbers[4000];
	const hsize_t n = 4000;
	char name[16];

	for (int i = 0; i < 4000; i++)
		numbers[i] = INT64_MAX;
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "a%d", i);
		put(f, name, H5T_NATIVE_INT64, 1, &n, numbers);
	}
	put(f, "z", H5T_NATIVE_INT64, 0, NULL, numbers);
	CHECK(H5Fclose(f) >= 0);
}

TEST(groups)
{
	static char buf[65536];
	ssize_t n = attrs_of("/g/x", buf, sizeof buf);
	json_t *j;

	CHECK_EQ_I(n, 2);
	CHECK_MEM(buf, "{}", 2);
	hdf5_lock();
	make_large();
	hdf5_unlock();
	handles_free(source.handles);
	CHECK_OK(handles_new(&source.handles, 4, 1, &err));
	source.file = handles_add(source.handles, path);
	n = attrs_of("/", buf, sizeof buf);
	CHECK(n > 0);
	j = json_loadb(buf, (size_t)n, 0, NULL);
	CHECK_STR(json_string_value(json_object_get(j, "a4")),
		  "(80001 bytes: too long to list)");
	CHECK(json_integer_value(json_object_get(j, "z")) == INT64_MAX);
	json_decref(j);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	CHECK_OK(hdf5_init(&err));
	CHECK_OK(handles_new(&source.handles, 4, 1, &err));
	source.file = handles_add(source.handles, path);
	intern_init(&source.intern);
	hdf5_lock();
	make_file();
	RUN(integers);
	RUN(wide_integers);
	RUN(floats);
	RUN(enums);
	RUN(strings);
	RUN(many);
	RUN(a_limit);
	RUN(references);
	H5Fclose(file);
	hdf5_unlock();
	RUN(attributes);
	RUN(groups);
	intern_free(&source.intern);
	handles_free(source.handles);
	unlink(path);
	return test_done();
}
