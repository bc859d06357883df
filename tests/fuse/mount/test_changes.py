#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Damaged chunks, and sources that change while they are mounted."""
import errno
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import check, equal, fails_with, note, pread, read, same_bytes
from heldlib import kept
from lib import Mount, case, exits, tensorfs

work = None


def fresh(name):
    d = os.path.join(work, name)
    os.mkdir(d)
    return d


def flip(path, off, n=8):
    with open(path, "r+b") as f:
        f.seek(off)
        b = f.read(n)
        f.seek(off)
        f.write(bytes(x ^ 0xff for x in b))


def sample(m, i, ds="data"):
    return read(m / ("%s/samples/%06d.npy" % (ds, i)))[128:]


def damaged(name, must_notice, **kw):
    """One chunk of eight damaged: EBADMSG for its rows, the rest right."""
    src = os.path.join(work, name + ".h5")
    a = (np.arange(64 * 512, dtype="<i4").reshape(64, 512) * 7) // 5
    with h5py.File(src, "w") as f:
        f.create_dataset("data", data=a, chunks=(8, 512), **kw)
    off, size = skerch.chunk_place(src, index=3)
    flip(src, off + size // 2)
    noticed = 0
    with Mount(src) as m:
        for i in range(64):
            if i // 8 != 3:
                same_bytes(sample(m, i), a[i].tobytes(), "sample %d" % i)
                continue
            try:
                got = sample(m, i)
            except OSError as x:
                equal(errno.errorcode[x.errno], "EBADMSG", "sample %d" % i)
                noticed += 1
                why = os.getxattr(m / ("data/samples/%06d.npy" % i),
                                  "user.tensorfs.error").decode()
                check(why, "user.tensorfs.error is empty")
            else:
                equal(len(got), 2048, "length of damaged sample %d" % i)
        if must_notice:
            equal(noticed, 8, "samples of the damaged chunk that fail")
            fails_with(errno.EBADMSG, lambda: read(
                m / "data/blocks/000024-000032.npy"), "its block")
            fails_with(errno.EBADMSG, lambda: read(m / "data/array.npy"),
                       "array.npy from end to end")
        same_bytes(read(m / "data/blocks/000032-000040.npy")[128:],
                   a[32:40].tobytes(), "the next block")
        check(lib.run("true").returncode == 0 and m.stats(), "still alive")
    p = tensorfs("verify", src)
    if must_notice:
        exits(p, 1, "verify")
        check(p.stdout + p.stderr, "verify says nothing")
        p = tensorfs("cat", src + ":data/samples/000024.npy", text=False)
        exits(p, 1, "cat of a damaged sample")
        check(len(p.stdout) <= 128, "cat printed %d bytes" % len(p.stdout))
    else:
        exits(p, (0, 1), "verify")


@case
def flipped_deflate():
    damaged("deflate", True, compression="gzip")


@case
def flipped_deflate_shuffle():
    damaged("deflate_shuffle", True, compression="gzip", shuffle=True)


@case
def flipped_fletcher32():
    damaged("fletcher", True, fletcher32=True)


@case
def flipped_deflate_fletcher32():
    damaged("deflate_fletcher", True, compression="gzip", fletcher32=True)


@case
def flipped_lzf_fletcher32():
    damaged("lzf_fletcher", True, compression="lzf", fletcher32=True)


@case
def flipped_lzf():
    damaged("lzf", False, compression="lzf")


@case
def deflate_too_short_or_long():
    """A valid stream of the wrong length must not be padded or cut."""
    import zlib
    src = os.path.join(work, "length.h5")
    a = np.arange(40 * 16, dtype="<i4").reshape(40, 16)
    with h5py.File(src, "w") as f:
        ds = f.create_dataset("data", data=a, chunks=(8, 16),
                              compression="gzip")
        raw = a[8:16].tobytes()
        ds.id.write_direct_chunk((8, 0), zlib.compress(raw[:-4]))
        ds.id.write_direct_chunk((24, 0), zlib.compress(raw + b"more"))
    with Mount(src) as m:
        for i in range(40):
            if i // 8 in (1, 3):
                fails_with(errno.EBADMSG, lambda: sample(m, i), "sample %d" % i)
            else:
                same_bytes(sample(m, i), a[i].tobytes(), "sample %d" % i)


def contiguous(name, seed=0):
    """64 rows of 256 KiB, not compressed: spliced from the source."""
    src = os.path.join(work, name + ".h5")
    a = np.random.default_rng(seed).integers(
        0, 2 ** 31, (64, 65536), dtype=np.int32)
    with h5py.File(src, "w") as f:
        f.create_dataset("data", data=a)
    return src, a


def stale(m, a, i):
    """A row of a changed source: ESTALE."""
    fails_with(errno.ESTALE, lambda: sample(m, i), "sample %d" % i)
    why = os.getxattr(m / ("data/samples/%06d.npy" % i),
                      "user.tensorfs.error").decode()
    check(why, "user.tensorfs.error is empty")


def shrunk(m, src, a):
    size = os.stat(m / "data/array.bin").st_size
    os.truncate(src, os.path.getsize(src) // 2)
    stale(m, a, 60)
    stale(m, a, 33)
    p = m / "data/array.bin"
    off = 62 * a[0].nbytes + 8192
    fails_with(errno.ESTALE, lambda: pread(p, 4096, off), "array.bin")
    equal(os.stat(p).st_size, size, "st_size after the shrinking")
    row = sample(m, 0)
    same_bytes(row, a[0].tobytes(), "sample 0, read before")
    for i in (10, 20):  # the part that is still there: right or ESTALE
        try:
            same_bytes(sample(m, i), a[i].tobytes(), "sample %d" % i)
        except OSError as x:
            equal(errno.errorcode[x.errno], "ESTALE", "sample %d" % i)


@case
def source_shrunk():
    src, a = contiguous("shrunk")
    with Mount(src) as m:
        same_bytes(sample(m, 0), a[0].tobytes(), "sample 0 before")
        with kept(m / "data/samples/000000.npy"):
            shrunk(m, src, a)
    lib.force_unmount(m.path)


@case
def source_shrunk_before_first_read():
    src, a = contiguous("shrunk2")
    with Mount(src) as m:
        os.truncate(src, 100000)
        for i in (1, 30, 63):
            stale(m, a, i)


@case
def source_rewritten_in_place():
    """Other bytes, same size and inode, other mtime."""
    src, a = contiguous("rewritten")
    with Mount(src) as m:
        same_bytes(sample(m, 0), a[0].tobytes(), "sample 0 before")
        with open(src, "r+b") as f:
            f.seek(os.path.getsize(src) - 40 * a[0].nbytes)
            f.write(b"\xee" * (40 * a[0].nbytes))
        st = os.stat(src)
        os.utime(src, ns=(st.st_atime_ns, st.st_mtime_ns + 10 ** 10))
        for i in (63, 40):
            stale(m, a, i)


@case
def source_replaced():
    """Another file under the name: ESTALE, or the bytes of the old one."""
    src, a = contiguous("replaced")
    other, b = contiguous("other", 1)
    with Mount(src) as m:
        same_bytes(sample(m, 0), a[0].tobytes(), "sample 0 before")
        os.replace(other, src)
        saw = set()
        for i in (5, 33, 63):
            try:
                same_bytes(sample(m, i), a[i].tobytes(), "sample %d" % i)
                saw.add("old bytes")
            except OSError as x:
                equal(errno.errorcode[x.errno], "ESTALE", "sample %d" % i)
                saw.add("ESTALE")
        note("a replaced source reads as " + " and ".join(sorted(saw)))


@case
def source_removed():
    src, a = contiguous("removed")
    with Mount(src) as m:
        same_bytes(sample(m, 0), a[0].tobytes(), "sample 0 before")
        os.unlink(src)
        for i in (50, 51):      # the second one after the path was looked at
            same_bytes(sample(m, i), a[i].tobytes(), "sample %d" % i)
            time.sleep(1.1)     # looks are 1 s apart; longer is as good


def chunked_change(name, change, codes):
    """Parts that change once they were opened; the cache holds no part."""
    t = skerch.create(fresh(name), rows=800, sub=(256,), part=100,
                      compression="gzip")
    with Mount(t.all_path, opts=["-o", "cache-size=128K,prefetch=off"]) as m:
        for k in range(8):
            same_bytes(sample(m, 100 * k), t.data[100 * k].tobytes(),
                       "sample %d before" % (100 * k))
        change(t.parts[3][2])
        errors = 0
        for i in range(350, 360):
            try:
                same_bytes(sample(m, i), t.data[i].tobytes(), "sample %d" % i)
            except OSError as x:
                check(x.errno in codes, "sample %d: %s" % (i, x))
                errors += 1
        note("%s: %d of 10 samples of the changed part fail" % (name, errors))
        for k in (0, 2, 4, 7):
            i = 100 * k + 55
            same_bytes(sample(m, i), t.data[i].tobytes(), "sample %d" % i)
        return errors


@case
def part_shrunk_while_mounted():
    n = chunked_change("pshrink", lambda p: os.truncate(p, 2000),
                       (errno.ESTALE,))
    equal(n, 10, "samples of the shrunk part that fail")


@case
def part_replaced_while_mounted():
    def change(path):
        new = path + ".new"
        with h5py.File(new, "w") as f:
            f.create_dataset("data", data=np.full((100, 256), 9, "<f4"),
                             chunks=(100, 256), compression="gzip")
        os.replace(new, path)
    chunked_change("preplace", change, (errno.ESTALE,))


@case
def part_removed_while_mounted():
    chunked_change("premove", os.unlink, (errno.ESTALE, errno.ENODATA))


@case
def swmr_writer_appends():
    """What was flushed at the mount is read on; what a closed writer left is not."""
    for kw in ({}, {"compression": "gzip"}):
        src = os.path.join(work, "swmr-%d.h5" % len(kw))
        a = np.random.default_rng(7).integers(0, 99, (80, 1000), "i4")
        with h5py.File(src, "w", libver="latest") as f:
            d = f.create_dataset("data", (40, 1000), "i4", chunks=(1, 1000),
                                 maxshape=(None, 1000), **kw)
            d[:] = a[:40]
            f.swmr_mode = True
            d.flush()
            whole = os.path.join(work, "view-%d.h5" % len(kw))
            with h5py.File(whole, "w", libver="latest") as g:
                layout = h5py.VirtualLayout((40, 1000), "i4")
                layout[:] = h5py.VirtualSource(
                    src, "data", (40, 1000), maxshape=(None, 1000))[:40]
                g.create_virtual_dataset("data", layout)
            opts = ["-o", "cache-size=128K,prefetch=off"]
            with Mount(src, opts=opts) as m, Mount(whole, opts=opts) as v:
                for x in (m, v):
                    same_bytes(sample(x, 0), a[0].tobytes(), "before")
                d.resize(80, 0)
                d[40:] = a[40:]
                d.flush()
                for x in (m, v):
                    for i in range(30):
                        same_bytes(sample(x, i), a[i].tobytes(), "row %d" % i)
                f.close()
                for x in (m, v):
                    fails_with(errno.ESTALE, lambda: sample(x, 35), "closed")
            with Mount(src) as m:
                equal(len(os.listdir(m / "data/samples")), 80, "mounted anew")
                same_bytes(sample(m, 79), a[79].tobytes(), "the last one")


def main():
    global work
    work = lib.setup()
    lib.main()


if __name__ == "__main__":
    main()
