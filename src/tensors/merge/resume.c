/* SPDX-License-Identifier: BSD-2-Clause */
/* Begin a journal, or take over the work that an earlier journal records. */

/*
 * An earlier attempt may have deleted parts, so its journal stands in for them: for the
 * shape of chunks and the filters, which were those of the parts; for the flags; for the
 * list of chunks that are done.  A journal is valid for one main file and one set of
 * options only.  Where it does not agree with them, and no part is missing yet, the merge
 * begins anew.  If a part is missing, nothing is touched, because the journal and its
 * data file are then the only place that has the elements of that part.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tensors/merge/private.h"

/* ---- beginning ----------------------------------------------------------- */

static char *merge_options_text(const struct merge *m)
{
	char *text;

	if (asprintf(&text, "chunk=%s comp=%d:%d:%d",
		     m->o.chunk ? m->o.chunk : "", (int)m->o.comp_given,
		     m->o.comp_given ? (int)m->o.comp.codec : 0,
		     m->o.comp_given ? m->o.comp.level : 0) < 0)
		return NULL;
	return text;
}

static bool journal_add_stream(struct journal *j, const struct stream *s)
{
	struct journal_stream x = {.path = strdup(s->t->name),
				   .rank = s->own_rank,
				   .elem = (uint32_t)s->own_elem,
				   .count = s->grid.count,
				   .pipeline = s->pipeline};

	memcpy(x.shape, s->grid.shape, s->own_rank * sizeof *x.shape);
	memcpy(x.chunk, s->grid.chunk, s->own_rank * sizeof *x.chunk);
	if (x.path && vec_push(&j->streams, x))
		return true;
	free(x.path);
	return false;
}

static bool journal_add_part(struct merge *m, const struct merge_file *f)
{
	struct journal_file x = {
		.path = strdup(handles_path(m->handles, f->file)),
		.id = f->id,
		.kept = f->kept};

	if (x.path && vec_push(&m->j.parts, x))
		return true;
	free(x.path);
	return false;
}

static bool journal_add_text(struct journal *j, const struct values *v)
{
	struct journal_text x = {.path = strdup(v->text.path)};
	bool ok = x.path != NULL;

	for (size_t i = 0; i < v->text.runs.n && ok; i++) {
		struct journal_run run = v->text.runs.at[i];

		run.value = strdup(run.value);
		ok = run.value && vec_push(&x.runs, run);
	}
	return ok && vec_push(&j->texts, x);
}

static bool is_main(const struct merge *m, const struct merge_file *f)
{
	return f->file == m->s->file ||
	       (f->id.dev == m->main_id.dev && f->id.ino == m->main_id.ino);
}

static int file_compare_inode(const void *one, const void *two)
{
	const struct merge_file *a = *(struct merge_file *const *)one;
	const struct merge_file *b = *(struct merge_file *const *)two;

	if (a->id.ino != b->id.ino)
		return a->id.ino < b->id.ino ? -1 : 1;
	return a->id.dev < b->id.dev ? -1 : a->id.dev > b->id.dev;
}

/* The main file, under whatever name, is not deleted.  A file with several names has
 * parts under each of them, and must stay until the end. */
int merge_protect_files(struct merge *m, struct error *err)
{
	size_t n = m->files.n;
	cleanup_free struct merge_file **list = calloc(n + 1, sizeof *list);

	if (!list)
		return error_no_memory(err, "the list of parts");
	for (size_t i = 0; i < n; i++) {
		list[i] = &m->files.at[i];
		if (is_main(m, list[i]))
			list[i]->main = list[i]->late = true;
	}
	qsort(list, n, sizeof *list, file_compare_inode);
	for (size_t i = 1; i < n; i++)
		if (file_compare_inode(&list[i - 1], &list[i]) == 0)
			list[i - 1]->late = list[i]->late = true;
	return 0;
}

int merge_journal_begin(struct merge *m, struct error *err)
{
	bool ok = true;

	journal_free(&m->j);
	m->j.end = BUILD_FIRST;
	m->j.main = m->main_id;
	m->j.options = merge_options_text(m);
	for (size_t i = 0; i < m->streams.n && ok; i++)
		ok = journal_add_stream(&m->j, &m->streams.at[i]);
	for (size_t i = 0; i < m->values.n && ok; i++)
		if (m->values.at[i].captured)
			ok = journal_add_text(&m->j, &m->values.at[i]);
	for (size_t i = 0; i < m->files.n && ok; i++) {
		if (!m->files.at[i].main)
			ok = journal_add_part(m, &m->files.at[i]);
	}
	if (!ok || !m->j.options)
		return error_no_memory(err, "the journal of the merge");
	m->result->parts = m->j.parts.n;
	if (ftruncate(m->lock_fd, 0) < 0)
		return error_errno(err, -errno, "cannot write '%s'",
				   m->journal_path);
	return m->o.delete_parts ? journal_write_plan(&m->j, m->lock_fd, err)
				 : 0;
}

