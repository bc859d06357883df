#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every kind of HDF5 data set, through the mount, against the written values."""
import io
import json
import os
import random
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import zoo
from checks import (Failure, check, equal, fails_with, flatten, pread, read,
                    same_bytes)
from lib import Mount, exits, run_case, tensorfs

rng = random.Random(20)


def ordered(a, order):
    """The same values, bytes in `order` ('<' or as they are)."""
    if order == "source" or a.dtype.byteorder != ">":
        return a
    return a.byteswap().newbyteorder("<")


def npy(a):
    """What np.save writes for a C-ordered copy."""
    f = io.BytesIO()
    np.save(f, np.asarray(a).copy(order="C"), allow_pickle=False)
    return f.getvalue()


def number_name(i, n, ext):
    return "%0*d%s" % (max(6, len(str(max(n - 1, 0)))), i, ext)


def pick(n, k):
    return range(n) if n <= k else sorted(rng.sample(range(n), k))


def block_box(name, shape, chunks):
    """The box that a block's file name says, as slices."""
    check(name.endswith(".npy"), "block %s is not .npy" % name)
    parts = name[:-4].split("_")
    ranges = []
    for p in parts:
        m = re.fullmatch(r"(\d{6,})-(\d{6,})", p)
        check(m, "block name %s is not BEGIN-END ranges" % name)
        ranges.append((int(m.group(1)), int(m.group(2))))
    axes = [i for i, s in enumerate(shape) if chunks and s > chunks[i]]
    if len(ranges) == len(shape):
        axes = list(range(len(shape)))
    elif not axes:
        axes = [0]
    check(len(axes) == len(ranges), "block %s: %d ranges for the axes %s of "
          "%s in chunks %s" % (name, len(ranges), axes, shape, chunks))
    box = [slice(0, s) for s in shape]
    for ax, (b, e) in zip(axes, ranges):
        check(b < e <= shape[ax], "block %s: range %d-%d of axis %d is not "
              "within %d" % (name, b, e, ax, shape[ax]))
        box[ax] = slice(b, e)
    return tuple(box)


def whole(d, a):
    """array.npy and array.bin: whole, mapped, and in random windows."""
    want = npy(a)
    path = os.path.join(d, "array.npy")
    equal(os.stat(path).st_size, len(want), "st_size of array.npy")
    same_bytes(read(path), want, "array.npy")
    got = np.load(path)
    equal((got.dtype, got.shape), (a.dtype, a.shape), "np.load(array.npy)")
    if a.size:
        m = np.load(path, mmap_mode="r")
        same_bytes(m.tobytes(), a.tobytes(), "np.load(mmap_mode='r')")
        del m
    raw = a.tobytes()
    binary = os.path.join(d, "array.bin")
    if a.size or os.path.exists(binary):
        equal(os.stat(binary).st_size, len(raw), "st_size of array.bin")
    if a.size:
        m = np.memmap(binary, a.dtype, "r", 0, a.shape)
        same_bytes(m.tobytes(), raw, "np.memmap(array.bin)")
        del m
    for p, all_ in ((path, want), (binary, raw)):
        if not all_:
            continue
        for _ in range(20):
            off = rng.randrange(len(all_))
            n = rng.randrange(1, min(len(all_) - off, 70000) + 1)
            same_bytes(pread(p, n, off), all_[off:off + n],
                       "%s [%d,+%d)" % (os.path.basename(p), off, n))
        equal(pread(p, 10, len(all_)), b"", "read at the end")


def info(d, e):
    j = json.loads(read(os.path.join(d, "info.json")))
    equal(j.get("shape"), list(e.value.shape), "info.json shape")
    if e.kind == "number":
        check("dtype" in j, "info.json has no dtype: %s" % j)
        got = np.dtype(j["dtype"])
        equal(got.newbyteorder("="), e.value.dtype.newbyteorder("="),
              "info.json dtype")
    if e.chunks:
        check(list(e.chunks) in [v for v in walk_values(j)],
              "info.json does not have the chunk shape %s: %s" % (
                  list(e.chunks), j))


