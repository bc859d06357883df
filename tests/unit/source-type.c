/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 types: what each is served as, where members are, what H5Dread makes. */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/type/type.h"

static struct intern in;
static char path[] = "/tmp/source-type-XXXXXX";

static struct hdf5_type read_as(hid_t type, bool source_order)
{
	struct hdf5_type a, b;

	CHECK_OK(hdf5_type_read(&in, type, source_order, &a));
	CHECK_OK(hdf5_type_read(&in, type, source_order, &b));
	/* Equal types are equal bytes, pointers included. */
	CHECK_MEM(&a, &b, sizeof a);
	return a;
}

static struct hdf5_type read_type(hid_t type)
{
	struct hdf5_type t = read_as(type, false);

	H5Tclose(type);
	return t;
}

static void check(const struct dtype *d, enum dtype_kind kind, uint32_t size,
		  bool big, const char *text)
{
	CHECK_EQ_U(d->kind, kind);
	CHECK_EQ_U(d->size, size);
	CHECK_EQ_U(d->big_endian, big);
	CHECK_STR(d->text, text);
}

/* Served as stored, but little-endian. */
static void check_direct(hid_t of, enum dtype_kind kind, uint32_t size,
			 bool big, const char *text)
{
	struct hdf5_type t = read_as(of, true);

	check(&t.stored, kind, size, big, text);
	check(&t.served, kind, size, big, text);
	t = read_type(H5Tcopy(of));
	check(&t.stored, kind, size, big, text);
	check(&t.served, kind, size, false, text);
	CHECK_EQ_U(t.rank, 0);
}

static void check_converted(hid_t type, uint32_t stored, enum dtype_kind kind,
			    uint32_t size, const char *text)
{
	struct hdf5_type t = read_type(type);

	check(&t.stored, DTYPE_OTHER, stored, false, text);
	check(&t.served, kind, size, false, text);
}

static void check_refused(hid_t type, const char *text)
{
	struct hdf5_type t = read_type(type);

	CHECK_EQ_U(t.served.kind, DTYPE_OTHER);
	CHECK_EQ_U(t.stored.kind, DTYPE_OTHER);
	CHECK_STR(t.served.text, text);
}

static hid_t narrow(hid_t from, size_t size, size_t precision, size_t offset)
{
	hid_t t = H5Tcopy(from);

	CHECK(H5Tset_precision(t, precision) >= 0);
	CHECK(H5Tset_offset(t, offset) >= 0);
	CHECK(H5Tset_size(t, size) >= 0);
	return t;
}

static hid_t wide(void)
{
	hid_t t = H5Tcopy(H5T_STD_I64LE);

	CHECK(H5Tset_size(t, 16) >= 0);
	CHECK(H5Tset_precision(t, 128) >= 0);
	return t;
}

TEST(integers)
{
	check_direct(H5T_STD_I8LE, DTYPE_INT, 1, false, NULL);
	check_direct(H5T_STD_I8BE, DTYPE_INT, 1, false, NULL);
	check_direct(H5T_STD_U16BE, DTYPE_UINT, 2, true, NULL);
	check_direct(H5T_STD_I32LE, DTYPE_INT, 4, false, NULL);
	check_direct(H5T_STD_U64BE, DTYPE_UINT, 8, true, NULL);
	check_converted(narrow(H5T_STD_I32LE, 3, 24, 0), 3, DTYPE_INT, 4,
			"24-bit integer, converted");
	check_converted(narrow(H5T_STD_U16BE, 2, 7, 3), 2, DTYPE_UINT, 2,
			"7-bit integer, converted");
	check_converted(narrow(H5T_STD_I64LE, 8, 40, 0), 8, DTYPE_INT, 8,
			"40-bit integer, converted");
	check_refused(wide(), "128-bit integer, which NumPy lacks");
}

TEST(bitfields)
{
	check_direct(H5T_STD_B8LE, DTYPE_UINT, 1, false, "bitfield");
	check_direct(H5T_STD_B32BE, DTYPE_UINT, 4, true, "bitfield");
	check_converted(narrow(H5T_STD_B16LE, 2, 9, 2), 2, DTYPE_UINT, 2,
			"9-bit bitfield, converted");
}

