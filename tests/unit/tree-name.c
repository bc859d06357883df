/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that no file can have: escaped, shortened, never cut inside a unit. */
#include "tree/tree.h"
#include "test.h"

static void escapes_to(const char *name, const char *want)
{
	char out[FILES_NAME_MAX + 1];

	CHECK_EQ_U(tree_escape(name, out), strcmp(name, want) != 0);
	CHECK_STR(out, want);
}

TEST(names_are_escaped)
{
	char name[2000], out[FILES_NAME_MAX + 1], out2[FILES_NAME_MAX + 1];
	size_t i;

	escapes_to("plain", "plain");
	escapes_to("%2F~ \n\xff", "%2F~ \n\xff");
	escapes_to("...", "...");
	escapes_to(".x", ".x");
	escapes_to(".", "%2E");
	escapes_to("..", "%2E%2E");
	escapes_to("", "%00");
	escapes_to("/", "%2F");
	escapes_to("a/b", "a%2Fb");

	memset(name, 'n', sizeof name);
	name[255] = '\0';
	escapes_to(name, name);
	name[255] = 'n';
	name[256] = '\0';
	CHECK(tree_escape(name, out));
	CHECK_EQ_U(strlen(out), 255);
	CHECK_EQ_U(out[238], '~');
	CHECK_EQ_U(strspn(out + 239, "0123456789abcdef"), 16);
	name[255] = 'm';
	CHECK(tree_escape(name, out2));
	CHECK(strcmp(out, out2));

	/* Cut neither inside a character nor inside an escape. */
	for (i = 0; i < 6; i++) {
		memset(name, 'n', i);
		name[i] = '\0';
		while (strlen(name) < 300)
			strcat(name, "\xe2\x82\xac");
		CHECK(tree_escape(name, out));
		CHECK((strchr(out, '~') - out - (ptrdiff_t)i) % 3 == 0);
		CHECK(strlen(out) >= 253 && strlen(out) <= 255);
		memset(name + i, '/', 200);
		name[i + 200] = '\0';
		CHECK(tree_escape(name, out));
		CHECK((strchr(out, '~') - out - (ptrdiff_t)i) % 3 == 0);
		CHECK(strlen(out) <= 255);
	}
	/* Not UTF-8 at all. */
	memset(name, 0x80, 1999);
	name[1999] = '\0';
	CHECK(tree_escape(name, out));
	CHECK_EQ_U(strlen(out), 255);
}

int main(void)
{
	RUN(names_are_escaped);
	return test_done();
}
