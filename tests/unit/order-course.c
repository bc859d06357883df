/* SPDX-License-Identifier: BSD-2-Clause */
/* course: simulated readers with workers, a kernel that forgets, a cache of chunks. */
/*
 * A DataLoader deals batches out to workers, two each at a time.  A sample is read from
 * the kernel, if it has it, without a word; else from what the course keeps; else a
 * worker waits.
 */
#include <stdlib.h>

#include "readahead/order/course.h"
#include "test.h"

#define SAMPLES_MAX 40000
#define CHUNKS_MAX 4096
#define SIZE 100

/* ---- the machine --------------------------------------------------------- */

struct sim {
	struct order o;
	struct course *c;
	uint32_t *order;
	unsigned per_chunk, forgets; /* of 100 that were handed over */
	unsigned reads_after;        /* the kernel has what was read */
	uint32_t room;               /* samples that it has; 0: all */
	uint32_t oldest[SAMPLES_MAX], n_oldest;
	unsigned cache; /* chunks; those used last */
	unsigned n_cached;
	uint64_t cached[CHUNKS_MAX];
	bool known[SAMPLES_MAX];   /* by the kernel */
	uint8_t kept[SAMPLES_MAX]; /* at so many positions */
	uint64_t n_kept, kept_most;
	uint64_t steps; /* made ready after each read */
	/* Or as much as a reader's time allows; a decoded chunk takes so long. */
	int64_t decoding, time;
	bool unknown; /* the kernel takes nothing */
	/* What happened. */
	uint64_t reads, waits, requests, decoded, ready;
};
static struct sim sim;

static uint64_t below(uint64_t n)
{
	return test_random() % n;
}

static void decode(uint64_t chunk)
{
	unsigned i = 0;

	while (i < sim.n_cached && sim.cached[i] != chunk)
		i++;
	if (i == sim.n_cached) {
		sim.decoded++;
		if (sim.n_cached < sim.cache)
			sim.n_cached++;
		else
			i--;
	}
	memmove(sim.cached + 1, sim.cached, i * sizeof *sim.cached);
	sim.cached[0] = chunk;
}

/* To the kernel, which forgets the oldest one. */
static void give(uint32_t sample)
{
	if (sim.known[sample])
		return;
	sim.known[sample] = true;
	if (!sim.room)
		return;
	if (sim.n_oldest >= sim.room)
		sim.known[sim.oldest[sim.n_oldest % sim.room]] = false;
	sim.oldest[sim.n_oldest++ % sim.room] = sample;
}

static bool file(void *ctx, uint32_t sample, struct course_file *out)
{
	(void)ctx;
	*out = (struct course_file){sample / sim.per_chunk + 1, SIZE};
	return true;
}

static void drop(void *ctx, void *held)
{
	uint8_t *kept = held;

	(void)ctx;
	CHECK(*kept);
	--*kept;
	sim.n_kept--;
}

static const struct course_ops ops = {file, drop};

static void make_ready(void)
{
	struct course_step s;

	for (uint64_t i = 0;
	     i < sim.steps && sim.time >= 0 && course_next(sim.c, &s); i++) {
		uint64_t before = sim.decoded;
		void *kept = NULL;

		CHECK(s.sample < sim.o.n);
		sim.ready++;
		decode(s.sample / sim.per_chunk);
		if (sim.decoding)
			sim.time -= sim.decoded > before ? sim.decoding : 1;
		if (s.keep || sim.unknown) {
			if (sim.n_kept >= sim.kept_most) {
				course_done(sim.c, s.position, COURSE_LATER,
					    NULL);
				return;
			}
			sim.kept[s.sample]++;
			kept = &sim.kept[s.sample];
			sim.n_kept++;
		} else if (!sim.unknown && below(100) >= sim.forgets) {
			give(s.sample);
		}
		course_done(sim.c, s.position,
			    kept ? COURSE_READY : COURSE_SENT, kept);
	}
}

static void read_sample(uint32_t sample)
{
	uint64_t before = sim.decoded;

	sim.reads++;
	if (!sim.known[sample]) {
		sim.requests++;
		if (!sim.kept[sample]) {
			sim.waits++;
			decode(sample / sim.per_chunk);
		}
		course_note(sim.c, sample);
		if (below(2)) /* a large file takes several requests */
			course_note(sim.c, sample);
	}
	if (below(100) < sim.reads_after)
		give(sample);
	else
		sim.known[sample] = false;
	if (sim.decoding)
		sim.time += sim.decoded > before ? sim.decoding : 1;
	make_ready();
}

