#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Types as programs other than h5py write them: HDF5's time, members in the order that
they are declared in, filters that take the size of elements from the type."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import tables
from checks import check, equal, read
from h5py import h5d, h5p, h5s, h5t, h5z
from lib import Mount, case

work = None
BITSHUFFLE = 32008


def path(name):
    return os.path.join(work, name)


def load(m, *names):
    return np.load(os.path.join(m.path, *names))


def info(m, *names):
    return json.loads(read(os.path.join(m.path, *names, "info.json")))


# --- time ---------------------------------------------------------------------------

class Row(tables.IsDescription):
    when = tables.Time64Col(pos=0)
    at = tables.Time32Col(pos=1)
    v = tables.Float64Col(pos=2)
    many = tables.Time64Col(pos=3, shape=(2,))


@case
def pytables_time():
    """A table with columns of time is a table, not lines of hex."""
    with tables.open_file(path("time.h5"), "w") as f:
        t = f.create_table("/", "t", Row)
        for i in range(5):
            t.row["when"] = 1.5e9 + i + .25
            t.row["at"] = i - 2
            t.row["v"] = i * .5
            t.row["many"] = i, 1e9 + i + .5
            t.row.append()
        f.create_array("/", "alone", atom=tables.Time32Atom(),
                       obj=np.arange(3, dtype="i4"))
    with tables.open_file(path("time.h5")) as f:
        want = f.root.t[:]
    stored = lambda v: (np.floor(v).astype("i8") << 32) + \
        np.round(v % 1 * 1e6).astype("i8")
    with Mount(path("time.h5")) as m:
        got = load(m, "t", "array.npy")
        equal(got.dtype.descr, [("when", "<i8"), ("at", "<i4"), ("v", "<f8"),
                                ("many", "<i8", (2,))], "dtype")
        for name in "at", "v":
            equal(got[name].tolist(), want[name].tolist(), name)
        for name in "when", "many":
            equal(got[name].tolist(), stored(want[name]).tolist(), name)
            equal(load(m, "t", "fields", name, "array.npy").tolist(),
                  got[name].tolist(), "field " + name)
        said = info(m, "t", "fields", "when")["stored_type"]
        check("seconds << 32 | microseconds" in said, said)
        check("not_shown" not in info(m, "t"), "not shown")
        equal(load(m, "alone", "array.npy").tolist(), [0, 1, 2], "an array")
        with tables.open_file(m.path + "/merged.h5") as f:
            equal(f.root.t[:].tobytes(), want.tobytes(), "PyTables over merged.h5")


@case
def time_of_both_orders():
    raw = np.array([-1, 2 ** 31 - 1, 7], "i4")
    with h5py.File(path("order.h5"), "w") as f:
        for name, t in (("le", h5t.UNIX_D32LE), ("be", h5t.UNIX_D32BE)):
            p = h5p.create(h5p.DATASET_CREATE)
            p.set_chunk((3,))
            d = h5d.create(f.id, name.encode(), t, h5s.create_simple((3,)), p)
            stored = raw.astype("<i4" if name == "le" else ">i4")
            d.write_direct_chunk((0,), stored.tobytes())
        a = h5py.h5a.create(f.id, b"t", h5t.UNIX_D32LE, h5s.create(h5s.SCALAR))
        a.write(np.array(12345, "i4"), h5t.UNIX_D32LE)
        # Beside text of any length everything is JSON.
        t = h5t.create(h5t.COMPOUND, 12)
        t.insert(b"s", 0, h5t.py_create(h5py.string_dtype(), logical=True))
        t.insert(b"t", 8, h5t.UNIX_D32LE)
        h5d.create(f.id, b"text", t, h5s.create_simple((1,)))
    with Mount(path("order.h5")) as m:
        for name in "le", "be":
            equal(load(m, name, "array.npy").tolist(), raw.tolist(), name)
        attrs = json.loads(os.getxattr(m.path, "user.tensorfs.attrs"))
        equal(attrs, {"t": 12345}, "attribute")
        equal(json.loads(read(m.path + "/text/array.txt"))["t"], 0, "beside text")


# --- members ------------------------------------------------------------------------

