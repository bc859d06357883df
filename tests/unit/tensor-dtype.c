/* SPDX-License-Identifier: BSD-2-Clause */
/* Types: headers byte for byte as NumPy 1.24 writes them, names, recodes. */
#include "tensor/dtype.h"
#include "test.h"

/* ---- types to try -------------------------------------------------------- */

#define I(n)                                 \
	{                                    \
		.kind = DTYPE_INT, .size = n \
	}
#define U(n)                                  \
	{                                     \
		.kind = DTYPE_UINT, .size = n \
	}
#define F(n)                                   \
	{                                      \
		.kind = DTYPE_FLOAT, .size = n \
	}
#define C(n)                                     \
	{                                        \
		.kind = DTYPE_COMPLEX, .size = n \
	}
#define BE(k, n)                                                 \
	{                                                        \
		.kind = DTYPE_##k, .size = n, .big_endian = true \
	}
#define BOOL                                  \
	{                                     \
		.kind = DTYPE_BOOL, .size = 1 \
	}
#define BYTES(n)                               \
	{                                      \
		.kind = DTYPE_BYTES, .size = n \
	}
#define OPAQUE(n)                               \
	{                                       \
		.kind = DTYPE_OPAQUE, .size = n \
	}
#define COUNT(a) (uint32_t)(sizeof(a) / sizeof *(a))
#define STRUCT(n, f)                                                  \
	{                                                             \
		.kind = DTYPE_STRUCT, .size = n, .nfields = COUNT(f), \
		.fields = f                                           \
	}

static const uint64_t dims2x2[] = {2, 2}, dims2x4[] = {2, 4}, dims3[] = {3};

static const struct dtype_field plain_f[] = {
	{.name = "r", .offset = 0, .type = F(4)},
	{.name = "n", .offset = 4, .type = U(2)},
};
static const struct dtype_field padded_f[] = {
	{.name = "a", .offset = 0, .type = I(4)},
	{.name = "b", .offset = 8, .type = BE(FLOAT, 8)},
	{.name = "d", .offset = 17, .type = BOOL},
};
static const struct dtype_field pair_f[] = {
	{.name = "u", .offset = 0, .type = I(1)},
	{.name = "v", .offset = 1, .type = F(8)},
};
static const struct dtype_field nested_f[] = {
	{.name = "x", .offset = 0, .type = BE(INT, 4)},
	{.name = "p",
	 .offset = 4,
	 .rank = 2,
	 .dims = dims2x2,
	 .type = STRUCT(9, pair_f)},
	{.name = "s", .offset = 40, .type = BYTES(5)},
};
static const struct dtype_field subarray_f[] = {
	{.name = "m", .offset = 0, .rank = 1, .dims = dims3, .type = F(4)},
	{.name = "k", .offset = 12, .rank = 2, .dims = dims2x4, .type = C(8)},
	{.name = "o", .offset = 76, .type = OPAQUE(3)},
};
static const struct dtype_field quotes_f[] = {
	{.name = "a'b", .offset = 0, .type = I(4)},
	{.name = "c\"d", .offset = 4, .type = I(4)},
	{.name = "e'\"f", .offset = 8, .type = I(4)},
	{.name = "g\\h", .offset = 12, .type = I(4)},
	{.name = "t\t\n\r\001\177\302\205", .offset = 16, .type = I(4)},
	{.name = "\342\200\213\363\240\201\201", .offset = 20, .type = I(4)},
};
static const struct dtype_field latin_f[] = {
	{.name = "\303\251", .offset = 0, .type = I(4)},
	{.name = "\303\277\303\200", .offset = 4, .type = F(8)},
	{.name = "\302\240\302\255", .offset = 12, .type = I(1)},
};
static const struct dtype_field wide_f[] = {
	{.name = "\303\251", .offset = 0, .type = I(4)},
	{.name = "\346\227\245\346\234\254", .offset = 4, .type = F(8)},
	{.name = "\360\237\230\200", .offset = 12, .type = I(1)},
};
static const struct dtype_field empty_f[] = {
	{.name = "", .offset = 0, .type = I(4)},
	{.name = "b", .offset = 4, .type = I(4)},
};
static const struct dtype_field inner_padded_f[] = {
	{.name = "p", .offset = 8, .type = STRUCT(24, padded_f)},
};

