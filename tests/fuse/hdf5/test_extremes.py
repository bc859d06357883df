#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Huge files, and files whose writer is at work or was killed.

Sections: huge (a million chunks, 100 000 data sets, 10^13 elements, a chunk
larger than the cache), sparse (10^9 places for chunks) and live.  The standard tier
has fewer chunks and data sets.  Times and sizes are printed; only what the contract
promises is checked.
"""
import errno
import fcntl
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import writers
from checks import check, equal, fails_with, note, pread, read, same_bytes
from h5truth import npy, why_not
from lib import Mount, exits, tensorfs
from sections import refused, run_sections, sub

rng = random.Random(5)
MIB = 1 << 20


# --- huge ----------------------------------------------------------------

def timed(what, f):
    t = time.monotonic()
    r = f()
    note("%s: %.2f s" % (what, time.monotonic() - t))
    return r


def bounded(m, limit, when):
    """The daemon's own memory.  Sanitizers need memory for themselves."""
    n = lib.memory(m.pid)
    limit *= 4 if os.environ.get("TENSORFS_SANITIZED") else 1
    note("%s: %d MiB in use" % (when, n // MIB))
    check(n < limit, "%s: %d MiB in use, limit %d MiB" % (
        when, n // MIB, limit // MIB))


class Timed(Mount):
    """A mount that says how long it took."""

    def __enter__(self):
        return timed("mount of " + os.path.basename(self.src[0]),
                     super().__enter__)


ROWS, COLS = (1000, 4000) if lib.full() else (200, 800)


def write_million(path):
    with h5py.File(path, "w") as f:
        d = f.create_dataset("many", (ROWS, COLS), "<u4", chunks=(1, 4))
        a = np.arange(ROWS * COLS, dtype="<u4").reshape(ROWS, COLS)
        put = d.id.write_direct_chunk
        for i in range(ROWS):
            row = a[i].tobytes()
            for j in range(0, COLS, 4):
                put((i, j), row[j * 4:j * 4 + 16])
    return a


def million_chunks(work):
    src = os.path.join(work, "million.h5")
    count = ROWS * COLS // 4
    a = timed("writing %d chunks" % count, lambda: write_million(src))
    with Timed(src, opts=["-o", "cache-size=64M"]) as m:
        d = m / "many"
        s = m / "many/samples/%06d.npy"
        timed("first sample", lambda: same_bytes(read(s % 177), npy(a[177]),
                                                 "sample 177"))
        for i in rng.sample(range(ROWS), 50):
            same_bytes(read(s % i), npy(a[i]), "sample %d" % i)
        for _ in range(50):
            i, j = rng.randrange(ROWS), rng.randrange(COLS // 4) * 4
            b = "blocks/%06d-%06d_%06d-%06d.npy" % (i, i + 1, j, j + 4)
            same_bytes(read(os.path.join(d, b)), npy(a[i:i + 1, j:j + 4]), b)
        timed("array.bin", lambda: same_bytes(
            read(os.path.join(d, "array.bin")), a.tobytes(), "array.bin"))
        n = timed("listing blocks/", lambda: sum(
            1 for _ in os.scandir(os.path.join(d, "blocks"))))
        equal(n, count, "names in blocks/")
        bounded(m, 192 * MIB, "%d chunks, cache-size=64M" % count)


def write_crowd(path, n):
    """n data sets of one number each, in one group."""
    with h5py.File(path, "w", libver="latest") as f:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((2,))
        kind, g = h5py.h5t.STD_I32LE, f.create_group("crowd").id
        for i in range(n):
            d = h5py.h5d.create(g, b"d%d" % i, kind, space, dcpl)
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([i, -i], "<i4"))


def crowd(work):
    src, n = os.path.join(work, "crowd.h5"), 100000 if lib.full() else 5000
    timed("writing %d data sets" % n, lambda: write_crowd(src, n))
    with Timed(src, opts=["-o", "cache-size=64M"]) as m:
        bounded(m, 128 * MIB, "%d data sets, just mounted" % n)
        for i in rng.sample(range(n), 100):
            p = m / ("crowd/d%d/" % i)
            same_bytes(read(p + "array.npy"), npy(np.array([i, -i], "<i4")),
                       p)
        fails_with(errno.ENOENT, lambda: os.stat(m / ("crowd/d%d" % n)), "stat")
        names = timed("listing", lambda: os.listdir(m / "crowd"))
        equal(len(names), n, "names listed")
        equal(set(names), {"d%d" % i for i in range(n)}, "names listed")
        bounded(m, 128 * MIB, "%d data sets, listed" % n)


def mostly_nothing(work):
    """10^13 elements, three chunks of them written."""
    src = os.path.join(work, "sparse.h5")
    shape, chunk = (100000, 10000, 10000), (1, 100, 100)
    at = [(0, 0, 0), (54321, 5000, 700), (99999, 9900, 9900)]
    one = writers.ramp((100, 100), "u1")
    with h5py.File(src, "w") as f:
        d = f.create_dataset("d", shape, "u1", chunks=chunk, fillvalue=7,
                             compression=1)
        for x, y, z in at:
            d[x, y:y + 100, z:z + 100] = one
    with Timed(src, opts=["-o", "cache-size=64M"]) as m:
        full = m / "d/array.npy"
        equal(os.stat(full).st_size, 128 + 10 ** 13, "st_size of array.npy")
        equal(os.stat(m / "d/array.bin").st_size, 10 ** 13, "of array.bin")
        a = np.load(full, mmap_mode="r")
        equal(a.shape, shape, "shape")
        for k, (x, y, z) in enumerate(at):
            want = np.full((102, 102), 7, "u1")
            want[1:-1, 1:-1] = one
            y0, z0 = max(y - 1, 0), max(z - 1, 0)
            got = np.array(a[x, y0:y + 101, z0:z + 101])
            want = want[1 - (y - y0):, 1 - (z - z0):][:got.shape[0],
                                                      :got.shape[1]]
            same_bytes(got.tobytes(), want.tobytes(), "chunk %d" % k)
            off = (x * 10000 + y) * 10000 + z
            same_bytes(pread(m / "d/array.bin", 100, off), one[0].tobytes(),
                       "array.bin at %d" % off)
            b = "d/blocks/%06d-%06d_%06d-%06d_%06d-%06d.npy" % (
                x, x + 1, y, y + 100, z, z + 100)
            same_bytes(read(m / b), npy(one[None]), b)
        s = np.load(m / "d/samples/054321.npy")
        check((s[:5000] == 7).all(), "sample 54321 before its chunk")
        equal(int(s.sum(dtype="u8")), int(one.sum(dtype="u8")) +
              7 * (10 ** 8 - 10 ** 4), "sum of sample 54321")
        with os.scandir(m / "d/blocks") as it:
            first = timed("100 names of blocks/",
                          lambda: [e.name for e, _ in zip(it, range(100))])
        check(first, "blocks/ is empty")
        bounded(m, 192 * MIB, "10^13 elements")
        del a
    exits(tensorfs("info", src + ":d"), 0, "info")


def verify_nothing(work):
    """10^9 places for chunks, three chunks: verify asks for those alone."""
    src = os.path.join(work, "sparse.h5")
    v = timed("verify", lambda: verified(src))
    equal((v["chunks"], v["never_written"]), (3, 10 ** 9 - 3), "verify")


def big_chunk(work):
    """One chunk of 200 MB, or of 80, and a cache of 64 MiB."""
    src = os.path.join(work, "bigchunk.h5")
    rows, row = 200 if lib.full() else 80, 1000 * 1000
    a = np.arange(rows, dtype="u1")[:, None] + \
        (np.arange(row) % 251).astype("u1")[None]
    with h5py.File(src, "w") as f:
        d = f.create_dataset("d", (rows, row), "u1", chunks=(rows, row),
                             compression=1)
        d.id.write_direct_chunk((0, 0), zlib.compress(a, 1))
    mnt = os.path.join(work, "bigmnt")
    os.makedirs(mnt)
    p = tensorfs("mount", "-o", "cache-size=64M", src, mnt)
    try:
        exits(p, 0, "mount")
        d = os.path.join(mnt, "d")
        for i in (0, rows - 1, rows // 2):
            same_bytes(read(os.path.join(d, "samples/%06d.npy" % i)),
                       npy(a[i]), "sample %d" % i)
        at = rows * row // 2 + 3456789
        same_bytes(pread(os.path.join(d, "array.bin"), 5000, at),
                   a.tobytes()[at:at + 5000], "array.bin")
        same_bytes(read(os.path.join(d, "array.npy")), npy(a), "array.npy")
    finally:
        lib.force_unmount(mnt)
    check("cache-size" in p.stderr, "the mount does not warn that its cache "
          "is smaller than one chunk: %r" % p.stderr)
    check(p.stderr.count("cache-size") <= 2, "warned more than once: %s" %
          p.stderr)
    out = exits(tensorfs("info", src + ":d"), 0, "info").stdout
    size = rows * row
    check(re.search("%d|%d" % (size >> 20, size // 10**6), out),
          "info does not say what one sample decodes: " + out)


def costly(work):
    """Samples that a cache of 64 MiB is too small for: said once for each, also
    for virtual datasets, those of virtual ones, and fields of what is text."""
    shape, chunk = (64, 1024, 1024), (64, 1024, 64)
    with h5py.File(os.path.join(work, "cost.h5"), "w") as f:
        f.create_dataset("d", shape, "<f4", chunks=chunk, compression=1)
        f.create_dataset("s", shape, [("a", "<f4"), ("b", "u1")],
                         chunks=chunk)
        f.create_dataset("t", shape, [("a", "<f4"),
                                      ("t", h5py.string_dtype())],
                         chunks=chunk)
    for name, of in (("virtual.h5", "cost.h5"), ("nested.h5", "virtual.h5")):
        layout = h5py.VirtualLayout(shape, "<f4")
        layout[:] = h5py.VirtualSource(of, "d", shape)
        with h5py.File(os.path.join(work, name), "w", libver="latest") as f:
            f.create_virtual_dataset("d", layout)
    mnt = os.path.join(work, "costmnt")
    os.makedirs(mnt)
    for name, want in (("cost.h5", ["/d", "/s", "/t/fields/a"]),
                       ("virtual.h5", ["/d"]), ("nested.h5", ["/d"])):
        src = os.path.join(work, name)
        try:
            p = tensorfs("mount", "-o", "cache-size=64M", src, mnt)
            exits(p, 0, "mount")
        finally:
            lib.force_unmount(mnt)
        equal(re.findall(r"(\S+): one sample decodes 16 chunks", p.stderr),
              want, "warnings of " + name)
        info = json.loads(exits(tensorfs("info", "--json", src + ":d"), 0,
                                "info").stdout)
        check('"chunks": 16' in json.dumps(info), "info of " + name)


# --- sparse --------------------------------------------------------------

VAST, CELL = (100000, 10000, 10000), (1, 100, 100)   # 10^9 places
LARGE = (10000, 1000, 1000)                          # 10^6, for arrays
SPARSE = {   # index: file format, shape, largest shape, gzip, its nodes
    "btree1": ("earliest", VAST, None, None, b"TREE"),
    "btree1_gzip": ("earliest", VAST, (None,) * 3, 1, b"TREE"),
    "btree2": ("latest", VAST, (None, None, 10000), None, b"BTLF"),
    "btree2_gzip": ("latest", VAST, (None, None, 10000), 1, b"BTLF"),
    "fixed": ("latest", LARGE, None, None, b"FADB"),
    "fixed_gzip": ("latest", LARGE, (11000, 1001, 1001), 1, b"FADB"),
    "extensible": ("latest", LARGE, (None, 1000, 1000), None, b"EAHD"),
    "extensible_gzip": ("latest", LARGE, (10000, None, 1000), 1, b"EAIB"),
}
CELLS, RAW = 300, bytes(range(100)) * 100


def write_sparse(path, kind, n=CELLS):
    libver, shape, largest, gzip, _ = SPARSE[kind]
    places = [s // c for s, c in zip(shape, CELL)]
    at = {(0, 0, 0), tuple(p - 1 for p in places)}
    while len(at) < n:
        at.add(tuple(rng.randrange(p) for p in places))
    raw = zlib.compress(RAW, 1) if gzip else RAW
    with h5py.File(path, "w", libver=libver) as f:
        d = f.create_dataset("d", shape, "u1", chunks=CELL, maxshape=largest,
                             compression=gzip)
        for p in sorted(at):
            d.id.write_direct_chunk(tuple(i * c for i, c in zip(p, CELL)), raw)
    return at, int(np.prod(places))


def verified(src, status=0):
    """What verify says."""
    return json.loads(exits(tensorfs("verify", "--json", src),
                            status, "verify").stdout)


def sparse_index(work, kind):
    src = os.path.join(work, kind + ".h5")
    at, places = write_sparse(src, kind)
    v = verified(src)
    equal((v["chunks"], v["never_written"], v["ok"]),
          (len(at), places - len(at), True), "verify")
    for what in ("data", "node"):
        bad = os.path.join(work, "%s-%s.h5" % (kind, what))
        shutil.copy(src, bad)
        hurt = hurt_data if what == "data" else hurt_node
        if hurt(bad, kind):
            check(verified(bad, 1)["bad_count"] >= 1, "no word of " + what)
        os.unlink(bad)
    os.unlink(src)


def patch(path, pos, data):
    with open(path, "r+b") as f:
        f.seek(pos)
        f.write(data)


def hurt_data(path, kind):
    """Only what a filter made can tell."""
    if not SPARSE[kind][3]:
        return False
    with open(path, "rb") as f:
        patch(path, f.read().rindex(zlib.compress(RAW, 1)) + 10, bytes(20))
    return True


def hurt_node(path, kind):
    with open(path, "rb") as f:
        data = f.read()
    pos = data.rindex(SPARSE[kind][4])
    if kind.startswith("btree1"):   # no checksum: the second key's first axis
        pos = next(m.start() for m in re.finditer(b"TREE\x01\x00", data))
        pos += 24 + 40 + 8 + 8
        patch(path, pos, struct.pack("<Q", rng.choice((0, 1 << 40, 99999))))
    else:
        patch(path, pos + 8, bytes([data[pos + 8] ^ 1]))
    return True


def sparse_virtual(work):
    """Half of a sparse source, and the other half through another one."""
    src = os.path.join(work, "vsrc.h5")
    at, _ = write_sparse(src, "btree1")
    half = VAST[0] // 2
    for name, of, first in (("one.h5", "vsrc.h5", 0), ("two.h5", "one.h5", 0),
                            ("late.h5", "vsrc.h5", half)):
        layout = h5py.VirtualLayout((half,) + VAST[1:], "u1")
        rows = VAST[0] if of == "vsrc.h5" else half
        layout[:] = h5py.VirtualSource(of, "d", (rows,) + VAST[1:])[
            first:first + half]
        path = os.path.join(work, name)
        with h5py.File(path, "w", libver="latest") as f:
            f.create_virtual_dataset("d", layout)
        equal(verified(path)["chunks"],
              sum(first <= p[0] < first + half for p in at), name)


def sparse_odd(work):
    """What is no array, and what libhdf5 decodes, cell by cell."""
    src = os.path.join(work, "odd.h5")
    with h5py.File(src, "w") as f:
        d = f.create_dataset("text", (10 ** 9,), h5py.string_dtype(),
                             chunks=(100,))
        d[0], d[10 ** 9 - 1] = "first", "last"
        kind = h5py.h5t.STD_I32LE.copy()
        kind.set_size(3)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((100,))
        d = h5py.h5d.create(f.id, b"three", kind,
                            h5py.h5s.create_simple((10 ** 11,)), dcpl)
        d.write_direct_chunk((10 ** 11 - 100,), bytes(300))
    v = verified(src)
    equal((v["ok"], v["not_checked"]), (True, 0), "verify")


def early(work, layout, libver, shape):
    """Space for everything, hardly any of it written."""
    src = os.path.join(work, "early.h5")
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if layout == h5py.h5d.CHUNKED:
        dcpl.set_chunk(CELL)
    else:
        dcpl.set_layout(layout)
    dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    dcpl.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    try:
        with h5py.File(src, "w", libver=libver) as f:
            d = h5py.Dataset(h5py.h5d.create(
                f.id, b"d", h5py.h5t.STD_U8LE,
                h5py.h5s.create_simple(shape), dcpl))
            d[shape[0] // 2, :100, :100] = 5
        v = verified(src)
        equal((v["ok"], v["decoded_bytes"]), (True, int(np.prod(shape))),
              "verify")
        os.truncate(src, os.stat(src).st_size - 1000)
        verified(src, 1)
    finally:
        os.unlink(src)


def sparse_all(work):
    s = sub("sparse")
    for kind in SPARSE:
        s(kind, sparse_index, work, kind)
    s("virtual", sparse_virtual, work)
    s("odd", sparse_odd, work)
    s("early:row", early, work, h5py.h5d.CHUNKED, "latest",
      (100, 10000, 10000))
    s("early:contiguous", early, work, h5py.h5d.CONTIGUOUS, "earliest",
      (1000, 10000, 10000))
    s("early:btree1", early, work, h5py.h5d.CHUNKED, "earliest",
      (100, 1000, 1000))


def huge_all(work):
    s = sub("huge")
    for f in (million_chunks, crowd, mostly_nothing, verify_nothing,
              big_chunk, costly):
        s(f.__name__, f, work)


# --- writers at work, and dead ones ---------------------------------------

WRITER = r"""
import sys, h5py, numpy as np
path, how = sys.argv[1:]
f = h5py.File(path, 'w', libver='earliest' if how.startswith('old')
              else 'latest')
d = f.create_dataset('d', (100, 16), 'f4', maxshape=(None, 16),
                     chunks=(8, 16), compression=4 if 'gzip' in how else None)
if how.startswith('swmr'):
    f.swmr_mode = True
def rows(a, b):
    return np.arange(a * 16, b * 16, dtype='f4').reshape(-1, 16)
d[:] = rows(0, 100)
if 'unflushed' not in how:
    d.flush()
    f.flush()
if 'more' in how:
    d.resize(180, 0)
    d[100:] = rows(100, 180)
print('ready', flush=True)
sys.stdin.readline()
f.close()
"""

LIVE = (("swmr", False), ("swmr-gzip", False), ("swmr", True),
        ("swmr-gzip-more", True), ("swmr-more", False), ("new", True),
        ("new-unflushed", True), ("new-gzip-more", True), ("old", True),
        ("old-unflushed", True), ("old-gzip-more", True), ("old", False),
        ("new", False))

def save_by_h5py(src, out):
    for kw in ({}, {"swmr": True}):
        try:
            with h5py.File(src, "r", **kw) as f:
                np.save(out, f["d"][()])
            return
        except (OSError, KeyError, RuntimeError, ValueError):
            pass


def by_h5py(src):
    """What h5py makes of it, in a child process, because it may crash; None: it
    refuses."""
    out = src + ".npy"
    pid = os.fork()
    if not pid:
        try:
            save_by_h5py(src, out)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return np.load(out) if os.path.exists(out) else None


def unlocked(src):
    """Another process can lock the source: the mount holds no lock."""
    p = lib.run("flock", "-xn", src, "true")
    equal(p.returncode, 0, "flock -xn of the mounted file")


def never_wrong(m):
    """Rows are as they were written, or fail, or were never stored."""
    d = m / "d/samples"
    if not os.path.isdir(d):
        why_not(m / "d")
        return
    note("we show %d rows" % len(os.listdir(d)))
    for n in os.listdir(d):
        i = int(n[:-4])
        try:
            got = read(os.path.join(d, n))
        except OSError:
            continue
        want = np.arange(i * 16, i * 16 + 16, dtype="f4")
        if got != npy(want):   # a chunk that was never written is fill
            same_bytes(got, npy(want * 0), "row %d" % i)


def at_work(work, how, killed):
    src = os.path.join(work, "live-%s-%d.h5" % (how, killed))
    w = subprocess.Popen([sys.executable, "-c", WRITER, src, how],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lib._children.append(w)
    try:
        equal(w.stdout.readline(), b"ready\n", "the writer")
        if killed:
            w.send_signal(signal.SIGKILL)
            w.wait()
        truth = by_h5py(src)
        note("%s%s: h5py %s" % (how, " killed" if killed else "", "refuses"
                                if truth is None else
                                "reads %d rows" % len(truth)))
        p = tensorfs("ls", src)
        if p.returncode != 0:
            exits(p, 3, "ls")
            note("we say: " + p.stderr.strip())
            refused(src, r"\w+ \w+ \w+")
            check("swmr" not in how, "h5py reads it and we do not: " +
                  p.stderr)
            return
        with Mount(src) as m:
            if truth is None:
                never_wrong(m)
            else:
                same_bytes(read(m / "d/array.npy"), npy(truth), "array.npy")
                for i in (0, 50, len(truth) - 1):
                    same_bytes(read(m / ("d/samples/%06d.npy" % i)),
                               npy(truth[i]), "row %d" % i)
            if killed or how.startswith("swmr"):
                unlocked(src)
    finally:
        if w.poll() is None:
            w.communicate(b"\n")


def no_lock(work):
    """A plain file while it is mounted and read: others may open it r+."""
    src = os.path.join(work, "plain.h5")
    a = writers.ramp((64, 64), "f8")
    with h5py.File(src, "w") as f:
        f.create_dataset("d", data=a, chunks=(8, 64), compression=1)
    with Mount(src) as m:
        same_bytes(read(m / "d/array.npy"), npy(a), "array.npy")
        unlocked(src)
        with open(src, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            same_bytes(read(m / "d/samples/000003.npy"), npy(a[3]),
                       "a sample while another process holds the lock")
        p = lib.run(sys.executable, "-c", "import h5py, sys\n"
                    "h5py.File(sys.argv[1], 'r+').close()", src)
        exits(p, 0, "h5py r+ of the mounted file")
    with open(src, "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        exits(tensorfs("verify", src), 0, "verify while locked")


def live_all(work):
    for how, killed in LIVE:
        sub("live")(how + ("-killed" if killed else ""), at_work, work, how,
                    killed)
    sub("live")("no_lock", no_lock, work)


if __name__ == "__main__":
    run_sections((("huge", huge_all), ("sparse", sparse_all),
                  ("live", live_all)))
