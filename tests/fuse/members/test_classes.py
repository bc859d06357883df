#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples by label, read by torchvision (ImageFolder, DatasetFolder) and PIL."""
import collections
import csv
import errno
import os
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import torchvision
from checks import check, equal, fails_with
from lib import Mount, case, tensorfs
from PIL import Image

work = None
rng = np.random.default_rng(11)


def numbers(dtype, shape):
    return rng.integers(0, np.iinfo(dtype).max, shape).astype(dtype)


def h5(name, **datasets):
    path = os.path.join(work, name)
    with h5py.File(path, "w") as f:
        for k, v in datasets.items():
            f.create_dataset(k, **v) if isinstance(v, dict) else \
                f.create_dataset(k, data=v)
    return path


def extracted(name, data, labels, suffix):
    """The directory that somebody would have made with PIL or NumPy."""
    top = os.path.join(work, name)
    for i, (a, label) in enumerate(zip(data, labels)):
        os.makedirs(os.path.join(top, label), exist_ok=True)
        path = os.path.join(top, label, "%06d%s" % (i, suffix))
        np.save(path, a) if suffix == ".npy" else Image.fromarray(a).save(path)
    return top


def same_dataset(got, want):
    equal(got.classes, want.classes, "classes")
    equal(got.class_to_idx, want.class_to_idx, "class_to_idx")
    equal(len(got), len(want), "length")
    equal([(os.path.relpath(p, got.root), c) for p, c in got.samples],
          [(os.path.relpath(p, want.root), c) for p, c in want.samples], "samples")
    equal(collections.Counter(got.targets), collections.Counter(want.targets), "targets")
    for i in range(len(want)):
        check((np.asarray(got[i][0]) == np.asarray(want[i][0])).all() and
              got[i][1] == want[i][1], "sample %d" % i)


def image_folder(top):
    return torchvision.datasets.ImageFolder(top)


def array_folder(top):
    return torchvision.datasets.DatasetFolder(top, loader=np.load, extensions=(".npy",))


# --- what torchvision makes of them ------------------------------------------------

@case
def labels_with_other_separators():
    """Rows and labels that no comma separates are refused: no classes of one sample."""
    path = h5("separators.h5", x=numbers("u1", (4, 3, 3)))
    for name, text, bad in (
            ("blank.txt", "0 1\n1 0\n2 1\n3 0\n", True),
            ("semicolon.csv", "row;label\n0;cat\n1;dog\n2;cat\n3;dog\n", True),
            ("tab.csv", "3\ta\n1\tb\n0\ta\n2\tb\n", True),
            ("words.txt", "2 cats\n1 dog\n2 cats\n1 dog\n", False),
            ("plain.txt", "golden retriever\n1\n2 b\n3 c\n", False),
            ("comma.csv", "0,1\n1,0\n2,1\n3,0\n", False)):
        labels = os.path.join(work, name)
        with open(labels, "w") as f:
            f.write(text)
        p = lib.tensorfs("ls", "--labels=" + labels, path + ":x/classes")
        check((p.returncode != 0) == bad, "%s: %s%s" % (name, p.stdout, p.stderr))
        check(not bad or "comma" in p.stderr, p.stderr)


@case
def folders_of_images():
    for name, shape, suffix in (("grey", (90, 7, 5), ".pgm"), ("rgb", (90, 6, 8, 3), ".ppm")):
        data, y = numbers("u1", shape), rng.integers(0, 12, 90)
        y[y == 4] = 5  # a class without samples
        path = h5(name + ".h5", x={"data": data, "chunks": True, "compression": "gzip"},
                  labels=y)
        want = image_folder(extracted(name, data, ["%06d" % v for v in y], suffix))
        with Mount(path, opts=["--views=classes"]) as m:
            equal(os.listdir(m.path + "/x"), ["classes", "info.json"], "listed")
            same_dataset(image_folder(m.path + "/x/classes"), want)
            equal(os.listdir(m.path + "/labels"), ["info.json"], "labels have none")
            absent(m.path + "/labels/classes")