/* ---- headers ------------------------------------------------------------- */

/* All of it, written; and in plans of windows of all kinds. */
static unsigned char *header_of(const struct dtype *d, unsigned rank,
				const uint64_t *shape, char **descr, size_t *n)
{
	struct npy_header h;
	unsigned char *out;
	size_t len = dtype_descr(d, NULL, 0);

	*descr = malloc(len + 1);
	CHECK(*descr);
	CHECK_EQ_U(dtype_descr(d, *descr, len + 1), len);
	CHECK_EQ_U(strlen(*descr), len);
	CHECK(dtype_npy_header(d, *descr, rank, shape, &h));
	CHECK_EQ_U(h.total % 64, 0);
	CHECK_EQ_U(h.front_len + h.descr_len + h.back_len, h.total);
	out = malloc(h.total);
	CHECK(out);
	dtype_npy_write(&h, out);
	*n = h.total;
	return out;
}

static void check_window(const struct npy_header *h, const unsigned char *whole,
			 uint64_t off, uint64_t len)
{
	uint64_t end = off + len < h->total ? off + len : h->total;
	struct plan p;

	while (off < end) {
		uint64_t took;

		plan_init(&p, end - off);
		took = dtype_npy_map(h, off, &p);
		CHECK(took > 0 && took == p.have);
		for (unsigned i = 0; i < p.n; i++) {
			CHECK_EQ_I(p.ext[i].kind, EXTENT_MEM);
			CHECK_MEM(p.ext[i].u.mem.data, whole + off,
				  p.ext[i].len);
			off += p.ext[i].len;
		}
	}
	CHECK_EQ_U(off, end);
}

static void check_maps(const struct dtype *d, const char *descr, unsigned rank,
		       const uint64_t *shape, const unsigned char *whole)
{
	struct npy_header h;
	uint64_t step;

	CHECK(dtype_npy_header(d, descr, rank, shape, &h));
	check_window(&h, whole, 0, h.total);
	check_window(&h, whole, 0, UINT64_MAX / 2);
	step = h.total <= 2048 ? 1 : test_full() ? 641 : 10007;
	for (uint64_t off = 0; off < h.total; off += step) {
		check_window(&h, whole, off, 1);
		check_window(&h, whole, off, 100);
		check_window(&h, whole, off, h.total);
	}
}

static uint64_t fnv(uint64_t sum, const unsigned char *p, size_t n)
{
	for (; n; n--)
		sum = (sum ^ *p++) * UINT64_C(0x100000001b3);
	return sum;
}
#define FNV UINT64_C(0xcbf29ce484222325)

