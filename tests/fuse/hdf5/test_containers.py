#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files that real programs write: mounted, moved, and with parts of them gone.

Sections: acme, skerch, hyperspy, pytables, netcdf, hdf5plugin, octave, matlab
and nexus.  Arguments select: `test_containers.py acme:moved netcdf`.  Truth is
what h5py reads while everything is in its place.
"""
import errno
import json
import os
import re
import shutil
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))
warnings.filterwarnings("ignore")

import h5py

import acme
import hspy
import skerch
import writers
from checks import check, equal, fails_with, note, read, same_bytes
from h5truth import (info, lost, number, same_as, same_item, snapshot,
                     why_not)
from lib import Mount, exits, full, run_case, tensorfs
from sections import absent, by_cat, compared, mounted, refused, \
    run_sections, sub


# --- 1. ACME ----------------------------------------------------------------

LINKED = {"default": ["comp_%d"], "scalars": ["comp_%d"],
          "one_scalar": ["comp_%d"], "strings": ["comp_%d"],
          "multi_return": ["comp_%d/result_1", "comp_%d/result_2"]}
SPREAD = {"result_shape_inside", "result_shape_last"}  # a sample: all files


def alike(path):
    """comp_0, comp_1, ...: one case for all of them."""
    return re.sub(r"comp_\d+", "comp_N", path)


def names_file(path, base):
    check(os.path.islink(path) and not os.path.exists(path),
          "%s is not a dangling symlink" % path)
    check(base in os.readlink(path), "its target %s does not name %s" % (
        os.readlink(path), base))
    fails_with(errno.ENOENT, lambda: os.stat(path), "stat of " + path)


def gone_for_good(d, r):
    """No extent without the sources: listed, and says which one is missing."""
    check(r.base(0) in why_not(d), "not_shown does not name %s: %s" % (
        r.base(0), why_not(d)))
    equal(sorted(os.listdir(d)), ["info.json"], "names beside info.json")


def verify_fails(main, r, gone):
    p = exits(tensorfs("verify", main), 1, "verify")
    out = p.stdout + p.stderr
    check(any(r.base(i) in out for i in gone), "verify names no missing file: "
          + out[:300])


def acme_alone(s, m, r, mode, truth, gone):
    """Only the files in `gone` are missing; the rest is exact."""
    for form in LINKED.get(mode, ()):
        s("links_" + form.replace("%d", "N"), lambda: [
            names_file(m / (form % i), r.base(i)) for i in gone])
    if "result_0" not in truth:
        return
    d = m / "result_0"
    if mode == "unlimited" and len(gone) == r.n:
        s("not_shown", gone_for_good, d, r)
        return
    rows = None if mode in SPREAD else set(gone)
    s("lost", lost, d, truth["result_0"], [r.base(i) for i in gone], rows)


def acme_mode(work, mode):
    top = os.path.join(work, "acme", mode)
    r = acme.write(os.path.join(top, "run"), mode)
    truth = snapshot(r.main)
    more = full() or mode == "default"  # the others are compared once, as moved
    if more:
        compared("acme:" + mode, r.main, truth, alike)
    os.rename(r.dir, os.path.join(top, "moved"))
    main = os.path.join(top, "moved", "myfunc.h5")
    compared("acme:moved:" + mode, main, truth, alike)
    sub("acme:moved:" + mode)("verify", lambda: exits(
        tensorfs("verify", main), 0, "verify"))
    if more:
        link = os.path.join(top, "link.h5")
        os.symlink(main, link)
        compared("acme:symlinked:" + mode, link, truth, alike)
    if mode in acme.WITHOUT_PAYLOAD:
        return
    alone = os.path.join(top, "alone", "myfunc.h5")
    os.makedirs(os.path.dirname(alone))
    shutil.copy(main, alone)
    mounted("acme:alone:" + mode, alone, lambda s, m: acme_alone(
        s, m, r, mode, truth, range(r.n)))
    sub("acme:alone:" + mode)("verify", verify_fails, alone, r, range(r.n))
    sub("acme:alone:" + mode)("cwd", not_from_cwd, alone,
                              os.path.join(top, "moved"), mode)


def not_from_cwd(main, cwd, mode):
    """What the working directory holds is nobody's payload."""
    one = "result_0/samples/000000.npy" if mode not in LINKED or \
        mode == "multi_return" else "comp_0/result_0/info.json"
    p = tensorfs("cat", "%s:%s" % (main, one), text=False,
                 preexec=lambda: os.chdir(cwd))
    check(p.returncode in (1, 3), "cat found something: exit %d" %
          p.returncode)
    check(len(p.stdout) <= 128, "cat printed %d bytes" % len(p.stdout))