@case
def folders_of_arrays():
    """Those of pictures, of what is none, of strings; labels that are text."""
    names = ["cat", "dog", "Ärger", "a b", ".hidden", "50%", "cow."]
    y = [names[i] for i in rng.integers(0, len(names), 60)]
    data = {"f": rng.normal(size=(60, 3, 4)), "pic": numbers("u2", (60, 4, 5)),
            "one": rng.normal(size=(60, 9)).astype("f4")}
    path = h5("arrays.h5", target=np.array([s.encode() for s in y]), **data)
    with Mount(path) as m:
        for k, top in (("f", "classes-npy"), ("pic", "classes-npy"), ("one", "classes")):
            want = array_folder(extracted("npy-" + k, data[k], y, ".npy"))
            same_dataset(array_folder("%s/%s/%s" % (m.path, k, top)), want)
        absent(m.path + "/one/classes-npy")
        # The other one is found by its name.
        check(os.path.isfile("%s/pic/classes/%s/000000.npy" % (m.path, y[0])), ".npy")
        absent("%s/pic/classes/%s/000000.npy" % (m.path, "cat" if y[0] != "cat" else "dog"))
        check(os.path.samefile("%s/pic/classes-npy/%s/000000.npy" % (m.path, y[0]),
                               m.path + "/pic/samples/000000.npy"), "the same file")


@case
def strings_of_any_kind():
    vlen = h5py.string_dtype()
    y = ["b", "a", "a", "b", "c"]
    path = h5("kinds.h5", x=numbers("u1", (5, 2, 2)), t=np.array([b"x", b"y"] * 2 + [b"z"]),
              v={"data": y, "dtype": vlen}, col=np.arange(5).reshape(5, 1, 1) % 2,
              neg=np.array([-1, 3, -12, 0, 3], "i1"), big=np.arange(5, dtype=">u8") % 2,
              flag=np.array([True, False, True, False, False]))
    want = {"v": ["a", "b", "c"], "col": ["000000", "000001"],
            "neg": ["-000001", "-000012", "000000", "000003"],
            "big": ["000000", "000001"], "flag": ["000000", "000001"], "/t": ["x", "y", "z"]}
    for name, classes in want.items():
        with Mount(path, opts=["--labels=" + name]) as m:
            equal(os.listdir(m.path + "/x/classes"), classes, name)
            check(sum(len(os.listdir(m.path + "/x/classes/" + c)) for c in classes) == 5, name)
    with Mount(path, opts=["--labels=v"]) as m:
        equal(os.listdir(m.path + "/t/classes/a"), ["000001.txt", "000002.txt"], "of text")


@case
def names_that_no_directory_can_have():
    y = [b"a/b", b"a%2Fb", b"..", b".", b"", b"new\nline", b"back\\slash", b"x" * 300, b"%"]
    want = ["a%2Fb", "a%252Fb", "%2E%2E", "%2E", "%00", "new%0Aline", "back\\slash", None, "%"]
    path = h5("odd.h5", x=numbers("u1", (9, 2, 2)), y=np.array(y))
    with Mount(path) as m:
        top = m.path + "/x/classes"
        equal(len(os.listdir(top)), 9, "each is its own")
        equal(sorted(os.listdir(top)), os.listdir(top), "sorted")
        for i, name in enumerate(want):
            if name:
                equal(os.listdir(top + "/" + name), ["%06d.pgm" % i], repr(y[i]))
        check(max(map(len, os.listdir(top))) == 255, "a long one is cut")


# --- which labels -------------------------------------------------------------------

def absent(path):
    fails_with((errno.ENOENT,), lambda: os.stat(path), path)


