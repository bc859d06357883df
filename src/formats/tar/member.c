/* SPDX-License-Identifier: BSD-2-Clause */
/* Make a member of a tar header and of what preceded it. */
/*
 * Each property has up to four sources, of which the last one wins: the header, a
 * long name of GNU tar, the global extended header, the member's own extended
 * header.  Where readers of tar differ from each other, this one does what GNU tar
 * does, or else what bsdtar does.  Where both would create a file with wrong bytes,
 * the file is shown and reading it is an error.
 */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/number.h"
#include "extent/plan.h"
#include "formats/tar/private.h"

void tar_context_clear(struct tar_context *c)
{
	c->has_name = c->has_link = false;
	tar_pax_clear(&c->local);
}

void tar_context_free(struct tar_context *c)
{
	tar_pax_free(&c->local);
	tar_pax_free(&c->global);
	free(c->long_name.at);
	free(c->long_link.at);
	free(c->path.at);
	free(c->link.at);
	vec_free(&c->sparse.run);
	vec_free(&c->xattrs.at);
}

/* Return the extended header that sets a property, the member's own or the global
 * one, or NULL. */
static const struct tar_pax *pax_that_has(const struct tar_context *c,
					  unsigned bit)
{
	if (c->local.set & bit)
		return &c->local;
	if (c->local.dropped & bit)
		return NULL;
	return c->global.set & bit ? &c->global : NULL;
}

/* ---- names --------------------------------------------------------------- */

static int header_path(struct tar_context *c, const struct tar_header *h)
{
	size_t prefix = tar_length(h->prefix, sizeof h->prefix);
	bool ok = true;

	tar_text_clear(&c->path);
	if (prefix && tar_dialect(h) == TAR_USTAR)
		ok = tar_text_add(&c->path, h->prefix, prefix) &&
		     tar_text_add(&c->path, "/", 1);
	ok = ok && tar_text_add(&c->path, h->name,
				tar_length(h->name, sizeof h->name));
	return ok ? 0 : -ENOMEM;
}

/* The longest path in bytes.  Linux accepts 4095 at once; each "a/" makes a
 * directory. */
#define PATH_LONGEST ((size_t)32 << 10)

/* Return true if a name can be shown; note one that cannot. */
static bool fits_length(const char *name, const char *what,
			struct members_builder *b)
{
	size_t n = strlen(name);
	char shown[TAR_SHOWN];

	if (n <= PATH_LONGEST)
		return true;
	members_left_out(b, "long name",
			 "a %s of %zu bytes is too long to be shown: left out "
			 "(it ends with \"%s\")",
			 what, n, tar_shown(name, shown));
	return false;
}

static int find_names(struct tar_entry *e, struct tar_context *c,
		      const struct tar_header *h, struct members_builder *b)
{
	const struct tar_pax *p;
	int r = header_path(c, h);

	tar_text_clear(&c->link);
	if (r < 0 || !tar_text_add(&c->link, h->link,
				   tar_length(h->link, sizeof h->link)))
		return -ENOMEM;
	e->m.path = c->has_name ? c->long_name.at : c->path.at;
	e->m.link = c->has_link ? c->long_link.at : c->link.at;
	p = pax_that_has(c, PAX_PATH);
	if (p)
		e->m.path = p->path.at;
	p = pax_that_has(c, PAX_LINK);
	if (p)
		e->m.link = p->link.at;
	if (c->local.set & PAX_NAME)
		e->m.path = c->local.name.at;
	e->left_out = !fits_length(e->m.path, "name", b) ||
		      !fits_length(e->m.link, "link", b);
	return 0;
}

/* ---- attributes ---------------------------------------------------------- */

/* The owner shown where the archive has no valid one. */
#define NOBODY 65534

static uint32_t shown_owner(int64_t id, const char *what, const char *path,
			    struct members_builder *b)
{
	char shown[TAR_SHOWN];

	if (id >= 0 && id < UINT32_MAX)
		return (uint32_t)id;
	members_note(
		b, "owner",
		"\"%s\" belongs to %s %lld, which is out of range: shown as %d",
		tar_shown(path, shown), what, (long long)id, NOBODY);
	return NOBODY;
}

