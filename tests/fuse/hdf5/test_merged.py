#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""merged.h5: a mounted HDF5 file as one, for h5py, h5diff, Octave, HyperSpy."""
import errno
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import skerch
from checks import Failure, check, equal, fails_with, read
from h5lib import (PAGE, SUM, few_files, h5dump, left_out, same,
                   same_attributes)
from lib import Mount, case, exits, run, tensorfs

work = None


def path(name):
    return os.path.join(work, name)


def absent(name):
    fails_with((errno.ENOENT,), lambda: os.stat(name), name)


# --- the whole file -----------------------------------------------------------------

def objects(group, at=""):
    """{path: object} of everything in a file, links followed."""
    out = {}
    for n in group:
        o = group.get(n)
        if o is None:
            continue
        out[at + n] = o
        if isinstance(o, h5py.Group):
            out.update(objects(o, at + n + "/"))
    return out


@case
def everything_in_one():
    src = path("all.h5")
    with h5py.File(src, "w") as f:
        f.attrs["title"] = "all of it"
        for i in range(40):
            d = f.create_dataset("g%d/x" % (i % 7) + str(i), chunks=(3, 5),
                                 data=np.arange(i * 5).reshape(i, 5),
                                 maxshape=(None, 5), compression="gzip")
            d.attrs["i"] = i
        f["text"] = np.array(["a", "", "\u00e9 ccc"], object)
        f["fixed"] = np.array([[b"a", b"bc"], [b"", b"def"]], "S3")
        f["scalar"] = 5
        f["empty"] = h5py.Empty("f4")
        f["none"] = np.zeros((3, 0), ">f8")
        f["flag"] = np.array([True, False])
        f["alias"] = h5py.SoftLink("/g1/x1")
        f["g0"].attrs["note"] = "words"
        f["refs"] = np.array([f["text"].ref], h5py.ref_dtype)
        f.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["gone"] = h5py.ExternalLink("nowhere.h5", "/x")
        s = f["g1/x1"].dims
        f["axis"] = np.arange(5.)
        f["axis"].make_scale("width")
        s[1].attach_scale(f["axis"])
    with Mount(src) as m, h5py.File(src) as want:
        name = m.path + "/merged.h5"
        check("merged.h5" not in os.listdir(m.path), "listed")
        absent(m.path + "/g1/merged.h5")
        h5dump(name)
        with h5py.File(name) as f:
            got, had = objects(f), objects(want)
            equal(sorted(got), sorted(set(had) - {"refs", "lists"}), "names")
            same_attributes(f, want, "root")
            for n, o in got.items():
                same_attributes(o, had[n], n, {"DIMENSION_LIST",
                                               "REFERENCE_LIST"})
                if isinstance(o, h5py.Group):
                    continue
                equal(o.shape, had[n].shape, n)
                if o.shape is not None:
                    same(o[()], had[n][()], n)
                if o.size and o.dtype.kind != "O" and n != "fixed":
                    off = o.id.get_offset()
                    equal(off % PAGE, 0, n + ": place")
                    mm = np.memmap(name, o.dtype, "r", off, o.shape)
                    check((mm == had[n][()]).all(), n + ": np.memmap")
                    del mm
            equal(f["text"].dtype, want["text"].dtype, "type of text")
        lines = left_out(name).splitlines()
        for n in ("/refs: ", "/lists: ", "/dangling: ", "/gone: ",
                  "/g1/x1: attribute DIMENSION_LIST", "/axis: attribute REFER"):
            check(any(x.startswith(n) for x in lines), "%s not in %s" % (n, lines))
        equal(len(lines), 7, "lines (of g1/x1 and alias two)")
        data = read(name)
        equal(os.stat(name).st_size, len(data), "size")
    copy = path("copied.h5")
    with open(copy, "wb") as f:
        f.write(data)
    with h5py.File(copy) as f:
        equal(len(objects(f)), len(got), "of a copy")
    with Mount(src, opts=["--views=h5"]) as m:
        check("merged.h5" in os.listdir(m.path), "views=h5")
        check(read(m.path + "/merged.h5") == data, "other bytes in another mount")


