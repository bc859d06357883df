#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack --chunk keeps the file: what h5py, h5diff and the programs that wrote it see."""
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))
warnings.filterwarnings("ignore")

import h5py
import numpy as np

import hspy
import lib
import skerch
import writers
from checks import check, equal, same_bytes
from lib import case, exits, run, tensorfs

work = None
counter = itertools.count()


def path(suffix=".h5"):
    return os.path.join(work, "%03d%s" % (next(counter), suffix))


def pack(src, out, *options, code=0):
    """Returns what was said."""
    p = exits(tensorfs("pack", src, out, *options), code,
              "pack " + " ".join(options))
    if code not in (0, 1):
        check(not os.path.exists(out), "something was left behind")
    return p.stderr


# ---- two files that are the same but for chunks ---------------------------------

def shown(f, value):
    """A value, with paths for references."""
    if isinstance(value, h5py.RegionReference):
        if not value:
            return None
        d = f[value]
        return d.name, str(h5py.h5r.get_region(value, f.id).get_select_bounds())
    if isinstance(value, h5py.Reference):
        return f[value].name if value else None
    if isinstance(value, h5py.Empty):
        return "empty", str(value.dtype)
    if isinstance(value, np.void) and value.dtype.names:
        return [shown(f, value[n]) for n in value.dtype.names]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject or value.dtype.names:
            return value.shape, [shown(f, x) for x in value.reshape(-1)]
        return value.shape, str(value.dtype), value.tobytes()
    if isinstance(value, np.generic):
        return str(value.dtype), value.tobytes()
    return value


def attributes(f, x):
    """In their order: names, types, values."""
    names = []
    order = x.id.get_create_plist().get_attr_creation_order() \
        if not isinstance(x, h5py.Datatype) else 0
    index = h5py.h5.INDEX_CRT_ORDER if order else h5py.h5.INDEX_NAME
    h5py.h5a.iterate(x.id, names.append, index_type=index)
    result = []
    for name in names:
        a = h5py.h5a.open(x.id, name)
        t = a.get_type()
        if t.detect_class(h5py.h5t.REFERENCE) or not t.committed():
            value = shown(f, x.attrs[name.decode()])
        else:
            value = None
        result.append((name, t, t.committed(), a.get_space().shape, value))
    return order, result


def links(g):
    """In their order: name, kind, what it says."""
    order = g.id.get_create_plist().get_link_creation_order()
    names = []
    g.id.links.iterate(names.append,
                       idx_type=h5py.h5.INDEX_CRT_ORDER if order
                       else h5py.h5.INDEX_NAME)
    result = []
    for name in names:
        info = g.id.links.get_info(name)
        value = g.id.links.get_val(name) \
            if info.type != h5py.h5l.TYPE_HARD else None
        result.append((name, info.type, value))
    return order, result


def storage(d):
    p = d.id.get_create_plist()
    layout = p.get_layout()
    filters = [p.get_filter(i)[:1] + p.get_filter(i)[2:3]
               for i in range(p.get_nfilters())]
    fill = p.fill_value_defined()
    virtual = [(m.file_name, m.dset_name) for m in d.virtual_sources()] \
        if d.is_virtual else None
    files = [p.get_external(i) for i in range(p.get_external_count())]
    return layout, p.get_chunk() if layout == h5py.h5d.CHUNKED else None, \
        filters, fill, d.maxshape, virtual, files


def same_datasets(a, b, name, x, y, others):
    equal(x.shape, y.shape, "shape of " + name)
    check(x.id.get_type() == y.id.get_type(), "type of " + name)
    equal(x.id.get_type().committed(), y.id.get_type().committed(),
          "named type of " + name)
    if others:
        equal(storage(y), storage(x), "storage of " + name)
    if x.is_virtual or x.external or x.shape is None:
        return
    try:
        value = x[()]
    except (OSError, TypeError):  # a filter, or a type, that h5py has not
        for i in range(x.id.get_num_chunks() if x.chunks else 0):
            at = x.id.get_chunk_info(i).chunk_offset
            equal(y.id.read_direct_chunk(at), x.id.read_direct_chunk(at),
                  "chunk of " + name)
        return
    equal(shown(b, y[()]), shown(a, value), "values of " + name)


