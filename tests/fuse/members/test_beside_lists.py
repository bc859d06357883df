#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""files.txt, manifest.csv, manifest.jsonl, file_list and metadata.csv of archives and
directories, read by Python's csv and json, compared with what is in them."""
import csv
import errno
import gzip
import io
import json
import os
import shutil
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(13)
LISTS = ["files.txt", "manifest.csv", "manifest.jsonl", "file_list", "metadata.csv"]
NAMES = ["train/n02/%d.jpg" % i for i in range(3)] + ["train/n01/%d.jpg" % i for i in range(3)] + \
    ["val/n02/x.jpg", "val/n10/y z.jpg", "readme.txt", "a,b/q\"uote.txt", "sp / lead", "\u00e4/\u00f6.bin",
     "l\udcff/b\udce9d", "n02-more/1", "empty/e", "back\\slash/x", "tab\there/x"]


def tar(name, members):
    path = os.path.join(work, name)
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as t:
        for member, data in members:
            info = tarfile.TarInfo(member)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return path


def text(path):
    data = read(path)
    equal(os.stat(path).st_size, len(data), path + ": size")
    return os.fsdecode(data)


def rows(path):
    return list(csv.DictReader(io.StringIO(text(path), newline="")))


def lines(path):
    data = text(path)
    check(not data or data.endswith("\n"), path)
    return data[:-1].split("\n") if data else []


def labels_of(paths):
    """As torchvision's find_classes numbers them."""
    names = sorted({os.path.basename(os.path.dirname(p)) for p in paths if "/" in p},
                   key=os.fsencode)
    return {n: i for i, n in enumerate(names)}


def compare(mnt, data, source=None):
    """`data`: contents by path.  With `source` bytes are where the manifest says."""
    paths = sorted(data, key=os.fsencode)
    label = [os.path.basename(os.path.dirname(p)) for p in paths]
    equal(lines(mnt + "/files.txt"), paths, "files.txt")
    table, objects = rows(mnt + "/manifest.csv"), [
        json.loads(x) for x in lines(mnt + "/manifest.jsonl")]
    equal([r["path"] for r in table], paths, "manifest.csv")
    equal([r["path"] for r in objects], paths, "manifest.jsonl")
    equal([r["label"] for r in table], label, "labels")
    equal([r["label"] for r in objects], label, "labels, jsonl")
    equal([int(r["nbytes"]) for r in table], [len(data[p]) for p in paths], "sizes")
    equal([r["nbytes"] for r in objects], [len(data[p]) for p in paths], "sizes, jsonl")
    equal([r["id"] for r in objects], list(range(len(paths))), "id")
    for r, o in zip(table, objects):
        equal(r["id"], str(o["id"]), "id")
        equal(r["source"], o["source"] or "", "source")
        equal(r["offset"], "" if o["offset"] is None else str(o["offset"]), "offset")
        if source is None:
            equal(o["offset"], None, "offset")
        else:
            equal(o["source"], os.path.basename(source), "source")
        if o["offset"] is not None:
            with open(source, "rb") as f:
                f.seek(o["offset"])
                equal(f.read(o["nbytes"]), data[o["path"]], o["path"])
    number = labels_of(paths)
    equal(lines(mnt + "/file_list"), ["%s %d" % (p, number[n]) for p, n in zip(paths, label)
                                      if "/" in p], "file_list")
    equal([(r["file_name"], r["label"]) for r in rows(mnt + "/metadata.csv")],
          list(zip(paths, label)), "metadata.csv")


@case
def of_a_tar():
    data = {n: rng.bytes(3 + 11 * i) for i, n in enumerate(NAMES)}
    data["empty/e"] = b""
    path = tar("names.tar", data.items())
    with Mount(path) as m:
        compare(m.path, data, path)
        check(not set(os.listdir(m.path)) & set(LISTS), "listed")
        found = rows(m.path + "/manifest.csv")
        equal([r["path"] for r in found if not r["offset"]], ["empty/e"], "offsets")
        equal([x for x in lines(m.path + "/epochs/0/rank-0-of-1,no-shuffle/order.txt")],
              [r["path"] for r in found], "order.txt")
    with gzip.open(path + ".gz", "wb") as f:
        f.write(open(path, "rb").read())
    with Mount(path + ".gz") as m:
        compare(m.path, data, path + ".gz")
        equal({r["offset"] for r in rows(m.path + "/manifest.csv")}, {""}, "decoded")


