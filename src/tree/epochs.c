/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories of the samples that one rank reads, computed from their paths. */

/*
 * A directory is its path, "3/rank-0-of-4,drop-last/from/100".  The path is parsed at
 * each call, which takes less time than the call from the kernel itself.  The expensive
 * part is the order of an epoch; it is made once, when a sample is asked for, and
 * shared by all ranks.  One order is made at a time, because all ranks ask for the same
 * one when an epoch begins.
 */
#include "tree/epochs.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/lookups.h"
#include "base/number.h"
#include "base/sampler.h"
#include "base/shuffle.h"

#define WORLD_MAX (UINT64_C(1) << 20)
#define WIDTH_MIN 6
#define FROM "from"

/* The order of the samples in one epoch.  `holders` counts its users and the struct
 * epochs that keeps it. */
struct order {
	_Atomic unsigned holders;
	uint32_t seed;
	uint32_t at[];
};
struct epochs {
	uint64_t n;
	_Atomic(struct lookups *) paths;
	/* Held while an order is made; taken before `lock`. */
	pthread_mutex_t making;
	pthread_mutex_t lock; /* guards `kept` */
	unsigned room;        /* number of orders that `kept` may have */
	/* The one that was used last comes first; the last ones may be NULL. */
	struct order *kept[EPOCHS_KEPT_MAX];
};

struct epochs *epochs_new(uint64_t n)
{
	struct epochs *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	e->n = n;
	e->room = (unsigned)max_u64(
		min_u64(EPOCHS_KEPT_BYTES / 4 / n, EPOCHS_KEPT_MAX), 2);
	pthread_mutex_init(&e->making, NULL);
	pthread_mutex_init(&e->lock, NULL);
	return e;
}

static void order_put(struct order *o)
{
	if (o && atomic_fetch_sub(&o->holders, 1) == 1)
		free(o);
}

void epochs_free(struct epochs *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->room; i++)
		order_put(e->kept[i]);
	lookups_free(atomic_load(&e->paths));
	pthread_mutex_destroy(&e->lock);
	pthread_mutex_destroy(&e->making);
	free(e);
}

/* ---- orders -------------------------------------------------------------- */

static struct order *order_make(uint64_t n, uint32_t seed)
{
	struct order *o = malloc(sizeof *o + n * sizeof *o->at);

	if (!o)
		return NULL;
	shuffle_order_32(o->at, (uint32_t)n, seed); /* EPOCHS_SAMPLES_MAX */
	o->seed = seed;
	atomic_init(&o->holders, 1);
	return o;
}

/* Return the order for `seed` if it is kept, with a reference for the caller; it is
 * then the one used last. */
static struct order *order_kept(struct epochs *e, uint32_t seed)
{
	lock_scope(&e->lock);
	for (unsigned i = 0; i < e->room; i++) {
		struct order *o = e->kept[i];

		if (!o || o->seed != seed)
			continue;
		memmove(e->kept + 1, e->kept, i * sizeof *e->kept);
		e->kept[0] = o;
		atomic_fetch_add(&o->holders, 1);
		return o;
	}
	return NULL;
}

/* Keep an order as the one used last, and drop the one that was not used for longest. */
static void order_keep(struct epochs *e, struct order *o)
{
	struct order *last;

	atomic_fetch_add(&o->holders, 1);
	pthread_mutex_lock(&e->lock);
	last = e->kept[e->room - 1];
	memmove(e->kept + 1, e->kept, (e->room - 1) * sizeof *e->kept);
	e->kept[0] = o;
	pthread_mutex_unlock(&e->lock);
	order_put(last);
}

static struct order *order_get(struct epochs *e, uint32_t seed)
{
	struct order *o = order_kept(e, seed);

	if (o)
		return o;
	lock_scope(&e->making);
	o = order_kept(e, seed); /* another thread may have made it */
	if (o)
		return o;
	o = order_make(e->n, seed);
	if (o)
		order_keep(e, o);
	return o;
}

/* ---- paths --------------------------------------------------------------- */

enum depth { DEPTH_TOP, DEPTH_EPOCH, DEPTH_RANK, DEPTH_FROM, DEPTH_FROM_K };
/* What the path of a directory says. */
struct place {
	enum depth depth;
	uint64_t epoch, rank, world, seed, worker, workers, batch, from;
	bool drop_last, no_shuffle, in_turn;
};

/* Parse a number of at most `most`, without leading zeros, and move *s behind it. */
static bool parse_place_number(const char **s, uint64_t most, uint64_t *out)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		if (mul_overflows(v, 10, &v) ||
		    add_overflows(v, (uint64_t)(*p - '0'), &v) || v > most)
			return false;
	*s = p;
	*out = v;
	return true;
}

static bool parse_place_word(const char **s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*s, word, n))
		return false;
	*s += n;
	return true;
}

