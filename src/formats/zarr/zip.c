/* SPDX-License-Identifier: BSD-2-Clause */
/* A Zarr store in a zip, where a key is the name of a member. */
/*
 * The archive is opened as any other, by its index if it has one.  Stored members are
 * read in place, deflated ones from the windows of the archive's stream.  A stored
 * member that is read whole is checked against its CRC-32, since nothing else checks it;
 * deflated members are checked by the stream.
 */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/archive/archive.h"
#include "formats/zarr/zarr.h"

struct zip_store {
	struct zarr_store store; /* first member */
	struct archive *a;
	/* Number of the member record of the root, the key "". */
	uint64_t root;
};

/* ---- which zip is one ---------------------------------------------------- */

static bool has_documents(const struct members *m, uint64_t dir)
{
	uint64_t at;

	for (const char *const *name = zarr_root_documents; *name; name++)
		if (members_find(m, dir, *name, &at) == 0 &&
		    S_ISREG(m->at[at].mode))
			return true;
	return false;
}

/* Set *root to the record of the store's root: the root of the zip, or its only
 * directory.  Returns false if neither is a node. */
static bool zip_store_find_root(const struct members *m, uint64_t *root)
{
	const struct member_record *top = &m->at[0];

	*root = 0;
	if (has_documents(m, 0))
		return true;
	if (top->size != 1 || m->at[top->data].kind != MEMBER_DIR)
		return false;
	*root = top->data;
	return has_documents(m, *root);
}

bool zarr_zip_is_store(const struct archive *a)
{
	uint64_t root;

	return zip_store_find_root(&a->members, &root);
}

/* ---- keys ---------------------------------------------------------------- */

/* Set *at to the record of a key.  Returns 0 or -ENOENT. */
static int zip_store_find_key(const struct zip_store *s, const char *key,
			      uint64_t *at)
{
	const struct members *m = &s->a->members;
	char name[FILES_NAME_MAX + 1];

	*at = s->root;
	while (*key) {
		size_t n = strcspn(key, "/");

		if (m->at[*at].kind != MEMBER_DIR || n >= sizeof name)
			return -ENOENT;
		memcpy(name, key, n);
		name[n] = '\0';
		if (members_find(m, *at, name, at) < 0)
			return -ENOENT;
		key += n + (key[n] == '/');
	}
	return 0;
}

static int zip_store_find_file(const struct zip_store *s, const char *key,
			       uint64_t *at, struct error *err)
{
	int r = zip_store_find_key(s, key, at);

	if (r < 0)
		return r;
	return S_ISREG(s->a->members.at[*at].mode)
		       ? 0
		       : error_set(err, -EIO, "%s/%s is not a regular file",
				   s->store.path, key);
}

static struct backing zip_member_backing(const struct zip_store *s, uint64_t at)
{
	const struct member_record *r = &s->a->members.at[at];

	return volume_range(&s->a->volume, r->data, r->size);
}

static int zip_key_open(struct zarr_store *store, const char *key,
			struct zarr_value *v, struct error *err)
{
	const struct zip_store *s = (const void *)store;
	uint64_t at;
	int r = zip_store_find_file(s, key, &at, err);

	if (r < 0)
		return r;
	memset(v, 0, sizeof *v);
	v->fd = -1;
	v->member = at;
	v->size = s->a->members.at[at].size;
	v->identity[0] = at;
	v->identity[1] = v->size;
	return 0;
}

static int zip_member_check_crc(const struct zip_store *s, uint64_t at,
				const void *data, size_t n, struct error *err)
{
	uint32_t crc, is;

	if (!zip_stored_crc(s->a->zip, s->a->members.at[at].data, &crc))
		return 0;
	is = libdeflate_crc32(0, data, n);
	return is == crc ? 0
			 : error_set(err, -EBADMSG,
				     "its CRC-32 is %08x, and the archive says "
				     "%08x: damaged",
				     (unsigned)is, (unsigned)crc);
}

static int zip_key_read(struct zarr_store *store, struct zarr_value *v,
			uint64_t pos, void *to, size_t n, struct error *err)
{
	const struct zip_store *s = (const void *)store;
	struct backing b;
	int r;

	if (!n)
		return 0;
	b = zip_member_backing(s, v->member);
	r = backing_read(&b, pos, to, n, err);
	if (r == 0 && !pos && n == v->size)
		r = zip_member_check_crc(s, v->member, to, n, err);
	return r;
}

static void zip_key_close(struct zarr_store *s, struct zarr_value *v)
{
	(void)s;
	(void)v;
}

