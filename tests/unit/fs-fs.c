/* SPDX-License-Identifier: BSD-2-Clause */
/* fs: reads equal a naive copy, failures are told, listings resume. */
/*
 * The files are fakes: each is a random list of pieces (a header, fills, runs
 * of chunks that are made, stored verbatim, never written, or broken, ranges of
 * a temporary file), and its bytes are known from a formula.  Store, handles and
 * tree are the real ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/fs.h"
#include "test.h"

#define MIXES 40
#define TILES MIXES         /* thousands of short runs */
#define STRIPES (MIXES + 1) /* short runs of a file, and of a large chunk */
#define STRINGS (MIXES + 2)
#define STORED (MIXES + 3) /* a header and a contiguous dataset */
#define BANDED (MIXES + 4) /* bands over all kinds of chunks */
#define BROKEN (MIXES + 5)
#define ABSENT (MIXES + 6)
#define SLOW (MIXES + 7)
#define FILES (MIXES + 8)
#define SUBDIR FILES /* a directory of COMPUTED empty files */
#define COMPUTED 1000
#define PIECES 40000
#define CHUNK 16384u
#define BIG_CHUNK 40u /* number of one of 5 MiB, stored verbatim */
#define BAD_CHUNK 41u
#define TEXT_CHUNK 42u
#define SOURCE_BYTES (8u << 20)

static uint64_t dice(uint64_t n)
{
	return test_random() % n;
}

/* ---- bytes -------------------------------------------------------------- */

static const unsigned char fill_zero[1] = {0};
static const unsigned char fill_ones[6] = {1, 2, 3, 4, 5, 6};
static uint32_t source, missing; /* numbers of backing files */

static unsigned char source_byte(uint64_t pos)
{
	return (unsigned char)((pos * 2654435761u) >> 13);
}
static unsigned char made_byte(uint64_t chunk, uint64_t off)
{
	return (unsigned char)(chunk * 31 + off * 7 + (off >> 8));
}
/* String n of the text chunk is n % 50 bytes long and follows the others. */
static size_t string_at(uint32_t n)
{
	size_t at = 0;

	for (uint32_t i = 0; i < n; i++)
		at += i % 50;
	return at;
}

static uint64_t index_page_of(const struct chunk_set *s, uint64_t index)
{
	(void)s;
	(void)index;
	return UINT64_MAX;
}
static int locate(const struct chunk_set *s, uint64_t index,
		  const struct buf *segment, struct chunk *out,
		  struct error *err)
{
	(void)s;
	(void)segment;
	(void)err;
	memset(out, 0, sizeof *out);
	out->size = out->stored = index == BIG_CHUNK ? 5u << 20 : CHUNK;
	out->file = source;
	out->state = CHUNK_FETCH;
	if (index == BIG_CHUNK) {
		out->state = CHUNK_STORED;
		out->pos = 12345;
	} else if (index < BIG_CHUNK && index % 4 == 1) {
		out->state = CHUNK_STORED;
		out->pos = index * 100000;
	} else if (index < BIG_CHUNK && index % 4 == 2) {
		out->state = CHUNK_ABSENT;
		out->fill.pattern = fill_ones;
		out->fill.width = 6;
	}
	return 0;
}
static int fetch(struct chunk_set *s, uint64_t index, _Atomic uint64_t *gauge,
		 struct buf **out, struct error *err)
{
	struct buf *b;

	(void)s;
	if (index == BAD_CHUNK)
		return error_set(err, -EBADMSG, "lzf: input ends early");
	b = buf_new(CHUNK, gauge);
	CHECK(b);
	for (uint64_t i = 0; i < CHUNK; i++)
		b->data[i] = made_byte(index, i);
	*out = b;
	return 0;
}
static bool next(const struct chunk_set *s, uint64_t index, uint64_t *out,
		 unsigned *carry)
{
	(void)s;
	*out = index + 1;
	*carry = 0;
	return index + 1 < BIG_CHUNK;
}
static int slice(const struct chunk_set *s, const struct buf *b, uint32_t n,
		 size_t *off, size_t *len)
{
	(void)s;
	(void)b;
	*off = string_at(n);
	*len = n % 50;
	return 0;
}
static void describe(const struct chunk_set *s, uint64_t index, char *buf,
		     size_t n)
{
	(void)s;
	snprintf(buf, n, "/x chunk %llu", (unsigned long long)index);
}
static const struct chunk_set_ops set_ops = {.index_page_of = index_page_of,
					     .locate = locate,
					     .fetch = fetch,
					     .next = next,
					     .slice = slice,
					     .describe = describe};
