# SPDX-License-Identifier: BSD-2-Clause
"""Parquet and Arrow, every column, by pyarrow or node's hyparquet and apache-arrow."""
import json
import math
import os
import shutil
import subprocess

import numpy as np

from against import arrays, found, texts
from against.found import DIFFERS, NOT_SHOWN, NO_ANSWER, ReaderFails

READER = "pyarrow"
PACKAGE = "pyarrow, or hyparquet and apache-arrow for node,"
ROWS = 2000             # files of samples/ that are compared
SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "columns.mjs")


class Skipped:
    """A value of a type that the reader has in another form than the mount (dates,
    decimals)."""

    def __init__(self, kind):
        self.kind = str(kind)


class Column:
    """Values of all rows as None, bool, int, float, str, bytes, list and dict.
    `text`: all are strings, by their type; `exact`: NaNs have all their bits."""

    def __init__(self, values, text=False, numbers=None):
        self.values, self.text = values, text
        self.numbers = numbers  # an array, bit by bit; None: make one of values


# --- pyarrow --------------------------------------------------------------------------

def _table(source):
    import pyarrow
    import pyarrow.parquet
    with open(source, "rb") as f:
        head = f.read(6)
    if head[:4] == b"PAR1":
        return pyarrow.parquet.ParquetFile(source).read()
    if head == b"ARROW1":
        return pyarrow.ipc.open_file(source).read_all()
    return pyarrow.ipc.open_stream(source).read_all()


def _plain(value, t):
    """A Python value of pyarrow's type t; dates and decimals are Skipped."""
    from pyarrow import types
    if value is None:
        return None
    if types.is_dictionary(t):
        return _plain(value, t.value_type)
    if types.is_map(t):
        return [{"key": _plain(k, t.key_type), "value": _plain(v, t.item_type)}
                for k, v in value]
    if types.is_nested(t) and isinstance(value, list):
        return [_plain(v, t.value_type) for v in value]
    if types.is_struct(t):
        return {f.name: _plain(value[f.name], f.type) for f in t}
    if isinstance(value, (bool, int, float, str, bytes)):
        return value
    return Skipped(t)


def _by_pyarrow(source):
    from pyarrow import types
    table = _table(source)
    for field, data in zip(table.schema, table.columns):
        numbers = None
        if (types.is_integer(field.type) or types.is_floating(field.type)) and \
                not data.null_count:
            numbers = data.to_numpy()
        string = types.is_string(field.type) or types.is_large_string(field.type)
        yield field.name, Column([_plain(v, field.type) for v in data.to_pylist()],
                                 string and not data.null_count, numbers)


# --- node -----------------------------------------------------------------------------