/* ---- going on ------------------------------------------------------------ */

/* Return the name of the first part that does not exist any more (gone), or that exists
 * but has changed (not gone); NULL if there is none. */
static const char *first_other(const struct journal *j, bool gone)
{
	for (size_t i = 0; i < j->parts.n; i++) {
		struct identity is;
		struct stat st;

		if (stat(j->parts.at[i].path, &st) < 0) {
			if (gone)
				return j->parts.at[i].path;
			continue;
		}
		if (gone)
			continue;
		identity_of(&st, &is);
		if (!merge_same_file(&is, &j->parts.at[i].id))
			return j->parts.at[i].path;
	}
	return NULL;
}

static struct stream *stream_of(struct merge *m, const struct journal_stream *x)
{
	for (size_t i = 0; i < m->streams.n; i++)
		if (!strcmp(m->streams.at[i].t->name, x->path))
			return &m->streams.at[i];
	return NULL;
}

static bool stream_agrees(struct merge *m, size_t i)
{
	const struct journal_stream *x = &m->j.streams.at[i];
	const struct stream *s = stream_of(m, x);

	return s && s == &m->streams.at[i] && s->own_rank == x->rank &&
	       s->own_elem == x->elem &&
	       !memcmp(s->t->shape, x->shape, x->rank * sizeof *x->shape);
}

/* Return true if no part is where it was: all was moved to another file system. */
static bool was_moved(const struct journal *j)
{
	for (size_t i = 0; i < j->parts.n; i++)
		if (!j->parts.at[i].kept &&
		    access(j->parts.at[i].path, F_OK) == 0)
			return false;
	return true;
}

/* Return true if `id` is that of the main file.  A copy of the main file does not count:
 * the journal beside it has parts that are not its own. */
static bool is_main_file(const struct merge *m, const struct identity *id)
{
	return merge_same_file(id, &m->main_id) ||
	       (merge_place_alike(id, &m->main_id) && was_moved(&m->j));
}

const char *merge_journal_foreign(const struct merge *m)
{
	cleanup_free char *options = merge_options_text(m);

	/* The output may be in the place of the main file already. */
	if (!is_main_file(m, &m->j.main) &&
	    !(m->j.made && is_main_file(m, &m->j.file)))
		return "it is for another main file";
	if (!options || !m->j.options || strcmp(options, m->j.options))
		return "it was run with another --chunk or --comp";
	return NULL;
}

/* Return NULL, or the reason why the journal is not for this merge. */
static const char *resume_disagreement(struct merge *m)
{
	const char *why = merge_journal_foreign(m);
	struct stat st;

	if (why)
		return why;
	if (m->j.streams.n != m->streams.n)
		return "it has other datasets";
	for (size_t i = 0; i < m->streams.n; i++)
		if (!stream_agrees(m, i))
			return "it has other datasets";
	if (stat(m->data_path, &st) < 0)
		return "its data file is missing";
	if ((uint64_t)st.st_size < m->j.end)
		return "its data file is too short";
	return NULL;
}

static int resume_take_stream(struct stream *s, const struct journal_stream *x,
			      struct error *err)
{
	uint64_t chunk[RANK_MAX];

	memcpy(chunk, s->t->shape, s->t->rank * sizeof *chunk);
	memcpy(chunk, x->chunk, x->rank * sizeof *chunk);
	if (grid_init(&s->grid, s->t->rank, s->t->shape, chunk,
		      s->t->dtype.size) < 0)
		return error_set(
			err, -EBADMSG,
			"%s: the journal has an impossible shape of chunks",
			x->path);
	s->pipeline = x->pipeline;
	s->safe = calloc(bits_words(s->grid.count), sizeof *s->safe);
	return s->safe ? 0
		       : error_no_memory(err, "the table of finished chunks");
}

