/* SPDX-License-Identifier: BSD-2-Clause */
/* epochs/E/rank-R-of-W/: the samples in the order of a rank; see tree/epochs.h. */

/*
 * A directory exists once its name was looked up, and gets a number then.  Its files
 * are those of samples/ under other names: the same nodes, as hard links are.  So what
 * the kernel has cached of a sample serves every epoch and every rank, and a second
 * epoch costs only look-ups of names.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lookups.h"
#include "base/number.h"
#include "tree/epochs.h"
#include "views/lists.h"
#include "views/name.h"
#include "views/node.h"
#include "views/samples.h"
#include "views/state.h"
#include "views/table.h"

#define ORDER "order.txt"

static bool epochs_fits(struct tensor *t, unsigned axes)
{
	uint64_t n = listing_samples(t, axes);

	return axes && n && n <= EPOCHS_SAMPLES_MAX &&
	       (view_is_numeric(t) || view_is_text(t) || view_is_sized(t));
}

/* Return the epochs of a tensor, made at the first call; NULL without memory. */
static struct epochs *epochs_get(const struct view *v)
{
	struct epochs *e = atomic_load(&v->tensor->views->epochs), *none = NULL;

	if (e)
		return e;
	e = epochs_new(listing_samples(v->tensor, v->sample_axes));
	if (!e ||
	    atomic_compare_exchange_strong(&v->tensor->views->epochs, &none, e))
		return e;
	epochs_free(e);
	return none;
}

static uint32_t epoch_number(const struct view_node *w)
{
	return w->depth ? (uint32_t)w->at[0] : EPOCHS_TOP;
}

/* ---- samples ------------------------------------------------------------- */

/* Set *out to the view that has the samples' files.  Return false if there is none. */
static bool epoch_samples_view(const struct tensor_files *f, struct view *out)
{
	for (unsigned k = 0; k < f->n; k++)
		if (!strcmp(view_table[f->row[k]]->top, "samples")) {
			view_at(f, k, out);
			return true;
		}
	return false;
}

/* ---- directories --------------------------------------------------------- */

static uint64_t epoch_dirs_count(const struct tensor_files *f,
				 const struct view_node *dir)
{
	struct epochs *e = atomic_load(&f->tensor->views->epochs);

	return e && dir->depth ? epochs_count(e, epoch_number(dir)) : 0;
}

static bool epoch_dirs_endless(const struct tensor_files *f,
			       const struct view_node *dir)
{
	struct epochs *e = epochs_get(&dir->view);

	(void)f;
	return e && epochs_endless(e, epoch_number(dir));
}

static int epoch_dirs_entry(const struct tensor_files *f,
			    const struct view_node *dir, uint64_t i,
			    uint64_t *node, char *buf, size_t n)
{
	struct epochs *e = epochs_get(&dir->view);
	struct view samples;
	uint64_t sample;
	int r;

	if (!e || !epoch_samples_view(f, &samples))
		return e ? -ENOENT : -ENOMEM;
	r = epochs_entry(e, epoch_number(dir), i, view_samples_suffix(&samples),
			 &sample, buf, n);
	if (r == 0)
		*node = view_entry_node(&samples, sample);
	return r;
}

static int epoch_dirs_find(const struct tensor_files *f,
			   const struct view_node *dir, const char *name,
			   uint64_t *node)
{
	struct epochs *e = epochs_get(&dir->view);
	struct view samples;
	struct epochs_entry x;
	uint64_t at[2] = {0};
	int r;

	if (!e || !epoch_samples_view(f, &samples))
		return e ? -ENOENT : -ENOMEM;
	r = epochs_find(e, epoch_number(dir), name,
			view_samples_suffix(&samples), &x);
	if (r < 0)
		return r;
	at[0] = x.number;
	*node = x.kind == EPOCHS_SAMPLE
			? view_entry_node(&samples, x.number)
			: view_node_number(&dir->view,
					   x.kind == EPOCHS_ORDER ? 2 : 1, at);
	return 0;
}

