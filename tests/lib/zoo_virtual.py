# SPDX-License-Identifier: BSD-2-Clause
"""Virtual datasets: every mapping that the format has.

Where all sources are there, h5py reading from an unrelated directory is the
oracle, checked against the values of the table.  Where a source is missing or
wrong, HDF5 reads fill values; there the values are computed here, and the
elements that must not be readable are marked.
"""
import os

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

import lib
from expect import Want, ZooFile, boxes_of
from zoo import numbers
from zoo_types import custom_float

ENODATA, EIO = 61, 5
UNLIMITED = h5s.UNLIMITED


def src(n, shape, t="<f4"):
    return numbers(shape, t, n)


class Sources:
    """Source files, made on first use."""

    def __init__(self, top):
        self.top = top

    def __call__(self, name, dataset, v, **kw):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with h5py.File(path, "a") as f:
            if dataset not in f:
                f.create_dataset(dataset, data=v, **kw)
        return v


def space(shape, maxshape=None, sel=None):
    """A dataspace with (start, count, stride, block) selected, or all."""
    s = h5s.create_simple(shape, maxshape or shape)
    if sel is not None:
        start, count, stride, block = sel
        s.select_hyperslab(start, count, stride, block)
    return s


def whole(shape):
    return tuple([0] * len(shape)), (1,) * len(shape), None, tuple(shape)


def box(start, shape):
    return tuple(start), (1,) * len(shape), None, tuple(shape)


def virtual(f, name, shape, t, maps, fill=None, maxshape=None):
    """maps: (selection, file, dataset, shape of the source, its selection)."""
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_layout(h5d.VIRTUAL)
    if fill is not None:
        p.set_fill_value(np.asarray(fill, t))
    for sel, file, dset, sshape, ssel in maps:
        smax = tuple(UNLIMITED if n is None else n for n in sshape)
        sshape = tuple(1 if n is None else n for n in sshape)
        p.set_virtual(space(shape, maxshape, sel), file.encode(),
                      dset.encode(), space(sshape, smax, ssel))
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    h5d.create(f.id, name.encode(), h5t.py_create(np.dtype(t)),
               space(shape, maxshape), p, lcpl)


def blocks_along(f, s, z):
    """Blocks along axis 0, axis 1, and a grid of both."""
    a = [s("a%d.h5" % i, "d", src(i, (3 if i < 3 else 2, 5)))
         for i in range(4)]
    rows = [(0, 3), (3, 6), (6, 9), (9, 11)]
    virtual(f, "axis0", (11, 5), "<f4", [
        (box((b, 0), (e - b, 5)), "a%d.h5" % i, "d", (e - b, 5), None)
        for i, (b, e) in enumerate(rows)])
    z["axis0"] = Want(value=np.concatenate(a), parts=boxes_of(*[
        (r, (0, 5)) for r in rows]))
    virtual(f, "axis0_shuffled", (11, 5), "<f4", [
        (box((rows[i][0], 0), (rows[i][1] - rows[i][0], 5)), "a%d.h5" % i,
         "d", a[i].shape, None) for i in (2, 0, 3, 1)])
    z["axis0_shuffled"] = Want(value=np.concatenate(a), parts=boxes_of(*[
        (r, (0, 5)) for r in rows]))
    b = [s("b.h5", "col%d" % i, src(10 + i, (4, 2 + i), "<i4"),
           chunks=(3, 2), compression="gzip") for i in range(3)]
    cols = [(0, 2), (2, 5), (5, 9)]
    virtual(f, "axis1", (4, 9), "<i4", [
        (box((0, x), (4, y - x)), "b.h5", "col%d" % i, (4, y - x), None)
        for i, (x, y) in enumerate(cols)])
    z["axis1"] = Want(value=np.concatenate(b, 1), parts=boxes_of(*[
        ((0, 4), c) for c in cols]))
    v = np.zeros((7, 9), "<i2")
    maps, parts = [], []
    for i, (r0, r1) in enumerate(((0, 4), (4, 7))):
        for k, (c0, c1) in enumerate(cols):
            n = "grid/g%d%d.h5" % (i, k)
            v[r0:r1, c0:c1] = s(n, "/in/d", src(20 + 3 * i + k,
                                                (r1 - r0, c1 - c0), "<i2"))
            maps.append((box((r0, c0), (r1 - r0, c1 - c0)), n, "/in/d",
                         (r1 - r0, c1 - c0), None))
            parts.append(((r0, r1), (c0, c1)))
    virtual(f, "grid", v.shape, "<i2", maps)
    z["grid"] = Want(value=v, parts=boxes_of(*parts))
    w = np.zeros((2, 4, 3, 2), "<f8")
    maps = []
    for i in range(2):
        for k in range(3):
            w[i, :, k] = s("h.h5", "d%d%d" % (i, k), src(30 + 3 * i + k,
                                                         (4, 2), "<f8"))
            maps.append((((i, 0, k, 0), (1,) * 4, None, (1, 4, 1, 2)), "h.h5",
                         "d%d%d" % (i, k), (4, 2), None))
    virtual(f, "rank4", w.shape, "<f8", maps)
    z["rank4"] = Want(value=w, parts=boxes_of(*[
        ((i, i + 1), (0, 4), (k, k + 1), (0, 2))
        for i in range(2) for k in range(3)]))