/* Made by numpy.lib.format of NumPy 1.24.2; spaces and newline cut off. */
static const struct golden {
	struct dtype type;
	unsigned rank;
	uint64_t shape[6];
	size_t total;
	const char *text;
	size_t zeros; /* in text */
} golden[] = {
#define HEAD "\223NUMPY\001\000"
#define ORDER ", 'fortran_order': False, 'shape': "
#define G(head, descr, shape) head "{'descr': " descr ORDER shape ", }"
#define V1 HEAD "v\000"
	{F(4), 0, {0}, 128, G(V1, "'<f4'", "()"), 2},
	{F(4), 1, {5}, 128, G(V1, "'<f4'", "(5,)"), 2},
	{BE(INT, 2), 2, {3, 4}, 128, G(V1, "'>i2'", "(3, 4)"), 2},
	{BE(UINT, 1), 3, {1, 2, 3}, 128, G(V1, "'|u1'", "(1, 2, 3)"), 2},
	{C(16), 4, {0, 7, 8, 9}, 128, G(V1, "'<c16'", "(0, 7, 8, 9)"), 2},
	{BOOL,
	 5,
	 {1, 2, 3, 4, 1000000000000},
	 128,
	 G(V1, "'|b1'", "(1, 2, 3, 4, 1000000000000)"),
	 2},
	{F(2),
	 1,
	 {UINT64_MAX},
	 128,
	 G(V1, "'<f2'", "(18446744073709551615,)"),
	 2},
	{OPAQUE(12), 1, {3}, 128, G(V1, "'|V12'", "(3,)"), 2},
	{F(16), 1, {2}, 128, G(V1, "'<f16'", "(2,)"), 2},
	{BE(COMPLEX, 32), 1, {2}, 128, G(V1, "'>c32'", "(2,)"), 2},
	{STRUCT(6, plain_f),
	 1,
	 {3},
	 128,
	 G(V1, "[('r', '<f4'), ('n', '<u2')]", "(3,)"),
	 2},
	{STRUCT(24, padded_f),
	 1,
	 {3},
	 192,
	 G(HEAD "\266\000",
	   "[('a', '<i4'), ('', '|V4'), ('b', '>f8'), ('', '|V1'), "
	   "('d', '|b1'), ('', '|V6')]",
	   "(3,)"),
	 2},
	{STRUCT(45, nested_f),
	 1,
	 {2},
	 192,
	 G(HEAD "\266\000",
	   "[('x', '>i4'), ('p', [('u', '|i1'), ('v', '<f8')], (2, 2)), "
	   "('s', '|S5')]",
	   "(2,)"),
	 2},
	{STRUCT(79, subarray_f),
	 0,
	 {0},
	 128,
	 G(V1, "[('m', '<f4', (3,)), ('k', '<c8', (2, 4)), ('o', '|V3')]",
	   "()"),
	 2},
	{STRUCT(24, quotes_f),
	 1,
	 {3},
	 256,
	 G(HEAD "\366\000",
	   "[(\"a'b\", '<i4'), ('c\"d', '<i4'), ('e\\'\"f', '<i4'), "
	   "('g\\\\h', '<i4'), ('t\\t\\n\\r\\x01\\x7f\\x85', '<i4'), "
	   "('\\u200b\\U000e0041', '<i4')]",
	   "(3,)"),
	 2},
	{STRUCT(13, latin_f),
	 1,
	 {3},
	 192,
	 G(HEAD "\266\000",
	   "[('\351', '<i4'), ('\377\300', '<f8'), ('\\xa0\\xad', '|i1')]",
	   "(3,)"),
	 2},
	{STRUCT(13, wide_f),
	 1,
	 {3},
	 192,
	 G("\223NUMPY\003\000\264\000\000\000",
	   "[('\303\251', '<i4'), ('\346\227\245\346\234\254', '<f8'), "
	   "('\360\237\230\200', '|i1')]",
	   "(3,)"),
	 4},
	{STRUCT(8, empty_f),
	 1,
	 {3},
	 128,
	 G(V1, "[('', '<i4'), ('b', '<i4')]", "(3,)"),
	 2},
	{STRUCT(40, inner_padded_f),
	 1,
	 {1},
	 256,
	 G(HEAD "\366\000",
	   "[('', '|V8'), ('p', [('a', '<i4'), ('', '|V4'), ('b', '>f8'), "
	   "('', '|V1'), ('d', '|b1'), ('', '|V6')]), ('', '|V8')]",
	   "(1,)"),
	 2},
};

/* Bytes of a literal that has `zeros` zeros in it. */
static size_t literal_length(const char *s, size_t zeros)
{
	const char *p = s;

	for (; zeros; zeros--)
		p += strlen(p) + 1;
	return (size_t)(p - s) + strlen(p);
}

TEST(headers_are_numpys)
{
	for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
		const struct golden *g = &golden[i];
		size_t n, used = literal_length(g->text, g->zeros);
		unsigned char *got, *want = malloc(g->total);
		char *descr;

		CHECK(want);
		memset(want, ' ', g->total);
		memcpy(want, g->text, used);
		want[g->total - 1] = '\n';
		got = header_of(&g->type, g->rank, g->shape, &descr, &n);
		CHECK_EQ_U(n, g->total);
		CHECK_MEM(got, want, n);
		check_maps(&g->type, descr, g->rank, g->shape, got);
		free(got);
		free(want);
		free(descr);
	}
}

