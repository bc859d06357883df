/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: images that are cut off, damaged or hostile. */
#include <signal.h>

#include "squashfs_image.h"

/* An image in memory, to be changed. */
static unsigned char *image;
static size_t image_size;
static struct squashfs_super super;

static void set_bytes(size_t at, uint64_t v, unsigned n)
{
	CHECK(at + n <= image_size);
	for (unsigned i = 0; i < n; i++)
		image[at + i] = (unsigned char)(v >> 8 * i);
}

/* Made with these options, and loaded. */
static void make_image(const char *options)
{
	struct error err = {0};

	free(image);
	CHECK(shell("mksquashfs tree x.sqfs %s -noappend -quiet -no-progress "
		    "-all-root >/dev/null",
		    options));
	image = slurp(in_scratch("x.sqfs"), &image_size);
	CHECK_OK(squashfs_super_parse(&super, image, &err));
}

/* What reading all of it comes to. */
struct outcome {
	int code;     /* of opening */
	uint64_t n;   /* members */
	unsigned bad; /* files that could not be read */
	uint64_t sum; /* of all bytes that could */
	size_t notes;
};

static uint64_t sum_of(const unsigned char *p, size_t n, uint64_t h)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

static void read_member(const struct image *im, uint64_t i, struct outcome *o)
{
	static unsigned char piece[1 << 20];
	struct error err = {0};
	ssize_t n;

	/* A damaged size may be vast. */
	for (uint64_t k = 0; k < 100; k++) {
		n = member_piece(im, i, k, piece, &err);
		if (n == 0)
			break;
		if (n < 0) {
			CHECK(err.code == n && *err.text);
			CHECK(n == -EBADMSG || n == -EIO);
			o->bad++;
			break;
		}
		o->sum ^= sum_of(piece, (size_t)n, i * 31 + k);
	}
}

static struct outcome try_image(const void *data, size_t n)
{
	struct outcome o = {0};
	struct error err = {0};
	struct image im;

	spill(in_scratch("bad.sqfs"), data, n);
	o.code = image_open_at(&im, in_scratch("bad.sqfs"), 0, &err);
	if (o.code < 0) {
		CHECK(err.code == o.code && strstr(err.text, "bad.sqfs"));
		CHECK(o.code == -EBADMSG || o.code == -ENOTSUP);
	} else {
		o.n = im.members.n;
		o.notes = im.members.notes_size;
		for (uint64_t i = 0; i < im.members.n; i++)
			if (S_ISREG(im.members.at[i].mode) &&
			    im.members.at[i].kind != MEMBER_NONE)
				read_member(&im, i, &o);
	}
	image_close(&im);
	return o;
}

static void make_tree(void)
{
	char name[64];

	CHECK(shell("mkdir -p tree/a/b"));
	write_content("tree/big", 200000, 4);
	write_content("tree/a/one", 5000, 4);
	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof name, "tree/a/b/%02d", i);
		write_content(name, (size_t)i * 100, i % 8);
	}
	CHECK(shell("truncate -s 100000 tree/hole && ln -s big tree/link && "
		    "ln tree/big tree/a/linked"));
}

TEST(cut_off)
{
	make_image("-b 16384");
	CHECK_OK(try_image(image, image_size).code);
	CHECK_OK(try_image(image, super.bytes_used).code);
	for (size_t n = 0; n < super.bytes_used; n += n < 100 ? 7 : 9973)
		CHECK_EQ_I(try_image(image, n).code, -EBADMSG);
	CHECK_EQ_I(try_image(image, super.bytes_used - 1).code, -EBADMSG);
}