def strided(f, s, z):
    """Interleaved, transposed in order, strides on either side."""
    a = [s("i%d.h5" % i, "d", src(40 + i, (4, 5), "<u2")) for i in range(3)]
    v = np.zeros((12, 5), "<u2")
    for i in range(3):
        v[i::3] = a[i]
    virtual(f, "interleaved0", v.shape, "<u2", [
        (((i, 0), (4, 1), (3, 1), (1, 5)), "i%d.h5" % i, "d", (4, 5), None)
        for i in range(3)])
    z["interleaved0"] = Want(value=v)
    v = np.zeros((4, 15), "<u2")
    for i in range(3):
        v[:, i::3] = a[i]
    virtual(f, "interleaved_last", v.shape, "<u2", [
        (((0, i), (1, 5), (1, 3), (4, 1)), "i%d.h5" % i, "d", (4, 5), None)
        for i in range(3)])
    z["interleaved_last"] = Want(value=v)
    v = np.zeros((8, 10), "<u2")
    v[0::2, 0::2] = a[0]
    v[1::2, 1::2] = a[1]
    v[0::2, 1::2] = a[2]
    virtual(f, "checkerboard", v.shape, "<u2", [
        (((r, c), (4, 5), (2, 2), (1, 1)), "i%d.h5" % i, "d", (4, 5), None)
        for i, (r, c) in enumerate(((0, 0), (1, 1), (0, 1)))], fill=9)
    v[1::2, 0::2] = 9
    z["checkerboard"] = Want(value=v)
    # blocks of 2 rows every 6, from two files
    v = np.zeros((12, 5), "<u2")
    b = s("j.h5", "d", src(50, (4, 5), "<u2"))
    v[[0, 1, 6, 7]], v[[2, 3, 8, 9]], v[[4, 5, 10, 11]] = a[0], a[1], b
    virtual(f, "blocks_interleaved", v.shape, "<u2", [
        (((2 * i, 0), (2, 1), (6, 1), (2, 5)), n, "d", (4, 5), None)
        for i, n in enumerate(("i0.h5", "i1.h5", "j.h5"))])
    z["blocks_interleaved"] = Want(value=v)
    big = s("big.h5", "d", src(51, (20, 18), "<i4"), chunks=(7, 5),
            compression="gzip", shuffle=True)
    virtual(f, "source_stride", (5, 6), "<i4", [
        (whole((5, 6)), "big.h5", "d", (20, 18),
         ((1, 2), (5, 6), (4, 3), (1, 1)))])
    z["source_stride"] = Want(value=big[1:20:4, 2:18:3][:5, :6])
    virtual(f, "source_box", (6, 7), "<i4", [
        (whole((6, 7)), "big.h5", "d", (20, 18), box((9, 4), (6, 7)))])
    z["source_box"] = Want(value=big[9:15, 4:11])
    virtual(f, "both_strides", (10, 7), "<i4", [
        (((0, 0), (5, 1), (2, 1), (1, 7)), "big.h5", "d", (20, 18),
         ((0, 11), (5, 1), (3, 1), (1, 7))),
        (((1, 0), (5, 1), (2, 1), (1, 7)), "big.h5", "d", (20, 18),
         ((1, 0), (5, 1), (3, 1), (1, 7)))])
    v = np.zeros((10, 7), "<i4")
    v[0::2], v[1::2] = big[0:15:3, 11:18], big[1:15:3, 0:7]
    z["both_strides"] = Want(value=v)
    # other shapes of the same number of elements: in the order of elements
    virtual(f, "reshaped", (3, 4, 5), "<i4", [
        (whole((3, 4, 5)), "big.h5", "d", (20, 18), box((0, 0), (10, 6)))])
    z["reshaped"] = Want(value=big[0:10, 0:6].reshape(3, 4, 5))
    virtual(f, "flat", (60,), "<i4", [
        (((0,), (20,), (3,), (3,)), "big.h5", "d", (20, 18),
         ((2, 1), (5, 3), (3, 6), (2, 2)))])
    idx = [r for k in range(5) for r in (2 + 3 * k, 3 + 3 * k)]
    jdx = [c for k in range(3) for c in (1 + 6 * k, 2 + 6 * k)]
    z["flat"] = Want(value=big[np.ix_(idx, jdx)].reshape(-1))
    virtual(f, "columns_as_rows", (3, 20), "<i4", [
        (box((i, 0), (1, 20)), "big.h5", "d", (20, 18), box((0, c), (20, 1)))
        for i, c in enumerate((5, 0, 17))])
    z["columns_as_rows"] = Want(value=big[:, [5, 0, 17]].T)
    virtual(f, "reversed", (20, 18), "<i4", [
        (box((19 - i, 0), (1, 18)), "big.h5", "d", (20, 18),
         box((i, 0), (1, 18))) for i in range(20)])
    z["reversed"] = Want(value=big[::-1])


