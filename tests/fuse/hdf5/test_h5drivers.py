#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""One HDF5 file that is several: the family and the split driver's, which libhdf5
writes and h5py reads; what happens when one of them is missing or cut off."""
import errno
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
from checks import check, equal, fails_with, read
from h5py import h5f, h5p
from lib import Mount, case, exits, tensorfs
from sharedlib import Shm, settled

work = None
rng = np.random.default_rng(5)


def path(name):
    return os.path.join(work, name)


def data(name):
    with open(name, "rb") as f:
        return f.read()


def fill(f):
    """All kinds of storage; what is large crosses from one file into the next."""
    f.attrs["title"] = "one of several"
    f["plain"] = rng.integers(0, 1 << 30, (50, 100)).astype("i4")
    f["big"] = np.arange(3000.).astype(">f8")
    f.create_dataset("chunked", data=rng.integers(0, 99, (70, 40)).astype("i2"),
                     chunks=(32, 40))
    f.create_dataset("gzip", data=rng.integers(0, 99, (90, 70)).astype("i8"),
                     chunks=(30, 70), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("never", (5, 5), "f4", fillvalue=3)
    f["g/text"] = np.array(["a", "", "longer " * 200], object)
    f["g/text"].attrs["unit"] = "none"
    d = f.create_dataset("lists", (3,), h5py.vlen_dtype("i4"))
    for i in range(3):
        d[i] = np.arange(100 * i)
    f["table"] = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", ">f8")])


def fapl(driver, libver):
    p = h5p.create(h5p.FILE_ACCESS)
    p.set_fclose_degree(h5f.CLOSE_STRONG)
    p.set_libver_bounds(libver, h5f.LIBVER_LATEST)
    driver(p)
    return p


def make(name, driver, libver=h5f.LIBVER_EARLIEST):
    p = fapl(driver, libver)
    with h5py.File(h5f.create(name.encode(), h5f.ACC_TRUNC, fapl=p)) as f:
        fill(f)


def expected(name, driver, libver=h5f.LIBVER_EARLIEST):
    """As h5py reads them through the same driver."""
    want = {}
    p = fapl(driver, libver)
    with h5py.File(h5f.open(name.encode(), h5f.ACC_RDONLY, fapl=p)) as f:
        for n in "plain", "big", "chunked", "gzip", "never", "table":
            want[n] = f[n][...]
        want["text"] = [s.decode() for s in f["g/text"]]
        want["lists"] = [a.tolist() for a in f["lists"]]
    return want


def family(size):
    return lambda p: p.set_fapl_family(size, None)


def split(p):
    p.set_fapl_split(b"-m.h5", None, b"-r.h5", None)


def compare(source, want, what):
    with Mount(source) as m:
        for n in "plain", "big", "chunked", "gzip", "never", "table":
            got = np.load("%s/%s/array.npy" % (m.path, n))
            check(np.array_equal(got, want[n]), "%s: %s" % (what, n))
        equal(read(m.path + "/g/text/array.txt").decode(),
              "".join(s + "\n" for s in want["text"]), what + ": text")
        equal([np.load("%s/lists/samples/%06d.npy" % (m.path, i)).tolist()
               for i in range(3)], want["lists"], what + ": lists")
        equal(json.loads(os.getxattr(m.path, "user.tensorfs.attrs")),
              {"title": "one of several"}, what + ": attributes")
        got = np.load(m.path + "/chunked/samples/000033.npy")
        check(np.array_equal(got, want["chunked"][33]), what + ": a sample")
        for n in "plain", "gzip":
            with h5py.File(m.path + "/merged.h5") as f:
                check(np.array_equal(f[n][...], want[n]), what + ": merged " + n)
    exits(tensorfs("verify", "-q", source), 0, what + ": verify")


VERSIONS = {"old": h5f.LIBVER_EARLIEST, "new": h5f.LIBVER_LATEST}


@case
def family_files():
    """By the pattern, and by any member; chunks and arrays cross from file to file."""
    for version, libver in VERSIONS.items():
        for name, size in (("x_%d", 7000), ("p%03d_of7", 20000), ("1x_%02d", 1 << 20)):
            d = path("fam_%s_%d" % (version, size))
            os.mkdir(d)
            pattern = os.path.join(d, name + ".h5")
            make(pattern, family(size), libver)
            want = expected(pattern, family(size), libver)
            n = len(os.listdir(d))
            check(n > 1 or size == 1 << 20, "%d members" % n)
            sources = {pattern, pattern % 0, pattern % (n // 2), pattern % (n - 1)}
            for source in sorted(sources):
                compare(source, want, version + " " + os.path.basename(source))
            p = exits(tensorfs("info", pattern % 0), 0, "info")
            check("family" in p.stdout and "%d files" % n in p.stdout, p.stdout[:400])


@case
def split_files():
    for version, libver in VERSIONS.items():
        d = path("split_" + version)
        os.mkdir(d)
        make(d + "/x", split, libver)
        equal(sorted(os.listdir(d)), ["x-m.h5", "x-r.h5"], "files")
        want = expected(d + "/x", split, libver)
        for source in "x-m.h5", "x-r.h5":
            compare(os.path.join(d, source), want, version + " " + source)
        p = exits(tensorfs("info", d + "/x-m.h5"), 0, "info")
        check("split" in p.stdout and "2 files" in p.stdout, p.stdout[:400])


def refused(source, status, *words):
    p = exits(tensorfs("ls", source), status, "ls of " + source)
    for w in words:
        check(w in p.stderr, "%r is not in: %s" % (w, p.stderr))


@case
def missing_and_cut():
    """The sentence names the file that is not as it should be."""
    d = path("broken")
    os.mkdir(d)
    make(d + "/x_%d.h5", family(7000))
    n = len(os.listdir(d))
    os.rename(d + "/x_2.h5", d + "/away")
    for source in "x_%d.h5", "x_0.h5", "x_1.h5":
        refused(os.path.join(d, source), 3, "x_2.h5", "missing", "file 3 of %d" % n)
    shutil.copy(d + "/away", d + "/x_2.h5")
    os.truncate(d + "/x_2.h5", 6999)
    refused(d + "/x_0.h5", 3, "x_2.h5", "6999 bytes of 7000")
    shutil.copy(d + "/away", d + "/x_2.h5")
    last = "%s/x_%d.h5" % (d, n - 1)
    os.truncate(last, os.path.getsize(last) - 1)
    refused(d + "/x_0.h5", 3, os.path.basename(last), "cut off")
    os.remove(d + "/x_1.h5")
    refused(d + "/x_0.h5", 3, "x_1.h5", "missing")
    make(d + "/s", split)
    size = os.path.getsize(d + "/s-r.h5")
    os.truncate(d + "/s-r.h5", size - 1)
    refused(d + "/s-m.h5", 3, "s-r.h5", "cut off")
    os.remove(d + "/s-r.h5")
    refused(d + "/s-m.h5", 3, "s-r.h5", "missing", "split")
    shutil.copy(d + "/s-m.h5", d + "/renamed.h5")
    refused(d + "/renamed.h5", 3, "renamed.h5", "-m.h5")
    refused(d + "/nobody_%d.h5", 3, "nobody_%d.h5")


@case
def a_file_called_like_the_pattern():
    """x_%d.h5 is a file of its own, beside a family whose members are called so."""
    d = path("literal")
    os.mkdir(d)
    pattern = d + "/x_%d.h5"
    make(pattern, family(7000))
    want = expected(pattern, family(7000))["plain"]
    with h5py.File(pattern, "w") as f:
        f["plain"] = -want
    for sources in (pattern, pattern % 0), (pattern % 0, pattern):
        with Mount(None, sources=list(sources)) as m:
            got = np.load(m.path + "/x_0.h5/plain/array.npy")
            check(np.array_equal(got, want), "the family")
            got = np.load(m.path + "/x_%d.h5/plain/array.npy")
            check(np.array_equal(got, -want), "the file")


@case
def not_written():
    """merge would put one file in the place of one of several."""
    d = path("writing")
    os.mkdir(d)
    part = d + "/part.h5"
    with h5py.File(part, "w") as f:
        f["d"] = np.zeros((30, 10), "i4")
    virtual = h5py.VirtualLayout((30, 10), "i4")
    virtual[...] = h5py.VirtualSource("part.h5", "d", (30, 10))
    p = fapl(family(2000), h5f.LIBVER_EARLIEST)
    with h5py.File(h5f.create((d + "/x_%d.h5").encode(), h5f.ACC_TRUNC, fapl=p)) as f:
        f.create_virtual_dataset("data", virtual)
        f["own"] = np.zeros((30, 10), "i4")
    np.save(d + "/rows.npy", np.ones((30, 10), "i4"))
    before = {n: data(d + "/" + n) for n in os.listdir(d)}
    for command in (("merge", d + "/x_0.h5"),
                    ("write", d + "/x_0.h5:own", d + "/rows.npy")):
        p = exits(tensorfs(*command), 3, command[0])
        check("into several" in p.stderr and "missing" not in p.stderr, p.stderr)
    check(before == {n: data(d + "/" + n) for n in os.listdir(d)}, "files changed")
    exits(tensorfs("write", d + "/x_0.h5:data", d + "/rows.npy"), 0, "write of a part")
    with h5py.File(part) as f:
        check((f["d"][...] == 1).all(), "the part's rows")


@case
def shared_chunks_of_several_files():
    """A key in shared memory is bound to one file: chunks of several have none."""
    d = path("shared")
    os.mkdir(d)
    pattern = d + "/x_%d.h5"
    small = h5py.h5t.STD_I32LE.copy()
    small.set_size(3)  # which only libhdf5 converts
    chunks = h5p.create(h5p.DATASET_CREATE)
    chunks.set_chunk((100, 70))

    def write(flags, first):
        p = fapl(family(20000), h5f.LIBVER_EARLIEST)
        f = h5py.File(h5f.create(pattern.encode(), flags, fapl=p) if first else
                      h5f.open(pattern.encode(), flags, fapl=p))
        with f:
            if first:
                f["pad"] = np.zeros(8000)
                h5py.h5d.create(f.id, b"d", small, h5py.h5s.create_simple((200, 70)),
                                chunks)
            want = rng.integers(0, 1 << 22, (200, 70)).astype("i4")
            h5py.h5d.open(f.id, b"d").write(h5py.h5s.ALL, h5py.h5s.ALL, want)
        return want

    want = write(h5f.ACC_TRUNC, True)
    head = os.stat(pattern % 0)
    settled(d)
    with Shm() as shm:
        with Mount(pattern % 0, opts=shm.opts()) as m:
            check(np.array_equal(np.load(m.path + "/d/array.npy"), want), "first")
        kept, other = d, path("shared2")
        shutil.copytree(kept, other)
        pattern = other + "/x_%d.h5"
        want = write(h5f.ACC_RDWR, False)
        changed = [n for n in os.listdir(kept)
                   if data(other + "/" + n) != data(kept + "/" + n)]
        for n in changed:
            with open(kept + "/" + n, "r+b") as f:
                f.write(data(other + "/" + n))
        check(changed and "x_0.h5" not in changed, changed)
        equal(os.stat(kept + "/x_0.h5").st_ctime_ns, head.st_ctime_ns, "the first file")
        with Mount(kept + "/x_0.h5", opts=shm.opts()) as m:
            check(np.array_equal(np.load(m.path + "/d/array.npy"), want), "changed")


@case
def gone_while_mounted():
    """What is in a file that goes is an error of that read, and no other's."""
    d = path("going")
    os.mkdir(d)
    make(d + "/s", split)
    with h5py.File(h5f.open((d + "/s").encode(), h5f.ACC_RDONLY,
                            fapl=fapl(split, h5f.LIBVER_EARLIEST))) as f:
        want = f["plain"][...]
    with Mount(d + "/s-m.h5") as m:
        os.truncate(d + "/s-r.h5", 10)
        fails_with((errno.ESTALE, errno.EIO), lambda: read(m.path + "/plain/array.npy"),
                   "a file that was cut off")
    os.remove(d + "/s-r.h5")
    make(d + "/s", split)
    check(want.size, "nothing was written")


