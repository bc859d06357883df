# SPDX-License-Identifier: BSD-2-Clause
"""Axes and metadata in info.json: what HyperSpy itself reads of a file, and files
that no HyperSpy wrote; axes of NeXus and netCDF-4 files.
"""
import errno
import math
import os

import h5py
import numpy as np

from checks import check, equal, read, same_bytes
from h5truth import info
from lib import exits, tensorfs
from writers import need, ramp

ANY = object()                       # whatever words
LISTED = 8 << 20                     # bytes of info.json, whatever is in the file


# --- what HyperSpy reads ----------------------------------------------------

def plain(x):
    """A value of HyperSpy's dictionaries as formats.md says that we show it."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, np.ndarray):
        return plain(x.tolist())
    if isinstance(x, np.generic):
        return plain(x.item())
    if isinstance(x, bytes):
        return x.hex()
    if isinstance(x, complex):
        return {"r": x.real, "i": x.imag}
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"
    if hasattr(x, "axes_manager"):
        return {"axes": plain(x.axes_manager), "data": ANY,
                "metadata": plain(x.metadata.as_dictionary())}
    if hasattr(x, "_axes"):          # <undefined> is not stored
        return [{k: plain(v) for k, v in a.get_axis_dictionary().items()
                 if str(v) != "<undefined>"} for a in x._axes]
    return x


def alike(got, want, at):
    if want is ANY:
        check(isinstance(got, str) and got[:1] == "(", "%s: %r" % (at, got))
    elif isinstance(want, dict) and isinstance(got, dict):
        equal(sorted(got), sorted(want), "keys of " + at)
        for k in want:
            alike(got[k], want[k], at + "/" + k)
    elif isinstance(want, list) and isinstance(got, list):
        equal(len(got), len(want), "items of " + at)
        for i, v in enumerate(want):
            alike(got[i], v, "%s/%d" % (at, i))
    else:
        equal(got, want, at)
        equal(type(got), type(want), "type of " + at)


def as_hyperspy(d, src):
    """Every axis and all metadata, as HyperSpy's own reader has them."""
    exp, = need("hyperspy.io_plugins.hspy").file_reader(src)
    got = info(d)
    alike(got["axes"], plain(exp["axes"]), "axes")
    alike(got["metadata"], plain(exp["metadata"]), "metadata")


def same_by_cat(d, src, path):
    p = exits(tensorfs("cat", "%s:%s/info.json" % (src, path), text=False), 0,
              "cat")
    b = read(os.path.join(d, "info.json"))
    same_bytes(p.stdout, b, "info.json by cat")
    equal(os.stat(os.path.join(d, "info.json")).st_size, len(b), "its size")
    check(len(b) < LISTED, "info.json has %d bytes" % len(b))


def rich(path):
    """Everything that HyperSpy can put into metadata; returns `data`'s path."""
    hs = need("hyperspy.api")
    s = hs.signals.Signal1D(ramp((3, 5, 40)).astype("f4"))
    s.metadata.General.title = "rich"
    for k, v in dict(
            text="gr\u00fcn\n", none=None, empty=[], no_tuple=(), flag=True,
            numbers=[1, 2.5], integers=[1, 2, 3], words=["a", "b\n", ""],
            mixed=[1, "a", None, [2, 3]], pair=(1, 2), raw=b"\x01\x00\x02",
            array=np.arange(6).reshape(2, 3), words_array=np.array(["a", "bc"]),
            large=2**60, complex=1 + 2j, nan=math.nan, tiny=1e-300 / 3,
            items=[{"a": 1}, {"b": "x"}],
            deep={"a": {"b": {"c": [1]}}}).items():
        s.metadata.set_item("Case." + k, v)
    s.metadata.set_item("Case.axes", s.axes_manager.deepcopy())
    s.metadata.set_item("Signal.Noise_properties.variance",
                        hs.signals.Signal1D(np.ones((3, 5, 40))))
    s.axes_manager._axes[2].is_binned = True
    s.save(path, overwrite=True)
    return "Experiments/rich/data"


