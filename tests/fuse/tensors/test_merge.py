#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""merge: the file has what h5py read through the virtual one before."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import check, equal
from lib import case, exits, limit_files, run, tensorfs
from mergelib import beside, chunks, merge, mosaic, same, truth

work = None
SLOW = bool(os.environ.get("TENSORFS_SANITIZED"))


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d)
    return d


def names(d):
    return sorted(os.listdir(d))


def merged(main, *argv, out=None, want=None):
    """To another file: it is the same, and nothing else has changed."""
    want = want or truth(main)
    before = names(os.path.dirname(main))
    out = out or os.path.join(work, "out.h5")
    exits(merge(main, "-o", out, "--force", *argv), 0, "merge " + main)
    same(want, out)
    equal(names(os.path.dirname(main)), before, "files of the source")
    equal(beside(out), [], "left behind")
    return out


def summary(p):
    return json.loads(p.stdout)


# --- tensors of skerch ----------------------------------------------------------

@case
def skerch_lzf():
    t = skerch.create(scratch("lzf"), rows=403, part=10, sub=(32,),
                      incompressible=7, unwritten=(3, 8))
    out = merged(t.all_path)
    stored = chunks(out)
    for i, (b, e, path) in enumerate(t.parts):
        if i in (3, 8):
            check((b, 0) not in stored, "a chunk that was never written")
        elif e - b == 10:
            equal(stored[b, 0], chunks(path)[0, 0], "stored chunk %d" % b)
    with h5py.File(out) as f:
        equal(f["data"].chunks, (10, 32), "chunks")
        equal(f["data"].compression, "lzf", "filter")
        equal(f["data"].maxshape, (403, 32), "maxshape")
        equal(f["flags"].chunks, (10,), "chunks of flags")
        equal(f["flags"].compression, "lzf", "filter of flags")
    exits(run("h5dump", "-p", "-H", out), 0, "h5dump")
    exits(run("h5stat", out), 0, "h5stat")


def layout(path):
    p = exits(run("h5dump", "-p", "-H", path), 0, "h5dump")
    return [l for l in p.stdout.splitlines()[1:] if "SIZE" not in l]


@case
def as_skerch_merges():
    """The same as what its own way of merging writes with h5py, but for sizes."""
    t = skerch.create(scratch("own"), rows=60, part=20, sub=(8, 3))
    out = merged(t.all_path)
    other = os.path.join(work, "own.h5")
    with h5py.File(t.all_path) as f, h5py.File(other, "w") as g:
        d = g.create_dataset("data", (0, 8, 3), "<f4", maxshape=(60, 8, 3),
                             chunks=(20, 8, 3), compression="lzf")
        s = g.create_dataset("flags", (0,), h5py.string_dtype(),
                             maxshape=(60,), chunks=(20,), compression="lzf")
        for b in range(0, 60, 20):
            d.resize(b + 20, 0)
            s.resize(b + 20, 0)
            d[b:] = f["data"][b:b + 20]
            s[b:] = f["flags"][b:b + 20]
    for a, b in zip(layout(out), layout(other)):
        equal(a.strip(), b.strip(), "line of h5dump -p")
    equal(chunks(out), chunks(other), "stored chunks")


@case
def skerch_gzip_none_types():
    for comp, dtype in (("gzip", "<c16"), (None, ">f8"), ("lzf", "|i1"),
                        ("gzip", "?")):
        name = "t%s%s" % (comp, dtype.strip("<>|?"))
        t = skerch.create(scratch(name), rows=25, part=10, sub=(3, 4),
                          dtype=dtype, compression=comp)
        out = merged(t.all_path)
        with h5py.File(out) as f:
            equal(f["data"].compression, comp, "filter")


@case
def in_place():
    d = scratch("inplace")
    t = skerch.create(d, rows=45, part=10, sub=(5,))
    want = truth(t.all_path)
    os.chmod(t.all_path, 0o640)
    p = exits(tensorfs("merge", "--json", t.all_path), 0, "merge")
    equal(summary(p)["parts"], 5, "parts")
    equal(summary(p)["chunks_copied"], 4, "copied")
    equal(summary(p)["chunks_encoded"], 1, "encoded")
    same(want, t.all_path)
    equal(os.stat(t.all_path).st_mode & 0o777, 0o640, "mode")
    equal(len(names(d)), 6, "files")
    p = exits(tensorfs("merge", "--json", t.all_path), 0, "again")
    check(summary(p)["nothing_to_do"], p.stdout)


