/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of squashfs: equal bytes are found, equal hashes are not believed; noise is told
 * from what only looks like it. */
#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pack/squashfs/private.h"

#define BLOCK 4096
#define N 300

static char names[N][8];
static struct scan scan;
static char dir[] = "pack-image-XXXXXX";
static char path[64];

static uint32_t random32(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static void noise(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)random32();
}

/* A scan of N files, a name each. */
static void make_scan(void)
{
	static char text[N * sizeof names[0]];
	static struct scan_entry entries[N];

	memset(&scan, 0, sizeof scan);
	for (unsigned i = 0; i < N; i++) {
		snprintf(names[i], sizeof names[i], "f%05u", i);
		memcpy(text + i * sizeof names[0], names[i], sizeof names[0]);
		entries[i].path = i * sizeof names[0];
		entries[i].same_as = i;
	}
	scan.list.at = entries;
	scan.list.n = N;
	scan.text.at = text;
	scan.text.n = sizeof text;
}

static struct image *open_with(enum pack_codec codec, const char *name,
			       unsigned threads, uint64_t memory)
{
	struct sink_args a = {.path = path,
			      .replace = true,
			      .comp = {.codec = codec},
			      .block = BLOCK,
			      .threads = threads,
			      .memory = memory,
			      .scan = &scan,
			      .top = {.mode = S_IFDIR | 0755},
			      .epoch = INT64_MIN};
	struct sink *s;
	struct error err = {0};

	make_scan();
	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (sink_squashfs.open(&a, &s, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return (struct image *)s;
}

static struct image *open_image(enum pack_codec codec, const char *name)
{
	return open_with(codec, name, 2, 1 << 24);
}

static struct image_node *put(struct image *im, unsigned i, const void *data,
			      uint64_t n)
{
	struct feed_unit u = {.entry = i,
			      .path = names[i],
			      .attr = {.mode = S_IFREG | 0644, .size = n},
			      .first = true,
			      .last = true,
			      .size = n,
			      .data = data};
	struct error err = {0};

	if (sink_squashfs.put(&im->sink, &u, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return &im->nodes.at[im->nodes.n - 1];
}

static void drain(struct image *im)
{
	struct error err = {0};

	CHECK_EQ_I(image_blocks_drain(im->blocks, &err), 0);
}

static uint64_t key_of(const struct image *im, uint32_t node)
{
	for (size_t i = 0; i < im->same.room; i++)
		if (im->same.at[i].node == node)
			return im->same.at[i].key;
	test_fail(__FILE__, __LINE__, "node %u is not known", node);
}

/* Its bytes' hash. */
static uint64_t finish(struct image *im)
{
	struct sink_result r;
	struct error err = {0};
	unsigned char *all;
	uint64_t hash;

	if (sink_squashfs.finish(&im->sink, &r, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	CHECK_EQ_U(r.stored % 4096, 0);
	all = malloc(r.stored);
	CHECK_EQ_U((uint64_t)pread(out_fd(im->file.out), all, r.stored, 0),
		   r.stored);
	hash = XXH3_64bits(all, r.stored);
	free(all);
	sink_squashfs.close(&im->sink);
	CHECK_EQ_I(unlink(path), 0);
	return hash;
}

/* Node 1 has `a`; would one with other bytes and the same hash be taken for it? */
static void ask_small(struct image *im, const unsigned char *a,
		      const unsigned char *other, size_t n)
{
	uint64_t key = key_of(im, 1);
	struct image_node *asks = &im->nodes.at[im->nodes.n - 1];
	struct image_node before = *asks;
	struct error err = {0};

	asks->size = n;
	asks->fragment = IMAGE_NONE;
	CHECK_EQ_I(image_same_small(im, asks, a, key, &err), 1);
	CHECK_EQ_U(asks->fragment, im->nodes.at[1].fragment);
	CHECK_EQ_U(asks->offset, im->nodes.at[1].offset);
	CHECK_EQ_I(image_same_small(im, asks, other, key, &err), 0);
	*asks = before;
}

/* While its block is filled, on its way, and in the image. */
static void small(enum pack_codec codec)
{
	struct image *im = open_image(codec, "small");
	unsigned char a[1000], b[1000], c[3000];

	memset(a, 'a', sizeof a);
	memcpy(b, a, sizeof a);
	b[999] = 'b';
	put(im, 0, a, sizeof a);
	put(im, 1, "x", 1);
	ask_small(im, a, b, sizeof a);
	for (unsigned i = 2; i < 4; i++) {
		noise(c, sizeof c);
		put(im, i, c, sizeof c);
	}
	CHECK(!im->small || im->small_number != im->nodes.at[1].fragment);
	ask_small(im, a, b, sizeof a);
	drain(im);
	CHECK(!image_blocks_find(im->blocks, im->nodes.at[1].fragment));
	ask_small(im, a, b, sizeof a);
	finish(im);
}

TEST(small_files)
{
	small(PACK_ZSTD);
	small(PACK_GZIP);
	small(PACK_LZ4);
	small(PACK_NONE);
}

/* The same hash, sizes and blocks' sizes, and one other byte. */
TEST(files_of_blocks)
{
	struct image *im = open_image(PACK_NONE, "blocks");
	static unsigned char a[5 * BLOCK + 7];
	struct image_node *n;
	struct error err = {0};
	uint64_t end;

	noise(a, sizeof a);
	put(im, 0, a, sizeof a);
	drain(im);
	end = out_size(im->file.out);
	put(im, 1, a, sizeof a); /* it is taken back */
	drain(im);
	CHECK_EQ_U(out_size(im->file.out), end);
	CHECK_EQ_U(im->nodes.at[2].place, im->nodes.at[1].place);
	a[sizeof a - 1] ^= 1;
	n = put(im, 2, a, sizeof a);
	drain(im);
	CHECK_EQ_U(n->place, end);
	CHECK_EQ_I(image_same_blocks(im, n, key_of(im, 1), &err), 0);
	CHECK_EQ_U(n->place, end);
	finish(im);
}

/* Noise and text of all sizes, some of it again and again. */
static uint64_t pack_all(unsigned threads, uint64_t memory)
{
	struct image *im = open_with(PACK_AUTO, "threads", threads, memory);
	static unsigned char pool[2][1 << 16];

	for (unsigned i = 0; i < N; i++) {
		uint64_t k = i * UINT64_C(2654435761) % 1000;
		size_t n = i % 7 == 0 ? k * 40 : i % 3 ? k : k * 4;

		if (i % 50 == 0) {
			for (size_t j = 0; j < sizeof pool[0]; j++) {
				pool[0][j] =
					(unsigned char)((i + j * j) *
								UINT64_C(
									2654435761) >>
							24);
				pool[1][j] = (unsigned char)(j / 40 + i);
			}
		}
		put(im, i, pool[i % 2] + i % 10, n);
	}
	return finish(im);
}

TEST(threads)
{
	uint64_t one = pack_all(1, 1 << 24);

	CHECK_EQ_U(pack_all(4, 1 << 26), one);
	CHECK_EQ_U(pack_all(4, 1 << 16), one);
	CHECK_EQ_U(pack_all(16, 1 << 28), one);
}

TEST(dense)
{
	struct pack_comp comp = {.codec = PACK_AUTO};
	struct image_codec codec;
	struct image_press *p;
	struct error err = {0};
	static unsigned char data[1 << 17];
	size_t n = sizeof data;

	CHECK_EQ_I(image_codec_open(&codec, &comp, 1 << 17, &err), 0);
	CHECK_EQ_I(image_press_new(&p, &codec, 1 << 17, &err), 0);
	noise(data, n);
	CHECK(image_dense(p, data, n));
	CHECK(image_dense(p, data, 11264));
	CHECK(image_dense(p, data, 512));
	CHECK(!image_dense(p, data, 300)); /* too little to tell */
	/* A header that repeats, as in small JPEG files: less than a tenth. */
	memset(data, 0, 600);
	CHECK(image_dense(p, data, 11264));
	/* Every byte is as common as any other, and half were there before. */
	noise(data, n);
	memcpy(data + n / 2, data, n / 2);
	CHECK(!image_dense(p, data, n));
	/* Counts: the upper byte of each is small. */
	noise(data, n);
	for (size_t i = 1; i < n; i += 2)
		data[i] &= 3;
	CHECK(!image_dense(p, data, n));
	memset(data, 0, n);
	CHECK(!image_dense(p, data, n));
	image_press_free(p);
	image_codec_close(&codec);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 99;
	RUN(small_files);
	RUN(files_of_blocks);
	RUN(threads);
	RUN(dense);
	rmdir(dir);
	return test_done();
}