static void find_owners(struct tar_entry *e, const struct tar_context *c,
			const struct tar_header *h, struct members_builder *b)
{
	const struct tar_pax *u = pax_that_has(c, PAX_UID),
			     *g = pax_that_has(c, PAX_GID);
	int64_t uid, gid;

	(void)tar_number(h->uid, sizeof h->uid, &uid);
	(void)tar_number(h->gid, sizeof h->gid, &gid);
	e->m.uid = shown_owner(u ? u->uid : uid, "user", e->m.path, b);
	e->m.gid = shown_owner(g ? g->gid : gid, "group", e->m.path, b);
}

static void find_times(struct tar_entry *e, const struct tar_context *c,
		       const struct tar_header *h)
{
	const struct tar_pax *p = pax_that_has(c, PAX_MTIME);

	if (p) {
		e->m.mtime = p->mtime;
		e->m.nsec = p->nsec;
	} else {
		(void)tar_number(h->mtime, sizeof h->mtime, &e->m.mtime);
		e->m.nsec = 0;
	}
}

static uint64_t device_number(const struct tar_context *c,
			      const struct tar_header *h)
{
	const struct tar_pax *p = pax_that_has(c, PAX_MAJOR),
			     *q = pax_that_has(c, PAX_MINOR);
	int64_t major = 0, minor = 0;

	if (tar_dialect(h) != TAR_V7) {
		(void)tar_number(h->major, sizeof h->major, &major);
		(void)tar_number(h->minor, sizeof h->minor, &minor);
	}
	if (p)
		major = p->major;
	if (q)
		minor = q->minor;
	return makedev((unsigned)major, (unsigned)minor);
}

/* ---- types --------------------------------------------------------------- */

static bool ends_with_slash(const char *path)
{
	size_t n = strlen(path);

	return n && path[n - 1] == '/';
}

static void set_entry_type(struct tar_entry *e, mode_t type,
			   enum member_kind kind, enum tar_body body)
{
	e->m.mode = (e->m.mode & 07777) | type;
	e->m.kind = kind;
	e->body = body;
}

static void find_type(struct tar_entry *e, const struct tar_context *c,
		      const struct tar_header *h, struct members_builder *b)
{
	char shown[TAR_SHOWN];

	switch (e->type) {
	case '1':
		set_entry_type(e, S_IFREG, MEMBER_LINK, TAR_BODY_PERHAPS);
		return;
	case '2':
		set_entry_type(e, S_IFLNK, MEMBER_SYMLINK, TAR_BODY_NONE);
		e->m.mode |= 0777;
		return;
	case '3':
	case '4':
		set_entry_type(e, e->type == '3' ? S_IFCHR : S_IFBLK,
			       MEMBER_NONE, TAR_BODY_NONE);
		e->m.data = device_number(c, h);
		return;
	case '5':
		set_entry_type(e, S_IFDIR, MEMBER_DIR, TAR_BODY_NONE);
		return;
	case '6':
		set_entry_type(e, S_IFIFO, MEMBER_NONE, TAR_BODY_NONE);
		return;
	case 'D': /* GNU: followed by a list of what was in the directory */
		set_entry_type(e, S_IFDIR, MEMBER_DIR, TAR_BODY_OTHER);
		return;
	case '\0':
	case '0':
	case '7':
		/* In V7 a directory is a name that ends with a slash. */
		if (ends_with_slash(e->m.path)) {
			set_entry_type(e, S_IFDIR, MEMBER_DIR,
				       TAR_BODY_PERHAPS);
			return;
		}
		break;
	case 'S':
		break;
	default:
		members_note(b, "type",
			     "\"%s\" is of unknown type 0x%02x: shown as a "
			     "file",
			     tar_shown(e->m.path, shown),
			     (unsigned char)e->type);
	}
	set_entry_type(e, S_IFREG, MEMBER_RANGE, TAR_BODY_DATA);
}

static int find_size(struct tar_entry *e, const struct tar_context *c,
		     const struct tar_header *h, struct members_builder *b)
{
	const struct tar_pax *p = pax_that_has(c, PAX_SIZE);
	char shown[TAR_SHOWN];
	int64_t size = 0;
	int r = 0;

	if (e->body == TAR_BODY_NONE)
		return 0;
	if (p)
		size = p->size;
	else
		r = tar_number(h->size, sizeof h->size, &size);
	if ((r < 0 || size < 0) && e->body == TAR_BODY_PERHAPS)
		return 0;
	if (r < 0 || size < 0) {
		members_damage(b, "size",
			       "the size of \"%s\" is damaged: left out",
			       tar_shown(e->m.path, shown));
		return -EBADMSG;
	}
	e->stored = (uint64_t)size;
	return 0;
}

