/* SPDX-License-Identifier: BSD-2-Clause */
/* Blobs, and streams of windows, whatever decodes them: here, nothing does. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/counters.h"
#include "clock.h"
#include "stream_test.h"

/* ---- blobs --------------------------------------------------------------- */

static void check_blob(size_t memory, size_t n, size_t piece)
{
	unsigned char *data = malloc(n), *got = malloc(n);
	struct error err = {0};
	struct blob *b;
	uint64_t at;

	CHECK(data && got);
	for (size_t i = 0; i < n; i++)
		data[i] = (unsigned char)test_random();
	CHECK_OK(blob_new(&b, memory, NULL, &err));
	for (size_t i = 0; i < n; i += piece) {
		size_t take = piece < n - i ? piece : n - i;

		CHECK_OK(blob_append(b, data + i, take, &at, &err));
		CHECK_EQ_U(at, i);
	}
	CHECK_EQ_U(blob_size(b), n);
	CHECK_OK(blob_read(b, 0, got, n, &err));
	CHECK_MEM(got, data, n);
	for (unsigned k = 0; k < 100; k++) {
		size_t from = test_random() % n;
		size_t take = test_random() % (n - from + 1);

		CHECK_OK(blob_read(b, from, got, take, &err));
		CHECK_MEM(got, data + from, take);
	}
	CHECK_EQ_I(blob_read(b, n, got, 1, &err), -EBADMSG);
	CHECK_EQ_I(blob_read(b, n - 1, got, 2, &err), -EBADMSG);
	CHECK_EQ_I(blob_read(b, UINT64_MAX, got, 2, &err), -EBADMSG);
	CHECK_OK(blob_read(b, n, got, 0, &err));
	blob_free(b);
	free(data);
	free(got);
}

TEST(blob_in_memory_and_file)
{
	check_blob(100000, 50000, 777);
	check_blob(10000, 50000, 777);
	check_blob(0, 50000, 777);
	check_blob(777, 50000, 777);
	check_blob(1, 3, 1);
}

TEST(blob_of_parts)
{
	char path[] = "/tmp/tensorfs-blob-XXXXXX";
	int fd = mkstemp(path);
	struct error err = {0};
	struct blob *b;
	char got[8];
	uint64_t at;

	CHECK(fd >= 0);
	unlink(path);
	CHECK_EQ_I(write(fd, "0123456789", 10), 10);
	CHECK_OK(blob_of_file(&b, dup(fd), 3, 5, &err));
	CHECK_EQ_U(blob_size(b), 5);
	CHECK_OK(blob_read(b, 1, got, 4, &err));
	CHECK_MEM(got, "4567", 4);
	CHECK_EQ_I(blob_read(b, 1, got, 5, &err), -EBADMSG);
	CHECK_EQ_I(blob_append(b, "x", 1, &at, &err), -EINVAL);
	CHECK_OK(ftruncate(fd, 6));
	CHECK_EQ_I(blob_read(b, 1, got, 4, &err), -EBADMSG);
	blob_free(b);
	close(fd);
	CHECK_OK(blob_of_memory(&b, "abc", 3, &err));
	CHECK_OK(blob_read(b, 1, got, 2, &err));
	CHECK_MEM(got, "bc", 2);
	blob_free(b);
	CHECK_OK(blob_of_memory(&b, NULL, 0, &err));
	CHECK_EQ_I(blob_read(b, 0, got, 1, &err), -EBADMSG);
	blob_free(b);
}

TEST(blob_without_a_place)
{
	struct error err = {0};
	struct blob *b;
	char got[4];
	uint64_t at;

	CHECK_OK(blob_new(&b, 4, "/nonexistent", &err));
	CHECK_OK(blob_append(b, "abc", 3, &at, &err));
	CHECK_EQ_I(blob_append(b, "def", 3, &at, &err), -ENOENT);
	CHECK(strstr(err.text, "TMPDIR"));
	CHECK_EQ_U(blob_size(b), 3);
	CHECK_OK(blob_read(b, 0, got, 3, &err));
	blob_free(b);
	blob_free(NULL);
}

