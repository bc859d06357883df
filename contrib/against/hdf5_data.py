# SPDX-License-Identifier: BSD-2-Clause
"""Values of HDF5 datasets and attributes as h5py has them, against those of a mount."""
import os
import shutil
import subprocess

import numpy as np

from against import arrays, found, texts
from against.arrays import Tensor
from against.found import ReaderFails
from against.texts import ANY

BITSHUFFLE = 32008      # number of a filter
FIELDS = 32             # members of a structure whose fields/ are compared


# --- JSON of h5py's values ------------------------------------------------------------

def text_of(value):
    """Text as the mount has it in JSON: UTF-8, or else Latin-1."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def path_of(f, reference):
    """The path that a reference means; "" of a null one."""
    if not reference:
        return ""
    return f[reference].name or ""


def json_of(f, x, t):
    """A value of type t as JSON has it."""
    import h5py
    if t.subdtype:
        base, shape = t.subdtype
        flat = np.asarray(x).reshape(shape)
        return [json_of(f, v, base if len(shape) == 1 else np.dtype((base, shape[1:])))
                for v in flat]
    if h5py.check_string_dtype(t):
        return text_of(x if isinstance(x, (bytes, str)) else b"" if x is None else x)
    if h5py.check_vlen_dtype(t) is not None:
        base = h5py.check_vlen_dtype(t)
        if x is None:
            return []
        values = [json_of(f, v, base) for v in x]
        other = swapped(x, base)
        return values if other is None else (values, [json_of(f, v, base)
                                                      for v in other])
    reference = h5py.check_ref_dtype(t)
    if reference is h5py.RegionReference:
        return {"path": path_of(f, x), "selection": ANY} if x else None
    if reference:
        return path_of(f, x) or (None if not x else ANY)
    return _json_of_number(f, x, t)


def swapped(x, base):
    """A sequence of big-endian numbers: h5py 3.7 does not reverse their bytes, and says
    that it did.  None: it cannot be concerned."""
    if isinstance(x, np.ndarray) and base.byteorder == ">" and x.dtype.isnative:
        return x.byteswap()
    return None


def _json_of_number(f, x, t):
    import h5py
    enum = h5py.check_enum_dtype(t)
    if enum:
        return tuple(k for k, v in enum.items() if v == x) or int(x)
    if t.names is not None:
        return {n: json_of(f, x[n], t[n]) for n in t.names}
    if t.kind == "c":
        part = np.dtype("f%d" % (t.itemsize // 2))
        return {"r": json_of(f, x.real, part), "i": json_of(f, x.imag, part)}
    if t.kind == "b":
        return bool(x)
    if t.kind in "iu":
        return int(x)
    if t.kind == "f":
        return np.longdouble(x) if t.itemsize > 8 else float(x)
    return np.asarray(x, t).tobytes().hex()


def attribute(obj, name):
    """An attribute as the mount has it in JSON."""
    import h5py
    a = obj.attrs.get_id(name)
    shape, t = a.shape, a.dtype
    value = obj.attrs[name]
    if isinstance(value, h5py.Empty):
        return None
    if t.subdtype:
        t, shape = t.subdtype[0], shape + t.subdtype[1]
    if t.kind == "f" and a.get_type().get_size() != t.itemsize:
        return (nested(obj.file, value, t, shape), ANY)  # a kind that NumPy has not
    return nested(obj.file, value, t, shape)


def nested(f, value, t, shape):
    if not shape:
        return json_of(f, value, t)
    if isinstance(value, np.ndarray):
        return [nested(f, v, t, shape[1:]) for v in value]
    return [nested(f, v, t, shape[1:]) for v in list(value)]


# --- datasets -------------------------------------------------------------------------

def drain(c, name, d):
    """Read a dataset by h5py."""
    t = c.ask(name, lambda: d.dtype)
    arrays.drain(c, name, Tensor(d.shape or (), t, lambda i: d[i]))


def read_first(d):
    """Read the first row, or what there is."""
    if not d.shape:
        return d[()]
    return d[tuple(slice(0, 1) for _ in d.shape)]


def compare(c, name, path, d):
    """One dataset: None, or what differs."""
    import h5py
    t = c.ask(name, lambda: d.dtype)
    shape = c.ask(name, lambda: d.shape)
    base, inner = t.subdtype or (t, ())
    if h5py.check_string_dtype(base):
        return texts.compare_lines(c, name, path, Tensor(
            shape, base, lambda i: d[i], inner))
    reference = h5py.check_ref_dtype(base)
    if reference is h5py.RegionReference:
        return _compare_regions(c, name, path, d)
    if reference:
        return texts.compare_lines(c, name, path, Tensor(
            shape, base, lambda i: _paths(d, i), inner))
    sequence = h5py.check_vlen_dtype(base)
    if sequence is not None and not sequence.hasobject and not sequence.subdtype:
        return texts.compare_sequences(c, name, path, Tensor(
            shape + inner, base, lambda i: d[i[:len(shape)]][i[len(shape):]]
            if inner else d[i]), sequence, swapped)
    if base.hasobject or not c.look(os.path.exists, os.path.join(path, "array.npy")):
        # Structures that are nested too deeply for an array are JSON, too.
        return texts.compare_json(c, name, path, Tensor(
            shape, base, lambda i: _values(d, i, base, inner), inner))
    return _compare_numbers(c, name, path, d, base, inner)


def _paths(d, index):
    flat = np.asarray(d[index], object).reshape(-1)
    return [path_of(d.file, r) for r in flat]


def _compare_regions(c, name, path, d):
    """Lines begin with the path; how a region is written h5py does not say."""
    want = c.ask(name, lambda: _paths(d, ()))
    c.reading(name)
    lines = c.look(found.read_text, os.path.join(path, "array.txt")).split("\n")
    if lines.pop() or len(lines) != len(want) or \
            not all(g.startswith(w) for g, w in zip(lines, want)):
        return "the paths are %s, the reader has %s" % (
            texts.short(lines), texts.short(want))
    return None


def _values(d, index, base, inner):
    """Values of any kind, as JSON."""
    flat = d[index]
    if not d.shape and not inner:
        return [json_of(d.file, flat, base)]
    out = np.asarray(flat)
    out = out.reshape(-1) if out.dtype.names is None else out.ravel()
    return [json_of(d.file, v, base) for v in out]


def _doubts(c, name, d):
    """Where HDF5 leaves open what elements are, or its library invents them."""
    from h5py import h5d
    if d.is_virtual:
        return lambda got, want: _invented(got, want, d.fillvalue)
    p = d.id.get_create_plist()
    for i in range(p.get_nfilters()):
        code, _, values, _ = p.get_filter(i)
        if code == BITSHUFFLE and len(values) > 4 and values[4] == 3:
            return lambda got, want: (found.NO_ANSWER, "bitshuffle with zstd: plugins "
                                      "without zstd read other values, silently")
    if p.get_fill_time() == h5d.FILL_TIME_NEVER and d.dtype.names is None:
        def undefined(got, want):
            if not _only(got, want, np.zeros((), want.dtype), d.fillvalue):
                return None
            c.note("%s: elements that were never written, which HDF5 leaves undefined, "
                   "are the fill value in the mount" % name)
            return ""
        return undefined
    return lambda got, want: None


def _only(got, want, other, value=None):
    """Do two pieces differ only where `want` is `other` (and `got` is `value`)?"""
    got, want = arrays.little(got), arrays.little(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    differ = (arrays.bytes_of(got) != arrays.bytes_of(want)).any(axis=1)
    alike = arrays.little(np.full(want.shape, other, want.dtype))
    right = (arrays.bytes_of(want) == arrays.bytes_of(alike)).all(axis=1)
    if value is not None:
        alike = arrays.little(np.full(want.shape, value, want.dtype))
        right &= (arrays.bytes_of(got) == arrays.bytes_of(alike)).all(axis=1)
    return bool(right[differ].all())


def _invented(got, want, fill):
    """libhdf5 reads fill values for sources of virtual datasets that it does not find;
    it looks for them in fewer places."""
    if want.dtype.names is None and _only(got, want, fill):
        return found.NO_ANSWER, "the reader has fill values where the mount has data " \
            "of the sources of this virtual dataset"
    return None


def _compare_numbers(c, name, path, d, base, inner):
    doubt = c.ask(name, lambda: _doubts(c, name, d))
    tensor = Tensor(d.shape, base, lambda i: d[i], inner, doubt)
    npy = c.look(arrays.Npy, os.path.join(path, "array.npy"))
    if npy.dtype.kind in "uV" and base.kind in "fV" and base.names is None:
        # A kind of float that NumPy has not (bfloat16, float8) is shown as its bits;
        # h5py does not read opaque bytes that have no tag.
        tensor = Tensor(d.shape, npy.dtype, lambda i: _stored(d, i, npy.dtype), inner)
    why = arrays.compare_array(c, name, path, tensor)
    if why or base.names is None or npy.bytes > arrays.STEP:
        return why
    top = os.path.join(path, "fields")
    shown = c.look(found.stored_names, top) if c.look(os.path.isdir, top) else {}
    for field in base.names[:FIELDS]:
        t = base.fields[field][0]
        if t.kind == "S" or field not in shown:
            continue
        below = os.path.join(top, shown[field])
        part, axes = t.subdtype or (t, ())
        if part.kind == "S":
            continue
        why = arrays.compare_array(c, name, below, Tensor(
            d.shape, part, lambda i, n=field: d[i][n], tuple(inner) + tuple(axes)))
        if why:
            return "fields/%s: %s" % (field, why)
    return None


def _stored(d, index, t):
    """Elements as they are stored, without a conversion; in the order of bytes of t."""
    from h5py import h5s, h5t
    full = list(index) + [slice(0, n) for n in d.shape[len(index):]]
    start = tuple(i.start if isinstance(i, slice) else i for i in full)
    count = tuple(i.stop - i.start if isinstance(i, slice) else 1 for i in full)
    kind = d.id.get_type()
    out = np.empty(count, "V%d" % kind.get_size())
    if d.shape:
        space = d.id.get_space()
        space.select_hyperslab(start, count)
        d.id.read(h5s.create_simple(count), space, out, mtype=kind)
    else:
        d.id.read(h5s.ALL, h5s.ALL, out, mtype=kind)
    if kind.get_class() == h5t.FLOAT and kind.get_order() == h5t.ORDER_BE:
        out = out.view("u1").reshape(count + (-1,))[..., ::-1].copy()
    return out.view(t).reshape([n for n, i in zip(count, full)
                                if isinstance(i, slice)] if d.shape else ())


# --- where h5py has no filter ---------------------------------------------------------

def compare_dump(c, name, path, d, error):
    """Compares the dataset with what h5dump reads, whose libhdf5 may have filters that
    h5py's has not.  Raises `error` where it does not read the dataset either."""
    binary = os.path.join(path, "array.bin")
    dump = shutil.which("h5dump")
    stored = d.name if not isinstance(d.name, bytes) else os.fsdecode(d.name)
    if not dump or not stored or not c.look(os.path.exists, binary) or \
            c.look(os.stat, binary).st_size > c.limit:
        raise error
    out = os.path.join(c.scratch, "h5dump")
    c.asking(name)
    p = subprocess.run([dump, "-d", stored, "-b", "LE", "-o", out, d.file.filename],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE)
    try:
        return _same_as_dump(c, name, binary, out, p, error)
    finally:
        if os.path.exists(out):
            os.unlink(out)


def _same_as_dump(c, name, binary, out, p, error):
    if p.returncode or not os.path.exists(out) or not os.stat(out).st_size or \
            b"error" in p.stderr:
        raise ReaderFails("%s; nor does h5dump" % error)
    want = os.stat(out).st_size
    c.reading(name)
    got = c.look(os.stat, binary).st_size
    if got != want:
        raise ReaderFails("%s; h5dump writes %d bytes, array.bin has %d" % (
            error, want, got))
    with open(out, "rb") as f:
        at = 0
        while True:
            part = f.read(arrays.STEP)
            if not part:
                return None
            c.reading(name)
            if c.look(found.read_range, binary, len(part), at) != part:
                return "array.bin differs from what h5dump writes, behind byte %d" % at
            at += len(part)
