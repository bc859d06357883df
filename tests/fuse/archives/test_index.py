#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Index files: saved, used again, and never trusted.

Whether an index was used is seen in its inode: a mount that makes a new one
renames it into place.
"""
import contextlib
import os
import random
import shutil
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import numpy as np

import arc
import lib
import tree
from arc import one, scratch, sh
from checks import Failure, check, equal, note, read, same_bytes
from lib import Mount, exits, run, tensorfs

MIB = 1 << 20
SUFFIX = ".tfsidx"


# --- archives -------------------------------------------------------------------

def source(kind, top=None):
    """An archive of the data tree in a directory of its own."""
    src = top or arc.data_tree()
    t = os.path.join(scratch("index"), "a." + kind)
    if kind == "sqfs":
        sh("mksquashfs", src, t, "-noappend", "-no-progress", "-quiet",
           "-comp", "zstd")
        return t
    plain = os.path.join(scratch("p"), "a.tar")
    sh("tar", "-c", "--format=gnu", "-f", plain, "-C", src, ".")
    if kind == "tar":
        os.rename(plain, t)
    else:
        tool = {"tar.gz": "gzip", "tar.zst": "zstd", "tar.bz2": "bzip2",
                "tar.xz": "xz", "tar.lz4": "lz4"}[kind]
        with open(t, "wb") as f:
            f.write(sh(tool, "-1", "-c", input=read(plain)))
        os.unlink(plain)
    return t


KINDS = ("tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "tar.lz4", "sqfs")


def right(t, opts=(), env=None, want=None, **kw):
    """Mounts, and shows the data tree."""
    with Mount(t, opts=opts, env=env) as m:
        tree.same(m.path, want or arc.data_tree(), random_reads=0, **kw)


def beside(t):
    return sorted(n for n in os.listdir(os.path.dirname(t))
                  if n != os.path.basename(t))


def mark(path):
    """What changes when a file is replaced, or written to."""
    st = os.stat(path)
    return st.st_ino, st.st_mtime_ns, st.st_size


# --- saved and used again ---------------------------------------------------------

def saved(kind):
    t = source(kind)
    right(t)
    equal(beside(t), [os.path.basename(t) + SUFFIX], "files beside the source")
    first = mark(t + SUFFIX)
    for _ in range(2):
        right(t)
        equal(mark(t + SUFFIX), first, "inode, mtime, size of the index")
    equal(len(beside(t)), 1, "files beside the source")


def by_commands():
    """ls, cat, info use it too."""
    t = source("tar.gz")
    right(t)
    first = mark(t + SUFFIX)
    c = exits(tensorfs("cat", t + ":c0/0000.bin", text=False), 0, "cat")
    same_bytes(c.stdout, read(arc.data_tree() + "/c0/0000.bin"), "cat")
    for argv in (("ls", "-R", t), ("info", t), ("cat", t + ":c0/0000.bin")):
        exits(tensorfs(*argv, text=False), 0, argv[0])
    equal(mark(t + SUFFIX), first, "the index after ls, info and cat")


def moved():
    """Renamed together with its index, or copied with its time: still good."""
    t = source("tar")
    right(t)
    d = scratch("moved")
    new = os.path.join(d, "other.tar")
    shutil.copy2(t, new)
    shutil.copy2(t + SUFFIX, new + SUFFIX)
    first = mark(new + SUFFIX)
    right(new)
    equal(mark(new + SUFFIX), first, "the index of a copy")


def modes():
    """Who may not read the source may not read its names."""
    t = source("tar")
    os.chmod(t, 0o600)
    right(t)
    mode = stat.S_IMODE(os.stat(t + SUFFIX).st_mode)
    equal(mode & 0o077, 0, "bits for others of the index of a 0600 file")


@contextlib.contextmanager
def read_only(d):
    """Nobody can write in d: for root that takes a mount."""
    if not lib.ROOT:
        os.chmod(d, 0o555)
        yield
        os.chmod(d, 0o755)
        return
    p = run("mount", "--bind", d, d)
    if p.returncode or run("mount", "-o", "remount,bind,ro", d).returncode:
        lib.force_unmount(d)
        note("no bind mount here: %s" % p.stderr.strip())
        yield
        return
    try:
        yield
    finally:
        lib.force_unmount(d)


def read_only_place():
    """Then it is in $XDG_CACHE_HOME/tensorfs, or ~/.cache/tensorfs."""
    t = source("tar.zst")
    d = os.path.dirname(t)
    for var, sub in (("XDG_CACHE_HOME", ""), ("HOME", ".cache")):
        home = scratch("home")
        env = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"}
        env[var] = home
        with read_only(d):
            writable = os.access(d, os.W_OK)
            right(t, env=env)
            if writable:
                return
            cache = os.path.join(home, sub, "tensorfs")
            names = os.listdir(cache)
            equal(len(names), 1, "files in the cache (%s)" % names)
            equal(stat.S_IMODE(os.stat(cache).st_mode) & 0o077, 0,
                  "bits for others of the cache directory")
            first = mark(os.path.join(cache, names[0]))
            right(t, env=env)
            equal(os.listdir(cache), names, "files in the cache")
            equal(mark(os.path.join(cache, names[0])), first, "the index")
        equal(beside(t), [], "files beside the source")


def nowhere():
    """Neither place can be written: it mounts all the same."""
    t = source("tar")
    env = dict(os.environ, XDG_CACHE_HOME="/proc/nothing", HOME="/proc")
    with read_only(os.path.dirname(t)):
        right(t, env=env)
        right(t, env=env)


def asked_for():
    t = source("tar")
    other = os.path.join(scratch("elsewhere"), "my index")
    for opts in (["--index=" + other], ["-o", "index=" + other]):
        right(t, opts)
        check(os.path.isfile(other), "no index at --index=PATH")
        first = mark(other)
        right(t, opts)
        equal(mark(other), first, "the index at --index=PATH")
        os.unlink(other)
    d = scratch("indexes")
    right(t, ["--index=" + d])
    equal(len(os.listdir(d)), 1, "files in --index=DIRECTORY")
    for bad in (os.path.join(d, "missing", "x"), t):
        p = exits(tensorfs("ls", "--index=" + bad, t), 0, "--index=" + bad)
        check("no index was saved" in p.stderr, "not said: " + p.stderr)
    equal(beside(t), [], "files beside the source")


def none():
    t = source("tar.gz")
    home = scratch("home")
    env = dict(os.environ, XDG_CACHE_HOME=home)
    for opts in (["--index=none"], ["-o", "index=none"]):
        right(t, opts, env)
        equal(beside(t) + os.listdir(home), [], "files after index=none")
    right(t)
    first = mark(t + SUFFIX)
    right(t, ["--index=none"])
    equal(mark(t + SUFFIX), first, "the index after index=none")


def usage():
    p = tensorfs("mount", "--index=", source("tar"), scratch("m"))
    exits(p, 2, "--index= without a value")


def kept():
    for kind in KINDS:
        one("saved:" + kind, saved, kind)
    for f in (by_commands, moved, modes, read_only_place, nowhere, asked_for,
              none, usage):
        one("saved:" + f.__name__.replace("_", "-"), f)


# --- stale, damaged, foreign ----------------------------------------------------------

def replaced(t, index=None):
    """Mounts right, and there is a new index, which is then used."""
    index = index or t + SUFFIX
    before = mark(index)
    right(t)
    after = mark(index)
    check(before != after, "an index that is no good was left as it was")
    right(t)
    equal(mark(index), after, "the new index, mounted again")


def stale(kind):
    """The source changed: its time, its size, its content with both kept."""
    t = source(kind)
    right(t)
    os.utime(t, ns=(1, 10**18))
    replaced(t)


def appended():
    t = source("tar")
    right(t)
    want = scratch("more")
    with open(os.path.join(want, "added"), "w") as f:
        f.write("added later")
    st = os.stat(t)
    sh("tar", "-r", "-f", t, "-C", want, "added")
    os.utime(t, ns=(st.st_atime_ns, st.st_mtime_ns))
    for _ in range(2):
        with Mount(t) as m:
            same_bytes(read(m / "added"), b"added later", "added")
            equal(len(os.listdir(m.path)), 1 + len(os.listdir(
                arc.data_tree())), "names in the root")


def exchanged():
    """Another archive of the same size and time takes its place."""
    t = source("tar")
    right(t)
    st = os.stat(t)
    want = scratch("other")
    shutil.copytree(arc.data_tree(), want, dirs_exist_ok=True)
    for top, _, files in os.walk(want):
        for n in files:
            p = os.path.join(top, n)
            size = os.path.getsize(p)
            with open(p, "wb") as f:
                f.write(random.Random(size).randbytes(size))
            os.rename(p, os.path.join(top, n[::-1]))
    u = source("tar", want)
    equal(os.path.getsize(u), st.st_size, "size of the other archive")
    os.rename(u, t)
    os.utime(t, ns=(st.st_atime_ns, st.st_mtime_ns))
    right(t, want=want, mtime=0)


def damaged(kind, part, parts):
    """Bytes change anywhere in it; it is cut anywhere.  The tree is right
    all the same, and a new index is there, unless what changed is padding.
    A case does one of `parts` of all the changes."""
    t = source(kind)
    right(t)
    good = read(t + SUFFIX)
    r = random.Random(kind)
    at = list(range(0, 192, 16)) + [r.randrange(len(good)) for _ in range(14)]
    at += [len(good) - 1, len(good) - 65]
    left = []
    cuts = [0, 1, 63, 64, 4096, len(good) - 1, len(good) // 2]
    for what in ([("byte", x) for x in at] + [("cut", x) for x in cuts])[
            part::parts]:
        bad = bytearray(good)
        if what[0] == "byte":
            bad[what[1]] ^= r.choice((1, 0x80, 0xff))
        else:
            del bad[what[1]:]
        with open(t + SUFFIX, "wb") as f:
            f.write(bad)
        try:
            right(t)
        except Failure as e:
            raise Failure("%s %d of %d: %s" % (what + (len(good), e)))
        if read(t + SUFFIX) == bytes(bad):
            left.append(what)
    check(len(left) <= 2 and not any(w == "cut" or x < 64 for w, x in left),
          "damaged indexes of %d bytes were left: %s" % (len(good), left))


def foreign():
    """Another source's index, other bytes, a longer one."""
    t, u = source("tar"), source("sqfs")
    v = source("tar", arc.data_tree() + "/c0")
    for x in (u, v):
        with Mount(x):
            pass
        shutil.copyfile(x + SUFFIX, t + SUFFIX)
        replaced(t)
    for data in (b"", b"hello", os.urandom(100000), bytes(100000),
                 read(u), read(t + SUFFIX) + b"more"):
        with open(t + SUFFIX, "wb") as f:
            f.write(data)
        right(t)
        check(read(t + SUFFIX)[:100] != data[:100] or
              len(read(t + SUFFIX)) != len(data), "it was left")


