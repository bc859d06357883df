# SPDX-License-Identifier: BSD-2-Clause
"""What a file of HDF5 should look like when it is mounted.

A zoo module has make(dir), which writes files and returns a list of ZooFile.
Each holds {path in the mount: Want}.  A Want says what the author of the file
knows; what it leaves out is asked from h5py (resolve), and what both know must
agree, else the zoo itself is wrong and the case says so.  Where h5py cannot
read, or lies (missing sources of virtual datasets), the author's word counts:
readable=False.

h5py reads in the test's process, whose working directory holds nothing of the
zoo: what it finds, it finds from where the files are.
"""
import io
import os

os.environ["HDF5_EXTFILE_PREFIX"] = "${ORIGIN}"  # before the library starts

import h5py
import numpy as np

from checks import Failure, check, short

h5py.File("-", "w", driver="core", backing_store=False).create_dataset("d", 1)
del os.environ["HDF5_EXTFILE_PREFIX"]  # for h5py here, not for the program


class Want:
    """One path of a mount.

    kind     array   numbers, structures, opaque: .npy files
             text    a value a line (value: array of str; lines as shown)
             json    a JSON value a line (value: array of Python values)
             ragged  sequences (value: object array of 1-D arrays)
             hidden  info.json alone, its not_shown has all of `words`
             link    a dangling symlink whose text has all of `words`
             tree    a directory; `names`, if given, are what it lists
             any     shown or hidden, but never a crash or a wrong size
             custom  run(mount) decides
    """

    def __init__(self, kind="array", value=None, *, h5=None, readable=True,
                 chunks=None, sparse=False, fill=None, parts=None, bad=None,
                 codes=(), lenient=False, words=(), fields=None, attrs=None,
                 info=None, names=None, run=None, also=(), cat=True,
                 stored=None, starts=False, blocks=True,
                 source_order=False):
        self.kind, self.value = kind, value
        self.h5 = h5              # path in the file, if not that in the mount
        self.readable = readable  # h5py gives the right values
        self.chunks, self.sparse, self.fill = chunks, sparse, fill
        self.parts = parts        # boxes of blocks of a virtual dataset
        self.bad = bad            # elements that must not be readable
        self.codes = tuple([codes] if isinstance(codes, int) else codes)
        self.lenient = lenient    # good elements may fail as well
        self.words = [words] if isinstance(words, str) else list(words)
        self.fields = fields or {}
        self.attrs = attrs or {}  # name: value, or a function that judges
        self.info = info or {}    # the same for keys of info.json
        self.names, self.run = names, run
        self.also = list(also)    # other right answers
        self.cat = cat
        self.stored = stored      # name in the file, if the mount escapes it
        self.source_order = source_order  # bytes as stored
        self.blocks = blocks      # chunks must be listed as blocks
        self.starts = starts      # lines begin with the value (regions)


class ZooFile:
    def __init__(self, name, path, wants, opts=(), env=None):
        self.name, self.path, self.wants = name, path, wants
        self.opts, self.env = list(opts), env


def boxes_of(*ranges):
    """((b, e), ...) for each block -> tuples of slices."""
    return [tuple(slice(b, e) for b, e in r) for r in ranges]


def plain(dtype):
    """The dtype without h5py's notes, little-endian, layout unchanged."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.dtype((plain(base), shape))
    if dtype.names is not None:
        return np.dtype({
            "names": list(dtype.names),
            "formats": [plain(dtype.fields[n][0]) for n in dtype.names],
            "offsets": [dtype.fields[n][1] for n in dtype.names],
            "itemsize": dtype.itemsize})
    if dtype.kind in "OV":
        return np.dtype(dtype.str)
    return np.dtype(dtype.newbyteorder("<").str)


def little(a):
    """The same values, little-endian; fields and padding stay in place."""
    a = np.asarray(a)
    t = plain(a.dtype)
    out = np.zeros(a.shape, t)
    if t.names is None:
        out[...] = a
    for n in t.names or ():
        out[n] = little(a[n])
    return out


def source_order(a):
    """As stored, without h5py's notes."""
    a = np.asarray(a)
    if a.dtype.names is not None:
        return a
    return a.view(np.dtype(a.dtype.str)) if a.dtype.kind != "O" else a