def uneven(path):
    """Axes that are tables or functions."""
    hs = need("hyperspy.api")
    ax = need("hyperspy.axes")
    axes = [ax.DataAxis(axis=np.array([1.0, 2, 4, 8.5]), name="table",
                        navigate=True),
            ax.FunctionalDataAxis("a * x + b", a=2, b=1, name="function",
                                  x=ax.UniformDataAxis(size=6)),
            ax.UniformDataAxis(size=7)]
    s = hs.signals.BaseSignal(np.zeros((4, 6, 7)),
                              axes=[a.get_axis_dictionary() for a in axes])
    s.metadata.General.title = "uneven"
    s.save(path, overwrite=True)
    return "Experiments/uneven/data"


def twelve(path):
    """A list of twelve: HyperSpy itself reads 0, 1, 10, 11, 2, ..."""
    hs = need("hyperspy.api")
    s = hs.signals.BaseSignal(np.zeros((2, 3)))
    s.metadata.General.title = "twelve"
    s.metadata.set_item("Case.items", [{"n": i} for i in range(12)])
    s.save(path, overwrite=True)
    return "Experiments/twelve/data"


def twelve_in_order(d):
    equal(info(d)["metadata"]["Case"]["items"], [{"n": i} for i in range(12)],
          "a list of twelve")


# --- what nobody sane writes ------------------------------------------------

def _signal(f, name, shape=(2, 3), skip=()):
    g = f.create_group("Experiments/" + name)
    g["data"] = ramp(shape)
    for i in range(len(shape)):
        if i not in skip:
            a = g.create_group("axis-%d" % i).attrs
            a["name"], a["size"], a["scale"] = "n%d" % i, shape[i], 0.5 + i
            a["navigate"] = i == 0
    return g, g.create_group("metadata")


def odd_axes(f):
    _signal(f, "missing", (2, 3, 4), skip=[1])
    _signal(f, "twelve", (1,) * 12)
    _signal(f, "none", skip=[0, 1])
    g, _ = _signal(f, "not_groups", (2, 3, 4, 5), skip=[0, 1, 2])
    g["axis-0"] = np.arange(3)
    g["axis-1"] = h5py.SoftLink("/nowhere")
    g["axis-2"] = h5py.ExternalLink("other.hspy", "/axis-2")
    g, _ = _signal(f, "scalar", ())
    g.create_group("axis-0").attrs["name"] = "of nothing"
    g, _ = _signal(f, "texts")
    a = g["axis-0"].attrs
    a["scale"], a["is_binned"] = np.bytes_("0.25"), "True"
    a["units"], a["navigate"], a["size"] = np.bytes_(b"\xb5m"), 1, 2.0
    g["axis-1"].attrs["is_binned"] = np.bool_(True)
    g, _ = _signal(f, "in_a_list", skip=[0, 1])
    for i in range(2):
        g.create_group("_list_2_axes/%d" % i).attrs["name"] = "old%d" % i


def odd_links(f):
    g, m = _signal(f, "cycles")
    m["loop"] = m
    m["General/up"] = h5py.SoftLink("..")      # not a path of HDF5
    m["General/top"] = h5py.SoftLink("/Experiments/cycles")
    m["General/gone"] = h5py.SoftLink("/nowhere/at/all")
    m["General/out"] = h5py.ExternalLink("other.hspy", "/")
    m["_sig_itself"] = g
    m["_list_2_x/0"], m["_list_2_x/1"] = 7, h5py.SoftLink("/Experiments/cycles")
    m["data"] = h5py.SoftLink("/Experiments/cycles/data")
    m["type"] = np.dtype("<f8")
    _, m = _signal(f, "doubling")              # 2^30 paths
    for i in range(30):
        m = m.create_group("a")
        m.parent["b"] = m
    _, m = _signal(f, "deep")
    for i in range(80):
        m = m.create_group("d")


