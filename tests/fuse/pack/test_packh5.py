#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack --format=h5: what h5py reads are the files' arrays; what does not fit is said,
and leaves nothing."""
import os
import resource
import shutil
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
from checks import check, equal, note, read, same_bytes
from lib import TENSORFS, Missing, Mount, case, exits, run, tensorfs
from packlib import peak
from user import as_user

SANITIZED = bool(os.environ.get("TENSORFS_SANITIZED"))
random = np.random.default_rng(6)
work = None


# --- making and packing ---------------------------------------------------------

def fresh(name):
    top = os.path.join(work, name)
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    return top


def put(top, name, data):
    """An array as .npy, or bytes as they are."""
    path = os.path.join(top, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(data, np.ndarray):
        np.save(path, data)
    else:
        with open(path, "wb") as f:
            f.write(data)
    return path


def arrays(n, shape=(6, 5), dtype="f4", order="C"):
    """Arrays with every byte random, where any will do."""
    dtype, out = np.dtype(dtype), []
    for _ in range(n):
        size = int(np.prod(shape)) * dtype.itemsize
        if dtype.char == "g":
            a = random.random(shape).astype(dtype)
        else:
            low, high = {"?": (0, 2), "S": (65, 91)}.get(dtype.char, (0, 256))
            a = np.frombuffer(random.integers(low, high, size, "u1").tobytes(),
                              dtype).reshape(shape)
        out.append(np.array(a, order=order))
    return out


def directory(name, n=5, **kw):
    top = fresh(name)
    made = arrays(n, **kw)
    for i, a in enumerate(made):
        put(top, "%03d.npy" % i, a)
    return top, made


def pack(top, *options, code=0, quiet=True, **kw):
    out = top + ".h5"
    if os.path.exists(out) and "--force" not in options:
        os.remove(out)
    p = tensorfs("pack", *(["-q"] if quiet else []), top, out, *options, **kw)
    exits(p, code, "pack %s %s" % (os.path.basename(top), " ".join(options)))
    strays()
    return p if code else out


def strays():
    equal([f for f in os.listdir(work) if ".tensorfs-" in f], [], "strays")


def same_array(got, want, what):
    """Byte for byte, in the byte order of `want` (h5py keeps the file's)."""
    equal((got.shape, got.dtype.str), (want.shape, want.dtype.str), what)
    same_bytes(np.ascontiguousarray(got).tobytes(),
               np.ascontiguousarray(want).tobytes(), what)


def rows(path, want, dataset="data", **layout):
    """The dataset has these arrays as its rows."""
    with h5py.File(path, "r") as f:
        d = f[dataset]
        equal(d.shape, (len(want),) + want[0].shape, "shape")
        what = np.dtype(want[0].dtype)
        check(d.id.get_type() == h5py.h5t.py_create(what, logical=True),
              "not the type that h5py makes of %s" % what)
        for k, v in layout.items():
            equal(getattr(d, k), v, k)
        got = d[()]
        for i, w in enumerate(want):
            same_array(got[i:i + 1].reshape(w.shape), w, "row %d" % i)
        names = f[os.path.dirname(dataset) + "/names"].asstr()[:].tolist()
        equal(len(names), len(want), "names")
        return names


# --- arrays ---------------------------------------------------------------------

@case
def types_and_orders():
    for dtype in ("<f4", ">f4", "u1", "?", "<c8", ">i2", "S5", "V7", "<f2", "g",
                  "<i8", "c16"):
        for order in "CF":
            top, want = directory("types", shape=(2, 3, 4), dtype=dtype,
                                  order=order)
            rows(pack(top), want)


@case
def shapes():
    for shape in ((), (1,), (3,), (0,), (4, 0, 2), (33, 17, 5), (1, 9, 1)):
        for order in "CF":
            top, want = directory("shapes", shape=shape, order=order)
            rows(pack(top), want)
    top, want = directory("shapes", n=1, shape=(300, 200), dtype="f8", order="F")
    rows(pack(top), want, chunks=(1, 300, 200))


@case
def versions():
    """.npy 1, 2 and 3, written by NumPy; long headers."""
    top, want = fresh("versions"), arrays(3)
    for i, version in enumerate(((1, 0), (2, 0), (3, 0))):
        with open(os.path.join(top, "%d.npy" % i), "wb") as f:
            np.lib.format.write_array(f, want[i], version)
    rows(pack(top), want)


@case
def python2():
    """Numbers with an L, keys in another order, other quotes, no blanks."""
    a = arrays(1, shape=(7,))[0]
    top = fresh("python2")
    head = b"{\"shape\":(7L,),'fortran_order':False,'descr':'<f4'}\n"
    put(top, "a.npy", b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head +
        a.tobytes())
    same_array(np.load(top + "/a.npy"), a, "NumPy's")
    rows(pack(top), [a])


@case
def chunks():
    for shape, chunk, n in (
            ((6, 5), (1, 6, 5), 3), ((6, 5), (2, 6, 5), 5),
            ((6, 5), (4, 4, 4), 9), ((6, 5), (1, 4, 2), 3),
            ((6, 5), (1, 1, 2), 3), ((6, 5), (1, 1, 1), 2),
            ((6, 5, 4), (1, 4, 5, 4), 3), ((6, 5, 4), (3, 6, 1, 3), 7),
            ((9,), (4, 9), 4), ((), (3,), 7), ((700, 900), (1, 128, 128), 3),
            ((700, 900), (2, 700, 900), 5)):
        top, want = directory("chunks", n=n, shape=shape)
        rows(pack(top, "--chunk=" + ",".join(map(str, chunk))), want,
             chunks=chunk)
    # More rows than there are.
    top, want = directory("chunks", n=3)
    rows(pack(top, "--chunk=99,6,5"), want, chunks=(3, 6, 5))


@case
def compressions():
    top, want = directory("comp", shape=(64, 64), dtype="i4")
    for a in want:
        a //= 1 << 20
    for i, a in enumerate(want):
        put(top, "%03d.npy" % i, a)
    for comp, layout in (
            ("auto", dict(compression="gzip", compression_opts=4, shuffle=True)),
            ("gzip:9", dict(compression="gzip", compression_opts=9, shuffle=True)),
            ("lzf", dict(compression="lzf", shuffle=False)),
            ("none", dict(compression=None, shuffle=False))):
        rows(pack(top, "--comp=" + comp), want, **layout)
    for comp, code in (("zstd", 32015), ("zstd:19", 32015), ("lz4", 32004)):
        out = pack(top, "--comp=" + comp)
        with h5py.File(out, "r") as f:
            plist = f["data"].id.get_create_plist()
            equal([plist.get_filter(i)[0] for i in range(2)], [2, code], comp)
        for i, a in enumerate(want):
            p = run(TENSORFS, "cat", "%s:data/samples/%06d.npy" % (out, i),
                    text=False)
            same_bytes(p.stdout, read(top + "/%03d.npy" % i), comp)


@case
def noise_is_stored():
    """What does not get smaller is stored as it is, with a filter mask."""
    top, want = directory("noise", dtype="u1", shape=(50, 50))
    rows(pack(top, "--comp=lzf"), want)
    with h5py.File(top + ".h5", "r") as f:
        mask, data = f["data"].id.read_direct_chunk((1, 0, 0))
        equal((mask, len(data)), (1, 2500), "mask and size")


@case
def same_every_time():
    top, want = directory("again", n=300, shape=(40, 30))
    one = read(pack(top, "--threads=1"))
    for threads in (2, 5):
        same_bytes(read(pack(top, "--threads=%d" % threads)), one, "bytes")
    rows(top + ".h5", want)


@case
def seen_in_a_mount():
    """Samples are the files that np.save wrote."""
    top, want = directory("seen", n=12, shape=(30, 20))
    with Mount(pack(top, "--chunk=5,10,20")) as m:
        for i in range(12):
            same_bytes(read(m / ("data/samples/%06d.npy" % i)),
                       read(top + "/%03d.npy" % i), "sample %d" % i)
        equal(read(m / "names/array.txt").decode().split(),
              ["%03d.npy" % i for i in range(12)], "names")
    top, want = directory("seen", n=3, dtype=">i2")
    with Mount(pack(top), opts=["-o", "dtype-order=source"]) as m:
        for i in range(3):
            same_bytes(read(m / ("data/samples/%06d.npy" % i)),
                       read(top + "/%03d.npy" % i), "sample %d" % i)


@case
def order_of_training():
    top, want = directory("order", n=6)
    order = [4, 1, 5, 0]
    listed = put(work, "order.txt",
                 b"".join(b"%03d.npy\n" % i for i in order))
    names = rows(pack(top, "--order=" + listed),
                 [want[i] for i in order + [2, 3]])
    equal(names[:4], ["%03d.npy" % i for i in order], "names")
    os.remove(listed)


@case
def other_places():
    top, want = directory("places")
    for given, path in (("/entry/data", "entry/data"), ("images", "images")):
        rows(pack(top, "--dataset=" + given), want, dataset=path)


@case
def hard_links():
    """Each name is a sample."""
    top, want = directory("hard", n=3)
    os.link(top + "/001.npy", top + "/009.npy")
    equal(rows(pack(top), want + [want[1]])[3], "009.npy", "name")


@case
def read_again():
    """--verify finds what differs: here, nothing."""
    for options in (["--labels=dirs"], ["--chunk=3,4,4"], ["--comp=none"]):
        top, want = classes("verified", a=4, b=3)
        put(top, "b/x.npy", arrays(1, order="F")[0])
        pack(top, "--verify", *options)
    top, want = directory("verified", shape=(3, 0))
    rows(pack(top, "--verify"), want)
    top, want = directory("verified", dtype=">f8")
    rows(pack(top, "--verify"), want)
    for name in ("images", "/entry/my.data", "a%2Fb", "samples", "n" * 300):
        pack(top, "--verify", "--dataset=" + name)


@case
def strings_read_again():
    """Bytes are lines in a mount: padding, NULs inside, newlines, whole pieces."""
    top = fresh("lines")
    for i, order in enumerate("CCF"):
        a = random.choice(np.frombuffer(b"ab\\\\\n\0\0", "u1"), (300, 70, 7))
        a = np.array(a.view("S7")[..., 0], order=order)
        a[0, :3] = b"", b"\0\0x", b"seven!\n"
        put(top, "%d.npy" % i, a)
    put(top, "3.npy", np.array([[b"x" * 6] * 70] * 300, "S7"))
    pack(top, "--verify")
    top, _ = directory("lines", n=2, shape=(), dtype="S2000")
    pack(top, "--verify")
    top = fresh("lines")
    put(top, "0.npy", np.array([b"a" + bytes(999) + b"b", b"c"]))
    put(top, "1.npy", np.zeros(2, "S1001"))
    pack(top, "--verify")


@case
def odd_names():
    top, want = fresh("odd"), arrays(4)
    names = sorted(["a b.npy", "\u00e4\u65e5.NPY", "x\ny.npy", "dir.d/-.npy"],
                   key=os.fsencode)
    for name, a in zip(names, want):
        with open(put(top, name, b""), "wb") as f:
            np.save(f, a)
    equal(rows(pack(top), want), names, "names")


@case
def sparse():
    """Holes are zeros."""
    top = fresh("sparse")
    for i in range(2):
        with open(os.path.join(top, "%d.raw" % i), "wb") as f:
            f.truncate(3 << 20)
            f.seek(2 << 20)
            f.write(b"data")
    want = np.frombuffer(read(top + "/0.raw"), "u1").reshape(3, -1)
    rows(pack(top, "--shape=3,%d" % (1 << 20), "--dtype=uint8"), [want, want])


# --- images and raw -------------------------------------------------------------

def pnm(a, plain=False, maxval=None, comment=b""):
    """Netpbm's formats, by the words of pgm(5)."""
    kind = (2 if plain else 5) + (a.ndim == 3)
    top = maxval or (65535 if a.dtype.itemsize == 2 else 255)
    head = b"P%d\n%s%d %d\n%d\n" % (kind, comment, a.shape[1], a.shape[0], top)
    if not plain:
        return head + a.astype(a.dtype.newbyteorder(">")).tobytes()
    text = [b"%d" % v for v in a.ravel()]
    return head + b"\n".join(b" ".join(text[i:i + 9])
                             for i in range(0, len(text), 9)) + b"\n"


@case
def images():
    for shape in ((13, 17), (13, 17, 3)):
        for dtype in ("u1", ">u2"):
            top, want = fresh("images"), arrays(4, shape=shape, dtype=dtype)
            for i, a in enumerate(want):
                put(top, "%d.%s" % (i, ("pgm", "pnm", "PPM")[i % 3]),
                    pnm(a, plain=i % 2, comment=b"# a comment\n" * (i > 1)))
            rows(pack(top), want)
            with h5py.File(top + ".h5", "r") as f:
                equal(f["data"].attrs["maxval"],
                      255 if dtype == "u1" else 65535, "maxval")


@case
def images_of_pillow():
    try:
        from PIL import Image
    except ImportError:
        raise Missing("python3-pil")
    for shape, suffix in (((20, 30), "pgm"), ((20, 30, 3), "ppm")):
        top, want = fresh("pillow"), arrays(3, shape=shape, dtype="u1")
        for i, a in enumerate(want):
            Image.fromarray(a).save(top + "/%d.%s" % (i, suffix))
        rows(pack(top), want)


@case
def large_plain_image():
    """In several pieces, cut anywhere."""
    top, want = fresh("plain"), arrays(2, shape=(1400, 900), dtype="u1")
    for i, a in enumerate(want):
        put(top, "%d.pgm" % i, pnm(a, plain=True))
    check(os.path.getsize(top + "/0.pgm") > 4 << 20, "the test's file is small")
    rows(pack(top), want)


@case
def raw_files():
    for dtype in ("float32", ">i2", "bool", "complex64"):
        top = fresh("raw")
        want = arrays(4, shape=(7, 3), dtype="?" if dtype == "bool" else dtype)
        for i, a in enumerate(want):
            put(top, "%d.dat" % i, a.tobytes())
        put(top, "notes.txt", b"text")
        rows(pack(top, "--shape=7,3", "--dtype=" + dtype), want)


# --- labels ---------------------------------------------------------------------

def classes(name, **members):
    top, made = fresh(name), {}
    for c, n in members.items():
        os.makedirs(os.path.join(top, c))
        for i, a in enumerate(arrays(n)):
            path = put(top, "%s/%s%d.npy" % (c, "sub/" * (i % 2), i), a)
            made[os.path.relpath(path, top)] = a
    return top, made


def labels(path):
    with h5py.File(path, "r") as f:
        names = f["names"].asstr()[:].tolist()
        found = f["classes"].asstr()[:].tolist() if "classes" in f else None
        equal(f["labels"].dtype.str, "<i8", "type of labels")
        return dict(zip(names, f["labels"][:].tolist())), found


@case
def labels_as_torchvision():
    try:
        from torchvision.datasets import DatasetFolder
    except ImportError:
        raise Missing("python3-torchvision")
    top, made = classes("folders", dog=4, Cat=3, ant=5, b10=1, b9=1)
    put(top, "notes.txt", b"not a class")
    want = DatasetFolder(top, np.load, extensions=(".npy",))
    out = pack(top, "--labels=dirs")
    got, names = labels(out)
    equal(names, want.classes, "classes")
    equal(got, {os.path.relpath(p, top): c for p, c in want.samples}, "labels")
    rows(out, [made[n] for n in sorted(made)])


@case
def labels_of_a_list():
    top, made = classes("listed", a=3, b=2)
    names = sorted(made)
    words = ["x", "a,b", 'q"q', "x", "two\nlines"]
    quoted = ['"%s"' % w.replace('"', '""') for w in words]
    found = sorted(set(words))
    want = {n: found.index(w) for n, w in zip(names, words)}
    for head, row, end in (("", "%s,%s", "\n"), ("path,label", "./%s,%s", "\r\n"),
                           ("\ufefflabel,n,file_name", None, "\n")):
        lines = [head] if head else []
        for n, q in zip(names, quoted):
            lines.append(row % (n, q) if row else '%s,1,"%s"' % (q, n))
        path = put(work, "l.csv", end.join(lines[::-1] if not head else
                                           lines).encode())
        equal(labels(pack(top, "--labels=" + path)), (want, found), head)


@case
def labels_that_are_numbers():
    top, made = classes("numbers", a=3)
    names = sorted(made)
    for texts, want, row in (
            ((7, -1, 1 << 60), None, "%s,%s\n"), (("007", 1, 2), True, "%s,%s\n"),
            ((7, 8, 10), None, "%s, %s\t\n"), (("b", "a", 2), True, "%s, %s \n"),
            (("1.5", 1, 2), True, "%s,%s\n"), ((1 << 63, 1, 2), True, "%s,%s\n")):
        path = put(work, "l.csv", ("path, label\n" + "".join(
            row % x for x in zip(names, texts))).encode())
        found = sorted(map(str, texts)) if want else None
        expect = [found.index(str(t)) for t in texts] if want else list(texts)
        equal(labels(pack(top, "--labels=" + path)),
              (dict(zip(names, expect)), found), "labels %s" % (texts,))


@case
def labels_too_many():
    """Rows for what is not packed are told of, and no harm."""
    top, made = classes("surplus", a=2)
    path = put(work, "l.csv", "".join("%s,1\n" % n for n in sorted(made)).encode()
               + b"a/9.npy,4\n")
    p = tensorfs("pack", top, top + ".h5", "--force", "--labels=" + path)
    exits(p, 0, "surplus")
    check("1 row for files that are not samples, the first is 'a/9.npy'" in p.stderr,
          p.stderr)


# --- what is left out, and what is refused ------------------------------------------

@case
def others_are_named():
    top, want = directory("others")
    put(top, "README.txt", b"hello")
    put(top, "sub/list", b"hello")
    os.symlink("README.txt", top + "/link")
    p = tensorfs("pack", top, top + ".h5", "--force")
    exits(p, 0, "others")
    for word in ("3 files are not samples", "'README.txt'", "'link'",
                 "'sub/list'"):
        check(word in p.stderr, "not said: %s: %s" % (word, p.stderr))
    rows(top + ".h5", want)


@case
def unreadable():
    """Said, left out, exit 1."""
    top, want = directory("unreadable", n=4)
    os.chmod(work, 0o777)
    os.chmod(top + "/002.npy", 0)
    p = tensorfs("pack", top, top + ".h5", "--force", **as_user())
    exits(p, 1, "unreadable")
    check("002.npy" in p.stderr, p.stderr)
    equal(rows(top + ".h5", want[:2] + want[3:])[2], "003.npy", "names")


def spoil(name, change, options=(), n=4, **kw):
    """A directory whose 002 is changed."""
    top, want = directory(name, n=n, **kw)
    path = top + "/002.npy"
    data = read(path)
    os.remove(path)
    change(path, data)
    return top


def refused(code, words, top, *options, name=None, **kw):
    out = (name or top) + ".h5"
    before = b"what was there"
    put(work, os.path.basename(out), before)
    p = tensorfs("pack", "-q", "--force", top, out, *options, **kw)
    exits(p, code, "pack %s" % " ".join(options))
    for w in [words] if isinstance(words, str) else words:
        check(w in p.stderr, "not said: '%s': %s" % (w, p.stderr))
    equal(len(p.stderr.strip().split("\n")), 1, "lines on stderr")
    same_bytes(read(out), before, "what was there")
    strays()


@case
def unreadable_in_the_middle():
    """A row that ends in zeros is worse than none: what was there stays."""
    top = fresh("unreadable_end")
    with h5py.File(top + "/s.h5", "w") as f:
        d = f.create_dataset("s", data=random.integers(0, 9, (3, 2 << 20)),
                             dtype="u4", chunks=(1, 1 << 18), fletcher32=True)
        where = d.id.get_chunk_info(d.id.get_num_chunks() - 1).byte_offset
    with open(top + "/s.h5", "r+b") as f:
        f.seek(where)
        f.write(b"damaged")
    with Mount(top + "/s.h5") as m:
        refused(1, "'s/samples/000002.npy' could not be read to its end",
                m.path, "--exclude=*.bin", "--exclude=s/array.npy",
                "--exclude=blocks", name=top)


def as_bytes(f):
    return lambda path, data: put(work, path, f(data))


def as_array(a):
    return lambda path, data: np.save(path, a)


def header(text):
    text = text.encode() + b"\n"
    return as_bytes(lambda d: b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") +
                    text + d[128:])


@case
def refused_arrays():
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s}"
    for words, change in (
            (["'002.npy' is <f4 (6, 4)", "'000.npy' is <f4 (6, 5)"],
             as_array(np.zeros((6, 4), "f4"))),
            (["is <f8 (6, 5)", "must have one type and shape"],
             as_array(np.zeros((6, 5), "f8"))),
            (["is >f4 (6, 5)"], as_array(np.zeros((6, 5), ">f4"))),
            (["is <f4 (6, 5, 1)"], as_array(np.zeros((6, 5, 1), "f4"))),
            ("'002.npy': it is truncated: it has 247 bytes, its header requires 248",
             as_bytes(lambda d: d[:-1])),
            ("12 bytes follow its array", as_bytes(lambda d: d + b"x" * 12)),
            ("its .npy header is damaged: it is cut off", as_bytes(lambda d: d[:99])),
            ("not a .npy file", as_bytes(lambda d: b"")),
            ("not a .npy file", as_bytes(lambda d: b"text, of ten or more")),
            ("version 4.0", as_bytes(lambda d: d[:6] + b"\4\0" + d[8:])),
            ("Python objects", as_array(np.array([None, 1], object))),
            ("save it as bytes (S)", as_array(np.array(["a", "bc"]))),
            ("save them as int64", as_array(np.zeros(3, "M8[s]"))),
            ("are structures", as_array(np.zeros(3, "i4,f4"))),
            ("too many elements",
             header(head % ("<f4", "(%d, %d)" % (1 << 40, 1 << 40)))),
            ("negative size", header(head % ("<f4", "(-6, 5)"))),
            ("not a tuple", header(head % ("<f4", "30"))),
            ("not a type of NumPy", header(head % ("<q4", "(6, 5)"))),
            ("not a dictionary", header("import os")),
            ("is missing", header("{'descr': '<f4', 'shape': (6, 5)}")),
            ("behind the dictionary", header(head % ("<f4", "(6, 5)") + " + 1")),
            ("more than 32 axes", header(head % ("<f4", "(%s)" % ("1, " * 33)))),
            ("it is truncated", header(head % ("<f4", "(6, 6)")))):
        refused(3, words, spoil("bad", change))