static int epoch_dirs_parent(const struct tensor_files *f,
			     const struct view_node *entry, uint64_t *dir)
{
	struct epochs *e = atomic_load(&f->tensor->views->epochs);
	uint64_t at[1] = {entry->at[0]};
	uint32_t up;
	int r;

	if (!e)
		return -ENOENT;
	r = epochs_parent(e, epoch_number(entry), &up);
	if (r < 0)
		return r;
	if (entry->depth == 1)
		at[0] = up;
	*dir = entry->depth == 1 && up == EPOCHS_TOP
		       ? 1 + (uint64_t)entry->view.index
		       : view_node_number(&entry->view, 1, at);
	return 0;
}

static int epoch_dirs_name(const struct tensor_files *f,
			   const struct view_node *entry, char *buf, size_t n)
{
	struct epochs *e = atomic_load(&f->tensor->views->epochs);

	if (entry->depth == 1)
		return e ? epochs_name(e, epoch_number(entry), buf, n)
			 : -ENOENT;
	snprintf(buf, n, ORDER);
	return 0;
}

/* ---- order.txt ----------------------------------------------------------- */

static uint64_t epochs_numbers(const struct view *v, unsigned level)
{
	(void)v;
	return level ? 1 : LOOKUPS_NUMBERS;
}

/* Write a sample's name in samples/, without the suffix. */
static int epoch_put_name(FILE *out, const struct view *samples,
			  uint64_t sample)
{
	uint64_t at[RANK_MAX];

	view_entry_indices(samples, sample, at);
	for (unsigned i = 0; i < samples->levels; i++)
		fprintf(out, "%s%0*" PRIu64, i ? "/" : "",
			(int)view_width(samples->ops->count(samples, i) - 1),
			at[i]);
	return fputc('\n', out);
}

static char *epoch_order_text(const struct view *v, const uint64_t *at,
			      size_t *len, struct error *err)
{
	struct view samples = {.ops = &view_samples,
			       .tensor = v->tensor,
			       .levels = v->sample_axes};
	struct epochs *e = epochs_get(v);
	char *text = NULL;
	FILE *out = e ? open_memstream(&text, len) : NULL;
	uint64_t n = e ? epochs_count(e, (uint32_t)at[0]) : 0, sample;
	bool ok = out;

	for (uint64_t i = 0; i < n && ok; i++)
		ok = epochs_entry(e, (uint32_t)at[0], i, "", &sample, NULL,
				  0) == 0 &&
		     epoch_put_name(out, &samples, sample) != EOF;
	if (out && fclose(out) == 0 && ok)
		return text;
	free(text);
	error_no_memory(err, "order.txt");
	return NULL;
}

static void epoch_order_name(const struct view *v, unsigned level,
			     const uint64_t *at, char *buf, size_t n)
{
	(void)v;
	(void)level;
	(void)at;
	snprintf(buf, n, ORDER);
}

static uint32_t epoch_generation(const struct view *v, const uint64_t *at)
{
	struct epochs *e = atomic_load(&v->tensor->views->epochs);

	return e ? epochs_generation(e, (uint32_t)at[0]) : 0;
}

static int epoch_hold(const struct view *v, const uint64_t *at, int64_t n)
{
	struct epochs *e = atomic_load(&v->tensor->views->epochs);

	return e ? epochs_hold(e, (uint32_t)at[0], n) : -ENOENT;
}

static const struct view_dirs epochs_dirs = {
	.count = epoch_dirs_count,
	.endless = epoch_dirs_endless,
	.entry = epoch_dirs_entry,
	.find = epoch_dirs_find,
	.parent = epoch_dirs_parent,
	.name = epoch_dirs_name,
};
static void epochs_end(struct tensor *t)
{
	epochs_free(atomic_exchange(&t->views->epochs, NULL));
}

const struct view_ops view_epochs = {
	.name = "epochs",
	.summary = "epochs/E/rank-R-of-W/, samples in the order of a rank",
	.top = "epochs",
	.levels = 2,
	.unlisted = true,
	.dirs = &epochs_dirs,
	.generation = epoch_generation,
	.hold = epoch_hold,
	.fits = epochs_fits,
	.end = epochs_end,
	.count = epochs_numbers,
	.name_of = epoch_order_name, /* used in sentences */
	.document = epoch_order_text,
};
