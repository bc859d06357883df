#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Views that are for one program each, read by that program: dask, PIL, tifffile."""
import ctypes
import errno
import glob
import os
import pickle
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import dask.array as da
import h5py
import lib
import numpy as np
import skerch
import tifffile
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, run, tensorfs, wait_until
from PIL import Image

work = None
libc = ctypes.CDLL(None, use_errno=True)
rng = np.random.default_rng(7)
ALWAYS = ["array.bin", "array.npy", "blocks", "info.json", "samples"]


def numbers(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.random(shape) + 1j * rng.random(shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    i = np.iinfo(dtype)
    return rng.integers(i.min, i.max, shape, dtype=dtype.newbyteorder("="),
                        endpoint=True).astype(dtype)


def h5(name, **datasets):
    path = os.path.join(work, name)
    with h5py.File(path, "w") as f:
        for k, v in datasets.items():
            f.create_dataset(k, **v) if isinstance(v, dict) else \
                f.create_dataset(k, data=v)
    return path


def equal_arrays(got, want, what):
    equal((got.dtype, got.shape), (want.dtype, want.shape), what)
    check(got.tobytes() == want.tobytes(), what + ": other values")


def absent(path):
    fails_with((errno.ENOENT,), lambda: os.stat(path), path)


# --- what is listed -------------------------------------------------------------

@case
def reachable_though_not_listed():
    path = h5("listed.h5", a=numbers("u1", (4, 6, 5)))
    with Mount(path) as m:
        equal(sorted(os.listdir(m.path + "/a")), ALWAYS, "usual")
        equal(os.stat(m.path + "/a").st_nlink, 1, "links")
        equal(sorted(os.listdir(m.path + "/a/stack")), ["0.npy", "info"], "stack")
        check(os.path.isfile(m.path + "/a/images/000003.pgm"), "images")
        absent(m.path + "/a/pictures")
    with Mount(path, opts=["--views=stack,tiff"]) as m:
        equal(sorted(os.listdir(m.path + "/a")), ["info.json", "stack", "tiff"],
              "views=stack,tiff")
        check(os.path.isfile(m.path + "/a/array.npy"), "array.npy")
    with Mount(path, opts=["--views=all"]) as m:
        equal(sorted(os.listdir(m.path + "/a")),
              sorted(ALWAYS + ["array.h5", "epochs", "files.txt", "images",
                               "manifest.csv", "manifest.jsonl", "shards", "slice",
                               "stack", "tensor.safetensors", "tiff", "zarr",
                               "zarr3"]), "views=all")
    p = exits(tensorfs("cat", path + ":a/stack/0.npy", text=False), 0, "cat")
    check(p.stdout[:6] == b"\x93NUMPY", "no .npy")
    for name in ("stack/9.npy", "slice/9.npy", "images/9.pgm"):
        p = exits(tensorfs("cat", path + ":a/" + name), 1, "cat " + name)
        check("in /a/" + name[:5] in p.stderr, "where? " + p.stderr)


# --- stack ----------------------------------------------------------------------

def stacked(mount, name, want):
    top = os.path.join(mount, name, "stack")
    names = os.listdir(top)
    equal(names, sorted(names), "order of names")
    got = da.from_npy_stack(top)
    equal(sorted(names), sorted(["info"] + ["%d.npy" % i for i in
                                            range(got.numblocks[0])]), "files")
    equal_arrays(got.compute(scheduler="synchronous"), want, name)
    # What dask itself writes for these chunks.
    own = os.path.join(work, "dask-" + name)
    da.to_npy_stack(own, got)
    with open(own + "/info", "rb") as f, open(top + "/info", "rb") as g:
        a, b = pickle.load(f), pickle.load(g)
    equal({k: type(v) for k, v in b.items()}, {k: type(v) for k, v in a.items()},
          "types")
    equal(b, a, "info")


@case
def stack_types_and_shapes():
    data = {}
    for t in ("?", "i1", "u1", "i2", "<u4", "i8", "f2", "f4", "f8", "c8", "c16"):
        data["t_" + np.dtype(t).name] = numbers(t, (7, 3, 2))
    data["big"] = numbers(">i4", (9, 2))
    data["row"] = numbers("f4", (300,))
    data["none"] = np.zeros((0, 5), "i2")
    data["empty"] = np.zeros((5, 0), "i2")
    data["long"] = numbers("u1", (70000, 3))
    path = h5("types.h5", **data)
    with Mount(path) as m:
        for name, want in data.items():
            stacked(m.path, name, want.astype(want.dtype.newbyteorder("=")))
    with Mount(path, opts=["--dtype-order=source"]) as m:
        stacked(m.path, "big", data["big"])


@case
def stack_follows_what_is_stored():
    """About 64 MiB a file, and whole chunks of rows; more than ten files."""
    shape = (313, 512, 1024)
    path = h5("rows.h5", rows={"shape": shape, "dtype": "f4",
                               "chunks": (3, 512, 1024), "compression": "gzip"},
              large={"shape": (6, 1 << 20, 16), "dtype": "f4",
                     "chunks": (1, 1 << 20, 16)})
    written = {0: 1.5, 95: 2.5, 130: 3.5, 312: 4.5}
    with h5py.File(path, "r+") as f:
        for i, v in written.items():
            f["rows"][i, 5] = v
    with Mount(path) as m:
        top = m.path + "/rows/stack"
        names = os.listdir(top)
        equal(names, sorted(names), "order")
        x = da.from_npy_stack(top)
        rows = x.chunks[0]
        check(len(rows) > 10, "%d files" % len(rows))
        equal(sum(rows), shape[0], "rows")
        equal({r % 3 for r in rows[:-1]}, {0}, "whole chunks")
        check(all(32 << 20 <= r * 2 << 20 <= 64 << 20 for r in rows[:-1]),
              "bytes of a file: %s" % (rows,))
        equal(x.sum().compute(), sum(written.values()) * 1024, "sum")
        flat = x[:, 5].rechunk({0: -1})
        equal(np.diag((flat @ flat.T).compute())[[0, 95, 130, 312]].tolist(),
              [v * v * 1024 for v in written.values()], "X X^T")
        equal(da.from_npy_stack(m.path + "/large/stack").chunks[0], (1,) * 6,
              "a chunk a file")


@case
def stack_of_a_distributed_tensor():
    t = skerch.create(os.path.join(work, "run"), rows=230, part=20, sub=(8, 5))
    with h5py.File(t.all_path) as f:
        want = f["data"][...]
    with Mount(t.all_path) as m:
        stacked(m.path, "data", want)
        os.unlink(t.parts[3][2])
    with Mount(t.all_path) as m:
        # (dask maps files, and who touches a page that cannot be read is killed.)
        fails_with(errno.ENODATA, lambda: read(m.path + "/data/stack/0.npy"),
                   "a part is missing")


@case
def stack_names():
    path = h5("names.h5", a={"shape": (120, 1 << 24), "dtype": "u1",
                             "chunks": (4, 1 << 24)}, s=np.float32(3),
              c=np.zeros(3, [("x", "i4"), ("y", "f8")]))
    with Mount(path) as m:
        top = m.path + "/a/stack"
        equal(sorted(os.listdir(top)), sorted(
            ["%d.npy" % i for i in range(30)] + ["info"]), "names")
        for i in range(30):
            equal(np.load("%s/%d.npy" % (top, i), mmap_mode="r").shape,
                  (4, 1 << 24), "shape of %d" % i)
        for wrong in ("30.npy", "00.npy", "01.npy", "+1.npy", "1.npyx", "1",
                      ".npy", "-1.npy", " 1.npy", "1.5.npy", "inf", "info2",
                      "99999999999999999999999.npy"):
            absent(os.path.join(top, wrong))
        for k in "sc":  # no axis to stack along; no plain type
            absent(m.path + "/%s/stack" % k)


# --- slices ---------------------------------------------------------------------

def random_number(n):
    return "%d" % rng.choice([0, 1, -1, n, -n, n - 1, n + 3, -n - 2,
                              int(rng.integers(-n - 1, n + 1))])


def random_item(n):
    if rng.random() < 0.3:
        return "%d" % rng.integers(-n, n) if n else ":"
    text = ":".join(random_number(n) if rng.random() < 0.5 else ""
                    for _ in range(2))
    if rng.random() < 0.4:
        text += ":" + str(rng.choice(["", "1", "2", "-1", "-3", "7", "-100"]))
    return text


def random_expression(shape):
    items = [random_item(n) for n in shape]
    if rng.random() < 0.4:
        i = rng.integers(0, len(items) + 1)
        items[i:i + rng.integers(0, 3)] = ["..."]
    elif rng.random() < 0.3:
        del items[rng.integers(0, len(items)):]
    return ",".join(items) or "..."


def sliced(mount, name, data, expression):
    path = "%s/%s/slice/%s.npy" % (mount, name, expression)
    want = eval("data[%s]" % expression)
    equal_arrays(np.load(path), np.asarray(want), expression)
    return path


@case
def slices_as_numpy_has_them():
    data = {"line": numbers("i4", (57,)), "table": numbers("u1", (23, 31)),
            "cube": numbers("f8", (7, 11, 13)), "four": numbers("u2", (3, 5, 4, 6)),
            "none": np.zeros((4, 0, 3), "f4")}
    stored = {k: {"data": v, "chunks": tuple(n // 2 + 1 for n in v.shape),
                  "compression": "gzip"} for k, v in data.items() if v.size}
    stored.update({"flat" + k: v for k, v in data.items()})
    path = h5("slices.h5", **stored)
    with Mount(path) as m:
        for k, v in stored.items():
            array = v["data"] if isinstance(v, dict) else v
            for _ in range(60 if array.size else 10):
                sliced(m.path, k, array, random_expression(array.shape))
            equal(os.listdir("%s/%s/slice" % (m.path, k)), [], "listed")
        for e in ("0", "-1", "10:20", "::-1", "...", ":", "5,", "9" * 30 + ":",
                  ":" + "9" * 30, "-" + "9" * 30 + ":", "::" + "9" * 30):
            sliced(m.path, "line", data["line"], e)


@case
def slices_say_their_shape():
    path = h5("shapes.h5", a=numbers("i2", (6, 5, 4)))
    with Mount(path) as m:
        for e in ("0", "::2", "1,2,3", "3:1", "...,1:3,0", "::-4,1,:"):
            got = os.getxattr("%s/a/slice/%s.npy" % (m.path, e),
                              "user.tensorfs.shape")
            equal(got.decode(), str(eval("np.empty((6, 5, 4))[%s].shape" % e)), e)


@case
def slices_that_are_none():
    path = h5("wrong.h5", a=numbers("i2", (6, 5)), s=np.int16(3))
    with Mount(path) as m:
        top = m.path + "/a/slice/"
        for e in ("x", "1.5", "1:2:3:4", "::0", "1;2", "None", "[1,2]", "True",
                  "...,...", ",", "1,,2", " 1", "1 ", "+1", "--1", "-", "1:2,x",
                  "9,x", "0,0,x", "1-2", "....", "0x1"):
            fails_with(errno.EINVAL, lambda: os.stat(top + e + ".npy"), e)
        for e in ("6", "-7", "0,5", "0,0,0", "7,:", ":,:,:", "9" * 30):
            fails_with(errno.ENOENT, lambda: os.stat(top + e + ".npy"), e)
        for name in ("0", ".npy", "0.bin", "0.npy.npy2", "npy"):
            absent(top + name)
        absent(m.path + "/s/slice")


@case
def slices_that_are_none_say_why():
    path = h5("why.h5", a=numbers("i2", (6, 5)), b=numbers("i2", (3,)))
    with Mount(path) as m:
        def why(directory):
            try:
                return os.getxattr(m.path + directory, "user.tensorfs.error").decode()
            except OSError as e:
                return e.errno

        equal(why("/a/slice"), errno.ENODATA, "before")
        for name, word in (("1;2.npy", "'1;2.npy' is not a slice"),
                           ("7,:.npy", "beyond the end of an axis"), ("7,:.npy", "(6, 5)"),
                           ("0,0,0.npy", "'0,0,0.npy'"), ("3:5", "lacks .npy"),
                           ("x" * 250 + ".npy", "is not a slice")):
            check(not os.path.exists("%s/a/slice/%s" % (m.path, name)), name)
            check(word in str(why("/a/slice")), "%s: %s" % (name, why("/a/slice")))
            p = tensorfs("cat", "%s:a/slice/%s" % (path, name))
            check(p.returncode == 1 and word in p.stderr and "/a/slice" in p.stderr,
                  "cat %s: %s" % (name, p.stderr))
        was = why("/a/slice")
        for name in (".hidden", "thumbs.db", "0.npy"):
            os.path.exists(m.path + "/a/slice/" + name)
        equal(why("/a/slice"), was, "other names, and a slice")
        equal(why("/b/slice"), errno.ENODATA, "of another tensor")
        # One for each directory: what else has failed is not pushed out.
        for i in range(300):
            os.path.exists("%s/b/slice/%d.npy" % (m.path, 3 + i))
        check("'302.npy'" in why("/b/slice"), why("/b/slice"))
        equal(why("/a/slice"), was, "after many others")
        errors = os.getxattr(m.path, "user.tensorfs.errors").decode()
        check("EINVAL /a/slice: " in errors and "ENOENT /b/slice: " in errors, errors)


@case
def slices_of_a_distributed_tensor():
    t = skerch.create(os.path.join(work, "parts"), rows=90, part=7, sub=(6, 9),
                      name="p")
    with h5py.File(t.all_path) as f:
        data = f["data"][...]
    os.unlink(t.parts[5][2])        # rows 35 to 41
    with Mount(t.all_path) as m:
        # (34::8 has rows on both sides of it.)
        for e in ("0:35", "42:,1", "34::8", ":35:5,::2,::-3", "-3,...,0"):
            sliced(m.path, "data", data, e)
        for e in ("30:40", "40", ":,0,0"):
            fails_with(errno.ENODATA, lambda: read(
                "%s/data/slice/%s.npy" % (m.path, e)), e)
        errors = os.getxattr(m.path, "user.tensorfs.errors").decode()
        check("/data/slice/:,0,0.npy" in errors, "which file? " + errors)
    with Mount(t.all_path) as m:
        # (Of 13 parts, only these are opened.)
        before = m.stats()["parts_opened"]
        sliced(m.path, "data", data, "1::42,0")
        opened = m.stats()["parts_opened"] - before
        check(opened <= 3, "%d parts were opened" % opened)


class Handle(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint), ("type", ctypes.c_int),
                ("data", ctypes.c_ubyte * 128)]


def handle_of(path):
    h, mount = Handle(size=128), ctypes.c_int()
    if libc.name_to_handle_at(-100, os.fsencode(path), ctypes.byref(h),
                              ctypes.byref(mount), 0):
        raise OSError(ctypes.get_errno(), path)
    return h


def read_handle(mount, h):
    top = os.open(mount, os.O_RDONLY)
    fd = libc.open_by_handle_at(top, ctypes.byref(h), os.O_RDONLY)
    code = ctypes.get_errno()
    os.close(top)
    if fd < 0:
        raise OSError(code, "open_by_handle_at")
    with os.fdopen(fd, "rb") as f:
        return f.read()


@case
def slices_of_another_mount():
    """A handle (as NFS keeps them) must not become that of another slice."""
    if os.geteuid():
        return
    path = h5("handles.h5", a=numbers("i4", (5, 7)))
    with Mount(path) as m:
        want = read(m.path + "/a/samples/000001.npy")
        sample = handle_of(m.path + "/a/samples/000001.npy")
        slice_ = handle_of(m.path + "/a/slice/0.npy")
        equal(read_handle(m.path, slice_), read(m.path + "/a/slice/0.npy"), "now")
    with Mount(path) as m:
        equal(read_handle(m.path, sample), want, "a sample is what it was")
        fails_with(errno.ESTALE, lambda: read_handle(m.path, slice_), "nobody asked")
        os.stat(m.path + "/a/slice/1.npy")
        fails_with(errno.ESTALE, lambda: read_handle(m.path, slice_), "another")


def forget(mount):
    """Make the kernel forget what nobody has open, as it does when memory is short;
    False: it cannot be made to."""
    return not os.geteuid() and run("mount", "-i", "-o", "remount",
                                    mount).returncode == 0


@case
def slices_without_end():
    """Names are given back by age, but for those that somebody has."""
    few = os.environ.get("TENSORFS_SANITIZED") or not lib.full()
    n = 10000 if few else 70000  # more than are kept; with those below, in any case
    a = np.arange(100 * 2500, dtype="u4").reshape(100, 2500)
    path = h5("many.h5", a=a)
    with Mount(path) as m:
        top = m.path + "/a/slice/"

        def look(n, end, size):
            for i in range(n):
                name = "%s%d,%d:%s.npy" % (top, i % 100, i // 100, end)
                s = os.stat(name).st_size
                check(s == 128 + size(i // 100), "%s has %d bytes" % (name, s))

        with open(top + "7,:.npy", "rb", buffering=0) as f:
            inode = os.fstat(f.fileno()).st_ino
            # A name that nobody has may be forgotten, and is another then.
            known = os.open(top + "8,:.npy", os.O_PATH)
            old = {k: os.stat(top + "%d,:.npy" % k).st_ino for k in range(8, 100)}

            def check_those(step):
                equal(os.stat(top + "7,:.npy").st_ino, inode, "its number")
                f.seek(128)
                equal(f.read(), a[7].tobytes(), "what is open")
                equal(read(top + "8,:.npy")[128:], a[8].tobytes(), "another")
                for i in range(0, n, step):
                    name = "%s%d,%d:.npy" % (top, i % 100, i // 100)
                    equal(read(name)[128:], a[i % 100, i // 100:].tobytes(), name)

            look(n, "", lambda k: 4 * (2500 - k))
            check_those(1000)
            equal(os.stat(top + "8,:.npy").st_ino, old[8], "what is known")
            os.close(known)
            if forget(m.path):
                look(66000, "0", lambda k: 0)
                forget(m.path)
                # Each look keeps one; the others go when the kernel says so.
                rest = iter(old.items())

                def is_new():
                    k, was = next(rest)
                    return os.stat(top + "%d,:.npy" % k).st_ino != was
                # Waits for the kernel, however long it takes; `old` has more names
                # than there are looks.
                check(wait_until(is_new, 60, 0.7), "they are there still")
                check_those(999)
        equal(np.load(m.path + "/a/array.npy").tobytes(), a.tobytes(), "the rest")


# --- pictures -------------------------------------------------------------------

def shown(path):
    with Image.open(path) as im:
        return np.array(im)


@case
def tiff_of_every_type():
    types = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8",
             ">u2", ">f4"]
    data = {np.dtype(t).str[1:] + "_big" * (t[0] == ">"): numbers(t, (3, 17, 23))
            for t in types}
    data["rgb2"] = numbers("u2", (2, 9, 11, 3))
    path = h5("tiff.h5", **data)
    for order in ("little", "source"):
        with Mount(path, opts=["--dtype-order=" + order]) as m:
            for k, want in data.items():
                files = sorted(glob.glob("%s/%s/tiff/*" % (m.path, k)))
                equal(len(files), len(want), k)
                for f, w in zip(files, want):
                    got = tifffile.imread(f)
                    check((got == w.astype(w.dtype.newbyteorder("="))).all(), f)
    with Mount(path) as m:
        for k in ("u1", "u2", "i2", "i4", "f4"):  # what PIL has a mode for
            got = shown("%s/%s/tiff/000001.tif" % (m.path, k))
            check((got == data[k][1]).all(), "PIL: " + k)
        for k in ("i2", "i4", "f4"):
            got = shown("%s/%s/images/000001.tif" % (m.path, k))
            check((got == data[k][1]).all(), "PIL: images " + k)


@case
def pictures_of_gigabytes():
    """Lengths of more than 31 bits; none where 32 are not enough."""
    shapes = {"f8": (2, 20000, 25000), "u1": (2, 60000, 70000), "i2": (2, 40000, 50000),
              "u4": (2, 33000, 33000)}
    path = h5("gigabytes.h5", **{k: {"shape": s, "dtype": k, "chunks": (1, 100, s[2])}
                                 for k, s in shapes.items()})
    tail = np.arange(1, 11)
    with h5py.File(path, "r+") as f:
        for k, s in shapes.items():
            f[k][1, -1, -10:] = tail
    with Mount(path) as m:
        for k, s in shapes.items():
            f = "%s/%s/tiff/000001.tif" % (m.path, k)
            size = s[1] * s[2] * np.dtype(k).itemsize
            if size >= 1 << 32:
                absent(f)
                continue
            with open(f, "rb") as g:
                head = g.read(256)
                g.seek(-10 * np.dtype(k).itemsize, 2)
                check((np.frombuffer(g.read(), k) == tail).all(), k)
            equal(os.stat(f).st_size, 256 + size, k)
            tags = {t: v for t, _, _, v in struct.iter_unpack(
                "<HHII", head[10:10 + 12 * head[8]])}
            equal((tags[256], tags[257], tags[273], tags[279]),
                  (s[2], s[1], 256, size), k)


@case
def images_of_bytes():
    data = {"grey": numbers("u1", (12, 5, 7)), "rgb": numbers("u1", (4, 6, 8, 3)),
            "mask": numbers("?", (3, 5, 9)), "depth": numbers("u2", (2, 5, 9))}
    path = h5("images.h5", **data)
    suffixes = {"grey": ".pgm", "rgb": ".ppm", "mask": ".pgm", "depth": ".pgm"}
    with Mount(path) as m:
        for k, want in data.items():
            top = "%s/%s/images" % (m.path, k)
            equal(os.listdir(top), ["%06d%s" % (i, suffixes[k])
                                    for i in range(len(want))], k)
            for i, w in enumerate(want):
                got = shown("%s/%06d%s" % (top, i, suffixes[k]))
                got = got > 0 if k == "mask" else got
                check((got == w).all(), "%s %d" % (k, i))
        absent(m.path + "/grey/images/000000.ppm")
    with Mount(path, opts=["--sample-axes=2"]) as m:
        # One axis is left, or two that are no picture's.
        absent(m.path + "/grey/images")
        check(shown(m.path + "/rgb/images/000001/000002.pgm").shape == (8, 3),
              "three columns")


@case
def images_of_sixteen_bits():
    """The other way round than they are stored, wherever a window begins."""
    data = {"le": numbers("<u2", (3, 31, 67)), "be": numbers(">u2", (3, 31, 67)),
            "rgb": numbers("<u2", (2, 9, 11, 3)),
            "chunks": {"data": numbers("<u2", (3, 64, 64)), "chunks": (2, 9, 13),
                       "compression": "gzip", "shuffle": True},
            "tail": {"shape": (2, 300, 500), "dtype": "<u2", "chunks": (1, 300, 500),
                     "fillvalue": 0x1234}}
    path = h5("sixteen.h5", **data)
    with h5py.File(path) as f:
        want = {k: f[k][:].astype(">u2") for k in data}
    for order in ("little", "source"):
        with Mount(path, opts=["--dtype-order=" + order]) as m:
            for k, all_ in want.items():
                for i, w in enumerate(all_):
                    size = "%d %d" % (w.shape[1], w.shape[0])
                    whole = ("P%d\n%s\n65535\n" % (6 if k == "rgb" else 5,
                                                   size)).encode() + w.tobytes()
                    f = "%s/%s/images/%06d.%s" % (m.path, k, i,
                                                  "ppm" if k == "rgb" else "pgm")
                    equal(os.stat(f).st_size, len(whole), "size")
                    check(read(f) == whole, f)
                    if k != "rgb":
                        check((shown(f) == w).all(), "PIL: " + f)
                        got = np.load("%s/%s/samples/%06d.npy" % (m.path, k, i))
                        check((got == w).all(), "the sample itself")
                    fd = os.open(f, os.O_RDONLY | os.O_DIRECT)
                    for n in range(40):  # not aligned to anything
                        at = int(rng.integers(0, len(whole)))
                        got = os.pread(fd, int(rng.integers(1, 900)), at)
                        check(got and whole[at:at + len(got)] == got,
                              "%s at %d" % (f, at))
                    os.close(fd)


@case
def frames_of_a_scan():
    """4D-STEM: two axes of positions, two of the detector."""
    data = numbers("u2", (4, 5, 16, 12))
    path = h5("scan.h5", scan={"data": data, "chunks": (1, 5, 16, 12),
                               "compression": "lzf"})
    with Mount(path, opts=["--sample-axes=2"]) as m:
        for y in range(4):
            for x in range(5):
                got = shown("%s/scan/images/%06d/%06d.pgm" % (m.path, y, x))
                check((got == data[y, x]).all(), "frame %d, %d" % (y, x))


@case
def no_pictures():
    path = h5("none.h5", line=numbers("u1", (5, 9)), c=numbers("c8", (3, 4, 5)),
              four=numbers("u1", (2, 3, 4, 5)), flat=np.zeros((3, 0, 5), "u1"))
    with Mount(path) as m:
        for k in ("line", "c", "four", "flat"):
            for view in ("images", "tiff"):
                absent("%s/%s/%s" % (m.path, k, view))


work = lib.setup()
lib.main()
