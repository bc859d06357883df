#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""stage, staged, unstage: what is staged is what tar, unsquashfs and h5py give."""
import functools
import json
import os
import stat
import sys
import tarfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import arc
import lib
import skerch
from checks import check, equal, note, read, same_bytes
from lib import case, exits, run, tensorfs
from stagelib import (CONTROL, HOME, Held, no_strays, nothing, record, same_tree,
                      sentence, setup, sources, stage, stage_one, staged,
                      unstage, visible)

work = None


def cleaned(f):
    """A case that leaves nothing, once all is unstaged."""
    @functools.wraps(f)
    def g():
        f()
        unstage("--all")
        nothing()
    return case(g)


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d)
    return d


def pack(name, top, *how):
    path = os.path.join(work, name)
    if not os.path.exists(path):
        arc.sh(*how, path, "-C", top, ".")
    return path


def tar_of(name, top):
    return pack(name, top, "tar", "--format=posix", "--xattrs", "-S", "-caf")


def sqfs_of(name, top):
    path = os.path.join(work, name)
    if not os.path.exists(path):
        arc.sh("mksquashfs", top, path, "-quiet", "-no-progress", "-noappend")
    return path


# --- archives -------------------------------------------------------------------

def archive_case(path, want, **kw):
    got = stage_one("-q", path, "--verify")
    same_tree(got, want, **kw)
    equal(stat.S_IMODE(os.stat(got).st_mode), 0o700, "mode of the tree")
    for p in (HOME, CONTROL):
        equal(stat.S_IMODE(os.stat(p).st_mode), 0o700, "mode of " + p)


@cleaned
def odd_tar():
    path = tar_of("odd.tar", arc.odd_tree())
    archive_case(path, arc.gnu_extract(path), sparse=True)
    equal(visible(), ["odd"], "names")


@cleaned
def odd_tar_gz():
    path = tar_of("odd.tar.gz", arc.odd_tree())
    archive_case(path, arc.gnu_extract(path), sparse=True)


@cleaned
def odd_tar_zst():
    path = tar_of("odd.tar.zst", arc.odd_tree())
    archive_case(path, arc.gnu_extract(path), sparse=True)


@cleaned
def odd_squashfs():
    path = sqfs_of("odd.sqfs", arc.odd_tree())
    want = os.path.join(scratch("unsq"), "d")
    # Its ways with attributes and devices are not the point here.
    arc.sh("unsquashfs", "-q", "-n", "-d", want, path, ok=(0, 2))
    archive_case(path, want, mtime_ns=10**9, sparse=True)


@cleaned
def data_of_all_sizes():
    for name, program in (("data.tar", "cat"), ("data.tar.xz", "xz -0"),
                          ("data.tar.bz2", "bzip2 -1"), ("data.tar.lz4", "lz4")):
        path = pack(name, arc.data_tree(), "tar", "--format=posix", "-I", program,
                    "-cf")
        same_tree(stage_one("-q", path), arc.data_tree())
    equal(len(visible()), 4, "trees of one base name")


@cleaned
def attributes():
    top = scratch("attributes")
    with open(os.path.join(top, "f"), "w") as f:
        f.write("x")
    os.setxattr(os.path.join(top, "f"), "user.text", b"plain")
    got = stage_one("-q", tar_of("attributes.tar", top))
    try:
        os.setxattr(got, "user.probe", b"")
    except OSError:
        note("no user attributes on this tmpfs")
        return
    equal(os.getxattr(os.path.join(got, "f"), "user.text"), b"plain", "xattr")


@cleaned
def large_file():
    """In pieces, on several threads."""
    top = scratch("large")
    data = os.urandom(1 << 20) * 45 + b"end"
    with open(os.path.join(top, "f"), "wb") as f:
        f.write(data)
    for path in (tar_of("large.tar", top), tar_of("large.tar.zst", top),
                 sqfs_of("large.sqfs", top)):
        got = stage_one(path, "--threads=3", "--verify")
        same_bytes(read(got + "/f"), data, path)