def fewer_axes(f, s, z):
    """ACME's stack: (M, N) -> (i, M, N); scalars; None elsewhere."""
    a = [s("st%d.h5" % i, "result_0", src(60 + i, (4, 3), "<f8"))
         for i in range(5)]
    virtual(f, "stack", (5, 4, 3), "<f8", [
        (box((i, 0, 0), (1, 4, 3)), "st%d.h5" % i, "result_0", (4, 3), None)
        for i in range(5)])
    z["stack"] = Want(value=np.stack(a), parts=boxes_of(*[
        ((i, i + 1), (0, 4), (0, 3)) for i in range(5)]))
    virtual(f, "stack_middle", (4, 5, 3), "<f8", [
        (box((0, i, 0), (4, 1, 3)), "st%d.h5" % i, "result_0", (4, 3), None)
        for i in range(5)])
    z["stack_middle"] = Want(value=np.stack(a, 1), parts=boxes_of(*[
        ((0, 4), (i, i + 1), (0, 3)) for i in range(5)]))
    virtual(f, "stack_last", (4, 3, 5), "<f8", [
        (box((0, 0, i), (4, 3, 1)), "st%d.h5" % i, "result_0", (4, 3), None)
        for i in range(5)])
    z["stack_last"] = Want(value=np.stack(a, 2), parts=boxes_of(*[
        ((0, 4), (0, 3), (i, i + 1)) for i in range(5)]))
    v = [s("sc%d.h5" % i, "n", np.float32(i + 0.5)) for i in range(4)]
    virtual(f, "scalars", (4,), "<f4", [
        (box((i,), (1,)), "sc%d.h5" % i, "n", (), None) for i in range(4)])
    z["scalars"] = Want(value=np.array(v, "<f4"))
    virtual(f, "more_axes", (6, 3), "<f8", [
        (box((0, 0), (4, 3)), "st0.h5", "result_0", (4, 3), None),
        (box((4, 0), (2, 3)), "deep.h5", "d", (1, 2, 1, 3), None)])
    d = s("deep.h5", "d", src(70, (1, 2, 1, 3), "<f8"))
    z["more_axes"] = Want(value=np.concatenate([a[0], d.reshape(2, 3)]))


def same_and_nested(f, s, z):
    """Sources in the file itself; virtual sources, three deep, each relative
    to its own file."""
    v = src(80, (6, 4), "<i4")
    f["own"] = v
    z["own"] = Want(value=v)
    virtual(f, "same_file", (12, 4), "<i4", [
        (box((0, 0), (6, 4)), ".", "own", (6, 4), None),
        (box((6, 0), (6, 4)), ".", "/own", (6, 4), None)])
    z["same_file"] = Want(value=np.concatenate([v, v]), parts=boxes_of(
        ((0, 6), (0, 4)), ((6, 12), (0, 4))))
    virtual(f, "same_file_virtual", (6, 2), "<i4", [
        (whole((6, 2)), ".", "same_file", (12, 4), box((3, 1), (6, 2)))])
    z["same_file_virtual"] = Want(value=np.concatenate([v, v])[3:9, 1:3])
    leaf = s("nest/leaf/l.h5", "d", src(81, (9, 4), "<i4"), chunks=(2, 3))
    with h5py.File(s.top + "/nest/mid.h5", "w") as g:
        virtual(g, "m", (9, 4), "<i4", [
            (box((0, 0), (4, 4)), "leaf/l.h5", "d", (9, 4),
             box((5, 0), (4, 4))),
            (box((4, 0), (5, 4)), "leaf/l.h5", "d", (9, 4),
             box((0, 0), (5, 4)))])
    m = np.concatenate([leaf[5:], leaf[:5]])
    with h5py.File(s.top + "/nest/upper.h5", "w") as g:
        virtual(g, "u", (5, 8), "<i4", [
            (box((0, 0), (5, 4)), "mid.h5", "m", (9, 4), box((2, 0), (5, 4))),
            (box((0, 4), (5, 4)), "mid.h5", "m", (9, 4),
             ((0, 0), (5, 4), (2, 1), (1, 1)))])
    u = np.concatenate([m[2:7], m[0:9:2]], 1)
    virtual(f, "nested2", (10, 4), "<i4", [
        (box((0, 0), (9, 4)), "nest/mid.h5", "m", (9, 4), None),
        (box((9, 0), (1, 4)), "nest/leaf/l.h5", "d", (9, 4),
         box((0, 0), (1, 4)))])
    z["nested2"] = Want(value=np.concatenate([m, leaf[:1]]))
    virtual(f, "nested3", (8, 5), "<i4", [
        (((0, 0), (8, 1), (1, 1), (1, 5)), "nest/upper.h5", "u", (5, 8),
         None)])
    z["nested3"] = Want(value=u.reshape(8, 5))
    with h5py.File(s.top + "/loop.h5", "w") as g:
        virtual(g, "d", (3,), "<i4", [(whole((3,)), "loop.h5", "d", (3,),
                                       None)])
    virtual(f, "endless", (3,), "<i4", [(whole((3,)), "loop.h5", "d", (3,),
                                         None)])
    z["endless"] = Want("any", cat=False)


