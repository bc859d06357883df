/* SPDX-License-Identifier: BSD-2-Clause */
/* A source with an index, in a directory of its own, for tests of indexes. */
#ifndef TESTS_UNIT_INDEX_FAKE_H
#define TESTS_UNIT_INDEX_FAKE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "members/index_private.h"
#include "base/cleanup.h"
#include "extent/handles.h"
#include "test.h"

#define FAKE_SIZE (300u << 10)
#define FAKE_LAZY (1u << 20)

static char fake_dir[300];   /* with the source; the working directory */
static char fake_cache[300]; /* what XDG_CACHE_HOME is */
static const struct timespec fake_time[2] = {{1000000000, 123456789},
					     {1000000000, 123456789}};

/* What a process knows of the source. */
struct fake {
	struct handles *handles;
	struct backing backing;
	struct index_key key;
};

TEST_MAYBE static void write_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fwrite(data, 1, n, f) == n);
	CHECK(fclose(f) == 0);
}
TEST_MAYBE static unsigned char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "r");
	unsigned char *p;

	CHECK(f && fseek(f, 0, SEEK_END) == 0);
	*n = (size_t)ftell(f);
	rewind(f);
	p = malloc(*n + 1);
	CHECK(p && fread(p, 1, *n, f) == *n);
	fclose(f);
	return p;
}

/* Bytes that differ everywhere, at a time that never changes. */
TEST_MAYBE static void fake_source(const char *path)
{
	unsigned char *p = malloc(FAKE_SIZE);

	for (unsigned i = 0; i < FAKE_SIZE; i++)
		p[i] = (unsigned char)(i * 2654435761u >> 24);
	write_file(path, p, FAKE_SIZE);
	CHECK(utimensat(AT_FDCWD, path, fake_time, 0) == 0);
	free(p);
}

static int fake_remove_one(const char *path, const struct stat *st, int type,
			   struct FTW *w)
{
	(void)st, (void)type, (void)w;
	return remove(path);
}
TEST_MAYBE static void fake_done(void)
{
	char top[300];

	strcpy(top, fake_dir);
	*strrchr(top, '/') = 0;
	CHECK(chdir("/") == 0);
	nftw(top, fake_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
/* Two directories, a source in one of them. */
TEST_MAYBE static void fake_begin(void)
{
	const char *tmp = getenv("TMPDIR");
	char top[200];

	snprintf(top, sizeof top, "%s/archive-index-XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	CHECK(mkdtemp(top));
	CHECK(chmod(top, 0755) == 0);
	snprintf(fake_dir, sizeof fake_dir, "%s/data", top);
	snprintf(fake_cache, sizeof fake_cache, "%s/cache", top);
	CHECK(mkdir(fake_dir, 0755) == 0);
	CHECK(chdir(fake_dir) == 0);
	CHECK(setenv("XDG_CACHE_HOME", fake_cache, 1) == 0);
	fake_source("a.tar");
}

/* As a program that mounts it now. */
TEST_MAYBE static void fake_open_at(struct fake *f, const char *path,
				    uint64_t offset)
{
	CHECK_OK(handles_new(&f->handles, 0, 0, NULL));
	CHECK_OK(backing_file(&f->backing, f->handles, NULL,
			      handles_add(f->handles, path), offset, NULL));
	f->key = (struct index_key){&f->backing, path, "test 1", 7};
}
TEST_MAYBE static void fake_open(struct fake *f)
{
	fake_open_at(f, "a.tar", 0);
}
TEST_MAYBE static void fake_close(struct fake *f)
{
	handles_free(f->handles);
}

/* Sections of odd sizes, one of them empty, in no order of size. */
enum { FAKE_SECTIONS = 4, FAKE_ID_EMPTY = 3, FAKE_ID_NONE = 99 };
TEST_MAYBE static unsigned fake_sections(struct index_section out[])
{
	static unsigned char big[70001], small[100];

	for (size_t i = 0; i < sizeof big; i++)
		big[i] = (unsigned char)(i * i >> 3);
	memset(small, 's', sizeof small);
	out[0] = (struct index_section){1, big, sizeof big, NULL};
	out[1] = (struct index_section){64, small, sizeof small, NULL};
	out[2] = (struct index_section){FAKE_ID_EMPTY, NULL, 0, NULL};
	out[3] = (struct index_section){5, "hello", 5, NULL};
	return FAKE_SECTIONS;
}
TEST_MAYBE static void fake_check(const struct index *x)
{
	struct index_section s[FAKE_SECTIONS];
	uint64_t size;

	for (unsigned i = 0, n = fake_sections(s); i < n; i++) {
		const void *p = index_section(x, s[i].id, &size);

		CHECK(p && (uintptr_t)p % INDEX_ALIGN == 0);
		CHECK_EQ_U(size, s[i].size);
		CHECK_MEM(p, s[i].data, size);
	}
	CHECK(!index_section(x, FAKE_ID_NONE, &size));
	CHECK_EQ_U(size, 0);
}

TEST_MAYBE static void fake_save(const struct index_options *o)
{
	struct index_section s[FAKE_SECTIONS];
	unsigned n = fake_sections(s);
	struct error err;
	struct fake f;

	fake_open(&f);
	if (index_save(&f.key, o, s, n, NULL, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	fake_close(&f);
}
/* What a program that starts now gets; 0: and it is the right thing. */
TEST_MAYBE static int fake_load_said(const struct index_options *o,
				     struct error *err)
{
	struct index *x;
	struct fake f;
	int r;

	fake_open(&f);
	r = index_load(&f.key, o, FAKE_LAZY, &x, err);
	CHECK((r == 0) == (x != NULL));
	if (x)
		fake_check(x);
	index_free(x);
	fake_close(&f);
	return r;
}
TEST_MAYBE static int fake_load(void)
{
	return fake_load_said(NULL, NULL);
}

/* Entries of a directory; 0: none, or there is no directory. */
TEST_MAYBE static unsigned count_entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n < 2 ? 0 : n - 2;
}

#endif
