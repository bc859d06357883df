/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of members as libarchive writes them; samples cut into shards, one by one. */
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "shards/cut.h"
#include "shards/ustar.h"
#include "tests/unit/test.h"

static uint64_t state = 88172645463325252u;

static uint64_t random_below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

/* ---- headers ------------------------------------------------------------- */

struct got {
	unsigned char bytes[4096];
	size_t n;
};

/* Fails when it has enough: libarchive would write as many zeros as the header says
 * that there are bytes, 8 GiB of them. */
static la_ssize_t keep(struct archive *a, void *ctx, const void *data, size_t n)
{
	struct got *g = ctx;

	(void)a;
	if (g->n == sizeof g->bytes)
		return -1;
	for (size_t i = 0; i < n && g->n < sizeof g->bytes; i++)
		g->bytes[g->n++] = ((const unsigned char *)data)[i];
	return (la_ssize_t)n;
}

/* True: libarchive's ustar writer takes it. */
static bool by_libarchive(const struct ustar *m, struct got *g)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	bool ok;

	g->n = 0;
	archive_write_set_format_ustar(a);
	archive_write_set_bytes_per_block(a, 0);
	archive_write_open(a, g, NULL, keep, NULL);
	archive_entry_copy_pathname(e, m->path);
	archive_entry_set_mode(e, S_IFREG | m->mode);
	archive_entry_set_uid(e, m->uid);
	archive_entry_set_gid(e, m->gid);
	archive_entry_set_size(e, (int64_t)m->size);
	archive_entry_set_mtime(e, m->mtime, 0);
	if (m->user)
		archive_entry_copy_uname(e, m->user);
	if (m->group)
		archive_entry_copy_gname(e, m->group);
	ok = archive_write_header(a, e) == ARCHIVE_OK;
	archive_entry_free(e);
	archive_write_free(a);
	return ok;
}

static void random_path(char *path, size_t most)
{
	static const char letters[] = "ab.c/\xc3\xa9\xff";
	size_t n = 1 + random_below(most);

	for (size_t i = 0; i < n; i++) {
		path[i] = letters[random_below(sizeof letters - 1)];
		/* No '/' in front, none at the end, no two together. */
		if (path[i] == '/' && (!i || path[i - 1] == '/' || i + 1 == n))
			path[i] = 'x';
	}
	path[n] = '\0';
}

static const char *random_owner(char *name)
{
	size_t n = random_below(36);

	if (n == 0)
		return NULL;
	memset(name, 'u', n);
	name[n] = '\0';
	return name;
}

TEST(headers_as_libarchive)
{
	static const uint64_t sizes[] = {0, 1, 511, 8589934591u};
	static const int64_t times[] = {0, 1, 1700000000, INT32_MAX - 1};
	static const uint32_t owners[] = {0, 1, 1000, (1u << 18) - 1};
	char path[300], user[40], group[40];
	unsigned long_ones = 0, fit = 0;
	struct got g;

	for (unsigned i = 0; i < test_rounds(5000); i++) {
		unsigned char mine[USTAR_BLOCK];
		struct ustar m = {.path = path,
				  .user = random_owner(user),
				  .group = random_owner(group),
				  .size = sizes[random_below(4)],
				  .mtime = times[random_below(4)],
				  .mode = (uint32_t)random_below(010000),
				  .uid = owners[random_below(4)],
				  .gid = owners[random_below(4)]};

		random_path(path, i % 2 ? 260 : 105);
		if (!ustar_fits(&m))
			continue;
		fit++;
		long_ones += strlen(path) > 100;
		CHECK(by_libarchive(&m, &g));
		ustar_header(mine, &m);
		CHECK(g.n >= USTAR_BLOCK);
		CHECK_MEM(g.bytes, mine, USTAR_BLOCK);
	}
	CHECK(fit > test_rounds(5000) / 4 &&
	      long_ones > test_rounds(5000) / 40);
}

TEST(what_does_not_fit)
{
	char path[300], owner[40];
	const struct ustar good = {.path = "a", .mode = 0644};
	struct ustar m = good;

	CHECK(ustar_fits(&m));
	m.size = UINT64_C(1) << 33;
	CHECK(!ustar_fits(&m));
	m = good;
	m.mtime = -1;
	CHECK(!ustar_fits(&m));
	m.mtime = INT32_MAX;
	CHECK(!ustar_fits(&m));
	m = good;
	m.uid = 1u << 18;
	CHECK(!ustar_fits(&m));
	m = good;
	memset(owner, 'x', 33);
	owner[33] = '\0';
	m.group = owner;
	CHECK(!ustar_fits(&m));
	m = good;
	m.path = path;
	memset(path, 'x', 101);
	path[101] = '\0';
	CHECK(!ustar_fits(&m));
	path[0] = '/'; /* nothing would be in front of the cut */
	CHECK(!ustar_fits(&m));
	memset(path, 'x', 257);
	path[256] = '\0';
	path[155] = '/';
	CHECK(ustar_fits(&m));
	path[155] = 'x';
	path[156] = '/';
	CHECK(!ustar_fits(&m));
}

/* ---- shards -------------------------------------------------------------- */

/* One sample after the other, as pack does it. */
static uint64_t one_by_one(const struct shards_cut *c, uint64_t n,
			   uint64_t bytes, uint64_t *samples, uint64_t room)
{
	uint64_t shards = 0, taken = 0;

	if (c->shards > n)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		if (!shards ||
		    shards_cut_here(c, n, shards - 1, samples[shards - 1],
				    taken, bytes)) {
			CHECK(shards < room);
			samples[shards++] = 0;
			taken = 0;
		}
		samples[shards - 1]++;
		taken += bytes;
	}
	return shards;
}

TEST(even_samples_are_cut_as_any)
{
	static uint64_t samples[400];

	for (unsigned round = 0; round < test_rounds(5000); round++) {
		uint64_t n = 1 + random_below(300);
		uint64_t bytes = 512 * (1 + random_below(60)), at = 0, count;
		struct shards_cut c = {0};

		if (round % 4 == 0)
			c.shards = 1 + random_below(n + 3);
		if (round % 4 & 1)
			c.count = 1 + random_below(n + 3);
		if (round % 4 & 2)
			c.size = 1 + random_below(200000);
		count = one_by_one(&c, n, bytes, samples, 400);
		CHECK_EQ_U(shards_even(&c, n, bytes), count);
		for (uint64_t k = 0; k < count; k++) {
			uint64_t first, have;

			shards_even_at(&c, n, bytes, k, &first, &have);
			CHECK_EQ_U(first, at);
			CHECK_EQ_U(have, samples[k]);
			at += have;
		}
		CHECK(!count || at == n);
	}
}

TEST(what_goes_together)
{
	struct shards_cut c = {0};
	struct error err = {0};

	CHECK_EQ_U(shards_cut_default(&c).size, SHARDS_SIZE_USUAL);
	c.shards = 3;
	CHECK_EQ_U(shards_cut_default(&c).size, 0);
	CHECK_EQ_I(shards_cut_check(&c, &err), 0);
	c.size = 1;
	CHECK(shards_cut_check(&c, &err) < 0);
	c.shards = 0;
	c.count = 7;
	CHECK_EQ_I(shards_cut_check(&c, &err), 0);
}

int main(void)
{
	RUN(headers_as_libarchive);
	RUN(what_does_not_fit);
	RUN(even_samples_are_cut_as_any);
	RUN(what_goes_together);
	return test_done();
}
