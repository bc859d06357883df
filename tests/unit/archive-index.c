/* SPDX-License-Identifier: BSD-2-Clause */
/* Index files: what comes back, and what is not believed. */
#include <sys/resource.h>
#include <sys/time.h>
#include <xxhash.h>

#include "index_fake.h"

#define INDEX "a.tar.tfsidx"

TEST(round_trip)
{
	struct index_section s[FAKE_SECTIONS];
	unsigned n = fake_sections(s);
	struct error err;
	struct index *x;
	struct fake f;
	char *path;

	CHECK_EQ_I(fake_load_said(NULL, &err), -ENOENT);
	CHECK(*err.text);
	fake_open(&f);
	CHECK_OK(index_save(&f.key, NULL, s, n, &path, NULL));
	CHECK_STR(path, "./" INDEX);
	CHECK_OK(index_load(&f.key, NULL, FAKE_LAZY, &x, NULL));
	fake_check(x);
	CHECK_STR(index_path(x), path);
	index_free(x);
	free(path);
	fake_close(&f);
	/* Nothing but these: no temporary file. */
	CHECK_EQ_U(count_entries("."), 2);
	CHECK_EQ_U(count_entries(fake_cache), 0);
	CHECK(unlink(INDEX) == 0);
}

TEST(no_sections)
{
	struct index *x;
	struct fake f;
	uint64_t size;

	fake_open(&f);
	CHECK_OK(index_save(&f.key, NULL, NULL, 0, NULL, NULL));
	CHECK_OK(index_load(&f.key, NULL, 0, &x, NULL));
	CHECK(!index_section(x, 1, &size));
	index_free(x);
	fake_close(&f);
	CHECK(unlink(INDEX) == 0);
}

/* As many as there may be, all of one size; one more is refused. */
TEST(many_sections)
{
	struct index_section s[INDEX_SECTIONS_MAX + 1];
	struct index *x;
	struct fake f;
	uint64_t size;

	for (unsigned i = 0; i <= INDEX_SECTIONS_MAX; i++)
		s[i] = (struct index_section){i, "x", 1, NULL};
	fake_open(&f);
	CHECK_EQ_I(
		index_save(&f.key, NULL, s, INDEX_SECTIONS_MAX + 1, NULL, NULL),
		-EINVAL);
	CHECK_OK(index_save(&f.key, NULL, s, INDEX_SECTIONS_MAX, NULL, NULL));
	CHECK_OK(index_load(&f.key, NULL, 1, &x, NULL));
	for (unsigned i = 0; i < INDEX_SECTIONS_MAX; i++)
		CHECK(*(const char *)index_section(x, i, &size) == 'x');
	index_free(x);
	fake_close(&f);
	CHECK(unlink(INDEX) == 0);
}

TEST(nothing_wanted)
{
	struct index_options none = {.where = "none"};
	char *path = (char *)1;
	struct index *x;
	struct fake f;

	fake_open(&f);
	CHECK_OK(index_save(&f.key, &none, NULL, 0, &path, NULL));
	CHECK(!path);
	f.key.path = NULL;
	CHECK_OK(index_save(&f.key, NULL, NULL, 0, &path, NULL));
	CHECK(!path);
	CHECK_EQ_I(index_load(&f.key, NULL, 0, &x, NULL), -ENOENT);
	fake_close(&f);
	CHECK_EQ_U(count_entries("."), 1);
}

/* ---- lazy sections ------------------------------------------------------- */

/* As fake_sections, all but one as blobs. */
enum { NO_BLOB = 2 };
static unsigned with_blobs(struct index_section s[], struct blob *b[])
{
	unsigned n = fake_sections(s);

	for (unsigned i = 0; i < n; i++) {
		b[i] = NULL;
		if (i == NO_BLOB)
			continue;
		CHECK_OK(blob_of_memory(&b[i], s[i].data, s[i].size, NULL));
		s[i].blob = b[i];
	}
	return n;
}

