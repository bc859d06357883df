#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""squashfs: what is mounted is what unsquashfs leaves, for every compressor and
block size, whoever wrote the image; damage is an error and nothing else."""
import errno
import functools
import os
import random
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import lib
import tree
from arc import one, scratch, sh, some, tries
from checks import check, equal, note, read, same_bytes
from lib import Mount, exits, tensorfs

COMPRESSORS = ("gzip", "lzo", "lz4", "xz", "zstd")
SMALL = arc.PACKED_CACHE


def image_of(src, *opts):
    out = os.path.join(scratch("sq"), "image.sqfs")
    sh("mksquashfs", src, out, "-noappend", "-no-progress", "-quiet",
       "-processors", "2", *opts)
    return out


def unsquash(image, *opts):
    """unsquashfs as root restores everything; its complaints are its own."""
    d = os.path.join(scratch("un"), "root")
    sh("unsquashfs", "-n", "-q", "-d", d, *opts, image, ok=(0, 2))
    return d


def compare(image, opts=SMALL, unsquash_opts=(), **kw):
    """With what unsquashfs makes of it.  The cache is smaller than what is decoded,
    so blocks come and go."""
    want = unsquash(image, *unsquash_opts)
    kw.setdefault("root", True)
    arc.compare(image, want, opts=opts, **kw)
    return want


# --- mksquashfs -----------------------------------------------------------------

def compressor(comp, block):
    image = image_of(arc.packed_tree(), "-comp", comp, "-b", block)
    arc.compare_together(image, unsquash(image), SMALL)


def odd(*opts):
    compare(image_of(arc.odd_tree(), *opts))


def variant(*opts):
    """The index of these images differs in nothing that odd() does not have."""
    compare(image_of(arc.odd_tree(), *opts), twice=lib.full())


VARIANTS = {
    "plain": (), "no-fragments": ("-no-fragments",),
    "always-use-fragments": ("-always-use-fragments",),
    "tailends-64K": ("-always-use-fragments", "-b", "65536"),
    "noI": ("-noI",), "noD": ("-noD",), "noF": ("-noF",), "noX": ("-noX",),
    "noId": ("-noId",),
    "none": ("-noI", "-noD", "-noF", "-noX"),
    "none-no-fragments": ("-noI", "-noD", "-noF", "-noX", "-no-fragments"),
    "no-xattrs": ("-no-xattrs",), "no-exports": ("-no-exports",),
    "no-duplicates": ("-no-duplicates",), "no-sparse": ("-no-sparse",),
    "no-tailends": ("-no-tailends",), "nopad": ("-nopad",),
    "all-root": ("-all-root",), "times": ("-all-time", "1234567890",
                                          "-mkfs-time", "1"),
    "root-mode": ("-root-mode", "0710"),
    "lz4-hc": ("-comp", "lz4", "-Xhc"),
    "xz-filters": ("-comp", "xz", "-Xbcj", "x86,arm", "-b", "64K"),
    "xz-dict": ("-comp", "xz", "-Xdict-size", "50%", "-b", "128K"),
    "gzip-options": ("-comp", "gzip", "-Xcompression-level", "1",
                     "-Xwindow-size", "9"),
    "lzo-options": ("-comp", "lzo", "-Xalgorithm", "lzo1x_1_15"),
    "zstd-options": ("-comp", "zstd", "-Xcompression-level", "19"),
}
# Options that do not touch each other share an image in the standard tier.
TOGETHER = (("noI", "noF", "nopad"), ("noD", "noX", "no-tailends"),
            ("noId", "no-exports", "no-duplicates", "no-sparse"),
            ("all-root", "times", "root-mode", "no-xattrs"))


def variants():
    """{name: options of mksquashfs}"""
    if lib.full():
        return VARIANTS
    out = {k: v for k, v in VARIANTS.items() if k not in sum(TOGETHER, ())}
    for names in TOGETHER:
        out["+".join(names)] = sum((VARIANTS[n] for n in names), ())
    return out


def pseudo():
    """Devices, FIFOs, sockets, links and files that only the image has."""
    src = scratch("pseudo")
    with open(os.path.join(src, "file"), "w") as f:
        f.write("a file")
    arc.unix_socket(os.path.join(src, "socket"))
    image = image_of(src, *(x for p in (
        "dev d 755 0 0", "dev/null c 666 1 2 1 3", "dev/sda b 660 3 4 8 0",
        "dev/large b 600 0 0 259 70000", "fifo i 640 5 6 f",
        "sock i 600 7 8 s", "sym s 777 9 10 ../outside",
        "made f 4711 11 12 printf made", "huge d 7777 4294967294 70000")
        for x in ("-p", p)))
    want = {"dev": (stat.S_IFDIR, 0o755, 0, 0, 0),
            "dev/null": (stat.S_IFCHR, 0o666, 1, 2, os.makedev(1, 3)),
            "dev/sda": (stat.S_IFBLK, 0o660, 3, 4, os.makedev(8, 0)),
            "dev/large": (stat.S_IFBLK, 0o600, 0, 0, os.makedev(259, 70000)),
            "fifo": (stat.S_IFIFO, 0o640, 5, 6, 0),
            "sock": (stat.S_IFSOCK, 0o600, 7, 8, 0),
            "socket": (stat.S_IFSOCK, None, None, None, 0),
            "made": (stat.S_IFREG, 0o4711, 11, 12, 0),
            "huge": (stat.S_IFDIR, 0o7777, 4294967294, 70000, 0)}
    for _ in range(2):
        with Mount(image) as m:
            for n, (kind, mode, uid, gid, rdev) in want.items():
                st = os.lstat(m / n)
                equal(stat.S_IFMT(st.st_mode), kind, "type of " + n)
                if mode is not None:
                    equal((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid),
                          (mode, uid, gid), "mode, uid, gid of " + n)
                equal(st.st_rdev if rdev else 0, rdev, "device of " + n)
            equal(os.readlink(m / "sym"), "../outside", "target")
            same_bytes(read(m / "made"), b"made", "made")
            tree.scan(m.path, listing=tree.listing_of(m.path))


def directories(n):
    """n entries in one directory: an index in the directory, 16-bit counts."""
    src = scratch("many")
    for i in range(n):
        os.close(os.open(os.path.join(src, "%x-%d" % (i * 7919 % n, i)),
                         os.O_CREAT | os.O_WRONLY))
    image = image_of(src, "-comp", "lz4")
    names = sorted(os.fsencode(x) for x in os.listdir(src))
    for _ in range(2 if lib.full() or n < 10000 else 1):
        with Mount(image) as m:
            got = [x for x, _, _ in tree.dirents(m.path)]
            equal(len(got), len(names), "names")
            check(got == names, "the names differ")
            for x in random.Random(1).sample(names, 200):
                equal(os.lstat(os.path.join(os.fsencode(m.path), x)).st_size,
                      0, "size")
            check(not os.path.exists(m / "not there"), "found")


def subdirectories():
    """Many directories: nlink, and inodes of directories."""
    src = scratch("subdirs")
    for i in range(1000 if lib.full() else 200):
        os.makedirs(os.path.join(src, "d%d/e/f" % i))
    image = image_of(src)
    compare(image)


def sparse():
    """Holes are blocks of size 0; a file of holes only; a large one."""
    src = scratch("sparse")
    with open(os.path.join(src, "large"), "wb") as f:
        f.truncate(5 << 30)
        for off in (0, (3 << 30) + 5, (5 << 30) - 4):
            f.seek(off)
            f.write(b"here")
    with open(os.path.join(src, "holes"), "wb") as f:
        f.truncate(1000001)
    # mksquashfs reads all of the holes.
    for b in some(("4K", "1M")):
        image = image_of(src, "-b", b)
        check(os.path.getsize(image) < 1 << 20, "the image is large")
        # unsquashfs writes 5 GiB; the source is as good.
        arc.compare(image, src, SMALL, mtime=10**9)
        # So cp makes holes again.
        with Mount(image, opts=SMALL) as m:
            for n, at_most in (("large", 3 << 20), ("holes", 1000001 % (1 << 20))):
                got = os.stat(m / n).st_blocks * 512
                check(got <= at_most + 512, "%s takes %d bytes" % (n, got))
    with Mount(src) as m:  # and from a directory
        got = os.stat(m / "large").st_blocks * 512
        stored = os.stat(src + "/large").st_blocks * 512
        check(stored <= got <= stored + 4096, "large takes %d bytes" % got)


def duplicates():
    """Equal files share blocks, and parts of fragments."""
    src = scratch("dup")
    data = random.Random(1).randbytes(400000)
    for i in range(20):
        with open(os.path.join(src, "f%02d" % i), "wb") as f:
            f.write(data if i % 2 else data[:1000])
    compare(image_of(src, "-b", "128K"))


def offset():
    """Garbage in front; -o offset= with every form of a size."""
    image = image_of(arc.packed_tree(), "-comp", "gzip")
    body = read(image)
    want = unsquash(image)
    for n, text in ((4096, "4K"), (12345, "12345")) + lib.full() * (
            (4096, "4096"), (1 << 20, "1M")):
        with open(image, "wb") as f:
            f.write(b"#!/bin/sh\nexec something\n".ljust(n, b"g")[:n] + body)
        arc.compare(image, want, SMALL + ["-o", "offset=" + text],
                    twice=lib.full() or text == "4K")
    exits(tensorfs("mount", image, scratch("m")), 3, "without offset=")
    exits(tensorfs("mount", "-o", "offset=4", image, scratch("m")), 3,
          "wrong offset")


def subdir():
    image = image_of(arc.packed_tree())
    with Mount(image, opts=["-o", "subdir=c1"]) as m:
        tree.same(m.path, arc.packed_tree() + "/c1")
    exits(tensorfs("mount", "-o", "subdir=nope", image, scratch("m")),
          (2, 3), "subdir= that is not there")


def appended():
    """mksquashfs adds to an image: old tables stay in the middle."""
    src = arc.packed_tree()
    image = image_of(src + "/c0", "-keep-as-directory")
    sh("mksquashfs", src + "/c1", image, "-no-progress", "-quiet",
       "-keep-as-directory")
    compare(image)


def from_tar():
    """sqfstar: an image of a tar stream."""
    t = os.path.join(scratch("t"), "a.tar")
    sh("tar", "-c", "--format=posix", "-f", t, "-C",
       arc.odd_tree(far=False), ".")
    out = os.path.join(scratch("sq"), "image.sqfs")
    sh("sqfstar", "-no-progress", "-quiet", out, input=read(t), ok=(0, 1, 2))
    check(os.path.exists(out), "sqfstar made nothing")
    compare(out)


def empty():
    compare(image_of(scratch("empty")))


def by_name():
    """The content says what it is, not the name."""
    image = image_of(arc.packed_tree())
    for n in ("x.img", "a b,c.squashfs", "no suffix", "x.tar"):
        new = os.path.join(os.path.dirname(image), n)
        os.rename(image, new)
        image = new
        with Mount(image) as m:
            tree.same(m / "c2", arc.packed_tree() + "/c2")


def mksquashfs():
    for i, comp in enumerate(COMPRESSORS):
        for block in some(("4K", "128K", "1M"), i):
            one("mksquashfs:%s:%s" % (comp, block), compressor, comp, block)
        one("odd:" + comp, odd, "-comp", comp)
    for name, opts in variants().items():
        one("variant:" + name, variant, *opts)
    for n in (257, 3000, 70000):
        one("directory:%d" % n, directories, n)
    for f in (pseudo, subdirectories, sparse, duplicates, offset, subdir,
              appended, from_tar, empty, by_name):
        one("image:" + f.__name__, f)


# --- squashfs-tools-ng ------------------------------------------------------------

def ng(*opts):
    out = os.path.join(scratch("ng"), "image.sqfs")
    sh("gensquashfs", "-q", "-D", arc.packed_tree(), "-j", "2", *opts, out)
    if "lz4" in opts:  # unsquashfs does not read its tables; others do
        return arc.compare(out, arc.packed_tree(), SMALL, mtime=0, root=False)
    compare(out)


def ng_odd():
    """tar2sqfs, with xattrs and everything odd."""
    t = os.path.join(scratch("t"), "a.tar")
    sh("tar", "-c", "--format=posix", "--xattrs", "-f", t, "-C",
       arc.odd_tree(far=False), ".")
    out = os.path.join(scratch("ng"), "image.sqfs")
    sh("tar2sqfs", "-q", out, input=read(t))
    compare(out)


def ng_pack():
    """A pack file: nodes that exist nowhere else; an export table."""
    d = scratch("pack")
    with open(os.path.join(d, "in"), "w") as f:
        f.write("content")
    with open(os.path.join(d, "list"), "w") as f:
        f.write("dir /d 0750 10 20\nfile /d/f 0640 1 2 in\n"
                "nod /d/c 0600 0 0 c 5 1\nnod /d/b 0600 0 0 b 7 300\n"
                "pipe /d/p 0644 3 4\nsock /d/s 0644 3 4\n"
                "slink /d/l 0777 5 6 ../../outside\n")
    out = os.path.join(d, "image.sqfs")
    sh("gensquashfs", "-q", "-e", "-F", os.path.join(d, "list"), "-D", d, out)
    with Mount(out) as m:
        kinds = {n: stat.S_IFMT(os.lstat(m / ("d/" + n)).st_mode)
                 for n in os.listdir(m / "d")}
        equal(kinds, {"f": stat.S_IFREG, "c": stat.S_IFCHR, "b": stat.S_IFBLK,
                      "p": stat.S_IFIFO, "s": stat.S_IFSOCK,
                      "l": stat.S_IFLNK}, "types")
        equal(os.lstat(m / "d/b").st_rdev, os.makedev(7, 300), "device")
        st = os.lstat(m / "d/f")
        equal((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (1, 2, 0o640),
              "owner and mode")
        same_bytes(read(m / "d/f"), b"content", "d/f")


def gensquashfs():
    for comp in ("gzip", "lz4", "xz", "zstd", "lzo"):
        one("ng:" + comp, ng, "-c", comp)
    for b in ("4096", "1048576"):
        one("ng:b%s" % b, ng, "-b", b)
    one("ng:no-tail-packing", ng, "-T")
    one("ng:odd", ng_odd)
    one("ng:pack-file", ng_pack)


# --- damage -------------------------------------------------------------------------

@functools.lru_cache(None)
def victim(comp):
    """A small image with every kind of inode, and what is in its files."""
    src = scratch("victim")
    r = random.Random(2)
    os.makedirs(os.path.join(src, "d/e"))
    files = {"a": r.randbytes(300000), "d/b": arc.text(200000),
             "d/e/c": b"small", "d/zeros": bytes(100000)}
    for i in range(60):
        files["d/e/%03d" % i] = arc.text(300, i)
    for n, data in files.items():
        with open(os.path.join(src, n), "wb") as f:
            f.write(data)
    os.symlink("a", os.path.join(src, "sym"))
    os.link(os.path.join(src, "a"), os.path.join(src, "hard"))
    os.mkfifo(os.path.join(src, "fifo"))
    os.setxattr(os.path.join(src, "a"), "user.x", b"value" * 50)
    image = image_of(src, "-comp", comp, "-b", "64K")
    return read(image), files


def survives(data, files, what, exact):
    """Mounted or refused with a sentence; everything below ends, as bytes or
    as an error; the daemon is there at the end."""
    image = os.path.join(scratch("bad"), "image.sqfs")
    with open(image, "wb") as f:
        f.write(data)
    m = arc.refused_or_mounted(image, SMALL)
    if m is None:
        return 1
    try:
        _walk(m, files, what, exact)
        arc.alive(m)
    finally:
        m.__exit__(None, None, None)
    return 0


def _walk(m, files, what, exact):
    count = 0
    for top, dirs, names in os.walk(m.path):
        for n in dirs + names:
            p = os.path.join(top, n)
            rel = os.path.relpath(p, m.path)
            count += 1
            check(count < 100000, what + ": no end of names")
            try:
                st = os.lstat(p)
                tree.xattrs_of(p, ("user.",))
                if stat.S_ISLNK(st.st_mode):
                    os.readlink(p)
                if not stat.S_ISREG(st.st_mode) or st.st_size > 10 << 20:
                    continue
                got = read(p)
            except OSError as e:
                check(e.errno in (errno.EIO, errno.EBADMSG, errno.ENOTSUP),
                      "%s: %s: %s" % (what, rel, e))
                continue
            equal(len(got), st.st_size, "%s: bytes of %s" % (what, rel))
            if exact and rel in files:
                same_bytes(got, files[rel], "%s: %s" % (what, rel))


def truncated(comp, part, parts):
    """Cut anywhere: no squashfs without its tables at the end.  What is read
    is right."""
    data, files = victim(comp)
    r = random.Random(5)
    cuts = [1, 4, 95, 96, 97, len(data) - 1, len(data) - 4096,
            len(data) - 4097] + [r.randrange(100, len(data))
                                 for _ in range(tries(16))]
    for keep in cuts[part::parts]:
        survives(data[:keep], files, "cut at %d" % keep, True)


def flipped(comp, where, n):
    """Bits flip in the superblock, in the tables behind the data, or in the
    data; there is no checksum, so bytes may differ, but nothing else."""
    data, files = victim(comp)
    table = int.from_bytes(data[64:72], "little")  # inode table
    lo, hi = {"super": (0, 96), "tables": (table, int.from_bytes(
        data[40:48], "little")), "data": (96, table)}[where]
    r = random.Random(comp + where)
    refused = 0
    for _ in range(n):
        bad = bytearray(data)
        at = [r.randrange(lo, hi) for _ in range(r.choice((1, 1, 1, 4)))]
        for x in at:
            bad[x] ^= 1 << r.randrange(8)
        refused += survives(bad, files, "bits flipped at %s" % at, False)
    note("%s, %s: %d of %d refused at mount" % (comp, where, refused, n))


def by_command(comp, n):
    """ls and verify over many more damaged images: they end, with a status
    and not by a signal."""
    data, _ = victim(comp)
    table = int.from_bytes(data[64:72], "little")
    image = os.path.join(scratch("bad"), "image.sqfs")
    r = random.Random(comp)
    for k in range(n):
        bad = bytearray(data)
        at = r.choice((r.randrange(96), r.randrange(table, len(data))))
        bad[at] = r.choice((0, 0xff, bad[at] ^ (1 << r.randrange(8))))
        with open(image, "wb") as f:
            f.write(bad)
        for argv in (("ls", "-R", image), ("verify", image)):
            p = tensorfs(*argv)
            exits(p, (0, 1, 3), "%s, byte %d is now %d" % (argv[0], at,
                                                           bad[at]))


def not_squashfs():
    """Other versions, other magic, nothing at all."""
    data, files = victim("gzip")
    for name, bad in (("swapped", data[:4][::-1] + data[4:]),
                      ("version 3", data[:28] + b"\3\0" + data[30:]),
                      ("compressor 77", data[:20] + b"\x4d\0" + data[22:]),
                      ("lzma", data[:20] + b"\2\0" + data[22:]),
                      ("block size 0", data[:12] + bytes(4) + data[16:]),
                      ("block size 2 MiB", data[:12] + b"\0\0\x20\0" +
                       data[16:])):
        check(survives(bad, files, name, True), name + " is mounted")


def damage():
    for comp in COMPRESSORS:
        one("damage:flip-super:" + comp, flipped, comp, "super", tries(6))
        one("damage:flip-tables:" + comp, flipped, comp, "tables", tries(10))
        one("damage:flip-data:" + comp, flipped, comp, "data", tries(4))
    for i in range(3):
        one("damage:truncated:%d" % i, truncated, "zstd", i, 3)
    one("damage:commands:gzip", by_command, "gzip", tries(40))
    one("damage:commands:none", by_command, "zstd", tries(40))
    one("damage:not-squashfs", not_squashfs)


if __name__ == "__main__":
    arc.main((mksquashfs, gensquashfs, damage))
