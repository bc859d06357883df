# SPDX-License-Identifier: BSD-2-Clause
"""Writes one HDF5 file with a data set of every kind that a mount must show.

write(path, libver) returns {name: Entry}; the entry knows the right values
independently of any HDF5 reader, so filters that the library here lacks (zstd,
lz4) are covered too: their chunks are encoded by us and stored with
write_direct_chunk.
"""
import ctypes
import itertools
import zlib

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

from frames import fletcher32, load, lz4, shuffle, zstd

LZF, LZ4, ZSTD, UNKNOWN = 32000, 32004, 32015, 40000


class Entry:
    """kind: number, string, empty (no data space), unsupported."""

    def __init__(self, value, kind="number", chunks=None, readable=True,
                 why=""):
        self.value = value        # numpy array (object array of str)
        self.kind = kind
        self.chunks = chunks      # chunk shape or None
        self.readable = readable  # h5py here can read it
        self.why = why            # for unsupported: a word info.json may use


def numbers(shape, dtype, seed=3):
    """Values that differ in every byte and that compress a little."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "b":
        a = rng.integers(0, 2, n).astype(bool)
    elif dtype.kind in "iu":
        i = np.iinfo(dtype)
        a = rng.integers(i.min, i.max, n, dtype=dtype.newbyteorder("="),
                         endpoint=True)
        a[n // 3:n // 2] = 7
    else:
        a = rng.standard_normal(n)
        if dtype.kind == "c":
            a = a + 1j * rng.standard_normal(n)
        a[n // 3:n // 2] = -0.0
        a = a.astype(dtype)
        if n > 4:
            a[1], a[2] = np.inf, np.nan
    return a.astype(dtype).reshape(shape)


def _low(f, name, dtype, shape, chunks, filters, maxshape=None, fill=None,
         alloc=None):
    """A data set with any filters, also ones the library here lacks."""
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(chunks)
    for fid, args in filters:
        p.set_filter(fid, h5z.FLAG_OPTIONAL, args)
    if fill is not None:
        p.set_fill_value(np.asarray(fill, dtype))
    if alloc is not None:
        p.set_alloc_time(alloc)
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_create_intermediate_group(True)
    space = h5s.create_simple(shape, maxshape or shape)
    t = h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5d.create(f.id, name.encode(), t, space, p, lcpl))


def boxes(shape, chunks):
    """(start, exact slices) of every chunk."""
    for idx in itertools.product(*[range(-(-s // c))
                                   for s, c in zip(shape, chunks)]):
        start = tuple(i * c for i, c in zip(idx, chunks))
        yield start, tuple(slice(b, min(b + c, s))
                           for b, c, s in zip(start, chunks, shape))


def direct(ds, value, chunks, encode):
    """Store each chunk, padded with zeros, as (bytes, mask) = encode(k, raw)."""
    for k, (start, box) in enumerate(boxes(value.shape, chunks)):
        full = np.zeros(chunks, value.dtype)
        part = value[box]
        full[tuple(slice(0, n) for n in part.shape)] = part
        stored, mask = encode(k, full.tobytes())
        ds.id.write_direct_chunk(start, stored, mask)


TYPES = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4",
         "<f8", "<c8", "<c16", "?", ">i2", ">u2", ">i4", ">u4", ">i8", ">u8",
         ">f2", ">f4", ">f8", ">c8", ">c16"]
PIPES = {
    "plain": {},
    "gzip": dict(compression="gzip", compression_opts=4),
    "gzip_shuffle": dict(compression="gzip", shuffle=True),
    "shuffle_only": dict(shuffle=True),
    "fletcher": dict(fletcher32=True),
    "gzip_shuffle_fletcher": dict(compression="gzip", shuffle=True,
                                  fletcher32=True),
    "lzf": dict(compression="lzf"),
    "lzf_shuffle": dict(compression="lzf", shuffle=True),
    "lzf_fletcher": dict(compression="lzf", fletcher32=True),
}


def _layouts(f, z):
    def put(name, value, **kw):
        ds = f.create_dataset(name, data=value, **kw)
        z[name] = Entry(value, chunks=ds.chunks)
        return ds

    for t in TYPES:
        order = "be" if t[0] == ">" else "le"
        tag = "%s_%s" % (t.strip("<>").replace("?", "bool"), order)
        put("types/" + tag, numbers((7, 5), t))
        put("types_chunked/" + tag, numbers((7, 5), t), chunks=(3, 2),
            compression="gzip", shuffle=True)
    for pipe, kw in PIPES.items():  # edge chunks on both axes
        put("pipes/" + pipe, numbers((23, 17), "<i4"), chunks=(5, 6), **kw)
    put("deep/er/and/deeper/x", numbers((4, 3), "<f4"))
    put("rank/r0", numbers((), "<f8"))
    put("rank/r1", numbers((41,), "<f4"), chunks=(8,))
    put("rank/r2", numbers((6, 9), "<u2"))
    put("rank/r3", numbers((5, 6, 7), "<i2"), chunks=(2, 6, 4),
        compression="lzf")
    put("rank/r5", numbers((3, 4, 2, 5, 3), "<f4"), chunks=(2, 1, 2, 3, 2),
        compression="gzip")
    shape32 = (2,) * 4 + (1,) * 26 + (3, 2)
    put("rank/r32", numbers(shape32, "u1"))
    put("rank/r32_chunked", numbers(shape32, "<i2"),
        chunks=(1, 2) + (1,) * 28 + (2, 2))
    put("rank/one_row", numbers((1, 4), "<f4"))
    put("rank/whole_chunk", numbers((8, 4), "<f4"), chunks=(8, 4))
    put("rank/one_chunk_bigger", numbers((5, 3), "<f4"), chunks=(8, 4),
        maxshape=(None, None))
    for i, shape in enumerate([(0,), (0, 3), (3, 0), (0, 0, 2), (2, 0, 2)]):
        put("zero/z%d" % i, np.zeros(shape, "<f4"))
    put("zero/chunked", np.zeros((0, 4), "<i4"), chunks=(2, 4),
        maxshape=(None, 4))
    put("bigger/rows", numbers((300, 32, 16), "<f4"), chunks=(7, 16, 16),
        compression="gzip", shuffle=True)
    put("bigger/contiguous", numbers((200, 64, 8), "<f8"))

    p = h5p.create(h5p.DATASET_CREATE)
    p.set_layout(h5d.COMPACT)
    v = numbers((6, 7), "<i4")
    f.require_group("layout")
    d = h5d.create(f.id, b"layout/compact", h5t.STD_I32LE,
                   h5s.create_simple(v.shape), p)
    d.write(h5s.ALL, h5s.ALL, v)
    z["layout/compact"] = Entry(v)
    v = np.full((9, 4), -3, "<i4")  # contiguous, never written: fill value
    f.create_dataset("layout/contiguous_unwritten", shape=v.shape, dtype="<i4",
                     fillvalue=-3)
    z["layout/contiguous_unwritten"] = Entry(v)


def _sparse(f, z):
    for name, t, fill in (("i4", "<i4", -7), ("f4", "<f4", np.nan),
                          ("be", ">u2", 0x1234), ("c8", "<c8", 1 + 2j),
                          ("default", "<f8", None)):
        v = np.full((20, 9), 0 if fill is None else fill, t)
        ds = f.create_dataset("sparse/" + name, shape=v.shape, dtype=t,
                              chunks=(6, 4), compression="gzip",
                              fillvalue=fill)
        v[7:11, 2:5] = numbers((4, 3), t)
        ds[7:11, 2:5] = v[7:11, 2:5]
        z["sparse/" + name] = Entry(v, chunks=(6, 4))
    v = np.full((12, 5), 9, "u1")
    f.create_dataset("sparse/nothing", shape=v.shape, dtype="u1",
                     chunks=(5, 5), fillvalue=9)
    z["sparse/nothing"] = Entry(v, chunks=(5, 5))
    # shrunk and grown again: the part that went away reads as fill
    v = numbers((12, 6), "<i4")
    ds = f.create_dataset("sparse/regrown", data=v, chunks=(5, 4),
                          maxshape=(None, None), fillvalue=77)
    ds.resize((7, 6))
    ds.resize((14, 6))
    want = np.full((14, 6), 77, "<i4")
    want[:7] = v[:7]
    z["sparse/regrown"] = Entry(want, chunks=(5, 4))


def _direct(f, z):
    """Masks, and codecs that h5py here cannot write."""
    v, c = numbers((11, 10), "<i4", 5), (4, 6)

    def add(name, filters, encode, readable=True, value=v, chunks=c):
        ds = _low(f, name, value.dtype, value.shape, chunks, filters)
        direct(ds, value, chunks, encode)
        z[name] = Entry(value, chunks=chunks, readable=readable)

    w = v.itemsize
    deflate = [(1, (4,))]
    add("mask/deflate", deflate, lambda k, r:
        (r, 1) if k % 2 else (zlib.compress(r), 0))
    add("mask/shuffle_deflate", [(2, (w,)), (1, (4,))], lambda k, r: (
        (zlib.compress(shuffle(r, w)), 0), (shuffle(r, w), 2),
        (zlib.compress(r), 1), (r, 3))[k % 4])
    add("mask/deflate_fletcher", deflate + [(3, ())], lambda k, r: (
        (fletcher32(zlib.compress(r)), 0), (fletcher32(r), 1),
        (zlib.compress(r), 2), (r, 3))[k % 4])
    add("mask/all_skipped_unknown", [(UNKNOWN, ())], lambda k, r: (r, 1))
    if zstd(b"") is not None:
        add("codec/zstd", [(ZSTD, (3,))], lambda k, r: (zstd(r), 0), False)
        add("codec/zstd_shuffle", [(2, (w,)), (ZSTD, (3,))], lambda k, r:
            (zstd(shuffle(r, w)), 0) if k % 3 else (shuffle(r, w), 2), False)
    if lz4(b"x" * 64) is not None:
        add("codec/lz4", [(LZ4, (0,))], lambda k, r: (lz4(r), 0), False)
        big = numbers((64, 16), "<u2", 6)
        add("codec/lz4_blocks", [(LZ4, (64,))], lambda k, r: (lz4(r, 64), 0),
            False, big, (32, 16))
        add("codec/lz4_shuffle", [(2, (w,)), (LZ4, (0,))], lambda k, r:
            (lz4(shuffle(r, w)), 0), False)


def _indexes(f, z):
    """One data set per chunk index of the format (libver latest)."""
    v, c = numbers((13, 11), "<i4", 8), (4, 3)
    for name, maxshape in (("fixed_array", None), ("extensible", (None, 11)),
                           ("extensible_not_first", (13, None)),
                           ("extensible_wide", (40, None)),
                           ("btree2", (None, None)), ("max_larger", (30, 20))):
        for gz in (False, True):
            ds = f.create_dataset(
                "index/%s%s" % (name, "_gz" if gz else ""), data=v, chunks=c,
                maxshape=maxshape, compression="gzip" if gz else None)
            z[ds.name[1:]] = Entry(v, chunks=c)
    for name, chunks, alloc in (("implicit", c, h5d.ALLOC_TIME_EARLY),
                                ("single", v.shape, None)):
        ds = _low(f, "index/" + name, v.dtype, v.shape, chunks, [],
                  alloc=alloc)
        ds[...] = v
        z["index/" + name] = Entry(v, chunks=chunks)
    v3 = numbers((4, 5, 6), "<i2", 9)
    ds = f.create_dataset("index/extensible_middle", data=v3, chunks=(2, 2, 4),
                          maxshape=(4, None, 6), compression="lzf")
    z["index/extensible_middle"] = Entry(v3, chunks=(2, 2, 4))
    paged = numbers((3000,), "<i4", 10)  # fixed array with pages
    f.create_dataset("index/fixed_paged", data=paged, chunks=(2,))
    z["index/fixed_paged"] = Entry(paged, chunks=(2,))
    hdf5 = load("libhdf5_serial.so.103")  # not in h5py: edge chunks unfiltered
    if hdf5 is not None and hasattr(hdf5, "H5Pset_chunk_opts"):
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk(c)
        p.set_deflate(4)
        if hdf5.H5Pset_chunk_opts(ctypes.c_int64(p.id), 2) == 0:
            ds = h5py.Dataset(h5d.create(f.id, b"index/partial_raw",
                                         h5t.STD_I32LE,
                                         h5s.create_simple(v.shape), p))
            ds[...] = v
            z["index/partial_raw"] = Entry(v, chunks=c)


def _strings(f, z):
    words = ["", "a", "gr\u00fcn", "\u6f22\u5b57", "two words", "x" * 300]
    vlen = h5py.string_dtype("utf-8")
    v = np.array(words, object)
    f.create_dataset("text/vlen", data=v, dtype=vlen)
    f.create_dataset("text/vlen_chunked", data=v, dtype=vlen, chunks=(4,),
                     compression="gzip")
    f.create_dataset("text/vlen_lzf", data=v, dtype=vlen, chunks=(4,),
                     compression="lzf")
    for n in ("text/vlen", "text/vlen_chunked", "text/vlen_lzf"):
        z[n] = Entry(v, "string")
    few = np.array([["p", "q", "rr"], ["s", "", "tt"]], object)
    f.create_dataset("text/vlen_2d", data=few, dtype=vlen)
    z["text/vlen_2d"] = Entry(few, "string")
    f.create_dataset("text/vlen_unwritten", shape=(5,), dtype=vlen,
                     chunks=(2,))
    z["text/vlen_unwritten"] = Entry(np.array([""] * 5, object), "string")
    fixed = ["ab", "", "exactly8", "u\u00fc"]
    f.create_dataset("text/fixed", data=[s.encode() for s in fixed],
                     dtype=h5py.string_dtype("utf-8", 8))
    z["text/fixed"] = Entry(np.array(fixed, object), "string")
    f.create_dataset("text/ascii_chunked", data=np.array(
        [b"one", b"two", b"three"], "S5"), chunks=(2,), compression="gzip")
    z["text/ascii_chunked"] = Entry(np.array(["one", "two", "three"], object),
                                    "string")
    f.create_dataset("text/scalar", data="just one", dtype=vlen)
    z["text/scalar"] = Entry(np.array("just one", object), "string")


def _unsupported(f, z):
    # (Types once were here, too; test_allhdf5.py has them.)
    ds = _low(f, "unsupported/filter", "<i4", (8,), (4,), [(UNKNOWN, ())])
    for k in (0, 4):
        ds.id.write_direct_chunk((k,), b"who knows", 0)
    z["unsupported/filter"] = Entry(None, "unsupported", why="filter")
    f.create_dataset("unsupported/null", dtype="f4", data=h5py.Empty("f4"))
    z["unsupported/null"] = Entry(None, "empty")


def write(path, libver="earliest", unsupported=True):
    z = {}
    with h5py.File(path, "w", libver=libver) as f:
        _layouts(f, z)
        _sparse(f, z)
        _direct(f, z)
        _indexes(f, z)
        _strings(f, z)
        if unsupported:
            _unsupported(f, z)
        f.create_group("empty_group")
        f["pipes/gzip"].attrs["units"] = "counts"
    return z


def verify(path, z):
    """The zoo against h5py itself; returns the number compared."""
    n = 0
    with h5py.File(path, "r") as f:
        for name, e in z.items():
            if e.kind not in ("number", "string") or not e.readable:
                continue
            got = f[name].asstr()[()] if e.kind == "string" else f[name][()]
            got = np.asarray(got, object if e.kind == "string" else None)
            if e.kind == "string":
                assert got.tolist() == e.value.tolist(), name
            else:
                assert got.dtype == e.value.dtype, (name, got.dtype)
                assert got.tobytes() == e.value.tobytes(), name
            n += 1
    return n


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as tmp:
        for lv in ("earliest", "latest"):
            zoo = write(tmp + "/z.h5", lv)
            print(lv, len(zoo), "written,", verify(tmp + "/z.h5", zoo),
                  "equal to what h5py reads")