@case
def labels_that_are_found():
    x = numbers("u1", (6, 2, 2))
    for extra, found in (({"labels": np.arange(6)}, True), ({"y": np.arange(6)}, True),
                         ({"labels": np.arange(7)}, False),  # of something else
                         ({"y": np.arange(6), "labels": np.arange(6)}, False),  # which?
                         ({"y": np.arange(5), "labels": np.arange(6)}, True),
                         ({"labels": np.arange(6) / 2}, False),
                         ({"labels": np.zeros((6, 2), "i4")}, False),
                         ({"other": np.arange(6)}, False)):
        path = h5("found.h5", x=x, **extra)
        with Mount(path) as m:
            equal(os.path.isdir(m.path + "/x/classes"), found, str(list(extra)))
    path = os.path.join(work, "groups.h5")
    with h5py.File(path, "w") as f:
        for part, n in (("train", 6), ("test", 4)):
            f[part + "/x"], f[part + "/label"] = numbers("u1", (n, 2, 2)), np.arange(n) % 2
    with Mount(path) as m:
        for part, n in (("train", 3), ("test", 2)):
            equal(len(os.listdir("%s/%s/x/classes/000001" % (m.path, part))), n, part)


@case
def labels_of_a_file():
    x, y = numbers("u1", (6, 3, 4)), [3, 1, 3, 0, 1, 3]
    path = h5("file.h5", x=x, y=np.zeros(6, "i4"))
    rows = [(i, v) for i, v in enumerate(y)]
    rng.shuffle(rows)
    texts = {"one": "\n".join(map(str, y)), "head": "label\n" + "\n".join(map(str, y)) + "\n",
             "rows": "row,label\n" + "".join("%d,%d\n" % (a, b) for a, b in rows),
             "bare": "\r\n".join("%d, %d" % (a, b) for a, b in rows)}
    want = image_folder(extracted("file", x, ["%06d" % v for v in y], ".pgm"))
    for k, text in texts.items():
        f = os.path.join(work, k + ".csv")
        with open(f, "w") as out:
            out.write(text)
        with Mount(path, opts=["--labels=" + f]) as m:
            same_dataset(image_folder(m.path + "/x/classes"), want)
    f = os.path.join(work, "text.txt")
    with open(f, "w", newline="") as out:
        csv.writer(out).writerows([["a,b"], ['q"q'], ["a,b"], ["01"], ["1"], ["c"]])
    with Mount(path, opts=["-o", "labels=" + f]) as m:
        equal(os.listdir(m.path + "/x/classes"), ["01", "1", "a,b", "c", 'q"q'], "text")


@case
def labels_of_attributes():
    """Of the data itself, or of any object; of every kind that HDF5 has for them."""
    x, y = numbers("u1", (6, 3, 4)), np.array([3, 1, 3, 0, 1, 3])
    texts = ["b", "a", "b", "Ä", "a", "b"]
    wide = [s.encode() for s in texts]
    path = h5("attrs.h5", x=x, z=x[:4], **{"a@b": y})
    with h5py.File(path, "a") as f:
        f["x"].attrs["labels"] = y
        f["z"].attrs["labels"] = y[:4] - 3
        f.attrs["all"] = texts
        f["x"].attrs.create("fixed", np.array(wide))
        f["x"].attrs.create("flag", y == 3)
        f["x"].attrs.create("enum", y, dtype=h5py.enum_dtype({"n%d" % i: i for i in range(4)}))
        f["x"].attrs.create("big", y, dtype=">u2")
        f["x"].attrs["odd"] = ["a/b", "..", "", "a%2Fb", "a/b", "."]
        f.create_group("g").attrs["column"] = y.reshape(6, 1)
        f["soft"] = h5py.SoftLink("/x")
    digits = ["%06d" % v for v in y]
    for labels, classes in (("@labels", digits), ("x@labels", digits), ("/soft@labels", digits),
                            ("/@all", texts), ("x@fixed", texts), ("g@column", digits),
                            ("x@flag", ["%06d" % (v == 3) for v in y]), ("a@b", digits),
                            ("x@enum", digits), ("/x@big", digits),
                            ("x@odd", ["a%2Fb", "%2E%2E", "%00", "a%252Fb", "a%2Fb", "%2E"])):
        want = image_folder(extracted("at" + labels.replace("/", "_"), x, classes, ".pgm"))
        with Mount(path, opts=["--labels=" + labels]) as m:
            same_dataset(image_folder(m.path + "/x/classes"), want)
            if labels == "@labels":
                equal(os.listdir(m.path + "/z/classes"), ["-000002", "-000003", "000000"], "z's own")
            else:
                absent(m.path + "/z/classes")
    p = tensorfs("ls", "--labels=x@labels", os.path.dirname(path) + "/attrs.h5")
    equal((p.returncode, p.stderr), (0, ""), "ls")


