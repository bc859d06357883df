# SPDX-License-Identifier: BSD-2-Clause
"""Zarr stores, in directories and in zip files, by the zarr package of Python."""
import json
import os
import zipfile

import numpy as np

from against import arrays, found, texts
from against.arrays import Tensor
from against.found import DIFFERS, NEITHER, NOT_SHOWN, UNREADABLE, ReaderFails

READER = "zarr"
PACKAGE = "python3-zarr"
MARKS = (".zgroup", ".zarray", ".zmetadata", "zarr.json")


def load():
    try:
        import zarr
    except ImportError as e:
        raise found.NoReader(str(e)) from e
    return "zarr %s" % zarr.__version__


def root_of_zip(names):
    """Where in a zip with these names a store is: "", a directory, or None."""
    tops = {n.split("/")[0] for n in names}
    if tops & set(MARKS):
        return ""
    if len(tops) == 1:
        top = tops.pop()
        if any(top + "/" + m in names for m in MARKS):
            return top
    return None


def open_store(source):
    """The group or array of a source."""
    import zarr
    if os.path.isdir(source):
        return zarr.open(source, mode="r")
    with zipfile.ZipFile(source) as z:
        top = root_of_zip(z.namelist())
    if top is None:
        raise ReaderFails("no metadata of Zarr is in the zip")
    return zarr.open(zarr.storage.ZipStore(source, mode="r"), mode="r", path=top)


def probe(source):
    open_store(source)


def is_array(node):
    return hasattr(node, "shape") and hasattr(node, "dtype")


def members(group):
    return dict(list(group.groups()) + list(group.arrays()))


def compare(c):
    node = c.ask("/", open_store, c.source)
    if is_array(node):
        # A store that is one array is shown as one directory.
        names = c.look(os.listdir, c.mount)
        at = c.mount if "info.json" in names else os.path.join(c.mount, names[0]) \
            if len(names) == 1 else c.mount
        compare_node(c, "/", at, node)
        return
    attributes(c, "/", c.mount, node, True)
    compare_group(c, "", c.mount, node, node)


def compare_group(c, name, directory, group, root):
    try:
        shown = c.look(found.stored_names, directory)
    except found.MountFails as e:
        c.result(UNREADABLE, name or "/", str(e))
        return
    try:
        below = c.ask(name or "/", members, group) if group is not None else {}
    except ReaderFails as e:
        c.result(found.NO_ANSWER, name or "/", str(e))
        return
    for member in sorted(set(below) | set(shown)):
        path = name + "/" + member
        if member not in shown:
            c.result(DIFFERS, path, "the mount does not list it")
        elif member in below:
            compare_node(c, path, os.path.join(directory, shown[member]),
                         below[member], root)
        else:
            _unlisted(c, path, os.path.join(directory, shown[member]), root)


def _unlisted(c, path, at, root):
    """What zarr does not list: a directory without metadata on the way to an array."""
    try:
        node = c.ask(path, lambda: root[path.strip("/")])
    except ReaderFails as e:
        if c.look(os.path.exists, os.path.join(at, "info.json")):
            c.result(found.NO_ANSWER, path, str(e))
        else:
            compare_group(c, path, at, None, root)
        return
    compare_node(c, path, at, node, root)


def compare_node(c, path, at, node, root=None):
    if is_array(node):
        c.judge(path, lambda: compare_array(c, path, at, node),
                lambda: arrays.drain(c, path, Tensor(node.shape, np.dtype(node.dtype),
                                                     lambda i: node[i])))
        attributes(c, path, at, node, False)
    else:
        attributes(c, path, at, node, True)
        compare_group(c, path, at, node, root)


def compare_array(c, path, at, a):
    info = json.loads(c.look(found.read_text, os.path.join(at, "info.json")))
    if "not_shown" in info and not c.look(
            os.path.exists, os.path.join(at, "array.npy")):
        try:
            c.ask(path, lambda: a[tuple(slice(0, 1) for _ in a.shape)])
        except ReaderFails as e:
            return NEITHER, "%s; %s" % (info["not_shown"], e)
        return NOT_SHOWN, info["not_shown"]
    return arrays.compare_array(c, path, at, Tensor(
        a.shape, np.dtype(a.dtype), lambda i: a[i]))


def attributes(c, path, at, node, is_group):
    try:
        want = c.ask(path, lambda: dict(node.attrs))
    except ReaderFails as e:
        c.result(found.NO_ANSWER, path + "@", str(e))
        return
    if not want:
        return
    try:
        if is_group:
            got = json.loads(c.look(os.getxattr, at, "user.tensorfs.attrs"))
        else:
            got = json.loads(c.look(found.read_text, os.path.join(
                at, "info.json"))).get("attributes", {})
    except (found.MountFails, ValueError) as e:
        c.result(UNREADABLE, path + "@", found.words_of(e))
        return
    for name, value in want.items():
        c.judge("%s@%s" % (path, name), lambda: _attribute(got, name, value))


def _attribute(got, name, want):
    if name not in got:
        return "the mount does not list it"
    if texts.alike(got[name], want):
        return None
    return "it is %s, the reader has %s" % (texts.short(got[name]), texts.short(want))
