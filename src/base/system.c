/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process may use: memory (cgroups included), cores, descriptors. */
#include "base/system.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

/*
 * Control groups (cgroups(7)). /proc/self/cgroup has a line "id:controllers:path" for
 * each hierarchy: "0::/a/b" is version 2, "9:memory:/a/b" version 1.  A group is bound by
 * its own limits and those of all its ancestors, so the walk goes from /a/b up to the
 * root of the mount and takes the smallest number found.
 *
 *	version 2	ROOT/a/b/memory.max, memory.high ("max": no limit);
 *			ROOT/unified/a/b on systems that run both versions
 *	version 1	ROOT/memory/a/b/memory.limit_in_bytes
 *
 * In a container the path may be the host's while the mount shows only the container's
 * part.  The walk then meets directories that do not exist, which is not an error, and
 * ends at the root, which is the container's own group.
 */
#define THREAD_STACK ((size_t)8 << 20)

static const struct {
	const char *file;
	bool v2;
} limit_files[] = {
	{"memory.max", true},
	{"memory.high", true},
	{"memory.limit_in_bytes", false},
};
#define LIMIT_FILES (sizeof limit_files / sizeof *limit_files)
/* Version 1 writes "none" as a number: LONG_MAX, rounded down to pages. */
#define LIMIT_NONE (UINT64_C(1) << 62)

/* Return the number in a file, or UINT64_MAX if there is no such file or no number in
 * it. */
static uint64_t read_limit(const char *path)
{
	cleanup_fclose FILE *f = fopen(path, "re");
	uint64_t v;

	if (!f || fscanf(f, "%" SCNu64, &v) != 1 || !v || v >= LIMIT_NONE)
		return UINT64_MAX;
	return v;
}

/* Called for a group with its directory in the cgroup file system and the path of the
 * group. */
typedef void group_fn(void *ctx, const char *dir, const char *path, bool v2);

/* Call `fn` for each group from `path` up to the root, wherever the hierarchy may be
 * mounted.  Changes `path`. */