def not_a_file():
    """A FIFO, a directory, a dangling link in its place: neither waited for
    nor followed somewhere."""
    for what in ("fifo", "directory", "dangling", "link"):
        t = source("tar")
        other = os.path.join(scratch("victim"), "precious")
        if what == "fifo":
            os.mkfifo(t + SUFFIX)
        elif what == "directory":
            os.makedirs(t + SUFFIX + "/x")
        else:
            os.symlink(other, t + SUFFIX)
        if what == "link":
            with open(other, "w") as f:
                f.write("precious")
        right(t)  # a mount that waits for a writer of the FIFO is a failure of lib.run
        if what == "link":
            same_bytes(read(other), b"precious", "what the link is to")


def other_options():
    """An index made with other options is not this one's."""
    d = scratch("opts")
    t = os.path.join(d, "a.tar")
    f = os.path.join(scratch("f"), "f")
    for i, text in enumerate(("first", "second")):
        with open(f, "w") as h:
            h.write(text)
        sh("tar", "-r" if i else "-c", "-f", t, "-C", os.path.dirname(f), "f")
    for opts in ((), ("-o", "versions"), (), ("-o", "versions")):
        with Mount(t, opts=opts) as m:
            same_bytes(read(m / "f"), b"second", "f")
            equal(os.path.exists(m / "f.versions"), bool(opts),
                  "f.versions with %s" % (opts,))