static int zip_list(struct zarr_store *store, const char *dir,
		    int (*each)(void *ctx, const char *name, bool is_dir),
		    void *ctx, struct error *err)
{
	const struct zip_store *s = (const void *)store;
	const struct members *m = &s->a->members;
	const struct member_record *d;
	uint64_t at;
	int r = zip_store_find_key(s, dir, &at);

	(void)err;
	if (r < 0 || m->at[at].kind != MEMBER_DIR)
		return -ENOENT;
	d = &m->at[at];
	for (uint64_t i = d->data; i < d->data + d->size && r == 0; i++)
		r = each(ctx, member_name(m, &m->at[i]),
			 m->at[i].kind == MEMBER_DIR);
	return r;
}

static int zip_place_of(struct zarr_store *store, const char *key,
			struct handles *h, struct zarr_place *out,
			struct error *err)
{
	const struct zip_store *s = (const void *)store;
	struct backing b;
	uint64_t at;
	int r = zip_store_find_file(s, key, &at, err);

	(void)h;
	if (r < 0)
		return r;
	b = zip_member_backing(s, at);
	*out = (struct zarr_place){b.file, b.pos, s->a->members.at[at].size};
	return backing_is_plain(&b) ? 0 : 1;
}

static uint32_t zip_file_of(struct zarr_store *store, const char *key,
			    struct handles *h)
{
	(void)key;
	(void)h;
	return ((const struct zip_store *)(const void *)store)->a->stored.file;
}

static void zip_store_free(struct zarr_store *store)
{
	struct zip_store *s = (struct zip_store *)store;

	archive_close(&s->a->source);
	free(s->store.path);
	free(s);
}

static const struct zarr_store_ops zip_ops = {
	.open = zip_key_open,
	.read = zip_key_read,
	.close = zip_key_close,
	.list = zip_list,
	.place = zip_place_of,
	.file = zip_file_of,
	.free = zip_store_free,
};

/* Make the store of a zip, or return NULL if memory is short.  Takes ownership of the
 * archive, also then. */
static struct zarr_store *zip_store_new(struct archive *a)
{
	struct zip_store *s = calloc(1, sizeof *s);

	if (s)
		s->store.path = strdup(a->path);
	if (!s || !s->store.path) {
		free(s);
		archive_close(&a->source);
		return NULL;
	}
	s->store.ops = &zip_ops;
	s->a = a;
	zip_store_find_root(&a->members, &s->root);
	return &s->store;
}

/* ---- the source ---------------------------------------------------------- */

static struct archive *archive_in(const struct source *source)
{
	const struct zarr *s = (const struct zarr *)source;

	return ((const struct zip_store *)(const void *)s->store)->a;
}

int zarr_zip_open(struct archive *a, const struct source_args *args,
		  struct source **out, struct error *err)
{
	struct zarr *s = zarr_new(&source_zarr_zip);
	int r = 0;

	*out = NULL;
	if (!s) {
		archive_close(&a->source);
		return error_no_memory(err, "the record of a Zarr store");
	}
	intern_init(&s->arrays.intern);
	s->arrays.handles = args->handles;
	s->arrays.views = args->views;
	s->arrays.file = a->stored.file;
	s->arrays.size = a->stored.pos + a->stored.size;
	s->arrays.mtime = a->mtime;
	s->arrays.path = strdup(a->path);
	s->store = zip_store_new(a);
	if (!s->arrays.path || !s->store)
		r = error_no_memory(err, "the record of a Zarr store");
	return zarr_finish(s, r, args, out, err);
}

/* Verify the archive's members by their checksums; reading the chunks is done
 * elsewhere. */
static int zarr_zip_verify(struct source *s, uint64_t node,
			   struct source_check *c, struct error *err)
{
	(void)node; /* nodes are not files of the archive */
	return archive_verify(&archive_in(s)->source, 0, c, err);
}

static void zarr_zip_usage(const struct source *s, uint64_t *bytes,
			   uint64_t *inodes)
{
	archive_usage(&archive_in(s)->source, bytes, inodes);
	*inodes = 0;
}

static int zarr_zip_probe(const unsigned char *head, size_t n, const char *path)
{
	(void)head;
	(void)n;
	(void)path;
	/* The directory of the zip tells: see zarr_zip_is_store. */
	return 0;
}

/* A zip is never opened as this source by its first bytes. */
static int open_zip(const struct source_args *a, struct source **out,
		    struct error *err)
{
	return source_zip.open(a, out, err);
}

const struct source_ops source_zarr_zip = {
	.flags = SOURCE_IN_ARCHIVE,
	.name = "zarr-zip",
	.format = zarr_format,
	.summary = "Zarr stores in a zip (.zarr.zip, .zspy), versions 2 and 3",
	.probe = zarr_zip_probe,
	.open = open_zip,
	.verify = zarr_zip_verify,
	.usage = zarr_zip_usage,
	.close = zarr_close,
};
