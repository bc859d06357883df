/* SPDX-License-Identifier: BSD-2-Clause */
/* Views of random tensors: map and gather equals a naive copy in C order. */
#include <malloc.h>

#include "base/lookups.h"
#include "views/name.h"
#include "view_fake.h"

/* The byte at `inside` of a part's chunk, the naive way: coordinates, one axis
 * at a time. */
static unsigned char chunk_byte(const struct fake *f, uint32_t p,
				uint64_t chunk, uint64_t inside)
{
	const struct grid *g = &f->grid[p];
	uint64_t e = inside / g->elem, place = 0, cell = 1;

	for (unsigned i = g->rank; i-- > 0;) {
		uint64_t at =
			chunk % g->chunks[i] * g->chunk[i] + e % g->chunk[i];

		CHECK(at < g->shape[i]);
		chunk /= g->chunks[i];
		e /= g->chunk[i];
		place += at * cell;
		cell *= g->shape[i];
	}
	return f->data[p][place * g->elem + inside % g->elem];
}

/* Bytes of one extent, as a store would pin them. */
static void gather(const struct fake *f, const struct extent *x,
		   unsigned char *out)
{
	for (uint64_t i = 0; i < x->len; i++) {
		switch (x->kind) {
		case EXTENT_MEM:
			out[i] = ((const unsigned char *)x->u.mem.data)[i];
			break;
		case EXTENT_FILL:
			out[i] = ((const unsigned char *)x->u.fill.of
					  .pattern)[(x->u.fill.phase + i) %
						    x->u.fill.of.width];
			break;
		case EXTENT_CHUNK:
			out[i] = chunk_byte(
				f, (uint32_t)(x->u.chunk.index >> 40),
				x->u.chunk.index & (TENSOR_CHUNK_MAX - 1),
				x->u.chunk.skip + i);
			break;
		case EXTENT_FILE:
			CHECK(!"a fake tensor has no files");
		}
	}
}

/* The same with rows, if it has them; how far the next extent is from here. */
static uint64_t gather_rows(const struct fake *f, const struct extent *x,
			    unsigned char *out)
{
	struct extent one = *x;
	static uint64_t across;

	if (x->kind != EXTENT_CHUNK || !x->u.chunk.rows) {
		CHECK_EQ_U(across, 0);
		gather(f, x, out);
		return x->len;
	}
	CHECK(x->u.chunk.rows > 1);
	one.u.chunk.rows = 0;
	for (uint32_t i = 0; i < x->u.chunk.rows; i++) {
		gather(f, &one, out + i * x->u.chunk.pitch);
		one.u.chunk.skip += x->u.chunk.step;
	}
	across += x->len;
	if (across < x->u.chunk.pitch)
		return x->len;
	CHECK_EQ_U(across, x->u.chunk.pitch);
	across = 0;
	return x->len + (x->u.chunk.rows - 1) * x->u.chunk.pitch;
}

static unsigned bands;
static void read_window(struct files *files, const struct fake *f,
			uint64_t node, uint64_t off, uint64_t len,
			unsigned char *out)
{
	struct error err = {0};
	struct plan p;

	CHECK_OK(files->ops->prepare(files, node, off, len, &err));
	while (len) {
		uint64_t at = 0;

		plan_init(&p, len);
		p.takes_strips = rnd(2);
		CHECK_OK(files->ops->map(files, node, off, &p, &err));
		CHECK(p.have > 0 && p.have <= len);
		CHECK(p.takes_strips || !p.has_strips);
		bands += p.has_strips;
		for (unsigned i = 0; i < p.n; i++)
			at += gather_rows(f, &p.ext[i], out + at);
		CHECK_EQ_U(at, p.have);
		off += p.have;
		out += p.have;
		len -= p.have;
	}
}

/* The value that byte `i` of the whole array must have: its own, or fill. */
static unsigned char expected(const struct fake *f, uint64_t i)
{
	uint32_t elem = f->t.dtype.size;
	uint64_t e = i / elem;

	if (f->owner[e] < 0)
		return fill[i % elem];
	return f->data[f->owner[e]][f->source[e] * elem + i % elem];
}

