/* SPDX-License-Identifier: BSD-2-Clause */
/* Forward reading over a backing: any mix of reads and jumps gives its bytes. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "stream/input.h"
#include "extent/handles.h"
#include "test.h"

#define SIZE (3u << 20)
static unsigned char truth[SIZE];
static char path[] = "/tmp/tensorfs-input-XXXXXX";
static struct handles *handles;
static struct backing whole;

static void make_file(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	for (size_t i = 0; i < SIZE; i++)
		truth[i] = (unsigned char)test_random();
	CHECK(write(fd, truth, SIZE) == (ssize_t)SIZE);
	close(fd);
	CHECK_OK(handles_new(&handles, 4, 0, NULL));
	CHECK_OK(backing_file(&whole, handles, NULL, handles_add(handles, path),
			      0, NULL));
}

/* Reads and jumps up to these lengths, to the end. */
static void walk(const struct backing *b, const unsigned char *expect,
		 uint64_t reads, uint64_t jumps)
{
	static unsigned char buf[SIZE];
	struct input *in;
	uint64_t at = 0;

	CHECK_OK(input_of_backing(&in, b, NULL));
	for (;;) {
		size_t n = (size_t)(1 + test_random() % reads);
		uint64_t there = b->size - at < n ? b->size - at : n;
		ssize_t got = input_read(in, buf, n, NULL);

		CHECK_EQ_I(got, (int64_t)there);
		CHECK_MEM(buf, expect + at, (size_t)there);
		at += there;
		CHECK_EQ_U(in->at, at);
		if (there < n)
			break;
		n = (size_t)(test_random() % (jumps + 1));
		there = b->size - at < n ? b->size - at : n;
		CHECK_EQ_I(input_skip(in, n, NULL), (int64_t)there);
		at += there;
	}
	CHECK_EQ_I(input_read(in, buf, 1, NULL), 0);
	CHECK_EQ_I(input_skip(in, UINT64_MAX, NULL), 0);
	input_free(in);
}

TEST(walks)
{
	static const uint64_t lengths[][2] = {
		{512, 0},      {512, 1000},   {1000000, 0}, {512, 70000},
		{512, 300000}, {300000, 300}, {7, 5000},
	};
	struct backing part = backing_part(&whole, 12345, 1000001);

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		walk(&whole, truth, lengths[i][0], lengths[i][1]);
		walk(&part, truth + 12345, lengths[i][0], lengths[i][1]);
	}
}

TEST(a_file_that_shrinks)
{
	struct error err = {0, ""};
	struct input *in;
	char buf[16];

	CHECK_OK(input_of_backing(&in, &whole, NULL));
	CHECK_EQ_I(input_skip(in, 2 << 20, NULL), 2 << 20);
	CHECK_OK(truncate(path, 1 << 20));
	CHECK(input_read(in, buf, sizeof buf, &err) < 0);
	CHECK(err.text[0]);
	input_free(in);
}

int main(void)
{
	make_file();
	RUN(walks);
	RUN(a_file_that_shrinks);
	handles_free(handles);
	unlink(path);
	return test_done();
}
