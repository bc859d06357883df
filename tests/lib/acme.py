# SPDX-License-Identifier: BSD-2-Clause
"""Writes what the ParallelMap engine of ACME writes, in each of its modes.

    DIR/FUNC.h5                       the main container
    DIR/FUNC_payload/FUNC_<i>.h5      one file per computation, i not padded

External links in the main container are relative; the sources of its virtual
data sets are absolute, so HDF5 reads zeros once DIR has moved.
"""
import os
import pickle

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

N = 12                   # computations: 10 and 11 sort before 2 as strings
INF = h5s.UNLIMITED


class Run:
    """A directory that ACME left behind."""

    def __init__(self, directory, func, n=N, failed=()):
        self.dir, self.func, self.n = directory, func, n
        self.failed = set(failed)
        self.main = os.path.join(directory, func + ".h5")
        self.payload_dir = os.path.join(directory, func + "_payload")
        os.makedirs(directory)

    def base(self, i):
        return "%s_%d.h5" % (self.func, i)

    def relative(self, i):
        return "%s_payload/%s" % (self.func, self.base(i))

    def path(self, i):
        return os.path.abspath(os.path.join(self.payload_dir, self.base(i)))

    def write_payload(self, results):
        """results(i): the tuple of values that computation i returned."""
        os.makedirs(self.payload_dir)
        for i in set(range(self.n)) - self.failed:
            with h5py.File(self.path(i), "w") as f:
                store(f, results(i))


def store(group, values):
    """result_0, result_1, ...: contiguous, scalars with scalar spaces."""
    for k, v in enumerate(values):
        if isinstance(v, str):
            group.create_dataset("result_%d" % k, (1,),
                                 h5py.string_dtype("utf-8"), data=[v])
        else:
            group.create_dataset("result_%d" % k, data=v)


def noise(i, shape, seed=3):
    return np.random.default_rng(1000 * seed + i).normal(size=shape) + i


def lengths(i):
    """Unequal: the longest wins, the rest of a row is fill."""
    return 20 + (i * 7) % 5


def _linked(r, results):
    r.write_payload(results)
    with h5py.File(r.main, "w") as f:
        for i in range(r.n):
            f["comp_%d" % i] = h5py.ExternalLink(r.relative(i), "/")


def default(r):
    """Arrays, and a scalar inside the tuple."""
    _linked(r, lambda i: (noise(i, (5, 4)), np.arange(i + 1), float(i) / 3))


def scalars(r):
    """Only scalars returned: one vector."""
    _linked(r, lambda i: (np.array([i, i * i, -i], float),))


def one_scalar(r):
    _linked(r, lambda i: (np.array([i * 2.5]),))


def strings(r):
    _linked(r, lambda i: ("subject %d: \u00fcber" % i,))


def single_file(r):
    with h5py.File(r.main, "w") as f:
        for i in range(r.n):
            store(f.create_group("comp_%d" % i), (noise(i, (3, 4)), i))


