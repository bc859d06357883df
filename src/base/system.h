/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process may use: memory (cgroups included), cores, descriptors. */
#ifndef BASE_SYSTEM_H
#define BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of memory this process may use: the smaller of RAM and the limits of
 * its cgroup (v1 and v2, all ancestors). */
uint64_t system_memory(void);
/* The smallest memory limit of the cgroups that the file `proc_self_cgroup`
 * names and of their ancestors, found under `cgroup_root`; UINT64_MAX: none. */
uint64_t system_cgroup_limit(const char *proc_self_cgroup,
			     const char *cgroup_root);
/* How much the control groups still let this process have: the group that leaves
 * least, of all those that bind it. */
struct system_headroom {
	uint64_t left;  /* limit - used + reclaimable; UINT64_MAX: no limit */
	uint64_t limit; /* bytes */
	uint64_t used;
	uint64_t reclaimable; /* of these: page cache that nobody used lately */
	char group[256];      /* its path, as /proc/self/cgroup has it */
};
void system_cgroup_headroom(const char *proc_self_cgroup,
			    const char *cgroup_root,
			    struct system_headroom *out);
/* The same for this process. */
void system_headroom(struct system_headroom *out);
/* The control group that counts this process's memory, as headroom.group names
 * them; empty: none does. */
void system_group(char out[256]);
/* Is `group` the group `in`, or below it? */
bool system_group_is_in(const char *group, const char *in);
/* Bytes that the machine could give to somebody (MemAvailable). */
uint64_t system_available(void);
/* Percent of the last ten seconds in which some task stood still for want of memory, as
 * the nearest control group of version 2 says, the own one first, or else the file
 * `machine`; 0 also where the kernel does not say. */
unsigned system_cgroup_stalled(const char *proc_self_cgroup,
			       const char *cgroup_root, const char *machine);
/* The same for this process. */
unsigned system_stalled(void);
/* Cores this process may run on (affinity mask, at least 1). */
unsigned system_cores(void);
/* Raise the soft limit of open files to the hard one; the resulting limit. */
uint64_t system_raise_files(void);
/* Give threads that start from now on at least 8 MiB of stack: by default it is what
 * `ulimit -s` says, which may be less than one of ours needs. */
void system_thread_stacks(void);
/* Resident bytes of this process now. */
uint64_t system_resident(void);
/* Populate all pages of this private anonymous memory now, instead of one by one when they
 * are touched.  Return false if the kernel populated none (Linux before 5.14) or not all of
 * them; the rest is populated when it is touched. */
bool system_populate(void *memory, size_t bytes);

/* Let this process have `more` bytes of memory beyond what it has now
 * (RLIMIT_DATA); what asks for more is told that there is none.  Returns what to
 * give to system_limit_restore. */
uint64_t system_limit_growth(uint64_t more);
void system_limit_restore(uint64_t before);

#endif
