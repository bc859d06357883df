/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of compressed streams: data of several kinds, and what must hold. */
#ifndef TESTS_UNIT_FORMATS_TEST_H
#define TESTS_UNIT_FORMATS_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream/stream.h"
#include "stream/stream_private.h"
#include "extent/handles.h"

#include "test.h"

struct bytes {
	unsigned char *at;
	size_t n;
};

static char stream_dir[64];
/* Windows of this size are asked for; 0: of the usual one. */
TEST_MAYBE static uint32_t stream_test_window;

TEST_MAYBE static void stream_dir_make(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(stream_dir, sizeof stream_dir, "%.40s/stream.XXXXXX",
		 tmp ? tmp : "/tmp");
	CHECK(mkdtemp(stream_dir) != NULL);
}
TEST_MAYBE static void stream_dir_remove(void)
{
	char cmd[128];

	snprintf(cmd, sizeof cmd, "rm -rf '%s'", stream_dir);
	CHECK_EQ_I(system(cmd), 0);
}
TEST_MAYBE static void stream_path(char *to, size_t n, const char *name)
{
	snprintf(to, n, "%s/%s", stream_dir, name);
}

/* ---- data ---------------------------------------------------------------- */

enum kind { TEXT, NOISE, ZEROS, MIXED };
TEST_MAYBE static void fill_text(unsigned char *p, size_t n)
{
	static const char words[] = "frame detector electron /data/sample "
				    "0.125 beam offset\n intensity 17 ";

	for (size_t i = 0; i < n;) {
		size_t from = test_random() % (sizeof words - 12);
		size_t len = 3 + test_random() % 8;

		for (size_t k = 0; k < len && i < n; k++)
			p[i++] = (unsigned char)words[from + k];
	}
}
TEST_MAYBE static void fill_noise(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(test_random() >> 13);
}
TEST_MAYBE static struct bytes make_data(enum kind kind, size_t n)
{
	struct bytes b = {malloc(n + 1), n};

	CHECK(b.at != NULL);
	memset(b.at, 0, n + 1);
	if (kind == TEXT)
		fill_text(b.at, n);
	else if (kind == NOISE)
		fill_noise(b.at, n);
	for (size_t i = 0; kind == MIXED && i < n;) {
		size_t len = 1 + test_random() % 200000;

		len = len < n - i ? len : n - i;
		if (i / 7 % 3 == 0)
			fill_text(b.at + i, len);
		else if (i / 7 % 3 == 1)
			fill_noise(b.at + i, len);
		i += len;
	}
	return b;
}
TEST_MAYBE static void put_file(const char *name, const void *data, size_t n)
{
	char path[128];
	FILE *f;

	stream_path(path, sizeof path, name);
	f = fopen(path, "wb");
	CHECK(f != NULL);
	CHECK_EQ_U(fwrite(data, 1, n, f), n);
	CHECK_EQ_I(fclose(f), 0);
}
TEST_MAYBE static struct bytes get_file(const char *name)
{
	char path[128];
	struct stat st;
	struct bytes b;
	FILE *f;

	stream_path(path, sizeof path, name);
	f = fopen(path, "rb");
	CHECK(f != NULL);
	CHECK_EQ_I(fstat(fileno(f), &st), 0);
	b.n = (size_t)st.st_size;
	b.at = malloc(b.n + 1);
	CHECK_EQ_U(fread(b.at, 1, b.n, f), b.n);
	fclose(f);
	return b;
}
/* `cmd` in the directory of the files; its status. */
TEST_MAYBE static int run_in_dir(const char *cmd)
{
	char all[1024];

	snprintf(all, sizeof all, "cd '%s' && { %s; }", stream_dir, cmd);
	return system(all);
}

/* ---- a file and its stream ----------------------------------------------- */

struct opened {
	struct handles *handles;
	struct backing backing;
};
TEST_MAYBE static void open_file(struct opened *o, const char *name)
{
	char path[128];
	struct error err;

	stream_path(path, sizeof path, name);
	CHECK_OK(handles_new(&o->handles, 8, 4, &err));
	CHECK_OK(backing_file(&o->backing, o->handles, NULL,
			      handles_add(o->handles, path), 0, &err));
}
TEST_MAYBE static void close_file(struct opened *o)
{
	handles_free(o->handles);
}
TEST_MAYBE static const struct stream_format *probe_file(const struct opened *o)
{
	unsigned char head[64];
	size_t n = o->backing.size < sizeof head ? (size_t)o->backing.size
						 : sizeof head;
	struct error err;

	CHECK_OK(backing_read(&o->backing, 0, head, n, &err));
	return stream_probe(head, n);
}

/* What a first pass gives: the bytes (room for `n`), the code and the stream. */
struct passed {
	unsigned char *data;
	size_t n;
	int code;
	struct error damage;
	struct stream *stream;
};
TEST_MAYBE static void first_pass(struct passed *p, const struct opened *o,
				  const struct stream_format *f,
				  unsigned threads, size_t room)
{
	struct stream_scan *scan;
	struct input *in;
	struct error err = {0};
	ssize_t r = 0;

	memset(p, 0, sizeof *p);
	p->data = malloc(room + 1);
	CHECK_OK(stream_scan_new(&scan, f, &o->backing, threads, &err));
	if (stream_test_window)
		scan_limit(scan, stream_test_window, 4 * stream_test_window,
			   1 << 20);
	in = stream_scan_input(scan);
	while (p->n < room + 1) {
		size_t n = 1 + test_random() % (room / 8 + 1000);

		n = n < room + 1 - p->n ? n : room + 1 - p->n;
		r = input_read(in, p->data + p->n, n, &err);
		if (r <= 0)
			break;
		p->n += (size_t)r;
	}
	p->code = stream_scan_finish(scan, &p->stream, &p->damage);
	if (r < 0)
		CHECK(p->code < 0);
}
TEST_MAYBE static void pass_free(struct passed *p)
{
	free(p->data);
	stream_free(p->stream);
}

