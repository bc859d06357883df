# SPDX-License-Identifier: BSD-2-Clause
"""Corner cases of tar: archives made byte by byte, and by the tools themselves.

`cases(workdir)` writes them all and returns a list of (name, path, notes).  What is
in `notes`:
  oracle  whom the tree must agree with: "gnu" (GNU tar), "bsd" (bsdtar), "both",
          "either", "gnu -i" (GNU tar told to ignore zeros), or "expect"
  expect  for that: {path: content} of all files; content is bytes, or "EIO" where
          reading fails
  damaged the archive is, and the mount should say so
  root    only root can extract it
  big     apparent sizes of gigabytes: compare sizes, not content
"""
import base64
import io
import os
import struct
import subprocess
import tarfile

import lib

USTAR = b"ustar\x0000"
GNU = b"ustar  \0"
V7 = b"\0" * 8
END = b"\0" * 1024
FIELDS = (("name", 100), ("mode", 8), ("uid", 8), ("gid", 8), ("size", 12),
          ("mtime", 12), ("sum", 8), ("type", 1), ("link", 100),
          ("magic", 8), ("uname", 32), ("gname", 32), ("major", 8),
          ("minor", 8), ("prefix", 155), ("pad", 12))


def number(value, width):
    """As GNU tar writes it: octal, or base-256 where that is not enough."""
    if isinstance(value, bytes):
        return value
    if 0 <= value < 8 ** (width - 1):
        return b"%0*o\0" % (width - 1, value)
    return base256(value, width)


def base256(value, width):
    raw = (value + (1 << 8 * width)) % (1 << 8 * width)
    return (raw | 1 << (8 * width - 1)).to_bytes(width, "big")


def header(name=b"", type=b"0", signed=False, sum=None, **f):
    f.setdefault("mode", 0o644)
    f.setdefault("mtime", 1500000000)
    f.setdefault("magic", USTAR)
    f["name"], f["type"] = name, type
    block = b""
    for field, width in FIELDS:
        value = f.pop(field, b"" if field in ("link", "uname", "gname",
                                              "prefix", "pad") else 0)
        if field == "sum":
            value = b" " * 8
        if not isinstance(value, bytes):
            value = number(value, width)
        assert len(value) <= width, (field, value)
        block += value.ljust(width, b"\0")
    assert not f and len(block) == 512, f
    if sum is None:
        s = 0
        for c in block:
            s += c - 256 if signed and c > 127 else c
        sum = b"%06o\0 " % (s & 0o777777)
    elif callable(sum):
        s = 0
        for c in block:
            s += c
        sum = sum(s)
    return block[:148] + sum + block[156:]


def pad(data):
    return data + b"\0" * (-len(data) % 512)


def entry(name, data=b"", type=b"0", **f):
    f.setdefault("size", len(data))
    return header(name, type, **f) + pad(data)


def directory(name, **f):
    f.setdefault("mode", 0o755)
    return header(name, b"5", **f)


def symlink(name, target, **f):
    return header(name, b"2", link=target, **f)


def hardlink(name, target, data=b"", **f):
    return entry(name, data, b"1", link=target, **f)


def record(key, value):
    body = b" " + key + b"=" + value + b"\n"
    n = len(body)
    while len(b"%d" % n) + len(body) != n:
        n = len(b"%d" % n) + len(body)
    return b"%d" % n + body


def pax(*pairs, type=b"x", raw=None):
    data = b"".join(record(k, v) for k, v in pairs) if raw is None else raw
    return entry(b"PaxHeaders/x", data, type)


def long_name(name, type=b"L"):
    return entry(b"././@LongLink", name + b"\0", type, magic=GNU, mode=0,
                 mtime=0)


class Cases:
    def __init__(self, workdir):
        self.workdir = workdir
        self.list = []

    def path(self, name):
        return os.path.join(self.workdir, name + ".tar")

    def add(self, name, data, oracle="both", **notes):
        with open(self.path(name), "wb") as f:
            f.write(data)
        notes["oracle"] = "expect" if "expect" in notes else oracle
        self.list.append((name, self.path(name), notes))

    def tool(self, name, command, cwd, oracle="both", **notes):
        """`command` with the archive's path for "@"."""
        argv = [self.path(name) if a == "@" else a for a in command]
        r = subprocess.run(argv, cwd=cwd, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE)
        if r.returncode or not os.path.exists(self.path(name)):
            raise RuntimeError("%s: %s" % (argv, r.stderr.decode()))
        notes["oracle"] = oracle
        self.list.append((name, self.path(name), notes))


