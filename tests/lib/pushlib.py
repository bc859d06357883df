# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of pushed files share: counters, and a verdict that allows for a
machine whose memory others want."""
import os
import time

import lib
from checks import flatten, note


def counters(m):
    return {k: v for k, v in flatten(m.stats()).items() if isinstance(v, int)}


def stalled():
    """Microseconds that some task stood still for want of memory, if it is known."""
    if not os.path.exists("/proc/pressure/memory"):
        return 0
    with open("/proc/pressure/memory") as f:
        return int(f.readline().rsplit("=", 1)[1])


def in_time(one, what):
    """A machine whose memory others want pushes less, or nothing, and it should: so
    `one` has several mounts to succeed with, and each that did not is told of.  It
    returns None, or a Shortage.  One that nothing explains is one too few to tell a
    fault from what the kernel does; there must not be a second."""
    unexplained = 0
    for i in range(5):
        before = stalled()
        short = one()
        if not short:
            return
        waited = stalled() - before
        note("%s: %s; tasks stood still for %d us" % (what, short, waited))
        unexplained += not short.explained() and waited < 100000
        if unexplained > 1:
            raise lib.Failure("%s: %s, and nothing says why" % (what, short))
        time.sleep(10 * i)
    raise lib.Failure("%s: %s, with each of %d mounts" % (what, short, i + 1))


class Shortage:
    """Too little was pushed of so many files."""

    def __init__(self, m, what, files):
        self.what, self.files = what, files
        self.counters = {k.split(".")[-1]: v for k, v in counters(m).items()
                         if "push" in k and v}

    def explained(self):
        """Others want memory: nothing was pushed then; or the kernel had let go of
        files, as many as make a verdict; or of their pages."""
        n = self.counters.get
        return n("push_refused") or n("push_unknown", 0) >= 8 or \
            n("push_in_vain", 0) >= self.files // 10

    def __str__(self):
        return "%s: %s" % (self.what, self.counters)
