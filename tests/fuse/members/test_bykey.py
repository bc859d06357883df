#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""by-key/KEY/EXT: what webdataset's group_by_keys makes of the members of tars, whatever their
order and however many shards there are."""
import errno
import io
import os
import re
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case, exits, tensorfs

work = None
rng = np.random.default_rng(12)
SPLIT = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")


def tar(name, members):
    """Of (path, bytes), in this order."""
    path = os.path.join(work, name)
    with tarfile.open(path, "w") as t:
        for member, data in members:
            info = tarfile.TarInfo(member)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return path


def samples_of(paths):
    """webdataset's tar_file_expander and group_by_keys (tariterators.py), but by key rather
    than by what is adjacent."""
    samples = {}
    for path in paths:
        with tarfile.open(path, "r|*") as t:
            for info in t:
                if not info.isreg() or re.match(r"__[^/]*__($|/)", info.name):
                    continue
                match = SPLIT.match(info.name)
                if not match:
                    continue
                key, ext = match.group(1), match.group(2).lower()
                sample = samples.setdefault(key, {})
                check(ext not in sample, "twice")
                sample[ext] = t.extractfile(info).read()
    return samples


def found(top):
    """What is there, by path."""
    out = {}
    for d, dirs, names in os.walk(top):
        check(dirs or names, "an empty directory: " + d)
        for n in names:
            out[os.path.relpath(os.path.join(d, n), top)] = read(os.path.join(d, n))
    return out


def compare(mnt, paths):
    want = {os.path.normpath(key + "/" + ext): data
            for key, s in samples_of(paths).items() for ext, data in s.items()}
    got = found(mnt + "/by-key")
    equal(sorted(got), sorted(want), "files")
    for k in want:
        equal(got[k], want[k], k)
    for key, s in samples_of(paths).items():
        for ext in s:
            equal(read(os.path.join(mnt, "by-key", key, ext)), s[ext], key)


ODD = ["a/b.seg.png", "a/b.jpg", "x.y/c.jpg", "x.y/c.JSON", "top.txt", "none", ".hid",
       "dir/.h.txt", "x.y/.h.txt", "Track 2.0 (v).mp3", "__meta__/x.txt", "__m__", "__a__.b",
       "a-b.jpg", "a-b/c.d", "a!.x", "n.tar.gz", "deep/er/and.x", "deep/.x", "dots..x",
       "\u00e4.\u00f6", "a/z/none", "only/none"]


@case
def as_webdataset_groups():
    members = [(n, rng.bytes(5 + i)) for i, n in enumerate(ODD)]
    path = tar("odd.tar", members)
    with Mount(path) as m:
        compare(m.path, [path])
        check("by-key" not in os.listdir(m.path), "listed")
        check(os.path.samefile(m.path + "/by-key/a/b/seg.png", m.path + "/a/b.seg.png"),
              "not the member")
        equal(sorted(os.listdir(m.path + "/by-key/x.y/c")), ["jpg", "json"], "lower case")
        for name in ("nope", "a/nope", "a/b/nope", "a/b/JPG", "only", "none", "a/z",
                     "__meta__", "x.y/c/JSON", "a/b/jpg.", "a."):
            fails_with(errno.ENOENT, lambda: os.stat(m.path + "/by-key/" + name), name)


@case
def any_names():
    """Random names out of few letters, so that keys, directories and extensions meet."""
    for k in range(12):
        names = set()
        while len(names) < 60:
            depth = int(rng.integers(0, 3))
            names.add("/".join(
                ["".join(rng.choice(list("ab."), 2)) for _ in range(depth)] +
                ["".join(rng.choice(list("abc..-"), int(rng.integers(1, 7))))]))
        # No member is a directory of another one; no two have the same place.
        names = sorted(n for n in names if not any(
            p in (".", "..", "") for p in n.split("/")) and not any(
            o.startswith(n + "/") for o in names))
        places, kept = set(), []
        for n in names:
            match = SPLIT.match(n)
            place = match and os.path.normpath(match.group(1) + "/" + match.group(2))
            if match and (match.group(2) in ("", ".", "..") or place in places or any(
                    p.startswith(place + "/") or place.startswith(p + "/")
                    for p in places)):
                continue
            kept.append(n)
            if match:
                places.add(place)
        rng.shuffle(kept)
        path = tar("any%d.tar" % k, [(n, rng.bytes(9)) for n in kept])
        with Mount(path) as m:
            if places:
                compare(m.path, [path])


@case
def keys_called_as_directories():
    """a.jpg beside a/b.jpg: the files are in one directory."""
    names = ["a.jpg", "a/b.jpg", "a/c/d.x", "a/c.y", "a/.h", "a.cls"]
    path = tar("both.tar", [(n, n.encode()) for n in names])
    with Mount(path) as m:
        compare(m.path, [path])
        equal(sorted(os.listdir(m.path + "/by-key/a")), ["b", "c", "cls", "h", "jpg"], "a")
        equal(sorted(os.listdir(m.path + "/by-key/a/c")), ["d", "y"], "a/c")


def log_of(path, *opts):
    log = os.path.join(work, "log")
    p = tensorfs("ls", "-R", path + ":by-key")
    exits(p, 0, "ls " + log)
    return p.stderr


@case
def what_is_odd_is_said():
    """Not adjacent; the same extension twice; no place."""
    one = [("%d.%s" % (i, e), b"x") for i in range(5) for e in ("cls", "jpg")]
    equal(log_of(tar("good.tar", one)), "", "nothing is odd")
    apart = tar("apart.tar", sorted(one, key=lambda m: m[0][2:]))
    said = log_of(apart)
    check("5 more samples" in said, said)
    with Mount(apart) as m:
        compare(m.path, [apart])
    twice = tar("twice.tar", [("a.JPG", b"upper"), ("a.jpg", b"lower"), ("a.x", b"x")])
    said = log_of(twice)
    check("1 files are left out" in said and "extension" in said, said)
    with Mount(twice) as m:
        equal(found(m.path + "/by-key"), {"a/jpg": b"lower", "a/x": b"x"}, "twice")
    place = tar("place.tar", [("a.b", b"file"), ("a/b.jpg", b"dir")])
    said = log_of(place)
    check("1 files are left out" in said and "place" in said, said)
    with Mount(place) as m:
        equal(found(m.path + "/by-key"), {"a/b/jpg": b"dir"}, "place")


@case
def many_shards():
    """1000 tars as one; a sample may be in two of them."""
    shards, want = [], {}
    for i in range(1000):
        members = []
        for j in range(2):
            key = "%05d" % (2 * i + j)
            members += [(key + ".cls", b"%d" % i), (key + ".npy", key.encode())]
        if i:
            members.append(("%05d.late" % (2 * i - 1), b"late"))
        shards.append(tar("shard-%06d.tar" % i, members))
        want.update({m[0].replace(".", "/"): m[1] for m in members})
    with Mount(None, sources=shards, opts=["-o", "union,index=none"]) as m:
        top = m.path + "/by-key"
        equal(len(os.listdir(top)), 2000, "keys")
        for i in rng.integers(0, 2000, 100):
            key = "%05d" % i
            equal({e: read("%s/%s/%s" % (top, key, e))
                   for e in os.listdir("%s/%s" % (top, key))},
                  {k[6:]: v for k, v in want.items() if k.startswith(key)}, key)


@case
def other_archives():
    """Directories, squashfs, a part of an archive (subdir=)."""
    top = os.path.join(work, "plain")
    os.makedirs(top + "/train")
    for n in ("0.cls", "0.jpg", "1.cls", "1.jpg"):
        with open("%s/train/%s" % (top, n), "wb") as f:
            f.write(n.encode())
    want = {n.replace(".", "/"): n.encode() for n in os.listdir(top + "/train")}
    with Mount(top) as m:
        equal(found(m.path + "/by-key/train"), want, "a directory")
    path = top + ".tar"
    with tarfile.open(path, "w") as t:
        t.add(top, ".")
    with Mount(path, opts=["-o", "subdir=train"]) as m:
        equal(found(m.path + "/by-key"), want, "subdir=")
    with Mount(path, opts=["-o", "views=by-key:epochs"]) as m:
        equal(sorted(os.listdir(m.path)), ["by-key", "epochs", "train"], "listed")
        equal(found(m.path + "/by-key/train"), want, "views=")


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
