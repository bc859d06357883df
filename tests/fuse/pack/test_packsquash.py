#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack to squashfs: what the kernel, squashfuse, unsquashfs and we make of an image is
the directory that was packed; where bytes are in it, and that it is always the same."""
import contextlib
import functools
import os
import random
import shutil
import signal
import stat
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import packlib
import tree
from arc import one, scratch, sh
from checks import check, equal, note, read, same_bytes
from lib import exits, tensorfs

SECOND = 10**9
XATTRS = ("user.", "trusted.") if lib.ROOT else ("user.",)
# Times that squashfs cannot hold become the nearest that it can.
FAR = {b"times/%d" % t: 0 if t < 0 else 2**32 - 1 for t in (
    2**32 * SECOND + 1, -1, -SECOND, -315622800 * SECOND,
    8589934593 * SECOND, -SECOND // 2)}


def image_of(top, *opts, name="image.sqfs", code=0, env=None):
    out = os.path.join(scratch("image"), name)
    p = tensorfs("pack", "-q", *opts, top, out,
                 env=dict(os.environ, **(env or {})))
    exits(p, code, "pack %s" % " ".join(opts))
    equal(os.listdir(os.path.dirname(out)), [name], "what is left behind")
    image_of.stderr = p.stderr
    return out


def superblock(image):
    with open(image, "rb") as f:
        v = struct.unpack("<IIIIIHHHHHHQQQQQQQQ", f.read(96))
    return dict(zip(("magic", "inodes", "time", "block", "fragments", "comp",
                     "log", "flags", "ids", "major", "minor", "root", "used",
                     "id_table", "xattr_table", "inode_table", "dir_table",
                     "fragment_table", "export_table"), v))


# --- readers ----------------------------------------------------------------------

@contextlib.contextmanager
def kernel(image):
    """As the kernel mounts it: for root only."""
    d = scratch("kernel")
    sh("mount", "-t", "squashfs", "-o", "loop,ro", image, d)
    try:
        yield d
    finally:
        sh("umount", d)


@contextlib.contextmanager
def squashfuse(image):
    d = scratch("squashfuse")
    sh("squashfuse", image, d)
    try:
        yield d
    finally:
        sh("fusermount3" if shutil.which("fusermount3") else "fusermount",
           "-u", d)


@contextlib.contextmanager
def ours(image):
    with lib.Mount(image, opts=["--cache-size=8M"]) as m:
        yield m.path


@contextlib.contextmanager
def unsquashed(image):
    d = os.path.join(scratch("un"), "root")
    # As root it restores everything; its complaints would be an exit code of 2.
    sh("unsquashfs", "-n", "-q", "-xattrs", "-d", d, image,
       ok=(0,) if lib.ROOT else (0, 2))
    yield d


def readers():
    yield "unsquashfs", unsquashed
    yield "ours", ours
    yield "squashfuse", squashfuse
    if lib.ROOT:
        yield "the kernel", kernel


def alike(got, top):
    """Names, bytes and modes: squashfuse has inode numbers of its own, and stumbles
    over attributes, mksquashfs' too."""
    want, got_all = tree.scan(top), tree.scan(got)
    equal(sorted(got_all), sorted(want), "names")
    for p, e in want.items():
        g = got_all[p]
        equal((g.kind, g.mode, g.uid, g.size, g.target),
              (e.kind, e.mode, e.uid, e.size, e.target), "%r" % p)
        if e.kind == stat.S_IFREG:
            tree.same_content(os.path.join(os.fsencode(top), p),
                              os.path.join(os.fsencode(got), p), p)


def compare(image, top, only=None, **kw):
    sh("unsquashfs", "-s", image)
    sh("unsquashfs", "-ll", image)
    for name, reader in readers():
        if only and name not in only:
            continue
        with reader(image) as d:
            if name == "squashfuse":
                alike(d, top)
                continue
            opts = dict(mtime=SECOND, xattrs=XATTRS,
                        ordered=name != "unsquashfs")
            opts.update(kw)
            tree.same(d, top, name, **opts)
            tree.lookups(d, top, 30)


