#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""array.h5: a tensor as an HDF5 file that exists nowhere, read by h5py and h5dump."""
import errno
import hashlib
import os
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import expect  # before h5py: external raw files
import h5py
import lib
import numpy as np
import skerch
import zoo_layouts
import zoo_types
import zoo_virtual
from checks import Failure, check, equal, fails_with, read
from h5lib import (PAGE, SUM, few_files, h5dump, left_out, same,
                   same_attributes)
from lib import Mount, case, exits, run, tensorfs

work = None


def path(name):
    return os.path.join(work, name)


def absent(name):
    fails_with((errno.ENOENT,), lambda: os.stat(name), name)


# --- one dataset ------------------------------------------------------------------

@case
def a_file_of_its_own():
    src = path("one.h5")
    v = np.arange(7 * 5 * 300, dtype=">i4").reshape(7, 5, 300)
    with h5py.File(src, "w", libver="latest") as f:
        d = f.create_dataset("entry/data/x", data=v, chunks=(2, 5, 77),
                             compression="gzip", shuffle=True)
        d.attrs["units"] = "nm"
        d.attrs["words"] = np.array(["a", "", "ccc"], object)
        d.attrs["many"] = np.arange(20000.)  # more than 64 KiB
        d.attrs["nothing"] = h5py.Empty("f4")
        d.attrs["lists"] = np.array([np.arange(3), np.arange(0)], object).astype(
            h5py.vlen_dtype("i4"))
        f["entry"].attrs["NX_class"] = b"NXentry"
        f["entry/data"].attrs["signal"] = "x"
        f.attrs["title"] = "a file"
        f["entry/other"] = np.arange(3)
        f["entry"].attrs["other"] = f["entry/other"].ref
    with Mount(src) as m, h5py.File(src) as s:
        name = m.path + "/entry/data/x/array.h5"
        check("array.h5" not in os.listdir(os.path.dirname(name)), "listed")
        with h5py.File(name) as f:
            d = f["entry/data/x"]
            same(d[...], v, "values")
            same(d[3, 1:4, 290:], v[3, 1:4, 290:], "a slice")
            same_attributes(d, s["entry/data/x"], "dataset")
            same_attributes(f["entry"], s["entry"], "entry", {"other"})
            same_attributes(f["entry/data"], s["entry/data"], "data")
            same_attributes(f, s, "root")
            equal(list(f["entry"]), ["data"], "what else is there")
            check(d.chunks is None, "it is not contiguous")
            off = d.id.get_offset()
        equal(off % PAGE, 0, "place of the data")
        equal(os.stat(name).st_size, off + v.nbytes, "size")
        mm = np.memmap(name, "<i4", "r", off, v.shape)
        check((mm == v).all(), "np.memmap: other values")
        del mm
        check("H5T_STD_I32LE" in h5dump(name), "h5dump: type")
        equal(left_out(name), "/entry: attribute other: references lead nowhere "
              "here\n", "left out")
        fails_with((errno.EROFS, errno.EACCES), lambda: open(name, "r+"), "r+")
    with Mount(src, opts=["--dtype-order=source"]) as m:
        with h5py.File(m.path + "/entry/data/x/array.h5") as f:
            equal(f["entry/data/x"].dtype, v.dtype, "dtype-order=source")
            same(f["entry/data/x"][...], v, "dtype-order=source")
    with Mount(src, opts=["--views=h5"]) as m:
        equal(sorted(os.listdir(m.path + "/entry/data/x")),
              ["array.h5", "info.json"], "views=h5")


@case
def the_same_bytes_everywhere():
    src = path("bytes.h5")
    with h5py.File(src, "w", track_order=True) as f:
        for i in range(30):
            d = f.create_dataset("g%d/x" % i, data=np.arange(i))
            d.attrs["a"] = "text %d" % i
    sums = []
    for _ in range(2):
        with Mount(src) as m:
            sums.append([hashlib.sha256(read(m.path + "/g%d/x/array.h5" % i))
                         .hexdigest() for i in (0, 1, 29)])
    p = exits(tensorfs("cat", src + ":g29/x/array.h5", text=False), 0, "cat")
    equal(sums[0], sums[1], "two mounts")
    equal(hashlib.sha256(p.stdout).hexdigest(), sums[0][2], "cat")


