/* SPDX-License-Identifier: BSD-2-Clause */
/* Find or make a tree, give it its name when it is complete, hold it, release it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "staging/private.h"

/* Number of names that are tried while they are taken. */
#define NAMES 1000

void staging_key(const char *text, char key[STAGING_KEY])
{
	XXH128_hash_t sum = XXH3_128bits(text, strlen(text));

	snprintf(key, STAGING_KEY, "%016llx%016llx",
		 (unsigned long long)sum.high64, (unsigned long long)sum.low64);
}

/* ---- finding a tree that exists ------------------------------------------ */

/* Lock the instance of `rec` shared, and set *use to the descriptor.  Return 0 or
 * -errno. */
static int instance_hold(struct staging *s, const struct record *rec, int *use,
			 struct error *err)
{
	char file[PLACE_FILE];

	place_file(file, rec->id, "use");
	*use = shm_lock(&s->control, file, SHM_SHARED, true, err);
	return *use < 0 ? *use : 0;
}

static int fill_staged(const struct staging *s, const struct record *rec,
		       int use, struct staged *out, struct error *err)
{
	*out = (struct staged){.use = use,
			       .files = rec->result.files,
			       .transient = rec->transient};
	memcpy(out->id, rec->id, STAGING_ID);
	out->name = strdup(rec->name);
	if (asprintf(&out->path, "%s/%s", s->at.path, rec->name) < 0)
		out->path = NULL;
	if (out->name && out->path)
		return 0;
	free(out->name);
	free(out->path);
	*out = (struct staged)STAGED_INIT;
	return error_no_memory(err, "the name of the staged tree");
}

/* Hold the tree of `rec` for *out.  The place must be locked.  Return 0 or -errno. */
static int staging_reuse(struct staging *s, const struct staging_want *w,
			 struct record *rec, struct staged *out,
			 struct error *err)
{
	int use, r = instance_hold(s, rec, &use, err);

	if (r < 0)
		return r;
	if (rec->transient && !w->transient) { /* this user wants it to stay */
		rec->transient = false;
		r = record_write(s, rec, err);
	}
	if (r == 0)
		r = fill_staged(s, rec, use, out, err);
	if (r < 0) {
		place_unlock(&use);
		return r;
	}
	futimens(use, NULL); /* the time of its last use */
	out->reused = true;
	return 0;
}

enum { FOUND = 1 };

/* Use the tree of `rec` if it is what is wanted and current.  Return FOUND, 0 if it is
 * not, or -errno. */
static int try_record(struct staging *s, const struct staging_want *w,
		      struct record *rec, struct staged *out, struct error *err)
{
	int r;

	if (!place_has(s, rec))
		return 0;
	if (strcmp(rec->key, w->key))
		return w->exact && !strcmp(rec->name, w->name)
			       ? error_set(err, -EEXIST,
					   "'%s/%s' exists already, made from "
					   "%s: unstage it, or choose another "
					   "name",
					   s->at.path, rec->name, rec->source)
			       : 0;
	if (w->force || (w->exact && strcmp(rec->name, w->name)) ||
	    !sources_are_current(s, rec->id))
		return 0;
	r = staging_reuse(s, w, rec, out, err);
	return r < 0 ? r : FOUND;
}

/* Look for a tree to use.  The place must be locked.  Return FOUND, 0 if there is
 * none, or -errno. */
static int staging_find(struct staging *s, const struct staging_want *w,
			struct staged *out, struct error *err)
{
	struct instances all;
	struct record rec;
	int r = place_scan(s, &all, err);

	/* First a tree that has the wanted name, then any. */
	for (int any = 0; any < 2; any++)
		for (size_t i = 0; r == 0 && i < all.list.n; i++) {
			if (record_read(s, all.list.at[i].id, &rec) < 0)
				continue;
			if (any || !strcmp(rec.name, w->name))
				r = try_record(s, w, &rec, out, err);
			record_free(&rec);
		}
	instances_free(&all);
	return r;
}

/* ---- beginning ----------------------------------------------------------- */

static int random_id(char id[STAGING_ID], struct error *err)
{
	uint64_t v;

	if (getrandom(&v, sizeof v, 0) != (ssize_t)sizeof v)
		return error_errno(err, -errno, "cannot get a random number");
	snprintf(id, STAGING_ID, "%016llx", (unsigned long long)v);
	return 0;
}

