/* SPDX-License-Identifier: BSD-2-Clause */
/* Members too large for a test tree, and sinks that fail: tar's writer, its index. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "pack/sink.h"
#include "pack/tar/private.h"
#include "formats/archive/archive.h"
#include "formats/tar/tar.h"
#include "tests/unit/test.h"

/* The bytes of a tar as an input: what are members' own are not kept. */
struct tape {
	struct input in;
	int fd; /* or -1: a sparse file with all of it */
	uint64_t size;
	uint64_t fail_at; /* byte that there is no room for */
	struct tar_index *index;
};

static int emit(void *ctx, const void *bytes, size_t n, bool data,
		struct error *err)
{
	struct tape *t = ctx;

	if (t->size + n > t->fail_at)
		return error_set(err, -ENOSPC, "no room");
	if (t->fd >= 0 && !data)
		CHECK_EQ_I(pwrite(t->fd, bytes, n, (off_t)t->size), (ssize_t)n);
	if (t->index)
		tar_index_add(t->index, bytes, n, data);
	t->size += n;
	return 0;
}

static void member(struct tar_writer *w, const char *name, uint64_t size,
		   const struct feed_extent *extents, size_t n)
{
	struct feed_unit u = {.path = name,
			      .attr = {.mode = S_IFREG | 0644,
				       .size = size,
				       .mtime = 1000000000},
			      .first = true,
			      .last = true,
			      .sparse = extents != NULL,
			      .extents = extents,
			      .n_extents = n};
	struct error err = {0};

	CHECK_EQ_I(tar_writer_begin(w, &u, &err), 0);
	CHECK_EQ_I(tar_writer_data(w, NULL, size, &err), 0);
	CHECK_EQ_I(tar_writer_end(w, &err), 0);
}

static char *scratch(const char *name)
{
	static char path[200];
	const char *dir = getenv("TMPDIR");

	snprintf(path, sizeof path, "%s/tensorfs-%d-%s", dir ? dir : "/tmp",
		 (int)getpid(), name);
	return path;
}

/* Is there such a line in what another program says of it? */
static bool lists(const char *command, const char *path, const char *line)
{
	char text[400], got[400];
	bool found = false;
	FILE *p;

	snprintf(text, sizeof text, "%s '%s'", command, path);
	p = popen(text, "r");
	CHECK(p != NULL);
	while (fgets(got, sizeof got, p))
		found |= strstr(got, line) != NULL;
	CHECK_EQ_I(pclose(p), 0);
	return found;
}

#define GIB (UINT64_C(1) << 30)

/* Nothing is stored but headers, so it takes no room; all find the last member. */
TEST(members_of_many_gib)
{
	static const struct feed_extent ends[] = {{0, 512},
						  {40 * GIB - 512, 512}};
	char *path = scratch("large.tar");
	struct tape t = {.fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600),
			 .fail_at = UINT64_MAX};
	struct tar_writer *w;
	struct error err = {0};
	char *where = NULL;
	struct stat st;

	CHECK(t.fd >= 0);
	CHECK_EQ_I(tar_index_new(&t.index, NULL, &err), 0);
	CHECK_EQ_I(tar_writer_new(&w, true, emit, &t, &err), 0);
	member(w, "below", 8 * GIB - 1, NULL, 0);
	member(w, "at", 8 * GIB, NULL, 0);
	member(w, "sparse", 40 * GIB, ends, 2);
	member(w, "hole", 9 * GIB, ends, 0);
	member(w, "last", 5, NULL, 0);
	CHECK_EQ_I(tar_writer_finish(w, &err), 0);
	tar_writer_free(w);
	CHECK_EQ_U(t.size % 10240, 0);
	CHECK_EQ_I(ftruncate(t.fd, (off_t)t.size), 0);
	CHECK(lists("LC_ALL=C tar tvf", path, "8589934591 2001-09-09"));
	CHECK(lists("LC_ALL=C tar tvf", path, "8589934592 2001-09-09"));
	CHECK(lists("LC_ALL=C tar tvf", path, "42949672960 2001-09-09"));
	CHECK(lists("LC_ALL=C tar tvf", path, "9663676416 2001-09-09"));
	CHECK(lists("LC_ALL=C tar tvf", path, " last"));
	CHECK(lists("bsdtar tvf", path, " last"));
	CHECK_EQ_I(fstat(t.fd, &st), 0);
	CHECK(st.st_blocks < 2048);
	CHECK_EQ_I(tar_index_save(t.index, path, &where, &err), 0);
	CHECK(where != NULL);
	tar_index_free(t.index);
	unlink(where);
	free(where);
	unlink(path);
	close(t.fd);
}

/* Whatever byte there is no room for: its error comes, and nothing hangs. */
TEST(no_room)
{
	static const struct feed_extent extents[] = {{512, 512}, {5000, 100}};

	for (uint64_t at = 0; at < 9000; at += 256) {
		struct tape t = {.fd = -1, .fail_at = at};
		struct feed_unit u = {.path = "a",
				      .attr = {.mode = S_IFREG, .size = 6000},
				      .first = true,
				      .last = true};
		struct tar_writer *w;
		struct error err = {0};
		int r = 0;

		CHECK_EQ_I(tar_index_new(&t.index, NULL, &err), 0);
		CHECK_EQ_I(tar_writer_new(&w, false, emit, &t, &err), 0);
		for (int i = 0; i < 3 && r == 0; i++) {
			u.sparse = i == 1;
			u.extents = extents;
			u.n_extents = i == 1 ? 2 : 0;
			r = tar_writer_begin(w, &u, &err);
			if (r == 0)
				r = tar_writer_data(w, NULL, 6000, &err);
			if (r == 0)
				r = tar_writer_end(w, &err);
		}
		CHECK_EQ_I(r, -ENOSPC);
		CHECK(strcmp(err.text, "no room") == 0);
		CHECK(tar_writer_finish(w, &err) == -ENOSPC);
		tar_writer_free(w);
		tar_index_free(t.index);
	}
}

/* Headers for the tape of the index come faster than they are read, or slower. */
TEST(an_index_of_many)
{
	struct tape t = {.fd = -1, .fail_at = UINT64_MAX};
	struct tar_writer *w;
	struct error err = {0};
	char *path = scratch("many.tar"), *where, name[300];

	CHECK_EQ_I(tar_index_new(&t.index, NULL, &err), 0);
	t.fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
	CHECK_EQ_I(tar_writer_new(&w, true, emit, &t, &err), 0);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof name, "%0*u", i % 3 ? 8 : 250, i);
		member(w, name, i % 5 * 300, NULL, 0);
	}
	CHECK_EQ_I(tar_writer_finish(w, &err), 0);
	tar_writer_free(w);
	CHECK_EQ_I(ftruncate(t.fd, (off_t)t.size), 0);
	CHECK_EQ_I(tar_index_save(t.index, path, &where, &err), 0);
	tar_index_free(t.index);
	CHECK(where && access(where, R_OK) == 0);
	unlink(where);
	free(where);
	unlink(path);
	close(t.fd);
}

TEST(no_room_for_nothing)
{
	struct tape t = {.fd = -1, .fail_at = 0};
	struct tar_writer *w;
	struct error err = {0};

	CHECK_EQ_I(tar_writer_new(&w, false, emit, &t, &err), 0);
	CHECK_EQ_I(tar_writer_finish(w, &err), -ENOSPC);
	tar_writer_free(w);
}

int main(void)
{
	RUN(members_of_many_gib);
	RUN(no_room);
	RUN(no_room_for_nothing);
	RUN(an_index_of_many);
	return test_done();
}
