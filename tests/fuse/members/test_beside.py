#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Views beside the members of archives and directories: found by name, not listed; their
order is that of torch's DistributedSampler, their files are the members."""
import errno
import os
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import numpy as np
from checks import check, equal, fails_with, read
from lib import Missing, Mount, case, exits, tensorfs
from torch.utils.data import DistributedSampler

work = None
rng = np.random.default_rng(11)
NAMES = ["a-b/%02d.jpg" % i for i in range(7)] + \
    ["a/%02d.seg.png" % i for i in range(9)] + \
    ["a/deep/er/%d" % i for i in range(5)] + \
    ["a.txt", "b", "b.tar.gz.x", ".hidden", ".conf.d", "\u00e4.bin", "z z.txt"]


def fill(name, names=NAMES):
    top = os.path.join(work, name)
    for i, n in enumerate(names):
        path = os.path.join(top, n)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(rng.bytes(10 + 37 * i))
    return top


def pack(kind, top):
    """An archive of a directory."""
    out = "%s.%s" % (top, kind)
    if os.path.exists(out):
        return out
    if kind == "sqfs":
        argv = ["mksquashfs", top, out, "-quiet", "-no-progress"]
    else:
        argv = ["tar", "-caf", out, "-C", top] + sorted(os.listdir(top), reverse=True)
    try:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Missing(argv[0])
    return out


def paths_of(top):
    """Of regular files, sorted as bytes; what find(1) and LC_ALL=C sort say."""
    out = subprocess.run("find . -type f -printf '%P\\n' | LC_ALL=C sort", cwd=top,
                         shell=True, check=True, stdout=subprocess.PIPE).stdout
    return os.fsdecode(out).splitlines()


def extension(path):
    name = os.path.basename(path)
    dot = name.find(".", 1)
    return name[dot:] if dot > 0 else ""


def absent(path):
    fails_with(errno.ENOENT, lambda: os.stat(path), path)


def sampler(n, world, rank, seed, epoch, shuffle, drop_last):
    s = DistributedSampler(range(n), world, rank, shuffle, seed, drop_last)
    s.set_epoch(epoch)
    return list(s)


def check_rank(mnt, top, path, want, paths):
    d = "%s/epochs/%s" % (mnt, path)
    width = max(6, len(str(len(want) - 1)))
    names = ["%0*d%s" % (width, i, extension(paths[w])) for i, w in enumerate(want)]
    equal(sorted(os.listdir(d)), sorted(names), path)
    equal(os.fsdecode(read(d + "/order.txt")).splitlines(),
          [paths[w] for w in want], path + ": order.txt")
    for name, w in zip(names, want):
        there, own = os.path.join(d, name), os.path.join(mnt, paths[w])
        check(os.path.samefile(there, own), "%s is not %s" % (there, own))
        equal(read(there), read(os.path.join(top, paths[w])), there)


def each_kind(top, f):
    for source in (top, pack("tar", top), pack("tar.gz", top), pack("sqfs", top)):
        with Mount(source) as m:
            f(m.path)


@case
def as_distributed_sampler():
    top = fill("plain")
    paths = paths_of(top)
    n = len(paths)

    def look(mnt):
        for k in range(12):
            world = int(rng.integers(1, 9 if k % 4 else 2 * n))
            rank = int(rng.integers(0, world))
            seed, epoch = (int(x) for x in rng.integers(0, 2**31, 2))
            shuffle, drop_last = rng.random() < 0.8, rng.random() < 0.3
            options = ["rank-%d-of-%d" % (rank, world), "seed=%d" % seed]
            options += ["no-shuffle"] * (not shuffle) + ["drop-last"] * drop_last
            check_rank(mnt, top, "%d/%s" % (epoch, ",".join(options)), sampler(
                n, world, rank, seed, epoch, shuffle, drop_last), paths)
    each_kind(top, look)


@case
def resumed():
    top = fill("plain")
    paths = paths_of(top)
    want = sampler(len(paths), 2, 1, 0, 5, True, False)
    with Mount(pack("tar", top)) as m:
        d = m.path + "/epochs/5/rank-1-of-2/from/3"
        equal(sorted(os.listdir(d)), ["%06d%s" % (i, extension(paths[w]))
                                      for i, w in enumerate(want)][3:], "from/3")
        equal(os.fsdecode(read(d + "/order.txt")).splitlines(),
              [paths[w] for w in want[3:]], "order.txt")
        absent(d + "/000002" + extension(paths[want[2]]))
        equal(os.listdir(d + "/../%d" % len(want)), [], "the end")
        absent(d + "/../%d" % (len(want) + 1))


