# SPDX-License-Identifier: BSD-2-Clause
"""Each case was once a defect; it says which in its name and first line."""
import mmap
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal, read, same_bytes
from expect import npy
from lib import Mount, case, exits, tensorfs
import skerch

MIB = 1 << 20
STRINGS = h5py.string_dtype()
work = lib.setup()


def path(name):
    return os.path.join(work, name)


@case
def attribute_without_values():
    """An attribute of shape (2^40, 0) nested for ever in info.json."""
    with h5py.File(path("attr.h5"), "w") as f:
        d = f.create_dataset("a", data=[1.0])
        h5py.h5a.create(d.id, b"empty", h5py.h5t.NATIVE_INT32,
                        h5py.h5s.create_simple((2 ** 40, 0)))
        d.attrs["here"] = "yes"
    p = exits(tensorfs("cat", path("attr.h5") + ":a/info.json"),
              0, "cat info.json")
    check('"here": "yes"' in p.stdout, "the other attribute: " + p.stdout)


@case
def long_strings_in_a_small_cache():
    """Segments were counted in values: 4096 long ones filled the memory."""
    value = b"z" * 20000
    with h5py.File(path("long.h5"), "w") as f:
        f.create_dataset("fixed", data=np.full(4096, value, "S20000"),
                         chunks=(64,), compression="gzip")
        f.create_dataset("vlen", data=np.array(
            [value.decode()] * 4096, dtype=object), dtype=STRINGS)
    want = (value + b"\n") * 4096
    with Mount(path("long.h5"), opts=["-o", "cache-size=16M"]) as m:
        for name in ("fixed", "vlen"):
            same_bytes(read(m / (name + "/array.txt")), want, name)
        grown = lib.memory(m.pid)
    check(os.environ.get("TENSORFS_SANITIZED") or grown < 80 * MIB,
          "the daemon has %d MiB" % (grown // MIB))


@case
def time_in_a_structure():
    """Its bits were served as if they were a number of another type; then the whole was
    lines of JSON. It is the integer that is stored, and says what that is."""
    src = os.path.join(work, "time.h5")
    t = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
    t.insert(b"i", 0, h5py.h5t.STD_I32LE)
    t.insert(b"t", 4, h5py.h5t.UNIX_D32LE)
    with h5py.File(src, "w") as f:
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_chunk((2,))
        d = h5py.h5d.create(f.id, b"tab", t, h5py.h5s.create_simple((2,)), p)
        d.write_direct_chunk((0,), np.array([5, 1, 6, 258], "<i4").tobytes())
    got = tensorfs("cat", src + ":tab/array.npy", text=False).stdout
    want = np.array([(5, 1), (6, 258)], [("i", "<i4"), ("t", "<i4")])
    same_bytes(got, npy(want), "the structure")
    got = tensorfs("cat", src + ":tab/fields/t/info.json").stdout
    check("HDF5's time" in got, "what it is: " + got)
    got = tensorfs("cat", src + ":tab/fields/i/array.npy", text=False).stdout
    same_bytes(got, npy(np.array([5, 6], "<i4")), "the other member")


@case
def a_fill_value_of_variable_length():
    """libhdf5 freed what we had made of it, which was no memory of its own."""
    with h5py.File(path("fill.h5"), "w") as f:
        f.create_dataset("s", (9,), STRINGS, chunks=(3,),
                         fillvalue="abc")[4] = "written"
    p = tensorfs("cat", path("fill.h5") + ":s/array.txt")
    check("crashed" not in p.stderr, "cat: " + p.stderr)
    if p.returncode == 0:  # 1.10 wants to write where no chunk is
        equal(p.stdout.split(), ["abc"] * 4 + ["written"] + ["abc"] * 4, "all")
    p = exits(tensorfs("cat", path("fill.h5") + ":s/samples/000004.txt"), 0,
              "cat of a sample")
    equal(p.stdout, "written\n", "the sample")


@case
def verify_of_rows_of_strings():
    """Rows of several strings were read in steps that split them."""
    rows = np.array([["a%d" % i, "b", "c"] for i in range(2000)], dtype=object)
    with h5py.File(path("rows.h5"), "w") as f:
        f.create_dataset("s", data=rows, dtype=STRINGS)
    exits(tensorfs("verify", path("rows.h5")), 0, "verify")


@case
def strings_of_a_missing_part_with_fill():
    """missing=fill was for numbers only."""
    t = skerch.create(work, "t", rows=40, part=10)
    os.unlink(t.parts[2][2])
    with Mount(t.all_path, opts=["-o", "missing=fill"]) as m:
        lines = read(m / "flags/array.txt").split(b"\n")
        equal(len(lines), 41, "lines of array.txt")
        equal(set(lines[20:30]), {b""}, "lines of the missing part")
        check(b"" not in lines[:20] + lines[30:40], "other lines are empty")


@case
def sources_of_another_rank():
    """A stack of one-dimensional sources looked readable and was not."""
    layout = h5py.VirtualLayout((4, 10), "i8")
    for n in range(4):
        with h5py.File(path("row%d.h5" % n), "w") as f:
            f["data"] = np.arange(10) + n
        layout[n] = h5py.VirtualSource("row%d.h5" % n, "data", (10,))
    with h5py.File(path("stack.h5"), "w") as f:
        f.create_virtual_dataset("data", layout)
    exits(tensorfs("verify", path("stack.h5")), 0, "verify")
    with Mount(path("stack.h5")) as m:
        got = np.load(os.path.join(m.path, "data/samples/000002.npy"))
        equal(got.tolist(), (np.arange(10) + 2).tolist(), "a row")


@case
def groups_under_many_names():
    """Thirty groups, two names each to the next: 2^30 paths."""
    with h5py.File(path("names.h5"), "w") as f:
        groups = [f.create_group("g%d" % i) for i in range(31)]
        for a, b in zip(groups, groups[1:]):
            a["left"] = b
            a["right"] = b
        groups[-1]["x"] = np.arange(3)
    exits(tensorfs("ls", path("names.h5")), 0, "ls")
    p = exits(tensorfs("cat", path("names.h5") + ":g0" + "/right" * 30 +
                       "/x/array.bin", text=False), 0, "cat")
    same_bytes(p.stdout, np.arange(3).tobytes(), "x")


@case
def verify_of_a_vast_empty_grid():
    """Every cell of the grid was looked for."""
    with h5py.File(path("vast.h5"), "w") as f:
        d = f.create_dataset("v", (1 << 38,), "u1", chunks=(1,))
        d[12345] = 7
    p = exits(tensorfs("verify", path("vast.h5")), 0, "verify")
    check("1 chunk:" in p.stdout and "all readable" in p.stdout, p.stdout)


@case
def readers_side_by_side_share_chunks():
    """Dropping behind one reader took chunks from the next."""
    a = np.random.default_rng(5).integers(0, 99, (64, 1 << 18), dtype="u4")
    with h5py.File(path("share.h5"), "w") as f:
        f.create_dataset("a", data=a, chunks=(1, 1 << 18), compression="gzip",
                         compression_opts=1)
    buf = mmap.mmap(-1, MIB)
    with Mount(path("share.h5"), opts=["-o", "cache-size=256M"]) as m:
        readers = [os.open(m / ("a/array." + e), os.O_RDONLY | os.O_DIRECT)
                   for e in ("npy", "bin", "npy")]
        for i in range(64):
            for fd in readers:
                equal(os.preadv(fd, [buf], i * MIB), MIB, "bytes read")
        for fd in readers:
            os.close(fd)
        decoded = m.stats()["chunks_decoded"]
    check(decoded <= 64 + 16, "64 chunks were decoded %d times" % decoded)


@case
def listed_attributes_can_be_read():
    """chunks and filters were missing for parts, source failed for a gone one."""
    t = skerch.create(work, "x", rows=40, part=10)
    os.unlink(t.parts[3][2])
    with Mount(t.all_path) as m:
        good = m / "data/blocks/000000-000010.npy"
        read(good)
        names = set(os.getxattr(good, "user.tensorfs.list").decode().split())
        check({"user.tensorfs.chunks", "user.tensorfs.filters"} <= names,
              "listed: %s" % sorted(names))
        for n in names:
            check(os.getxattr(good, n), n + " is empty")
        gone = os.getxattr(m / "data/blocks/000030-000040.npy",
                           "user.tensorfs.source")
        equal(gone.decode(), t.parts[3][2], "source of a part that is gone")


lib.main()