def same_files(src, out, target):
    """Returns how many objects there are."""
    with h5py.File(src, "r") as a, h5py.File(out, "r") as b:
        seen, rest = {}, [("/", a["/"], b["/"])]
        target = h5py.h5o.get_info(a[target].id).addr
        equal(b.userblock_size, a.userblock_size, "user block")
        with open(src, "rb") as f, open(out, "rb") as g:
            n = a.userblock_size
            same_bytes(g.read(n), f.read(n), "user block")
        while rest:
            name, x, y = rest.pop()
            here, there = (h5py.h5o.get_info(z.id).addr for z in (x, y))
            if here in seen:
                equal(seen[here], there, name + ": one object, as before")
                continue
            seen[here] = there
            equal(type(y), type(x), "kind of " + name)
            equal(h5py.h5o.get_info(y.id).rc, h5py.h5o.get_info(x.id).rc,
                  "names of " + name)
            was, now = attributes(a, x), attributes(b, y)
            equal(now[0], was[0], "order of attributes of " + name)
            equal([n[0] for n in now[1]], [n[0] for n in was[1]],
                  "attributes of " + name)
            for v, w in zip(now[1], was[1]):
                check(v[1] == w[1], "type of %s@%s" % (name, v[0]))
                equal(v[2:], w[2:], "%s@%s" % (name, v[0]))
            if isinstance(x, h5py.Group):
                equal(links(y), links(x), "links of " + name)
                for k, kind, _ in links(x)[1]:
                    if kind == h5py.h5l.TYPE_HARD:
                        rest.append((name.rstrip("/") + "/" + k.decode(),
                                     x[k], y[k]))
            elif isinstance(x, h5py.Dataset):
                same_datasets(a, b, name, x, y, here != target)
            else:
                check(x.id == y.id, "type " + name)
        equal(len(set(seen.values())), len(seen), "objects")
    p = run("h5diff", "-q", src, out)
    check("rror" not in p.stderr, p.stderr)
    return len(seen)


def kept(src, target, chunk, suffix=".h5", *options):
    out = path(suffix)
    text = pack(src + ":" + target, out, "--chunk=" + chunk, *options)
    same_files(src, out, target)
    with h5py.File(out) as f:
        equal(f[target].chunks, tuple(map(int, chunk.split(","))), "chunks")
    return out, text


# ---- files that programs wrote ---------------------------------------------------

@case
def hyperspy_opens_it_calibrated():
    hs = writers.need("hyperspy.api")
    d = path("")
    os.makedirs(d)
    s = hs.signals.Signal2D(writers.ramp((3, 4, 16, 20), "u2"))
    for i, axis in enumerate(s.axes_manager._axes):
        axis.scale, axis.offset = 0.25 * (i + 1), -i
        axis.units, axis.name = ("nm", "nm", "1/\u00c5", "\u00b5m")[i], "axis%d" % i
    s.metadata.General.title = "scan \u00b5"
    s.metadata.set_item("Acquisition_instrument.TEM.beam_energy", 200.0)
    s.original_metadata.add_dictionary({"a": {"list": [1, 2], "text": "x"}})
    src = os.path.join(d, "scan.hspy")
    s.save(src, chunks=(3, 4, 4, 4))
    out = os.path.join(d, "frames.hspy")
    text = pack(src, out, "--chunk=sample")
    check(": the signal is /Experiments/" in text, text)
    target = [n for n in walk(src) if n.endswith("/data")][0]
    same_files(src, out, target)
    with h5py.File(out) as f:
        equal(f[target].chunks, (1, 1, 16, 20), "chunks")
    t = hs.load(out)
    equal(type(t), type(s), "signal")
    for a, b in zip(t.axes_manager._axes, s.axes_manager._axes):
        equal((a.scale, a.offset, a.units, a.name, a.navigate, a.size),
              (b.scale, b.offset, b.units, b.name, b.navigate, b.size), "axis")
    equal(t.metadata.General.title, s.metadata.General.title, "title")
    equal(t.metadata.Acquisition_instrument.TEM.beam_energy, 200.0, "metadata")
    equal(t.original_metadata.a.list, [1, 2], "original metadata")
    same_bytes(t.data.tobytes(), s.data.tobytes(), "data")


def walk(file):
    names = []
    with h5py.File(file) as f:
        f.visititems(lambda n, x: names.append("/" + n)
                     if isinstance(x, h5py.Dataset) else None)
    return names


