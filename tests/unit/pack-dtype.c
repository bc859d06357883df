/* SPDX-License-Identifier: BSD-2-Clause */
/* NumPy's types: what is spelled, and what HDF5 makes of it. */
#include "test.h"

#include <errno.h>
#include <float.h>

#include "base/error.h"
#include "formats/hdf5/type/dtype.h"
#include "formats/hdf5/file/driver.h"
#include "tensor/dtype_parse.h"

/* H5Tencode of what h5py 3.7 makes: h5py.h5t.py_create(numpy.dtype(D),
 * logical=True).encode().hex().  Not of '>c32', which it makes little-endian. */
static const struct {
	const char *text, *hex;
} types[] = {
	{"i1", "0300100800000100000000000800"},
	{"u1", "0300100000000100000000000800"},
	{"<i2", "0300100800000200000000001000"},
	{">i2", "0300100900000200000000001000"},
	{"<u2", "0300100000000200000000001000"},
	{">u2", "0300100100000200000000001000"},
	{"<i4", "0300100800000400000000002000"},
	{">i4", "0300100900000400000000002000"},
	{"<u4", "0300100000000400000000002000"},
	{">u4", "0300100100000400000000002000"},
	{"<i8", "0300100800000800000000004000"},
	{">i8", "0300100900000800000000004000"},
	{"<u8", "0300100000000800000000004000"},
	{">u8", "0300100100000800000000004000"},
	{"<f2", "030011200f0002000000000010000a05000a0f000000"},
	{">f2", "030011210f0002000000000010000a05000a0f000000"},
	{"<f4", "030011201f000400000000002000170800177f000000"},
	{">f4", "030011211f000400000000002000170800177f000000"},
	{"<f8", "030011203f000800000000004000340b0034ff030000"},
	{">f8", "030011213f000800000000004000340b0034ff030000"},
	{"?", "0300180200000100000010080000010000000000080046414c53450000005452"
	      "5545000000000001"},
	{"S5", "03001301000005000000"},
	{"V12", "0300150000000c000000"},
	{"<c8",
	 "030016020000080000007200000000000000000000000000000000000000000000000"
	 "000000000000000000000000000000011201f000400000000002000170800177f0000"
	 "006900000000000000040000000000000000000000000000000000000000000000000"
	 "000000000000011201f000400000000002000170800177f000000"},
	{">c8",
	 "030016020000080000007200000000000000000000000000000000000000000000000"
	 "000000000000000000000000000000011211f000400000000002000170800177f0000"
	 "006900000000000000040000000000000000000000000000000000000000000000000"
	 "000000000000011211f000400000000002000170800177f000000"},
	{"<c16",
	 "030016020000100000007200000000000000000000000000000000000000000000000"
	 "000000000000000000000000000000011203f000800000000004000340b0034ff0300"
	 "006900000000000000080000000000000000000000000000000000000000000000000"
	 "000000000000011203f000800000000004000340b0034ff030000"},
	{">c16",
	 "030016020000100000007200000000000000000000000000000000000000000000000"
	 "000000000000000000000000000000011213f000800000000004000340b0034ff0300"
	 "006900000000000000080000000000000000000000000000000000000000000000000"
	 "000000000000011213f000800000000004000340b0034ff030000"},
	{"<f16", "030011004f001000000000005000400f0040ff3f0000"},
	{">f16", "030011014f001000000000005000400f0040ff3f0000"},
	{"<c32",
	 "030016020000200000007200000000000000000000000000000000000000000000000"
	 "000000000000000000000000000000011004f001000000000005000400f0040ff3f00"
	 "006900000000000000100000000000000000000000000000000000000000000000000"
	 "000000000000011004f001000000000005000400f0040ff3f0000"},
};