TEST(superblock)
{
	static const struct {
		size_t at;
		uint64_t value;
		unsigned bytes;
		int code;
	} cases[] = {
		{0, 0x68737173, 4, -ENOTSUP}, /* big-endian */
		{0, 0x12345678, 4, -EBADMSG},
		{4, 0, 4, -EBADMSG},  /* inodes */
		{12, 0, 4, -EBADMSG}, /* block size */
		{12, 3, 4, -EBADMSG},
		{12, 1 << 21, 4, -EBADMSG},
		{16, UINT32_MAX, 4, -EBADMSG}, /* fragments */
		{20, 0, 2, -ENOTSUP},          /* compressor */
		{20, 2, 2, -ENOTSUP},
		{20, 7, 2, -ENOTSUP},
		{22, 40, 2, -EBADMSG}, /* log of block size */
		{28, 3, 2, -ENOTSUP},  /* version */
		{30, 1, 2, -ENOTSUP},
		{32, UINT64_MAX, 8, -EBADMSG}, /* root */
		{40, UINT64_MAX, 8, -EBADMSG}, /* bytes used */
		{48, UINT64_MAX, 8, -EBADMSG}, /* owners */
		{64, UINT64_MAX, 8, -EBADMSG}, /* inodes */
		{64, UINT64_MAX / 2, 8, -EBADMSG},
		{80, UINT64_MAX - 8, 8, -EBADMSG}, /* fragments */
		{88, UINT64_MAX, 8, 0},            /* export table */
		{88, 1 << 30, 8, 0},
		{88, 1, 8, 0},
	};
	struct outcome whole;

	make_image("-b 16384");
	whole = try_image(image, image_size);
	CHECK_OK(whole.code);
	CHECK_EQ_U(whole.bad, 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		unsigned char saved[SQUASHFS_SUPER];
		struct outcome o;

		memcpy(saved, image, sizeof saved);
		set_bytes(cases[i].at, cases[i].value, cases[i].bytes);
		o = try_image(image, image_size);
		memcpy(image, saved, sizeof saved);
		if (o.code != cases[i].code)
			test_fail(__FILE__, __LINE__, "case %zu: %d", i,
				  o.code);
		if (o.code == 0)
			CHECK(o.sum == whole.sum && o.bad == 0);
	}
}

/* Checksums in the blocks: damage of data is an error, never other bytes. */
TEST(flipped_data)
{
	struct outcome whole, o;

	make_image("-b 16384");
	whole = try_image(image, image_size);
	for (unsigned i = 0; i < 60; i++) {
		size_t at = SQUASHFS_SUPER +
			    test_random() % (super.inodes_at - SQUASHFS_SUPER);
		unsigned char mask = (unsigned char)(1u << i % 8);

		image[at] ^= mask;
		o = try_image(image, image_size);
		image[at] ^= mask;
		CHECK_EQ_I(o.code, 0);
		CHECK_EQ_U(o.n, whole.n);
		CHECK(o.bad > 0 || o.sum == whole.sum);
	}
}

/* Metadata without checksums: anything may follow but a crash and a hang. */
TEST(flipped_metadata)
{
	static const char *const options[] = {
		"-b 4096 -noI -noId -noF -noX",
		"-b 16384 -comp lz4",
	};

	for (size_t k = 0; k < sizeof options / sizeof options[0]; k++) {
		make_image(options[k]);
		for (unsigned i = 0; i < 150; i++) {
			size_t from = super.inodes_at;
			size_t at = from +
				    test_random() % (super.bytes_used - from);
			unsigned char was = image[at];

			image[at] =
				i % 2 ? was ^ (unsigned char)(1 << i / 2 % 8)
				      : (unsigned char)test_random();
			try_image(image, image_size);
			image[at] = was;
		}
		for (size_t at = 0; at < SQUASHFS_SUPER; at += 1 + k) {
			unsigned char was = image[at];

			image[at] ^= (unsigned char)(1u << at % 8);
			try_image(image, image_size);
			image[at] = was;
		}
	}
}

/* ---- made by hand -------------------------------------------------------- */

/* Metadata are not compressed: where inode n is, and where its entry is. */
static size_t find_name(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = super.dirs_at; i + n < super.fragments_at; i++)
		if (!memcmp(image + i, name, n))
			return i;
	test_fail(__FILE__, __LINE__, "no %s", name);
}

TEST(impossible_names)
{
	static const char *const names[] = {"..", "a/", "/b", ".."};
	struct outcome o;

	CHECK(shell("rm -rf tree && mkdir tree && echo 1 > tree/xy && "
		    "echo 2 > tree/zz"));
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		make_image("-noI");
		memcpy(image + find_name("xy"), names[i], 2);
		o = try_image(image, image_size);
		CHECK_OK(o.code);
		CHECK_EQ_U(o.n, 2);
		CHECK(o.notes);
	}
	make_image("-noI");
	memcpy(image + find_name("xy"), "\0y", 2);
	CHECK_EQ_U(try_image(image, image_size).n, 2);
}

/* A directory that contains itself: its entry leads to the root's inode. */
TEST(loop)
{
	struct outcome o;
	size_t at;

	CHECK(shell("rm -rf tree && mkdir -p tree/sub && echo 2 > tree/zz && "
		    "echo 3 > tree/sub/in"));
	make_image("-noI");
	/* Entry: offset, number, type, size, name. */
	at = find_name("sub") - 8;
	CHECK_EQ_U(super.root >> 16, 0);
	set_bytes(at, super.root & 0xffff, 2);
	o = try_image(image, image_size);
	CHECK_OK(o.code);
	CHECK_EQ_U(o.n, 2);
	CHECK(o.notes);
}