static struct chunk_set set = {.ops = &set_ops, .unit = CHUNK};

static unsigned char chunk_byte(uint64_t index, uint64_t off)
{
	if (index == BIG_CHUNK)
		return source_byte(12345 + off);
	if (index < BIG_CHUNK && index % 4 == 1)
		return source_byte(index * 100000 + off);
	if (index < BIG_CHUNK && index % 4 == 2)
		return fill_ones[off % 6];
	return made_byte(index, off);
}

/* ---- files -------------------------------------------------------------- */

struct piece {
	enum { HEADER, ZEROS, ONES, CHUNKS, RANGE, STRING, BAND, NOWHERE } kind;
	uint64_t at, len; /* in the file */
	uint64_t a, b;    /* chunk and skip; string; phase; or position */
};
static struct file {
	unsigned n;
	uint64_t size;
	struct piece *piece;
} file[FILES];

static void add(struct file *f, int kind, uint64_t len, uint64_t a, uint64_t b)
{
	if (!f->piece)
		f->piece = calloc(PIECES, sizeof *f->piece);
	CHECK(f->piece && f->n < PIECES);
	if (len == 0)
		return;
	f->piece[f->n++] = (struct piece){kind, f->size, len, a, b};
	f->size += len;
}
/* A band: STRIPS chunks from number a on, the last of them the big one; WIDE
 * bytes of each in a row, from b on, and STEP further in the next row. */
#define STRIPS 5
#define WIDE 50
#define STEP 130
#define PITCH ((uint64_t)STRIPS * WIDE)
static uint64_t strip_chunk(const struct piece *p, uint64_t i)
{
	uint64_t k = i % PITCH / WIDE;

	return k == STRIPS - 1 ? BIG_CHUNK : p->a + k;
}
static uint64_t strip_skip(const struct piece *p, uint64_t i)
{
	return p->b + i / PITCH * STEP + i % WIDE;
}
static unsigned char piece_byte(const struct piece *p, uint64_t i)
{
	switch (p->kind) {
	case HEADER:
		return (unsigned char)('A' + i % 26);
	case ONES:
		return fill_ones[(p->a + i) % 6];
	case CHUNKS:
		return chunk_byte(p->a, p->b + i);
	case RANGE:
		return source_byte(p->a + i);
	case BAND:
		return chunk_byte(strip_chunk(p, i), strip_skip(p, i));
	case STRING:
		return made_byte(TEXT_CHUNK, string_at((uint32_t)p->a) + i);
	default:
		return 0;
	}
}
static unsigned char *naive(const struct file *f)
{
	unsigned char *all = malloc(f->size + 1);

	CHECK(all);
	for (unsigned i = 0; i < f->n; i++)
		for (uint64_t j = 0; j < f->piece[i].len; j++)
			all[f->piece[i].at + j] = piece_byte(&f->piece[i], j);
	return all;
}

