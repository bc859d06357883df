#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack to tar: what GNU tar, bsdtar and Python take out of it is what was packed,
and so is what we mount of it; the index beside it is the one that a mount makes."""
import ctypes
import grp
import gzip
import hashlib
import json
import os
import pwd
import random
import resource
import signal
import socket
import stat
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
from checks import check, equal, note
from lib import Mount, case, exits, run, tensorfs

work = None
FORMATS = ("tar", "tar.gz", "tar.zst")
UTF8 = dict(os.environ, LC_ALL="C.UTF-8")
PLAIN_C = dict(os.environ, LC_ALL="C")


def path(name):
    return os.path.join(work, name)


def scratch(name):
    d = path(name)
    os.makedirs(d)
    return d


def pack(src, out, *options, codes=0, env=None):
    return exits(tensorfs("pack", "-q", *options, src, path(out), env=env),
                 codes, "pack %s" % out)


# ---- what a tree is ---------------------------------------------------------

def xattrs_of(p):
    names = [n for n in os.listxattr(p, follow_symlinks=False)
             if n.startswith("user.") and not n.startswith("user.tensorfs.")]
    return {n: os.getxattr(p, n, follow_symlinks=False) for n in names}


def snapshot(top, owners=True, xattrs=True, dirs=True):
    """Everything about everything, by path (bytes)."""
    found, inodes = {}, {}
    for at, subdirs, files in os.walk(os.fsencode(top)):
        for name in sorted(subdirs + files):
            p = os.path.join(at, name)
            rel = os.path.relpath(p, os.fsencode(top))
            st = os.lstat(p)
            e = {"mode": st.st_mode}
            if dirs or not stat.S_ISDIR(st.st_mode):
                e["mtime"] = st.st_mtime_ns // 10**9
            if owners:
                e["owner"] = (st.st_uid, st.st_gid)
            if stat.S_ISREG(st.st_mode):
                with open(p, "rb") as f:
                    e["bytes"] = hashlib.sha256(f.read()).hexdigest()
                e["size"] = st.st_size
            if stat.S_ISLNK(st.st_mode):
                e["to"] = os.readlink(p)
            if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
                e["rdev"] = st.st_rdev
            if xattrs and not stat.S_ISLNK(st.st_mode):
                e["xattrs"] = xattrs_of(p)
            if not stat.S_ISDIR(st.st_mode) and st.st_nlink > 1:
                e["inode"] = inodes.setdefault((st.st_dev, st.st_ino), rel)
            found[rel] = e
    return found


def same(want, got, what):
    equal(sorted(got), sorted(want), "%s: names" % what)
    for name, e in want.items():
        for key, value in e.items():
            equal(got[name].get(key), value,
                  "%s: %s of %r" % (what, key, name))


# ---- a tree with everything -------------------------------------------------

def put(top, name, data=b"x", mode=0o644, mtime=1600000000, ns=0):
    p = os.path.join(os.fsencode(top), name if isinstance(name, bytes)
                     else os.fsencode(name))
    os.makedirs(os.path.dirname(p), exist_ok=True)
    with open(p, "wb") as f:
        f.write(data)
    os.chmod(p, mode)
    os.utime(p, ns=(mtime * 10**9 + ns,) * 2)
    return p


def make_names(top):
    for n in ("-x", "--help", " a ", "a\nb", "a\tb", "back\\slash", "per%cent",
              "c:d", "*?[x]", "q'\"`", "é", "e\u0301", "日本", b"\xff\xfe",
              b"\xc3", "." * 3, "~", "x" * 255):
        put(top, n)
    put(top, "é" * 120)
    put(top, "e\u0301" * 80)
    put(top, b"\xff" * 150)
    for depth in (60, 100, 154, 155, 156, 200, 255):
        put(top, "d" * depth + "/" + "f" * 99)
        put(top, "e" * depth + "/" + "f" * 100)
        put(top, "g" * depth + "/" + "f" * 101)
    put(top, "/".join(["deep" * 20] * 20))
    os.makedirs(os.path.join(top, "m" * 99))
    os.makedirs(os.path.join(top, "n" * 100))


def make_sizes(top):
    rng = random.Random(1)
    for size in (0, 1, 511, 512, 513, 1023, 10240, 1048576 - 512, 1048575,
                 1048576, 1048577, 5 * 1048576 + 7):
        put(top, "sizes/%d" % size, rng.randbytes(size))


def make_times(top):
    for t in (0, 1, -1, -2, -86400 * 3650, 2**31 - 2, 2**31 - 1, 2**31,
              2**32 + 5):
        put(top, "times/%d" % t, mtime=t)
        put(top, "times/%d.5" % t, mtime=t, ns=500000000)
    put(top, "times/" + "long" * 40, mtime=1234567890, ns=123456789)
    put(top, "times/" + "before" * 30, mtime=-5, ns=250000000)


def make_links(top):
    a = put(top, "links/a", b"one inode")
    os.link(a, os.path.join(os.fsencode(top), b"links/b"))
    os.makedirs(os.path.join(top, "links/0"))
    os.link(a, os.path.join(os.fsencode(top), b"links/0/before"))
    b = put(top, "links/" + "long" * 50, b"long name, two of them")
    os.link(b, b + b"2")
    c = put(top, b"links/\xff\xe9", b"no utf-8, two of them")
    os.link(c, c + b"2")
    for i, to in enumerate(("a", "nowhere", "/etc/passwd", "../..", "t" * 100,
                            "t" * 101, "t" * 1000, b"\xff\xe9", "é" * 60)):
        os.symlink(os.fsencode(to) if isinstance(to, str) else to,
                   os.path.join(os.fsencode(top), b"links/s%d" % i))
    os.link(os.path.join(top, "links/s0"), os.path.join(top, "links/s0-too"),
            follow_symlinks=False)


def make_modes(top):
    for mode in (0, 0o400, 0o777, 0o1644, 0o2755, 0o4711, 0o7777):
        put(top, "modes/%o" % mode, mode=mode)
    for mode in (0o700, 0o1777, 0o2775):
        d = os.path.join(top, "modes/d%o" % mode)
        os.makedirs(d)
        os.chmod(d, mode)
    os.mkfifo(os.path.join(top, "modes/fifo"))
    if lib.ROOT:
        os.mknod(os.path.join(top, "modes/null"), 0o666 | stat.S_IFCHR,
                 os.makedev(1, 3))
        os.mknod(os.path.join(top, "modes/blk"), 0o600 | stat.S_IFBLK,
                 os.makedev(300, 2**18 + 5))
        for uid, gid in ((0, 0), (1, 2), (2**18 - 1, 2**18), (2**21, 5),
                         (2**31 + 7, 2**32 - 3)):
            os.chown(put(top, "modes/owner-%d" % uid), uid, gid)


def make_holes(top):
    def sparse(name, size, *data):
        p = put(top, "holes/" + name, b"")
        with open(p, "r+b") as f:
            f.truncate(size)
            for at, n in data:
                f.seek(at)
                f.write(b"\1" * n)
        os.utime(p, ns=(10**18,) * 2)

    sparse("all", 3 << 20)
    sparse("end", 3 << 20, (0, 65536))
    sparse("begin", 3 << 20, ((3 << 20) - 65536, 65536))
    sparse("middle", (3 << 20) + 5, (0, 4096), (1 << 20, 4096),
           (2 << 20, 100000))
    sparse("many", 8 << 20, *[(i << 16, 4096) for i in range(0, 128, 2)])
    sparse("n" * 200, 1 << 20, (1 << 19, 1))


ODD = ("user.100%", "user.a=b", "user.a b", "user.%25", "user.é")


def make_xattrs(top):
    p = put(top, "xattrs/a", b"with")
    try:
        os.setxattr(p, "user.one", b"1")
    except OSError:
        note("no extended attributes here")
        return
    os.setxattr(p, "user.binary", bytes(range(256)))
    os.setxattr(p, "user.empty", b"")
    os.setxattr(p, "user.long." + "n" * 200, b"v" * 1000)
    os.setxattr(os.path.join(top, "xattrs"), "user.dir", b"of a directory")
    q = put(top, "xattrs/odd", b"names")
    for name in ODD:
        os.setxattr(q, name, name.encode())
    os.setxattr(put(top, b"xattrs/\xff"), "user.of", b"a name that is no UTF-8")
    os.link(p, p + b"2")


def big_tree(name):
    top = scratch(name)
    for make in (make_names, make_sizes, make_times, make_links, make_modes,
                 make_holes, make_xattrs):
        make(top)
    for at, dirs, _ in os.walk(top, topdown=False):
        for d in dirs:
            os.utime(os.path.join(at, d), ns=(1500000000 * 10**9,) * 2)
    return top


_tree = []


def tree():
    """One for all: its path, and what is in it."""
    if not _tree:
        top = big_tree("tree")
        _tree.extend((top, snapshot(top)))
        for f in FORMATS:
            pack(top, "all." + f)
    return _tree


def unpack(how, f):
    """Extract all.FORMAT; the directory."""
    top, src = path("out-" + how + "-" + f), path("all." + f)
    run("rm", "-rf", top)
    os.makedirs(top)
    if how == "gnu":
        p = run("tar", "--xattrs", "--xattrs-include=*", "--numeric-owner",
                "-xpf", src, "-C", top, env=PLAIN_C)
        said = [line for line in p.stderr.splitlines()
                if not any(word in line for word in (
                    "hdrcharset", "SCHILY.devminor", "implausibly old",
                    "in the future", "LIBARCHIVE.xattr.user.%",
                    "LIBARCHIVE.xattr.user.100%", "LIBARCHIVE.xattr.user.a%"))]
        equal(said, [], "what tar says of it")
    else:
        p = run("bsdtar", "--numeric-owner", "-xpPf", src, "-C", top, env=UTF8)
        equal(p.stderr, "", "what bsdtar says of it")
    exits(p, 0, how)
    return top


@case
def gnu_tar_takes_out_what_was_packed():
    _, want = tree()
    for f in FORMATS:
        top = unpack("gnu", f)
        got = snapshot(top)
        wanted = dict(want)
        if b"xattrs/odd" in want:  # which tar cannot know, and says so
            wanted[b"xattrs/odd"] = dict(want[b"xattrs/odd"], xattrs={})
        same(wanted, got, "tar of " + f)
        for name, n in (("all", 0), ("end", 65536), ("many", 64 * 4096)):
            st = os.stat(os.path.join(top, "holes", name))
            check(st.st_blocks * 512 <= n + 65536,
                  "%s: %s has no holes: %d bytes" % (
                      f, name, st.st_blocks * 512))


@case
def bsdtar_takes_out_what_was_packed():
    _, want = tree()
    for f in FORMATS:
        got = snapshot(unpack("bsd", f))
        for name, e in want.items():
            # It takes -1.5 for -1 + .5, and normalizes what is UTF-8 by name.
            if e["mtime"] < 0:
                got.get(name, {}).pop("mtime", None)
        wanted = {}
        for name, e in want.items():
            e = {k: v for k, v in e.items() if k != "mtime" or v >= 0}
            if name == os.fsencode("e\u0301" * 80):
                name = os.fsencode("é" * 80)
            wanted[name] = e
        same(wanted, got, "bsdtar of " + f)


def plain_tar(f):
    """The tar itself, decoded by others."""
    src = path("all." + f)
    if f == "tar":
        return src
    out = path("decoded-%s.tar" % f)
    tool = "gzip" if f == "tar.gz" else "zstd"
    with open(out, "wb") as to:
        equal(subprocess.call([tool, "-dc", src], stdout=to), 0, tool)
    return out


@case
def python_reads_what_was_packed():
    _, want = tree()
    hashes = set()
    for f in FORMATS:
        src = plain_tar(f)
        with open(src, "rb") as t:
            hashes.add(hashlib.sha256(t.read()).hexdigest())
        with tarfile.open(src) as t:
            members = {os.fsencode(m.name): m for m in t}
            equal(sorted(members), sorted(want), "%s: names" % f)
            for name, e in want.items():
                m = members[name]
                equal(m.mode, stat.S_IMODE(e["mode"]), "mode of %r" % name)
                equal((m.uid, m.gid), e["owner"], "owner of %r" % name)
                equal(int(m.mtime // 1), e["mtime"], "mtime of %r" % name)
                if m.isreg() and "size" in e:
                    equal(m.size, e["size"], "size of %r" % name)
                    data = t.extractfile(m).read()
                    equal(hashlib.sha256(data).hexdigest(), e["bytes"],
                          "bytes of %r" % name)
    equal(len(hashes), 1, "tars that are inside")


@case
def fractions_of_seconds_are_where_room_is():
    tree()
    with tarfile.open(path("all.tar")) as t:
        long = t.getmember("times/" + "long" * 40)
        equal(long.pax_headers.get("mtime"), "1234567890.123456789", "mtime")
        before = t.getmember("times/" + "before" * 30)
        equal(before.pax_headers.get("mtime"), "-4.75", "before 1970")
        equal(t.getmember("times/1.5").pax_headers, {}, "a plain header")


@case
def what_we_mount_is_what_was_packed():
    _, want = tree()
    for f in FORMATS:
        with Mount(path("all." + f)) as m:
            got = snapshot(m.path)
        wanted = {n: dict(e) for n, e in want.items()}
        for e in list(wanted.values()) + list(got.values()):
            e.pop("inode", None)
        same(wanted, got, "mount of " + f)


@case
def the_index_is_that_of_a_mount():
    tree()
    for f in FORMATS:
        src = path("all." + f)
        with open(src + ".tfsidx", "rb") as i:
            ours = i.read()
        p = exits(tensorfs("info", "--json", src), 0, "info")
        equal(json.loads(p.stdout)["archive"]["index_used"], True, "used")
        os.unlink(src + ".tfsidx")
        exits(tensorfs("ls", "--index=" + src + ".tfsidx", src), 0, "ls")
        with open(src + ".tfsidx", "rb") as i:
            check(i.read() == ours, "%s: another index than by reading" % f)
        exits(tensorfs("verify", src), 0, "verify " + f)


# ---- the same bytes twice ---------------------------------------------------

@case
def twice_is_the_same():
    top, _ = tree()
    for f in FORMATS:
        sums = set()
        for options in ((), ("--jobs=1", "--threads=1"),
                        ("--threads=7", "--memory=16M")):
            os.utime(top)
            pack(top, "again." + f, "--force", *options,
                 env=dict(UTF8 if options else PLAIN_C, TZ="Asia/Tokyo"))
            with open(path("again." + f), "rb") as t:
                sums.add(hashlib.sha256(t.read()).hexdigest())
        with open(path("all." + f), "rb") as t:
            sums.add(hashlib.sha256(t.read()).hexdigest())
        equal(len(sums), 1, "different archives of %s" % f)


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3_128(data):
    f = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    f.argtypes, f.restype = (ctypes.c_char_p, ctypes.c_size_t), Hash128
    h = f(data, len(data))
    return "%016x%016x" % (h.high, h.low)


@case
def the_summary_has_the_checksum():
    top = scratch("sums")
    put(top, "a", os.urandom(3000000))
    for f in FORMATS:
        p = exits(tensorfs("pack", "--json", top, path("sum." + f)), 0, "pack")
        said = json.loads(p.stdout)
        with open(path("sum." + f), "rb") as t:
            equal(said["xxh3_128"], xxh3_128(t.read()), f)
        equal(said["stored"], os.path.getsize(path("sum." + f)), "size")


# ---- compression ------------------------------------------------------------

def frames(name):
    """Sizes of frames, stored and decoded, by `zstd -lv`'s total."""
    p = exits(run("zstd", "-l", path(name)), 0, "zstd -l")
    return int(p.stdout.splitlines()[-1].split()[0])


