/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of control groups, in trees of files built here; and sane answers. */
#include "base/system.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char root[] = "/tmp/tensorfs-base-system-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", root, name);
	for (char *p = path + strlen(root) + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
		*p = '/';
	}
	f = fopen(path, "w");
	CHECK(f != NULL);
	fputs(text, f);
	fclose(f);
}

/* The limit for a process whose /proc/self/cgroup says `lines`. */
static uint64_t limit(const char *lines)
{
	char proc[512], groups[512];

	put("proc", lines);
	snprintf(proc, sizeof proc, "%s/proc", root);
	snprintf(groups, sizeof groups, "%s/g", root);
	return system_cgroup_limit(proc, groups);
}

TEST(version_2)
{
	put("g/a/memory.max", "1000000\n");
	put("g/a/memory.high", "max\n");
	put("g/a/b/memory.max", "max\n");
	put("g/a/b/memory.high", "2000000\n");
	put("g/a/b/c/memory.max", "500000\n");
	put("g/x/memory.max", "nonsense\n");
	put("g/zero/memory.high", "0\n");
	CHECK_EQ_U(limit("0::/a/b/c\n"), 500000);
	CHECK_EQ_U(limit("0::/a/b\n"), 1000000);
	CHECK_EQ_U(limit("0::/a/not/there\n"), 1000000);
	CHECK_EQ_U(limit("0::/x\n"), UINT64_MAX);
	CHECK_EQ_U(limit("0::/zero\n"), UINT64_MAX);
	CHECK_EQ_U(limit("0::/\n"), UINT64_MAX);
	CHECK_EQ_U(limit("0::/../a\n"), UINT64_MAX);
	CHECK_EQ_U(limit(""), UINT64_MAX);
	CHECK_EQ_U(limit("garbage\n::\n:\n0:\n"), UINT64_MAX);
	/* A container: the host's path, only our own group mounted. */
	put("g/memory.max", "300000\n");
	CHECK_EQ_U(limit("0::/docker/0123/nested\n"), 300000);
	CHECK_EQ_U(limit("0::/../outside\n"), 300000);
	CHECK_EQ_U(limit("0::/a/b/c"), 300000);
	put("g/memory.max", "max\n");
}

TEST(version_1)
{
	put("g/memory/a/memory.limit_in_bytes", "700000\n");
	put("g/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("g/memory/memory.limit_in_bytes", "9223372036854771712\n");
	CHECK_EQ_U(limit("3:cpu,memory:/a/b\n1:name=systemd:/a\n"), 700000);
	CHECK_EQ_U(limit("3:memory:/\n"), UINT64_MAX);
	CHECK_EQ_U(limit("3:memoryx:/a\n"), UINT64_MAX);
	CHECK_EQ_U(limit("4:cpu:/a\n3:memory:/other\n"), UINT64_MAX);
}

TEST(both_versions)
{
	put("g/unified/u/memory.max", "400000\n");
	CHECK_EQ_U(limit("3:memory:/a/b\n0::/u\n"), 400000);
	CHECK_EQ_U(limit("3:memory:/a/b\n0::/\n"), 700000);
}

TEST(this_machine)
{
	struct rlimit l;

	CHECK_EQ_U(system_cgroup_limit("/nonexistent", "/nonexistent"),
		   UINT64_MAX);
	CHECK(system_memory() > 1 << 20);
	CHECK(system_memory() < UINT64_C(1) << 62);
	CHECK(system_cores() >= 1);
	CHECK(system_cores() < 1 << 20);
	CHECK(system_resident() > 100000);
	CHECK(system_resident() < UINT64_C(1) << 40);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &l));
	l.rlim_cur = 64;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &l));
	CHECK_EQ_U(system_raise_files(), l.rlim_max);
	CHECK_OK(getrlimit(RLIMIT_NOFILE, &l));
	CHECK_EQ_U(l.rlim_cur, l.rlim_max);
}

static void remove_root(void)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf %s", root);
	if (system(command) != 0)
		fprintf(stderr, "%s stays behind\n", root);
}

/* What groups leave to a process whose /proc/self/cgroup says `lines`. */
static struct system_headroom headroom(const char *lines)
{
	struct system_headroom h;
	char proc[512], groups[512];

	put("proc", lines);
	snprintf(proc, sizeof proc, "%s/proc", root);
	snprintf(groups, sizeof groups, "%s/g", root);
	system_cgroup_headroom(proc, groups, &h);
	return h;
}

