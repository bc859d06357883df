#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Listing zarr/ of grids with billions of places: what is there, at once; or an error that
says why not."""
import errno
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import zarr
from checks import check, equal, fails_with, read
from lib import Mount, case

work = None
SIDE = 60000


def path_of(name):
    return os.path.join(work, name)


def places(at):
    return sorted(n for n in os.listdir(at) if not n.startswith("."))


@case
def few_of_billions():
    path = path_of("few.h5")
    put = {(5, 7): 1, (10, 10): 2, (9, 59999): 3, (59999, 12): 4}
    with h5py.File(path, "w") as f:
        for name, kw in (("plain", {}), ("gzip", {"compression": "gzip"}),
                         ("grows", {"maxshape": (None, SIDE)})):
            d = f.create_dataset(name, (SIDE, SIDE), "i2", chunks=(1, 1), fillvalue=9, **kw)
            for k, v in put.items():
                d[k] = v
        f.create_dataset("none", (SIDE, SIDE), "i2", chunks=(1, 1))
    names = sorted("%d.%d" % k for k in put)
    with Mount(path) as m:
        for name in "plain", "gzip", "grows", "none":
            for at in name + "/zarr", ".zarr/" + name:
                at = os.path.join(m.path, at)
                equal(places(at), [] if name == "none" else names, at)
                z = zarr.open(at, "r")
                for k, v in put.items():
                    equal(z[k], 0 if name == "none" else v, "%s %s" % (at, k))
                equal(z[3, 3], 0 if name == "none" else 9, at)


@case
def index_that_does_not_tell():
    """One in ten places has a chunk: no list of them is made."""
    path, n = path_of("many.h5"), 1 << 16
    with h5py.File(path, "w", libver="latest") as f:
        d = f.create_dataset("a", (20, n), "u1", chunks=(1, 1), fillvalue=9)
        for i in range(2 * n):
            d.id.write_direct_chunk(divmod(i, n), b"x")
    with Mount(path) as m:
        at = os.path.join(m.path, "a/zarr")
        got = []

        def listing():
            with os.scandir(at) as it:
                for e in it:
                    got.append(e.name)
        fails_with((errno.ENOTSUP,), listing, "a listing")
        check(".zarray" in got and len(got) > 1000, "names: %d" % len(got))
        check("in a row" in os.getxattr(at, "user.tensorfs.error").decode(), "why")
        equal(read(at + "/1.17"), b"x", "by name")
        equal(zarr.open(at, "r")[:4, 7].tolist(), [120, 120, 9, 9], "zarr")


work = lib.setup()
lib.main()
