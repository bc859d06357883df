# SPDX-License-Identifier: BSD-2-Clause
"""Where the tests of shared chunks have their shared memory."""
import os
import shutil
import tempfile
import time

import lib
from lib import exits, run

KIB, MIB = 1 << 10, 1 << 20
SETTLE_NS = 3 * 10**9           # as in src/store/shared/key.c


def _is_settled(path):
    st = os.stat(path)
    now = time.time_ns()
    return st.st_ctime_ns < now - SETTLE_NS and \
        (st.st_mtime_ns < now - SETTLE_NS or st.st_mtime_ns > now)


def settled(*paths):
    """Wait until chunks of these files, and of all below these directories, are shared:
    those of a file that changed less than three seconds ago are not, by its own times,
    since a second change within a tick of the clock could not be told."""
    files = [p for p in paths if not os.path.isdir(p)]
    for top in paths:
        for d, _, names in os.walk(top):
            files += [os.path.join(d, n) for n in names]
    if not lib.wait_until(lambda: all(map(_is_settled, files)), 60):
        raise lib.Failure("the clock of %s is ahead of ours" % files)


class Shm:
    """A tmpfs of its own for a case (root), or else a directory in /dev/shm."""

    def __init__(self, size=64 * MIB):
        self.size, self.own = size, lib.ROOT

    def __enter__(self):
        if self.own:
            self.path = tempfile.mkdtemp(prefix="shm-", dir=lib._base())
            exits(run("mount", "-t", "tmpfs", "-o", "size=%d" % self.size,
                      "none", self.path), 0, "a tmpfs for the test")
            os.chmod(self.path, 0o1777)
        else:
            self.path = tempfile.mkdtemp(prefix="shm-", dir="/dev/shm")
        self.chunks = os.path.join(self.path, "tensorfs-%d" % os.geteuid(),
                                   ".chunks")
        return self

    def __exit__(self, *exc):
        if self.own:
            exits(run("umount", self.path), 0, "umount of the tmpfs")
            os.rmdir(self.path)
        else:
            shutil.rmtree(self.path)

    def opts(self, size=48 * MIB, *more):
        return ("-o", ",".join(("shm-cache=%d,shm-dir=%s" % (size, self.path),)
                               + more))

    def names(self):
        try:
            return sorted(n for n in os.listdir(self.chunks) if n != "ledger")
        except FileNotFoundError:
            return []

    def blocks(self):
        """Bytes of memory that its files take; one may have two names for a moment."""
        found = {}
        for name in self.names():
            try:
                st = os.stat(os.path.join(self.chunks, name))
                found[st.st_ino] = st.st_blocks * 512
            except FileNotFoundError:
                pass
        return sum(found.values())
