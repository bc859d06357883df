# SPDX-License-Identifier: BSD-2-Clause
"""Checks that say what was expected and what was got, and exact reads."""
import errno
import os


class Failure(Exception):
    pass


def note(text):
    print("# " + text, flush=True)


def check(cond, why):
    if not cond:
        raise Failure(why)


def short(x):
    s = x if isinstance(x, str) else repr(x)
    return s if len(s) <= 300 else s[:200] + " ... " + s[-80:]


def equal(got, want, what):
    if got != want:
        raise Failure("%s: expected %s, got %s" % (what, short(want),
                                                   short(got)))


def same_bytes(got, want, what):
    """Compare bytes; name the first difference instead of printing all."""
    got, want = bytes(got), bytes(want)
    if got == want:
        return
    if len(got) != len(want):
        raise Failure("%s: expected %d bytes, got %d (%s)" % (
            what, len(want), len(got),
            "a prefix of the right ones" if want.startswith(got) else
            "and they differ"))
    at = next(i for i in range(len(got)) if got[i] != want[i])
    bad = sum(a != b for a, b in zip(got, want))
    raise Failure("%s: %d of %d bytes wrong, first at %d: expected %s, got %s"
                  % (what, bad, len(want), at, want[at:at + 16].hex(),
                     got[at:at + 16].hex()))


def fails_with(codes, f, what):
    """f() must raise OSError with one of `codes`; returns the code."""
    if isinstance(codes, int):
        codes = (codes,)
    names = "/".join(errno.errorcode[c] for c in codes)
    try:
        got = f()
    except OSError as e:
        if e.errno not in codes:
            raise Failure("%s: expected %s, got %s" % (
                what, names, errno.errorcode.get(e.errno, str(e))))
        return e.errno
    raise Failure("%s: expected %s, but it succeeded with %s" % (
        what, names, short(got)))


def read(path):
    """All bytes of a file; an error is an OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while True:
            b = os.read(fd, 1 << 20)
            if not b:
                return b"".join(parts)
            parts.append(b)
    finally:
        os.close(fd)


def pread(path, n, off):
    """n bytes at off; a short read before the end is a Failure."""
    fd = os.open(path, os.O_RDONLY)
    try:
        got = b""
        while len(got) < n:
            b = os.pread(fd, n - len(got), off + len(got))
            if not b:
                break
            got += b
        return got
    finally:
        os.close(fd)


def flatten(x, path=""):
    """Leaves of a JSON value as {dotted path: value}."""
    if isinstance(x, dict):
        items = x.items()
    elif isinstance(x, list):
        items = ((str(i), v) for i, v in enumerate(x))
    else:
        return {path: x}
    out = {}
    for k, v in items:
        out.update(flatten(v, path + "." + str(k) if path else str(k)))
    return out