def large(f):
    _, m = _signal(f, "large")
    m.attrs["first"] = "still there"
    m["a_list/_list_numbers"] = np.arange(100000) / 3
    m["huge"] = np.zeros((3000, 3000), "u1")
    m["one_chunk"] = f.create_dataset("z", (30000, 30000), "f4", chunks=(
        30000, 30000))
    m.create_dataset("late", (4,), "f4", chunks=(30000,), maxshape=(None,),
                     compression=1)[:] = 1
    m.create_dataset("wide", (2, 2), "f8", chunks=(5000, 5000), maxshape=(
        None, None))
    m.create_dataset("text", (3,), h5py.string_dtype())[:] = "y" * 5000000
    v = h5py.VirtualLayout((3,), "f4")
    v[:] = h5py.VirtualSource("gone.h5", "x", (3,))
    m.create_virtual_dataset("virtual", v, fillvalue=5)
    m.create_dataset("raw", (3,), "f4", external=[("gone.raw", 0, 12)])
    _, m = _signal(f, "crowd")
    for i in range(30000):
        m.attrs["a%d" % i] = i
    _, m = _signal(f, "members")
    for i in range(30000):
        m.create_group("g%d" % i)


def hostile(path, *fills):
    """Returns the names of the experiments."""
    with h5py.File(path, "w", libver="latest") as f:
        for fill in fills:
            fill(f)
        return sorted(f["Experiments"])


def names(j):
    return [a and a.get("name") for a in j["axes"]]


def odd_axes_told(m):
    def of(name):
        return info(m / ("Experiments/%s/data" % name))
    equal(names(of("missing")), ["n0", None, "n2"], "one is missing")
    equal(of("missing")["axes"][2], {"name": "n2", "size": 4, "scale": 2.5,
                                     "navigate": False}, "the last one")
    equal(names(of("twelve")), ["n%d" % i for i in range(12)], "twelve axes")
    for name in ("none", "scalar"):
        j = of(name)
        check("axes" not in j and "metadata" not in j, "%s: %s" % (name, j))
    equal(names(of("not_groups")), [None, None, None, "n3"], "not groups")
    equal(names(of("in_a_list")), ["old0", "old1"], "of the old form")
    j = of("texts")["axes"]
    equal(j[0], {"name": "n0", "size": 2.0, "scale": "0.25", "navigate": 1,
                 "units": "\u00b5m", "is_binned": "True"}, "as texts")
    equal(j[1], {"name": "n1", "size": 3, "scale": 1.5, "navigate": False,
                 "is_binned": True}, "as numbers")


def odd_links_told(m):
    j = info(m / "Experiments/cycles/data")["metadata"]
    inside = "(a group that this is in)"
    equal(j["loop"], inside, "a hard link to itself")
    equal(j["itself"]["metadata"], inside, "a signal that is itself")
    top = j["General"].pop("top")
    equal(sorted(top), ["axis-0", "axis-1", "data", "metadata"], "the group")
    equal(top["metadata"], inside, "its metadata, by a soft link")
    equal(j["General"], dict.fromkeys(("gone", "out", "up"),
                                      "(a link, not followed)"), "links")
    equal(j["x"][0], 7, "the list")
    equal(j["data"], ramp((2, 3)).tolist(), "values by a soft link")
    equal(j["type"], "(a type)", "a type")
    j = info(m / "Experiments/deep/data")["metadata"]
    depth = 0
    while isinstance(j, dict):
        j, depth = j["d"], depth + 1
    equal((j, depth), ("(nested too deep)", 32), "a deep one")


def large_told(m):
    j = info(m / "Experiments/large/data")["metadata"]
    equal(j["first"], "still there", "an attribute")
    equal(j["a_list"]["numbers"], (np.arange(100000) / 3).tolist(), "a list")
    equal(j["late"], [1.0] * 4, "a chunk that is longer than the data")
    for k, word in (("huge", "9000000 values of type uint8"),
                    ("one_chunk", "too many"), ("wide", "chunks too large"),
                    ("text", "too long"), ("virtual", "in other files"),
                    ("raw", "in other files")):
        check(j[k][0] == "(" and word in j[k], "%s: %s" % (k, j[k]))
    for name in ("crowd", "members"):
        j = info(m / ("Experiments/%s/data" % name))["metadata"]
        rest = j.pop("(not listed)")
        equal(len(j) + rest, 30000, "items, listed or not")
        check(10000 < rest < 29000, "%d are not listed" % rest)


def bounded(m, src, all_names):
    for name in all_names:
        d = "Experiments/%s/data" % name
        same_by_cat(m / d, src, d)
        check(os.path.exists(m / (d + "/array.npy")), "no array of " + name)


def heaps(path):
    """Where the global heaps of a file begin."""
    with open(path, "rb") as f:
        b = f.read()
    at = b.find(b"GCOL")
    while at >= 0:
        yield at
        at = b.find(b"GCOL", at + 1)