@case
def netcdf_opens_it_with_all_its_types():
    nc = writers.need("netCDF4")
    src = path(".nc")
    writers.netcdf(src)
    out, _ = kept(src, "/v_zlib", "1,20,36", ".nc")
    more = [kept(src, name, "3", ".nc4")[0]
            for name in ("/lat", "/points", "/clouds")]
    for made in [out] + more:
        with nc.Dataset(src) as f, nc.Dataset(made) as g:
            equal(list(g.variables), list(f.variables), "variables, in order")
            equal([(k, len(v), v.isunlimited()) for k, v in g.dimensions.items()],
                  [(k, len(v), v.isunlimited()) for k, v in f.dimensions.items()],
                  "dimensions")
            equal(g.__dict__.keys(), f.__dict__.keys(), "attributes")
            equal((list(g.cmptypes), list(g.vltypes), list(g.enumtypes)),
                  (list(f.cmptypes), list(f.vltypes), list(f.enumtypes)), "types")
            for k, v in f.variables.items():
                w = g[k]
                equal(w.dimensions, v.dimensions, "dimensions of " + k)
                equal(str(w[:].tolist()), str(v[:].tolist()), "values of " + k)
            equal(g["forecast/run1/wind"].dimensions, ("time", "level", "lat"),
                  "dimensions of a group above")
    xr = writers.need("xarray")
    with xr.open_dataset(src, drop_variables=["rows", "points", "clouds"]) as f, \
            xr.open_dataset(out, drop_variables=["rows", "points", "clouds"]) as g:
        check(f.identical(g), "xarray sees another data set")


@case
def matlab_files_keep_their_header_and_cells():
    src = path(".mat")
    writers.matlab(src)
    out, _ = kept(src, "/x", "30,1", ".mat")
    with open(out, "rb") as f:
        check(f.read(10) == b"MATLAB 7.3", "header")
    with h5py.File(out) as f:
        equal("".join(map(chr, f[f["cell"][1, 0]][:, 0])), "in a cell", "cell")
    # as what reads them on Linux without h5py does
    p = run("file", "-b", out)
    check(p.returncode or "Matlab v7" in p.stdout or "Hierarchical" in p.stdout,
          p.stdout)


@case
def nexus_dimension_scales_and_pytables():
    src = path(".nxs")
    hspy.nexus(src)
    target = [n for n in walk(src) if h5py.File(src)[n].ndim > 1][0]
    with h5py.File(src) as f:
        shape = f[target].shape
    kept(src, target, ",".join(["1"] + [str(n) for n in shape[1:]]), ".nxs")
    src = path()
    hspy.scales(src)
    for target in walk(src):
        with h5py.File(src) as f:
            shape = f[target].shape
            good = f[target].dtype.kind in "iuf" and shape and min(shape) > 0
        if good:
            kept(src, target, ",".join("1" * len(shape)))
    src = path()
    writers.pytables(src)
    kept(src, "/arrays/a_int32", ",".join("1" * h5py.File(src)[
        "/arrays/a_int32"].ndim), ".h5")


# ---- what a file may have -----------------------------------------------------------

def scan(f, name="data", shape=(6, 5, 64)):
    return f.create_dataset(name, data=writers.ramp(shape, "u2"),
                            chunks=(2, 5, 16), compression="gzip")