@case
def attributes_that_are_no_labels():
    path = h5("noattrs.h5", x=numbers("u1", (6, 2, 2)), z=numbers("u1", (5, 2, 2)))
    with h5py.File(path, "a") as f:
        a = f["x"].attrs
        a["five"], a["half"], a["empty"] = np.arange(5), np.arange(6) / 2, h5py.Empty("i4")
        a["one"], a["hot"] = "cat", np.eye(6, dtype="i4")
        a["large"] = np.full(6, 2**64 - 1, "u8")
        a["pair"] = np.zeros(6, [("a", "i4"), ("b", "i4")])
        a["nul"] = np.array([b"a\0b"] * 6)
        a["ref"] = np.array([f["x"].ref] * 6, h5py.ref_dtype)
        a["none"] = np.zeros((0, 6), "i4")
        f["z"].attrs["five"], f["z"].attrs["half"] = np.arange(5), np.arange(5)
    for name, words in (("five", ["one for each"]), ("half", ["whole numbers"]),
                        ("empty", ["empty"]), ("one", ["one for each"]), ("hot", ["one for each"]),
                        ("large", ["too large"]), ("pair", ["whole numbers"]), ("nul", ["NUL"]),
                        ("ref", ["whole numbers"]), ("none", ["empty"]), ("other", ["other"])):
        with h5py.File(path, "a") as f:
            f["z"].attrs.pop(name, None)
        for labels in ("@" + name, "x@" + name):
            words = ["6"] if labels == "x@hot" else \
                ["1 labels"] if labels == "x@one" else words
            if labels == "x@five":
                continue  # those of z
            p = tensorfs("ls", "--labels=" + labels, path)
            check(p.returncode > 0 and all(w in p.stderr for w in ["labels"] + words),
                  "%s: %d, %s" % (labels, p.returncode, p.stderr))
    for labels, word in (("none@five", "none"), ("none@", "none@"), ("x@", "x@"), ("@", "@")):
        p = tensorfs("ls", "--labels=" + labels, path)
        check(p.returncode > 0 and word in p.stderr, "%s: %s" % (labels, p.stderr))
    # One of several that is wrong is said, and the others are there.
    with h5py.File(path, "a") as f:
        f["z"].attrs["five"] = np.arange(5)
    with Mount(path, opts=["--labels=@five"]) as m:
        equal(len(os.listdir(m.path + "/z/classes")), 5, "z")
        absent(m.path + "/x/classes")
    p = tensorfs("ls", "--labels=@five", path)
    check(p.returncode == 0 and "'/x'" in p.stderr and "5 labels" in p.stderr, p.stderr)