static void walk_up(const char *root, char *path, bool v2, group_fn *fn,
		    void *ctx)
{
	static const char *const mounts[] = {"", "/unified", "/memory"};
	char dir[8192];
	char *slash;

	for (;;) {
		for (size_t i = v2 ? 0 : 2; i < (v2 ? 2u : 3u); i++) {
			int n = snprintf(dir, sizeof dir, "%s%s%s", root,
					 mounts[i], path);

			if (n > 0 && (size_t)n < sizeof dir)
				fn(ctx, dir, path, v2);
		}
		slash = strrchr(path, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* Return true if "memory" is one of the names in a list such as "cpu,memory". */
static bool lists_memory(const char *controllers)
{
	for (const char *p = controllers; *p;) {
		size_t n = strcspn(p, ",");

		if (n == 6 && !memcmp(p, "memory", n))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}

static void walk_groups(const char *proc_self_cgroup, const char *cgroup_root,
			group_fn *fn, void *ctx)
{
	cleanup_fclose FILE *f = fopen(proc_self_cgroup, "re");
	char line[4608];

	while (f && fgets(line, sizeof line, f)) {
		char *controllers = strchr(line, ':'), *path;

		if (!controllers)
			continue;
		*controllers++ = '\0';
		path = strchr(controllers, ':');
		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		/* A group outside our namespace is shown as "/../x": of its ancestors
		 * only the root can be seen. */
		if (*path != '/' || !path[1] || strstr(path, "/.."))
			*path = '\0';
		if (!*controllers || lists_memory(controllers))
			walk_up(cgroup_root, path, !*controllers, fn, ctx);
	}
}

/* The smallest limit of one group, in bytes; UINT64_MAX: no limit. */
static uint64_t group_limit(const char *dir, bool v2)
{
	uint64_t least = UINT64_MAX;
	char name[8192 + 64];

	for (size_t i = 0; i < LIMIT_FILES; i++) {
		if (limit_files[i].v2 != v2)
			continue;
		snprintf(name, sizeof name, "%s/%s", dir, limit_files[i].file);
		least = min_u64(least, read_limit(name));
	}
	return least;
}

static void least_limit(void *ctx, const char *dir, const char *path, bool v2)
{
	uint64_t *least = ctx;

	(void)path;
	*least = min_u64(*least, group_limit(dir, v2));
}

uint64_t system_cgroup_limit(const char *proc_self_cgroup,
			     const char *cgroup_root)
{
	uint64_t least = UINT64_MAX;

	walk_groups(proc_self_cgroup, cgroup_root, least_limit, &least);
	return least;
}

/* Return the number after `key` at the beginning of a line, or 0 if there is none. */
static uint64_t read_number_after_key(const char *path, const char *key)
{
	cleanup_fclose FILE *f = fopen(path, "re");
	size_t n = strlen(key);
	char line[256];
	uint64_t v;

	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, key, n) &&
		    sscanf(line + n, " %" SCNu64, &v) == 1)
			return v;
	return 0;
}

/*
 * The used bytes include the page cache.  Before the kernel refuses memory it gives back
 * the page cache that was not used lately, inactive_file, which container managers
 * subtract, too.  Files on a tmpfs are not in it.
 */
static void least_headroom(void *ctx, const char *dir, const char *path,
			   bool v2)
{
	struct system_headroom *least = ctx, h = {.limit = 0};
	char name[8192 + 64];
	uint64_t have;

	h.limit = group_limit(dir, v2);
	if (h.limit == UINT64_MAX)
		return;
	snprintf(name, sizeof name, "%s/%s", dir,
		 v2 ? "memory.current" : "memory.usage_in_bytes");
	h.used = read_limit(name);
	if (h.used == UINT64_MAX)
		h.used = 0;
	snprintf(name, sizeof name, "%s/memory.stat", dir);
	h.reclaimable = min_u64(
		read_number_after_key(name, v2 ? "inactive_file "
					       : "total_inactive_file "),
		h.used);
	have = h.used - h.reclaimable;
	h.left = h.limit > have ? h.limit - have : 0;
	if (h.left >= least->left)
		return;
	*least = h;
	snprintf(least->group, sizeof least->group, "%s", *path ? path : "/");
}

void system_cgroup_headroom(const char *proc_self_cgroup,
			    const char *cgroup_root,
			    struct system_headroom *out)
{
	*out = (struct system_headroom){.left = UINT64_MAX,
					.limit = UINT64_MAX};
	walk_groups(proc_self_cgroup, cgroup_root, least_headroom, out);
}

void system_headroom(struct system_headroom *out)
{
	system_cgroup_headroom("/proc/self/cgroup", "/sys/fs/cgroup", out);
}

static void first_group(void *ctx, const char *dir, const char *path, bool v2)
{
	char *out = ctx;

	(void)dir;
	(void)v2;
	if (!*out)
		snprintf(out, 256, "%s", *path ? path : "/");
}

void system_group(char out[256])
{
	*out = '\0';
	walk_groups("/proc/self/cgroup", "", first_group, out);
}

bool system_group_is_in(const char *group, const char *in)
{
	size_t n = strlen(in);

	if (!strcmp(in, "/"))
		return true;
	return n && !strncmp(group, in, n) && (!group[n] || group[n] == '/');
}

uint64_t system_available(void)
{
	uint64_t kib = read_number_after_key("/proc/meminfo", "MemAvailable:");

	return kib ? kib * 1024 : UINT64_MAX;
}

/* Read pressure stall information.  Return false if there is none. */
static bool read_stalled(const char *path, unsigned *percent)
{
	cleanup_fclose FILE *f = fopen(path, "re");

	return f && fscanf(f, "some avg10=%u", percent) == 1;
}

struct stalled {
	bool found;
	unsigned percent;
};

/* The tasks of a group are counted in its ancestors, too: the nearest group says best
 * what happens to our tasks. */
static void nearest_stalled(void *ctx, const char *dir, const char *path,
			    bool v2)
{
	struct stalled *s = ctx;
	char name[8192 + 64];

	(void)path;
	if (!v2 || s->found)
		return;
	snprintf(name, sizeof name, "%s/memory.pressure", dir);
	s->found = read_stalled(name, &s->percent);
}

unsigned system_cgroup_stalled(const char *proc_self_cgroup,
			       const char *cgroup_root, const char *machine)
{
	struct stalled s = {0};

	walk_groups(proc_self_cgroup, cgroup_root, nearest_stalled, &s);
	if (!s.found && !read_stalled(machine, &s.percent))
		return 0;
	return s.percent;
}

unsigned system_stalled(void)
{
	return system_cgroup_stalled("/proc/self/cgroup", "/sys/fs/cgroup",
				     "/proc/pressure/memory");
}

uint64_t system_memory(void)
{
	struct sysinfo si;
	uint64_t ram = UINT64_MAX;

	if (sysinfo(&si) == 0 && mul_overflows(si.totalram, si.mem_unit, &ram))
		ram = UINT64_MAX;
	return min_u64(ram, system_cgroup_limit("/proc/self/cgroup",
						"/sys/fs/cgroup"));
}

unsigned system_cores(void)
{
	/* The kernel refuses a mask smaller than its own: double the size until it
	 * fits. */
	for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
		size_t size = CPU_ALLOC_SIZE(cpus);
		cpu_set_t *set = CPU_ALLOC(cpus);
		int r, n = 0;

		if (!set)
			break;
		r = sched_getaffinity(0, size, set);
		if (r == 0)
			n = CPU_COUNT_S(size, set);
		else if (errno != EINVAL)
			n = 1;
		CPU_FREE(set);
		if (n > 0)
			return (unsigned)n;
	}
	return 1;
}

void system_thread_stacks(void)
{
	pthread_attr_t attr;
	size_t size;

	if (pthread_getattr_default_np(&attr) != 0)
		return;
	if (pthread_attr_getstacksize(&attr, &size) == 0 &&
	    size < THREAD_STACK &&
	    pthread_attr_setstacksize(&attr, THREAD_STACK) == 0)
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

uint64_t system_raise_files(void)
{
	struct rlimit l;
	rlim_t had;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0)
		return 1024;
	had = l.rlim_cur;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l) != 0)
		return had;
	return l.rlim_cur;
}

