# SPDX-License-Identifier: BSD-2-Clause
"""What tests of `tensorfs merge` share: the truth of a file and its stored chunks."""
import os

import h5py
import numpy as np

from checks import check, equal
from lib import tensorfs

JOURNAL = ".tensorfs-merge.journal"


def plain(x, v):
    """A reference is what it leads to."""
    if isinstance(v, (h5py.Reference, h5py.RegionReference)):
        return h5py.h5i.get_name(x.file[v].id) if v else None
    if isinstance(v, np.ndarray) and not v.dtype.hasobject:
        return v.dtype.str, v.shape, v.tobytes()
    if isinstance(v, (np.ndarray, tuple, np.void)):
        return [plain(x, e) for e in (v.item() if isinstance(v, np.void)
                                      else v)]
    return repr(v)  # NaN is NaN


def values(x):
    """A dataset's elements, so that == means equal."""
    if x.size and x.size * x.dtype.itemsize > 1 << 27:
        return "%d chunks" % x.id.get_num_chunks()
    a = x[()]
    if isinstance(a, np.ndarray) and a.dtype.hasobject:
        return [plain(x, v) for v in a.ravel()]
    if isinstance(a, (h5py.Reference, h5py.RegionReference, tuple)):
        return plain(x, a)
    if isinstance(a, (bytes, str)):
        return a
    if isinstance(a, h5py.Empty):
        return "no elements"
    return np.asarray(a)


def attributes(obj):
    out = {}
    for name, v in obj.attrs.items():
        a = np.asarray(v)
        if isinstance(v, h5py.Empty):
            out[name] = "no elements"
        elif a.dtype.hasobject:
            out[name] = [str(plain(obj, e)) for e in a.ravel()]
        else:
            out[name] = (a.dtype.str, a.shape, a.tobytes())
    return out


def truth(path):
    """{path: what is there}, links of all kinds followed, as h5py reads it."""
    out = {}

    def go(group, at, above):
        for name in group:
            where = at + "/" + (name if isinstance(name, str) else repr(name))
            try:
                obj = group[name]
                info = h5py.h5o.get_info(obj.id)
            except (KeyError, OSError, RuntimeError, ValueError):
                continue  # a link that leads nowhere
            if isinstance(obj, h5py.Group):
                out[where] = ("group", None, None, tried(attributes, obj))
                if (info.fileno, info.addr) not in above:  # a cycle
                    go(obj, where, above | {(info.fileno, info.addr)})
            elif isinstance(obj, h5py.Dataset):
                out[where] = (tried(lambda x: x.dtype, obj), obj.shape,
                              tried(values, obj), tried(attributes, obj))
    with h5py.File(path, "r") as f:
        out["/"] = ("group", None, None, tried(attributes, f))
        info = h5py.h5o.get_info(f.id)
        go(f, "", {(info.fileno, info.addr)})
    return out


def tried(f, obj):
    """What h5py cannot read cannot be compared in this way."""
    try:
        return f(obj)
    except (OSError, TypeError, ValueError, RuntimeError, KeyError) as e:
        return "h5py: " + type(e).__name__


def same(want, path, stored=None, some=False):
    """`path` has what truth() said, and needs no other file for it.

    stored: (names, file): of these, stored chunks are compared with the file's.
    some: there may be more.
    """
    got = truth(path)
    check(set(got) >= set(want), "missing: %s" % sorted(set(want) - set(got)))
    check(some or len(got) == len(want),
          "not wanted: %s" % sorted(set(got) - set(want)))
    for name, (dtype, shape, data, attrs) in want.items():
        equal(str(got[name][0]), str(dtype), name + ": type")
        equal(got[name][1], shape, name + ": shape")
        x = got[name][2]
        if stored and name.startswith(stored[0]):
            equal(chunks(path, name), chunks(stored[1], name), name)
        elif isinstance(data, str) and data.startswith("h5py: "):
            pass
        elif isinstance(data, np.ndarray):
            check(x.tobytes() == data.tobytes(), name + ": other values")
        else:
            check(x == data, "%s: %r is not %r" % (name, x, data))
        equal(got[name][3], attrs, name + ": attributes")
    alone(path)


def alone(path):
    """No virtual dataset, no external link, no raw file."""
    seen = set()

    def look(group):
        info = h5py.h5o.get_info(group.id)
        if info.addr in seen:
            return
        seen.add(info.addr)
        for name in group:
            if isinstance(name, bytes):  # h5py cannot ask for it
                continue
            link = group.get(name, getlink=True)
            check(not isinstance(link, h5py.ExternalLink),
                  name + " is a link to elsewhere")
            if isinstance(link, h5py.SoftLink):
                continue
            try:
                obj = group[name]
            except (TypeError, KeyError):  # a type that h5py has not
                continue
            if isinstance(obj, h5py.Group):
                look(obj)
            elif isinstance(obj, h5py.Dataset):
                check(not obj.is_virtual and not obj.external,
                      name + " needs other files")
    with h5py.File(path, "r") as f:
        look(f)


def chunks(path, name="data"):
    """{coordinates: (mask, stored bytes)}"""
    with h5py.File(path, "r") as f:
        d = f[name].id
        out = {}
        for i in range(d.get_num_chunks()):
            at = d.get_chunk_info(i).chunk_offset
            mask, data = d.read_direct_chunk(at)
            out[at] = (mask, data)
        return out


def beside(path):
    """What a merge of `path` has left."""
    d = os.path.dirname(path) or "."
    return sorted(n for n in os.listdir(d) if "tensorfs-merge" in n)


def merge(*argv, **kw):
    return tensorfs("merge", "-q", *argv, **kw)


def mosaic(d, shape, boxes, dtype="<i4", fill=None, missing=(), **kw):
    """A virtual dataset `data` of parts that are boxes of it; kw: of the parts."""
    data = np.arange(np.prod(shape), dtype=np.int64).astype(dtype)
    data = data.reshape(shape)
    v = h5py.VirtualLayout(shape, np.dtype(dtype))
    for i, box in enumerate(boxes):
        part = data[box]
        name = "p%d.h5" % i
        with h5py.File(os.path.join(d, name), "w") as f:
            f.create_dataset("x", data=part, **kw)
        v[box] = h5py.VirtualSource(name, "x", part.shape, np.dtype(dtype))
    main = os.path.join(d, "main.h5")
    with h5py.File(main, "w") as f:
        f.create_virtual_dataset("g/data", v, fillvalue=fill)
        f["g/data"].attrs["units"] = "counts"
        f["g"].attrs["n"] = np.arange(3)
        f.attrs["who"] = ["a", "\u00fc"]
        f["other"] = np.arange(100)
    return main