static hid_t float_type(size_t size, size_t exponent, size_t mantissa,
			size_t bias)
{
	hid_t t = H5Tcopy(H5T_IEEE_F32LE);

	CHECK(H5Tset_fields(t, exponent + mantissa, mantissa, exponent, 0,
			    mantissa) >= 0);
	CHECK(H5Tset_precision(t, exponent + mantissa + 1) >= 0);
	CHECK(H5Tset_size(t, size) >= 0);
	CHECK(H5Tset_ebias(t, bias) >= 0);
	return t;
}

TEST(floats)
{
	hid_t half = float_type(2, 5, 10, 15), brain = float_type(2, 8, 7, 127);

	check_direct(half, DTYPE_FLOAT, 2, false, NULL);
	H5Tset_order(half, H5T_ORDER_BE);
	check_direct(half, DTYPE_FLOAT, 2, true, NULL);
	check_direct(H5T_IEEE_F32BE, DTYPE_FLOAT, 4, true, NULL);
	check_direct(H5T_IEEE_F64LE, DTYPE_FLOAT, 8, false, NULL);
	check_direct(H5T_NATIVE_LDOUBLE, DTYPE_FLOAT, 16, false, NULL);
	check_direct(brain, DTYPE_UINT, 2, false,
		     "bfloat16, shown as its bits");
	H5Tset_order(brain, H5T_ORDER_BE);
	check_direct(brain, DTYPE_UINT, 2, true, "bfloat16, shown as its bits");
	H5Tclose(half);
	H5Tclose(brain);
	brain = float_type(1, 4, 3, 7);
	check_direct(brain, DTYPE_UINT, 1, false,
		     "float8 E4M3, shown as its bits");
	H5Tclose(brain);
	check_converted(float_type(3, 8, 15, 127), 3, DTYPE_FLOAT, 4,
			"24-bit float, converted");
	/* Its smallest normal number, 2^-128, has 24 bits: float32 has fewer there. */
	check_converted(H5Tcopy(H5T_VAX_F32), 4, DTYPE_FLOAT, 8,
			"32-bit float, converted");
}

static hid_t enum_of(hid_t base, int n, const char *const *names)
{
	hid_t t = H5Tenum_create(base);

	for (int i = 0; i < n; i++) {
		int64_t v = i;

		CHECK(H5Tconvert(H5T_NATIVE_INT64, base, 1, &v, NULL,
				 H5P_DEFAULT) >= 0);
		CHECK(H5Tenum_insert(t, names[i], &v) >= 0);
	}
	return t;
}

TEST(enums)
{
	static const char *const truth[] = {"FALSE", "TRUE"};
	static const char *const color[] = {"RED", "GREEN", "BLUE"};
	static char name[300][16];
	static const char *names[300];
	struct hdf5_type t;
	hid_t big = enum_of(H5T_STD_U16BE, 3, color);

	t = read_type(enum_of(H5T_STD_I8LE, 2, truth));
	check(&t.served, DTYPE_BOOL, 1, false, NULL);
	t = read_type(enum_of(H5T_STD_I16LE, 2, truth));
	check(&t.served, DTYPE_INT, 2, false, "enum: FALSE = 0, TRUE = 1");
	check_direct(big, DTYPE_UINT, 2, true,
		     "enum: RED = 0, GREEN = 1, BLUE = 2");
	H5Tclose(big);
	for (int i = 0; i < 300; i++) {
		snprintf(name[i], sizeof name[i], "N%d", i);
		names[i] = name[i];
	}
	t = read_type(enum_of(H5T_STD_I32LE, 300, names));
	CHECK(strstr(t.served.text, "N199 = 199, and 100 more"));
}

