/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a tar: the table that comes out must be one that can be used. */
/*
 * The first byte says how the input behaves: bit 0: it fails in the middle; bit 1:
 * it gives a few bytes at a time; bit 2: sums of headers are put right, without
 * which no change of a header would ever get anywhere.
 */
#include <errno.h>

#include "fuzz.h"
#include "formats/tar/private.h"
#include "formats/tar/tar.h"

struct memory_input {
	struct input in;
	const uint8_t *data;
	size_t size, fails;
	bool slow;
};

static ssize_t memory_read(struct input *in, void *to, size_t n,
			   struct error *err)
{
	struct memory_input *m = (struct memory_input *)in;
	size_t left = m->size - (size_t)in->at;

	if (in->at >= m->fails)
		return error_set(err, -EBADMSG, "it is damaged");
	n = n < left ? n : left;
	if (m->slow && n > 7)
		n = 7;
	memcpy(to, m->data + in->at, n);
	in->at += n;
	return (ssize_t)n;
}

static int64_t memory_skip(struct input *in, uint64_t n, struct error *err)
{
	struct memory_input *m = (struct memory_input *)in;
	uint64_t left = m->size - in->at;

	if (in->at >= m->fails)
		return error_set(err, -EBADMSG, "it is damaged");
	n = n < left ? n : left;
	in->at += n;
	return (int64_t)n;
}

static void put_sums_right(uint8_t *data, size_t size)
{
	for (; size >= TAR_BLOCK; data += TAR_BLOCK, size -= TAR_BLOCK) {
		unsigned sum = 0;
		char text[16];

		if (memcmp(data + 257, "ustar", 5) &&
		    memcmp(data + 257, "V7", 2))
			continue;
		memset(data + 148, ' ', 8);
		for (int i = 0; i < TAR_BLOCK; i++)
			sum += data[i];
		snprintf(text, sizeof text, "%06o", sum);
		memcpy(data + 148, text, 7);
	}
}

static void check_table(const struct members *m)
{
	FUZZ_CHECK(m->n > 0 && m->at[0].kind == MEMBER_DIR);
	for (uint64_t i = 0; i < m->n; i++) {
		const struct member_record *r = &m->at[i];
		uint64_t end;

		FUZZ_CHECK(member_nsec(r) < 1000000000);
		FUZZ_CHECK(r->common < m->n_common);
		FUZZ_CHECK(r->kind != MEMBER_LINK ||
			   m->at[r->data].kind != MEMBER_LINK);
		if (r->kind == MEMBER_RANGE)
			FUZZ_CHECK(r->size <= INT64_MAX &&
				   !__builtin_add_overflow(r->data, r->size,
							   &end));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct input_ops ops = {memory_read, memory_skip, NULL};
	struct memory_input m = {{&ops, 0}, NULL, 0, SIZE_MAX, false};
	struct members_builder *b;
	struct tar_scanned scanned;
	struct members table;
	uint8_t *copy, how;
	int r;

	if (!size)
		return 0;
	how = *data++;
	size--;
	copy = malloc(size ? size : 1);
	if (size)
		memcpy(copy, data, size);
	if (how & 4)
		put_sums_right(copy, size);
	(void)tar_probe(copy, size);
	m.data = copy;
	m.size = size;
	m.slow = how & 2;
	if (how & 1)
		m.fails = size / 2;
	FUZZ_CHECK(members_builder_new(&b, NULL, NULL) == 0);
	r = tar_scan(&m.in, b, &scanned, NULL, NULL, NULL);
	FUZZ_CHECK(r == 0 || r == -EBADMSG);
	FUZZ_CHECK(scanned.end <= size && scanned.headers <= size / TAR_BLOCK);
	if (r == 0) {
		FUZZ_CHECK(members_finish(b, &table, NULL) == 0);
		check_table(&table);
		members_free(&table);
	} else {
		members_builder_free(b);
	}
	free(copy);
	return 0;
}