# --- everything odd -----------------------------------------------------------------

@functools.lru_cache(None)
def odd_tree():
    top = arc.odd_tree()
    arc.unix_socket(os.path.join(top, "special/socket"))
    if lib.ROOT:
        for n, p in enumerate(("sizes/text", "xattrs/dir", "links/sym01",
                               "special/fifo", "special/null")):
            p = os.path.join(top, p)
            os.lchown(p, 70000 + n, 4294967294 - n)
            os.setxattr(p, "trusted.odd", b"\0%d" % n, follow_symlinks=False)
    return top


def odd(*opts, only=None):
    image = image_of(odd_tree(), *opts)
    check("outside 1970 to 2106" in image_of.stderr,
          "no word of the times: " + image_of.stderr)
    compare(image, odd_tree(), only, ignore=FAR)
    with unsquashed(image) as d:
        for p, t in FAR.items():
            equal(os.lstat(os.path.join(os.fsencode(d), p)).st_mtime, t,
                  "mtime of %r" % p)


@functools.lru_cache(None)
def few():
    """3 MiB of everything that matters to blocks."""
    top = scratch("few")
    r = random.Random(3)
    for i in range(60):
        n = int(r.lognormvariate(9, 1.5))
        arc._put(os.fsencode(top), b"c%d/%03d" % (i % 4, i),
                 r.randbytes(n) if i % 2 else arc.text(n, i),
                 mtime=10**18 + i * SECOND)
    for n in (131071, 131072, 131073, 400000):
        arc._put(os.fsencode(top), b"text%d" % n, arc.text(n, n))
    arc._put(os.fsencode(top), b"noise", r.randbytes(300001))
    arc._put(os.fsencode(top), b"zeros", bytes(500001))
    arc._put(os.fsencode(top), b"mixed", bytes(131072) + arc.text(200000, 1) +
             bytes(262144))
    return top


def compressor(comp):
    image = image_of(few(), "--comp=" + comp)
    compare(image, few(), ("unsquashfs", "ours", "the kernel"))
    text = sh("unsquashfs", "-s", image).decode()
    name = {"auto": "zstd", "none": "gzip"}.get(comp, comp.split(":")[0])
    check("Compression " + name in text, text)
    if comp == "none":
        for what in ("Inodes are", "Data is"):
            check(what + " uncompressed" in text, text)
    equal(os.path.getsize(image) % 4096, 0, "padding")


def block_size(size):
    image = image_of(few(), "--block-size=" + size, "--comp=zstd:1")
    compare(image, few(), ("unsquashfs", "the kernel"))
    equal(superblock(image)["block"],
          int(size[:-1]) << (10 if size[-1] == "K" else 20), "block size")


def empty():
    top = scratch("empty")
    os.chmod(top, 0o710)
    os.utime(top, (10**9, 10**9))
    image = image_of(top)
    compare(image, top, xattrs=())
    equal(superblock(image)["inodes"], 1, "inodes")
    equal(superblock(image)["time"], 10**9, "time of the image")


def formats():
    one("odd:auto", odd)
    one("odd:zstd", odd, "--comp=zstd:3", "--block-size=64K",
        only=("unsquashfs", "the kernel"))
    one("odd:none", odd, "--comp=none", "--block-size=4K",
        only=("unsquashfs", "ours", "the kernel"))
    for comp in ("auto", "none", "zstd:19", "gzip", "gzip:1", "lz4", "lz4:9",
                 "xz"):
        one("compressor:" + comp, compressor, comp)
    for size in ("4K", "16K", "256K", "1M"):
        one("block-size:" + size, block_size, size)
    one("empty", empty)


# --- metadata at its limits -----------------------------------------------------------

def attributes(n):
    """n different sets: tables of exactly one and two blocks of metadata, too."""
    top = scratch("sets")
    for i in range(n):
        p = os.path.join(top, "%05d" % i)
        os.close(os.open(p, os.O_CREAT))
        os.setxattr(p, "user.n", b"%d" % i * (1 + i % 30))
    compare(image_of(top), top, ("unsquashfs", "the kernel"), content=False)