static void check_array(struct files *files, const struct fake *f)
{
	uint64_t node = find(files, 0, "array.bin");
	struct attr a;
	unsigned char *out;

	CHECK_EQ_I(files->ops->attr(files, node, NULL, &a, NULL), 0);
	CHECK_EQ_U(a.size, f->t.bytes);
	out = malloc(a.size);
	for (int i = 0; i < 8; i++) {
		uint64_t off = rnd(a.size), len = 1 + rnd(a.size - off);

		read_window(files, f, node, off, len, out);
		for (uint64_t k = 0; k < len; k++)
			CHECK_EQ_U(out[k], expected(f, off + k));
	}
	free(out);
}

/* Every file below `dir`: names find their nodes, parents their directories,
 * and the numbers in C order give the bytes of the whole array. */
static void check_samples(struct files *files, const struct fake *f,
			  uint64_t dir, uint64_t *at)
{
	uint64_t n = files->ops->count(files, dir), node, up, again;
	char name[256], before[256] = "";
	uint32_t type;

	for (uint64_t i = 0; i < n; i++) {
		struct attr a;
		struct files_sample sample;
		unsigned char out[8192];

		CHECK_EQ_I(files->ops->name(files, dir, i, name, sizeof name),
			   0);
		CHECK(strcmp(before, name) < 0);
		strcpy(before, name);
		node = files->ops->child(files, dir, i, &type);
		CHECK_EQ_I(files->ops->find(files, dir, name, &again), 0);
		CHECK_EQ_U(again, node);
		CHECK_EQ_I(files->ops->parent(files, node, &up), 0);
		CHECK_EQ_U(up, dir);
		CHECK_EQ_I(files->ops->name_of(files, node, name, sizeof name),
			   0);
		CHECK(!strcmp(before, name));
		if (S_ISDIR(type)) {
			check_samples(files, f, node, at);
			continue;
		}
		CHECK(files->ops->sample(files, node, &sample));
		CHECK_EQ_U(sample.i * (f->t.bytes / sample.n), *at);
		CHECK_EQ_U(files->ops->sample_node(files, sample.set, sample.i),
			   node);
		CHECK_EQ_I(files->ops->attr(files, node, NULL, &a, NULL), 0);
		CHECK(a.size <= sizeof out);
		read_window(files, f, node, 0, a.size, out);
		CHECK(!memcmp(out, "\x93NUMPY", 6));
		for (uint64_t k = 128; k < a.size; k++)
			CHECK_EQ_U(out[k], expected(f, (*at)++));
	}
}

/* Every block is the bytes of the box that its name says. */
static void check_blocks(struct files *files, const struct fake *f)
{
	const struct tensor *t = &f->t;
	uint64_t dir, node, n = tensor_blocks(t), row, off;
	static unsigned char out[65536];
	char name[256];
	uint32_t type;
	struct box b;

	if (!n) {
		CHECK_EQ_I(files->ops->find(files, 0, "blocks", &node),
			   -ENOENT);
		return;
	}
	dir = find(files, 0, "blocks");
	CHECK_EQ_U(files->ops->count(files, dir), n);
	for (uint64_t k = 0; k < n; k++) {
		struct attr a;

		CHECK_EQ_I(files->ops->name(files, dir, k, name, sizeof name),
			   0);
		node = files->ops->child(files, dir, k, &type);
		CHECK_EQ_U(find(files, dir, name), node);
		tensor_block_box(t, k, &b);
		snprintf(name + 128, 64, "%06" PRIu64 "-%06" PRIu64, b.start[0],
			 b.start[0] + b.count[0]);
		if (tensor_divides(t, 0))
			CHECK(!strncmp(name, name + 128, 13));
		else
			CHECK_EQ_U(b.count[0], t->shape[0]);
		CHECK_EQ_I(files->ops->attr(files, node, NULL, &a, NULL), 0);
		CHECK(a.size <= sizeof out);
		read_window(files, f, node, 0, a.size, out);
		row = t->dtype.size;
		CHECK_EQ_U(a.size, 128 + box_elements(&b, t->rank) * row);
		for (off = 0; off < a.size - 128; off++)
			CHECK_EQ_U(out[128 + off],
				   expected(f, box_place(&b, t->rank, t->shape,
							 off / row) *
							       row +
						       off % row));
	}
}

