/* SPDX-License-Identifier: BSD-2-Clause */
/* The message of array.h5 and merged.h5: whole ones are read, all others refused. */
#include <errno.h>

#include "views/monolith.h"
#include "test.h"

#define NOTES "/x: left out\n"

struct message {
	unsigned char bytes[3 * MONOLITH_PAGE];
	size_t n;
};

static void put(struct message *m, const void *data, size_t n)
{
	memcpy(m->bytes + m->n, data, n);
	m->n += n;
}

/* Two pages of front, and `n` of these parts. */
static void make(struct message *m, const struct monolith_part *parts,
		 uint64_t n, uint64_t size)
{
	const struct monolith_tail tail = {.front = 2 * MONOLITH_PAGE,
					   .size = size,
					   .notes = strlen(NOTES),
					   .nparts = n};

	memset(m, 0, sizeof *m);
	m->n = 2 * MONOLITH_PAGE;
	put(m, NOTES, strlen(NOTES));
	put(m, parts, n * sizeof *parts);
	put(m, &tail, sizeof tail);
}

static const struct monolith_part good[] = {
	{8192, 1}, {12288, 4097}, {20480, UINT64_C(1) << 50}};
#define GOOD_SIZE (20480 + (UINT64_C(1) << 50))

static int try(const struct message *m, struct monolith *out)
{
	struct error err = {0};

	return monolith_read(m->bytes, m->n, out, &err);
}

TEST(whole_ones_are_read)
{
	struct monolith is;
	struct message m;

	make(&m, good, 3, GOOD_SIZE);
	CHECK_EQ_I(try(&m, &is), 0);
	CHECK_EQ_U(is.tail.nparts, 3);
	CHECK_EQ_U(monolith_part_at(&is, 1).at, 12288);
	CHECK_EQ_U(monolith_part_at(&is, 2).bytes, UINT64_C(1) << 50);
	CHECK_EQ_U(is.tail.notes, strlen(NOTES));
	CHECK_EQ_I(memcmp(is.notes, NOTES, strlen(NOTES)), 0);
	make(&m, good, 0, 8192);
	CHECK_EQ_I(try(&m, &is), 0);
}

TEST(parts_that_make_no_sense)
{
	static const struct {
		struct monolith_part parts[2];
		uint64_t n, size;
	} bad[] = {{{{8192, 1}}, 1, 8192},   /* it ends before */
		   {{{8192, 1}}, 1, 8194},   /* and behind its parts */
		   {{{12288, 1}}, 1, 12289}, /* not behind the front */
		   {{{4096, 1}}, 1, 4097},   /* in it */
		   {{{8193, 1}}, 1, 8194},   /* on no page */
		   {{{8192, 0}}, 1, 8192},   /* nothing */
		   {{{8192, 5000}, {12288, 1}}, 2, 12289}, /* they overlap */
		   {{{8192, 1}, {8192, 1}}, 2, 8193},
		   {{{12288, 1}, {8192, 1}}, 2, 8193},
		   {{{8192, UINT64_MAX - 8192}}, 1, UINT64_MAX},
		   {{{8192, UINT64_MAX}}, 1, 8191},
		   {{{0}}, 0, 8191}};
	struct monolith is;
	struct message m;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		make(&m, bad[i].parts, bad[i].n, bad[i].size);
		CHECK_EQ_I(try(&m, &is), -EIO);
	}
}

TEST(lengths_that_do_not_add_up)
{
	struct monolith_tail tail;
	struct monolith is;
	struct message m, cut;

	make(&m, good, 3, GOOD_SIZE);
	for (size_t n = 0; n < m.n; n += 1 + n / 7) {
		cut = m;
		cut.n = n;
		CHECK_EQ_I(try(&cut, &is), -EIO);
	}
	for (int i = 0; i < 4; i++) {
		cut = m;
		memcpy(&tail, cut.bytes + cut.n - sizeof tail, sizeof tail);
		*(i == 0   ? &tail.front
		  : i == 1 ? &tail.notes
			   : &tail.nparts) =
			i < 3 ? UINT64_MAX - 7 : UINT64_C(1) << 60;
		memcpy(cut.bytes + cut.n - sizeof tail, &tail, sizeof tail);
		CHECK_EQ_I(try(&cut, &is), -EIO);
	}
}

int main(void)
{
	RUN(whole_ones_are_read);
	RUN(parts_that_make_no_sense);
	RUN(lengths_that_do_not_add_up);
	return test_done();
}