/* ---- windows ------------------------------------------------------------- */

/* Window `i` is right, or an error: its code. */
TEST_MAYBE static int check_window(struct stream *s, uint64_t i,
				   const struct bytes *data)
{
	struct chunk_set *set = stream_set(s);
	const struct stream_point *p = &s->point[i];
	struct error err = {0};
	struct buf *b;
	int r = set->ops->fetch(set, i, NULL, &b, &err);

	if (r < 0) {
		CHECK_EQ_I(err.code, r);
		CHECK(err.text[0] != 0);
		return r;
	}
	CHECK_EQ_U(b->size, p->size);
	CHECK(p->out + p->size <= data->n);
	CHECK_MEM(b->data, data->at + p->out, p->size);
	buf_unref(b);
	return 0;
}
struct walk {
	struct stream *s;
	const struct bytes *data;
	unsigned seed;
	unsigned times;
	bool forward;
};
TEST_MAYBE static void *walk_windows(void *arg)
{
	struct walk *w = arg;

	for (unsigned i = 0; i < w->seed; i++)
		test_random();
	for (unsigned k = 0; k < w->times && w->s->n; k++) {
		uint64_t i = w->forward ? k % w->s->n : test_random() % w->s->n;
		struct error err = {0};
		int r = check_window(w->s, i, w->data);

		if (r < 0)
			test_fail(__FILE__, __LINE__, "window %llu: %d %s",
				  (unsigned long long)i, r, err.text);
	}
	return NULL;
}
/* Every window alone, backwards and forwards; then several threads. */
TEST_MAYBE static void check_windows(struct stream *s, const struct bytes *data,
				     unsigned threads)
{
	pthread_t thread[8];
	struct walk w[8];
	uint64_t out = 0;

	for (uint64_t i = 0; i < s->n; i++) {
		CHECK_EQ_U(s->point[i].out, out);
		out += s->point[i].size;
	}
	CHECK_EQ_U(out, stream_size(s));
	CHECK_EQ_U(out, data->n);
	for (uint64_t i = s->n; i-- > 0 && s->n < 100;)
		CHECK_OK(check_window(s, i, data));
	for (unsigned t = 0; t < threads; t++) {
		w[t] = (struct walk){s, data, t, (unsigned)s->n, t % 2 == 0};
		if (w[t].times > 60)
			w[t].times = 60;
		CHECK_EQ_I(
			pthread_create(&thread[t], NULL, walk_windows, &w[t]),
			0);
	}
	for (unsigned t = 0; t < threads; t++)
		pthread_join(thread[t], NULL);
}
/* The same stream made from its points. */
TEST_MAYBE static struct stream *again(const struct stream *s)
{
	uint64_t n;
	const struct stream_point *points = stream_points(s, &n);
	const struct blob *states = stream_states(s);
	size_t size = (size_t)blob_size(states);
	unsigned char *copy = malloc(size + 1);
	struct blob *blob;
	struct stream *out;
	struct error err;

	CHECK_OK(blob_read(states, 0, copy, size, &err));
	CHECK_OK(blob_of_memory(&blob, copy, size, &err));
	free(copy);
	if (stream_of_points(&out, stream_format_of(s), stream_from(s), points,
			     n, blob, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	return out;
}
/* File `name` decodes to `data`, by any way there is. */
TEST_MAYBE static void check_file(const char *name, const char *format,
				  const struct bytes *data, unsigned threads)
{
	const struct stream_format *f;
	struct opened o;
	struct passed p;
	struct stream *s;

	open_file(&o, name);
	f = probe_file(&o);
	CHECK(f != NULL);
	CHECK_STR(stream_format_name(f), format);
	first_pass(&p, &o, f, threads, data->n);
	if (p.code < 0)
		test_fail(__FILE__, __LINE__, "%s", p.damage.text);
	CHECK_EQ_U(p.n, data->n);
	CHECK_MEM(p.data, data->at, data->n);
	s = again(p.stream);
	check_windows(s, data, 3);
	stream_free(s);
	pass_free(&p);
	close_file(&o);
}
/*
 * A damaged file: what is delivered as right is right.  `code` is what the pass
 * ended with.  Bytes that a first pass delivers before it fails may be wrong: then
 * their windows are bad.
 */
TEST_MAYBE static int check_damaged(const char *name, const char *format,
				    const struct bytes *data, unsigned threads,
				    uint64_t *good)
{
	struct opened o;
	struct passed p;
	int code;

	*good = 0;
	open_file(&o, name);
	first_pass(&p, &o, stream_find(format), threads, data->n);
	code = p.code;
	if (p.stream)
		for (uint64_t i = 0; i < p.stream->n; i++)
			if (check_window(p.stream, i, data) == 0)
				*good += p.stream->point[i].size;
	if (code == 0) {
		CHECK_EQ_U(p.n, data->n);
		CHECK_EQ_U(*good, data->n);
	}
	pass_free(&p);
	close_file(&o);
	return code;
}

#endif