TEST(strings_and_bytes)
{
	hid_t s = H5Tcopy(H5T_C_S1), o = H5Tcreate(H5T_OPAQUE, 12);
	struct hdf5_type t;

	H5Tset_size(s, 5);
	t = read_as(s, false);
	check(&t.served, DTYPE_STRING, 5, false, "ASCII string of 5 bytes");
	CHECK(!t.served.vlen);
	H5Tset_size(s, H5T_VARIABLE);
	H5Tset_cset(s, H5T_CSET_UTF8);
	t = read_type(s);
	check(&t.stored, DTYPE_STRING, 16, false,
	      "variable-length UTF-8 string");
	CHECK(t.served.vlen);
	check_direct(o, DTYPE_OPAQUE, 12, false, NULL);
	H5Tset_tag(o, "a tag");
	check_direct(o, DTYPE_OPAQUE, 12, false, "a tag");
	H5Tclose(o);
	t = read_type(H5Tcopy(H5T_STD_REF_OBJ));
	check(&t.served, DTYPE_TEXT, 8, false, "object reference");
	t = read_type(H5Tcopy(H5T_STD_REF_DSETREG));
	check(&t.served, DTYPE_TEXT, 12, false, "region reference");
	check_direct(H5T_UNIX_D32BE, DTYPE_INT, 4, true,
		     "HDF5's time: seconds since 1970");
	check_direct(H5T_UNIX_D64LE, DTYPE_INT, 8, false,
		     "HDF5's time: seconds since 1970, or as PyTables writes "
		     "it: seconds << 32 | microseconds");
}

static hid_t array_of(hid_t base, hsize_t a, hsize_t b)
{
	hsize_t dims[2] = {a, b};

	return H5Tarray_create2(base, 2, dims);
}

TEST(arrays)
{
	hid_t inner = array_of(H5T_IEEE_F32BE, 2, 3), s = H5Tcopy(H5T_C_S1);
	struct hdf5_type t = read_type(array_of(inner, 4, 5));
	static const uint64_t want[] = {4, 5, 2, 3};

	check(&t.stored, DTYPE_FLOAT, 4, true, NULL);
	check(&t.served, DTYPE_FLOAT, 4, false, NULL);
	CHECK_EQ_U(t.rank, 4);
	CHECK_MEM(t.dims, want, sizeof want);
	H5Tset_size(s, 7);
	t = read_type(array_of(s, 1, 2));
	check(&t.served, DTYPE_STRING, 7, false, "ASCII string of 7 bytes");
	CHECK_EQ_U(t.rank, 2);
	t = read_type(array_of(H5T_STD_REF_OBJ, 3, 2));
	check(&t.served, DTYPE_TEXT, 8, false, "object reference");
	CHECK_EQ_U(t.rank, 2);
	H5Tclose(inner);
	H5Tclose(s);
}

TEST(sequences)
{
	hid_t three = narrow(H5T_STD_I32LE, 3, 24, 0), s = H5Tcopy(H5T_C_S1);
	hid_t pairs = array_of(H5T_STD_I16BE, 1, 2);
	hid_t ragged = H5Tvlen_create(H5T_IEEE_F64BE);
	struct hdf5_type t = read_as(ragged, false);

	check(&t.stored, DTYPE_RAGGED, 16, false, NULL);
	CHECK_EQ_U(t.served.nfields, 1);
	check(&t.stored.fields->type, DTYPE_FLOAT, 8, true, NULL);
	check(&t.served.fields->type, DTYPE_FLOAT, 8, false, NULL);
	CHECK_STR(t.served.fields->name, "");
	t = read_as(ragged, true);
	CHECK(t.served.fields->type.big_endian);
	t = read_type(H5Tvlen_create(pairs));
	CHECK_EQ_U(t.served.fields->rank, 2);
	CHECK_EQ_U(t.served.fields->dims[1], 2);
	t = read_type(H5Tvlen_create(three));
	check(&t.served.fields->type, DTYPE_INT, 4, false,
	      "24-bit integer, converted");
	CHECK_EQ_U(t.stored.fields->type.kind, DTYPE_OTHER);
	t = read_type(H5Tvlen_create(ragged));
	check(&t.served, DTYPE_TEXT, 16, false, "sequence of text");
	t = read_type(H5Tvlen_create(s));
	check(&t.served, DTYPE_TEXT, 16, false, "sequence of strings");
	H5Tclose(three);
	H5Tclose(s);
	H5Tclose(pairs);
	H5Tclose(ragged);
}