def gaps(f, s, z):
    """What no mapping covers is fill; where two do, the later one wins."""
    a = s("a0.h5", "d", src(0, (3, 5)))
    b = s("a1.h5", "d", src(1, (3, 5)))
    for name, fill in (("gaps", None), ("gaps_filled", -7.5),
                       ("gaps_nan", np.nan)):
        v = np.full((10, 7), 0 if fill is None else fill, "<f4")
        v[1:4, 1:6], v[6:9, 0:5] = a, b
        virtual(f, name, v.shape, "<f4", [
            (box((1, 1), (3, 5)), "a0.h5", "d", (3, 5), None),
            (box((6, 0), (3, 5)), "a1.h5", "d", (3, 5), None)], fill)
        z[name] = Want(value=v)
    virtual(f, "no_mapping", (4, 3), "<i2", [], 5)
    z["no_mapping"] = Want("any")
    for name, order in (("overlap", (0, 1)), ("overlap_turned", (1, 0))):
        v = np.zeros((4, 7), "<f4")
        maps = [(box((0, 0), (3, 5)), "a0.h5", "d", (3, 5), None),
                (box((1, 2), (3, 5)), "a1.h5", "d", (3, 5), None)]
        for k in order:
            at = (0, 0) if k == 0 else (1, 2)
            v[at[0]:at[0] + 3, at[1]:at[1] + 5] = (a, b)[k]
        virtual(f, name, v.shape, "<f4", [maps[k] for k in order])
        z[name] = Want(value=v, parts=boxes_of(
            ((0, 3), (0, 5)), ((1, 4), (2, 7))))
    part = s("part.h5", "d", np.zeros((0,), "<f4"), maxshape=(None,))
    del part
    with h5py.File(s.top + "/sparse.h5", "w") as g:  # chunks never written
        d = g.create_dataset("d", (6, 4), "<i4", chunks=(2, 4), fillvalue=8)
        d[2:4] = 1
    virtual(f, "source_fill", (8, 4), "<i4", [
        (box((1, 0), (6, 4)), "sparse.h5", "d", (6, 4), None)], -3)
    v = np.full((8, 4), -3, "<i4")
    v[1:7], v[3:5] = 8, 1
    z["source_fill"] = Want(value=v)


def growing(f, s, z):
    """printf names and unlimited selections."""
    p = [s("p-%d.h5" % i, "d", src(90 + i, (2, 3), "<i4")) for i in range(3)]
    virtual(f, "printf", (0, 3), "<i4", [
        (((0, 0), (UNLIMITED, 1), (2, 1), (2, 3)), "p-%b.h5", "d", (2, 3),
         None)], maxshape=(UNLIMITED, 3))
    z["printf"] = Want(value=np.concatenate(p))
    q = [s("q.h5", "set_%d" % i, src(95 + i, (2, 3), "<i4"))
         for i in range(4)]
    virtual(f, "printf_dataset", (2, 3), "<i4", [
        (((0, 0), (UNLIMITED, 1), (2, 1), (2, 3)), "q.h5", "set_%b", (2, 3),
         None)], maxshape=(UNLIMITED, 3))
    z["printf_dataset"] = Want(value=np.concatenate(q))
    s("100%.h5", "d", src(99, (2, 3), "<i4"))
    virtual(f, "percent", (2, 3), "<i4", [
        (whole((2, 3)), "100%%.h5", "d", (2, 3), None)])
    z["percent"] = Want(value=src(99, (2, 3), "<i4"))
    for i, n in enumerate((4, 4, 4)):
        s("e%d.h5" % i, "d", src(100 + i, (n,), "<f8"), maxshape=(None,),
          chunks=(3,))
    for i, n in enumerate((5, 2, 0, 7)):
        s("v%d.h5" % i, "d", src(110 + i, (n,), "<f8"), maxshape=(None,),
          chunks=(3,))

    def ragged_rows(name, prefix, lengths, seed, fill=None):
        k = len(lengths)
        virtual(f, name, (k, 1), "<f8", [
            (((i, 0), (1, UNLIMITED), None, (1, 1)), "%s%d.h5" % (prefix, i),
             "d", (None,), ((0,), (UNLIMITED,), None, (1,)))
            for i in range(k)], fill, maxshape=(k, UNLIMITED))
        v = np.full((k, max(lengths)), 0 if fill is None else fill, "<f8")
        for i, n in enumerate(lengths):
            v[i, :n] = src(seed + i, (n,), "<f8")
        z[name] = Want(value=v)
    ragged_rows("unlimited_equal", "e", (4, 4, 4), 100)
    ragged_rows("unlimited_unequal", "v", (5, 2, 0, 7), 110)
    ragged_rows("unlimited_filled", "v", (5, 2, 0, 7), 110, -1.0)
    t = s("t.h5", "d", src(120, (7, 3), "<i4"), maxshape=(None, 3),
          chunks=(2, 3))
    virtual(f, "unlimited_first", (1, 3), "<i4", [
        (((0, 0), (UNLIMITED, 1), None, (1, 3)), "t.h5", "d", (None, 3),
         ((0, 0), (UNLIMITED, 1), None, (1, 3)))], maxshape=(UNLIMITED, 3))
    z["unlimited_first"] = Want(value=t)
    u = s("u.h5", "d", src(121, (7, 3), "<i4"), maxshape=(None, 3),
          chunks=(2, 3))
    virtual(f, "unlimited_interleaved", (2, 3), "<i4", [
        (((i, 0), (UNLIMITED, 1), (2, 1), (1, 3)), n, "d", (None, 3),
         ((0, 0), (UNLIMITED, 1), None, (1, 3)))
        for i, n in enumerate(("t.h5", "u.h5"))], maxshape=(UNLIMITED, 3))
    v = np.zeros((14, 3), "<i4")
    v[0::2], v[1::2] = t, u
    z["unlimited_interleaved"] = Want(value=v)


