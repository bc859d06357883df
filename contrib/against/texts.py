# SPDX-License-Identifier: BSD-2-Clause
"""Values that are text in a mount: lines of array.txt, sequences, and JSON."""
import json
import math
import os
import re

import numpy as np

from against import arrays, found

ROWS = 1 << 16          # values that a reader is asked for at a time
SEQUENCES = 2000        # of sequences with a file each


class Any:
    """A value of which the form in JSON is not laid down."""


ANY = Any()


# --- JSON -----------------------------------------------------------------------------

def _alike_real(got, want):
    if isinstance(want, np.longdouble):
        try:
            return np.longdouble(str(got)) == want or (want != want and got == "NaN")
        except ValueError:
            return False
    if math.isnan(want):
        return got == "NaN"
    if math.isinf(want):
        return got == ("Infinity" if want > 0 else "-Infinity")
    return isinstance(got, (int, float)) and not isinstance(got, bool) and \
        float(got) == want and math.copysign(1, got or want) == math.copysign(1, want)


def alike(got, want):
    """Is `got`, parsed from JSON, the value `want`?  Numbers exactly."""
    if want is ANY:
        return True
    if isinstance(want, tuple):     # one of several
        return any(alike(got, w) for w in want)
    if isinstance(want, dict):
        return isinstance(got, dict) and sorted(got) == sorted(want) and \
            all(alike(got[k], v) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and \
            all(alike(g, w) for g, w in zip(got, want))
    if isinstance(want, bool) or want is None:
        return got is want
    if isinstance(want, int):
        return got == (want if want < 2 ** 63 else str(want)) and \
            not isinstance(got, bool)
    if isinstance(want, (float, np.floating)):
        return _alike_real(got, want)
    return got == want


def short(x):
    text = x if isinstance(x, str) else repr(x)
    return text if len(text) <= 120 else text[:80] + " ... " + text[-30:]


# --- lines ----------------------------------------------------------------------------

def to_bytes(value):
    return value if isinstance(value, bytes) else \
        str(value).encode("utf-8", "surrogateescape")


def line_of(value):
    """A value as a line of array.txt."""
    return to_bytes(value).replace(b"\\", b"\\\\").replace(b"\n", b"\\n") + b"\n"


def rows_of(shape):
    """Slices of the first axis with about ROWS values each; () of a scalar."""
    if not shape:
        yield ()
        return
    inner = 1
    for n in shape[1:]:
        inner *= n
    step = max(1, ROWS // max(inner, 1))
    for at in range(0, shape[0], step):
        yield (slice(at, min(at + step, shape[0])),)


def compare_lines(c, name, directory, tensor):
    """array.txt, and some of samples/, of strings: tensor.read gives str or bytes."""
    path = os.path.join(directory, "array.txt")
    size = c.look(os.stat, path).st_size
    at = 0
    for index in rows_of(tensor.outer):
        values = c.ask(name, tensor.read, index)
        want = b"".join(map(line_of, np.asarray(values, object).reshape(-1)))
        c.reading(name)
        got = c.look(found.read_range, path, len(want), at)
        if got != want:
            return _first_line(got, want, at)
        at += len(want)
        if at > c.limit:
            c.note("%s: the first %d bytes were compared (--limit)" % (name, at))
            break
    else:
        if size != at:
            return "array.txt has %d bytes, the reader's lines %d" % (size, at)
    return _compare_text_samples(c, name, directory, tensor)


def _first_line(got, want, at):
    a, b = got.split(b"\n"), want.split(b"\n")
    i = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y),
             min(len(a), len(b)) - 1)
    return "array.txt differs behind byte %d: %s, the reader has %s" % (
        at, short(a[i].decode("utf-8", "replace")),
        short(b[i].decode("utf-8", "replace")))


def _compare_text_samples(c, name, directory, tensor):
    top = os.path.join(directory, "samples")
    if not tensor.outer or not tensor.outer[0] or not c.look(os.path.isdir, top):
        return None
    n = tensor.outer[0]
    why = None
    for i in arrays.some_indices(n, arrays.SAMPLES, name):
        path = os.path.join(top, arrays.number_name(i, n) + ".txt")
        if not c.look(os.path.exists, path):
            return None  # several axes: array.txt had them
        values = c.ask(name, tensor.read, (i,))
        want = b"".join(map(line_of, np.asarray(values, object).reshape(-1)))
        c.reading(name)
        got = c.look(found.read_whole, path)
        if got not in (want, want[:-1]):
            return "sample %d is %s, the reader has %s" % (
                i, short(got.decode("utf-8", "replace")),
                short(want.decode("utf-8", "replace")))
    return why


def compare_json(c, name, directory, tensor):
    """array.txt with a JSON value a line: tensor.read gives a list of them."""
    path = os.path.join(directory, "array.txt")
    number = 0
    with c.look(open, path, "rb") as f:
        for index in rows_of(tensor.outer):
            values = c.ask(name, tensor.read, index)
            c.reading(name)
            for want in values:
                line = c.look(lambda _: f.readline(), path)
                why = _compare_line(line, want, number)
                if why:
                    return why
                number += 1
        if c.look(lambda _: f.readline(), path):
            return "array.txt has more lines than the %d values of the reader" % number
    return None


def _compare_line(line, want, number):
    if not line.endswith(b"\n"):
        return "array.txt ends with line %d" % number
    try:
        got = json.loads(line)
    except ValueError as e:
        return "line %d is not JSON: %s" % (number, e)
    if not alike(got, want):
        return "line %d is %s, the reader has %s" % (number, short(got), short(want))
    return None


# --- sequences ------------------------------------------------------------------------

def compare_sequences(c, name, directory, tensor, element=None, other=None):
    """samples/ with a .npy for each sequence: tensor.read(index of numbers) gives one.
    `element`: their type, of which those that are empty say nothing themselves.
    other(value, element): what it may also be where the reader is known to be wrong."""
    shape = tensor.outer
    if not shape:
        return _compare_sequence(c, name, os.path.join(directory, "array.npy"), tensor,
                                 (), element, other)
    total = 1
    for n in shape:
        total *= n
    if total > SEQUENCES:
        c.note("%s: %d of %d sequences were compared" % (name, SEQUENCES, total))
    for i in arrays.some_indices(total, SEQUENCES, name):
        index = tuple(int(x) for x in np.unravel_index(i, shape))
        path = os.path.join(directory, "samples",
                            *[arrays.number_name(x, n) for x, n in zip(index, shape)])
        why = _compare_sequence(c, name, path + ".npy", tensor, index, element, other)
        if why:
            return "sequence %s: %s" % (", ".join(map(str, index)), why)
    return None


def _compare_sequence(c, name, path, tensor, index, element, other):
    value = c.ask(name, tensor.read, index)
    want = np.asarray([] if value is None else value, element)
    c.reading(name)
    npy = c.look(arrays.Npy, path)
    got = c.look(lambda _: npy.whole(), path)
    why = arrays.difference_of_types(got.dtype, want.dtype) or \
        arrays.difference(got, want)
    second = other(value, element) if why and other else None
    if second is not None and not arrays.difference(got, np.asarray(second, element)):
        c.note("%s: big-endian sequences are compared in either order of bytes, which "
               "h5py confuses" % name)
        return None
    return why


HEX = re.compile(r"(?:[0-9a-f]{2})+\Z")
DESCRIBED = re.compile(r"\(.*\)\Z", re.S)
