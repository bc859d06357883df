#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
""".npy files, and directories of them or of HDF5 files (concat=), as tensors; NumPy is
what they are compared with."""
import errno
import io
import json
import os
import shutil
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
from checks import check, equal, fails_with
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(11)


def save(name, a, **kw):
    path = os.path.join(work, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        np.lib.format.write_array(f, a, **kw)
    return path


def cat(path, *opts):
    return exits(tensorfs("cat", *opts, path, text=False), 0, path).stdout


def same(got, want, what):
    """Bytes that np.save would write of `want` in C order, little-endian."""
    out = io.BytesIO()
    want = np.asarray(want)
    np.save(out, np.ascontiguousarray(want).reshape(want.shape).astype(
        want.dtype.newbyteorder("<")))
    check(got == out.getvalue(), "%s: other bytes" % (what,))


def random(dtype, shape):
    a = rng.integers(0, 255, shape + (np.dtype(dtype).itemsize,), "u1")
    if np.dtype(dtype).kind == "b":
        a &= 1
    return a.view(dtype).reshape(shape)


@case
def types_and_orders():
    for dtype in ("u1", "<i2", ">i2", "<u4", ">i8", "<f2", ">f4", "<f8", ">c16",
                  "<c8", "?", "S5", "V7"):
        for shape in ((), (0,), (7,), (5, 6), (4, 3, 5), (2, 1, 3, 4), (3, 0, 2)):
            a = random(dtype, shape)
            for turned in (a, np.asfortranarray(a) if shape else a):
                path = save("t.npy", turned)
                same(cat(path + ":data/array.npy"), a, (dtype, shape))


@case
def versions():
    a = random("<f4", (3, 4))
    for version in (1, 0), (2, 0), (3, 0):
        same(cat(save("v.npy", a, version=version) + ":data/array.npy"), a,
             version)


@case
def views_of_a_mount():
    a = np.asfortranarray(rng.normal(size=(230, 60, 17)).astype(">f4"))
    for path, want in ((save("f.npy", a), a), (save("c.npy", a.copy("C")), a)):
        with Mount(path) as m:
            equal(os.listdir(m.path), ["data"], "root")
            d = m.path + "/data"
            for i in (0, 57, 229):
                got = np.load(d + "/samples/%06d.npy" % i)
                equal(got.dtype, np.dtype("<f4"), "order")
                check(np.array_equal(got, want[i]), "sample")
            got = np.load(d + "/array.npy", mmap_mode="r")
            check(np.array_equal(got[100:, ::7, 3], want[100:, ::7, 3]), "mmap")
            del got
            check(np.array_equal(np.load(d + "/slice/3:200:9,:,4.npy"),
                                 want[3:200:9, :, 4]), "slice")
        with Mount(path, opts=["--dtype-order=source"]) as m:
            got = np.load(m.path + "/data/array.npy")
            equal((got.dtype, got.tobytes()), (want.dtype, want.tobytes()), "source")
        exits(tensorfs("verify", path), 0, "verify")


@case
def large_in_fortran_order():
    """More than one chunk along each axis."""
    a = np.asfortranarray(random("<u2", (5000, 40, 30)))
    with Mount(save("l.npy", a)) as m:
        d = m.path + "/data"
        check(np.array_equal(np.load(d + "/array.npy"), a), "array")
        for i in (0, 2047, 2048, 4999):
            check(np.array_equal(np.load(d + "/samples/%06d.npy" % i), a[i]), i)


STRUCTURES = {
    "plain": [("x", "<f4"), ("y", "<i4", (3,))],
    "aligned": np.dtype([("a", "u1"), ("b", "<f8"), ("c", "<u2")], align=True),
    "nested": [("at", [("x", "<f4"), ("y", "<f4")], (2, 2)), ("flag", "?"),
               ("tag", "S5"), ("raw", "V3"), ("z", "<c16")],
    "apart": np.dtype({"names": ["b", "a"], "formats": ["<i2", "<f4"],
                       "offsets": [3, 9], "itemsize": 20}),
    "nested padding": np.dtype([("p", np.dtype([("a", "u1"), ("b", "<i8")],
                                               align=True), (3,)), ("q", "u1")]),
    "titles": [(("a title", "x"), "<f4"), (("it's", 'y"'), "<i2", (2,))],
    "names": [("it's", "u1"), ("a\\b\n\t\x7f", "u1"), ('"', "u1"), ("'\"", "u1"),
              ("\xe9", "u1"), ("\xad", "u1"), ("a/b", "u1")],
    "far names": [("\u03b1", "<f4"), ("\U0001f600", "<f4"), ("\u2028", "u1")],
    "many": [("field%05d" % i, "u1") for i in range(4000)],
}


@case
def structures():
    for what, dtype in STRUCTURES.items():
        for shape in ((), (0,), (7,), (5, 6)):
            a = random(dtype, shape)
            for name in a.dtype.names:
                if a.dtype[name] == "?":
                    a[name] = True
            path = save("s.npy", a)
            got = cat(path + ":data/array.npy")
            check(got == open(path, "rb").read(), "%s: other bytes" % what)
            turned = np.asfortranarray(a.view("V%d" % a.itemsize)).view(a.dtype) \
                if shape else a  # padding, too
            check(cat(save("s.npy", turned) + ":data/array.npy") == got,
                  "%s: Fortran order" % what)
            for version in ((1, 0), (2, 0), (3, 0)) if len(got) < 9000 and \
                    what != "far names" else ((3, 0),):
                check(cat(save("s.npy", a, version=version) + ":data/array.npy")
                      == got, "%s: version %s" % (what, version))


@case
def structures_of_another_order():
    """Numbers are turned round, padding and text stay."""
    a = random([("p", "V3"), ("x", ">f4"), ("s", "S3"), ("n", [("i", ">i2", (2,)),
                ("c", ">c8")], (3,)), ("u", "u1")], (40, 3))
    path = save("b.npy", a)
    little = a.astype(a.dtype.newbyteorder("<"))
    with Mount(path) as m:
        same(open(m.path + "/data/array.npy", "rb").read(), little, "little")
        out = io.BytesIO()
        np.save(out, little[17])
        equal(open(m.path + "/data/samples/000017.npy", "rb").read(), out.getvalue(),
              "sample")
        check(np.array_equal(np.load(m.path + "/data/slice/3:20:4,1.npy"),
                             little[3:20:4, 1]), "slice")
        equal(json.load(open(m.path + "/data/info.json"))["fields"],
              ["p", "x", "s", "n", "u"], "fields")
    check(cat(path + ":data/array.npy", "--dtype-order=source")[-a.nbytes:] ==
          a.tobytes(), "source")
    exits(tensorfs("verify", path), 0, "verify")


def want_of(a, order):
    return a.astype(a.dtype.newbyteorder("<")) if order == "little" else a


def array_is(got, want, what):
    equal((got.dtype, got.shape), (want.dtype, want.shape), what)
    check(np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes(),
          what + ": other values")


@case
def fields_of_structures():
    """As NumPy takes them out: a frame behind its header, in both orders of bytes."""
    a = np.zeros((50, 2), [("head", "V40"), (("title", "frame"), ">u2", (16, 12)),
                           ("at", [("x", "<f4"), ("y", "<i2", (2,))]), ("ok", "?"),
                           ("note", "S5"), ("c", ">c8", (2,))])
    a["frame"] = random(">u2", (50, 2, 16, 12))
    a["at"]["x"] = rng.normal(size=(50, 2))
    a["ok"] = rng.integers(0, 2, (50, 2))
    a["note"] = [[b"%d" % i, b"x"] for i in range(50)]
    a["c"] = rng.normal(size=(50, 2, 2))
    path = save("f.npy", a)
    for order in "little", "source":
        with Mount(path, opts=["--dtype-order=" + order]) as m:
            d = m.path + "/data/fields"
            equal(sorted(os.listdir(d)), sorted(a.dtype.names), "fields")
            for n in a.dtype.names:
                want = want_of(a[n], order)
                array_is(np.load("%s/%s/array.npy" % (d, n)), want, n)
                for i in (0, 17, 49):
                    array_is(np.load("%s/%s/samples/%06d.npy" % (d, n, i)), want[i], n)
            array_is(np.load(d + "/frame/slice/3:40:7,1,2:9,::3.npy"),
                     want_of(a["frame"], order)[3:40:7, 1, 2:9, ::3], "slice")
    exits(tensorfs("verify", path), 0, "verify")
    for b, names in ((a[:0], a.dtype.names), (np.asfortranarray(a[:1]), a.dtype.names),
                     (random("<f4", (3,)), None), (np.asfortranarray(a), a.dtype.names),
                     (random([("only", "<f4")], (9,)), ("only",))):
        with Mount(save("f.npy", b)) as m:
            equal(os.path.isdir(m.path + "/data/fields"), names is not None, "fields")
            for n in names or ():
                array_is(np.load("%s/data/fields/%s/array.npy" % (m.path, n)),
                         want_of(b[n], "little"), n)


@case
def structures_that_are_none():
    whole = open(save("w.npy", random([("aaaaaa", "<f4"), ("bb", "<i4", (3,))], (9,))),
                 "rb").read()
    for what, of, by, says in (
            ("twice", b"'bb'", b"'aaaaaa'", "two fields"),
            ("object", b"'<i4'", b"'|O'", "Python objects"),
            ("text", b"'<i4'", b"'<U4'", "text"),
            ("no field", b"('bb', '<i4', (3,))", b"", ""),
            ("no bytes", b"(3,)", b"(0,)", "has no bytes"),
            ("large", b"(3,)", b"(999999999,)", "too large"),
            ("larger", b"(3,)", b"(9223372036854775807, 9223372036854775807)",
             "too large"),
            ("number", b"(3,)", b"3", ""),
            ("no name", b"'bb'", b"''", "has no name"),
            ("title", b"'bb'", b"('aaaaaa', 'bb')", "two fields"),
            ("escape", b"'bb'", b"'\\N{DIGIT ONE}'", "name"),
            ("nul", b"'bb'", b"'\\x00'", "name"),
            ("open", b")]", b") ", "list"),
            ("deep", b"'<i4'", b"[('a'," * 40 + b"'<i4'" + b")]" * 40, "nested too deeply"),
            ("deeper", b"'<i4'", b"[('a'," * 4000, "nested too deeply")):
        head = whole[10:whole.index(b"\n")].rstrip().replace(of, by)
        check(head != whole[10:whole.index(b"\n")].rstrip(), what)
        path = os.path.join(work, "bad.npy")
        with open(path, "wb") as f:
            f.write(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head +
                    whole[-144:])
        p = tensorfs("info", path)
        if says:
            exits(p, 3, what)
            check(says in p.stderr and "bad.npy" in p.stderr, what + ": " + p.stderr)
        else:
            exits(p, 0, what)


def with_header(name, head, data=b"", version=1):
    if isinstance(head, str):
        head = head.encode("utf-8" if version == 3 else "latin-1")
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    path = os.path.join(work, name)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY" + bytes([version, 0]) +
                len(head).to_bytes(2 if version == 1 else 4, "little") + head + data)
    return path