/* Many fields of which the names are `prefix` and five digits. */
static void check_many(const char *prefix, size_t total, uint64_t sum)
{
	static const uint64_t shape[] = {7};
	static struct dtype_field f[5000];
	static char names[5000][12];
	struct dtype d = STRUCT(20000, f);
	unsigned char *got;
	char *descr;
	size_t n;

	for (unsigned i = 0; i < 5000; i++) {
		snprintf(names[i], sizeof names[i], "%s%05u", prefix, i);
		f[i] = (struct dtype_field){
			.name = names[i], .offset = 4 * i, .type = I(4)};
	}
	got = header_of(&d, 1, shape, &descr, &n);
	CHECK_EQ_U(n, total);
	CHECK_EQ_U(fnv(FNV, got, n), sum);
	check_maps(&d, descr, 1, shape, got);
	free(got);
	free(descr);
}

TEST(long_headers_have_other_versions)
{
	check_many("f", 95104, UINT64_C(0x4c09705c90ae4245));
	check_many("\303\251", 95104, UINT64_C(0x3c5e72ed371d81c5));
	check_many("\346\227\245", 105088, UINT64_C(0xefc30d6e862b5283));
}

/* One field, a name of `len` times x. */
static unsigned char *named(size_t len, size_t *n)
{
	static const uint64_t shape[] = {7};
	static char name[65441];
	struct dtype_field f = {.name = name, .type = I(4)};
	struct dtype d = {
		.kind = DTYPE_STRUCT, .size = 4, .nfields = 1, .fields = &f};
	unsigned char *got;
	char *descr;

	memset(name, 'x', len);
	name[len] = '\0';
	got = header_of(&d, 1, shape, &descr, n);
	free(descr);
	return got;
}

TEST(every_length_of_header)
{
	uint64_t sum = FNV;
	size_t n, all = 0;
	unsigned char *got;

	for (size_t len = 1; len < 200; len++) {
		got = named(len, &n);
		sum = fnv(sum, got, n);
		all += n;
		free(got);
	}
	CHECK_EQ_U(all, 45440);
	CHECK_EQ_U(sum, UINT64_C(0x68c230a477ba1232));
	got = named(65439, &n); /* the longest of version 1 */
	CHECK_EQ_U(n, 65536);
	CHECK_EQ_U(fnv(FNV, got, n), UINT64_C(0x1a4a2ffdb5916f17));
	free(got);
	got = named(65440, &n);
	CHECK_EQ_U(n, 65600);
	CHECK_EQ_U(fnv(FNV, got, n), UINT64_C(0xd69d5f5842b89826));
	free(got);
}

TEST(shapes_that_do_not_fit)
{
	struct dtype d = U(8), s = STRUCT(6, plain_f);
	uint64_t shape[64];
	struct npy_header h;
	char text[8];

	for (unsigned i = 0; i < 64; i++)
		shape[i] = UINT64_MAX;
	CHECK(dtype_npy_header(&d, NULL, 32, shape, &h));
	CHECK_EQ_U(h.total, 832);
	CHECK(!dtype_npy_header(&d, NULL, 64, shape, &h));
	for (unsigned i = 0; i < 64; i++)
		if (!dtype_npy_header(&d, NULL, i, shape, &h))
			CHECK(i > 32);
	CHECK(!dtype_npy_header(&s, NULL, 1, shape, &h));
	dtype_shape_text((uint64_t[]){10, 200}, 2, text, sizeof text);
	CHECK_STR(text, "(10, 20");
}

/* ---- names --------------------------------------------------------------- */

static void expect_texts(struct dtype d, const char *descr, const char *name)
{
	char buf[128];

	CHECK_EQ_U(dtype_descr(&d, buf, sizeof buf), strlen(descr));
	CHECK_STR(buf, descr);
	dtype_name(&d, buf, sizeof buf);
	CHECK_STR(buf, name);
}

