#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Five million samples, a million chunks, and a grid too large to count.

The figures are printed; the limits asserted are generous, for this is no
benchmark: they catch what is quadratic or keeps memory per sample.  Times are of the
processor, as others may have it meanwhile.
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
from lib import (Mount, case, cpu_time, cpu_time_of_children, exits, memory, run,
                 tensorfs, timed_mount)

MIB = 1 << 20
# Sanitizers are slow, and keep books of their own.
TIMES = 4 if os.environ.get("TENSORFS_SANITIZED") else 1
work = None


def timed(f, daemon=None):
    """What it returns; seconds that its children, which have ended, and a daemon
    took."""
    def now():
        return cpu_time_of_children() + (cpu_time(daemon) if daemon else 0)
    t = now()
    r = f()
    return r, now() - t


def sample(m, i, width=6):
    return read(m / ("data/samples/%0*d.npy" % (width, i)))[128:]


@case
def five_million_samples():
    n = 5_000_000
    src = os.path.join(work, "many.h5")
    known = {0: 1, 1234567: 2, 4999999: 3}
    with h5py.File(src, "w") as f:
        ds = f.create_dataset("data", shape=(n, 2), dtype="<i4",
                              chunks=(50000, 2), fillvalue=-1)
        for i, v in known.items():
            ds[i] = (v, v + 10)
    m = Mount(src)
    try:
        t = timed_mount(m)
        note("mount: %.3f s" % t)
        check(t < 2 * TIMES, "the mount took %.1f s" % t)
        os.listdir(m / "data")
        before = memory(m.pid)
        d = m / "data/samples"
        p, t = timed(lambda: run("sh", "-c", 'ls -1U "$1" | wc -l', "sh", d,
                                 timeout=600), m.pid)
        exits(p, 0, "ls -U")
        equal(int(p.stdout), n, "number of samples listed")
        grown = memory(m.pid) - before
        note("ls -U of %d samples: %.1f s; daemon %+.1f MiB to %.1f MiB" % (
            n, t, grown / MIB, memory(m.pid) / MIB))
        check(t < 120, "listing took %.0f s" % t)
        check(grown < 64 * MIB * TIMES, "the daemon grew by %d MiB" % (grown // MIB))
        for i in list(known) + random.Random(1).sample(range(n), 200):
            v = known.get(i)
            want = [-1, -1] if v is None else [v, v + 10]
            same_bytes(sample(m, i, 7), np.array(want, "<i4").tobytes(),
                       "sample %d" % i)
        grown = memory(m.pid) - before
        check(grown < 64 * MIB * TIMES, "the daemon grew by %d MiB" % (grown // MIB))
        equal(os.stat(m / "data/array.bin").st_size, n * 8, "array.bin")
    finally:
        m.__exit__(None, None, None)
    p, t = timed(lambda: run("sh", "-c", '"$1" ls "$2" | wc -l', "sh",
                             lib.TENSORFS, src + ":data/samples",
                             timeout=300))
    equal(p.stdout.strip(), str(n), "tensorfs ls | wc -l")
    note("tensorfs ls of them: %.1f s" % t)


def million_chunks(libver):
    n, slab = 1_000_000, 2000
    src = os.path.join(work, "chunks-%s.h5" % libver)

    def write():
        with h5py.File(src, "w", libver=libver) as f:
            ds = f.create_dataset("data", shape=(n, 2), dtype="<i4",
                                  chunks=(1, 2))
            for i in range(0, n, slab):
                ds[i:i + slab] = np.arange(
                    2 * i, 2 * (i + slab), dtype="<i4").reshape(slab, 2)
    write()
    note("%s: %d chunks, %d MiB" % (libver, n, os.path.getsize(src) // MIB))
    rng = random.Random(5)
    firsts = []
    for _ in range(3):
        m = Mount(src)
        try:
            t_mount = timed_mount(m)
            i = rng.randrange(n)
            got, t = timed(lambda: sample(m, i, 6), m.pid)
            same_bytes(got, np.array([2 * i, 2 * i + 1], "<i4").tobytes(),
                       "sample %d" % i)
            firsts.append(t)
            check(t_mount < 2 * TIMES, "the mount took %.1f s" % t_mount)
        finally:
            m.__exit__(None, None, None)
    note("%s: first random sample after mount: %s ms" % (
        libver, ", ".join("%.1f" % (1000 * t) for t in firsts)))
    check(min(firsts) < 0.5 * TIMES, "first sample took %.0f ms" % (
        1000 * min(firsts)))
    with Mount(src) as m:
        for i in rng.sample(range(n), 500):
            same_bytes(sample(m, i, 6), np.array(
                [2 * i, 2 * i + 1], "<i4").tobytes(), "sample %d" % i)
        # Through many chunks in one read.
        fd = os.open(m / "data/array.bin", os.O_RDONLY)
        try:
            off = 8 * 600_001
            got = os.pread(fd, 400_000, off)
            while len(got) < 400_000:
                b = os.pread(fd, 400_000 - len(got), off + len(got))
                check(b, "short read of array.bin")
                got += b
        finally:
            os.close(fd)
        same_bytes(got, np.arange(2 * 600_001, 2 * 600_001 + 100_000,
                                  dtype="<i4").tobytes(), "array.bin")
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
    with Mount(src) as m:
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
    p, t = timed(lambda: tensorfs("info", src, timeout=300))
    exits(p, 0, "info")
    check(t < 20, "info took %.0f s" % t)


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
