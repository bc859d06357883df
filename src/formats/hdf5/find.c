/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths through links into other files, which the library must not follow. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/hdf5/walk.h"

#define LINKS_MAX 40

int hdf5_walk_external(struct walk *w, hid_t group, uint32_t file,
		       const char *name, uint32_t *to, char **object)
{
	char value[2 * PATH_MAX];
	const char *path, *target;
	unsigned flags;
	H5L_info_t info;
	int r;

	if (H5Lget_info(group, name, &info, H5P_DEFAULT) < 0 ||
	    info.u.val_size > sizeof value ||
	    H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) < 0 ||
	    H5Lunpack_elink_val(value, info.u.val_size, &flags, &path,
				&target) < 0)
		return -EIO;
	r = hdf5_resolve(w->s, file, path, HDF5_PREFIX_LINK, to, w->err);
	if (r < 0)
		return r;
	/* "result_0" is meant from the root of that file. */
	if (asprintf(object, "/%s", target + strspn(target, "/")) < 0) {
		*object = NULL;
		return hdf5_walk_no_memory(w);
	}
	return 0;
}

/* A position on the way: a path in a file that is open. */
struct place {
	hid_t id;    /* the file */
	hid_t first; /* where the way began, the caller's */
	uint32_t file;
	char *path; /* malloc'ed, "" for the root */
};

static int not_there(struct walk *w, const struct place *p, const char *name)
{
	return error_set(w->err, -ENOENT, "there is no '%s' in %s of %s", name,
			 *p->path ? p->path : "/",
			 handles_name(w->s->handles, p->file));
}

/* What is at `path` cannot be opened or looked up in, though it should be. */
static int damaged(struct walk *w, const struct place *p, const char *path)
{
	char why[256];

	hdf5_why(why, sizeof why);
	return error_set(w->err, -EIO, "%s of %s cannot be read: %s",
			 *path ? path : "/",
			 handles_name(w->s->handles, p->file), why);
}

/* There is no link `full`: is there none, or is the group it is in damaged? */
static int no_link(struct walk *w, const struct place *p, const char *full)
{
	const char *group = *p->path ? p->path : "/";
	H5O_info_t info;

	if (H5Lexists(p->id, full, H5P_DEFAULT) == 0)
		return not_there(w, p, full);
	if (H5Oget_info_by_name2(p->id, group, &info, H5O_INFO_BASIC,
				 H5P_DEFAULT) >= 0 &&
	    info.type != H5O_TYPE_GROUP)
		return not_there(w, p, full);
	return damaged(w, p, group);
}

/* A file of a link is open until the next one leads on. */
static void leave(const struct place *p)
{
	if (p->id != p->first)
		H5Fclose(p->id);
}

/* Go where a link leads: another path (malloc'ed in *rest), perhaps in another
 * file. */
static int follow(struct walk *w, struct place *p, const char *full,
		  H5L_type_t type, const char *rest, char **next)
{
	cleanup_free char *object = NULL;
	char value[2 * PATH_MAX];
	uint32_t file = p->file;
	bool absolute = true;
	hid_t id;
	int r;

	if (type == H5L_TYPE_EXTERNAL) {
		r = hdf5_walk_external(w, p->id, p->file, full, &file, &object);
		if (r == -EIO)
			return error_set(w->err, r, "'%s' cannot be read",
					 full);
		if (!r)
			r = hdf5_open(w->s->handles, file, &id, w->err);
		if (r < 0)
			return r;
		leave(p);
		p->id = id;
	} else {
		if (H5Lget_val(p->id, full, value, sizeof value, H5P_DEFAULT) <
		    0)
			return not_there(w, p, full);
		value[sizeof value - 1] = '\0';
		object = strdup(value);
		absolute = value[0] == '/';
	}
	if (!object || asprintf(next, "%s/%s", object, rest) < 0) {
		*next = NULL;
		return hdf5_walk_no_memory(w);
	}
	p->file = file;
	if (absolute)
		p->path[0] = '\0';
	return 0;
}

/* One component; *rest is what is left to go. */
static int step(struct walk *w, struct place *p, char **rest, unsigned *links)
{
	char *name = *rest + strspn(*rest, "/"), *next = NULL, *full = NULL;
	size_t n = strcspn(name, "/");
	H5L_info_t info;
	int r = 0;

	if (n == 1 && *name == '.') {
		memmove(*rest, name + n, strlen(name + n) + 1);
		return 0;
	}
	if (asprintf(&full, "%s/%.*s", p->path, (int)n, name) < 0)
		return hdf5_walk_no_memory(w);
	if (H5Lget_info(p->id, full, &info, H5P_DEFAULT) < 0) {
		r = no_link(w, p, full);
	} else if (info.type == H5L_TYPE_HARD) {
		free(p->path);
		p->path = steal_pointer(&full);
		next = strdup(name + n);
		r = next ? 0 : hdf5_walk_no_memory(w);
	} else if (++*links > LINKS_MAX) {
		r = error_set(w->err, -ELOOP, "too many links");
	} else {
		r = follow(w, p, full, info.type, name + n, &next);
	}
	free(full);
	if (!r) {
		free(*rest);
		*rest = next;
	}
	return r;
}

int hdf5_walk_find(struct walk *w, hid_t file, const char *path,
		   struct hdf5_place *at, hid_t *id)
{
	struct place p = {file, file, at->file, strdup("")};
	char *rest = strdup(path);
	unsigned links = 0;
	int r = p.path && rest ? 0 : hdf5_walk_no_memory(w);

	while (!r && rest[strspn(rest, "/")])
		r = step(w, &p, &rest, &links);
	if (!r) {
		at->file = p.file;
		at->object = intern_text(&w->s->intern, p.path);
		*id = H5Oopen(p.id, *p.path ? p.path : "/", H5P_DEFAULT);
		r = !at->object ? hdf5_walk_no_memory(w)
		    : *id < 0   ? damaged(w, &p, p.path)
				: 0;
	}
	if (r < 0)
		leave(&p);
	free(p.path);
	free(rest);
	return r;
}
