#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""array.h5 of arrays that are in no HDF5 file (.npy, .npz, Zarr), read by h5py."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import zarr
from checks import Failure, check, equal, read
from h5lib import PAGE, h5dump, left_out, same
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(21)
TYPES = ["?", "i1", "u1", "<i2", ">u2", "<i4", ">i8", "u8", "f2", ">f4", "f8", "g", "c8",
         ">c16", "S3", "V5", [("a", ">i4"), ("b", "<f8", (2, 3)), ("c", [("x", "?"), ("y", "S2")])],
         {"names": ["p", "q"], "formats": ["u1", "<i4"], "offsets": [0, 4], "itemsize": 12}]


def path(name):
    return os.path.join(work, name)


def numbers(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.names:
        a = np.zeros(shape, dtype)
        for n in dtype.names:
            a[n] = numbers(dtype[n].base, a[n].shape)
        return a
    if dtype.kind in "SV":
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize).replace(b"\0", b"1"),
                             dtype).reshape(shape)
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


@case
def types_and_shapes():
    arrays = {"t%02d_%d" % (i, k): numbers(t, shape) for i, t in enumerate(TYPES)
              for k, shape in enumerate([(3, 4), (), (0, 2)])}
    np.savez(path("all.npz"), **arrays)
    with Mount(path("all.npz")) as m:
        for k, a in arrays.items():
            name = "%s/%s/array.h5" % (m.path, k)
            with h5py.File(name) as f:
                same(f[k][()], a, k)
                equal(f[k].dtype.kind, a.dtype.kind, k)
                off = f[k].id.get_offset()
            equal(os.stat(name).st_size, len(read(name)), k + ": size")
            if a.size:
                equal(off % PAGE, 0, k + ": place")
                equal(read(name)[off:], read("%s/%s/array.bin" % (m.path, k)), k + ": bytes")
        p = exits(tensorfs("cat", path("all.npz") + ":t05_0/array.h5", text=False), 0, "cat")
        equal(p.stdout, read(m.path + "/t05_0/array.h5"), "cat")
        check("H5T_STD_I32LE" in h5dump(m.path + "/t05_0/array.h5"), "h5dump")
    np.save(path("big.npy"), arrays["t04_0"])
    with Mount(path("big.npy"), opts=["--dtype-order=source"]) as m:
        with h5py.File(m.path + "/data/array.h5") as f:
            equal(f["data"].dtype, np.dtype(">u2"), "order of the source")
            same(f["data"][:], arrays["t04_0"], "order of the source")


@case
def fields():
    a = numbers(TYPES[-2], (5,))
    np.save(path("fields.npy"), a)
    with Mount(path("fields.npy")) as m:
        with h5py.File(m.path + "/data/fields/b/array.h5") as f:
            same(f["data/fields/b"][:], a["b"], "a field")


@case
def attributes():
    g = zarr.open_group(path("a.zarr"), "w")
    z = g.create_group("a/b").array("c", numbers("f8", (10, 100)), chunks=(3, 7))
    z.attrs.put(dict(s="é", i=3, x=1.5, b=True, l=[1, 2], lf=[1, 2.5], ls=["x", "yy"], o={"a": 1},
                     n=None, e=[], mix=[1, "a"], big=2**63 - 1, nest=[[1]], lb=[True, False],
                     many=list(range(20000)), nul="a\0b"))
    with Mount(path("a.zarr")) as m:
        name = m.path + "/a/b/c/array.h5"
        with h5py.File(name) as f:
            same(f["a/b/c"][:], z[:], "values")
            got = dict(f["a/b/c"].attrs)
            equal({k: v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v
                   for k, v in got.items()},
                  dict(s="é", i=3, x=1.5, b=True, l=[1, 2], lf=[1, 2.5], ls=["x", "yy"],
                       big=2**63 - 1, lb=[True, False], many=list(range(20000))), "attributes")
            equal(got["b"].dtype, np.dtype("?"), "a boolean")
        out = left_out(name).splitlines()
        equal(sorted(x.split()[2].rstrip(":") for x in out), ["e", "mix", "n", "nest", "nul", "o"],
              "left out")


@case
def a_part_is_cut():
    top = path("parts")
    os.mkdir(top)
    parts = [numbers("i4", (3, 4)) for _ in range(4)]
    for i, a in enumerate(parts):
        np.save("%s/p-%d.npy" % (top, i), a)
    with Mount(top, opts=["--concat=0"]) as m:
        os.truncate(top + "/p-3.npy", 140)
        with h5py.File(m.path + "/data/array.h5") as f:
            try:
                raise Failure("what is missing: %r" % f["data"][9:])
            except OSError:
                pass
    np.save(top + "/p-3.npy", parts[3])
    with Mount(top, opts=["--concat=0"]) as m, h5py.File(m.path + "/data/array.h5") as f:
        same(f["data"][:], np.concatenate(parts), "parts")


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
