#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Archives together: several sources, unions, versions, archives in archives,
directories of archives; the commands; a warm epoch; a training loop."""
import errno
import functools
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import arc
import lib
import tree
from arc import one, scratch, sh, some
from checks import (Failure, check, equal, fails_with, flatten, note, read,
                    same_bytes)
from heldlib import all_kept
from lib import Mount, exits, run, tensorfs

PYTHON = "/usr/bin/python3"


def text_file(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def directory(files):
    """{name: content} as a directory with one time everywhere."""
    d = scratch("dir")
    for n, data in files.items():
        p = os.path.join(d, n)
        os.makedirs(os.path.dirname(p), exist_ok=True)
        with open(p, "wb") as f:
            f.write(data)
    for top, dirs, names in os.walk(d, topdown=False):
        for n in names + ["."]:
            os.utime(os.path.join(top, n), (1500000000, 1500000000))
    return d


def pack(src, name, where=None):
    """`name` says as what: .tar, .tar.gz, ..., .sqfs."""
    out = os.path.join(where or scratch("pack"), name)
    if name.endswith(".sqfs"):
        sh("mksquashfs", src, out, "-noappend", "-no-progress", "-quiet")
        return out
    kind = name.rsplit(".tar", 1)[1]
    tool = {"": None, ".gz": "gzip", ".bz2": "bzip2", ".xz": "xz",
            ".zst": "zstd", ".lz4": "lz4"}[kind]
    data = sh("tar", "-c", "--format=gnu", "-C", src, *sorted(os.listdir(src)))
    with open(out, "wb") as f:
        f.write(sh(tool, "-c", input=data) if tool else data)
    return out


def h5_bytes(values):
    b = io.BytesIO()
    with h5py.File(b, "w") as f:
        f.create_dataset("data", data=values, chunks=True, compression="gzip")
    return b.getvalue()


VALUES = np.arange(6000, dtype="<f4").reshape(10, 20, 30)


def npy(a):
    b = io.BytesIO()
    np.save(b, a)
    return b.getvalue()


def inside(m, path):
    """The directory that an archive named `path` became: of the same name, or
    without the suffix."""
    p = m / path
    if os.path.isdir(p):
        return p
    stem = p
    for s in (".gz", ".bz2", ".xz", ".zst", ".lz4", ".tar", ".sqfs", ".h5"):
        stem = stem[:-len(s)] if stem.endswith(s) else stem
        if stem != p and os.path.isdir(stem):
            return stem
    raise Failure("%s is no directory; there are %s" % (
        path, sorted(os.listdir(os.path.dirname(p)))[:10]))


# --- several sources ----------------------------------------------------------------

@functools.lru_cache(None)
def three():
    """Directories that overlap, and their archives, one of each kind."""
    dirs = [directory({"a": b"a%d" % i * 3000, "d/only%d" % i: b"only",
                       "d/both": b"both %d" % i * (i + 1),
                       "x%d/y" % i: b"deep"}) for i in range(3)]
    return dirs, [pack(d, n) for d, n in zip(dirs, (
        "one.tar", "two.sqfs", "three.tar.zst"))]


def several():
    dirs, archives = three()
    with Mount(None, sources=archives) as m:
        equal(len(os.listdir(m.path)), 3, "directories in the root (%s)" %
              os.listdir(m.path))
        for d, t in zip(dirs, archives):
            tree.same(inside(m, os.path.basename(t)), d, root=False)


def one_name():
    """Two sources of one name: no directory is both."""
    d, e = directory({"f": b"1"}), directory({"f": b"2"})
    p = tensorfs("mount", pack(d, "same.tar"), pack(e, "same.tar"),
                 scratch("m"))
    exits(p, 2, "two sources of one name")
    check("same.tar" in p.stderr, "the sentence: " + p.stderr)


def with_tensor():
    """An archive and an HDF5 file."""
    d = directory({"f": b"1", "t.h5": h5_bytes(VALUES)})
    with Mount(None, sources=[pack(d, "a.tar"), d + "/t.h5"]) as m:
        same_bytes(read(inside(m, "a.tar") + "/f"), b"1", "f")
        same_bytes(read(inside(m, "t.h5") + "/data/samples/000003.npy"),
                   npy(VALUES[3]), "a sample")


def one_is_bad():
    """A source that is nothing: exit 3 and its name."""
    bad = os.path.join(scratch("bad"), "bad.tar")
    with open(bad, "wb") as f:
        f.write(os.urandom(5000))
    d = scratch("m")
    p = tensorfs("mount", three()[1][0], bad, d)
    lib.force_unmount(d)
    exits(p, 3, "mount with a bad source")
    check("bad.tar" in p.stderr, "the sentence: " + p.stderr)


def many_shards():
    """100 shards as one tree: every name from its shard."""
    shards = [pack(directory({"s/%03d-%d.bin" % (i, k): b"%d.%d" % (i, k)
                              for k in range(20)}), "s-%03d.tar" % i)
              for i in range(100)]
    with Mount(None, sources=shards, opts=["-o", "union"]) as m:
        equal(len(os.listdir(m / "s")), 2000, "names")
        for i, k in ((0, 0), (99, 19), (50, 7)):
            same_bytes(read(m / ("s/%03d-%d.bin" % (i, k))),
                       b"%d.%d" % (i, k), "a sample")


def union(order):
    """The later source wins; directories are merged."""
    dirs, archives = three()
    want = scratch("union")
    for i in order:
        sh("cp", "-a", dirs[i] + "/.", want)
    with Mount(None, sources=[archives[i] for i in order],
               opts=["-o", "union"]) as m:
        tree.same(m.path, want, root=False)
        tree.lookups(m.path, want)
    p = tensorfs("ls", "-R", archives[0])
    exits(p, 0, "ls -R")


def union_of_kinds():
    """A file where there was a directory, and the reverse."""
    a = pack(directory({"x": b"file", "y/in": b"dir"}), "a.tar")
    b = pack(directory({"x/in": b"dir", "y": b"file"}), "b.tar")
    with Mount(None, sources=[a, b], opts=["--union"]) as m:
        equal(sorted(os.listdir(m.path)), ["x", "y"], "names")
        same_bytes(read(m / "x/in"), b"dir", "x/in")
        check(os.path.isfile(m / "y") or os.listdir(m / "y") == ["in"],
              "y is neither the file nor the directory")


def union_keeps_all_attributes():
    """A member may have more extended attributes than any fixed table holds."""
    names = ["user.a%03d" % i for i in range(100)]
    path = scratch("attributes") + "/a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as t:
        one = tarfile.TarInfo("f")
        one.pax_headers = {"SCHILY.xattr." + n: n[::-1] for n in names}
        t.addfile(one)
    other = pack(directory({"g": b"g"}), "b.tar")
    with Mount(None, sources=[path, other], opts=["--union"]) as m:
        equal(sorted(os.listxattr(m / "f")), names, "names of attributes")
        for n in names:
            equal(os.getxattr(m / "f", n), n[::-1].encode(), n)


def union_links():
    """Hard links stay in their source; equal inode numbers do not meet."""
    dirs = []
    for i in range(2):
        d = directory({"l%d" % i: b"%d" % i * 100, "common": b"c%d" % i})
        os.link(d + "/l%d" % i, d + "/m%d" % i)
        os.symlink("l%d" % i, d + "/s%d" % i)
        dirs.append(d)
    with Mount(None, sources=[pack(dirs[0], "a.tar"), pack(dirs[1], "b.sqfs")],
               opts=["--union"]) as m:
        st = [os.stat(m / n) for n in ("l0", "m0", "l1", "m1")]
        equal([s.st_nlink for s in st], [2] * 4, "nlink")
        equal((st[0].st_ino, st[2].st_ino), (st[1].st_ino, st[3].st_ino),
              "inodes of links")
        check(st[0].st_ino != st[2].st_ino, "one inode in two sources")
        same_bytes(read(m / "s1"), b"1" * 100, "s1")
        same_bytes(read(m / "common"), b"c1", "common")


def versions():
    """-o versions: what a later member replaces is NAME.versions/1 and so on;
    without, it is gone."""
    t, f = os.path.join(scratch("v"), "v.tar"), scratch("f")
    for i in range(3):
        text_file(f + "/d/f", "version %d" % i)
        sh("tar", "-r" if i else "-c", "-f", t, "-C", f, "d/f")
    with Mount(t) as m:
        same_bytes(read(m / "d/f"), b"version 2", "d/f")
        equal(os.listdir(m / "d"), ["f"], "names")
    for _ in range(2):
        with Mount(t, opts=["-o", "versions"]) as m:
            same_bytes(read(m / "d/f"), b"version 2", "d/f")
            d = m / "d/f.versions"
            check({b"version 0", b"version 1"} <=
                  {read(os.path.join(d, n)) for n in os.listdir(d)},
                  "earlier ones in d/f.versions")
            same_bytes(read(d + "/1"), b"version 0", "the first")


def together():
    for f in (several, one_name, with_tensor, one_is_bad, many_shards):
        one("several:" + f.__name__.replace("_", "-"), f)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2)):
        one("union:" + "".join(map(str, order)), union, order)
    one("union:kinds", union_of_kinds)
    one("union:attributes", union_keeps_all_attributes)
    one("union:links", union_links)
    one("versions", versions)


# --- archives in archives -----------------------------------------------------------

R = ["-o", "recursive"]


def classes(n, k):
    return [directory({"n%04d_%d.JPEG" % (i, j): b"%d/%d" % (i, j) * (j + 50)
                       for j in range(k)}) for i in range(n)]


def imagenet(sub):
    """A tar of tars: at its root, and in sub-directories."""
    outer, dirs = scratch("outer"), classes(40, 25)
    where = os.path.join(outer, sub)
    os.makedirs(where, exist_ok=True)
    for i, d in enumerate(dirs):
        pack(d, "n%04d.tar" % i, where)
    t = pack(outer, "ILSVRC.tar")
    for _ in range(2):
        with Mount(t, opts=R) as m:
            equal(len(os.listdir(m / sub)), 40, "classes")
            for i in random.Random(1).sample(range(40), 8):
                tree.same(inside(m, os.path.join(sub, "n%04d.tar" % i)),
                          dirs[i], root=False)
            arc.alive(m)
    with Mount(t) as m:  # without -o recursive they are files
        tree.same(m.path, outer, root=False, mtime=10**9)


def nested(inner, outer):
    """One kind in another; with the index only in the full tier, but for tar."""
    d = arc.packed_tree()
    o = scratch("outer")
    pack(d, "in" + inner, o)
    text_file(o + "/plain", "plain")
    t = pack(o, "out" + outer)
    for _ in range(2 if lib.full() or outer == ".tar" else 1):
        with Mount(t, opts=R + ["--cache-size=24M"]) as m:
            p = inside(m, "in" + inner)
            tree.same(p, d, root=False)
            tree.read_together(p, d, reads=20 if lib.full() else 5)
            same_bytes(read(m / "plain"), b"plain", "plain")


def nested_tensor(outer):
    """HDF5 in an archive: a directory of samples."""
    t = pack(directory({"d/t.h5": h5_bytes(VALUES), "x": b"x"}),
             "out" + outer)
    with Mount(t, opts=R) as m:
        p = inside(m, "d/t.h5")
        same_bytes(read(p + "/data/samples/000007.npy"), npy(VALUES[7]),
                   "a sample")
        same_bytes(read(p + "/data/array.npy"), npy(VALUES), "array.npy")
        same_bytes(read(m / "x"), b"x", "x")
    with Mount(t) as m:
        check(os.path.isfile(m / "d/t.h5"), "without recursive it is a file")


def deep():
    """Three levels, of three kinds; and 12 levels of tar."""
    d = directory({"f": b"at the bottom"})
    a = directory({"p": b"p"})
    pack(d, "a.tar", a)
    b = directory({"q": b"q"})
    pack(a, "b.sqfs", b)
    t = pack(b, "c.tar.gz")
    with Mount(t, opts=R) as m:
        p = inside(m, "b.sqfs")
        q = inside(m, os.path.relpath(p, m.path) + "/a.tar")
        same_bytes(read(q + "/f"), b"at the bottom", "f")
        same_bytes(read(p + "/p"), b"p", "p")
    for i in range(12):
        e = directory({"level": b"%d" % i})
        shutil.copy(pack(d, "n.tar"), e)
        d = e
    with Mount(pack(d, "n.tar"), opts=R) as m:
        p = m.path
        for i in range(11, -1, -1):
            same_bytes(read(p + "/level"), b"%d" % i, "level")
            p = inside(m, os.path.relpath(p + "/n.tar", m.path))
        same_bytes(read(p + "/f"), b"at the bottom", "f")
    for i in range(6):
        e = directory({"level": b"%d" % i})
        shutil.copy(pack(d, "n.tar"), e)
        d = e
    with Mount(pack(d, "n.tar"), opts=R) as m:
        p, n = m.path, 0
        while os.path.isdir(p + "/n.tar"):
            p, n = p + "/n.tar", n + 1
        equal(n, 16, "levels; an archive may have itself in it")
        check(os.path.isfile(p + "/n.tar"), "what is deeper is a file")


def damaged_inside(p, name):
    """Nothing in it can be listed, or nothing can be read."""
    try:
        for f in os.listdir(p):
            got = read(os.path.join(p, f))
            raise Failure("%s/%s: %d bytes can be read" % (name, f, len(got)))
    except OSError as e:
        check(e.errno in (errno.EIO, errno.EBADMSG), "%s: %s" % (name, e))


def not_archives():
    """Names that promise an archive, without one inside: files, as they are;
    one that is damaged is a file, or a directory with errors, and the rest
    works."""
    noise = random.Random(1).randbytes(3000)
    files = {"empty.tar": b"", "text.tar": b"this is no archive\n" * 100,
             "noise.sqfs": noise, "short.h5": b"\x89HDF\r\n\x1a\n",
             "noise.tar.gz": b"\x1f\x8b\x08\0" + noise,
             "good": b"good"}
    t = pack(directory(files), "out.tar")
    with Mount(t, opts=R) as m:
        same_bytes(read(m / "good"), b"good", "good")
        for n, data in files.items():
            p = m / n
            if os.path.isdir(p):  # it begins as one, and is damaged
                check(n not in ("empty.tar", "text.tar"), n + " is shown as "
                      "an archive")
                damaged_inside(p, n)
                continue
            try:
                same_bytes(read(p), data, n)
            except OSError as e:
                raise Failure("%s cannot be read: %s" % (n, e))
        arc.alive(m)


def collision():
    """f.tar beside a directory f: both are there."""
    o = directory({"f/own": b"own", "g": b"g"})
    pack(directory({"in": b"in"}), "f.tar", o)
    with Mount(pack(o, "o.tar"), opts=R) as m:
        same_bytes(read(m / "f/own"), b"own", "f/own")
        found = [os.path.join(d, n) for d, _, ns in os.walk(m.path)
                 for n in ns if n == "in"]
        equal(len(found), 1, "names of the file in f.tar")


def source_directory():
    """A plain directory as a source: archives and HDF5 files in it become
    directories, the rest stays as it is."""
    files = {"plain.txt": b"plain", "sub/more.bin": os.urandom(300000),
             "sub/t.h5": h5_bytes(VALUES), "empty": b""}
    d = directory(files)
    inner = directory({"f": b"in the archive", "g/h": b"deeper"})
    pack(inner, "a.tar", d)
    pack(inner, "b.sqfs", d + "/sub")
    pack(inner, "c.tar.zst", d)
    os.symlink("plain.txt", d + "/sym")
    with Mount(d) as m:
        for n in ("plain.txt", "sub/more.bin", "empty"):
            same_bytes(read(m / n), files[n], n)
        for n in ("a.tar", "sub/b.sqfs", "c.tar.zst"):
            tree.same(inside(m, n), inner, n, root=False)
        same_bytes(read(inside(m, "sub/t.h5") + "/data/samples/000002.npy"),
                   npy(VALUES[2]), "a sample")
        same_bytes(read(m / "sym"), b"plain", "what the symlink leads to")
        tree.scan(m.path, listing=tree.listing_of(m.path))


def within():
    for sub in some(("train", "")):
        one("imagenet:" + (sub or "root"), imagenet, sub)
    for inner, outer in ((".tar.gz", ".tar"), (".sqfs", ".tar"),
                         (".tar", ".tar.gz"), (".tar", ".tar.zst"),
                         (".tar", ".sqfs"), (".sqfs", ".tar.xz"),
                         (".tar.zst", ".sqfs"), (".tar.bz2", ".tar"),
                         (".tar.lz4", ".tar.lz4"), (".sqfs", ".sqfs")):
        one("nested:%s%s" % (inner, outer), nested, inner, outer)
    for outer in (".tar", ".tar.gz", ".sqfs"):
        one("nested:.h5" + outer, nested_tensor, outer)
    for f in (deep, not_archives, collision):
        one("nested:" + f.__name__.replace("_", "-"), f)
    one("directory:source", source_directory)


# --- commands ------------------------------------------------------------------------

@functools.lru_cache(None)
def commanded(name):
    return pack(arc.packed_tree(), name)


def names_below(d):
    return sorted(os.path.relpath(os.path.join(top, n), d)
                  for top, dirs, files in os.walk(d) for n in dirs + files)


def by_ls(name):
    t, d = commanded(name), arc.packed_tree()
    p = exits(tensorfs("ls", t), 0, "ls")
    equal(sorted(x.rstrip("/") for x in p.stdout.split()),
          sorted(os.listdir(d)), "ls")
    p = exits(tensorfs("ls", t + ":c3"), 0, "ls :c3")
    equal(p.stdout.split(), sorted(os.listdir(d + "/c3")), "ls :c3")
    p = exits(tensorfs("ls", "-R", t), 0, "ls -R")
    lines = [x for x in p.stdout.split("\n") if x.strip()]
    got = sorted(x.lstrip("./").rstrip("/") for x in lines
                 if not x.endswith(":"))
    want = names_below(d)
    check(got == want or got == sorted(os.path.basename(x) for x in want),
          "ls -R: %d names, expected %d" % (len(got), len(want)))
    p = exits(tensorfs("ls", "-l", t + ":c3"), 0, "ls -l")
    size = os.path.getsize(d + "/c3/0003.bin")
    line = [x for x in p.stdout.split("\n") if x.endswith("0003.bin")]
    check(line and str(size) in line[0].split() and line[0].startswith("-rw"),
          "ls -l: %s" % line)
    j = json.loads(exits(tensorfs("ls", "-R", "--json", t), 0, "ls --json")
                   .stdout)
    check(size in flatten(j).values(), "ls --json has no size %d" % size)
    exits(tensorfs("ls", t + ":nothing"), (1, 3), "ls of nothing")


def by_cat(name):
    t, d = commanded(name), arc.packed_tree()
    for f in ("c0/0000.bin", "big/text", "c4/0119.bin"):
        c = exits(tensorfs("cat", "%s:%s" % (t, f), text=False), 0, "cat")
        same_bytes(c.stdout, read(os.path.join(d, f)), "cat " + f)
    exits(tensorfs("cat", t + ":nothing"), (1, 3), "cat of nothing")
    exits(tensorfs("cat", t + ":c0"), (1, 2, 3), "cat of a directory")


def by_info(name):
    """Members, bytes, compression; of one member too."""
    t, d = commanded(name), arc.packed_tree()
    p = exits(tensorfs("info", t), 0, "info")
    check(len(p.stdout) > 40, "info: " + p.stdout)
    j = json.loads(exits(tensorfs("info", "--json", t), 0, "--json").stdout)
    files = [os.path.join(a, n) for a, _, ns in os.walk(d) for n in ns]
    values = set(map(str, flatten(j).values()))
    check(str(len(files)) in values, "info --json: no count of %d files: %s" %
          (len(files), arc.short(str(j))))
    check(str(sum(map(os.path.getsize, files))) in values,
          "info --json: no sum of their sizes: %s" % arc.short(str(j)))
    word = {"tar": "tar", "gz": "gzip", "bz2": "bzip2", "xz": "xz",
            "zst": "zst", "lz4": "lz4", "sqfs": "squashfs"}[
                name.rsplit(".", 1)[1]]
    check(word in p.stdout.lower(), "info does not say %s: %s" % (
        word, p.stdout))
    exits(tensorfs("info", t + ":c0/0000.bin"), 0, "info of a member")
    exits(tensorfs("info", t + ":nothing"), (1, 3), "info of nothing")


def warned():
    """A 1 MiB block with small files is said to be slow."""
    src = directory({"f%04d" % i: arc.text(3000, i) for i in range(300)})
    t = os.path.join(scratch("w"), "w.sqfs")
    sh("mksquashfs", src, t, "-noappend", "-no-progress", "-quiet", "-b",
       "1M")
    p = exits(tensorfs("info", t), 0, "info")
    q = exits(tensorfs("info", pack(src, "w.tar")), 0, "info")
    check("1 MiB" in p.stdout or "1024 KiB" in p.stdout or "1M" in p.stdout,
          "info says nothing of 1 MiB blocks: " + p.stdout)
    check(p.stdout.count("\n") > 1 and q.stdout, "info is one line")


@functools.lru_cache(None)
def texts():
    return directory({"t%d" % i: arc.text(100000, i) for i in range(10)})


def by_verify(name):
    """All is compressed: squashfs has no checksum of blocks that it stores as they
    are, and a bit that flips there is not noticed."""
    t = pack(texts(), name)
    exits(tensorfs("verify", t), 0, "verify")
    whole = bytearray(read(t))
    bad = os.path.join(scratch("bad"), name)
    if name == "v.tar":
        whole = whole[:len(whole) * 2 // 3]
    else:
        whole[len(whole) // 2] ^= 16
    with open(bad, "wb") as f:
        f.write(whole)
    p = exits(tensorfs("verify", bad), (1, 3), "verify of a damaged one")
    check((p.stdout + p.stderr).strip(), "verify says nothing")


def by_stats(name):
    with Mount(commanded(name)) as m:
        read(m / "c0/0000.bin")
        j = flatten(m.stats())
        check(any(isinstance(v, int) and v >= os.path.getsize(
            arc.packed_tree() + "/c0/0000.bin") for v in j.values()),
            "no bytes were served: %s" % j)
        for k in ("stats", "config", "version"):
            check(os.getxattr(m.path, "user.tensorfs." + k), k)
        for argv in ((), ("--prometheus",)):
            exits(tensorfs("stats", *argv, m.path), 0, "stats")


def face(name):
    """Read-only, its mount line, errno of what cannot be done."""
    with Mount(commanded(name)) as m:
        kind, _, opts = lib.mount_line(m.path)
        equal(kind, "fuse.tensorfs", "type")
        check({"ro", "nosuid", "nodev"} <= opts, "options: %s" % opts)
        p = m / "c0/0000.bin"
        fails_with(errno.EROFS, lambda: os.open(p, os.O_RDWR), "O_RDWR")
        fails_with(errno.EROFS, lambda: os.mkdir(m / "new"), "mkdir")
        fails_with(errno.EROFS, lambda: os.unlink(p), "unlink")
        fails_with(errno.EROFS, lambda: os.setxattr(p, "user.a", b"b"),
                   "setxattr")
        fails_with(errno.ENODATA, lambda: os.getxattr(p, "user.none"),
                   "getxattr")
        fails_with(errno.ENOENT, lambda: os.stat(p + "x"), "stat")
        fails_with(errno.ENOTDIR, lambda: os.stat(p + "/x"), "stat below")
        fails_with(errno.EISDIR, lambda: read(m / "c0"), "read")
        st = os.statvfs(m.path)
        check(st.f_bavail == 0 and st.f_namemax >= 255, "statvfs %s" % (st,))
        exits(run("du", "-s", m.path), 0, "du")


def stable(name):
    """Inodes and times are the same in the next mount, and without index."""
    seen = []
    for opts in ((), (), ("--index=none",)):
        with Mount(commanded(name), opts=opts) as m:
            seen.append({p: (e.ino, e.mtime, e.mode, e.nlink, e.size)
                         for p, e in tree.scan(m.path).items()})
    check(seen[0] == seen[1] == seen[2], "they differ")


def in_run(name):
    """tensorfs run, if there is one, or mount -f: one process, no traces."""
    p = tensorfs("run", commanded(name), "--", "sh", "-c", "ls {}/c0 | wc -l")
    if p.returncode == 2:
        return note("no `run` yet")
    equal(p.stdout.strip(), str(len(os.listdir(arc.packed_tree() + "/c0"))),
          "ls in run")


def commands():
    for name in ("v.tar", "v.tar.gz", "v.tar.zst", "v.tar.xz", "v.sqfs"):
        for f in (by_ls, by_cat, by_info, by_verify, by_stats, face, stable,
                  in_run):
            one("%s:%s" % (f.__name__.replace("_", "-"), name), f, name)
    one("info:warned", warned)


# --- epochs ---------------------------------------------------------------------------

EPOCH = """
import hashlib, os, sys
h = hashlib.sha256()
for top, dirs, files in os.walk(sys.argv[1]):
    dirs.sort()
    for f in sorted(files):
        p = os.path.join(top, f)
        with open(p, 'rb', buffering=0) as g:
            h.update(b'%d' % os.fstat(g.fileno()).st_size)
            while True:
                b = g.read(1 << 17)
                if not b:
                    break
                h.update(b)