def acme_failed(work, mode):
    """Computation 3 raised: its file was never written."""
    top = os.path.join(work, "acme", "failed-" + mode)
    good = acme.write(os.path.join(top, "good"), mode)
    truth = snapshot(good.main)
    r = acme.write(os.path.join(top, "bad"), mode, failed=[3])
    rest = {p: i for p, i in truth.items() if i.kind != "group" and
            p != "result_0" and not p.startswith("comp_3/")}

    def f(s, m):
        acme_alone(s, m, r, mode, truth, [3])
        same_as(s, m, rest, alike)
    mounted("acme:failed:" + mode, r.main, f)
    sub("acme:failed:" + mode)("verify", verify_fails, r.main, r, [3])
    if mode != "result_shape":
        return

    def filled(s, m):
        item = truth["result_0"]
        item.value[3] = 0
        s("array", same_item, m / "result_0", item)
    mounted("acme:failed:fill", r.main, filled, opts=["-o", "missing=fill"])


def as_files(d):
    """A directory is a source; what in it is none is a plain file."""
    with Mount(d) as m:
        equal(sorted(os.listdir(m.path)), sorted(os.listdir(d)), "names")
        for n in os.listdir(d):
            same_bytes(read(m / n), read(os.path.join(d, n)), n)


def acme_all(work):
    for mode in acme.MODES:
        run_case("acme:%s:written" % mode, acme_mode, work, mode)
    for mode in ("default", "result_shape", "result_shape_inside",
                 "multi_return", "unlimited"):
        run_case("acme:failed:%s:written" % mode, acme_failed, work, mode)
    d = os.path.join(work, "acme", "pickles")
    acme.write_pickle(d)
    s = sub("acme:pickle")
    s("directory", as_files, d)
    s("file", refused, os.path.join(d, "myfunc_0.pickle"),
      "is a Python pickle")


# --- 2. skerch --------------------------------------------------------------

def merged(t, out, part):
    """As skerch's merge: resized while it is filled, the last chunk padded."""
    with h5py.File(out, "w") as f:
        d = f.create_dataset("data", (0,) + t.data.shape[1:], t.data.dtype,
                             maxshape=t.data.shape, compression="lzf",
                             chunks=(part,) + t.data.shape[1:])
        s = f.create_dataset("flags", (0,), h5py.string_dtype("utf-8"),
                             maxshape=(len(t.data),), chunks=(part,),
                             compression="lzf")
        for b, e, _ in t.parts:
            d.resize(e, 0)
            s.resize(e, 0)
            d[b:e], s[b:e] = t.data[b:e], t.flags[b:e]


def flags_of_blocks(m, t):
    for b, e, _ in t.parts:
        got = os.getxattr(m / ("data/blocks/%06d-%06d.npy" % (b, e)),
                          "user.tensorfs.flag").decode()
        equal(got, t.flags[b], "flag of block %d" % b)


