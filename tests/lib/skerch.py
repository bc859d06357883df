# SPDX-License-Identifier: BSD-2-Clause
"""Writes a distributed tensor in exactly the layout of skerch.

    NAME_ALL.h5              virtual datasets `data` and `flags`
    NAME_00000-00100.h5      one file per block: `data` and `flags`, each one
                             chunk, fill time ALLOC; the end is exclusive and
                             the width is len(str(rows)) + 1

The mappings name the block files without a directory.  `flags` has one
variable-length string per row, "initialized" until a worker writes its word.
"""
import os

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t


class Tensor:
    """What was written: the truth that a mount is compared with."""

    def __init__(self, all_path, data, flags, parts):
        self.all_path = all_path
        self.data = data      # numpy array
        self.flags = flags    # list of str
        self.parts = parts    # [(begin, end, path)]
        self.raw = set()      # indexes of parts stored unfiltered (mask 1)

    def part_of(self, row):
        for i, (b, e, _) in enumerate(self.parts):
            if b <= row < e:
                return i
        raise IndexError(row)


def _create(f, name, type_id, shape, compression):
    """A dataset of one chunk; shape () is not possible in this layout."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(shape)
    dcpl.set_fill_time(h5d.FILL_TIME_ALLOC)
    if compression == "gzip":
        dcpl.set_deflate(4)
    elif compression == "lzf":
        dcpl.set_filter(32000, h5py.h5z.FLAG_OPTIONAL)
    elif compression is not None:
        raise ValueError(compression)
    space = h5s.create_simple(shape, shape)
    return h5py.Dataset(h5d.create(f.id, name.encode(), type_id, space, dcpl))


def values(rows, sub, dtype, part, incompressible, seed=1):
    """Reproducible rows: small repeating values, or noise in some parts."""
    rng = np.random.default_rng(seed)
    n = int(np.prod(sub, dtype=np.int64))
    flat = (np.arange(rows * n, dtype=np.int64) // 16) % 251
    a = (flat + 1).astype(dtype).reshape((rows,) + tuple(sub))
    for i, beg in enumerate(range(0, rows, part)):
        if incompressible and i % incompressible == 0:
            end = min(beg + part, rows)
            noise = rng.integers(0, 256, (end - beg) * n * a.itemsize,
                                 dtype=np.uint8)
            block = noise.view(dtype).reshape((end - beg,) + tuple(sub))
            if a.dtype.kind in "fc":  # no NaN: comparisons stay simple
                block = rng.random(block.shape).astype(dtype)
            a[beg:end] = block
    return a


def create(directory, name="t", rows=100, sub=(8,), part=10, dtype="<f4",
           compression="lzf", incompressible=0, word="OK", flags=None,
           fmt="{}_{}.h5", unwritten=()):
    """Write the tensor; returns a Tensor.

    incompressible=K: every K-th part holds noise, which LZF stores unfiltered
    (filter mask 1).  unwritten: parts whose data was never written.
    """
    sub = tuple(sub)
    data = values(rows, sub, dtype, part, incompressible)
    flags = list(flags) if flags is not None else [word] * rows
    width = len(str(rows)) + 1
    str_type = h5t.py_create(h5py.string_dtype("utf-8"), logical=True)
    num_type = h5t.py_create(np.dtype(dtype), logical=True)
    os.makedirs(directory, exist_ok=True)
    all_path = os.path.join(directory, fmt.format(name, "ALL"))
    v_data = h5py.VirtualLayout(shape=data.shape, dtype=np.dtype(dtype))
    v_flags = h5py.VirtualLayout(shape=(rows,),
                                 dtype=h5py.string_dtype("utf-8"))
    parts = []
    t = Tensor(all_path, data, flags, parts)
    for i, beg in enumerate(range(0, rows, part)):
        end = min(beg + part, rows)
        base = fmt.format(name, "%0*d-%0*d" % (width, beg, width, end))
        path = os.path.join(directory, base)
        parts.append((beg, end, path))
        with h5py.File(path, "w") as f:
            d = _create(f, "data", num_type, (end - beg,) + sub, compression)
            s = _create(f, "flags", str_type, (end - beg,), compression)
            if i in unwritten:
                data[beg:end] = 0
                flags[beg:end] = ["initialized"] * (end - beg)
            else:
                d[...] = data[beg:end]
                if compression == "lzf" and \
                        d.id.get_chunk_info(0).filter_mask & 1:
                    t.raw.add(i)
            s[...] = np.array(flags[beg:end], dtype=object)
        v_data[beg:end] = h5py.VirtualSource(base, "data",
                                             shape=(end - beg,) + sub,
                                             dtype=np.dtype(dtype))
        v_flags[beg:end] = h5py.VirtualSource(
            base, "flags", shape=(end - beg,),
            dtype=h5py.string_dtype("utf-8"))
    with h5py.File(all_path, "w") as f:
        f.create_virtual_dataset("data", v_data)
        f.create_virtual_dataset("flags", v_flags)
    return t


def chunk_place(path, dataset="data", index=0):
    """(offset, size) of a stored chunk in its file."""
    with h5py.File(path, "r") as f:
        info = f[dataset].id.get_chunk_info(index)
        return info.byte_offset, info.size


if __name__ == "__main__":
    import sys
    import tempfile
    with tempfile.TemporaryDirectory() as tmp:
        t = create(tmp, rows=403, part=10, sub=(32,), incompressible=7)
        with h5py.File(t.all_path, "r") as f:
            assert (f["data"][...] == t.data).all()
            assert [x.decode() for x in f["flags"][...]] == t.flags
            assert f["data"].is_virtual and len(f["data"].virtual_sources()) \
                == len(t.parts) == 41
        assert os.path.basename(t.parts[0][2]) == "t_0000-0010.h5"
        assert t.raw >= set(range(0, 40, 7)), t.raw
        print("skerch writer agrees with h5py;", len(t.raw), "raw parts;",
              sorted(os.listdir(tmp))[:3])
    sys.exit(0)