@case
def of_a_directory():
    data = {n: rng.bytes(50 + i) for i, n in enumerate(NAMES)}
    top = os.path.join(work, "plain")
    for n, content in data.items():
        os.makedirs(os.path.dirname(os.path.join(top, n)), exist_ok=True)
        with open(os.path.join(top, n), "wb") as f:
            f.write(content)
    with Mount(top) as m:
        compare(m.path, data)
        for name in LISTS:
            fails_with(errno.ENOENT, lambda: os.stat(m.path + "/train/" + name), name)
            fails_with(errno.ENOTDIR, lambda: os.stat("%s/%s/x" % (m.path, name)), name)
            fails_with(errno.EROFS, lambda: open(m.path + "/" + name, "r+"), name)
    with Mount(top, opts=["-o", "views=lists"]) as m:
        equal(sorted(os.listdir(m.path)), sorted(
            os.listdir(top) + LISTS), "views=")
    with Mount(top, opts=["-o", "views=all"]) as m:
        equal(sorted(os.listdir(m.path)), sorted(
            os.listdir(top) + LISTS + ["by-key", "epochs", "shards"]), "views=all")
        with os.scandir(m.path) as entries:
            for e in entries:
                equal(e.is_file(), os.path.isfile(e.path), e.name)
                equal(e.inode(), os.stat(e.path).st_ino, e.name)
    with Mount(top, opts=["-o", "views=samples"]) as m:
        equal(sorted(os.listdir(m.path)), sorted(os.listdir(top)), "views of tensors")
    shutil.rmtree(top)


@case
def of_two_archives():
    one, two = {"a/1": b"one"}, {"a/2": b"three", "b/1": b""}
    paths = [tar("one.tar", one.items()), tar("two.tar", two.items())]
    with Mount(None, sources=paths, opts=["-o", "union"]) as m:
        equal([(r["path"], r["source"]) for r in rows(m.path + "/manifest.csv")],
              [("a/1", "one.tar"), ("a/2", "two.tar"), ("b/1", "two.tar")], "sources")


@case
def many():
    """Blocks of lines are joined without a seam, wherever one reads."""
    n = 20000
    names = ["c%03d/%s/%06d.bin" % (i % 100, "x" * (i % 7), i) for i in range(n)]
    names = [x.replace("//", "/") for x in names]
    path = tar("many.tar", [(x, b"%d" % i) for i, x in enumerate(names)])
    data = {x: b"%d" % i for i, x in enumerate(names)}
    with Mount(path) as m:
        compare(m.path, data, path)
    with Mount(path) as m:
        for name in ("files.txt", "manifest.jsonl", "file_list"):
            whole = read(os.path.join(m.path, name))
            with open(os.path.join(m.path, name), "rb", buffering=0) as f:
                for _ in range(50):
                    off, size = int(rng.integers(0, len(whole))), int(rng.integers(1, 9000))
                    equal(os.pread(f.fileno(), size, off), whole[off:off + size], name)
        equal(len(os.listdir(m.path + "/epochs/3/rank-1-of-3,drop-last")), n // 3, "epochs/")
        equal(len(lines(m.path + "/epochs/3/rank-0-of-1/order.txt")), n, "order.txt")


@case
def a_newline_in_a_name():
    """A list of lines cannot have it, and says so; a CSV and JSON file can."""
    data = {"a\nb/c": b"x", "d": b"y"}
    path = tar("newline.tar", data.items())
    with Mount(path) as m:
        equal([r["path"] for r in rows(m.path + "/manifest.csv")], sorted(data), "csv")
        equal([json.loads(x)["path"] for x in lines(m.path + "/manifest.jsonl")],
              sorted(data), "jsonl")
        equal([r["file_name"] for r in rows(m.path + "/metadata.csv")], sorted(data),
              "metadata.csv")
        for name in ("files.txt", "file_list", "epochs/0/rank-0-of-1/order.txt"):
            fails_with(errno.EIO, lambda: read(os.path.join(m.path, name)), name)
    p = exits(tensorfs("cat", path + ":files.txt"), 1, "cat")
    check("newline" in p.stderr, p.stderr)


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