@case
def in_place_by_a_link():
    d = scratch("bylink")
    t = skerch.create(d, rows=20, part=10, sub=(5,))
    want = truth(t.all_path)
    link = os.path.join(work, "bylink.h5")
    os.symlink(t.all_path, link)
    exits(merge(link, "-o", t.all_path), 0, "merge")
    check(os.path.islink(link), "the link was replaced")
    same(want, t.all_path)


@case
def delete_parts():
    d = scratch("delete")
    t = skerch.create(d, rows=45, part=10, sub=(5,), unwritten=(1,))
    want = truth(t.all_path)
    p = exits(tensorfs("merge", "--json", "--delete-parts", t.all_path), 0,
              "merge")
    equal(summary(p)["deleted"], 5, "deleted")
    same(want, t.all_path)
    equal(names(d), ["t_ALL.h5"], "files")


@case
def delete_parts_elsewhere():
    d = scratch("delete2")
    t = skerch.create(d, rows=45, part=10, sub=(5,))
    want = truth(t.all_path)
    out = os.path.join(d, "o.h5")
    exits(merge("--delete-parts", t.all_path, "-o", out), 0, "merge")
    same(want, out)
    equal(names(d), ["o.h5", "t_ALL.h5"], "files")


@case
def check_flag():
    d = scratch("flags")
    flags = ["OK"] * 50
    flags[10:20] = ["initialized"] * 10
    flags[33] = "error: \u00fc"
    t = skerch.create(d, rows=50, part=10, sub=(5,), flags=flags)
    before = names(d), truth(t.all_path)
    p = exits(merge("--check-flag=OK", "--delete-parts", t.all_path), 1,
              "bad flags")
    check("rows 10-19 are 'initialized', row 33 is 'error: \u00fc'" in p.stderr,
          p.stderr)
    check("11 of 50 rows" in p.stderr, p.stderr)
    equal(names(d), before[0], "files")
    with h5py.File(t.all_path) as f:
        check(f["data"].is_virtual and f["flags"].is_virtual, "touched")
    exits(merge(t.all_path), 0, "not asked for")
    same(before[1], t.all_path)
    p = exits(merge("--check-flag=OK", t.all_path, "-o", d + "/x.h5"), 1,
              "flags of a plain file")
    t = skerch.create(scratch("flags2"), rows=50, part=10, sub=(5,))
    exits(merge("--check-flag=OK", t.all_path), 0, "good flags")
    with h5py.File(d + "/plain.h5", "w") as f:
        f["x"] = [1]
    p = exits(merge("--check-flag=OK", d + "/plain.h5", "-o", d + "/x.h5"), 1,
              "no flags")
    check("no dataset 'flags'" in p.stderr, p.stderr)


# --- layouts --------------------------------------------------------------------

@case
def many_chunks_in_a_part():
    main = mosaic(scratch("many"), (96, 40), [np.s_[i:i + 24] for i in
                                              range(0, 96, 24)],
                  chunks=(4, 10), compression="gzip", shuffle=True,
                  fletcher32=True)
    out = merged(main)
    stored = chunks(out, "g/data")
    equal(len(stored), 96, "chunks")
    for i in range(4):
        for (r, c), x in chunks(os.path.dirname(main) + "/p%d.h5" % i,
                                "x").items():
            equal(stored[r + 24 * i, c], x, "chunk %d, %d, %d" % (i, r, c))


@case
def tiles_in_two_dimensions():
    main = mosaic(scratch("tiles"), (40, 60),
                  [np.s_[r:r + 20, c:c + 20] for r in (0, 20)
                   for c in (0, 20, 40)], chunks=(10, 5), compression="lzf")
    p = exits(tensorfs("merge", "--json", main, "-o", work + "/tiles.h5"), 0,
              "merge")
    equal(summary(p)["chunks_copied"], 48, "copied")
    same(truth(main), work + "/tiles.h5")