@case
def refused_images():
    good = pnm(arrays(1, shape=(4, 5), dtype="u1")[0])
    for words, data in (
            ("'1.pgm': it is truncated: it has 30 bytes, its header requires 31", good[:-1]),
            ("1 bytes follow its image", good + b"x"),
            ("not a PGM or PPM", b"\x89PNG\r\n"), ("not a PGM or PPM", b""),
            ("PBM bitmaps", b"P4\n5 4\n" + bytes(4)), ("PAM images", b"P7\nWIDTH 5\n"),
            ("its header has no height", b"P5\n5 "),
            ("its width is more", b"P5\n99999999999999999999 4\n255\n"),
            ("its maxval is more", b"P5\n5 4\n65536\n"),
            ("its height is 0", b"P5\n5 0\n255\n"),
            ("it ends in its header", b"P5\n5 4\n255"),
            ("fewer numbers", b"P2\n5 4\n255\n" + b"1 " * 19),
            ("more numbers", b"P2\n5 4\n255\n" + b"1 " * 21),
            ("above its maxval", b"P2\n5 4\n255\n" + b"256 " * 20),
            ("not a number", b"P2\n5 4\n255\n" + b"-1 " * 20),
            ("maxval 100, but '0.pgm' is |u1 (4, 5), maxval 255",
             b"P5 5 4 100\n" + bytes(20)),
            ("is |u1 (4, 5, 3)", b"P6 5 4 255\n" + bytes(60))):
        top = fresh("badimage")
        put(top, "0.pgm", good)
        put(top, "1.pgm", data)
        refused(3, words, top)