print(h.hexdigest())
"""


def warm(name):
    """With the daemon stopped, a second pass over everything completes."""
    want = run(PYTHON, "-c", EPOCH, arc.packed_tree()).stdout
    with Mount(commanded(name)) as m:
        for left in (2, 1, 0):
            p = exits(run(PYTHON, "-c", EPOCH, m.path), 0, "first pass")
            equal(p.stdout, want, "digest of the first pass")
            with all_kept(m.path):
                os.kill(m.pid, signal.SIGSTOP)
                try:
                    p = subprocess.Popen([PYTHON, "-c", EPOCH, m.path],
                                         stdout=subprocess.PIPE)
                    out = p.communicate(timeout=60)[0].decode()
                except subprocess.TimeoutExpired:
                    out = None
                finally:
                    os.kill(m.pid, signal.SIGCONT)
            if out is None:
                p.kill()
                p.communicate()
                note("the pass waited for the stopped daemon")
                continue
            return equal(out, want, "digest of the second pass")
    raise Failure("each second pass waited for the stopped daemon")


LOADER = """
import hashlib, sys, torch
from torchvision.datasets import ImageFolder
from torchvision import transforms
ds = ImageFolder(sys.argv[1], transforms.ToTensor())
h = hashlib.sha256(repr((ds.classes, len(ds))).encode())
dl = torch.utils.data.DataLoader(ds, batch_size=8, num_workers=2)
for epoch in range(2):
    for x, y in dl:
        h.update(x.numpy().tobytes() + y.numpy().tobytes())