static uint64_t f_count(const struct files *f, uint64_t dir)
{
	(void)f;
	return dir ? COMPUTED : FILES + 1;
}
static uint64_t f_child(const struct files *f, uint64_t dir, uint64_t i,
			uint32_t *type)
{
	(void)f;
	*type = !dir && i == SUBDIR ? S_IFDIR : S_IFREG;
	return dir ? SUBDIR + 2 + i : i + 1;
}
static int f_name(const struct files *f, uint64_t dir, uint64_t i, char *buf,
		  size_t n)
{
	(void)f;
	(void)dir;
	return snprintf(buf, n, "%06llu", (unsigned long long)i) < (int)n
		       ? 0
		       : -ENAMETOOLONG;
}
static int f_find(const struct files *f, uint64_t dir, const char *name,
		  uint64_t *node)
{
	uint32_t type;
	uint64_t i = strtoull(name, NULL, 10);

	if (strlen(name) != 6 || i >= f_count(f, dir))
		return -ENOENT;
	*node = f_child(f, dir, i, &type);
	return 0;
}
static int f_parent(const struct files *f, uint64_t node, uint64_t *dir)
{
	(void)f;
	if (node >= SUBDIR + 2 + COMPUTED)
		return -ENOENT;
	*dir = node >= SUBDIR + 2 ? SUBDIR + 1 : 0;
	return 0;
}
static bool f_slow(const struct files *f, uint64_t node)
{
	(void)f;
	return node == SLOW + 1;
}
static int f_attr(struct files *f, uint64_t node, struct pinner *p,
		  struct attr *out, struct error *err)
{
	(void)f;
	(void)p;
	(void)err;
	if (node >= SUBDIR + 2 + COMPUTED)
		return -ENOENT;
	*out = (struct attr){.mtime = 1000, .mode = S_IFREG | 0444, .nlink = 1};
	if (node == 0 || node == SUBDIR + 1)
		*out = (struct attr){.mode = S_IFDIR | 0555, .nlink = 2};
	else if (node <= FILES)
		out->size = file[node - 1].size;
	return 0;
}
/* Rows, where the plan has them and one begins here; else one run. */
static uint64_t map_band(const struct piece *e, uint64_t in, struct plan *p)
{
	uint64_t rows = (e->len - in) / PITCH;
	struct strip strips[STRIPS];

	if (rows > (p->want - p->have) / PITCH)
		rows = (p->want - p->have) / PITCH;
	if (!p->takes_strips || in % PITCH || rows < 2)
		return plan_chunk(p, &set, strip_chunk(e, in),
				  strip_skip(e, in), WIDE - in % WIDE);
	for (unsigned k = 0; k < STRIPS; k++)
		strips[k] = (struct strip){strip_chunk(e, in + k * WIDE),
					   strip_skip(e, in), WIDE};
	return plan_strips(p, &set, strips, STRIPS, (uint32_t)rows, STEP);
}
static int f_map(const struct files *f, uint64_t node, uint64_t off,
		 struct plan *p, struct error *err)
{
	const struct file *x = &file[node - 1];
	unsigned i = 0;

	(void)f;
	while (i < x->n && x->piece[i].at + x->piece[i].len <= off)
		i++;
	for (; i < x->n && plan_open(p); i++) {
		const struct piece *e = &x->piece[i];
		uint64_t in = off - e->at, len = e->len - in, took = 0;
		unsigned char head[PLAN_SCRATCH];

		switch (e->kind) {
		case HEADER:
			for (uint64_t j = 0; j < len; j++)
				head[j] = piece_byte(e, in + j);
			took = plan_copy(p, head, len);
			break;
		case ZEROS:
			took = plan_fill(p, (struct fill){fill_zero, 1}, 0,
					 len);
			break;
		case ONES:
			took = plan_fill(p, (struct fill){fill_ones, 6},
					 e->a + in, len);
			break;
		case CHUNKS:
			took = plan_chunk(p, &set, e->a, e->b + in, len);
			break;
		case RANGE:
			took = plan_file(p, source, e->a + in, len);
			break;
		case BAND:
			while (took < len && plan_open(p))
				took += map_band(e, in + took, p);
			break;
		case STRING:
			took = plan_slice(p, &set, TEXT_CHUNK, (uint32_t)e->a,
					  in, len);
			break;
		case NOWHERE:
			if (e->a)
				return error_set(err, -EDOM, "no map");
			took = plan_file(p, missing, 0, len);
			break;
		}
		off += took;
		if (took < len)
			break;
	}
	return 0;
}
static ssize_t f_xattr(struct files *f, uint64_t node, const char *key,
		       struct pinner *p, char *buf, size_t n)
{
	(void)f;
	(void)node;
	(void)p;
	if (strcmp(key, "dtype"))
		return -ENODATA;
	if (n && n < 7)
		return -ERANGE;
	if (n)
		memcpy(buf, "float32", 7);
	return 7;
}
static const char *f_keys(const struct files *f, uint64_t node, size_t *len)
{
	(void)f;
	(void)node;
	*len = 6;
	return "dtype";
}
static void f_free(struct files *f)
{
	(void)f;
}
static const struct files_ops ops = {
	.count = f_count,
	.child = f_child,
	.name = f_name,
	.find = f_find,
	.parent = f_parent,
	.attr_is_slow = f_slow,
	.attr = f_attr,
	.map = f_map,
	.xattr = f_xattr,
	.xattr_keys = f_keys,
	.free = f_free,
};
static struct files files = {&ops};

