/* SPDX-License-Identifier: BSD-2-Clause */
/* Member tables: what adding leaves behind, and trees of files over them. */
#include <errno.h>

#include <sys/mman.h>

#include "members/member_files.h"
#include "tree/tree.h"
#include "test.h"

static struct members_builder *begin(bool versions)
{
	const struct members_options o = {versions};
	struct members_builder *b;

	CHECK_OK(members_builder_new(&b, &o, NULL));
	return b;
}

static int64_t add_file(struct members_builder *b, const char *path,
			uint64_t pos, uint64_t size)
{
	const struct member m = {.path = path,
				 .mode = S_IFREG | 0644,
				 .mtime = 1000,
				 .size = size,
				 .kind = MEMBER_RANGE,
				 .data = pos};

	return members_add(b, &m, NULL);
}

static int64_t add_other(struct members_builder *b, const char *path,
			 uint32_t mode, const char *link)
{
	const struct member m = {
		.path = path, .mode = mode, .mtime = 2000, .link = link};

	return members_add(b, &m, NULL);
}

static int64_t add_hard(struct members_builder *b, const char *path,
			const char *link)
{
	const struct member m = {.path = path,
				 .mode = S_IFREG | 0644,
				 .kind = MEMBER_LINK,
				 .link = link};

	return members_add(b, &m, NULL);
}

static struct members finish(struct members_builder *b)
{
	struct error err = {0, ""};
	struct members m;
	int r = members_finish(b, &m, &err);

	CHECK_STR(err.text, "");
	CHECK_OK(r);
	return m;
}

/* Record of a path; UINT64_MAX: there is none. */
static uint64_t at(const struct members *m, const char *path)
{
	char copy[512], *save = NULL;
	uint64_t r = 0;

	snprintf(copy, sizeof copy, "%s", path);
	for (char *part = strtok_r(copy, "/", &save); part;
	     part = strtok_r(NULL, "/", &save))
		if (members_find(m, r, part, &r) < 0)
			return UINT64_MAX;
	return r;
}

static const struct member_common *common_of(const struct members *m,
					     const char *path)
{
	return member_common(m, &m->at[at(m, path)]);
}

static uint32_t names_of(const struct members *m, const char *path)
{
	return common_of(m, path)->nlink;
}

static bool noted(const struct members *m, const char *what)
{
	return m->notes_size && strstr(m->notes, what);
}

TEST(sorted_and_numbered)
{
	struct members_builder *b = begin(false);
	struct members m;
	char path[64];

	add_file(b, "b/x", 10, 5);
	add_file(b, "a", 20, 6);
	add_other(b, "b/", S_IFDIR | 0700, NULL);
	m = finish(b);
	CHECK_EQ_U(m.n, 4);
	CHECK_EQ_U(at(&m, "a"), 1);
	CHECK_EQ_U(at(&m, "b"), 2);
	CHECK_EQ_U(at(&m, "b/x"), 3);
	CHECK_EQ_U(m.at[2].mode, S_IFDIR | 0700);
	CHECK_EQ_U(names_of(&m, ""), 3);
	CHECK_EQ_U(m.at[3].data, 10);
	CHECK_EQ_U(m.bytes, 11);
	CHECK_EQ_U(m.counts[0], 2);
	members_path(&m, 3, path, sizeof path);
	CHECK_STR(path, "/b/x");
	members_path(&m, 3, path, 3);
	CHECK_STR(path, "/x");
	members_free(&m);
}