static void check_blob(const struct index *x, uint32_t id,
		       const struct index_section *s)
{
	unsigned char buf[5000];
	struct blob *b;

	CHECK_OK(index_blob(x, id, &b, NULL));
	CHECK_EQ_U(blob_size(b), s ? s->size : 0);
	for (uint64_t at = 0; s && at < s->size; at += sizeof buf) {
		size_t n =
			s->size - at < sizeof buf ? s->size - at : sizeof buf;

		CHECK_OK(blob_read(b, at, buf, n, NULL));
		CHECK_MEM(buf, (const char *)s->data + at, n);
	}
	CHECK(blob_read(b, s ? s->size : 0, buf, 1, NULL) < 0);
	blob_free(b);
}

TEST(lazy)
{
	struct index_section s[FAKE_SECTIONS];
	static const uint64_t limits[] = {0,   4,     5,     99,
					  100, 70000, 70001, UINT64_MAX};
	struct blob *b[FAKE_SECTIONS];
	unsigned n = with_blobs(s, b);
	struct index *x;
	struct fake f;
	uint64_t size;

	fake_open(&f);
	CHECK_OK(index_save(&f.key, NULL, s, n, NULL, NULL));
	for (unsigned k = 0; k < sizeof limits / sizeof *limits; k++) {
		CHECK_OK(index_load(&f.key, NULL, limits[k], &x, NULL));
		for (unsigned i = 0; i < n; i++) {
			bool there = s[i].size <= limits[k];

			CHECK(!!index_section(x, s[i].id, &size) == there);
			CHECK_EQ_U(size, there ? s[i].size : 0);
			check_blob(x, s[i].id, &s[i]);
		}
		check_blob(x, FAKE_ID_NONE, NULL);
		index_free(x);
	}
	for (unsigned i = 0; i < n; i++)
		blob_free(b[i]);
	/* What is no blob is read however large it is. */
	fake_sections(s);
	CHECK_OK(index_save(&f.key, NULL, s, n, NULL, NULL));
	CHECK_OK(index_load(&f.key, NULL, 0, &x, NULL));
	fake_check(x);
	index_free(x);
	fake_close(&f);
	CHECK(unlink(INDEX) == 0);
}

/* A blob outlives its index, and the name of the file. */
TEST(blob_outlives)
{
	struct index_section s[FAKE_SECTIONS];
	struct blob *b[FAKE_SECTIONS], *lazy, *copy;
	unsigned n = with_blobs(s, b);
	unsigned char buf[100];
	struct index *x;
	struct fake f;

	fake_open(&f);
	CHECK_OK(index_save(&f.key, NULL, s, n, NULL, NULL));
	CHECK_OK(index_load(&f.key, NULL, 1000, &x, NULL));
	CHECK_OK(index_blob(x, 1, &lazy, NULL));
	CHECK_OK(index_blob(x, 64, &copy, NULL));
	index_free(x);
	fake_close(&f);
	CHECK(unlink(INDEX) == 0);
	CHECK_OK(blob_read(lazy, 60000, buf, 100, NULL));
	CHECK_MEM(buf, (const char *)s[0].data + 60000, 100);
	CHECK_OK(blob_read(copy, 0, buf, 100, NULL));
	CHECK_MEM(buf, s[1].data, 100);
	blob_free(lazy);
	blob_free(copy);
	for (unsigned i = 0; i < n; i++)
		blob_free(b[i]);
}

