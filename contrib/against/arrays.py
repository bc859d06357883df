# SPDX-License-Identifier: BSD-2-Clause
"""Arrays of a mount (array.npy, array.bin, samples/) against those of a reader.

Numbers are compared bit by bit, so that each NaN has to be the same NaN.  The order of
bytes is that of the types on either side, and padding of structures is not compared.
"""
import os
import random

import numpy as np

from against import found

STEP = 16 << 20         # bytes that are compared at a time
WINDOWS = 48            # pieces of an array that is too large to be compared whole
SAMPLES = 8             # files of samples/ that are compared
LISTED = 100000         # directories with more entries are not listed


# --- types ----------------------------------------------------------------------------

def plain(t):
    """A type as the mount has it: little-endian, without the notes of a library."""
    if t.subdtype:
        return np.dtype((plain(t.subdtype[0]), t.subdtype[1]))
    if t.names is not None:
        return np.dtype({"names": list(t.names),
                         "formats": [plain(t.fields[n][0]) for n in t.names],
                         "offsets": [t.fields[n][1] for n in t.names],
                         "itemsize": t.itemsize})
    if t.kind in "OV":
        return np.dtype(t.str)
    return np.dtype(t.newbyteorder("<").str)


def little(a):
    """Returns the values of `a` as an array of the type plain(a.dtype)."""
    a = np.asarray(a)
    t = plain(a.dtype)
    if t.names is None:
        return a.astype(t, copy=False)
    out = np.zeros(a.shape, t)
    for n in t.names:
        out[n] = little(a[n])
    return out


def _is_wide(t):
    """A long double of x86: 10 bytes of 16 are data."""
    return t.kind in "fc" and t.itemsize in (16, 32) and t != np.dtype("c16") and \
        np.finfo(np.longdouble).nmant == 63


def bytes_of(a):
    """Bytes of each element, what is padding left out; shape (elements, bytes)."""
    a = np.ascontiguousarray(a)
    if not a.nbytes:
        return np.zeros((a.size, a.dtype.itemsize), "u1")
    flat = a.reshape(-1).view("u1").reshape(a.size, a.dtype.itemsize)
    if _is_wide(a.dtype):
        flat = flat.reshape(a.size, -1, 16)[:, :, :10].reshape(a.size, -1)
    return flat


def difference_of_types(got, want):
    """What differs between two types as words; None: nothing that matters.  Fields may
    be in another order, and at other places."""
    got, want = plain(got), plain(want)
    if got == want:
        return None
    if got.names is not None and want.names is not None:
        if sorted(got.names) != sorted(want.names):
            return "fields are %s, the reader has %s" % (got.names, want.names)
        for n in want.names:
            why = difference_of_types(got.fields[n][0], want.fields[n][0])
            if why:
                return "field %s: %s" % (n, why)
        return None
    if got.subdtype and want.subdtype and got.subdtype[1] == want.subdtype[1]:
        return difference_of_types(got.subdtype[0], want.subdtype[0])
    if want.kind in "Mm" and got == np.dtype("<i8"):
        return None  # a date is shown as its number
    if "V" in (got.kind, want.kind) and got.itemsize == want.itemsize and \
            got.names is None and want.names is None:
        return None  # bytes that only one side has a name for
    return "the type is %s, the reader has %s" % (got, want)