static hid_t pair_of(const char *a, const char *b, hid_t of, size_t padding)
{
	size_t size = H5Tget_size(of);
	hid_t t = H5Tcreate(H5T_COMPOUND, 2 * size + padding);

	CHECK(H5Tinsert(t, a, 0, of) >= 0);
	CHECK(H5Tinsert(t, b, size, of) >= 0);
	return t;
}

TEST(complex_numbers)
{
	hid_t half = float_type(2, 5, 10, 15), t;

	t = pair_of("r", "i", H5T_IEEE_F32BE, 0);
	check_direct(t, DTYPE_COMPLEX, 8, true, NULL);
	H5Tclose(t);
	t = pair_of("r", "i", H5T_NATIVE_LDOUBLE, 0);
	check_direct(t, DTYPE_COMPLEX, 32, false, NULL);
	H5Tclose(t);
	t = pair_of("r", "i", half, 0);
	check_direct(t, DTYPE_STRUCT, 4, false, NULL);
	H5Tclose(t);
	t = pair_of("re", "im", H5T_IEEE_F32LE, 0);
	check_direct(t, DTYPE_STRUCT, 8, false, NULL);
	H5Tclose(t);
	t = pair_of("r", "i", H5T_IEEE_F32LE, 4);
	check_direct(t, DTYPE_STRUCT, 12, false, NULL);
	H5Tclose(t);
	t = pair_of("r", "i", H5T_STD_I32LE, 0);
	check_direct(t, DTYPE_STRUCT, 8, false, NULL);
	H5Tclose(t);
	H5Tclose(half);
}

static void check_field(const struct dtype *d, unsigned i, const char *name,
			uint32_t offset, enum dtype_kind kind, uint32_t size)
{
	CHECK(i < d->nfields);
	CHECK_STR(d->fields[i].name, name);
	CHECK_EQ_U(d->fields[i].offset, offset);
	CHECK_EQ_U(d->fields[i].type.kind, kind);
	CHECK_EQ_U(d->fields[i].type.size, size);
}

/* Inserted out of order, with gaps, nested, with arrays and strings. */
static hid_t structure(hid_t first)
{
	hid_t s = H5Tcopy(H5T_C_S1), z = pair_of("r", "i", H5T_IEEE_F32LE, 0);
	hid_t a = array_of(H5T_STD_U16BE, 2, 3), as, t;

	H5Tset_size(s, 5);
	as = array_of(s, 1, 2);
	t = H5Tcreate(H5T_COMPOUND, 64);
	CHECK(H5Tinsert(t, "strings", 48, as) >= 0);
	CHECK(H5Tinsert(t, "array", 28, a) >= 0);
	CHECK(H5Tinsert(t, "first", 2, first) >= 0);
	CHECK(H5Tinsert(t, "complex", 20, z) >= 0);
	CHECK(H5Tinsert(t, "text", 15, s) >= 0);
	H5Tclose(as);
	H5Tclose(s);
	H5Tclose(z);
	H5Tclose(a);
	return t;
}

