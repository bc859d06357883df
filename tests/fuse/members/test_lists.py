#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lists of samples, read by the csv and json modules; what they say compared with h5py."""
import ast
import csv
import errno
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case

work = None
rng = np.random.default_rng(12)
COLUMNS = ["id", "path", "label", "shape", "dtype", "nbytes", "source", "chunk"]
LISTS = ["file_list", "files.txt", "manifest.csv", "manifest.jsonl", "metadata.csv"]


def h5(name, **datasets):
    path = os.path.join(work, name)
    with h5py.File(path, "w") as f:
        for k, v in datasets.items():
            f.create_dataset(k, **v) if isinstance(v, dict) else \
                f.create_dataset(k, data=v)
    return path


def rows_of(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f, strict=True))


def lines_of(path):
    text = read(path)
    equal(os.stat(path).st_size, len(text), path + ": size")
    check(text.endswith(b"\n"), path)
    return [json.loads(line) for line in text.decode().splitlines()]


def whichever_way(path):
    """Any window of a list is that of the whole."""
    whole = read(path)
    with open(path, "rb", buffering=0) as f:
        for _ in range(30):
            at = int(rng.integers(0, len(whole)))
            f.seek(at)
            got = f.read(int(rng.integers(1, 9000)))
            check(got and whole[at:at + len(got)] == got, "%s at %d" % (path, at))
    return whole


def check_manifests(top, source, data, labels, chunk=None, suffix=".npy"):
    rows, lines = rows_of(top + "/manifest.csv"), lines_of(top + "/manifest.jsonl")
    equal([len(rows), len(lines)], [len(data)] * 2, "rows")
    for i in list(range(0, len(data), 97)) + [len(data) - 1]:
        r, j = rows[i], lines[i]
        equal(list(r), COLUMNS, "columns")
        equal(list(j), COLUMNS, "keys")
        equal((int(r["id"]), j["id"]), (i, i), "id")
        equal(r["path"], j["path"], "path")
        a = np.load(top + "/" + r["path"])
        check((a == data[i]).all(), r["path"])
        equal((ast.literal_eval(r["shape"]), tuple(j["shape"])), (a.shape,) * 2, "shape")
        equal((np.dtype(r["dtype"]), np.dtype(j["dtype"])), (a.dtype,) * 2, "dtype")
        equal((int(r["nbytes"]), j["nbytes"]), (a.nbytes,) * 2, "nbytes")
        label = None if labels is None else labels[i]
        equal((r["label"], j["label"]), ("" if label is None else str(label), label), "label")
        where = source[i] if isinstance(source, list) else source
        equal((r["source"], j["source"]), (where,) * 2, "source")
        k = None if chunk is None else chunk(i)
        equal((r["chunk"] and int(r["chunk"]), j["chunk"]), ("" if k is None else k, k), "chunk")


