/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the option order=: in which order samples are going to be read. */
#include "readahead/order/spec.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "base/parse.h"

#define TORCH "torch"
#define WORD_MAX 64
/* Most positions that readers are assumed to be apart. */
#define SLACK_MAX (UINT64_C(1) << 16)

enum key {
	KEY_SEED,
	KEY_WORLD,
	KEY_RANK,
	KEY_BATCH,
	KEY_WORKERS,
	KEY_DROP_LAST,
	KEY_NO_SHUFFLE,
	KEYS
};
static const char *const names[KEYS] = {
	"seed", "world", "rank", "batch", "workers", "drop-last", "no-shuffle"};

static bool key_is(const char *given, const char *name)
{
	for (; *given && *name; given++, name++)
		if (*given != *name && !(*given == '_' && *name == '-'))
			return false;
	return !*given && !*name;
}

static int spec_read_number(const char *value, uint64_t min, uint64_t max,
			    uint32_t *out, struct error *err)
{
	uint64_t n;
	int r = parse_count(value, min, max, &n, err);

	if (r == 0)
		*out = (uint32_t)n;
	return r;
}

/* Read the value of rank=: R or R-S. */
static int spec_read_ranks(char *value, struct order_spec *s, struct error *err)
{
	char *dash = strchr(value, '-');
	uint32_t last;
	int r;

	if (dash)
		*dash = '\0';
	r = spec_read_number(value, 0, ORDER_WORLD_MAX - 1, &s->rank, err);
	last = s->rank;
	if (r == 0 && dash)
		r = spec_read_number(dash + 1, 0, ORDER_WORLD_MAX - 1, &last,
				     err);
	if (r == 0 && last < s->rank)
		return error_set(
			err, -EINVAL,
			"%u-%u is not a range: the first rank comes first",
			s->rank, last);
	s->ranks = last - s->rank + 1;
	return r;
}

static int spec_read_value(enum key k, char *value, struct order_spec *s,
			   struct error *err)
{
	switch (k) {
	case KEY_SEED:
		return parse_count(value, 0, UINT64_MAX, &s->seed, err);
	case KEY_WORLD:
		return spec_read_number(value, 1, ORDER_WORLD_MAX, &s->world,
					err);
	case KEY_RANK:
		return spec_read_ranks(value, s, err);
	case KEY_BATCH:
		return spec_read_number(value, 1, ORDER_BATCH_MAX, &s->batch,
					err);
	case KEY_WORKERS:
		return spec_read_number(value, 0, ORDER_WORKERS_MAX,
					&s->workers, err);
	case KEY_DROP_LAST:
		s->drop_last = true;
		break;
	case KEY_NO_SHUFFLE:
		s->no_shuffle = true;
		break;
	case KEYS:
		break;
	}
	return 0;
}

/* Read a word of the option: KEY or KEY=VALUE. */
static int spec_read_word(char *word, struct order_spec *s, unsigned *seen,
			  struct error *err)
{
	char *value = strchr(word, '=');
	unsigned k = 0;
	bool flag;
	int r;

	if (value)
		*value++ = '\0';
	while (k < KEYS && !key_is(word, names[k]))
		k++;
	if (k == KEYS)
		return error_set(
			err, -EINVAL,
			"unknown word '%s': known are seed=, world=, rank=, "
			"batch=, workers=, drop_last and no-shuffle",
			word);
	if (*seen >> k & 1)
		return error_set(err, -EINVAL, "%s is given twice", names[k]);
	*seen |= 1u << k;
	flag = k == KEY_DROP_LAST || k == KEY_NO_SHUFFLE;
	if (flag != !value || (value && !*value))
		return error_set(err, -EINVAL,
				 flag ? "%s takes no value"
				      : "%s needs a number: %s=N",
				 names[k], names[k]);
	r = spec_read_value((enum key)k, value, s, err);
	if (r < 0)
		error_prefix(err, "%s: ", names[k]);
	return r;
}

int order_spec_parse(const char *text, struct order_spec *out,
		     struct error *err)
{
	struct order_spec s = {
		.world = 1, .batch = ORDER_BATCH, .workers = ORDER_WORKERS};
	size_t n = strlen(TORCH);
	unsigned seen = 0;

	if (strncmp(text, TORCH, n) || (text[n] && !strchr(",:", text[n]))) {
		if (!*text)
			return error_set(err, -EINVAL,
					 "the order must be torch, or the name "
					 "of a file");
		s.file = text;
		*out = s;
		return 0;
	}
	for (text += n; *text; text += n) {
		char word[WORD_MAX];
		int r;

		n = strcspn(++text, ",:");
		if (n >= sizeof word)
			return error_set(err, -EINVAL, "'%.40s...' is too long",
					 text);
		memcpy(word, text, n);
		word[n] = '\0';
		r = spec_read_word(word, &s, &seen, err);
		if (r < 0)
			return r;
	}
	if (!(seen >> KEY_RANK & 1))
		s.ranks = s.world;
	if (s.rank + s.ranks > s.world)
		return error_set(err, -EINVAL,
				 "rank %u is not in a world of %u: ranks are "
				 "counted from 0",
				 s.rank + s.ranks - 1, s.world);
	*out = s;
	return 0;
}

uint64_t order_spec_slack(const struct order_spec *s)
{
	uint64_t workers = s->workers ? s->workers : 1;

	/* Each worker of each rank has two batches on their way, and began a third when
	 * the first was taken. */
	return min_u64(3 * workers * s->batch * max_u64(s->ranks, 1),
		       SLACK_MAX);
}
