#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""xarray over .zarr with its defaults: zeros stay zeros, types stay types, and what was
never written is what it calls missing."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import netCDF4
import numpy as np
import xarray
import zarr
from checks import check, equal
from lib import Mount, case

work = None
rng = np.random.default_rng(14)


def path_of(name):
    return os.path.join(work, name)


def some(dtype, shape=(12, 10)):
    """Many zeros among them."""
    return rng.integers(0, 3, shape).astype(dtype)


def same(got, want, what):
    got, want = np.asarray(got), np.asarray(want)
    equal((got.dtype, got.shape), (want.dtype, want.shape), what)
    check(got.tobytes() == want.tobytes(), what + ": other values")


LAYOUTS = {"contiguous": {}, "chunked": {"chunks": (5, 4)}, "one": {"chunks": (12, 10)},
           "gzip": {"chunks": (5, 4), "compression": "gzip", "shuffle": True},
           "lzf": {"chunks": (5, 4), "compression": "lzf"},
           "sum": {"chunks": (4, 10), "fletcher32": True}}


@case
def zeros_stay_zeros():
    path, want = path_of("zeros.h5"), {}
    with h5py.File(path, "w") as f:
        for i, (name, kw) in enumerate(LAYOUTS.items()):
            for t in "i4", "u1", "f8":
                want[name + t] = some(t)
                f.create_dataset(name + t, data=want[name + t], **kw)
        layout = h5py.VirtualLayout((24, 10), "i4")
        for k in range(2):
            layout[12 * k:12 * k + 12] = h5py.VirtualSource(path, "chunkedi4", (12, 10))
        f.create_virtual_dataset("virtual", layout)
    want["virtual"] = np.concatenate([want["chunkedi4"]] * 2)
    with Mount(path) as m:
        for kw in {}, {"consolidated": False}:
            x = xarray.open_zarr(m / ".zarr", **kw)
            equal(sorted(x), sorted(want), "variables")
            for name in want:
                same(x[name].values, want[name], name)
                check("_FillValue" not in x[name].encoding, name + ": a fill value")
        for name in want:
            z = zarr.open(os.path.join(m.path, name, "zarr"), "r")
            check(z.fill_value is None, name + ": fill value")
            same(z[...], want[name], name)


@case
def holes_are_missing():
    path = path_of("holes.h5")
    a = some("f4") + 1
    with h5py.File(path, "w") as f:
        for name, kw in LAYOUTS.items():
            if name in ("contiguous", "one"):
                continue
            d = f.create_dataset(name, a.shape, "f4", fillvalue=-1, **kw)
            d[:4] = a[:4]
        f.create_dataset("never", a.shape, "f4", fillvalue=-2)
    with Mount(path) as m:
        x = xarray.open_zarr(m / ".zarr")
        raw = xarray.open_zarr(m / ".zarr", mask_and_scale=False)
        with h5py.File(path) as f:
            for name in f:
                same(raw[name].values, f[name][...], name)
                got, want = x[name].values, f[name][...].copy()
                want[want == f[name].fillvalue] = np.nan
                np.testing.assert_array_equal(got, want, name)
                equal(zarr.open(os.path.join(m.path, name, "zarr"), "r").fill_value,
                      f[name].fillvalue, name)


@case
def missing_value_of_the_file():
    """What an attribute says is said by it alone."""
    path = path_of("attr.h5")
    a = some("i2")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("a", data=a, chunks=(5, 4))
        d.attrs["_FillValue"] = np.int16(2)
    with Mount(path) as m:
        want = np.where(a == 2, np.nan, a).astype("f4")
        got = xarray.open_zarr(m / ".zarr")["a"].values
        np.testing.assert_array_equal(got.astype("f4"), want)


@case
def of_other_stores():
    a = some("i4")
    np.save(path_of("x.npy"), a)
    with Mount(path_of("x.npy")) as m:
        z = os.path.join(m.path, "data", "zarr")
        same(zarr.open(z, "r")[...], a, "npy")
        check(zarr.open(z, "r").fill_value is None, "npy: fill value")
    p = path_of("in.zarr")
    g = zarr.open_group(p, mode="w")
    g.create_dataset("full", data=a, chunks=(5, 4), fill_value=0)
    z = g.create_dataset("holes", shape=a.shape, chunks=(5, 4), dtype="i4", fill_value=0)
    z[:5] = a[:5]
    with Mount(p) as m:
        x = xarray.open_zarr(m / ".zarr")
        for name in "full", "holes":
            same(x[name].values, g[name][...], name)


# --- dimensions without limit ----------------------------------------------------

def netcdf(path):
    """Variables of other lengths than the dimensions that they share."""
    with netCDF4.Dataset(path, "w") as d:
        d.createDimension("time")
        d.createDimension("obs")
        d.createDimension("late")
        d.createDimension("x", 4)
        g = d.createGroup("g")

        def var(group, name, dims, part, dtype="f4", **kw):
            v = group.createVariable(name, dtype, dims, **kw)
            v[tuple(slice(0, n) for n in part)] = some(dtype, part)

        var(d, "a", ("time", "x"), (5, 4))
        var(d, "b", ("time",), (3,), fill_value=-9.)
        var(d, "time", ("time",), (4,), "i4")
        var(d, "rows", ("time", "x"), (2, 4), "i2", chunksizes=(2, 3), zlib=True)
        var(d, "inner", ("x", "obs"), (4, 3), "f8", chunksizes=(3, 5))
        var(d, "longer", ("obs", "x"), (13, 4), "u1", chunksizes=(4, 4), zlib=True)
        var(d, "both", ("time", "obs"), (1, 2), chunksizes=(2, 2), fill_value=5.)
        var(d, "none", ("late", "x"), (0, 4), "i4")
        var(g, "deep", ("time",), (7,), ">i8")
        var(g, "alone", ("late",), (2,))