def loaded(path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.load(path)
    except (ValueError, TypeError, OSError, KeyError, SyntaxError):
        return None


ODD = {  # header: whether it is shown; None: NumPy refuses it, too
    "{'descr': '<i4', 'fortran_order': False, 'shape': (0x3, 2)}": True,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (0b11, 0o2)}": True,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (+3, 2)}": True,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (1_2,)}": True,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (3L, 2L)}": True,
    "{'descr': '<i4', # bytes\n 'fortran_order': False, 'shape': (6,)} # all": True,
    "{'descr': '<' 'i4', \"\"\"fortran_order\"\"\": False, 'shape': (6,)}": True,
    "{u'descr': u'<i4', u'fortran_order': False, u'shape': (6,)}": True,
    "{'d\\x65scr': '\\74i4', 'fortran_order': False, 'shape': (6,)}": True,
    "{'descr': '<i4', 'shape': (9,), 'fortran_order': False, 'shape': (6,)}": True,
    "{'descr': '<i4', 'fortran_order': False, \\\n 'shape': (6,)}": True,
    "{'descr': 'intp', 'fortran_order': False, 'shape': (3,)}": True,
    "{'descr': [('a', '<i4', 2), ('b', '<i4', 1)], 'fortran_order': False, "
    "'shape': (2,)}": True,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}": False,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (-1, 2)}": False,
    "{'descr': '|S0', 'fortran_order': False, 'shape': (4,)}": False,
    "{'descr': '|V0', 'fortran_order': False, 'shape': (4,)}": False,
    "{'descr': '<U1', 'fortran_order': False, 'shape': (6,)}": False,
    "{'descr': 'i4,i4', 'fortran_order': False, 'shape': (3,)}": False,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (010,)}": None,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (True, 6)}": None,
    "{'descr': '<i4', 'fortran_order': 0, 'shape': (6,)}": None,
    "{'descr': '<i4', 'fortran_order': False, 'shape': 6}": None,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), 'x': 1}": None,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (6__0,)}": None,
    "{'descr': '<i4', 'fortran_order': False, 'shape': (6,)} + 1": None,
}