@case
def refused_directories():
    top = fresh("none")
    refused(3, "no .npy, .pgm or .ppm files", top)
    put(top, "a.txt", b"x")
    refused(3, "no file has the 24 bytes that --shape and --dtype require ('a.txt' "
            "has 1)", top, "--shape=6", "--dtype=f4")
    put(top, "b.npy", arrays(1)[0])
    put(top, "c.pgm", b"P5 1 1 255\n1")
    refused(3, ["both arrays ('b.npy')", "images ('c.pgm')"], top)
    os.remove(top + "/c.pgm")
    os.symlink("b.npy", top + "/c.npy")
    refused(3, "'c.npy' is a symbolic link", top)
    top = fresh("rawbad")
    put(top, "a.raw", bytes(24))
    put(top, "b.raw", bytes(23))
    refused(3, "'b.raw': it has 23 bytes, but --shape and --dtype require 24", top,
            "--shape=6", "--dtype=f4")


@case
def refused_options():
    top, _ = directory("options")
    for words, options in (
            ("has 2 axes, but the tensor has 3", ["--chunk=1,6"]),
            ("is larger than the tensor", ["--chunk=1,7,5"]),
            ("sizes of axes", ["--chunk=1,x,5"]),
            ("sizes of axes", ["--chunk=0,6,5"]),
            ("given together", ["--shape=3"]),
            ("given together", ["--dtype=f4"]),
            ("--dtype: 'f5'", ["--shape=3", "--dtype=f5"]),
            ("too large", ["--shape=%d,4" % (1 << 62), "--dtype=f4"]),
            ("no filter for xz", ["--comp=xz"]),
            ("--block-size does not", ["--block-size=1M"]),
            ("a path in the file", ["--dataset=a//b"]),
            ("a path in the file", ["--dataset=../b"]),
            ("names of files", ["--dataset=x/names"])):
        refused(2, words, top, *options)
    p = tensorfs("pack", "-q", top, put(work, "options.h5", b""))
    exits(p, 2, "without --force")


