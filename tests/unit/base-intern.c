/* SPDX-License-Identifier: BSD-2-Clause */
/* Interning: one address for equal bytes, whatever their number and length. */
#include "base/intern.h"
#include "test.h"

#define NAMES 100000

TEST(equal_bytes_have_one_address)
{
	struct intern in;
	char a[] = "temperature", b[] = "temperature";
	const char *kept;

	intern_init(&in);
	kept = intern_text(&in, a);
	CHECK_STR(kept, "temperature");
	CHECK(kept != a);
	CHECK(intern_text(&in, b) == kept);
	a[0] = 'T';
	CHECK(intern_text(&in, a) != kept);
	CHECK_STR(kept, "temperature");
	/* A string is its bytes and the end. */
	CHECK(intern_bytes(&in, b, sizeof b) == kept);
	CHECK(intern_bytes(&in, b, sizeof b - 1) != kept);
	intern_free(&in);
}

TEST(nothing_is_something_too)
{
	struct intern in;
	const void *empty;

	intern_init(&in);
	empty = intern_bytes(&in, NULL, 0);
	CHECK(empty);
	CHECK(intern_bytes(&in, "x", 0) == empty);
	CHECK(intern_text(&in, "") != empty);
	intern_free(&in);
}

/* Lengths on both sides of every boundary, and bytes that differ at the end. */
TEST(every_length)
{
	static unsigned char data[300000];
	const void *kept[40][2];
	struct intern in;
	size_t n;

	intern_init(&in);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 40; i++)
			for (unsigned last = 0; last < 2; last++) {
				const void *p;

				n = i < 20 ? i + 1 : (size_t)1 << (i - 20) % 18;
				n += i < 20 ? 0 : 7000 * (i / 36);
				data[n - 1] = (unsigned char)(last + i * 2);
				p = intern_bytes(&in, data, n);
				CHECK(p && (uintptr_t)p % 8 == 0);
				CHECK_MEM(p, data, n);
				if (round)
					CHECK(p == kept[i][last]);
				kept[i][last] = p;
				data[n - 1] = 0;
			}
	intern_free(&in);
}

static const char *name_of(unsigned i, char *buf, size_t n)
{
	snprintf(buf, n, "frame_%06u", i);
	return buf;
}

TEST(a_hundred_thousand_names)
{
	const char **kept = malloc(NAMES * sizeof *kept);
	struct intern in;
	char name[32];
	size_t memory;

	CHECK(kept);
	intern_init(&in);
	for (unsigned i = 0; i < NAMES; i++) {
		kept[i] = intern_text(&in, name_of(i, name, sizeof name));
		CHECK_STR(kept[i], name);
	}
	memory = intern_memory(&in);
	for (unsigned i = 0; i < NAMES; i++)
		CHECK(intern_text(&in, name_of(i, name, sizeof name)) ==
		      kept[i]);
	CHECK_EQ_U(intern_memory(&in), memory);
	/* 13 bytes each, 16 of header, 3 to the next 8, 10.5 of table. */
	CHECK(memory < NAMES * (size_t)44);
	intern_free(&in);
	free(kept);
}

struct job {
	struct intern *in;
	const char *kept[5000];
};
static void *intern_all(void *arg)
{
	struct job *j = arg;
	char name[32];

	for (unsigned i = 0; i < 5000; i++)
		j->kept[i] = intern_text(j->in, name_of(i, name, sizeof name));
	return NULL;
}

TEST(threads_agree)
{
	static struct job jobs[4];
	struct intern in;
	pthread_t t[4];

	intern_init(&in);
	for (unsigned i = 0; i < 4; i++) {
		jobs[i].in = &in;
		CHECK(!pthread_create(&t[i], NULL, intern_all, &jobs[i]));
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	for (unsigned i = 0; i < 5000; i++)
		for (unsigned k = 1; k < 4; k++)
			CHECK(jobs[k].kept[i] == jobs[0].kept[i]);
	CHECK_EQ_U(in.entries, 5000);
	intern_free(&in);
}

int main(void)
{
	RUN(equal_bytes_have_one_address);
	RUN(nothing_is_something_too);
	RUN(every_length);
	RUN(a_hundred_thousand_names);
	RUN(threads_agree);
	return test_done();
}