def skerch_all(work):
    every = tuple(range(11))
    for name, kw in (
            ("created", {"unwritten": every}),
            ("partly", {"unwritten": (0, 4, 10), "incompressible": 3}),
            ("done", {"incompressible": 3}),
            ("gzip", {"compression": "gzip", "unwritten": (2,)}),
            ("none", {"compression": None, "unwritten": (2,)}),
            ("complex", {"dtype": "<c16", "sub": (20,)}),
            ("no_suffix", {"fmt": "Gaussian{0}_{1}", "unwritten": (7,)})):
        t = skerch.create(os.path.join(work, "skerch", name), rows=103,
                          part=10, **kw)
        truth = snapshot(t.all_path)
        same_bytes(truth["data"].value.tobytes(), t.data.tobytes(), "h5py")

        def f(s, m, t=t, truth=truth):
            same_as(s, m, truth)
            s("flags", flags_of_blocks, m, t)
        mounted("skerch:" + name, t.all_path, f)
        sub("skerch:" + name)("verify", lambda: exits(
            tensorfs("verify", t.all_path), 0, "verify"))
        if name in ("partly", "done"):
            out = os.path.join(work, "skerch", name + ".h5")
            merged(t, out, 10)
            compared("skerch:merged_" + name, out, snapshot(out))


# --- 3. HyperSpy ------------------------------------------------------------

HSPY = (("frames", dict(shape=(3, 4, 16, 12))),
        ("lzf", dict(shape=(3, 4, 16, 12), compression="lzf")),
        ("none", dict(shape=(3, 4, 16, 12), compression=None)),
        ("cubes", dict(shape=(6, 5, 16, 12), chunks=(4, 4, 8, 8))),
        ("stack", dict(shape=(7, 16, 12))),
        ("image", dict(shape=(16, 12))),
        ("spectra", dict(shape=(3, 4, 50), cls="Signal1D")),
        ("spectrum", dict(shape=(50,), cls="Signal1D")))


def metadata_shown(d, shape):
    """Axes and metadata of the experiment, in the data's info.json."""
    told = json.dumps(info(d))
    for k, (name, scale) in enumerate((("scan_row", 0.125),
                                       ("scan_col", 0.5), ("det_y", 1.75),
                                       ("det_x", 2.25))[:len(shape)]):
        check(name in told, "info.json does not name the axis %s" % name)
        check(re.search(r"[^0-9.]%s[^0-9]" % re.escape(str(scale)), told),
              "info.json lacks the scale %s of axis %d" % (scale, k))
    for word in (writers.NOTE, "beam_energy"):
        check(word in told, "info.json lacks the metadata %r" % word)


def first_axis(m, data, item):
    item.axes = 1
    number(m / data, item)


def hyperspy_all(work):
    for name, kw in HSPY:
        d = os.path.join(work, "hspy", name)
        os.makedirs(d)
        src, data, nav = writers.hyperspy(d, **kw)
        truth = snapshot(src, {data: nav})

        def f(s, m, truth=truth, data=data, kw=kw):
            same_as(s, m, truth)
            s("metadata", metadata_shown, m / data, kw["shape"])
            s("as_hyperspy", hspy.as_hyperspy, m / data, m.src[0])
        mounted("hyperspy:" + name, src, f)
        if nav == 2:
            mounted("hyperspy:" + name + ":sample-axes=1", src,
                    lambda s, m: s("data", first_axis, m, data, truth[data]),
                    opts=["-o", "sample-axes=1"])
    src, data = writers.hyperspy_ragged(os.path.join(work, "hspy"))
    truth = snapshot(src)
    equal(truth[data].kind, "ragged", "kind of a ragged signal")
    compared("hyperspy:ragged", src, truth)
    mounted("hyperspy:ragged", src, lambda s, m: s(
        "as_hyperspy", hspy.as_hyperspy, m / data, src))
    hyperspy_metadata(os.path.join(work, "hspy"))