TEST(names_for_people)
{
	static const struct dtype_field one[] = {{.type = F(4)}};
	static const struct dtype_field many[] = {{.type = STRUCT(6, plain_f)}};
	char buf[6];

	expect_texts((struct dtype)F(4), "<f4", "float32");
	expect_texts((struct dtype)F(2), "<f2", "float16");
	expect_texts((struct dtype)F(16), "<f16", "longdouble");
	expect_texts((struct dtype)BE(COMPLEX, 8), ">c8", "complex64");
	expect_texts((struct dtype)C(32), "<c32", "clongdouble");
	expect_texts((struct dtype)BE(UINT, 1), "|u1", "uint8");
	expect_texts((struct dtype)BOOL, "|b1", "bool");
	expect_texts((struct dtype)OPAQUE(12), "|V12", "opaque of 12 bytes");
	expect_texts((struct dtype)BYTES(5), "|S5", "string of 5 bytes");
	expect_texts((struct dtype)STRUCT(6, plain_f),
		     "[('r', '<f4'), ('n', '<u2')]", "structure of 2 fields");
	expect_texts((struct dtype){.kind = DTYPE_STRING, .size = 16}, "str",
		     "string");
	expect_texts((struct dtype){.kind = DTYPE_TEXT, .text = "reference"},
		     "json", "reference");
	expect_texts((struct dtype){.kind = DTYPE_OTHER, .text = "time"},
		     "time", "time");
	expect_texts((struct dtype){.kind = DTYPE_OTHER}, "unknown", "unknown");
	expect_texts((struct dtype){.kind = DTYPE_RAGGED,
				    .nfields = 1,
				    .fields = one},
		     "<f4 sequence", "sequence of float32");
	expect_texts((struct dtype){.kind = DTYPE_RAGGED,
				    .nfields = 1,
				    .fields = many},
		     "[('r', '<f4'), ('n', '<u2')] sequence",
		     "sequence of structure of 2 fields");
	CHECK_EQ_U(dtype_descr(&(struct dtype)STRUCT(6, plain_f), buf, 6), 28);
	CHECK_STR(buf, "[('r'");
}

/* What no HDF5 library writes, but a damaged file may say. */
TEST(odd_structures_are_spelled)
{
	static const struct dtype_field f[] = {
		{.name = "\351\303", .offset = 0, .type = I(4)},
		{.name = "same", .offset = 2, .type = I(4)},
		{.name = "same", .offset = 6, .type = BOOL},
	};

	expect_texts((struct dtype)STRUCT(8, f),
		     "[('\\udce9\\udcc3', '<i4'), ('same', '<i4'), "
		     "('same', '|b1'), ('', '|V1')]",
		     "structure of 3 fields");
	expect_texts((struct dtype){.kind = DTYPE_STRUCT, .size = 8},
		     "[('', '|V8')]", "structure of 0 fields");
}

TEST(equality_is_deep)
{
	struct dtype_field f[3], inner[2];
	struct dtype a = STRUCT(45, nested_f), b = a;
	uint64_t dims[] = {2, 2};

#define BACK(as)                                     \
	do {                                         \
		memcpy(f, nested_f, sizeof f);       \
		memcpy(inner, pair_f, sizeof inner); \
		b = a;                               \
		b.fields = f;                        \
		f[1].type.fields = inner;            \
		f[1].dims = dims;                    \
		as;                                  \
	} while (0)
#define DIFFERS(change)                      \
	do {                                 \
		BACK(change);                \
		CHECK(!dtype_equal(&a, &b)); \
		CHECK(!dtype_equal(&b, &a)); \
	} while (0)
	BACK((void)0);
	CHECK(dtype_equal(&a, &b));
	BACK(f[2].type.big_endian = true);
	CHECK(dtype_equal(&a, &b));
	DIFFERS(f[0].type.big_endian = false);
	DIFFERS(f[0].name = "y");
	DIFFERS(b.text = "enum: A = 0");
	DIFFERS(inner[1].type.text = "enum: A = 0");
	DIFFERS(inner[1].name = "w");
	DIFFERS(inner[1].type.size = 4);
	DIFFERS(f[1].rank = 1);
	DIFFERS(dims[1] = 3);
	dims[1] = 2;
	DIFFERS(f[2].offset = 41);
	DIFFERS(b.nfields = 2);
	DIFFERS(b.size = 48);
	DIFFERS(b.kind = DTYPE_OTHER);
}

/* ---- recodes ------------------------------------------------------------- */

