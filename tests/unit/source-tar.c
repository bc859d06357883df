/* SPDX-License-Identifier: BSD-2-Clause */
/* tar: fields, records and maps by themselves, then archives of each dialect. */
#include <errno.h>
#include <limits.h>

#include "formats/tar/private.h"
#include "formats/tar/tar.h"
#include "test.h"

/* ---- an archive in memory ------------------------------------------------ */

static struct {
	struct input in;
	unsigned char bytes[1 << 16];
	size_t size, fails, passed;
} tape;

static ssize_t tape_read(struct input *in, void *to, size_t n,
			 struct error *err)
{
	if (in->at >= tape.fails)
		return error_set(err, -EBADMSG, "the tape is torn");
	n = n < tape.size - in->at ? n : tape.size - in->at;
	memcpy(to, tape.bytes + in->at, n);
	in->at += n;
	return (ssize_t)n;
}

static int64_t tape_skip(struct input *in, uint64_t n, struct error *err)
{
	(void)err;
	n = n < tape.size - in->at ? n : tape.size - in->at;
	in->at += n;
	tape.passed += n;
	return (int64_t)n;
}

static void tape_new(void)
{
	static const struct input_ops ops = {tape_read, tape_skip, NULL};

	memset(&tape, 0, sizeof tape);
	tape.in.ops = &ops;
	tape.fails = SIZE_MAX;
}

static void put(const void *data, size_t n)
{
	CHECK(n <= sizeof tape.bytes - tape.size);
	memcpy(tape.bytes + tape.size, data, n);
	tape.size += n;
}

static void set_sum(struct tar_header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned sum = 0;

	memset(h->sum, ' ', sizeof h->sum);
	for (size_t i = 0; i < sizeof *h; i++)
		sum += p[i];
	snprintf(h->sum, sizeof h->sum, "%06o", sum);
}

/* A header of ustar; the caller changes it and puts it on the tape. */
static struct tar_header head(const char *name, char type, uint64_t size)
{
	struct tar_header h;
	char text[32];

	memset(&h, 0, sizeof h);
	memcpy(h.name, name, strlen(name));
	memcpy(h.mode, "0000644", 8);
	memcpy(h.uid, "0000012", 8);
	memcpy(h.gid, "0000013", 8);
	snprintf(text, sizeof text, "%011" PRIo64, size);
	memcpy(h.size, text, 12);
	memcpy(h.mtime, "00000001750", 12);
	h.type = type;
	memcpy(h.magic,
	       "ustar\0"
	       "00",
	       8);
	return h;
}

static void put_head(struct tar_header *h)
{
	set_sum(h);
	put(h, sizeof *h);
}

static void put_data(const char *data, size_t n)
{
	static const char zeros[TAR_BLOCK];

	put(data, n);
	put(zeros, -n & (TAR_BLOCK - 1));
}

static void put_member(const char *name, char type, const char *data)
{
	struct tar_header h = head(name, type, strlen(data));

	put_head(&h);
	put_data(data, strlen(data));
}

static void put_link(const char *name, char type, const char *target)
{
	struct tar_header h = head(name, type, 0);

	memcpy(h.link, target, strlen(target));
	put_head(&h);
}

static void put_end(void)
{
	static const char zeros[2 * TAR_BLOCK];

	put(zeros, sizeof zeros);
}

/* ---- and what is in it --------------------------------------------------- */

static struct members table;
static struct tar_scanned scanned;

static int scan(struct error *err)
{
	struct members_builder *b;
	int r;

	CHECK_OK(members_builder_new(&b, NULL, NULL));
	r = tar_scan(&tape.in, b, &scanned, NULL, NULL, err);
	if (r < 0)
		members_builder_free(b);
	else
		CHECK_OK(members_finish(b, &table, err));
	return r;
}

static const struct member_record *record(const char *path)
{
	char copy[512], *save = NULL;
	uint64_t r = 0;

	snprintf(copy, sizeof copy, "%s", path);
	for (char *part = strtok_r(copy, "/", &save); part;
	     part = strtok_r(NULL, "/", &save))
		if (members_find(&table, r, part, &r) < 0)
			return NULL;
	if (table.at[r].kind == MEMBER_LINK)
		r = table.at[r].data;
	return &table.at[r];
}