def walk_values(x):
    yield x
    for v in x.values() if isinstance(x, dict) else \
            x if isinstance(x, list) else ():
        yield from walk_values(v)


def blocks(d, a, e, sparse):
    b = os.path.join(d, "blocks")
    if not os.path.isdir(b):
        check(not e.chunks or not a.size, "no blocks/ for a chunked data set")
        return
    names = sorted(os.listdir(b))
    seen = np.zeros(a.shape, "u1")
    for n in names:
        box = block_box(n, a.shape, e.chunks)
        same_bytes(read(os.path.join(b, n)), npy(a[box]), "block " + n)
        seen[box] += 1
    if a.size:
        check(seen.max() <= 1, "blocks overlap: %s" % names[:5])
    if e.chunks and a.size and not sparse:
        check(seen.min() == 1, "blocks do not cover the tensor: %s" %
              names[:5])
    equal(names, sorted(names, key=lambda n: [
        int(x) for x in re.findall(r"\d+", n)]), "order of block names")


def samples(d, a):
    if a.ndim == 0:
        return
    s = os.path.join(d, "samples")
    if a.shape[0] == 0 and not os.path.isdir(s):
        return
    n = a.shape[0]
    equal(sorted(os.listdir(s)), [number_name(i, n, ".npy") for i in range(n)],
          "names of samples")
    for i in pick(n, 100):
        name = number_name(i, n, ".npy")
        same_bytes(read(os.path.join(s, name)), npy(a[i]), "sample " + name)


def numeric(m, name, e):
    d = m / name
    a = ordered(e.value, "<")
    info(d, e)
    whole(d, a)
    blocks(d, a, e, name.startswith("sparse/"))
    samples(d, a)


def text_of(values):
    """One value a line."""
    return "".join(v + "\n" for v in np.asarray(values, object).ravel())


def strings(m, name, e):
    d = m / name
    info(d, e)
    p = os.path.join(d, "array.txt")
    same_bytes(read(p), text_of(e.value).encode(), "array.txt")
    equal(os.stat(p).st_size, len(text_of(e.value).encode()), "its st_size")
    if e.value.ndim == 0:
        return
    n = e.value.shape[0]
    equal(sorted(os.listdir(os.path.join(d, "samples"))),
          [number_name(i, n, ".txt") for i in range(n)], "names of samples")
    for i in range(n):
        s = os.path.join(d, "samples", number_name(i, n, ".txt"))
        got, want = read(s), text_of(e.value[i]).encode()
        if got != want[:-1]:  # a last newline or none: both are text
            same_bytes(got, want, "sample %d" % i)


def unsupported(m, name, e):
    d = m / name
    check(os.path.isdir(d), "not in the tree")
    j = json.loads(read(os.path.join(d, "info.json")))
    if e.kind == "empty":
        return
    words = [str(v) for v in flatten(j).values() if isinstance(v, str)]
    check(any(re.search(r"support|cannot|can't|not |unknown|" + e.why, w)
              for w in words), "info.json does not say why: %s" % j)
    for top, _, files in os.walk(d):
        for f in files:
            if f != "info.json":
                fails_with((95, 5), lambda: read(os.path.join(top, f)),
                           "read of %s/%s" % (name, f))
    p = tensorfs("cat", "%s:%s/array.npy" % (m.src[0], name), text=False)
    check(p.returncode != 0, "cat of its array.npy exits 0")
    equal(p.stdout, b"", "what cat of its array.npy prints")


def source_order(src, z):
    with Mount(src, opts=["-o", "dtype-order=source"]) as m:
        for name, e in z.items():
            if name.startswith("types") or name == "sparse/be":
                whole(m / name, e.value)
                samples(m / name, e.value)