TEST(paths_are_made_safe)
{
	struct members_builder *b = begin(false);
	char deep[1000];
	struct members m;

	CHECK(add_file(b, "//abs/./f", 0, 1) >= 0);
	CHECK(add_file(b, "./rel/.", 0, 1) >= 0);
	CHECK_EQ_I(add_file(b, "a/../../etc/passwd", 0, 1), -EINVAL);
	CHECK_EQ_I(add_file(b, "..", 0, 1), -EINVAL);
	CHECK(add_file(b, "..a/...", 0, 1) >= 0);
	memset(deep, 'n', 400);
	deep[400] = '\0';
	CHECK(add_file(b, deep, 0, 1) >= 0);
	m = finish(b);
	CHECK(at(&m, "abs/f") != UINT64_MAX);
	CHECK_EQ_U(m.at[at(&m, "rel")].kind, MEMBER_RANGE);
	CHECK(at(&m, "..a/...") != UINT64_MAX);
	CHECK(at(&m, "a") == UINT64_MAX);
	CHECK(noted(&m, "'..'"));
	CHECK(noted(&m, "leading slash"));
	/* The long name is there, shortened, and knows what it was. */
	CHECK(m.xattrs_size > 400);
	members_free(&m);
}

TEST(the_last_one_wins)
{
	struct members_builder *b = begin(true);
	struct members m;

	add_file(b, "f", 1, 1);
	add_file(b, "f", 2, 2);
	add_other(b, "f", S_IFLNK | 0777, "target");
	add_file(b, "dir/x", 3, 3);
	CHECK_EQ_I(add_file(b, "dir", 4, 4), -EINVAL); /* not empty */
	add_other(b, "empty", S_IFDIR | 0755, NULL);
	CHECK(add_file(b, "empty", 5, 5) >= 0);
	add_file(b, "file", 6, 6);
	CHECK_EQ_I(add_file(b, "file/in/it", 7, 7), -EINVAL);
	add_other(b, "file", S_IFDIR | 0755,
		  NULL); /* said so: it becomes one */
	add_file(b, "file/in/it", 7, 7);
	m = finish(b);
	CHECK_EQ_U(m.at[at(&m, "f")].kind, MEMBER_SYMLINK);
	CHECK_STR(m.names + m.at[at(&m, "f")].data, "target");
	CHECK_EQ_U(m.at[at(&m, "f.versions/1")].data, 1);
	CHECK_EQ_U(m.at[at(&m, "f.versions/2")].data, 2);
	CHECK_EQ_U(m.at[at(&m, "f.versions")].size, 2);
	CHECK_EQ_U(m.at[at(&m, "dir/x")].data, 3);
	CHECK_EQ_U(m.at[at(&m, "empty")].data, 5);
	CHECK_EQ_U(m.at[at(&m, "file/in/it")].data, 7);
	CHECK_EQ_U(m.at[at(&m, "file.versions/1")].data, 6);
	CHECK(noted(&m, "not replaced"));
	CHECK(noted(&m, "its directory is a file"));
	members_free(&m);
}

TEST(hard_links_share_an_inode)
{
	struct members_builder *b = begin(false);
	struct members m;

	add_file(b, "one", 1, 9);
	CHECK(add_hard(b, "a/two", "./one") >= 0);
	CHECK(add_hard(b, "three", "/a/two") >= 0);
	CHECK(add_hard(b, "one", "one") >= 0); /* itself */
	CHECK_EQ_I(add_hard(b, "self", "self"), -ENOENT);
	CHECK_EQ_I(add_hard(b, "none", "not/there"), -ENOENT);
	add_file(b, "one", 5, 5); /* the others keep the old one */
	m = finish(b);
	CHECK_EQ_U(m.at[at(&m, "one")].data, 5);
	CHECK_EQ_U(names_of(&m, "one"), 1);
	CHECK_EQ_U(m.at[at(&m, "three")].kind, MEMBER_RANGE);
	CHECK_EQ_U(names_of(&m, "three"), 2);
	CHECK_EQ_U(m.at[at(&m, "a/two")].kind, MEMBER_LINK);
	CHECK_EQ_U(m.at[at(&m, "a/two")].data, at(&m, "three"));
	CHECK(at(&m, "self") == UINT64_MAX);
	CHECK_EQ_U(m.counts[3], 1);
	CHECK_EQ_U(m.bytes, 14);
	members_free(&m);
}

