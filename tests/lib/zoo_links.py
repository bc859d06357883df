# SPDX-License-Identifier: BSD-2-Clause
"""Links of every kind, and names that no file can have."""
import os

import h5py
import numpy as np
from h5py import h5p, h5s, h5t, h5d

from checks import check, equal, read, same_bytes
from expect import Want, ZooFile, npy
from zoo import numbers

OURS = ["array.npy", "array.bin", "array.txt", "info.json", "samples",
        "blocks", "fields"]
NAMES = [b"...", b".hidden", b" ", b" x ", b"100%", b"%41", b"%2E%2E", b"a\nb",
         b"a\tb", b"caf\xe9", b"\xff\xfe", "gr\u00fcn".encode(), b"a\\b", b"~",
         b"*", b"-rf", b"a:b", b"a'b\"c", b"Data", b"data", b"000000.npy",
         "e\u0301".encode(), "\u00e9".encode(), b"\x01\x7f", b"x" * 255,
         b"x~" + b"0" * 16]
LONG = [b"n" * 256, b"n" * 300, b"n" * 299 + b"m", "\u20ac".encode() * 100,
        b"y" * 5000, b"\xff" * 256]


def val(n, shape=(5, 3)):
    """Values of their own for each dataset."""
    return numbers(shape, "<i4", n)


def put(f, name, v, **kw):
    """A dataset under a name of any bytes."""
    p = h5p.create(h5p.DATASET_CREATE)
    s = h5s.create_simple(v.shape)
    if isinstance(name, str):
        name = name.encode()
    d = h5d.create(f.id, name, h5t.py_create(v.dtype), s, p)
    d.write(h5s.ALL, h5s.ALL, v)


def same_file(paths):
    """The same bytes under several paths."""
    def run(m, _zf):
        first = read(m / (paths[0] + "/array.npy"))
        for p in paths[1:]:
            same_bytes(read(m / (p + "/array.npy")), first, p)
    return Want("custom", run=run)


def others(top):
    """The files that external links lead to."""
    os.makedirs(top + "/main/sub/deep")
    with h5py.File(top + "/main/one.h5", "w") as f:
        f["d"] = val(1)
        f["to_noise"] = h5py.ExternalLink("noise.h5", "/d")
        f["g/x"] = val(2)
        f["g/y/z"] = val(3)
        f["soft"] = h5py.SoftLink("/g/x")
        f["g"].attrs["who"] = "one"
    with h5py.File(top + "/main/sub/two.h5", "w") as f:
        f["d"] = val(4)
        f["near"] = h5py.ExternalLink("deep/three.h5", "/d")
        f["up"] = h5py.ExternalLink("../one.h5", "/d")
        f["g/through"] = h5py.ExternalLink("deep/three.h5", "/g")
    with h5py.File(top + "/main/sub/deep/three.h5", "w") as f:
        f["d"] = val(5)
        f["g/x"] = val(6)
        f["g/back"] = h5py.ExternalLink("../../main.h5", "/data/x")
    with h5py.File(top + "/side.h5", "w") as f:
        f["d"] = val(7)
    with open(top + "/main/noise.h5", "wb") as f:
        f.write(b"this is not HDF5" * 100)
    open(top + "/main/empty.h5", "wb").close()
    os.mkdir(top + "/main/directory.h5")
    with h5py.File("decoy.h5", "w") as f:  # in the working directory
        f["d"] = val(8)