def links(c):
    a = entry(b"a", b"data of a\n")
    c.add("self-link", hardlink(b"a", b"a") + END, damaged=False)
    c.add("two-self-links", hardlink(b"a", b"a") * 2 + END)
    c.add("file-then-self-links", a + hardlink(b"a", b"a") * 2 + END)
    c.add("self-link-then-file", hardlink(b"a", b"a") + a + END)
    c.add("hardlinks", a + hardlink(b"b", b"a") + hardlink(b"d/c", b"b") + END)
    c.add("hardlink-before-target", hardlink(b"b", b"a") + a + END)
    c.add("hardlink-to-nothing", hardlink(b"b", b"nothing") + a + END)
    c.add("hardlink-to-directory",
          directory(b"d/") + hardlink(b"b", b"d") + a + END)
    c.add("hardlink-dot-slash",
          entry(b"./a", b"one") + hardlink(b"./b", b"./a") +
          hardlink(b"e", b"././a") + END)
    c.add("hardlink-absolute",
          entry(b"/x/a", b"one") + hardlink(b"/x/b", b"/x/a") + END, "gnu")
    c.add("hardlink-of-replaced",
          a + hardlink(b"b", b"a") + entry(b"a", b"second") + END)
    c.add("hardlink-replaces", a + entry(b"b", b"other") +
          hardlink(b"b", b"a") + END)
    c.add("hardlink-to-symlink",
          a + symlink(b"s", b"a") + hardlink(b"t", b"s") + END)
    c.add("v7-hardlink-with-size",
          entry(b"xmcd-3.3.2/docs_d/READMf", b"x" * 321, magic=V7) +
          hardlink(b"xmcd-3.3.2/README", b"xmcd-3.3.2/docs_d/READMf",
                   size=321, magic=V7))
    c.add("gnu-hardlink-with-size",
          entry(b"a", b"x" * 700, magic=GNU) +
          hardlink(b"b", b"a", size=700, magic=GNU) + a + END)
    c.add("ustar-hardlink-with-size",
          a + hardlink(b"b", b"a", size=10) + entry(b"z", b"zz") + END)
    c.add("ustar-hardlink-with-size-last",
          a + hardlink(b"b", b"a", size=10) + END)
    c.add("ustar-hardlink-with-body",
          a + hardlink(b"b", b"a", b"data of a\n") + entry(b"z", b"zz") + END,
          "bsd")
    c.add("pax-hardlink-with-body",
          pax((b"comment", b"x")) + a +
          hardlink(b"b", b"a", b"data of a\n") + entry(b"z", b"zz") + END,
          "bsd")
    c.add("pax-hardlink-to-nothing-with-body",
          pax((b"comment", b"x")) + hardlink(b"b", b"a", b"body\n") +
          entry(b"z", b"zz") + END, expect={"b": b"body\n", "z": b"zz"})
    full = b"t" * 96 + b"/end"
    assert len(full) == 100
    c.add("link-filled", symlink(b"s", full) + entry(b"z", b"zz") + END)
    c.add("hardlink-filled", entry(full, b"yes") +
          hardlink(b"h", full) + END)
    c.add("symlinks", a + symlink(b"s", b"a") + symlink(b"d/t", b"../a") +
          symlink(b"abs", b"/etc/none") + symlink(b"loop", b"loop") +
          symlink(b"out", b"../../out") + END)
    c.add("symlink-in-the-way",
          directory(b"d/") + symlink(b"s", b"d") +
          entry(b"s/f", b"through\n") + END, "gnu")
    c.add("symlink-with-size",
          symlink(b"s", b"a", size=1) + entry(b"z", b"zz") + END)
    c.add("long-link-K", long_name(b"t" * 200, b"K") + symlink(b"s", b"t") +
          entry(b"z", b"zz") + END)