def two_axes(src, z):
    with Mount(src, opts=["-o", "sample-axes=2"]) as m:
        for name, e in z.items():
            if e.kind != "number" or e.value.ndim < 2 or not e.value.size:
                continue
            a = ordered(e.value, "<")
            top = m / (name + "/samples")
            rows = sorted(os.listdir(top))
            equal([int(r) for r in rows], list(range(a.shape[0])),
                  "%s: directories of the first axis" % name)
            check(len({len(r) for r in rows}) == 1, "%s: widths differ: %s" % (
                name, rows[:3]))
            for r in pick(len(rows), 20):
                d = os.path.join(top, rows[r])
                cols = sorted(os.listdir(d))
                equal([int(c[:-4]) for c in cols if c.endswith(".npy")],
                      list(range(a.shape[1])), "%s: samples of row %d" % (
                          name, r))
                for c in pick(len(cols), 5):
                    same_bytes(read(os.path.join(d, cols[c])), npy(a[r, c]),
                               "%s: sample %d,%d" % (name, r, c))
            same_bytes(read(m / (name + "/array.npy")), npy(a),
                       name + ": array.npy")


def by_cat(m, src, z):
    """`tensorfs cat` gives what the mount gives.  It opens the whole file for each
    name, so the standard tier asks for one data set in eight."""
    for name, e in list(z.items())[::1 if lib.full() else 8]:
        if e.kind not in ("number", "string"):
            continue
        all_files = []
        for top, _, files in os.walk(m / name):
            all_files += [os.path.relpath(os.path.join(top, f), m.path)
                          for f in files]
        one = [os.path.join(name, "info.json"),
               os.path.join(name, "array.npy" if e.kind == "number" else
                            "array.txt")]
        for rel in one + rng.sample(all_files, min(2, len(all_files))):
            p = exits(tensorfs("cat", "%s:%s" % (src, rel), text=False), 0,
                      "cat " + rel)
            same_bytes(p.stdout, read(m / rel), "cat " + rel)


def by_library(src, z):
    """Without our file driver: the same bytes, through the library's lock."""
    os.environ["TENSORFS_HDF5_DRIVER"] = "off"
    try:
        with lib.Mount(src) as m:
            for name, e in z.items():
                if e.kind != "number":
                    continue
                same_bytes(read(m / (name + "/array.npy")),
                           npy(ordered(e.value, "<")), name + ": array.npy")
    finally:
        del os.environ["TENSORFS_HDF5_DRIVER"]


def values_by_library(work):
    """The same for what has no fixed length: strings, sequences, attributes."""
    src = os.path.join(work, "values.h5")
    text = ["", "a", "b\u00e9", "c" * 300] * 3
    with h5py.File(src, "w") as f:
        for name, how in (("plain", {}), ("chunks", {"chunks": (5,)}),
                          ("gzip", {"chunks": (5,), "compression": 4})):
            f.create_dataset("text_" + name, data=np.array(text, object),
                             dtype=h5py.string_dtype(), **how)
            d = f.create_dataset("rows_" + name, (12,),
                                 dtype=h5py.vlen_dtype("<i4"), **how)
            for i in range(11):
                d[i] = np.arange(i, dtype="<i4")
        f.create_dataset("rows_none", (12,), chunks=(5,),
                         dtype=h5py.vlen_dtype("<i4"))
        f.attrs["words"] = np.array(text, object)
    os.environ["TENSORFS_HDF5_DRIVER"] = "off"
    try:
        with lib.Mount(src) as m:
            for name in ("plain", "chunks", "gzip"):
                same_bytes(read(m / ("text_%s/array.txt" % name)),
                           "".join(t + "\n" for t in text).encode(), name)
            for name in ("plain", "chunks", "gzip", "none"):
                for i in range(12):
                    n = 0 if name == "none" or i == 11 else i
                    same_bytes(
                        read(m / ("rows_%s/samples/%06d.npy" % (name, i))),
                        npy(np.arange(n, dtype="<i4")), "%s %d" % (name, i))
            got = json.loads(os.getxattr(m.path, "user.tensorfs.attrs"))
            equal(got, {"words": text}, "attributes")
        exits(tensorfs("verify", src), 0, "verify")
    finally:
        del os.environ["TENSORFS_HDF5_DRIVER"]