TEST(links_in_the_way)
{
	struct members_builder *b = begin(false);
	struct members m;

	add_other(b, "real", S_IFDIR | 0755, NULL);
	add_other(b, "alias", S_IFLNK | 0777, "real");
	CHECK(add_file(b, "alias/f", 1, 1) >= 0);
	add_other(b, "out", S_IFLNK | 0777, "/etc");
	CHECK_EQ_I(add_file(b, "out/f", 1, 1), -EINVAL);
	add_other(b, "up", S_IFLNK | 0777, "../..");
	CHECK_EQ_I(add_file(b, "up/f", 1, 1), -EINVAL);
	add_other(b, "loop", S_IFLNK | 0777, "loop");
	CHECK_EQ_I(add_file(b, "loop/f", 1, 1), -EINVAL);
	m = finish(b);
	CHECK_EQ_U(m.at[at(&m, "real/f")].data, 1);
	CHECK(noted(&m, "leads out of the archive"));
	members_free(&m);
}

/* Extents of a whole file, as text. */
static void plan_is(struct files *f, uint64_t node, uint64_t off, uint64_t size,
		    const char *want)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	struct plan p;

	plan_init(&p, size - off);
	CHECK_OK(f->ops->map(f, node, off, &p, NULL));
	for (unsigned i = 0; i < p.n; i++) {
		const struct extent *x = &p.ext[i];

		if (x->kind == EXTENT_FILE)
			fprintf(out, "f%" PRIu64 "+%" PRIu64 " ", x->u.file.pos,
				x->len);
		else if (x->kind == EXTENT_CHUNK)
			fprintf(out, "c%" PRIu64 "@%" PRIu64 "+%" PRIu64 " ",
				x->u.chunk.index, x->u.chunk.skip, x->len);
		else
			fprintf(out, "z%" PRIu64 " ", x->len);
	}
	fclose(out);
	CHECK_STR(text, want);
	free(text);
}

TEST(where_bytes_are)
{
	const struct member_extent map[] = {
		{2, 0, 0}, {10, 5, 100}, {30, 10, 105}};
	const struct member_block blocks[] = {
		{500, 60, 100, 0, 0},              /* 0: compressed */
		{0, 0, 100, 0, 0},                 /* 1: a hole */
		{560, 100, 100, MEMBER_STORED, 0}, /* 2 */
		{MEMBER_IN_BLOCK(4, 20), 0, 0, MEMBER_TAIL, 0},
		{900, 50, 100, 0, 0}, /* 4: fragments */
	};
	struct members_builder *b = begin(false);
	struct chunk_set set = {.id = 1};
	struct volume v = {.backing = {.pos = 1000, .size = 5000},
			   .blocks = &set};
	struct member m = {.path = "sparse",
			   .mode = S_IFREG | 0644,
			   .size = 50,
			   .kind = MEMBER_SPARSE};
	struct error err = {0, ""};
	struct members t;
	struct files *f;

	m.data = (uint64_t)members_add_extents(b, map, 3);
	CHECK(members_add(b, &m, NULL) >= 0);
	m.path = "blocks";
	m.size = 330;
	m.kind = MEMBER_BLOCKS;
	m.data = (uint64_t)members_add_blocks(b, blocks, 5);
	members_block_size(b, 100);
	CHECK(members_add(b, &m, NULL) >= 0);
	m.path = "small";
	m.size = 15;
	m.kind = MEMBER_FRAGMENT;
	m.data = MEMBER_IN_BLOCK(4, 3);
	CHECK(members_add(b, &m, NULL) >= 0);
	add_file(b, "beyond", 4990, 20);
	t = finish(b);
	CHECK_OK(member_files_new(&f, &t, &v, 1, 0, &err));
	plan_is(f, at(&t, "sparse"), 0, 50, "z10 f1100+5 z15 f1105+10 z10 ");
	plan_is(f, at(&t, "sparse"), 12, 50, "f1102+3 z15 f1105+10 z10 ");
	plan_is(f, at(&t, "sparse"), 45, 50, "z5 ");
	plan_is(f, at(&t, "blocks"), 0, 330,
		"c0@0+100 z100 f1560+100 c4@20+30 ");
	plan_is(f, at(&t, "blocks"), 310, 330, "c4@30+20 ");
	plan_is(f, at(&t, "small"), 5, 15, "c4@8+10 ");
	plan_is(f, at(&t, "beyond"), 0, 20,
		"f5990+10 f4611686018427393904+10 ");
	f->ops->free(f);
	members_free(&t);
}

