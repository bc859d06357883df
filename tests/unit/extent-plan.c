/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans: what merges, what is clamped, what a full plan refuses. */
#include "extent/plan.h"
#include "test.h"

static const unsigned char pattern[4] = {1, 2, 3, 4};
static const struct fill fill4 = {pattern, 4};

TEST(neighbours_in_a_file_merge)
{
	struct plan p;

	plan_init(&p, 100);
	CHECK_EQ_U(plan_file(&p, 3, 1000, 10), 10);
	CHECK_EQ_U(plan_file(&p, 3, 1010, 20), 20);
	CHECK_EQ_U(p.n, 1);
	CHECK_EQ_U(p.ext[0].len, 30);
	CHECK_EQ_U(plan_file(&p, 3, 1031, 5), 5); /* a gap */
	CHECK_EQ_U(plan_file(&p, 4, 1036, 5), 5); /* another file */
	CHECK_EQ_U(plan_file(&p, 4, 1036, 5), 5); /* the same again */
	CHECK_EQ_U(p.n, 4);
	CHECK_EQ_U(p.have, 45);
	CHECK(plan_open(&p));
}

TEST(neighbours_in_a_chunk_merge)
{
	struct chunk_set a = {NULL, 1, 0, false}, b = {NULL, 2, 0, false};
	struct plan p;

	plan_init(&p, 100);
	plan_chunk(&p, &a, 7, 0, 10);
	plan_chunk(&p, &a, 7, 10, 10);
	CHECK_EQ_U(p.n, 1);
	plan_chunk(&p, &a, 8, 20, 1);    /* another chunk */
	plan_chunk(&p, &b, 8, 21, 1);    /* another set */
	plan_slice(&p, &b, 8, 0, 22, 1); /* a slice, not the whole */
	CHECK_EQ_U(p.n, 4);
	plan_slice(&p, &b, 8, 0, 23, 1);
	CHECK_EQ_U(p.n, 4);
	plan_slice(&p, &b, 8, 1, 24, 1);
	CHECK_EQ_U(p.n, 5);
	CHECK_EQ_U(p.ext[3].len, 2);
	CHECK_EQ_U(p.ext[1].u.chunk.slice, EXTENT_WHOLE);
}

TEST(fills_merge_where_the_phase_goes_on)
{
	static const struct fill zeros = {NULL, 1};
	struct plan p;

	plan_init(&p, 100);
	plan_fill(&p, fill4, 2, 3); /* phases 2 3 0 */
	plan_fill(&p, fill4, 5, 4); /* goes on at 1 */
	CHECK_EQ_U(p.n, 1);
	CHECK_EQ_U(p.ext[0].len, 7);
	CHECK_EQ_U(p.ext[0].u.fill.phase, 2);
	plan_fill(&p, fill4, 0, 4); /* 1 would go on */
	CHECK_EQ_U(p.n, 2);
	plan_fill(&p, zeros, 17, 5);
	plan_fill(&p, zeros, 3, 5);
	CHECK_EQ_U(p.n, 3);
	plan_fill(&p, (struct fill){NULL, 0}, 3, 5); /* not a division by 0 */
	CHECK_EQ_U(p.n, 3);
}

TEST(the_window_clamps)
{
	struct plan p;

	plan_init(&p, 15);
	CHECK_EQ_U(plan_file(&p, 0, 0, 10), 10);
	CHECK_EQ_U(plan_fill(&p, fill4, 0, 0), 0);
	CHECK_EQ_U(plan_file(&p, 0, 10, UINT64_MAX), 5);
	CHECK(!plan_open(&p));
	CHECK_EQ_U(plan_file(&p, 0, 15, 1), 0);
	CHECK_EQ_U(plan_copy(&p, "x", 1), 0);
	CHECK_EQ_U(p.have, 15);
	CHECK_EQ_U(p.n, 1);
}