def names(c):
    c.add("denormal", directory(b"root/") + entry(b"root/../ufo", b"u") +
          entry(b"root/./bar", b"b") + entry(b"././foo", b"f") +
          entry(b"x//y///z", b"z") + END, "either")
    c.add("dot-dot-only", directory(b"..") + entry(b"../../up", b"u") +
          entry(b"z", b"zz") + END, "either")
    c.add("dots-in-names", entry(b"...", b"3") + entry(b"..a", b"a") +
          entry(b"b..", b"b") + entry(b".h", b"h") + END)
    c.add("absolute", entry(b"/tmp/a", b"a") + entry(b"//b", b"b") +
          directory(b"/d/") + END)
    c.add("dot-slash", entry(b"./foo", b"f") + END)
    c.add("dot-slash-root", directory(b"./", mode=0o750) +
          entry(b"./foo", b"f") + directory(b"./d/") + END)
    c.add("dot-root", directory(b".", mode=0o750) + entry(b"./foo", b"f") +
          END)
    c.add("slash-root", directory(b"/") + entry(b"/foo", b"f") + END, "either")
    c.add("no-directories", entry(b"a/b/c/d", b"d") + entry(b"a/e", b"e") +
          END)
    c.add("directory-after-content",
          entry(b"a/b", b"b") + directory(b"a/", mode=0o711, mtime=5) + END)
    odd = bytes(x for x in range(1, 256) if x != 0x2f)
    c.add("every-byte", entry(b"d/" + odd[:90], b"1") +
          entry(b"d/" + odd[90:180], b"2") + entry(b"d/" + odd[180:], b"3") +
          END)
    c.add("newline", entry(b"a\nb", b"1") + entry(b"\n", b"2") + END)
    c.add("latin-1", entry(b"gef\xe4hrlich/\xff\xfe", b"1") +
          entry("\u00e4\u65e5".encode(), b"2") + END)
    c.add("backslash", entry(b"a\\b", b"1") + entry(b"a\\n", b"2") +
          entry(b" lead", b"3") + entry(b"trail ", b"4") + END)
    c.add("component-255", long_name(b"n" * 255) + entry(b"n", b"1") +
          long_name(b"d" * 255 + b"/" + b"e" * 255) + entry(b"n", b"2") + END)
    c.add("name-100", entry(b"n" * 100, b"1") +
          entry(b"d/" + b"m" * 98, b"2") + END)
    c.add("prefix", entry(b"f", b"1", prefix=b"p/q") +
          entry(b"n" * 100, b"2", prefix=b"p" * 154 + b"/") +
          entry(b"n" * 100, b"3", prefix=b"r" * 155) + END)
    deep = b"/".join(b"%03d" % i for i in range(400))
    c.add("deep", long_name(deep + b"/f") + entry(b"n", b"1") + END)
    c.add("redundant-L", long_name(b"first" * 30) + long_name(b"second" * 30) +
          long_name(b"third" * 40) + long_name(b"last" * 50) +
          entry(b"n", b"1", magic=GNU) + entry(b"plain", b"2", magic=GNU) +
          END)
    c.add("K-and-L", long_name(b"t" * 200, b"K") + long_name(b"n" * 200) +
          symlink(b"n", b"t", magic=GNU) + END)
    c.add("L-then-pax", long_name(b"gnu" * 40) +
          pax((b"path", b"by pax")) + entry(b"n", b"1") + END, "either")
    c.add("empty-name", entry(b"", b"nobody\n") + entry(b"z", b"zz") + END)
    c.add("nul-in-name", entry(b"a\0b", b"1") +
          long_name(b"c\0d") + entry(b"n", b"2") + END)
    c.add("path-of-3000", long_name(b"/".join([b"q" * 200] * 15)) +
          entry(b"n", b"1") + entry(b"z", b"zz") + END)


def updates(c):
    one, two = entry(b"foo", b"one\n"), entry(b"foo", b"second\n")
    c.add("updated-file", one + two + entry(b"foo", b"3") + END)
    c.add("updated-folder", directory(b"d/", mode=0o700) + entry(b"d/f", b"1") +
          directory(b"d/", mode=0o755) + entry(b"d/g", b"2") + END)
    c.add("file-then-folder", one + directory(b"foo/") +
          entry(b"foo/x", b"x") + END, "either")
    c.add("file-then-implicit-folder", one + entry(b"foo/x", b"x") + END,
          "either")
    c.add("folder-then-file", directory(b"foo/") + one + END, "either")
    c.add("full-folder-then-file", directory(b"foo/") +
          entry(b"foo/x", b"x") + one + END, "either")
    c.add("file-folder-file", one + directory(b"foo/") + two + END, "either")
    c.add("symlink-then-file", symlink(b"foo", b"bar") + one + END)
    c.add("file-then-symlink", one + symlink(b"foo", b"bar") + END)
    c.add("symlink-then-folder", directory(b"bar/") + symlink(b"foo", b"bar") +
          directory(b"foo/") + entry(b"foo/x", b"x") + END, "either")
    c.add("fifo-then-file", header(b"foo", b"6") + one + END)
    c.add("replaced-by-link", one + entry(b"a", b"a") +
          hardlink(b"foo", b"a") + entry(b"a", b"new") + END)