def doubted():
    for kind in ("tar", "tar.gz", "sqfs"):
        one("stale:" + kind, stale, kind)
        for i in range(3):
            one("damaged:%s:%d" % (kind, i), damaged, kind, i, 3 if lib.full() else 9)
    one("stale:appended", appended)
    one("stale:exchanged", exchanged)
    one("foreign:other", foreign)
    one("foreign:not-a-file", not_a_file)
    one("foreign:options", other_options)


# --- two at once, killed, a million ---------------------------------------------------

def headers(paths, mtime=1600000000):
    """ustar headers of empty files; a (n, 512) array."""
    a = np.zeros((len(paths), 512), np.uint8)
    a[:, :100] = np.array(paths, "S100").view(np.uint8).reshape(-1, 100)
    for at, s in ((100, b"0000644"), (108, b"0001750"), (116, b"0001750"),
                  (124, b"00000000000"), (136, b"%011o" % mtime),
                  (148, b" " * 8), (156, b"0"), (257, b"ustar\x0000")):
        a[:, at:at + len(s)] = np.frombuffer(s, np.uint8)
    sums = a.sum(axis=1, dtype=np.uint32)
    a[:, 148:156] = np.array([b"%06o\0 " % s for s in sums.tolist()],
                             "S8").view(np.uint8).reshape(-1, 8)
    return a