@case
def links_types_references_and_orders():
    src = path()
    with h5py.File(src, "w", track_order=True) as f:
        f.create_group("z", track_order=True)["last"] = [1, 2]
        f["a"] = np.dtype([("x", "<f8"), ("n", ">i2")])
        unnamed = h5py.h5t.py_create(np.dtype("<i4"))
        unnamed.commit(f.id, b"gone")
        g = f.create_group("b/c", track_order=False)
        d = scan(g)
        d.attrs["made"] = np.array(3, "i8")
        f["again"] = d
        g["up"] = f["b"]            # a cycle
        g["root"] = f["/"]
        f["soft"] = h5py.SoftLink("/b/c/data")
        f["nowhere"] = h5py.SoftLink("../nothing")
        f["\u00fc"] = h5py.SoftLink("/z")
        f["out"] = h5py.ExternalLink("other.h5", "/x")
        f["far"] = h5py.ExternalLink("/there/is/none.h5", "/x")
        for name in "one", "two":
            t = f.create_dataset("typed_" + name, (4,), f["a"], chunks=(2,),
                                 compression="lzf")
            t[:] = np.array([(i, -i) for i in range(4)], t.dtype)
        i4 = h5py.h5t.open(f.id, b"gone")
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_obj_track_times(False)
        for name in "first", "second":
            x = h5py.h5d.create(f.id, name.encode(), i4,
                                h5py.h5s.create_simple((3,)), p)
            x.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(3, dtype="<i4"))
        h5py.h5a.create(d.id, b"typed", i4, h5py.h5s.create_simple((2,))).write(
            np.array([7, 8], "<i4"))
        del f["gone"]               # a named type without a name
        refs = f.create_dataset("refs", (5,), h5py.ref_dtype, chunks=(2,))
        refs[0], refs[1], refs[3] = d.ref, f["b"].ref, f["a"].ref
        regions = f.create_dataset("regions", (2, 2), h5py.regionref_dtype)
        regions[0, 1] = d.regionref[1:3, ::2, 5]
        d.attrs["region"] = d.regionref[0, 0, :4]
        d.attrs["self"] = d.ref
        d.attrs.create("lists", np.array([[refs.ref, d.ref], []], object)[0],
                       dtype=h5py.ref_dtype)
        both = np.dtype([("to", h5py.ref_dtype), ("n", "i4")])
        d.attrs.create("pairs", np.array([(f["z"].ref, 1), (d.ref, 2)], both))
        f.create_dataset("words", data=["x", "", "y" * 70000],
                         dtype=h5py.string_dtype(), chunks=(2,),
                         maxshape=(None,), compression="gzip")
        v = f.create_dataset("ragged", (3, 2), h5py.vlen_dtype("<f4"))
        v[1, 1] = np.arange(5, dtype="f4")
        f["scalar"], f["nothing"] = "text", h5py.Empty("f4")
        f.create_dataset("none", (0, 3), "i4", maxshape=(None, 3))
        f.create_dataset("tiny", data=np.arange(3), track_order=True)
        for name in "z", "y", "x":
            f["tiny"].attrs[name] = name
        f["tiny"].attrs["large"] = np.arange(20000)
        f["b"].attrs["words"] = ["a", "", "b"]
        h5py.h5o.set_comment(f["z"].id, b"a comment")
        h5py.h5o.set_comment(f["tiny"].id, b"another")
        h5py.h5o.set_comment(d.id, b"the tensor")
    out, text = kept(src, "/b/c/data", "1,5,64")
    equal(text.count("relative paths"), 0, "beside the source: " + text)
    with h5py.File(out) as f:
        check(f["soft"] == f["b/c/data"] == f["again"], "one dataset")
        equal(f[f["refs"][3]].name, "/a", "a reference to a type")
        names = {h5py.h5o.get_info(f[n].id.get_type()).addr
                 for n in ("first", "second")} | {h5py.h5o.get_info(
                     h5py.h5a.open(f["again"].id, b"typed").get_type()).addr}
        equal(len(names), 1, "named types without a name")
        equal(f["/"].id.get_create_plist().get_link_creation_order(), 3, "order")
        check(".tensorfs-named-type" not in f, "a link that is not the file's")
    comments = [n for n in run("h5dump", "-H", out).stdout.split("\n")
                if "COMMENT" in n]
    for words in "a comment", "another", "the tensor":
        check(any(words in n for n in comments), "%s: %s" % (words, comments))
    elsewhere = os.path.join(path(""), "x.h5")
    os.makedirs(os.path.dirname(elsewhere))
    text = pack(src + ":b/c/data", elsewhere, "--chunk=1,5,64")
    said = "".join(n for n in text.split("\n") if "relative paths" in n)
    check(said.endswith("by: '/out' (other.h5)"), text)
    same_files(src, elsewhere, "/b/c/data")
    # twice the same bytes: no times, no order of threads
    again = path()
    pack(src + ":b/c/data", again, "--chunk=1,5,64", "--threads=3")
    with open(out, "rb") as f, open(again, "rb") as g:
        same_bytes(g.read(), f.read(), "the same work again")


