/* SPDX-License-Identifier: BSD-2-Clause */
/* Small files whose text is generated when they are read, each a chunk of one chunk
 * set. */

/*
 * The number of a chunk says which document it is:
 *
 *	row of view_table (8 bits) | axes of a sample (8) | number in its view (40)
 *
 * so nothing is stored for documents that are not read, and the cache keeps the others.
 * A chunk must not be empty, so each has one byte more than its document.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "views/node.h"
#include "views/state.h"

#define ENTRY_BITS 40
#define AXES_BITS 8

static struct tensor *tensor_of_documents(const struct chunk_set *s)
{
	return ((struct view_state *)((char *)(uintptr_t)s -
				      offsetof(struct view_state, documents)))
		->tensor;
}

/* Decode a chunk number into a view and the indices of one of its files. */
static void tensor_document_node(const struct chunk_set *s, uint64_t chunk,
				 struct view_node *out)
{
	const struct view_ops *ops =
		view_table[chunk >> (ENTRY_BITS + AXES_BITS)];
	uint64_t n = chunk & ((UINT64_C(1) << ENTRY_BITS) - 1);
	unsigned axes = chunk >> ENTRY_BITS & ((1u << AXES_BITS) - 1);

	*out = (struct view_node){.view = {.ops = ops,
					   .tensor = tensor_of_documents(s),
					   .sample_axes = axes}};
	out->view.levels = view_levels(ops, out->view.tensor, axes);
	if (ops->samples)
		out->view.drop = axes;
	out->depth = out->view.levels;
	out->at[0] = n; /* for a list: the number of its block */
	for (unsigned i = out->depth; i-- > 0;) {
		uint64_t entries = max_u64(ops->count(&out->view, i), 1);

		out->at[i] = n % entries;
		n /= entries;
	}
}

uint64_t tensor_document_chunk(const struct view *v, const uint64_t *at)
{
	uint64_t row = 0, n = 0;

	while (view_table[row] != v->ops)
		row++;
	for (unsigned i = 0; i < v->levels; i++)
		n = n * max_u64(v->ops->count(v, i), 1) + at[i];
	return (row << AXES_BITS | v->sample_axes) << ENTRY_BITS | n;
}

static int tensor_document_fetch(struct chunk_set *s, uint64_t index,
				 _Atomic uint64_t *gauge, struct buf **out,
				 struct error *err)
{
	struct error why = {0};
	cleanup_free char *text = NULL;
	struct view_node w;
	struct buf *b;
	size_t len;

	tensor_document_node(s, index, &w);
	text = w.view.ops->document(&w.view, w.at, &len, &why);
	if (!text)
		return error_set(err, why.code ? why.code : -EIO, "%s",
				 why.text);
	b = buf_new(len + 1, gauge);
	if (!b)
		return error_no_memory(err, "the text of a generated file");
	memcpy(b->data, text, len);
	b->data[len] = 0;
	*out = b;
	return 0;
}

static void tensor_document_describe(const struct chunk_set *s, uint64_t index,
				     char *buf, size_t n)
{
	char name[FILES_NAME_MAX + 1] = "";
	struct view_node w;

	tensor_document_node(s, index, &w);
	if (w.depth)
		w.view.ops->name_of(&w.view, w.depth - 1, w.at, name,
				    sizeof name);
	snprintf(buf, n, "%s %s%s%s", w.view.tensor->name, w.view.ops->top,
		 *name ? "/" : "", name);
}

static const struct chunk_set_ops document_ops = {
	.index_page_of = chunk_text_index_page_of,
	.locate = chunk_text_locate,
	.fetch = tensor_document_fetch,
	.describe = tensor_document_describe,
};

void tensor_document_init(struct tensor *t)
{
	t->views->documents.ops = &document_ops;
	t->views->documents.id = chunk_set_new_id();
	t->views->documents.unit = 4096;
}
