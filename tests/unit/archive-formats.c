/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that the tools of each format wrote: every window equals the original. */
#include "formats_test.h"

/* ---- what tools write ---------------------------------------------------- */

struct way {
	const char *format, *tool, *cmd; /* from `data` to `packed` */
};
static const struct way ways[] = {
	{"zstd", "zstd", "zstd -q -1 -c data >packed"},
	{"zstd", "zstd", "zstd -q -3 -c <data >packed"},
	{"zstd", "zstd", "zstd -q -12 -c data >packed"},
	{"zstd", "zstd", "zstd -q --no-check -c data >packed"},
	{"zstd", "zstd", "zstd -q --long=27 -c <data >packed"},
	{"zstd", "zstd", "zstd -q --long=31 -c <data >packed"},
	{"zstd", "zstd", "zstd -q -T0 -c data >packed"},
	{"zstd", "zstd",
	 "split -b 700000 data part.; cat part.* >/dev/null; "
	 "for p in part.*; do zstd -q -c $p; done >packed; rm part.*"},
	{"zstd", "zstd",
	 "split -b 30000 data part.; for p in part.*; do "
	 "zstd -q -c <$p; done >packed; rm part.*"},
	{"zstd", "pzstd", "pzstd -q -c -p 4 data >packed"},
	{"zstd", "zstd",
	 "{ printf '\\120\\052\\115\\030\\003\\000\\000\\000abc'; "
	 "zstd -q -c data; "
	 "printf '\\137\\052\\115\\030\\000\\000\\000\\000'; } >packed"},
	{"xz", "xz", "xz -q -1 -T1 -c data >packed"},
	{"xz", "xz", "xz -q -2 -T1 -c <data >packed"},
	{"xz", "xz", "xz -q -0 -T1 --block-size=1MiB -c data >packed"},
	{"xz", "xz",
	 "xz -q -0 -T1 --block-size=7000KiB -C sha256 -c data >packed"},
	{"xz", "xz",
	 "xz -q -0 -T2 --block-size=50000 -C crc32 -c data >packed"},
	{"xz", "xz", "xz -q -1 -T0 -C none -c data >packed"},
	{"xz", "xz", "xz -q -1 --x86 --lzma2=preset=1 -c data >packed"},
	{"xz", "xz",
	 "split -b 300000 data part.; for p in part.*; do "
	 "xz -q -0 -c $p; head -c 8 /dev/zero; done >packed; rm part.*"},
	{"xz", "xz",
	 "{ xz -q -0 -C crc32 -c </dev/null; xz -q -0 -C sha256 -c data; "
	 "xz -q -0 -c </dev/null; } >packed"},
	{"xz", "pixz", "rm -f packed; pixz -1 -t data packed"},
	{"lz4", "lz4", "lz4 -q -c data >packed"},
	{"lz4", "lz4", "lz4 -q -9 -B4 -BD -c <data >packed"},
	{"lz4", "lz4", "lz4 -q -B5 -BD -BX --content-size -c data >packed"},
	{"lz4", "lz4", "lz4 -q -B6 -BI --no-frame-crc -c data >packed"},
	{"lz4", "lz4", "lz4 -q -B7 -BD -c data >packed"},
	{"lz4", "lz4", "lz4 -q -l -c data >packed"},
	{"lz4", "lz4",
	 "split -b 70000 data part.; for p in part.*; do "
	 "lz4 -q -B4 -BD -c $p; lz4 -q -c </dev/null; done >packed; rm part.*"},
	{"lz4", "lz4",
	 "{ lz4 -q -l -c data; lz4 -q -BD -c </dev/null; "
	 "printf '\\120\\052\\115\\030\\001\\000\\000\\000a'; } >packed"},
	{"bzip2", "bzip2", "bzip2 -q -9 -c data >packed"},
	{"bzip2", "bzip2", "bzip2 -q -1 -c data >packed"},
	{"bzip2", "lbzip2", "lbzip2 -q -n 2 -c <data >packed"},
	{"bzip2", "bzip2",
	 "split -b 90000 data part.; for p in part.*; do "
	 "bzip2 -q -3 -c <$p; bzip2 -c </dev/null; done >packed; "
	 "echo garbage >>packed; rm part.*"},
};

/* Are format and tool here? */
static bool can(const struct way *w)
{
	return stream_find(w->format) ? test_has_tool(w->tool)
				      : !test_lacks(w->format);
}

static void check_way(const struct way *w, const struct bytes *data,
		      unsigned threads)
{
	if (!can(w))
		return;
	test_name = w->cmd;
	put_file("data", data->at, data->n);
	CHECK_EQ_I(run_in_dir(w->cmd), 0);
	check_file("packed", w->format, data, threads);
}