@case
def the_oldest_and_the_newest_format():
    for libver in "earliest", "latest":
        src = path()
        with h5py.File(src, "w", libver=libver) as f:
            scan(f)
            for k in range(40):     # dense links, and dense attributes
                f.create_group("g/%02d" % k).attrs["n"] = k
                f["data"].attrs["a%02d" % k] = "x" * k
            n = 20000 if libver == "latest" else 200
            f["g"].attrs["large"] = f.attrs["large"] = np.arange(n)
            for k, kw in enumerate(({}, {"chunks": (3, 4)}, {
                    "chunks": (3, 4), "maxshape": (None, 7)}, {
                    "chunks": (3, 4), "maxshape": (None, None)}, {
                    "chunks": (5, 7)}, {"compression": "gzip",
                                        "fletcher32": True})):
                f.create_dataset("d%d" % k, data=writers.ramp((5, 7), "f4"), **kw)
        out = path()
        pack(src + ":data", out, "--chunk=1,5,64")
        with h5py.File(src) as f, h5py.File(out) as g:
            for n in "/", "g":
                same_bytes(g[n].attrs["large"].tobytes(),
                           f[n].attrs["large"].tobytes(), "large attribute")
                equal(sorted(g[n]), sorted(f[n]), "names")
            for n in f:
                if isinstance(f[n], h5py.Dataset):
                    same_bytes(g[n][()].tobytes(), f[n][()].tobytes(), n)
                    if n != "data":
                        equal(storage(g[n]), storage(f[n]), n)
            equal(dict(g["data"].attrs), dict(f["data"].attrs), "attributes")
        # as old a reader as can be: superblock 0
        with open(out, "rb") as f:
            equal(f.read(9)[8], 0, "superblock")


@case
def filters_that_nobody_here_has():
    src = path()
    lacks = writers.hdf5plugin(src)[1]
    with h5py.File(src, "a") as f:
        scan(f, "tensor")
    out, _ = kept(src, "/tensor", "1,5,64")
    check(isinstance(lacks, (set, list, dict)), "filters")
    # names of filters, which H5Ocopy of 1.10 may write over what follows
    with h5py.File(src) as f, h5py.File(out) as g:
        for n in f:
            p, q = (x[n].id.get_create_plist() for x in (f, g))
            equal([q.get_filter(i)[0] for i in range(q.get_nfilters())],
                  [p.get_filter(i)[0] for i in range(p.get_nfilters())], n)


@case
def virtual_and_raw_stay_where_they_are():
    d = path("")
    os.makedirs(d)
    t = skerch.create(d, rows=50, sub=(40,), part=7, dtype="<f8")
    out = os.path.join(d, "new.h5")
    pack(t.all_path + ":data", out, "--chunk=50,5")
    with h5py.File(t.all_path) as f, h5py.File(out) as g:
        names = [n for n in f if n != "data"]
        check(names, "nothing beside the data")
        for n in names:
            check(g[n].is_virtual, n + " is not virtual")
            equal(shown(g, g[n][()]), shown(f, f[n][()]), n)
        check(not g["data"].is_virtual, "the data")
        same_bytes(g["data"][()].tobytes(), t.data.tobytes(), "data")
    src = os.path.join(d, "raw.h5")
    with open(os.path.join(d, "raw.bin"), "wb") as f:
        f.write(np.arange(50, dtype="<i4").tobytes())
    with h5py.File(src, "w") as f:
        scan(f)
        f.create_dataset("raw", (50,), "<i4", external=[("raw.bin", 0, 200)])
        v = h5py.VirtualLayout((3, 64), "u2")
        v[:] = h5py.VirtualSource(".", "data", (6, 5, 64))[1:4, 2]
        f.create_virtual_dataset("here", v, fillvalue=3)
    out = os.path.join(d, "raw-new.h5")
    pack(src + ":data", out, "--chunk=sample")
    same_files(src, out, "/data")
    with h5py.File(out) as f:
        equal(f["data"].chunks, (1, 5, 64), "a sample is a row of the first axis")
        same_bytes(f["here"][()].tobytes(), f["data"][1:4, 2].tobytes(), "virtual")
        os.chdir(d)  # it is looked for there
        equal(f["raw"][7], 7, "raw")
        os.chdir("/")
    # a virtual dataset that is the tensor becomes one of its own
    pack(src + ":here", os.path.join(d, "own.h5"), "--chunk=1,64")
    with h5py.File(os.path.join(d, "own.h5")) as f:
        check(not f["here"].is_virtual and "data" in f, "own.h5")


