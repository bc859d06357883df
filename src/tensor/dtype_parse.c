/* SPDX-License-Identifier: BSD-2-Clause */
/* Element types as people and .npy files spell them. */
#include "tensor/dtype_parse.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "base/number.h"

/* Largest element in bytes: the rest of the program counts them in 32 bits, as HDF5's
 * own types do. */
#define SIZE_MOST (UINT32_C(1) << 30)

/* NumPy's longdouble is the C compiler's: that of x86 has 64 bits of mantissa, in 16
 * bytes. */
#define HAVE_X87 (LDBL_MANT_DIG == 64)

/* Names and single letters, which mean the byte order of the machine that wrote them,
 * as numpy.dtype(NAME) of NumPy 1.24 knows them on 64-bit Linux. */
static const struct {
	const char *name;
	char kind;
	uint8_t size;
} names[] = {
	{"bool", 'b', 1},        {"bool_", 'b', 1},
	{"?", 'b', 1},           {"int8", 'i', 1},
	{"byte", 'i', 1},        {"b", 'i', 1},
	{"uint8", 'u', 1},       {"ubyte", 'u', 1},
	{"B", 'u', 1},           {"int16", 'i', 2},
	{"short", 'i', 2},       {"h", 'i', 2},
	{"uint16", 'u', 2},      {"ushort", 'u', 2},
	{"H", 'u', 2},           {"int32", 'i', 4},
	{"intc", 'i', 4},        {"i", 'i', 4},
	{"uint32", 'u', 4},      {"uintc", 'u', 4},
	{"I", 'u', 4},           {"int64", 'i', 8},
	{"int", 'i', 8},         {"int_", 'i', 8},
	{"longlong", 'i', 8},    {"l", 'i', 8},
	{"q", 'i', 8},           {"intp", 'i', 8},
	{"long", 'i', 8},        {"p", 'i', 8},
	{"uint64", 'u', 8},      {"uint", 'u', 8},
	{"ulonglong", 'u', 8},   {"uintp", 'u', 8},
	{"ulong", 'u', 8},       {"P", 'u', 8},
	{"L", 'u', 8},           {"Q", 'u', 8},
	{"float16", 'f', 2},     {"half", 'f', 2},
	{"e", 'f', 2},           {"float32", 'f', 4},
	{"single", 'f', 4},      {"f", 'f', 4},
	{"float64", 'f', 8},     {"double", 'f', 8},
	{"float", 'f', 8},       {"float_", 'f', 8},
	{"d", 'f', 8},           {"longdouble", 'f', 16},
	{"float128", 'f', 16},   {"g", 'f', 16},
	{"complex64", 'c', 8},   {"csingle", 'c', 8},
	{"F", 'c', 8},           {"complex128", 'c', 16},
	{"cdouble", 'c', 16},    {"complex", 'c', 16},
	{"complex_", 'c', 16},   {"cfloat", 'c', 16},
	{"D", 'c', 16},          {"clongdouble", 'c', 32},
	{"complex256", 'c', 32}, {"G", 'c', 32},
};

static const struct {
	char letter;
	enum dtype_kind kind;
	/* sizes in bytes, each as the character '@' + size; NULL: any */
	const char *sizes;
} kinds[] = {
	{'b', DTYPE_BOOL, "A"},      {'i', DTYPE_INT, "ABDH"},
	{'u', DTYPE_UINT, "ABDH"},   {'f', DTYPE_FLOAT, "BDHP"},
	{'c', DTYPE_COMPLEX, "HP`"}, {'S', DTYPE_BYTES, NULL},
	{'a', DTYPE_BYTES, NULL},    {'V', DTYPE_OPAQUE, NULL},
};

static int dtype_refuse(const char *text, char letter, struct error *err)
{
	switch (letter) {
	case 'U':
		return error_set(err, -ENOTSUP,
				 "%s: NumPy's text is not supported; save it "
				 "as bytes (S)",
				 text);
	case 'M':
	case 'm':
		return error_set(err, -ENOTSUP,
				 "%s: NumPy's dates and times are not "
				 "supported; save them as int64",
				 text);
	case 'O':
		return error_set(err, -ENOTSUP,
				 "%s: Python objects are not supported; save "
				 "an array of a fixed type",
				 text);
	default:
		return error_set(err, -EINVAL,
				 "'%s' is not a type of NumPy, such as "
				 "float32, uint8 or <i2",
				 text);
	}
}

static int dtype_set_sized(const char *text, char letter, uint64_t size,
			   bool big, struct dtype *out, struct error *err)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const char *sizes = kinds[i].sizes;
		bool numeric = sizes != NULL;

		if (kinds[i].letter != letter)
			continue;
		if (size == 0 || size > SIZE_MOST ||
		    (numeric && (size > 32 || !strchr(sizes, '@' + (int)size))))
			return error_set(
				err, -EINVAL,
				"'%s': NumPy has no such type of %llu bytes",
				text, (unsigned long long)size);
		if (letter != 'c' ? numeric && size == 16 && !HAVE_X87
				  : size == 32 && !HAVE_X87)
			return error_set(err, -ENOTSUP,
					 "'%s': this machine does not have the "
					 "long double of x86",
					 text);
		*out = (struct dtype){.kind = kinds[i].kind,
				      .size = (uint32_t)size,
				      .big_endian = big && numeric && size > 1};
		return 0;
	}
	return dtype_refuse(text, letter, err);
}