@case
def not_aligned():
    """Parts of 25 rows in chunks of 10: most have to be made anew."""
    main = mosaic(scratch("odd"), (100, 7), [np.s_[i:i + 25] for i in
                                             range(0, 100, 25)],
                  chunks=(10, 3), compression="gzip")
    p = exits(tensorfs("merge", "--json", main, "-o", work + "/odd.h5"), 0,
              "merge")
    x = summary(p)
    equal(x["chunks_copied"] + x["chunks_encoded"], 30, "chunks")
    check(x["chunks_copied"] >= 6, x)
    same(truth(main), work + "/odd.h5")


@case
def gaps_and_fill():
    main = mosaic(scratch("gaps"), (90, 8), [np.s_[0:10], np.s_[25:30],
                                             np.s_[60:80, 2:5]], fill=-7,
                  chunks=(5, 3))
    out = merged(main)
    with h5py.File(out) as f:
        equal(f["g/data"].fillvalue, -7, "fill value")
    check(len(chunks(out, "g/data")) < 45, "chunks of nothing but fill")


@case
def other_fill_in_a_part():
    """What a part never wrote is its fill value, not the main file's."""
    d = scratch("fill")
    v = h5py.VirtualLayout((30, 4), "<i2")
    for i in range(3):
        with h5py.File(d + "/%d.h5" % i, "w") as f:
            x = f.create_dataset("x", (10, 4), "<i2", chunks=(5, 4),
                                 fillvalue=i)
            x[:5] = 9
        v[10 * i:10 * i + 10] = h5py.VirtualSource("%d.h5" % i, "x", (10, 4))
    with h5py.File(d + "/m.h5", "w") as f:
        f.create_virtual_dataset("data", v, fillvalue=1)
    out = merged(d + "/m.h5")
    equal(len(chunks(out)), 5, "chunks")


@case
def strides_and_overlap():
    d = scratch("strides")
    with h5py.File(d + "/p.h5", "w") as f:
        f["x"] = np.arange(100, dtype="<f8").reshape(10, 10)
        f["y"] = -np.ones((4, 4))
    v = h5py.VirtualLayout((20, 10), "<f8")
    s = h5py.VirtualSource(d + "/p.h5", "x", (10, 10))
    v[0:20:2] = s
    v[1:20:2] = s[0:10]
    v[3:7, 2:6] = h5py.VirtualSource(d + "/p.h5", "y", (4, 4))
    with h5py.File(d + "/m.h5", "w") as f:
        f.create_virtual_dataset("data", v)
    want = truth(d + "/m.h5")
    merged(d + "/m.h5")
    exits(merge(d + "/m.h5", "--delete-parts"), 0, "merge")
    same(want, d + "/m.h5")
    equal(names(d), ["m.h5"], "files")


@case
def nested():
    d = scratch("nested")
    t = skerch.create(d, rows=40, part=10, sub=(6,))
    v = h5py.VirtualLayout((80, 6), "<f4")
    s = h5py.VirtualSource("t_ALL.h5", "data", (40, 6))
    v[:40] = s
    v[40:] = s
    w = h5py.VirtualLayout((40,), h5py.string_dtype())
    w[:] = h5py.VirtualSource("t_ALL.h5", "flags", (40,),
                              h5py.string_dtype())
    main = d + "/outer.h5"
    with h5py.File(main, "w") as f:
        f.create_virtual_dataset("data", v)
        f.create_virtual_dataset("words", w)
    want = truth(main)
    merged(main)
    exits(merge(main, "--delete-parts"), 0, "merge")
    same(want, main)
    equal(names(d), ["outer.h5"], "files")


@case
def printf_names():
    d = scratch("printf")
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    unlimited = h5py.h5s.UNLIMITED
    for i in range(4):
        with h5py.File(d + "/b%d.h5" % i, "w") as f:
            f["x"] = np.arange(6).reshape(2, 3) + 10 * i
    v = h5py.h5s.create_simple((8, 3), (unlimited, 3))
    v.select_hyperslab((0, 0), (unlimited, 1), (2, 1), (2, 3))
    dcpl.set_virtual(v, b"b%b.h5", b"x", h5py.h5s.create_simple((2, 3)))
    with h5py.File(d + "/m.h5", "w", libver="latest") as f:
        h5py.h5d.create(f.id, b"data", h5py.h5t.NATIVE_INT64,
                        h5py.h5s.create_simple((8, 3), (unlimited, 3)), dcpl)
    merged(d + "/m.h5")