/* ---- a format that stores bytes as they are ------------------------------ */

/* What its decoder says on the way. */
struct step {
	uint64_t out;
	uint8_t flags;
	unsigned state; /* bytes of it, all `flags` */
	bool bad;       /* from the point before this one up to here */
	bool ask;       /* only where a point is wanted */
	int fail;
};
static const struct step *script;
static unsigned steps;
static size_t delivered_at_once = 1000;

struct plain {
	struct stream_decoder d;
	uint64_t at, last;
	unsigned step;
	unsigned char buf[70000];
	size_t from, n;
};

static int plain_open(struct stream_decoder **out,
		      const struct stream_format *f, struct stream_scan *scan,
		      struct error *err)
{
	struct plain *p = calloc(1, sizeof *p);

	if (!p)
		return error_set(err, -ENOMEM, "out of memory");
	p->d.format = f;
	p->d.scan = scan;
	*out = &p->d;
	return 0;
}

static int plain_step(struct plain *p, const struct step *s, struct error *err)
{
	struct stream_point point = {
		.out = s->out, .in = s->out, .flags = s->flags};
	struct error why = {-EBADMSG, "a checksum of the script"};
	unsigned char state[4096];

	if (s->bad)
		scan_bad(p->d.scan, p->last, &why);
	if (s->fail)
		return error_set(err, s->fail, "the script fails");
	if (s->ask && !scan_wants_point(p->d.scan, s->out))
		return 0;
	for (unsigned i = 0; i < s->state; i++)
		state[i] = (unsigned char)(s->state + i * i / 7);
	p->last = s->out;
	return scan_point(p->d.scan, &point, s->state ? state : NULL, s->state,
			  err);
}

/* Announces points as far ahead as it has bytes. */
static ssize_t plain_read(struct stream_decoder *d, void *to, size_t n,
			  struct error *err)
{
	struct plain *p = (struct plain *)d;

	if (!p->n) {
		ssize_t r = scan_get(d->scan, p->buf, sizeof p->buf, err);

		if (r < 0)
			return r;
		p->from = 0;
		p->n = (size_t)r;
		p->at += (uint64_t)r;
		while (p->step < steps && script[p->step].out <= p->at) {
			int e = plain_step(p, &script[p->step++], err);

			if (e < 0)
				return e;
		}
	}
	n = n < p->n ? n : p->n;
	n = n < delivered_at_once ? n : delivered_at_once;
	memcpy(to, p->buf + p->from, n);
	p->from += n;
	p->n -= n;
	return (ssize_t)n;
}

static void plain_close(struct stream_decoder *d)
{
	free((struct plain *)d);
}

static int plain_window(struct stream *s, uint64_t i, unsigned char *out,
			struct error *err)
{
	const struct stream_point *p = &s->point[i];
	unsigned char state[4096];
	ssize_t n;

	if (p->state_size) {
		n = stream_state(s, i, state, sizeof state, err);
		if (n < 0)
			return (int)n;
		for (unsigned k = 0; k < (unsigned)n; k++)
			CHECK_EQ_U(state[k],
				   (unsigned char)((unsigned)n + k * k / 7));
	}
	return stream_get(s, p->in, out, p->size, err);
}

static const char *const plain_suffixes[] = {".pl=", ".tpl=.tar", NULL};
static const struct stream_decoder_ops plain_decoder = {
	.open = plain_open,
	.read = plain_read,
	.close = plain_close,
};
static const struct stream_format plain = {
	.name = "plain",
	.suffixes = plain_suffixes,
	.decoder = &plain_decoder,
	.window = plain_window,
};

#define SIZE ((size_t)500000)
static unsigned char data[SIZE];
static struct place place;