def conversions(f, s, z):
    """The virtual dataset's type is not the source's: as HDF5 converts."""
    x = (np.random.default_rng(5).standard_normal((6, 4)) * 1e5)
    x[0] = [1e300, -1e300, 0.5, -0.5]
    x[1] = [65504.0, 70000.0, 1e-9, 2.5]
    x[2] = [2.0**31, -2.0**31 - 1, 3.999, -3.999]
    i = numbers((6, 4), "<i8", 6)
    i[1] = [0, 255, 256, -1]
    h = numbers((6, 4), "<i2", 7)
    tame = np.arange(24.0).reshape(6, 4) / 7
    table = {"f8_f4": (x, "<f4"), "f8_i2": (x, "<i2"), "f8_u1": (x, "u1"),
             "f8_i4": (x, "<i4"), "f8_i8": (x, "<i8"), "f8_u8": (x, "<u8"),
             "f8_f2": (x, "<f2"), "f4_f8": (tame.astype("<f4"), "<f8"),
             "i2_f4": (h, "<f4"), "i2_f8": (h, "<f8"), "i8_u1": (i, "u1"),
             "i8_i4": (i, "<i4"), "i8_f4": (i, "<f4"), "i8_f8": (i, "<f8"),
             "i2_i8": (h, "<i8"), "i2_u2": (h, "<u2"),
             "u8_i8": (numbers((6, 4), "<u8", 3), "<i8"),
             "u2_i2": (numbers((6, 4), "<u2", 3), "<i2"),
             "u1_f2": (numbers((6, 4), "u1", 3), "<f2"),
             "i4_f2": (numbers((6, 4), "<i4", 3), "<f2"),
             "f2_f8": (tame.astype("<f2"), "<f8"),
             "be_le": (h.astype(">i2"), "<i2"), "le_be": (tame, ">f8"),
             "be_f8_f4": (tame.astype(">f8"), "<f4"),
             "f2_i1": (tame.astype("<f2"), "i1"),
             "bool_bool": (h > 0, "?")}
    for name, (v, t) in table.items():
        file = "conv_%s.h5" % name
        s(file, "d", v, chunks=(4, 3), compression="gzip")
        virtual(f, "convert/" + name, (7, 4), t, [
            (box((1, 0), (6, 4)), file, "d", (6, 4), None)],
            fill=None if t == "?" else 3)
        z["convert/" + name] = Want()  # h5py's word
    c = np.array(tame[:, :2] + 1j, "<c16")
    s("conv_c.h5", "d", c)
    virtual(f, "convert/c16_c8", (6, 2), "<c8", [
        (whole((6, 2)), "conv_c.h5", "d", (6, 2), None)])
    z["convert/c16_c8"] = Want()


def enum(base, **names):
    t = h5t.enum_create(base)
    for k, v in names.items():
        t.enum_insert(k.encode(), v)
    return t


def opaque_type(tag):
    t = h5t.create(h5t.OPAQUE, 2)
    t.set_tag(tag)
    return t


CLASS_OF = {"i1": "number", "u2": "number", "i4": "number", "bf": "odd float",
            "bf_be": "odd float", "e4m3": "odd float", "b1": "bits", "b2": "bits",
            "tag_a": "opaque", "tag_b": "opaque"}


def one_of_each_class(pairs, enums):
    """One pair of types for each pair of classes, each type with itself, and `color`
    with every other enum."""
    seen, out = set(), []
    for to, of in pairs:
        classes = tuple(CLASS_OF.get(n, "enum" if n in enums and n != "bool" else n)
                        for n in (to, of))
        if to == of or classes not in seen or to == "color" and of in enums or \
                {to, of} in ({"many", "many_others"}, {"color", "again"},
                             {"tag_a", "tag_b"}):
            out.append((to, of))
            if to != of:
                seen.add(classes)
    return out