/* Parse "A-of-B" with A < B. */
static bool parse_place_part(const char **s, uint64_t *a, uint64_t *b)
{
	return parse_place_number(s, WORLD_MAX, a) &&
	       parse_place_word(s, "-of-") &&
	       parse_place_number(s, WORLD_MAX, b) && *a < *b;
}

/* Parse an option that has no value.  It may stand once, so that a directory has one
 * name for each order of options. */
static bool parse_place_flag(const char **s, const char *word, bool *flag)
{
	return !*flag && parse_place_word(s, word) && (*flag = true);
}

static bool parse_place_option(const char **s, struct place *p, unsigned *seen)
{
	enum { SEED = 1, WORKER = 2, BATCH = 4 };

	if (parse_place_flag(s, "drop-last", &p->drop_last) ||
	    parse_place_flag(s, "drop_last", &p->drop_last) ||
	    parse_place_flag(s, "no-shuffle", &p->no_shuffle) ||
	    parse_place_flag(s, "no_shuffle", &p->no_shuffle) ||
	    parse_place_flag(s, "in-turn", &p->in_turn) ||
	    parse_place_flag(s, "in_turn", &p->in_turn))
		return true;
	if (!(*seen & SEED) && parse_place_word(s, "seed=")) {
		*seen |= SEED;
		return parse_place_number(s, UINT64_MAX, &p->seed);
	}
	if (!(*seen & WORKER) && parse_place_word(s, "worker-")) {
		*seen |= WORKER;
		return parse_place_part(s, &p->worker, &p->workers);
	}
	*seen |= BATCH;
	return parse_place_word(s, "batch=") &&
	       parse_place_number(s, UINT32_MAX, &p->batch) && p->batch;
}

/* Parse "rank-R-of-W" and its options, up to the end or '/'. */
static bool parse_place_rank(const char **s, struct place *p)
{
	unsigned seen = 0;

	p->workers = p->batch = 1;
	if (!parse_place_word(s, "rank-") ||
	    !parse_place_part(s, &p->rank, &p->world))
		return false;
	while (parse_place_word(s, ","))
		if (!parse_place_option(s, p, &seen))
			return false;
	return !(p->drop_last && p->in_turn);
}

static bool place_parse(const char *s, struct place *p)
{
	*p = (struct place){.depth = DEPTH_EPOCH};
	if (!parse_place_number(&s, UINT32_MAX, &p->epoch))
		return false;
	if (parse_place_word(&s, "/")) {
		p->depth = DEPTH_RANK;
		if (!parse_place_rank(&s, p))
			return false;
	}
	if (p->depth == DEPTH_RANK && parse_place_word(&s, "/" FROM)) {
		p->depth = DEPTH_FROM;
		if (parse_place_word(&s, "/")) {
			p->depth = DEPTH_FROM_K;
			if (!parse_place_number(&s, UINT64_MAX, &p->from))
				return false;
		}
	}
	return !*s;
}

/* Set *p to what the path of a directory says.  Returns false if there is no such
 * number. */
static bool place_of_directory(struct epochs *e, uint32_t dir, struct place *p)
{
	char path[LOOKUPS_NAME_MAX];

	*p = (struct place){.depth = DEPTH_TOP};
	return dir == EPOCHS_TOP ||
	       (lookups_name(atomic_load(&e->paths), dir, path) &&
		place_parse(path, p));
}

/* ---- which samples ------------------------------------------------------- */

static struct sampler place_sampler(const struct epochs *e,
				    const struct place *p)
{
	return (struct sampler){.n = e->n,
				.world = p->world,
				.rank = p->rank,
				.drop_last = p->drop_last,
				.in_turn = p->in_turn};
}

/* Return the number of samples of one worker. */
static uint64_t worker_samples(const struct epochs *e, const struct place *p)
{
	struct sampler s = place_sampler(e, p);
	uint64_t n = sampler_count(&s), round = p->batch * p->workers;
	uint64_t before = p->batch * p->worker, rest = n % round;

	return n / round * p->batch +
	       (rest > before ? min_u64(rest - before, p->batch) : 0);
}

/* Return the index, in the order of all samples, of the worker's sample k. */
static uint64_t worker_place_in_order(const struct epochs *e,
				      const struct place *p, uint64_t k)
{
	uint64_t batch = k / p->batch * p->workers + p->worker;
	struct sampler s = place_sampler(e, p);

	return sampler_place(&s, batch * p->batch + k % p->batch);
}

static int worker_sample(struct epochs *e, const struct place *p, uint64_t k,
			 uint64_t *sample)
{
	struct order *o;

	*sample = worker_place_in_order(e, p, k);
	if (p->no_shuffle)
		return 0;
	o = order_get(e, (uint32_t)(p->seed + p->epoch));
	if (!o)
		return -ENOMEM;
	*sample = o->at[*sample];
	order_put(o);
	return 0;
}

