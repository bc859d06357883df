/* SPDX-License-Identifier: BSD-2-Clause */
/* Views of members: what is listed is found under its name, lists are sorted and whole. */
/*
 * The input is the paths of an archive's members, a line each: one that ends in '/' is a
 * directory, one that begins with '>' another name of the file before.
 */
#include "views/members/keys.h"
#include "views/members/text.h"
#include "members/member_files.h"
#include "base/log.h"
#include "fuzz.h"

#define LEVELS 40
#define ENTRIES 300

static void add_all(struct members_builder *b, char *text)
{
	struct member root = {.path = "/", .mode = S_IFDIR | 0755};
	int64_t last = -1, r;
	char *save = NULL;
	uint64_t at = 0;

	members_add(b, &root, NULL);
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		size_t n = strlen(line);
		struct member m = {.path = line,
				   .mode = S_IFREG | 0644,
				   .kind = MEMBER_RANGE,
				   .size = n,
				   .data = at += 512};

		if (line[n - 1] == '/') {
			m.mode = S_IFDIR | 0755;
			m.kind = MEMBER_NONE;
		} else if (*line == '>' && last >= 0) {
			m.path = line + 1;
			m.kind = MEMBER_LINK;
			m.same_as = (uint64_t)last;
		}
		r = members_add(b, &m, NULL);
		if (m.kind == MEMBER_RANGE && r >= 0)
			last = r;
	}
}

/* Every entry is found by its name, and is where it was found. */
static void walk(struct files *f, uint64_t dir, unsigned depth, bool view)
{
	uint64_t n = f->ops->count(f, dir), node, up;
	char name[FILES_NAME_MAX + 1], again[FILES_NAME_MAX + 1];
	uint32_t type;

	for (uint64_t i = 0; i < n && i < ENTRIES; i++) {
		uint64_t child = f->ops->child(f, dir, i, &type);
		struct attr a = {0};

		FUZZ_CHECK(f->ops->name(f, dir, i, name, sizeof name) == 0);
		FUZZ_CHECK(*name && !strchr(name, '/'));
		FUZZ_CHECK(f->ops->find(f, dir, name, &node) == 0);
		FUZZ_CHECK(node == child);
		if (f->ops->attr_is_slow(f, node))
			continue;
		FUZZ_CHECK(f->ops->attr(f, node, NULL, &a, NULL) == 0);
		FUZZ_CHECK((a.mode & S_IFMT) == type);
		/* A member under another name; or a file of the view's own. */
		if (view && type == S_IFREG && !member_views_is_view(f, node))
			continue;
		if (member_views_is_view(f, node)) {
			FUZZ_CHECK(f->ops->parent(f, node, &up) == 0);
			FUZZ_CHECK(up == dir);
			FUZZ_CHECK(f->ops->name_of(f, node, again,
						   sizeof again) == 0);
			FUZZ_CHECK(!strcmp(name, again));
		}
		if (type == S_IFDIR && depth < LEVELS)
			walk(f, node, depth + 1, member_views_is_view(f, node));
	}
}

/* All blocks of a list, by what maps them. */
static void read_list(struct files *f, const char *name)
{
	uint64_t node, off = 0;
	struct attr a = {0};
	struct plan p;

	if (f->ops->find(f, 0, name, &node) < 0 ||
	    !member_views_is_view(f, node) ||
	    f->ops->attr(f, node, NULL, &a, NULL) < 0)
		return;
	while (off < a.size) {
		plan_init(&p, a.size - off);
		FUZZ_CHECK(f->ops->map(f, node, off, &p, NULL) == 0);
		FUZZ_CHECK(p.have > 0);
		for (unsigned i = 0; i < p.n; i++) {
			struct chunk_set *s = p.ext[i].u.chunk.set;
			struct buf *b = NULL;

			FUZZ_CHECK(s->ops->fetch(s, p.ext[i].u.chunk.index,
						 NULL, &b, NULL) == 0);
			FUZZ_CHECK(p.ext[i].u.chunk.skip + p.ext[i].len <
				   b->size);
			buf_unref(b);
		}
		off += p.have;
	}
}

/* The samples of a rank are files. */
static void walk_epoch(struct files *f)
{
	uint64_t dir;

	if (f->ops->find(f, 0, "epochs", &dir) < 0 ||
	    !member_views_is_view(f, dir) ||
	    f->ops->find(f, dir, "3", &dir) < 0 ||
	    f->ops->find(f, dir, "rank-1-of-2", &dir) < 0)
		return;
	walk(f, dir, LEVELS, true);
}

static void look(struct files *f)
{
	walk(f, 0, 0, false);
	walk_epoch(f);
	read_list(f, "files.txt");
	read_list(f, "manifest.csv");
	read_list(f, "manifest.jsonl");
	read_list(f, "file_list");
	read_list(f, "metadata.csv");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct member_views_args a = {.tar = true,
				      .options = {.listed = UINT32_MAX}};
	struct members_builder *b;
	struct members m;
	struct files *f;
	char *text;

	if (size > 1 << 14 || memchr(data, 0, size))
		return 0;
	log_set_level(LOG_LEVEL_ERROR);
	text = malloc(size + 1);
	FUZZ_CHECK(text && members_builder_new(&b, NULL, NULL) == 0);
	memcpy(text, data, size);
	text[size] = '\0';
	add_all(b, text);
	FUZZ_CHECK(members_finish(b, &m, NULL) == 0);
	FUZZ_CHECK(member_files_new(&a.members, &m, NULL, 0, 0, NULL) == 0);
	a.m = &m;
	FUZZ_CHECK(member_views_new(&f, &a, NULL) == 0);
	look(f);
	f->ops->free(f);
	members_free(&m);
	free(text);
	return 0;
}
