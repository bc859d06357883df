#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""npz: what is mounted of what numpy.savez and savez_compressed wrote is what numpy.load
gives, as files and as every view; what is no array is said to be none."""
import os
import random
import sys
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import numpy as np

import arc
from arc import one, scratch, sh
from checks import check, equal
from lib import Mount, exits, tensorfs

SMALL = ["--cache-size=8M"]


def arrays():
    r = np.random.RandomState(1)
    out = {
        "f4": r.rand(100, 20, 30).astype("<f4"),
        "big_endian": r.randint(0, 999, (50, 7)).astype(">i2"),
        "fortran": np.asfortranarray(r.rand(300, 40, 5)),
        "fortran_be": np.asfortranarray(r.rand(31, 17).astype(">f8")),
        "bool": r.rand(1000) > 0.5,
        "c8": (r.rand(9, 9) + 1j * r.rand(9, 9)).astype("c8"),
        "zero_d": np.array(42.5),
        "empty": np.zeros((0, 4), "f4"),
        "long_rows": np.arange(600000, dtype="<u4").reshape(2, 300000),
        "many": np.arange(3000000, dtype="<i8").reshape(3000, 1000) % 1001,
        "S5": np.array([b"abc", b"defgh"]),
    }
    pairs = np.zeros((70, 900), [("x", ">f4"), ("n", [("y", "<i2", (3,)), ("s", "S2")])])
    pairs["x"] = r.rand(70, 900)
    pairs["n"]["y"] = r.randint(0, 999, (70, 900, 3))
    out["structures"], out["structures_fortran"] = pairs, np.asfortranarray(pairs)
    return out


def npz(save, name="a.npz", **kw):
    path = os.path.join(scratch("npz"), name)
    save(path, **kw)
    return path


def same(path, want, what):
    got = np.load(path)
    equal(got.shape, want.shape, what + ": shape")
    equal(got.dtype, want.dtype.newbyteorder("<"), what + ": type")
    check(got.tobytes() == want.astype(got.dtype).tobytes(order="C"),
          what + ": values")


def all_views(m, want, rng):
    for n, a in want.items():
        same(m / (n + "/array.npy"), a, n)
        np.testing.assert_array_equal(np.load(m / (n + ".npy")), a)
        if a.size:
            with open(m / (n + "/array.bin"), "rb") as f:
                check(f.read() == a.astype(a.dtype.newbyteorder("<")).tobytes(),
                      n + ": array.bin")
        if a.ndim < 1 or not a.size:
            continue
        names = sorted(os.listdir(m / (n + "/samples")))
        equal(len(names), len(a), n + ": samples")
        for i in [rng.randrange(len(a)) for _ in range(8)]:
            same(m / (n + "/samples/" + names[i]), a[i], n + " sample")


def whole(save):
    want = arrays()
    path = npz(save, **want)

    def f(m):
        equal(sorted(os.listdir(m.path)),
              sorted(list(want) + [n + ".npy" for n in want]), "entries")
        all_views(m, want, random.Random(2))
    arc.mounted(path, f, SMALL)
    exits(tensorfs("verify", path), 0, "verify")
    exits(tensorfs("verify", path + ":/f4"), 0, "verify of one")
    p = exits(tensorfs("info", path), 0, "info")
    check("zip" in p.stdout and "decoded by" in p.stdout, p.stdout)
    p = exits(tensorfs("info", "--json", path + ":/fortran"), 0, "info")
    check("[300, 40, 5]" in " ".join(p.stdout.split()).replace("[ ", "[")
          .replace(" ]", "]"), p.stdout)


def fields():
    """Of structures: stored and deflated, in both orders, chunks that are cut off."""
    r = np.random.RandomState(5)
    a = np.zeros((40, 300), [("frame", ">u2", (4, 5)), ("at", [("x", "<f4")]), ("ok", "?")])
    a["frame"], a["ok"] = r.randint(0, 60000, a["frame"].shape), r.randint(0, 2, a.shape)
    for save in (np.savez, np.savez_compressed):
        path = npz(save, c=a, f=np.asfortranarray(a), plain=np.arange(3))
        with Mount(path) as m:
            check(not os.path.exists(m / "plain/fields"), "no structure")
            for n in "c", "f":
                for k in a.dtype.names:
                    same(m / ("%s/fields/%s/array.npy" % (n, k)),
                         a[k].astype(a[k].dtype.newbyteorder("<")), n + " " + k)
        exits(tensorfs("verify", path), 0, "verify")


def source_order():
    want = {"b": np.arange(1000, dtype=">f4").reshape(10, 100)}
    for save in (np.savez, np.savez_compressed):
        path = npz(save, **want)
        with Mount(path, opts=["-o", "dtype-order=source"]) as m:
            got = np.load(m / "b/array.npy")
            equal(got.dtype.str, ">f4", "type")
            check((got == want["b"]).all(), "values")


def larger_than_windows():
    """A deflated array of many windows, read at random places in a small cache."""
    r = np.random.RandomState(3)
    a = r.randint(0, 50, (700, 40000)).astype("<u2")
    path = npz(np.savez_compressed, a=a)
    with Mount(path, opts=SMALL) as m:
        g = np.load(m / "a/array.npy", mmap_mode="r")
        for i in r.randint(0, 700, 40):
            check((g[i] == a[i]).all(), "row %d" % i)
        check((g[:, 17] == a[:, 17]).all(), "a column")
        del g
        check((np.load(m / "a.npy", mmap_mode="r")[5::97] == a[5::97]).all(),
              "the member")


def inside():
    """In a tar, and in a compressed one, where nothing of it is a range of a file."""
    want = {"x": np.arange(5000, dtype="<i4").reshape(50, 100)}
    for save in (np.savez, np.savez_compressed):
        path = npz(save, "in.npz", **want)
        d = os.path.dirname(path)
        for how in ("-cf", "-czf"):
            image = os.path.join(scratch("t"), "t.tar" + ".gz" * ("z" in how))
            sh("tar", how, image, "-C", d, "in.npz")
            with Mount(image, opts=["--nested"]) as m:
                same(m / "in.npz/x/array.npy", want["x"], how)


def odd_members():
    """Objects, pickles, text, broken headers, names that are taken."""
    path = npz(np.savez, ok=np.arange(10), o=np.array([{}, 1], dtype=object))
    with zipfile.ZipFile(path, "a") as z:
        z.writestr("text.npy", b"this is text")
        z.writestr("readme.txt", b"a note")
        z.writestr("none.npy", b"")
        z.writestr("group/in.npy", z.read("ok.npy"))
        z.writestr("ok", b"taken")
        z.writestr("cut.npy", z.read("ok.npy")[:-8])
        z.writestr("cutz.npy", z.read("ok.npy")[:-8], zipfile.ZIP_DEFLATED)
    with Mount(path) as m:
        names = os.listdir(m.path)
        equal(open(m / "ok").read(), "taken", "the member")
        equal(open(m / "readme.txt").read(), "a note", "another member")
        same(m / "group:in/array.npy", np.arange(10), "in a directory")
        check("none" not in names, "an empty file is an array")
        for n in ("o", "text", "cut", "cutz"):
            check(not os.path.exists(m / (n + "/array.npy")), n)
    p = tensorfs("ls", path)
    check("objects" in p.stderr, p.stderr)


def main():
    one("savez", whole, np.savez)
    one("savez_compressed", whole, np.savez_compressed)
    one("fields", fields)
    one("source-order", source_order)
    one("windows", larger_than_windows)
    one("inside", inside)
    one("odd", odd_members)


if __name__ == "__main__":
    arc.main((main,))