def dialects(c):
    body = b"content\n"
    c.add("v7", entry(b"f", body, b"\0", magic=V7) +
          entry(b"d/", b"", b"\0", magic=V7, mode=0o755) +
          entry(b"d/g", body, b"\0", magic=V7) +
          header(b"s", b"2", link=b"f", magic=V7) + END)
    c.add("v7-directory-with-size",
          header(b"d/", b"\0", size=1, mode=0o755, magic=V7) +
          entry(b"d/f", body, b"\0", magic=V7) + END)
    c.add("v7-prefix-is-nothing",
          entry(b"f", body, b"\0", magic=V7, prefix=b"junk") + END)
    c.add("ustar-directory-with-size", directory(b"d/", size=1000) +
          entry(b"d/f", body) + END)
    c.add("ustar-slash-on-file", entry(b"d/", b"", mode=0o755) +
          entry(b"d/f", body) + END)
    c.add("gnu", entry(b"f", body, magic=GNU) + END)
    c.add("gnu-times-in-prefix",
          entry(b"f", body, magic=GNU,
                prefix=b"13375561762\00013375561762\0") +
          entry(b"/abs/f", body, magic=GNU, prefix=b"13375561762\0") + END)
    c.add("gnu-dumpdir", entry(b"d/", b"Yf\0Nother\0\0", b"D", magic=GNU,
                               mode=0o755) +
          entry(b"d/f", body, magic=GNU) + END)
    c.add("star", entry(b"f", body, prefix=b"dir".ljust(131, b"\0") +
                        b"14000000000 14000000000 ") + END)
    c.add("contiguous", entry(b"f", body, b"7") + END)
    c.add("unknown-type", entry(b"f", body, b"Q") + entry(b"z", b"zz") + END)
    c.add("old-names", entry(b"rename", body, b"N", magic=GNU) +
          entry(b"z", b"zz", magic=GNU) + END, "gnu")
    c.add("solaris-acl", entry(b"f", b"1000000\0user::rw-\0", b"A") +
          entry(b"f", body) + END, "bsd")
    c.add("solaris-x", entry(b"x", record(b"path", b"by X"), b"X") +
          entry(b"f", body) + END)
    c.add("devices", header(b"c", b"3", major=1, minor=3) +
          header(b"b", b"4", major=259, minor=70000) +
          header(b"p", b"6", mode=0o600) + END, root=True)
    c.add("device-with-size", header(b"c", b"3", major=1, minor=3, size=600) +
          entry(b"z", b"zz") + END, root=True)
    c.add("fifo-with-size", header(b"p", b"6", size=600) +
          entry(b"z", b"zz") + END)
    c.add("modes", b"".join(entry(b"f%04o" % m, body, mode=m) for m in
                            (0, 0o111, 0o222, 0o444, 0o600, 0o777, 0o4755,
                             0o2711, 0o7777, 0o100644)) +
          directory(b"t/", mode=0o1777) + END)
    c.add("label", header(b"my volume", b"V", magic=GNU) +
          entry(b"f", body, magic=GNU) + END)
    c.add("only-label", header(b"my volume", b"V", magic=GNU) + END)
    c.add("label-with-negative-size",
          header(b"v", b"V", magic=GNU, size=base256(-1, 12)) +
          entry(b"f", body) + END, "gnu", damaged=True)
    c.add("multi-volume", entry(b"old", b"rest of it", b"M", magic=GNU) +
          entry(b"f", body, magic=GNU) + END, "gnu")


def numbers(c):
    body = b"content\n"

    def attributes(name, oracle="both", **f):
        c.add(name, entry(b"f", body, **f) + entry(b"z", b"zz") + END, oracle)
    attributes("base-256-owner", uid=base256(2097152, 8),
               gid=base256(2147483648, 8), magic=GNU)
    attributes("base-256-size", size=base256(len(body), 12), magic=GNU)
    attributes("owner-8-digits", uid=b"77777777", gid=b"76543210")
    attributes("blank-owner", uid=b" " * 8, gid=b"\0" * 8, mode=b"   644 \0")
    attributes("blanks", mode=b"100644 \0", uid=b"    12 \0",
               size=b"         10 ", mtime=b" 1234567 ")
    attributes("leading-nul", "gnu", mode=b"\0" b"000644", uid=b"\0" b"00012\0")
    attributes("mtime-12-digits", mtime=b"100000000001")
    attributes("mtime-base-256", mtime=base256(8 ** 11 + 5, 12))
    attributes("mtime-negative", mtime=base256(-315622800, 12))
    attributes("mtime-zero", mtime=0)
    c.add("sum-signed", entry(b"\xff\xfe\xe4" * 20, body, signed=True) + END)
    for i, f in enumerate((b"%06o\0 ", b"%06o \0", b"%7o\0", b"%6o\0 ",
                           b"%08o", b"%o\0")):
        c.add("sum-spelling-%d" % i,
              entry(b"f", body, sum=lambda s, f=f: (f % s).ljust(8, b"\0")) +
              END)
    big = 8 << 30
    for name, first in (("12-digits", header(b"f", size=b"%012o" % big)),
                        ("base-256", header(b"f", size=big, magic=GNU)),
                        ("pax", pax((b"size", b"%d" % big)) +
                         header(b"f"))):
        c.add("8-gib-cut-" + name, entry(b"z", b"zz") + first + b"x" * 512,
              expect={"z": b"zz", "f": "EIO"}, damaged=True, big=True)
    c.add("size-negative", entry(b"a", b"aa") +
          header(b"f", size=base256(-512, 12)) + entry(b"z", b"zz") + END,
          "gnu", damaged=True)
    c.add("size-of-all-bits", entry(b"a", b"aa") +
          header(b"f", size=b"\x80" + b"\xff" * 11) + entry(b"z", b"zz") + END,
          expect={"a": b"aa", "z": b"zz"}, damaged=True)
    c.add("size-junk", entry(b"a", b"aa") + header(b"f", size=b"12x4567890q") +
          entry(b"z", b"zz") + END, expect={"a": b"aa", "z": b"zz"},
          damaged=True)