@case
def edges():
    """Nothing, one element, no axis, more than the parts have."""
    d = scratch("edges")
    for name, shape in (("none", (0, 4)), ("one", (1,)), ("deep", (1,) * 6)):
        with h5py.File(d + "/%s.p.h5" % name, "w") as f:
            f["x"] = np.ones(shape)
        v = h5py.VirtualLayout(shape, "<f8")
        if 0 not in shape:
            v[...] = h5py.VirtualSource(name + ".p.h5", "x", shape)
        with h5py.File(d + "/%s.h5" % name, "w") as f:
            f.create_virtual_dataset("data", v)
        merged(d + "/%s.h5" % name)


@case
def sparse():
    """Nearly nothing of a very large array."""
    d = scratch("sparse")
    with h5py.File(d + "/p.h5", "w") as f:
        f.create_dataset("x", data=np.arange(100, dtype="<u2").reshape(10, 10),
                         chunks=(5, 5), compression="gzip")
    shape = (10 ** 6, 5000)
    v = h5py.VirtualLayout(shape, "<u2")
    v[777770:777780, 4000:4010] = h5py.VirtualSource("p.h5", "x", (10, 10))
    with h5py.File(d + "/m.h5", "w") as f:
        f.create_virtual_dataset("data", v, fillvalue=3)
    p = exits(merge(d + "/m.h5", "-o", work + "/sparse.h5", "--chunk=1,1"), 2,
              "more chunks than there may be")
    check("--chunk" in p.stderr, p.stderr)
    exits(merge(d + "/m.h5", "-o", work + "/sparse.h5", "--chunk=10,1000",
                "--delete-parts"), 0, "merge")
    with h5py.File(work + "/sparse.h5") as f:
        x = f["data"]
        equal(x.shape, shape, "shape")
        equal(x.id.get_num_chunks(), 1, "chunks")
        equal(x[777770:777780, 4000:4010].ravel().tolist(), list(range(100)),
              "values")
        equal(x[0, 0], 3, "fill")


