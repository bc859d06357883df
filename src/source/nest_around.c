/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of an archive that name other members. */
#include "source/nest_around.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const struct nest_around *self_of(const struct source_around *a)
{
	return (const struct nest_around *)(const void *)a;
}

/* Links to follow on the way to a member. */
#define LINKS_MAX 40

/* Go from directory `dir` to `path`, "" and "." being where one is; symlinks are
 * followed, "..", and whatever else would lead out of the archive, ends there. */
static int walk_to(const struct members *m, uint64_t dir, const char *path,
		   unsigned *links, uint64_t *out)
{
	cleanup_free char *copy = strdup(path);
	char *save = NULL;
	uint64_t at = path[0] == '/' ? 0 : dir;

	if (!copy)
		return -ENOMEM;
	for (char *part = strtok_r(copy, "/", &save); part;
	     part = strtok_r(NULL, "/", &save)) {
		uint64_t next;
		int r;

		if (m->at[at].kind != MEMBER_DIR)
			return -ENOENT;
		if (!strcmp(part, "."))
			continue;
		if (!strcmp(part, "..")) {
			if (!at)
				return -ENOENT;
			at = m->at[at].parent;
			continue;
		}
		if (members_find(m, at, part, &next) < 0)
			return -ENOENT;
		if (m->at[next].kind == MEMBER_SYMLINK) {
			if (++*links > LINKS_MAX)
				return -ENOENT;
			r = walk_to(m, at, m->names + m->at[next].data, links,
				    &next);
			if (r < 0)
				return r;
		}
		at = next;
	}
	*out = at;
	return 0;
}

/* Its path from the root, however long; NULL: no memory. */
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
		       struct backing *out, char **is)
{
	const struct nest_table *n = self_of(a)->table;
	unsigned links = 0;
	uint64_t at;
	int r = walk_to(n->m, 0, path, &links, &at);

	if (r < 0)
		return r;
	if (n->m->at[at].kind == MEMBER_LINK)
		at = n->m->at[at].data;
	if (!S_ISREG(n->m->at[at].mode) || n->m->at[at].kind == MEMBER_LINK ||
	    member_common(n->m, &n->m->at[at])->volume >= n->n_volumes)
		return -ENOENT;
	*out = member_backing(n->handles, n->pinner, n->m, at, n->volumes,
			      n->files);
	*is = path_from_root(n->m, at);
	return *is ? 0 : -ENOMEM;
}

static int around_path_at(const struct source_around *a, uint64_t pos,
			  uint64_t size, char **out)
{
	const struct nest_table *n = self_of(a)->table;

	for (uint64_t i = 1; i < n->m->n; i++) {
		const struct member_record *r = &n->m->at[i];
		struct backing b;

		if (r->kind != MEMBER_RANGE || r->size != size ||
		    member_common(n->m, r)->volume >= n->n_volumes)
			continue;
		b = member_backing(n->handles, n->pinner, n->m, i, n->volumes,
				   n->files);
		if (!backing_is_plain(&b) || b.pos != pos)
			continue;
		*out = path_from_root(n->m, i);
		return *out ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

static char *around_self(const struct source_around *a)
{
	return path_from_root(self_of(a)->table->m, self_of(a)->record);
}

static char *around_shown(const struct source_around *a, const char *path)
{
	const struct nest_around *x = self_of(a);
	char *out;

	return asprintf(&out, "%s:%s", x->source, path) < 0 ? NULL : out;
}

void nest_around_init(struct nest_around *x, const struct nest_table *table,
		      const struct archive_options *archive, const char *source,
		      uint64_t record)
{
	x->is = (struct source_around){archive, around_find, around_shown,
				       around_path_at, around_self};
	x->table = table;
	x->source = source;
	x->record = record;
}
