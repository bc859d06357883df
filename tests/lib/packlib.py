# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of `pack` share: the command, small file systems, a run that is
stopped, what is left behind."""
import json
import os
import random
import signal
import subprocess
import sys
import time

import arc
import lib
from checks import check, equal
from lib import exits, run, tensorfs
from stagelib import private_shm

MIB = 1 << 20
SANITIZED = bool(os.environ.get("TENSORFS_SANITIZED"))


def setup(fuse=False):
    """A directory, in a mount namespace of our own: small file systems go away."""
    private_shm()
    return lib.setup(fuse=fuse)


def pack(*argv, code=0, **kw):
    return exits(tensorfs("pack", *argv, **kw), code, "pack")


def summary(*argv, code=0):
    """What --json says."""
    return json.loads(pack("--json", *argv, code=code).stdout)


def says(p, *words):
    for w in words:
        check(str(w) in p.stderr, "'%s' is not in: %s" % (w, p.stderr))


def put(top, name, data=b""):
    """A file, and the directories above it; names are bytes or text."""
    p = os.path.join(os.fsencode(top), os.fsencode(name))
    os.makedirs(os.path.dirname(p), exist_ok=True)
    with open(p, "wb") as f:
        f.write(data)
    return p


def noise(n, seed=0):
    return random.Random(seed).randbytes(n)


def names(d):
    return sorted(os.listdir(d))


def snapshot(d):
    """{name: (inode, bytes)} of the files in a directory."""
    out = {}
    for n in os.listdir(d):
        p = os.path.join(d, n)
        with open(p, "rb") as f:
            out[n] = (os.stat(p).st_ino, f.read())
    return out


def nothing_new(d, before, what=""):
    """No name came, none went, none means something else."""
    now = snapshot(d)
    equal(sorted(now), sorted(before), "%s: names in the directory" % what)
    for n in before:
        check(now[n] == before[n], "%s: %s is another file" % (what, n))


class Tmpfs:
    """A small one, in our own mount namespace."""

    def __init__(self, work, size):
        self.path = os.path.join(work, "tmpfs-%d" % random.randrange(10**9))
        self.size = size

    def __enter__(self):
        os.mkdir(self.path)
        arc.sh("mount", "-t", "tmpfs", "-o", "size=%d,mode=1777" % self.size,
               "small", self.path)
        return self.path

    def __exit__(self, *_):
        arc.sh("umount", self.path)
        os.rmdir(self.path)


class Running:
    """A pack in the background; at the end it is gone."""

    def __init__(self, *argv, **kw):
        self.p = subprocess.Popen(
            [lib.TENSORFS, "pack", *map(os.fspath, argv)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", **kw)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
        self.p.communicate()

    def catches(self):
        """Signals that end it early are noted by it, no longer fatal."""
        with open("/proc/%d/status" % self.p.pid) as f:
            caught = [int(line.split()[1], 16) for line in f
                      if line.startswith("SigCgt:")][0]
        return all(caught >> n - 1 & 1 for n in (
            signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE))

    def busy(self, n, seconds=60):
        """Wait until it has written n bytes; False: it ended before.  (A sanitizer
        writes, too, before our program begins.)"""
        end = time.monotonic() + seconds
        while self.p.poll() is None and time.monotonic() < end:
            try:
                with open("/proc/%d/io" % self.p.pid) as f:
                    io = dict(line.split(": ") for line in f)
                if int(io["wchar"]) > n and self.catches():
                    return True
            except (OSError, KeyError, ValueError, IndexError):
                pass
        return False

    def end(self, *codes):
        out, err = self.p.communicate()
        p = subprocess.CompletedProcess(self.p.args, self.p.returncode, out,
                                        err)
        check("Sanitizer" not in err, err)
        if codes:
            check(p.returncode in codes, "exit %d: %s" % (p.returncode, err))
        return p


def peak(*argv):
    """Bytes that a command, which has to work, had resident at most.  It is started by
    a small process: what is large counts as the child's until that has begun."""
    p = run(sys.executable, "-c", "import os, subprocess, sys\n"
            "p = subprocess.Popen(sys.argv[1:])\n"
            "print(*os.wait4(p.pid, 0)[1:], sep='\\n')", *argv)
    equal((p.returncode, p.stderr, p.stdout.split()[0]), (0, "", "0"),
          "status, stderr and exit of %s" % (argv,))
    return int(p.stdout.split("maxrss=")[1].split(",")[0]) * 1024


def slow_tree(top, mib=64):
    """Takes a while to be packed as tar.zst:19 with one thread."""
    if not os.path.exists(top):
        block = arc.text(1 << 18, 5)
        for i in range(mib * 4):
            put(top, "%04d.txt" % i, b"%d" % i + block[i:])
    return top


def interrupted(argv, d, sig, after=1 << 16):
    """Run, stop by a signal in the middle; nothing is left in directory d, which is
    as before.  False: each time it had ended already."""
    return any(interrupted_once(argv, d, sig, after) for _ in range(8))


def interrupted_once(argv, d, sig, after):
    before = snapshot(d)
    with Running(*argv) as r:
        if not r.busy(after):
            return False
        r.p.send_signal(sig)
        p = r.end()
        if p.returncode == 0:
            return False
        equal(p.returncode, -sig, "how it ended (%s)" % p.stderr)
        if sig != signal.SIGKILL:
            nothing_new(d, before, "interrupted")
            says(p, "interrupted")
            return True
    now = snapshot_of(d, before)
    check(now == before, "a file is another after SIGKILL")
    return True


def snapshot_of(d, like):
    out = {}
    for n in like:
        p = os.path.join(d, n)
        with open(p, "rb") as f:
            out[n] = (os.stat(p).st_ino, f.read())
    return out