static void expect_recode(struct dtype stored, struct dtype served,
			  const struct dtype_field *field,
			  const struct recode *want)
{
	struct recode got;

	memset(&got, 0x5a, sizeof got);
	CHECK(dtype_recode(&stored, &served, field, &got));
	CHECK_EQ_U(got.from, want->from);
	CHECK_EQ_U(got.nswaps, want->nswaps);
	CHECK(!memcmp(&got, want, sizeof got)); /* interned as bytes */
	CHECK(recode_is_valid(&got));
}
#define NO_AXES              \
	0,                   \
	{                    \
		{            \
			0, 0 \
		}            \
	}
#define EXPECT_RECODE(stored, served, field, ...)                        \
	expect_recode((struct dtype)stored, (struct dtype)served, field, \
		      &(struct recode){__VA_ARGS__})

TEST(numbers_are_recoded)
{
	struct dtype i4 = I(4), b1 = BOOL, s3 = OPAQUE(3), f2 = BE(FLOAT, 2);
	struct recode r;

	EXPECT_RECODE(I(4), I(4), NULL, .from = 4, .to = 4, .offset = 0,
		      .width = 4);
	EXPECT_RECODE(BE(INT, 4), I(4), NULL, .from = 4, .to = 4, .offset = 0,
		      .width = 4, .nswaps = 1, .swap = {{0, 4, 1}});
	EXPECT_RECODE(I(4), BE(INT, 4), NULL, .from = 4, .to = 4, .offset = 0,
		      .width = 4, .nswaps = 1, .swap = {{0, 4, 1}});
	EXPECT_RECODE(BE(COMPLEX, 16), C(16), NULL, .from = 16, .to = 16,
		      .offset = 0, .width = 16, .nswaps = 1,
		      .swap = {{0, 8, 2}});
	EXPECT_RECODE(BE(FLOAT, 16), F(16), NULL, .from = 16, .to = 16,
		      .offset = 0, .width = 16, .nswaps = 1,
		      .swap = {{0, 16, 1}});
	EXPECT_RECODE(BE(INT, 1), I(1), NULL, .from = 1, .to = 1, .offset = 0,
		      .width = 1);
	EXPECT_RECODE(OPAQUE(7), OPAQUE(7), NULL, .from = 7, .to = 7,
		      .offset = 0, .width = 7);
	EXPECT_RECODE(F(8), F(2), NULL, .from = 8, .to = 2, .offset = 0,
		      .width = 8, .of = RECODE_F64, .into = RECODE_F16);
	EXPECT_RECODE(BE(FLOAT, 8), I(1), NULL, .from = 8, .to = 1, .offset = 0,
		      .width = 8, .of = RECODE_F64, .into = RECODE_I8,
		      .nswaps = 1, .swap = {{0, 8, 1}});
	EXPECT_RECODE(U(2), F(4), NULL, .from = 2, .to = 4, .offset = 0,
		      .width = 2, .of = RECODE_U16, .into = RECODE_F32);
	EXPECT_RECODE(BOOL, U(8), NULL, .from = 1, .to = 8, .offset = 0,
		      .width = 1, .of = RECODE_I8, .into = RECODE_U64);
	EXPECT_RECODE(BOOL, I(1), NULL, .from = 1, .to = 1, .offset = 0,
		      .width = 1);
	CHECK(!dtype_recode(&i4, &b1, NULL, &r));
	CHECK(!dtype_recode(&i4, &s3, NULL, &r));
	CHECK(!dtype_recode(&s3, &i4, NULL, &r));
	CHECK(!dtype_recode(&i4, &f2, NULL, &r)); /* results are native */
	CHECK(!dtype_recode(&(struct dtype)C(8), &(struct dtype)C(16), NULL,
			    &r));
	CHECK(!dtype_recode(&(struct dtype)F(16), &(struct dtype)F(8), NULL,
			    &r));
}

/* >i4 (3,) | V2 | >f8 | [>i2 >i2] (1000,) | [i1 >i2] (2,) | i4 */
static const uint64_t dims1000[] = {1000}, dims2[] = {2}, dims40[] = {40};
static const struct dtype_field even_be[] = {
	{.name = "a", .offset = 0, .type = BE(INT, 2)},
	{.name = "b", .offset = 2, .type = BE(INT, 2)}};