print(len(ds), h.hexdigest())
"""


@functools.lru_cache(None)
def images():
    from PIL import Image
    d = scratch("images")
    r = np.random.default_rng(1)
    for i in range(60):
        p = os.path.join(d, "train/class%d" % (i % 4))
        os.makedirs(p, exist_ok=True)
        a = r.integers(0, 255, (24, 24, 3), dtype=np.uint8)
        Image.fromarray(a).save(os.path.join(p, "%03d.%s" % (
            i, "png" if i % 3 else "jpg")))
    return d, run(PYTHON, "-c", LOADER, d + "/train")


def image_folder(name):
    """torchvision's ImageFolder, 2 workers, 2 epochs."""
    d, want = images()
    if want.returncode and "No module named" in want.stderr:
        raise arc.Missing("python3-torchvision")
    exits(want, 0, "ImageFolder on the directory")
    check(want.stdout.startswith("60 "), "images: " + want.stdout)
    with Mount(pack(d, name)) as m:
        got = exits(run(PYTHON, "-c", LOADER, m / "train"), 0,
                    "ImageFolder on the mount")
        equal(got.stdout, want.stdout, "number and digest of the images")


def epochs():
    for name in ("w.tar", "w.tar.gz", "w.tar.zst", "w.sqfs"):
        one("warm:" + name, warm, name)
    for name in some(("i.tar.zst", "i.tar", "i.sqfs")):
        one("torchvision:" + name, image_folder, name)


if __name__ == "__main__":
    arc.main((together, within, commands, epochs))