/* Positions [from, to) of an order, as a DataLoader has it read. */
static void load(const uint32_t *order, uint32_t from, uint32_t to)
{
	uint32_t batch = sim.o.spec.batch, workers = sim.o.spec.workers;
	uint32_t at[64], end[64], b = 0, busy;
	uint32_t n = workers ? workers : 1;

	for (uint32_t w = 0; w < n; w++)
		at[w] = end[w] = 0;
	do {
		busy = 0;
		for (uint32_t w = 0; w < n; w++)
			busy += at[w] < end[w];
		/* In turn; one ahead of the others by a batch at most. */
		while (busy < n && from + b * batch < to) {
			uint32_t w = b % n;

			if (at[w] < end[w])
				break;
			at[w] = from + b * batch;
			end[w] = at[w] + batch < to ? at[w] + batch : to;
			b++;
			busy++;
		}
		if (busy) {
			uint32_t w = (uint32_t)below(n);

			while (at[w] >= end[w])
				w = (w + 1) % n;
			read_sample(order[at[w]++]);
		}
	} while (busy || from + b * batch < to);
}

/* An epoch from a position on; returns the share of its reads that waited, in
 * thousandths, without the first `start` of them. */
static uint64_t epoch(uint32_t e, uint32_t from, uint32_t start)
{
	uint32_t n = sim.o.length;
	uint64_t reads, waits;

	CHECK(order_epoch(&sim.o, e, n, sim.order));
	start = from + start < n ? from + start : n;
	load(sim.order, from, start);
	reads = sim.reads;
	waits = sim.waits;
	load(sim.order, start, n);
	reads = sim.reads - reads;
	return reads ? (sim.waits - waits) * 1000 / reads : 0;
}

static void begin(const char *spec, uint32_t n, unsigned per_chunk,
		  uint32_t window)
{
	struct order_spec s;

	sim = (struct sim){.per_chunk = per_chunk,
			   .cache = 8,
			   .steps = 64,
			   .kept_most = 64};
	CHECK_OK(order_spec_parse(spec, &s, NULL));
	CHECK_OK(order_of_samples(&sim.o, &s, n, NULL));
	sim.c = course_new(&sim.o, (uint64_t)window * SIZE, &ops, NULL);
	sim.order = malloc((sim.o.length + 1) * sizeof *sim.order);
	CHECK(sim.c && sim.order);
}

/* By a kernel that has what was read; with room for all marks. */
static void begin_kept(uint32_t n, uint32_t window)
{
	begin("torch:batch=16:workers=2", n, 50, window);
	sim.reads_after = 100;
	sim.kept_most = 1000;
}

static struct course_state end(void)
{
	struct course_state s;

	course_state(sim.c, &s);
	course_free(sim.c);
	free(sim.order);
	CHECK_EQ_U(sim.n_kept, 0);
	return s;
}

#define AT_MOST(a, most)                                                   \
	do {                                                               \
		uint64_t a_ = (a);                                         \
		if (a_ > (most))                                           \
			test_fail(__FILE__, __LINE__,                      \
				  #a ": %" PRIu64 " is over %" PRIu64, a_, \
				  (uint64_t)(most));                       \
	} while (0)

/* ---- what is asked of it -------------------------------------------------- */

/* Epoch after epoch; each chunk decoded about once for each window. */
TEST(epochs)
{
	begin("torch:batch=16:workers=2", 10000, 50, 2000);
	AT_MOST(epoch(0, 0, 100), 30);
	for (uint32_t e = 1; e < 5; e++) {
		uint64_t decoded = sim.decoded;

		AT_MOST(epoch(e, 0, 0), 30);
		/* 200 chunks; a new one for 2000 - lead positions. */
		AT_MOST(sim.decoded - decoded, 200 * 10000 / 1700 + 400);
	}
	CHECK_EQ_U(end().lost, 0);
}

/* No set_epoch: the first one again and again. */
TEST(the_same_again)
{
	begin("torch:batch=16:workers=4:world=2:rank=1:seed=5", 20000, 50,
	      2000);
	AT_MOST(epoch(0, 0, 100), 30);
	AT_MOST(epoch(0, 0, 300), 30);
	AT_MOST(epoch(0, 0, 0), 20);
	AT_MOST(epoch(0, 0, 0), 20);
	/* Somebody calls it after all. */
	AT_MOST(epoch(1, 0, 300), 30);
	AT_MOST(epoch(2, 0, 0), 20);
	end();
}