def hyperspy_metadata(d):
    for write in (hspy.rich, hspy.uneven):
        src = os.path.join(d, write.__name__ + ".hspy")
        data = write(src)

        def f(s, m, src=src, data=data):
            s("as_hyperspy", hspy.as_hyperspy, m / data, src)
            s("cat", hspy.same_by_cat, m / data, src, data)
        mounted("hyperspy:" + write.__name__, src, f)
    heap_damaged(d, os.path.join(d, "rich.hspy"), "Experiments/rich/data")
    src = os.path.join(d, "twelve.hspy")
    data = hspy.twelve(src)
    mounted("hyperspy:twelve", src, lambda s, m: s(
        "order", hspy.twelve_in_order, m / data))
    odd = os.path.join(d, "odd.hspy")
    names = hspy.hostile(odd, hspy.odd_axes, hspy.odd_links)
    large = os.path.join(d, "large.hspy")
    hspy.hostile(large, hspy.large)

    def told(s, m):
        s("axes", hspy.odd_axes_told, m)
        s("links", hspy.odd_links_told, m)
        s("bounded", hspy.bounded, m, odd, names)
    mounted("hyperspy:odd", odd, told)

    def large_told(s, m):
        s("told", hspy.large_told, m)
        s("bounded", hspy.bounded, m, large, ["large", "members"])
    mounted("hyperspy:large", large, large_told)


def heap_damaged(d, good, data):
    with h5py.File(good, "r") as f:
        a = f[data][()]
    for k, noise in enumerate((b"\xff" * 200, bytes(
            (7 * i + 3) & 255 for i in range(200)))):
        bad = os.path.join(d, "damaged%d.hspy" % k)
        shutil.copy(good, bad)
        with open(bad, "r+b") as f:
            for at in hspy.heaps(good):
                f.seek(at + 16)
                f.write(noise)
        mounted("hyperspy:damaged%d" % k, bad, lambda s, m: s(
            "heap", hspy.damaged, m, data, a))


# --- 4 to 8: other writers --------------------------------------------------

def no_decoder(d, words):
    """Listed; reading is ENOTSUP and the sentence names the filter."""
    p = os.path.join(d, "samples", "000000.npy")
    if not os.path.exists(p):
        check(re.search(words, why_not(d)), "not_shown does not name the "
              "filter: " + why_not(d))
        return
    fails_with(errno.ENOTSUP, lambda: read(p), "read of " + p)
    why = os.getxattr(p, "user.tensorfs.error").decode()
    check(re.search(words, why), "user.tensorfs.error does not name the "
          "filter: " + why)


def pytables_all(work):
    src = os.path.join(work, "pytables.h5")
    private = writers.pytables(src)
    truth = snapshot(src)
    for p in private:
        del truth[p]

    def f(s, m):
        same_as(s, m, truth)
        for p in private:
            s(p, no_decoder, m / p, "(?i)lzo|305")
    mounted("pytables", src, f)
    sub("pytables")("cat", by_cat, src, truth)
    if not private:
        absent("pytables:lzo", "LZO in PyTables")