@case
def a_dataset_behind_a_link():
    d = path("")
    os.makedirs(d)
    with h5py.File(d + "/far.h5", "w") as f:
        scan(f, "g/data").attrs["units"] = "counts"
        f["g/data"].attrs["to"] = f["g"].ref
    with h5py.File(d + "/main.h5", "w") as f:
        f["link"] = h5py.ExternalLink("far.h5", "/g/data")
        f["group"] = h5py.ExternalLink("far.h5", "/g")
        f["other"] = np.arange(9)
        f["other"].attrs["n"] = 1
    out = d + "/out.h5"
    text = pack(d + "/main.h5:link", out, "--chunk=1,5,64", code=3)
    check("link@to" in text or "'to'" in text, text)
    text = pack(d + "/main.h5:link", out, "--chunk=1,5,64", "--keep=most", code=1)
    check("'to'" in text, text)
    with h5py.File(out) as f, h5py.File(d + "/far.h5") as g:
        check(f.get("link", getlink=True).__class__ is h5py.HardLink, "link")
        equal(f.get("group", getlink=True).filename, "far.h5", "the other link")
        equal((f["link"].chunks, f["link"].attrs["units"]),
              ((1, 5, 64), "counts"), "dataset")
        same_bytes(f["link"][()].tobytes(), g["g/data"][()].tobytes(), "data")
        equal((f["other"][8], f["other"].attrs["n"]), (8, 1), "other")
    text = pack(d + "/main.h5:group/data", d + "/no.h5", "--chunk=1,5,64", code=3)
    check("--keep=none" in text and "link" in text, text)
    pack(d + "/main.h5:group/data", d + "/yes.h5", "--chunk=1,5,64", "--keep=none")
    equal(walk(d + "/yes.h5"), walk(d + "/far.h5"), "alone")


@case
def what_cannot_be_kept_is_said_before_anything_is_written():
    src = path()
    with h5py.File(src, "w") as f:
        scan(f)
        f.create_dataset("large", (1 << 25,), "u1", chunks=(1 << 25,))
        f["dangling"] = np.zeros(2)
        f["dangling"].attrs["to"] = f["large"].ref
        f.create_dataset("vast", (1 << 50,), h5py.ref_dtype, chunks=(1,))[7] = f.ref
        f["small"] = 5
    options = "--chunk=1,5,64", "--memory=64M"
    for more in (), ("--keep=all",):
        text = pack(src + ":data", path(), *options, *more, code=3)
        check("'/large'" in text and "--memory=" in text and
              "'/vast' (" in text and "--keep=most" in text, text)
    out = path()
    text = pack(src + ":data", out, *options, "--keep=most", code=1)
    check("'/large'" in text and "'/dangling'" in text, text)
    with h5py.File(out) as f:
        equal(sorted(f), ["dangling", "data", "small"], "objects")
        check(not f["dangling"].attrs["to"], "a reference to nothing")
    out = path()
    p = exits(tensorfs("pack", src + ":data", out, *options, "--keep=most",
                       "--json"), 1, "json")
    j = json.loads(p.stdout)
    equal((j["kept"], j["other_datasets"], j["left_out"]), (True, 2, 2), "json")
    out = path()
    text = pack(src + ":data", out, *options, "--keep=none")
    equal(walk(out), ["/data"], "alone")
    out = path()
    pack(src + ":data", out, *options, "--dataset=x/y")
    equal(walk(out), ["/x/y"], "with a name of its own")
    for wrong, code in (("--keep=some",), 2), (("--dataset=x", "--keep=all"), 2):
        pack(src + ":data", path(), *options, *wrong, code=code)
    pack(os.path.dirname(src), path(), "--keep=all", code=2)


@case
def damage_costs_itself():
    """A chunk of words that does not decode."""
    src = path()
    with h5py.File(src, "w") as f:
        scan(f)
        w = f.create_dataset("words", data=["word %d" % i for i in range(500)],
                             dtype=h5py.string_dtype(), chunks=(100,),
                             compression="gzip")
        at = w.id.get_chunk_info(2).byte_offset
    with open(src, "r+b") as f:
        f.seek(at + 10)
        f.write(b"damage!!")
    out = path()
    text = pack(src + ":data", out, "--chunk=1,5,64", code=3)
    check("'/words'" in text, text)
    text = pack(src + ":data", out, "--chunk=1,5,64", "--keep=most", code=1)
    check("'/words'" in text, text)
    with h5py.File(out) as f, h5py.File(src) as g:
        equal(list(f), ["data"], "no words instead of wrong ones")
        same_bytes(f["data"][()].tobytes(), g["data"][()].tobytes(), "data")


