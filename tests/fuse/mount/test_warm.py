#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A second epoch costs the daemon nothing: it may even be stopped.

The readers here open files without isatty(): CPython's open() with its default
buffering asks it for every file, and the kernel passes that ioctl (TCGETS) on
to a FUSE daemon each time, whatever was answered before.  cat, C programs,
os.open and open(buffering=N) do not.
"""
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import check, equal, flatten
from heldlib import all_kept
from lib import Mount, case, exits, run

MIB = 1 << 20
work = None
tensor = None

PASS = """
import os, sys
n = 0
for top, dirs, files in os.walk(sys.argv[1]):
    for f in sorted(files):
        with open(os.path.join(top, f), 'rb', buffering=0) as h:
            while True:
                b = h.read(1 << 17)
                if not b:
                    break
                n += len(b)
print(n)
"""
NAMES = """
import os, sys
n = 0
for i in range(int(sys.argv[2]) - 1, -1, -1):
    with open(os.path.join(sys.argv[1], '%06d.npy' % i), 'rb',
              buffering=1 << 17) as h:
        os.fstat(h.fileno())
        n += len(h.read())
print(n)
"""


SHUFFLED = """
import os, random, sys
order = list(range(int(sys.argv[2])))
random.Random(int(sys.argv[3])).shuffle(order)
n = 0
for i in order:
    fd = os.open(os.path.join(sys.argv[1], '%06d.npy' % i), os.O_RDONLY)
    while True:
        b = os.read(fd, 1 << 20)
        if not b:
            break
        n += len(b)
    if len(sys.argv) > 4:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
print(n)
"""


def second_pass(m, program, *args):
    """Output of a pass with the daemon stopped, after one that read all.  The
    kernel may drop what cannot be held between the two: up to three tries."""
    for left in (2, 1, 0):
        first = exits(run("/usr/bin/python3", "-c", program, *args), 0,
                      "first pass")
        try:
            with all_kept(args[0]):
                equal(stopped_pass(m, program, *args), first.stdout, "bytes")
            return first.stdout
        except Waited:
            if not left:
                raise
            lib.note("a pass waited for the daemon; again")


class Waited(lib.Failure):
    pass


def stopped_pass(m, program, *args):
    os.kill(m.pid, signal.SIGSTOP)
    p = subprocess.Popen(["/usr/bin/python3", "-c", program, *args],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = p.communicate(timeout=60)
        hung = False
    except subprocess.TimeoutExpired:
        hung = True
    finally:
        os.kill(m.pid, signal.SIGCONT)
    if hung:
        p.kill()
        p.communicate()
        raise Waited("the pass waited for the stopped daemon")
    equal(p.returncode, 0, "exit of the pass (%s)" % err.decode()[-300:])
    return out.decode()


@case
def sigstop_samples():
    """Files that were read are read again without the daemon."""
    n = len(tensor.data)
    with Mount(tensor.all_path) as m:
        d = m / "data/samples"
        equal(int(second_pass(m, NAMES, d, str(n))),
              n * (128 + tensor.data[0].nbytes), "bytes")


@case
def sigstop_walk():
    """The same with listings: os.walk and every file below."""
    with Mount(tensor.all_path) as m:
        d = m / "data"
        second_pass(m, PASS, d)


@case
def warm_epoch_makes_no_requests():
    def counts(m):
        return {k: v for k, v in flatten(m.stats()).items()
                if isinstance(v, int) and any(
                    w in k for w in ("read_req", "lookup", "getattr",
                                     "readdir", "open_req", "opendir"))}

    with Mount(tensor.all_path) as m:
        for _ in range(2):
            exits(run("/usr/bin/python3", "-c", PASS, m.path), 0, "a pass")
        counts(m)
        for _ in range(3):  # the kernel may drop what cannot be held in between
            with all_kept(m.path):
                before = counts(m)  # what asking itself costs is seen by then
                idle = counts(m)
                exits(run("/usr/bin/python3", "-c", PASS, m.path), 0, "warm pass")
                after = counts(m)
            check(before, "no request counters in stats --json: %s" %
                  m.stats())
            cost = {k: idle[k] - before[k] for k in before}
            delta = {k: after[k] - idle[k] - cost[k] for k in before}
            if not any(v > 0 for v in delta.values()):
                break
            lib.note("requests in a warm epoch: %s; again" % delta)
        check(not any(v > 0 for v in delta.values()),
              "a warm epoch made requests: %s" % delta)
        check(any(v for k, v in after.items() if "read" in k),
              "the counters say nothing was ever read: %s" % after)


@case
def two_readers():
    """Two processes in shuffled order see the same bytes."""
    program = ("import sys,os,random,hashlib\nd=sys.argv[1]\n"
               "n=sorted(os.listdir(d))\nrandom.Random(int(sys.argv[2]))"
               ".shuffle(n)\nr={}\nfor x in n:\n r[x]=hashlib.sha256(open("
               "os.path.join(d,x),'rb').read()).hexdigest()\n"
               "print(sorted(r.items()))")
    with Mount(tensor.all_path) as m:
        ps = [subprocess.Popen(["/usr/bin/python3", "-c", program,
                                m / "data/samples", str(k)],
                               stdout=subprocess.PIPE) for k in (1, 2, 3)]
        outs = [p.communicate(timeout=60)[0] for p in ps]
        check(outs[0] and outs[0] == outs[1] == outs[2], "the lists differ")


def large_samples(n):
    """A chunk of a MiB each; the path."""
    path = os.path.join(work, "large-%d.h5" % n)
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=np.arange(n << 17, dtype="<i8").reshape(n, -1),
                         chunks=(1, 1 << 17), compression="lzf")
    return path


def shuffled(m, n, seed, *more):
    p = run("/usr/bin/python3", "-c", SHUFFLED, m / "data/samples", str(n), str(seed),
            *more)
    equal(exits(p, 0, "a pass").stdout, "%d\n" % (n * (MIB + 128)), "bytes")


@case
def once_is_enough():
    """What the kernel has, the daemon need not have, in whatever order it was read."""
    with Mount(large_samples(48), opts=["-o", "prefetch=off,cache-size=64M"]) as m:
        shuffled(m, 48, 1)
        have = m.stats()["cache_bytes"]
        check(have < 12 * MIB, "%d MiB of 48 are in the cache, too" % (have // MIB))


@case
def what_the_kernel_drops_stays():
    """... unless the kernel does not keep it, as for readers with little memory."""
    with Mount(large_samples(40), opts=["-o", "prefetch=off,cache-size=64M"]) as m:
        took = []
        for epoch in range(12):
            before = m.stats()["chunks_decoded"]
            shuffled(m, 40, epoch, "drop")
            took.append(m.stats()["chunks_decoded"] - before)
            if epoch > 1 and took[-1] <= 10:
                break
        check(took[0] == 40 and took[1] >= 10, "nothing was dropped: %s" % took)
        check(took[-1] <= 10, "chunks decoded in each epoch: %s" % took)


def main():
    global work, tensor
    work = lib.setup()
    tensor = skerch.create(os.path.join(work, "src"), rows=600, sub=(20, 30),
                           part=20, incompressible=4)
    lib.main()


if __name__ == "__main__":
    main()