static int scan(struct stream **s, const struct scan_sizes *sizes,
		const struct step *steps_of, unsigned n, struct error *err)
{
	uint64_t had;
	int r;

	script = steps_of;
	steps = n;
	r = scan_compare(s, &plain, &place.backing, sizes, data, SIZE, &had,
			 err);
	if (*s)
		check_row(*s, had);
	return r;
}

/* Sizes of windows, and which are bad ("8b 5"), in thousands. */
static void check_sizes(struct stream *s, const char *expected)
{
	char got[400] = "";
	uint64_t n;
	const struct stream_point *p = stream_points(s, &n);

	for (uint64_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got),
			 "%s%u%s%s", i ? " " : "", p[i].size / 1000,
			 p[i].flags & POINT_BAD ? "b" : "",
			 p[i].state_size ? "s" : "");
	CHECK_STR(got, expected);
}

#define SCAN(s, sizes, list, err) \
	scan(s, sizes, list, sizeof list / sizeof *list, err)

/* ---- windows ------------------------------------------------------------- */

static const struct scan_sizes hundred = {100000, 200000, 1 << 20};

TEST(joined)
{
	static const struct step list[] = {
		{0, POINT_START, 0, 0, 0, 0},      {40000, 0, 0, 0, 0, 0},
		{70000, POINT_START, 0, 0, 0, 0},  {130000, 0, 0, 0, 0, 0},
		{130000, 0, 300, 0, 0, 0},         {140000, 0, 0, 0, 0, 0},
		{150000, POINT_LATER, 0, 0, 0, 0}, {160000, 0, 0, 0, 0, 0},
		{165000, 0, 0, 0, 0, 0},           {400000, 0, 0, 0, 0, 0},
		{500000, 0, 0, 0, 0, 0},
	};
	struct error err = {0};
	struct stream *s;

	for (delivered_at_once = 999; delivered_at_once < 100000;
	     delivered_at_once *= 10) {
		CHECK_OK(SCAN(&s, &hundred, list, &err));
		check_sizes(s, "70 60 10s 10 10 5 235 100");
		CHECK_EQ_U(stream_worst(s), 235000);
		check_windows(s, data);
		check_reading(s, &place.backing, data);
		stream_free(s);
	}
	delivered_at_once = 1000;
}

TEST(bad_ones)
{
	static const struct step list[] = {
		{0, 0, 0, 0, 0, 0},      {20000, 0, 0, 0, 0, 0},
		{40000, 0, 0, 1, 0, 0},  {60000, 0, 0, 0, 0, 0},
		{300000, 0, 0, 1, 0, 0}, {310000, 0, 0, 1, 0, 0},
	};
	struct error err = {0};
	struct stream *s;
	uint64_t before;

	CHECK_EQ_I(SCAN(&s, &hundred, list, &err), -EBADMSG);
	CHECK(strstr(err.text, ": a checksum of the script"));
	/* Delivered far behind what is announced: nothing was joined. */
	check_sizes(s, "20 20b 20 240b 10b 190");
	before = counter_get(COUNT_CHUNKS_DECODED);
	CHECK_OK(check_window(s, 0, data, &err));
	CHECK_EQ_I(check_window(s, 1, data, &err), -EBADMSG);
	CHECK(strstr(err.text, "checksum"));
	CHECK_EQ_U(counter_get(COUNT_CHUNKS_DECODED), before + 1);
	stream_free(s);
}

