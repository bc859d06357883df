/* SPDX-License-Identifier: BSD-2-Clause */
/* What the views of a tensor keep from one request to the next. */
#include "views/state.h"

#include <stdlib.h>

#include "views/node.h"

struct view_state *view_state_new(struct tensor *t)
{
	t->views = calloc(1, sizeof *t->views);
	if (!t->views)
		return NULL;
	t->views->tensor = t;
	tensor_document_init(t);
	for (unsigned i = 0; view_table[i]; i++)
		if (view_table[i]->begin)
			view_table[i]->begin(t);
	return t->views;
}

void view_state_free(struct tensor *t)
{
	if (!t->views)
		return;
	for (unsigned i = 0; view_table[i]; i++)
		if (view_table[i]->end)
			view_table[i]->end(t);
	free(t->views);
	t->views = NULL;
}