@case
def parts_with_two_names():
    """Each name has rows of its own: the file goes when both are done."""
    for link in (os.symlink, os.link):
        d = scratch("names-" + link.__name__)
        with h5py.File(d + "/a.h5", "w") as f:
            f.create_dataset("x", data=np.arange(40).reshape(20, 2),
                             chunks=(10, 2))
        link(d + "/a.h5", d + "/b.h5")
        v = h5py.VirtualLayout((40, 2), "<i8")
        for i, name in enumerate("abab"):
            v[10 * i:10 * i + 10] = h5py.VirtualSource(
                name + ".h5", "x", (20, 2))[10 * (i // 2):10 * (i // 2) + 10]
        with h5py.File(d + "/m.h5", "w") as f:
            f.create_virtual_dataset("data", v)
        want = truth(d + "/m.h5")
        env = dict(os.environ, TENSORFS_MERGE_COMMIT="1")
        exits(merge("--delete-parts", "--jobs=1", d + "/m.h5", env=env), 0,
              link.__name__)
        same(want, d + "/m.h5")
        equal(names(d), ["m.h5"], "files")


@case
def main_file_is_a_part():
    d = scratch("self")
    with h5py.File(d + "/m.h5", "w") as f:
        f["x"] = np.arange(30).reshape(10, 3)
        v = h5py.VirtualLayout((20, 3), "<i8")
        v[:10] = h5py.VirtualSource(".", "x", (10, 3))
        v[10:] = h5py.VirtualSource("m.h5", "x", (10, 3))
        f.create_virtual_dataset("data", v)
    want = truth(d + "/m.h5")
    exits(merge("--delete-parts", d + "/m.h5", "-o", d + "/o.h5"), 0, "merge")
    same(want, d + "/o.h5")
    equal(names(d), ["m.h5", "o.h5"], "files")
    exits(merge("--delete-parts", d + "/m.h5"), 0, "merge")
    same(want, d + "/m.h5")


# --- what the user wants otherwise ----------------------------------------------

@case
def other_chunks_and_filters():
    t = skerch.create(scratch("other"), rows=103, part=10, sub=(64,),
                      unwritten=(2,))
    for chunk, comp, filters in (("7,64", None, "lzf"), ("1,64", "zstd:3", None),
                                 ("103,1", "gzip:9", "gzip"),
                                 ("200,500", "none", None), (None, "lz4", None),
                                 ("13,5", "lzf", "lzf")):
        argv = (["--chunk=" + chunk] if chunk else []) + \
               (["--comp=" + comp] if comp else [])
        out = work + "/other.h5"
        if comp in ("zstd:3", "lz4"):  # h5py has no such filter: we have
            exits(merge(t.all_path, "-o", out, "--force", *argv), 0, "merge")
            p = exits(tensorfs("cat", out + ":data/array.bin", text=False), 0,
                      "cat")
            check(p.stdout == t.data.tobytes(), "other values")
        else:
            merged(t.all_path, *argv, out=out)
        with h5py.File(out) as f:
            equal(f["data"].compression, filters, "filter")
            want = tuple(map(int, (chunk or "10,64").split(",")))
            equal(f["data"].chunks, tuple(np.minimum(want, (103, 64))),
                  "chunks")


@case
def bad_options():
    d = scratch("badopt")
    t = skerch.create(d, rows=20, part=10, sub=(6,))
    for argv, text in ((["--chunk=3"], "2 axes"), (["--chunk=3,4,5"], "2 axes"),
                       (["--chunk=0,4"], "--chunk"), (["--chunk=a,4"], "chunk"),
                       (["--comp=xz"], "xz"), (["--comp=nonsense"], "comp")):
        p = exits(merge(t.all_path, *argv), 2, " ".join(argv))
        check(text in p.stderr, p.stderr)
    p = exits(merge(t.all_path, "-o", t.parts[0][2]), 2, "onto a part")
    p = exits(merge(t.all_path, "-o", t.parts[0][2], "--force"), 2, "a part")
    check("is a part" in p.stderr, p.stderr)
    p = exits(merge(t.all_path, "-o", d), 2, "a directory")
    p = exits(merge(t.all_path, "-o", "-"), 2, "a pipe")
    check("./-" in p.stderr, p.stderr)
    p = exits(merge(t.all_path, "-o", d + "/no/such/x.h5"), 1, "nowhere")
    open(d + "/there", "w").close()
    p = exits(merge(t.all_path, "-o", d + "/there"), 2, "there is one")
    check("--force" in p.stderr, p.stderr)
    equal(os.path.getsize(d + "/there"), 0, "what is there")
    exits(merge(d + "/nothing.h5"), 3, "no main file")
    exits(merge(d + "/there", "-o", d + "/y"), 3, "not HDF5")
    equal(beside(d + "/x"), [], "left behind")
    with h5py.File(t.all_path) as f:
        check(f["data"].is_virtual, "touched")


# --- parts that are not as they should be ---------------------------------------

def refused(name, spoil, text, code=3):
    d = scratch(name)
    t = skerch.create(d, rows=60, part=10, sub=(300,))
    spoil(t.parts[4][2])
    before = {n: os.stat(d + "/" + n).st_mtime_ns for n in names(d)}
    p = exits(merge("--delete-parts", t.all_path), code, name)
    check(os.path.basename(t.parts[4][2]) in p.stderr and text in p.stderr,
          p.stderr)
    equal({n: os.stat(d + "/" + n).st_mtime_ns for n in names(d)}, before,
          "touched")


@case
def missing_part():
    refused("missing", os.remove, "")


@case
def truncated_part():
    refused("short", lambda p: os.truncate(p, os.path.getsize(p) // 2),
            "runcated")


@case
def empty_part():
    refused("empty", lambda p: os.truncate(p, 0), "not an HDF5 file")


@case
def foreign_part():
    def other_shape(p):
        with h5py.File(p, "w") as f:
            f["data"] = np.zeros((10, 200), "<f4")
            f["flags"] = ["OK"] * 10

    def other_type(p):
        with h5py.File(p, "w") as f:
            f["data"] = np.zeros(10, [("a", "<f4"), ("b", "S3")])
            f["flags"] = ["OK"] * 10

    def no_data(p):
        with h5py.File(p, "w") as f:
            f["flags"] = ["OK"] * 10
    refused("shape", other_shape, "")
    refused("type", other_type, "")
    refused("nodata", no_data, "data")


@case
def type_converted():
    """What a reader of the virtual dataset gets is stored: converted."""
    d = scratch("convert")
    t = skerch.create(d, rows=40, part=10, sub=(5,), compression="gzip")
    with h5py.File(t.parts[1][2], "r+") as f:
        x = f["data"][...]
        del f["data"]
        f.create_dataset("data", data=x.astype(">f8") + 0.1, chunks=(10, 5),
                         compression="gzip")
    merged(t.all_path)


@case
def not_allowed():
    """Parts that must not be deleted, a directory that takes nothing."""
    if not lib.ROOT:
        return
    d = scratch("not-allowed")
    os.makedirs(d + "/parts")
    t = skerch.create(d + "/parts", rows=20, part=10, sub=(6,))
    with h5py.File(t.all_path) as f, h5py.File(d + "/m.h5", "w") as g:
        v = h5py.VirtualLayout((20, 6), "<f4")
        for b, e, path in t.parts:
            v[b:e] = h5py.VirtualSource("parts/" + os.path.basename(path),
                                        "data", (10, 6), "<f4")
        g.create_virtual_dataset("data", v)
    os.chmod(work, 0o755)
    for top, dirs, files in os.walk(d):
        os.chmod(top, 0o777)
        for n in files:
            os.chmod(os.path.join(top, n), 0o666)
    os.chmod(d + "/parts", 0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    p = exits(run(*nobody, lib.TENSORFS, "merge", "--delete-parts",
                  d + "/m.h5"), 1, "parts of somebody else")
    check("cannot be deleted" in p.stderr, p.stderr)
    with h5py.File(d + "/m.h5") as f:
        check(f["data"].is_virtual, "touched")
    os.chmod(d, 0o755)
    p = exits(run(*nobody, lib.TENSORFS, "merge", d + "/m.h5"), 1,
              "a directory of somebody else")
    check("cannot write" in p.stderr, p.stderr)
    exits(run(*nobody, lib.TENSORFS, "merge", d + "/m.h5", "-o",
              d + "/parts/../../out-%d.h5" % os.getpid()), 1, "nor there")


# --- size -----------------------------------------------------------------------

@case
def thousands_of_parts():
    """More parts than there may be descriptors."""
    n = 300 if SLOW else 10000 if lib.full() else 1000
    d = scratch("thousands")
    width = len(str(n)) + 1
    names_ = ["p_%0*d-%0*d.h5" % (width, i, width, i + 1) for i in range(n)]
    first = skerch.create(d, name="q", rows=1, part=1, sub=(4,),
                          compression=None)
    with open(first.parts[0][2], "rb") as f:
        template = f.read()
    at = template.index(first.data.tobytes())
    v = h5py.VirtualLayout((n, 4), "<f4")
    w = h5py.VirtualLayout((n,), h5py.string_dtype())
    rows = np.arange(4 * n, dtype="<f4").reshape(n, 4)
    for i, name in enumerate(names_):
        with open(d + "/" + name, "wb") as f:
            f.write(template[:at] + rows[i].tobytes() + template[at + 16:])
        v[i] = h5py.VirtualSource(name, "data", (1, 4), "<f4")
        w[i:i + 1] = h5py.VirtualSource(name, "flags", (1,),
                                        h5py.string_dtype())
    with h5py.File(d + "/p_ALL.h5", "w") as f:
        f.create_virtual_dataset("data", v)
        f.create_virtual_dataset("flags", w)
    p = exits(tensorfs("merge", "--json", "--check-flag=OK", "--delete-parts",
                       d + "/p_ALL.h5", preexec=limit_files(64)),
              0, "merge")
    equal(summary(p)["deleted"], n, "deleted")
    with h5py.File(d + "/p_ALL.h5") as f:
        check((f["data"][...] == rows).all(), "other values")
        check((f["flags"][...] == b"OK").all(), "other flags")
    equal(len(names(d)), 3, "files")


def main():
    global work
    work = lib.setup(fuse=False)
    lib.main()


if __name__ == "__main__":
    main()