@case
def odd_headers():
    """What NumPy takes is shown, or refused with the reason; nothing else is shown."""
    data = np.arange(12, dtype="<i4").tobytes()
    for i, (head, shown) in enumerate(ODD.items()):
        path = with_header("odd%d.npy" % i, head, data)
        want = loaded(path)
        equal(want is None, shown is None, "NumPy and " + head)
        if shown:
            same(cat(path + ":data/array.npy"), want, head)
            continue
        p = exits(tensorfs("info", path), 3, head)
        if shown is False:
            check("damaged" not in p.stderr, head + ": " + p.stderr)


@case
def sentences_about_odd_types():
    """One line each, whatever the file has in it."""
    for i, (descr, want) in enumerate((
            ("<f4\\x1b[31m\\n\\x7f\\x9b", "'<f4?[31m????' is not a type of NumPy"),
            ("<M8[xx]", "a unit that NumPy does not know"))):
        path = with_header("type%d.npy" % i, "{'descr': '%s', 'fortran_order': False, "
                           "'shape': (3,)}" % descr, bytes(12))
        equal(loaded(path), None, "NumPy and " + descr)
        p = exits(tensorfs("info", path), 3, descr)
        check(want in p.stderr, p.stderr)
        equal(p.stderr.count("\n"), 1, "lines of " + repr(p.stderr))
        check(p.stderr.strip().isprintable(), repr(p.stderr))