@case
def truncated_files_lose_what_is_not_there():
    """libhdf5 1.10 dies of copying a chunk that it cannot read."""
    src = path()
    with h5py.File(src, "w") as f:
        scan(f)
        f["near"] = np.arange(3)
        f.create_dataset("far", data=np.arange(1 << 16), chunks=(1 << 12,))
        f["far"].attrs["n"] = 1
    with h5py.File(src) as f:
        at = f["far"].id.get_chunk_info(14).byte_offset
        for n in "data", "near":
            d = f[n].id
            check((d.get_chunk_info(0).byte_offset if f[n].chunks
                   else d.get_offset()) < at, n + " is behind what is cut off")
        whole = f["data"][()]
    os.truncate(src, at)
    text = pack(src + ":data", path(), "--chunk=1,5,64", code=3)
    check("truncated" in text and "--keep=most" in text, text)
    out = path()
    text = pack(src + ":data", out, "--chunk=1,5,64", "--keep=most", code=1)
    check("'/far'" in text, text)
    with h5py.File(out) as f:
        equal(sorted(f), ["data", "near"], "objects")
        equal(f["near"][()].tolist(), [0, 1, 2], "near")
        same_bytes(f["data"][()].tobytes(), whole.tobytes(), "data")


@case
def strings_that_were_never_written_have_their_fill_value():
    src = path()
    with h5py.File(src, "w") as f:
        scan(f)
        text = h5py.string_dtype()
        d = f.create_dataset("some", (9,), text, chunks=(2,), maxshape=(None,),
                             fillvalue=b"unset", compression="gzip")
        d[3] = "x"
        f.create_dataset("none", (9,), text, fillvalue=b"unset")
        f.create_dataset("all", (2,), text, fillvalue=b"unset")[:] = ["", "b"]
    out = path()
    pack(src + ":data", out, "--chunk=1,5,64")
    for name in src, out:
        with h5py.File(name) as f:
            # all of it at once is what libhdf5 1.10 cannot read
            equal([f["some"][2:4].tolist(), f["some"].id.get_num_chunks(),
                   f["none"][()].tolist(), f["all"][()].tolist()],
                  [[b"unset", b"x"], 1, [b"unset"] * 9, [b"", b"b"]], name)
    fills = [[n for n in run("h5dump", "-pH", x).stdout.split("\n") if "VALUE " in n]
             for x in (src, out)]
    equal(fills[1], fills[0], "fill values")
    check(any("unset" in n for n in fills[1]), fills)
    # a text without characters is not one that is not there
    words = [run("h5dump", "-d", "/all", x).stdout.split("DATA {")[1]
             for x in (src, out)]
    equal(words[1], words[0], "empty and null")
    check('""' in words[1], words[1])


@case
def a_signal_ends_it_while_the_rest_is_copied():
    d = path("")
    os.makedirs(d)
    with h5py.File(d + "/in.h5", "w") as f:
        scan(f)
        f.create_dataset("big", (100, 1 << 20), "u1", chunks=(1, 1 << 20))[:] = 3
    argv = [lib.TENSORFS, "pack", d + "/in.h5:data", d + "/out.h5", "-q",
            "--chunk=1,5,64"]
    start = time.monotonic()
    subprocess.run(argv, check=True)
    took = time.monotonic() - start
    rng = random.Random(3)
    for _ in range(lib.rounds(6)):
        os.unlink(d + "/out.h5") if os.path.exists(d + "/out.h5") else None
        p = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        # Whatever it has come to, what is there afterwards must be right.
        time.sleep(rng.random() * took)
        p.terminate()
        text = p.communicate()[1]
        check(p.returncode in (0, -signal.SIGTERM), "%d %s" % (p.returncode, text))
        if os.path.exists(d + "/out.h5"):
            with h5py.File(d + "/out.h5") as f:
                check((f["big"][::33] == 3).all(), "half a file")
        equal(set(os.listdir(d)) - {"out.h5"}, {"in.h5"}, "left behind")


