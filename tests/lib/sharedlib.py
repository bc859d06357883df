# SPDX-License-Identifier: BSD-2-Clause
"""Where the tests of shared chunks have their shared memory."""
import os
import shutil
import tempfile

import lib
from lib import exits, run

KIB, MIB = 1 << 10, 1 << 20


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