/* Many bytes only in the full tier, and without sanitizers. */
static size_t sized(size_t n)
{
	return test_full() && !getenv("TENSORFS_SANITIZED") ? n : n / 3;
}

/* In the full tier all ways.  Otherwise every fourth one, at each call others, so that
 * each way has some kinds of data, and each kind has ways of all formats. */
static void check_ways(enum kind kind, size_t n, unsigned threads)
{
	static unsigned calls;
	struct bytes data = make_data(kind, n);
	size_t step = test_full() ? 1 : 4;

	for (size_t i = calls++ % step; i < sizeof ways / sizeof *ways;
	     i += step)
		check_way(&ways[i], &data, threads);
	free(data.at);
}

/* Small windows: everything is large. */
TEST(windows)
{
	stream_test_window = 16384;
	check_ways(MIXED, sized(700000), 3);
	stream_test_window = 3000;
	check_ways(TEXT, 200000, 1);
	stream_test_window = 0;
}
TEST(mixed)
{
	check_ways(MIXED, sized(2500000), 3);
}
/* More than is decoded as a whole, with windows as they are. */
TEST(large)
{
	static const struct way large[] = {
		{"zstd", "zstd", "zstd -q -c <data >packed"},
		{"xz", "xz", "xz -q -0 -T1 -c data >packed"},
		{"lz4", "lz4", "lz4 -q -BD -c data >packed"},
	};
	struct bytes data = make_data(TEXT, sized(9000000));

	for (size_t i = 0; i < sizeof large / sizeof *large; i++)
		check_way(&large[i], &data, 1);
	free(data.at);
}
TEST(text)
{
	check_ways(TEXT, sized(1100001), 2);
}
TEST(noise)
{
	check_ways(NOISE, sized(1100000), 2);
}
TEST(zeros)
{
	check_ways(ZEROS, sized(3000000), 2);
}
TEST(small)
{
	check_ways(TEXT, 1, 2);
	check_ways(TEXT, 100000, 0);
}

/* ---- damage -------------------------------------------------------------- */

/* Ways with checksums of what they hold. */
static const struct way checked[] = {
	{"zstd", "zstd", "zstd -q -c data >packed"},
	{"zstd", "zstd", "zstd -q -c <data >packed"},
	{"zstd", "zstd",
	 "split -b 20000 data part.; for p in part.*; do zstd -q -c $p; done "
	 ">packed; rm part.*"},
	{"xz", "xz", "xz -q -1 -T1 -c data >packed"},
	{"xz", "xz",
	 "xz -q -1 -C crc32 -T2 --block-size=20000 -c data >packed"},
	{"xz", "xz",
	 "xz -q -1 -C sha256 -T1 --block-size=30000 -c data >packed"},
};

#define CUTS 30
#define FLIPS 80

static void check_cuts(const struct way *w, const struct bytes *data)
{
	struct bytes packed = get_file("packed");
	uint64_t good, most = 0;

	for (unsigned i = 0; i < CUTS; i++) {
		size_t n = i < 20 ? packed.n - 1 - i : test_random() % packed.n;
		int r;

		put_file("cut", packed.at, n);
		r = check_damaged("cut", w->format, data, 1 + i % 3, &good);
		/* Between frames nobody can tell. */
		CHECK(r < 0 || good < data->n || n > packed.n - 20);
		most = good > most ? good : most;
	}
	/* Most of it is there where little is missing. */
	CHECK(most > data->n / 2);
	free(packed.at);
}

static void check_flips(const struct way *w, const struct bytes *data)
{
	struct bytes packed = get_file("packed");
	uint64_t good;

	for (unsigned i = 0; i < FLIPS; i++) {
		size_t at = i < 40 ? i : test_random() % packed.n;
		unsigned char bit = (unsigned char)(1u << test_random() % 8);

		packed.at[at] ^= bit;
		put_file("flipped", packed.at, packed.n);
		check_damaged("flipped", w->format, data, 1 + i % 3, &good);
		packed.at[at] ^= bit;
	}
	free(packed.at);
}

static void check_damage(void)
{
	for (size_t i = 0; i < sizeof checked / sizeof *checked; i++) {
		struct bytes data = make_data(MIXED, 100000);

		if (!can(&checked[i]))
			continue;
		test_name = checked[i].cmd;
		put_file("data", data.at, data.n);
		CHECK_EQ_I(run_in_dir(checked[i].cmd), 0);
		check_cuts(&checked[i], &data);
		check_flips(&checked[i], &data);
		free(data.at);
	}
}

TEST(damage)
{
	check_damage();
}
TEST(damage_in_windows)
{
	stream_test_window = 2000;
	check_damage();
	stream_test_window = 0;
}