static int resume_take_chunks(struct merge *m, struct error *err)
{
	for (size_t i = 0; i < m->j.chunks.n; i++) {
		const struct build_chunk *c = &m->j.chunks.at[i].at;
		struct stream *s = &m->streams.at[m->j.chunks.at[i].stream];

		/* The chunk numbers are valid: the grid is that of the journal, which was
		 * checked. */
		for (uint64_t k = 0; k < (c->len ? 1 : c->pos); k++) {
			if (bits_get(s->safe, c->number + k))
				return error_set(
					err, -EBADMSG,
					"'%s' records chunk %llu twice; "
					"nothing was touched",
					m->journal_path,
					(unsigned long long)(c->number + k));
			bits_set(s->safe, c->number + k);
		}
	}
	m->written = m->j.chunks.n;
	return 0;
}

static int resume_take_texts(struct merge *m, struct error *err)
{
	for (size_t i = 0; i < m->j.texts.n; i++) {
		struct journal_text *x = &m->j.texts.at[i];

		for (size_t k = 0; k < m->values.n; k++) {
			struct values *v = &m->values.at[k];

			if (strcmp(v->text.path, x->path))
				continue;
			for (size_t n = 0; n < x->runs.n; n++) {
				struct journal_run run = x->runs.at[n];

				run.value = strdup(run.value);
				if (!run.value || !vec_push(&v->text.runs, run))
					return error_no_memory(
						err,
						"the flags in the journal");
			}
			v->captured = true;
		}
	}
	return 0;
}

static int resume_take_parts(struct merge *m, struct error *err)
{
	for (size_t i = 0; i < m->j.parts.n; i++) {
		const struct journal_file *x = &m->j.parts.at[i];
		uint32_t file = handles_add(m->handles, x->path);
		struct merge_file *f =
			file == UINT32_MAX ? NULL : merge_file_of(m, file);

		if (!f)
			return error_no_memory(err, "the list of parts");
		f->id = x->id;
		f->kept = x->kept;
		f->journaled = true;
		f->gone = access(x->path, F_OK) < 0;
	}
	m->result->parts = m->j.parts.n;
	return 0;
}

static bool resume_is_listed(const struct merge *m, const struct merge_file *f,
			     size_t near)
{
	const char *path = handles_path(m->handles, f->file);
	const char *slash = strrchr(path, '/'), *base = slash ? slash : path;
	size_t n = m->j.parts.n, len = strlen(base);

	for (size_t i = 0; i < n; i++) {
		const struct journal_file *x = &m->j.parts.at[(near + i) % n];
		size_t have = strlen(x->path);

		if (merge_place_alike(&x->id, &f->id) && have >= len &&
		    !strcmp(x->path + have - len, base))
			return true;
	}
	return false;
}

int merge_check_renamed(struct merge *m, struct error *err)
{
	for (size_t i = 0; i < m->files.n && m->result->resumed; i++) {
		const struct merge_file *f = &m->files.at[i];

		if (!f->journaled && !f->gone && f->file != m->s->file &&
		    !resume_is_listed(m, f, i))
			return error_set(
				err, -ESTALE,
				"%s has changed since the merge was "
				"interrupted; nothing was touched",
				file_shown(handles_path(m->handles, f->file)));
	}
	return 0;
}

static int resume_take_over(struct merge *m, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < m->streams.n && r == 0; i++)
		r = resume_take_stream(&m->streams.at[i], &m->j.streams.at[i],
				       err);
	if (r == 0)
		r = resume_take_chunks(m, err);
	if (r == 0)
		r = resume_take_texts(m, err);
	if (r == 0)
		r = resume_take_parts(m, err);
	m->result->resumed = r == 0;
	return r < 0 ? r : 1;
}

int merge_journal_resume(struct merge *m, struct error *err)
{
	const char *gone, *other, *why;

	if (!m->j.chunks.n) /* then nothing was deleted either */
		return 0;
	gone = first_other(&m->j, true);
	other = first_other(&m->j, false);
	why = resume_disagreement(m);
	if (!gone && (why || other || !m->o.delete_parts))
		return 0;
	if (!m->o.delete_parts)
		return error_set(err, -EBADMSG,
				 "an interrupted merge has deleted parts: "
				 "finish it with --delete-parts");
	if (why)
		return error_set(
			err, -EBADMSG,
			"an interrupted merge has deleted parts, and '%s' "
			"cannot be used to finish it: %s; nothing was touched",
			m->journal_path, why);
	if (other)
		return error_set(err, -ESTALE,
				 "%s has changed since the merge was "
				 "interrupted; nothing was touched",
				 file_shown(other));
	return resume_take_over(m, err);
}