@case
def refused_labels():
    top, made = classes("badlabels", a=3)
    names = sorted(made)
    good = ["%s,%d" % (n, i) for i, n in enumerate(names)]
    for words, lines in (
            (["no label for 1 of 3 samples", "'%s'" % names[1]], good[::2]),
            (["no label for 1 of 3", "a label for 'a/nine'"], good[::2] + ["a/nine,2"]),
            ("line 4: '%s' has a label already, in line 2" % names[1],
             good + [good[1]]),
            ("line 2: 3 fields instead of 2", [good[0], good[1] + ",x"]),
            ("line 2: 1 field instead of 2", [good[0], names[1]]),
            ("line 1: the label is empty", [names[0] + ","]),
            ("line 2: a quoted field does not end", [good[0], '"abc']),
            ("line 1: text follows a closing quote", ['"a"b,c']),
            ("a NUL", good + ["a\0b,c"]), ("no label for 3 of 3", [])):
        path = put(work, "l.csv", "\n".join(lines).encode())
        refused(3, words, top, "--labels=" + path)
    refused(1, "'%s/no'" % work, top, "--labels=%s/no" % work)
    refused(2, "not a file of at most", top, "--labels=" + work)
    put(top, "loose.npy", made[names[0]])
    refused(3, "'loose.npy' is not in a directory", top, "--labels=dirs")