TEST(as_h5py_makes_them)
{
	unsigned char bytes[512];
	char hex[1025];
	struct error err = {0};

	hdf5_lock();
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		size_t n = sizeof bytes, size;
		hid_t t;

		if (LDBL_MANT_DIG != 64 && strstr(types[i].text, "16") &&
		    types[i].text[1] == 'f')
			continue;
		test_name = types[i].text;
		CHECK_OK(hdf5_type_of_numpy(types[i].text, &t, &size, &err));
		CHECK(H5Tencode(t, NULL, &n) >= 0 && n <= sizeof bytes);
		CHECK(H5Tencode(t, bytes, &n) >= 0);
		for (size_t k = 0; k < n; k++)
			sprintf(hex + 2 * k, "%02x", bytes[k]);
		CHECK_STR(hex, types[i].hex);
		CHECK_EQ_U(H5Tget_size(t), size);
		H5Tclose(t);
	}
	hdf5_unlock();
}

TEST(spellings)
{
	static const char *const same[][2] = {
		{"float32", "<f4"},     {"f4", "<f4"},       {"=f4", "<f4"},
		{"single", "<f4"},      {"f", "<f4"},        {">f", ">f4"},
		{"double", "<f8"},      {"float", "<f8"},    {"float16", "<f2"},
		{"uint8", "|u1"},       {"B", "|u1"},        {"<u1", "|u1"},
		{">i1", "|i1"},         {"bool", "|b1"},     {"?", "|b1"},
		{"b", "|i1"},           {"b1", "|b1"},       {"int", "<i8"},
		{"complex128", "<c16"}, {"D", "<c16"},       {">c8", ">c8"},
		{"S7", "|S7"},          {"a7", "|S7"},       {">S7", "|S7"},
		{"V300", "|V300"},      {"longlong", "<i8"}, {"H", "<u2"},
	};
	struct error err = {0};
	struct dtype d;
	char text[32];

	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		CHECK_OK(dtype_parse(same[i][0], &d, &err));
		dtype_descr(&d, text, sizeof text);
		CHECK_STR(text, same[i][1]);
	}
}

TEST(refused)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} bad[] = {
		{"", -EINVAL, "not a type of NumPy"},
		{"<", -EINVAL, "not a type of NumPy"},
		{"float33", -EINVAL, "not a type of NumPy"},
		{"f3", -EINVAL, "no such type of 3 bytes"},
		{"f", 0, NULL},
		{"i16", -EINVAL, "no such type of 16 bytes"},
		{"c4", -EINVAL, "no such type"},
		{"b2", -EINVAL, "no such type"},
		{"u0", -EINVAL, "no such type"},
		{"S", -EINVAL, "no such type of 0 bytes"},
		{"V0", -EINVAL, "no such type of 0 bytes"},
		{"S18446744073709551617", -EINVAL, "not a type of NumPy"},
		{"S4294967295", -EINVAL, "no such type"},
		{"f-4", -EINVAL, "not a type of NumPy"},
		{"f4 ", -EINVAL, "not a type of NumPy"},
		{" f4", -EINVAL, "not a type of NumPy"},
		{"<<f4", -EINVAL, "not a type of NumPy"},
		{"\xff\xfe", -EINVAL, "not a type of NumPy"},
		{"<U5", -ENOTSUP, "save it as bytes (S)"},
		{"<M8[s]", -ENOTSUP, "save them as int64"},
		{"m8", -ENOTSUP, "save them as int64"},
		{"|O", -ENOTSUP, "Python objects"},
		{"[('a', '<f4')]", -ENOTSUP, "structures are not packed"},
		{"f4,i2", -ENOTSUP, "structures are not packed"},
		{"bfloat16", -ENOTSUP, "uint16"},
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = {0};
		struct dtype d;

		CHECK_EQ_I(dtype_parse(bad[i].text, &d, &err), bad[i].code);
		if (bad[i].says && !strstr(err.text, bad[i].says))
			test_fail(__FILE__, __LINE__, "%s: %s", bad[i].text,
				  err.text);
	}
}

int main(void)
{
	struct error err = {0};

	CHECK_OK(hdf5_init(&err));
	RUN(as_h5py_makes_them);
	RUN(spellings);
	RUN(refused);
	return test_done();
}