def meanings(top):
    """What the elements mean differs, though they may look the same: as
    libhdf5 converts, which h5py tells when asked for the type as it is; or an
    error, where libhdf5 has one, and between enums that it converts by name."""
    path, z = top + "/meanings.h5", {}
    i1, u2 = h5t.STD_I8LE, h5t.STD_U16LE
    b16 = (15, 7, 8, 0, 7, 127)
    small = np.array([0, 1, 1, 0], "i1")
    number = np.array([0, 1, 0x3fc0, 200], "<u2")
    bits = np.array([0, 0x3fc0, 0x4000, 0xc2f7], "<u2")  # 0, 1.5, 2, -123.5
    types = {
        "i1": (i1, np.array([0, 1, 2, -3], "i1")), "u2": (u2, number),
        "i4": (h5t.STD_I32LE, np.array([0, 1, 70000, -3], "<i4")),
        "f4": (h5t.IEEE_F32LE, np.array([0, 1.5, 3e38, -3], "<f4")),
        "bf": (custom_float(2, *b16), bits),
        "bf_be": (custom_float(2, *b16, big=True), bits.astype(">u2")),
        "e4m3": (custom_float(1, 7, 3, 4, 0, 3, 7), np.array(
            [0, 0x38, 0x45, 0xc0], "u1")),
        "b2": (h5t.STD_B16LE, np.array([0, 1, 2, 0x8001], "<u2")),
        "b1": (h5t.STD_B8LE, np.array([0, 1, 2, 200], "u1")),
        "color": (enum(i1, RED=0, GREEN=1), small),
        "again": (enum(i1, RED=0, GREEN=1), small[::-1].copy()),
        "turned": (enum(i1, RED=1, GREEN=0), small),
        "more": (enum(i1, RED=0, GREEN=1, BLUE=2), small),
        "shape": (enum(i1, ROUND=0, FLAT=1), small),
        "wide": (enum(h5t.STD_I32LE, RED=5, GREEN=70000), np.array(
            [5, 70000, 70000, 5], "<i4")),
        "many": (enum(h5t.STD_I16LE, **{"N%d" % i: i for i in range(300)}),
                 np.array([0, 199, 250, 299], "<i2")),
        "many_others": (enum(h5t.STD_I16LE, **{"N%d" % (i + (i > 250)): i
                                               for i in range(300)}),
                        np.array([0, 199, 250, 299], "<i2")),
        "bool": (enum(i1, FALSE=0, TRUE=1), small),
        "tag_a": (opaque_type(b"a"), np.array([b"ab", b"cd", b"ef", b"gh"],
                                              "V2")),
        "tag_b": (opaque_type(b"b"), np.array([b"ij", b"kl", b"mn", b"op"],
                                              "V2"))}
    enums = ("color", "again", "turned", "more", "shape", "wide", "many",
             "many_others", "bool")
    with h5py.File(top + "/meaning.h5", "w") as f:
        for name, (t, v) in types.items():
            h5d.create(f.id, name.encode(), t, h5s.create_simple((4,))).write(
                h5s.ALL, h5s.ALL, v.view("u1"), mtype=t)
    f = h5py.File(path, "w", libver="latest")
    pairs = [(to, of) for to in types for of in types]
    for to, of in pairs if lib.full() else one_of_each_class(pairs, enums):
        t = types[to][0]
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_virtual(h5s.create_simple((4,)), b"meaning.h5", of.encode(),
                      h5s.create_simple((4,)))
        n = "%s_from_%s" % (to, of)
        d = h5d.create(f.id, n.encode(), t, h5s.create_simple((4,)), p)
        f.flush()
        v = np.zeros(4, types[to][1].dtype)
        try:
            if to in enums and of in enums and to != of and \
                    {to, of} != {"color", "again"}:
                raise OSError  # by name; also where libhdf5 can
            if (to == "bool") != (of == "bool") and {to, of} & {
                    "bool", "b1"} and (to == "bool" or to == "b1"):
                raise OSError  # only h5py's own converters can
            d.read(h5s.ALL, h5s.ALL, v.view("u1"), mtype=t)
            z[n] = Want(value=v.astype("?") if to == "bool" else v,
                        readable=False)
        except OSError:
            z[n] = Want(value=v.astype("?") if to == "bool" else v,
                        bad=np.ones(4, bool), codes=EIO, words=[
                            "where the main file maps"], readable=False)
        z[n].cat = to == "bf"
    f.close()
    return ZooFile("meanings", path, z)


def mask(shape, *where):
    m = np.zeros(shape, bool)
    for w in where:
        m[w] = True
    return m


def links(top, name, to):
    """A file whose datasets are all links into another one, which has `d`."""
    with h5py.File(top + "/" + name, "a") as g:
        if "ext" in g:
            return
        g["ext"] = h5py.ExternalLink(to, "/d")
        g["g/soft"] = h5py.SoftLink("/ext")
        g["group"] = h5py.ExternalLink(to, "/")
        g["100%b"] = h5py.SoftLink("/group/d")
        g["hop"] = h5py.ExternalLink(name, "/g/soft")
        g["gone"] = h5py.ExternalLink("gone.h5", "/d")
        g["nothing"] = h5py.ExternalLink(to, "/nothing")
        g["dangling"] = h5py.SoftLink("/absent")
        g["decoy"] = h5py.ExternalLink("decoy-source.h5", "/d")
        g["circle"] = h5py.ExternalLink(name, "/circle")


