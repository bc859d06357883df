/* SPDX-License-Identifier: BSD-2-Clause */
/* Removes what a mount leaves behind when its daemon was killed: the tree that it
 * staged. */

/* In the kernel's table of mounts, the source of a staged mount is the path of its tree,
 * so the user need not repeat --to.  The source of any other mount is a file of the user;
 * if there is no directory of tensorfs beside it, nothing was staged there.  It may be on
 * a file system that does not answer, so only paths on local file systems are examined. */
#include "app/leftover.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/netfs.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "staging/staging.h"

/* A killed process holds its locks until its memory is freed. */
#define ENDING_MS 500
#define LOOK_MS 10

/* Remove trees that no process holds.  Return true if a transient tree of this name is
 * left. */
static bool tidy_and_find(const char *to, const char *name)
{
	struct staging_list list;
	struct staging place;
	struct error err;
	bool held = false;

	if (staging_open(&place, to, false, &err) < 0)
		return false;
	if (staging_list(&place, &list, &err) == 0) {
		for (size_t i = 0; i < list.list.n; i++)
			held |= list.list.at[i].transient &&
				!strcmp(list.list.at[i].name, name);
		staging_list_free(&list);
	}
	staging_tidy(&place);
	staging_close(&place);
	return held;
}

static bool is_path_below(const char *path, const char *dir)
{
	size_t n = strcmp(dir, "/") ? strlen(dir) : 0;

	return !strncmp(path, dir, n) && path[n] == '/';
}

/* Return true if `path` is on a local file system.  Decides by the names in the table
 * alone, so it cannot block. */
static bool is_local_path(const struct mount_list *all, const char *path)
{
	const struct mount_entry *on = NULL;

	for (size_t i = 0; i < all->n; i++)
		if (is_path_below(path, all->at[i].point) &&
		    (!on || strlen(all->at[i].point) >= strlen(on->point)))
			on = &all->at[i];
	return on && strncmp(on->type, "fuse", 4) &&
	       strcmp(on->type, "autofs") &&
	       !network_fs_of_type(on->type, on->source);
}

void leftover_sweep(void)
{
	staging_sweep_place(NULL);
}

void leftover_of_mount(const struct mount_list *all,
		       const struct mount_entry *m)
{
	const struct timespec moment = {0, LOOK_MS * 1000000L};
	cleanup_free char *dir = strdup(m->source);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	uint64_t end = clock_ms() + ENDING_MS;
	const char *to = dir;
	struct staging home;

	if (!slash || slash == dir || dir[0] != '/' ||
	    mount_user(m) != (long)geteuid() || !is_local_path(all, dir))
		return;
	*slash = '\0';
	if (staging_open(&home, NULL, false, NULL) == 0) {
		if (!strcmp(home.at.path, dir))
			to = NULL;
		staging_close(&home);
	}
	while (tidy_and_find(to, slash + 1) && clock_ms() < end)
		nanosleep(&moment, NULL);
}
