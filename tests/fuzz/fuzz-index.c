/* SPDX-License-Identifier: BSD-2-Clause */
/* A hostile index file: loaded, and all of the member table in it walked. */
/*
 * The first byte chooses what the rest is.
 *
 *	0: the index file, byte for byte
 *	1: the same, but the head is made to fit the source, and all
 *	   checksums to fit what they are of
 *	2: sections, each an id (with 128: a blob), a length in two
 *	   bytes, and its bytes
 *
 * The next four bits say from which size on sections are lazy.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "members/index_private.h"
#include "members/member_files.h"
#include "base/number.h"
#include "extent/handles.h"
#include "fuzz.h"

enum { SOURCE_SIZE = 5000, STEPS = 20000 };

static char dir[200];
static struct handles *handles;
static struct backing backing;
static struct index_key key = {&backing, NULL, "fuzz 1", 3};
static struct index_options options;
static struct index_head good;

/* ---- the source and its index -------------------------------------------- */

static void begin_write(const char *name, const void *data, size_t n)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	FUZZ_CHECK(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	close(fd);
}

static void clean(void)
{
	char path[300];

	snprintf(path, sizeof path, "%s/source", dir);
	unlink(path);
	unlink(options.where);
	rmdir(dir);
	handles_free(handles);
}