/* What is written to an index comes back, or is refused. */
TEST(sections_are_checked)
{
	struct index_section s[MEMBERS_SECTIONS];
	struct members_builder *b = begin(false);
	struct members m, copy;
	unsigned n, refused = 0;

	add_file(b, "d/f", 1, 1);
	add_hard(b, "d/g", "d/f");
	add_other(b, "l", S_IFLNK | 0777, "d");
	m = finish(b);
	n = members_sections(&m, s);
	CHECK_OK(members_of_sections(&copy, s, n, NULL, NULL));
	CHECK_EQ_U(copy.n, m.n);
	CHECK_EQ_U(copy.bytes, m.bytes);
	for (size_t i = 0; i < m.n * sizeof *m.at; i++) {
		struct member_record *r = malloc(m.n * sizeof *r);

		memcpy(r, m.at, m.n * sizeof *r);
		((unsigned char *)r)[i] ^= 0x5a;
		for (unsigned k = 0; k < n; k++)
			if (s[k].data == m.at)
				s[k].data = r;
		refused += members_of_sections(&copy, s, n, NULL, NULL) < 0;
		for (unsigned k = 0; k < n; k++)
			if (s[k].data == r)
				s[k].data = m.at;
		free(r);
	}
	CHECK(refused > 100);
	members_free(&m);
}

/* Any time that a header can hold. */
TEST(times)
{
	static const int64_t seconds[] = {0,
					  1700000000,
					  (INT64_C(1) << 34) - 1,
					  INT64_C(1) << 34,
					  -1,
					  -(INT64_C(1) << 34),
					  -(INT64_C(1) << 34) - 1,
					  INT64_MAX,
					  INT64_MIN};
	enum { N = sizeof seconds / sizeof *seconds };
	struct members_builder *b = begin(false);
	struct member f = {
		.mode = S_IFREG | 0644, .size = 1, .kind = MEMBER_RANGE};
	char name[16];
	struct members m;

	f.path = name;
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof name, "%u", i);
		f.mtime = seconds[i];
		f.nsec = i % 2 ? 999999999 : i;
		CHECK(members_add(b, &f, NULL) >= 0);
	}
	m = finish(b);
	for (unsigned i = 0; i < N; i++) {
		const struct member_record *r;

		snprintf(name, sizeof name, "%u", i);
		r = &m.at[at(&m, name)];
		CHECK_EQ_I(member_mtime(&m, r), seconds[i]);
		CHECK_EQ_U(member_nsec(r), i % 2 ? 999999999 : i);
	}
	CHECK_EQ_I(member_mtime(&m, &m.at[0]), INT64_MAX);
	members_free(&m);
}

/* What members have in common is kept once, and each has its own. */
TEST(in_common)
{
	enum { MANY = 5000, OWNERS = 300 };
	const struct member_xattr x = {"user.x", "value", 5};
	struct members_builder *b = begin(false);
	struct member f = {
		.mode = S_IFREG | 0644, .size = 1, .kind = MEMBER_RANGE};
	struct members m;
	char name[16];

	f.path = name;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "%u", i);
		f.uid = i % OWNERS;
		f.gid = i % OWNERS + 7;
		f.volume = i % 2;
		f.xattrs = &x;
		f.n_xattrs = i < OWNERS;
		CHECK(members_add(b, &f, NULL) >= 0);
	}
	CHECK(add_hard(b, "link", "7") >= 0);
	m = finish(b);
	/* The root; those with attributes and without; 7, and its name. */
	CHECK_EQ_U(m.n_common, 1 + 2 * OWNERS + 1);
	for (unsigned i = 0; i < MANY; i++) {
		const struct member_common *c;

		snprintf(name, sizeof name, "%u", i);
		c = common_of(&m, name);
		CHECK_EQ_U(c->uid, i % OWNERS);
		CHECK_EQ_U(c->gid, i % OWNERS + 7);
		CHECK_EQ_U(c->volume, i % 2);
		CHECK_EQ_U(c->xattrs != 0, i < OWNERS);
		CHECK_EQ_U(c->nlink, i == 7 ? 2 : 1);
	}
	members_free(&m);
}