@case
def blocks_are_many_and_stored_where_that_is_better():
    top = scratch("mixed")
    rng = random.Random(2)
    noise = [rng.randbytes(1 << 20) for _ in range(6)]
    for i, b in enumerate(noise):
        put(top, "jpeg/%d.jpg" % i, b)
        put(top, "text/%d.txt" % i, b"%d tensors\n" % i * 90000)
    total = sum(map(len, noise))
    for f in FORMATS[1:]:
        pack(top, "mixed." + f)
        size = os.path.getsize(path("mixed." + f))
        check(total < size < total + 200000, "%s: %d bytes" % (f, size))
        with open(path("mixed." + f), "rb") as t:
            data = t.read()
        # Stored: the bytes stand in the archive as they are.
        for b in noise:
            check(b[70000:70000 + 4000] in data, f + ": noise was squeezed")
        pack(top, "mixed2." + f, "--comp=" + ("gzip:1" if "gz" in f
                                              else "zstd:1"))
        equal(tensorfs("verify", path("mixed." + f)).returncode, 0, "verify")
    equal(subprocess.call(["gzip", "-t", path("mixed.tar.gz")]), 0, "gzip -t")
    equal(subprocess.call(["zstd", "-qt", path("mixed.tar.zst")]), 0, "zstd -t")
    check(frames("mixed.tar.zst") >= 12, "frames: %d" % frames("mixed.tar.zst"))
    pack(top, "small.tar.zst", "--block-size=64K", "--comp=zstd:9")
    check(frames("small.tar.zst") >= 150, "frames: %d" %
          frames("small.tar.zst"))
    with gzip.open(path("mixed.tar.gz")) as t:
        check(noise[0] in t.read(), "gzip module")