def name_of(i):
    return "class%04d/image_%08d.jpeg" % (i % 1000, i)


def empty_files(t, n):
    with open(t, "wb") as f:
        for at in range(0, n, 50000):
            f.write(headers([name_of(i).encode() for i in
                             range(at, min(at + 50000, n))]).tobytes())
        f.write(bytes(1024))
    return t


def together():
    """Four mounts at once, and no index: each is right, one index remains."""
    t = empty_files(os.path.join(scratch("four"), "a.tar"), 60000)
    dirs = [scratch("m") for _ in range(4)]
    ps = [subprocess.Popen([lib.TENSORFS, "mount", t, d],
                           stderr=subprocess.PIPE) for d in dirs]
    try:
        for p, d in zip(ps, dirs):
            err = p.communicate()[1].decode()
            equal(p.returncode, 0, "mount: " + err)
            equal(len(os.listdir(d)), 1000, "classes")
            equal(len(os.listdir(d + "/class0007")), 60, "images of a class")
    finally:
        for d in dirs:
            tensorfs("umount", d)
            lib.force_unmount(d)
    equal(beside(t), ["a.tar" + SUFFIX], "files beside the source")
    first = mark(t + SUFFIX)
    with Mount(t) as m:
        equal(len(os.listdir(m.path)), 1000, "classes")
    equal(mark(t + SUFFIX), first, "the index that won")


def killed():
    """SIGKILL while it is being made: the next mount is right; half an index
    is nowhere under its name."""
    t = empty_files(os.path.join(scratch("killed"), "a.tar"), 150000)
    mnt = scratch("m")
    for k in range(0, 8, 1 if lib.full() else 3):
        if os.path.exists(t + SUFFIX):
            os.unlink(t + SUFFIX)
        p = subprocess.Popen([lib.TENSORFS, "mount", "-f", t, mnt],
                             stderr=subprocess.DEVNULL)
        # Whatever it has come to, also when it has ended, the next mount must be right.
        time.sleep(0.02 + 0.05 * k)
        p.kill()
        p.wait()
        lib.wait_until(lambda: not lib.pids_with(mnt), 60)
        lib.force_unmount(mnt)
        with Mount(t) as m:
            equal(len(os.listdir(m.path)), 1000, "classes")
            equal(len(os.listdir(m / "class0999")), 150, "images")
    rest = [n for n in beside(t) if n != "a.tar" + SUFFIX]
    if rest:
        note("left by killed daemons: %s" % rest)
    check(len(rest) <= 8 and not any(n.endswith(".tar") for n in rest), rest)


def million(compressed):
    """With an index it is not scanned again; memory is bounded by the members.
    Half a GB for some seconds, for that is what a million headers are."""
    n = 1000000 if lib.full() else 100000
    t = empty_files(os.path.join(scratch("million"), "a.tar"), n)
    if compressed:
        sh("zstd", "-q", "-1", "--rm", "-T2", t)
        t += ".zst"
    try:
        _million(t, n)
    finally:
        os.unlink(t)


def memory_when_listed(t):
    with Mount(t, opts=["--cache-size=16M"]) as m:
        exits(run("find", m.path), 0, "find")
        return lib.memory(m.pid)