@case
def labels_with_axes():
    """Of scans: shaped as these, or a list in row order; never one column a class."""
    x, y = numbers("u1", (4, 5, 3, 6)), rng.integers(0, 3, (4, 5))
    texts = np.array([b"a", b"b", b"c"])[y]
    path = h5("scan.h5", x=x, y=y[..., None], names=texts, flat=y.ravel(),
              ragged={"shape": (4, 5), "dtype": h5py.vlen_dtype("i4")})
    listed = os.path.join(work, "scan.csv")
    np.savetxt(listed, y.ravel(), "%d")
    want = image_folder(extracted("scan", x.reshape(-1, 3, 6), ["%06d" % v for v in y.flat], ".pgm"))
    for labels in ("y", "flat", listed):
        with Mount(path, opts=["--sample-axes=2", "--labels=" + labels]) as m:
            same_dataset(image_folder(m.path + "/x/classes"), want)
            with open(m.path + "/x/manifest.csv") as f:
                equal([int(r["label"]) for r in csv.DictReader(f)], y.ravel().tolist(), labels)
            row, label = 7, "%06d" % y[1, 2]
            check(os.path.samefile("%s/x/classes/%s/%06d.pgm" % (m.path, label, row),
                                   m.path + "/x/images/000001/000002.pgm"), "the same file")
            other = "%06d" % ((y[1, 2] + 1) % 3)
            absent("%s/x/classes/%s/%06d.pgm" % (m.path, other, row))
            absent("%s/x/classes/%s/000020.pgm" % (m.path, label))
            equal(sum(map(len, map(os.listdir, (m.path + "/ragged/classes/" + c
                                                for c in want.classes)))), 20, "sequences")
    with Mount(path, opts=["--sample-axes=2", "--labels=names"]) as m:
        for k, name in enumerate("abc"):
            equal(os.listdir("%s/x/classes/%s" % (m.path, name)),
                  ["%06d.pgm" % i for i in np.flatnonzero(y == k)], name)
    path = h5("hot.h5", x=x, y=y[..., None], hot=np.eye(3, dtype="i4")[y])
    for labels, axes, words in (("hot", 2, ["(4, 5, 3)", "one-hot"]), ("y", 3, ["(4, 5)"]),
                                ("hot", 1, ["one-hot"]), (listed, 3, ["20 labels"])):
        p = tensorfs("ls", "--sample-axes=%d" % axes, "--labels=" + labels, path)
        check(p.returncode > 0 and all(w in p.stderr for w in words),
              "%s: %d, %s" % (labels, p.returncode, p.stderr))
    # What is found beside samples is theirs only if it is the only one that can be.
    with h5py.File(path, "a") as f:
        f.move("y", "targets")
        f.move("hot", "labels")
    with Mount(path, opts=["--sample-axes=2"]) as m:
        check(os.path.isdir(m.path + "/x/classes"), "targets")
    with Mount(path) as m:
        absent(m.path + "/x/classes")


def tops_name(m, first):
    return next(n for n in os.listdir(m.path) if n.startswith(first))


@case
def labels_of_other_stores():
    x, y = numbers("u1", (6, 3, 4)), ["b", "a", "b", "b", "c", "a"]
    np.save(work + "/alone.npy", x)
    with open(work + "/alone.csv", "w") as out:
        out.write("\n".join(y))
    want = image_folder(extracted("alone", x, y, ".pgm"))
    with Mount(work + "/alone.npy", opts=["--labels=" + work + "/alone.csv"]) as m:
        same_dataset(image_folder(m.path + "/data/classes"), want)
    d = os.path.join(work, "several")
    os.makedirs(d, exist_ok=True)
    for name, data in (("a.h5", {"x": x, "t": [b"p", b"q"] * 3}), ("b.h5", {"x": x})):
        os.rename(h5(name, **data), d + "/" + name)
    with Mount(d, opts=["--labels=t"]) as m:  # one of several may lack them
        tops = {f: os.path.join(m.path, tops_name(m, f)) for f in "ab"}
        equal(os.listdir(tops["a"] + "/x/classes"), ["p", "q"], "of a file in a directory")
        check((np.load(tops["b"] + "/x/array.npy") == x).all(), "b")
        absent(tops["b"] + "/x/classes")
    with Mount(d, opts=["--labels=" + work + "/alone.csv"]) as m:
        for f in "ab":
            same_dataset(image_folder("%s/%s/x/classes" % (m.path, tops_name(m, f))), want)
    # Nobody has them, though somebody might think so.
    tar = os.path.join(work, "plain.tar")
    with tarfile.open(tar, "w") as t:
        t.add(work + "/alone.csv", "cat/1.txt")
    os.makedirs(work + "/plain", exist_ok=True)
    os.replace(h5("x.h5", x=x), work + "/plain/x.h5")
    for source in (tar, work + "/plain"):
        p = tensorfs("ls", "--labels=t", source)
        check(p.returncode > 0 and "labels: no file has 't'" in p.stderr,
              "%s: %d, %s" % (source, p.returncode, p.stderr))
    p = tensorfs("ls", "--labels=" + work + "/alone.csv", tar)
    check(p.returncode > 0 and "alone.csv" in p.stderr and "no dataset has" in p.stderr, p.stderr)
    p = tensorfs("ls", "--labels=y", work + "/alone.npy")
    check(p.returncode > 0 and "HDF5" in p.stderr, p.stderr)