TEST(failures)
{
	static const struct step damaged[] = {{0, 0, 0, 0, 0, 0},
					      {50000, 0, 0, 0, 0, 0},
					      {80000, 0, 0, 0, 0, -EIO}};
	static const struct step ours[] = {{0, 0, 0, 0, 0, 0},
					   {80000, 0, 0, 0, 0, -ENOMEM}};
	static const struct step order[] = {{0, 0, 0, 0, 0, 0},
					    {80000, 0, 0, 0, 0, 0},
					    {70000, 0, 0, 0, 0, 0}};
	static const struct step late[] = {{10, 0, 0, 0, 0, 0}};
	struct error err = {0};
	struct stream *s;

	CHECK_EQ_I(SCAN(&s, &hundred, damaged, &err), -EBADMSG);
	CHECK_EQ_I(err.code, -EIO);
	check_sizes(s, "70");
	stream_free(s);
	CHECK_EQ_I(SCAN(&s, &hundred, ours, &err), -ENOMEM);
	CHECK(!s);
	CHECK_EQ_I(SCAN(&s, &hundred, order, &err), -EINVAL);
	CHECK(!s);
	CHECK_EQ_I(SCAN(&s, &hundred, late, &err), -EINVAL);
	CHECK(!s);
}

/* States of 4 KB that do not compress much: windows grow, or states go. */
TEST(states_confined)
{
	static struct step list[500];
	struct scan_sizes sizes = {1000, 256000, 8000};
	struct error err = {0};
	struct stream *s;
	uint64_t n;

	for (unsigned i = 0; i < 500; i++)
		list[i] = (struct step){i * 1000u, 0, i ? 3000 : 0, 0, 1, 0};
	CHECK_OK(scan(&s, &sizes, list, 500, &err));
	stream_points(s, &n);
	CHECK_EQ_U(n, 500);
	CHECK(blob_size(stream_states(s)) > 8000);
	check_windows(s, data);
	stream_free(s);
	CHECK_OK(setenv("TMPDIR", "/nonexistent", 1));
	CHECK_OK(scan(&s, &sizes, list, 500, &err));
	CHECK_OK(unsetenv("TMPDIR"));
	stream_points(s, &n);
	CHECK(n < 100);
	CHECK(n > 2);
	CHECK(blob_size(stream_states(s)) <= 8000);
	check_windows(s, data);
	check_reading(s, &place.backing, data);
	stream_free(s);
}

TEST(changed_meanwhile)
{
	static const struct step list[] = {{0, 0, 0, 0, 0, 0},
					   {100000, 0, 0, 0, 0, 0}};
	struct error err = {0};
	struct place other;
	struct stream *s;
	uint64_t had;
	int fd;

	place_new(&other, data, SIZE);
	script = list;
	steps = 2;
	CHECK_OK(scan_compare(&s, &plain, &other.backing, &hundred, data, SIZE,
			      &had, &err));
	s->point[1].crc ^= 1;
	CHECK_OK(check_window(s, 0, data, &err));
	CHECK_EQ_I(check_window(s, 1, data, &err), -EBADMSG);
	CHECK(strstr(err.text, "CRC-32"));
	clock_of_files_ticks(other.path);
	fd = open(other.path, O_WRONLY | O_APPEND);
	CHECK(fd >= 0);
	CHECK_EQ_I(write(fd, "x", 1), 1);
	close(fd);
	CHECK_EQ_I(check_window(s, 0, data, &err), -ESTALE);
	stream_free(s);
	place_free(&other);
}

/* ---- from an index ------------------------------------------------------- */

static int of_points(struct stream_point *p, uint64_t n)
{
	struct error err = {0};
	struct stream *s;
	struct blob *b;
	int r;

	CHECK_OK(blob_of_memory(&b, data, 100, &err));
	r = stream_of_points(&s, &plain, &place.backing, p, n, b, &err);
	CHECK(r == 0 ? s != NULL : s == NULL && r == -EBADMSG && *err.text);
	stream_free(s);
	return r;
}