/* Attributes, too, whoever has them. */
TEST(equal_attributes)
{
	enum { MANY = 1000, SETS = 100 };
	struct members_builder *b = begin(false);
	struct member_xattr x[2] = {{"user.empty", NULL, 0},
				    {"user.x", NULL, 2}};
	struct member f = {.mode = S_IFREG | 0644,
			   .size = 1,
			   .kind = MEMBER_RANGE,
			   .xattrs = x,
			   .n_xattrs = 2};
	char name[16], value[16];
	struct members m;

	f.path = name;
	x[1].value = value;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "%u", i);
		snprintf(value, sizeof value, "%02u", i % SETS);
		CHECK(members_add(b, &f, NULL) >= 0);
	}
	m = finish(b);
	CHECK_EQ_U(m.xattrs_size, SETS * (4 + (8 + 12) + (8 + 8)));
	CHECK_EQ_U(m.n_common, 1 + SETS);
	for (unsigned i = 0; i < MANY; i++) {
		struct member_xattr_at walk;

		snprintf(name, sizeof name, "%u", i);
		snprintf(value, sizeof value, "%02u", i % SETS);
		member_xattr_first(&m, &m.at[at(&m, name)], &walk);
		CHECK(member_xattr_next(&walk) && walk.size == 0);
		CHECK(member_xattr_next(&walk) && walk.size == 2);
		CHECK_MEM(walk.value, value, 2);
		CHECK(!member_xattr_next(&walk));
	}
	members_free(&m);
}

/* More than 4 GiB of names. */
TEST(names_far_away)
{
	const size_t size = (UINT64_C(1) << 32) + 64;
	char *names = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const uint32_t head[4] = {0};
	const struct member_common common = {.nlink = 1};
	struct member_record r[2] = {
		{.size = 1, .data = 1, .kind = MEMBER_DIR, .mode = 0040755},
		{.size = 5,
		 .kind = MEMBER_RANGE,
		 .mode = 0100644,
		 .name = 3,
		 .name_high = 1}};
	const struct index_section s[] = {{1, head, sizeof head, NULL},
					  {2, r, sizeof r, NULL},
					  {3, names, size, NULL},
					  {8, &common, sizeof common, NULL}};
	uint64_t found;
	struct members m;

	if (names == MAP_FAILED) /* ulimit -v */
		return;
	strcpy(names + 3, "near");
	strcpy(names + (UINT64_C(1) << 32) + 3, "far");
	CHECK_OK(members_of_sections(&m, s, 4, NULL, NULL));
	CHECK_OK(members_find(&m, 0, "far", &found));
	CHECK_EQ_I(members_find(&m, 0, "near", &found), -ENOENT);
	r[1].name_high = 2;
	CHECK_EQ_I(members_of_sections(&m, s, 4, NULL, NULL), -EBADMSG);
	r[1].name_high = 0;
	CHECK_OK(members_of_sections(&m, s, 4, NULL, NULL));
	CHECK_OK(members_find(&m, 0, "near", &found));
	r[0].name_high = 255; /* nobody asks, yet */
	CHECK_EQ_I(members_of_sections(&m, s, 4, NULL, NULL), -EBADMSG);
	munmap(names, size);
}