def extended(c):
    body = b"content\n"
    f = entry(b"f", body)
    z = entry(b"z", b"zz")

    def one(name, *pairs, oracle="both", raw=None, **notes):
        c.add(name, pax(*pairs, raw=raw) + f + z + END, oracle, **notes)
    one("pax-path", (b"path", b"d/\xc3\xa4 long " + b"n" * 150))
    one("pax-path-slash", (b"path", b"d/"))
    one("pax-owner", (b"uid", b"2147483000"), (b"gid", b"70000"))
    one("pax-mtime", (b"mtime", b"1700000000.123456789"))
    one("pax-mtime-digits", (b"mtime", b"1700000000.123456789123"))
    one("pax-mtime-short", (b"mtime", b"1700000000.5"))
    one("pax-mtime-dot", (b"mtime", b"1700000000."))
    one("pax-mtime-negative", (b"mtime", b"-315622800"))
    one("pax-mtime-negative-fraction", (b"mtime", b"-1.25"), oracle="gnu")
    one("pax-mtime-junk", (b"mtime", b"1700000000.5junk"), oracle="either")
    one("pax-mtime-nonsense", (b"mtime", b"soon"), oracle="gnu")
    one("pax-mtime-large", (b"mtime", b"10000000000"))
    one("pax-mtime-overflow", (b"mtime", b"9" * 30),
        expect={"f": body, "z": b"zz"})
    one("pax-other-times", (b"atime", b"1"), (b"ctime", b"2.5"),
        (b"comment", b"no = comment"), (b"charset", b"BINARY"))
    one("pax-binary", (b"hdrcharset", b"BINARY"), (b"path", b"\xff\xe4\xfe"))
    one("pax-not-utf8", (b"path", b"\xff\xe4\xfe"))
    one("pax-newline", (b"path", b"a\nb=c"), (b"mtime", b"77"))
    one("pax-empty", raw=b"")
    one("pax-unknown", (b"FOO.bar", b"\0\1\2"), (b"mtime", b"77"))
    one("pax-twice", (b"path", b"first"), (b"path", b"second"))
    one("pax-size-nonsense", (b"size", b"-99999999999999999999"),
        oracle="gnu")
    one("pax-names", (b"uname", b"nobody-at-all"), (b"gname", b"none"))
    one("pax-malformed-length", oracle="either",
        raw=record(b"mtime", b"77") + b"4 x=\n" + record(b"mtime", b"78"))
    one("pax-malformed-newline", oracle="either",
        raw=record(b"mtime", b"77") + b"9 a=bcdef" + record(b"mtime", b"78"))
    one("pax-malformed-equals", oracle="either",
        raw=record(b"mtime", b"77") + b"6 abc\n" + record(b"mtime", b"78"))
    one("pax-malformed-huge", raw=b"99999999999999999999 mtime=77\n",
        oracle="either")
    one("pax-nul-padded", raw=record(b"mtime", b"77") + b"\0" * 100,
        oracle="either")
    c.add("pax-linkpath", f + pax((b"linkpath", b"far/" + b"t" * 150)) +
          symlink(b"s", b"t") + END)
    c.add("pax-two-headers", pax((b"path", b"one")) + pax((b"mtime", b"77")) +
          f + END)
    c.add("pax-global", pax((b"mtime", b"77"), (b"comment", b"a" * 40),
                            type=b"g") + f + pax((b"mtime", b"78")) + z + END,
          "gnu")
    c.add("pax-global-twice", pax((b"mtime", b"77"), type=b"g") + f +
          pax((b"mtime", b"79"), type=b"g") + z + END, "gnu")
    c.add("pax-only-global", pax((b"comment", b"a" * 40), type=b"g") + END)
    c.add("pax-global-large", header(b"g", b"g", size=4 << 30) + b"\0" * 512,
          expect={}, damaged=True)
    c.add("pax-size", pax((b"size", b"8")) + header(b"f") + pad(body) + z +
          END)
    c.add("pax-large-attribute",
          pax((b"SCHILY.xattr.user.large", b"a" * (8 << 20))) + f + z + END,
          expect={"f": body, "z": b"zz"})
    c.add("pax-devices", pax((b"SCHILY.devmajor", b"8"),
                             (b"SCHILY.devminor", b"17")) +
          header(b"b", b"4", major=1, minor=1) + END, "bsd", root=True)
    c.add("pax-holesdata",
          pax((b"SUN.holesdata", b" 0 512 1024 1536 ")) +
          entry(b"f", b"a" * 512 + b"\0" * 512 + b"b" * 512) + z + END)
    value = b"\0\1binary\xff\n=value"
    c.add("xattr-schily", pax((b"SCHILY.xattr.user.a", value),
                              (b"SCHILY.xattr.user.empty", b""),
                              (b"SCHILY.xattr.user.b", b"plain")) + f + END)
    c.add("xattr-libarchive",
          pax((b"LIBARCHIVE.xattr.user.a%20b%25",
               base64.b64encode(value).rstrip(b"="))) + f + END, "bsd")
    c.add("xattr-both",
          pax((b"SCHILY.xattr.user.a", value),
              (b"LIBARCHIVE.xattr.user.a",
               base64.b64encode(value).rstrip(b"="))) + f + END)
    c.add("xattr-escaped",
          pax((b"SCHILY.xattr.user.a%3Db%25", b"1")) + f + END, "gnu")
    c.add("xattr-directory-and-symlink",
          pax((b"SCHILY.xattr.user.d", b"1")) + directory(b"d/") + f + END)