TEST(resumes)
{
	begin("torch:batch=16:workers=2:seed=3", 10000, 50, 2000);
	AT_MOST(epoch(7, 4321, 200), 30);
	AT_MOST(epoch(8, 0, 0), 30);
	/* Again from somewhere, after a crash of whoever read. */
	AT_MOST(epoch(8, 7777, 200), 40);
	CHECK_EQ_U(end().epoch, 8);
}

/* Another order: nothing is found, and next to nothing done. */
TEST(a_wrong_order)
{
	struct course_state s;

	begin("torch:batch=16:workers=2:seed=3", 10000, 50, 2000);
	sim.o.spec.seed = 4000000000;
	epoch(0, 0, 0);
	AT_MOST(sim.ready, 0);
	for (uint32_t i = 0; i < 10000; i++)
		sim.order[i] = i;
	load(sim.order, 0, 10000);
	AT_MOST(sim.ready, 0);
	sim.o.spec.seed = 3; /* found in spite of that */
	AT_MOST(epoch(2, 0, 300), 30);
	/* A look at all in turn, in between. */
	for (uint32_t i = 0; i < 10000; i++)
		sim.order[i] = i;
	load(sim.order, 0, 10000);
	AT_MOST(epoch(3, 0, 300), 30);
	s = end();
	CHECK_EQ_U(s.lost, 1);
	CHECK_EQ_U(s.found, 2);
}

/* When it may be said that the order is another one, and when not. */
TEST(another_order)
{
	begin("torch:batch=16:workers=2:seed=3", 10000, 50, 2000);
	sim.o.spec.seed = 4000000000;
	CHECK(order_epoch(&sim.o, 0, sim.o.length, sim.order));
	load(sim.order, 0, 500);
	CHECK(!course_is_another(sim.c));
	load(sim.order, 500, 10000);
	CHECK(course_is_another(sim.c));
	sim.o.spec.seed = 3;
	epoch(2, 0, 300);
	CHECK(!course_is_another(sim.c));
	/* Never again, where it was the order once. */
	sim.o.spec.seed = 4000000000;
	epoch(0, 0, 0);
	epoch(1, 0, 0);
	CHECK(!course_is_another(sim.c));
	end();

	/* A million: not before all were looked through, or an epoch was read. */
	begin("torch:seed=3", 1000000, 50, 2000);
	for (uint32_t i = 0; i < 2000; i++)
		course_note(sim.c, (uint32_t)below(1000000));
	CHECK(!course_is_another(sim.c));
	end();

	/* Too short to tell: all of it is what workers are at. */
	begin("torch:seed=3", 1000, 50, 2000);
	for (uint32_t i = 0; i < 5000; i++)
		read_sample((uint32_t)below(1000));
	CHECK(!course_is_another(sim.c));
	end();
}

/* The right one; also from the middle of a late epoch on. */
TEST(no_other_order)
{
	begin("torch:batch=16:workers=2:seed=3", 10000, 50, 2000);
	for (uint32_t i = 0; i < 10; i++) {
		CHECK(order_epoch(&sim.o, 300, sim.o.length, sim.order));
		load(sim.order, 5000 + i * 100, 5000 + (i + 1) * 100);
		CHECK(!course_is_another(sim.c));
	}
	CHECK_EQ_U(end().found, 1);
}

/* The kernel keeps what was read: it asks for the rest, from time to time. */
TEST(warm)
{
	begin("torch:batch=16:workers=2", 10000, 50, 2000);
	sim.reads_after = 70;
	epoch(0, 0, 0);
	for (uint32_t e = 1; e < 4; e++)
		AT_MOST(epoch(e, 0, 0), 30);
	sim.reads_after = 100;
	epoch(4, 0, 0);
	sim.requests = sim.ready = 0;
	AT_MOST(epoch(5, 0, 0), 0);
	CHECK_EQ_U(sim.requests, 0);
	CHECK_EQ_U(sim.ready, 0);
	end();
}