@case
def reads_are_random():
    """The last byte of a large member costs one block, not all before it."""
    top = scratch("random")
    data = random.Random(3).randbytes(1 << 18) * 96
    put(top, "big", data)
    for f in FORMATS[1:]:
        pack(top, "random." + f, "--comp=" + ("gzip" if "gz" in f else "zstd"))
        with Mount(path("random." + f)) as m:
            for at in (20 << 20, 3 << 20, len(data) - 5):
                with open(m / "big", "rb", buffering=0) as b:
                    os.posix_fadvise(b.fileno(), 0, 0,
                                     os.POSIX_FADV_RANDOM)
                    equal(os.pread(b.fileno(), 5, at), data[at:at + 5], f)
            decoded = m.stats()["bytes_decoded"]
            check(decoded <= 8 << 20, "%s: three reads decoded %d bytes" % (
                f, decoded))


# ---- what cannot be ---------------------------------------------------------

@case
def options_that_do_not_fit_are_refused():
    top = scratch("refused")
    put(top, "a")
    for out, option, word in (
            ("r.tar", "--comp=zstd", ".tar.zst"),
            ("r.tar", "--comp=gzip", ".tar.gz"),
            ("r.tar", "--comp=xz", "zstd"),
            ("r.tar.gz", "--comp=zstd", "tar.gz"),
            ("r.tar.gz", "--comp=none", "--format"),
            ("r.tar.zst", "--comp=lz4", "gzip"),
            ("r.tar.zst", "--comp=gzip", "tar.zst"),
            ("r.tar.zst", "--comp=zstd:99", "99"),
            ("r.tar", "--block-size=1M", "no blocks"),
            ("r.tar.gz", "--block-size=1G", "--block-size"),
            ("r.tar.gz", "--block-size=100", "--block-size")):
        p = pack(top, out, option, codes=2)
        check(word in p.stderr, "%s %s: %s" % (out, option, p.stderr))
        check(not os.path.exists(path(out)), "%s was made" % out)
    equal([n for n in os.listdir(work) if "tensorfs-" in n], [], "left behind")
    for out, option in (("r.tar", "--comp=none"), ("r.tgz", "--comp=gzip:9"),
                        ("r.tzst", "--comp=zstd:19")):
        pack(top, out, option)
    pack(top, "r.bin", "--format=tar.zst")
    equal(subprocess.call(["zstd", "-qt", path("r.bin")]), 0, "zstd -t")