def ls_names(text, what):
    """Names that a recursive listing shows: ("paths" or "names", sorted)."""
    lines = [l for l in text.split("\n") if l.strip()]
    if any(l.endswith(":") for l in lines):  # as GNU ls: DIR: then names
        return "names", sorted(l.rstrip("/") for l in lines
                               if not l.endswith(":"))
    return "paths", sorted(l.lstrip("./").rstrip("/") for l in lines
                           if l.strip("./"))


def by_ls(m, src):
    p = exits(tensorfs("ls", "-R", src), 0, "ls -R")
    kind, got = ls_names(p.stdout, "ls -R")
    want = []
    for top, dirs, files in os.walk(m.path):
        for n in dirs + files:
            rel = os.path.relpath(os.path.join(top, n), m.path)
            want.append(rel if kind == "paths" else n)
    want.sort()
    if got != want:
        raise Failure("ls -R: %d names, the mount has %d; only in ls: %s; "
                      "only in the mount: %s" % (
                          len(got), len(want),
                          sorted(set(got) - set(want))[:5],
                          sorted(set(want) - set(got))[:5]))
    for e in ("pipes/gzip", "pipes/gzip/samples", ""):
        one = exits(tensorfs("ls", src + (":" + e if e else "")), 0, "ls " + e)
        equal(sorted(l.rstrip("/") for l in one.stdout.split("\n") if l),
              sorted(os.listdir(m / e)), "ls %s" % e)


def top(m, z):
    equal(sorted(os.listdir(m.path)),
          sorted({n.split("/")[0] for n in z} | {"empty_group"}),
          "names in the root")
    equal(os.listdir(m / "empty_group"), [], "empty group")
    j = json.loads(read(m / "pipes/gzip/info.json"))
    check("counts" in flatten(j).values(), "info.json lacks the attribute "
          "units=counts: %s" % j)


def verify(work, src, libver):
    """Unsupported data sets may count as not done; everything else is good."""
    exits(tensorfs("verify", src), (0, 1), "verify of the whole zoo")
    good = os.path.join(work, "good-%s.h5" % libver)
    zoo.write(good, libver, unsupported=False)
    exits(tensorfs("verify", good), 0, "verify of the supported part")


def everything(m, src, libver, z):
    for name, e in z.items():
        f = {"number": numeric, "string": strings}.get(e.kind, unsupported)
        run_case("%s:%s" % (libver, name), f, m, name, e)
    run_case(libver + ":tree", top, m, z)
    run_case(libver + ":cat", by_cat, m, src, z)
    run_case(libver + ":ls", by_ls, m, src)


def main():
    work = lib.setup()
    for libver in ("earliest", "latest"):
        src = os.path.join(work, "zoo-%s.h5" % libver)
        z = zoo.write(src, libver)
        zoo.verify(src, z)
        if not any(n.startswith("codec/zstd") for n in z):
            lib.absent(libver + ":zstd", "libzstd")
        if not any(n.startswith("codec/lz4") for n in z):
            lib.absent(libver + ":lz4", "liblz4")
        lib.with_mount(libver + ":mount", lambda m: everything(
            m, src, libver, z), src)
        run_case(libver + ":verify", verify, work, src, libver)
        run_case(libver + ":dtype-order=source", source_order, src, z)
        run_case(libver + ":sample-axes=2", two_axes, src, z)
        run_case(libver + ":by-library", by_library, src, z)
    run_case("values:by-library", values_by_library, work)
    lib.main()


if __name__ == "__main__":
    main()