@case
def labels_that_are_wrong():
    path = h5("wrong.h5", x=numbers("u1", (6, 2, 2)), y=np.arange(5), f=np.arange(6) / 2,
              big=np.full(6, 2**64 - 1, "u8"))
    with h5py.File(path, "a") as f:
        f.create_group("g")
    for labels, words in (("y", ["5 labels", "no dataset has as many"]), ("f", ["whole numbers"]),
                          ("g", ["group"]), ("none", ["none"]),
                          (work + "/none.csv", ["none.csv", "No such file"])):
        p = tensorfs("ls", "--labels=" + labels, path)
        check(p.returncode > 0 and all(w in p.stderr for w in words),
              "%s: %d, %s" % (labels, p.returncode, p.stderr))
    for text, words in (("1\n2\n", ["2 labels"]), ("0,1\n0,2\n1,1\n2,1\n3,1\n4,1\n", ["row 1", "two"]),
                        ("0,1\n2,1\n", ["row 1 has no label"]), ("a\n\"b", ["line 2"]),
                        ("", ["no labels"]), ("1,2,3\n", ["line 1"]), ("0,1\n-1,2\n", ["line 2"]),
                        ("0,a\n1\n", ["line 2"]), ("0,1\n99999999999,2\n", ["line 2"])):
        f = os.path.join(work, "wrong.csv")
        with open(f, "w") as out:
            out.write(text)
        p = tensorfs("ls", "--labels=" + f, path)
        check(p.returncode > 0 and all(w in p.stderr for w in ["wrong.csv"] + words),
              "%r: %d, %s" % (text, p.returncode, p.stderr))
    # A name cannot hold it, and cut there two would be one.
    path = h5("nul.h5", x=numbers("u1", (3, 2, 2)), y=np.array([b"a\0b", b"a\0c", b"a"]))
    with Mount(path) as m:
        fails_with((errno.EIO, errno.EBADMSG), lambda: os.listdir(m.path + "/x/classes"), "NUL")
    path = h5("wrong.h5", x=numbers("u1", (6, 2, 2)), big=np.full(6, 2**64 - 1, "u8"))
    # Only the values say that: an error of the directory, never another class.
    with Mount(path, opts=["--labels=big"]) as m:
        fails_with((errno.EIO, errno.ERANGE), lambda: os.listdir(m.path + "/x/classes"), "big")
        fails_with((errno.EIO, errno.ERANGE), lambda: os.stat(m.path + "/x/classes/000000"), "big")
        equal(len(os.listdir(m.path + "/x/samples")), 6, "the rest")


@case
def many_samples():
    n = 400000
    y = rng.integers(0, 1000, n)
    path = h5("many.h5", x={"shape": (n, 2, 2), "dtype": "u1"}, y={"data": y, "chunks": (4096,),
                                                                 "compression": "gzip"})
    with Mount(path) as m:
        equal(len(os.listdir(m.path + "/x/classes")), 1000, "classes")
        got = os.listdir(m.path + "/x/classes/000777")
        equal(got, ["%06d.pgm" % i for i in np.flatnonzero(y == 777)], "one")


work = lib.setup()
lib.main()
