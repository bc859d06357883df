#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""xarray over .zarr with its defaults: zeros stay zeros, types stay types, and what was
never written is what it calls missing."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
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


work = lib.setup()
lib.main()