def sparse_map(*runs):
    return b"".join(number(x, 12) for run in runs for x in run)


def sparse(c):
    z = entry(b"z", b"zz")
    data = b"A" * 512 + b"B" * 100
    runs = ((512, 512), (4096, 100), (5000, 0))
    body = pad(data)

    def old(name, runs, size, real, more=(), flag=b"\0", first=b""):
        area = (b"\0" * 41 + sparse_map(*runs).ljust(96, b"\0") +
                (b"\1" if more else flag) + number(real, 12)).ljust(167, b"\0")
        block = first + header(name, b"S", size=size, magic=GNU,
                               prefix=area[:155], pad=area[155:])
        for i, extra in enumerate(more):
            block += (sparse_map(*extra).ljust(504, b"\0") +
                      (b"\1" if i + 1 < len(more) else b"\0")).ljust(512,
                                                                     b"\0")
        return block
    c.add("sparse-old", old(b"f", runs, 612, 5000) + body + z + END)
    c.add("sparse-old-hole-at-end",
          old(b"f", runs[:2] + ((9000, 0),), 612, 9000) + body + z + END)
    c.add("sparse-old-no-last-entry",
          old(b"f", runs[:2], 612, 5000) + body + z + END, "bsd")
    c.add("sparse-old-all-hole", old(b"f", ((9000, 0),), 0, 9000) + z + END)
    many = [(i * 1024, 512) for i in range(60)]
    stored = b"".join(bytes([65 + i % 26]) * 512 for i in range(60))
    c.add("sparse-old-extended",
          old(b"f", many[:4], len(stored), 60 * 1024,
              (many[4:25], many[25:46], many[46:] + [(60 * 1024, 0)])) +
          stored + z + END)
    c.add("sparse-old-name-in-L",
          old(b"f", runs, 612, 5000, first=long_name(b"s" * 120)) + body + z +
          END)
    c.add("sparse-reuse", old(b"f", runs, 612, 5000) + body +
          entry(b"plain", b"p" * 700, magic=GNU) +
          old(b"g", ((0, 512), (600, 100)), 612, 700) + body + z + END)
    c.add("sparse-old-overlap",
          old(b"f", ((0, 512), (100, 100)), 612, 700) + body + z + END,
          expect={"f": "EIO", "z": b"zz"})
    c.add("sparse-old-beyond-file",
          old(b"f", ((0, 512), (1 << 40, 100)), 612, 700) + body + z + END,
          expect={"f": "EIO", "z": b"zz"})
    c.add("sparse-old-beyond-data",
          old(b"f", ((0, 512), (1000, 9000)), 612, 10000) + body + z + END,
          expect={"f": "EIO", "z": b"zz"})
    star = (b"\0" * 10 + b"\0" + sparse_map(*runs).ljust(96, b"\0") +
            number(5000, 12) + number(0, 12) + b"14000000000 14000000000 "
            ).ljust(163, b"\0") + b"tar\0"
    c.add("sparse-star", header(b"f", b"S", size=612, prefix=star[:155],
                                pad=star[155:]) + body + z + END, "gnu")
    pairs = [(b"GNU.sparse.size", b"5000"), (b"GNU.sparse.numblocks", b"3")]
    for off, n in runs:
        pairs += [(b"GNU.sparse.offset", b"%d" % off),
                  (b"GNU.sparse.numbytes", b"%d" % n)]
    c.add("sparse-0.0", pax(*pairs) + entry(b"f", data) + z + END)
    c.add("sparse-0.1",
          pax((b"GNU.sparse.size", b"5000"), (b"GNU.sparse.numblocks", b"3"),
              (b"GNU.sparse.name", b"real/name"),
              (b"GNU.sparse.map", b"512,512,4096,100,5000,0")) +
          entry(b"GNUSparseFile.1/f", data) + z + END)
    one = ((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
           (b"GNU.sparse.name", b"real/name"),
           (b"GNU.sparse.realsize", b"5000"))
    text = b"3\n512\n512\n4096\n100\n5000\n0\n"
    c.add("sparse-1.0", pax(*one) +
          entry(b"GNUSparseFile.1/f", pad(text) + data) + z + END)
    c.add("sparse-1.0-comments", pax(*one) +
          entry(b"GNUSparseFile.1/f", pad(b"#a comment\n2\n# more\n512\n512\n"
                                          b"4096\n100\n") + data) + z + END,
          "bsd")
    long = b"%d\n" % 200 + b"".join(b"%d\n512\n" % (i * 100352)
                                    for i in range(200))
    c.add("sparse-1.0-long-map",
          pax(*one[:3], (b"GNU.sparse.realsize", b"19970560")) +
          entry(b"GNUSparseFile.1/f", pad(long) + b"x" * 102400) + z + END)
    c.add("sparse-1.0-odd-runs", pax(*one) +
          entry(b"GNUSparseFile.1/f", pad(b"3\n5\n7\n70\n9\n5000\n0\n") +
                b"0123456789abcdef") + z + END, "bsd")
    c.add("sparse-1.0-no-map", pax(*one) +
          entry(b"GNUSparseFile.1/f", b"no map here".ljust(600)) + z + END,
          expect={"real/name": "EIO", "z": b"zz"})
    c.add("sparse-1.0-count-too-large", pax(*one) +
          entry(b"GNUSparseFile.1/f", pad(b"99999999999\n1\n1\n")) + z + END,
          expect={"real/name": "EIO", "z": b"zz"})
    ten = 10 << 30
    c.add("sparse-10-gib",
          pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"),
              (b"GNU.sparse.name", b"large"),
              (b"GNU.sparse.realsize", b"%d" % ten)) +
          entry(b"GNUSparseFile.1/f", pad(b"1\n%d\n512\n" % (ten - 512)) +
                b"e" * 512) + z + END, big=True)


