/* SPDX-License-Identifier: BSD-2-Clause */
/* Flags and room: the rest of what has to be right before anything is touched. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/parse.h"
#include "tensors/merge/private.h"

/* Runs of rows that are named in a sentence. */
#define SHOWN 4

/* ---- flags --------------------------------------------------------------- */

/* "rows 100-199 are 'initialized', row 300 is ''" */
static void show_run(char *list, size_t room, uint64_t row,
		     const struct journal_run *x)
{
	size_t n = strlen(list);
	const char *comma = n ? ", " : "";

	if (x->rows > 1)
		snprintf(list + n, room - n,
			 "%srows %" PRIu64 "-%" PRIu64 " are '%.32s'", comma,
			 row, row + x->rows - 1, x->value);
	else
		snprintf(list + n, room - n, "%srow %" PRIu64 " is '%.32s'",
			 comma, row, x->value);
}

static int check_flags(const struct merge *m, const struct journal_text *t,
		       struct error *err)
{
	char list[400] = "";
	uint64_t row = 0, bad = 0;
	unsigned shown = 0;

	for (size_t i = 0; i < t->runs.n; row += t->runs.at[i++].rows) {
		const struct journal_run *x = &t->runs.at[i];

		if (!strcmp(x->value, m->o.check_flag))
			continue;
		bad += x->rows;
		if (shown++ < SHOWN)
			show_run(list, sizeof list, row, x);
	}
	if (!bad)
		return 0;
	return error_set(err, -EPERM,
			 "%s: %s%s: %" PRIu64 " of %" PRIu64
			 " rows are not '%.32s'",
			 t->path, list, shown > SHOWN ? ", ..." : "", bad, row,
			 m->o.check_flag);
}

int merge_check_flags(struct merge *m, struct error *err)
{
	unsigned n = 0;
	int r = 0;

	for (size_t i = 0; i < m->values.n && r == 0; i++) {
		struct values *v = &m->values.at[i];

		if (!v->is_flags)
			continue;
		n++;
		if (!v->captured)
			r = merge_values_runs(m, v, err);
		if (r == 0 && m->o.check_flag)
			r = check_flags(m, &v->text, err);
	}
	if (r == 0 && m->o.check_flag && !n)
		return error_set(
			err, -EPERM,
			"there is no dataset 'flags' that --check-flag "
			"could look at");
	return r;
}

/* ---- room ---------------------------------------------------------------- */

/* What is written before the first part can go. */
#define AHEAD (UINT64_C(256) << 20)

/* About how many bytes the output needs on its file system. */
static uint64_t room_needed(const struct merge *m)
{
	uint64_t need = 0, largest = 0, decoded = 0;
	bool stays = !m->o.delete_parts;

	for (size_t i = 0; i < m->files.n; i++) {
		const struct merge_file *f = &m->files.at[i];

		need += f->id.size;
		largest = max_u64(largest, f->id.size);
		stays = stays || f->late || f->id.dev != m->dir_dev;
	}
	for (size_t i = 0; i < m->streams.n; i++)
		decoded += m->streams.at[i].t->bytes;
	if (m->o.comp_given && m->o.comp.codec == PACK_NONE)
		return decoded;
	return stays ? need : min_u64(need, AHEAD + 2 * largest);
}

/* Directories of parts that are to be deleted. */
static int check_deletable(const struct merge *m, struct error *err)
{
	cleanup_free char *last = NULL;

	for (size_t i = 0; i < m->files.n; i++) {
		const struct merge_file *f = &m->files.at[i];
		const char *path = handles_path(m->handles, f->file);
		const char *slash = strrchr(path, '/');
		char *dir;

		if (f->main || f->gone || !slash)
			continue;
		dir = strndup(path, (size_t)(slash - path) + (slash == path));
		if (!dir)
			return merge_no_memory(err);
		if (last && !strcmp(last, dir)) {
			free(dir);
			continue;
		}
		free(last);
		last = dir;
		if (access(dir, W_OK | X_OK) < 0 && errno != ENOENT)
			return error_errno(err, -errno,
					   "parts in '%s' cannot be deleted",
					   file_shown(dir));
	}
	return 0;
}

int merge_check_room(struct merge *m, struct error *err)
{
	uint64_t need = room_needed(m), have;
	char want[32], is[32];
	struct statvfs v;

	if (m->o.delete_parts && check_deletable(m, err) < 0)
		return err->code;
	if (m->result->resumed || fstatvfs(m->dir_fd, &v) < 0)
		return 0;
	have = (uint64_t)v.f_bavail * v.f_frsize;
	if (need <= have)
		return 0;
	format_size(need, want, sizeof want);
	format_size(have, is, sizeof is);
	return error_set(err, -ENOSPC,
			 "'%s' needs about %s, and there is room for %s",
			 file_shown(m->out), want, is);
}
