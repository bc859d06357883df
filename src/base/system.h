/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process may use: memory (cgroups included), cores, descriptors. */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of memory that this process may use: the smaller of RAM and the limits of its
 * cgroup (versions 1 and 2, all ancestors). */
uint64_t system_memory(void);
/* The smallest memory limit, in bytes, of the cgroups that the file `proc_self_cgroup`
 * names and of their ancestors, found under `cgroup_root`; UINT64_MAX: no limit. */
uint64_t system_cgroup_limit(const char *proc_self_cgroup,
			     const char *cgroup_root);
/* How much memory the control groups still let this process have: numbers of the group
 * that leaves least, of all those that bind it, in bytes. */
struct system_headroom {
	uint64_t left;  /* limit - used + reclaimable; UINT64_MAX: no limit */
	uint64_t limit; /* bytes */
	uint64_t used;
	uint64_t reclaimable; /* of `used`: page cache not used lately */
	char group[256];      /* the group's path, as in /proc/self/cgroup */
};
void system_cgroup_headroom(const char *proc_self_cgroup,
			    const char *cgroup_root,
			    struct system_headroom *out);
/* As system_cgroup_headroom, for this process. */
void system_headroom(struct system_headroom *out);
/* Set `out` to the path of the control group that counts this process's memory, in the
 * form of headroom.group; empty if there is none. */
void system_group(char out[256]);
/* Return true if `group` is the group `in` or a group below it. */
bool system_group_is_in(const char *group, const char *in);
/* The bytes that the machine could give to a process (MemAvailable); UINT64_MAX:
 * unknown. */
uint64_t system_available(void);
/* The percentage of the last ten seconds in which some task stalled for want of memory,
 * as the nearest control group of version 2 says (our own first), or else the file
 * `machine`.  0 also where the kernel does not say. */
unsigned system_cgroup_stalled(const char *proc_self_cgroup,
			       const char *cgroup_root, const char *machine);
/* As system_cgroup_stalled, for this process. */
unsigned system_stalled(void);
/* The number of cores that this process may run on (affinity mask); at least 1. */
unsigned system_cores(void);
/* Raise the soft limit of open files to the hard one; return the resulting limit. */
uint64_t system_raise_files(void);
/* Give threads that start from now on at least 8 MiB of stack.  The default is the limit
 * of `ulimit -s`, which may be too small for some of our threads. */
void system_thread_stacks(void);
/* The bytes of this process that are resident now. */
uint64_t system_resident(void);
/* Populate all pages of this private anonymous memory now, instead of one by one when they
 * are touched.  Return false if the kernel populated none (Linux before 5.14) or not all of
 * them; the rest is populated when it is touched. */
bool system_populate(void *memory, size_t bytes);

/* Limit this process to `more` bytes of memory beyond what it has now (RLIMIT_DATA);
 * larger requests then fail with ENOMEM.  Return the value for system_limit_restore. */
uint64_t system_limit_growth(uint64_t more);
void system_limit_restore(uint64_t before);

#endif