def links(top):
    others(top)
    path = top + "/main/main.h5"
    soft, ext, z = h5py.SoftLink, h5py.ExternalLink, {}
    with h5py.File(path, "w") as f:
        f["data/x"] = val(10)
        f["data/inner/y"] = val(11)
        f["hard/x"] = f["data/x"]
        f["hard/inner"] = f["data/inner"]
        f["hard/again"] = f["data/inner"]
        table = {
            "soft/absolute": (soft("/data/x"), 10),
            "soft/of_soft": (soft("absolute"), 10),
            "soft/relative": (soft("below/y"), 12),
            "soft/dots": (soft("./below/./y"), 12),
            "soft/of_external": (soft("/external/same_directory"), 1),
            "soft/through_group": (soft("/soft/group/y"), 11),
            "soft/through_external": (soft("/external/group/y/z"), 3),
            "external/same_directory": (ext("one.h5", "/d"), 1),
            "external/no_slash": (ext("one.h5", "d"), 1),
            "external/dot": (ext("./one.h5", "/d"), 1),
            "external/soft_there": (ext("one.h5", "/soft"), 2),
            "external/subdirectory": (ext("sub/two.h5", "/d"), 4),
            "external/parent": (ext("../side.h5", "/d"), 7),
            "external/absolute": (ext(top + "/side.h5", "/d"), 7),
            "external/of_external": (ext("sub/two.h5", "/near"), 5),
            "external/of_external_up": (ext("sub/two.h5", "/up"), 1),
            "external/itself": (ext("main.h5", "/data/x"), 10),
        }
        f["soft/below/y"] = val(12)
        for name, (link, n) in table.items():
            f[name] = link
            z[name] = Want(value=val(n))
        f["soft/group"] = soft("/data/inner")
        z["soft/group/y"] = Want(value=val(11))
        f["external/group"] = ext("one.h5", "/g")
        z["external/group"] = Want("tree", names=["x", "y"],
                                   attrs={"who": "one"})
        z["external/group/x"] = Want(value=val(2))
        z["external/group/y/z"] = Want(value=val(3))
        f["external/root"] = ext("one.h5", "/")
        z["external/root/d"] = Want(value=val(1))
        z["external/root/g/x"] = Want(value=val(2))
        f["external/group_of_group"] = ext("sub/two.h5", "/g")
        z["external/group_of_group/through/x"] = Want(value=val(6))
        z["external/group_of_group/through/back"] = Want(value=val(10))
        f["external/moved"] = ext("/no/such/place/one.h5", "/d")
        z["external/moved"] = Want(value=val(1))  # by its last component
        dangling = {
            "no_file": (ext("missing.h5", "/d"), ["missing.h5"]),
            "no_file_below": (ext("sub/missing.h5", "/a/b"),
                              ["missing.h5"]),
            "no_object": (ext("one.h5", "/nothing/here"), ["one.h5"]),
            "working_directory": (ext("decoy.h5", "/d"), ["decoy.h5"]),
            "soft": (soft("/nothing/here"), ["nothing/here"]),
            "soft_below_dataset": (soft("/data/x/y"), ["x/y"]),
            "soft_of_dangling": (soft("/dangling/soft"), []),
            "soft_of_no_file": (soft("/dangling/no_file"), []),
            "itself": (soft("/dangling/itself"), []),
        }
        for name, (link, words) in dangling.items():
            f["dangling/" + name] = link
            z["dangling/" + name] = Want("link", words=words)
        # The file is there, so these are no dangling links: they are listed
        # with what is wrong, each alone.
        unreadable = {
            "not_hdf5": (ext("noise.h5", "/d"), "noise.h5"),
            "root_of_not_hdf5": (ext("noise.h5", "/"), "noise.h5"),
            "below_not_hdf5": (ext("noise.h5", "/a/b/c"), "noise.h5"),
            "empty": (ext("empty.h5", "/d"), "empty.h5"),
            "directory": (ext("directory.h5", "/d"), "directory.h5"),
            "of_external": (ext("one.h5", "/to_noise"), "noise.h5"),
            "below_external": (ext("one.h5", "/to_noise/x"), "noise.h5"),
            "soft": (soft("/unreadable/not_hdf5"), "noise.h5"),
            "soft_below": (soft("not_hdf5/x/y"), "noise.h5"),
            "soft_of_external": (soft("/unreadable/of_external"), "noise.h5"),
        }
        for name, (link, word) in unreadable.items():
            f["unreadable/" + name] = link
            z["unreadable/" + name] = Want("hidden", words=[word])
        z["unreadable"] = Want("tree", names=list(unreadable))
        for name in ("data/x", "hard/x"):
            z[name] = Want(value=val(10))
        for name in ("data/inner/y", "hard/inner/y", "hard/again/y"):
            z[name] = Want(value=val(11))
        z["soft"] = Want("tree", names=list(f["soft"]))
        z["dangling"] = Want("tree", names=list(f["dangling"]))
        z["hard/same"] = same_file(["data/x", "hard/x", "soft/absolute"])
    return ZooFile("links", path, z)


def finite(m, _zf):
    """The tree ends, whoever walks it, and cycles lead to where they should."""
    seen = 0
    for _, dirs, files in os.walk(m.path):
        seen += len(dirs) + len(files)
        check(seen < 5000, "a cycle is walked for ever")


def leads(link, to):
    def run(m, _zf):
        p = m / link
        check(os.path.islink(p), "not a symlink")
        equal(os.path.realpath(p), os.path.realpath(m / to), "leads to")
        same_bytes(read(os.path.join(p, os.path.relpath(m / "a/x", m / to),
                                     "array.npy")), npy(val(1)),
                   "data behind it")
    return Want("custom", run=run)


