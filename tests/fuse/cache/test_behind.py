#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Behind a reader that goes forward, chunks are dropped: whatever their shape, and whether
the reader asks for a file or it is read ahead.  Each is decoded once all the same.  Behind
others they stay, and so do those that the kernel lost."""
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal
from lib import Mount, case, exits, run
from quietlib import numbers, rests

MIB = 1 << 20
# Behind readers 16 MiB stay; as much again is decoded ahead, or on its way.
MOST = 40 * MIB
# 96 MiB each, but for what lies beyond an edge.
ARRAYS = {
    "whole rows": ((96, 512, 1024), (1, 512, 1024)),
    "halves of rows": ((96, 512, 1024), (1, 512, 512)),
    "tiles": ((96, 1024, 512), (1, 256, 256)),
    "across samples": ((96, 512, 1024), (8, 256, 256)),
    "beyond edges": ((96, 512, 1024), (1, 384, 1024)),
    "a small chunk a sample": ((768, 256, 256), (1, 256, 256)),
    "many samples a chunk": ((1536, 256, 128), (16, 256, 128)),
}
work = None


def array(name):
    shape, chunks = ARRAYS[name]
    path = os.path.join(work, name.replace(" ", "-") + ".h5")
    if not os.path.exists(path):
        one = np.arange(np.prod(shape[1:]), dtype="u2").reshape(shape[1:])
        with h5py.File(path, "w") as f:
            d = f.create_dataset("data", shape, "u2", chunks=chunks,
                                 compression="lzf", shuffle=True)
            for i in range(0, shape[0], 16):
                d[i:i + 16] = one
        # Of a file that was written just now nothing is shared.
        os.utime(path, (1600000000, 1600000000))
    with h5py.File(path) as f:
        return path, f["data"].id.get_num_chunks()


def check_reading(name, script, *opts):
    path, n = array(name)
    with Mount(path, opts=list(opts)) as m:
        exits(run("sh", "-c", script, "sh", m / "data"), 0, "reading " + name)
        rests(m)
        c = numbers(m)
        # A READ whose thread stands still while others read 16 MiB finds its chunk gone
        # from the cache.  On a busy machine that happens to some.
        check(n <= c["chunks_decoded"] <= 2 * n, "%d chunks decoded of %d of %s" % (
            c["chunks_decoded"], n, name))
        check(c["cache_bytes"] < MOST, "%s: %d bytes in the cache" % (
            name, c["cache_bytes"]))


@case
def the_array():
    for name in ARRAYS:
        check_reading(name, 'cat "$1"/array.npy >/dev/null')


@case
def the_array_without_prefetching():
    check_reading("tiles", 'cat "$1"/array.npy >/dev/null', "-o", "prefetch=off")


@case
def all_samples_in_order():
    for name in ARRAYS:
        check_reading(name, 'cat "$1"/samples/*.npy >/dev/null')


@case
def chunks_that_did_not_compress():
    """They are stored as they are, and the page cache has the file: none is kept here."""
    path = os.path.join(work, "noise.h5")
    noise = np.random.default_rng(3).integers(0, 1 << 16, (16, 512, 1024), "u2")
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=noise, chunks=(1, 512, 1024), compression="lzf")
    with Mount(path) as m:
        with open(m / "data/array.npy", "rb") as f:
            check(np.array_equal(np.load(f), noise), "the array differs from h5py's")
        rests(m)
        c = numbers(m)
        equal(c["chunks_decoded"], 0, "chunks decoded")
        check(c["cache_bytes"] < MIB, "%d bytes in the cache" % c["cache_bytes"])


@case
def reversed_slices_of_stored_chunks():
    """Elements that a READ takes from a chunk one by one are no reason to read its file for
    each of them."""
    path = os.path.join(work, "vector.h5")
    values = np.random.default_rng(4).integers(0, 256, 4 * MIB, "u1")
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=values, chunks=(65536,))
    with Mount(path, opts=["-o", "prefetch=off"]) as m:
        with open(m / "data/slice/::-1.npy", "rb") as f:
            check(np.array_equal(np.load(f), values[::-1]), "the slice differs")
        c = numbers(m)
        check(c["bytes_verbatim"] + c["bytes_decoded"] <= 8 * MIB,
              "bytes read for 4 MiB: %d" % (c["bytes_verbatim"] + c["bytes_decoded"]))


def read_in_order(top, names):
    for name in names:
        with open(os.path.join(top, name), "rb", buffering=0) as f:
            while f.read(MIB):
                pass


def forget(top, names):
    """Let the kernel lose the pages of these files."""
    for name in names:
        fd = os.open(os.path.join(top, name), os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


@case
def what_the_kernel_lost_stays_the_second_time():
    path, n = array("a small chunk a sample")
    took = []
    with Mount(path, opts=["-o", "cache-size=1G"]) as m:
        top = m / "data/samples"
        names = sorted(os.listdir(top))
        for _ in range(3):
            before = numbers(m)["chunks_decoded"]
            read_in_order(top, names)
            rests(m)
            took.append(numbers(m)["chunks_decoded"] - before)
            forget(top, names)
    check(n <= took[0] <= 2 * n and took[2] <= n // 20, "chunks decoded in each pass: %s" % took)


@case
def a_known_order_with_room_for_all():
    """Files that are read ahead of a reader in no order leave their chunks in the cache."""
    path, n = array("many samples a chunk")
    with Mount(path) as m:
        names = ["data/samples/" + x for x in sorted(os.listdir(m / "data/samples"))]
    np.random.default_rng(5).shuffle(names)
    order = os.path.join(work, "order.txt")
    with open(order, "w") as f:
        f.write("".join(x + "\n" for x in names))
    with Mount(path, opts=["-o", "cache-size=192M,order=" + order]) as m:
        read_in_order(m / ".", names)
        rests(m)
        equal(numbers(m)["chunks_decoded"], n, "chunks decoded")


@case
def chunks_that_are_shared():
    """What is mapped is given up as well: a store that is smaller than the array has all of
    it, one chunk after the other."""
    path, n = array("whole rows")
    where = tempfile.mkdtemp(prefix="tensorfs-test-", dir="/dev/shm")
    try:
        with Mount(path, opts=["-o", "shm-cache=64M,shm-dir=" + where]) as m:
            exits(run("sh", "-c", 'cat "$1"/array.npy >/dev/null', "sh", m / "data"), 0,
                  "reading")
            c = numbers(m)
            equal((c["shared_added"], c["shared_refused"]), (n, 0), "added, refused")
    finally:
        shutil.rmtree(where)


def main():
    global work
    work = lib.setup()
    lib.main()


if __name__ == "__main__":
    main()