/* Nothing can be handed over; what is kept has to do. */
TEST(unknown_to_the_kernel)
{
	begin("torch:batch=16:workers=2", 10000, 50, 2000);
	sim.unknown = true;
	sim.kept_most = 600;
	AT_MOST(epoch(0, 0, 100), 50);
	AT_MOST(epoch(1, 0, 0), 50);
	end();
}

/* Readers are faster than what is made ready.  What they have decoded is made use of,
 * so that each chunk is decoded about once: 200 of them. */
TEST(overtaken)
{
	begin("torch:batch=16:workers=2", 10000, 50, 20000);
	sim.decoding = 20;
	sim.kept_most = 1000;
	epoch(0, 0, 0);
	AT_MOST(sim.decoded, 600);
	end();
}

/* Memory is short for a moment, which is over as soon as it is. */
TEST(a_dip)
{
	begin("torch:batch=16:workers=2", 10000, 50, 20000);
	sim.decoding = 20;
	sim.kept_most = 1000;
	CHECK(order_epoch(&sim.o, 0, sim.o.length, sim.order));
	load(sim.order, 0, 500);
	course_limit(sim.c, 400 * SIZE, 0);
	load(sim.order, 500, 520);
	course_limit(sim.c, 20000 * SIZE, 0);
	load(sim.order, 520, 10000);
	AT_MOST(sim.decoded, 700);
	end();
}

/* What the kernel has lost shows within some reads, wherever in an epoch. */
TEST(lost_in_the_middle)
{
	begin_kept(20000, 40000);
	epoch(0, 0, 0);
	for (unsigned i = 0; i < 20000; i += 20)
		sim.known[i] = false;
	CHECK(order_epoch(&sim.o, 1, sim.o.length, sim.order));
	load(sim.order, 0, 12000);
	memset(sim.known, 0, sizeof sim.known);
	sim.ready = 0;
	load(sim.order, 12000, 12500);
	CHECK(sim.ready > 1000);
	end();
}

/* Epochs that are left early, and all of it is lost after each. */
TEST(left_early)
{
	begin_kept(4000, 8000);
	for (uint32_t e = 0; e < 16; e++) {
		CHECK(order_epoch(&sim.o, e, sim.o.length, sim.order));
		sim.waits = 0;
		load(sim.order, 0, 3000);
		if (e)
			AT_MOST(sim.waits, 200);
		memset(sim.known, 0, sizeof sim.known);
	}
	end();
}

/* Memory is short for a moment, in which something is lost: later on that is over. */
TEST(a_dip_with_losses)
{
	uint64_t decoded;

	begin("torch:batch=16:workers=2", 20000, 50, 16000);
	sim.kept_most = 1000;
	CHECK(order_epoch(&sim.o, 0, sim.o.length, sim.order));
	load(sim.order, 0, 2000);
	course_limit(sim.c, 2000 * SIZE, 0);
	for (unsigned i = 0; i < 2; i++) {
		memset(sim.known, 0, sizeof sim.known);
		load(sim.order, 2000 + i * 500, 2500 + i * 500);
	}
	course_limit(sim.c, 16000 * SIZE, 0);
	load(sim.order, 3000, 20000);
	decoded = sim.decoded;
	epoch(1, 0, 0);
	AT_MOST(sim.decoded - decoded, 2000);
	end();
}

/* A list of few names, each of them very often. */
TEST(few_names)
{
	static uint32_t list[40000];

	begin("torch", 10, 5, 1000);
	course_free(sim.c);
	for (uint32_t i = 0; i < 40000; i++)
		list[i] = (uint32_t)below(10);
	CHECK_OK(order_of_list(&sim.o, list, 40000, NULL));
	sim.c = course_new(&sim.o, (uint64_t)100000 * SIZE, &ops, NULL);
	CHECK(sim.c);
	for (uint32_t i = 0; i < 40000; i++)
		read_sample(list[i]);
	CHECK_EQ_U(end().found, 1);
}

/* The kernel has all of it after an epoch, which is not decoded for the next one; what
 * it loses is made ready again. */
