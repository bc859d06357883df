#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""All of HDF5: every layout, filter, type, link and virtual mapping.

The zoo modules write the files and say what is in them; here each path of each
file is one case over the mount, and one more over `tensorfs cat`.  A case runs
all of its checks and reports all that fail: one wrong view hides no other.

    test_allhdf5.py [PATTERN...]    cases whose name contains a pattern

Without a pattern: layouts, types and links.  test_allfilters.py and
test_allvirtual.py are the rest, so that they run beside it.
"""
import json
import os
import random
import re
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import numpy as np

import expect
import lib
import zoo_filters
import zoo_layouts
import zoo_links
import zoo_types
import zoo_virtual
from checks import (Failure, check, equal, fails_with, pread, read,
                    same_bytes, short)
from expect import Want, judge, little, npy, words_in
from lib import exits, run_case, tensorfs

GROUPS = {"layouts": zoo_layouts, "types": zoo_types, "filters": zoo_filters,
          "links": zoo_links, "virtual": zoo_virtual}
PAGE = 4096
tally = {True: 0, False: 0, None: 0}
rng = random.Random(5)
only = sys.argv[1:]
# How many samples of a dataset are read, and which of the datasets `cat` prints.
# `cat` is a process for each dataset, and sanitizers are slow to start.
SAMPLES = 100 if lib.full() else 12
every_cat = {None: 1 if lib.full() else 8, "thread": 8}.get(
    os.environ.get("TENSORFS_SANITIZED"), 4)


class File:
    """A file of the mount: its bytes, what in them is padding, whether it
    must not be readable."""

    def __init__(self, rel, a, bad=None, raw=False):
        self.rel, self.dtype = rel, a.dtype
        self.want = a.tobytes() if raw else npy(a)
        self.lead = 0 if raw else len(self.want) - a.nbytes
        self.bad = np.zeros(a.shape, bool) if bad is None else bad

    def same(self, got, off, n, what):
        same_bytes(expect.mask_bytes(got, self.lead, self.dtype, off),
                   expect.mask_bytes(self.want[off:off + n], self.lead,
                                     self.dtype, off), what)

    def bad_in(self, b, e):
        """Does [b, e) touch an element that must not be readable?"""
        size = max(self.dtype.itemsize, 1)
        b, e = max(b - self.lead, 0), max(e - self.lead, 0)
        return bool(self.bad.reshape(-1)[b // size:-(-e // size)].any())


class Checks:
    """Runs checks one by one; raises one Failure for all that failed."""

    def __init__(self):
        self.failed = []

    def __call__(self, name, f, *args):
        try:
            f(*args)
        except Failure as e:
            self.failed.append("%s: %s" % (name, e))
        except OSError as e:
            self.failed.append("%s: %s" % (name, e))
        except (ValueError, KeyError, TypeError) as e:
            self.failed.append("%s: %s: %s" % (name, type(e).__name__, e))

    def done(self):
        if self.failed:
            more = len(self.failed) - 5
            raise Failure(" || ".join(self.failed[:5]) + (
                " || and %d more" % more if more > 0 else ""))


def pick(n):
    """SAMPLES of n indices: the first, the last and some between."""
    if n <= SAMPLES:
        return range(n)
    return sorted({0, n - 1, *rng.sample(range(1, n - 1), SAMPLES - 2)})


def number(i, n, ext=""):
    return "%0*d%s" % (max(6, len(str(max(n - 1, 0)))), i, ext)


def whole_file(d, f, w):
    path = os.path.join(d, f.rel)
    equal(os.stat(path).st_size, len(f.want), "st_size")
    if f.bad.any():
        fails_with(w.codes, lambda: read(path), "read of all")
        return
    try:
        got = read(path)
    except OSError as e:
        if w.lenient and e.errno in w.codes:
            return
        raise
    f.same(got, 0, len(f.want), "bytes")


def windows(d, f, w, n=12):
    path = os.path.join(d, f.rel)
    for _ in range(n if f.want else 0):
        off = rng.randrange(len(f.want))
        end = off + rng.randrange(1, min(len(f.want) - off, 70000) + 1)
        what = "[%d,+%d)" % (off, end - off)
        try:
            got = pread(path, end - off, off)
        except OSError as e:
            near = f.bad_in(off // PAGE * PAGE, -(-end // PAGE) * PAGE)
            if (near or w.lenient) and e.errno in w.codes:
                continue
            raise Failure("%s: %s" % (what, e))
        check(not f.bad_in(off, end), what + ": read, although not there")
        f.same(got, off, end - off, what)


def block_box(name, shape, axes):
    """The box that a block's file name says: [begin,end) for each axis, or
    for each axis that is cut."""
    check(name.endswith(".npy"), "block %s is not .npy" % name)
    ranges = [re.fullmatch(r"(\d{6,})-(\d{6,})", p)
              for p in name[:-4].split("_")]
    check(all(ranges), "block name %s is not BEGIN-END ranges" % name)
    if len(ranges) == len(shape):
        axes = range(len(shape))
    check(len(axes) == len(ranges), "block %s has %d ranges, axes %s of %s "
          "are cut" % (name, len(ranges), list(axes), shape))
    box = [slice(0, s) for s in shape]
    for ax, m in zip(axes, ranges):
        b, e = int(m.group(1)), int(m.group(2))
        check(b < e <= shape[ax], "block %s: not within %s" % (name, shape))
        box[ax] = slice(b, e)
    return tuple(box)


def cut_axes(a, w):
    """Axes along which blocks are named."""
    if w.parts:
        axes = [i for i, s in enumerate(a.shape) if any(
            p[i].start > 0 or p[i].stop < s for p in w.parts)]
    else:
        axes = [i for i, c in enumerate(w.chunks or ()) if a.shape[i] > c]
    return axes or [0]


def block_files(d, a, w):
    """[(box, File)] of the blocks that are listed."""
    top = os.path.join(d, "blocks")
    if not os.path.isdir(top):
        check(not w.chunks or not a.size or not w.blocks,
              "chunked, and no blocks/")
        check(not w.parts, "in parts, and no blocks/")
        return []
    out = []
    for n in sorted(os.listdir(top)):
        box = block_box(n, a.shape, cut_axes(a, w))
        bad = None if w.bad is None else w.bad[box]
        out.append((box, File("blocks/" + n, a[box], bad)))
    return out


def blocks(d, a, w):
    files = block_files(d, a, w)
    if w.parts:
        key = lambda p: [(s.start, s.stop) for s in p]
        got = sorted(map(key, (box for box, _ in files)))
        equal(got, sorted(map(key, w.parts)), "boxes of the blocks")
    seen = np.zeros(a.shape, "u1")
    c = Checks()
    for box, f in files:
        c(f.rel, whole_file, d, f, w)
        seen[box] += 1
    c.done()
    if not a.size or w.parts or not files:
        return
    check(seen.max() <= 1, "blocks overlap")
    rest = a[seen == 0]
    if rest.size and w.sparse:
        fill = np.zeros((), a.dtype) if w.fill is None else \
            little(np.asarray(w.fill, a.dtype))
        check(rest.tobytes() == fill.tobytes() * rest.size,
              "blocks leave out elements that are not fill")
    elif w.chunks:
        check(not rest.size, "blocks do not cover the tensor")


def sample_file(a, w, i):
    bad = None if w.bad is None else w.bad[i]
    # a[i] of one axis would be a scalar, and lose its byte order.
    return File("samples/" + number(i, a.shape[0], ".npy"),
                a[i:i + 1].reshape(a.shape[1:]), bad)


def samples(d, a, w):
    top = os.path.join(d, "samples")
    n = a.shape[0]
    if n or os.path.isdir(top):
        equal(sorted(os.listdir(top)), [number(i, n, ".npy")
                                        for i in range(n)], "names")
    c = Checks()
    for i in pick(n):
        f = sample_file(a, w, i)
        c(f.rel, whole_file, d, f, w)
    c.done()


def info(d, w, shape=None, dtype=None, top=True):
    j = json.loads(read(os.path.join(d, "info.json")))
    if shape is not None:
        equal(j.get("shape"), list(shape), "shape")
    if dtype is not None and dtype.names is None:
        equal(np.dtype(j["dtype"]), dtype, "dtype")
    for key, rule in w.info.items():
        check(key in j, "info.json has no %r: %s" % (key, short(j)))
        judge(rule, j[key], key)
    if not top:
        return
    got = j.get("attributes")
    check(isinstance(got, dict), "info.json has no attributes")
    attributes(w, got)


def attributes(w, got):
    c = Checks()
    for key, rule in w.attrs.items():
        def one():
            check(key in got, "missing among %s" % short(sorted(got)))
            judge(rule, got[key], "value")
        c("attribute " + key, one)
    c.done()


def group_attributes(d, w):
    j = json.loads(os.getxattr(d, "user.tensorfs.attrs"))
    attributes(w, j)


def why(d, rel, w):
    """user.tensorfs.error of a file that cannot be read."""
    path = os.path.join(d, rel)
    fails_with(w.codes, lambda: read(path), "read of " + rel)
    words_in(w.words, os.getxattr(path, "user.tensorfs.error").decode(),
             "user.tensorfs.error")


def shows(c, d, wanted, unwanted):
    """Nothing else is worth a look where the views are others."""
    names = set(os.listdir(d))
    ok = wanted <= names and not unwanted & names
    c("views", lambda: check(ok, "shows %s%s" % (sorted(names), "; " + str(
        json.loads(read(os.path.join(d, "info.json"))).get("not_shown"))
        if "info.json" in names else "")))
    return ok


def as_array(c, d, w, a, top):
    if not shows(c, d, {"array.npy"}, {"array.txt"}):
        return
    c("info.json", info, d, w, a.shape, a.dtype, top)
    f = File("array.npy", a, w.bad)
    c(f.rel, whole_file, d, f, w)
    c(f.rel, windows, d, f, w)
    if a.size:
        f = File("array.bin", a, w.bad, raw=True)
        c(f.rel, whole_file, d, f, w)
        c(f.rel, windows, d, f, w)
    if w.bad is None and a.size:
        c("np.load", mapped, d, a)
    c("blocks", blocks, d, a, w)
    if a.ndim:
        c("samples", samples, d, a, w)
    if w.words and w.bad is not None:
        c("why", why, d, "array.npy", w)
    for n in a.dtype.names or ():
        c("fields/" + n, field, d, n, field_want(w, a, n))


def mapped(d, a):
    m = np.load(os.path.join(d, "array.npy"), mmap_mode="r")
    equal((m.shape, m.dtype.itemsize), (a.shape, a.dtype.itemsize),
          "mmap_mode='r'")
    check(m.dtype == a.dtype, "dtype %s, not %s" % (m.dtype, a.dtype))


def field_want(w, a, n):
    """What a member of a structure looks like."""
    v = a[n]
    if v.dtype.kind == "S":
        return Want("text", text_of_bytes(v))
    more = v.shape[a.ndim:]  # of a member that is an array
    return Want("array", v, chunks=w.chunks and w.chunks + more,
                blocks=False, source_order=w.source_order)


def field(d, n, w):
    node(named(os.path.join(d, "fields"), n), w, False)


def text_of_bytes(v):
    out = np.empty(v.shape, object)
    out.reshape(-1)[:] = [x.decode("utf-8", "surrogateescape")
                          for x in v.reshape(-1).tolist()]
    return out


def line(v):
    """One value as array.txt shows it."""
    return v.replace("\\", "\\\\").replace("\n", "\\n")


def text_of(values):
    return "".join(line(v) + "\n" for v in np.asarray(
        values, object).ravel()).encode("utf-8", "surrogateescape")


def same_lines(got, values, w, what):
    """Exactly these lines; a last newline or none; or lines that begin so."""
    if not w.starts and w.kind == "text":
        want = text_of(values)
        if got != want[:-1]:
            same_bytes(got, want, what)
        return
    values = np.asarray(values, object).ravel()
    lines = got.decode().split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if not lines and values.size == 1:
        lines = [""]
    equal(len(lines), values.size, what + ": number of lines")
    for i, (g, v) in enumerate(zip(lines, values)):
        if w.kind == "json":
            alike(v, json.loads(g), "%s line %d" % (what, i))
        else:
            check(g.startswith(v) if v else g == "", "%s line %d: %r does not"
                  " begin with %r" % (what, i, g, v))


def alike(want, got, what):
    if callable(want):
        judge(want, got, what)
    elif isinstance(want, dict):
        check(isinstance(got, dict), "%s: not an object: %s" % (what,
                                                                short(got)))
        equal(sorted(got), sorted(want), what + ": keys")
        for k in want:
            alike(want[k], got[k], "%s.%s" % (what, k))
    elif isinstance(want, list):
        check(isinstance(got, list) and len(got) == len(want),
              "%s: expected %s, got %s" % (what, short(want), short(got)))
        for i, v in enumerate(want):
            alike(v, got[i], "%s[%d]" % (what, i))
    else:
        equal(got, want, what)


def as_text(c, d, w, top):
    v = np.asarray(w.value, object)
    if not shows(c, d, {"array.txt"}, {"array.npy", "array.bin"}):
        return
    c("info.json", info, d, w, v.shape, None, top)

    def one(rel, values):
        path = os.path.join(d, rel)
        size = os.stat(path).st_size
        got = read(path)
        equal(len(got), size, "st_size")
        same_lines(got, values, w, rel)
    c("array.txt", one, "array.txt", v)
    n = v.shape[0] if v.ndim else 0
    if n:
        c("samples", lambda: equal(
            sorted(os.listdir(os.path.join(d, "samples"))),
            [number(i, n, ".txt") for i in range(n)], "names"))
    for i in pick(n):
        rel = "samples/" + number(i, n, ".txt")
        c(rel, one, rel, v[i])
    for n, f in w.fields.items():
        c("fields/" + n, field, d, n,
          f if isinstance(f, Want) else Want("array", f))


def ragged_name(at, shape):
    return "samples/" + "/".join(number(i, n) for i, n in zip(at, shape)) + \
        ".npy"


def as_ragged(c, d, w, top):
    v = w.value
    if not shows(c, d, {"samples"} if v.ndim and v.size else set(),
                 {"array.npy", "array.bin", "array.txt"}):
        return
    c("info.json", info, d, w, v.shape, None, top)
    if v.ndim and v.size:
        c("samples", lambda: equal(
            [int(n.split(".")[0]) for n in sorted(os.listdir(
                os.path.join(d, "samples")))], list(range(v.shape[0])),
            "names"))
    for k in pick(v.size):
        at = np.unravel_index(k, v.shape)
        rel = ragged_name(at, v.shape)
        c(rel, whole_file, d, File(rel, little(v[at])), w)


def walk_sizes(d):
    """Every file has the size that stat says, or does not read at all."""
    for top, _, files in os.walk(d):
        for n in files[:20]:
            path = os.path.join(top, n)
            try:
                size = os.stat(path).st_size
                if size < 1 << 24:
                    equal(len(read(path)), size, "st_size of " + path)
            except OSError:
                pass


def node(d, w, top=True):
    """All checks of one path."""
    c = Checks()
    check(os.path.lexists(d), "not there")
    if w.kind == "link":
        check(os.path.islink(d), "not a symlink")
        check(not os.path.exists(d), "not dangling")
        words_in(w.words, os.readlink(d), "the symlink's text")
        return
    check(os.path.isdir(d), "not a directory")
    if w.kind == "array":
        one_array(c, d, w, top)
    elif w.kind in ("text", "json"):
        as_text(c, d, w, top)
    elif w.kind == "ragged":
        as_ragged(c, d, w, top)
    elif w.kind == "hidden":
        c("views", lambda: equal(os.listdir(d), ["info.json"], "shows"))
        c("info.json", info, d, w)
        c("not_shown", lambda: words_in(w.words, str(json.loads(read(
            os.path.join(d, "info.json")))["not_shown"]), "not_shown"))
    elif w.kind == "any":
        c("info.json", info, d, w)
        c("sizes", walk_sizes, d)
    elif w.kind == "tree" and w.names is not None:
        c("names", lambda: equal(sorted(os.listdir(d)), sorted(w.names),
                                 "listing"))
    if top and w.attrs:
        c("user.tensorfs.attrs", group_attributes, d, w)
    c.done()


def one_array(c, d, w, top):
    """The value, or one of the other right answers."""
    first = None
    for v in [w.value] + w.also:
        one = Checks()
        as_array(one, d, w, shown(v, w), top)
        first = first if first is not None else one.failed
        if not one.failed:
            w.value = v
            return
    c.failed += first


def shown(v, w):
    return expect.source_order(v) if w.source_order else little(v)


def named(top, stored):
    """The entry with this stored name, which the mount may have escaped."""
    top = os.fsencode(top)
    for n in os.listdir(top):
        try:
            name = os.getxattr(os.path.join(top, n), "user.tensorfs.name")
        except OSError:
            name = n
        if name == os.fsencode(stored):
            check(len(n) <= 255, "a name of %d bytes" % len(n))
            return os.fsdecode(os.path.join(top, n))
    raise Failure("nothing listed has the stored name " + short(stored))


def locate(root, rel, w):
    path = os.path.join(root, rel)
    return path if w.stored is None else named(os.path.dirname(path), w.stored)


def cat_files(rel, w, d):
    """A few files of a dataset, for cat."""
    if w.kind == "array":
        a = shown(w.value, w)
        out = [File("array.npy", a, w.bad)]
        if a.size:
            out.append(File("array.bin", a, w.bad, raw=True))
        if a.ndim and a.shape[0]:
            out.append(sample_file(a, w, rng.randrange(a.shape[0])))
        try:
            more = [f for _, f in block_files(d, a, w)]
        except (Failure, OSError):
            more = []
        out += rng.sample(more, min(1, len(more)))
        # `cat` opens the whole file for each name.
        return out if lib.full() else rng.sample(out, min(2, len(out)))
    if w.kind == "ragged" and w.value.size:
        at = np.unravel_index(rng.randrange(w.value.size), w.value.shape)
        return [File(ragged_name(at, w.value.shape), little(w.value[at]))]
    return []


def cat(zf, rel, w, d):
    def out(*names):
        return tensorfs("cat", *cat_opts(zf), *["%s:%s/%s" % (
            zf.path, rel, n) for n in names], text=False, env=zf.env)

    def refused(name):
        p = exits(out(name), (1, 3), "exit")
        check(p.stderr.strip(), "no word on stderr")

    def lines():
        same_lines(exits(out("array.txt"), 0, "exit").stdout, w.value, w,
                   "cat")

    def together(files):
        """One run for all, then info.json, whose bytes nobody knows."""
        p = exits(out(*[f.rel for f in files], "info.json"), 0, "exit")
        at = 0
        for f in files:
            f.same(p.stdout[at:at + len(f.want)], 0, len(f.want), f.rel)
            at += len(f.want)
        json.loads(p.stdout[at:])
    c = Checks()
    files = cat_files(rel, w, d)
    if w.kind == "link":
        c("info.json", refused, "info.json")
    elif w.kind in ("text", "json"):
        c("array.txt", lines)
    for f in files:
        if f.bad.any():
            c(f.rel, refused, f.rel)
    if w.kind != "link" and not w.lenient:
        c("cat", together, [f for f in files if not f.bad.any()])
    c.done()


def cat_opts(zf):
    """Options of mount that cat knows: -o a=b is --a=b."""
    return ["--" + o for o in zf.opts if o != "-o"]


def any_bad(zf):
    return any(w.bad is not None for w in zf.wants.values())


def verify(zf):
    kinds = {w.kind for w in zf.wants.values()}
    if any_bad(zf):
        exits(tensorfs("verify", zf.path, env=zf.env), 1, "verify")
    elif not kinds & {"hidden", "link", "any", "custom"} and \
            not any(w.lenient for w in zf.wants.values()):
        exits(tensorfs("verify", zf.path, env=zf.env), 0, "verify")


def count(name, f, *args):
    if not only or any(o in name for o in only):
        tally[run_case(name, f, *args)] += 1


def one_case(m, zf, rel, w):
    check(m is not None or zf.path is None, "the file does not mount")
    if w.kind == "custom":
        w.run(m, zf)
        return
    expect.resolve(zf.path, rel, w)
    node(locate(m.path, rel, w), w)


def cat_case(m, zf, rel, w):
    d = locate(m.path, rel, w) if m else ""
    rel = os.path.relpath(d, m.path) if m and w.stored else rel
    check(w.kind not in ("array", "text", "ragged") or w.value is not None,
          "its value is not known")
    cat(zf, rel, w, d)


def cases(m, zf, group):
    kinds = set()  # top directories and kinds of which cat has printed a dataset
    for i, (rel, w) in enumerate(zf.wants.items()):
        name = "%s/%s/%s" % (group, zf.name, printable(rel))
        count(name, one_case, m, zf, rel, w)
        kind = (rel.split("/")[0], w.kind, w.bad is None)
        if w.cat and w.kind not in ("custom", "any", "tree") and \
                (i % every_cat == 0 or kind not in kinds or only):
            kinds.add(kind)
            count(name + ":cat", cat_case, m, zf, rel, w)
    if m is not None and zf.name in ("links", "cycles"):
        count("%s/%s/ls" % (group, zf.name), lambda: exits(
            tensorfs("ls", "-R", zf.path, env=zf.env), 0, "ls -R"))
    if zf.path is not None:
        count("%s/%s/verify" % (group, zf.name), verify, zf)


def printable(rel):
    s = rel.encode("unicode_escape").decode()
    return s if len(s) < 60 else s[:40] + "~%d" % len(s)


def one_file(zf, group):
    names = ["%s/%s/%s" % (group, zf.name, printable(r)) for r in zf.wants]
    names += [n + ":cat" for n in names] + ["%s/%s/verify" % (group, zf.name)]
    if only and not any(o in n for o in only for n in names):
        return
    if zf.path is None:
        return cases(None, zf, group)
    try:
        with lib.Mount(zf.path, opts=zf.opts, env=zf.env) as m:
            cases(m, zf, group)
    except Failure as e:
        lib.note("%s/%s: %s" % (group, zf.name, e))
        cases(None, zf, group)


def main(groups):
    """All cases of these groups, or (with patterns) those that are named."""
    if every_cat > 1:
        lib.note("cat prints one dataset in %d, and one of each kind" % every_cat)
    warnings.simplefilter("ignore")  # np.save on names beyond Latin-1
    work = lib.setup()
    decoy = os.path.join(work, "decoy")
    os.mkdir(decoy)
    os.chdir(decoy)
    for group, module in GROUPS.items():
        if not only and group not in groups:
            continue
        if only and not any(o.split("/")[0] in group or "/" not in o
                            for o in only):
            continue
        top = os.path.join(work, group)
        os.mkdir(top)
        try:
            files = module.make(top)
        except Exception as e:
            why = "%s: %s" % (type(e).__name__, e)
            count(group + "/make", check, False, why)
            continue
        for zf in files:
            one_file(zf, group)
    print("%d passed, %d failed, %d known gaps" % (
        tally[True], tally[False], tally[None]), flush=True)
    lib.cleanup()
    sys.exit(1 if tally[False] or not tally[True] else 0)


if __name__ == "__main__":
    main(("layouts", "types", "links"))