/* ---- making them -------------------------------------------------------- */

static uint64_t random_len(void)
{
	static const uint64_t scale[] = {8, 200, 3000, 9000, 100000};

	return 1 + dice(scale[dice(5)]);
}
static void add_random(struct file *f)
{
	uint64_t len = random_len(), skip, chunk;

	switch (dice(6)) {
	case 0:
		add(f, ZEROS, len, 0, 0);
		break;
	case 1:
		add(f, ONES, len, dice(6), 0);
		break;
	case 2:
		add(f, RANGE, len, dice(SOURCE_BYTES - len), 0);
		break;
	case 3:
		add(f, CHUNKS, len, BIG_CHUNK, dice((5u << 20) - len));
		break;
	default:
		chunk = dice(BIG_CHUNK);
		skip = dice(CHUNK);
		add(f, CHUNKS, len < CHUNK - skip ? len : CHUNK - skip, chunk,
		    skip);
	}
}
static void make_files(void)
{
	for (unsigned i = 0; i < MIXES; i++) {
		unsigned pieces = i < 5 ? i : 1 + (unsigned)dice(300);

		if (i % 2)
			add(&file[i], HEADER, 128, 0, 0);
		while (pieces--)
			add_random(&file[i]);
	}
	/* Rows over 39 chunks: 64 bytes of each, then 64 more. */
	for (uint64_t i = 0; i < 20000; i++)
		add(&file[TILES], CHUNKS, 64, i % 39, i / 39 % 256 * 64);
	for (uint64_t i = 0; i < 6000; i++) {
		add(&file[STRIPES], RANGE, 100, i % 64 * 100000 + i / 64 * 100,
		    0);
		add(&file[STRIPES], CHUNKS, 30, BIG_CHUNK, i * 800);
	}
	for (uint64_t i = 0; i < 600; i++)
		add(&file[STRINGS], STRING, i % 50, i, 0);
	add(&file[BANDED], HEADER, 128, 0, 0);
	for (uint64_t i = 0; i < 200; i++) {
		add(&file[BANDED], BAND, (1 + i % 60) * PITCH, i % 36, i * 37);
		if (i % 3 == 0)
			add_random(&file[BANDED]);
	}
	add(&file[STORED], HEADER, 128, 0, 0);
	add(&file[STORED], RANGE, 2 << 20, 1000, 0);
	add(&file[BROKEN], CHUNKS, CHUNK, 0, 0);
	add(&file[BROKEN], CHUNKS, CHUNK, BAD_CHUNK, 0);
	add(&file[BROKEN], NOWHERE, 100, 1, 0);
	add(&file[ABSENT], NOWHERE, 100, 0, 0);
}

static struct handles *handles;
static struct store *store;
static struct tree *tree;
static struct fs *fs;
static struct error err;
static char source_path[] = "/tmp/fs-fs.XXXXXX";