TEST(headroom_version_2)
{
	struct system_headroom h;

	put("g/h/memory.max", "1000000\n");
	put("g/h/memory.current", "900000\n");
	put("g/h/memory.stat", "anon 5\ninactive_file 300000\nfile 9\n");
	put("g/h/i/memory.max", "700000\n");
	put("g/h/i/memory.high", "600000\n");
	put("g/h/i/memory.current", "100000\n");
	put("g/h/full/memory.max", "5000\n");
	put("g/h/full/memory.current", "9000\n");
	h = headroom("0::/h\n");
	CHECK_EQ_U(h.left, 400000);
	CHECK_EQ_U(h.limit, 1000000);
	CHECK_EQ_U(h.used, 900000);
	CHECK_EQ_U(h.reclaimable, 300000);
	CHECK_STR(h.group, "/h");
	/* The ancestor leaves less than the group's own 500000. */
	h = headroom("0::/h/i\n");
	CHECK_EQ_U(h.left, 400000);
	CHECK_STR(h.group, "/h");
	put("g/h/memory.current", "10000\n");
	h = headroom("0::/h/i\n");
	CHECK_EQ_U(h.left, 500000);
	CHECK_STR(h.group, "/h/i");
	CHECK_EQ_U(headroom("0::/h/full\n").left, 0);
	CHECK_EQ_U(headroom("0::/\n").left, UINT64_MAX);
}

TEST(headroom_version_1)
{
	struct system_headroom h;

	put("g/memory/j/memory.limit_in_bytes", "1000000\n");
	put("g/memory/j/memory.usage_in_bytes", "600000\n");
	put("g/memory/j/memory.stat",
	    "inactive_file 1\ntotal_inactive_file 50000\n");
	put("g/memory/j/s/memory.limit_in_bytes", "9223372036854771712\n");
	put("g/memory/j/s/memory.usage_in_bytes", "500000\n");
	h = headroom("4:memory:/j/s\n0::/\n");
	CHECK_EQ_U(h.left, 450000);
	CHECK_STR(h.group, "/j");
	CHECK(system_available() > 0);
	CHECK(system_available() < UINT64_MAX);
}

/* How long tasks stood still, for a process whose /proc/self/cgroup says `lines`. */
static unsigned stalled(const char *lines, const char *machine)
{
	char proc[512], groups[512], all[512];

	put("proc", lines);
	snprintf(proc, sizeof proc, "%s/proc", root);
	snprintf(groups, sizeof groups, "%s/p", root);
	snprintf(all, sizeof all, "%s/%s", root, machine);
	return system_cgroup_stalled(proc, groups, all);
}

#define PRESSURE(n)                                         \
	"some avg10=" n " avg60=0.00 avg300=0.00 total=7\n" \
	"full avg10=99.00 avg60=0.00 avg300=0.00 total=7\n"

TEST(pressure_of_the_nearest_group)
{
	put("machine", PRESSURE("3.50"));
	put("p/a/memory.pressure", PRESSURE("40.00"));
	put("p/a/b/memory.pressure", PRESSURE("0.00"));
	put("p/a/b/c/memory.max", "max\n");
	put("p/a/odd/memory.pressure", "nonsense\n");
	put("p/empty/memory.max", "max\n");
	CHECK_EQ_U(stalled("0::/a\n", "machine"), 40);
	/* Not that of its siblings, which is in the one above. */
	CHECK_EQ_U(stalled("0::/a/b\n", "machine"), 0);
	CHECK_EQ_U(stalled("0::/a/b/c\n", "machine"), 0);
	CHECK_EQ_U(stalled("0::/a/odd\n", "machine"), 40);
	CHECK_EQ_U(stalled("0::/a/not/there\n", "machine"), 40);
	/* No group says anything. */
	CHECK_EQ_U(stalled("0::/empty\n", "machine"), 3);
	CHECK_EQ_U(stalled("0::/\n", "machine"), 3);
	CHECK_EQ_U(stalled("", "machine"), 3);
	CHECK_EQ_U(stalled("0::/empty\n", "none"), 0);
	/* Version 1 has no such file; one that lies there is not its. */
	put("p/memory/m/memory.pressure", PRESSURE("50.00"));
	CHECK_EQ_U(stalled("4:memory:/m\n", "machine"), 3);
	/* Both versions: the group of version 2 knows. */
	put("p/unified/m/memory.pressure", PRESSURE("25.00"));
	CHECK_EQ_U(stalled("4:memory:/m\n0::/m\n", "machine"), 25);
	/* A container whose root is its own group. */
	put("p/memory.pressure", PRESSURE("12.00"));
	CHECK_EQ_U(stalled("0::/../outside\n", "machine"), 12);
	CHECK_EQ_U(stalled("0::/docker/0123\n", "machine"), 12);
	CHECK(system_stalled() <= 100);
}

int main(void)
{
	CHECK(mkdtemp(root) != NULL);
	atexit(remove_root);
	RUN(version_2);
	RUN(version_1);
	RUN(both_versions);
	RUN(this_machine);
	RUN(headroom_version_2);
	RUN(headroom_version_1);
	RUN(pressure_of_the_nearest_group);
	return test_done();
}
