/* SPDX-License-Identifier: BSD-2-Clause */
/* Make one HDF5 file that needs no other: the steps of a merge, in their order. */

/*
 *   begin     choose names, take the lock, read an earlier attempt's journal (place.c)
 *   look      list everything in the main file and behind its links (look.c)
 *   plan      find the datasets to put together; choose chunks and filters (plan.c)
 *   check     parts, flags, room: nothing has been touched so far (check.c, keep.c)
 *   rehearse  with --delete-parts: do what could fail later, while all parts are there
 *   work      make chunks, with all threads, one behind the other (work.c, chunk.c);
 *             with --delete-parts: sync, journal, delete, again and again
 *   make      make the file around the chunks (make.c, values.c, attr.c)
 *   publish   sync, journal, rename (place.c)
 *   delete    delete the parts that were needed until now, and the journal
 *
 * When the process is killed in the middle, the next attempt looks and plans again, and
 * takes over the work that the journal records (resume.c); the journal stands in for
 * parts that are gone.  Without --delete-parts only work is lost, and the next attempt
 * begins anew.
 */
#include "tensors/merge/private.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "formats/hdf5/file/source.h"
#include "formats/hdf5/hdf5.h"

int merge_begin(struct merge **out, const struct merge_options *o,
		struct merge_result *result, struct error *err)
{
	struct merge *m = calloc(1, sizeof *m);
	int r;

	*out = NULL;
	*result = (struct merge_result){.datasets = 0};
	if (!m)
		return error_no_memory(err, "the merge");
	m->o = *o;
	m->result = result;
	m->dir_fd = m->lock_fd = m->main_fd = m->data_fd = -1;
	pthread_mutex_init(&m->lock, NULL);
	*out = m;
	if (!m->o.out)
		m->o.out = m->o.main;
	r = merge_place_open(m, err);
	if (r == 0 && m->j.made) {
		result->resumed = true;
		result->parts = m->j.parts.n;
		if (!o->delete_parts)
			return error_set(
				err, -EBADMSG,
				"a merge with --delete-parts was interrupted: "
				"finish it first, with --delete-parts");
		r = merge_place_finish(m, err);
		return r < 0 ? r : 1;
	}
	if (r == 0 && m->mode && !m->in_place && !m->o.replace)
		r = error_set(err, -EEXIST,
			      "'%s' already exists; --force replaces it",
			      m->o.out);
	return r;
}

/* Refuse an output that is a part: it would be read while it is written. */
static int refuse_part_as_output(struct merge *m, struct error *err)
{
	struct identity is;
	struct stat st;

	if (stat(m->out, &st) < 0 || m->in_place)
		return 0;
	identity_of(&st, &is);
	for (size_t i = 0; i < m->files.n; i++)
		if (m->files.at[i].id.dev == is.dev &&
		    m->files.at[i].id.ino == is.ino)
			return error_set(err, -EINVAL,
					 "'%s' is a part of the data to merge: "
					 "choose another output",
					 m->out);
	return 0;
}

/* Do all steps before the first that changes a file. */
static int look_and_check(struct merge *m, struct error *err)
{
	int r = merge_look(m, err);

	if (r == 0)
		r = merge_plan(m, err);
	if (r == 0)
		r = merge_journal_resume(m, err);
	/* If r is 1, the layouts are those of the journal. */
	for (size_t i = 0; i < m->streams.n && r == 0; i++)
		r = merge_plan_layout(m, &m->streams.at[i],
				      m->streams.at[i].t->name, err);
	if (r >= 0)
		r = merge_check_flags(m, err);
	if (r == 0)
		r = merge_check_parts(m, err);
	if (r == 0)
		r = merge_protect_files(m, err);
	if (r == 0)
		r = merge_keep_files(m, err);
	if (r == 0)
		r = refuse_part_as_output(m, err);
	return r == 0 ? merge_check_room(m, err) : r;
}

static bool nothing_to_do(const struct merge *m)
{
	for (size_t i = 0; i < m->items.n; i++) {
		const struct item *it = &m->items.at[i];

		if (it->kind == ITEM_STREAM || it->kind == ITEM_VALUES ||
		    it->file != m->s->file)
			return false;
	}
	return true;
}

/* Check that no file was written to since it was looked at.  Where parts are deleted,
 * each is checked when it is deleted instead, because afterwards there is no way back. */
static int check_unchanged(struct merge *m, struct error *err)
{
	int r = merge_place_unchanged(m->o.main, &m->main_id, err);

	for (size_t i = 0; i < m->files.n && r == 0; i++)
		r = merge_place_unchanged(
			handles_path(m->handles, m->files.at[i].file),
			&m->files.at[i].id, err);
	return r;
}

/* Delete parts whose names have changed: the journal has the names that they had when the
 * first attempt began. */
static int delete_renamed(struct merge *m, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < m->files.n && r == 0; i++) {
		const struct merge_file *f = &m->files.at[i];

		if (!f->journaled && !f->main && !f->kept && !f->gone)
			r = merge_place_delete(
				m, handles_path(m->handles, f->file), &f->id,
				err);
	}
	return r;
}

