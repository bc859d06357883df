/* SPDX-License-Identifier: BSD-2-Clause */
/* HDF5 types that a damaged file can have: libhdf5 takes them, we do not. */
#include "test.h"

#include "formats/hdf5/file/driver.h"
#include "formats/hdf5/type/type.h"

static struct intern in;

static void check_refused(hid_t type, const char *text)
{
	struct hdf5_type t;

	CHECK_OK(hdf5_type_read(&in, type, false, &t));
	H5Tclose(type);
	CHECK_EQ_U(t.served.kind, DTYPE_OTHER);
	CHECK_EQ_U(t.stored.kind, DTYPE_OTHER);
	CHECK_STR(t.served.text, text);
}

/* The type with one byte of its stored form changed. */
static hid_t damaged(hid_t type, size_t at, unsigned char to)
{
	unsigned char bytes[64] = {0};
	size_t n = sizeof bytes;
	hid_t out;

	CHECK(H5Tencode(type, bytes, &n) >= 0);
	bytes[2 + at] = to; /* (behind what H5Tencode puts in front) */
	out = H5Tdecode(bytes);
	CHECK(out >= 0);
	return out;
}

/* libhdf5 would read what lies beside an element. */
TEST(bits_outside)
{
	enum { OFFSET = 8, PRECISION = 10, EPOS = 12, ESIZE, MPOS, MSIZE };
	static const char integer[] =
		"damaged integer of 4 bytes: bits lie outside of them";
	static const char real[] = "a damaged floating-point type: bits lie "
				   "outside of its bytes";

	check_refused(damaged(H5T_STD_I32LE, OFFSET, 1), integer);
	check_refused(damaged(H5T_STD_U32BE, OFFSET + 1, 255), integer);
	check_refused(damaged(H5T_STD_I32LE, PRECISION, 33), integer);
	check_refused(damaged(H5T_STD_I32LE, PRECISION, 0), integer);
	check_refused(damaged(H5T_STD_B32LE, PRECISION + 1, 1),
		      "damaged bitfield of 4 bytes: bits lie outside of them");
	check_refused(damaged(H5T_IEEE_F64LE, OFFSET, 8), real);
	check_refused(damaged(H5T_IEEE_F64LE, EPOS, 60), real);
	check_refused(damaged(H5T_IEEE_F64LE, ESIZE, 0), real);
	check_refused(damaged(H5T_IEEE_F64LE, MPOS, 20), real);
	check_refused(damaged(H5T_IEEE_F64BE, MSIZE, 200), real);
}

int main(void)
{
	intern_init(&in);
	hdf5_lock();
	RUN(bits_outside);
	hdf5_unlock();
	intern_free(&in);
	return test_done();
}