@case
def dates():
    """Their int64, and what these count."""
    for dtype in ("<M8[ns]", ">M8[D]", "<m8[25s]", "<M8", "<m8[as]"):
        a = np.arange(-3, 9, dtype="i8").view("<M8[s]" if "M" in dtype else "<m8[s]")
        a = a.view("i8").astype(dtype[0] + "i8").view(dtype).reshape(3, 4)
        name = np.dtype(dtype).name
        for turned in (a, np.asfortranarray(a)):
            path = save("date.npy", turned)
            same(cat(path + ":data/array.npy"), a.view(dtype[0] + "i8"), dtype)
            info = json.loads(cat(path + ":data/info.json"))
            check(name in info["stored_type"] and "int64" in info["stored_type"],
                  info["stored_type"])
    both = np.zeros(3, [("when", "<M8[ms]"), ("n", "<i4")])
    both["when"] = np.arange(3).view("M8[ms]")
    path = save("fields.npy", both)
    same(cat(path + ":data/fields/when/array.npy"), both["when"].view("i8"), "a field")
    info = json.loads(cat(path + ":data/fields/when/info.json"))
    check("datetime64[ms]" in json.dumps(info), str(info))
    os.makedirs(os.path.join(work, "units"), exist_ok=True)
    save("units/a-0.npy", np.zeros(3, "M8[s]"))
    save("units/a-1.npy", np.zeros(3, "M8[ms]"))
    p = exits(tensorfs("info", "--concat=0", os.path.join(work, "units")), 3, "units")
    check("a-1.npy" in p.stderr, p.stderr)


@case
def sentences():
    """Of what cannot be shown it is said what it is, and nothing else is blamed."""
    for descr, words in (("'<U2'", "text"), ("'|S0'", "no bytes"), ("'|O'", "objects"),
                         ("[('a', '|S0'), ('b', '<i4')]", "no bytes"),
                         ("[('a', '<U3'), ('b', '<i4')]", "text")):
        path = with_header("no.npy", "{'descr': %s, 'fortran_order': False, "
                           "'shape': (2,)}" % descr)
        p = exits(tensorfs("info", path), 3, descr)
        check(words in p.stderr and "HDF5 has" not in p.stderr, p.stderr)