TEST(all_of_it)
{
	uint64_t decoded;

	begin_kept(10000, 20000);
	epoch(0, 2000, 0); /* begins in the middle of it */
	AT_MOST(sim.ready, 8500);
	for (uint32_t e = 1; e < 4; e++) {
		sim.ready = 0;
		AT_MOST(epoch(e, 0, 100), 10);
		AT_MOST(sim.ready, e > 1 ? 0 : 2200);
	}
	for (unsigned i = 0; i < 10000; i += 100)
		sim.known[i] = false;
	sim.ready = sim.waits = 0;
	epoch(4, 0, 0);
	AT_MOST(sim.waits, 100);
	/* By chance some of them may be near each other, as if all of it was lost. */
	AT_MOST(sim.ready, 100);
	memset(sim.known, 0, sizeof sim.known);
	decoded = sim.decoded;
	sim.waits = 0;
	epoch(5, 0, 0);
	AT_MOST(sim.waits, 200);
	AT_MOST(sim.decoded - decoded, 800);
	end();
}

/* There seems to be memory for all of it, and the kernel loses it before it is read. */
TEST(lost_on_the_way)
{
	begin_kept(10000, 20000);
	sim.room = 3000;
	epoch(0, 0, 0);
	for (uint32_t e = 1; e < 8; e++)
		AT_MOST(epoch(e, 0, 0), 150);
	CHECK_EQ_U(end().lost, 0);
}

/* Another size of the window: less is kept at once, and all of it is not given up. */
TEST(another_size)
{
	begin("torch:batch=16:workers=2", 10000, 50, 8000);
	sim.unknown = true;
	sim.kept_most = 600;
	AT_MOST(epoch(0, 0, 100), 700);
	course_limit(sim.c, 600 * SIZE, 0);
	sim.waits = 0;
	AT_MOST(epoch(1, 0, 5000), 50);
	end();
}

/* Somebody else reads at random, too. */
TEST(noise)
{
	struct course_state s;

	begin("torch:batch=16:workers=2", 10000, 50, 2000);
	CHECK(order_epoch(&sim.o, 0, sim.o.length, sim.order));
	for (uint32_t i = 0; i < 10000; i++) {
		read_sample(sim.order[i]);
		if (i % 8 == 0) {
			uint32_t other = (uint32_t)below(10000);

			if (!sim.known[other])
				course_note(sim.c, other);
		}
		course_state(sim.c, &s);
		if (i >= 500)
			CHECK(s.position + 300 > i && s.position < i + 1000);
		if (i == 500)
			sim.waits = 0;
	}
	AT_MOST(sim.waits, 300);
	CHECK_EQ_U(end().lost, 0);
}

/* Any sizes: it never breaks, and ends with readers where they are expected. */
TEST(any)
{
	for (unsigned round = 0; round < test_rounds(150); round++) {
		uint32_t n = 1 + (uint32_t)below(round % 10 ? 300 : 3000);
		uint32_t world = 1 + (uint32_t)below(3),
			 e = (uint32_t)below(20);
		char spec[160];

		snprintf(spec, sizeof spec,
			 "torch:seed=%u:world=%u:rank=%u:batch=%u:workers=%u%s%"
			 "s",
			 (unsigned)below(100), world, (unsigned)below(world),
			 1 + (unsigned)below(40), (unsigned)below(5),
			 below(2) ? ":drop_last" : "",
			 below(8) ? "" : ":no-shuffle");
		begin(spec, n, 1 + (unsigned)below(40),
		      1 + (uint32_t)below(500));
		sim.steps = 1 + below(50);
		sim.forgets = (unsigned)below(2) * (unsigned)below(100);
		sim.reads_after = (unsigned)below(2) * (unsigned)below(101);
		sim.unknown = below(4) == 0;
		sim.kept_most = below(64);
		for (unsigned k = 0; k < 6; k++) {
			uint32_t length = sim.o.length;

			epoch(e,
			      below(3) || !length ? 0 : (uint32_t)below(length),
			      0);
			if (below(4))
				e++;
			for (uint64_t i = below(3) ? 0 : below(100); i; i--)
				read_sample((uint32_t)below(n));
		}
		end();
	}
}

int main(void)
{
	RUN(epochs);
	RUN(the_same_again);
	RUN(resumes);
	RUN(a_wrong_order);
	RUN(another_order);
	RUN(no_other_order);
	RUN(warm);
	RUN(unknown_to_the_kernel);
	RUN(overtaken);
	RUN(a_dip);
	RUN(lost_in_the_middle);
	RUN(left_early);
	RUN(a_dip_with_losses);
	RUN(few_names);
	RUN(all_of_it);
	RUN(lost_on_the_way);
	RUN(another_size);
	RUN(noise);
	RUN(any);
	return test_done();
}