/* Some of an axis, as text and as indices; how many. */
static uint64_t random_range(uint64_t n, char *text, uint64_t *first,
			     int64_t *step)
{
	uint64_t a = rnd(n), b = rnd(n + 1);

	*first = a;
	*step = rnd(4) ? 1 + (int64_t)rnd(4) : -1 - (int64_t)rnd(3);
	if (*step > 0) {
		sprintf(text, "%" PRIu64 ":%" PRIu64 ":%" PRId64, a, b, *step);
		return a < b ? (b - a - 1) / (uint64_t)*step + 1 : 0;
	}
	sprintf(text, "%" PRIu64 "::%" PRId64, a, *step);
	return a / (uint64_t) - *step + 1;
}

/* A slice has the elements that it names, read at once and in windows. */
static void check_slice(struct files *files, const struct fake *f)
{
	const struct tensor *t = &f->t;
	uint64_t first[4], count[4], total = 1, elem = t->dtype.size, node;
	static unsigned char out[CELLS * 8 + 128];
	char name[256] = "";
	int64_t step[4];
	struct attr a = {0};
	struct error err = {0};

	for (unsigned i = 0; i < t->rank; i++) {
		strcat(name, i ? "," : "");
		count[i] = random_range(t->shape[i], name + strlen(name),
					&first[i], &step[i]);
		total *= count[i];
	}
	strcat(name, ".npy");
	CHECK_EQ_I(
		files->ops->find(files, find(files, 0, "slice"), name, &node),
		0);
	CHECK_EQ_I(files->ops->attr(files, node, NULL, &a, &err), 0);
	CHECK_EQ_U(a.size, 128 + total * elem);
	for (uint64_t at = 0, n; at < a.size; at += n) {
		n = rnd(2) ? a.size - at : 1 + rnd(a.size - at);
		read_window(files, f, node, at, n, out + at);
	}
	for (uint64_t k = 0; k < total; k++) {
		uint64_t e = k, place = 0, cell = 1;

		for (unsigned i = t->rank; i-- > 0; e /= count[i]) {
			place += cell *
				 (first[i] + e % count[i] * (uint64_t)step[i]);
			cell *= t->shape[i];
		}
		for (uint64_t i = 0; i < elem; i++)
			CHECK_EQ_U(out[128 + k * elem + i],
				   expected(f, place * elem + i));
	}
}

TEST(views_of_random_tensors)
{
	for (int round = 0; round < 600; round++) {
		unsigned rank = (unsigned)rnd(4);
		struct fake *f =
			fake_new(rank, 1u << rnd(4), (enum fake_kind)rnd(3));
		struct view_options o;
		struct error err = {0};
		struct files_sample sample;
		struct files *files;
		uint64_t at = 0, node;

		view_options_default(&o);
		o.sample_axes = 1 + (unsigned)rnd(3);
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		CHECK(tensor_of_files(files) == &f->t);
		check_array(files, f);
		if (rank) {
			check_samples(files, f, find(files, 0, "samples"), &at);
			CHECK_EQ_U(at, f->t.bytes);
			check_blocks(files, f);
			for (int i = 0; i < 8; i++)
				check_slice(files, f);
		}
		CHECK(!files->ops->sample(files, 0, &sample));
		CHECK(!files->ops->sample(files, 1, &sample));
		CHECK_EQ_I(files->ops->find(files, 0, "sample", &node),
			   -ENOENT);
		files->ops->free(files);
	}
}

/* A row across hundreds of chunks, each a column, is a strip of each and no run. */
TEST(rows_across_many_chunks_are_a_band)
{
	const uint64_t shape[] = {6, 300}, chunk[] = {6, 1};
	const struct box all = {.count = {6, 300}};
	struct fake *f = fake_new(2, 1, FAKE_PLAIN);
	unsigned char out[1800];
	struct view_options o;
	struct error err = {0};
	struct files *files;
	struct plan p;
	uint64_t at = 0;

	memcpy(f->shape, shape, sizeof shape);
	f->t.elements = f->t.bytes = sizeof out;
	CHECK_EQ_I(grid_init(&f->grid[0], 2, shape, chunk, 1), 0);
	f->data[0] = realloc(f->data[0], sizeof out);
	for (size_t i = 0; i < sizeof out; i++)
		f->data[0][i] = (unsigned char)rnd(256);
	view_options_default(&o);
	CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
	plan_init(&p, sizeof out);
	p.takes_strips = true;
	CHECK_OK(tensor_map_box(&f->t, &all, 0, &p, &err));
	CHECK_EQ_U(p.n, 300);
	CHECK_EQ_U(p.have, sizeof out);
	for (unsigned i = 0; i < p.n; i++)
		at += gather_rows(f, &p.ext[i], out + at);
	CHECK_EQ_U(at, sizeof out);
	CHECK_MEM(out, f->data[0], sizeof out);
	files->ops->free(files);
}