@case
def structures_in_parts():
    """Not only the beginnings of long types are compared."""
    fields = [("a_field_with_a_name_that_is_quite_long_%d" % i, "<f4") for i in range(9)]
    a, b = random(fields, (3,)), random(fields[:-1] + [("other", "<f4")], (2,))
    path = os.path.dirname(save("sp/p-0.npy", a))
    save("sp/p-1.npy", a[:2])
    same(cat(path + ":data/array.npy", "--concat=0"), np.concatenate([a, a[:2]]), "both")
    n, kinds = fields[3][0], [("frame", ">u2", (5, 4)), ("x", "<f4")]
    same(cat("%s:data/fields/%s/array.npy" % (path, n), "--concat=0"),
         np.concatenate([a[n], a[n][:2]]), "a field of both")
    for axis in 0, 1:
        one, two = random(kinds, (30, 40)), random(kinds, (30, 40))
        save("fp/p-0.npy", one)
        d = os.path.dirname(save("fp/p-1.npy", np.asfortranarray(two)))
        both = np.concatenate([one, two], axis)
        with Mount(d, opts=["--concat=%d" % axis]) as m:
            for n in "frame", "x":
                array_is(np.load("%s/data/fields/%s/array.npy" % (m.path, n)),
                         want_of(both[n], "little"), "%s along %d" % (n, axis))
                array_is(np.load("%s/data/fields/%s/slice/3:60:7,5.npy" % (m.path, n)),
                         want_of(both[n], "little")[3:60:7, 5], n)
    save("sp/p-1.npy", b)
    p = exits(tensorfs("info", "--concat=0", path), 3, "another type")
    check("p-1.npy" in p.stderr and "other" in p.stderr, p.stderr)


@case
def damaged():
    a = random("<f8", (10, 10))
    whole = open(save("w.npy", a), "rb").read()
    bad = {
        "short": whole[:-1],
        "no data": whole[:128],
        "half a header": whole[:50],
        "object": whole.replace(b"'<f8'", b"'|O' "),
        "huge": whole.replace(b"(10, 10), }  ", b"(10, 9999), }"),
        "version": b"\x93NUMPY\x09" + whole[7:],
        "no dictionary": whole.replace(b"{'descr'", b"['descr'"),
    }
    for what, data in bad.items():
        check(data != whole, what)
        path = os.path.join(work, "bad.npy")
        with open(path, "wb") as f:
            f.write(data)
        p = exits(tensorfs("info", path), 3, what)
        check("bad.npy" in p.stderr, what + ": " + p.stderr)
    with open(path, "wb") as f:
        f.write(whole + b"more")  # as NumPy: what is behind it is not read
    same(cat(path + ":data/array.npy"), a, "more behind")


@case
def changed_while_mounted():
    path = save("c.npy", random("<f4", (2000, 100)))
    with Mount(path) as m:
        np.load(m.path + "/data/samples/000003.npy")
        os.truncate(path, 1000)
        fails_with((errno.EIO, errno.ESTALE),
                   lambda: open(m.path + "/data/samples/001000.npy", "rb").read(),
                   "truncated")


# --- concat= ------------------------------------------------------------------

def parts(name, axis, lengths, order="C", dtype="<i4"):
    shape = [6, 7, 5]
    made = []
    for i, n in enumerate(lengths):
        shape[axis] = n
        a = random(dtype, tuple(shape))
        if order == "F" or (order == "mixed" and i % 2):
            a = np.asfortranarray(a)
        save("%s/part-%d.npy" % (name, i), a)
        made.append(a)
    return os.path.join(work, name), np.concatenate(made, axis)


@case
def concatenated():
    for axis in (0, 1, 2, -1):
        for order in ("C", "F", "mixed"):
            lengths = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
            path, want = parts("p%d%s" % (axis, order), axis % 3, lengths, order,
                               ">i2")
            same(cat(path + ":data/array.npy", "--concat=%d" % axis), want, axis)
    with Mount(path, opts=["--concat=2"]) as m:
        d = m.path + "/data"
        equal(len(os.listdir(d + "/samples")), 6, "samples")
        check(np.array_equal(np.load(d + "/samples/000005.npy"), want[5]), "sample")
        check(np.array_equal(np.load(d + "/slice/:,2,7:40.npy"), want[:, 2, 7:40]),
              "slice")
    exits(tensorfs("verify", "--concat=2", path), 0, "verify")