TEST(impossible_points)
{
	static const struct stream_point good[3] = {
		{0, 0, 0, 0, 1000, 0, 0, POINT_START, 0},
		{1000, 500000, 90, 10, 2000, 0, 7, 0, 0},
		{3000, 500000, 0, 0, STREAM_WINDOW_MAX, 0, 0, POINT_LATER, 0}};
	struct stream_point p[3];

	CHECK_OK(of_points(NULL, 0));
#define WRONG(change)                       \
	do {                                \
		memcpy(p, good, sizeof p);  \
		CHECK_OK(of_points(p, 3));  \
		change;                     \
		CHECK(of_points(p, 3) < 0); \
	} while (0)
	WRONG(p[0].out = 1);
	WRONG(p[1].out = 999);
	WRONG(p[1].out = 1001);
	WRONG(p[2].out = UINT64_MAX);
	WRONG(p[1].size = 0);
	WRONG(p[2].size++);
	WRONG(p[0].in = 500001);
	WRONG(p[2].in = 499999);
	WRONG(p[0].bits = 1);
	WRONG(p[1].bits = 8);
	WRONG(p[1].flags = 8);
	WRONG(p[1].unused = 1);
	WRONG(p[1].state = 91);
	WRONG(p[1].state = UINT64_MAX);
	WRONG(p[1].state_size = 11);
	WRONG(p[1].flags = POINT_START);
	WRONG(p[2].state_size = 1);
	WRONG(p[0].flags = POINT_LATER);
	WRONG(p[2].flags = POINT_LATER | POINT_START);
#undef WRONG
}

TEST(worst_of_later_points)
{
	static const struct step list[] = {
		{0, 0, 0, 0, 0, 0},
		{100000, POINT_LATER, 0, 0, 0, 0},
		{200000, POINT_LATER, 0, 0, 0, 0},
		{350000, 0, 0, 0, 0, 0},
	};
	struct error err = {0};
	struct stream *s;

	CHECK_OK(SCAN(&s, &hundred, list, &err));
	check_sizes(s, "100 100 150 150");
	CHECK_EQ_U(stream_worst(s), 350000);
	stream_free(s);
}

/* ---- the table ----------------------------------------------------------- */

static void check_name(const char *name, const char *expected)
{
	char *got = stream_decoded_name(&stream_gzip, name);

	CHECK_STR(got, expected);
	free(got);
}

/* Somebody waits while one large member is skipped. */
TEST(progress)
{
	static const struct step list[] = {{0, POINT_START, 0, 0, 0, 0}};
	struct told told = {0, 0};
	struct error err = {0};
	struct stream_scan *s;

	script = list;
	steps = 1;
	CHECK_OK(stream_scan_new(&s, &plain, &place.backing, 1, &err));
	stream_scan_tell(s, tell, &told);
	CHECK_EQ_U(input_skip(stream_scan_input(s), SIZE, &err), SIZE);
	CHECK_EQ_U(told.last, SIZE);
	CHECK(told.times > 1);
	stream_scan_free(s);
}

TEST(names)
{
	static const unsigned char head[] = {0x1f, 0x8b, 8, 0};

	CHECK(stream_probe(head, 4) == &stream_gzip);
	CHECK(!stream_probe(head, 2));
	CHECK(!stream_probe(head + 1, 3));
	CHECK(!stream_probe(NULL, 0));
	CHECK(stream_find("gzip") == &stream_gzip);
	CHECK(!stream_find("gzi"));
	CHECK_STR(stream_format_name(&stream_gzip), "gzip");
	CHECK(strstr(stream_format_names(), "gzip"));
	check_name("data.npy.gz", "data.npy");
	check_name("a.TGZ", "a.tar");
	check_name("a.tar.Gz", "a.tar");
	check_name("data", "data");
	check_name(".gz", ".gz");
	check_name("gz", "gz");
	check_name("x.gz.old", "x.gz.old");
}

int main(void)
{
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)test_random();
	place_new(&place, data, SIZE);
	RUN(blob_in_memory_and_file);
	RUN(blob_of_parts);
	RUN(blob_without_a_place);
	RUN(joined);
	RUN(bad_ones);
	RUN(failures);
	RUN(states_confined);
	RUN(changed_meanwhile);
	RUN(impossible_points);
	RUN(worst_of_later_points);
	RUN(progress);
	RUN(names);
	place_free(&place);
	return test_done();
}
