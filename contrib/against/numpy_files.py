# SPDX-License-Identifier: BSD-2-Clause
""".npy and .npz by NumPy: the array `data`, or members of a zip and their arrays."""
import os
import zipfile

from against import arrays, found, zip
from against.arrays import Tensor
from against.found import NEITHER, NOT_SHOWN, ReaderFails
from against.trees import Trees

READER = "numpy"
PACKAGE = "python3-numpy"


def load():
    try:
        import numpy
    except ImportError as e:
        raise found.NoReader(str(e)) from e
    return "numpy %s" % numpy.__version__


def probe(source):
    import numpy
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source):
            return
    numpy.load(source, mmap_mode="r", allow_pickle=False)


def compare(c):
    import numpy
    if zipfile.is_zipfile(c.source):
        _compare_zip(c)
        return
    c.judge("data", lambda: _compare_one(c, "data", os.path.join(c.mount, "data"),
                                         numpy.load, c.source))


def _compare_one(c, name, directory, load_array, *args):
    mapped = {"mmap_mode": "r"} if args else {}
    try:
        a = c.ask(name, lambda: load_array(*args, allow_pickle=False, **mapped))
    except ReaderFails as e:
        if not c.look(os.path.isdir, directory):
            return NEITHER, str(e)
        raise
    if not c.look(os.path.isdir, directory):
        return NOT_SHOWN, "there is no directory for this array"
    return arrays.compare_array(c, name, directory, Tensor(
        a.shape, a.dtype, lambda i: a[i]))


def _compare_zip(c):
    """The members as files; beside each NAME.npy the directory NAME."""
    with c.ask("/", zipfile.ZipFile, c.source) as z:
        expected = zip.expect(c, z)
        places = {n: n[:-4].replace("/", ":") for n in expected.entries
                  if n.endswith(".npy")}
        t = Trees(c, expected)
        tops = set(places.values())
        t.shown = {p: v for p, v in t.shown.items() if p.split("/")[0] not in tops}
        t.names()
        t.attributes()
        first = expected.first_paths()
        for number, read in zip.contents(c, z):
            if number in first:
                t.content(first[number], read)
        t.rest()
        for member, name in places.items():
            c.judge(name + "/", lambda: _compare_member(c, z, member, name))


def _compare_member(c, z, member, name):
    def load_array(allow_pickle):
        import numpy
        with z.open(member) as f:
            return numpy.lib.format.read_array(f, allow_pickle=allow_pickle)
    return _compare_one(c, name + "/", os.path.join(c.mount, name), load_array)
