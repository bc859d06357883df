/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths through links into other files, which the library must not follow. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "source/hdf5_walk.h"

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
	hid_t id; /* the file */
	uint32_t file;
	char *path; /* malloc'ed, "" for the root */
};

static int not_there(struct walk *w, const struct place *p, const char *name)
{
	return error_set(w->err, -ENOENT, "there is no '%s' in %s of %s", name,
			 *p->path ? p->path : "/",
			 handles_name(w->s->handles, p->file));
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
	int r;

	if (type == H5L_TYPE_EXTERNAL) {
		r = hdf5_walk_external(w, p->id, p->file, full, &file, &object);
		if (r == -EIO)
			return error_set(w->err, r, "'%s' cannot be read",
					 full);
		if (!r)
			r = hdf5_open(w->s->handles, file, &p->id, w->err);
		if (r < 0)
			return r;
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
		r = not_there(w, p, full);
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
	struct place p = {file, at->file, strdup("")};
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
		    : *id < 0   ? not_there(w, &p, path)
				: 0;
	}
	free(p.path);
	free(rest);
	return r;
}
