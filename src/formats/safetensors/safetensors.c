/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: a .safetensors file, whose tensors are shown in place. */
#include "formats/safetensors/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "formats/arrays.h"
#include "formats/safetensors/header.h"

struct safetensors_source {
	struct arrays arrays; /* first member */
	struct safetensors header;
};

/* The metadata of the file are attributes of each tensor. */
static json_t *safetensors_attributes(const struct array *a)
{
	const struct safetensors_source *s =
		(const struct safetensors_source *)a->source;

	return s->header.metadata ? json_deep_copy(s->header.metadata)
				  : json_object();
}

static const struct array_ops safetensors_ops = {
	.attributes = safetensors_attributes,
};

static int publish_safetensor(struct safetensors_source *s,
			      const struct source_args *a, uint64_t data,
			      const struct safetensor *t, struct error *err)
{
	struct array_layout l = {.kind = ARRAY_LINEAR, .file = s->arrays.file};
	struct array_spec spec = {
		.name = t->name, .layout = &l, .ops = &safetensors_ops};
	struct error why = {.code = 0};
	struct array *array;
	int r;

	if (t->why_not) {
		error_set(&why, -ENOTSUP, "%s", t->why_not);
		return array_publish_not(&s->arrays, a->tree, a->dir, t->name,
					 &why, err);
	}
	spec.rank = t->rank;
	spec.stored = l.stored = t->dtype;
	spec.note = t->dtype.text;
	memcpy(spec.shape, t->shape, t->rank * sizeof *t->shape);
	memcpy(l.shape, t->shape, t->rank * sizeof *t->shape);
	l.pos = data + t->begin;
	r = array_new(&s->arrays, &spec, &array, &why);
	if (r == -ENOTSUP)
		return array_publish_not(&s->arrays, a->tree, a->dir, t->name,
					 &why, err);
	if (r < 0)
		return error_set(err, r, "\"%.80s\": %s", t->name, why.text);
	return array_publish(a->tree, a->dir, t->name, array, NULL, err);
}

static int publish_safetensors(struct arrays *arrays,
			       const struct source_args *a, struct error *err)
{
	struct safetensors_source *s = (struct safetensors_source *)arrays;
	cleanup_free char *text = NULL;
	unsigned char head[8];
	uint64_t n, left;
	int r = arrays_read(&s->arrays, 0, head, sizeof head, err);

	if (r < 0)
		return r;
	n = load_le64(head);
	left = s->arrays.size - sizeof head;
	if (n > SAFETENSORS_HEADER_MOST)
		return error_set(err, -EBADMSG,
				 "its header has %" PRIu64
				 " bytes, more than 100 MB",
				 n);
	if (n > left)
		return error_set(err, -EBADMSG,
				 "its header has %" PRIu64
				 " bytes, but the file is shorter: truncated?",
				 n);
	text = malloc(n ? n : 1);
	if (!text)
		return error_no_memory(err, "the header of the file");
	r = arrays_read(&s->arrays, sizeof head, text, n, err);
	if (r == 0)
		r = safetensors_read(text, n, left - n, &s->header, err);
	for (size_t i = 0; r == 0 && i < s->header.n; i++)
		r = publish_safetensor(s, a, sizeof head + n, &s->header.at[i],
				       err);
	return r;
}

static int safetensors_probe(const unsigned char *head, size_t n,
			     const char *path)
{
	const char *dot = strrchr(path, '.');

	if (n < 10 || load_le64(head) > SAFETENSORS_HEADER_MOST ||
	    head[8] != '{' || !memchr("\"} \t\r\n", head[9], 6))
		return 0;
	return dot && !strcmp(dot, ".safetensors") ? 100 : 60;
}

static void safetensors_close(struct source *source)
{
	struct safetensors_source *s = (struct safetensors_source *)source;

	safetensors_free(&s->header);
	arrays_end(&s->arrays);
	free(s);
}

static int safetensors_open(const struct source_args *a, struct source **out,
			    struct error *err)
{
	return arrays_open(&source_safetensors,
			   sizeof(struct safetensors_source),
			   publish_safetensors, a, out, err);
}

const struct source_ops source_safetensors = {
	.name = "safetensors",
	.summary = "tensors of models (.safetensors)",
	.probe = safetensors_probe,
	.open = safetensors_open,
	.usage = arrays_usage,
	.close = safetensors_close,
};