@case
def damaged_files_end_with_a_sentence():
    """Whatever is wrong: a status, a sentence, and no file that cannot be opened."""
    src, bad = path(".nc"), path(".nc")
    writers.netcdf(src)
    with open(src, "rb") as f:
        data = f.read()
    rng = random.Random(7)
    seen = set()
    for _ in range(lib.rounds(40)):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 30)):
            broken[rng.randrange(len(data))] = rng.randrange(256)
        with open(bad, "wb") as f:
            f.write(broken)
        out = path(".nc")
        p = tensorfs("pack", bad + ":/v_zlib", out, "--chunk=1,20,36",
                     rng.choice(["--keep=most", "--keep=all"]))
        check(p.returncode in (0, 1, 3, 5), "status %d: %s" % (
            p.returncode, p.stderr))
        check(lib.our_words(p.stderr).startswith("tensorfs"), p.stderr)
        seen.add(p.returncode)
        if os.path.exists(out):
            with h5py.File(out) as f:
                equal(f["v_zlib"].chunks, (1, 20, 36), "chunks")
        else:
            check(p.returncode > 0, "no file, and no failure")
    check(seen & {1, 3}, "nothing was damaged")


@case
def suffixes_and_samples_of_directories():
    src = path()
    with h5py.File(src, "w") as f:
        scan(f)
    for suffix in ".emd", ".cxi", ".h5ad", ".HDF5":
        kept(src, "/data", "1,5,64", suffix)
    d = path("")
    os.makedirs(d)
    for k in range(3):
        np.save(d + "/%d.npy" % k, np.full((4, 5), k))
    one, two = path(".nxs"), path(".nxs")
    pack(d, one)
    pack(d, two, "--chunk=sample")
    with open(one, "rb") as f, open(two, "rb") as g:
        same_bytes(g.read(), f.read(), "a sample is a chunk")


@case
def info_says_how():
    src = path(".nxs")
    with h5py.File(src, "w") as f:
        f.create_dataset("a b/data", data=writers.ramp((40, 64, 64), "u2"),
                         chunks=(40, 16, 16), compression="gzip")
        f.create_dataset("fine", data=writers.ramp((40, 64, 64), "u2"),
                         chunks=(1, 64, 64), compression="gzip")
    p = exits(tensorfs("info", src), 0, "info")
    lines = [n.split(None, 1)[1] for n in p.stdout.split("\n") if "cheaper" in n]
    equal(len(lines), 1, "lines: " + p.stdout)
    name = os.path.basename(src)[:-4] + "-samples.nxs"
    equal(lines[0], "tensorfs pack --chunk=1,64,64 '%s:/a b/data' %s" % (
        src, name), "command")
    j = json.loads(exits(tensorfs("info", "--json", src), 0, "json").stdout)
    equal([d["sample"].get("cheaper") for d in j["datasets"]], [lines[0], None],
          "json")
    exits(run("sh", "-c", "cd '%s' && %s" % (work, lines[0].replace(
        "tensorfs", lib.TENSORFS, 1))), 0, "the command")
    same_files(src, os.path.join(work, name), "/a b/data")
    p = exits(tensorfs("info", os.path.join(work, name)), 0, "info")
    check("cheaper" not in p.stdout, p.stdout)


@case
def memory_is_bounded():
    from packlib import peak
    src = path()
    n = 200 if lib.full() else 100
    with h5py.File(src, "w") as f:
        scan(f)
        f.create_dataset("plain", (n << 20,), "u1")[::4096] = 1
        f.create_dataset("chunks", (n, 1 << 20), "u1", chunks=(1, 1 << 20))[:] = 2
        w = f.create_dataset("words", (n * 1000,), h5py.string_dtype())
        w[:] = ["%0300d" % i for i in range(n * 1000)]
        for i in range(n * 20):
            f.create_group("g/%05d" % i).attrs["i"] = i
    out = path()
    most = peak(lib.TENSORFS, "pack", src + ":data", out, "-q", "--memory=64M",
                "--chunk=1,5,64")
    check(os.environ.get("TENSORFS_SANITIZED") or most <= 64 << 20,
          "%.1f MiB" % (most / 2 ** 20))
    same_files(src, out, "/data")


work = lib.setup(fuse=False)
if __name__ == "__main__":
    lib.main()
