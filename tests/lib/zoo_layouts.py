# SPDX-License-Identifier: BSD-2-Clause
"""Where HDF5 keeps the elements: every layout, chunk index and fill value."""
import os
import subprocess

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

from checks import check, equal, pread, read, same_bytes
from expect import Want, ZooFile, npy
from zoo import numbers

EARLY, LATE, INCR = (h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE,
                     h5d.ALLOC_TIME_INCR)
ALLOC = {"early": EARLY, "late": LATE, "incr": INCR}
FILL = {"never": h5d.FILL_TIME_NEVER, "alloc": h5d.FILL_TIME_ALLOC,
        "ifset": h5d.FILL_TIME_IFSET}


def mkzoo(where):
    """The C program that writes what h5py cannot; False if it is not built."""
    prog = os.environ.get("MKZOO") or os.path.join(
        os.environ.get("builddir", os.path.dirname(os.path.abspath(
            os.environ.get("TENSORFS", "./tensorfs")))), "tests/lib/mkzoo")
    if not os.access(prog, os.X_OK):
        return False
    p = subprocess.run([prog, where], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    check(p.returncode == 0, "mkzoo: " + p.stdout.decode())
    return True


def without_mkzoo(name):
    def run(_m, _zf):
        check(False, "mkzoo is not built (set $MKZOO)")
    return ZooFile(name, None, {"mkzoo": Want("custom", run=run)})


def low(f, name, dtype, shape, chunks=None, maxshape=None, alloc=None,
        fill=None, fill_time=None, layout=None, deflate=False):
    """A dataset by the low-level calls."""
    p = h5p.create(h5p.DATASET_CREATE)
    if chunks:
        p.set_chunk(chunks)
    if layout is not None:
        p.set_layout(layout)
    if deflate:
        p.set_deflate(4)
    if alloc is not None:
        p.set_alloc_time(alloc)
    if fill_time is not None:
        p.set_fill_time(fill_time)
    if fill is not None:
        p.set_fill_value(np.asarray(fill, dtype))
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    t = h5t.py_create(np.dtype(dtype), logical=True)
    s = h5s.create_simple(shape, maxshape or shape)
    return h5py.Dataset(h5d.create(f.id, name.encode(), t, s, p, lcpl))


def indexes(f, z):
    """Every chunk index; `latest` has all, `earliest` B-trees only."""
    v, c = numbers((13, 11), "<i4", 8), (4, 3)
    for name, maxshape in (("fixed_array", None), ("extensible", (None, 11)),
                           ("extensible_last", (13, None)),
                           ("extensible_wide", (40, None)),
                           ("btree2", (None, None)), ("max_larger", (30, 20))):
        for tag, kw in (("", {}), ("_gz", dict(compression="gzip"))):
            n = "index/" + name + tag
            f.create_dataset(n, data=v, chunks=c, maxshape=maxshape, **kw)
            z[n] = Want(value=v, chunks=c)
    for name, chunks, alloc, gz in (
            ("implicit", c, EARLY, False), ("single", v.shape, None, False),
            ("single_gz", v.shape, None, True),
            ("implicit_uneven", (5, 11), EARLY, False)):
        low(f, "index/" + name, v.dtype, v.shape, chunks, alloc=alloc,
            deflate=gz)[...] = v
        z["index/" + name] = Want(value=v, chunks=chunks)
    w = numbers((4, 5, 6), "<i2", 9)
    f.create_dataset("index/extensible_middle", data=w, chunks=(2, 2, 4),
                     maxshape=(4, None, 6), compression="gzip")
    z["index/extensible_middle"] = Want(value=w, chunks=(2, 2, 4))
    for name, n, maxshape in (("fixed_paged", 5000, None),
                              ("extensible_long", 3000, (None,)),
                              ("fixed_1024", 2048, None)):
        p = numbers((n,), "<i4", 10)
        f.create_dataset("index/" + name, data=p, chunks=(2,),
                         maxshape=maxshape)
        z["index/" + name] = Want(value=p, chunks=(2,))
    holes = np.zeros((6000,), "<i2")  # whole pages of the index are missing
    d = low(f, "index/paged_holes", "<i2", holes.shape, (2,), deflate=True)
    for b in (0, 2500, 5996):
        d[b:b + 4] = holes[b:b + 4] = [7, -1, b, 9]
    z["index/paged_holes"] = Want(value=holes, chunks=(2,), sparse=True)


def plain(f, z):
    def put(name, v, want=None, **kw):
        d = f.create_dataset(name, data=v, **kw)
        z[name] = want or Want(value=v, chunks=d.chunks)

    v = numbers((6, 7), "<i4")
    put("contiguous", v)
    low(f, "compact", v.dtype, v.shape, layout=h5d.COMPACT)[...] = v
    z["compact"] = Want(value=v)
    one = numbers((), "<f8")
    low(f, "compact_scalar", "<f8", (), layout=h5d.COMPACT)[...] = one
    z["compact_scalar"] = Want(value=one)
    big = numbers((8000,), "<f8", 4)
    low(f, "compact_64000", "<f8", (8000,), layout=h5d.COMPACT)[...] = big
    z["compact_64000"] = Want(value=big)
    put("scalar", numbers((), "<u2"))
    for i, shape in enumerate([(0,), (0, 3), (3, 0), (0, 0, 2), (2, 0, 2)]):
        put("zero/z%d" % i, np.zeros(shape, "<f4"))
        put("zero/chunked%d" % i, np.zeros(shape, "<f4"),
            chunks=(1,) * len(shape), maxshape=(None,) * len(shape))
    put("null", h5py.Empty("f4"), Want("hidden", words=["null"]))
    put("null_string", h5py.Empty(h5py.string_dtype()),
        Want("hidden", words=["null"]))
    s10 = (2, 3, 1, 2, 2, 3, 1, 2, 3, 2)
    s32 = (2,) * 4 + (1,) * 26 + (3, 2)
    put("rank/r10", numbers(s10, "<u2"))
    put("rank/r10_chunked", numbers(s10, "<f4"), compression="gzip",
        chunks=(1, 2, 1, 2, 1, 2, 1, 1, 2, 2))
    put("rank/r32", numbers(s32, "u1"))
    put("rank/r32_chunked", numbers(s32, "<i2"),
        chunks=(1, 2) + (1,) * 28 + (2, 2))
    put("edge/partial", numbers((23, 17, 5), "<f4"), chunks=(5, 6, 2))
    put("edge/chunk_larger", numbers((5, 3), "<f4"), chunks=(8, 4),
        maxshape=(None, None))
    put("edge/chunk_larger_gz", numbers((5, 3), "<f4"), chunks=(8, 4),
        maxshape=(None, None), compression="gzip")
    put("edge/chunk_larger_one", numbers((5, 3), "<f4"), chunks=(8, 2),
        maxshape=(None, 3))


def resized(f, z):
    v = numbers((12, 6), "<i4")
    for name, steps, fill in (("regrown", [(7, 6), (14, 6)], 77),
                              ("regrown_2d", [(7, 4), (14, 9)], -1),
                              ("to_zero", [(0, 0), (9, 5)], 5),
                              ("shrunk", [(3, 2)], None),
                              ("within_chunk", [(11, 6), (12, 6)], 3)):
        for gz in (None, "gzip"):
            d = f.create_dataset(
                "resized/%s%s" % (name, "_gz" if gz else ""), data=v,
                chunks=(5, 4), maxshape=(None, None), fillvalue=fill,
                compression=gz)
            w = v
            for s in steps:
                d.resize(s)
                n = np.full(s, fill or 0, "<i4")
                k = tuple(slice(0, min(a, b)) for a, b in zip(s, w.shape))
                n[k] = w[k]
                w = n
            z[d.name[1:]] = Want(value=w, chunks=(5, 4), sparse=True,
                                 fill=fill)


STRUCT = np.dtype([("a", "<i2"), ("b", "<f8"), ("c", "S3")])
FILLS = {"int": ("<i4", -7), "be_int": (">u2", 0x1234), "nan": ("<f4", np.nan),
         "minus_zero": ("<f8", -0.0), "complex": ("<c8", 1 + 2j),
         "bool": ("?", True), "byte": ("u1", 200),
         "struct": (STRUCT, np.array((-3, 2.5, b"xy"), STRUCT)),
         "default": ("<f8", None)}


def unfilled(name, layout, d):
    """Fill time NEVER, and no storage: h5py leaves the buffer as it was, with
    zeros; the fill value, which there is, is as good an answer."""
    if "never" not in name or "early" in name or "user" not in name:
        return []
    v = np.full(d.shape, 9, "<i4")
    if layout == "chunked":
        if "late" in name:
            return []
        v[3:6, 0:4] = 5
    return [v]


def fills(f, z):
    """Never written, partly written; with each kind of fill value and time."""
    for tag, (t, fill) in FILLS.items():
        blank = np.zeros((20, 9), t)
        if fill is not None:
            blank[...] = np.asarray(fill, t)
        part = blank.copy()
        some = np.array((5, -1.5, b"abc"), STRUCT) if tag == "struct" else \
            numbers((4, 3), t)
        part[7:11, 2:5] = some
        for lay, kw in (("contiguous", {}), ("chunked", dict(chunks=(6, 4))),
                        ("gz", dict(chunks=(6, 4), deflate=True))):
            n = "fill/%s/%s_" % (tag, lay)
            low(f, n + "never_written", t, blank.shape, fill=fill, **kw)
            z[n + "never_written"] = Want(value=blank, sparse=True, fill=fill,
                                          chunks=kw.get("chunks"))
            d = low(f, n + "part", t, blank.shape, fill=fill, **kw)
            d[7:11, 2:5] = part[7:11, 2:5]
            z[n + "part"] = Want(value=part, sparse=True, fill=fill,
                                 chunks=kw.get("chunks"))
    for when, time in FILL.items():
        for how, alloc in ALLOC.items():
            for lay, kw in (("contiguous", {}),
                            ("chunked", dict(chunks=(3, 4)))):
                if lay == "contiguous" and how == "incr":
                    continue
                for fill in (None, 9):
                    n = "fill_time/%s_%s_%s_%s" % (
                        when, how, lay, "default" if fill is None else "user")
                    d = low(f, n, "<i4", (7, 8), fill=fill, fill_time=time,
                            alloc=alloc, **kw)
                    if lay == "chunked":
                        d[3:6, 0:4] = 5
                    z[n] = Want(chunks=kw.get("chunks"), sparse=True,
                                fill=fill, also=unfilled(n, lay, d))


def huge(f, z):
    """10^13 elements, two rows of which exist."""
    d = low(f, "huge", "u1", (10**7, 10**6), (1, 10**5), fill=3, deflate=True)
    row = numbers((10**6,), "u1", 4)
    for i in (0, 7654321):
        d[i] = row

    def run(m, _zf):
        top = m / "huge"
        equal(os.stat(top + "/array.npy").st_size, 128 + 10**13, "st_size")
        equal(os.stat(top + "/array.bin").st_size, 10**13, "st_size")
        for i, want in ((0, row), (7654321, row), (7654322, row * 0 + 3),
                        (9999999, row * 0 + 3)):
            same_bytes(read(top + "/samples/%07d.npy" % i), npy(want),
                       "sample %d" % i)
            same_bytes(pread(top + "/array.bin", 5000, i * 10**6 + 123456),
                       want[123456:128456].tobytes(), "window in row %d" % i)
        got = np.load(top + "/array.npy", mmap_mode="r")
        equal(int(got[7654321, 999999]), int(row[999999]), "last of a row")
    z["huge"] = Want("custom", run=run)


def external(top, z):
    """Elements in raw files beside the HDF5 file, and missing ones."""
    v = numbers((6, 5), "<i4", 12)
    raw = v.tobytes()
    os.mkdir(os.path.join(top, "raw"))

    def save(name, data):
        with open(os.path.join(top, name), "wb") as g:
            g.write(data)
    save("one.raw", raw)
    save("all.raw", b"header--" + raw)
    save("raw/sub.raw", raw)
    save("a.raw", b"x" * 100 + raw[:40] + b"y" * 9)
    save("b.raw", raw[40:88])
    save("c.raw", b"z" * 7 + raw[88:])
    save("short.raw", raw[:70])
    save("be.raw", v.astype(">i4").tobytes())
    gone = np.zeros(v.shape, bool)
    gone.reshape(-1)[10:22] = True
    cut = np.zeros(v.shape, bool)
    cut.reshape(-1)[17:] = True
    every = np.ones(v.shape, bool)
    short = dict(codes=(5, 116, 61), lenient=True)
    table = {
        "one": ([("one.raw", 0, 120)], "<i4", Want(value=v)),
        "offset": ([("all.raw", 8, 120)], "<i4", Want(value=v)),
        "unlimited": ([("all.raw", 8, h5f.UNLIMITED)], "<i4", Want(value=v)),
        "subdirectory": ([("raw/sub.raw", 0, 120)], "<i4", Want(value=v)),
        "absolute": ([(os.path.join(top, "one.raw"), 0, 120)], "<i4",
                     Want(value=v, readable=False)),
        "segments": ([("a.raw", 100, 40), ("b.raw", 0, 48),
                      ("c.raw", 7, 32)], "<i4", Want(value=v)),
        "segments_larger": ([("a.raw", 100, 40), ("b.raw", 0, 48),
                             ("c.raw", 7, 500)], "<i4", Want(value=v)),
        "big_endian": ([("be.raw", 0, 120)], ">i4",
                       Want(value=v.astype(">i4"))),
        "missing": ([("nowhere.raw", 0, 120)], "<i4", Want(
            value=v, bad=every, codes=61, words="nowhere.raw",
            readable=False)),
        "missing_segment": ([("a.raw", 100, 40), ("gone.raw", 0, 48),
                             ("c.raw", 7, 32)], "<i4", Want(
            value=v, bad=gone, codes=61, words="gone.raw", readable=False)),
        "short": ([("short.raw", 0, 120)], "<i4", Want(
            value=v, bad=cut, words="short.raw", readable=False, **short)),
        "decoy": ([("decoy.raw", 0, 120)], "<i4", Want(
            value=v, bad=every, codes=61, readable=False)),
    }
    with open("decoy.raw", "wb") as g:  # in the working directory: not it
        g.write(raw)
    with h5py.File(os.path.join(top, "external.h5"), "w") as f:
        for name, (ext, t, want) in table.items():
            f.create_dataset(name, v.shape, t, external=ext)
            z[name] = want


def userblock(path, size):
    z = {}
    v = numbers((9, 8), "<i4", size)
    with h5py.File(path, "w", userblock_size=size) as f:
        f["contiguous"] = v
        f.create_dataset("chunked", data=v, chunks=(4, 3))
        f.create_dataset("gz", data=v, chunks=(4, 3), compression="gzip")
        low(f, "compact", v.dtype, v.shape, layout=h5d.COMPACT)[...] = v
        f.create_dataset("unwritten", v.shape, v.dtype, fillvalue=-3)
    z["unwritten"] = Want(value=np.full_like(v, -3))
    for n, c in (("contiguous", None), ("chunked", (4, 3)), ("gz", (4, 3)),
                 ("compact", None)):
        z[n] = Want(value=v, chunks=c)
    with open(path, "r+b") as f:
        f.write(b"#!/bin/false\n" + b"u" * (size - 13))
    return ZooFile("userblock%d" % size, path, z)


def everything(path, libver):
    z = {}
    with h5py.File(path, "w", libver=libver) as f:
        plain(f, z)
        indexes(f, z)
        if libver[0] == "v108":
            return z
        resized(f, z)
        fills(f, z)
    return z


def superblock(path):
    with h5py.File(path, "r") as f:
        return f.id.get_create_plist().get_version()[0]


def from_c(top):
    """What mkzoo wrote; the values are those of its headline comment."""
    if not mkzoo(top):
        return [without_mkzoo("c")]
    a = np.arange(13 * 11, dtype="<i4").reshape(13, 11) * 7 - 300
    z = {"edge_unfiltered/" + n: Want(value=a, chunks=(4, 3))
         for n in ("fixed", "extensible", "btree2")}
    z["edge_unfiltered/shuffle_gz"] = Want(value=a, chunks=(4, 3))
    undef = np.zeros((7, 8), "<i4")
    part = undef.copy()
    part[0:3, 0:4] = 5
    # Nobody says what these are; the library refuses.  Zeros or an error.
    none = dict(readable=False, codes=(5, 61, 95), lenient=True)
    z["fill_undefined/contiguous"] = Want(value=undef, **none)
    z["fill_undefined/chunked"] = Want(value=undef, chunks=(3, 4),
                                       sparse=True, **none)
    z["fill_undefined/part"] = Want(value=part, chunks=(3, 4), sparse=True)
    one = {"x": Want(value=a), "gz": Want(value=a, chunks=(4, 3))}
    return [ZooFile("c", os.path.join(top, "layouts-c.h5"), z),
            ZooFile("superblock1", os.path.join(top, "superblock1.h5"), one)]


def make(top):
    out = []
    for libver, version in (("earliest", 0), ("v108", 2), ("latest", 3)):
        path = os.path.join(top, libver + ".h5")
        z = everything(path, (libver, libver) if libver == "v108" else libver)
        check(superblock(path) == version, "%s: superblock %d" % (
            libver, superblock(path)))
        out.append(ZooFile(libver, path, z))
    for size in (512, 1024, 4096):
        out.append(userblock(os.path.join(top, "ub%d.h5" % size), size))
    z = {}
    external(top, z)
    out.append(ZooFile("external", os.path.join(top, "external.h5"), z))
    z = {}
    with h5py.File(os.path.join(top, "huge.h5"), "w") as f:
        huge(f, z)
    out.append(ZooFile("huge", os.path.join(top, "huge.h5"), z))
    return out + from_c(top)
