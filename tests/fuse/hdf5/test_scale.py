#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Millions of samples, a million chunks, and a grid too large to count.

What is quadratic, or goes through all of a grid, would not end within the limit of the
test.  What reads all of an index is seen by how much it reads; what keeps something of
each sample, by the memory that is the daemon's own: both do not depend on how busy the
machine is.
"""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal, note, pread, read, same_bytes
from lib import Mount, case, exits, memory, run, tensorfs

KIB, MIB = 1 << 10, 1 << 20
# Sanitizers keep books of their own.
TIMES = 4 if os.environ.get("TENSORFS_SANITIZED") else 1
# The cache is small, so that what it holds is not taken for what was kept of samples.
CACHE = ("-o", "cache-size=8M")
work = None


def below(pid):
    """A process and all that it started and that are there."""
    found = [pid]
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
            for child in f.read().split():
                found += below(int(child))
    return found


def bytes_read(m=None):
    """What a daemon and the processes in which it uses libhdf5 have read so far, and
    what we and our children, which have ended, have."""
    total = 0
    for pid in [os.getpid()] + (below(m.pid) if m else []):
        with open("/proc/%d/io" % pid) as f:
            total += int(f.readline().split()[1])
    return total


def sample(m, i, width=6):
    return read(m / ("data/samples/%0*d.npy" % (width, i)))[128:]


@case
def millions_of_samples():
    n = 5_000_000 if lib.full() else 1_000_000
    src = os.path.join(work, "many.h5")
    known = {0: 1, 234567: 2, n - 1: 3}
    with h5py.File(src, "w") as f:
        ds = f.create_dataset("data", shape=(n, 2), dtype="<i4",
                              chunks=(n // 100, 2), fillvalue=-1)
        for i, v in known.items():
            ds[i] = (v, v + 10)
    width = len(str(n - 1))
    with Mount(src, opts=CACHE) as m:
        os.listdir(m / "data")
        before = memory(m.pid)
        d = m / "data/samples"
        p = exits(run("sh", "-c", 'ls -1U "$1" | wc -l', "sh", d), 0,
                  "ls -U")
        equal(int(p.stdout), n, "number of samples listed")
        grown = memory(m.pid) - before
        for i in list(known) + random.Random(1).sample(range(n), 200):
            v = known.get(i)
            want = [-1, -1] if v is None else [v, v + 10]
            same_bytes(sample(m, i, width), np.array(want, "<i4").tobytes(),
                       "sample %d" % i)
        then = memory(m.pid) - before
        note("listing %d samples: daemon %+.1f MiB; reading some: %+.1f MiB" % (
            n, grown / MIB, then / MIB))
        # Ten bytes for each sample would be more.
        check(grown < 10 * n * TIMES, "listing: the daemon grew by %d" % grown)
        check(then < (10 * n + 16 * MIB) * TIMES, "the daemon grew by %d" % then)
        equal(os.stat(m / "data/array.bin").st_size, n * 8, "array.bin")
    p = run("sh", "-c", '"$1" ls "$2" | wc -l', "sh", lib.TENSORFS,
            src + ":data/samples")
    equal(p.stdout.strip(), str(n), "tensorfs ls | wc -l")


def million_chunks(libver):
    n, slab = 1_000_000 if lib.full() else 200_000, 2000
    src = os.path.join(work, "chunks-%s.h5" % libver)
    with h5py.File(src, "w", libver=libver) as f:
        ds = f.create_dataset("data", shape=(n, 2), dtype="<i4", chunks=(1, 2))
        for i in range(0, n, slab):
            ds[i:i + slab] = np.arange(
                2 * i, 2 * (i + slab), dtype="<i4").reshape(slab, 2)
    rng = random.Random(5)
    before = bytes_read()
    with Mount(src) as m:
        mounted = bytes_read(m) - before
        i = rng.randrange(n)
        same_bytes(sample(m, i, 6), np.array([2 * i, 2 * i + 1], "<i4").tobytes(),
                   "sample %d" % i)
        first = bytes_read(m) - before - mounted
        note("%s: %d chunks, %d KiB; the mount has read %d KiB, the first sample %d" % (
            libver, n, os.path.getsize(src) // KIB, mounted // KIB, first // KIB))
        # All of the index is more: eight bytes for each chunk, at least.
        check(mounted < 4 * n, "the mount has read %d bytes" % mounted)
        check(first < 4 * n, "the first sample has read %d bytes" % first)
        for i in rng.sample(range(n), 500):
            same_bytes(sample(m, i, 6), np.array(
                [2 * i, 2 * i + 1], "<i4").tobytes(), "sample %d" % i)
        note("500 samples: %d KiB" % ((bytes_read(m) - before) // KIB))
        # Through many chunks in one read.
        at = n * 6 // 10 + 1
        same_bytes(pread(m / "data/array.bin", 400_000, 8 * at),
                   np.arange(2 * at, 2 * at + 100_000, dtype="<i4").tobytes(),
                   "array.bin")
    os.unlink(src)


@case
def million_chunks_btree():
    million_chunks("earliest")


@case
def million_chunks_fixed_array():
    million_chunks("latest")


def terabyte(name, shape, chunks):
    """A legal file whose chunk grid must never be enumerated."""
    src = os.path.join(work, name + ".h5")
    n = 1 << 40
    with h5py.File(src, "w") as f:
        ds = f.create_dataset("data", shape=shape, dtype="u1", chunks=chunks,
                              fillvalue=5)
        ds[(-1,) * (len(shape) - 1) + (slice(-10, None),)] = np.arange(
            10, dtype="u1")
    with Mount(src, opts=CACHE) as m:
        fd = os.open(m / "data/array.bin", os.O_RDONLY)
        try:
            equal(os.fstat(fd).st_size, n, "st_size of array.bin")
            equal(os.pread(fd, 20, n - 13), bytes([5, 5, 5, *range(10)]),
                  "the end of array.bin")
            equal(os.pread(fd, 3, 1 << 39), b"\5\5\5", "its middle")
        finally:
            os.close(fd)
        if shape[0] < n:  # inode numbers leave room for 10^12 samples
            p = m / ("data/samples/%06d.npy" % (shape[0] - 1))
            equal(os.stat(p).st_size, 128 + shape[1], "st_size of a sample")
            same_bytes(pread(p, 12, 128 + shape[1] - 12),
                       bytes([5, 5, *range(10)]), "the last sample")
            names = os.listdir(m / "data/samples")
            equal(len(names), shape[0], "samples listed")
        check(memory(m.pid) < 256 * MIB * TIMES, "the daemon has %d MiB" % (
            memory(m.pid) // MIB))
    exits(tensorfs("info", src), 0, "info")


@case
def terabyte_of_rows():
    terabyte("huge2", (1 << 20, 1 << 20), (1, 4096))


@case
def terabyte_of_numbers():
    terabyte("huge1", (1 << 40,), (4096,))


def main():
    global work
    work = lib.setup()
    lib.main()


if __name__ == "__main__":
    main()