@case
def empty_directories_are_archives():
    top = scratch("empty")
    for f in FORMATS:
        pack(top, "empty." + f)
        exits(run("tar", "tf", path("empty." + f)), 0, "tar of " + f)
        equal(tensorfs("ls", path("empty." + f)).stdout, "", "ls")


@case
def owners_have_names_unless_not_wanted():
    top = scratch("owners")
    put(top, "a")
    pack(top, "owners.tar")
    pack(top, "numbers.tar", "--numeric-owner")
    with tarfile.open(path("owners.tar")) as t:
        m = t.getmember("a")
        equal((m.uname, m.gname), (pwd.getpwuid(m.uid).pw_name,
                                   grp.getgrgid(m.gid).gr_name), "names")
    with tarfile.open(path("numbers.tar")) as t:
        m = t.getmember("a")
        equal((m.uname, m.gname), ("", ""), "names")


@case
def no_index_is_no_failure():
    top = scratch("noindex")
    put(top, "a")
    pack(top, "none.tar", "--no-index")
    check(not os.path.exists(path("none.tar.tfsidx")), "an index")
    os.makedirs(path("blocked.tar.tfsidx"))
    env = {k: v for k, v in os.environ.items()
           if k not in ("HOME", "XDG_CACHE_HOME")}
    pack(top, "blocked.tar", env=env)
    exits(run("tar", "tf", path("blocked.tar")), 0, "tar")


def room_for(n):
    def f():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))
    return f


@case
def no_room_leaves_what_was_there():
    top = scratch("noroom")
    put(top, "a", os.urandom(3 << 20))
    for f in FORMATS:
        small = scratch("noroom-" + f)
        out = os.path.join(small, "x." + f)
        with open(out, "wb") as old:
            old.write(b"what was there")
        for room in (0, 100000, 2 << 20):
            p = exits(tensorfs("pack", "--force", top, out,
                               preexec=room_for(room)), 1, "no room")
            check("File too large" in p.stderr and out in p.stderr, p.stderr)
            equal(os.listdir(small), ["x." + f], "left behind")
        with open(out, "rb") as old:
            equal(old.read(), b"what was there", "the old output")


@case
def sockets_are_left_out():
    top = scratch("socket")
    put(top, "a")
    s = socket.socket(socket.AF_UNIX)
    s.bind(os.path.join(top, "sock"))
    s.close()
    p = exits(tensorfs("pack", "-q", top, path("sock.tar")), (0, 1), "pack")
    check("socket" in p.stderr, "not a word: " + p.stderr)
    equal(run("tar", "tf", path("sock.tar")).stdout, "a\n", "members")


if __name__ == "__main__":
    work = lib.setup()
    lib.main()