def _virtual(r, f, dims, maxdims, dtype, at):
    """result_0 with mapping i as at(i) says: two (space, hyperslab) pairs."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    for i in range(r.n):
        vstart, vcount, vblock, sdims, smax, scount, sblock = at(i)
        v = h5s.create_simple(dims, maxdims)
        v.select_hyperslab(vstart, vcount, block=vblock)
        s = h5s.create_simple(sdims, smax)
        s.select_hyperslab((0,) * len(sdims), scount, block=sblock)
        dcpl.set_virtual(v, r.path(i).encode(), b"result_0", s)
    h5d.create(f.id, b"result_0", h5t.py_create(np.dtype(dtype)),
               h5s.create_simple(dims, maxdims), dcpl)


def _block_at(axis, block, sub):
    """Mapping i covers index i of an axis that the sources do not have."""
    def at(i):
        start = [0] * len(block)
        start[axis] = i
        one = (1,) * len(block)
        return (tuple(start), one, block, sub, sub, (1,) * len(sub), sub)
    return at


def _shaped(r, dtype="f8", sub=(4, 6), axis=0, results=None):
    """result_shape with None at `axis`."""
    r.write_payload(results or (lambda i: (noise(i, sub),)))
    block = sub[:axis] + (1,) + sub[axis:]
    dims = sub[:axis] + (r.n,) + sub[axis:]
    with h5py.File(r.main, "w", libver="latest") as f:
        _virtual(r, f, dims, dims, dtype, _block_at(axis, block, sub))
        if results is None or len(results(0)) == 1:
            return
        for i in range(r.n):   # the other returned values
            g = f.create_group("comp_%d" % i)
            for k in range(1, len(results(i))):
                g["result_%d" % k] = h5py.ExternalLink(r.relative(i),
                                                       "result_%d" % k)


def result_shape(r):
    _shaped(r)


def result_shape_inside(r):
    """result_shape=(2, None, 5): None is not the first axis."""
    _shaped(r, sub=(2, 5), axis=1)


def result_shape_last(r):
    _shaped(r, sub=(7,), axis=1)


def result_dtype_f4(r):
    _shaped(r, dtype="f4")


def result_dtype_f2(r):
    _shaped(r, dtype="f2")


def result_dtype_i2(r):
    """Out of range values are clipped, not wrapped."""
    def values(i):
        a = noise(i, (4, 6)) * 10
        a.flat[:6] = 1e6, -1e6, 32767.9, -32768.9, 0.5, -1.5
        return (a,)
    _shaped(r, dtype="i2", results=values)


def multi_return(r):
    _shaped(r, results=lambda i: (noise(i, (4, 6)), np.arange(3 * i + 1),
                                  "note %d" % i))


def unlimited(r):
    """result_shape=(None, inf): stored extent (n, 1)."""
    r.write_payload(lambda i: (noise(i, (lengths(i),)),))

    def at(i):
        return ((i, 0), (1, INF), (1, 1), (1,), (INF,), (INF,), (1,))
    with h5py.File(r.main, "w", libver="latest") as f:
        _virtual(r, f, (r.n, 1), (r.n, INF), "f8", at)


def single_file_shape(r):
    """Contiguous result_0, extra values in comp_N."""
    with h5py.File(r.main, "w") as f:
        d = f.create_dataset("result_0", (r.n, 4, 6), "f8")
        for i in range(r.n):
            d[i] = noise(i, (4, 6))
            f.create_group("comp_%d" % i)["result_1"] = np.arange(i + 2)


def single_file_inf(r):
    """One chunk per column."""
    with h5py.File(r.main, "w") as f:
        d = f.create_dataset("result_0", (r.n, 300), "f8", chunks=(r.n, 1),
                             maxshape=(r.n, None))
        for i in range(r.n):
            d[i] = noise(i, (300,))


MODES = {f.__name__: f for f in (
    default, scalars, one_scalar, strings, single_file, result_shape,
    result_shape_inside, result_shape_last, result_dtype_f4, result_dtype_f2,
    result_dtype_i2, multi_return, unlimited, single_file_shape,
    single_file_inf)}

WITHOUT_PAYLOAD = {"single_file", "single_file_shape", "single_file_inf"}


def write(directory, mode, n=N, failed=()):
    """failed: computations that raised, whose files are absent."""
    r = Run(directory, "myfunc", n, failed)
    MODES[mode](r)
    return r


def write_pickle(directory, n=N):
    """write_pickle=True: no HDF5 at all."""
    os.makedirs(directory)
    for i in range(n):
        with open(os.path.join(directory, "myfunc_%d.pickle" % i), "wb") as f:
            pickle.dump({"i": i, "f": [None, 1.5]}, f)


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as tmp:
        for name in MODES:
            r = write(os.path.join(tmp, name), name)
            with h5py.File(r.main, "r") as f:
                print("%-20s %s" % (name, f.get("result_0") or list(f)[:3]))
        a = write(os.path.join(tmp, "moved-from"), "unlimited")
        os.rename(a.dir, os.path.join(tmp, "moved-to"))
        with h5py.File(os.path.join(tmp, "moved-to/myfunc.h5"), "r") as f:
            assert f["result_0"].shape == (N, 0), f["result_0"]