def npy(a):
    """What np.save writes for a C-ordered copy."""
    f = io.BytesIO()
    np.save(f, np.asarray(a).copy(order="C"), allow_pickle=False)
    return f.getvalue()


def header(a):
    """Length of the header in npy(a)."""
    return len(npy(a)) - a.nbytes


def element_mask(dtype):
    """One byte for each of an element: 1 where it is a value, 0 padding."""
    m = np.zeros(dtype.itemsize, "u1")
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.tile(element_mask(base), int(np.prod(shape)))
    if dtype.names is not None:
        for n in dtype.names:
            t, at = dtype.fields[n][:2]
            m[at:at + t.itemsize] = element_mask(t)
        return m
    m[:] = 1
    if dtype.kind in "fc" and dtype.itemsize in (16, 32) and \
            dtype != np.dtype("c16"):
        m.reshape(-1, 16)[:, 10:] = 0  # x86's long double has 80 bits
    return m


def mask_bytes(data, lead, dtype, off=0):
    """Blank what is padding in a window (at off) of `lead` bytes of header
    and elements behind: padding is nobody's data."""
    one = element_mask(dtype)
    if one.all():
        return bytes(data)
    a = np.frombuffer(bytes(data), "u1").copy()
    at = np.arange(off, off + a.size)
    inside = at >= lead
    a[inside] *= one[(at[inside] - lead) % dtype.itemsize]
    return a.tobytes()


def same_value(a, b):
    """Equal in every bit that is data."""
    a, b = little(a), little(b)
    return a.dtype == b.dtype and a.shape == b.shape and mask_bytes(
        a.tobytes(), 0, a.dtype) == mask_bytes(b.tobytes(), 0, b.dtype)


def path_of(f, ref):
    """The path that a reference means; nothing for a null one."""
    if not ref:
        return ""
    return f[ref].name


def text_value(f, d):
    """A dataset of strings or references, as lines."""
    a = d[()]
    t = d.dtype.subdtype[0] if d.dtype.subdtype else d.dtype
    if h5py.check_string_dtype(t):
        fix = lambda v: v.decode("utf-8", "surrogateescape") \
            if isinstance(v, bytes) else v
    else:
        fix = lambda v: path_of(f, v)
    out = np.empty(np.shape(a), object)
    flat = np.asarray(a, object).reshape(-1)
    out.reshape(-1)[:] = [fix(v) for v in flat]
    return out


def same_text(a, b):
    return np.shape(a) == np.shape(b) and \
        np.asarray(a, object).ravel().tolist() == \
        np.asarray(b, object).ravel().tolist()


def same_ragged(a, b):
    return np.shape(a) == np.shape(b) and all(
        same_value(x, y) for x, y in zip(np.ravel(a), np.ravel(b)))


def ask(path, name, kind):
    """What h5py reads."""
    with h5py.File(path, "r") as f:
        d = f[name]
        if kind == "text":
            return text_value(f, d)
        return d[()]


def resolve(path, name, w):
    """Fill in what the Want leaves to h5py; both must agree."""
    if w.kind not in ("array", "text", "ragged") or not w.readable:
        return
    got = ask(path, w.h5 or name, w.kind)
    if w.value is None:
        w.value = got
        return
    same = {"array": same_value, "text": same_text, "ragged": same_ragged}
    if w.starts or w.bad is not None:
        return
    if not same[w.kind](got, w.value):
        raise Failure("the zoo is wrong: written %s, h5py reads %s" % (
            short(w.value), short(got)))


def words_in(words, text, what):
    for word in words:
        check(str(word) in text, "%s does not say %r: %s" % (
            what, word, short(text)))


def judge(rule, got, what):
    """A rule is a value, or a function that says whether it likes `got`."""
    if callable(rule):
        check(rule(got), "%s: %s will not do" % (what, short(got)))
    else:
        check(got == rule, "%s: expected %s, got %s" % (
            what, short(rule), short(got)))


def near(v):
    """A number or nested list equal to v after rounding to v's type."""
    v = np.asarray(v)

    def f(got):
        try:
            return np.array_equal(np.asarray(got).astype(v.dtype), v)
        except (TypeError, ValueError, OverflowError):
            return False
    return f


def one_of(*values):
    return lambda got: any(got == v and type(got) == type(v) for v in values)


def like(prefix):
    return lambda got: isinstance(got, str) and got.startswith(prefix)


def anything(_got):
    return True
