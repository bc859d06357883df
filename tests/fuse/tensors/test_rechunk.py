#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack SOURCE.h5[:PATH] OUT.h5: the same tensor in other chunks, as h5py reads it."""
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import check, equal, same_bytes
from lib import ROOT, case, exits, run, tensorfs
from packlib import peak

work = None
counter = itertools.count()
SANITIZED = bool(os.environ.get("TENSORFS_SANITIZED"))


def path(suffix=".h5"):
    return os.path.join(work, "%03d%s" % (next(counter), suffix))


def source(data, name="data", **how):
    p = path()
    with h5py.File(p, "w") as f:
        f.create_dataset(name, data=data, **how)
    return p


def numbers(shape, dtype="<u2", seed=1):
    """Something that compresses, but not to nothing."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 250, shape) // 3
    return a.astype(dtype)


def rechunk(src, *options, code=0, out=None):
    """Returns the output and the summary, or the sentence of a failure."""
    out = out or path()
    was = set(os.listdir(os.path.dirname(out)))
    p = exits(tensorfs("pack", src, out, "--format=h5", "--json", *options),
              code, "rechunk " + " ".join(options))
    now = set(os.listdir(os.path.dirname(out)))
    if code:
        equal(now, was, "files after a failure")
        equal(p.stdout, "", "output of a failure")
        check(p.stderr.startswith("tensorfs pack: "), p.stderr)
        return p.stderr
    equal(now - was - {os.path.basename(out)}, set(), "files left behind")
    return out, json.loads(p.stdout)


def unshuffle(raw, size):
    n = len(raw) // size * size
    a = np.frombuffer(raw[:n], "u1").reshape(size, -1).T
    return a.tobytes() + raw[n:]


def read_zstd(dset):
    """What h5py has no filter for: chunk by chunk, by the zstd program."""
    result = np.full(dset.shape, dset.fillvalue, dset.dtype)
    grid = [range(0, n, c) for n, c in zip(dset.shape, dset.chunks)]
    size = int(np.prod(dset.chunks)) * dset.dtype.itemsize
    for at in itertools.product(*grid):
        mask, raw = dset.id.read_direct_chunk(at)
        if not mask:
            raw = subprocess.run(["zstd", "-dcq"], input=raw, check=True,
                                 stdout=subprocess.PIPE).stdout
            raw = unshuffle(raw, dset.dtype.itemsize)
        equal(len(raw), size, "bytes of a chunk")
        chunk = np.frombuffer(raw, dset.dtype).reshape(dset.chunks)
        box = tuple(slice(a, min(a + c, n)) for a, c, n in
                    zip(at, dset.chunks, dset.shape))
        result[box] = chunk[tuple(slice(0, s.stop - s.start) for s in box)]
    return result


def same(out, want, chunk, name="data", zstd=False):
    with h5py.File(out, "r") as f:
        d = f[name]
        equal(d.dtype, want.dtype, "dtype")
        equal(d.shape, want.shape, "shape")
        equal(d.chunks, tuple(chunk), "chunks")
        got = read_zstd(d) if zstd else d[()]
        same_bytes(got.tobytes(), want.tobytes(), "data")


# ---- what comes out -----------------------------------------------------------

CODECS = [("none", None, {}), ("gzip:6", "gzip", {1: (6,), 2: None}),
          ("zstd:5", None, {32015: (5,), 2: None}),
          ("lz4", None, {32004: (0,), 2: None}), ("lzf", "lzf", {32000: None}),
          ("auto", "gzip", {1: (4,), 2: None})]


@case
def every_codec_on_ragged_edges():
    a = numbers((13, 9, 50, 21))
    src = source(a, chunks=(4, 4, 16, 16), compression="gzip")
    for codec, _, filters in CODECS:
        out, info = rechunk(src, "--chunk=3,2,50,10", "--comp=" + codec)
        same(out, a, (3, 2, 50, 10), zstd=codec.startswith("zstd"))
        equal(info["chunk"], [3, 2, 50, 10], "summary")
        equal(info["chunks"], 5 * 5 * 3, "chunks")
        equal(info["bytes"], a.nbytes, "bytes")
        equal(info["stored"], os.path.getsize(out), "stored")
        with h5py.File(out, "r") as f:
            plist = f["data"].id.get_create_plist()
            got = {}
            for i in range(plist.get_nfilters()):
                number, _, values, _ = plist.get_filter(i)
                got[number] = values
            equal(set(got), set(filters), "filters of " + codec)
            for number, values in filters.items():
                if values:
                    equal(got[number], values, "values of " + codec)
            if codec == "lzf":
                equal(got[32000], (4, 261, 3 * 2 * 50 * 10 * 2), "lzf")
            if 2 in got:
                equal(got[2], (2,), "shuffle")
        # and as a mount would show it
        p = tensorfs("cat", out + ":data/array.bin", text=False)
        same_bytes(p.stdout, a.tobytes(), "cat of " + codec)


@case
def noise_is_stored_as_it_is():
    a = np.random.default_rng(3).integers(0, 1 << 32, (64, 64), "u4")
    for codec in "gzip", "lzf", "lz4", "zstd":
        out, info = rechunk(source(a, chunks=(64, 64)), "--chunk=10,64",
                            "--comp=" + codec)
        same(out, a, (10, 64), zstd=codec == "zstd")
        with h5py.File(out, "r") as f:
            mask, raw = f["data"].id.read_direct_chunk((10, 0))
            check(mask, "no filter was skipped by " + codec)
            same_bytes(raw, a[10:20].tobytes(), "stored by " + codec)


TYPES = ["u1", "<i2", ">i2", "<u4", ">f4", "<f8", ">f8", "<f2", "<c8", ">c16",
         "?", "V5", "<i8", [("a", "<i4"), ("b", ">f8", (2,)), ("c", "u1")]]


@case
def types_stay_as_they_are():
    rng = np.random.default_rng(5)
    for t in TYPES:
        dtype = np.dtype(t)
        raw = rng.integers(0, 2 if t == "?" else 256, 37 * 11 * dtype.itemsize,
                           "u1")
        a = np.frombuffer(raw.tobytes(), dtype).reshape(37, 11)
        src = source(a, chunks=(10, 11), compression="gzip")
        out, _ = rechunk(src, "--chunk=37,2")
        same(out, a, (37, 2))
        with h5py.File(src) as f, h5py.File(out) as g:
            check(f["data"].id.get_type() == g["data"].id.get_type(),
                  "%s became another type" % (t,))


@case
def enumerations_bits_and_arrays():
    p = path()
    with h5py.File(p, "w") as f:
        e = h5py.enum_dtype({"RED": 1, "GREEN": 7}, "i2")
        f.create_dataset("e", data=np.array([1, 7] * 20, "i2"), dtype=e,
                         chunks=(7,))
        x = f.create_dataset("x", (12,), np.dtype(("<i4", (3, 2))), chunks=(5,))
        x[...] = np.arange(72, dtype="<i4").reshape(12, 3, 2)
    out, _ = rechunk(p + ":e", "--chunk=11")
    with h5py.File(out) as f:
        equal(h5py.check_enum_dtype(f["e"].dtype), {"RED": 1, "GREEN": 7},
              "enum")
        equal(f["e"][()].tolist(), [1, 7] * 20, "its values")
    out, _ = rechunk(p + ":x", "--chunk=3,3,2")
    same(out, np.arange(72, dtype="<i4").reshape(12, 3, 2), (3, 3, 2), "x")


@case
def a_field_of_a_structure():
    a = np.zeros((30, 8), [("t", "<f8"), ("v", "<i4")])
    a["v"] = np.arange(240).reshape(30, 8)
    src = source(a, chunks=(7, 8), compression="gzip")
    out, _ = rechunk(src + ":data/fields/v", "--chunk=30,1", "--dataset=v")
    same(out, a["v"].copy(), (30, 1), "v")


@case
def attributes_fill_value_and_maximum_are_kept():
    p = path()
    with h5py.File(p, "w") as f:
        d = f.create_dataset("g/data", (20, 30), ">f4", chunks=(5, 7),
                             maxshape=(None, 90), fillvalue=-2.5,
                             compression="gzip", compression_opts=7,
                             shuffle=True)
        d[3:9] = np.arange(180).reshape(6, 30)
        d.attrs["number"] = 3.5
        d.attrs["text"] = "hello \u00e4"
        d.attrs["list"] = ["a", "bb", ""]
        d.attrs["fixed"] = np.array([b"xyz", b"u"])
        d.attrs["ragged"] = np.array([1, 2, 3], "<i8")
        d.attrs["empty"] = h5py.Empty("f8")
        d.attrs.create("sequences", np.array(
            [np.arange(3), np.arange(5)], object), dtype=h5py.vlen_dtype("i4"))
        d.attrs["points"] = f.ref
        d.make_scale("length")
        want, attrs = d[()], {k: d.attrs[k] for k in d.attrs}
    # alone it can have no reference to others
    alone = path()
    p2 = tensorfs("pack", p, alone, "--format=h5", "--chunk=20,4",
                  "--keep=none")
    check("'points'" in p2.stderr, "what was left out: " + p2.stderr)
    with h5py.File(alone, "r") as f:
        check("points" not in f["g/data"].attrs, "a reference to nothing")
    out, _ = rechunk(p, "--chunk=4,30")
    with h5py.File(out, "r") as f:
        d = f["g/data"]
        same_bytes(d[()].tobytes(), want.tobytes(), "data")
        equal(d.dtype, np.dtype(">f4"), "dtype")
        equal(d.maxshape, (None, 90), "maxshape")
        equal(float(d.fillvalue), -2.5, "fill value")
        equal((d.compression, d.compression_opts, d.shuffle), ("gzip", 7, True),
              "the source's filters")
        for name, value in attrs.items():
            if name == "points":
                equal(f[d.attrs[name]].name, "/", "the root of this file")
            elif isinstance(value, h5py.Empty):
                check(isinstance(d.attrs[name], h5py.Empty), "empty")
            else:
                equal(str(d.attrs[name]), str(value), name)
        # rows 0..3 and 12.. were never written, and are not now
        equal(d.id.get_num_chunks(), 3, "chunks that were written")
    # what is beyond the edge of the array is seen when it grows
    out, _ = rechunk(p, "--chunk=20,4")
    with h5py.File(out, "r+") as f:
        f["g/data"].resize((20, 40))
        grown = f["g/data"][()]
    same_bytes(grown[:, :30].tobytes(), want.tobytes(), "data")
    check((grown[:, 30:] == -2.5).all(), "what it grew by")


@case
def large_attributes_and_their_order():
    for order in True, False:
        p = path()
        with h5py.File(p, "w", libver="latest") as f:
            d = f.create_dataset("data", data=numbers((9,)), track_order=order)
            for name in "z", "large", "a":
                d.attrs[name] = np.arange(20000 if name == "large" else 3)
        out, _ = rechunk(p, "--chunk=4")
        with h5py.File(p) as f, h5py.File(out) as g:
            was, now = f["data"].attrs, g["data"].attrs
            equal(list(now), list(was), "names of attributes")
            for name in was:
                same_bytes(now[name].tobytes(), was[name].tobytes(), name)


@case
def never_written_stays_so():
    p = path()
    with h5py.File(p, "w") as f:
        d = f.create_dataset("data", (100, 100), "f4", chunks=(10, 10),
                             fillvalue=np.nan)
        d[25:27, 31] = 1
        want = d[()]
    out, info = rechunk(p, "--chunk=20,20", "--comp=zstd")
    equal((info["chunks"], info["unwritten"]), (1, 24), "written")
    out, _ = rechunk(p, "--chunk=30,7", "--comp=gzip")
    with h5py.File(out) as f:
        same_bytes(f["data"][()].tobytes(), want.tobytes(), "data")
        check(f["data"].id.get_num_chunks() <= 4, "chunks")


@case
def sparse_sources_take_no_time():
    """A million million elements, of which a few were written."""
    p = path()
    spots = [(0, 0), (500000, 123456), (500001, 123456), (999999, 999999)]
    with h5py.File(p, "w") as f:
        d = f.create_dataset("few", (1000000, 1000000), "u1", chunks=(64, 64),
                             fillvalue=7)
        for n, spot in enumerate(spots):
            d[spot] = n
        f.create_dataset("none", (1000000, 1000000), "<f4")
    for chunk, n in ("1000,1000", 4), ("10,10", 154), ("1,70000", 201):
        out, info = rechunk(p + ":/few", "--chunk=" + chunk, "--memory=64M",
                            "--comp=gzip:1")
        check(0 < info["chunks"] <= n, "%s: %r" % (chunk, info))
        grid = [-(-1000000 // int(k)) for k in chunk.split(",")]
        equal(info["chunks"] + info["unwritten"], grid[0] * grid[1], "all")
        with h5py.File(out) as f:
            d = f["few"]
            equal(d.id.get_num_chunks(), info["chunks"], "chunks")
            for n, spot in enumerate(spots):
                equal(d[spot], n, "element")
            equal(set(d[500000 - 64:500000, 123400:123500].flat), {7}, "fill")
    _, info = rechunk(p + ":/none", "--chunk=1000,1000")
    equal(info["chunks"], 0, "chunks of what was never written")
    part = source(np.full((100, 100), 3, "u1"))
    # Each of the new chunks is looked at here: a million take ThreadSanitizer minutes.
    n = 1000000 if lib.full() and not SANITIZED else 200000
    layout = h5py.VirtualLayout((n, n), "u1")
    for at in 0, n // 2, n - 100:
        layout[at:at + 100, at:at + 100] = h5py.VirtualSource(
            part, "data", (100, 100))
    p = path()
    with h5py.File(p, "w") as f:
        f.create_virtual_dataset("data", layout, fillvalue=9)
    out, info = rechunk(p, "--chunk=1000,1000")
    equal(info["chunks"], 3, "chunks of a virtual dataset")
    with h5py.File(out) as f:
        d = f["data"]
        equal([d[50, 50], d[n // 2 + 50, n // 2 + 99], d[0, 100], d[-1, -1]],
              [3, 3, 9, 3], "elements")


@case
def places_are_in_order():
    """Whatever chunk is done first."""
    a = np.zeros((24, 256, 256), "<u4")
    a[::6] = np.random.default_rng(3).integers(0, 9, a[::6].shape)  # slow
    src = source(a, chunks=(24, 64, 64), compression="lzf")
    got = set()
    for threads in 1, 2, 4, 8:
        out, _ = rechunk(src, "--chunk=1,256,256", "--comp=zstd:15",
                         "--threads=%d" % threads, "--memory=512M", "--verify")
        with open(out, "rb") as f:
            got.add(f.read())
        with h5py.File(out) as f:
            d = f["data"].id
            at = [d.get_chunk_info(i).byte_offset for i in range(24)]
        equal(at, sorted(at), "places")
        os.unlink(out)
    equal(len(got), 1, "different files")


@case
def empty_axes():
    for shape in (0,), (0, 5), (5, 0, 7), (0, 0):
        src = source(np.zeros(shape, "i4"), maxshape=(None,) * len(shape),
                     chunks=(3,) * len(shape))
        out, info = rechunk(src, "--chunk=" + ",".join("2" * len(shape)))
        with h5py.File(out) as f:
            equal(f["data"].shape, shape, "shape")
            equal(f["data"].dtype, np.dtype("i4"), "dtype")
        equal(info["chunks"], 0, "chunks")


@case
def chunks_stay_without_the_option():
    a = numbers((20, 20))
    out, _ = rechunk(source(a, chunks=(7, 3)), "--comp=lzf")
    same(out, a, (7, 3))
    out, _ = rechunk(source(a), "--comp=lzf")
    same(out, a, (1, 20))
    out, _ = rechunk(source(a, chunks=(7, 3)), "--chunk=100,100")
    same(out, a, (20, 20))
    for rest in (), (1,):
        a = numbers((3000,) + rest)
        same(rechunk(source(a))[0], a, (1024,) + rest)


@case
def chunks_stay_in_what_shall_grow():
    """Also where they are larger than what is there yet, which may be nothing."""
    how = {"maxshape": (None, 5), "chunks": (64, 5), "compression": "gzip"}
    for n in 3, 0:
        a = numbers((n, 5))
        out, _ = rechunk(source(a, **how))
        same(out, a, (64, 5))
        with h5py.File(out) as f:
            equal((f["data"].compression, f["data"].maxshape),
                  ("gzip", (None, 5)), "filter and maximum")


# ---- all kinds of sources ------------------------------------------------------

@case
def random_arrays():
    rng = random.Random(11)
    for _ in range(lib.rounds(40)):
        rank = rng.randint(1, 5)
        shape = [rng.randint(1, int(5000 ** (1 / rank)) + 2) for _ in range(rank)]
        a = numbers(shape, rng.choice(["u1", "<i2", ">i4", "<f8"]),
                    rng.randint(0, 99))
        how = {}
        if rng.random() < .8:
            how["chunks"] = tuple(rng.randint(1, n) for n in shape)
            how["compression"] = rng.choice([None, "gzip", "lzf"])
            how["shuffle"] = rng.random() < .5
            how["fletcher32"] = rng.random() < .3
        chunk = [rng.randint(1, n) for n in shape]
        out, info = rechunk(source(a, **how),
                            "--chunk=" + ",".join(map(str, chunk)),
                            "--comp=" + rng.choice(["none", "gzip", "lzf",
                                                    "lz4"]),
                            *rng.choice([(), ("--verify",), ("--threads=5",)]))
        same(out, a, chunk)
        check(info["decodes"] >= info["source_chunks"], "decodes")


@case
def distributed_and_virtual():
    d = path("")
    os.makedirs(d)
    t = skerch.create(d, rows=50, sub=(40,), part=7, dtype="<f8")
    out, _ = rechunk(t.all_path + ":data", "--chunk=50,5", "--comp=gzip")
    same(out, t.data, (50, 5))
    p = exits(tensorfs("pack", t.all_path, path(), "--format=h5"), 0, "flags")
    check("1 other dataset as it was" in p.stderr, p.stderr)
    p = exits(tensorfs("pack", t.all_path, path(), "--format=h5",
                       "--keep=none"), 0, "alone")
    check("only /data is copied; 1 other" in p.stderr, p.stderr)
    # parts of another shape, a gap, a stride
    p = path()
    a, b = numbers((10, 12), "<i4", 1), numbers((10, 12), "<i4", 2)
    with h5py.File(p, "w") as f:
        f.create_dataset("a", data=a, chunks=(3, 5), compression="gzip")
        f.create_dataset("b", data=b)
        layout = h5py.VirtualLayout((30, 12), "<i4")
        layout[0:10] = h5py.VirtualSource(".", "a", (10, 12))
        layout[11:30:2] = h5py.VirtualSource(".", "b", (10, 12))
        f.create_virtual_dataset("v", layout, fillvalue=-7)
        want = f["v"][()]
    out, _ = rechunk(p + ":v", "--chunk=9,12", "--comp=lzf")
    same(out, want, (9, 12), "v")
    with h5py.File(out) as f:
        equal(int(f["v"].fillvalue), -7, "fill value")


@case
def tensors_within_archives():
    a = numbers((30, 30))
    src = source(a, chunks=(10, 10), compression="gzip")
    d = path("")
    os.makedirs(d)
    tar = os.path.join(d, "x.tar")
    equal(run("tar", "cf", tar, "-C", work,
              os.path.basename(src)).returncode, 0, "tar")
    out, _ = rechunk("%s:%s/data" % (tar, os.path.basename(src)), "--chunk=5,30")
    same(out, a, (5, 30))


# ---- memory -------------------------------------------------------------------

@case
def memory_is_bounded():
    mib = 1 << 20
    shape = (8, 8, 512, 1024) if SANITIZED else \
        (16, 16, 512, 1024) if lib.full() else (8, 16, 512, 1024)
    src = path()
    with h5py.File(src, "w") as f:
        d = f.create_dataset("data", shape, "<u2", chunks=(8, 8, 64, 64),
                             compression="lzf")
        row = numbers(shape[1:], "<u2")
        for i in range(shape[0]):
            d[i] = row + i
    size = int(np.prod(shape)) * 2
    for memory in (64, 96, 160) if lib.full() else (64,):
        for chunk in "1,1,512,1024", "16,16,8,8", "4,4,128,128":
            out = path()
            most = peak(lib.TENSORFS, "pack", src, out, "-q", "--force",
                        "--memory=%dM" % memory, "--chunk=" + chunk,
                        "--comp=lz4", "--threads=4")
            if not SANITIZED:
                check(most <= memory * mib, "%s in %d MiB: %.1f MiB" % (
                    chunk, memory, most / mib))
            with h5py.File(out) as f:
                for i in range(0, shape[0], 5):
                    check((f["data"][i] == row + i).all(), "row %d" % i)
            os.unlink(out)
    check(SANITIZED or size >= (4 if lib.full() else 2) * 64 * mib,
          "too small a test")
    os.unlink(src)


@case
def what_does_not_fit_says_what_would():
    src = source(np.zeros((1024, 1024, 40), "u2"), chunks=(1024, 1024, 20),
                 compression="gzip")
    text = rechunk(src, "--chunk=64,64,40", "--memory=64M", code=5)
    check("--memory=" in text, text)
    need = text.split("--memory=")[1].split()[0]
    out, info = rechunk(src, "--chunk=64,64,40", "--memory=" + need)
    same(out, np.zeros((1024, 1024, 40), "u2"), (64, 64, 40))
    os.unlink(out)
    # more decodes than memory would make them, and that is said
    src = source(np.zeros((64, 512, 1024), "u2"), chunks=(64, 64, 64),
                 compression="gzip")
    p = exits(tensorfs("pack", src, path(), "--format=h5", "--memory=64M",
                       "--chunk=1,512,1024"), 0, "little memory")
    check(" times; with --memory=" in p.stderr, p.stderr)


# ---- what goes wrong -----------------------------------------------------------

@case
def usage():
    a = source(np.zeros((4, 5), "i4"))
    two = path()
    with h5py.File(two, "w") as f:
        f["one"], f["two"], f["s"] = np.zeros((3, 3)), np.zeros(4), 7
        f["text"] = "words"
    for src, options, code, word in [
            (a, ("--chunk=4",), 2, "1 axes"),
            (a, ("--chunk=4,5,6",), 2, "shape is (4, 5)"),
            (a, ("--chunk=0,1",), 2, "--chunk=0,1"),
            (a, ("--chunk=-1,1",), 2, "--chunk"),
            (a, ("--chunk=1,",), 2, "comma"),
            (a, ("--chunk=",), 2, "--chunk"),
            (a, ("--chunk=1,x",), 2, "--chunk"),
            (a, ("--chunk=" + "1," * 40 + "1",), 2, "more than 32"),
            (a, ("--dataset=.",), 2, "--dataset=."),
            (a, ("--dataset=x/../y",), 2, "--dataset=x/../y"),
            (a, ("--comp=xz",), 2, "xz"),
            (a, ("--comp=lz4:3",), 2, "lz4 has no levels"),
            (a, ("--comp=zip",), 2, "zip"),
            (a, ("--labels=dirs",), 2, "--labels"),
            (a, ("--exclude=x",), 2, "--exclude"),
            (two, (), 3, "/one, /two"),
            (two + ":nothing", (), 1, "nothing"),
            (two + ":s", (), 2, "single value"),
            (two + ":s", ("--chunk=2",), 2, "single value"),
            (two + ":text", (), 3, "text"),
            (path() + ":x", (), 3, ""),
            (path(), ("--labels=dirs",), 3, "No such file"),
            (__file__, (), 3, "")]:
        text = rechunk(src, *options, code=code)
        check(word in text, "%s: no '%s' in: %s" % (options, word, text))
    out = path()
    with open(out, "w") as f:
        f.write("mine")
    text = rechunk(a, code=2, out=out)
    check("--force" in text or "exists" in text, text)
    equal(open(out).read(), "mine", "what was there")
    rechunk(a, "--force", out=out)
    same(out, np.zeros((4, 5), "i4"), (1, 5))


@case
def chunks_of_4_gib_are_refused():
    p = path()
    with h5py.File(p, "w") as f:
        f.create_dataset("data", (1 << 17, 1 << 17), "u1", chunks=(512, 512))
    text = rechunk(p, "--chunk=65536,65536", code=2)
    check("4 GiB" in text, text)


@case
def filters_that_cannot_be_written():
    a = numbers((20, 20), "<i4")
    src = source(a, chunks=(10, 10), scaleoffset=0)
    text = rechunk(src, "--chunk=5,5", code=3)
    check("scaleoffset" in text and "--comp" in text, text)
    out, _ = rechunk(src, "--chunk=5,5", "--comp=gzip")
    same(out, a, (5, 5))
    src = path()  # the library writes the second one, and always skips it
    with h5py.File(src, "w") as f:
        p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        p.set_chunk((10, 10))
        for add in p.set_shuffle, p.set_shuffle, p.set_deflate:
            add()
        h5py.h5d.create(f.id, b"data", h5py.h5t.STD_I32LE,
                        h5py.h5s.create_simple(a.shape), p)
        f["data"][()] = a
    out, _ = rechunk(src, "--chunk=5,5")
    same(out, a, (5, 5))


def kept(f):
    """An output that is there stays what it is."""
    out = path()
    with open(out, "wb") as g:
        g.write(b"old" * 1000)
    f(out)
    with open(out, "rb") as g:
        equal(g.read(), b"old" * 1000, "what was there before")


@case
def a_missing_part():
    d = path("")
    os.makedirs(d)
    t = skerch.create(d, rows=50, sub=(40,), part=7, dtype="<f8")
    gone = t.parts[3][2]
    os.unlink(gone)

    def f(out):
        text = rechunk(t.all_path + ":data", "--chunk=50,5", "--force", code=3,
                       out=out)
        check(os.path.basename(gone) in text, text)
    kept(f)


@case
def a_damaged_chunk():
    a = numbers((64, 64), "<i4")
    src = source(a, chunks=(16, 16), compression="gzip")
    with h5py.File(src) as f:
        at = f["data"].id.get_chunk_info(5).byte_offset
    with open(src, "r+b") as f:
        f.seek(at + 20)
        f.write(b"damage!!")

    def f(out):
        text = rechunk(src, "--chunk=64,5", "--force", code=3, out=out)
        check("chunk" in text and os.path.basename(src) in text or
              "/data chunk" in text, text)
    kept(f)


@case
def a_full_disk():
    a = np.random.default_rng(1).integers(0, 256, (600, 4096), "u1")
    src = source(a, chunks=(100, 100))
    here = path("")
    os.makedirs(here)
    script = """
        mount -t tmpfs -o size=1m none "$1" || exit 99
        cd "$1" && echo old >out.h5
        "$2" pack "$3" out.h5 --force -q --chunk=10,4096 && exit 98
        code=$?
        [ "$(ls -A)" = out.h5 ] && [ "$(cat out.h5)" = old ] || exit 97
        exit $code"""
    p = run("unshare", "--mount", *([] if ROOT else ["--map-root-user"]),
            "sh", "-c", script, "sh", here, lib.TENSORFS, src)
    exits(p, 1, "full disk")
    check("No space" in p.stderr, p.stderr)


@case
def killed_and_interrupted():
    a = numbers((64, 256, 256), "<i4")
    src = source(a, chunks=(8, 64, 64), compression="gzip")
    d = path("")
    os.makedirs(d)
    out = os.path.join(d, "out.h5")
    with open(out, "w") as f:
        f.write("old")
    seen = set()
    rng = random.Random(4)
    argv = [lib.TENSORFS, "pack", src, out, "--force", "-q", "--threads=2",
            "--chunk=64,4,256", "--comp=zstd:12"]
    took = []
    for _ in range(3):
        start = time.monotonic()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        took.append(time.monotonic() - start)
    n = 0
    while n < lib.rounds(16) or (n < 100 and not seen - {0}):
        n += 1
        with open(out, "w") as f:
            f.write("old")
        number = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                             signal.SIGKILL])
        p = subprocess.Popen(argv, stderr=subprocess.PIPE)
        # Whatever it has come to, also when it has ended, what is there must be right.
        time.sleep(rng.random() * min(took))
        p.send_signal(number)
        _, text = p.communicate()
        seen.add(p.returncode)
        if p.returncode == 0:
            continue
        equal(p.returncode, -number, "status")
        with open(out, "rb") as f:
            whole = f.read(3) != b"old"
        if whole:  # it came when all was done
            with h5py.File(out) as f:
                equal(f["data"].id.get_num_chunks(), 64, "chunks")
        elif number != signal.SIGKILL:
            # early ones come before there is anything
            check(not text or b"nothing was left" in text, text)
        left = set(os.listdir(d)) - {"out.h5"}
        for name in list(left):  # between having a name and the right one
            if number == signal.SIGKILL and name.startswith(".out.h5."):
                os.unlink(os.path.join(d, name))
                left.remove(name)
        equal(left, set(), "left behind")
    check(seen - {0}, "nobody was killed")


work = lib.setup(fuse=False)
lib.main()