@case
def parts_come_by_number():
    path, want = parts("order", 0, [1] * 30)
    p = exits(tensorfs("info", "--concat=0", path), 0, "info")
    check("(30, 7, 5)" in p.stdout, p.stdout)
    same(cat(path + ":data/array.npy", "--concat=0"), want, "order")


@case
def empty_parts():
    path, want = parts("empty", 0, [0, 2, 0, 0, 3, 0])
    same(cat(path + ":data/array.npy", "--concat=0"), want, "empty")


@case
def many_parts_few_files():
    path, want = parts("many", 0, [2] * 400)
    with Mount(path, opts=["--concat=0"], nofile=64) as m:
        check(np.array_equal(np.load(m.path + "/data/array.npy"), want), "array")


@case
def a_part_goes():
    path, want = parts("gone", 0, [2] * 100)
    with Mount(path, opts=["--concat=0"], nofile=40) as m:
        os.unlink(path + "/part-30.npy")
        np.save(path + "/part-40.npy", want[:2] + 1)
        check(np.array_equal(np.load(m.path + "/data/samples/000059.npy"), want[59]),
              "before it")
        for i in (60, 61, 80, 81):
            fails_with((errno.ENODATA, errno.ESTALE), lambda: open(
                m.path + "/data/samples/%06d.npy" % i, "rb").read(), i)
        check(np.array_equal(np.load(m.path + "/data/samples/000062.npy"), want[62]),
              "behind it")


@case
def parts_that_do_not_fit():
    path, _ = parts("odd", 1, [2, 3])

    def refused(sentence, *opts, code=3):
        p = exits(tensorfs("info", *opts, path), code, sentence)
        check(sentence in p.stderr, p.stderr)

    refused("differ along axis 0 only", "--concat=0")
    refused("no such axis", "--concat=3", code=2)
    refused("no such axis", "--concat=-4", code=2)
    save("odd/part-2.npy", random("<f8", (6, 2, 5)))
    refused("part-2.npy: its type is <f8", "--concat=1")
    with open(path + "/part-2.npy", "wb") as f:
        f.write(b"something else")
    refused("part-2.npy: not a .npy file", "--concat=1")
    os.unlink(path + "/part-2.npy")
    os.mkdir(path + "/part-2.npy")
    refused("part-2.npy", "--concat=1", code=2)
    os.rmdir(path + "/part-2.npy")
    with open(path + "/.hidden", "wb"):
        pass
    exits(tensorfs("info", "--concat=1", path), 0, "hidden")
    path = os.path.join(work, "nothing")
    os.mkdir(path)
    refused("the directory is empty", "--concat=0")
    path = save("one.npy", random("<f4", (3,)))
    refused("is not a directory", "--concat=0", code=2)


@case
def order_of_names():
    """Numbers count as numbers, whatever zeros are in front of them."""
    for names in (["p8", "p9", "p10", "p11"], ["p08", "p09", "p10"],
                  ["p 099", "p 0100", "p 101"], ["a%d", "b%%", "c%s"],
                  ["r1-p1", "r1-p2", "r2-p1", "r10-p0"], ["x%020d" % (10**19 + i)
                                                          for i in range(3)]):
        path = os.path.join(work, "names " + names[0])
        made = [random("<i4", (2,)) for _ in names]
        for name, a in zip(names, made):
            save("names %s/%s.npy" % (names[0], name), a)
        same(cat(path + ":data/array.npy", "--concat=0"), np.concatenate(made), names)