static const struct dtype_field even_le[] = {
	{.name = "a", .offset = 0, .type = I(2)},
	{.name = "b", .offset = 2, .type = I(2)}};
static const struct dtype_field odd_be[] = {
	{.name = "a", .offset = 0, .type = I(1)},
	{.name = "b", .offset = 1, .type = BE(INT, 2)}};
static const struct dtype_field odd_le[] = {
	{.name = "a", .offset = 0, .type = I(1)},
	{.name = "b", .offset = 1, .type = I(2)}};
#define SIX(i4, f8, even, odd)                                          \
	{                                                               \
		{.name = "t",                                           \
		 .offset = 0,                                           \
		 .rank = 1,                                             \
		 .dims = dims3,                                         \
		 .type = i4},                                           \
			{.name = "o", .offset = 12, .type = OPAQUE(2)}, \
			{.name = "f", .offset = 14, .type = f8},        \
			{.name = "e",                                   \
			 .offset = 22,                                  \
			 .rank = 1,                                     \
			 .dims = dims1000,                              \
			 .type = STRUCT(4, even)},                      \
			{.name = "d",                                   \
			 .offset = 4022,                                \
			 .rank = 1,                                     \
			 .dims = dims2,                                 \
			 .type = STRUCT(3, odd)},                       \
			{.name = "i", .offset = 4028, .type = I(4)},    \
	}
static const struct dtype_field six_be[] =
	SIX(BE(INT, 4), BE(FLOAT, 8), even_be, odd_be);
static const struct dtype_field six_le[] = SIX(I(4), F(8), even_le, odd_le);

TEST(runs_of_numbers_are_swapped)
{
	EXPECT_RECODE(STRUCT(4032, six_be), STRUCT(4032, six_le), NULL,
		      .from = 4032, .to = 4032, .offset = 0, .width = 4032,
		      .nswaps = 5,
		      .swap = {{0, 4, 3},
			       {14, 8, 1},
			       {22, 2, 2000},
			       {4023, 2, 1},
			       {4026, 2, 1}});
	EXPECT_RECODE(STRUCT(4032, six_be), STRUCT(4032, six_be), NULL,
		      .from = 4032, .to = 4032, .offset = 0, .width = 4032);
	/* One of them is taken out; its bytes count from 0. */
	EXPECT_RECODE(STRUCT(4032, six_be), I(4), &six_be[0], 4032, 12, 0, 12,
		      0, 0, 1, {{0, 4, 3}}, NO_AXES);
	EXPECT_RECODE(STRUCT(4032, six_be), F(8), &six_be[2], 4032, 8, 14, 8, 0,
		      0, 1, {{0, 8, 1}}, NO_AXES);
	EXPECT_RECODE(STRUCT(4032, six_be), I(2), &six_be[2], 4032, 2, 14, 8,
		      RECODE_F64, RECODE_I16, 1, {{0, 8, 1}}, NO_AXES);
	EXPECT_RECODE(STRUCT(4032, six_be), STRUCT(4, even_le), &six_be[3],
		      4032, 4000, 22, 4000, 0, 0, 1, {{0, 2, 2000}}, NO_AXES);
	EXPECT_RECODE(STRUCT(4032, six_be), STRUCT(3, odd_le), &six_be[4], 4032,
		      6, 4022, 6, 0, 0, 2, {{1, 2, 1}, {4, 2, 1}}, NO_AXES);
	EXPECT_RECODE(STRUCT(4032, six_be), I(4), &six_be[5], .from = 4032,
		      .to = 4, .offset = 4028, .width = 4);
}