def damaged(m, data, a):
    """Heaps of the metadata are noise: info.json may fail, nothing else."""
    try:
        check(info(m / data)["shape"] == list(a.shape), "another shape")
    except OSError as e:
        check(e.errno in (errno.EIO, errno.EBADMSG), str(e))
    same_bytes(read(m / (data + "/array.bin")), a.tobytes(), "array.bin")


# --- NeXus and netCDF-4 -----------------------------------------------------

def nexus(path):
    with h5py.File(path, "w") as f:
        g = f.create_group("entry/scan")
        g.attrs.update(NX_class="NXdata", signal="counts",
                       auxiliary_signals=["errors"], axes=["y", ".", "x"])
        for name in ("counts", "errors", "other"):
            g[name] = ramp((3, 4, 5))
        g["x"], g["y"] = np.arange(5.0), np.arange(3.0)
        g["x"].attrs["units"], g["x"].attrs["long_name"] = "mm", "stage x"
        f["alias"] = h5py.SoftLink("/entry/scan")
        g = f.create_group("indexed")
        g.attrs.update(signal="v", axes=["t", "gone", "wild"],
                       wild_indices=99, t_indices=1, gone_indices=[0, 1])
        g["v"], g["t"] = ramp((2, 6)), np.arange(6)
        g = f.create_group("old")
        g["v"], g["a"], g["b"] = ramp((2, 3)), np.arange(2), np.arange(3)
        g["v"].attrs.update(signal=1, axes="[a:b]")
        g["w"], g["n"] = ramp((2, 3)), ramp((2, 3))
        g["w"].attrs["axes"] = "a,b"
        g["n"].attrs["axes"] = "XY"             # letters, not a list


def nexus_told(m):
    def of(name):
        return info(m / name)
    for p in ("entry/scan", "alias"):
        want = [{"name": "y", "path": "/%s/y" % p}, None,
                {"name": "x", "path": "/%s/x" % p, "units": "mm",
                 "long_name": "stage x"}]
        for name in ("counts", "errors"):
            equal(of("%s/%s" % (p, name))["axes"], want, name)
        for name in ("other", "x", "y"):
            check("axes" not in of("%s/%s" % (p, name)), name + " has axes")
    equal(of("indexed/v")["axes"], [None, {"name": "t", "path": "/indexed/t"}],
          "the index that is said")
    for name in ("v", "w"):
        equal(names(of("old/" + name)), ["a", "b"], name)
    check("axes" not in of("old/n"), "letters are no axes")


def scales(path):
    with h5py.File(path, "w") as f:
        d = f.create_dataset("g/d", data=ramp((3, 4, 5)))
        f["s"] = np.arange(4.0)
        f["s"].attrs["units"] = "keV"
        f["s"].make_scale("energy")
        d.dims[1].attach_scale(f["s"])
        d.dims[2].label = "only a label"
        e = f.create_dataset("e", data=ramp((4, 4)))
        e.dims[0].attach_scale(f["s"])
        e.dims[0].label = "rows"
        bad = f.create_dataset("bad", data=ramp((2, 2)))
        bad.attrs["DIMENSION_LIST"], bad.attrs["DIMENSION_LABELS"] = 7, 8


def scales_told(m):
    s = {"path": "/s", "units": "keV"}
    equal(info(m / "g/d")["axes"], [None, dict(s, name="s"), {
        "name": "only a label"}], "d")
    equal(info(m / "e")["axes"], [dict(s, name="rows"), None], "e")
    check("axes" not in info(m / "bad"), "numbers are no scales")


def dimensions_told(m, src):
    """The dimensions of each variable, as netCDF4-python names them."""
    nc = need("netCDF4").Dataset(src)

    def group(g, at):
        n = 0
        for name, v in g.variables.items():
            j = info(m / (at + name))
            if "DIMENSION_LIST" in j["attributes"]:
                equal(names(j), list(v.dimensions), "axes of " + at + name)
                n += 1
        return n + sum(group(c, at + k + "/") for k, c in g.groups.items())
    try:
        check(group(nc, "") > 3, "hardly a variable has dimensions")
    finally:
        nc.close()