@case
def no_elements_and_one():
    src = path("few.h5")
    with h5py.File(src, "w") as f:
        f["scalar"] = np.float32(2.5)
        f["none"] = np.zeros((0, 5), "u2")
        f["empty"] = h5py.Empty("f8")
        f["text"] = "words"
        f.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
    with Mount(src) as m, h5py.File(src) as s:
        for n in ("scalar", "none"):
            with h5py.File("%s/%s/array.h5" % (m.path, n)) as f:
                same(f[n][()], s[n][()], n)
                equal(f[n].dtype, s[n].dtype, n)
            h5dump("%s/%s/array.h5" % (m.path, n))
        for n in ("text", "lists", "empty"):
            absent("%s/%s/array.h5" % (m.path, n))


@case
def larger_than_any_disk():
    src = path("huge.h5")
    with h5py.File(src, "w") as f:
        d = f.create_dataset("x", (1 << 20, 1 << 20), "f8", chunks=(1, 1 << 16),
                             fillvalue=7)
        d[77777, 1 << 17] = 3
    with Mount(src) as m, h5py.File(m.path + "/x/array.h5") as f:
        equal(f["x"][77777, (1 << 17) - 1:(1 << 17) + 2].tolist(), [7, 3, 7],
              "in the middle")
        equal(f["x"][-1, -1], 7, "at the end")
        check(os.stat(m.path + "/x/array.h5").st_size > 8 << 40, "size")


# --- every type, layout and mapping -------------------------------------------------

def shown(want):
    return [(n, w) for n, w in want.items() if w.kind == "array" and
            w.bad is None and not w.source_order]


def compare(m, src, name, w):
    at = os.path.join(m.path, name, "array.h5")
    key = w.stored or name
    with warnings.catch_warnings(), h5py.File(at) as f:
        warnings.simplefilter("ignore")
        d = f[key]
        if w.readable and not w.also:
            same(d[()], src[w.h5 or key][()], name)
        v = np.load(os.path.join(m.path, name, "array.npy"))
        off = d.id.get_offset()
        if v.size:
            equal(off + v.nbytes, os.stat(at).st_size, name + ": size")
            with open(at, "rb") as raw:
                raw.seek(off)
                check(raw.read() == v.tobytes(), name + ": other bytes")
        if w.value is not None and not w.readable:
            check(v.tobytes() == expect.little(np.asarray(w.value)).tobytes(),
                  name + ": not the author's values")


def whole_zoo(module):
    top = path(module.__name__)
    os.makedirs(top)
    n, bad = 0, []
    for z in module.make(top):
        if z.env or z.opts:
            continue
        with Mount(z.path) as m, h5py.File(z.path) as src:
            for name, w in shown(z.wants):
                n += 1
                try:
                    compare(m, src, name, w)
                except (Failure, OSError, KeyError, TypeError, ValueError) as e:
                    bad.append("%s:%s: %s" % (z.name, name, e))
    check(n > 10, "only %d datasets" % n)
    check(not bad, "%d of %d: %s" % (len(bad), n, " || ".join(bad[:4])))


@case
def every_type():
    whole_zoo(zoo_types)


@case
def every_layout():
    whole_zoo(zoo_layouts)


@case
def every_mapping():
    whole_zoo(zoo_virtual)


# --- distributed tensors --------------------------------------------------------------

@case
def parts_beyond_the_limit_of_files():
    t = skerch.create(path("skerch"), rows=400, sub=(4, 4), part=1, dtype="<i8",
                      flags=["row %d" % i for i in range(400)])
    with Mount(t.all_path) as m:
        name = m.path + "/data/array.h5"
        p = exits(run("/usr/bin/python3", "-c", SUM, name, preexec=few_files), 0,
                  "h5py with 64 files")
        equal(p.stdout.split(), [str(t.data.sum()), "400", "row", "399"], "sum")
        with h5py.File(name) as f:
            same(f["data"][...], t.data, "data")
            equal([x.decode() for x in f["flags"][...]], t.flags, "flags")
        h5dump(name)
        equal(left_out(name), "", "left out")
    merged = path("skerch/out.h5")
    exits(tensorfs("merge", "--output", merged, t.all_path), 0, "merge")
    with Mount(t.all_path) as m, h5py.File(merged) as want, \
            h5py.File(m.path + "/data/array.h5") as f:
        for n in ("data", "flags"):
            same(f[n][...], want[n][...], "as merge has it: " + n)