TEST(structures)
{
	hid_t inner = pair_of("x", "y", H5T_STD_I32BE, 0);
	hid_t three = narrow(H5T_STD_I32LE, 3, 24, 0);
	struct hdf5_type t = read_type(structure(inner));

	check(&t.stored, DTYPE_STRUCT, 64, false, NULL);
	check(&t.served, DTYPE_STRUCT, 64, false, NULL);
	CHECK_EQ_U(t.served.nfields, 5);
	check_field(&t.served, 0, "first", 2, DTYPE_STRUCT, 8);
	check_field(&t.served, 1, "text", 15, DTYPE_BYTES, 5);
	check_field(&t.served, 2, "complex", 20, DTYPE_COMPLEX, 8);
	check_field(&t.served, 3, "array", 28, DTYPE_UINT, 2);
	check_field(&t.served, 4, "strings", 48, DTYPE_BYTES, 5);
	CHECK_EQ_U(t.served.fields[3].rank, 2);
	CHECK_EQ_U(t.served.fields[3].dims[1], 3);
	CHECK(t.stored.fields[0].type.fields[1].type.big_endian);
	CHECK(!t.served.fields[0].type.fields[1].type.big_endian);

	t = read_type(structure(three));
	check(&t.stored, DTYPE_OTHER, 64, false, "structure, converted");
	check(&t.served, DTYPE_STRUCT, 39, false, "structure, converted");
	check_field(&t.served, 0, "first", 0, DTYPE_INT, 4);
	check_field(&t.served, 1, "text", 4, DTYPE_BYTES, 5);
	check_field(&t.served, 2, "complex", 9, DTYPE_COMPLEX, 8);
	check_field(&t.served, 3, "array", 17, DTYPE_UINT, 2);
	check_field(&t.served, 4, "strings", 29, DTYPE_BYTES, 5);
	H5Tclose(inner);
	H5Tclose(three);
}

/* ---- members beside text, in the file ------------------------------------ */

struct row {
	double last;
	int32_t first;
	char *text;
	int16_t middle;
	hvl_t sequence;
	char *both[2];
	hobj_ref_t object;
	struct {
		char *s;
		int32_t n;
	} nested;
	hdset_reg_ref_t region;
	uint8_t end;
};

static hid_t row_type(void)
{
	hid_t s = H5Tcopy(H5T_C_S1), v = H5Tvlen_create(H5T_STD_I32LE), a, n, t;
	const hsize_t two = 2;

	H5Tset_size(s, H5T_VARIABLE);
	a = H5Tarray_create2(s, 1, &two);
	n = H5Tcreate(H5T_COMPOUND, 16);
	H5Tinsert(n, "n", 8, H5T_STD_I32LE);
	H5Tinsert(n, "s", 0, s);
	t = H5Tcreate(H5T_COMPOUND, sizeof(struct row));
	H5Tinsert(t, "end", HOFFSET(struct row, end), H5T_STD_U8LE);
	H5Tinsert(t, "first", HOFFSET(struct row, first), H5T_STD_I32LE);
	H5Tinsert(t, "text", HOFFSET(struct row, text), s);
	H5Tinsert(t, "middle", HOFFSET(struct row, middle), H5T_STD_I16LE);
	H5Tinsert(t, "sequence", HOFFSET(struct row, sequence), v);
	H5Tinsert(t, "both", HOFFSET(struct row, both), a);
	H5Tinsert(t, "object", HOFFSET(struct row, object), H5T_STD_REF_OBJ);
	H5Tinsert(t, "nested", HOFFSET(struct row, nested), n);
	H5Tinsert(t, "region", HOFFSET(struct row, region),
		  H5T_STD_REF_DSETREG);
	CHECK(H5Tinsert(t, "last", HOFFSET(struct row, last), H5T_IEEE_F64LE) >=
	      0);
	H5Tclose(s);
	H5Tclose(v);
	H5Tclose(a);
	H5Tclose(n);
	return t;
}

static const struct dtype_field *field(const struct dtype *d, const char *name)
{
	for (uint32_t i = 0; i < d->nfields; i++)
		if (!strcmp(d->fields[i].name, name))
			return &d->fields[i];
	test_fail(__FILE__, __LINE__, "no field %s", name);
}

static haddr_t write_rows(size_t address, struct hdf5_type *t,
			  struct hdf5_type *blind)
{
	hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), type = row_type(), f, d, s, m;
	static const hsize_t n = 2;
	struct row rows[2];
	haddr_t at;

	H5Pset_sizes(fcpl, address, 8);
	f = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);
	s = H5Screate_simple(1, &n, NULL);
	d = H5Dcreate2(f, "rows", type, s, H5P_DEFAULT, H5P_DEFAULT,
		       H5P_DEFAULT);
	CHECK(d >= 0);
	memset(rows, 0, sizeof rows);
	for (int i = 0; i < 2; i++) {
		struct row *r = &rows[i];

		r->last = 1.5 + i;
		r->first = 0x11223344 + i;
		r->middle = (int16_t)(0x5566 + i);
		r->text = r->both[0] = r->both[1] = r->nested.s = (char *)"ab";
		r->nested.n = 0x778899 + i;
		r->end = (uint8_t)(0xaa + i);
	}
	CHECK(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0);
	CHECK_OK(hdf5_type_read(&in, d, false, t));
	m = H5Dget_type(d);
	*blind = read_type(m);
	at = H5Dget_offset(d);
	CHECK_EQ_U(H5Dget_storage_size(d), 2 * (uint64_t)t->stored.size);
	H5Dclose(d);
	H5Sclose(s);
	H5Tclose(type);
	H5Pclose(fcpl);
	CHECK(H5Fclose(f) >= 0);
	return at;
}