/* 256 MiB, most of it a hole, passes through a piece of memory. */
TEST(big_blob)
{
	const uint64_t size = UINT64_C(1) << 28;
	int fd = open("big", O_RDWR | O_CREAT | O_EXCL, 0600);
	struct index_section s = {9, NULL, size, NULL};
	struct rusage before, after;
	struct blob *b, *back;
	struct index *x;
	char buf[8];
	struct fake f;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	CHECK(pwrite(fd, "the end", 7, (off_t)size - 7) == 7);
	CHECK_OK(blob_of_file(&b, fd, 0, size, NULL));
	s.blob = b;
	fake_open(&f);
	getrusage(RUSAGE_SELF, &before);
	CHECK_OK(index_save(&f.key, NULL, &s, 1, NULL, NULL));
	CHECK_OK(index_load(&f.key, NULL, 1 << 20, &x, NULL));
	getrusage(RUSAGE_SELF, &after);
	CHECK(after.ru_maxrss - before.ru_maxrss < 32 << 10);
	CHECK_OK(index_blob(x, 9, &back, NULL));
	CHECK_OK(blob_read(back, size - 7, buf, 7, NULL));
	CHECK_MEM(buf, "the end", 7);
	blob_free(back);
	blob_free(b);
	index_free(x);
	fake_close(&f);
	CHECK(unlink(INDEX) == 0 && unlink("big") == 0);
}

/* ---- damage -------------------------------------------------------------- */

static bool is_padding(const struct index_head *h, size_t at)
{
	for (unsigned i = 0; i < h->n; i++)
		if (at >= h->table[i].off &&
		    at < h->table[i].off + h->table[i].size)
			return false;
	return at >= sizeof *h;
}

/* Every byte, in two ways. */
TEST(flipped)
{
	struct index_head head;
	unsigned char *p;
	size_t n;
	int fd, r;

	fake_save(NULL);
	p = read_file(INDEX, &n);
	memcpy(&head, p, sizeof head);
	fd = open(INDEX, O_WRONLY);
	CHECK(fd >= 0);
	for (size_t i = 0; i < n; i++)
		for (unsigned bit = 1; bit <= 128; bit *= 128) {
			unsigned char c = p[i] ^ (unsigned char)bit;
			struct error err;

			/* Of the large section every 53rd will do. */
			if (i > 3000 && i % 53)
				continue;
			CHECK(pwrite(fd, &c, 1, (off_t)i) == 1);
			r = fake_load_said(NULL, &err);
			if (is_padding(&head, i))
				CHECK_EQ_I(r, 0);
			else if (i >= offsetof(struct index_head, layout) &&
				 i < offsetof(struct index_head, size))
				CHECK_EQ_I(r, -EINVAL);
			else
				CHECK_EQ_I(r, -EBADMSG);
			CHECK(r == 0 || strstr(err.text, INDEX));
			CHECK(pwrite(fd, &p[i], 1, (off_t)i) == 1);
		}
	CHECK_OK(fake_load());
	close(fd);
	free(p);
	CHECK(unlink(INDEX) == 0);
}

static void check_length(size_t len)
{
	CHECK(truncate(INDEX, (off_t)len) == 0);
	CHECK_EQ_I(fake_load(), -EBADMSG);
}

TEST(truncated)
{
	struct index_head head;
	unsigned char *p;
	size_t n;

	fake_save(NULL);
	p = read_file(INDEX, &n);
	memcpy(&head, p, sizeof head);
	CHECK_EQ_U(head.size, n);
	check_length(n + 1);
	check_length(n + 4096);
	write_file(INDEX, p, n);
	check_length(n - 1);
	for (unsigned i = head.n; i-- > 0;) {
		uint64_t end = head.table[i].off + head.table[i].size;

		if (end < n)
			check_length(end);
		check_length(head.table[i].off);
	}
	for (size_t i = sizeof head + 3; i > 0; i--)
		check_length(i - 1);
	for (unsigned k = 0; k < 300; k++) {
		write_file(INDEX, p, n);
		check_length(test_random() % n);
	}
	free(p);
	CHECK(unlink(INDEX) == 0);
}

/* Write `h` in front of `p`, with the right checksum, and load. */
static int forged(const struct index_head *h, unsigned char *p, size_t n)
{
	struct index_head head = *h;

	head.sum = index_head_sum(&head);
	memcpy(p, &head, sizeof head);
	write_file(INDEX, p, n);
	return fake_load();
}

