# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of archives share: cases chosen by arguments, a directory with
everything odd in it, tools that pack and unpack, mounts compared with trees.

Arguments are pieces of case names ("gnu:posix"); one that fits no case is an
error, so that a renamed case is noticed by who asks for it.
"""
import functools
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
import tempfile

import lib
import tree
from checks import Failure, check, note, short
from lib import Missing, Mount

_ran = set()
_work = None


def one(name, f, *args, **kw):
    """A case, if the arguments ask for it."""
    fits = [a for a in sys.argv[1:] if a in name]
    if sys.argv[1:] and not fits:
        return
    _ran.update(fits)
    lib.run_case(name, f, *args, **kw)


def some(values, i=0):
    """All values in the full tier, else one: with i = 0, 1, ... each has its turn."""
    return values if lib.full() else [values[i % len(values)]]


def tries(n):
    """`n` in the full tier, else a quarter: of damage done at random."""
    return n if lib.full() else (n + 3) // 4


def asked(section):
    """May cases whose names begin with `section` run?"""
    return not sys.argv[1:] or any(
        a in section or a.startswith(section) or ":" not in a
        for a in sys.argv[1:])


def main(sections):
    """sections: functions f(), which call one() for each of their cases.  What
    fails outside a case is a failed case of its own."""
    global _work
    _work = lib.setup()
    for f in sections:
        try:
            f()
        except Exception as e:
            def again(e=e):
                raise e
            lib.run_case(f.__name__ + ":setup", again)
    missed = [a for a in sys.argv[1:] if a not in _ran]
    if missed:
        print("FAIL arguments: no case has %s in its name" %
              " or ".join(map(repr, missed)), flush=True)
        lib.cleanup()
        sys.exit(1)
    lib.main()


def scratch(hint="d"):
    return tempfile.mkdtemp(prefix=hint.replace("/", "_")[:40] + "-",
                            dir=_work)


def need(tool):
    if not shutil.which(tool):
        raise Missing(tool)


def sh(*argv, ok=(0,), cwd=None, input=None, stdout=None):
    """Run a tool that must succeed; its output."""
    need(os.fsdecode(argv[0]))
    env = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC", TAR_OPTIONS="")
    p = subprocess.run(argv, cwd=cwd, env=env, input=input,
                       stdin=None if input is not None else subprocess.DEVNULL,
                       stdout=stdout or subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if ok is not None and p.returncode not in ok:
        raise Failure("%s: exit %d: %s" % (
            short(" ".join(map(os.fsdecode, argv))), p.returncode,
            short(p.stderr.decode("utf-8", "replace").strip())))
    return p.stdout


# --- a directory with everything in it ---------------------------------------

def _put(top, name, data=b"", mode=0o644, mtime=None):
    p = os.path.join(top, name)
    os.makedirs(os.path.dirname(p), exist_ok=True)
    with open(p, "wb") as f:
        f.write(data)
    os.chmod(p, mode)
    if mtime is not None:
        os.utime(p, ns=(mtime, mtime))
    return p


def _sparse(top, name, size, pieces):
    p = _put(top, name)
    with open(p, "r+b") as f:
        f.truncate(size)
        for off, data in pieces:
            f.seek(off)
            f.write(data)


@functools.lru_cache(4)
def text(n, seed=0):
    """n bytes that compress."""
    r = random.Random(seed)
    words = [bytes(r.choice(b"abcdefghij \n") for _ in range(r.randrange(2, 9)))
             for _ in range(300)]
    return b"".join(r.choice(words) for _ in range(n // 4 + 1))[:n]


def _contents_of(top, r):
    for n in (0, 1, 511, 512, 513, 1024, 4096, 4097, 10240, 131072, 131073):
        _put(top, b"sizes/%d" % n, r.randbytes(n))
    _put(top, b"sizes/text", text(700001, 1))
    _put(top, b"sizes/random", r.randbytes(1500000))
    _put(top, b"sizes/zeros", bytes(300000))


def _names(top, r, long_names):
    names = [b"a b", b"new\nline", b"tab\there", b"back\\slash", b"quo\"te'",
             b"-dash", b"--help", b"~tilde", b"*?[x]", b"\xff\xfe not utf8",
             b"Gr\xfc\xdfe", "Grüße".encode(), "日本".encode(), b"...",
             b".hidden", b" lead", b"trail ", b"\x01\x1b\x7f", b"per%2Fcent",
             b"colon:name", b"comma,name", b"a", b"a.b", b"a-b", b"A"]
    for n in names:
        _put(top, b"names/" + n, n + r.randbytes(20))
        _put(top, b"dirs/" + n + b"/in", n)
    for n in range(95, 106) if long_names else ():
        _put(top, b"long/" + b"n" * n, b"%d" % n)
    if not long_names:
        return
    _put(top, b"long/" + b"x" * 255, b"255")
    _put(top, b"long/" + "é".encode() * 127, b"254")
    _put(top, b"deep/" + b"/".join(b"level%03d" % i for i in range(120)) +
         b"/file", b"deep")
    _put(top, b"prefix/" + b"p" * 140 + b"/" + b"q" * 99, b"ustar prefix")


def _links(top, long_names):
    d = os.path.join(top, b"links")
    os.makedirs(os.path.join(d, b"sub"))
    _put(top, b"links/file", b"one inode\n" * 1000)
    for n in (b"second", b"sub/third", b"../names-link"):
        os.link(os.path.join(d, b"file"), os.path.join(d, n))
    targets = [b"file", b"./sub/../file", b"/etc/hostname", b"nowhere",
               b"../../../../etc/passwd", b".", b"new\nline", b"\xff\xfe",
               b"t" * 99, b"t" * 100]
    if long_names:
        targets += [b"t" * 101, b"u/" * 150 + b"u", b"v/" * 1500 + b"v"]
    for i, t in enumerate(targets):
        os.symlink(t, os.path.join(d, b"sym%02d" % i))
    os.link(os.path.join(d, b"sym00"), os.path.join(d, b"symlink-twice"),
            follow_symlinks=False)
    os.utime(os.path.join(d, b"sym01"), ns=(0, 10**18 + 123456789),
             follow_symlinks=False)


def _modes_and_times(top, far):
    for m in (0o400, 0o444, 0o600, 0o755, 0o777, 0o4755, 0o2755, 0o6711,
              0o1644) + ((0,) if lib.ROOT else ()):
        _put(top, b"modes/%04o" % m, b"%o" % m, m)
        d = os.path.join(top, b"modes/d%04o" % m)
        os.makedirs(d, exist_ok=True)
        os.chmod(d, m | (0 if lib.ROOT else 0o500))
    times = [0, 1, 10**9, 10**18, 1234567890123456789,
             2**31 * 10**9, 2**32 * 10**9 + 1]
    if far:
        times += [-1, -10**9, -315622800 * 10**9, 8589934593 * 10**9,
                  -10**9 // 2]
    for t in times:
        _put(top, b"times/%d" % t, b"t", mtime=t)


def _special(top):
    d = os.path.join(top, b"special")
    os.makedirs(d)
    os.mkfifo(os.path.join(d, b"fifo"), 0o640)
    try:
        for n, kind, a, b in ((b"null", stat.S_IFCHR, 1, 3),
                              (b"loop", stat.S_IFBLK, 7, 0),
                              (b"large", stat.S_IFBLK, 259, 100000)):
            os.mknod(os.path.join(d, n), kind | 0o600, os.makedev(a, b))
    except PermissionError:
        note("no devices: mknod is not allowed here")


def _attributes(top):
    p = _put(top, b"xattrs/file", b"with attributes")
    os.makedirs(os.path.join(top, b"xattrs/dir"))
    for q in (p, os.path.join(top, b"xattrs/dir")):
        os.setxattr(q, "user.text", b"plain text")
        os.setxattr(q, "user.bytes", bytes(range(256)))
        os.setxattr(q, "user.newline", b"a\nb=c\n")
        os.setxattr(q, "user." + "n" * 100, b"v" * 900)
    os.setxattr(p, "user.empty", b"")
    os.link(p, os.path.join(top, b"xattrs/second name"))
    os.setxattr(_put(top, b"xattrs/equals"), "user.name=x", b"y=z")
    same = _put(top, b"xattrs/same", b"the same set")
    os.setxattr(same, "user.text", b"plain text")


@functools.lru_cache(None)
def odd_tree(long_names=True, far=True, special=True, xattrs=True,
             many=300 if lib.full() else 50):
    """A directory with every kind of name, content, link, time and mode."""
    top = os.fsencode(scratch("odd"))
    r = random.Random(7)
    _contents_of(top, r)
    _names(top, r, long_names)
    _links(top, long_names)
    _modes_and_times(top, far)
    _sparse(top, b"sparse/holes", 2 << 20, ((65536, b"x" * 70000),
                                            (1 << 20, b"y" * 4096),
                                            ((2 << 20) - 5, b"12345")))
    _sparse(top, b"sparse/all hole", 1 << 20, ())
    _sparse(top, b"sparse/many", 3 << 20,
            [(i << 17, b"%06d" % i * 700) for i in range(0, 24)])
    os.makedirs(os.path.join(top, b"empty"))
    for i in range(many):
        _put(top, b"many/%05d.dat" % i, b"%d" % i * (i % 50))
    if special:
        _special(top)
    if xattrs:
        _attributes(top)
    for d in (b"names", b"dirs/a b", b"empty", b"many"):
        os.utime(os.path.join(top, d), ns=(0, 1500000000 * 10**9 + len(d)))
    return os.fsdecode(top)


@functools.lru_cache(None)
def data_tree(part=1):
    """A data set: about 18 MiB in files of all sizes, in classes; times in
    whole seconds, so that every format can say them.  part=N: 1/N of each size."""
    top = os.fsencode(scratch("data"))
    r = random.Random(9)
    for i in range(120):
        n = int(min(2e6, r.lognormvariate(10, 1.5))) // part
        data = r.randbytes(n) if i % 2 else text(n, i)
        _put(top, b"c%d/%04d.bin" % (i % 5, i), data)
    _put(top, b"big/text", text(2500000 // part, 3))
    _put(top, b"big/random", r.randbytes(2500000 // part))
    _put(top, b"big/zeros", bytes(4000000 // part))
    for i, (d, dirs, files) in enumerate(os.walk(top, topdown=False)):
        for n in sorted(files) + [b"."]:
            t = (1600000000 + i * 1000 + len(n)) * 10**9
            os.utime(os.path.join(d, n), ns=(t, t))
    return os.fsdecode(top)


def packed_tree():
    """data_tree() for tests that pack it many times with slow compressors: less of
    it in the standard tier.  PACKED_CACHE holds a part of it in either tier."""
    return data_tree() if lib.full() else data_tree(5)


PACKED_CACHE = ["--cache-size=%dM" % (8 if lib.full() else 2)]


# --- unpacking and comparing ---------------------------------------------------

def gnu_extract(archive, *opts, ok=(0,)):
    """A directory with what GNU tar makes of it."""
    d = scratch("gnu")
    sh("tar", "-x", "-p", "--numeric-owner", "--force-local", "--xattrs",
       "--xattrs-include=*", "--warning=no-timestamp",
       *(["--same-owner"] if lib.ROOT else []), *opts, "-f", archive, "-C", d,
       ok=ok)
    return d


def bsd_extract(archive, *opts, ok=(0,)):
    d = scratch("bsd")
    sh("bsdtar", "-x", "-p", "--xattrs", "--numeric-owner", *opts, "-f",
       archive, "-C", d, ok=ok)
    return d


def mounted(archive, f, opts=(), twice=True):
    """f(mount); then once more, when there is an index."""
    for how in ("scanned", "from the index")[:1 + twice]:
        with Mount(archive, opts=opts) as m:
            try:
                f(m)
                alive(m)
            except Failure as e:
                raise Failure("%s: %s" % (how, e)) from None


def compare(archive, want, opts=(), twice=True, **kw):
    """What is mounted is the tree `want`; `twice`: with the index, too."""
    def f(m):
        tree.same(m.path, want, **kw)
        tree.lookups(m.path, want, 50)
    mounted(archive, f, opts, twice)


def compare_together(archive, want, opts=(), twice=True, reads=tree.READS):
    """The same, between random ranges that several threads read: nothing of it
    is cached before, and more than the cache holds is read between."""
    def f(m):
        tree.read_together(m.path, want, reads=reads)
        tree.same(m.path, want)
        if twice:
            tree.read_together(m.path, want, reads=reads)
    mounted(archive, f, opts, twice)


def alive(m):
    """The daemon is there and answers: statvfs always asks it, and fails with
    ENOTCONN where there is none."""
    os.statvfs(m.path)
    check(tree.dirents(m.path) is not None, "no listing")


def unix_socket(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.close()


def refused_or_mounted(archive, opts=(), words=()):
    """Mount(...), entered, or None when it was refused with exit 3 and a
    sentence; anything else is a Failure."""
    d = tempfile.mkdtemp(prefix="mnt-", dir=_work)
    p = lib.tensorfs("mount", *opts, archive, d)
    if p.returncode == 3:
        check(p.stderr.strip() and not lib.mount_line(d),
              "refused without a word, or mounted all the same")
        check("Sanitizer" not in p.stderr, p.stderr)
        os.rmdir(d)
        return None
    m = Mount(archive, mnt=d, opts=opts)
    if p.returncode or not lib.mount_line(d):
        raise Failure("mount %s: exit %d; stderr: %s" % (
            os.path.basename(archive), p.returncode, short(p.stderr)))
    lib._mounts.append(m)
    m.stderr = p.stderr
    return m