def shape(c):
    """The archive as a whole: its end, its beginning, what is between."""
    a, z = entry(b"a", b"aa\n" * 300), entry(b"z", b"zz")
    whole = a + z + END
    c.add("empty-20", b"\0" * 10240)
    c.add("empty-2", END)
    c.add("empty-1", END[:512], "either")
    c.add("no-end", a + z)
    c.add("one-zero-block", a + z + END[:512])
    c.add("no-padding", a + header(b"z", size=2) + b"zz", "bsd")
    c.add("trailing-garbage", whole +
          bytes(i * i % 251 for i in range(3000)))
    c.add("trailing-text", whole + b"signature\n")
    c.add("trailing-zeros", whole + b"\0" * 100000)
    c.add("lone-zero-block", a + END[:512] + z + END, "gnu -i")
    c.add("concatenated", whole + b"\0" * 7168 + entry(b"b", b"bb") +
          entry(b"a", b"again") + END, "gnu -i")
    c.add("concatenated-empty", END * 5 + whole, "gnu -i")
    c.add("concatenated-globals",
          pax((b"mtime", b"77"), type=b"g") + a + END + z + END,
          expect={"a": b"aa\n" * 300, "z": b"zz"})
    broken = bytearray(header(b"hurt", size=3))
    broken[20] ^= 1
    c.add("damaged-header", a + bytes(broken) + pad(b"hur") + z + END, "gnu",
          damaged=True)
    # Nothing at its beginning says what it is: it is refused.
    c.add("damaged-first-header", bytes(broken) + pad(b"hur") + z + END,
          expect={}, damaged=True)
    c.add("damaged-pax", a + bytes(broken) + pad(record(b"path", b"q")) + z +
          END, "gnu", damaged=True)
    c.add("damaged-last-header", a + z + bytes(broken) + END, "gnu",
          damaged=True)
    both = {"a": b"aa\n" * 300, "z": b"zz"}
    for at in (512, 513, 900, 1411, 1412, 1535):
        c.add("cut-%d" % at, whole[:at],
              expect={"a": "EIO" if at < 1412 else both["a"]},
              damaged=at < 1412)
    for at in (1536, 1537, 2047):
        c.add("cut-%d" % at, whole[:at], expect={"a": both["a"]},
              damaged=at != 1536)
    for at in (2048, 2049, 2050, 2560, 3000):
        c.add("cut-%d" % at, whole[:at],
              expect={"a": both["a"], "z": both["z"] if at > 2049 else "EIO"},
              damaged=at < 2050)
    name = "/".join(["p" * 100] * 30)
    long = pax((b"path", name.encode())) + a
    for at in range(0, len(long), 100 if lib.full() else 500):
        expect = {}
        if at >= 512 + 3072 + 512:
            expect = {name: "EIO" if at < 512 + 3072 + 1412
                      else both["a"]}
        if 0 < at < 512:
            continue
        c.add("cut-pax-%d" % at, long[:at], expect=expect,
              damaged=0 < at < 512 + 3072 + 1412 and at != 3584)
    c.add("many", b"".join(entry(b"d%02d/%05d" % (i % 7, i), b"%d" % i)
                           for i in range(3000)) + END)