def directory(n):
    """One with an index, and names that begin alike."""
    top = scratch("many")
    for i in range(n):
        name = "%s-%d" % ("x" * (i % 200), i * 7919)
        os.close(os.open(os.path.join(top, name), os.O_CREAT))
    for i in range(300):
        os.mkdir(os.path.join(top, "d%d" % i))
    compare(image_of(top), top, ("unsquashfs", "the kernel"), content=False)


def many_ids():
    if not lib.ROOT:
        return note("ids: for root only")
    top = scratch("ids")
    for i in range(1000):
        p = os.path.join(top, "%d" % i)
        os.symlink("x", p)
        os.lchown(p, i * 64, 2**31 + i)
    compare(image_of(top), top, ("unsquashfs", "ours", "the kernel"))


def too_many_ids():
    if not lib.ROOT:
        return note("ids: for root only")
    top = scratch("ids")
    for i in range(32770):
        p = os.path.join(top, "%d" % i)
        os.symlink("x", p)
        os.lchown(p, i, 10**6 + i)
    out = os.path.join(scratch("out"), "image.sqfs")
    p = exits(tensorfs("pack", "-q", top, out), 1, "pack")
    check("65536" in p.stderr and "--owner" in p.stderr, p.stderr)
    equal(os.listdir(os.path.dirname(out)), [], "what is left behind")
    image = image_of(top, "--owner=7:8")
    equal(superblock(image)["ids"], 2, "ids")


def metadata():
    for n in (1, 511, 512, 1024):
        one("xattrs:%d" % n, attributes, n)
    one("directory", directory, 3000)
    one("ids", many_ids)
    one("ids:too-many", too_many_ids)


# --- where bytes are ------------------------------------------------------------------

def made(files, top=None):
    top = top or scratch("files")
    for name, data in files.items():
        p = os.path.join(top, name)
        os.makedirs(os.path.dirname(p), exist_ok=True)
        with open(p, "wb") as f:
            f.write(data)
    return top


def noise(n, seed):
    return random.Random(seed).randbytes(n)


def order():
    """Data lies in the order of the list; names are sorted all the same."""
    files = {"c%d/%04d" % (i % 3, i): noise(5000 if i % 10 else 200000, i)
             for i in range(60)}
    top = made(files)
    names = sorted(files)
    random.Random(5).shuffle(names)
    listed, rest = names[:40], sorted(names[40:])
    path = os.path.join(scratch("order"), "order")
    with open(path, "w") as f:
        f.write("".join(n + "\n" for n in listed))
    image = image_of(top, "--order=" + path)
    data = read(image)
    at = [data.find(files[n]) for n in listed + rest]
    check(min(at) > 0, "noise is not stored as it is")
    equal(at, sorted(at), "positions")
    compare(image, top, ("unsquashfs", "ours", "the kernel"))


def stored():
    """What does not get smaller is stored, each in its own place; text is not."""
    files = {"%03d.%s" % (i, k): noise(11264, i) if k == "jpg"
             else arc.text(11264, i) for i in range(40) for k in ("jpg", "txt")}
    files["large.jpg"] = noise(1 << 20, 99)
    files["large.txt"] = arc.text(1 << 20, 99)
    image = image_of(made(files))
    data = read(image)
    for name, d in files.items():
        equal(data.find(d[-1000:]) > 0, name.endswith("jpg"),
              name + " is as it was")
    jpg = sum(len(d) for n, d in files.items() if n.endswith("jpg"))
    check(len(data) < jpg + (len(files) * 11264 + (1 << 20)) // 3,
          "%d bytes" % len(data))
    # Without auto all small files are together.
    fragments = superblock(image)["fragments"]
    other = superblock(image_of(made(files), "--comp=zstd:9"))["fragments"]
    check(other > fragments, "%d and %d blocks of small files" % (fragments,
                                                                  other))


