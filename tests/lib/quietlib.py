# SPDX-License-Identifier: BSD-2-Clause
"""Machines whose memory others want, and daemons that have nothing left to do."""
import json
import os

import lib
from checks import note


def memory_is_ample():
    """Is a fifth of the memory free?  The daemon shares chunks while a sixteenth is,
    and has files read ahead while a sixth is."""
    with open("/proc/meminfo") as f:
        kib = {k: int(v.split()[0]) for k, v in (line.split(":") for line in f)}
    return kib["MemAvailable"] > kib["MemTotal"] // 5


def again(why):
    """Begin the case anew (lib.attempt counts how often): something went another way
    than it does while memory is ample.  If it is not, wait until it is."""
    note(why)
    lib.wait_until(memory_is_ample, 60)
    raise lib.TooFast


def _threads(pid):
    """{thread: (state, how often it has slept and was interrupted)}"""
    found = {}
    for t in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/status" % (pid, t)) as f:
                lines = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        found[t] = (lines["State"].split()[0], lines["voluntary_ctxt_switches"],
                    lines["nonvoluntary_ctxt_switches"])
    return found


def _helpers(pid):
    """The children that read files of the mount ahead."""
    found = []
    for t in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/children" % (pid, t)) as f:
                children = f.read().split()
            for c in children:
                with open("/proc/%s/comm" % c) as f:
                    if f.read() == "tensorfs-ahead\n":
                        found.append(int(c))
        except OSError:
            continue
    return found


def is_at_rest(pid):
    """Do all threads of this process sleep at the same moment?  Then it has answered
    what it was asked, and has read ahead as far as it wants to, unless it waits for
    another process (of its own, where libhdf5 decodes).  The one that reads files ahead
    counts."""
    pids = [pid, *_helpers(pid)]
    first = [_threads(p) for p in pids]
    return all(state == "S" for threads in first for state, *_ in threads.values()) and \
        [_threads(p) for p in pids] == first


def rests(m):
    """Wait until the daemon of a mount is at rest."""
    if not lib.wait_until(lambda: is_at_rest(m.pid), 60, 0.001):
        raise lib.Failure("the daemon of %s does not come to rest" % m.path)


def numbers(m):
    """The counters and gauges of a mount, asked for without a process of its own."""
    stats = json.loads(os.getxattr(m.path, "user.tensorfs.stats"))
    return {k: v for k, v in stats.items() if isinstance(v, int)}


def counted(m, name, n):
    """Wait until a counter of a mount is n or more."""
    p = lib.tensorfs("stats", "--wait", "%s=%d" % (name, n), "--timeout=60", m.path)
    lib.exits(p, 0, "waiting for a counter")