static void check_bytes(const unsigned char *row, const struct dtype_field *f,
			uint64_t want)
{
	uint64_t is = 0;

	CHECK(f->type.size <= sizeof is);
	memcpy(&is, row + f->offset, f->type.size);
	CHECK_EQ_U(is, want);
}

static void check_rows(size_t address)
{
	static unsigned char bytes[1024];
	struct hdf5_type t, blind;
	haddr_t at = write_rows(address, &t, &blind);
	uint32_t size = t.stored.size, heap = 4 + (uint32_t)address + 4;
	int fd = open(path, O_RDONLY);

	CHECK_EQ_U(t.served.kind, DTYPE_TEXT);
	CHECK_EQ_U(t.served.nfields, 10);
	CHECK_EQ_U(t.served.size, size);
	CHECK_EQ_I(pread(fd, bytes, 2 * size, (off_t)at), 2 * (int64_t)size);
	close(fd);
	for (uint32_t i = 0; i < 2; i++) {
		const unsigned char *row = bytes + i * size;
		const struct dtype_field *n = field(&t.served, "nested"), *m;
		struct dtype_field deep;
		double last = 1.5 + i;
		uint64_t bits;

		memcpy(&bits, &last, sizeof bits);
		check_bytes(row, field(&t.served, "first"), 0x11223344 + i);
		check_bytes(row, field(&t.served, "middle"), 0x5566 + i);
		check_bytes(row, field(&t.served, "last"), bits);
		check_bytes(row, field(&t.served, "end"), 0xaa + i);
		m = field(&n->type, "n");
		deep = *m;
		deep.offset += n->offset;
		check_bytes(row, &deep, 0x778899 + i);
		CHECK_EQ_U(row[field(&t.served, "text")->offset], 2);
	}
	CHECK_EQ_U(field(&t.served, "text")->type.size, heap);
	CHECK_EQ_U(field(&t.served, "sequence")->type.kind, DTYPE_RAGGED);
	CHECK_EQ_U(field(&t.served, "both")->type.size, heap);
	CHECK_EQ_U(field(&t.served, "both")->dims[0], 2);
	CHECK_EQ_U(field(&t.stored, "last")->type.kind, DTYPE_FLOAT);
	/* Without the dataset no place is sure. */
	CHECK_EQ_U(field(&blind.stored, "last")->type.kind, DTYPE_OTHER);
	CHECK_EQ_U(field(&blind.served, "last")->type.kind, DTYPE_FLOAT);
}

TEST(members_in_the_file)
{
	check_rows(8);
	check_rows(4);
}

/* ---- what H5Dread makes -------------------------------------------------- */

/* One element, written as `written`, read back through the memory type. */
static void round_trip(hid_t type, const void *written, const char *member,
		       void *out, size_t size)
{
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t s = H5Screate(H5S_SCALAR), stored, m, leaf;
	hid_t d = H5Dcreate2(f, "x", type, s, H5P_DEFAULT, H5P_DEFAULT,
			     H5P_DEFAULT);
	uint64_t dims[RANK_MAX];
	struct hdf5_type t;
	unsigned rank;

	CHECK(H5Dwrite(d, type, s, s, H5P_DEFAULT, written) >= 0);
	stored = H5Dget_type(d);
	leaf = hdf5_type_member(stored, member, &rank, dims);
	t = read_as(leaf, false);
	m = hdf5_type_memory(stored, &t.served, member);
	CHECK(m >= 0);
	CHECK_EQ_U(H5Tget_size(m), size);
	memset(out, 0xee, size);
	CHECK(H5Dread(d, m, s, s, H5P_DEFAULT, out) >= 0);
	H5Tclose(m);
	H5Tclose(leaf);
	H5Tclose(stored);
	H5Dclose(d);
	H5Sclose(s);
	CHECK(H5Fclose(f) >= 0);
}