def _node(*argv):
    node = shutil.which("node")
    if not node:
        raise found.NoReader("neither pyarrow nor node is here")
    p = subprocess.run([node, SCRIPT, *argv], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = " ".join(p.stderr.decode("utf-8", "replace").split())
    if p.returncode == 3:
        raise found.NoReader("neither pyarrow nor " + said)
    if p.returncode:
        raise ReaderFails(said[-500:])
    return p.stdout


def _untag(x):
    """columns.mjs writes what JSON has not as objects with one key that begins #."""
    if isinstance(x, list):
        return [_untag(v) for v in x]
    if not isinstance(x, dict):
        return x
    if len(x) == 1:
        (key, value), = x.items()
        if key in UNTAG:
            return UNTAG[key](value)
    return {k: _untag(v) for k, v in x.items()}


UNTAG = {"#int": int, "#float": float, "#bytes": bytes.fromhex,
         "#other": Skipped}


def _by_node(source):
    for line in _node(source).decode("utf-8", "surrogatepass").splitlines():
        name, text, values = json.loads(line)
        yield name, Column(_untag(values), text and None not in values)


# --- which of them --------------------------------------------------------------------

def load_for(source):
    """The version of the reader for a file: that for Parquet, or for Arrow."""
    try:
        import pyarrow
        return "pyarrow %s" % pyarrow.__version__
    except ImportError:
        return _node("--version", source).decode().strip()


def _columns(source):
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return list(_by_node(source))
    return list(_by_pyarrow(source))


def probe(source):
    _columns(source)


def compare(c):
    columns = dict(c.ask("/", _columns, c.source))
    shown = c.look(found.stored_names, c.mount)
    for name, column in columns.items():
        if name not in shown:
            c.result(DIFFERS, name, "the mount does not list it")
            continue
        c.judge(name, lambda: compare_column(
            c, name, os.path.join(c.mount, shown[name]), column))
    for name in sorted(set(shown) - set(columns)):
        c.result(DIFFERS, name, "the reader does not list it")


def _skipped(x):
    """The first Skipped in a value; None."""
    if isinstance(x, Skipped):
        return x
    parts = x if isinstance(x, list) else x.values() if isinstance(x, dict) else ()
    return next((s for s in map(_skipped, parts) if s), None)


def compare_column(c, name, directory, column):
    names = set(c.look(os.listdir, directory))
    if names == {"info.json"}:
        info = json.loads(c.look(found.read_text, os.path.join(directory, "info.json")))
        return NOT_SHOWN, info.get("not_shown", "")
    skipped = _skipped(column.values)
    if skipped:
        return NO_ANSWER, "values of type %s are not compared" % skipped.kind
    if "array.npy" in names:
        return _compare_numbers(c, name, directory, column)
    if "array.txt" in names:
        return _compare_lines(c, name, directory, column)
    return _compare_files(c, name, directory, column)


def _same_nan(a):
    """Replaces each NaN by one and the same: the node readers lose its payload."""
    if a.dtype.kind == "f":
        a = a.copy()
        a[np.isnan(a)] = math.nan
    return a


def _array_of(values, t):
    """Values of the reader as an array of type t.  ValueError: they do not fit, so that
    NumPy would change them without a word."""
    raw = np.asarray(values)
    if raw.dtype == object and t.kind == "f":
        raw = np.asarray([math.nan if v is None else v for v in values])
    out = raw.astype(t)
    for i in np.flatnonzero((out != raw) & (raw == raw)):
        raise ValueError("value %d is %s" % (i, texts.short(raw.reshape(-1)[i])))
    return out


def _compare_numbers(c, name, directory, column):
    npy = c.look(arrays.Npy, os.path.join(directory, "array.npy"))
    try:
        if npy.dtype.kind == "V":
            want = np.frombuffer(b"".join(column.values), npy.dtype)
        else:
            want = _array_of(column.values if column.numbers is None
                             else column.numbers, npy.dtype)
    except (TypeError, ValueError, OverflowError) as e:
        return "an array of %s, which the values of the reader are not: %s" % (
            npy.dtype, e)
    if column.numbers is not None:
        return arrays.difference_of_types(npy.dtype, column.numbers.dtype) or \
            arrays.compare_array(c, name, directory, arrays.Tensor(
                want.shape, want.dtype, lambda i: want[i]))
    got = c.look(lambda _: npy.whole(), npy.path)
    return arrays.difference(_same_nan(got), _same_nan(want), 0, want.shape)


def _json(x):
    """A value as the mount has it in JSON."""
    if isinstance(x, list):
        return [_json(v) for v in x]
    if isinstance(x, dict):
        # hyparquet makes objects of maps, too, which here are lists of pairs.
        whole = {k: _json(v) for k, v in x.items()}
        return whole, [{"key": k, "value": v} for k, v in whole.items()]
    return x.hex() if isinstance(x, bytes) else x


def _compare_lines(c, name, directory, column):
    values = column.values
    tensor = arrays.Tensor((len(values),), None, lambda i: values[i[0]]
                           if isinstance(i[0], slice) else [values[i[0]]])
    if column.text:
        return texts.compare_lines(c, name, directory, tensor)
    wanted = [_json(v) for v in values]
    tensor.read = lambda i: wanted[i[0]]
    return texts.compare_json(c, name, directory, tensor)


def _bytes_of(value):
    """Returns the bytes of a binary value, or of a Hugging Face {bytes, path}."""
    if isinstance(value, dict):
        value = value.get("bytes")
    return b"" if value is None else value


def _compare_files(c, name, directory, column):
    """A file for each row: a sequence, or bytes."""
    top = os.path.join(directory, "samples")
    listed = {os.path.splitext(n)[0]: n for n in c.look(os.listdir, top)}
    n = len(column.values)
    if len(listed) != n:
        return "samples/ lists %d names, the reader has %d rows" % (len(listed), n)
    if n > ROWS:
        c.note("%s: %d of %d rows were compared" % (name, ROWS, n))
    for i in arrays.some_indices(n, ROWS, name):
        path = os.path.join(top, listed.get(arrays.number_name(i, n), "?"))
        value = column.values[i]
        if not isinstance(value, list) and not path.endswith(".npy"):
            if c.look(found.read_whole, path) != texts.to_bytes(_bytes_of(value)):
                return "row %d differs" % i
            continue
        npy = c.look(arrays.Npy, path)
        got = c.look(lambda _: npy.whole(), path)
        try:
            want = _array_of(value or [], npy.dtype)
        except (TypeError, ValueError, OverflowError) as e:
            return "row %d: %s" % (i, e)
        why = arrays.difference(_same_nan(got), _same_nan(want))
        if why:
            return "row %d: %s" % (i, why)
    return None