@case
def manifests():
    n = 2500
    data = rng.integers(0, 255, (n, 3, 4)).astype("u2")
    y = rng.integers(0, 40, n)
    words = np.array(["cat", 'q"uote', "a,b", "new\nline", "Ä", "back\\slash"])[y % 6]
    path = h5("m,a.h5", plain=data, chunked={"data": data, "chunks": (7, 2, 4)})
    with h5py.File(path, "a") as f:
        for g, labels in (("ints", y), ("text", [w.encode() for w in words])):
            f[g + "/x"], f[g + "/y"] = data, labels
    with Mount(path) as m:
        for k in ("plain", "chunked", "ints/x", "text/x"):
            for name in ("manifest.csv", "manifest.jsonl", "files.txt"):
                whichever_way("%s/%s/%s" % (m.path, k, name))
        check_manifests(m.path + "/plain", path, data, None)
        check_manifests(m.path + "/chunked", path, data, None, lambda i: i // 7 * 2)
        check_manifests(m.path + "/ints/x", path, data, [int(v) for v in y])
        check_manifests(m.path + "/text/x", path, data, [str(w) for w in words])
        equal(read(m.path + "/plain/files.txt").decode().split(),
              ["samples/%06d.npy" % i for i in range(n)], "files.txt")
        equal(sorted(os.listdir(m.path + "/plain")),
              ["array.bin", "array.npy", "blocks", "info.json", "samples"], "not listed")
        for name in ("file_list", "metadata.csv"):
            fails_with(errno.ENOENT, lambda: os.stat("%s/plain/%s" % (m.path, name)), name)
    with Mount(path, opts=["--views=lists"]) as m:
        equal(os.listdir(m.path + "/ints/x"), sorted(LISTS + ["info.json"]), "views=lists")
        equal(os.listdir(m.path + "/plain"), ["files.txt", "info.json", "manifest.csv",
                                              "manifest.jsonl"], "without labels")
    # An order of two axes.
    with Mount(path, opts=["--sample-axes=2"]) as m:
        check_manifests(m.path + "/plain", path, data.reshape(n * 3, 4), None)
        equal(lines_of(m.path + "/plain/manifest.jsonl")[4]["path"], "samples/000001/000001.npy",
              "path")


@case
def labels_for_loaders():
    """DALI: `path label`, a number; Hugging Face imagefolder: a column file_name, paths from
    where metadata.csv is, suffixes that it takes for images (datasets/packaged_modules)."""
    n = 1100
    words = np.array(["dog", "cat", "a b"])[rng.integers(0, 3, n)]
    numbers = rng.integers(-3, 9, n)
    pics, rest = rng.integers(0, 255, (n, 3, 4)).astype("u1"), rng.normal(size=(n, 5))
    path = os.path.join(work, "loaders.h5")
    with h5py.File(path, "w") as f:
        for g, labels in (("w", [w.encode() for w in words]), ("n", numbers)):
            f[g + "/labels"], f[g + "/pics"], f[g + "/rest"] = labels, pics, rest
    with Mount(path) as m:
        for g, labels, number in (("w", words, np.searchsorted(["a b", "cat", "dog"], words)),
                                  ("n", numbers, numbers)):
            for k, file in (("pics", "images/%06d.pgm"), ("rest", "samples/%06d.npy")):
                top = "%s/%s/%s/" % (m.path, g, k)
                got = [line.split() for line in whichever_way(top + "file_list").decode().splitlines()]
                equal(got, [[file % i, str(v)] for i, v in enumerate(number)], "file_list")
                rows = rows_of(top + "metadata.csv")
                equal([(r["file_name"], r["label"]) for r in rows],
                      [(file % i, str(v)) for i, v in enumerate(labels)], "metadata.csv")
                equal(list(rows[0]), ["file_name", "label"], "columns")
                check(all(os.path.isfile(top + r["file_name"]) for r in rows[::50]), "files")
                check(k != "pics" or all(re.search(r"\.(pgm|ppm|tif)$", r["file_name"])
                                         for r in rows), "images")


@case
def distributed():
    """The part that a sample is in."""
    d = os.path.join(work, "parts")
    os.makedirs(d, exist_ok=True)
    data = rng.normal(size=(30, 8)).astype("f4")
    layout = h5py.VirtualLayout((30, 8), "f4")
    for i in range(3):
        with h5py.File("%s/p%d.h5" % (d, i), "w") as f:
            f["d"] = data[10 * i:10 * i + 10]
        layout[10 * i:10 * i + 10] = h5py.VirtualSource("p%d.h5" % i, "d", (10, 8))
    with h5py.File(d + "/all.h5", "w", libver="latest") as f:
        f.create_virtual_dataset("v", layout)
    with Mount(d + "/all.h5") as m:
        check_manifests(m.path + "/v", ["%s/p%d.h5" % (d, i // 10) for i in range(30)], data, None)
    os.unlink(d + "/p1.h5")
    with Mount(d + "/all.h5") as m:
        equal(len(rows_of(m.path + "/v/manifest.csv")), 30, "though a part is not there")


@case
def of_text():
    path = h5("text.h5", s=np.array([b"a", b"bc", b"", b"d"]), empty=np.zeros((0, 3)),
              scalar=np.float64(3), r={"data": np.array([np.arange(3), np.arange(5)], "O"),
                                       "dtype": h5py.vlen_dtype("i4")})
    with Mount(path) as m:
        for k, n in (("s", 4), ("r", 2)):
            rows, lines = rows_of(m.path + "/%s/manifest.csv" % k), \
                lines_of(m.path + "/%s/manifest.jsonl" % k)
            equal([len(rows), len(lines)], [n, n], k)
            check(rows[1]["nbytes"] == "" and lines[1]["nbytes"] is None, k)
            check(os.path.isfile("%s/%s/%s" % (m.path, k, rows[1]["path"])), k)
        for k in ("empty", "scalar"):
            fails_with(errno.ENOENT, lambda: os.stat(m.path + "/%s/manifest.csv" % k), k)


@case
def too_many_to_make():
    """Sizes and any place of a list whose samples are three thousand millions."""
    n = 3 * 10**9
    path = h5("huge.h5", x={"shape": (n, 2), "dtype": "u1", "chunks": (10**6, 2)})
    with Mount(path) as m:
        f = m.path + "/x/manifest.jsonl"
        with open(f, "rb") as stream:
            line = len(stream.readline())
            equal(os.stat(f).st_size, n * line, "size")
            for i in (0, 1, 1023, 1024, 1025, n // 2, n - 1):
                stream.seek(i * line)
                got = json.loads(stream.readline())
                equal((got["id"], got["path"], got["chunk"]),
                      (i, "samples/%010d.npy" % i, i // 10**6), "line %d" % i)
        with open(m.path + "/x/manifest.csv", "rb") as stream:
            stream.seek(-60, os.SEEK_END)
            check(stream.read().endswith(b",002999\n"), "the last row")


@case
def sizes_of_many_labels():
    """They are sums, and what is read has them: one to six bytes, with and without quotes."""
    n = 300000
    names = ["a", 'b"', "c,d", "Ä", "ef", "ghijkl"]
    y = rng.integers(0, 6, n)
    path = h5("many.h5", x={"shape": (n, 2, 2), "dtype": "u1"},
              y=np.array([s.encode() for s in names])[y])
    with Mount(path) as m:
        for name in LISTS:
            size = os.stat(m.path + "/x/" + name).st_size
            text = read(m.path + "/x/" + name)
            equal((len(text), text.count(b"\n")), (size, n + name.endswith(".csv")), name)
        equal([r["label"] for r in rows_of(m.path + "/x/metadata.csv")], [names[i] for i in y],
              "labels")
    # A single sample, whose block has the header, too.
    path = h5("one.h5", x=np.zeros((1, 2, 2)), y=np.array([b"cat"]))
    with Mount(path) as m:
        for name in LISTS:
            size = os.stat(m.path + "/x/" + name).st_size
            equal(len(read(m.path + "/x/" + name)), size, name)


@case
def labels_that_cannot_be_read():
    path = h5("bad.h5", x=np.zeros((6, 2)), y={"data": np.arange(6), "chunks": (6,),
                                               "compression": "gzip"})
    with h5py.File(path) as f:
        at = f["y"].id.get_chunk_info(0).byte_offset
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(b"\xff" * 8)
    with Mount(path) as m:
        for name in LISTS:
            if name != "files.txt":
                fails_with((errno.EIO, errno.EBADMSG), lambda: read(m.path + "/x/" + name), name)
        equal(read(m.path + "/x/files.txt").decode().split(),
              ["samples/%06d.npy" % i for i in range(6)], "a list without labels")
        fails_with((errno.EIO, errno.EBADMSG), lambda: os.listdir(m.path + "/x/classes"), "classes")
        equal(np.load(m.path + "/x/samples/000003.npy").sum(), 0, "the rest")


work = lib.setup()
lib.main()
