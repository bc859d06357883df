# SPDX-License-Identifier: BSD-2-Clause
"""What h5py says is in a file, and whether a mount shows exactly that.

snapshot(FILE) walks a file with h5py, through every kind of link, and keeps a
copy of each value: the file may then be moved or lose a part, and same_as()
still knows what it held.  same_as() runs one case per data set.
"""
import io
import itertools
import json
import math
import os
import random
import re

import h5py
import numpy as np

from checks import (Failure, check, equal, fails_with, pread, read,
                    same_bytes)

class _Any:
    def __reduce__(self):  # still the same one after a pickle
        return "ANY"


ANY = _Any()            # an attribute whose JSON is nobody's business
rng = random.Random(11)


class Item:
    """One name: kind is number, text, ragged, refs, records, empty, group,
    dangling, cycle, type, or unreadable (h5py cannot read it)."""

    def __init__(self, kind, value=None, attrs=None, axes=1, full=False,
                 what=""):
        self.kind, self.value, self.attrs = kind, value, attrs or {}
        self.axes = axes    # how many axes samples/ has
        self.full = full    # every chunk of the grid is stored
        self.what = what    # h5py's words, or where a link points


def plain(dt):
    """The same type, little-endian, without h5py's metadata."""
    if dt.names:
        return np.dtype({"names": dt.names,
                         "formats": [plain(dt[n]) for n in dt.names],
                         "offsets": [dt.fields[n][1] for n in dt.names],
                         "itemsize": dt.itemsize})
    if dt.subdtype:
        return np.dtype((plain(dt.subdtype[0]), dt.subdtype[1]))
    return np.dtype(dt.str).newbyteorder("<")


def little(a):
    """The same values, as the mount gives them."""
    a = np.asarray(a)
    dt = plain(a.dtype)
    return np.array(a.astype(dt), order="C").view(dt)


def npy(a):
    """What np.save writes."""
    f = io.BytesIO()
    np.save(f, np.array(a, order="C"), allow_pickle=False)
    return f.getvalue()


def text(x):
    return x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else x


def jsonable(f, x):
    """A value of h5py as JSON has it; ANY where that is a matter of taste."""
    if isinstance(x, h5py.Empty):
        return None
    if isinstance(x, h5py.h5r.RegionReference):
        return ANY
    if isinstance(x, h5py.h5r.Reference):
        return (x and f[x].name) or ANY
    if isinstance(x, (bytes, str)):
        s = text(x)
        return ANY if re.search(r"[\udc80-\udcff\0]", s) else s
    if isinstance(x, np.void):
        if not x.dtype.names:
            return ANY
        return {n: jsonable(f, x[n]) for n in x.dtype.names}
    if isinstance(x, np.ndarray):
        return [jsonable(f, v) for v in x] if x.ndim else jsonable(f, x[()])
    if isinstance(x, (np.bool_, np.integer, np.floating)):
        if isinstance(x, np.longdouble):
            return ANY
        # Beyond the integers of JSON libraries: digits in a string.
        return str(x) if x > 2**63 - 1 and isinstance(x, np.integer) else \
            x.item()
    return ANY