@case
def full_disk():
    """The file may not grow: what was there stays."""
    top, _ = directory("full", n=40, shape=(100, 100))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
    for options in ([], ["--threads=1"], ["--chunk=40,100,100"]):
        refused(1, "cannot write '%s.h5': " % top, top, *options, preexec=limit)
    top, _ = directory("full", n=1000, dtype="u1", shape=(), )

    def tiny():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
    refused(1, "cannot write '%s.h5': " % top, top, preexec=tiny)


# --- much data, little memory ---------------------------------------------------------

@case
def bounded_memory():
    """512 MiB of data (holes, mostly) through 64 MiB."""
    top, n, size = fresh("much"), 128, 4 << 20
    for i in range(n):
        with open(os.path.join(top, "%03d.raw" % i), "wb") as f:
            f.truncate(size)
            f.write(b"%d" % i)
    out = top + ".h5"
    for chunk in ("1,1024,1024", "4,512,512", "1,1,1024"):
        if os.path.exists(out):
            os.remove(out)
        used = peak(TENSORFS, "pack", "-q", "--memory=64M", top, out,
                    "--shape=1024,1024", "--dtype=i4", "--chunk=" + chunk,
                    "--comp=lzf", "--threads=2")
        note("chunk %s: %d MiB" % (chunk, used >> 20))
        check(SANITIZED or used < 80 << 20, "%d MiB" % (used >> 20))
        with h5py.File(out, "r") as f:
            for i in (0, 77, 127):
                a = f["data"][i]
                equal(a.tobytes()[:3].rstrip(b"\0"), b"%d" % i, "begin")
                equal(int(np.count_nonzero(a)), 1, "numbers")
        if SANITIZED:
            break


@case
def too_little_memory():
    top = fresh("huge")
    for i in range(2):
        with open(os.path.join(top, "%d.raw" % i), "wb") as f:
            f.truncate(100 << 20)
    how = "--shape=%d" % (100 << 20), "--dtype=u1", "--comp=lz4"
    refused(5, ["a row of chunks takes", "--memory"], top, "--memory=64M", *how)
    p = pack(top, "--memory=64M", *how, code=5)
    times = float(p.stderr.split(" times as much")[0].split("give ")[1])
    pack(top, "--memory=%dM" % (64 * times), *how)
    a = np.zeros((4000, 3000), "f4", order="F")
    np.save(fresh("turned") + "/a.npy", a)
    refused(5, "in Fortran order", work + "/turned", "--memory=64M",
            "--chunk=1,10,3000")


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
