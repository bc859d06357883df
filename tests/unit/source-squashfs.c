/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: images of mksquashfs and gensquashfs against what was packed. */
#include <ftw.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "squashfs_image.h"

static const char *const compressors[] = {"gzip", "lzo", "lz4", "xz", "zstd"};
static const unsigned sizes[] = {4096, 131072, 1048576};

static void make_link(const char *target, const char *name)
{
	CHECK_OK(symlink(target, in_scratch(name)));
}

static void make_tree(void)
{
	struct timespec times[2] = {{.tv_sec = 1234567890},
				    {.tv_sec = 4294967295}};
	char name[300] = "tree/", small[64];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int s;

	CHECK(shell("mkdir -p tree/dir/deeper tree/empty tree/many"));
	write_content("tree/empty-file", 0, 0);
	write_content("tree/one", 1, 0);
	write_content("tree/exact", 1048576, 4);
	write_content("tree/tail", 2 * 131072 + 777, 4);
	write_content("tree/noise", 300000, 8);
	write_content("tree/runs", 1200000, 0);
	write_content("tree/dir/big", 1500001, 3);
	CHECK(shell("cp tree/dir/big tree/dir/deeper/same"));
	CHECK(shell("cp tree/one tree/dir/one-again"));
	for (int i = 0; i < 200; i++) {
		snprintf(small, sizeof small, "tree/many/%03d", i);
		write_content(small, (size_t)(i * 37 % 9000), i % 9);
	}
	CHECK(shell("truncate -s 1200000 tree/hole"));
	CHECK(shell("(head -c 200000 tree/noise; head -c 900000 /dev/zero;"
		    "head -c 777 tree/noise) > tree/half-hole"));
	memset(name + 5, 'n', 255);
	write_content(name, 100, 1);
	CHECK_OK(link(in_scratch("tree/noise"), in_scratch("tree/dir/linked")));
	CHECK_OK(link(in_scratch("tree/noise"), in_scratch("tree/a-link")));
	make_link("dir/one", "tree/sym");
	make_link("/nowhere/\xff\n", "tree/sym2");
	memset(name, 't', 299);
	make_link(name, "tree/long-target");
	CHECK_OK(link(in_scratch("tree/sym"), in_scratch("tree/sym-linked")));
	write_content("tree/odd \xff\xfe\n name", 10, 0);
	CHECK_OK(mkfifo(in_scratch("tree/fifo"), 0640));
	s = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s",
		 in_scratch("tree/sock"));
	CHECK_OK(bind(s, (struct sockaddr *)&address, sizeof address));
	close(s);
	CHECK_OK(chmod(in_scratch("tree/one"), 04751));
	CHECK_OK(chmod(in_scratch("tree/dir"), 01777));
	CHECK_OK(utimensat(AT_FDCWD, in_scratch("tree/dir/one-again"), times,
			   0));
}