static void setup(void)
{
	struct fs_options fo = {
		.uid = 7, .gid = 8, .version = "1", .config = "c"};
	unsigned char *all = malloc(SOURCE_BYTES);
	struct store_options so = {.cache_size = 1 << 20,
				   .prefetch_threads = 2};
	struct tree_builder *b = tree_builder_new();
	int fd = mkstemp(source_path);

	CHECK(all && fd >= 0 && b);
	for (uint64_t i = 0; i < SOURCE_BYTES; i++)
		all[i] = source_byte(i);
	CHECK_EQ_I(write(fd, all, SOURCE_BYTES), SOURCE_BYTES);
	close(fd);
	free(all);
	CHECK_OK(handles_new(&handles, 8, 1, &err));
	source = handles_add(handles, source_path);
	missing = handles_add(handles, "/tmp/fs-fs.not-there");
	so.handles = handles;
	CHECK_OK(store_new(&store, &so, &err));
	CHECK_OK(store_start(store, &err));
	set.id = chunk_set_new_id();
	make_files();
	tree_set_files(b, tree_add_dir(b, 0, "data", 1), &files);
	tree_add_link(b, 0, "link", "data", 1);
	CHECK_OK(tree_finish(b, &tree, &err));
	tree_builder_free(b);
	CHECK_OK(fs_new(&fs, tree, store, &fo, &err));
}
static void teardown(void)
{
	fs_free(fs);
	tree_free(tree);
	store_free(store);
	handles_free(handles);
	for (unsigned i = 0; i < FILES; i++)
		free(file[i].piece);
	unlink(source_path);
}
static uint64_t ino_of(const char *path)
{
	struct node n;

	CHECK_OK(tree_walk(tree, path, &n, &err));
	return n.ino;
}
static uint64_t file_ino(unsigned i)
{
	char path[32];

	snprintf(path, sizeof path, "data/%06u", i);
	return ino_of(path);
}

/* ---- tests -------------------------------------------------------------- */

/* Lay a reply out in one piece. */
static void flatten(const struct reply *r, unsigned char *to)
{
	size_t have = 0;

	for (unsigned i = 0; i < r->niov; i++) {
		memcpy(to + have, r->iov[i].iov_base, r->iov[i].iov_len);
		have += r->iov[i].iov_len;
	}
	CHECK_EQ_U(have, r->len);
}
static unsigned forms[2];
static void check_window(unsigned i, const unsigned char *truth, uint64_t off,
			 size_t len)
{
	static unsigned char got[1 << 20];
	uint64_t size = file[i].size;
	size_t want = off >= size ? 0 : size - off < len ? size - off : len;
	struct reply r;

	CHECK_OK(fs_read(fs, file_ino(i), off, len, &r));
	CHECK_EQ_U(r.len, want);
	forms[r.gathered != NULL]++;
	flatten(&r, got);
	fs_release(fs, &r);
	CHECK_MEM(got, truth + (want ? off : 0), want);
	memset(got, 0xee, want);
	CHECK_EQ_I(fs_read_copy(fs, file_ino(i), off, got, len), (ssize_t)want);
	CHECK_MEM(got, truth + (want ? off : 0), want);
}
TEST(windows_equal_a_naive_copy)
{
	for (unsigned i = 0; i < BROKEN; i++) {
		unsigned char *truth = naive(&file[i]);
		uint64_t size = file[i].size;

		check_window(i, truth, 0, 1 << 20);
		check_window(i, truth, size, 10);
		check_window(i, truth, size + 4096, 10);
		for (unsigned k = 0; k < 60; k++) {
			uint64_t off = dice(size + 1);
			size_t len = dice(k % 3 ? 200000 : 1 << 20);

			check_window(i, truth, off, len);
		}
		free(truth);
	}
	/* Every form was tried. */
	CHECK(forms[0] > 50 && forms[1] > 50);
	cache_verify(store_cache(store));
}