@case
def declared_order():
    """h5py keeps the order that members are declared in, whatever the offsets."""
    inner = np.dtype({"names": ["z", "y"], "formats": ["i2", "u1"], "offsets": [2, 0],
                      "itemsize": 4})
    t = np.dtype({"names": ["last", "mid", "first"], "formats": [">f8", inner, "i4"],
                  "offsets": [8, 4, 0], "itemsize": 16})
    a = np.zeros(6, t)
    a["last"], a["first"] = np.arange(6) / 3, np.arange(6)
    a["mid"]["z"], a["mid"]["y"] = -np.arange(6), np.arange(6) + 9
    with h5py.File(path("declared.h5"), "w") as f:
        f["d"] = a
        want = f["d"].dtype
    equal(want.names, t.names, "h5py writes them as declared")
    with Mount(path("declared.h5")) as m:
        for name, d in (("d/array.h5", "d"), ("merged.h5", "d")):
            with h5py.File(os.path.join(m.path, name)) as f:
                equal(f[d].dtype.names, want.names, name)
                equal(f[d].dtype["mid"].names, inner.names, name + ": inner")
                for n in "last", "first":
                    equal(f[d][n].tolist(), a[n].tolist(), name + ": " + n)
                for n in inner.names:
                    equal(f[d]["mid"][n].tolist(), a["mid"][n].tolist(),
                          name + ": " + n)
        equal(info(m, "d")["fields"], list(want.names), "info.json")
        got = load(m, "d", "array.npy")  # np.save has offsets only
        for n in "last", "first":
            equal(got[n].tolist(), a[n].tolist(), "array.npy: " + n)
        for n in inner.names:
            equal(got["mid"][n].tolist(), a["mid"][n].tolist(), "array.npy: " + n)


# --- filters ------------------------------------------------------------------------

SHUFFLED = {"u2": "<u2", "f8": "<f8", "odd": None, "array": ("<u2", (3,)),
            "matrix": ("<i4", (2, 5)),
            "struct": [("a", "<u2"), ("b", "<f4"), ("c", "u1")]}
USER = ((0, 2), (16, 2), (0, 0), (16,), ())

WITHOUT = """
import pickle, sys
import h5py
from h5py import h5d, h5p, h5s, h5z
out, todo = pickle.load(sys.stdin.buffer)
assert not h5z.filter_avail(32008)
with h5py.File(out, "w") as f:
    for name, t, shape, chunk, user, chunks in todo:
        p = h5p.create(h5p.DATASET_CREATE)
        p.set_chunk(chunk)
        p.set_filter(32008, h5z.FLAG_OPTIONAL, user)
        s = h5s.create_simple(shape)
        d = h5d.create(f.id, name.encode(), h5py.h5t.decode(t), s, p)
        assert d.get_create_plist().get_filter(0)[2] == user
        for at, (mask, data) in chunks.items():
            d.write_direct_chunk(at, data, mask)
"""


def element(name):
    if name == "odd":  # 3 bytes
        t = h5t.STD_I32LE.copy()
        t.set_precision(24)
        t.set_size(3)
        return t
    return h5t.py_create(np.dtype(SHUFFLED[name]), logical=True)


def shuffled(f, name, user):
    """A dataset that the plugin has written, (what it is, its stored chunks)."""
    n = 100
    t = element(name)
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk((64,))
    p.set_filter(BITSHUFFLE, h5z.FLAG_OPTIONAL, user)
    d = h5d.create(f.id, ("%s_%s" % (name, "_".join(map(str, user)))).encode(), t,
                   h5s.create_simple((n,)), p)
    if name == "odd":
        a = np.arange(n, dtype="i4") * 999 - 50000
        d.write(h5s.ALL, h5s.ALL, a, h5t.STD_I32LE)
    else:
        a = np.zeros(n, SHUFFLED[name])
        raw = np.arange(a.nbytes) * 7 // 3 % 251
        if name == "f8":
            a[...] = np.arange(n) / 7
        elif name == "struct":
            a["a"], a["b"], a["c"] = np.arange(n), np.arange(n) / 9, raw[:n]
        else:
            a[...] = raw[:a.size].reshape(a.shape)
        d.write(h5s.ALL, h5s.ALL, a, t)
    cd = d.get_create_plist().get_filter(0)[2]
    equal(cd[2], t.get_size(), "the plugin's size of elements of " + name)
    equal(cd[3:3 + len(user)], user, "the plugin's parameters")
    chunks = {(k,): d.read_direct_chunk((k,)) for k in (0, 64)}
    return a, (t.encode(), (n,), (64,), user, chunks)


@case
def bitshuffle_by_type():
    """Datasets whose filter has the user's parameters alone: no set_local was there
    when they were made.  Chunks are the plugin's own."""
    import pickle
    want, todo = {}, []
    with h5py.File(path("plugin.h5"), "w") as f:
        for name in SHUFFLED:
            for user in USER:
                a, rest = shuffled(f, name, user)
                key = "%s_%s" % (name, "_".join(map(str, user)))
                want[key] = a
                todo.append((key, *rest))
    env = dict(os.environ, HDF5_PLUGIN_PATH="/nowhere", HDF5_PLUGIN_PRELOAD="::")
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, env=env,
                   input=pickle.dumps((path("short.h5"), todo)))
    for file in "plugin.h5", "short.h5":
        with Mount(path(file)) as m:
            for key, a in want.items():
                got = load(m, key, "array.npy")
                equal(got.shape, a.shape, file + " " + key)
                check(np.array_equal(got, a), "%s %s: other values" % (file, key))


work = lib.setup()
lib.main()