@case
def a_part_is_missing():
    for n, (numbers, missing) in enumerate((
            (["%06d" % i for i in range(12) if i != 7], "p000007.npy"),
            (["%d" % i for i in range(1, 12) if i != 9], "p9.npy"),
            (["%d" % i for i in range(1, 12) if i != 10], "p10.npy"),
            (["%02d" % i for i in range(0, 120, 10) if i != 100], "p100.npy"),
            (["0", "1", "3"], "p2.npy"),
            (["%d-s1" % i for i in (0, 1, 3, 4)], "p2-s1.npy"),
            (["0-%d" % i for i in range(5)] + ["1-%d" % i for i in (0, 1, 3, 4)],
             "p1-2.npy"))):
        for number in numbers:
            save("gap%d/p%s.npy" % (n, number), random("<i4", (1,)))
        p = exits(tensorfs("info", "--concat=0", "%s/gap%d" % (work, n)), 3, missing)
        check(" %s is missing" % missing in p.stderr, p.stderr)
    for n, numbers in enumerate((["120001", "120002", "120003", "120007"],
                                 ["0", "3", "9", "100"], ["0", "5"], ["1", "9", "10", "20"],
                                 ["0", "100", "300"], ["1", "10", "100"])):
        for number in numbers:
            save("free%d/p%s.npy" % (n, number), random("<i4", (1,)))
        p = exits(tensorfs("info", "--concat=0", "%s/free%d" % (work, n)), 0, numbers)
        equal("p120004.npy missing?" in p.stderr, n == 0, p.stderr)
    for number in "7", "07":
        save("same/p%s.npy" % number, random("<i4", (1,)))
    p = exits(tensorfs("info", "--concat=0", work + "/same"), 3, "same")
    check("p07.npy and p7.npy have the same number" in p.stderr, p.stderr)


# --- concat= of HDF5 files --------------------------------------------------------

def h5_parts(name, axis, lengths, dataset="x/y", **kw):
    shape = [6, 7, 5]
    made = []
    os.makedirs(os.path.join(work, name))
    for i, n in enumerate(lengths):
        shape[axis] = n
        a = random("<i4", tuple(shape))
        with h5py.File("%s/%s/run%d.h5" % (work, name, i), "w") as f:
            f.create_dataset(dataset, data=a, **kw)
        made.append(a)
    return os.path.join(work, name), np.concatenate(made, axis)


@case
def hdf5_files():
    for axis in (0, 2, -2):
        path, want = h5_parts("h%d" % axis, axis % 3, [2, 1, 0, 3] * 3,
                              maxshape=(None,) * 3, chunks=(2, 2, 2),
                              compression="gzip")
        same(cat(path + ":y/array.npy", "--concat=%d" % axis), want, axis)
        same(cat(path + ":y/array.npy", "--concat=%d" % axis, "--dataset=/x/y"),
             want, axis)
    exits(tensorfs("verify", "--concat=-2", path), 0, "verify")
    path, want = h5_parts("50%b 100%% %s", 0, [1, 2], "x%b")
    same(cat(path + ":x%b/array.npy", "--concat=0"), want, "names with %")
    os.rename(path + "/run1.h5", path + "/run3.h5")
    shutil.copy(path + "/run0.h5", path + "/run1.h5")
    p = exits(tensorfs("info", "--concat=0", path), 3, "gap")
    check("run2.h5 is missing" in p.stderr, p.stderr)


@case
def many_hdf5_files():
    path, want = h5_parts("h400", 0, [2] * 400)
    with Mount(path, opts=["--concat=0"], nofile=64) as m:
        check(np.array_equal(np.load(m.path + "/y/array.npy"), want), "array")
    with Mount(path, opts=["--concat=0"], nofile=64) as m:
        os.unlink(path + "/run30.h5")
        check(np.array_equal(np.load(m.path + "/y/samples/000059.npy"), want[59]),
              "before it")
        fails_with((errno.ENODATA,), lambda: open(
            m.path + "/y/samples/000060.npy", "rb").read(), "gone")


@case
def hdf5_files_that_do_not_fit():
    path, _ = h5_parts("hodd", 1, [2, 3])

    def refused(sentence, *opts, code=3):
        p = exits(tensorfs("info", *opts, path), code, sentence)
        check(sentence in p.stderr and p.stderr.count("\n") == 1, p.stderr)

    refused("run1.h5: the shape of the dataset differs", "--concat=0")
    refused("no such axis", "--concat=3", code=2)
    refused("no dataset '/z'", "--concat=1", "--dataset=/z")
    with h5py.File(path + "/run2.h5", "w") as f:
        f["x/y"] = np.zeros((6, 2, 5), "f8")
    refused("run2.h5: the type of the dataset differs", "--concat=1")
    with h5py.File(path + "/run0.h5", "a") as f:
        f["more"] = 1
    refused("run0.h5: the file has 2 datasets: name one with dataset=", "--concat=1")
    with open(path + "/run2.h5", "wb") as f:
        f.write(b"something else")
    refused("run2.h5", "--concat=1", "--dataset=x/y")


work = lib.setup()
lib.main()