TEST(names_that_we_do_not_make_are_not_found)
{
	static const char *const wrong[] = {
		"0.npy",
		"00000.npy",
		"0000000.npy",
		"000000.np",
		"000000",
		"000000.npyx",
		"-00001.npy",
		"999999.npy",
		"00000a.npy",
		"",
		"000000.NPY",
		"18446744073709551616.npy",
		"000000-000000.npy",
		"000000-000001",
		"000000-0000001.npy",
		"000000-999999.npy",
		"999998-999999.npy",
		"000000_000001.npy",
		"000000-000001_000000-000001_000000-000001.npy",
		"000000-000001_.npy"};
	static const enum fake_kind kinds[] = {FAKE_PLAIN, FAKE_ROWS};

	for (unsigned k = 0; k < 2; k++) {
		struct fake *f = fake_new(2, 4, kinds[k]);
		struct view_options o;
		struct error err = {0};
		struct files *files;
		uint64_t samples, blocks, node;

		view_options_default(&o);
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		samples = find(files, 0, "samples");
		blocks = find(files, 0, "blocks");
		for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
			CHECK_EQ_I(files->ops->find(files, samples, wrong[i],
						    &node),
				   -ENOENT);
			CHECK_EQ_I(files->ops->find(files, blocks, wrong[i],
						    &node),
				   -ENOENT);
		}
		files->ops->free(files);
	}
}

TEST(sample_axes_follow_the_file_unless_given)
{
	static const struct {
		unsigned option, file, want;
		bool given;
	} cases[] = {{1, 0, 1, false}, {1, 2, 2, false}, {1, 2, 1, true},
		     {2, 1, 2, true},  {1, 9, 3, false}, {9, 1, 3, true}};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fake *f = fake_new(3, 4, FAKE_PLAIN);
		struct view_options o;
		struct error err = {0};
		struct files *files;
		uint64_t dir;
		uint32_t type;
		unsigned depth = 0;

		view_options_default(&o);
		o.sample_axes = cases[i].option;
		o.sample_axes_given = cases[i].given;
		f->t.sample_axes = cases[i].file;
		CHECK_EQ_U(view_sample_axes(&o, &f->t), cases[i].want);
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		dir = find(files, 0, "samples");
		for (type = S_IFDIR; S_ISDIR(type); depth++)
			dir = files->ops->child(files, dir, 0, &type);
		CHECK_EQ_U(depth, cases[i].want);
		files->ops->free(files);
	}
}

TEST(names_that_would_be_too_long_are_left_out)
{
	static uint64_t shape[RANK_MAX], chunk[RANK_MAX];
	struct fake *f = fake_new(0, 1, FAKE_PLAIN);
	struct view_options o;
	struct error err = {0};
	struct files *files;
	uint64_t node;
	ssize_t n;
	char text[4096];

	for (unsigned i = 0; i < RANK_MAX; i++) {
		shape[i] = 2;
		chunk[i] = 1;
	}
	f->t.rank = RANK_MAX;
	f->t.shape = shape;
	f->t.elements = f->t.bytes = UINT64_C(1) << 32;
	CHECK_EQ_I(grid_init(&f->grid[0], RANK_MAX, shape, chunk, 1), 0);
	view_options_default(&o);
	CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
	CHECK_EQ_I(files->ops->find(files, 0, "blocks", &node), -ENOENT);
	CHECK(f->t.note && strstr(f->t.note, "names would be too long"));
	find(files, 0, "samples");
	n = files->ops->xattr(files, 0, "shape", NULL, text, sizeof text);
	CHECK(n > 0 && !strncmp(text, "(2, 2, ", 7));
	files->ops->free(files);
}

static int by_text(const void *a, const void *b)
{
	char x[24], y[24];

	snprintf(x, sizeof x, "%" PRIu64 ".npy", *(const uint64_t *)a);
	snprintf(y, sizeof y, "%" PRIu64 ".npy", *(const uint64_t *)b);
	return strcmp(x, y);
}

