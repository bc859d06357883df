/* SPDX-License-Identifier: BSD-2-Clause */
/* Find members of an archive that another member names. */
#include "formats/registry/nest_around.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const struct nest_around *nest_around_of(const struct source_around *a)
{
	return (const struct nest_around *)(const void *)a;
}

/* Most links to follow on the way to a member. */
#define LINKS_MAX 40

/* Go from directory `dir` to `path` and follow symlinks.  *named is the member that the
 * last component names, *out is what it leads to (they differ for a symlink).  -ENOENT:
 * there is none, or a ".." or a symlink would lead out of the archive. */
static int walk_to(const struct members *m, uint64_t dir, const char *path,
		   unsigned *links, uint64_t *named, uint64_t *out)
{
	cleanup_free char *copy = strdup(path);
	char *save = NULL;
	uint64_t at = path[0] == '/' ? 0 : dir, ignored;

	if (!copy)
		return -ENOMEM;
	*named = at;
	for (char *part = strtok_r(copy, "/", &save); part;
	     part = strtok_r(NULL, "/", &save)) {
		uint64_t next;
		int r;

		if (m->at[at].kind != MEMBER_DIR)
			return -ENOENT;
		if (!strcmp(part, ".")) {
			*named = at;
			continue;
		}
		if (!strcmp(part, "..")) {
			if (!at)
				return -ENOENT;
			*named = at = m->at[at].parent;
			continue;
		}
		if (members_find(m, at, part, &next) < 0)
			return -ENOENT;
		*named = next;
		if (m->at[next].kind == MEMBER_SYMLINK) {
			if (++*links > LINKS_MAX)
				return -ENOENT;
			r = walk_to(m, at, m->names + m->at[next].data, links,
				    &ignored, &next);
			if (r < 0)
				return r;
		}
		at = next;
	}
	*out = at;
	return 0;
}

/* Return the path of a member from the root (malloc'ed), of any length; NULL when out of
 * memory. */
static char *path_from_root(const struct members *m, uint64_t record)
{
	char *out = strdup("");

	for (; out && record; record = m->at[record].parent) {
		cleanup_free char *rest = out;

		if (asprintf(&out, "/%s%s", member_name(m, &m->at[record]),
			     rest) < 0)
			out = NULL;
	}
	return out;
}

static int around_find(const struct source_around *a, const char *path,
		       struct backing *out, uint64_t *member)
{
	const struct nest_table *n = nest_around_of(a)->table;
	unsigned links = 0;
	uint64_t at;
	int r = walk_to(n->m, 0, path, &links, member, &at);

	if (r < 0)
		return r;
	if (n->m->at[at].kind == MEMBER_LINK)
		at = n->m->at[at].data;
	if (!S_ISREG(n->m->at[at].mode) || n->m->at[at].kind == MEMBER_LINK ||
	    member_common(n->m, &n->m->at[at])->volume >= n->n_volumes)
		return -ENOENT;
	*out = member_backing(n->handles, n->pinner, n->m, at, n->volumes,
			      n->files);
	return 0;
}

static char *around_path(const struct source_around *a, uint64_t member,
			 bool follow)
{
	const struct members *m = nest_around_of(a)->table->m;
	uint64_t named, at = member;
	unsigned links = 0;

	if (member >= m->n)
		return NULL;
	if (follow && m->at[member].kind == MEMBER_SYMLINK &&
	    walk_to(m, m->at[member].parent, m->names + m->at[member].data,
		    &links, &named, &at) < 0)
		return NULL;
	return path_from_root(m, at);
}

static char *around_shown(const struct source_around *a, const char *path)
{
	const struct nest_around *x = nest_around_of(a);
	char *out;

	return asprintf(&out, "%s:%s", x->source, path) < 0 ? NULL : out;
}

void nest_around_init(struct nest_around *x, const struct nest_table *table,
		      const struct archive_options *archive,
		      struct source_kept *kept, const char *source,
		      uint64_t record)
{
	x->is = (struct source_around){.archive = archive,
				       .self = record,
				       .kept = kept,
				       .find = around_find,
				       .path = around_path,
				       .shown = around_shown};
	x->table = table;
	x->source = source;
}