TEST(failures_are_told)
{
	uint64_t ino = file_ino(BROKEN);
	char text[512];
	struct reply r;
	ssize_t n;

	CHECK_OK(fs_read(fs, ino, 0, 100, &r));
	fs_release(fs, &r);
	fs_last_error(fs, ino, text, sizeof text);
	CHECK_STR(text, "");
	CHECK_EQ_I(fs_getxattr(fs, ino, "user.tensorfs.error", text, 512),
		   -ENODATA);
	CHECK_EQ_I(fs_read(fs, ino, 100, CHUNK, &r), -EBADMSG);
	fs_last_error(fs, ino, text, sizeof text);
	CHECK(strstr(text, "chunk 41") && strstr(text, "input ends early"));
	/* Strange codes are EIO for readers; the text stays. */
	CHECK_EQ_I(fs_read(fs, ino, 2 * CHUNK, 10, &r), -EIO);
	CHECK_EQ_I(fs_read_copy(fs, ino, 2 * CHUNK, text, 10), -EIO);
	CHECK_EQ_I(fs_read(fs, file_ino(ABSENT), 0, 10, &r), -ENODATA);
	n = fs_getxattr(fs, ino, "user.tensorfs.error", text, sizeof text);
	CHECK_EQ_I(n, 6);
	CHECK_MEM(text, "no map", 6);
	n = fs_getxattr(fs, TREE_ROOT, "user.tensorfs.errors", text, 511);
	CHECK(n > 0);
	text[n] = 0;
	CHECK(strstr(text, "ENODATA /data/000046: "));
	CHECK(strstr(text, "EIO /data/000045: no map (2 times)\n"));
	CHECK(strstr(text, "EBADMSG /data/000045: /x chunk 41: lzf"));
	CHECK_EQ_I(fs_read(fs, ino_of("data"), 0, 10, &r), -EISDIR);
	CHECK_EQ_I(fs_read(fs, UINT64_C(99) << 40 | 1, 0, 10, &r), -ENOENT);
}

TEST(truncated_source_is_an_error)
{
	static unsigned char got[4 * 4096];
	struct file *f = &file[SLOW]; /* borrowed for this */
	struct reply r;

	add(f, RANGE, 100000, 4 << 20, 0);
	CHECK_OK(fs_read(fs, file_ino(SLOW), 0, 100000, &r));
	fs_release(fs, &r);
	CHECK_OK(truncate(source_path, 5 << 20));
	CHECK_EQ_I(fs_read(fs, file_ino(SLOW), 0, 100000, &r), -ESTALE);
	CHECK_EQ_I(fs_read_copy(fs, file_ino(SLOW), 0, got, 4096), -ESTALE);
}

TEST(attributes)
{
	struct entry e;
	const char *target;

	CHECK_OK(fs_getattr(fs, file_ino(TILES), &e));
	CHECK(e.attr_known);
	CHECK_EQ_U(e.st.st_mode, S_IFREG | 0444);
	CHECK_EQ_U(e.st.st_ino, file_ino(TILES));
	CHECK_EQ_I(e.st.st_size, 64 * 20000);
	CHECK_EQ_I(e.st.st_blocks, 64 * 20000 / 512);
	CHECK_EQ_I(e.st.st_blksize, 1 << 20);
	CHECK_EQ_U(e.st.st_uid, 7);
	CHECK_EQ_I(e.st.st_mtime, 1000);
	CHECK_OK(fs_lookup(fs, TREE_ROOT, "data", &e));
	CHECK_EQ_U(e.st.st_mode, S_IFDIR | 0555);
	CHECK_OK(fs_lookup(fs, e.st.st_ino, "..", &e));
	CHECK_EQ_U(e.st.st_ino, TREE_ROOT);
	CHECK_EQ_I(fs_lookup(fs, TREE_ROOT, "absent", &e), -ENOENT);
	CHECK_OK(fs_lookup(fs, TREE_ROOT, "link", &e));
	CHECK_EQ_U(e.st.st_mode, S_IFLNK | 0777);
	CHECK_OK(fs_readlink(fs, e.st.st_ino, &target));
	CHECK_STR(target, "data");
	CHECK_EQ_I(fs_readlink(fs, TREE_ROOT, &target), -EINVAL);
}