TEST(numbers_in_the_order_of_text)
{
	static const uint64_t many[] = {1,   2,    9,    10,   11,   12,  13,
					99,  100,  101,  110,  111,  123, 200,
					999, 1000, 1001, 2345, 10001};
	static const uint64_t large[] = {UINT64_C(1) << 20, UINT64_C(1) << 40,
					 UINT64_C(999999999999)};
	static uint64_t sorted[10001];

	for (unsigned k = 0; k < sizeof many / sizeof *many; k++) {
		uint64_t n = many[k];

		for (uint64_t i = 0; i < n; i++)
			sorted[i] = i;
		qsort(sorted, n, sizeof *sorted, by_text);
		for (uint64_t i = 0; i < n; i++) {
			CHECK_EQ_U(view_decimal_at(i, n), sorted[i]);
			CHECK_EQ_U(view_decimal_place(sorted[i], n), i);
		}
	}
	for (unsigned k = 0; k < sizeof large / sizeof *large; k++)
		for (unsigned i = 0; i < 1000; i++) {
			uint64_t at = rnd(large[k]), next;

			next = view_decimal_at(at, large[k]);
			CHECK(next < large[k]);
			CHECK_EQ_U(view_decimal_place(next, large[k]), at);
		}
}

/* Numbers for 2^40 - 1 files: what was asked for gets them first. */
TEST(what_is_listed_is_numbered_first)
{
	static uint64_t shape[3] = {UINT64_C(3) << 38, 2, 2};
	static const char *const lists[] = {"images", "array",
					    "images,samples"};
	static const bool images[] = {true, false, false};
	static const bool notes[] = {false, false, true};

	for (unsigned i = 0; i < 3; i++) {
		struct fake *f = fake_new(3, 1, FAKE_PLAIN);
		struct view_options o;
		struct error err = {0};
		struct files *files;
		uint64_t node;

		f->t.shape = shape;
		f->t.elements = f->t.bytes = shape[0] * 4;
		CHECK_EQ_I(grid_init(&f->grid[0], 3, shape, shape, 1), 0);
		view_options_default(&o);
		CHECK_OK(view_options_parse(&o, lists[i], &err));
		CHECK_OK(tensor_files_new(&files, &f->t, &o, &err));
		CHECK_EQ_I(files->ops->find(files, 0, "images", &node),
			   images[i] ? 0 : -ENOENT);
		CHECK_EQ_I(files->ops->find(files, 0, "samples", &node),
			   images[i] ? -ENOENT : 0);
		CHECK((f->t.note && strstr(f->t.note, "images/")) == notes[i]);
		files->ops->free(files);
	}
}

static size_t memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Is "i" there under this number? */
static bool is_kept(struct lookups *l, uint32_t number, uint32_t i)
{
	char name[16], is[LOOKUPS_NAME_MAX];

	snprintf(name, sizeof name, "%u", i);
	return lookups_name(l, number, is) && !strcmp(is, name);
}

static uint32_t number_of(_Atomic(struct lookups *) *where, uint32_t i)
{
	uint32_t number = UINT32_MAX;
	char name[16];

	snprintf(name, sizeof name, "%u", i);
	CHECK_EQ_I(lookups_number(where, name, false, &number), 0);
	return number;
}

TEST(names_that_were_asked_for)
{
	static _Atomic(struct lookups *) one, many[1000];
	size_t before = memory();
	char name[LOOKUPS_NAME_MAX + 1];
	uint32_t number;

	for (uint32_t i = 0; i < LOOKUPS_MAX; i++) {
		CHECK(!lookups_name(one, i, name));
		CHECK_EQ_U(number_of(&one, i), i);
	}
	for (uint32_t i = 0; i < LOOKUPS_MAX; i++) {
		CHECK(is_kept(one, i, i));
		CHECK_EQ_U(number_of(&one, i), i);
	}
	CHECK(!lookups_name(one, LOOKUPS_MAX, name));
	CHECK(!lookups_name(one, UINT64_MAX, name));
	CHECK(!lookups_name(NULL, 0, name));
	memset(name, 'x', LOOKUPS_NAME_MAX);
	name[LOOKUPS_NAME_MAX] = '\0';
	CHECK_EQ_I(lookups_number(&one, name, false, &number), -ENAMETOOLONG);
	lookups_free(one);
	/* One name is not much. */
	for (unsigned i = 0; i < 1000; i++)
		number_of(&many[i], 0);
	CHECK(memory() < before + 1000 * 1024);
	for (unsigned i = 0; i < 1000; i++)
		lookups_free(many[i]);
}