static void check_read(hid_t type, const void *written, const void *want,
		       size_t size)
{
	unsigned char out[128];

	round_trip(type, written, NULL, out, size);
	CHECK_MEM(out, want, size);
	H5Tclose(type);
}

TEST(reading_numbers)
{
	static const char *const color[] = {"RED", "GREEN"};
	static const char *const truth[] = {"FALSE", "TRUE"};

	check_read(narrow(H5T_STD_I32LE, 3, 24, 0), "\xfe\xff\xff",
		   "\xfe\xff\xff\xff", 4);
	check_read(H5Tcopy(H5T_STD_U32BE), "\1\2\3\4", "\4\3\2\1", 4);
	check_read(narrow(H5T_STD_B16LE, 2, 9, 2), "\xff\x07", "\xff\x01", 2);
	check_read(H5Tcopy(H5T_STD_B16BE), "\1\2", "\2\1", 2);
	/* Bits, not the number. */
	check_read(float_type(2, 8, 7, 127), "\xc0\x3f", "\xc0\x3f", 2);
	check_read(float_type(2, 5, 10, 15), "\x00\x3e", "\x00\x3e", 2);
	check_read(float_type(3, 8, 15, 127), "\x00\xc0\x3f",
		   "\x00\x00\xc0\x3f", 4);
	check_read(enum_of(H5T_STD_U16BE, 2, color), "\0\1", "\1\0", 2);
	check_read(enum_of(H5T_STD_I8LE, 2, truth), "\1", "\1", 1);
	check_read(pair_of("r", "i", H5T_IEEE_F32BE, 0),
		   "\x3f\x80\0\0\x40\0\0\0", "\0\0\x80\x3f\0\0\0\x40", 8);
	check_read(array_of(H5T_STD_I16BE, 2, 2), "\0\1\0\2\0\3\0\4",
		   "\1\0\2\0\3\0\4\0", 8);
}

TEST(reading_structures)
{
	hid_t three = narrow(H5T_STD_I32LE, 3, 24, 0);
	hid_t t = structure(three), o = H5Tcreate(H5T_OPAQUE, 3);
	static const char s[65] = "\0\0\xfe\xff\xff..........a  c\0"
				  "\0\0\x80\x3f\0\0\0\x40"
				  "\0\1\0\2\0\3\0\4\0\5\0\6________vwxyzabcde";
	static const char want[] = "\xfe\xff\xff\xff"
				   "a  c\0"
				   "\0\0\x80\x3f\0\0\0\x40"
				   "\1\0\2\0\3\0\4\0\5\0\6\0"
				   "vwxyzabcde";
	uint64_t dims[RANK_MAX];
	unsigned char out[64];
	unsigned rank;

	round_trip(t, s, NULL, out, 39);
	CHECK_MEM(out, want, 39);
	round_trip(t, s, "first", out, 4);
	CHECK_MEM(out, want, 4);
	round_trip(t, s, "complex/i", out, 4);
	CHECK_MEM(out, "\0\0\0\x40", 4);
	round_trip(t, s, "array", out, 12);
	CHECK_MEM(out, want + 17, 12);
	CHECK(hdf5_type_member(t, "nothing", &rank, dims) < 0);
	CHECK(hdf5_type_member(t, "complex/r/x", &rank, dims) < 0);
	H5Tset_tag(o, "tag");
	check_read(o, "abc", "abc", 3);
	H5Tclose(t);
	H5Tclose(three);
}

/* Rows: what is mapped; columns: what is there.  '=': the same; 'n': a number
 * that we convert; 'l': the library does; '.': an error. */
