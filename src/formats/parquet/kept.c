/* SPDX-License-Identifier: BSD-2-Clause */
/* A cache of decoded Parquet pages and dictionaries. */
#include "formats/parquet/kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define PAGES_MAX 16
/* Most bytes of all entries together.  One page may take all of them, for some writers
 * make a row group of one page. */
#define BYTES_MAX ((size_t)64 << 20)
/* Flag in an element of `ends`: the text is missing. */
#define IS_NULL (UINT32_C(1) << 31)

enum kind { TEXTS, DECODED, DICTIONARY };
struct parquet_kept {
	const void *of;
	size_t page;
	enum kind kind;
	/* Under the lock: calls that use it, and 1 for the table. */
	unsigned users;
	uint64_t used; /* `accesses` at the last use */
	unsigned char *text;
	uint32_t *ends; /* where each text ends */
	size_t len, room, n, ends_room;
	/* In the table: bytes of the entry with all it owns. */
	size_t bytes;
	bool given_up;
	struct parquet_dictionary dictionary;
	struct parquet_decoded decoded;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct parquet_kept *kept[PAGES_MAX];
static uint64_t accesses;
static size_t kept_bytes; /* bytes of all entries in the table */

static void parquet_kept_free(struct parquet_kept *k)
{
	free(k->text);
	free(k->ends);
	parquet_dictionary_free(&k->dictionary);
	parquet_decoded_free(&k->decoded);
	free(k);
}

/* Give up one use; the last one frees the entry.  The caller holds kept_lock. */
static void kept_drop(struct parquet_kept *k)
{
	if (k && !--k->users)
		parquet_kept_free(k);
}

/* ---- use -------------------------------------------------------------------- */

static const struct parquet_kept *kept_get(const void *of, size_t page,
					   enum kind kind)
{
	lock_scope(&kept_lock);

