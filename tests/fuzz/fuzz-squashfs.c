/* SPDX-License-Identifier: BSD-2-Clause */
/* squashfs: any image, walked in this process, and its blocks decoded. */
/*
 * A mount walks in a child, because libsquashfuse believes what it reads.  Here it
 * is called directly: the walker looks before each of its steps, and this is to
 * show that it looks well enough.  A crash in libsquashfuse itself would be worth a
 * look before that step, not an error of ours.
 *
 * The first byte has the table that came out changed before it is checked as one
 * that came through a pipe; what passes must be usable without further looks.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "formats/squashfs/private.h"

#define BLOCKS_MAX 32

static const uint8_t *image;
static size_t image_size;

static void decode_blocks(const struct members *m,
			  const struct squashfs_info *info)
{
	static unsigned char out[1 << 20];
	uint64_t tried = 0;

	for (uint64_t i = 0; i < m->n_blocks && tried < BLOCKS_MAX; i++) {
		const struct member_block *b = &m->blocks[i];
		size_t made = 0;
		struct error err = {0};
		unsigned char *stored;
		int r;

		if (!b->stored || (b->flags & (MEMBER_STORED | MEMBER_TAIL)) ||
		    b->pos > image_size || b->stored > image_size - b->pos)
			continue;
		tried++;
		stored = malloc(b->stored); /* so that reads beyond are seen */
		FUZZ_CHECK(stored && b->size <= sizeof out);
		memcpy(stored, image + b->pos, b->stored);
		r = squashfs_block_decode(
			info, b, stored, out,
			b->flags & MEMBER_SHARED ? info->block_size : b->size,
			&made, &err);
		FUZZ_CHECK(r == 0 || (r == err.code && *err.text));
		FUZZ_CHECK(r < 0 || (made >= b->size && made <= sizeof out));
		free(stored);
	}
}

/* Whoever uses a table that was checked looks at nothing again. */
static void use_table(const struct members *m)
{
	struct member_xattr_at x;
	char path[300];
	uint64_t found;

	for (uint64_t i = 0; i < m->n && i < 1000; i++) {
		const struct member_record *r = &m->at[i];

		members_path(m, i, path, sizeof path);
		FUZZ_CHECK(r->common < m->n_common &&
			   member_nsec(r) < 1000000000);
		(void)member_mtime(m, r);
		member_xattr_first(m, r, &x);
		while (member_xattr_next(&x))
			FUZZ_CHECK(x.name_len > 0 && x.name_len <= 255);
		if (i > 0) {
			FUZZ_CHECK(members_find(m, r->parent, member_name(m, r),
						&found) == 0);
			FUZZ_CHECK(found == i);
		}
	}
}

static void send_table(const struct members *m, uint8_t change)
{
	struct index_section s[MEMBERS_SECTIONS];
	unsigned n = members_sections(m, s);
	struct error err = {0};
	struct members copy;
	void *own[MEMBERS_SECTIONS];
	int r;

	for (unsigned i = 0; i < n; i++) {
		own[i] = malloc(s[i].size + 1);
		FUZZ_CHECK(own[i]);
		if (s[i].size)
			memcpy(own[i], s[i].data, s[i].size);
		if (change && s[i].size)
			((uint8_t *)own[i])[change * 7919u % s[i].size] ^=
				change;
		s[i].data = own[i];
	}
	r = members_of_sections(&copy, s, n, NULL, &err);
	FUZZ_CHECK(r == 0 || r == -EBADMSG);
	FUZZ_CHECK(r == 0 || change);
	if (r == 0) {
		use_table(&copy);
		members_free(&copy);
	}
	for (unsigned i = 0; i < n; i++)
		free(own[i]);
}

static void walk(int fd, const struct squashfs_info *info, uint8_t change)
{
	struct members_builder *b;
	struct members table;
	struct error err = {0};
	int r = members_builder_new(&b, NULL, &err);

	FUZZ_CHECK(r == 0);
	r = squashfs_walk(fd, 0, info, b, NULL, NULL, &err);
	if (r < 0) {
		FUZZ_CHECK(r == err.code && *err.text);
		members_builder_free(b);
		return;
	}
	r = members_finish(b, &table, &err);
	FUZZ_CHECK(r == 0);
	use_table(&table);
	decode_blocks(&table, info);
	send_table(&table, 0);
	send_table(&table, change);
	members_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct squashfs_super s;
	struct squashfs_info info;
	struct backing b = {0};
	struct error err;
	uint8_t change;
	int fd;

	if (size < SQUASHFS_SUPER + 1)
		return 0;
	squashfs_probe(data + 1, size - 1);
	change = *data;
	image = data + 1;
	image_size = b.size = size - 1;
	if (squashfs_super_parse(&s, image, &err) < 0)
		return 0;
	squashfs_super_info(&s, &info);
	if (squashfs_info_check(&info, &b, &err) < 0)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0 &&
		   write(fd, image, image_size) == (ssize_t)image_size);
	walk(fd, &info, change);
	close(fd);
	return 0;
}