def flipped(src, path):
    """One bit of a chunk's data: the checksum finds it."""
    bad = src + ".bad"
    shutil.copy(src, bad)
    with h5py.File(src, "r") as f:
        c = f[path].id.get_chunk_info(0)
    with open(bad, "r+b") as f:
        f.seek(c.byte_offset + c.size // 2)
        b = f.read(1)[0]
        f.seek(-1, 1)
        f.write(bytes([b ^ 4]))
    with Mount(bad) as m:
        fails_with(errno.EBADMSG,
                   lambda: read(m / (path + "/array.npy")), "array.npy")
    exits(tensorfs("verify", bad), 1, "verify")


def netcdf_all(work):
    src = os.path.join(work, "netcdf.nc")
    writers.netcdf(src)
    truth = snapshot(src)
    compared("netcdf", src, truth)
    mounted("netcdf:axes", src, lambda s, m: s(
        "dimensions", hspy.dimensions_told, m, src))
    src2 = os.path.join(work, "scales.h5")
    hspy.scales(src2)
    mounted("netcdf:axes", src2, lambda s, m: s(
        "scales", hspy.scales_told, m))
    for v in ("v_fletcher", "v_fletcher_only"):
        sub("netcdf")("flipped_" + v, flipped, src, v)


def through_library(src, p):
    out = exits(tensorfs("info", "%s:%s" % (src, p)), 0, "info").stdout
    check("libhdf5" in out, "info does not say that libhdf5 decodes: " + out)


def hdf5plugin_all(work):
    src = os.path.join(work, "plugins.h5")
    made, missing = writers.hdf5plugin(src)
    note("filters written: %s; plugins not here: %s" % (
        sorted(set(made.values())), ", ".join(missing) or "none"))
    compared("hdf5plugin", src, snapshot(src))
    for name in ("bzip2", "blosc", "lz4", "bitshuffle"):
        if name in missing:
            absent("hdf5plugin", "the HDF5 plugin of " + name)
    for p, fid in made.items():
        if fid == writers.PLUGINS["zfp"]:
            sub("hdf5plugin")("library_" + p, through_library, src, p)


def octave_all(work):
    src = os.path.join(work, "octave.h5")
    writers.octave(src)
    compared("octave", src, snapshot(src))
    if writers.octave_v73(os.path.join(work, "octave73.mat")):
        src = os.path.join(work, "octave73.mat")
        compared("octave:v7.3", src, snapshot(src))
    else:
        note("this Octave cannot save -v7.3")


def matlab_all(work):
    src = os.path.join(work, "matlab.mat")
    writers.matlab(src)
    truth = snapshot(src)
    equal(list(truth["cell"].value.ravel()),
          ["/#refs#/b", "/#refs#/c", "/#refs#/d"], "what h5py says")
    compared("matlab", src, truth)


def one_dataset(m, item):
    equal({"array.npy", "info.json", "samples"} - set(os.listdir(m.path)),
          set(), "names missing in the root")
    number(m.path, item)


def nexus_all(work):
    d = os.path.join(work, "nexus")
    os.makedirs(d)
    src, blocks, codec = writers.dectris(d)
    note("Dectris blocks written with " + codec)
    scan = "entry/instrument/detector/scan"
    axes = {scan: 2, "entry/data/scan": 2, "image": 2,
            "entry/instrument/detector/spectra": 0}   # not said: any will do
    truth = snapshot(src, axes)
    equal(truth["entry/data/data_000004"].kind, "dangling", "h5py's view")
    for name, a in blocks.items():
        same_bytes(truth["entry/data/" + name].value.tobytes(), a.tobytes(),
                   "h5py's " + name)
    compared("nexus", src, truth)
    mounted("nexus:sample-axes=1", src, lambda s, m: s(
        "scan", first_axis, m, scan, truth[scan]),
        opts=["-o", "sample-axes=1"])
    truth = snapshot(src, axes)
    for p in (scan, "entry/data/data_000002"):
        mounted("nexus:dataset=" + p, src, lambda s, m: s(
            "root", one_dataset, m, truth[p]), opts=["-o", "dataset=/" + p])
    moved = os.path.join(work, "nexus-moved")
    os.rename(d, moved)
    mounted("nexus:moved", os.path.join(moved, "run_master.h5"),
            lambda s, m: same_as(s, m, truth))
    src = os.path.join(work, "nxdata.nxs")
    hspy.nexus(src)
    mounted("nexus:axes", src, lambda s, m: s("nxdata", hspy.nexus_told, m))


SECTIONS = (("acme", acme_all), ("skerch", skerch_all),
            ("hyperspy", hyperspy_all), ("pytables", pytables_all),
            ("netcdf", netcdf_all), ("hdf5plugin", hdf5plugin_all),
            ("octave", octave_all), ("matlab", matlab_all),
            ("nexus", nexus_all))

if __name__ == "__main__":
    run_sections(SECTIONS)