static int64_t mtime(const char *path)
{
	return member_mtime(&table, record(path));
}

static bool noted(const char *words)
{
	return table.notes &&
	       memmem(table.notes, table.notes_size, words, strlen(words));
}

static void check_file(const char *path, const char *data)
{
	const struct member_record *r = record(path);

	CHECK(r);
	CHECK_EQ_U(r->size, strlen(data));
	CHECK_EQ_U(r->kind, *data ? MEMBER_RANGE : MEMBER_NONE);
	if (*data)
		CHECK_MEM(tape.bytes + r->data, data, strlen(data));
}

/* ---- pieces -------------------------------------------------------------- */

static int64_t value(const char *field, size_t n, int expect)
{
	int64_t v = -77;

	CHECK_EQ_I(tar_number(field, n, &v), expect);
	return v;
}

TEST(numbers)
{
	char largest[12], smallest[12];

	CHECK_EQ_I(value("0000644\0", 8, 0), 0644);
	CHECK_EQ_I(value("   644 \0", 8, 0), 0644);
	CHECK_EQ_I(value("00000644", 8, 0), 0644);
	CHECK_EQ_I(value("\0"
			 "000644",
			 8, 0),
		   0644);
	CHECK_EQ_I(value("        ", 8, 0), 0);
	CHECK_EQ_I(value("\0\0\0\0\0\0\0\0", 8, 0), 0);
	CHECK_EQ_I(value("12x45678", 8, -EINVAL), 012);
	CHECK_EQ_I(value("777777777777", 12, 0), 0777777777777);
	CHECK_EQ_I(value("-0000017", 8, 0), -017);
	CHECK_EQ_I(value("\x80\0\0\0\0\x20\0\0", 8, 0), 2097152);
	CHECK_EQ_I(value("\xff\xff\xff\xff\xff\xff\xff\xfe", 8, 0), -2);
	memset(largest, 0xff, sizeof largest);
	largest[0] = (char)0x80;
	CHECK_EQ_I(value(largest, 12, -ERANGE), INT64_MAX);
	memset(smallest, 0, sizeof smallest);
	smallest[0] = (char)0xc0;
	CHECK_EQ_I(value(smallest, 12, -ERANGE), INT64_MIN);
	memcpy(smallest, "\xff\xff\xff\xff\x80\0\0\0\0\0\0\0", 12);
	CHECK_EQ_I(value(smallest, 12, 0), INT64_MIN);
	memcpy(largest, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
	CHECK_EQ_I(value(largest, 12, 0), INT64_MAX);
	memcpy(largest, "\x80\0\0\0\x80\0\0\0\0\0\0\0", 12);
	CHECK_EQ_I(value(largest, 12, -ERANGE), INT64_MAX);
	CHECK_EQ_I(value("7777777777777777777777777", 25, -ERANGE), INT64_MAX);
}

TEST(sums)
{
	struct tar_header h = head("\xff\xe4\xfe", '0', 0);
	long sum;

	set_sum(&h);
	CHECK(tar_is_header(&h));
	CHECK_EQ_U((unsigned)tar_probe((unsigned char *)&h, sizeof h), 95);
	sum = strtol(h.sum, NULL, 8);
	snprintf(h.sum, sizeof h.sum, "%06lo", sum - 3 * 256);
	CHECK(tar_is_header(&h));
	snprintf(h.sum, sizeof h.sum, "%06lo", sum - 2 * 256);
	CHECK(!tar_is_header(&h));
	snprintf(h.sum, sizeof h.sum, "%7lo", sum);
	CHECK(tar_is_header(&h));
	h.name[7] ^= 1;
	CHECK(!tar_is_header(&h));
	memset(&h, 0, sizeof h);
	CHECK(tar_is_zero(&h) && !tar_is_header(&h));
	CHECK_EQ_U((unsigned)tar_probe((unsigned char *)&h, sizeof h), 10);
	CHECK_EQ_U((unsigned)tar_probe((unsigned char *)&h, 100), 0);
	memcpy(h.sum, "000400", 7);
	CHECK(!tar_is_header(&h));
}

static struct tar_pax pax_of(const char *text, size_t n, unsigned *notes)
{
	struct members_builder *b;
	struct tar_pax p = {0};
	struct members m;
	char *copy = malloc(n + 1);

	memcpy(copy, text, n);
	copy[n] = '\0';
	CHECK_OK(members_builder_new(&b, NULL, NULL));
	CHECK_OK(tar_pax_records(&p, copy, n, b));
	CHECK_OK(members_finish(b, &m, NULL));
	*notes = m.notes_size != 0;
	members_free(&m);
	free(copy);
	return p;
}
#define PAX(text) pax_of(text, sizeof text - 1, &notes)

TEST(records)
{
	unsigned notes;
	struct tar_pax p =
		PAX("12 path=a=b\n13 size=1234\n22 mtime=-1.250000000\n"
		    "15 comment=x\ny\n");

	CHECK_EQ_U(notes, 0);
	CHECK_EQ_U(p.set, PAX_PATH | PAX_SIZE | PAX_MTIME);
	CHECK_STR(p.path.at, "a=b");
	CHECK_EQ_I(p.size, 1234);
	CHECK_EQ_I(p.mtime, -2);
	CHECK_EQ_U(p.nsec, 750000000);
	tar_pax_free(&p);
	p = PAX("16 mtime=1.5abc\n12 size=-99\n");
	CHECK_EQ_U(notes, 1);
	CHECK_EQ_U(p.set, PAX_MTIME);
	CHECK_EQ_U(p.nsec, 500000000);
	tar_pax_free(&p);
	p = PAX("9 path=a\n8 path=\n");
	CHECK_EQ_U(p.set, 0);
	CHECK_EQ_U(p.dropped, PAX_PATH);
	tar_pax_free(&p);
	p = PAX("9 path=a\n9 path=b");
	CHECK_EQ_U(notes, 1);
	CHECK_STR(p.path.at, "a");
	tar_pax_free(&p);
	p = PAX("9 path=a\n99999999999999999999999 path=b\n");
	CHECK_EQ_U(notes, 1);
	CHECK_STR(p.path.at, "a");
	tar_pax_free(&p);
}

TEST(attributes)
{
	unsigned notes;
	struct tar_xattrs list = {VEC_EMPTY};
	struct tar_pax p = PAX("28 SCHILY.xattr.user.a=1\0\n2\n"
			       "36 LIBARCHIVE.xattr.user.%62%3D=QUI\n"
			       "30 SCHILY.xattr.user.c%3D%62=\n"
			       "25 SCHILY.xattr.user.a=2\n");

	CHECK_EQ_U(notes, 0);
	CHECK_OK(tar_xattr_list(&list, &p));
	CHECK_EQ_U(list.at.n, 3);
	CHECK_STR(list.at.at[0].name, "user.a");
	CHECK_EQ_U(list.at.at[0].size, 1);
	CHECK_MEM(list.at.at[0].value, "2", 1);
	CHECK_STR(list.at.at[1].name, "user.b=");
	CHECK_EQ_U(list.at.at[1].size, 2);
	CHECK_MEM(list.at.at[1].value, "AB", 2);
	CHECK_STR(list.at.at[2].name, "user.c=%62");
	CHECK_EQ_U(list.at.at[2].size, 0);
	vec_free(&list.at);
	tar_pax_free(&p);
}

static int place(const char *map, uint64_t size, uint64_t stored)
{
	struct tar_sparse m = {VEC_EMPTY, false};
	int r;

	CHECK_OK(tar_sparse_list(&m, map, strlen(map)));
	r = tar_sparse_place(&m, size, 1000, stored);
	if (r == 0)
		r = (int)m.run.at[0].off;
	vec_free(&m.run);
	return r;
}

TEST(maps)
{
	struct tar_sparse m = {VEC_EMPTY, false};
	struct tar_sparse_lines l = {0};
	const char *text = "#note\n2\n0\n5\n#again\n70\n9\nrest";

	CHECK_EQ_I(place("", 100, 0), 0);
	CHECK_EQ_I(place("0,10,20,5,100,0", 100, 15), 2);
	CHECK_EQ_I(place("0,10,10,5", 100, 15), 1);
	CHECK_EQ_I(place("20,5,0,10", 100, 15), 2);
	CHECK_EQ_I(place("0,10,20,5", 24, 15), -EBADMSG);
	CHECK_EQ_I(place("0,10,20,5", 100, 14), -EBADMSG);
	CHECK_EQ_I(place("0,10,9,5", 100, 15), -EBADMSG);
	CHECK_EQ_I(place("0,10,20", 100, 15), -EBADMSG);
	CHECK_EQ_I(place("0,10,,5", 100, 15), -EBADMSG);
	CHECK_EQ_I(place("9223372036854775807,9223372036854775807", INT64_MAX,
			 INT64_MAX),
		   -EBADMSG);
	CHECK_EQ_I(place("9223372036854775808,1", UINT64_MAX, 1), -EBADMSG);
	CHECK_EQ_I(tar_sparse_text(&m, &l, text, 9), 0);
	CHECK_EQ_I(tar_sparse_text(&m, &l, text + 9, strlen(text) - 9), 1);
	CHECK_OK(tar_sparse_place(&m, 100, 1000, 14));
	CHECK_EQ_U(m.run.at[2].off, 70);
	CHECK_EQ_U(m.run.at[2].pos, 1005);
	vec_free(&m.run);
}

/* ---- archives ------------------------------------------------------------ */

TEST(members)
{
	struct tar_header h;
	const struct member_record *r;

	tape_new();
	put_member("d/file", '0', "content");
	put_member("empty", '0', "");
	put_link("sym", '2', "d/file");
	put_link("hard", '1', "d/file");
	h = head("device", '3', 0);
	memcpy(h.major, "0000001", 8);
	memcpy(h.minor, "0000003", 8);
	put_head(&h);
	put_end();
	CHECK_OK(scan(NULL));
	CHECK_EQ_U(scanned.headers, 5);
	CHECK_EQ_U(scanned.end, tape.size);
	CHECK(!scanned.damaged && !table.notes_size);
	check_file("d/file", "content");
	check_file("hard", "content");
	check_file("empty", "");
	r = record("d/file");
	CHECK_EQ_U(member_common(&table, r)->nlink, 2);
	CHECK_EQ_U(r->mode, S_IFREG | 0644);
	CHECK_EQ_U(member_common(&table, r)->uid, 10);
	CHECK_EQ_U(member_common(&table, r)->gid, 11);
	CHECK_EQ_I(member_mtime(&table, r), 1000);
	r = record("sym");
	CHECK_STR(table.names + r->data, "d/file");
	CHECK_EQ_U(record("device")->mode, S_IFCHR | 0644);
	members_free(&table);
}

TEST(names)
{
	struct tar_header h;
	char full[101];

	tape_new();
	memset(full, 'f', 100);
	full[100] = '\0';
	h = head(full, '0', 0);
	memset(h.prefix, 'p', 155);
	put_head(&h);
	put_member("././@LongLink", 'L', "first");
	put_member("././@LongLink", 'L', "second");
	h = head("short", '0', 0);
	memcpy(h.magic, "ustar  ", 8);
	memcpy(h.prefix, "13375561762", 12);
	put_head(&h);
	h = head("gnu", '0', 0);
	memcpy(h.magic, "ustar  ", 8);
	memcpy(h.prefix, "13375561762", 12);
	put_head(&h);
	put_member("x", 'x', "12 path=p/q\n");
	put_member("short", '0', "by pax");
	h = head("old/", '\0', 0);
	memset(h.magic, 0, 8);
	put_head(&h);
	put_end();
	CHECK_OK(scan(NULL));
	CHECK_EQ_U(table.counts[0], 4);
	CHECK(record("second") && record("gnu"));
	check_file("p/q", "by pax");
	CHECK_EQ_U(record("old")->kind, MEMBER_DIR);
	members_free(&table);
}

TEST(global)
{
	tape_new();
	put_member("g", 'g', "12 mtime=77\n");
	put_member("a", '0', "a");
	put_member("x", 'x', "12 mtime=78\n");
	put_member("b", '0', "b");
	put_member("x", 'x', "9 mtime=\n");
	put_member("c", '0', "c");
	put_end();
	put_member("d", '0', "d");
	CHECK_OK(scan(NULL));
	CHECK_EQ_I(mtime("a"), 77);
	CHECK_EQ_I(mtime("b"), 78);
	CHECK_EQ_I(mtime("c"), 1000);
	CHECK_EQ_I(mtime("d"), 1000);
	CHECK(noted("another archive") && noted("no end-of-archive mark"));
	CHECK(!scanned.damaged);
	members_free(&table);
}

TEST(sparse)
{
	const struct member_record *r;
	const struct member_extent *x;

	tape_new();
	put_member("x", 'x',
		   "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
		   "25 GNU.sparse.name=a/big\n30 GNU.sparse.realsize=100000\n");
	{
		struct tar_header h = head("x/big", '0', 512 + 7);

		put_head(&h);
		put_data("2\n10\n3\n99996\n4\n", 15);
		put_data("abcdefg", 7);
	}
	put_member("x", 'x', "26 GNU.sparse.map=0,1,0,1\n");
	put_member("overlap", '0', "ab");
	put_member("plain", '0', "plain");
	put_end();
	CHECK_OK(scan(NULL));
	r = record("a/big");
	CHECK_EQ_U(r->kind, MEMBER_SPARSE);
	CHECK_EQ_U(r->size, 100000);
	x = table.extents + r->data;
	CHECK_EQ_U(x[0].off, 2);
	CHECK_EQ_U(x[2].off, 99996);
	CHECK_MEM(tape.bytes + x[1].pos, "abc", 3);
	CHECK_MEM(tape.bytes + x[2].pos, "defg", 4);
	check_file("plain", "plain");
	CHECK(record("overlap")->data > tape.size);
	CHECK(noted("contradicts itself"));
	members_free(&table);
}

TEST(damage)
{
	struct tar_header h = head("hurt", '0', 3);

	tape_new();
	put_member("a", '0', "a");
	h.sum[0] = '7';
	put(&h, sizeof h);
	put_data("hur", 3);
	put_member("b", '0', "b");
	h = head("long", '0', 100000);
	put_head(&h);
	put_data("short", 5);
	CHECK_OK(scan(NULL));
	CHECK(scanned.damaged);
	CHECK(noted("1024 bytes were passed over") && noted("ends within"));
	check_file("b", "b");
	CHECK_EQ_U(record("long")->size, 100000);
	members_free(&table);

	/* The input fails: what came before is there. */
	tape.in.at = 0;
	tape.fails = 2000;
	CHECK_OK(scan(NULL));
	CHECK(scanned.damaged && noted("the tape is torn"));
	check_file("a", "a");
	members_free(&table);
	tape.in.at = 0;
	tape.fails = 0;
	CHECK_EQ_I(scan(NULL), -EBADMSG);
}

TEST(nothing)
{
	tape_new();
	CHECK_OK(scan(NULL));
	CHECK_EQ_U(table.n, 1);
	members_free(&table);
	tape_new();
	put_end();
	CHECK_OK(scan(NULL));
	CHECK_EQ_U(table.n, 1);
	CHECK(!scanned.damaged);
	members_free(&table);
	tape_new();
	memset(tape.bytes, 'x', 4096);
	tape.size = 4096;
	CHECK_EQ_I(scan(NULL), -EBADMSG);
}

/* Data of a large file is passed over, whatever the archive's end says. */
TEST(passes_over)
{
	struct tar_header h = head("large", '0', 30000);

	tape_new();
	put_head(&h);
	memset(tape.bytes + tape.size, 'd', 30208);
	tape.size += 30208;
	put_end();
	CHECK_OK(scan(NULL));
	CHECK_EQ_U(tape.passed, 30208);
	CHECK_EQ_U(record("large")->data, 512);
	members_free(&table);
}

int main(void)
{
	RUN(numbers);
	RUN(sums);
	RUN(records);
	RUN(attributes);
	RUN(maps);
	RUN(members);
	RUN(names);
	RUN(global);
	RUN(sparse);
	RUN(damage);
	RUN(nothing);
	RUN(passes_over);
	return test_done();
}