def tools(c):
    src = os.path.join(c.workdir, "src")
    os.makedirs(os.path.join(src, "t/empty"))

    def write(name, data, holes=()):
        with open(os.path.join(src, name), "wb") as f:
            for off in holes:
                f.seek(off)
                f.write(data)
            if not holes:
                f.write(data)
    write("t/plain", b"plain\n" * 1000)
    write("t/none", b"")
    write("t/b\u00fc\n x", b"odd")
    write("t/sparse", b"data" * 100, (65536, 1 << 20, 3 << 20))
    write("t/sparse2", b"data" * 300, range(0, 4 << 20, 65536))
    with open(os.path.join(src, "t/hole"), "wb") as f:
        f.truncate(1 << 20)
    os.link(os.path.join(src, "t/plain"), os.path.join(src, "t/second"))
    os.symlink("plain", os.path.join(src, "t/sym"))
    os.symlink("x" * 300, os.path.join(src, "t/longsym"))
    os.mkfifo(os.path.join(src, "t/fifo"))
    deep = "t/" + "/".join(["directory%02d" % i for i in range(20)])
    os.makedirs(os.path.join(src, deep))
    write(deep + "/file", b"deep")
    os.utime(os.path.join(src, "t/plain"), ns=(10 ** 18, 10 ** 18 + 123456789))
    os.utime(os.path.join(src, "t/none"), (-5, -5))
    for format in ("v7", "ustar", "oldgnu", "gnu", "posix"):
        some = ["t"]
        if format == "v7":
            some = ["t/plain", "t/second", "t/sym", "t/empty"]
        if format == "ustar":
            some = ["t/plain", "t/second", "t/sym", "t/empty", "t/fifo", deep]
        c.tool("tool-gnu-" + format, ["tar", "--format=" + format, "-cf", "@"]
               + some, src)
    for version in ("0.0", "0.1", "1.0"):
        c.tool("tool-gnu-sparse-" + version,
               ["tar", "--format=posix", "-S", "--sparse-version=" + version,
                "-cf", "@", "t"], src)
    c.tool("tool-gnu-sparse-old", ["tar", "--format=gnu", "-S", "-cf", "@",
                                   "t"], src)
    c.tool("tool-gnu-label", ["tar", "-V", "a label", "-cf", "@", "t/plain"],
           src)
    c.tool("tool-gnu-label-posix", ["tar", "--format=posix", "-V", "a label",
                                    "-cf", "@", "t/plain"], src)
    snar = os.path.join(c.workdir, "snar")
    for level in (0, 1):
        for format in ("gnu", "posix"):
            c.tool("tool-gnu-incremental-%d-%s" % (level, format),
                   ["tar", "--format=" + format, "-g", snar + format, "-cf",
                    "@", "t"], src)
        write("t/later", b"later")
        os.rename(os.path.join(src, "t/none"), os.path.join(src, "t/nihil"))
        write("t/none", b"")
    for format in ("ustar", "pax", "gnutar"):
        some = ["t"] if format != "ustar" else ["t/plain", "t/second", "t/sym"]
        c.tool("tool-bsd-" + format, ["bsdtar", "--format", format, "-cf", "@"]
               + some, src)
    for name, format in (("ustar", tarfile.USTAR_FORMAT),
                         ("gnu", tarfile.GNU_FORMAT),
                         ("pax", tarfile.PAX_FORMAT)):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=format) as t:
            for file in ("plain", "second", "sym", "empty", "fifo"):
                t.add(os.path.join(src, "t", file), "t/" + file)
        c.add("tool-python-" + name, out.getvalue())


def cases(workdir):
    """A list of (name, path of the tar, notes); see above."""
    os.makedirs(workdir, exist_ok=True)
    c = Cases(workdir)
    for group in (links, names, updates, dialects, numbers, extended, sparse,
                  shape, tools):
        group(c)
    return c.list