uint64_t system_resident(void)
{
	cleanup_fclose FILE *f = fopen("/proc/self/statm", "re");
	uint64_t pages;

	if (!f || fscanf(f, "%*u %" SCNu64, &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool system_populate(void *memory, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
	return madvise(memory, bytes, MADV_POPULATE_WRITE) == 0;
#else
	(void)memory;
	(void)bytes;
	return false;
#endif
}

uint64_t system_limit_growth(uint64_t more)
{
	cleanup_fclose FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long data;
	struct rlimit r;
	uint64_t before;

	/* The sixth number: pages of data and stack (proc_pid_statm(5)). */
	if (!f || fscanf(f, "%*u %*u %*u %*u %*u %llu", &data) != 1 ||
	    getrlimit(RLIMIT_DATA, &r) < 0)
		return RLIM_INFINITY;
	before = r.rlim_cur;
	more += data * (uint64_t)sysconf(_SC_PAGESIZE);
	if (more < r.rlim_cur) {
		r.rlim_cur = more;
		setrlimit(RLIMIT_DATA, &r);
	}
	return before;
}

void system_limit_restore(uint64_t before)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_DATA, &r) < 0)
		return;
	r.rlim_cur = before < r.rlim_max ? before : r.rlim_max;
	setrlimit(RLIMIT_DATA, &r);
}