/* The first flip is in bytes that are stored as they are, and is noticed by no
 * decoder; what is, is far behind it, and the checksum is never reached. */
TEST(damage_twice)
{
	static const struct way large[] = {
		{"zstd", "zstd", "zstd -q -c data >packed"},
		{"xz", "xz", "xz -q -0 -T1 -c data >packed"},
		{"lz4", "lz4", "lz4 -q -c data >packed"},
	};
	struct bytes data = make_data(NOISE, 6 << 20), packed;
	uint64_t good;

	memset(data.at + data.n - (1 << 20), 'x', 1 << 20);
	for (size_t i = 0; i < 1 << 20; i += 29)
		data.at[data.n - 1 - i] = (unsigned char)test_random();
	put_file("data", data.at, data.n);
	for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
		if (!can(&large[i]))
			continue;
		test_name = large[i].cmd;
		CHECK_EQ_I(run_in_dir(large[i].cmd), 0);
		packed = get_file("packed");
		packed.at[1 << 20] ^= 1;
		memset(packed.at + packed.n - 3000, 0xff, 1000);
		put_file("flipped", packed.at, packed.n);
		CHECK(check_damaged("flipped", large[i].format, &data, 2,
				    &good) < 0);
		free(packed.at);
	}
	free(data.at);
}

/* The second of three frames, or streams, is of fewer bytes than there were, which
 * only its checksum, its last byte, knows: the third is not where it belongs. */
TEST(damage_displaces)
{
	static const struct way displaced[] = {
		{"zstd", "zstd", "zstd -q -c"},
		{"lz4", "lz4", "lz4 -q -c"},
	};
	struct bytes data = make_data(NOISE, 600000);
	char cmd[256];
	uint64_t good;

	put_file("data", data.at, data.n);
	for (size_t i = 0; i < sizeof displaced / sizeof *displaced; i++) {
		struct bytes two;

		if (!can(&displaced[i]))
			continue;
		test_name = displaced[i].cmd;
		snprintf(cmd, sizeof cmd,
			 "head -c 200000 data | %s >one; "
			 "tail -c 400000 data | head -c 190000 | %s >two; "
			 "tail -c 200000 data | %s >three",
			 displaced[i].cmd, displaced[i].cmd, displaced[i].cmd);
		CHECK_EQ_I(run_in_dir(cmd), 0);
		two = get_file("two");
		two.at[two.n - 1] ^= 1;
		put_file("two", two.at, two.n);
		CHECK_EQ_I(run_in_dir("cat one two three >packed"), 0);
		CHECK(check_damaged("packed", displaced[i].format, &data, 2,
				    &good) < 0);
		CHECK(good <= 200000);
		free(two.at);
	}
	free(data.at);
}

/* What is too short to be the number of a frame, behind the last one: zstd takes it for
 * one that was cut off, lz4 for none.  What was before it is right. */
static void check_rest(const struct way *w, const char *words)
{
	struct bytes data, packed;
	struct opened o;
	struct passed p;

	if (!can(w))
		return;
	data = make_data(TEXT, 100000);
	test_name = w->cmd;
	put_file("data", data.at, data.n);
	CHECK_EQ_I(run_in_dir(w->cmd), 0);
	packed = get_file("packed");
	packed.at = realloc(packed.at, packed.n + 3);
	CHECK(packed.at != NULL);
	memcpy(packed.at + packed.n, packed.at, 3);
	for (size_t n = 1; n <= 3; n++) {
		put_file("rest", packed.at, packed.n + n);
		open_file(&o, "rest");
		first_pass(&p, &o, stream_find(w->format), 1, data.n);
		CHECK_EQ_I(p.code, -EBADMSG);
		CHECK(strstr(p.damage.text, words) != NULL);
		check_windows(p.stream, &data, 0);
		pass_free(&p);
		close_file(&o);
	}
	free(packed.at);
	free(data.at);
}

TEST(rest)
{
	static const struct way zstd = {"zstd", "zstd",
					"zstd -q -c data >packed"};
	static const struct way lz4 = {"lz4", "lz4", "lz4 -q -c data >packed"};

	check_rest(&zstd, "truncated?");
	check_rest(&lz4, "are not a frame");
}

int main(void)
{
	stream_dir_make();
	RUN(mixed);
	RUN(large);
	RUN(text);
	RUN(noise);
	RUN(zeros);
	RUN(small);
	RUN(windows);
	RUN(damage);
	RUN(damage_in_windows);
	RUN(damage_twice);
	RUN(damage_displaces);
	RUN(rest);
	stream_dir_remove();
	return test_done();
}