@case
def windows_across_datasets():
    src = path("windows.h5")
    with h5py.File(src, "w") as f:
        for i in range(300):
            f["x%03d" % i] = np.full(1 + i * 37 % 5000, i % 251, "u1")
    rng = np.random.default_rng(3)
    with Mount(src) as m:
        data = exits(tensorfs("cat", src + ":merged.h5", text=False), 0, "cat").stdout
        equal(os.stat(m.path + "/merged.h5").st_size, len(data), "size")
        with open(m.path + "/merged.h5", "rb", 0) as f:
            for _ in range(300):
                at = int(rng.integers(0, len(data)))
                n = int(rng.integers(1, 300000))
                got = os.pread(f.fileno(), n, at)
                check(got == data[at:at + n], "[%d,+%d)" % (at, n))
        with h5py.File(m.path + "/merged.h5") as f:
            for i in range(300):
                check((f["x%03d" % i][...] == i % 251).all(), "x%03d" % i)


@case
def merged_as_merge_merges():
    t = skerch.create(path("both"), rows=400, sub=(1024,), part=1, dtype="<f4",
                      incompressible=3, flags=["%d" % i for i in range(400)])
    out = path("both/out.h5")
    exits(tensorfs("merge", "--output", out, t.all_path), 0, "merge")
    with Mount(t.all_path) as m:
        p = exits(run("/usr/bin/python3", "-c", SUM,
                      m.path + "/merged.h5", preexec=few_files), 0, "64 files")
        equal(p.stdout.split()[1:], ["400", "399"], "flags")
        with h5py.File(out) as want, h5py.File(m.path + "/merged.h5") as f:
            equal(sorted(f), sorted(want), "names")
            for n in f:
                same(f[n][...], want[n][...], n)
    os.unlink(t.parts[99][2])
    with Mount(t.all_path) as m, h5py.File(m.path + "/merged.h5") as f:
        same(f["data"][:50], t.data[:50], "before the gap")
        try:
            f["data"][...]
        except OSError:
            return
        raise Failure("a part is missing, and all was read")


@case
def a_dataset_of_that_name():
    src = path("taken.h5")
    with h5py.File(src, "w") as f:
        f["merged.h5"] = np.arange(3)
    with Mount(src, opts=["--views=h5"]) as m:
        equal(os.listdir(m.path), ["merged.h5"], "listed")
        with h5py.File(m.path + "/merged.h5/array.h5") as f:
            same(f["merged.h5"][...], np.arange(3), "values")


@case
def in_an_archive():
    src, tar = path("inner.h5"), path("outer.tar")
    with h5py.File(src, "w") as f:
        f.create_dataset("x", data=np.arange(9000), chunks=(100,),
                         compression="gzip")
    exits(run("tar", "-C", work, "-cf", tar, "inner.h5"), 0, "tar")
    with Mount(tar, opts=["--nested"]) as m:
        top = m.path + "/inner.h5"
        top = next(t for t in (top, top + "!", top + ".d") if os.path.isdir(t))
        for n in ("merged.h5", "x/array.h5"):
            with h5py.File(top + "/" + n) as f:
                same(f["x"][...], np.arange(9000), n)


@case
def one_dataset_as_the_root():
    src = path("root.h5")
    with h5py.File(src, "w") as f:
        f["g/x"] = np.arange(12).reshape(3, 4)
    with Mount(src, opts=["--dataset=/g/x"]) as m:
        with h5py.File(m.path + "/array.h5") as f:
            same(f["g/x"][...], np.arange(12).reshape(3, 4), "values")
        absent(m.path + "/merged.h5")
    with Mount(src, opts=["--dataset=/g"]) as m, \
            h5py.File(m.path + "/merged.h5") as f:
        same(f["x"][...], np.arange(12).reshape(3, 4), "values")