/* Begin a new instance.  The place must be locked.  Return 0 or -errno. */
static int begin_build(struct staging *s, struct staging_build *b,
		       struct error *err)
{
	int r = random_id(b->id, err);

	if (r < 0)
		return r;
	place_file(b->use_file, b->id, "use");
	b->use = shm_lock(&s->control, b->use_file, SHM_SHARED, false, err);
	return b->use < 0 ? b->use : record_announce(b->use, &b->want, err);
}

/* Lock the key, so that no other process makes the same tree; blocks while one does.
 * Return the descriptor or -errno. */
static int lock_key(struct staging *s, const char *file,
		    const struct staging_want *w, staging_say *say, void *ctx,
		    struct error *err)
{
	char text[300];
	int fd;

	fd = place_lock_file(s, file, SHM_EXCLUSIVE, false, err);
	if (fd != -EWOULDBLOCK)
		return fd;
	snprintf(text, sizeof text,
		 "%.200s is being staged by another process: waiting for it",
		 w->name);
	say(ctx, text);
	return place_lock_file(s, file, SHM_EXCLUSIVE, true, err);
}

static void unlock_key(struct staging *s, struct staging_build *b)
{
	if (b->key < 0)
		return;
	unlinkat(s->control.fd, b->key_file, 0);
	place_unlock(&b->key);
}

int staging_begin(struct staging *s, const struct staging_want *want,
		  staging_say *say, void *ctx, struct staged *out,
		  struct staging_build *b, struct error *err)
{
	struct doomed doomed = {.list = VEC_EMPTY};
	int r;

	*out = (struct staged)STAGED_INIT;
	*b = (struct staging_build)STAGING_BUILD_INIT;
	b->want = *want;
	if (!record_name_ok(want->name))
		return error_set(err, -EINVAL,
				 "'%s' cannot be the name of a staged tree: a "
				 "name has at most 255 bytes, no '/', and no "
				 "'.' at its beginning",
				 want->name);
	snprintf(b->key_file, sizeof b->key_file, "%.16s.key", want->key);
	b->key = lock_key(s, b->key_file, want, say, ctx, err);
	if (b->key < 0)
		return b->key;
	b->lock = place_lock(s, err);
	/* Failures of removing are ignored: staging is possible without. */
	if (b->lock >= 0)
		place_sweep(s, true, &doomed, NULL);
	r = b->lock < 0 ? b->lock : staging_find(s, want, out, err);
	if (r == 0)
		r = begin_build(s, b, err);
	place_unlock(&b->lock);
	place_bury(s, &doomed, NULL);
	if (r != 0)
		staging_cancel(s, b);
	if (r < 0)
		staging_release(s, out);
	return r < 0 ? r : 0;
}

int staging_make(struct staging *s, struct staging_build *b, struct error *err)
{
	char file[PLACE_FILE];
	int r;

	place_file(file, b->id, "tree");
	b->made = true;
	r = shm_dir_open(&b->tree, &s->control, file, true, err);
	return r;
}

/* ---- publishing ---------------------------------------------------------- */

/* Find a tree to replace: one with the same key that no process holds.  Set *fd to its
 * lock and *older to its record (record_free frees it), or *fd to -1 if there is none;
 * *held tells whether there is one that is in use.  The place must be locked.  Return
 * 0 or -errno. */
static int find_older(struct staging *s, const struct staging_want *w,
		      struct record *older, int *fd, bool *held,
		      struct error *err)
{
	struct instances all;
	char file[PLACE_FILE];
	int r = place_scan(s, &all, err);

	*fd = -1;
	*held = false;
	for (size_t i = 0; r == 0 && *fd < 0 && i < all.list.n; i++) {
		if (record_read(s, all.list.at[i].id, older) < 0)
			continue;
		if (!strcmp(older->key, w->key) && place_has(s, older) &&
		    (!w->exact || !strcmp(older->name, w->name))) {
			place_file(file, older->id, "use");
			*fd = shm_lock(&s->control, file, SHM_EXCLUSIVE, false,
				       NULL);
			*held |= *fd < 0;
		}
		if (*fd < 0)
			record_free(older);
	}
	instances_free(&all);
	return r;
}