def difference(got, want, first=0, shape=None):
    """Where two arrays of one shape differ, as a sentence; None: nowhere.  `first` is
    the number of their first element in the array of `shape`."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return "the shape is %s, the reader has %s" % (got.shape, want.shape)
    if want.dtype.names is not None and got.dtype.names is not None:
        for n in want.dtype.names:
            why = difference(got[n], want[n], first, None)
            if why:
                return "field %s: %s" % (n, why)
        return None
    if want.dtype.kind in "Mm":
        want = want.astype(plain(want.dtype)).view("<i8")
    got, want = little(got), little(want)
    a, b = bytes_of(got), bytes_of(want)
    if a.shape != b.shape:
        return "elements have %d bytes, those of the reader %d" % (
            a.shape[1], b.shape[1])
    if np.array_equal(a, b):
        return None
    rows = np.flatnonzero((a != b).any(axis=1))
    at = int(rows[0])
    where = first + at
    if shape:
        where = tuple(int(i) for i in np.unravel_index(where, shape))
    return "%d of %d elements differ, the first at %s: %s (%s), the reader has %s " \
        "(%s)" % (len(rows), len(a), where, got.reshape(-1)[at],
                  a[at].tobytes().hex()[:32], want.reshape(-1)[at],
                  b[at].tobytes().hex()[:32])


# --- .npy files -----------------------------------------------------------------------

class Npy:
    """The header of a .npy file: shape, dtype, and where the data begin."""

    def __init__(self, path):
        with open(path, "rb") as f:
            try:
                self._read(f)
            except (ValueError, EOFError, SyntaxError) as e:
                raise OSError(22, "not a .npy file: %s" % e, path) from e
            self.start = f.tell()
        self.path = path
        self.bytes = self.start + self.count * self.dtype.itemsize

    def _read(self, f):
        version = np.lib.format.read_magic(f)
        reader = {(1, 0): np.lib.format.read_array_header_1_0,
                  (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if reader is None:
            # 3.0, for names of fields that are not Latin-1.
            self.shape, fortran, self.dtype = np.lib.format._read_array_header(
                f, version=version)
        else:
            self.shape, fortran, self.dtype = self._header(f, reader)
        if fortran:
            raise ValueError("it is in Fortran order")
        self.count = 1
        for n in self.shape:
            self.count *= n

    @staticmethod
    def _header(f, reader):
        try:
            return reader(f, max_header_size=1 << 28)
        except TypeError:  # before NumPy 1.24 there was no limit
            return reader(f)

    def elements(self, first, n):
        """n elements from number `first` on, flat."""
        size = self.dtype.itemsize
        data = found.read_range(self.path, n * size, self.start + first * size)
        if len(data) != n * size:
            raise OSError(5, "short: %d bytes of %d at %d" % (
                len(data), n * size, self.start + first * size), self.path)
        return np.frombuffer(data, self.dtype, n) if size else np.zeros(n, self.dtype)

    def whole(self):
        return self.elements(0, self.count).reshape(self.shape)


# --- pieces of a large array ----------------------------------------------------------

class Pieces:
    """An array cut into runs of elements that follow each other, of STEP bytes or less:
    pieces number 0 to count - 1."""

    def __init__(self, shape, itemsize, step=STEP):
        self.shape = shape
        axis, inner = len(shape), max(itemsize, 1)
        while axis and inner * shape[axis - 1] <= step:
            axis -= 1
            inner *= shape[axis]
        self.axis = axis - 1                    # is cut; -1: the array is one piece
        self.count = 1
        if axis:
            self.rows = max(1, step // max(inner, 1))
            self.cuts = -(-shape[self.axis] // self.rows)
            self.leading = shape[:self.axis]
            for n in self.leading:
                self.count *= n
            self.count *= self.cuts
        if 0 in shape:
            self.count = 0

    def piece(self, i):
        """(index for the reader, number of its first element, elements)."""
        total = 1
        for n in self.shape:
            total *= n
        if self.axis < 0:
            return (), 0, total
        outer, cut = divmod(i, self.cuts)
        index = []
        for n in reversed(self.leading):
            outer, at = divmod(outer, n)
            index.insert(0, at)
        begin = cut * self.rows
        end = min(begin + self.rows, self.shape[self.axis])
        inner = 1
        for n in self.shape[self.axis + 1:]:
            inner *= n
        first = 0
        for n, at in zip(self.leading, index):
            first = first * n + at
        first = (first * self.shape[self.axis] + begin) * inner
        return tuple(index) + (slice(begin, end),), first, (end - begin) * inner

    def chosen(self, bytes_of_all, limit, seed):
        """Numbers of the pieces to compare, and whether these are all."""
        if bytes_of_all <= limit or self.count <= WINDOWS:
            return range(self.count), True
        rng = random.Random(seed)
        some = {0, self.count - 1}
        while len(some) < WINDOWS:
            some.add(rng.randrange(self.count))
        return sorted(some), False


# --- the files of a tensor ------------------------------------------------------------

class Tensor:
    """An array of the reader: `read(index)` gives the elements of a piece, index being
    a tuple of numbers and one slice for the first axes.  `inner`: axes that each
    element of the reader has itself, which follow its own in the mount.
    doubt(got, want) is asked about two pieces that differ.  It returns None if they do
    differ, "" if that is no fault, and else (result, sentence)."""

    def __init__(self, shape, dtype, read, inner=(), doubt=lambda got, want: None):
        self.outer, self.inner = tuple(shape), tuple(inner)
        self.doubt = doubt
        self.shape = self.outer + self.inner
        self.dtype, self.read = dtype, read


def compare_array(c, name, directory, tensor):
    """array.npy, array.bin and samples/ in a tensor's directory: None, or what
    differs."""
    path = os.path.join(directory, "array.npy")
    npy = c.look(Npy, path)
    if npy.shape != tensor.shape:
        return "the shape is %s, the reader has %s" % (npy.shape, tensor.shape)
    why = difference_of_types(npy.dtype, tensor.dtype)
    if why:
        return why
    size = c.look(os.stat, path).st_size
    if size != npy.bytes:
        return "array.npy has %d bytes, its header says %d" % (size, npy.bytes)
    return _compare_pieces(c, name, npy, tensor) or \
        _compare_samples(c, name, directory, tensor)


def drain(c, name, tensor):
    """Read an array by the reader: all of it, or as much as is compared."""
    size = max(tensor.dtype.itemsize, 1)
    pieces = Pieces(tensor.shape, size)
    total = size
    for n in tensor.shape:
        total *= n
    for i in pieces.chosen(total, c.limit, name)[0]:
        c.ask(name, tensor.read, pieces.piece(i)[0])


def _compare_pieces(c, name, npy, tensor):
    one = max(tensor.dtype.itemsize, npy.dtype.itemsize)
    for n in tensor.inner:
        one *= n
    pieces = Pieces(tensor.outer, one)
    chosen, whole = pieces.chosen(npy.bytes, c.limit, name)
    if not whole:
        c.note("%s: %d of %d pieces were compared (--limit)" % (
            name, len(chosen), pieces.count))
    binary = os.path.join(os.path.dirname(npy.path), "array.bin")
    inner = 1
    for n in tensor.inner:
        inner *= n
    for k, i in enumerate(chosen):
        index, first, n = pieces.piece(i)
        want = c.ask(name, tensor.read, index)
        c.reading(name)
        first, n = first * inner, n * inner
        got = c.look(lambda _: npy.elements(first, n), npy.path)
        want = np.asarray(want).reshape(-1)
        why = difference(got, want, first, tensor.shape)
        if why:
            doubt = tensor.doubt(got, want)
            if doubt != "":
                return doubt or why
        if k in (0, len(chosen) - 1) and npy.dtype.itemsize:
            why = _compare_binary(c, binary, got, first, npy)
            if why:
                return why
    return None


def _compare_binary(c, path, want, first, npy):
    """A piece of array.bin, which is array.npy without its header."""
    size = npy.dtype.itemsize
    if c.look(os.stat, path).st_size != npy.bytes - npy.start:
        return "array.bin is not as long as the data of array.npy"
    got = c.look(found.read_range, path, want.nbytes, first * size)
    if got != want.tobytes():
        return "array.bin differs from array.npy in or behind element %d" % first
    return None


def number_name(i, n):
    """How the mount spells index i of an axis of n."""
    return "%0*d" % (max(6, len(str(max(n - 1, 0)))), i)


def some_indices(n, k, seed):
    """The first, the last, and others between: k of n."""
    if n <= k:
        return list(range(n))
    rng = random.Random(seed)
    return sorted({0, n - 1, *(rng.randrange(n) for _ in range(k - 2))})


def check_names(c, directory, n, endings=("",)):
    """Does a directory list the numbers of n samples?  A sentence if not."""
    if n > LISTED:
        return None
    got = sorted(c.look(os.listdir, directory))
    want = [number_name(i, n) for i in range(n)]
    if not any(got == [w + e for w in want] for e in endings):
        return "%s lists %d names, not the %d samples" % (
            os.path.basename(directory) or directory, len(got), n)
    return None


def _compare_samples(c, name, directory, tensor):
    top = os.path.join(directory, "samples")
    if not tensor.outer or 0 in tensor.shape or not c.look(os.path.isdir, top):
        return None
    for i in some_indices(tensor.shape[0], SAMPLES, name):
        why = _compare_sample(c, name, top, tensor, (i,))
        if why:
            return why
    return None


def _compare_sample(c, name, top, tensor, index):
    """The sample at `index`; a directory in its place has the next axis."""
    n = tensor.shape[len(index) - 1]
    path = os.path.join(top, number_name(index[-1], n))
    if c.look(os.path.isdir, path):
        why = check_names(c, top, n)
        if why or len(index) >= len(tensor.outer):
            return why or "samples/ has more axes than the array"
        for i in some_indices(tensor.shape[len(index)], 2, name):
            why = why or _compare_sample(c, name, path, tensor, index + (i,))
        return why
    why = check_names(c, top, n, (".npy",))
    if why:
        return why
    npy = c.look(Npy, path + ".npy")
    want = np.asarray(c.ask(name, tensor.read, index))
    c.reading(name)
    got = c.look(lambda _: npy.whole(), npy.path)
    why = difference(got, want.reshape(tensor.shape[len(index):]))
    if why and tensor.doubt(got.reshape(-1), want.reshape(-1)) == "":
        return None
    return why and "sample %s: %s" % (", ".join(map(str, index)), why)