# Of these netCDF-C 4.9.0 puts stored values in the places of others: it takes what it
# has read of a variable that is short along an axis behind the first for its leading
# rows.
MISPLACED = {"inner", "both"}


def same_variables(got, want, what, f):
    equal(sorted(got.variables), sorted(want.variables), what + ": variables")
    for name in want.variables:
        a, b = got[name], want[name]
        equal((a.dims, a.shape), (b.dims, b.shape), what + ": " + name)
        values = b.values
        if name in MISPLACED:
            d = f[name]
            values = np.pad(d[...], [(0, n - k) for n, k in zip(b.shape, d.shape)],
                            constant_values=d.fillvalue)
            if "_FillValue" in d.attrs:
                values[values == d.attrs["_FillValue"]] = np.nan
        np.testing.assert_array_equal(a.values, values, what + ": " + name)


@case
def unlimited_dimensions():
    """What xarray shows of the file by netCDF-C, it shows of its Zarr view."""
    path = path_of("unlimited.nc")
    netcdf(path)
    with Mount(path) as m:
        with h5py.File(path) as f:
            for kw in {}, {"consolidated": False}:
                for group in None, "g":
                    got = xarray.open_zarr(m / ".zarr", group=group, decode_times=False,
                                           **kw)
                    with xarray.open_dataset(path, group=group,
                                             decode_times=False) as x:
                        same_variables(got, x, "group %s" % group, f)
            for name in "rows", "inner", "both", "g/deep":
                same(np.load(m.path + "/%s/array.npy" % name),
                     f[name][...].astype(f[name].dtype.newbyteorder("<")), name)
        with open(m.path + "/both/zarr3/zarr.json") as f:
            equal(json.load(f)["shape"], [7, 13], "zarr3: shape")
        names = [n for n in os.listdir(m.path + "/rows/zarr") if n[0] != "."]
        equal(sorted(names), ["%d.%d" % (i, k) for i in range(4) for k in range(2)],
              "chunks of rows")


@case
def unlimited_by_h5py():
    """The same of scales that are not netCDF's, with zeros as fill value, and where
    chunks were never written (a fill value is then named, for these, too)."""
    path = path_of("scales.h5")
    want = {}
    with h5py.File(path, "w") as f:
        f["t"] = np.zeros(0, "f8")
        del f["t"]
        f.create_dataset("t", data=np.arange(3.), maxshape=(None,), chunks=(2,))
        f["t"].make_scale("t")
        for name, n, chunk, kw in (("a", 9, 4, {}),
                                   ("b", 5, 2, {"compression": "gzip"}),
                                   ("c", 4, 4, {"compression": "gzip"}),
                                   ("d", 6, 4, {"compression": "lzf"}),
                                   ("holes", 6, 2, {"fillvalue": 7})):
            d = f.create_dataset(name, (n,), "i4", maxshape=(None,), chunks=(chunk,),
                                 **kw)
            d.dims[0].attach_scale(f["t"])
            part = slice(2) if name == "holes" else slice(None)
            d[part] = some("i4", (n,))[part]
            want[name] = np.pad(d[...], (0, 9 - n), constant_values=d.fillvalue)
        f.create_dataset("apart", data=some("i4", (2,)), maxshape=(None,))
        want["apart"] = f["apart"][...]
        want["t"] = np.pad(f["t"][...], (0, 6))
    with Mount(path) as m:
        x = xarray.open_zarr(m / ".zarr", mask_and_scale=False)
        equal(sorted(x.variables), sorted(want), "variables")
        for name in want:
            same(x[name].values, want[name], name)
            z = zarr.open(os.path.join(m.path, name, "zarr"), "r")
            equal(z.fill_value, 7 if name == "holes" else None, name + ": fill value")


@case
def unlimited_and_vast():
    """A dimension so long that its chunks have no numbers: what is stored stays."""
    path = path_of("vast.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("t", (1 << 45,), "f8", maxshape=(None,), chunks=(1024,))
        f["t"].make_scale("t")
        for name, kw in ("a", {}), ("b", {"compression": "gzip"}):
            d = f.create_dataset(name, data=some("i4", (10, 3)), maxshape=(None, 3),
                                 chunks=(4, 3), **kw)
            d.dims[0].attach_scale(f["t"])
        want = {n: f[n][...] for n in "ab"}
    with Mount(path) as m:
        for name in want:
            z = zarr.open(os.path.join(m.path, name, "zarr"), "r")
            same(z[...], want[name], name)
            names = [n for n in os.listdir(m.path + "/%s/zarr" % name) if n[0] != "."]
            equal(sorted(names), ["0.0", "1.0", "2.0"], name + ": chunks")


work = lib.setup()
lib.main()