/* Listing, `room` entries at a time. */
static struct seen {
	unsigned room, n;
	uint64_t next, ino[2000];
	char name[2000][8];
	bool known[2000];
} seen;
static bool note(void *ctx, const char *name, const struct entry *e,
		 uint64_t next_pos)
{
	struct seen *s = ctx;

	if (s->room == 0)
		return false;
	s->room--;
	snprintf(s->name[s->n], 8, "%s", name);
	s->known[s->n] = e->attr_known;
	s->ino[s->n++] = e->st.st_ino;
	s->next = next_pos;
	return true;
}
static unsigned list(uint64_t ino, unsigned room)
{
	unsigned before;

	memset(&seen, 0, sizeof seen);
	do {
		before = seen.n;
		seen.room = room;
		CHECK_OK(fs_readdir(fs, ino, seen.next, true, note, &seen));
	} while (seen.n > before);
	return seen.n;
}
TEST(listings_resume)
{
	struct entry e;

	for (unsigned room = 1; room < 2000; room = room * 3 + 1) {
		CHECK_EQ_U(list(ino_of("data/000048"), room), COMPUTED + 2);
		CHECK_STR(seen.name[0], ".");
		CHECK_STR(seen.name[1], "..");
		CHECK_EQ_U(seen.ino[0], ino_of("data/000048"));
		CHECK_EQ_U(seen.ino[1], ino_of("data"));
		for (unsigned i = 2; i < seen.n; i++) {
			CHECK_OK(fs_lookup(fs, seen.ino[0], seen.name[i], &e));
			CHECK_EQ_U(e.st.st_ino, seen.ino[i]);
		}
		CHECK_EQ_U(list(ino_of("data"), room), FILES + 3);
		CHECK(!seen.known[SLOW + 2] && seen.known[SLOW + 1]);
		CHECK_EQ_U(seen.ino[1], TREE_ROOT);
	}
}

TEST(xattrs)
{
	char v[4096], *json;
	ssize_t n;

	CHECK_EQ_I(fs_listxattr(fs, file_ino(TILES), v, sizeof v), 0);
	CHECK_EQ_I(fs_listxattr(fs, file_ino(TILES), v, 0), 0);
	n = fs_getxattr(fs, file_ino(TILES), "user.tensorfs.list", v, sizeof v);
	CHECK_EQ_I(n, sizeof "user.tensorfs.dtype");
	CHECK_MEM(v, "user.tensorfs.dtype\n", n);
	CHECK_EQ_I(fs_getxattr(fs, file_ino(TILES), "user.tensorfs.list", v, 0),
		   n);
	CHECK_EQ_I(fs_getxattr(fs, file_ino(TILES), "user.tensorfs.list", v, 5),
		   -ERANGE);
	CHECK_EQ_I(fs_getxattr(fs, file_ino(1), "user.tensorfs.dtype", v, 100),
		   7);
	CHECK_EQ_I(fs_getxattr(fs, 1, "user.tensorfs.config", v, 100), 1);
	CHECK_EQ_I(fs_getxattr(fs, 1, "user.tensorfs.version", v, 0), 1);
	CHECK_EQ_I(fs_getxattr(fs, 1, "user.tensorfs.dtype", v, 0), -ENODATA);
	CHECK_EQ_I(fs_getxattr(fs, file_ino(1), "user.tensorfs.config", v, 0),
		   -ENODATA);
	CHECK_EQ_I(fs_getxattr(fs, 1, "system.posix_acl_access", v, 0),
		   -ENOTSUP);
	CHECK_EQ_I(fs_getxattr(fs, 1, "user.mime_type", v, 0), -ENODATA);
	n = fs_getxattr(fs, 1, "user.tensorfs.stats", v, sizeof v - 1);
	CHECK(n > 0);
	v[n] = 0;
	CHECK(strstr(v, "\"bytes_served\": ") && strstr(v, "\"cache_budget\""));
	json = fs_stats_json(fs);
	CHECK(json);
	free(json);
}

int main(void)
{
	setup();
	RUN(windows_equal_a_naive_copy);
	RUN(attributes);
	RUN(listings_resume);
	RUN(xattrs);
	RUN(failures_are_told);
	RUN(truncated_source_is_an_error);
	teardown();
	return test_done();
}