@case
def a_part_that_is_gone():
    t = skerch.create(path("gone"), rows=40, sub=(512,), part=4, dtype="<f8")
    os.unlink(t.parts[5][2])
    with Mount(t.all_path) as m:
        name = m.path + "/data/array.h5"
        with h5py.File(name) as f:
            same(f["data"][:20], t.data[:20], "what is there")
            same(f["data"][24:], t.data[24:], "what is there")
            for rows in (slice(20, 24), slice(0, 40), slice(23, 24)):
                try:
                    f["data"][rows]
                except OSError:
                    continue
                raise Failure("rows %s were read" % rows)
            check("flags" not in f, "flags, though they are not known")
        check("/flags: " in left_out(name), "not said: " + left_out(name))
    with Mount(t.all_path, opts=["--missing=fill"]) as m, \
            h5py.File(m.path + "/data/array.h5") as f:
        check(not f["data"][20:24].any(), "missing=fill")
        equal(f["flags"][21], b"", "missing=fill")


@case
def a_source_that_changes():
    src = path("changes.h5")
    with h5py.File(src, "w") as f:
        f["x"] = np.arange(10)
    with Mount(src) as m:
        with h5py.File(src, "r+") as f:
            f["y"] = np.arange(100)
        fails_with((errno.ESTALE, errno.EIO),
                   lambda: read(m.path + "/x/array.h5"), "changed")


@case
def fields_and_enums():
    src = path("fields.h5")
    e = h5py.enum_dtype({"RED": -300, "GREEN": 2, "BLUE": 7}, ">i4")
    t = np.dtype([("a", ">i2"), ("b", "<f8", (2, 3)), ("s", "S5"), ("c", "<c8"),
                  ("e", e)], align=True)
    v = np.zeros(11, t)
    v["a"] = range(11)
    v["b"] = np.arange(66).reshape(11, 2, 3)
    v["s"] = b"abc"
    v["c"] = 2 - 1j
    v["e"] = [-300, 2, 7] * 3 + [2, 7]
    with h5py.File(src, "w") as f:
        f["t"] = v
    with Mount(src) as m, h5py.File(src) as s:
        with h5py.File(m.path + "/t/array.h5") as f:
            same(f["t"][...], s["t"][...], "structure")
            equal(h5py.check_enum_dtype(f["t"].dtype["e"]),
                  h5py.check_enum_dtype(s["t"].dtype["e"]), "names")
        for n in ("a", "b", "c", "e"):
            with h5py.File("%s/t/fields/%s/array.h5" % (m.path, n)) as f:
                same(f["t/fields/" + n][...], v[n], "field " + n)


@case
def attributes_that_are_damaged():
    src = path("damaged.h5")
    with h5py.File(src, "w") as f:
        f["x"] = np.arange(10)
        f["x"].attrs["long"] = "find me" * 9
        f["x"].attrs["good"] = 5
    with open(src, "rb") as f:
        data = f.read()
    at = data.index(b"GCOL")
    with open(src, "wb") as f:
        f.write(data[:at] + b"LOCG" + data[at + 4:])
    with Mount(src) as m:
        name = m.path + "/x/array.h5"
        with h5py.File(name) as f:
            equal(list(f["x"].attrs), ["good"], "attributes")
            same(f["x"][...], np.arange(10), "values")
        check("attribute long" in left_out(name), "not said: " + left_out(name))


@case
def parts_side_by_side():
    top = path("side")
    os.makedirs(top)
    for i in range(12):
        with h5py.File(top + "/p%02d.h5" % i, "w") as f:
            f["x"] = np.full((2, 3), i)
    p = exits(tensorfs("cat", "--concat=0", top + ":x/array.h5", text=False), 0, "cat")
    with open(path("side.h5"), "wb") as f:
        f.write(p.stdout)
    with h5py.File(path("side.h5")) as f:
        same(f["x"][...], np.repeat(np.arange(12), 6).reshape(24, 3), "values")


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