TEST(names_go_by_age_unless_they_are_held)
{
	static _Atomic(struct lookups *) one;
	const uint32_t n = 3 * LOOKUPS_MAX;
	uint32_t last;

	CHECK_EQ_I(lookups_hold(one, 0, 1), -ENOENT);
	for (uint32_t i = 0; i < n; i++) {
		CHECK_EQ_U(number_of(&one, i), i);
		if (i < 3) /* the third of them, not for long */
			CHECK_EQ_I(lookups_hold(one, i, 2 + i), 0);
		if (i == 100)
			CHECK_EQ_I(lookups_hold(one, 2, -4), 0);
		if (i >= 3) /* used, not held */
			CHECK(is_kept(one, 3, 3));
	}
	CHECK(is_kept(one, 0, 0) && is_kept(one, 1, 1) && !is_kept(one, 2, 2));
	CHECK(!is_kept(one, 4, 4) &&
	      !is_kept(one, n - LOOKUPS_MAX, n - LOOKUPS_MAX));
	CHECK_EQ_I(lookups_hold(one, 4, 1), -ENOENT);
	for (uint32_t i = n - LOOKUPS_MAX + 1; i < n; i++)
		CHECK(is_kept(one, i, i));
	/* One that went gets a number of its own, the others keep theirs. */
	CHECK_EQ_U(number_of(&one, 4), n);
	CHECK_EQ_U(number_of(&one, 1), 1);
	/* What is forgotten is the youngest, and ages. */
	CHECK_EQ_I(lookups_hold(one, 0, -2), 0);
	CHECK_EQ_I(lookups_hold(one, 1, -2), 0);
	CHECK_EQ_I(lookups_hold(one, 0, -1), 0); /* more often than held */
	for (uint32_t i = 0; i < LOOKUPS_MAX; i++)
		last = number_of(&one, n + i);
	CHECK(!is_kept(one, 0, 0) && is_kept(one, 1, 1));
	CHECK(is_kept(one, last, n + LOOKUPS_MAX - 1));
	CHECK_EQ_I(lookups_hold(one, 1, -1), 0);
	CHECK(is_kept(one, 1, 1));
	lookups_free(one);
}

TEST(numbers_of_names_are_given_anew_when_they_are_out)
{
	static _Atomic(struct lookups *) one;
	uint32_t number, generation;
	char name[16];

	for (uint32_t i = 0; i < 2; i++)
		number_of(&one, i);
	CHECK_EQ_I(lookups_hold(one, 1, 1), 0);
	generation = lookups_generation(one, 0);
	CHECK(generation);
	lookups_skip(one, LOOKUPS_NUMBERS - 1);
	CHECK_EQ_U(number_of(&one, 2), LOOKUPS_NUMBERS - 1);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ_I(lookups_number(&one, "once", true, &number),
			   -ENOSPC);
	for (uint32_t i = 0; i < LOOKUPS_MAX; i++) {
		snprintf(name, sizeof name, "other %u", i);
		CHECK_EQ_I(lookups_number(&one, name, false, &number), 0);
	}
	CHECK(is_kept(one, 1, 1) && lookups_generation(one, 1) == generation);
	CHECK(!is_kept(one, 0, 0));
	CHECK(lookups_generation(one, number) != generation);
	lookups_free(one);
}

int main(void)
{
	RUN(numbers_in_the_order_of_text);
	RUN(views_of_random_tensors);
	CHECK(bands > 100);
	RUN(names_that_we_do_not_make_are_not_found);
	RUN(sample_axes_follow_the_file_unless_given);
	RUN(names_that_would_be_too_long_are_left_out);
	RUN(what_is_listed_is_numbered_first);
	RUN(names_that_were_asked_for);
	RUN(names_go_by_age_unless_they_are_held);
	RUN(numbers_of_names_are_given_anew_when_they_are_out);
	RUN(rows_across_many_chunks_are_a_band);
	return test_done();
}
