/* SPDX-License-Identifier: BSD-2-Clause */
/* What is staged: listing it, and removing it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "staging/private.h"

/* Is the instance held?  Closes what it had to open. */
static bool is_held(const struct staging *s, const char *id)
{
	char file[PLACE_FILE];
	int fd;

	place_file(file, id, "use");
	fd = shm_lock(&s->control, file, SHM_EXCLUSIVE, false, NULL);
	if (fd < 0)
		return true;
	place_unlock(&fd);
	return false;
}

static void item_of_record(const struct staging *s, struct record *rec,
			   struct staging_item *item)
{
	char file[PLACE_FILE];
	struct stat st;

	item->name = steal_pointer(&rec->name);
	item->source = steal_pointer(&rec->source);
	item->options = steal_pointer(&rec->options);
	item->files = rec->result.files;
	item->bytes = rec->result.bytes;
	item->space = rec->result.space;
	item->verified = rec->result.verified;
	item->transient = rec->transient;
	item->made = item->used = rec->made;
	place_file(file, rec->id, "use");
	if (fstatat(s->control.fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_mtim.tv_sec > item->used)
		item->used = st.st_mtim.tv_sec;
}

/* No record that counts: somebody makes it, or died over it. */
static void item_of_build(const struct staging *s, struct staging_item *item)
{
	char file[PLACE_FILE];
	cleanup_close int fd = -1;
	struct stat st;

	place_file(file, item->id, "use");
	fd = openat(s->control.fd, file,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0) {
		record_announced(fd, &item->name, &item->source);
		item->made = item->used = st.st_mtim.tv_sec;
	}
	item->state = item->in_use ? STAGING_GROWING : STAGING_DEAD;
	if (!item->name)
		item->name = strdup("?");
	if (!item->source)
		item->source = strdup("?");
	item->options = strdup("");
}

static int add_item(struct staging *s, const char *id, struct staging_list *l,
		    struct error *err)
{
	struct staging_item item = {.state = STAGING_READY};
	struct record rec;

	memcpy(item.id, id, STAGING_ID);
	item.in_use = is_held(s, id);
	if (record_read(s, id, &rec) == 0 && place_has(s, &rec))
		item_of_record(s, &rec, &item);
	else
		item_of_build(s, &item);
	record_free(&rec);
	if (item.name && item.source && item.options &&
	    vec_push(&l->list, item))
		return 0;
	free(item.name);
	free(item.source);
	free(item.options);
	return error_set(err, -ENOMEM, "out of memory");
}

static int by_name(const void *a, const void *b)
{
	const struct staging_item *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : strcmp(x->id, y->id);
}

void staging_list_free(struct staging_list *l)
{
	for (size_t i = 0; i < l->list.n; i++) {
		free(l->list.at[i].name);
		free(l->list.at[i].source);
		free(l->list.at[i].options);
	}
	vec_free(&l->list);
}

static int sweep(struct staging *s, bool all, struct error *err)
{
	struct doomed doomed = {.list = VEC_EMPTY};
	int lock = place_lock(s, err), r;

	if (lock < 0)
		return lock;
	r = place_sweep(s, all, &doomed, err);
	place_unlock(&lock);
	if (r < 0)
		err = NULL;
	return place_bury(s, &doomed, err) < 0 && r == 0 ? -EIO : r;
}

int staging_sweep(struct staging *s, struct error *err)
{
	return sweep(s, true, err);
}

int staging_list(struct staging *s, struct staging_list *out, struct error *err)
{
	struct instances all;
	int r = sweep(s, false, err), lock;

	*out = (struct staging_list){.list = VEC_EMPTY};
	if (r < 0)
		return r;
	lock = place_lock(s, err);
	if (lock < 0)
		return lock;
	r = place_scan(s, &all, err);
	for (size_t i = 0; r == 0 && i < all.list.n; i++)
		r = add_item(s, all.list.at[i].id, out, err);
	instances_free(&all);
	place_unlock(&lock);
	if (r < 0)
		staging_list_free(out);
	else if (out->list.n)
		qsort(out->list.at, out->list.n, sizeof *out->list.at, by_name);
	return r;
}

/* ---- removing ------------------------------------------------------------ */

/* With the place locked: the record whose tree has this name. */
static int find_name(struct staging *s, const char *name, struct record *out,
		     struct error *err)
{
	struct instances all;
	int r = place_scan(s, &all, err);
	bool found = false;

	for (size_t i = 0; r == 0 && !found && i < all.list.n; i++) {
		if (record_read(s, all.list.at[i].id, out) < 0)
			continue;
		found = !strcmp(out->name, name) && place_has(s, out);
		if (!found)
			record_free(out);
	}
	instances_free(&all);
	if (r == 0 && !found)
		r = error_set(err, -ENOENT, "'%s/%s' was not staged by us",
			      s->at.path, name);
	return r;
}

/* Its lock: alone, or with `force` whoever else has it, too. */
static int take(struct staging *s, const struct record *rec, bool force,
		struct error *err)
{
	char file[PLACE_FILE];
	int fd;

	place_file(file, rec->id, "use");
	fd = shm_lock(&s->control, file, SHM_EXCLUSIVE, false, err);
	if (fd == -EWOULDBLOCK && force)
		fd = shm_lock(&s->control, file, SHM_SHARED, false, err);
	if (fd == -EWOULDBLOCK)
		return error_set(
			err, -EBUSY,
			"'%s/%s' is in use; --force removes it all the "
			"same",
			s->at.path, rec->name);
	return fd;
}

int staging_remove(struct staging *s, const char *name, bool force,
		   struct error *err)
{
	struct doomed doomed = {.list = VEC_EMPTY};
	struct record rec = {.name = NULL};
	int lock = place_lock(s, err), fd = -1, r;

	if (lock < 0)
		return lock;
	r = find_name(s, name, &rec, err);
	if (r == 0)
		r = fd = take(s, &rec, force, err);
	if (r >= 0)
		r = place_condemn(s, &doomed, rec.id, rec.name, fd, err);
	record_free(&rec);
	place_unlock(&lock);
	if (r < 0)
		err = NULL;
	return place_bury(s, &doomed, err) < 0 && r == 0 ? -EIO : r;
}