@cleaned
def hostile_names():
    """A link out of the tree, then a member behind it; '..' and '/'."""
    out = scratch("outside")
    path = os.path.join(work, "hostile.tar")
    with tarfile.open(path, "w") as t:
        for name, target in (("a/b", out), ("a/c", "../../.."),
                             ("/abs/l", out)):
            m = tarfile.TarInfo(name)
            m.type, m.linkname = tarfile.SYMTYPE, target
            t.addfile(m)
        for name in ("a/b/evil", "a/c/evil", "../evil", "/abs/l/evil",
                     "/etc/evil"):
            m = tarfile.TarInfo(name)
            m.size = 4
            import io
            t.addfile(m, io.BytesIO(b"evil"))
    p = tensorfs("stage", "-q", path)
    equal(os.listdir(out), [], "written outside")
    check(not os.path.exists("/etc/evil"), "written to /etc")
    check(not os.path.exists(os.path.dirname(HOME) + "/evil"), "written up")
    exits(p, 0, "stage")
    got = p.stdout.strip()
    for d, dirs, files in os.walk(got):
        for n in files:
            if not os.path.islink(os.path.join(d, n)):
                check(os.path.realpath(os.path.join(d, n)).startswith(got),
                      "%s/%s is outside" % (d, n))


# --- tensors --------------------------------------------------------------------