TEST(what_a_recode_cannot_say)
{
	struct dtype_field f[2] = {
		{.name = "a",
		 .rank = 1,
		 .dims = dims40,
		 .type = STRUCT(3, odd_be)},
		{.name = "b",
		 .offset = 120,
		 .rank = 1,
		 .dims = dims40,
		 .type = STRUCT(3, odd_be)},
	};
	struct dtype_field g[2] = {f[0], f[1]};
	struct dtype a = STRUCT(240, f), b = STRUCT(240, g), f4 = F(4);
	struct recode r;

	g[0].type.fields = g[1].type.fields = odd_le;
	CHECK(!dtype_recode(&a, &b, NULL, &r)); /* 80 swaps */
	g[1].type.fields = odd_be;
	CHECK(dtype_recode(&a, &b, NULL, &r));
	CHECK_EQ_U(r.nswaps, 40);
	g[0].offset = 1;
	CHECK(!dtype_recode(&a, &b, NULL, &r));
	g[0].offset = 0;
	b.nfields = 1;
	CHECK(!dtype_recode(&a, &b, NULL, &r));
	/* Subarrays are swapped, not converted; fields are inside. */
	CHECK(!dtype_recode(&(struct dtype)STRUCT(4032, six_be), &f4,
			    &six_be[0], &r));
	CHECK(!dtype_recode(&(struct dtype)STRUCT(4031, six_be),
			    &(struct dtype)I(4), &six_be[5], &r));
	f[0].dims = (uint64_t[]){UINT64_MAX / 2};
	CHECK(!dtype_recode(&a, &(struct dtype)STRUCT(3, odd_be), &f[0], &r));
	f[0].offset = UINT32_MAX;
	f[0].dims = dims2;
	CHECK(!dtype_recode(&a, &(struct dtype)STRUCT(3, odd_be), &f[0], &r));
	CHECK(!dtype_recode(&a, &a, NULL, &r));
	memset(&a, 0, sizeof a);
	CHECK(!dtype_recode(&a, &a, NULL, &r));
}

/* Fields of an array of structures, and of arrays in these. */
TEST(fields_of_arrays_are_taken_along_axes)
{
	static const uint64_t dims[] = {2, 1, 3, 5};
	static const uint64_t strides[] = {60, 60, 20, 2};
	static const uint64_t side_by_side[] = {30, 30, 10, 2};
	static const uint64_t single[] = {1, 1, 1, 5};
	struct dtype_field f = {.name = "x",
				.offset = 7,
				.rank = 4,
				.dims = dims,
				.type = BE(INT, 2),
				.strides = strides};
	static const struct dtype_field none[1];
	struct dtype a = STRUCT(200, none);
	struct recode r;

	EXPECT_RECODE(STRUCT(200, none), I(2), &f, .from = 200, .offset = 7,
		      .width = 60, .to = 60, .nswaps = 1, .swap = {{0, 2, 30}},
		      .naxes = 1, .axis = {{6, 20}});
	a.size = 116; /* where the last one ends */
	CHECK(!dtype_recode(&a, &(struct dtype)I(2), &f, &r));
	CHECK(!dtype_take_field(&a, &f, &r));
	a.size++;
	CHECK(!dtype_recode(&a, &(struct dtype)I(4), &f, &r));
	f.strides = side_by_side;
	EXPECT_RECODE(STRUCT(117, none), BE(INT, 2), &f, .from = 117,
		      .offset = 7, .width = 60, .to = 60);
	f.strides = strides;
	f.dims = single;
	EXPECT_RECODE(STRUCT(117, none), BE(INT, 2), &f, .from = 117,
		      .offset = 7, .width = 10, .to = 10);
	f.dims = (uint64_t[]){2, 2, 2, 2};
	f.strides = (uint64_t[]){60, 25, 9, 4};
	CHECK(dtype_take_field(&a, &f, &r));
	CHECK_EQ_U(r.naxes, 4);
	f.rank = 5;
	f.dims = (uint64_t[]){2, 2, 2, 2, 2};
	f.strides = (uint64_t[]){51, 25, 12, 5, 3};
	CHECK(!dtype_take_field(&a, &f, &r));
}

int main(void)
{
	RUN(headers_are_numpys);
	RUN(long_headers_have_other_versions);
	RUN(every_length_of_header);
	RUN(shapes_that_do_not_fit);
	RUN(names_for_people);
	RUN(odd_structures_are_spelled);
	RUN(equality_is_deep);
	RUN(numbers_are_recoded);
	RUN(runs_of_numbers_are_swapped);
	RUN(what_a_recode_cannot_say);
	RUN(fields_of_arrays_are_taken_along_axes);
	return test_done();
}
