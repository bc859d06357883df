/* SPDX-License-Identifier: BSD-2-Clause */
/* What the views of a tensor keep of it from one request to the next. */
#include "tensor/view_state.h"

#include <stdlib.h>

#include "base/lookups.h"
#include "tensor/bundle.h"
#include "tensor/shards_sized.h"
#include "tensor/view_lists.h"
#include "tensor/zarr.h"
#include "tree/epochs.h"

struct view_state *view_state_new(struct tensor *t)
{
	t->views = calloc(1, sizeof *t->views);
	if (t->views) {
		t->views->tensor = t;
		tensor_document_init(t);
		zarr_stored_init(t);
	}
	return t->views;
}

void view_state_free(struct tensor *t)
{
	struct view_state *s = t->views;

	if (!s)
		return;
	epochs_free(atomic_load(&s->epochs));
	lookups_free(atomic_load(&s->slices));
	lists_free(atomic_load(&s->lists));
	shards_sized_free(atomic_load(&s->sized));
	zarr_places_free(t);
	bundle_free(atomic_load(&s->bundle));
	free(s);
	t->views = NULL;
}