static void begin(void)
{
	const struct timespec when[2] = {{1000000000, 1}, {1000000000, 1}};
	static char source[300], index[300];
	const char *tmp = getenv("TMPDIR");
	unsigned char bytes[SOURCE_SIZE];
	int fd;

	if (handles)
		return;
	snprintf(dir, sizeof dir, "%s/fuzz-index-XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	FUZZ_CHECK(mkdtemp(dir));
	snprintf(source, sizeof source, "%s/source", dir);
	snprintf(index, sizeof index, "%s/index", dir);
	options.where = index;
	key.path = source;
	for (unsigned i = 0; i < SOURCE_SIZE; i++)
		bytes[i] = (unsigned char)(i * i);
	begin_write(source, bytes, sizeof bytes);
	FUZZ_CHECK(utimensat(AT_FDCWD, source, when, 0) == 0);
	FUZZ_CHECK(handles_new(&handles, 0, 0, NULL) == 0);
	atexit(clean);
	FUZZ_CHECK(backing_file(&backing, handles, NULL,
				handles_add(handles, source), 0, NULL) == 0);
	FUZZ_CHECK(index_save(&key, &options, NULL, 0, NULL, NULL) == 0);
	fd = open(index, O_RDONLY);
	FUZZ_CHECK(fd >= 0 &&
		   read(fd, &good, sizeof good) == (ssize_t)sizeof good);
	close(fd);
}

/* Keep the table of sections, make the rest right. */
static void repair(unsigned char *p, size_t n)
{
	struct index_head h = good;

	if (n < sizeof h)
		return;
	memcpy(h.table, p + offsetof(struct index_head, table), sizeof h.table);
	memcpy(&h.n, p + offsetof(struct index_head, n), sizeof h.n);
	memcpy(&h.size, p + offsetof(struct index_head, size), sizeof h.size);
	for (unsigned i = 0; i < INDEX_SECTIONS_MAX; i++) {
		struct index_entry *e = &h.table[i];

		if (e->off <= n && e->size <= n - e->off)
			e->sum = XXH3_64bits(p + e->off, e->size);
	}
	h.sum = index_head_sum(&h);
	memcpy(p, &h, sizeof h);
}

static void save_sections(struct fuzz_input *in)
{
	struct index_section s[INDEX_SECTIONS_MAX];
	struct blob *b[INDEX_SECTIONS_MAX] = {NULL};
	unsigned n = 0;

	while (in->size && n < INDEX_SECTIONS_MAX) {
		uint32_t id = fuzz_u8(in);
		uint64_t size = fuzz_u16(in);

		size = min_u64(size, in->size);
		s[n] = (struct index_section){id & 127, in->data, size, NULL};
		if (id & 128)
			FUZZ_CHECK(blob_of_memory(&b[n], in->data, size,
						  NULL) == 0);
		s[n].blob = b[n];
		n++;
		in->data += size;
		in->size -= size;
	}
	/* What a whole head does not begin with would be left as it is. */
	unlink(options.where);
	FUZZ_CHECK(index_save(&key, &options, s, n, NULL, NULL) == 0);
	for (unsigned i = 0; i < n; i++)
		blob_free(b[i]);
}

static void save(uint8_t how, struct fuzz_input *in)
{
	unsigned char *copy;

	if (how % 3 == 2) {
		save_sections(in);
		return;
	}
	copy = malloc(in->size + 1);
	FUZZ_CHECK(copy);
	memcpy(copy, in->data, in->size);
	if (how % 3 == 1)
		repair(copy, in->size);
	begin_write(options.where, copy, in->size);
	free(copy);
}

/* ---- what is done with it ------------------------------------------------ */

static void read_blobs(const struct index *x)
{
	for (uint32_t id = 0; id < 70; id++) {
		unsigned char end[16];
		struct blob *b;
		uint64_t size;
		const unsigned char *p = index_section(x, id, &size);

		FUZZ_CHECK(p || !size);
		FUZZ_CHECK((uintptr_t)p % INDEX_ALIGN == 0);
		if (index_blob(x, id, &b, NULL) < 0)
			continue;
		FUZZ_CHECK(!p || blob_size(b) == size);
		size = blob_size(b);
		if (size >= sizeof end)
			FUZZ_CHECK(blob_read(b, size - sizeof end, end,
					     sizeof end, NULL) == 0);
		FUZZ_CHECK(blob_read(b, size, end, 1, NULL) < 0);
		blob_free(b);
	}
}

/* The whole of a file's map: it must get on. */
static void walk_map(struct files *f, uint64_t node, uint64_t size)
{
	uint64_t off = 0;
	struct plan p;

	for (unsigned k = 0; k < 64 && off < size; k++) {
		plan_init(&p, (size_t)min_u64(size - off, UINT64_C(1) << 24));
		if (f->ops->map(f, node, off, &p, NULL) < 0)
			return;
		FUZZ_CHECK(p.have > 0 && p.have <= size - off);
		off += p.have;
	}
}

static void walk_xattrs(struct files *f, uint64_t node)
{
	ssize_t n = f->ops->stored_xattr_list(f, node, NULL, 0);
	char *list;

	FUZZ_CHECK(n >= 0);
	list = malloc((size_t)n + 1);
	FUZZ_CHECK(list);
	FUZZ_CHECK(f->ops->stored_xattr_list(f, node, list, (size_t)n) == n);
	list[n] = 0;
	for (const char *p = list; p < list + n; p += strlen(p) + 1) {
		ssize_t size = f->ops->stored_xattr(f, node, p, NULL, 0);
		char *value = malloc(size > 0 ? (size_t)size : 1);

		FUZZ_CHECK(value);
		if (size > 0)
			FUZZ_CHECK(f->ops->stored_xattr(f, node, p, value,
							(size_t)size) == size);
		free(value);
	}
	free(list);
}

static void walk_node(struct files *f, const struct members *m, uint64_t node)
{
	struct attr a = {0};
	char text[64];

	members_path(m, node, text, sizeof text);
	FUZZ_CHECK(strlen(text) < sizeof text);
	FUZZ_CHECK(f->ops->attr(f, node, NULL, &a, NULL) == 0);
	if (S_ISLNK(a.mode))
		FUZZ_CHECK(strlen(f->ops->link(f, node)) == a.size);
	if (S_ISREG(a.mode))
		walk_map(f, node, a.size);
	walk_xattrs(f, node);
	(void)f->ops->xattr(f, node, "source", NULL, text, sizeof text);
}

/* Every entry of every directory is found by its name, and as a child. */
static void walk(const struct members *m)
{
	struct volume v = {.backing = backing};
	unsigned steps = 0;
	struct files *f;

	FUZZ_CHECK(member_files_new(&f, m, &v, 1, 0, NULL) == 0);
	for (uint64_t dir_node = 0; dir_node < m->n; dir_node++) {
		uint64_t n = f->ops->count(f, dir_node);

		for (uint64_t i = 0; i < n && steps < STEPS; i++, steps++) {
			char name[FILES_NAME_MAX + 1];
			uint64_t found, node;
			uint32_t type;

			node = f->ops->child(f, dir_node, i, &type);
			FUZZ_CHECK(node < m->n);
			FUZZ_CHECK(f->ops->name(f, dir_node, i, name,
						sizeof name) == 0);
			FUZZ_CHECK(*name && !strchr(name, '/'));
			FUZZ_CHECK(f->ops->find(f, dir_node, name, &found) ==
				   0);
			FUZZ_CHECK(found == node);
			walk_node(f, m, node);
		}
	}
	f->ops->free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct members m;
	struct index *x;
	uint8_t how;
	int r;

	begin();
	how = fuzz_u8(&in);
	save(how & 15, &in);
	r = index_load(&key, &options, how & 0xf0 ? (how & 0xf0) * 16 : -1u, &x,
		       NULL);
	FUZZ_CHECK((r == 0) == (x != NULL));
	if (!x)
		return 0;
	read_blobs(x);
	if (members_of_index(&m, x, NULL) < 0) {
		index_free(x);
		return 0;
	}
	walk(&m);
	members_free(&m);
	return 0;
}