/* Heads that are whole, and wrong. */
TEST(forged)
{
	static const uint64_t values[] = {0,
					  1,
					  63,
					  64,
					  640,
					  704,
					  1 << 20,
					  UINT32_MAX,
					  INT64_MAX - 63,
					  INT64_MAX,
					  UINT64_C(1) << 63,
					  UINT64_MAX - 63,
					  UINT64_MAX};
	struct index_head good, h;
	unsigned char *p;
	size_t n;

	fake_save(NULL);
	p = read_file(INDEX, &n);
	memcpy(&good, p, sizeof good);
	CHECK_OK(forged(&good, p, n));
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
		for (unsigned k = 0; k < good.n; k++) {
			h = good;
			h.table[k].off = values[i];
			CHECK((forged(&h, p, n) == 0) ==
			      (values[i] == good.table[k].off));
			h = good;
			h.table[k].size = values[i];
			CHECK((forged(&h, p, n) == 0) ==
			      (values[i] == good.table[k].size));
			/* Only the last one may be lazy alone. */
			h = good;
			h.table[k].flags = (uint32_t)values[i];
			CHECK((forged(&h, p, n) == 0) ==
			      (!h.table[k].flags ||
			       (h.table[k].flags == 1 && k == good.n - 1)));
			h = good;
			h.size = h.table[k].size = values[i];
			CHECK_EQ_I(forged(&h, p, n), -EBADMSG);
		}
	for (uint32_t k = 0; k < 200; k++) {
		h = good;
		h.n = k < 100 ? k : UINT32_MAX - k + 100;
		CHECK(k == good.n || forged(&h, p, n) == -EBADMSG);
	}
	h = good;
	h.endian = __builtin_bswap32(h.endian);
	CHECK_EQ_I(forged(&h, p, n), -EINVAL);
	free(p);
	CHECK(unlink(INDEX) == 0);
}

/* ---- what it belongs to -------------------------------------------------- */

static int load_key(const struct index_key *key)
{
	struct index *x;
	int r = index_load(key, NULL, FAKE_LAZY, &x, NULL);

	index_free(x);
	return r;
}

TEST(foreign)
{
	struct fake f, g;

	fake_save(NULL);
	fake_open(&f);
	CHECK_OK(load_key(&f.key));
	f.key.maker = "test 2";
	CHECK_EQ_I(load_key(&f.key), -EINVAL);
	f.key.maker = "test 1x";
	CHECK_EQ_I(load_key(&f.key), -EINVAL);
	f.key.maker = "a name that is too long for an index";
	CHECK_EQ_I(load_key(&f.key), -EINVAL);
	CHECK_EQ_I(index_save(&f.key, NULL, NULL, 0, NULL, NULL), -EINVAL);
	f.key.maker = "test 1";
	f.key.options = 8;
	CHECK_EQ_I(load_key(&f.key), -EINVAL);
	f.key.options = 7;
	f.backing = backing_part(&f.backing, 0, 5000);
	CHECK_EQ_I(load_key(&f.key), -EINVAL);
	fake_open_at(&g, "a.tar", 512);
	CHECK_EQ_I(load_key(&g.key), -EINVAL);
	fake_close(&g);
	fake_close(&f);
	CHECK_OK(fake_load());
	CHECK(unlink(INDEX) == 0);
}

static void poke(off_t at, char c)
{
	int fd = open("a.tar", O_WRONLY);

	CHECK(fd >= 0 && pwrite(fd, &c, 1, at) == 1);
	close(fd);
	CHECK(utimensat(AT_FDCWD, "a.tar", fake_time, 0) == 0);
}