/* ---- entries ------------------------------------------------------------- */

static bool place_has_samples(const struct place *p)
{
	return p->depth == DEPTH_RANK || p->depth == DEPTH_FROM_K;
}

uint64_t epochs_count(struct epochs *e, uint32_t dir)
{
	struct place p;
	uint64_t n;

	if (!place_of_directory(e, dir, &p) || !place_has_samples(&p))
		return 0;
	n = worker_samples(e, &p);
	return n - min_u64(n, p.from);
}

bool epochs_endless(struct epochs *e, uint32_t dir)
{
	struct place p;

	return place_of_directory(e, dir, &p) && !place_has_samples(&p);
}

static unsigned epochs_name_width(uint64_t n)
{
	unsigned width = digits_of(n ? n - 1 : 0);

	return width < WIDTH_MIN ? WIDTH_MIN : width;
}

int epochs_entry(struct epochs *e, uint32_t dir, uint64_t i, const char *suffix,
		 uint64_t *sample, char *buf, size_t n)
{
	struct place p;
	uint64_t all;

	if (!place_of_directory(e, dir, &p) || !place_has_samples(&p))
		return -ENOENT;
	all = worker_samples(e, &p);
	if (p.from > all || i >= all - p.from)
		return -ENOENT;
	i += p.from;
	if (buf)
		snprintf(buf, n, "%0*" PRIu64 "%s", (int)epochs_name_width(all),
			 i, suffix);
	return worker_sample(e, &p, i, sample);
}

/* Find directory `name` in `dir`. */
static int epochs_find_directory(struct epochs *e, uint32_t dir,
				 const char *name, struct epochs_entry *out)
{
	char above[LOOKUPS_NAME_MAX] = "";
	cleanup_free char *path = NULL;
	struct place p;
	uint32_t number;
	int r;

	if (strchr(name, '/') ||
	    (dir != EPOCHS_TOP &&
	     !lookups_name(atomic_load(&e->paths), dir, above)))
		return -ENOENT;
	if (asprintf(&path, "%s%s%s", above, *above ? "/" : "", name) < 0)
		return -ENOMEM;
	if (!place_parse(path, &p))
		return -ENOENT;
	if (p.depth == DEPTH_FROM_K && p.from > worker_samples(e, &p))
		return -ENOENT;
	r = lookups_number(&e->paths, path, true, &number);
	*out = (struct epochs_entry){EPOCHS_DIRECTORY, number};
	return r;
}

static int epochs_find_sample(struct epochs *e, const struct place *p,
			      const char *name, const char *suffix,
			      struct epochs_entry *out)
{
	uint64_t all = worker_samples(e, p), k = 0;
	unsigned width = epochs_name_width(all);

	if (strspn(name, "0123456789") != width ||
	    (suffix && strcmp(name + width, suffix) != 0))
		return -ENOENT;
	k = strtoull(name, NULL, 10);
	if (k >= all || k < p->from)
		return -ENOENT;
	out->kind = EPOCHS_SAMPLE;
	return worker_sample(e, p, k, &out->number);
}

int epochs_find(struct epochs *e, uint32_t dir, const char *name,
		const char *suffix, struct epochs_entry *out)
{
	struct place p;
	int r;

	if (!place_of_directory(e, dir, &p))
		return -ENOENT;
	if (place_has_samples(&p)) {
		if (!strcmp(name, "order.txt")) {
			*out = (struct epochs_entry){EPOCHS_ORDER, dir};
			return 0;
		}
		r = epochs_find_sample(e, &p, name, suffix, out);
		if (r != -ENOENT)
			return r;
	}
	return epochs_find_directory(e, dir, name, out);
}

int epochs_parent(struct epochs *e, uint32_t dir, uint32_t *parent)
{
	char path[LOOKUPS_NAME_MAX], *slash;

	if (!lookups_name(atomic_load(&e->paths), dir, path))
		return -ENOENT;
	*parent = EPOCHS_TOP;
	slash = strrchr(path, '/');
	if (!slash)
		return 0;
	*slash = '\0';
	return lookups_number(&e->paths, path, true, parent);
}

int epochs_name(struct epochs *e, uint32_t dir, char *buf, size_t n)
{
	char path[LOOKUPS_NAME_MAX], *slash;

	if (!lookups_name(atomic_load(&e->paths), dir, path))
		return -ENOENT;
	slash = strrchr(path, '/');
	snprintf(buf, n, "%s", slash ? slash + 1 : path);
	return 0;
}

uint32_t epochs_generation(struct epochs *e, uint32_t dir)
{
	return lookups_generation(atomic_load(&e->paths), dir);
}

int epochs_hold(struct epochs *e, uint32_t dir, int64_t n)
{
	return lookups_hold(atomic_load(&e->paths), dir, n);
}