def linked(f, s, z):
    """Sources that are links to other files, as in masters of beamlines."""
    a = s("frames%1.h5", "d", src(150, (6, 5), "<i4"), chunks=(4, 2),
          compression="gzip", maxshape=(None, 5))
    links(s.top, "master.h5", "frames%1.h5")
    two = np.concatenate([a, a])
    for name in ("ext", "g/soft", "group/d", "100%%b", "hop"):
        n = "via_" + name.replace("/", "_").replace("%", "")
        virtual(f, n, (12, 5), "<i4", [
            (box((6 * i, 0), (6, 5)), "master.h5", name, (6, 5), None)
            for i in range(2)])
        z[n] = Want(value=two)
    f["own"] = h5py.ExternalLink("frames%1.h5", "/d")
    virtual(f, "via_own", (6, 5), "<i4", [
        (whole((6, 5)), ".", "own", (6, 5), None)])
    z["own"] = z["via_own"] = Want(value=a)
    virtual(f, "slab", (2, 3), "<i4", [
        (whole((2, 3)), "master.h5", "ext", (6, 5),
         ((1, 0), (2, 3), (3, 2), (1, 1)))])
    z["slab"] = Want(value=a[1:6:3, ::2])
    virtual(f, "other_order", (6, 5), ">i4", [
        (whole((6, 5)), "master.h5", "ext", (6, 5), None)])
    z["other_order"] = Want(value=a.astype(">i4"), readable=False)
    virtual(f, "open", (1, 5), "<i4", [
        (((0, 0), (UNLIMITED, 1), (1, 1), (1, 5)), "master.h5", "ext",
         (None, 5), ((0, 0), (UNLIMITED, 1), (1, 1), (1, 5)))],
        maxshape=(UNLIMITED, 5))
    z["open"] = Want(value=a, readable=False)
    links(s.top, "second.h5", "linked_open.h5")
    with h5py.File(s.top + "/linked_open.h5", "w", libver="latest") as g:
        virtual(g, "d", (1, 5), "<i4", [
            (((0, 0), (UNLIMITED, 1), (1, 1), (1, 5)), "master.h5", "ext",
             (None, 5), ((0, 0), (UNLIMITED, 1), (1, 1), (1, 5)))],
            maxshape=(UNLIMITED, 5))
    virtual(f, "open_nested", (1, 5), "<i4", [
        (((0, 0), (UNLIMITED, 1), (1, 1), (1, 5)), "second.h5", "ext",
         (None, 5), ((0, 0), (UNLIMITED, 1), (1, 1), (1, 5)))],
        maxshape=(UNLIMITED, 5))
    z["open_nested"] = Want(value=a, readable=False)


