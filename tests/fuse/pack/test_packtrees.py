#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Property: what we pack, others unpack to what it was.  Random trees, each packed in
one format and unpacked by a tool that nobody here wrote; some are also mounted, by us
and by the kernel.

A failure names its seed: TENSORFS_SEED=N packs that tree alone, and keeps it."""
import concurrent.futures
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import packlib
import packtrees
from checks import Failure, check, equal, note
from lib import Missing, Mount, case
from packlib import SANITIZED, pack

work = None
TREES = 60 if SANITIZED else 500
FORMATS = ("tar", "tar.gz", "tar.zst", "squashfs")
ONLY = os.environ.get("TENSORFS_SEED")
ran = {}


def fresh(hint, seed):
    d = os.path.join(work, "%s-%d" % (hint, seed))
    shutil.rmtree(d, ignore_errors=True)
    return d


def keep_or_remove(*paths):
    for p in paths:
        if not ONLY:
            shutil.rmtree(p, ignore_errors=True) if os.path.isdir(p) else \
                os.path.lexists(p) and os.unlink(p)


# --- tools that unpack ------------------------------------------------------------

def by_gnu_tar(path, to):
    os.mkdir(to)
    arc.sh("tar", "-x", "-p", "--numeric-owner", "--force-local", "--xattrs",
           "--xattrs-include=user.*", "--warning=no-timestamp",
           "--warning=no-unknown-keyword",
           *(["--same-owner"] if lib.ROOT else []), "-f", path, "-C", to)


def by_bsdtar(path, to):
    os.mkdir(to)
    arc.sh("bsdtar", "-x", "-p", "--xattrs", "--numeric-owner", "-f", path,
           "-C", to)


def by_unsquashfs(path, to):
    arc.sh("unsquashfs", "-q", "-no-progress", "-xattrs", "-d", to, path)


def by_kernel(path, to):
    os.mkdir(to)
    arc.sh("mount", "-t", "squashfs", "-o", "loop,ro", path, to)


def can_mount():
    """The kernel, with a loop device; only root may."""
    with open("/proc/filesystems") as f:
        return lib.ROOT and "\tsquashfs\n" in f.read() and \
            os.path.exists("/dev/loop-control")


# --- one tree ---------------------------------------------------------------------

def check_with(tool, path, top, seed, **kw):
    to = fresh("out", seed)
    ran[tool.__name__] = ran.get(tool.__name__, 0) + 1
    tool(path, to)
    try:
        if tool is by_kernel and not packtrees.lists_xattrs(to):
            kw["xattrs"] = ()           # a kernel that was built without them
        packtrees.same(to, top, tool.__name__, **kw)
    finally:
        if tool is by_kernel:
            arc.sh("umount", to)
    keep_or_remove(to)


def check_mounted(path, top, **kw):
    ran["tensorfs"] = ran.get("tensorfs", 0) + 1
    with Mount(path) as m:
        packtrees.same(m.path, top, "mounted by us", **kw)


def one_tree(seed):
    suffix = FORMATS[seed % 4]
    squash = suffix == "squashfs"
    k = seed // 4                       # the same for all four formats
    bsd = not squash and k % 5 == 2
    top = packtrees.random_tree(fresh("tree", seed), seed, tar=not squash,
                                large=k % 12 == 5, xattrs=XATTRS,
                                bsd=bsd)
    path = fresh("packed", seed) + "." + suffix
    # A tar has fractions of seconds where it costs nothing.
    kw = {"unit": 10**9}
    more = {0: [], 1: ["--comp=gzip" if squash else "--jobs=1"],
            2: ["--comp=none"] if squash else ["--threads=1"],
            3: ["--verify"]}[k % 4]
    pack("-q", *more, top, path)
    if squash:
        check_with(by_unsquashfs, path, top, seed, root=True, **kw)
        if KERNEL and k % 6 == 1:
            check_with(by_kernel, path, top, seed, root=True, **kw)
    else:
        check_with(by_gnu_tar, path, top, seed, holes=True, **kw)
        if bsd:
            check_with(by_bsdtar, path, top, seed, **kw)
    if k % 10 == 7 and FUSE:
        check_mounted(path, top, **kw)
    keep_or_remove(top, path, path + ".tfsidx")


def trees_of(n, first):
    def guarded(seed):
        try:
            one_tree(seed)
        except (Failure, OSError) as e:
            return "seed %d (%s): %s" % (seed, FORMATS[seed % 4], e)
        return None

    seeds = range(first, TREES, 4) if n else [first]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bad = [b for b in pool.map(guarded, seeds) if b]
    for b in bad[1:6]:
        note(b[:600])
    if bad:
        raise Failure("%d of %d trees: %s" % (len(bad), len(seeds),
                                              bad[0][:1000]))


@case
def tar():
    trees_of(4, 0)


@case
def tar_gz():
    trees_of(4, 1)


@case
def tar_zst():
    trees_of(4, 2)


@case
def squashfs():
    trees_of(4, 3)


@case
def twice_the_same():
    """From the same directory, with other threads: the same bytes."""
    for i, suffix in enumerate(FORMATS):
        top = packtrees.random_tree(fresh("same", i), 1000 + i,
                                    large=True, xattrs=XATTRS)
        a, b = (os.path.join(work, n + suffix) for n in ("a.", "b."))
        pack("-q", "--jobs=1", "--threads=1", top, a)
        pack("-q", "--jobs=16", "--threads=5", top, b)
        with open(a, "rb") as f, open(b, "rb") as g:
            check(f.read() == g.read(), "%s: other bytes" % suffix)
        keep_or_remove(top, a, b)


@case
def tools_that_took_part():
    note("trees: %s" % ", ".join("%s %d" % i for i in sorted(ran.items())))
    for tool in ("by_gnu_tar", "by_bsdtar", "by_unsquashfs", "tensorfs"):
        check(sys.argv[1:] or ran.get(tool) or (tool == "tensorfs" and
                                                not FUSE),
              "%s did not take part" % tool)
    if not KERNEL:
        raise Missing("a kernel that mounts squashfs")
    check(sys.argv[1:] or ran.get("by_kernel"), "the kernel mounted nothing")


def main():
    global work, XATTRS, KERNEL, FUSE
    work = packlib.setup()
    XATTRS, KERNEL = packtrees.has_xattrs(work), can_mount()
    FUSE = os.path.exists("/dev/fuse")
    if not XATTRS:
        note("no extended attributes in %s" % work)
    if ONLY:
        lib._dirs.clear()               # it is kept
        note("kept in %s" % work)
        lib.run_case("seed-%s" % ONLY, trees_of, 0, int(ONLY))
        sys.exit(bool(lib._failed))
    lib.main()


if __name__ == "__main__":
    main()
