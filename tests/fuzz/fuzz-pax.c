/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as pax records: values lie where they should. */
#include "fuzz.h"
#include "formats/tar/private.h"

static void check_text(const struct tar_text *t)
{
	if (t->at)
		FUZZ_CHECK(t->n < t->room && t->at[t->n] == '\0');
}

static void check(const struct tar_pax *p)
{
	check_text(&p->path);
	check_text(&p->link);
	check_text(&p->name);
	check_text(&p->bytes);
	FUZZ_CHECK(!(p->set & PAX_MTIME) || p->nsec < 1000000000);
	FUZZ_CHECK(!(p->set & PAX_SIZE) || p->size >= 0);
	FUZZ_CHECK(!(p->set & PAX_REAL) || p->real >= 0);
	for (size_t i = 0; i < p->xattr.n; i++) {
		const struct tar_xattr *x = &p->xattr.at[i];
		size_t n = strlen(p->bytes.at + x->name);

		FUZZ_CHECK(n > 0 && n <= 255);
		FUZZ_CHECK(x->name + n < x->value);
		FUZZ_CHECK(x->value + x->size <= p->bytes.n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct members_builder *b;
	struct tar_pax p = {0};
	struct tar_xattrs list = {VEC_EMPTY};
	char *copy = malloc(size + 1);

	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	FUZZ_CHECK(members_builder_new(&b, NULL, NULL) == 0);
	FUZZ_CHECK(tar_pax_records(&p, copy, size, b) == 0);
	check(&p);
	FUZZ_CHECK(tar_xattr_list(&list, &p) == 0);
	FUZZ_CHECK(list.at.n == p.xattr.n);
	/* A second time into the same, as global headers are. */
	if (size)
		memcpy(copy, data, size);
	FUZZ_CHECK(tar_pax_records(&p, copy, size, b) == 0);
	check(&p);
	vec_free(&list.at);
	tar_pax_free(&p);
	members_builder_free(b);
	free(copy);
	return 0;
}