def broken(f, s, z, fill):
    """Missing and wrong sources: an error on what touches them, only there."""
    a = s("a0.h5", "d", src(0, (3, 5)))

    def put(name, v, t, maps, bad, codes, words=(), fillvalue=None, **kw):
        virtual(f, name, v.shape, t, maps, fillvalue)
        if fill and codes == ENODATA:
            v, bad = v.copy(), np.asarray(bad)
            v[bad] = 0 if fillvalue is None else fillvalue
            z[name] = Want(value=v, readable=False, **kw)
        else:
            z[name] = Want(value=v, bad=bad, codes=codes, words=words,
                           readable=False, **kw)

    v = np.concatenate([a, np.zeros_like(a), a])
    three = lambda n, d="d", shape=(3, 5): [
        (box((3 * i, 0), (3, 5)), x, y, sh, None)
        for i, (x, y, sh) in enumerate((("a0.h5", "d", (3, 5)),
                                        (n, d, shape), ("a0.h5", "d",
                                                        (3, 5))))]
    m = mask(v.shape, slice(3, 6))
    parts = boxes_of(*[((3 * i, 3 * i + 3), (0, 5)) for i in range(3)])
    put("missing_file", v, "<f4", three("gone.h5"), m, ENODATA, "gone.h5",
        parts=parts)
    put("missing_filled", v, "<f4", three("gone.h5"), m, ENODATA, "gone.h5",
        -2.5)
    put("missing_in_subdirectory", v, "<f4", three("no/where.h5"), m, ENODATA,
        "where.h5")
    put("working_directory", v, "<f4", three("decoy-source.h5"), m, ENODATA,
        "decoy-source.h5")
    put("missing_dataset", v, "<f4", three("a0.h5", "nothing"), m, ENODATA,
        "nothing")
    links(s.top, "links.h5", "a0.h5")
    put("missing_behind_link", v, "<f4", three("links.h5", "gone"), m, ENODATA,
        "gone.h5")
    put("missing_group_behind_link", v, "<f4", three("links.h5", "no/d"), m,
        ENODATA, "no")
    put("missing_target", v, "<f4", three("links.h5", "nothing"), m, ENODATA,
        "nothing")
    put("dangling", v, "<f4", three("links.h5", "dangling"), m, ENODATA,
        "absent")
    put("link_to_decoy", v, "<f4", three("links.h5", "decoy"), m, ENODATA,
        "decoy-source.h5")
    put("link_circle", v, "<f4", three("links.h5", "circle"), m, EIO,
        "leads through more than 40 links")
    put("link_to_group", v, "<f4", three("links.h5", "group"), m, EIO,
        "not a dataset")
    s("wrong.h5", "small", src(130, (2, 5)))
    s("wrong.h5", "text", np.full((3, 5), "word", object),
      dtype=h5py.string_dtype())
    put("wrong_shape", v, "<f4", three("wrong.h5", "small"), m, EIO,
        "wrong.h5")
    put("wrong_type", v, "<f4", three("wrong.h5", "text"), m,
        (EIO, 95), "wrong.h5")
    with open(s.top + "/noise.h5", "wb") as g:
        g.write(b"not HDF5 at all " * 64)
    put("not_hdf5", v, "<f4", three("noise.h5"), m, EIO, "noise.h5")
    open(s.top + "/empty.h5", "wb").close()
    put("empty_file", v, "<f4", three("empty.h5"), m, EIO, "empty.h5")
    w = np.zeros((3, 10), "<f4")
    w[:, 0::2] = a
    put("missing_interleaved", w, "<f4", [
        (((0, i), (1, 5), (1, 2), (3, 1)), n, "d", (3, 5), None)
        for i, n in enumerate(("a0.h5", "gone.h5"))],
        mask(w.shape, (slice(None), slice(1, None, 2))), ENODATA, "gone.h5")
    put("missing_columns", np.concatenate([a, np.zeros_like(a)], 1), "<f4", [
        (box((0, 5 * i), (3, 5)), n, "d", (3, 5), None)
        for i, n in enumerate(("a0.h5", "gone.h5"))],
        mask((3, 10), (slice(None), slice(5, 10))), ENODATA, "gone.h5")
    z["missing_columns"].parts = boxes_of(((0, 3), (0, 5)), ((0, 3), (5, 10)))
    with h5py.File(s.top + "/mid.h5", "a") as g:
        if "m" not in g:
            virtual(g, "m", (6, 5), "<f4", [
                (box((0, 0), (3, 5)), "a0.h5", "d", (3, 5), None),
                (box((3, 0), (3, 5)), "gone.h5", "d", (3, 5), None)])
    put("missing_nested", np.concatenate([a, np.zeros_like(a)]), "<f4", [
        (whole((6, 5)), "mid.h5", "m", (6, 5), None)],
        mask((6, 5), slice(3, 6)), ENODATA, "gone.h5")
    # covered by a later mapping: the missing one is not needed
    virtual(f, "missing_covered", (3, 5), "<f4", [
        (whole((3, 5)), "gone.h5", "d", (3, 5), None),
        (whole((3, 5)), "a0.h5", "d", (3, 5), None)])
    z["missing_covered"] = Want(value=a, readable=False)
    with h5py.File("decoy-source.h5", "w") as g:
        g["d"] = src(131, (3, 5))


def prefix(top):
    """Sources that only HDF5_VDS_PREFIX finds; first the main file's place."""
    s = Sources(os.path.join(top, "elsewhere"))
    near = Sources(top)
    far = s("far.h5", "d", src(140, (3, 5)))
    s("both.h5", "d", src(141, (3, 5)))
    here = near("both.h5", "d", src(142, (3, 5)))
    path, z = os.path.join(top, "prefix.h5"), {}
    with h5py.File(path, "w") as f:
        for n in ("far", "both"):
            virtual(f, n, (3, 5), "<f4", [(whole((3, 5)), n + ".h5", "d",
                                           (3, 5), None)])
        virtual(f, "moved", (3, 5), "<f4", [
            (whole((3, 5)), "/no/such/place/elsewhere/far.h5", "d", (3, 5),
             None)])
    z["far"] = Want(value=far, readable=False)
    z["both"] = Want(value=here, readable=False)
    z["moved"] = Want(value=far, readable=False)
    env = dict(os.environ, HDF5_VDS_PREFIX=s.top)
    return ZooFile("prefix", path, z, env=env)


def make(top):
    out, s = [], Sources(top)
    for fill in (blocks_along, strided, fewer_axes, same_and_nested, gaps,
                 growing, conversions, linked):
        z = {}
        path = os.path.join(top, fill.__name__ + ".h5")
        with h5py.File(path, "w", libver="latest") as f:
            fill(f, s, z)
        out.append(ZooFile(fill.__name__, path, z))
    for fill in (False, True):
        z = {}
        path = os.path.join(top, "broken%s.h5" % ("_fill" * fill))
        with h5py.File(path, "w", libver="latest") as f:
            broken(f, s, z, fill)
        out.append(ZooFile("broken" + "_fill" * fill, path, z, [
            "-o", "missing=fill"] if fill else []))
    out.append(meanings(top))
    out.append(prefix(top))
    return out