/* A table of those that lies. */
TEST(common_is_checked)
{
	const struct member_xattr x = {"user.x", "value", 5};
	struct index_section s[MEMBERS_SECTIONS];
	struct members_builder *b = begin(false);
	const struct member f = {.path = "f",
				 .mode = S_IFREG | 0644,
				 .size = 1,
				 .kind = MEMBER_RANGE,
				 .xattrs = &x,
				 .n_xattrs = 1};
	struct member_common c[2];
	struct members m, copy;
	unsigned n;

	CHECK(members_add(b, &f, NULL) >= 0);
	m = finish(b);
	CHECK_EQ_U(m.n_common, 2);
	n = members_sections(&m, s);
	for (unsigned i = 0; i < n; i++)
		if (s[i].data == m.common)
			s[i].data = c;
#define WITH(change)                                    \
	(memcpy(c, m.common, sizeof c), (void)(change), \
	 members_of_sections(&copy, s, n, NULL, NULL))
	CHECK_OK(WITH(0));
	CHECK_OK(WITH(c[1].since = INT64_MIN));
	CHECK_OK(WITH(c[1].volume = 9)); /* is seen where it is used */
	CHECK_EQ_I(WITH(c[1].since = 1), -EBADMSG);
	CHECK_EQ_I(WITH(c[1].since = INT64_MAX), -EBADMSG);
	CHECK_EQ_I(WITH(c[0].unused[2] = 1), -EBADMSG);
	CHECK_EQ_I(WITH(c[0].xattrs = 2), -EBADMSG);
	CHECK_EQ_I(WITH(c[0].xattrs = UINT32_MAX), -EBADMSG);
	for (unsigned i = 0; i < n; i++)
		if (s[i].data == c)
			s[i].size = sizeof *c; /* too few */
	CHECK_EQ_I(WITH(0), -EBADMSG);
#undef WITH
	members_free(&m);
}

/* Many members with one long map: a small table, and no end of checking. */
TEST(checking_is_bounded)
{
	enum { MANY = 40000 };
	struct member_extent *x = calloc(MANY + 1, sizeof *x);
	struct index_section s[MEMBERS_SECTIONS];
	struct members_builder *b = begin(false);
	struct error err = {0};
	struct member f = {
		.mode = S_IFREG | 0644, .size = MANY, .kind = MEMBER_SPARSE};
	struct members m, copy;
	char name[16];
	unsigned n;

	x[0].off = MANY;
	for (uint64_t i = 0; i < MANY; i++)
		x[i + 1] = (struct member_extent){i, 1, i};
	CHECK_EQ_I(members_add_extents(b, x, MANY + 1), 0);
	f.path = name;
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "%u", i);
		CHECK(members_add(b, &f, NULL) >= 0);
	}
	CHECK_EQ_I(members_finish(b, &m, &err), -EBADMSG);
	CHECK(strstr(err.text, "share so much"));
	/* A few may. */
	b = begin(false);
	CHECK_EQ_I(members_add_extents(b, x, MANY + 1), 0);
	for (unsigned i = 0; i < 10; i++) {
		snprintf(name, sizeof name, "%u", i);
		CHECK(members_add(b, &f, NULL) >= 0);
	}
	m = finish(b);
	n = members_sections(&m, s);
	CHECK_OK(members_of_sections(&copy, s, n, NULL, NULL));
	members_free(&m);
	free(x);
}

/* A number in a table from elsewhere must not become a file of ours. */
TEST(files_come_from_here_only)
{
	struct index_section s[MEMBERS_SECTIONS];
	struct members_builder *b = begin(false);
	const struct member f = {.path = "f",
				 .mode = S_IFREG | 0644,
				 .size = 5,
				 .kind = MEMBER_FILE,
				 .data = 3};
	struct members m, copy;
	unsigned n;

	CHECK(members_add(b, &f, NULL) >= 0);
	m = finish(b);
	n = members_sections(&m, s);
	CHECK_EQ_I(members_of_sections(&copy, s, n, NULL, NULL), -EBADMSG);
	members_free(&m);
}

int main(void)
{
	RUN(sorted_and_numbered);
	RUN(paths_are_made_safe);
	RUN(the_last_one_wins);
	RUN(hard_links_share_an_inode);
	RUN(links_in_the_way);
	RUN(where_bytes_are);
	RUN(sections_are_checked);
	RUN(times);
	RUN(in_common);
	RUN(equal_attributes);
	RUN(names_far_away);
	RUN(common_is_checked);
	RUN(checking_is_bounded);
	RUN(files_come_from_here_only);
	return test_done();
}