static int make_and_publish(struct merge *m, struct error *err)
{
	int r = merge_make_apart(m, err);

	if (r == 0 && !m->o.delete_parts)
		r = check_unchanged(m, err);
	if (r == 0)
		r = merge_place_publish(m, err);
	if (r < 0)
		return r;
	if (m->o.delete_parts)
		r = merge_place_delete_listed(m, err);
	else
		merge_place_remove(m, true);
	if (r == 0 && m->result->resumed)
		r = delete_renamed(m, err);
	m->ended = r == 0 || r == -ESTALE;
	m->began = false;
	return r;
}

/* Find data that does not decode, and objects that the library cannot copy, before the
 * first part is deleted: afterwards the merge could neither go on nor be undone. */
static int merge_rehearse(struct merge *m, struct error *err)
{
	int r = merge_work_rehearse(m, err);

	if (r == 0)
		r = merge_make_apart(m, err);
	if (r == 0 && ftruncate(m->data_fd, 0) < 0)
		r = error_errno(err, -errno, "cannot write '%s'",
				file_shown(m->data_path));
	return r;
}

static int merge_put_together(struct merge *m, struct error *err)
{
	bool resumed = m->result->resumed;
	int r;

	m->began = true;
	r = resumed ? 0 : merge_journal_begin(m, err);
	if (r == 0)
		r = merge_place_data(m, resumed, err);
	if (r == 0)
		r = build_new(&m->b, m->data_fd, m->data_path,
			      resumed ? m->j.end : BUILD_FIRST, err);
	if (r == 0 && m->o.delete_parts && !resumed)
		r = merge_rehearse(m, err);
	if (r == 0)
		r = merge_work(m, err);
	return r < 0 ? r : make_and_publish(m, err);
}

int merge_run(struct merge *m, struct source *source, struct store *store,
	      struct error *err)
{
	int r;

	m->s = hdf5_source_of(source);
	if (!m->s)
		return error_set(err, -ENOTSUP, "%s is not an HDF5 file",
				 m->o.main);
	m->store = store;
	m->handles = m->s->handles;
	r = look_and_check(m, err);
	if (r == 0 && m->in_place && nothing_to_do(m)) {
		m->result->nothing = true;
		return 0;
	}
	if (r < 0) {
		/* The files of an earlier attempt stay as they are.  Where they were
		 * refused, it does not help to try again. */
		m->result->kept =
			m->j.chunks.n > 0 &&
			(r == -EINTR || (m->result->resumed && r != -ESTALE));
		return r;
	}
	r = merge_put_together(m, err);
	if (r < 0)
		m->result->kept = m->o.delete_parts && !m->ended &&
				  (m->written > 0 || m->j.made);
	return r;
}

/* ---- letting go ---------------------------------------------------------- */

static void free_streams(struct merge *m)
{
	for (size_t i = 0; i < m->streams.n; i++) {
		struct stream *s = &m->streams.at[i];

		tensor_free(s->t);
		free(s->part);
		free((void *)s->claimed);
		free(s->safe);
		free(s->first);
		free(s->tile);
	}
	vec_free(&m->streams);
}

static void free_values(struct merge *m)
{
	for (size_t i = 0; i < m->values.n; i++) {
		struct values *v = &m->values.at[i];

		tensor_free(v->t);
		journal_text_free(&v->text);
	}
	vec_free(&m->values);
}

static void free_file(struct merge_file *f)
{
	vec_free(&f->uses);
	vec_free(&f->taken);
}

static void close_files(struct merge *m)
{
	struct stat st;

	/* Remove files with which no attempt can go on, and a lock file without a
	 * journal. */
	if (m->began && !m->result->kept)
		merge_place_remove(m, m->j.made);
	else if (m->lock_fd >= 0 && fstat(m->lock_fd, &st) == 0 &&
		 st.st_size == 0)
		unlink(m->journal_path);
	if (m->data_fd >= 0)
		close(m->data_fd);
	if (m->dir_fd >= 0)
		close(m->dir_fd);
	if (m->lock_fd >= 0)
		close(m->lock_fd);
	if (m->main_fd >= 0)
		close(m->main_fd);
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	build_free(m->b);
	close_files(m);
	free_streams(m);
	free_values(m);
	tdestroy(m->seen, free);
	for (size_t i = 0; i < m->items.n; i++) {
		free(m->items.at[i].path);
		free(m->items.at[i].target);
	}
	vec_free(&m->items);
	for (size_t i = 0; i < m->files.n; i++)
		free_file(&m->files.at[i]);
	vec_free(&m->files);
	vec_free(&m->file_index);
	journal_free(&m->j);
	pthread_mutex_destroy(&m->lock);
	free(m->out);
	free(m->dir);
	free(m->data_path);
	free(m->journal_path);
	free(m);
}