def h5(name, shape, chunks, **kw):
    path = os.path.join(work, name)
    data = (np.arange(np.prod(shape), dtype="f4") // 7).reshape(shape)
    with h5py.File(path, "w") as f:
        f.create_dataset("data", data=data, chunks=chunks, **kw)
    return path, data


def same_samples(got, data):
    d = os.path.join(got, "data/samples")
    names = sorted(os.listdir(d))
    equal(len(names), len(data), "samples")
    for i, n in enumerate(names):
        have = np.load(os.path.join(d, n))
        equal((have.dtype, have.shape), (data.dtype, data[i].shape), n)
        same_bytes(have.tobytes(), data[i].tobytes(), n)


@cleaned
def samples():
    path, data = h5("t.h5", (50, 33, 17), (7, 10, 17), compression="gzip")
    got = stage_one("-q", path, "--verify")
    same_samples(got, data)
    equal(sorted(os.listdir(got + "/data")), ["info.json", "samples"],
          "views")
    json.loads(read(got + "/data/info.json"))


@cleaned
def every_chunk_once():
    """A row of chunks is much larger than the cache: all the same."""
    path, data = h5("rows.h5", (96, 256, 256), (32, 32, 32),
                    compression="gzip", shuffle=True)
    for size, most in (("5M", 2), ("64M", 1.05)):
        got = stage_one("-q", path, "--force", "--cache-size=" + size)
        same_samples(got, data)
        # Those at the edge of a window may be decoded for both of its sides.
        decoded = record(got)["chunks_decoded"]
        note("cache %s: %d chunks decoded of 192" % (size, decoded))
        check(192 <= decoded <= 192 * most + 3, "%d chunks decoded, and there "
              "are 192" % decoded)


@cleaned
def other_views():
    path, data = h5("views.h5", (20, 8), (5, 8), compression="gzip")
    got = stage_one("-q", path, "--view=blocks")
    blocks = sorted(os.listdir(got + "/data/blocks"))
    same_bytes(b"".join(np.load(got + "/data/blocks/" + b).tobytes()
                        for b in blocks), data.tobytes(), "blocks")
    got = stage_one("-q", path, "--view=array,raw")
    equal(sorted(os.listdir(got + "/data")),
          ["array.bin", "array.npy", "info.json"], "views")
    same_bytes(np.load(got + "/data/array.npy").tobytes(), data.tobytes(),
               "array.npy")
    same_bytes(read(got + "/data/array.bin"), data.tobytes(), "array.bin")
    equal(len(staged()), 2, "stages of one source with other options")


@cleaned
def datasets_without_samples():
    path = os.path.join(work, "mixed.h5")
    with h5py.File(path, "w") as f:
        f["scalar"] = 2.5
        f["group/x"] = np.arange(6).reshape(2, 3)
        f["text"] = ["one", "two"]
        f["link"] = h5py.SoftLink("/group/x")
    got = stage_one("-q", path, "--verify")
    equal(float(np.load(got + "/scalar/array.npy")), 2.5, "scalar")
    equal(read(got + "/text/samples/000001.txt").strip(), b"two", "text")
    equal(np.load(got + "/group/x/samples/000001.npy").tolist(), [3, 4, 5],
          "in a group")
    equal(np.load(got + "/link/samples/000000.npy").tolist(), [0, 1, 2],
          "by a link")


@cleaned
def parts():
    t = skerch.create(scratch("parts"), rows=60, sub=(9,), part=10)
    path = t.all_path
    got = stage_one("-q", path)
    same_samples(got, t.data)
    paths = sources(got)
    for _, _, part in t.parts:
        check(part in paths, "%s is not among the sources" % part)
    # A part that changes is a source that changes.
    os.utime(t.parts[3][2], (1, 1))
    p = exits(tensorfs("stage", path), 0, "stage")
    sentence(p, "replaced")
    os.unlink(t.parts[3][2])
    p = stage("-q", path, code=1)
    sentence(p, t.parts[3][2])
    equal(visible(), [os.path.basename(got)], "what was there stays")
    got = stage_one(path, "--missing=skip")
    names = sorted(os.listdir(got + "/data/samples"))
    equal(names, ["%06d.npy" % i for i in range(60) if not 30 <= i < 40],
          "samples that are there")
    same_bytes(np.load(got + "/data/samples/000045.npy").tobytes(),
               t.data[45].tobytes(), "sample 45")
    stage("-q", path, "--missing=skip", "--verify")
    os.rename(got + "/data/samples/000045.npy", got + "/data/samples/other")
    sentence(tensorfs("stage", path, "--missing=skip", "--verify"), "000045",
             "again")
    equal(sorted(os.listdir(got + "/data/samples")), names, "samples, mended")
    got = stage_one("-q", path, "--missing=fill")
    equal(len(os.listdir(got + "/data/samples")), 60, "filled samples")
    check(stage_one("-q", path, "--missing=fill") == got, "not used again")


# --- what is named --------------------------------------------------------------

@cleaned
def paths_of_a_source():
    path = tar_of("data.tar", arc.data_tree())
    got = stage_one("-q", path + ":c1", path + ":/c2/../c3" if 0 else
                    path + ":./c3/", path + ":big/text")
    equal(sorted(os.listdir(got)), ["big", "c1", "c3"], "directories")
    equal(os.listdir(got + "/big"), ["text"], "of big")
    for d in ("c1", "c3"):
        same_tree(os.path.join(got, d), os.path.join(arc.data_tree(), d))
    same_bytes(read(got + "/big/text"), read(arc.data_tree() + "/big/text"),
               "big/text")
    p = stage("-q", path + ":nowhere", code=1)
    sentence(p, "nowhere")
    # In another order, and once more below: the same.
    equal(stage_one("-q", path + ":big/text", path + ":c1", path + ":./c3/"),
          got, "path")
    stage("-q", path + ":../etc", code=1)


@cleaned
def lists():
    path, data = h5("list.h5", (12, 4), (3, 4))
    names = ["data/samples/%06d.npy" % i for i in (3, 5, 11)]
    listed = os.path.join(work, "list")
    with open(listed, "w") as f:
        f.write("\n".join(names) + "\n")
    got = stage_one("-q", path, "--files-from=" + listed)
    equal(sorted(os.listdir(got + "/data/samples")),
          [os.path.basename(n) for n in names], "samples")
    same_bytes(np.load(got + "/" + names[1]).tobytes(), data[5].tobytes(), "5")
    other = tar_of("data.tar", arc.data_tree())
    text = "\0".join([path + ":data", other + ":c1", other + ":c2"])
    lines = stage("-q", "--files-from=-", "-0", input=text.encode())
    equal(len(lines), 2, "directories")
    equal(sorted(os.listdir(lines[1])), ["c1", "c2"], "of the archive")
    p = stage("-q", "--files-from=/nowhere", code=1)
    sentence(p, "/nowhere")
    exits(tensorfs("stage"), 2, "no operand")


@cleaned
def several_as_one():
    a, data = h5("one.h5", (3, 4), (3, 4))
    b = tar_of("data.tar", arc.data_tree())
    got = stage_one("-q", "--name=both", a, b)
    equal(got, HOME + "/both", "path")
    equal(sorted(os.listdir(got)), ["data.tar", "one.h5"], "directories")
    same_samples(got + "/one.h5", data)
    got = stage_one("-q", "--name=pieces", a + ":data/info.json", b + ":c1")
    equal(sorted(os.listdir(got)), ["data.tar", "one.h5"], "directories")
    equal(os.listdir(got + "/data.tar"), ["c1"], "pieces")
    got = stage_one("-q", "--union", b, tar_of("more.tar", scratch("more")))
    same_tree(got, arc.data_tree(), mtime_ns=10**20)


# --- names, and using again -----------------------------------------------------

@cleaned
def used_again():
    d = scratch("again")
    path = os.path.join(d, "x.tar")
    arc.sh("tar", "-cf", path, "-C", arc.data_tree(), "c1")
    got = stage_one("-q", path)
    ino = os.stat(got).st_ino
    os.chdir(d)
    for form in (path, "x.tar", "./x.tar", d + "//x.tar"):
        equal(stage_one("-q", form), got, "path")
        equal(os.stat(got).st_ino, ino, "inode")
    os.chdir(work)
    # Another one of the name, in another directory: both are there.
    other = os.path.join(scratch("again2"), "x.tar")
    arc.sh("tar", "-cf", other, "-C", arc.data_tree(), "c2")
    got2 = stage_one("-q", other)
    check(got2 != got and os.path.basename(got2).startswith("x-"), got2)
    equal(os.listdir(got) + os.listdir(got2), ["c1", "c2"], "trees")
    equal([stage_one("-q", path), stage_one("-q", other)], [got, got2],
          "paths")
    # --force: anew, at the same place.
    equal(stage_one("-q", "--force", path), got, "path")
    check(os.stat(got).st_ino != ino, "it was not staged anew")
    # An exact name that is taken by another source.
    p = stage("-q", "--name=x", other, code=1)
    sentence(p, "x", path)
    for bad in (".x", "a/b", ""):
        check(tensorfs("stage", "--name=" + bad, path).returncode in (1, 2),
              "--name=%r" % bad)
    no_strays()


@cleaned
def source_changed():
    path = os.path.join(work, "changing.tar")
    arc.sh("tar", "-cf", path, "-C", arc.data_tree(), "c1")
    got = stage_one("-q", path)
    arc.sh("tar", "-cf", path, "-C", arc.data_tree(), "c2", "c3")
    p = exits(tensorfs("stage", path), 0, "stage")
    sentence(p, "replaced")
    equal(p.stdout.strip(), got, "path")
    equal(sorted(os.listdir(got)), ["c2", "c3"], "the new tree")
    # In use: that stays, the new one has another name.
    with Held(got):
        arc.sh("tar", "-cf", path, "-C", arc.data_tree(), "c4")
        p = exits(tensorfs("stage", path), 0, "stage")
        new = p.stdout.strip()
        check(new != got, "a tree in use was replaced")
        sentence(p, "in use")
        equal(sorted(os.listdir(got)), ["c2", "c3"], "the tree in use")
        equal(os.listdir(new), ["c4"], "the new one")
        equal(stage_one("-q", path), new, "path")
    no_strays()


@cleaned
def changed_with_its_times_back():
    """Same size, same inode, mtime put back: it is another file all the same.  So is
    one that is written to again at once."""
    path = os.path.join(scratch("times"), "x.tar")
    top = scratch("times-tree")

    def fill(byte):
        with open(top + "/f", "wb") as f:
            f.write(byte * 1000)
        os.utime(top + "/f", (1, 1))
        data = arc.sh("tar", "-cf", "-", "-C", top, "f")
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.write(data)

    def staged_byte():
        with open(stage_one("-q", path) + "/f", "rb") as f:
            return f.read()[:1]
    fill(b"a")
    st = os.stat(path)
    equal(staged_byte(), b"a", "first")
    fill(b"b")
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    equal(os.stat(path).st_mtime_ns, st.st_mtime_ns, "mtime")
    equal(staged_byte(), b"b", "after a write with its time put back")
    for i in range(10):
        byte = b"%d" % i
        fill(byte)
        equal(staged_byte(), byte, "written a moment ago")


@cleaned
def verified_again():
    """--verify looks at what is there already, too, and mends it."""
    path = os.path.join(work, "verify.tar")
    arc.sh("tar", "-cf", path, "-C", arc.data_tree(), "c1", "c2")
    got = stage_one("-q", path)
    ino = os.stat(got).st_ino
    equal([x["verified"] for x in staged()], [False], "verified")
    equal(stage_one("-q", "--verify", path), got, "path")
    equal(os.stat(got).st_ino, ino, "inode")
    equal([x["verified"] for x in staged()], [True], "verified")
    some = next(os.path.join(top, f) for top, _, names in os.walk(got)
                for f in sorted(names)
                if os.path.getsize(os.path.join(top, f)))
    with open(some, "r+b") as f:
        byte = f.read(1)
        f.seek(0)
        f.write(bytes([byte[0] ^ 1]))
    equal(stage_one("-q", path), got, "path without --verify")
    p = exits(tensorfs("stage", "--verify", path), 0, "stage --verify")
    sentence(p, "again", os.path.basename(some))
    equal(p.stdout.strip(), got, "path")
    with open(some, "rb") as f:
        equal(f.read(1), byte, "the byte")
    # A file too many, one too few.
    open(got + "/more", "w").close()
    sentence(tensorfs("stage", "--verify", path), "again")
    os.unlink(some)
    sentence(tensorfs("stage", "--verify", path), "again")
    check(os.path.exists(some) and not os.path.exists(got + "/more"), "tree")
    # Known to be wrong, it is not found again, also if there is no room for another.
    with open(some, "wb") as f:
        f.write(b"wrong")
    with Held(got):
        sentence(stage("--verify", "--reserve=100%", path, code=5), "again")
        check(stage_one("-q", path) != got, "found again")
    stage("-q", "--force", path)
    unstage("--all")
    got = stage_one("-q", path)
    os.unlink(got + "/" + os.path.relpath(some, got))
    stage("-q", "--verify", "--reserve=100%", path, code=5)
    equal(visible(), [], "what is wrong and not in use")
    no_strays()


@cleaned
def link_to_what_comes_later():
    """An external link's file that was missing, and is there the next time."""
    d = scratch("link")
    path = os.path.join(d, "main.h5")
    with h5py.File(path, "w") as f:
        f["a"] = np.arange(10)
        f["later"] = h5py.ExternalLink("later.h5", "x")
    got = stage_one("-q", path)
    equal(stage_one("-q", path), got, "path")
    with h5py.File(os.path.join(d, "later.h5"), "w") as f:
        f["x"] = np.arange(5.0)
    got = stage_one("-q", path)
    check(os.path.isdir(got + "/later"), "what came later was not seen")


@cleaned
def somebody_elses_inode():
    """A directory that has the staged one's name, and its inode number as well."""
    to, source = scratch("inode"), os.path.join(work, "inode.tar")
    arc.sh("tar", "-cf", source, "-C", arc.data_tree(), "c1")
    path = stage_one("-q", "--to", to, source)
    ino = os.stat(path).st_ino
    arc.sh("rm", "-rf", path)
    for _ in range(200):
        os.mkdir(path)
        if os.stat(path).st_ino == ino:
            break
        os.rmdir(path)
    else:
        note("no inode number was given again")
        os.mkdir(path)
    with open(path + "/precious", "w") as f:
        f.write("mine")
    p = tensorfs("stage", "-q", "--to", to, source)
    check(p.stdout.strip() != path, "a directory that is not ours is used")
    exits(tensorfs("unstage", "--all", "--to", to), 0, "unstage")
    equal(os.listdir(path), ["precious"], "what is not ours")


@cleaned
def directories_of_archives():
    """Archives in them get indexes, which is no change; what is added is one, also
    in one of several and below."""
    one, two = scratch("one"), scratch("two")
    os.mkdir(two + "/sub")
    arc.sh("tar", "-cf", one + "/a.tar", "-C", arc.data_tree(), "c1")
    arc.sh("tar", "-czf", two + "/sub/b.tar.gz", "-C", arc.data_tree(), "c2")
    argv = ["-q", "--name", "both", one, two]
    for _ in range(2):
        got = stage_one(*argv)
        equal(os.listdir(got + "/one/a.tar"), ["c1"], "the first")
        equal(os.listdir(got + "/two/sub/b.tar.gz"), ["c2"], "the second")
        ino = os.stat(got).st_ino
        equal(os.stat(stage_one(*argv)).st_ino, ino, "used again")
        stage_one("-q", "--force", *argv[1:])
    with open(two + "/sub/c", "w") as f:
        f.write("c")
    got = stage_one(*argv)
    check(os.path.exists(got + "/two/sub/c"), "what was added was not seen")


@cleaned
def directories():
    """A plain directory is a source; what is added to it is seen."""
    top = scratch("plain")
    os.makedirs(top + "/sub")
    for n in ("a", "sub/b"):
        with open(os.path.join(top, n), "w") as f:
            f.write(n * 1000)
    got = stage_one("-q", top)
    same_tree(got, top)
    ino = os.stat(got).st_ino
    equal(os.stat(stage_one("-q", top)).st_ino, ino, "used again")
    with open(top + "/sub/c", "w") as f:
        f.write("c")
    got = stage_one("-q", top)
    same_tree(got, top)
    check(os.stat(got).st_ino != ino, "what was added was not seen")
    # Links that lead out of it lead where they led; others stay what they are.
    for text, want in (
            ("../../elsewhere", top + "/sub/../../elsewhere"),
            ("../..", top + "/sub/../.."), ("../sub/./..", None),
            ("x/../../../y", top + "/sub/x/../../../y"), ("..", None),
            ("/absolute", None), ("...", None)):
        os.symlink(text, top + "/sub/link")
        got = os.readlink(stage_one("-q", top) + "/sub/link")
        equal(got, os.path.realpath(top) + want[len(top):] if want else text,
              "link to %s" % text)
        os.unlink(top + "/sub/link")
    for option in ("--subdir=sub", "--offset=512"):
        sentence(stage("-q", option, top, code=2), "directory", top)


@cleaned
def holes():
    """Of a directory and of archives: they take no room, and are not read (64 GiB)."""
    top = scratch("holes")
    with open(os.path.join(top, "large"), "wb") as f:
        f.truncate(64 << 30)
        f.seek(40 << 30)
        f.write(b"data" * 2048)
    with open(os.path.join(top, "small"), "wb") as f:
        f.truncate(3 << 20)
        f.seek(1 << 20)
        f.write(b"some")
    os.link(os.path.join(top, "small"), os.path.join(top, "again"))
    for source in (top, tar_of("holes.tar", top)):
        got = stage_one("-q", source)
        for name, size in (("large", 64 << 30), ("small", 3 << 20)):
            st = os.stat(os.path.join(got, name))
            equal(st.st_size, size, name)
            check(st.st_blocks * 512 <= 32 << 10, "%s of %s takes %d bytes" % (
                name, source, st.st_blocks * 512))
        with open(os.path.join(got, "large"), "rb") as f:
            f.seek((40 << 30) - 4)
            equal(f.read(8200), bytes(4) + b"data" * 2048 + bytes(4), "what is in it")
        unstage("--all")


@cleaned
def directories_of_nothing():
    """What was empty, or a link to nothing, may become something; what cannot be
    listed is not nothing."""
    top = scratch("sparse")
    os.makedirs(top + "/sub")
    with open(top + "/sub/empty", "w"):
        pass
    os.symlink("../later", top + "/link")
    got = stage_one("-q", top)
    ino = os.stat(got).st_ino
    equal(os.stat(stage_one("-q", top)).st_ino, ino, "used again")
    with open(top + "/sub/empty", "w") as f:
        f.write("bytes")
    got = stage_one("-q", top)
    equal(read(got + "/sub/empty"), b"bytes", "what was empty")
    with open(work + "/later", "w") as f:
        f.write("more")
    got = stage_one("-q", top)
    equal(read(got + "/link"), b"more", "what was missing")
    if lib.ROOT:
        return
    os.chmod(top + "/sub", 0)
    sentence(stage("-q", top, code=1), "sub", "Permission denied")
    stage("-q", "--missing=skip", top)
    os.chmod(top + "/sub", 0o700)


# --- staged, unstage ------------------------------------------------------------

@cleaned
def listing():
    equal(exits(tensorfs("staged"), 0, "staged").stdout, "", "of nothing")
    equal(staged(), [], "of nothing")
    path, data = h5("listed.h5", (4, 1000), (4, 1000))
    got = stage_one("-q", "--verify", path)
    item, = staged()
    equal((item["name"], item["path"], item["source"], item["state"],
           item["in_use"], item["files"], item["verified"]),
          ("listed", got, path, "ready", False, 5, True), "item")
    size = sum(os.stat(os.path.join(d, n)).st_size
               for d, _, files in os.walk(got) for n in files)
    equal(item["bytes"], size, "bytes")
    with Held(got):
        equal(staged()[0]["in_use"], True, "in use")
    text = exits(tensorfs("staged"), 0, "staged").stdout
    for word in ("NAME", "listed", "unused", path):
        check(word in text, "no %s in %s" % (word, text))
    equal(set(os.listdir(HOME)), {"listed", ".stages"}, "entries")


@cleaned
def unstaging():
    paths = []
    for n in ("u1", "u2", "u3"):
        paths.append(stage_one("-q", h5(n + ".h5", (2, 2), (2, 2))[0]))
    sentence(unstage("nowhere", code=1), "nowhere")
    os.mkdir(HOME + "/foreign")
    sentence(unstage("foreign", code=1), "foreign")
    os.rmdir(HOME + "/foreign")
    link = os.path.join(work, "link-to-staged")
    os.symlink(paths[0], link)
    unstage(link, code=1)
    unstage(paths[0] + "/data", code=1)
    check(os.path.isdir(paths[0]), "removed through a link")
    with Held(paths[0]):
        sentence(unstage("u1", code=1), "in use", "--force")
        sentence(unstage("--all", code=1), "in use")
        equal(visible(), ["u1"], "what is in use")
        unstage("--force", paths[0] + "/")
    equal(visible(), [], "after --force")
    stage("-q", os.path.join(work, "u1.h5"), os.path.join(work, "u2.h5"))
    now = time.time()
    use = os.path.join(CONTROL, record(HOME + "/u1")["id"] + ".use")
    js = os.path.join(CONTROL, record(HOME + "/u1")["id"] + ".json")
    with open(js) as f:
        r = json.load(f)
    r["made"] -= 7200
    with open(js, "w") as f:
        json.dump(r, f)
    os.utime(use, (now - 7200, now - 7200))
    unstage("--older-than=3h")
    equal(visible(), ["u1", "u2"], "nothing is so old")
    unstage("--older-than=1h")
    equal(visible(), ["u2"], "the old one is gone")
    exits(tensorfs("unstage", "--older-than=soon"), 2, "unstage")
    exits(tensorfs("unstage"), 2, "unstage")
    unstage("u2")
    nothing()


@cleaned
def somewhere_else():
    d = scratch("elsewhere")
    path, data = h5("disk.h5", (5, 6), (5, 6))
    got = stage_one("-q", "--to", d, path)
    equal(got, os.path.realpath(d) + "/disk", "path")
    same_samples(got, data)
    equal(stage_one("-q", "--to=" + d, path), got, "path")
    equal(len(staged("--to", d)), 1, "staged there")
    equal(staged(), [], "staged in memory")
    # What is there already is nobody's business of ours.
    os.mkdir(d + "/mine")
    p = stage("-q", "--to", d, "--name=mine", path, code=1)
    sentence(p, "mine")
    os.chdir(d)
    unstage("./disk")
    os.chdir(work)
    equal(os.listdir(d), ["mine"], "left")
    stage("-q", "--to", d, path)
    unstage("--to", d, "--all")
    equal(os.listdir(d), ["mine"], "left")
    stage("-q", "--to", d + "/nowhere", path, code=1)


@cleaned
def talking():
    path = tar_of("data.tar", arc.data_tree())
    p = exits(tensorfs("stage", "--progress=plain", path), 0, "stage")
    equal(p.stdout, HOME + "/data\n", "stdout")
    unstage("data")
    p = exits(tensorfs("stage", "-q", path), 0, "stage")
    equal((p.stdout, p.stderr), (HOME + "/data\n", ""), "with -q")
    with open("/dev/full", "w") as full:
        import subprocess
        code = subprocess.run([lib.TENSORFS, "stage", path], stdout=full,
                              stderr=subprocess.DEVNULL).returncode
    equal(code, 1, "exit, nowhere to print to")


# --- other views ----------------------------------------------------------------

@cleaned
def classes_by_labels():
    x, y = np.arange(72, dtype="u1").reshape(6, 3, 4), np.array([2, 0, 2, 1, 0, 2])
    path, rows = os.path.join(work, "labels.h5"), os.path.join(work, "labels.csv")
    with h5py.File(path, "w") as f:
        f["x"] = x
        f["x"].attrs["kind"] = y
    for labels, want in (("@kind", y), (rows, 2 - y), (rows, y)):
        np.savetxt(rows, want, "%d")  # of the same size
        top = stage_one("--view=classes-npy", "--labels=" + labels, path)
        top += "/x/classes-npy"
        got = {(c, n): np.load("%s/%s/%s" % (top, c, n)).tolist()
               for c in os.listdir(top) for n in os.listdir(top + "/" + c)}
        equal(got, {("%06d" % v, "%06d.npy" % i): x[i].tolist()
                    for i, v in enumerate(want)},
              labels)
    p = stage("--labels=@none", path, code=3)
    check("'none'" in p.stderr, p.stderr)


@cleaned
def views_without_end():
    path, top = os.path.join(work, "endless.h5"), scratch("endless")
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(10)
    for i in range(4):
        os.makedirs(top + "/slice", exist_ok=True)
        open("%s/slice/%d.txt" % (top, i), "w").close()
    for code, *argv in ((2, "--view=slice", path), (2, "--view=samples,epochs", path),
                        (1, path + ":x/slice"), (1, path + ":x/epochs"),
                        (1, path + ":x/epochs/3"), (1, top + ":epochs"),
                        (1, top + ":epochs/1"),
                        (1, path + ":x/epochs/0/rank-0-of-2/from")):
        p = stage(*argv, code=code)
        check("no end" in p.stderr and
              ("/rank-0-of-2" in p.stderr or "slice/0:10" in p.stderr), p.stderr)
    equal(visible(), [], "nothing of these")
    got = stage_one(path + ":x/slice/2:4.npy",
                    path + ":x/epochs/0/rank-1-of-5,no-shuffle")
    equal(np.load(got + "/x/slice/2:4.npy").tolist(), [2, 3], "a slice")
    rank = got + "/x/epochs/0/rank-1-of-5,no-shuffle/"
    equal([int(np.load(rank + n)) for n in sorted(os.listdir(rank))], [1, 6], "a rank")
    got = stage_one(top + ":slice", top + ":epochs/0/rank-0-of-4")
    equal(sorted(os.listdir(got + "/slice")), ["%d.txt" % i for i in range(4)],
          "just a name")
    equal(len(os.listdir(got + "/epochs/0/rank-0-of-4")), 1, "a rank of files")
    got = os.listdir(stage_one("--view=all", path) + "/x")
    check("stack" in got and not {"slice", "epochs"} & set(got), "all: %s" % got)


work = setup()
arc._work = work
lib.main()
