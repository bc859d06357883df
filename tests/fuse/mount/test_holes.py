#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""SEEK_DATA and SEEK_HOLE of files with holes: of a directory as its file system has
them, of archives as they are stored; so programs that copy need not read zeros."""
import errno
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Mount, case

work = None
MIB = 1 << 20
PIECES = {"front": [0], "middle": [3 * MIB, 5 * MIB + 4096], "end": [8 * MIB - 4096],
          "nothing": [], "some": [131072 * i for i in range(1, 60, 7)]}
SIZE = 8 * MIB


def tree():
    """The same files for all; each piece is a page of data."""
    top = os.path.join(work, "tree")
    if os.path.exists(top):
        return top
    os.mkdir(top)
    rng = np.random.default_rng(3)
    for name, pieces in PIECES.items():
        with open(os.path.join(top, name), "wb") as f:
            f.truncate(SIZE)
            for at in pieces:
                f.seek(at)
                f.write(rng.bytes(4096))
    with open(os.path.join(top, "full"), "wb") as f:
        f.write(rng.bytes(300000))
    return top


def seek(fd, off, whence):
    try:
        return os.lseek(fd, off, whence)
    except OSError as e:
        equal(e.errno, errno.ENXIO, "what there is not")
        return None


def map_of(path):
    """[(begin, end)] of the data, by turns."""
    found, at, size = [], 0, os.path.getsize(path)
    fd = os.open(path, os.O_RDONLY)
    try:
        while at < size:
            begin = seek(fd, at, os.SEEK_DATA)
            if begin is None:
                break
            at = seek(fd, begin, os.SEEK_HOLE)
            check(at > begin, "%s: data of no bytes at %d" % (path, begin))
            found.append((begin, at))
        return found
    finally:
        os.close(fd)


def sample(path):
    """Answers from many places, also in the middle of things."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return [seek(fd, off, whence) for whence in (os.SEEK_DATA, os.SEEK_HOLE)
                for off in (0, 1, 4095, 4096, 131071, 131072, 3 * MIB - 1, 3 * MIB + 17,
                            SIZE - 1, SIZE, SIZE + 1)]
    finally:
        os.close(fd)


def is_right(path, original, block):
    """What is called a hole is zeros; data are no longer than their blocks."""
    data = read(original)
    equal(read(path) == data, True, path + ": content")
    found = map_of(path)
    covered = 0
    for begin, end in found:
        check(not any(data[covered:begin]), "%s: data in a hole" % path)
        covered = end
    check(not any(data[covered:]), "%s: data behind the last" % path)
    most = sum(-(-end // block) * block - begin // block * block
               for begin, end in map_of(original))
    check(sum(e - b for b, e in found) <= most,
          "%s: %s is too much data" % (path, found))


@case
def of_a_directory():
    top = tree()
    with Mount(top) as m:
        for name in (*PIECES, "full"):
            equal(map_of(m / name), map_of(os.path.join(top, name)), name)
            equal(sample(m / name), sample(os.path.join(top, name)), name)
        with open(m / "full", "rb") as f:
            fails_with(errno.ENXIO,
                       lambda: os.lseek(f.fileno(), 300000, os.SEEK_DATA), "end")


@case
def of_archives():
    top = tree()
    made = {"t.tar": ["tar", "-S", "-cf"], "t.tar.gz": ["tar", "-S", "-czf"],
            "pax.tar": ["tar", "-S", "--format=pax", "-cf"]}
    for name, how in made.items():
        path = os.path.join(work, name)
        subprocess.run([*how, path, "-C", top, "."], check=True)
        with Mount(path) as m:
            for n in (*PIECES, "full"):
                is_right(m / n, os.path.join(top, n), 4096)
    path = os.path.join(work, "t.sqfs")
    subprocess.run(["mksquashfs", top, path, "-quiet", "-no-progress", "-b", "131072"],
                   check=True, stdout=subprocess.DEVNULL)
    with Mount(path) as m:
        for n in (*PIECES, "full"):
            is_right(m / n, os.path.join(top, n), 131072)


@case
def copies_keep_holes():
    """cp asks where data are; the copy takes no more room than the original."""
    top = tree()
    tar = os.path.join(work, "c.tar")
    subprocess.run(["tar", "-S", "-cf", tar, "-C", top, "."], check=True)
    for source in (top, tar):
        out = os.path.join(work, "out" + os.path.basename(source))
        with Mount(source) as m:
            subprocess.run(["cp", "-r", m.path, out], check=True)
        for n in (*PIECES, "full"):
            a, b = (os.stat(os.path.join(d, n)) for d in (top, out))
            check(b.st_blocks <= a.st_blocks, "%s of %s: %d blocks, and %d" % (
                n, source, b.st_blocks, a.st_blocks))
            equal(read(os.path.join(out, n)) == read(os.path.join(top, n)), True, n)


work = lib.setup()
lib.main()