TEST(what_converts)
{
	static const char *const color[] = {"RED", "bitfield"};
	static const char *const other[] = {"RED", "as its bits"};
	static const char *const truth[] = {"FALSE", "TRUE"};
	static const char *const want[] = {
		/* i2 U2 f4 bf BF b2 b1 e1 E1 e2 bo s4 s8 ra z8 */
		"=nnll..nnnn....", /* i2 */
		"n=nll..nnnn....", /* U2, big-endian */
		"nn=ll..nnnn....", /* f4 */
		"lll=l..llll....", /* bfloat16 */
		"llll=..llll....", /* the same, big-endian */
		".....=l........", /* 16 bits */
		".....l=........", /* 8 bits */
		"nn.....=.......", /* enum of 8 bits */
		"nn......=......", /* the same, another name */
		"nn.......=.....", /* of 16 bits */
		"..........=....", /* bool */
		"...........=...", /* 4 characters */
		"...........==..", /* 8 characters */
		".............=.", /* sequences */
		"..............=", /* complex */
	};
	hid_t s4 = H5Tcopy(H5T_C_S1), s8 = H5Tcopy(H5T_C_S1);
	hid_t bf = float_type(2, 8, 7, 127), be = H5Tcopy(bf);
	struct hdf5_type t[15];
	struct dtype stored;

	H5Tset_size(s4, 4);
	H5Tset_size(s8, 8);
	H5Tset_order(be, H5T_ORDER_BE);
	t[0] = read_type(H5Tcopy(H5T_STD_I16LE));
	t[1] = read_type(H5Tcopy(H5T_STD_U16BE));
	t[2] = read_type(H5Tcopy(H5T_IEEE_F32LE));
	t[3] = read_type(bf);
	t[4] = read_type(be);
	t[5] = read_type(H5Tcopy(H5T_STD_B16LE));
	t[6] = read_type(H5Tcopy(H5T_STD_B8LE));
	t[7] = read_type(enum_of(H5T_STD_I8LE, 2, color));
	t[8] = read_type(enum_of(H5T_STD_I8LE, 2, other));
	t[9] = read_type(enum_of(H5T_STD_I16LE, 2, color));
	t[10] = read_type(enum_of(H5T_STD_I8LE, 2, truth));
	t[11] = read_type(s4);
	t[12] = read_type(s8);
	t[13] = read_type(H5Tvlen_create(H5T_STD_I16LE));
	t[14] = read_type(pair_of("r", "i", H5T_IEEE_F32LE, 0));
	for (unsigned i = 0; i < 15; i++)
		for (unsigned k = 0; k < 15; k++) {
			enum hdf5_match m =
				hdf5_type_match(&t[k], &t[i], &stored);
			char is = m == HDF5_SAME               ? '='
				  : m == HDF5_DIFFERENT        ? '.'
				  : stored.kind == DTYPE_OTHER ? 'l'
							       : 'n';

			if (is != want[i][k])
				test_fail(__FILE__, __LINE__,
					  "row %u, column %u: '%c' is not '%c'",
					  i, k, is, want[i][k]);
		}
	/* Bits that nobody has to move. */
	t[0] = read_type(H5Tcopy(H5T_STD_U16LE));
	CHECK_EQ_U(hdf5_type_match(&t[5], &t[0], &stored), HDF5_CONVERTIBLE);
	CHECK_EQ_U(hdf5_type_match(&t[0], &t[5], &stored), HDF5_CONVERTIBLE);
	CHECK_EQ_U(hdf5_type_match(&t[6], &t[0], &stored), HDF5_DIFFERENT);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	intern_init(&in);
	hdf5_lock();
	RUN(integers);
	RUN(bitfields);
	RUN(floats);
	RUN(enums);
	RUN(strings_and_bytes);
	RUN(arrays);
	RUN(sequences);
	RUN(complex_numbers);
	RUN(structures);
	RUN(members_in_the_file);
	RUN(reading_numbers);
	RUN(reading_structures);
	RUN(what_converts);
	hdf5_unlock();
	intern_free(&in);
	unlink(path);
	return test_done();
}
