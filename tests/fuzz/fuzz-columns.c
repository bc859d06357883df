/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a whole Arrow or Parquet file: opened, listed, and of every column the
 * first values and the last one read. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream/backing.h"
#include "base/log.h"
#include "fuzz.h"
#include "formats/arrow/arrow.h"
#include "formats/parquet/parquet.h"
#include "store/store.h"
#include "views/classes.h"
#include "tensor/read.h"
#include "tensor/text.h"

#define COLUMNS_MOST 64
#define SAMPLES_MOST 4
/* Of numbers that are made; what takes more is right, and slow. */
#define CHUNK_MOST (UINT64_C(4) << 20)
#define CACHE (UINT64_C(64) << 20)

struct looking {
	struct handles *handles;
	struct store *store;
	struct pinner *p;
};

static void check_failed(int r, const struct error *err)
{
	FUZZ_CHECK(r < 0 && *err->text);
}

static void look_at_numbers(struct looking *k, struct tensor *t)
{
	uint64_t size = t->dtype.size, n = t->elements < 64 ? t->elements : 64;
	const struct layout *l;
	unsigned char some[4096];
	struct error err = {0};
	struct box b;
	int r;

	if (!n || size > sizeof some)
		return;
	if (n * size > sizeof some)
		n = sizeof some / size;
	memset(&b, 0, sizeof b);
	for (unsigned i = 0; i < t->rank; i++)
		b.count[i] = t->shape[i];
	for (unsigned last = 0; last < 2; last++) {
		r = tensor_learn(t, last ? t->nparts - 1 : 0, &l, &err);
		if (r < 0)
			check_failed(r, &err);
		if (r < 0 || l->grid->chunk_bytes > CHUNK_MOST)
			continue;
		r = tensor_read(t, &b, last ? (t->elements - n) * size : 0,
				some, n * size, k->p, &err);
		if (r < 0)
			check_failed(r, &err);
	}
}

static void look_at_sample(struct looking *k, struct tensor *t, uint64_t i)
{
	struct error err = {0};
	struct plan plan;
	struct span span;
	uint64_t size;
	int r = text_sample_size(t->text, i, k->p, &size, &err);

	if (r < 0) {
		check_failed(r, &err);
		return;
	}
	if (!size)
		return;
	plan_init(&plan, size);
	FUZZ_CHECK(text_map_sample(t->text, i, 0, &plan) == 0 && plan.n == 1);
	r = k->p->pin(k->p, &plan.ext[0], &span, &err);
	if (r < 0) {
		check_failed(r, &err);
		return;
	}
	FUZZ_CHECK(span.len == size);
	k->p->unpin(k->p, &span);
}

static void look_at_values(struct looking *k, struct tensor *t)
{
	for (uint64_t i = 0; i < SAMPLES_MOST && i < t->elements; i++)
		look_at_sample(k, t, i);
	if (t->elements > SAMPLES_MOST)
		look_at_sample(k, t, t->elements - 1);
}

static void look_at(struct looking *k, struct tensor *t)
{
	const struct class_index *x;
	struct error err = {0};
	char *info = tensor_info_text(t, &err);
	int r;

	FUZZ_CHECK(info || *err.text);
	free(info);
	if (t->why_not) {
		FUZZ_CHECK(*t->why_not);
		return;
	}
	if (t->text)
		look_at_values(k, t);
	else
		look_at_numbers(k, t);
	if (t->classes && classes_samples(t->classes) < 4096) {
		r = classes_index(t->classes, &x, &err);
		if (r < 0)
			check_failed(r, &err);
		else
			FUZZ_CHECK(x->samples == t->shape[0]);
	}
}

static void look_at_tree(struct looking *k, const struct tree *t)
{
	for (uint64_t i = 0; i < COLUMNS_MOST; i++) {
		char name[FILES_NAME_MAX + 1];
		struct tensor *column;
		struct node n;

		if (tree_entry(t, TREE_ROOT, i, &n, name, sizeof name) < 0)
			break;
		FUZZ_CHECK(*name && n.files);
		column = tensor_of_files(n.files);
		if (column)
			look_at(k, column);
	}
}

static void look_at_file(struct looking *k, const struct backing *bytes)
{
	const struct attr like = {.mode = S_IFREG | 0644};
	const struct archive_options o = {.depth = 0};
	struct source_args a = {.path = "fuzz",
				.inside = bytes,
				.like = &like,
				.handles = k->handles,
				.pinner = k->p,
				.archive = &o,
				.tree = tree_builder_new()};
	unsigned char head[SOURCE_HEAD];
	size_t n = bytes->size < sizeof head ? bytes->size : sizeof head;
	const struct source_ops *ops;
	struct source *source = NULL;
	struct tree *tree = NULL;
	struct error err = {0};
	int r = backing_read(bytes, 0, head, n, &err);

	view_options_default(&a.views);
	FUZZ_CHECK(r == 0 && a.tree);
	ops = source_arrow.probe(head, n, "fuzz")     ? &source_arrow
	      : source_parquet.probe(head, n, "fuzz") ? &source_parquet
						      : NULL;
	r = ops ? ops->open(&a, &source, &err) : -ENOTSUP;
	if (r == 0)
		r = tree_finish(a.tree, &tree, &err);
	else if (ops)
		check_failed(r, &err);
	if (r == 0)
		look_at_tree(k, tree);
	tree_builder_free(a.tree);
	tree_free(tree);
	source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_options o = {.cache_size = CACHE};
	struct looking k = {NULL, NULL, NULL};
	struct backing bytes = {.size = size};
	struct error err = {0};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[40];

	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	FUZZ_CHECK(handles_new(&k.handles, 8, 1, &err) == 0);
	bytes.handles = o.handles = k.handles;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	bytes.file = handles_add(k.handles, path);
	FUZZ_CHECK(bytes.file != UINT32_MAX);
	FUZZ_CHECK(store_new(&k.store, &o, &err) == 0);
	k.p = bytes.pinner = store_pinner(k.store);
	if (size)
		look_at_file(&k, &bytes);
	store_free(k.store);
	handles_free(k.handles);
	close(fd);
	return 0;
}
