/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes the hybrid of runs and packed bits of Parquet pages. */
#include "formats/parquet/runs.h"

#include "base/bytes.h"

/* Begin the next run; return false if there is none or it is damaged. */
static bool next_run(struct parquet_runs *h)
{
	uint64_t head = 0, bytes;
	unsigned shift = 0, n = (h->width + 7) / 8;

	do {
		if (h->at == h->end || shift > 28)
			return false;
		head |= (uint64_t)(*h->at & 0x7f) << shift;
		shift += 7;
	} while (*h->at++ & 0x80);
	if (head & 1) {
		bytes = (head >> 1) * h->width;
		/* The last group may be cut off behind its last value. */
		if (bytes > (uint64_t)(h->end - h->at) + h->width)
			return false;
		h->packed = (head >> 1) * 8;
		h->bit = 0;
		return h->packed;
	}
	if ((uint64_t)(h->end - h->at) < n)
		return false;
	h->run = head >> 1;
	h->value = (uint32_t)load_le(h->at, n);
	h->at += n;
	return h->run && (h->width > 31 || !(h->value >> h->width));
}

static bool next_packed(struct parquet_runs *h, uint32_t *out)
{
	uint64_t v = 0;
	unsigned bytes = (h->bit + h->width + 7) / 8;

	if ((uint64_t)(h->end - h->at) < bytes)
		return false;
	v = load_le(h->at, bytes);
	*out = (uint32_t)(v >> h->bit & ((UINT64_C(1) << h->width) - 1));
	h->bit += h->width;
	h->at += h->bit / 8;
	h->bit %= 8;
	h->packed--;
	return true;
}

bool parquet_runs_next(struct parquet_runs *h, uint32_t *out)
{
	if (!h->run && !h->packed && !next_run(h))
		return false;
	if (!h->run)
		return next_packed(h, out);
	h->run--;
	*out = h->value;
	return true;
}
