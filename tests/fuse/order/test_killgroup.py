#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The whole control group of a mount is killed at one instant while it is read, as Slurm,
systemd and the OOM killer do it: every process goes, and nobody who reads hangs.

Daemon, its helpers and twelve readers are in the group, one reader is not; who reads in order
of names is alone, in the group or not.  $TENSORFS_KILLS says how often each way of killing is
tried with each way of reading.
"""
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, note
from lib import Mount, case, exits, run, wait_until
from quietlib import again, numbers

KILLS = int(os.environ.get("TENSORFS_KILLS", 20 if lib.full() else 4))
N = 8192
READERS = 12
work = tensor = image = listed = None

# Reads all files below a directory: in an order of each process by the seed; without one
# each takes its part of them as a list says, or by name.
READER = """
import os, random, sys
paths = sorted(os.path.join(t, f) for t, d, fs in os.walk(sys.argv[1]) for f in fs)
readers, seed = int(sys.argv[2]), int(sys.argv[3])
if sys.argv[4:]:
    with open(sys.argv[4]) as f:
        paths = [os.path.join(sys.argv[1], name) for name in f.read().split()]
me = 0
while me < readers - 1 and os.fork():
    me += 1
if seed:
    random.Random(seed + me).shuffle(paths)
else:
    paths = paths[me::readers]
while True:
    for p in paths:
        try:
            fd = os.open(p, os.O_RDONLY)
            os.read(fd, 1 << 20)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        except OSError:
            sys.exit(0)
"""


class Group:
    """A control group of version 2, where one can be made; else the processes are those
    that were told to it."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="groups-", dir=work)
        self.told = []
        self.path = None
        if lib.ROOT and run("mount", "-t", "cgroup2", "none", self.top).returncode == 0:
            self.path = os.path.join(self.top, "tensorfs-test-%d" % os.getpid())
            os.mkdir(self.path)

    def enter(self):
        """Called in a child that is to be of it."""
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
                f.write("0")

    def pids(self):
        if self.path:
            with open(os.path.join(self.path, "cgroup.procs")) as f:
                return [int(p) for p in f]
        found = set(self.told)
        for p in filter(str.isdigit, os.listdir("/proc")):
            if lib.parent(int(p)) in found:
                found.add(int(p))
        return [p for p in found if os.path.exists("/proc/%d" % p) and
                not lib.zombie(p)]

    def kill_group(self):
        with open(os.path.join(self.path, "cgroup.kill"), "w") as f:
            f.write("1")

    def kill_each(self):
        for p in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)

    def close(self):
        if self.path:
            os.rmdir(self.path)
            exits(run("umount", self.top), 0, "umount")


def begin(group, argv):
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, preexec_fn=group and group.enter)
    lib._children.append(p)
    if group:
        group.told.append(p.pid)
    return p


def kill_once(group, kill, source, opts, seed, names):
    m = Mount(source, opts=opts, foreground=True)
    daemon = begin(group, m.argv)
    lib._mounts.append(m)
    check(wait_until(lambda: lib.mount_line(m.path), 60), "no mount")
    top = m / "d/samples" if source == tensor else m.path
    argv = ["/usr/bin/python3", "-c", READER, top]
    if seed or names:
        readers = [begin(group, [*argv, str(READERS), str(seed), *names]),
                   begin(None, [*argv, "1", str(seed + 100 if seed else 0)])]
    else:  # of one reader a processor is idle, so that guesses are followed
        readers = [begin(random.choice([group, None]), [*argv, "1", "0"])]
    # Some way into what is read ahead, which nobody can foresee.
    enough = random.randrange(1, N)

    def is_time():
        return numbers(m)["read_requests_ahead"] >= enough

    late = not wait_until(is_time, 30, 0.001)
    kill(group)
    if not wait_until(lambda: not group.pids(), 60):
        states = [open("/proc/%d/stack" % p).read() if lib.ROOT else ""
                  for p in group.pids()]
        raise lib.Failure("processes stay: %s %s" % (group.pids(), states))
    for p in daemon, *readers:
        try:
            p.wait(60)
        except subprocess.TimeoutExpired:
            raise lib.Failure("%d stays" % p.pid)
        lib._children.remove(p)
    group.told.clear()
    lib.force_unmount(m.path)
    check(not lib.mount_line(m.path), "the mount stays")
    if late:
        again("too little was read ahead")


def kill_often(source, opts, seed, names=()):
    group = Group()
    ways = [Group.kill_each]
    if group.path:
        ways.append(Group.kill_group)
    else:
        note("there is no cgroup.kill here: one after the other only")
    try:
        for n in range(KILLS):
            for kill in ways:
                kill_once(group, kill, source, opts, seed + n if seed else 0, names)
    finally:
        group.kill_each()
        wait_until(lambda: not group.pids(), 60)
        group.close()


@case
def first_epochs_in_random_orders():
    # Chunks are decoded more than once.
    for source in tensor, image:
        kill_often(source, ["-o", "cache-size=2M"], 1)


@case
def an_order_that_is_known():
    kill_often(tensor, ["-o", "cache-size=8M,order=" + listed], 0, [listed])


@case
def one_file_after_the_other():
    for source in tensor, image:
        kill_often(source, [], 0)


work = lib.setup()
tensor = os.path.join(work, "t.h5")
data = np.random.default_rng(1).integers(0, 9, (N, 32, 32), "u2")
with h5py.File(tensor, "w") as f:
    f.create_dataset("d", data=data, chunks=(64, 32, 32), compression="gzip")
listed = os.path.join(work, "names")
with open(listed, "w") as f:
    f.writelines("%06d.npy\n" % i for i in np.random.default_rng(2).permutation(N))
image = os.path.join(work, "i.sqfs")
top = os.path.join(work, "tree")
for i in range(N):
    d = os.path.join(top, "c%02d" % (i % 8))
    os.makedirs(d, exist_ok=True)
    with open(os.path.join(d, "%05d" % i), "wb") as f:
        f.write(data[i].tobytes() + b"%d" % i)
exits(run("mksquashfs", top, image, "-quiet", "-no-progress"), 0, "mksquashfs")
lib.main()