/* What would merge must not slip in behind something that was refused. */
TEST(a_full_list_stays_full)
{
	struct plan p;
	unsigned i;

	plan_init(&p, 1000);
	for (i = 0; i < PLAN_MAX; i++)
		CHECK_EQ_U(plan_file(&p, i, 0, 1), 1);
	CHECK(!plan_open(&p));
	CHECK_EQ_U(plan_file(&p, PLAN_MAX - 1, 1, 4), 4); /* merges */
	CHECK_EQ_U(plan_fill(&p, fill4, 0, 4), 0);
	CHECK_EQ_U(plan_file(&p, PLAN_MAX - 1, 5, 4), 0);
	CHECK_EQ_U(p.have, PLAN_MAX + 4);
	CHECK_EQ_U(p.n, PLAN_MAX);
}

TEST(copies_go_to_scratch)
{
	char big[PLAN_SCRATCH + 50];
	struct plan p;

	memset(big, 'b', sizeof big);
	plan_init(&p, 2 * PLAN_SCRATCH);
	CHECK_EQ_U(plan_copy(&p, "head", 4), 4);
	CHECK_EQ_U(plan_copy(&p, "er", 2), 2);
	CHECK_EQ_U(p.n, 1);
	CHECK_MEM(p.ext[0].u.mem.data, "header", 6);
	plan_file(&p, 0, 0, 1);
	CHECK_EQ_U(plan_copy(&p, big, sizeof big), PLAN_SCRATCH - 6);
	CHECK(!plan_open(&p));
	CHECK_EQ_U(plan_file(&p, 0, 1, 1), 0); /* bytes are missing before it */
	CHECK_EQ_U(p.have, PLAN_SCRATCH + 1);
	CHECK_MEM(p.ext[2].u.mem.data, big, PLAN_SCRATCH - 6);
}

TEST(memory_is_borrowed)
{
	static const char text[] = "a long description";
	struct plan p;

	plan_init(&p, 100);
	CHECK_EQ_U(plan_copy(&p, "ab", 2), 2);
	CHECK_EQ_U(plan_mem(&p, text, 6), 6);
	CHECK_EQ_U(plan_mem(&p, text + 6, 5), 5); /* goes on */
	CHECK_EQ_U(p.n, 2);
	CHECK(p.ext[1].u.mem.data == text);
	CHECK_EQ_U(p.ext[1].len, 11);
	CHECK_EQ_U(plan_mem(&p, text, 2), 2); /* does not */
	CHECK_EQ_U(plan_copy(&p, "cd", 2), 2);
	CHECK_EQ_U(p.n, 4);
	CHECK_MEM(p.ext[3].u.mem.data, "cd", 2);
	CHECK_EQ_U(p.scratch_used, 4);
	CHECK_EQ_U(plan_mem(&p, text, 0), 0);
	CHECK_EQ_U(p.have, 17);
	p.want = 20;
	CHECK_EQ_U(plan_mem(&p, text, 18), 3); /* the window's end */
	CHECK(!plan_open(&p));
}

TEST(memory_needs_room_in_the_list)
{
	static const char text[2 * PLAN_MAX];
	struct plan p;

	plan_init(&p, 1000);
	for (unsigned i = 0; i < PLAN_MAX; i++)
		CHECK_EQ_U(plan_mem(&p, text + 2 * i, 1), 1);
	CHECK_EQ_U(plan_mem(&p, text, 1), 0);
	CHECK_EQ_U(plan_mem(&p, text + 2 * PLAN_MAX - 1, 1), 0);
	CHECK_EQ_U(p.have, PLAN_MAX);
}

