/* SPDX-License-Identifier: BSD-2-Clause */
/* List staged trees, remove them, and record what a comparison has shown. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "staging/private.h"

/* Return whether a process holds the instance. */
static bool instance_is_held(const struct staging *s, const char *id)
{
	char file[PLACE_FILE];

	place_file(file, id, "use");
	return shm_is_locked(&s->control, file);
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

static char *text_or_unknown(char *text)
{
	return text ? text : strdup("?");
}

/* Describe an instance without a valid record: a process is making it, or died
 * meanwhile. */
static void item_of_build(const struct staging *s, struct staging_item *item)
{
	char file[PLACE_FILE];
	struct announced a;
	struct stat st;

	place_file(file, item->id, "use");
	if (fstatat(s->control.fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
		item->made = item->used = st.st_mtim.tv_sec;
	record_announced(s, item->id, &a);
	item->state = item->in_use ? STAGING_GROWING : STAGING_DEAD;
	item->name = text_or_unknown(steal_pointer(&a.name));
	item->source = text_or_unknown(steal_pointer(&a.source));
	item->options = strdup("");
	announced_free(&a);
}

/* Describe an instance whose record cannot be read, so that its tree is not known. */
static void item_of_damaged(const struct staging *s, struct staging_item *item)
{
	char file[PLACE_FILE], *source;
	struct stat st;

	place_file(file, item->id, "json");
	if (fstatat(s->control.fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
		item->made = item->used = st.st_mtim.tv_sec;
	if (asprintf(&source, "the record %s/%s.json cannot be read",
		     s->control.path, item->id) < 0)
		source = NULL;
	item->state = STAGING_DAMAGED;
	item->name = strdup(item->id);
	item->source = source;
	item->options = strdup("");
}

static int list_add_item(struct staging *s, const char *id,
			 struct staging_list *l, struct error *err)
{
	struct staging_item item = {.state = STAGING_READY};
	struct record rec;
	int r = record_read(s, id, &rec);

	memcpy(item.id, id, STAGING_ID);
	item.in_use = instance_is_held(s, id);
	if (r == 0 && place_has(s, &rec))
		item_of_record(s, &rec, &item);
	else if (r == 0 || r == -ENOENT)
		item_of_build(s, &item);
	else
		item_of_damaged(s, &item);
	record_free(&rec);
	if (item.name && item.source && item.options &&
	    vec_push(&l->list, item))
		return 0;
	free(item.name);
	free(item.source);
	free(item.options);
	return error_no_memory(err, "the list of staged trees");
}

static int list_items_by_name(const void *a, const void *b)
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

static int place_sweep_and_bury(struct staging *s, bool all, struct error *err)
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
	return place_sweep_and_bury(s, true, err);
}

void staging_sweep_place(const char *to)
{
	struct staging place;

	/* A place that is not there is not an error, nor one that another process sweeps. */
	if (staging_open(&place, to, false, NULL) < 0)
		return;
	staging_sweep(&place, NULL);
	staging_tidy(&place);
	staging_close(&place);
}

int staging_list(struct staging *s, struct staging_list *out, struct error *err)
{
	struct instances all;
	int r = place_sweep_and_bury(s, false, err), lock;

	*out = (struct staging_list){.list = VEC_EMPTY};
	if (r < 0)
		return r;
	lock = place_lock(s, err);
	if (lock < 0)
		return lock;
	r = place_scan(s, &all, err);
	for (size_t i = 0; r == 0 && i < all.list.n; i++)
		r = list_add_item(s, all.list.at[i].id, out, err);
	instances_free(&all);
	place_unlock(&lock);
	if (r < 0)
		staging_list_free(out);
	else if (out->list.n)
		qsort(out->list.at, out->list.n, sizeof *out->list.at,
		      list_items_by_name);
	return r;
}

/* ---- removing ------------------------------------------------------------ */

/* Find an instance with a damaged record by its id; out->name stays NULL.  Return 0 or
 * -ENOENT. */
static int record_find_damaged(struct staging *s, const char *name,
			       struct record *out, struct error *err)
{
	char id[STAGING_ID] = "";
	int r = -ENOENT;

	if (strlen(name) == STAGING_ID - 1) {
		memcpy(id, name, STAGING_ID);
		r = record_read(s, id, out);
	}
	if (r == 0 || r == -ENOENT) {
		record_free(out);
		return error_set(err, -ENOENT,
				 "'%s/%s' was not staged by tensorfs",
				 s->at.path, name);
	}
	memcpy(out->id, id, STAGING_ID);
	return 0;
}

/* Find the record whose tree has this name.  The place must be locked.  Return 0 or
 * -errno; record_free frees *out in both cases. */
static int record_find_by_name(struct staging *s, const char *name,
			       struct record *out, struct error *err)
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
		r = record_find_damaged(s, name, out, err);
	return r;
}

/* Lock an instance exclusively, or with `force` also shared with its holders.  Return the
 * descriptor, or -errno: -EBUSY if another process holds it. */
static int instance_lock_to_remove(struct staging *s, const struct record *rec,
				   bool force, struct error *err)
{
	char file[PLACE_FILE];
	int fd;

	place_file(file, rec->id, "use");
	fd = shm_lock(&s->control, file, SHM_EXCLUSIVE, false, err);
	if (fd == -EWOULDBLOCK && force)
		fd = shm_lock(&s->control, file, SHM_SHARED, false, err);
	if (fd == -EWOULDBLOCK)
		return error_set(err, -EBUSY,
				 "'%s/%s' is in use; --force removes it anyway",
				 s->at.path, rec->name ? rec->name : rec->id);
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
	r = record_find_by_name(s, name, &rec, err);
	if (r == 0)
		r = fd = instance_lock_to_remove(s, &rec, force, err);
	if (r >= 0)
		r = place_condemn(s, &doomed, rec.id, rec.name, fd, err);
	record_free(&rec);
	place_unlock(&lock);
	if (r < 0)
		err = NULL;
	return place_bury(s, &doomed, err) < 0 && r == 0 ? -EIO : r;
}

/* ---- results of a comparison --------------------------------------------- */

int staging_verified(struct staging *s, const struct staged *u,
		     struct error *err)
{
	struct record rec = {.name = NULL};
	int lock = place_lock(s, err), r = lock < 0 ? lock : 0;

	if (r == 0 && record_read(s, u->id, &rec) < 0)
		r = error_set(err, -ENOENT,
			      "'%s' was removed while it was compared",
			      u->path);
	if (r == 0 && !rec.result.verified) {
		rec.result.verified = true;
		r = record_write(s, &rec, err);
	}
	record_free(&rec);
	place_unlock(&lock);
	return r;
}

void staging_disown(struct staging *s, struct staged *u)
{
	struct doomed doomed = {.list = VEC_EMPTY};
	struct record rec = {.name = NULL};
	int lock = place_lock(s, NULL), fd;

	place_unlock(&u->use);
	if (lock >= 0 && record_read(s, u->id, &rec) == 0) {
		sources_forget(s, u->id);
		fd = instance_lock_to_remove(s, &rec, false, NULL);
		if (fd >= 0 && place_has(s, &rec))
			place_condemn(s, &doomed, rec.id, rec.name, fd, NULL);
		else
			place_unlock(&fd);
	}
	record_free(&rec);
	place_unlock(&lock);
	place_bury(s, &doomed, NULL);
	free(u->path);
	free(u->name);
	*u = (struct staged)STAGED_INIT;
}
