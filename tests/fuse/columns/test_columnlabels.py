#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Labels that are a column of an Arrow or Parquet file: numbers, strings, dictionaries;
against what the table says, and torchvision."""
import io
import os
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arrows as A
import lib
import numpy as np
from checks import check, equal, read
from lib import Mount, case, exits, tensorfs

work = None
HERE = lib.COLUMNS
ROWS = range(60)


def fixture(name):
    return os.path.join(HERE, name)


def check_classes(m, column, label, ext):
    """classes/LABEL/ has the rows of that label in order, each the sample itself."""
    top = m / (column + "/classes")
    equal(sorted(os.listdir(top)), sorted({label(i) for i in ROWS}), column)
    for name in os.listdir(top):
        files = ["%06d.%s" % (i, ext) for i in ROWS if label(i) == name]
        equal(sorted(os.listdir(os.path.join(top, name))), files, name)
        for f in files[:4]:
            equal(read(os.path.join(top, name, f)), read(m / (column + "/samples/" + f)),
                  f)


@case
def found_beside():
    for name, column, ext in (("nested.arrow", "bview", "bin"),
                              ("nested.arrows", "bview", "bin"),
                              ("nested-zstd.arrow", "view", "txt"),
                              ("nested.parquet", "view", "txt"),
                              ("nested2.parquet", "tags", "txt")):
        with Mount(fixture(name)) as m:
            check_classes(m, column, lambda i: "%06d" % (i % 3), ext)
            check("classes" not in os.listdir(m / "label"), "label")


@case
def named():
    for name, column, ext, label in (
            ("nested.arrow", "bview", "bin", "kind"), ("nested.arrows", "bview", "bin", "kind"),
            ("nested-uncompressed.arrow", "tags", "txt", "kind"),
            ("nested-zstd.arrow", "tags", "txt", "kind"),
            ("nested.parquet", "tags", "txt", "kind"),
            ("nested-duck.parquet", "tags", "txt", "kind")):
        with Mount(fixture(name), opts=["-o", "labels=" + label]) as m:
            check_classes(m, column, lambda i: "xyz"[i % 3], ext)
            lines = read(m / (column + "/manifest.csv")).decode().split("\n")[1:-1]
            equal([x.split(",")[2] for x in lines], ["xyz"[i % 3] for i in ROWS], name)
    with Mount(fixture("nested.arrow"), opts=["-o", "labels=code"]) as m:
        check_classes(m, "bview", lambda i: "%06d" % (i % 4 * 1000), "bin")


@case
def images_in_shards_and_folders():
    """Pictures as numbers in a row: PGM by class, KEY.cls beside KEY.npy."""
    n, image = 12, np.arange(12 * 6, dtype="u1").reshape(12, 2, 3)
    item = A.field("item", A.INT, {0: ("i", 8), 1: ("B", 0)})
    rows = A.field("rows", A.FIXED_LIST, {0: ("i", 3)}, [item])
    schema = A.schema([A.field("image", A.FIXED_LIST, {0: ("i", 2)}, [rows]),
                       A.int32("digit")])
    digits = np.arange(n, dtype="<i4") % 5
    path = os.path.join(work, "digits.arrow")
    with open(path, "wb") as f:
        f.write(A.file(schema, A.plain(n, b"", b"", b"", image.tobytes(), b"",
                                       digits.tobytes(),
                                       nodes=[(n, 0), (2 * n, 0), (6 * n, 0), (n, 0)])))
    with Mount(path, opts=["-o", "labels=digit"]) as m:
        from torchvision.datasets import ImageFolder
        folder = ImageFolder(m / "image/classes")
        equal(folder.classes, ["%06d" % d for d in range(5)], "classes")
        equal(np.bincount(folder.targets).tolist(), np.bincount(digits).tolist(), "targets")
        top = m / "image/shards"
        seen = {}
        for name in sorted(os.listdir(top)):
            if name.endswith(".tar"):
                with tarfile.open(os.path.join(top, name)) as t:
                    for x in t:
                        seen[x.name] = t.extractfile(x).read()
        for i in range(n):
            key = next(k for k in seen if k.endswith("%06d.npy" % i))
            equal(np.load(io.BytesIO(seen[key])).tolist(), image[i].tolist(), key)
            equal(int(seen[key[:-4] + ".cls"]), int(digits[i]), key)


@case
def files_in_shards():
    """A binary column: KEY.cls beside KEY.bin, the place of its class."""
    with Mount(fixture("nested.arrow"), opts=["-o", "labels=kind"]) as m:
        with tarfile.open(m / "bview/shards/bview-000000.tar") as t:
            seen = {x.name: t.extractfile(x).read() for x in t}
        equal(len(seen), 2 * len(ROWS), "members")
        for i in ROWS:
            equal(seen["%06d.cls" % i], b"%d" % (i % 3), str(i))
            equal(seen["%06d.bin" % i], read(m / ("bview/samples/%06d.bin" % i)), str(i))


@case
def what_cannot_be_labels():
    for name in ("nested.arrow", "nested.parquet"):
        for label, word in (("maybe", "nulls"), ("holes", "nulls"), ("nope", "no column"),
                            ("st", "not a list of"), ("grid", "not a list of")):
            out = tensorfs("ls", "--labels=" + label, fixture(name))
            check(out.returncode in (2, 3) and word in out.stderr and label in out.stderr,
                  (name, label, out.returncode, out.stderr))
    short = os.path.join(work, "short.csv")
    with open(short, "w") as f:
        f.write("a\nb\n")
    out = tensorfs("ls", "--labels=" + short, fixture("nested.parquet"))
    check(out.returncode and "2 labels" in out.stderr, out.stderr)


work = lib.setup()
lib.main()