TEST(a_band_is_whole_or_refused)
{
	struct chunk_set set = {NULL, 7, 0, false};
	static const struct strip strips[] = {{1, 8, 4}, {2, 0, 6}};
	struct plan p;

	plan_init(&p, 100);
	CHECK_EQ_U(plan_chunk(&p, &set, 1, 4, 4), 4);
	CHECK_EQ_U(plan_strips(&p, &set, strips, 2, 5, 16), 50);
	CHECK(p.has_strips);
	CHECK_EQ_U(p.n, 3);
	CHECK_EQ_U(p.have, 54);
	CHECK_EQ_U(p.ext[1].len, 4);
	CHECK_EQ_U(extent_bytes(&p.ext[1]), 20);
	CHECK_EQ_U(p.ext[2].u.chunk.step, 16);
	CHECK_EQ_U(p.ext[2].u.chunk.pitch, 10);
	/* Nothing merges with a strip. */
	CHECK_EQ_U(plan_chunk(&p, &set, 2, 6, 1), 1);
	CHECK_EQ_U(p.n, 4);
	CHECK_EQ_U(plan_strips(&p, &set, strips, 2, 5, 16), 0);
	CHECK(!plan_open(&p));
	CHECK_EQ_U(plan_chunk(&p, &set, 9, 0, 1), 0);

	plan_init(&p, 1000);
	while (p.n < PLAN_MAX - 1)
		CHECK_EQ_U(plan_chunk(&p, &set, p.n, 0, 1), 1);
	CHECK_EQ_U(plan_strips(&p, &set, strips, 2, 2, 16), 0);
	CHECK_EQ_U(p.n, PLAN_MAX - 1);
	CHECK_EQ_U(plan_chunk(&p, &set, 9, 0, 1), 0);
}

TEST(plans_can_be_read)
{
	struct chunk_set a = {NULL, 9, 0, false};
	char *text;
	size_t len;
	struct plan p;
	FILE *f;

	plan_init(&p, 1000);
	plan_copy(&p, "abc", 3);
	plan_file(&p, 2, 4096, 100);
	plan_chunk(&p, &a, 5, 16, 200);
	plan_slice(&p, &a, 5, 1, 0, 7);
	plan_fill(&p, fill4, 6, 8);
	f = open_memstream(&text, &len);
	CHECK(f);
	plan_print(&p, NULL, f);
	fclose(f);
	CHECK_STR(text, "0 +3 memory\n"
			"3 +100 file 2 at 4096\n"
			"103 +200 chunk 5 of set 9 from 16\n"
			"303 +7 chunk 5 of set 9 slice 1 from 0\n"
			"310 +8 fill of 4 bytes from 2\n");
	free(text);
}

/* Random appends against a naive list of single bytes. */
TEST(random_plans_describe_each_byte)
{
	struct chunk_set set = {NULL, 1, 0, false};
	unsigned round, seed = 1;

	for (round = 0; round < 3000; round++) {
		uint64_t naive[512], n = 0, want = rand_r(&seed) % 400, i, at;
		struct plan p;
		unsigned x;

		plan_init(&p, want);
		while (plan_open(&p)) {
			uint64_t len = 1 + rand_r(&seed) % 9, took;
			uint64_t pos = n + rand_r(&seed) % 2 * 1000;

			if (rand_r(&seed) % 2)
				took = plan_file(&p, 1, pos, len);
			else
				took = plan_chunk(&p, &set, 1, pos, len);
			x = p.ext[p.n - 1].kind == EXTENT_CHUNK;
			for (i = 0; i < took; i++)
				naive[n++] = (pos + i) << 1 | x;
		}
		CHECK(n <= want && n == p.have);
		for (at = 0, x = 0; x < p.n; x++)
			for (i = 0; i < p.ext[x].len; i++, at++)
				CHECK_EQ_U(p.ext[x].kind == EXTENT_CHUNK
						   ? (p.ext[x].u.chunk.skip + i)
								     << 1 |
							     1
						   : (p.ext[x].u.file.pos + i)
							     << 1,
					   naive[at]);
		CHECK_EQ_U(at, n);
	}
}

int main(void)
{
	RUN(neighbours_in_a_file_merge);
	RUN(neighbours_in_a_chunk_merge);
	RUN(fills_merge_where_the_phase_goes_on);
	RUN(the_window_clamps);
	RUN(a_full_list_stays_full);
	RUN(copies_go_to_scratch);
	RUN(memory_is_borrowed);
	RUN(memory_needs_room_in_the_list);
	RUN(a_band_is_whole_or_refused);
	RUN(plans_can_be_read);
	RUN(random_plans_describe_each_byte);
	return test_done();
}
