#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""shards/: WebDataset shards that nobody wrote, read by GNU tar, Python's tarfile,
NumPy and torch, and compared with what pack --shards writes."""
import errno
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import skerch
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(11)


def numbers(dtype, shape):
    return rng.integers(0, 255, (int(np.prod(shape)) * np.dtype(dtype).itemsize,),
                        dtype="u1").view(dtype).reshape(shape)


def h5(name, **datasets):
    path = os.path.join(work, name)
    with h5py.File(path, "w") as f:
        for k, v in datasets.items():
            f.create_dataset(k, **v) if isinstance(v, dict) else \
                f.create_dataset(k, data=v)
    return path


def bytes_equal(got, want, what):
    check(got == want, "%s: %d bytes, expected %d, differ from %s on" % (
        what, len(got), len(want),
        next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), "the end")))


def digest(path):
    return hashlib.sha256(read(path)).hexdigest()


# --- WebDataset's rules, as its tariterators.py (e0953f9) has them ----------------

SPLIT = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
META = re.compile(r"__[^/]*__($|/)")


def group_by_keys(path):
    """[(key, {ext: bytes})] from one pass without a seek."""
    samples = []
    with open(path, "rb", buffering=0) as f, tarfile.open(
            fileobj=f, mode="r|*", errors="surrogateescape") as tar:
        for m in tar:
            if not m.isreg() or META.match(m.name) or not SPLIT.match(m.name):
                continue
            key, ext = SPLIT.match(m.name).groups()
            if not samples or samples[-1][0] != key:
                samples.append((key, {}))
            check(ext.lower() not in samples[-1][1], "%s twice" % m.name)
            samples[-1][1][ext.lower()] = tar.extractfile(m).read()
    return samples


def tars(top):
    return [os.path.join(top, n) for n in os.listdir(top) if n.endswith(".tar")]


def packed(directory, name, *options):
    """The shards that pack makes of a directory."""
    out = os.path.join(work, name)
    os.makedirs(out)
    exits(tensorfs("pack", "-q", "--no-index", *options, directory,
                   out + "/x-%06d.tar"), 0, "pack")
    return sorted(tars(out))


def same_as_packed(top, directory, name, *options):
    want = packed(directory, name, *options)
    got = tars(top)
    equal(got, sorted(got), "order of names")
    equal(len(got), len(want), "%s: shards" % name)
    for a, b in zip(got, want):
        equal(os.stat(a).st_size, os.stat(b).st_size, "size of " + a)
        bytes_equal(read(a), read(b), a)


def check_index(top, index):
    with open(os.path.join(top, index), encoding="utf-8") as f:
        x = json.load(f)
    equal((x["__kind__"], x["wids_version"]), ("wids-shard-index-v1", 1), "kind")
    equal([os.path.join(top, s["url"]) for s in x["shardlist"]], tars(top), "urls")
    for s in x["shardlist"]:
        path = os.path.join(top, s["url"])
        equal(os.path.getsize(path), s["filesize"], "size in the index")
        equal(len(group_by_keys(path)), s["nsamples"], "samples in the index")
    return x


OWNER = ("--owner=0:0", "--numeric-owner")


# --- tensors ----------------------------------------------------------------------

@case
def samples_as_members():
    data = {}
    for t in ("?", "u1", "<i2", "<u4", "<i8", "<f4", "<f8", "<c16"):
        data["t_" + np.dtype(t).name] = numbers("u1", (7, 3, 2)).astype(t)
    data["one"] = numbers("<u2", (1,))
    data["flat"] = numbers("<f4", (23,))
    data["empty"] = numbers("u1", (5, 0))
    data["blocks"] = numbers("u1", (3, 512 - 128))
    data["packed"] = dict(data=numbers("u1", (40, 33, 17)), chunks=(7, 8, 9),
                          compression="gzip", shuffle=True)
    data["struct"] = np.zeros(5, [("a", "<i4"), ("b", "<f8", (3,))])
    path = h5("types.h5", **data)
    with Mount(path, opts=["--shards=1"]) as m:
        for name, want in data.items():
            want = want["data"] if isinstance(want, dict) else want
            top = "%s/%s/shards" % (m.path, name)
            equal(os.listdir(top), [name + "-000000.tar", name + "-index.json"],
                  "names")
            samples = group_by_keys(tars(top)[0])
            equal([k for k, _ in samples], ["%06d" % i for i in range(len(want))],
                  "keys")
            for i, (_, fields) in enumerate(samples):
                equal(list(fields), ["npy"], "fields")
                a = np.load(io.BytesIO(fields["npy"]))
                equal((a.dtype, a.shape), (want.dtype, want.shape[1:]), name)
                check(a.tobytes() == want[i].tobytes(), "%s %d" % (name, i))
            same_as_packed(top, "%s/%s/samples" % (m.path, name), "p-" + name,
                           "--shards=1", *OWNER)
            check_index(top, name + "-index.json")


@case
def what_tar_says_of_it():
    path = h5("tar.h5", x=numbers("<f4", (12, 5)))
    os.utime(path, (1700000000, 1700000000))
    with Mount(path, opts=["--shards=2"]) as m:
        one = m.path + "/x/shards/x-000001.tar"
        p = subprocess.run(["tar", "--utc", "--full-time", "-tvf", one], check=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal(p.stderr, "", "tar")
        equal(p.stdout.splitlines(),
              ["-r--r--r-- 0/0             148 2023-11-14 22:13:20 %06d.npy" % i
               for i in range(6, 12)], "tar -tvf")
        out = os.path.join(work, "extracted")
        os.makedirs(out)
        subprocess.run(["tar", "-xf", one, "-C", out], check=True)
        for i in range(6, 12):
            bytes_equal(read("%s/%06d.npy" % (out, i)),
                        read("%s/x/samples/%06d.npy" % (m.path, i)), "member")


@case
def samples_of_several_axes():
    path = h5("axes.h5", x=numbers("<u2", (4, 11, 6)), y=numbers("<u2", (9, 2)))
    with Mount(path, opts=["--sample-axes=2", "--shard-count=8"]) as m:
        top = m.path + "/x/shards"
        same_as_packed(top, m.path + "/x/samples", "axes", "--shard-count=8", *OWNER)
        keys = [k for t in tars(top) for k, _ in group_by_keys(t)]
        equal(keys, ["%06d/%06d" % (i, j) for i in range(4) for j in range(11)], "keys")
        same_as_packed(m.path + "/y/shards", m.path + "/y/samples", "axes-y",
                       "--shard-count=8", *OWNER)


def labelled(name, samples, suffixes, mtime):
    """A directory as somebody makes it for `pack --shards`: KEY.npy, and KEY.cls."""
    top = os.path.join(work, name)
    for (key, npy), cls in zip(samples, suffixes):
        os.makedirs(os.path.dirname(os.path.join(top, key)), exist_ok=True)
        for ext, data in (("npy", npy), ("cls", cls.encode())):
            path = "%s/%s.%s" % (top, key, ext)
            with open(path, "wb") as f:
                f.write(data)
            os.chmod(path, 0o444)
            os.utime(path, (mtime, mtime))
    return top


@case
def samples_with_labels():
    """KEY.cls beside KEY.npy: an integer, as WebDataset decodes it."""
    x, y = numbers("<u2", (23, 40, 9)), rng.integers(-3, 200, 23)
    names = np.array([b"dog", b"cat", b"a/b", b"emu"])[rng.integers(0, 4, 23)]
    scan = numbers("<f4", (4, 6, 3))
    path = h5("labels.h5", x=x, labels=y, names=names, scan=scan, grid=y[:24 - 1].repeat(2)[:24]
              .reshape(4, 6))
    os.utime(path, (1600000000, 1600000000))
    order = sorted(set(names))
    for k, (opts, what, axes, classes) in enumerate((
            ([], "x", 1, y), (["--labels=names"], "x", 1, [order.index(n) for n in names]),
            (["--labels=grid", "--sample-axes=2"], "scan", 2, y.repeat(2)[:24]))):
        for cut in ("--shards=3", "--shard-count=5", "--shard-size=20K"):
            with Mount(path, opts=[*opts, cut]) as m:
                samples = ["%06d" % i for i in range(23)] if axes == 1 else \
                    ["%06d/%06d" % (i, j) for i in range(4) for j in range(6)]
                samples = [(key, read("%s/%s/samples/%s.npy" % (m.path, what, key)))
                           for key in samples]
                top = "%s/%s/shards" % (m.path, what)
                name = "labelled-%d%s" % (k, cut)
                same_as_packed(top, labelled(name, samples, map(str, classes), 1600000000),
                               name + "-packed", cut, *OWNER)
                got = [s for t in tars(top) for s in group_by_keys(t)]
                equal([(key, int(f["cls"])) for key, f in got],
                      [(key, c) for (key, _), c in zip(samples, classes)], "classes")
                for s in check_index(top, what + "-index.json")["shardlist"]:
                    equal(s.get("nfiles", 2 * s["nsamples"]), 2 * s["nsamples"], "files")
    # Labels that cannot be read are an error of every shard, and of nothing else.
    with h5py.File(path, "a") as f:
        del f["labels"]
        f["labels"] = np.full(23, 2**64 - 1, "u8")
    with Mount(path) as m:
        fails_with((errno.EIO, errno.ERANGE), lambda: read(m.path + "/x/shards/x-000000.tar"), "x")
        equal(len(os.listdir(m.path + "/x/samples")), 23, "samples")


@case
def how_they_are_cut():
    path = h5("cut.h5", x=numbers("<f4", (103, 70)))
    member = 512 + 512  # 128 + 280 bytes
    for k, options in enumerate((
            ["--shards=1"], ["--shards=10"], ["--shards=103"], ["--shard-count=1"],
            ["--shard-count=25"], ["--shard-count=103"], ["--shard-count=1000"],
            ["--shard-size=10K"], ["--shard-size=10240"], ["--shard-size=20479"],
            ["--shard-size=20480"], ["--shard-size=50K"], ["--shard-size=1"],
            ["--shard-size=30K", "--shard-count=20"],
            ["--shard-size=30K", "--shard-count=31"])):
        with Mount(path, opts=options) as m:
            top = m.path + "/x/shards"
            same_as_packed(top, m.path + "/x/samples", "cut%d" % k, *options, *OWNER)
            samples = [group_by_keys(t) for t in tars(top)]
            equal([key for s in samples for key, _ in s],
                  ["%06d" % i for i in range(103)], "all samples")
            for s, t in zip(samples, tars(top)):
                equal(os.path.getsize(t), -(-(len(s) * member + 1024) // 10240) * 10240,
                      "size")
            check_index(top, "x-index.json")
    with Mount(path) as m:
        equal(os.listdir(m.path + "/x/shards"), ["x-000000.tar", "x-index.json"],
              "a GiB each")
    with Mount(path, opts=["--shards=104"]) as m:
        fails_with(errno.ENOENT, lambda: os.listdir(m.path + "/x/shards"),
                   "fewer samples than shards")
        with open(m.path + "/x/info.json") as f:
            equal(json.load(f)["note"], "shards/ is left out: 104 shards are asked for, and there "
                  "are 103 samples", "why not")
    for options in (["--shards=0"], ["--shards=x"], ["--shard-size=0"],
                    ["--shard-count=0"], ["--shards=2", "--shard-size=1M"],
                    ["--shard-count=3", "--shards=2"]):
        p = exits(tensorfs("ls", *options, path), 2, " ".join(options))
        check("shard" in p.stderr, "about what? " + p.stderr)


@case
def read_anywhere():
    path = h5("anywhere.h5", x=dict(data=numbers("u1", (900, 61, 7)),
                                    chunks=(64, 16, 7), compression="gzip"),
              y=numbers("<i4", (5, 100000)), z=numbers("u1", (3000,)))
    pick = random.Random(5)
    with Mount(path, opts=["--shards=3", "--cache-size=1M"]) as m:
        for name in "xyz":
            want = [read(p) for p in packed(
                "%s/%s/samples" % (m.path, name), "any-" + name, "--shards=3", *OWNER)]
            order = list(range(120))
            pick.shuffle(order)
            for i in order:
                k = i % 3
                fd = os.open(tars("%s/%s/shards" % (m.path, name))[k], os.O_RDONLY)
                size = len(want[k])
                off = pick.choice((pick.randrange(size), size - 1,
                                   pick.randrange(size) // 512 * 512, size + 5))
                n = pick.choice((1, 100, 512, 4096, 131072, 1 << 20))
                bytes_equal(os.pread(fd, n, off), want[k][off:off + n],
                            "%s %d at %d" % (name, n, off))
                os.close(fd)


# --- samples that differ in size --------------------------------------------------

def varying():
    """Strings of fixed and any length, lines of JSON, sequences; one is empty."""
    r = random.Random(3)
    texts = ["line\n%d " % i * r.randrange(200) for i in range(61)]
    ragged = np.empty(61, object)
    for i in range(61):
        ragged[i] = np.arange(r.choice((0, 1, 96, 97, r.randrange(3000))), dtype="<i4")
    pairs = np.array([[b"a" * r.randrange(600), b"%d" % i] for i in range(61)], object)
    path = h5("varying.h5", words=np.array([t.encode()[:40] for t in texts]))
    with h5py.File(path, "a") as f:
        f.create_dataset("texts", data=texts, dtype=h5py.string_dtype())
        f.create_dataset("ragged", data=ragged, dtype=h5py.vlen_dtype("<i4"))
        f.create_dataset("pairs", data=pairs, dtype=h5py.string_dtype())
        f["grid"] = np.arange(60).reshape(12, 5) ** 9
        f.create_dataset("axes", shape=(12, 5), dtype=h5py.string_dtype())
        f["axes"][...] = [["x" * (7 * i * k) for k in range(5)] for i in range(12)]
    return path


@case
def samples_that_differ():
    path = varying()
    os.utime(path, (1600000000, 1600000000))
    for k, cut in enumerate((["--shards=4"], ["--shard-count=7"], ["--shard-size=20K"], [],
                             ["--shard-size=40K", "--shard-count=9"], ["--shard-size=1"])):
        with Mount(path, opts=cut) as m:
            for name in ("texts", "ragged", "words", "pairs"):
                top = "%s/%s/shards" % (m.path, name)
                same_as_packed(top, "%s/%s/samples" % (m.path, name),
                               "vary-%d-%s" % (k, name), *cut, *OWNER)
                equal(len([s for t in tars(top) for s in group_by_keys(t)]), 61, "samples")
                check_index(top, name + "-index.json")
                fails_with(errno.ENOENT, lambda: os.stat("%s/%s-%06d.tar" % (
                    top, name, len(tars(top)))), "no such shard")
    with Mount(path, opts=["--shard-size=30K", "--sample-axes=2"]) as m:
        same_as_packed(m.path + "/axes/shards", m.path + "/axes/samples", "vary-axes",
                       "--shard-size=30K", *OWNER)
    with Mount(path, opts=["--shards=62"]) as m:
        fails_with(errno.ENOENT, lambda: os.listdir(m.path + "/texts/shards"), "too few")
    with Mount(path, opts=["--shard-size=30K", "--cache-size=1M"]) as m:  # looked up, never listed
        for name in ("texts", "ragged"):
            one = "%s/%s/shards/%s-000001.tar" % (m.path, name, name)
            whole = read(packed("%s/%s/samples" % (m.path, name), "vary-at-" + name,
                                "--shard-size=30K", *OWNER)[1])
            equal(os.path.getsize(one), len(whole), "size")
            fd = os.open(one, os.O_RDONLY)
            for _ in range(60):
                off, n = rng.integers(0, len(whole)), rng.choice((1, 512, 4000, 100000))
                bytes_equal(os.pread(fd, n, off), whole[off:off + n], "%s at %d" % (name, off))
            os.close(fd)


@case
def labels_of_samples_that_differ():
    path = varying()
    with h5py.File(path, "a") as f:
        f["labels"] = np.arange(61) % 7 - 2
    os.utime(path, (1600000000, 1600000000))
    with Mount(path, opts=["--shard-size=30K"]) as m:
        samples = [("%06d" % i, read("%s/ragged/samples/%06d.npy" % (m.path, i)))
                   for i in range(61)]
        same_as_packed(m.path + "/ragged/shards", labelled(
            "vary-labels", samples, map(str, np.arange(61) % 7 - 2), 1600000000), "vary-labelled",
            "--shard-size=30K", *OWNER)


@case
def columns_that_vary():
    top = lib.COLUMNS
    for k, name in enumerate(("binary.arrow", "binary-zstd.arrow", "binary1.parquet")):
        with Mount(os.path.join(top, name), opts=["--shard-size=20K"]) as m:
            for c in ("photo", "meta", "floats"):
                same_as_packed("%s/%s/shards" % (m.path, c), "%s/%s/samples" % (m.path, c),
                               "column-%d-%s" % (k, c), "--shard-size=20K", *OWNER)


@case
def one_that_cannot_be_had():
    """There are no shards without its size."""
    path = varying()
    data = bytearray(read(path))
    at = data.index(b"GCOL")
    data[at:at + 4] = b"LOCG"
    with open(path, "wb") as f:
        f.write(data)
    with Mount(path, opts=["--shards=1"]) as m:
        bad = [n for n in ("texts", "pairs", "axes", "ragged")
               if subprocess.run(["cat", "%s/%s/shards/%s-000000.tar" % (m.path, n, n)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode]
        check(bad and len(bad) < 4, "damage of some: %s" % bad)
        for n in bad:
            fails_with((errno.EIO, errno.EBADMSG),
                       lambda: read("%s/%s/shards/%s-000000.tar" % (m.path, n, n)), n)


@case
def names():
    path = h5("names.h5", **{"a b": numbers("u1", 3), "deep/x.y_z": numbers("u1", 3),
                             "deep/{0}": numbers("u1", 3), "scalar": np.float32(1),
                             "none": np.zeros((0, 4)), "text": np.array([b"a", b"bc"])})
    with Mount(path, opts=["--shards=2", "--views=shards"]) as m:
        equal(sorted(os.listdir(m.path + "/a b")), ["info.json", "shards"], "listed")
        equal(os.listdir(m.path + "/a b/shards"),
              ["shards-000000.tar", "shards-000001.tar", "shards-index.json"], "blank")
        equal(os.listdir(m.path + "/deep/x.y_z/shards"),
              ["x.y_z-000000.tar", "x.y_z-000001.tar", "x.y_z-index.json"], "plain")
        equal(os.listdir(m.path + "/deep/{0}/shards")[0], "shards-000000.tar", "braces")
        for name in ("x.y_z-000002.tar", "x.y_z-0.tar", "x.y_z-00000.tar",
                     "x.y_z-0000000.tar", "x.y_z-000000.tar.gz", "x.y_z", "x.y_z-",
                     "y-000000.tar", "x.y_z-index.jso", "-1.tar"):
            fails_with(errno.ENOENT, lambda: os.stat(m.path + "/deep/x.y_z/shards/" +
                                                     name), name)
        for name in ("scalar", "none"):
            fails_with(errno.ENOENT, lambda: os.stat("%s/%s/shards" % (m.path, name)),
                       name)
    p = exits(tensorfs("cat", "--shards=2", path + ":deep/x.y_z/shards/x.y_z-000001.tar",
                       text=False), 0, "cat")
    with tarfile.open(fileobj=io.BytesIO(p.stdout)) as t:
        equal(t.getnames(), ["000002.npy"], "cat")


@case
def a_missing_part_is_an_error():
    t = skerch.create(os.path.join(work, "dist"), rows=60, part=10, sub=(8,))
    with h5py.File(t.all_path) as f:
        want = f["data"][...]
    with Mount(t.all_path, opts=["--shards=6"]) as m:
        for k, one in enumerate(tars(m.path + "/data/shards")):
            for i, (_, x) in enumerate(group_by_keys(one)):
                bytes_equal(np.load(io.BytesIO(x["npy"])).tobytes(),
                            want[10 * k + i].tobytes(), "sample")
        os.unlink(t.parts[2][2])
    with Mount(t.all_path, opts=["--shards=6"]) as m:
        shards = tars(m.path + "/data/shards")
        equal(os.path.getsize(shards[2]), os.path.getsize(shards[1]), "size")
        fails_with(errno.ENODATA, lambda: read(shards[2]), "missing part")
        equal(len(group_by_keys(shards[3])), 10, "the next one")


# --- directories and archives -------------------------------------------------------

def tree(name, n=60, seed=1):
    """A directory with everything that decides what a member is, where, and how long its
    header is."""
    pick = random.Random(seed)
    top = os.path.join(work, name)
    paths = ["%s/%04d.%s" % (d, i, x) for i in range(n) for d in ("a", "a-b", "deep/er")
             for x in ("jpg", "cls", "seg.png")]
    paths += ["plain.txt", "no_extension", ".hidden.txt", "a/.hidden.txt", "__meta__/x.txt",
              "a.d/x.txt", "a.d/x.json", "x.cls", "x.d/y.z", "x.jpg", "é/ü.txt", "A.TXT",
              "empty.bin", "l/" + "n" * 120 + ".txt", "l/" + "d" * 90 + "/" + "m" * 60 + ".b",
              "q" * 99 + ".x", "q" * 98 + ".y", "/".join(["p" * 70] * 4) + "/r.txt",
              "old.time", "far.time", "tail.a b"]
    for p in paths:
        path = os.path.join(top, p)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(rng.bytes(0 if p.startswith("empty") else
                              pick.choice((1, 100, 511, 512, 513, 4096, 9000))))
        os.chmod(path, pick.choice((0o644, 0o600, 0o755)))
        os.utime(path, ns=(0, pick.randrange(10 ** 9 * 10 ** 9)))
    os.utime(top + "/old.time", (0, -86400))
    os.utime(top + "/far.time", (0, 1 << 33))
    os.link(top + "/x.jpg", top + "/y.jpg")
    os.mkfifo(top + "/fifo.txt")
    # What a mount shows as a directory is a file all the same.
    with tarfile.open(top + "/inner.tar", "w") as t:
        t.add(top + "/x.jpg", "x.jpg")
    with h5py.File(top + "/a/tensor.h5", "w") as f:
        f["x"] = np.arange(10)
    return top


def source_samples(top):
    """{key: {ext: bytes}} by an own walk."""
    out = {}
    for d, _, files in os.walk(top):
        for n in files:
            path = os.path.join(d, n)
            inner = os.path.relpath(path, top)
            m = SPLIT.match(inner)
            if n.startswith(".") or not m or META.match(inner) or \
                    not os.path.isfile(path):
                continue
            out.setdefault(m.group(1), {})[m.group(2).lower()] = read(path)
    return out


CUTS = (["--shards=1"], ["--shards=7"], ["--shard-count=10"], ["--shard-size=200K"],
        ["--shard-size=300K", "--shard-count=20"])


@case
def members_of_a_directory():
    top = tree("dir.of.files")
    want = source_samples(top)
    for k, options in enumerate(CUTS):
        with Mount(top, opts=options) as m:
            check("shards" not in os.listdir(m.path), "listed")
            shards = m.path + "/shards"
            same_as_packed(shards, top, "d%d" % k, *options, *OWNER)
            check_index(shards, "dir-index.json")
            samples = [x for t in tars(shards) for x in group_by_keys(t)]
            equal(len(samples), len(want), "samples")
            check(dict(samples) == want, "their bytes")
    with Mount(top, opts=["--views=shards"]) as m:
        check("shards" in os.listdir(m.path), "views=shards")
        equal(os.listdir(m.path + "/shards"), ["dir-000000.tar", "dir-index.json"], "names")
        p = subprocess.run(["tar", "-tf", m.path + "/shards/dir-000000.tar"], check=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal((len(p.stdout.splitlines()), p.stderr), (sum(map(len, want.values())), ""),
              "tar -t")
        fails_with(errno.ENOENT, lambda: os.stat(m.path + "/shards/dir-000001.tar"), "next")
        # A list of them while they are read at once.
        with open(m.path + "/shards/dir-000000.tar", "rb") as f:
            whole, pick = f.read(), random.Random(3)
            for _ in range(300):
                off = pick.randrange(len(whole) + 10)
                n = pick.choice((1, 511, 512, 513, 10000, 300000))
                bytes_equal(os.pread(f.fileno(), n, off), whole[off:off + n], "pread")


@case
def members_of_archives():
    top = tree("imgs", n=12, seed=2)
    os.unlink(top + "/fifo.txt")
    options = ["--shards=4"]
    want = [digest(t) for t in packed(top, "a-want", *options, *OWNER)]
    for suffix in ("tar", "tar.zst", "tar.gz", "sqfs"):
        path = os.path.join(work, "train." + suffix)
        if suffix == "sqfs":  # has no times before 1970, nor after 2106
            for name in ("old", "far"):
                os.utime("%s/%s.time" % (top, name), (0, 5))
            want = [digest(t) for t in packed(top, "a-sqfs", *options, *OWNER)]
        exits(tensorfs("pack", "-q", top, path), 0, "pack " + suffix)
        with Mount(path, opts=options) as m:
            equal([digest(t) for t in tars(m.path + "/shards")], want, suffix)
            check_index(m.path + "/shards", "train-index.json")
        # without FUSE
        p = exits(tensorfs("cat", *options, path + ":shards/train-000003.tar", text=False),
                  0, "cat")
        equal(hashlib.sha256(p.stdout).hexdigest(), want[3], "cat")
    with Mount(os.path.join(work, "train.tar"), opts=options + ["--subdir=a"]) as m:
        want = [digest(t) for t in packed(top + "/a", "a-sub", *options, *OWNER)]
        equal([digest(t) for t in tars(m.path + "/shards")], want, "subdir=")


@case
def members_that_make_no_shards():
    top = os.path.join(work, "twice")
    os.makedirs(top)
    for name in ("a.jpg", "a.JPG", "b.jpg"):
        open(os.path.join(top, name), "wb").close()
    with Mount(top) as m:
        equal(os.listdir(m.path + "/shards"), [], "none")
        fails_with(errno.ENOTSUP, lambda: os.stat(m.path + "/shards/twice-000000.tar"),
                   "a field twice")
        check(b"'a.JPG' and 'a.jpg' would be the same field" in
              os.getxattr(m.path + "/shards", "user.tensorfs.error") or
              b"'a.jpg' and 'a.JPG' would be the same field" in
              os.getxattr(m.path + "/shards", "user.tensorfs.error"), "why")
    os.unlink(top + "/a.JPG")
    with Mount(top, opts=["--shards=3"]) as m:
        fails_with(errno.EINVAL, lambda: os.stat(m.path + "/shards/twice-000000.tar"),
                   "too few")
        check(b"cannot fill 3 shards" in os.getxattr(m.path + "/shards",
                                                     "user.tensorfs.error"), "why")
    with Mount(top, opts=["--shards=2"]) as m:
        check(b"error" not in os.getxattr(
            m.path + "/shards", "user.tensorfs.list"), "nothing is wrong")
        equal(len(tars(m.path + "/shards")), 2, "shards")
    os.mkdir(top + "/shards")
    with Mount(top, opts=["--shards=2"]) as m:
        equal(os.listdir(m.path + "/shards"), [], "a member of that name")
    for name in os.listdir(top):
        if name != "shards":
            os.unlink(os.path.join(top, name))
    with Mount(top) as m:
        fails_with(errno.ENOENT, lambda: os.stat(m.path + "/shards/x-000000.tar"), "empty")


@case
def a_source_that_changes():
    top = tree("changes", n=3)
    with Mount(top, opts=["--shards=1"]) as m:
        one = m.path + "/shards/changes-000000.tar"
        size = os.path.getsize(one)
        os.truncate(top + "/a/0001.jpg", 20000)
        equal(os.path.getsize(one), size, "size")
        fails_with(errno.ESTALE, lambda: read(one), "a member has grown")


@case
def torch_workers_stream_it():
    import torch
    want = numbers("<f4", (64, 3, 5))
    want = np.nan_to_num(want)
    path = h5("torch.h5", x=want)

    class Shards(torch.utils.data.IterableDataset):
        def __init__(self, urls):
            self.urls = urls

        def __iter__(self):
            w = torch.utils.data.get_worker_info()
            for url in self.urls[w.id::w.num_workers]:
                for key, fields in group_by_keys(url):
                    yield int(key), torch.from_numpy(np.load(io.BytesIO(fields["npy"])))

    with Mount(path, opts=["--shards=4"]) as m:
        got = dict()
        for keys, x in torch.utils.data.DataLoader(
                Shards(tars(m.path + "/x/shards")), batch_size=8, num_workers=2):
            got.update(zip(keys.tolist(), x))
        equal(sorted(got), list(range(64)), "samples")
        for k, x in got.items():
            check(np.array_equal(x.numpy(), want[k]), "sample %d" % k)


work = lib.setup()
lib.main()