# --- other programs -----------------------------------------------------------------

@case
def h5diff_finds_no_difference():
    src = path("diff.h5")
    rng = np.random.default_rng(5)
    with h5py.File(src, "w") as f:
        for i, t in enumerate(("<f4", ">f8", "<u2", ">i8", "i1", "<c8")):
            d = f.create_dataset("g%d/%s" % (i % 2, t[-2:]), chunks=(3, 4, 5),
                                 data=rng.integers(0, 99, (7, 9, 11)).astype(t),
                                 compression="gzip", shuffle=True)
            d.attrs["n"] = i
            d.attrs["s"] = "words"
        f["b"] = rng.integers(0, 2, 100).astype(bool)
        f["s"] = np.array([b"a", b"bcd"], "S4")
    with Mount(src) as m:
        p = run("h5diff", "-v", src, m.path + "/merged.h5")
        # Type classes and sizes are compared, orders of bytes are not.
        check(p.returncode == 0, "h5diff: exit %d: %s%s" % (
            p.returncode, p.stdout[-600:], p.stderr))
        p = exits(run("h5repack", m.path + "/merged.h5", path("repacked.h5")), 0,
                  "h5repack")
    equal(run("h5diff", src, path("repacked.h5")).returncode, 0, "repacked")


@case
def octave_loads_it():
    src = path("octave.h5")
    v = np.arange(24.).reshape(4, 6)
    with h5py.File(src, "w") as f:
        f.create_dataset("x", data=v, chunks=(3, 4), compression="lzf")
    with Mount(src) as m:
        p = run("octave-cli", "--norc", "--eval", "s = load('%s'); printf('%%d %%d "
                "%%g %%g\\n', size(s.x), sum(s.x(:)), s.x(2, 1))" %
                (m.path + "/x/array.h5"))
        exits(p, 0, "octave")
        equal(p.stdout.split(), ["6", "4", "276", "1"], "octave")


@case
def hyperspy_opens_it():
    import hyperspy.api as hs
    src, v = path("signal.hspy"), np.arange(3 * 4 * 5 * 6.).reshape(3, 4, 5, 6)
    s = hs.signals.Signal2D(v)
    s.axes_manager[0].name, s.axes_manager[0].scale = "x", 0.25
    s.metadata.General.title = "a scan"
    s.save(src, overwrite=True, chunks=(1, 2, 5, 6))
    with Mount(src) as m:
        got = hs.load(m.path + "/merged.h5", reader="HSPY")
        check((got.data == v).all(), "data")
        equal((got.axes_manager[0].name, got.axes_manager[0].scale), ("x", 0.25),
              "axis")
        equal(got.metadata.General.title, "a scan", "title")


@case
def damaged_files():
    src, bad = path("whole.h5"), path("bad.h5")
    with h5py.File(src, "w") as f:
        d = f.create_dataset("g/x", data=np.arange(500), chunks=(50,))
        for i in range(6):
            d.attrs["a%d" % i] = ["words", "and %d" % i]
        f["g/s"] = np.array(["text %d" % i for i in range(20)], object)
    with open(src, "rb") as f:
        data = bytearray(f.read())
    rng = np.random.default_rng(11)
    for i in range(12):
        with open(bad, "wb") as f:
            worse = bytearray(data)
            for at in rng.integers(96, len(data), 20 * (i + 1)):
                worse[at] ^= int(rng.integers(1, 256))
            f.write(worse)
        for n in ("merged.h5", "g/x/array.h5"):
            p = tensorfs("cat", bad + ":" + n, text=False)
            exits(p, (0, 1, 2, 3, 4, 5), n)
            check(p.returncode or p.stdout[:8] == b"\x89HDF\r\n\x1a\n", n)


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