def cycles(top):
    path, z = top + "/cycles.h5", {}
    with h5py.File(path, "w") as f:
        f["a/x"] = val(1)
        f["a/self"] = f["a"]
        f["a/b/up"] = f["a"]
        f["a/b/root"] = f["/"]
        f["a/soft_self"] = h5py.SoftLink("/a")
        f["a/soft_root"] = h5py.SoftLink("/")
        f["a/dot"] = h5py.SoftLink(".")
        f["a/b/c/soft_up"] = h5py.SoftLink("/a/b")
        f["ext"] = h5py.ExternalLink("cycles-other.h5", "/")
        f["ping"] = h5py.ExternalLink("cycles-other.h5", "/pong")
    with h5py.File(top + "/cycles-other.h5", "w") as f:
        f["y"] = val(2)
        f["back"] = h5py.ExternalLink("cycles.h5", "/")
        f["itself"] = h5py.ExternalLink("cycles-other.h5", "/")
        f["pong"] = h5py.ExternalLink("cycles.h5", "/ping")
    for link, to in (("a/self", "a"), ("a/b/up", "a"), ("a/b/root", ""),
                     ("a/soft_self", "a"), ("a/soft_root", ""),
                     ("a/dot", "a")):
        z[link] = leads(link, to)
    z["a/x"] = Want(value=val(1))
    z["ext/y"] = Want(value=val(2))
    z["ext/back"] = leads("ext/back", "")
    z["ping"] = Want("link")
    z["finite"] = Want("custom", run=finite)
    return ZooFile("cycles", path, z)


def names(top):
    path, z = top + "/names.h5", {}
    with h5py.File(path, "w") as f:
        g = f.create_group("datasets")
        for i, n in enumerate(NAMES):
            put(g, n, val(i))
            z["datasets/" + os.fsdecode(n)] = Want(value=val(i),
                                                   readable=False)
        for i, n in enumerate(LONG + [b".."]):
            put(g, n, val(100 + i))
            z["datasets/escaped_%d" % i] = Want(
                value=val(100 + i), readable=False, stored=os.fsdecode(n))
        g = f.create_group("ours")
        for i, n in enumerate(OURS):
            put(g, n, val(200 + i))
            z["ours/" + n] = Want(value=val(200 + i), readable=False,
                                  stored=n)
    return ZooFile("names", path, z)


def group_names(top):
    """Groups with such names, and what is in them."""
    path, z = top + "/group-names.h5", {}
    table = OURS + ["...", "a\nb", "z" * 280, "caf\u00e9", "..", "%"]
    with h5py.File(path, "w") as f:
        for i, n in enumerate(table):
            g = f.create_group(n)
            put(g, "x", val(i))

            def run(m, _zf, i=i, n=n):
                want = n.encode()
                for e in os.listdir(os.fsencode(m.path)):
                    p = os.path.join(os.fsencode(m.path), e)
                    try:
                        name = os.getxattr(p, "user.tensorfs.name")
                    except OSError:
                        name = e
                    if name == want:
                        same_bytes(read(p + b"/x/array.npy"), npy(val(i)),
                                   "its x")
                        return
                check(False, "no directory has this name")
            z["group %d %s" % (i, n[:12])] = Want("custom", run=run)

        def listing(m, _zf):
            equal(len(os.listdir(m.path)), len(table), "entries")
    z["listing"] = Want("custom", run=listing)
    return ZooFile("group_names", path, z)


def orders(top):
    """Old and new groups, with and without creation order; many members."""
    out = []
    for libver in ("earliest", "latest"):
        path, z = "%s/groups-%s.h5" % (top, libver), {}
        with h5py.File(path, "w", libver=libver) as f:
            for track in (False, True):
                g = f.create_group("tracked" if track else "plain",
                                   track_order=track)
                for i in reversed(range(300)):
                    g["m%03d" % i] = np.int32(i)
                z[g.name[1:]] = Want("tree", names=["m%03d" % i
                                                    for i in range(300)])
                z[g.name[1:] + "/m123"] = Want(value=np.int32(123))
            f.create_group("empty")
            z["empty"] = Want("tree", names=[])
        out.append(ZooFile("groups-" + libver, path, z))
    return out


def make(top):
    return [links(top), cycles(top), names(top), group_names(top)] + \
        orders(top)