static void open_or_fail(struct image *im, const char *name)
{
	struct error err = {0};

	if (image_open_at(im, in_scratch(name), 0, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* ---- an image against the tree that was packed ---------------------------- */

static const struct image *current;
static unsigned met;
static bool linked; /* files have as many names as in the tree */

static void compare_content(const char *path, uint64_t i)
{
	static unsigned char have[1 << 20], want[1 << 20];
	struct error err = {0};
	FILE *f = fopen(path, "r");
	ssize_t n;

	CHECK(f);
	for (uint64_t k = 0;; k++) {
		n = member_piece(current, i, k, have, &err);
		if (n < 0)
			test_fail(__FILE__, __LINE__, "%s: %s", path, err.text);
		CHECK_EQ_U(fread(want, 1, current->info.block_size, f),
			   (uint64_t)n);
		if (n == 0)
			break;
		CHECK_MEM(have, want, (size_t)n);
	}
	fclose(f);
}

static const struct member_common *common_of(const struct image *im,
					     const char *path)
{
	return member_common(&im->members,
			     &im->members.at[record_of(im, path)]);
}

static int compare(const char *path, const struct stat *st, int flag,
		   struct FTW *ftw)
{
	const struct members *m = &current->members;
	size_t skip = strlen(in_scratch("tree"));
	uint64_t i = record_of(current, path + skip + (path[skip] == '/'));
	const struct member_record *r = &m->at[i], *to = r;
	const struct member_common *common;
	char target[4096] = "";

	(void)flag;
	(void)ftw;
	met++;
	if (r->kind == MEMBER_LINK)
		to = &m->at[r->data];
	common = member_common(m, to);
	CHECK_EQ_U(to->mode, st->st_mode);
	CHECK_EQ_U(r->mode, st->st_mode);
	CHECK_EQ_U(common->uid, st->st_uid);
	CHECK_EQ_U(common->gid, st->st_gid);
	CHECK_EQ_I(member_mtime(m, to), st->st_mtime);
	/* mksquashfs stores each name of a symlink, gensquashfs of any file. */
	if (S_ISDIR(st->st_mode) || (linked && S_ISREG(st->st_mode)))
		CHECK_EQ_U(common->nlink, st->st_nlink);
	if (S_ISREG(st->st_mode)) {
		CHECK_EQ_U(to->size, (uint64_t)st->st_size);
		compare_content(path, i);
	}
	if (S_ISLNK(st->st_mode)) {
		CHECK(readlink(path, target, sizeof target - 1) > 0);
		CHECK_STR(m->names + to->data, target);
	}
	return 0;
}

static void compare_tree(const char *image, uint64_t offset)
{
	struct error err = {0};
	struct image im;

	linked = *image != 'y';
	if (image_open_at(&im, in_scratch(image), offset, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	current = &im;
	met = 0;
	CHECK_OK(nftw(in_scratch("tree"), compare, 16, FTW_PHYS));
	CHECK_EQ_U(im.members.n, met);
	CHECK_EQ_U(im.members.notes_size, 0);
	image_close(&im);
}

TEST(mksquashfs)
{
	for (unsigned c = 0; c < 5; c++)
		for (unsigned s = 0; s < 3; s++) {
			if (!test_full() && s != c % 3)
				continue;
			CHECK(shell("mksquashfs tree x.sqfs -comp %s -b %u "
				    "-noappend -quiet -no-progress >/dev/null",
				    compressors[c], sizes[s]));
			compare_tree("x.sqfs", 0);
		}
}

TEST(mksquashfs_options)
{
	static const char *const options[] = {
		"-noI -noD -noF -noX -noId",
		"-noD",
		"-noF",
		"-noI",
		"-no-fragments",
		"-always-use-fragments",
		"-tailends",
		"-no-duplicates",
		"-no-exports",
		"-no-xattrs",
		"-nopad",
		"-comp xz -Xbcj x86,arm",
		"-comp lz4 -Xhc",
		"-noD -no-fragments -b 4096",
	};

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		CHECK(shell("mksquashfs tree x.sqfs -b 16384 %s -noappend "
			    "-quiet -no-progress >/dev/null",
			    options[i]));
		compare_tree("x.sqfs", 0);
	}
}

TEST(gensquashfs)
{
	for (unsigned c = 0; c < 5; c++)
		for (unsigned s = c % 2; s < 3; s += 2) {
			if (!test_full() && s != c % 3 && c != 1)
				continue;
			CHECK(shell("gensquashfs -q -f -k -e -D tree -c %s "
				    "-b %u y.sqfs",
				    compressors[c], sizes[s]));
			compare_tree("y.sqfs", 0);
		}
	CHECK(shell("gensquashfs -q -f -k -T -D tree y.sqfs"));
	compare_tree("y.sqfs", 0);
}

/* What is listed as a link is one. */
TEST(gensquashfs_links)
{
	FILE *f = fopen(in_scratch("pack"), "w");
	struct image im;

	CHECK(f);
	fprintf(f, "file /a/x 0644 1 2 tree/noise\nlink /b 0777 0 0 /a/x\n"
		   "link /a/c 0777 0 0 /a/x\n");
	CHECK_OK(fclose(f));
	CHECK(shell("gensquashfs -q -f -F pack y.sqfs"));
	open_or_fail(&im, "y.sqfs");
	CHECK_EQ_U(im.members.n, 5);
	CHECK_EQ_U(im.members.counts[3], 2);
	CHECK_EQ_U(common_of(&im, "b")->nlink, 3);
	image_close(&im);
}

TEST(offset)
{
	CHECK(shell("mksquashfs tree x.sqfs -noD -noappend -quiet "
		    "-no-progress >/dev/null; "
		    "(head -c 12345 /dev/zero; cat x.sqfs) > z.sqfs"));
	compare_tree("z.sqfs", 12345);
}

/* ---- what only some images have ------------------------------------------ */

TEST(devices)
{
	struct image im;
	const struct member_record *r;

	CHECK(shell("mkdir -p none && mksquashfs none x.sqfs -noappend -quiet "
		    "-no-progress -p 'null c 666 7 70000 1 3' "
		    "-p 'disk b 640 0 6 259 300000' >/dev/null"));
	open_or_fail(&im, "x.sqfs");
	CHECK_EQ_U(im.members.n, 3);
	CHECK_EQ_U(im.members.counts[4], 2);
	r = &im.members.at[record_of(&im, "null")];
	CHECK_EQ_U(r->mode, S_IFCHR | 0666);
	CHECK_EQ_U(r->data, makedev(1, 3));
	CHECK_EQ_U(common_of(&im, "null")->uid, 7);
	CHECK_EQ_U(common_of(&im, "null")->gid, 70000);
	r = &im.members.at[record_of(&im, "disk")];
	CHECK_EQ_U(r->mode, S_IFBLK | 0640);
	CHECK_EQ_U(r->data, makedev(259, 300000));
	image_close(&im);
}

TEST(empty)
{
	struct image im;

	CHECK(shell("mkdir -p none && mksquashfs none x.sqfs -noappend -quiet "
		    "-no-progress >/dev/null"));
	open_or_fail(&im, "x.sqfs");
	CHECK_EQ_U(im.members.n, 1);
	CHECK_EQ_U(im.members.n_blocks, 0);
	image_close(&im);
}

/* As listed: one attribute of a record. */
static const void *xattr_of(const struct image *im, uint64_t i,
			    const char *name, uint32_t *size)
{
	const struct members *m = &im->members;
	uint32_t at = member_common(m, &m->at[i])->xattrs, n, head[2];
	const unsigned char *p = m->xattrs + (at - 1) * UINT64_C(4);

	CHECK(at);
	memcpy(&n, p, 4);
	for (p += 4; n > 0; n--) {
		memcpy(head, p, 8);
		p += 8;
		if (head[0] == strlen(name) && !memcmp(p, name, head[0])) {
			*size = head[1];
			return p + head[0];
		}
		p += (head[0] + head[1] + 3) & ~3u;
	}
	test_fail(__FILE__, __LINE__, "no attribute %s", name);
}

static void check_xattr(const struct image *im, const char *path,
			const char *name, const void *want, size_t n)
{
	uint32_t size;
	const void *have = xattr_of(im, record_of(im, path), name, &size);

	CHECK_EQ_U(size, n);
	CHECK_MEM(have, want, n);
}

TEST(xattrs)
{
	static char value[65000];
	struct image im;
	FILE *f = fopen(in_scratch("attrs"), "w");

	memset(value, 'v', sizeof value);
	CHECK(f);
	fprintf(f, "# file: one\nuser.a=\"1\"\nuser.empty=\"\"\n"
		   "trusted.t=0x00ff00\nsecurity.s=\"label\"\n\n");
	/* The same value for two files: it is kept once, elsewhere. */
	fprintf(f, "# file: dir\nuser.long=\"%.*s\"\n\n", 3000, value);
	fprintf(f, "# file: noise\nuser.long=\"%.*s\"\nuser.b=\"2\"\n\n", 3000,
		value);
	fprintf(f, "# file: fifo\nuser.huge=\"%.*s\"\n\n", (int)sizeof value,
		value);
	fprintf(f, "# file: sym\ntrusted.of-link=\"3\"\n\n");
	CHECK_OK(fclose(f));
	CHECK(shell("gensquashfs -q -f -k -D tree -A attrs y.sqfs >/dev/null"));
	compare_tree("y.sqfs", 0);
	open_or_fail(&im, "y.sqfs");
	check_xattr(&im, "one", "user.a", "1", 1);
	check_xattr(&im, "one", "user.empty", "", 0);
	check_xattr(&im, "one", "trusted.t", "\0\377", 3);
	check_xattr(&im, "one", "security.s", "label", 5);
	check_xattr(&im, "dir", "user.long", value, 3000);
	check_xattr(&im, "noise", "user.long", value, 3000);
	check_xattr(&im, "noise", "user.b", "2", 1);
	check_xattr(&im, "fifo", "user.huge", value, sizeof value);
	check_xattr(&im, "sym", "trusted.of-link", "3", 1);
	CHECK_EQ_U(common_of(&im, "tail")->xattrs, 0);
	image_close(&im);
}

TEST(large_directory)
{
	unsigned entries = test_full() ? 70000 : 7000;
	struct image im;
	char name[64], target[64];

	CHECK(shell("mkdir -p large/d"));
	for (unsigned i = 0; i < entries; i++) {
		snprintf(name, sizeof name, "large/d/%05u", i);
		snprintf(target, sizeof target, "t%u", i);
		make_link(target, name);
	}
	CHECK(shell("mksquashfs large x.sqfs -noappend -quiet -no-progress "
		    ">/dev/null"));
	open_or_fail(&im, "x.sqfs");
	CHECK_EQ_U(im.members.n, entries + 2);
	for (unsigned i = 0; i < entries; i += entries / 9) {
		const struct member_record *r;

		snprintf(name, sizeof name, "d/%05u", i);
		r = &im.members.at[record_of(&im, name)];
		snprintf(name, sizeof name, "t%u", i);
		CHECK_STR(im.members.names + r->data, name);
	}
	image_close(&im);
}

/* A size of more than 32 bits, and a hole that is nearly as large. */
TEST(vast)
{
	struct error err = {0};
	struct image im;
	const struct member_record *r;
	static unsigned char have[1 << 20], zeros[1 << 20];

	CHECK(shell("mkdir -p vast && cp tree/noise vast/end && "
		    "truncate -s 4100M vast/end && echo end >> vast/end"));
	CHECK(shell("mksquashfs vast/end x.sqfs -b 1M -noappend -quiet "
		    "-no-progress >/dev/null"));
	open_or_fail(&im, "x.sqfs");
	r = &im.members.at[1];
	CHECK_EQ_U(r->size, (UINT64_C(4100) << 20) + 4);
	CHECK_EQ_I(member_piece(&im, 1, 4100, have, &err), 4);
	CHECK_MEM(have, "end\n", 4);
	CHECK_EQ_I(member_piece(&im, 1, 77, have, &err), 1 << 20);
	CHECK_MEM(have, zeros, sizeof have);
	image_close(&im);
}

/* Files of equal content have the same entries; a chunk leads to the next one. */
TEST(shared_blocks_and_order)
{
	struct image im;
	const struct member_record *a, *b;
	uint64_t next = 0, n = 0, i;
	unsigned carry;

	CHECK(shell("mksquashfs tree x.sqfs -b 16384 -noappend -quiet "
		    "-no-progress >/dev/null"));
	open_or_fail(&im, "x.sqfs");
	a = &im.members.at[record_of(&im, "dir/big")];
	b = &im.members.at[record_of(&im, "dir/deeper/same")];
	CHECK_EQ_U(a->kind, MEMBER_BLOCKS);
	CHECK_EQ_U(a->data, b->data);
	CHECK(a != b);
	i = a->data;
	while (im.blocks->ops->next(im.blocks, i, &next, &carry)) {
		CHECK(next > i && next < a->data + 1500001 / 16384 + 1);
		CHECK_EQ_U(carry, 0);
		i = next;
		n++;
	}
	CHECK(n > 50);
	i = im.members.at[record_of(&im, "many/003")].data >> 20;
	CHECK(im.blocks->ops->next(im.blocks, i, &next, &carry));
	CHECK(im.members.blocks[next].flags & MEMBER_SHARED);
	image_close(&im);
}

/* ---- several threads ----------------------------------------------------- */

static void *decode_all(void *arg)
{
	const struct image *im = arg;
	struct error err = {0};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < im->members.n_blocks; i++) {
		struct buf *b;

		if (im->members.blocks[i].flags & MEMBER_TAIL)
			continue;
		CHECK_OK(block_bytes(im, i, &b, &err));
		for (size_t k = 0; k < b->size; k++)
			sum = sum * 31 + b->data[k];
		buf_unref(b);
	}
	return (void *)(uintptr_t)sum;
}

TEST(threads)
{
	unsigned n = test_full() ? 4 : 2;
	pthread_t thread[4];
	void *sum[4];
	struct image im;

	for (unsigned c = 0; c < 5; c++) {
		CHECK(shell("mksquashfs tree x.sqfs -comp %s -b 65536 "
			    "-noappend -quiet -no-progress >/dev/null",
			    compressors[c]));
		open_or_fail(&im, "x.sqfs");
		for (unsigned i = 0; i < n; i++)
			CHECK_OK(pthread_create(&thread[i], NULL, decode_all,
						&im));
		for (unsigned i = 0; i < n; i++) {
			CHECK_OK(pthread_join(thread[i], &sum[i]));
			CHECK(sum[i] == sum[0]);
		}
		image_close(&im);
	}
}

int main(void)
{
	if (!test_has_tool("mksquashfs") || !test_has_tool("gensquashfs"))
		return 77;
	CHECK(mkdtemp(scratch));
	umask(022);
	make_tree();
	RUN(mksquashfs);
	RUN(mksquashfs_options);
	RUN(gensquashfs);
	RUN(gensquashfs_links);
	RUN(offset);
	RUN(devices);
	RUN(empty);
	RUN(xattrs);
	RUN(large_directory);
	if (test_full())
		RUN(vast); /* mksquashfs reads its 4 GB */
	RUN(shared_blocks_and_order);
	RUN(threads);
	CHECK(shell("rm -rf %s", scratch));
	return test_done();
}