TEST(stale)
{
	static const off_t at[] = {0, 5, 65535, FAKE_SIZE - 1,
				   FAKE_SIZE - 65536};
	struct timespec later[2] = {fake_time[0], fake_time[1]};

	fake_save(NULL);
	CHECK(truncate("a.tar", FAKE_SIZE - 1) == 0);
	CHECK(utimensat(AT_FDCWD, "a.tar", fake_time, 0) == 0);
	CHECK_EQ_I(fake_load(), -ESTALE);
	CHECK(truncate("a.tar", FAKE_SIZE + 1) == 0);
	CHECK_EQ_I(fake_load(), -ESTALE);
	fake_source("a.tar");
	CHECK_OK(fake_load());
	later[1].tv_nsec++;
	CHECK(utimensat(AT_FDCWD, "a.tar", later, 0) == 0);
	CHECK_EQ_I(fake_load(), -ESTALE);
	/* Of the same size and time. */
	for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
		fake_source("a.tar");
		CHECK_OK(fake_load());
		poke(at[i], '!');
		CHECK_EQ_I(fake_load(), -ESTALE);
	}
	fake_source("a.tar");
	CHECK_OK(fake_load());
	CHECK(unlink(INDEX) == 0);
}

/* A copy with its time kept has a use for the copy of the index. */
TEST(travels)
{
	struct index *x;
	struct fake f;

	fake_save(NULL);
	fake_source("b.tar");
	CHECK(rename(INDEX, "b.tar.tfsidx") == 0);
	fake_open_at(&f, "b.tar", 0);
	CHECK_OK(index_load(&f.key, NULL, FAKE_LAZY, &x, NULL));
	fake_check(x);
	index_free(x);
	fake_close(&f);
	CHECK(unlink("b.tar") == 0 && unlink("b.tar.tfsidx") == 0);
}

static void sample(const char *path, unsigned char out[16])
{
	struct fake f;

	fake_open_at(&f, path, 0);
	CHECK_OK(index_sample(&f.backing, out, NULL));
	fake_close(&f);
}

/* All of a small file, and of a large one the ends and some in between. */
TEST(sampled)
{
	unsigned char was[16], is[16], none[16];
	const size_t sizes[] = {0, 1, 4096, 65536, 65537, 172032};
	char *zeros = calloc(1, 172032);
	unsigned seen = 0;
	int fd;

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		write_file("s", zeros, sizes[i]);
		sample("s", was);
		CHECK(i == 0 || memcmp(was, none, 16) != 0);
		memcpy(none, was, 16);
		for (unsigned k = 0; k < 50 && sizes[i]; k++) {
			size_t at = test_random() % sizes[i];

			zeros[at] = 1;
			write_file("s", zeros, sizes[i]);
			zeros[at] = 0;
			sample("s", is);
			CHECK(memcmp(was, is, 16) != 0);
		}
	}
	free(zeros);
	CHECK(truncate("s", 0) == 0 && truncate("s", 50 << 20) == 0);
	sample("s", was);
	fd = open("s", O_WRONLY);
	for (off_t at = 0; at < 50 << 20; at += 4096) {
		CHECK(pwrite(fd, "x", 1, at) == 1);
		sample("s", is);
		seen += memcmp(was, is, 16) != 0;
		CHECK(pwrite(fd, "", 1, at) == 1);
	}
	/* 32 pages are at the ends, 10 in between, where they are is no matter
	 * of pages. */
	CHECK(seen >= 32 + 10 - 1 && seen <= 32 + 10 + 1);
	close(fd);
	CHECK(unlink("s") == 0);
}

/* The source is changed while it is mounted: what was learnt is of no use. */
TEST(changed_under_us)
{
	struct index_section s[FAKE_SECTIONS];
	unsigned n = fake_sections(s);
	struct fake f;

	fake_open(&f);
	CHECK(truncate("a.tar", 5) == 0);
	CHECK_EQ_I(index_save(&f.key, NULL, s, n, NULL, NULL), -ESTALE);
	CHECK_EQ_U(count_entries("."), 1);
	fake_close(&f);
	fake_source("a.tar");
}

int main(void)
{
	fake_begin();
	RUN(round_trip);
	RUN(no_sections);
	RUN(many_sections);
	RUN(nothing_wanted);
	RUN(lazy);
	RUN(blob_outlives);
	RUN(big_blob);
	RUN(flipped);
	RUN(truncated);
	RUN(forged);
	RUN(foreign);
	RUN(stale);
	RUN(travels);
	RUN(sampled);
	RUN(changed_under_us);
	fake_done();
	return test_done();
}