@case
def changed_since_the_mount():
    """A file that only has data, and that nothing has opened yet: the first one, which
    says where data are, was read before."""
    d = path("changed")
    os.mkdir(d)
    pattern = d + "/x_%d.h5"
    make(pattern, family(7000))
    p = fapl(family(7000), h5f.LIBVER_EARLIEST)
    with h5py.File(h5f.open(pattern.encode(), h5f.ACC_RDONLY, fapl=p)) as f:
        inner = f["plain"].id.get_offset() // 7000 + 1  # 20 000 bytes: in the middle
    with Mount(pattern % 0) as m:
        with open(pattern % inner, "r+b") as f:
            f.write(bytes(b ^ 255 for b in data(pattern % inner)))
        fails_with((errno.ESTALE,), lambda: read(m.path + "/plain/array.npy"), "plain")


@case
def in_archives():
    """There the others are not looked for, and that is said."""
    import tarfile
    d = path("inside")
    os.mkdir(d)
    make(d + "/x_%d.h5", family(7000))
    with tarfile.open(path("inside.tar"), "w") as t:
        t.add(d, "d")
    with Mount(path("inside.tar"), opts=["-o", "recursive"]) as m:
        fails_with((errno.ENOTSUP, errno.EIO, errno.EBADMSG),
                   lambda: os.listdir(m.path + "/d/x_0.h5"), "a member of a family")
        text = os.getxattr(m.path, "user.tensorfs.errors").decode()
        check("family" in text, text)


work = lib.setup()
lib.main()
