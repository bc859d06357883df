/* SPDX-License-Identifier: BSD-2-Clause */
/* tensor.safetensors of one tensor; formats/bundles.c makes that of a directory. */
#include <errno.h>

#include "views/bundle.h"
#include "views/state.h"
#include "views/table.h"

static bool safetensors_fits(struct tensor *t, unsigned axes)
{
	(void)axes;
	return bundle_takes(t) && bundle_takes_name(bundle_name(t));
}

/* Return the tensor's bundle, made at the first call; NULL without memory. */
static struct bundle *tensor_bundle(struct tensor *t)
{
	struct bundle *b = atomic_load(&t->views->bundle), *none = NULL;

	if (b)
		return b;
	b = bundle_new(&t, NULL, 1);
	if (!b || atomic_compare_exchange_strong(&t->views->bundle, &none, b))
		return b;
	bundle_free(b);
	return none;
}

static int safetensors_size(const struct view *v, const uint64_t *at,
			    struct pinner *p, uint64_t *size, struct error *err)
{
	struct bundle *b = tensor_bundle(v->tensor);

	(void)at, (void)p;
	return b ? bundle_size(b, size, err)
		 : error_no_memory(err, "tensor.safetensors");
}

static int safetensors_prepare(const struct view *v, const uint64_t *at,
			       uint64_t off, uint64_t len, struct error *err)
{
	struct bundle *b = tensor_bundle(v->tensor);

	(void)at;
	return b ? bundle_prepare(b, off, len, err)
		 : error_no_memory(err, "tensor.safetensors");
}

static int safetensors_map(const struct view *v, const uint64_t *at,
			   uint64_t off, struct plan *plan, struct error *err)
{
	const struct bundle *b = atomic_load(&v->tensor->views->bundle);

	(void)at;
	return b ? bundle_map(b, off, plan, err)
		 : error_set(err, -EIO, "%s: " BUNDLE_NAME " was not prepared",
			     v->tensor->name);
}

static void safetensors_end(struct tensor *t)
{
	bundle_free(atomic_exchange(&t->views->bundle, NULL));
}

const struct view_ops view_safetensors = {
	.name = "safetensors",
	.summary = BUNDLE_NAME ", the whole tensor",
	.top = BUNDLE_NAME,
	.unlisted = true,
	.fits = safetensors_fits,
	.end = safetensors_end,
	.size = safetensors_size,
	.prepare = safetensors_prepare,
	.map = safetensors_map,
};
