/* SPDX-License-Identifier: BSD-2-Clause */
/* NumPy's basic slicing, read from text. */
#include "tensor/slice.h"

#include <errno.h>
#include <string.h>

/* The text that was not read yet. */
struct reader {
	const char *at, *end;
};

static bool slice_take_character(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* Read a whole number, if there is one; numbers beyond any axis become the largest. */
static bool slice_read_number(struct reader *r, int64_t *out)
{
	bool minus = r->at < r->end && *r->at == '-';
	const char *s = r->at + minus, *first = s;
	int64_t v = 0;

	for (; s < r->end && *s >= '0' && *s <= '9'; s++)
		v = v > (INT64_MAX - 9) / 10 ? INT64_MAX : v * 10 + (*s - '0');
	if (s == first)
		return false;
	r->at = s;
	*out = minus ? -v : v;
	return true;
}

/* Set *a to the single index `i` of an axis of `n` elements; a negative one counts from
 * the end. */
static int slice_read_index(int64_t i, uint64_t n, struct slice_axis *a)
{
	int64_t size = (int64_t)n;

	if (i < -size || i >= size)
		return -ENOENT;
	*a = (struct slice_axis){(uint64_t)(i < 0 ? i + size : i), 1, 1, true};
	return 0;
}

/* Clamp a bound of a slice to the axis, as PySlice_AdjustIndices does. */
static int64_t slice_adjust_bound(int64_t i, int64_t size, int64_t step)
{
	int64_t least = step < 0 ? -1 : 0, most = step < 0 ? size - 1 : size;

	if (i < 0)
		i += size;
	return i < least ? least : i > most ? most : i;
}

static void slice_set_range(int64_t start, int64_t stop, int64_t step,
			    struct slice_axis *a)
{
	uint64_t stride = (uint64_t)(step < 0 ? -step : step), n = 0;

	if (step > 0 && start < stop)
		n = ((uint64_t)(stop - start) - 1) / stride + 1;
	else if (step < 0 && start > stop)
		n = ((uint64_t)(start - stop) - 1) / stride + 1;
	*a = (struct slice_axis){n ? (uint64_t)start : 0, n, n > 1 ? step : 1,
				 false};
}

/* Read the rest of START:STOP:STEP, any of which may be left out; START and the first
 * colon were read. */
static int slice_read_range(struct reader *r, bool has_start, int64_t start,
			    uint64_t n, struct slice_axis *a)
{
	int64_t size = (int64_t)n, stop, step = 1;
	bool has_stop = slice_read_number(r, &stop);

	if (slice_take_character(r, ':') && !slice_read_number(r, &step))
		step = 1;
	if (!step)
		return -EINVAL;
	start = has_start  ? slice_adjust_bound(start, size, step)
		: step < 0 ? size - 1
			   : 0;
	stop = has_stop   ? slice_adjust_bound(stop, size, step)
	       : step < 0 ? -1
			  : size;
	slice_set_range(start, stop, step, a);
	return 0;
}

static int slice_read_item(struct reader *r, uint64_t n, struct slice_axis *a)
{
	int64_t first = 0;
	bool has_first = slice_read_number(r, &first);

	if (slice_take_character(r, ':'))
		return slice_read_range(r, has_first, first, n, a);
	return has_first ? slice_read_index(first, n, a) : -EINVAL;
}

static void slice_take_axis(uint64_t n, struct slice_axis *a)
{
	*a = (struct slice_axis){0, n, 1, false};
}

/* Return how many items the text has, "..." not counted; -EINVAL if there are none, or
 * two "...". */
static int slice_count_items(struct reader r)
{
	bool dots = false;
	int n = 0;

	while (r.at < r.end) {
		const char *comma = memchr(r.at, ',', (size_t)(r.end - r.at));
		const char *end = comma ? comma : r.end;

		if (end - r.at == 3 && !memcmp(r.at, "...", 3)) {
			if (dots)
				return -EINVAL;
			dots = true;
		} else {
			n++;
		}
		r.at = comma ? end + 1 : end;
	}
	return n || dots ? n : -EINVAL;
}

int slice_parse(const char *text, size_t len, unsigned rank,
		const uint64_t *shape, struct slice *out)
{
	struct reader r = {text, text + len};
	int items = slice_count_items(r), result = 0;
	unsigned axis = 0, left;

	if (items < 0)
		return items;
	left = (unsigned)items < rank ? rank - (unsigned)items : 0;
	while (r.at < r.end) {
		if (r.end - r.at >= 3 && !memcmp(r.at, "...", 3)) {
			r.at += 3;
			for (; left; left--, axis++)
				slice_take_axis(shape[axis], &out->axis[axis]);
		} else if (axis < rank) {
			int e = slice_read_item(&r, shape[axis],
						&out->axis[axis]);

			/* A syntax error outranks an index beyond the end. */
			result = e == -EINVAL || !result ? e : result;
			axis++;
		} else {
			struct slice_axis none;
			int e = slice_read_item(&r, 0, &none);

			result = e == -EINVAL ? e : result ? result : -ENOENT;
		}
		if (result == -EINVAL ||
		    (r.at < r.end && !slice_take_character(&r, ',')))
			return -EINVAL;
	}
	for (; axis < rank; axis++)
		slice_take_axis(shape[axis], &out->axis[axis]);
	out->rank = out->whole = rank;
	while (out->whole && out->axis[out->whole - 1].step == 1)
		out->whole--;
	return result;
}

unsigned slice_shape(const struct slice *s, uint64_t *shape)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->rank; i++)
		if (!s->axis[i].dropped)
			shape[n++] = s->axis[i].count;
	return n;
}

uint64_t slice_elements(const struct slice *s)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < s->rank; i++)
		n *= s->axis[i].count;
	return n;
}

static uint64_t slice_index_at(const struct slice_axis *a, uint64_t k)
{
	return a->step < 0 ? a->start - k * (uint64_t)-a->step
			   : a->start + k * (uint64_t)a->step;
}

void slice_piece(const struct slice *s, uint64_t at, struct box *out,
		 uint64_t *skip)
{
	uint64_t inner = 1;

	for (unsigned i = s->rank; i-- > s->whole;) {
		out->start[i] = s->axis[i].start;
		out->count[i] = s->axis[i].count;
		inner *= s->axis[i].count;
	}
	*skip = at % inner;
	at /= inner;
	for (unsigned i = s->whole; i-- > 0;) {
		out->start[i] =
			slice_index_at(&s->axis[i], at % s->axis[i].count);
		out->count[i] = 1;
		at /= s->axis[i].count;
	}
}

void slice_around(const struct slice *s, uint64_t at, uint64_t n,
		  struct box *out)
{
	uint64_t last = at + n - 1, below = 1;

	for (unsigned i = s->rank; i-- > 0;) {
		const struct slice_axis *a = &s->axis[i];
		uint64_t from = at / below, to = last / below;
		uint64_t low = 0, high = a->count - 1, first, end;

		/* The index wraps around unless all indices ahead of it stay the same. */
		if (from / a->count == to / a->count) {
			low = from % a->count;
			high = to % a->count;
		}
		first = slice_index_at(a, a->step < 0 ? high : low);
		end = slice_index_at(a, a->step < 0 ? low : high);
		out->start[i] = first;
		out->count[i] = end - first + 1;
		below *= a->count;
	}
}