	for (unsigned i = 0; i < PAGES_MAX; i++) {
		struct parquet_kept *k = kept[i];

		if (!k || k->of != of || k->page != page || k->kind != kind)
			continue;
		k->users++;
		k->used = ++accesses;
		return k;
	}
	return NULL;
}

const struct parquet_kept *parquet_kept_get(const void *of, size_t page)
{
	return kept_get(of, page, TEXTS);
}

void parquet_kept_release(const struct parquet_kept *k)
{
	lock_scope(&kept_lock);

	kept_drop((struct parquet_kept *)k);
}

void parquet_kept_put(const struct parquet_kept *k, uint64_t from, uint64_t to,
		      void (*put)(void *ctx, const unsigned char *v,
				  size_t len),
		      void *ctx)
{
	for (uint64_t i = from; i < to && i < k->n; i++) {
		uint32_t begin = i ? k->ends[i - 1] & ~IS_NULL : 0;
		uint32_t end = k->ends[i] & ~IS_NULL;

		put(ctx, k->ends[i] & IS_NULL ? NULL : k->text + begin,
		    end - begin);
	}
}

/* ---- making ----------------------------------------------------------------- */

struct parquet_kept *parquet_kept_new(const void *of, size_t page,
				      uint32_t values, size_t bytes)
{
	struct parquet_kept *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	k->of = of;
	k->page = page;
	k->users = 1;
	k->room = bytes + 1;
	k->ends_room = (size_t)values + 1;
	k->given_up = k->room + k->ends_room * sizeof *k->ends > BYTES_MAX;
	if (k->given_up)
		return k;
	k->text = malloc(k->room);
	k->ends = malloc(k->ends_room * sizeof *k->ends);
	k->given_up = !k->text || !k->ends;
	return k;
}

static bool kept_make_room(struct parquet_kept *k, size_t len)
{
	void *p;

	if (len > BYTES_MAX || k->len + len > INT32_MAX ||
	    k->len + len + (k->n + 1) * sizeof *k->ends > BYTES_MAX)
		return false;
	if (k->n == k->ends_room) {
		p = realloc(k->ends, 2 * k->ends_room * sizeof *k->ends);
		if (!p)
			return false;
		k->ends = p;
		k->ends_room *= 2;
	}
	if (k->room - k->len >= len)
		return true;
	p = realloc(k->text, 2 * (k->len + len));
	if (!p)
		return false;
	k->text = p;
	k->room = 2 * (k->len + len);
	return true;
}

void parquet_kept_add(struct parquet_kept *k, const unsigned char *v,
		      size_t len)
{
	if (k->given_up)
		return;
	k->given_up = !kept_make_room(k, len);
	if (k->given_up)
		return;
	if (len)
		memcpy(k->text + k->len, v, len);
	k->len += len;
	k->ends[k->n++] = (uint32_t)k->len | (v ? 0 : IS_NULL);
}

static void forget_slot(unsigned i)
{
	if (kept[i])
		kept_bytes -= kept[i]->bytes;
	kept_drop(kept[i]);
	kept[i] = NULL;
}

/* Return a free slot, or the slot of the entry used least recently. */
static unsigned oldest_slot(void)
{
	unsigned at = 0;

	for (unsigned i = 0; i < PAGES_MAX; i++) {
		if (!kept[i])
			return i;
		if (kept[i]->used < kept[at]->used)
			at = i;
	}
	return at;
}

/* Insert an entry in place of those used least recently.  The caller holds kept_lock. */
static void kept_insert(struct parquet_kept *k)
{
	unsigned at = oldest_slot();

	forget_slot(at);
	while (kept_bytes + k->bytes > BYTES_MAX) {
		unsigned old = PAGES_MAX;

		for (unsigned i = 0; i < PAGES_MAX; i++)
			if (kept[i] && (old == PAGES_MAX ||
					kept[i]->used < kept[old]->used))
				old = i;
		forget_slot(old);
	}
	k->used = ++accesses;
	kept_bytes += k->bytes;
	kept[at] = k;
}

void parquet_kept_end(struct parquet_kept *k, bool finished)
{
	if (k && finished && !k->given_up) {
		lock_scope(&kept_lock);
		k->bytes = sizeof *k + k->room + k->ends_room * sizeof *k->ends;
		if (k->bytes <= BYTES_MAX) {
			kept_insert(k);
			return;
		}
	}
	if (k)
		parquet_kept_free(k);
}

/* ---- dictionaries ------------------------------------------------------------ */

const struct parquet_kept *
parquet_kept_dictionary(const void *of, struct parquet_dictionary *out)
{
	const struct parquet_kept *k = kept_get(of, 0, DICTIONARY);

	if (k)
		*out = k->dictionary;
	return k;
}

/* Make an entry of `bytes` bytes, used by the table and the caller.  Returns NULL if
 * these are too many or memory is short. */
static struct parquet_kept *new_kept(const void *of, size_t page,
				     enum kind kind, size_t bytes)
{
	struct parquet_kept *k =
		bytes <= BYTES_MAX - sizeof *k ? calloc(1, sizeof *k) : NULL;

	if (!k)
		return NULL;
	k->bytes = sizeof *k + bytes;
	k->of = of;
	k->page = page;
	k->kind = kind;
	k->users = 2; /* the table and the caller */
	return k;
}

const struct parquet_kept *
parquet_kept_put_dictionary(const void *of, const struct parquet_dictionary *d,
			    size_t bytes)
{
	size_t more = d->at ? ((size_t)d->n + 1) * sizeof *d->at : 0;
	struct parquet_kept *k = new_kept(of, 0, DICTIONARY, bytes + more);

	if (!k)
		return NULL;
	k->dictionary = *d;
	lock_scope(&kept_lock);
	kept_insert(k);
	return k;
}

/* ---- pages with levels ------------------------------------------------------- */

const struct parquet_kept *
parquet_kept_decoded(const void *of, size_t page,
		     const struct parquet_decoded **out)
{
	const struct parquet_kept *k = kept_get(of, page, DECODED);

	if (k)
		*out = &k->decoded;
	return k;
}

const struct parquet_kept *
parquet_kept_put_decoded(const void *of, size_t page,
			 const struct parquet_decoded *d)
{
	struct parquet_kept *k = new_kept(of, page, DECODED, d->bytes);

	if (!k)
		return NULL;
	k->decoded = *d;
	lock_scope(&kept_lock);
	kept_insert(k);
	return k;
}

/* ---- the end of an index ------------------------------------------------------ */

void parquet_kept_forget(const void *of)
{
	lock_scope(&kept_lock);

	for (unsigned i = 0; i < PAGES_MAX; i++)
		if (kept[i] && kept[i]->of == of)
			forget_slot(i);
}