/* Find out whether the member is sparse, and in which format its map is. */
static int find_sparse(struct tar_entry *e, struct tar_context *c)
{
	struct tar_pax *p = &c->local;

	if (e->body != TAR_BODY_DATA)
		return 0;
	e->real = p->set & PAX_REAL ? (uint64_t)p->real : e->stored;
	tar_sparse_clear(&c->sparse);
	if (e->type == 'S') {
		e->sparse = true;
	} else if (p->set & PAX_SPARSE_1) {
		e->sparse = e->lines = true;
	} else if (p->set & PAX_MAP) {
		struct tar_sparse own = c->sparse;

		c->sparse = p->sparse;
		p->sparse = own;
		e->sparse = true;
	} else if (e->real > e->stored) {
		e->sparse = true;
		return tar_sparse_add(&c->sparse, 0, (int64_t)e->stored);
	} else {
		e->real = e->stored;
	}
	return 0;
}

int tar_entry(struct tar_entry *e, struct tar_context *c,
	      const struct tar_header *h, struct members_builder *b)
{
	int64_t mode;
	int r;

	*e = (struct tar_entry){.type = h->type};
	r = find_names(e, c, h, b);
	if (r < 0)
		return r;
	(void)tar_number(h->mode, sizeof h->mode, &mode);
	e->m.mode = (uint32_t)mode & 07777;
	find_owners(e, c, h, b);
	find_times(e, c, h);
	find_type(e, c, h, b);
	r = find_size(e, c, h, b);
	if (r == 0)
		r = find_sparse(e, c);
	if (r == 0)
		r = tar_xattr_list(&c->xattrs, &c->local);
	if (e->m.kind != MEMBER_LINK && e->m.kind != MEMBER_SYMLINK)
		e->m.link = NULL;
	e->m.xattrs = c->xattrs.at.at;
	e->m.n_xattrs = c->xattrs.at.n;
	return r;
}

/* ---- adding members ------------------------------------------------------ */

static int place_sparse_data(struct tar_entry *e, struct tar_context *c,
			     uint64_t pos, struct members_builder *b)
{
	int r = tar_sparse_place(&c->sparse, e->real, pos, e->stored);
	char shown[TAR_SHOWN];
	int64_t first;

	e->m.size = e->real;
	if (r == -EBADMSG) {
		members_damage(
			b, "sparse map",
			"the sparse map of \"%s\" contradicts itself: it "
			"cannot be read",
			tar_shown(e->m.path, shown));
		/* No archive is that long, so reading the file is an error. */
		e->m.data = PLAN_PAST;
		return 0;
	}
	if (r < 0)
		return r;
	if (tar_sparse_dense(&c->sparse, e->real)) {
		e->m.data = pos;
		return 0;
	}
	first = members_add_extents(b, c->sparse.run.at, c->sparse.run.n);
	if (first < 0)
		return (int)first;
	e->m.kind = MEMBER_SPARSE;
	e->m.data = (uint64_t)first;
	return 0;
}

static int place_file_data(struct tar_entry *e, struct tar_context *c,
			   uint64_t pos, struct members_builder *b)
{
	int r = 0;

	e->m.kind = MEMBER_RANGE;
	if (e->sparse) {
		r = place_sparse_data(e, c, pos, b);
	} else {
		e->m.size = e->stored;
		e->m.data = pos;
	}
	if (e->m.size == 0) {
		e->m.kind = MEMBER_NONE;
		e->m.data = 0;
	}
	return r;
}

int tar_entry_add(struct tar_entry *e, struct tar_context *c, uint64_t pos,
		  struct members_builder *b, struct error *err)
{
	struct error refused;
	int64_t r = 0;

	if (e->left_out)
		return 0;
	if (e->body == TAR_BODY_DATA)
		r = place_file_data(e, c, pos, b);
	if (r == 0)
		r = members_add(b, &e->m, &refused);
	/* A hard link whose target is missing, but that has data, is shown as a
	 * file. */
	if (r == -ENOENT && e->m.kind == MEMBER_LINK && e->stored) {
		e->m.link = NULL;
		r = place_file_data(e, c, pos, b);
		if (r == 0)
			r = members_add(b, &e->m, &refused);
	}
	if (r == -ENOMEM)
		return error_set(err, -ENOMEM, "out of memory for %llu members",
				 (unsigned long long)members_count(b));
	return 0;
}