def alike(got, want):
    if want is ANY:
        return True
    if isinstance(want, dict):
        return isinstance(got, dict) and sorted(got) == sorted(want) and \
            all(alike(got[k], v) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and \
            all(alike(g, w) for g, w in zip(got, want))
    if isinstance(want, float):
        if not math.isfinite(want):
            return True
        return isinstance(got, (int, float)) and \
            math.isclose(got, want, rel_tol=1e-6)
    return got == want


def attributes(f, obj):
    out = {}
    for k in obj.attrs:
        try:
            v = obj.attrs[k]
            dt = obj.attrs.get_id(k).dtype
            enum = h5py.check_enum_dtype(dt)
        except (OSError, TypeError, ValueError):
            out[k] = ANY
            continue
        out[k] = ANY if enum else jsonable(f, v)
    return out


def _stored_whole(d):
    if not d.chunks or not d.size:
        return False
    grid = math.prod(-(-s // c) for s, c in zip(d.shape, d.chunks))
    return d.id.get_num_chunks() == grid


def _dataset(f, d):
    attrs = attributes(f, d)
    if d.shape is None:
        return Item("empty", attrs=attrs)
    try:
        v, dt = d[()], d.dtype
    except (OSError, TypeError, ValueError) as e:
        return Item("unreadable", attrs=attrs, what=str(e))
    full = _stored_whole(d)
    if h5py.check_string_dtype(dt):
        return Item("text", np.asarray(v, object), attrs)
    if h5py.check_ref_dtype(dt):
        a = np.asarray(v, object)
        names = [f[r].name if r else "" for r in a.ravel()]
        return Item("refs", np.array(names, object).reshape(a.shape), attrs)
    base = h5py.check_vlen_dtype(dt)
    if base is not None:
        a = np.empty(d.shape, object)
        flat = [v] if d.shape == () else v.ravel()
        a.ravel()[:] = [None] * a.size
        for i, x in enumerate(flat):
            a.ravel()[i] = np.asarray(x, base)
        return Item("ragged" if not base.hasobject else "other", a, attrs)
    if dt.names and dt.hasobject:
        lines = [jsonable(f, x) for x in np.asarray(v).ravel()]
        return Item("records", lines, attrs)
    if dt.hasobject:
        return Item("other", attrs=attrs)
    return Item("number", little(v), attrs, full=full)


def _walk(f, g, path, above, out):
    for name in g:
        p = (path + "/" if path else "") + name
        link = g.get(name, getlink=True)
        try:
            obj = g[name]
        except (KeyError, OSError) as e:
            where = getattr(link, "filename", None) or \
                getattr(link, "path", "")
            out[p] = Item("dangling", what=where or str(e))
            continue
        if isinstance(obj, h5py.Dataset):
            out[p] = _dataset(obj.file, obj)
        elif isinstance(obj, h5py.Group):
            o = h5py.h5o.get_info(obj.id)
            key = (o.fileno, o.addr)
            if key in above:
                out[p] = Item("cycle")
                continue
            out[p] = Item("group", attrs=attributes(obj.file, obj))
            _walk(obj.file, obj, p, above | {key}, out)
        else:
            out[p] = Item("type")


def snapshot(path, axes=None, under="/"):
    """{path: Item} of everything in a file; axes: {path: axes of samples/}."""
    out = {}
    with h5py.File(path, "r") as f:
        out[""] = Item("group", attrs=attributes(f, f["/"]))
        o = h5py.h5o.get_info(f["/"].id)
        _walk(f, f[under], under.strip("/"), {(o.fileno, o.addr)}, out)
    for p, k in (axes or {}).items():
        out[p].axes = k
    return out


# --- comparing a mount with it ---------------------------------------------

def info(d):
    return json.loads(read(os.path.join(d, "info.json")))


def why_not(d):
    """The sentence of a data set that cannot be shown."""
    j = info(d)
    why = j.get("not_shown")
    check(isinstance(why, str) and " " in why, "info.json has no sentence "
          "not_shown: %s" % str(j)[:300])
    return why


def same_attributes(d, item, group):
    want = item.attrs
    check(os.path.isdir(d), "not a directory")
    if group:
        if not want:
            return
        raw = os.getxattr(d, "user.tensorfs.attrs").decode()
        got = json.loads(raw)
    else:
        got = info(d).get("attributes", {})
    for k, v in want.items():
        check(k in got, "attribute %r is not shown, only %s" % (
            k, sorted(got)[:20]))
        check(alike(got[k], v), "attribute %r: expected %r, got %r" % (
            k, v, got[k]))


def _windows(path, want, what):
    equal(os.stat(path).st_size, len(want), "st_size of " + what)
    same_bytes(read(path), want, what)
    for _ in range(20 if want else 0):
        off = rng.randrange(len(want))
        n = rng.randrange(1, min(len(want) - off, 70000) + 1)
        same_bytes(pread(path, n, off), want[off:off + n],
                   "%s [%d,+%d)" % (what, off, n))


def _same_npy(path, a, what):
    """Byte for byte; padding between fields has no right value."""
    want = npy(a)
    if not a.dtype.names:
        same_bytes(read(path), want, what)
        return
    head = len(want) - a.nbytes
    got = read(path)
    same_bytes(got[:head], want[:head], what + " (header)")
    equal(len(got), len(want), "length of " + what)
    b = np.frombuffer(got, a.dtype, offset=head).reshape(a.shape)
    for n in a.dtype.names:
        same_bytes(b[n].tobytes(), a[n].tobytes(), "%s, field %s" % (what, n))


def _box(name, a, got):
    """The box that a block's name says, if its shape and bytes agree."""
    check(re.fullmatch(r"\d{6,}-\d{6,}(_\d{6,}-\d{6,})*\.npy", name),
          "block name %s is not BEGIN-END ranges" % name)
    ranges = [tuple(map(int, p.split("-"))) for p in name[:-4].split("_")]
    for axes in itertools.combinations(range(a.ndim), len(ranges)):
        box = [slice(0, s) for s in a.shape]
        for ax, (b, e) in zip(axes, ranges):
            box[ax] = slice(b, e)
        part = a[tuple(box)]
        if part.shape == got.shape and all(
                b < e <= a.shape[x] for x, (b, e) in zip(axes, ranges)) and \
                np.array_equal(part, got, equal_nan=a.dtype.kind in "fc"):
            return tuple(box)
    raise Failure("block %s has shape %s and is nowhere in the array" % (
        name, got.shape))


def same_blocks(d, a, full):
    b = os.path.join(d, "blocks")
    if not os.path.isdir(b) or not a.ndim or not a.size:
        check(not full, "no blocks/ for a chunked data set")
        return
    seen = np.zeros(a.shape, bool)
    names = sorted(os.listdir(b))
    for n in names:
        got = np.load(os.path.join(b, n))
        equal(got.dtype, a.dtype, "dtype of block " + n)
        box = _box(n, a, got)
        seen[box] = True
    check(names and (seen.all() or not full),
          "blocks do not cover the tensor: %s" % names[:5])


def numbered(d, shape, ext):
    """[(index, path)] of samples/: every index once, sorted as numbers."""
    rows = sorted(os.listdir(d))
    last = len(shape) == 1
    equal([r[-len(ext):] for r in rows] if last else [],
          [ext] * len(rows) if last else [], "suffixes in " + d)
    stems = [r[:-len(ext)] if last else r for r in rows]
    check(all(re.fullmatch(r"\d{6,}", x) for x in stems),
          "names in samples/ at this level: %s" % rows[:3])
    equal([int(s) for s in stems], list(range(shape[0])), "names in " + d)
    check(len({len(s) for s in stems}) <= 1, "widths differ: %s" % rows[:3])
    for i, r in enumerate(rows):
        p = os.path.join(d, r)
        if last:
            yield (i,), p
        else:
            for rest, q in numbered(p, shape[1:], ext):
                yield (i,) + rest, q


def some(pairs, k=100):
    pairs = list(pairs)
    return pairs if len(pairs) <= k else rng.sample(pairs, k)


def same_samples(d, item):
    a = item.value
    if a.ndim == 0 or not a.shape[0] or not item.axes:
        return
    for i, p in some(numbered(os.path.join(d, "samples"),
                              a.shape[:item.axes], ".npy")):
        want = npy(a[i])
        equal(os.stat(p).st_size, len(want), "st_size of " + p)
        _same_npy(p, np.asarray(a[i]), "sample %s" % (i,))


def number(d, item):
    a = item.value
    j = info(d)
    equal(j.get("shape"), list(a.shape), "info.json shape")
    whole = os.path.join(d, "array.npy")
    if a.dtype.names:
        _same_npy(whole, a, "array.npy")
        for n in a.dtype.names:
            check("/" in n or os.path.isdir(os.path.join(d, "fields", n)),
                  "no fields/%s" % n)
            if a.dtype[n].kind != "S" and "/" not in n:
                _same_npy(os.path.join(d, "fields", n, "array.npy"),
                          little(a[n]), "fields/%s/array.npy" % n)
    else:
        _windows(whole, npy(a), "array.npy")
        if a.size:
            _windows(os.path.join(d, "array.bin"), a.tobytes(), "array.bin")
            m = np.load(whole, mmap_mode="r")
            same_bytes(m.tobytes(), a.tobytes(), "np.load(mmap_mode='r')")
            del m
    same_samples(d, item)
    same_blocks(d, a, item.full)


def lines(d, item):
    """Strings and references: one value a line."""
    flat = [text(x) for x in item.value.ravel()]
    if any("\n" in x for x in flat):
        check(os.path.exists(os.path.join(d, "array.txt")), "no array.txt")
        return
    enc = ("utf-8", "surrogateescape")
    want = "".join(x + "\n" for x in flat).encode(*enc)
    _windows(os.path.join(d, "array.txt"), want, "array.txt")
    if item.value.ndim == 0 or not item.value.size:
        return
    for i, p in some(numbered(os.path.join(d, "samples"),
                              item.value.shape[:item.axes], ".txt")):
        rows = np.asarray(item.value[i], object).ravel()
        row = "".join(text(x) + "\n" for x in rows).encode(*enc)
        check(read(p) in (row, row[:-1]), "sample %s: expected %r, got %r" % (
            i, row[:80], read(p)[:80]))


def ragged(d, item):
    check(not os.path.exists(os.path.join(d, "array.npy")),
          "a ragged data set has an array.npy")
    a = item.value
    if not a.ndim or not a.size:
        return
    for i, p in some(numbered(os.path.join(d, "samples"), a.shape, ".npy")):
        want = npy(little(a[i]))
        equal(os.stat(p).st_size, len(want), "st_size of sample %s" % (i,))
        same_bytes(read(p), want, "sample %s" % (i,))


def records(d, item):
    """Compound with strings or references in it: one JSON value a line."""
    got = read(os.path.join(d, "array.txt")).decode().split("\n")
    equal(got[-1], "", "end of array.txt")
    equal(len(got) - 1, len(item.value), "lines of array.txt")
    for i, (g, w) in enumerate(zip(got, item.value)):
        check(alike(json.loads(g), w), "line %d: expected %r, got %s" % (
            i, w, g[:200]))


def listed(d, item):
    """No more than: it is there, and says something."""
    check(os.path.isdir(d), "not in the tree")
    check(info(d).get("name"), "info.json has no name")


def dangling(d, item):
    check(os.path.islink(d) and not os.path.exists(d),
          "not a dangling symlink")
    if item.what:
        base = os.path.basename(item.what)
        check(base in os.readlink(d), "the target of the symlink, %s, does "
              "not name %s" % (os.readlink(d), base))


def cycle(d, item):
    check(os.path.islink(d), "a cycle is not a symlink")


CHECKS = {"number": number, "text": lines, "refs": lines, "ragged": ragged,
          "records": records, "empty": listed, "unreadable": listed,
          "other": listed, "dangling": dangling, "cycle": cycle}


def same_item(d, item):
    if item.kind != "type":
        CHECKS[item.kind](d, item)


def same_tags(d, item):
    same_attributes(d, item, item.kind == "group")


def _each(f, m, paths, items):
    """f on all of them; says how many differ and how the first one does."""
    bad = []
    for p in paths:
        try:
            f(os.path.join(m.path, p), items[p])
        except (Failure, OSError, ValueError, KeyError) as e:
            bad.append((p, str(e).replace(m.path, "MNT")))
    if bad:
        raise Failure("%s%s" % ("" if len(paths) == 1 else "%d of %d, %s: " % (
            len(bad), len(paths), bad[0][0] or "/"), bad[0][1]))


def same_as(sub, m, items, together=None):
    """One case for each data set and link: sub(NAME, function, arguments), or
    one for all whose together(NAME) is the same; one for the attributes of all
    groups, one for those of all data sets."""
    cases, tags = {}, {"groups": [], "attributes": []}
    for path, item in items.items():
        if item.kind == "group":
            tags["groups"].append(path)
            continue
        cases.setdefault(together(path) if together else path,
                         []).append(path)
        if item.attrs:
            tags["attributes"].append(path)
    for key, paths in cases.items():
        sub(key, _each, same_item, m, paths, items)
    for key, paths in tags.items():
        if paths:
            sub(key, _each, same_tags, m, paths, items)


def lost(d, item, missing, rows=None, code=61):
    """Samples in `rows` (all if None) fail with ENODATA and name a file of
    `missing`; the others are whole.  Never zeros."""
    check(os.path.isdir(d), "not in the tree")
    a = item.value
    for (i,), p in numbered(os.path.join(d, "samples"), a.shape[:1], ".npy"):
        if rows is None or i in rows:
            fails_with(code, lambda: read(p), "sample %d" % i)
            why = os.getxattr(p, "user.tensorfs.error").decode()
            check(any(x in why for x in missing), "user.tensorfs.error of "
                  "sample %d names none of %s: %r" % (i, missing[:3], why))
            equal(os.stat(p).st_size, len(npy(a[i])), "st_size of sample %d"
                  % i)
        else:
            same_bytes(read(p), npy(a[i]), "sample %d" % i)
    for f in ("array.npy", "array.bin"):
        fails_with(code, lambda: read(os.path.join(d, f)), f)