def repeats_far_apart():
    """It looks like noise, but half of it was there before: it is compressed."""
    part = noise(40000, 1)
    top = made({"f": (part + noise(100, 2)) * 40})
    size = os.path.getsize(image_of(top))
    check(size < 40 * 40100 // 2, "%d bytes" % size)


def duplicates(comp):
    """Once in the image: small files, files of blocks, and what is stored."""
    small, large = arc.text(9000, 1), arc.text(3 << 20, 2)
    dense, huge = noise(20000, 3), noise(300001, 4)
    files = {}
    for i in range(30):
        files["%02d/small" % i] = small
        files["%02d/other" % i] = arc.text(30000, 100 + i)
        files["%02d/dense" % i] = dense
        if i % 10 == 0:
            files["%02d/large" % i] = large
            files["%02d/huge" % i] = huge
            # The same blocks, but for one byte at the end.
            files["%02d/nearly" % i] = huge[:-1] + bytes([i])
    top = made(files)
    image = image_of(top, "--comp=" + comp)
    compare(image, top, ("unsquashfs", "ours", "the kernel"))
    size = os.path.getsize(image)
    most = len(large) + 5 * len(huge) + len(dense) + 32 * 30000
    check(size < most, "%d bytes, expected less than %d" % (size, most))


def holes():
    """A terabyte of nothing takes no time and no room."""
    top = scratch("holes")
    with open(os.path.join(top, "f"), "wb") as f:
        f.truncate(200 << 30)
        for at in (1 << 20, (100 << 30) + 12345, (200 << 30) - 5):
            f.seek(at)
            f.write(b"12345")
    image = image_of(top, "--block-size=1M")
    check(os.path.getsize(image) < 1 << 20, "it is large")
    for name, reader in readers():
        if name == "unsquashfs":
            continue
        with reader(image) as d, open(os.path.join(d, "f"), "rb") as f:
            for at in (1 << 20, (100 << 30) + 12345, (200 << 30) - 5):
                same_bytes(os.pread(f.fileno(), 10, at - 2),
                           (b"\0\0" + b"12345" + b"\0\0\0")[:min(
                               10, (200 << 30) - at + 2)], name)
            if name == "the kernel":
                check(os.fstat(f.fileno()).st_blocks < 10000,
                      "%s: %d blocks" % (name, os.fstat(
                          f.fileno()).st_blocks))


def large_holes():
    """The list of blocks takes memory only for those that are there."""
    top = scratch("holes")
    for name in "f", "g":
        with open(os.path.join(top, name), "wb") as f:
            f.truncate(128 << 30)
            f.seek(64 << 30)
            f.write(b"12345")
    out = os.path.join(scratch("out"), "image.sqfs")
    used = packlib.peak(lib.TENSORFS, "pack", "-q", "--block-size=4K",
                        "--memory=64M", top, out)
    if not os.environ.get("TENSORFS_SANITIZED"):
        check(used < 100 << 20, "%d KiB" % (used >> 10))
    check(os.path.getsize(out) < 3 << 20, "the same file is in it once")
    with open(os.path.join(top, "h"), "wb") as f:
        f.truncate(9 << 40)
    image_of_nothing(top, "--block-size=4K")
    check("'h'" in image_of.stderr and "2^31" in image_of.stderr,
          image_of.stderr)


def image_of_nothing(top, *opts):
    d = scratch("image")
    p = tensorfs("pack", "-q", *opts, top, os.path.join(d, "image.sqfs"))
    exits(p, 1, "pack %s" % " ".join(opts))
    equal(os.listdir(d), [], "what is left behind")
    image_of.stderr = p.stderr


def reproducible():
    """Whatever the number of threads, and with hardly any memory."""
    images = [read(image_of(few(), *o)) for o in (
        ["--threads=1"], ["--threads=2"], ["--threads=8", "--jobs=1"],
        ["--threads=8", "--memory=4M"])]
    for data in images[1:]:
        check(data == images[0], "the images differ")
    for comp in ("gzip", "lz4", "xz:1", "none"):
        a, b = (read(image_of(few(), "--comp=" + comp,
                              "--threads=%d" % n)) for n in (1, 5))
        check(a == b, "%s: the images differ" % comp)


def epoch():
    top = made({"old": b"1", "new": b"2"})
    os.utime(os.path.join(top, "old"), (1000, 1000))
    image = image_of(top, env={"SOURCE_DATE_EPOCH": "1234567890"})
    equal(superblock(image)["time"], 1234567890, "time of the image")
    with ours(image) as d:
        equal([os.stat(os.path.join(d, n)).st_mtime
               for n in (".", "new", "old")],
              [1234567890, 1234567890, 1000], "times")
    image = image_of(top, "--mtime=@77", "--owner=5:6")
    equal(superblock(image)["time"], 77, "time of the image")
    with ours(image) as d:
        for n in (".", "new", "old"):
            st = os.stat(os.path.join(d, n))
            equal((st.st_uid, st.st_gid, st.st_mtime), (5, 6, 77), n)


def layout():
    one("order", order)
    one("stored", stored)
    one("repeats", repeats_far_apart)
    for comp in ("auto", "zstd:3", "none"):
        one("duplicates:" + comp, duplicates, comp)
    one("holes", holes)
    one("large-holes", large_holes)
    one("reproducible", reproducible)
    one("epoch", epoch)


# --- what goes wrong ------------------------------------------------------------------

def arguments():
    top = made({"f": b"x"})
    out = os.path.join(scratch("out"), "image.sqfs")
    for opts, words in ((("--block-size=5000",), "4K, 8K"),
                        (("--block-size=2K",), "4K, 8K"),
                        (("--block-size=2M",), "1M"),
                        (("--comp=lzf",), "not support lzf"),
                        (("--labels=dirs",), "for tensors"),
                        (("--chunk=1",), "for tensors"),
                        (("--comp=zstd:23",), "22")):
        p = exits(tensorfs("pack", *opts, top, out), 2, " ".join(opts))
        check(words in p.stderr, p.stderr)
        equal(os.listdir(os.path.dirname(out)), [], "what is left behind")


def disk_full():
    """What was there is there, and nothing else."""
    if not lib.ROOT:
        return note("disk full: for root only")
    d = scratch("tmpfs")
    sh("mount", "-t", "tmpfs", "-o", "size=2M", "none", d)
    try:
        out = os.path.join(d, "image.sqfs")
        with open(out, "wb") as f:
            f.write(b"old")
        top = made({"f": noise(3 << 20, 1), "g": noise(3000, 2)})
        p = tensorfs("pack", "-q", "--force", top, out)
        check(p.returncode in (1, 5), "exit %d" % p.returncode)
        check("space" in p.stderr, p.stderr)
        equal(os.listdir(d), ["image.sqfs"], "what is left behind")
        same_bytes(read(out), b"old", "what was there")
    finally:
        sh("umount", d)


def interrupted():
    """In the middle, before half of it is written."""
    top = made({"%d" % i: noise(4 << 20, i) for i in range(4)})
    for sig, after in ((signal.SIGINT, 1 << 16), (signal.SIGTERM, 4 << 20)):
        d = scratch("out")
        check(packlib.interrupted(["-q", "--comp=xz:9", "--threads=1", top,
                                   os.path.join(d, "image.sqfs")], d, sig, after),
              "it was too fast, each time")
        equal(os.listdir(d), [], "what is left behind")


def verified():
    """Through our own reader, and the summary."""
    out = os.path.join(scratch("out"), "image.sqfs")
    p = tensorfs("pack", "--verify", "--json", few(), out)
    exits(p, 0, "pack --verify")
    check("zstd:9" in p.stdout, p.stdout)


def failures():
    one("arguments", arguments)
    one("disk-full", disk_full)
    one("interrupted", interrupted)
    one("verify", verified)


if __name__ == "__main__":
    arc.main((formats, metadata, layout, failures))
