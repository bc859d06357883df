/* SPDX-License-Identifier: BSD-2-Clause */
/* zip: scan an archive, into a member table and the space that ranges are in. */
#include "formats/zip/zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "formats/zip/private.h"

/* Longest target of a symlink, in bytes. */
#define TARGET_MAX 4096

struct adding {
	const struct backing *from;
	const struct zip *zip;
	struct members_builder *b;
	/* Where decoded and bad bytes begin in the space. */
	uint64_t decoded, bad;
};

static int inflate_target(const struct adding *a, const struct zip_entry *e,
			  char *target, struct error *err)
{
	unsigned char data[2 * TARGET_MAX];
	uint64_t n, i = stream_window_at(a->zip->stream, e->data);
	const struct stream_point *p = stream_points(a->zip->stream, &n);
	int r;

	if (e->stored > sizeof data || i >= n || p[i].out != e->data)
		return -EBADMSG;
	r = backing_read(a->from, p[i].in, data, (size_t)e->stored, err);
	return r < 0 ? r
		     : deflate_decode(data, (size_t)e->stored, target,
				      (size_t)e->size, e->crc, err);
}

/* Read the target of a symlink.  Return 0, -EBADMSG if there is none, or another
 * error. */
static int read_symlink_target(const struct adding *a,
			       const struct zip_entry *e,
			       char target[TARGET_MAX + 1], struct error *err)
{
	int r;

	if (e->why != ZIP_NO_REASON || !e->size || e->size > TARGET_MAX)
		return -EBADMSG;
	r = e->method == ZIP_DEFLATED ? inflate_target(a, e, target, err)
				      : backing_read(a->from, e->data, target,
						     (size_t)e->size, err);
	target[e->size] = '\0';
	if (r == 0 && strlen(target) != e->size)
		r = -EBADMSG;
	return r;
}

static int add_zip_symlink(const struct adding *a, const struct zip_entry *e,
			   struct member *m, struct error *err)
{
	char target[TARGET_MAX + 1];
	int64_t r = read_symlink_target(a, e, target, err);

	if (r == -EBADMSG || r == -EIO) {
		members_damage(a->b, "symlink",
			       "a symlink without a readable target is left "
			       "out");
		return 0;
	}
	if (r < 0)
		return (int)r;
	m->link = target;
	m->kind = MEMBER_SYMLINK;
	r = members_add(a->b, m, err);
	return r == -ENOMEM ? -ENOMEM : 0;
}

static void place_zip_file(const struct adding *a, const struct zip_entry *e,
			   struct member *m)
{
	m->size = e->size;
	m->kind = e->size ? MEMBER_RANGE : MEMBER_NONE;
	m->data = !e->size                    ? 0
		  : e->why != ZIP_NO_REASON   ? a->bad + e->data
		  : e->method == ZIP_DEFLATED ? a->decoded + e->data
					      : e->data;
}

static int add_zip_entry(const struct adding *a, const struct zip_entry *e,
			 uint32_t uid, uint32_t gid, struct error *err)
{
	struct member m = {.path = e->name,
			   .mode = e->mode,
			   .uid = e->uid == UINT32_MAX ? uid : e->uid,
			   .gid = e->gid == UINT32_MAX ? gid : e->gid,
			   .mtime = e->mtime,
			   .nsec = e->nsec};
	int64_t r;

	if (strlen(e->name) == 0 ||
	    (S_ISREG(e->mode) && e->data == UINT64_MAX)) {
		members_left_out(a->b, "left out",
				 "a member whose name or size is impossible is "
				 "left out");
		return 0;
	}
	if (S_ISDIR(e->mode) && e->size)
		members_left_out(a->b, "data of a directory",
				 "%s: this directory has %llu bytes of data, "
				 "which are left out",
				 e->name, (unsigned long long)e->size);
	if (S_ISLNK(e->mode))
		return add_zip_symlink(a, e, &m, err);
	if (S_ISDIR(e->mode))
		m.kind = MEMBER_DIR;
	else
		place_zip_file(a, e, &m);
	r = members_add(a->b, &m, err);
	return r == -ENOMEM ? -ENOMEM : 0;
}

static int scan_zip_directory(struct zip_placing *p, uint32_t uid, uint32_t gid,
			      struct error *err)
{
	struct zip_directory *d = p->directory;
	struct adding a = {.from = p->from, .zip = p->zip, .b = p->notes};
	int r = zip_directory_read(d, p->from, err);

	if (r == 0)
		r = zip_directory_parse(d, p->notes, err);
	if (r == 0)
		r = zip_place(p, err);
	if (r < 0)
		return r;
	a.decoded = p->from->size;
	a.bad = a.decoded + stream_size(p->zip->stream);
	/* In the order of the directory: of equal names the last one wins. */
	for (size_t i = 0; i < d->at.n && r == 0; i++)
		r = add_zip_entry(&a, &d->at.at[i], uid, gid, err);
	return r;
}

int zip_scan(const struct zip_scanning *s, struct members *m, struct zip **out,
	     struct error *err)
{
	struct zip_directory d = {0};
	struct members_builder *b = NULL;
	struct zip_placing p = {.from = s->stored,
				.directory = &d,
				.threads = s->threads,
				.so_far = s->so_far,
				.ctx = s->ctx};
	int r = zip_new(&p.zip, s->stored, err);

	*out = NULL;
	if (r == 0)
		r = members_builder_new(&b, s->options, err);
	p.notes = b;
	if (r == 0)
		r = scan_zip_directory(&p, s->uid, s->gid, err);
	zip_directory_free(&d);
	if (r == 0)
		r = members_finish(b, m, err);
	else if (b)
		members_builder_free(b);
	if (r < 0)
		zip_free(p.zip);
	else
		*out = p.zip;
	return r;
}