@case
def nothing_else_is_listed():
    """A mount's listing is its members'; views= adds names, which work."""
    top = fill("plain")

    def look(mnt):
        for d, dirs, names in os.walk(mnt):
            own = os.path.join(top, os.path.relpath(d, mnt))
            equal(sorted(dirs + names), sorted(os.listdir(own)), d)
        equal(sorted(os.listdir(mnt + "/epochs")), [], "epochs/")
        equal(sorted(os.listdir(mnt + "/epochs/0")), [], "epochs/0/")
    each_kind(top, look)
    with Mount(pack("tar", top), opts=["-o", "views=epochs"]) as m:
        equal(sorted(os.listdir(m.path)), sorted(os.listdir(top) + ["epochs"]), "views=")
        with os.scandir(m.path) as entries:
            for e in entries:
                equal(e.inode(), os.stat(e.path).st_ino, e.name)
                equal(e.is_dir(), os.path.isdir(e.path), e.name)
        names = os.listdir(m.path)
        equal(names, sorted(names, key=os.fsencode), "order")
        equal(os.stat(m.path).st_nlink, 1, "links of the root")
    p = exits(tensorfs("mount", "-o", "views=epoch", top, work), 2, "a wrong name")
    check("epochs" in p.stderr, p.stderr)


@case
def a_member_wins():
    top = fill("taken", ["epochs/0/x.jpg", "y.jpg"])
    for source in (top, pack("tar", top)):
        with Mount(source, opts=["-o", "views=epochs"]) as m:
            equal(os.listdir(m.path + "/epochs/0"), ["x.jpg"], "the member")
            equal(sorted(os.listdir(m.path)), ["epochs", "y.jpg"], "root")
            absent(m.path + "/epochs/0/rank-0-of-1")


@case
def what_is_a_file():
    """A hard link is a file of its own name; links, empty directories, devices and the
    sources inside that are directories are none."""
    top = fill("kinds", ["a/1.bin", "a/2.bin"])
    os.link(top + "/a/1.bin", top + "/a/0.bin")
    os.symlink("1.bin", top + "/a/l.bin")
    os.mkdir(top + "/none")
    os.mkfifo(top + "/fifo")
    with tarfile.open(top + "/inner.tar", "w") as t:
        t.add(top + "/a/1.bin", "deep.bin")
    with Mount(pack("tar", top)) as m:
        d = m.path + "/epochs/0/rank-0-of-1,no-shuffle"
        equal(read(d + "/order.txt").split(),
              [b"a/0.bin", b"a/1.bin", b"a/2.bin", b"inner.tar"], "files")
        check(os.path.samefile(d + "/000000.bin", d + "/000001.bin"), "a hard link")
    with Mount(pack("tar", top), opts=["-o", "nested"]) as m:
        d = m.path + "/epochs/0/rank-0-of-1,no-shuffle"
        equal(read(d + "/order.txt").split(), [b"a/0.bin", b"a/1.bin", b"a/2.bin"],
              "nested")
        inside = m.path + "/inner.tar/epochs/0/rank-0-of-1"
        equal(os.listdir(inside), ["000000.bin"], "views of what is inside")
        equal(read(inside + "/000000.bin"), read(top + "/a/1.bin"), "deep.bin")
        equal(read(inside + "/order.txt"), b"deep.bin\n", "deep order.txt")


@case
def names_that_are_none():
    top = fill("plain")
    with Mount(pack("tar", top)) as m:
        e = m.path + "/epochs"
        for name in ("-1", "00", "4294967296", "x", "0/rank-1-of-1", "0/rank-0-of-0",
                     "0/rank-0-of-2,nonsense", "0/rank-0-of-1/0.jpg",
                     "0/rank-0-of-1/000000.nope", "0/rank-0-of-1/from/99",
                     "0/rank-0-of-1/999999.jpg", "0/rank-0-of-1/order.txt.x"):
            absent(os.path.join(e, name))
        absent(m.path + "/a/epochs")
        fails_with(errno.EROFS, lambda: open(e + "/x", "w"), "writing")


@case
def where_there_is_none():
    """A single compressed file is no archive, and an empty one has no files."""
    top = fill("single", ["one.txt"])
    out = os.path.join(work, "one.txt.gz")
    with open(out, "wb") as f:
        subprocess.run(["gzip", "-nc", top + "/one.txt"], stdout=f, check=True)
    with Mount(out) as m:
        equal(os.listdir(m.path), ["one.txt"], "listing")
        absent(m.path + "/epochs")
    empty = os.path.join(work, "empty.tar")
    tarfile.open(empty, "w").close()
    with Mount(empty) as m:
        absent(m.path + "/epochs")


@case
def without_a_mount():
    """ls, cat and info know them, too; what is not stored has nothing to say."""
    top = fill("plain")
    tar, paths = pack("tar", top), paths_of(top)
    p = exits(tensorfs("cat", tar + ":epochs/0/rank-0-of-1/order.txt"), 0, "cat")
    equal(p.stdout.splitlines(),
          [paths[w] for w in sampler(len(paths), 1, 0, 0, 0, True, False)], "order")
    p = exits(tensorfs("ls", tar + ":epochs/0/rank-0-of-4,drop-last"), 0, "ls")
    equal(len(p.stdout.splitlines()), len(paths) // 4, "ls")
    for source in (tar, top):
        for command in ("info", "verify"):
            p = exits(tensorfs(command, source + ":epochs/0"), (1, 3), command)
            check("view" in p.stderr, p.stderr)


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
