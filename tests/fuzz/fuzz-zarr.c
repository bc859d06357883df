/* SPDX-License-Identifier: BSD-2-Clause */
/* Metadata of a Zarr array ('2' or '3', then text up to a NUL), and behind it a chunk or
 * a shard. */
#include <errno.h>

#include "fuzz.h"
#include "formats/zarr/zarr.h"

#define DECODED_MOST (1 << 20)

struct memory {
	struct zarr_store store;
	const uint8_t *data;
	size_t size;
};

static int memory_read(struct zarr_store *s, struct zarr_value *v, uint64_t pos,
		       void *to, size_t n, struct error *err)
{
	const struct memory *m = (const struct memory *)s;

	(void)v;
	FUZZ_CHECK(pos <= m->size && n <= m->size - pos);
	(void)err;
	if (n)
		memcpy(to, m->data + pos, n);
	return 0;
}

static const struct zarr_store_ops memory_ops = {.read = memory_read};

static uint64_t check(const struct zarr_array *z)
{
	uint64_t bytes = z->stored.size;
	uint64_t seen = 0;

	FUZZ_CHECK(z->rank <= RANK_MAX && z->codecs.n <= ZARR_STEPS_MAX);
	FUZZ_CHECK(z->stored.size && z->stored.size <= ZARR_ELEMENT_MAX);
	for (unsigned i = 0; i < z->rank; i++) {
		FUZZ_CHECK(z->chunk[i]);
		FUZZ_CHECK(!__builtin_mul_overflow(bytes, z->chunk[i], &bytes));
		if (z->codecs.turned)
			seen |= UINT64_C(1) << z->codecs.order[i];
		if (z->sharded)
			FUZZ_CHECK(z->per_shard[i]);
	}
	if (z->codecs.turned)
		FUZZ_CHECK(seen == (UINT64_C(1) << z->rank) - 1);
	if (z->sharded)
		FUZZ_CHECK(z->shard_chunks <= ZARR_SHARD_CHUNKS_MAX);
	return bytes;
}

/* The whole value is a chunk, or has one by its index. */
static void decode(const struct zarr_array *z, uint64_t bytes,
		   const uint8_t *data, size_t size)
{
	struct memory m = {{&memory_ops, (char *)"fuzz"}, data, size};
	struct zarr_own own = {.z = z, .path = (char *)""};
	struct zarr_value v = {.size = size};
	struct zarr_bytes from = {&m.store, &v, 0, size};
	struct array a = {.own = &own};
	static struct zarr s;
	struct error err = {0};
	unsigned char *out = malloc(bytes ? bytes : 1);
	int r = 0;

	pthread_mutex_init(&s.lock, NULL);
	s.store = &m.store;
	v.identity[0] = (uint64_t)size;
	if (z->sharded)
		r = zarr_find_in_shard(&s, &a, 0, z->shard_chunks - 1, &from,
				       &err);
	zarr_indexes_free(&s);
	if (r == 0)
		r = zarr_decode(&own, &from, out, bytes, &err);
	FUZZ_CHECK(r == 1 || r == 0 || *err.text);
	FUZZ_CHECK(r != -ENOSPC);
	pthread_mutex_destroy(&s.lock);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t n = nul ? (size_t)(nul - data) : size;
	struct error err = {0};
	struct zarr_array z;
	struct intern in;
	json_t *doc;
	int r;

	if (!n)
		return 0;
	intern_init(&in);
	r = zarr_json((const char *)data + 1, n - 1, &doc, &err);
	if (r == 0)
		r = (data[0] == '3' ? zarr_v3_read : zarr_v2_read)(doc, &in, &z,
								   &err);
	if (r == 0) {
		uint64_t bytes = check(&z);

		if (nul && bytes <= DECODED_MOST)
			decode(&z, bytes, nul + 1, size - n - 1);
	} else {
		FUZZ_CHECK((r == -EBADMSG || r == -ENOTSUP || r == -ENOMEM ||
			    r == -EINVAL) &&
			   *err.text);
	}
	json_decref(doc);
	intern_free(&in);
	return 0;
}
