# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of create and write share: a distributed tensor as skerch makes it.

skerch_create follows skerch/hdf5.py 1.2.0 (DistributedHDF5Tensor.create) call by call;
only the times in object headers are left out, so that bytes can be compared.
"""
import os
import subprocess

import h5py
import numpy as np

from checks import Failure, check, equal

STRINGS = h5py.string_dtype()


def skerch_create(fmt, shape, block, dtype, compression="lzf", chunks=None):
    rows = shape[0]
    wide = len(str(rows)) + 1
    data = h5py.VirtualLayout(shape=shape, dtype=dtype)
    flags = h5py.VirtualLayout(shape=(rows,), dtype=STRINGS)
    parts = []
    for b in range(0, rows, block):
        e = min(b + block, rows)
        parts.append((b, e, fmt.format("%0*d-%0*d" % (wide, b, wide, e))))
        name = os.path.basename(parts[-1][2])
        data[b:e] = h5py.VirtualSource(name, "data",
                                       shape=(e - b,) + shape[1:])
        flags[b:e] = h5py.VirtualSource(name, "flags", shape=(e - b,))
    with h5py.File(fmt.format("ALL"), "w") as f:
        for name, layout in (("data", data), ("flags", flags)):
            dcpl = layout.dcpl
            dcpl.set_obj_track_times(False)
            tid = h5py.h5t.py_create(layout.dtype, logical=True)
            sid = h5py.h5s.create_simple(layout.shape)
            h5py.h5d.create(f.id, name.encode(), tid, sid, dcpl)
    for b, e, path in parts:
        sub = (e - b,) + shape[1:]
        cut = tuple(min(c, n) for c, n in zip(chunks, sub)) if chunks else sub
        with h5py.File(path, "w") as f:
            f.create_dataset("data", shape=sub, maxshape=sub, dtype=dtype,
                             compression=compression, chunks=cut)
            f.create_dataset("flags", shape=(e - b,), maxshape=(e - b,),
                             compression=compression, dtype=STRINGS,
                             chunks=(e - b,))
            f["flags"][:] = "initialized"
    return parts


def h5dump(path):
    """Everything but the values; the name of the file is left out."""
    p = subprocess.run(["h5dump", "-H", "-p", os.path.basename(path)],
                       cwd=os.path.dirname(path), stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if p.returncode:
        raise Failure("h5dump %s: %s" % (path, p.stderr.decode()))
    return p.stdout.decode()


def same_dump(got, want, what):
    a, b = h5dump(got), h5dump(want)
    for x, y in zip(a.splitlines(), b.splitlines()):
        equal(x, y, what)
    equal(len(a), len(b), what + ": h5dump")


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


def all_bytes(d):
    return {n: bytes_of(os.path.join(d, n)) for n in sorted(os.listdir(d))}


def contents(path, data="data", flags="flags"):
    """What h5py reads: an array and a list of str."""
    with h5py.File(path, "r") as f:
        return f[data][...], [x.decode() for x in f[flags][...]]


def same_tensor(path, data, flags, what):
    got, words = contents(path)
    check(got.dtype == data.dtype, "%s: dtype %s" % (what, got.dtype))
    check(got.tobytes() == np.ascontiguousarray(data).tobytes(),
          what + ": other data")
    equal(words, list(flags), what + ": flags")