def _million(t, n):
    little = memory_when_listed(
        empty_files(os.path.join(os.path.dirname(t), "little.tar"), 10))
    made = set()
    for _ in range(2):
        with Mount(t, opts=["--cache-size=16M"]) as m:
            made.add(os.stat(t + SUFFIX).st_ino)
            same_bytes(read(m / name_of(n // 8)), b"", "a file")
    equal(len(made), 1, "indexes that were made")
    with Mount(t, opts=["--cache-size=16M"]) as m:
        p = run("sh", "-c", 'find "$1" -type f | wc -l', "sh", m.path)
        equal(p.stdout.strip(), str(n), "files that find finds")
        r = random.Random(1)
        for i in [0, n - 1] + [r.randrange(n) for _ in range(300)]:
            st = os.stat(m / name_of(i))
            equal((st.st_size, st.st_mtime, st.st_uid), (0, 1600000000, 1000),
                  "size, mtime, uid of " + name_of(i))
        check(not os.path.exists(m / "class0000/image_00000001.jpeg"), "found")
        used, index = lib.memory(m.pid), os.path.getsize(t + SUFFIX)
    note("%d members: %.1f MiB of its own, %.1f with a few members; index %.1f" % (
        n, used / MIB, little / MIB, index / MIB))
    check(index <= 64 * n, "the index has %d bytes" % index)
    # The index is in memory, once; what the kernel has mapped of files is not counted.
    check(os.environ.get("TENSORFS_SANITIZED") or used <= little + index + 8 * MIB,
          "%d MiB of its own, %d with a few members" % (used // MIB, little // MIB))


def beside_others():
    """What a shell's pattern finds the second time: an index is no source, and in no
    pack."""
    top = scratch("glob")
    with open(os.path.join(top, "words"), "wb") as f:
        f.write(b"words" * 999)
    here = scratch("here")
    sh("tar", "-cf", os.path.join(here, "images.tar"), "-C", top, "words")
    mnt, beside = scratch("mnt"), os.path.join(here, "images.tar" + SUFFIX)
    for index in (False, True):
        equal(os.path.exists(beside), index, "an index")
        p = run("sh", "-c", 'cd "$2" && exec "$1" mount images.tar* "$3"', "sh",
                lib.TENSORFS, here, mnt)
        try:
            exits(p, 0, "mount images.tar*")
            equal(os.listdir(mnt), ["words"], "what is mounted")
            equal("images.tar%s' is left out" % SUFFIX in p.stderr, index, p.stderr)
        finally:
            exits(tensorfs("umount", mnt), 0, "umount")
    # Alone it is no source, and that is said.
    p = exits(tensorfs("ls", beside), (2, 3), "alone")
    check("index" in p.stderr, p.stderr)
    for kind in ("tar", "sqfs"):
        out = os.path.join(scratch("out"), "p." + kind)
        p = exits(tensorfs("pack", here, out), 0, "pack")
        check("1 index file" in p.stderr, p.stderr)
        equal(exits(tensorfs("ls", out), 0, "ls").stdout.split(), ["images.tar"], kind)
    # As a directory it has none either.
    p = exits(tensorfs("ls", here), 0, "ls")
    equal(p.stdout.split(), ["images.tar"], "directory")


def same_words():
    """What is said of damage is said again from an index, with the path that was given."""
    here = scratch("words")
    t = os.path.join(here, "dmg.tgz")
    with open(os.path.join(here, "f"), "wb") as f:
        f.write(random.Random(4).randbytes(3 * MIB))
    sh("tar", "-czf", t, "-C", here, "f")
    with open(t, "r+b") as f:
        f.seek(-8, 2)
        f.write(b"\x55")
    name, above = os.path.basename(here), os.path.dirname(here)
    for cwd, path in ((above, name + "/dmg.tgz"), (here, "../%s/dmg.tgz" % name),
                      (here, "dmg.tgz"), (above, "./%s/dmg.tgz" % name), (above, t)):
        index = os.path.join(scratch("i"), "x" + SUFFIX)
        said = []
        for _ in range(2):
            p = run("sh", "-c", 'cd "$2" && exec "$1" ls --index="$3" "$4"', "sh",
                    lib.TENSORFS, cwd, index, path)
            exits(p, 0, "ls")
            said.append(p.stderr)
            check(os.path.exists(index), "no index")
        check(("warning: %s: the checksum" % path) in said[0], said[0])
        equal(said[1], said[0], "from the index")


def many():
    one("many:beside", beside_others)
    one("many:words", same_words)
    one("many:together", together)
    one("many:killed", killed)
    one("many:million", million, False)
    one("many:million-zst", million, True)


if __name__ == "__main__":
    arc.main((kept, doubted, many))