static bool name_is_free(const struct staging *s, const char *name)
{
	return faccessat(s->at.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

/* Choose a free name: the wanted one, else that with digits of the key, which tell the
 * source, else both and a number.  Return 0 with *out for the caller to free, or
 * -errno. */
static int choose_name(const struct staging *s, const struct staging_want *w,
		       char **out, struct error *err)
{
	char name[256];
	int most = 255 - 12;

	for (unsigned i = 0; i < NAMES; i++) {
		if (i == 0)
			snprintf(name, sizeof name, "%s", w->name);
		else if (i == 1)
			snprintf(name, sizeof name, "%.*s-%.6s", most, w->name,
				 w->key);
		else
			snprintf(name, sizeof name, "%.*s-%.6s-%u", most - 4,
				 w->name, w->key, i);
		if (name_is_free(s, name)) {
			*out = strdup(name);
			return *out ? 0
				    : error_no_memory(
					      err,
					      "the name of the staged tree");
		}
		if (w->exact)
			break;
	}
	return error_set(err, -EEXIST,
			 "'%s/%s' exists already, and is in use or was not "
			 "staged by tensorfs: choose another name",
			 s->at.path, w->name);
}

/* As put_in_place, for file systems that do not know its flags.  Return 0, or -1 with
 * errno set. */
static int put_in_place_in_steps(struct staging *s, const char *file,
				 const char *name, const char *older)
{
	char away[PLACE_FILE];

	if (!older)
		return renameat(s->control.fd, file, s->at.fd, name);
	/* place_sweep removes it from there if this process dies now. */
	place_file(away, older, "tree");
	if (renameat(s->at.fd, name, s->control.fd, away) < 0)
		return -1;
	if (renameat(s->control.fd, file, s->at.fd, name) == 0)
		return 0;
	renameat(s->control.fd, away, s->at.fd, name);
	return -1;
}

/* Rename the finished tree `file` to `name`; if it replaces the instance `older`, the two
 * directories are exchanged in one step.  Return 0 or -errno. */
static int put_in_place(struct staging *s, const char *file, const char *name,
			const char *older, struct error *err)
{
	int r = renameat2(s->control.fd, file, s->at.fd, name,
			  older ? RENAME_EXCHANGE : RENAME_NOREPLACE);

	if (r < 0 && (errno == EINVAL || errno == ENOSYS))
		r = put_in_place_in_steps(s, file, name, older);
	if (r < 0)
		return error_errno(err, -errno, "cannot make '%s/%s'",
				   s->at.path, name);
	return 0;
}

static int new_record(struct staging_build *b, struct record *rec,
		      const struct staging_result *result, struct error *err)
{
	const struct staging_want *w = &b->want;
	struct stat st;

	*rec = (struct record){
		.source = strdup(w->source),
		.options = strdup(w->options),
		.result = *result,
		.made = time(NULL),
		.transient = w->transient,
	};
	memcpy(rec->id, b->id, STAGING_ID);
	memcpy(rec->key, w->key, STAGING_KEY);
	if (!rec->source || !rec->options)
		return error_no_memory(err, "the record of the staged tree");
	if (fstat(b->tree.fd, &st) < 0)
		return error_errno(err, -errno,
				   "cannot read the attributes of '%s'",
				   b->tree.path);
	rec->dev = st.st_dev;
	rec->ino = st.st_ino;
	rec->born = place_born(b->tree.fd, "");
	return 0;
}

/* Name the tree and write its record; sets rec->name.  The place must be locked.
 * Return 0 or -errno. */
static int staging_publish_locked(struct staging *s, struct staging_build *b,
				  struct record *rec, struct doomed *doomed,
				  staging_say *say, void *ctx,
				  struct error *err)
{
	struct record older = {.name = NULL};
	char file[PLACE_FILE], text[700];
	bool held;
	int fd, r = find_older(s, &b->want, &older, &fd, &held, err);

	if (r == 0 && fd >= 0)
		r = (rec->name = strdup(older.name))
			    ? 0
			    : error_no_memory(err,
					      "the name of the staged tree");
	else if (r == 0)
		r = choose_name(s, &b->want, &rec->name, err);
	if (r == 0 && fd >= 0)
		snprintf(text, sizeof text,
			 "'%.255s', which was staged before and is not in use, "
			 "is replaced",
			 rec->name);
	else if (r == 0 && held)
		snprintf(text, sizeof text,
			 "the tree that was staged from %.200s before is in "
			 "use and stays; the new one is '%.255s'",
			 rec->source, rec->name);
	if (r == 0 && (fd >= 0 || held))
		say(ctx, text);
	place_file(file, b->id, "tree");
	if (r == 0)
		r = record_write(s, rec, err);
	if (r == 0)
		r = put_in_place(s, file, rec->name, fd >= 0 ? older.id : NULL,
				 err);
	if (r == 0 && fd >= 0) { /* the older tree is now in `file` */
		place_condemn(s, doomed, older.id, NULL, fd, NULL);
		fd = -1;
	}
	place_unlock(&fd);
	record_free(&older);
	return r;
}

int staging_publish(struct staging *s, struct staging_build *b,
		    const struct staging_result *result,
		    const struct staging_sources *sources, staging_say *say,
		    void *ctx, struct staged *out, struct error *err)
{
	struct doomed doomed = {.list = VEC_EMPTY};
	char file[PLACE_FILE];
	struct record rec;
	int lock = -1, r = new_record(b, &rec, result, err);

	*out = (struct staged)STAGED_INIT;
	if (r == 0 && !s->memory && syncfs(b->tree.fd) < 0)
		r = error_errno(err, -errno, "cannot write '%s' to disk",
				b->tree.path);
	if (r == 0)
		r = sources_write(s, b->id, sources, err);
	if (r == 0)
		r = lock = place_lock(s, err);
	if (lock >= 0)
		r = staging_publish_locked(s, b, &rec, &doomed, say, ctx, err);
	if (r == 0) {
		r = fill_staged(s, &rec, b->use, out, err);
		if (r < 0) /* the tree stays published */
			place_unlock(&b->use);
		b->use = -1;
		/* The tree that was replaced is there now. */
		place_file(file, b->id, "tree");
		shm_remove(&s->control, file, NULL);
	}
	place_unlock(&lock);
	record_free(&rec);
	place_bury(s, &doomed, NULL);
	staging_cancel(s, b);
	return r;
}

void staging_cancel(struct staging *s, struct staging_build *b)
{
	static const char *const parts[] = {"tree", "json", "json~", "from",
					    "use"};
	char file[PLACE_FILE];

	shm_dir_close(&b->tree);
	for (size_t i = b->made ? 0 : 4; b->use >= 0 && i < 5; i++) {
		place_file(file, b->id, parts[i]);
		shm_remove(&s->control, file, NULL);
	}
	place_unlock(&b->lock);
	place_unlock(&b->use);
	unlock_key(s, b);
	b->made = false;
}

/* Runs in a signal handler: uses only names and descriptors that exist, allocates
 * nothing, and does not block. */
void staging_abandon(const struct staging *s, const struct staging_build *b)
{
	int fd;

	if (b->use_file[0])
		unlinkat(s->control.fd, b->use_file, 0);
	if (b->key >= 0)
		unlinkat(s->control.fd, b->key_file, 0);
	fd = openat(s->control.fd, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (b->lock < 0 && flock(fd, LOCK_EX | LOCK_NB) < 0))
		return; /* the process that holds the lock will tidy the place */
	unlinkat(s->control.fd, "lock", 0);
	rmdir(s->control.path);
	if (!s->to)
		rmdir(s->at.path);
}

/* ---- releasing ----------------------------------------------------------- */

void staging_release(struct staging *s, struct staged *u)
{
	struct doomed doomed = {.list = VEC_EMPTY};
	int lock = -1;

	if (u->use < 0)
		return;
	place_unlock(&u->use);
	if (u->transient) {
		lock = place_lock(s, NULL);
		if (lock >= 0)
			place_sweep(s, false, &doomed, NULL);
		place_unlock(&lock);
		place_bury(s, &doomed, NULL);
		staging_tidy(s);
	}
	free(u->path);
	free(u->name);
	*u = (struct staged)STAGED_INIT;
}