/* Parse a letter and a size, "f4".  A letter alone is in `names`, except S and V, which
 * have no size then, and letters of types that are not supported. */
static int dtype_parse_sized(const char *text, const char *at, bool big,
			     struct dtype *out, struct error *err)
{
	uint64_t size = 0;
	char letter = *at;

	if (!letter)
		return dtype_refuse(text, letter, err);
	at++;
	if ((letter == 'M' || letter == 'm') && strspn(at, "8") == 1)
		return dtype_refuse(text, letter, err);
	for (; *at >= '0' && *at <= '9'; at++)
		if (mul_overflows(size, 10, &size) ||
		    add_overflows(size, (uint64_t)(*at - '0'), &size))
			return dtype_refuse(text, '\0', err);
	if (*at)
		return dtype_refuse(text, '\0', err);
	return dtype_set_sized(text, letter, size, big, out, err);
}

int dtype_parse(const char *text, struct dtype *out, struct error *err)
{
	const char *at = text;
	bool big = false;

	if (*at == '[' || *at == '{' || *at == '(' || strchr(at, ','))
		return error_set(err, -ENOTSUP,
				 "%.100s: structures are not packed; save each "
				 "field as an array",
				 text);
	if (*at && strchr("<>=|", *at))
		big = *at++ == '>';
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(at, names[i].name))
			return dtype_set_sized(text, names[i].kind,
					       names[i].size, big, out, err);
	if (!strcmp(at, "bfloat16"))
		return error_set(err, -ENOTSUP,
				 "bfloat16: NumPy and HDF5 have no such type; "
				 "use uint16 for its bits");
	return dtype_parse_sized(text, at, big, out, err);
}

/* ---- of files that are shown --------------------------------------------- */

/* Is this what may follow "M8" or "datetime64": nothing, or a unit in brackets? */
static bool is_date_unit(const char *at)
{
	static const char *const units[] = {"Y",  "M",  "W",  "D",      "h",
					    "m",  "s",  "ms", "us",     "ns",
					    "ps", "fs", "as", "generic"};
	size_t n;

	if (!*at)
		return true;
	if (*at++ != '[')
		return false;
	at += strspn(at, "0123456789");
	n = strcspn(at, "/]");
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strlen(units[i]) != n || strncmp(at, units[i], n) != 0)
			continue;
		at += n;
		if (*at == '/')
			at += 1 + strspn(at + 1, "0123456789");
		return !strcmp(at, "]");
	}
	return false;
}

/* Parse a date or time type, whose elements are counts of a unit.  Return false if it
 * is not such a type. out->text is NULL when memory ran out. */
static bool dtype_parse_date(const char *text, struct intern *in,
			     struct dtype *out)
{
	static const struct {
		const char *spelled, *name;
	} kinds_of_dates[] = {{"M8", "datetime64"},
			      {"m8", "timedelta64"},
			      {"datetime64", "datetime64"},
			      {"timedelta64", "timedelta64"}};
	const char *at = text + (*text && strchr("<>=|", *text));
	char says[96];

	for (size_t i = 0; i < 4; i++) {
		size_t n = strlen(kinds_of_dates[i].spelled);

		if (strncmp(at, kinds_of_dates[i].spelled, n) != 0 ||
		    strlen(at) > 48 || !is_date_unit(at + n))
			continue;
		memset(out, 0, sizeof *out);
		out->kind = DTYPE_INT;
		out->size = 8;
		out->big_endian = *text == '>';
		snprintf(says, sizeof says, "%s%s, shown as int64",
			 kinds_of_dates[i].name, at + n);
		out->text = intern_text(in, says);
		return true;
	}
	return false;
}

/* Is this a type without bytes, such as "S" or "|V0"? */
static bool is_empty_type(const char *at)
{
	return *at && strchr("SaVU", *at) && at[1 + strspn(at + 1, "0")] == 0;
}

int dtype_parse_stored(const char *text, struct intern *in, struct dtype *out,
		       struct error *err)
{
	const char *at = text + (*text && strchr("<>=|", *text));

	if (dtype_parse_date(text, in, out))
		return out->text ? 0
				 : error_no_memory(err, "the name of a type");
	if ((*at == 'M' || *at == 'm') && at[1] == '8')
		return error_set(err, -EINVAL,
				 "'%.40s' is a date or time with a unit that "
				 "NumPy does not know",
				 text);
	if (is_empty_type(at))
		return error_set(err, -ENOTSUP,
				 "its elements ('%.40s') have no bytes, so "
				 "there is nothing to show",
				 text);
	if (*at == 'U' || !strcmp(at, "str"))
		return error_set(err, -ENOTSUP,
				 "its elements are text (%.20s), which is not "
				 "supported: save them as bytes (S)",
				 text);
	if (*at == 'O' || !strcmp(at, "object"))
		return error_set(err, -ENOTSUP,
				 "its elements are Python objects, or of "
				 "variable length, which is not supported");
	if (*at == '(' || *at == '[' || *at == '{' || strchr(at, ','))
		return error_set(err, -ENOTSUP,
				 "its type '%.40s' is a structure spelled as "
				 "one string, which is not supported: load it "
				 "with NumPy, and save it again",
				 text);
	return dtype_parse(text, out, err);
}
