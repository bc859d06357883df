/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal of a merge: whatever is believed is possible, and whole. */
/*
 * Two inputs in one.  If the first byte is even, the rest is a file as it is.  Else it is
 * payloads, each behind its kind and length (two bytes each), that get front and checksum
 * here, so that the reader's work does not end with the checksum.  What was read is written
 * again, and has to read the same.
 */
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "fuzz.h"
#include "tensors/merge/journal.h"

static void check(const struct journal *j, size_t n)
{
	FUZZ_CHECK(j->whole <= n);
	FUZZ_CHECK(j->end >= BUILD_FIRST);
	for (size_t i = 0; i < j->streams.n; i++)
		FUZZ_CHECK(j->streams.at[i].path && j->streams.at[i].rank > 0 &&
			   j->streams.at[i].rank <= RANK_MAX);
	for (size_t i = 0; i < j->parts.n; i++)
		FUZZ_CHECK(j->parts.at[i].path);
	for (size_t i = 0; i < j->chunks.n; i++) {
		const struct journal_chunk *c = &j->chunks.at[i];

		FUZZ_CHECK(c->stream < j->streams.n);
		FUZZ_CHECK(c->at.number < j->streams.at[c->stream].count);
		FUZZ_CHECK(!c->at.len || (c->at.pos >= BUILD_FIRST &&
					  c->at.pos + c->at.len <= j->end));
	}
}

/* The same again, by way of a file. */
static void write_again(struct journal *j)
{
	struct journal copy = *j, back;
	struct error err;
	int fd = memfd_create("journal", MFD_CLOEXEC);

	copy.whole = 0;
	if (fd < 0 || !j->options)
		goto out;
	FUZZ_CHECK(journal_write_plan(&copy, fd, &err) == 0);
	FUZZ_CHECK(journal_write_chunks(&copy, fd, 0, j->end, &err) == 0);
	FUZZ_CHECK(journal_read(&back, fd, "journal", &err) == 0);
	FUZZ_CHECK(back.whole == copy.whole && back.end == j->end &&
		   back.streams.n == j->streams.n &&
		   back.parts.n == j->parts.n && back.texts.n == j->texts.n &&
		   back.chunks.n == j->chunks.n &&
		   !strcmp(back.options, j->options));
	for (size_t i = 0; i < j->streams.n; i++)
		FUZZ_CHECK(pipeline_equal(&back.streams.at[i].pipeline,
					  &j->streams.at[i].pipeline));
	journal_free(&back);
out:
	if (fd >= 0)
		close(fd);
}

static void parse(const uint8_t *data, size_t size)
{
	struct journal j;
	struct error err = {.code = 0};

	if (journal_parse(&j, data, size, &err) == 0) {
		check(&j, size);
		write_again(&j);
	} else {
		FUZZ_CHECK(err.code && err.text[0]);
	}
	journal_free(&j);
}

/* Records out of payloads. */
static void build(struct fuzz_input in)
{
	static const uint32_t kinds[] = {JOURNAL_PLAN, JOURNAL_TEXTS,
					 JOURNAL_CHUNKS, JOURNAL_MADE, 99};
	size_t room = 32 * (in.size / 4 + 1) + in.size, n = 0;
	uint8_t *file = malloc(room);

	while (file && in.size >= 4) {
		uint32_t kind = kinds[fuzz_u16(&in) % 5];
		size_t len = fuzz_u16(&in);
		uint8_t *p = file + n;

		len = len < in.size ? len : in.size;
		store_le32(p, kind);
		store_le32(p + 4, 0);
		store_le64(p + 8, len);
		memcpy(p + JOURNAL_FRONT, in.data, len);
		in.data += len;
		in.size -= len;
		store_le64(p + JOURNAL_FRONT + len,
			   XXH3_64bits_withSeed(p, JOURNAL_FRONT + len, n));
		n += JOURNAL_FRONT + len + JOURNAL_BACK;
	}
	if (file)
		parse(file, n);
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};

	if (!size)
		return 0;
	if (fuzz_u8(&in) % 2)
		build(in);
	else
		parse(in.data, in.size);
	return 0;
}