/* Two directories with one list: two directories with the same files. */
TEST(shared_list)
{
	struct outcome o;
	size_t at[2] = {0, 0}, n = 0;

	CHECK(shell("rm -rf tree && mkdir -p tree/d1 tree/d2 && "
		    "touch tree/d1/x tree/d2/x"));
	make_image("-noI");
	/* Basic directory inodes in the table, which begins with a u16 of its
	 * block: type 1, and in bytes 16 to 20 where the list is. */
	for (size_t i = super.inodes_at + 2; i < super.dirs_at;) {
		unsigned type = load_le16(image + i);

		if (type == 1 && n < 2)
			at[n++] = i;
		i += type == 1 || type == 2 ? 32 : 1000;
	}
	CHECK_EQ_U(n, 2);
	memcpy(image + at[1] + 16, image + at[0] + 16, 4);
	memcpy(image + at[1] + 26, image + at[0] + 26, 2);
	o = try_image(image, image_size);
	CHECK_OK(o.code);
	CHECK_EQ_U(o.n, 5);
	/* A list that is longer than the table it is in ends with that. */
	set_bytes(at[0] + 24, 65535, 2);
	o = try_image(image, image_size);
	CHECK_OK(o.code);
	CHECK(o.n >= 4 && o.notes);
}

/* A file whose list of blocks would be longer than the table of inodes. */
TEST(long_list)
{
	struct outcome o;
	size_t at;

	CHECK(shell("rm -rf tree && mkdir tree && truncate -s 1M tree/hole && "
		    "echo 1 > tree/one"));
	make_image("-noI");
	for (at = super.inodes_at + 2; load_le16(image + at) != 9; at++)
		CHECK(at < super.dirs_at);
	CHECK_EQ_U(load_le64(image + at + 24), 1 << 20);
	set_bytes(at + 24, UINT64_C(1) << 60, 8);
	o = try_image(image, image_size);
	CHECK_OK(o.code);
	CHECK_EQ_U(o.n, 3);
	CHECK_EQ_U(o.bad, 1);
	CHECK(o.notes);
	set_bytes(at + 24, UINT64_C(1) << 63, 8);
	o = try_image(image, image_size);
	CHECK_EQ_U(o.n, 2);
}

/* ---- the child ----------------------------------------------------------- */

/* One that dies, by options that are no pointer, is an error with a reason. */
TEST(crash)
{
	struct squashfs_image im = {.fd = -1};
	struct squashfs_info info = {.block_size = 4096};
	struct members out;
	struct error err = {0};
	int quiet = open("/dev/null", O_WRONLY), was = dup(2);

	/* A sanitizer would report what is meant to happen. */
	signal(SIGSEGV, SIG_DFL);
	CHECK(dup2(quiet, 2) == 2);
	CHECK_EQ_I(squashfs_walk_in_child(&im, &info, (void *)8, &out, NULL,
					  NULL, &err),
		   -EBADMSG);
	CHECK(dup2(was, 2) == 2);
	close(quiet);
	close(was);
	CHECK(strstr(err.text, "it is damaged: its metadata cannot be read"));
	/* One that cannot read says so. */
	CHECK_EQ_I(squashfs_walk_in_child(&im, &info, NULL, &out, NULL, NULL,
					  &err),
		   -EBADMSG);
	CHECK(!strstr(err.text, "crashes"));
}

/* A source that is written to meanwhile is stale, not damaged. */
TEST(stale)
{
	struct error err = {0};
	struct handles *h;
	struct backing b;
	struct members m;
	struct squashfs_info info;
	uint32_t file;

	make_image("-noI");
	CHECK_OK(handles_new(&h, 8, 0, &err));
	file = handles_add(h, in_scratch("x.sqfs"));
	CHECK_OK(backing_file(&b, h, NULL, file, 0, &err));
	CHECK(shell("truncate -s 100 x.sqfs"));
	CHECK_EQ_I(squashfs_members(&b, NULL, &m, &info, NULL, NULL, &err),
		   -ESTALE);
	handles_free(h);
}

int main(void)
{
	if (!test_has_tool("mksquashfs"))
		return 77;
	CHECK(mkdtemp(scratch));
	make_tree();
	RUN(cut_off);
	RUN(superblock);
	RUN(flipped_data);
	RUN(flipped_metadata);
	RUN(impossible_names);
	RUN(loop);
	RUN(shared_list);
	RUN(long_list);
	RUN(crash);
	RUN(stale);
	free(image);
	CHECK(shell("rm -rf %s", scratch));
	return test_done();
}
