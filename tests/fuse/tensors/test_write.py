#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""write: rows and flags as h5py would have written them, or everything as it was."""
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import skerch
from checks import check, equal
from distlib import (all_bytes, bytes_of, contents, same_dump, same_tensor,
                     skerch_create)
from lib import TENSORFS, Mount, case, exits, run, tensorfs
from user import UID, as_user

work = None
rng = np.random.default_rng(5)


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d)
    return d


def npy(name, a):
    path = os.path.join(work, name + ".npy")
    np.save(path, a)
    return path


def values(shape, dtype):
    a = rng.integers(0, 3, shape)
    if np.dtype(dtype).kind == "c":
        return (a + 1j * rng.integers(0, 3, shape)).astype(dtype)
    return a.astype(dtype)


def create(d, shape, block, dtype, *options):
    exits(tensorfs("create", d + "/r_{}.h5", "--shape=" +
                   ",".join(map(str, shape)), "--block=%d" % block,
                   "--dtype=" + dtype, *options), 0, "create")
    return d + "/r_ALL.h5"


def write(*argv, code=0, words=(), **kw):
    p = exits(tensorfs("write", *argv, **kw), code, "write")
    for w in words:
        check(w in p.stderr, "'%s' is not in: %s" % (w, p.stderr))
    return p


def nothing_beside(d):
    odd = [n for n in os.listdir(d) if n.startswith(".")]
    equal(odd, [], "left behind")


# --- both directions ------------------------------------------------------------------

@case
def bytes_as_h5py():
    """What was created, and then written, by skerch's calls."""
    for comp in ("lzf", None, "gzip"):
        ours, theirs = scratch("as-%s" % comp), scratch("as-%s-h5py" % comp)
        a = values((10, 400), "float32")
        a[4] = rng.random(400)  # does not get smaller
        skerch_create(ours + "/r_{}.h5", (10, 400), 3, "float32", comp)
        parts = skerch_create(theirs + "/r_{}.h5", (10, 400), 3, "float32",
                              comp)
        write(ours + "/r_ALL.h5", npy("a", a), "--flag=OK")
        for b, e, path in parts:
            with h5py.File(path, "r+") as f:
                f["data"][:] = a[b:e]
                f["flags"][:] = "OK"
            mine = os.path.join(ours, os.path.basename(path))
            if comp == "gzip":  # another encoder
                continue
            same_dump(mine, path, "after write")
            check(bytes_of(mine) == bytes_of(path),
                  "%s: other bytes than h5py's" % path)
        same_tensor(ours + "/r_ALL.h5", a, ["OK"] * 10, str(comp))
        nothing_beside(ours)


def same(main, a, flags, what):
    """By h5py, or, where it lacks the filter, by us."""
    with h5py.File(main.replace("ALL", "000-006"), "r") as f:
        plist = f["data"].id.get_create_plist()
        theirs = all(h5py.h5z.filter_avail(plist.get_filter(i)[0])
                     for i in range(plist.get_nfilters()))
    if theirs:
        same_tensor(main, a, flags, what)
        return
    p = exits(tensorfs("cat", main + ":data/array.bin", text=False), 0, "")
    check(p.stdout == a.astype(a.dtype.newbyteorder("<")).tobytes(),
          what + ": other bytes")
    p = exits(tensorfs("cat", main + ":flags/array.txt"), 0, "cat")
    equal(p.stdout.split(), flags, what + ": flags")


@case
def rows_of_all_kinds():
    for n, (dtype, options) in enumerate((
            ("float32", ()), (">i4", ("--comp=zstd",)),
            ("complex64", ("--chunk=2,3,2",)),
            ("float64", ("--chunk=4,7,5", "--comp=gzip")),
            ("bool", ("--chunk=1,7,1",)), ("uint8", ("--comp=none",)),
            ("float16", ("--chunk=5,2,5", "--comp=lz4")))):
        d = scratch("kinds%d" % n)
        main = create(d, (23, 7, 5), 6, dtype, *options)
        a, flags = np.zeros((23, 7, 5), dtype), ["initialized"] * 23
        for i, (b, e) in enumerate(((0, 23), (4, 17), (2, 20), (6, 12), (5, 6),
                                    (22, 23), (0, 1))):
            new = values((e - b, 7, 5), dtype)
            a[b:e] = new
            flags[b:e] = ["f%d" % i] * (e - b)
            if i % 2:
                new = new.astype(new.dtype.newbyteorder())
            how = ("--rows=%d:%d" % (b, e), "--flag=f%d" % i)
            if i % 3 == 2:
                raw = new.astype(new.dtype.newbyteorder("<")).tobytes()
                write(main, "-", *how, input=raw)
            elif i % 3 == 1:
                write(main, "-", *how, input=bytes_of(npy("part", new)))
            else:
                write(main, npy("part", new), *how)
            same(main, a, flags, "%s %d:%d" % (dtype, b, e))
        new = values((5, 7, 5), dtype)
        a[18:23] = new
        write(main, npy("part", new), "--block=3")
        write(main, "--rows=:2", "--flag=only")
        flags[:2] = ["only"] * 2
        a[13] = values((7, 5), dtype)
        write(d + "/r_012-018.h5", npy("row", a[13]), "--rows=1")
        same(main, a, flags, dtype)
        p = exits(tensorfs("cat", main + ":data/array.bin", text=False), 0, "")
        check(p.stdout == a.astype(a.dtype.newbyteorder("<")).tobytes(),
              "other bytes through our reader")
        exits(tensorfs("verify", main), 0, "verify")
        nothing_beside(d)


@case
def files_of_others():
    """What skerch has filled, with another object and attributes beside."""
    d = scratch("others")
    t = skerch.create(d, rows=30, part=10, sub=(8,), incompressible=2)
    with h5py.File(t.parts[1][2], "r+") as f:
        f["notes"] = np.arange(5)
        f["data"].attrs["unit"] = "mm"
        f.attrs["by"] = "me"
    a = t.data.copy()
    a[5:25] = values((20, 8), "<f4")
    write(t.all_path, npy("o", a[5:25]), "--rows=5:25")
    same_tensor(t.all_path, a, t.flags, "skerch's")
    with h5py.File(t.parts[1][2], "r") as f:
        equal(list(f["notes"]), [0, 1, 2, 3, 4], "notes")
        equal((f["data"].attrs["unit"], f.attrs["by"]), ("mm", "me"), "")
    # One file: contiguous, fixed-length flags; and newest format, checksums.
    for n, kw in enumerate(({}, {"chunks": (4, 3), "fletcher32": True,
                                 "compression": "gzip", "shuffle": True})):
        path = d + "/one%d.h5" % n
        with h5py.File(path, "w", libver="latest" if n else "earliest") as f:
            f.create_dataset("x/data", (9, 5), "f4", **kw)
            f.create_dataset("x/flags", (9,), "S4")
        b = np.zeros((9, 5), "f4")
        b[2:7] = values((5, 5), "f4")
        write(path + ":x/data", npy("b", b[2:7]), "--rows=2:7", "--flag=good")
        got = contents(path, "x/data", "x/flags")
        check((got[0] == b).all(), "data of one%d" % n)
        equal(got[1], [""] * 2 + ["good"] * 5 + [""] * 2, "flags")
        write(path + ":x/data", "--flag=longer", code=1, words=["room"])


@case
def strings():
    d = scratch("strings")
    main = create(d, (6, 2), 3, "S5")
    a = np.array([b"abcde", b"", b"\0x", b"y\n"] * 3, "S5").reshape(6, 2)
    write(main, npy("strings", a), "--flag=OK")
    same_tensor(main, a, ["OK"] * 6, "a .npy file")
    a[4] = b"12345", b"q"
    write(main, "-", "--rows=4", input=a[4].tobytes())
    same_tensor(main, a, ["OK"] * 6, "plain bytes")
    write(main, npy("s6", a.astype("S6")), code=1, words=["astype('|S5')"])
    with h5py.File(d + "/c.h5", "w") as f:
        t = h5py.h5t.C_S1.copy()  # the last byte is NUL
        t.set_size(5)
        h5py.h5d.create(f.id, b"data", t, h5py.h5s.create_simple((6, 2)))
    write(d + "/c.h5", npy("strings", a), code=3, words=["padded"])


@case
def fill_values_and_edges():
    d = scratch("fill")
    path = d + "/f.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("data", (10, 7), "<i2", chunks=(4, 3), fillvalue=-5,
                         compression="lzf")
    a = np.full((10, 7), -5, "i2")
    a[5:7] = values((2, 7), "i2")
    write(path, npy("f", a[5:7]), "--rows=5:7")
    with h5py.File(path, "r+") as f:
        check((f["data"][...] == a).all(), "rows that were not written")


@case
def masks_of_others():
    """A chunk as long as the old one, of which other filters were skipped."""
    path = scratch("masks") + "/x.h5"

    def noise():
        return np.frombuffer(rng.bytes(2000), "<i2").reshape(2, 500)

    for libver in "earliest", "latest":
        with h5py.File(path, "w", libver=libver) as f:
            f.create_dataset("data", (2, 500), "<i2", chunks=(1, 500),
                             compression="lzf", shuffle=True)
            f["data"][:] = noise()  # shuffled only
            dcpl = f["data"].id.get_create_plist().copy()
            dcpl.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
            dcpl.set_chunk((1, 2))  # which are filled, and are not made shorter
            h5py.h5d.create(f.id, b"late", f["data"].id.get_type(),
                            h5py.h5s.create_simple((2, 500)), dcpl)
        a = noise()
        write(path, npy("masks", a))
        write(path + ":late", npy("masks", a))
        with h5py.File(path, "r") as f:
            check((f["data"][...] == a).all(), libver + ": other data")
            check((f["late"][...] == a).all(), libver + ": other late data")
        a = noise()
        with h5py.File(path, "r+") as f:
            f["data"][:] = a
        with h5py.File(path, "r") as f:
            check((f["data"][...] == a).all(), libver + ": h5py after us")


@case
def many_small_writes():
    """A part does not grow with each write."""
    d = scratch("grow")
    create(d, (32, 1000), 32, "float32", "--chunk=8,1000")
    part = d + "/r_000-032.h5"
    a, flags = np.zeros((32, 1000), "f4"), ["initialized"] * 32
    for i in range(lib.rounds(48)):
        r = int(rng.integers(32))
        a[r] = np.where(rng.random(1000) < rng.random(), rng.random(1000), 0)
        flags[r] = "f%d" % i
        write(part, npy("row", a[r]), "--rows=%d" % r, "--flag=f%d" % i)
    same_tensor(part, a, flags, "rows")
    check(os.path.getsize(part) < 600000, "it has %d bytes" %
          os.path.getsize(part))
    nothing_beside(d)


@case
def user_block():
    """What is in front of the HDF5 file stays, also when its gaps go."""
    path = scratch("front") + "/x.h5"
    with h5py.File(path, "w", userblock_size=512) as f:
        f.create_dataset("data", (4, 100000), "u1", chunks=(1, 100000),
                         compression="gzip")
        f.create_dataset("flags", (4,), h5py.string_dtype(), chunks=(4,))
    front = rng.bytes(512)
    with open(path, "r+b") as f:
        f.write(front)
    for i in range(24):
        row = bytes(100000 - 4000 * i) + rng.bytes(4000 * i)
        write(path, "-", "--rows=%d" % (i % 4), "--flag=OK",
              input=row)
    equal(bytes_of(path)[:512], front, "the user block")


@case
def a_mount_says_so():
    d = scratch("mounted")
    main = create(d, (8, 3), 4, "float32")
    a = values((8, 3), "f4")
    write(main, npy("m", a))
    with Mount(main) as m:
        check((np.load(m / "data/array.npy") == a).all(), "mount")
        write(main, npy("m", a + 1))
    with Mount(main) as m:
        check((np.load(m / "data/array.npy") == a + 1).all(), "a new mount")


# --- what is refused ------------------------------------------------------------------

@case
def wrong_input():
    d = scratch("input")
    main = create(d, (10, 4), 5, "float32")
    good = values((10, 4), "f4")
    write(main, npy("good", good), "--flag=OK")
    before = all_bytes(d)
    with open(work + "/text.npy", "w") as f:
        f.write("no array")
    with open(work + "/short.npy", "wb") as f:
        f.write(bytes_of(npy("good", good))[:-1])
    with open(work + "/header.npy", "wb") as f:
        f.write(bytes_of(npy("good", good))[:40])
    s = work + "/short.npy"
    for argv, code, words in (
            ((npy("x1", good.astype("f8")),), 1, ["float64", "float32"]),
            ((npy("x2", good.astype("i4")),), 1, ["int32", "float32"]),
            ((npy("x3", good[:9]),), 1, ["(9, 4)", "(10, 4)"]),
            ((npy("x4", good.T.copy()),), 1, ["(4, 10)", "(10, 4)"]),
            ((npy("x5", np.asfortranarray(good)),), 1, ["Fortran"]),
            ((npy("x6", good[0]), "--rows=0:2"), 1, ["(4,)", "(2, 4)"]),
            ((npy("good", good), "--rows=4:14"), 1, ["10 rows"]),
            ((npy("good", good), "--rows=4:4"), 1, ["--rows"]),
            ((npy("good", good), "--rows=x:4"), 1, ["BEGIN:END"]),
            ((npy("good", good), "--block=2"), 1, ["part 2"]),
            ((npy("good", good), "--block=1", "--rows=1:2"), 2, ["--rows"]),
            ((), 2, ["INPUT"]),
            ((work + "/none.npy",), 3, ["none.npy"]),
            ((work + "/text.npy",), 3, ["not a .npy"]),
            ((s,), 3, ["bytes"]), ((work + "/header.npy",), 3, ["header"]),
            ((work,), 3, [])):
        write(main, *argv, code=code, words=words)
        equal(all_bytes(d), before, "files after %s" % (argv,))
    for raw, code, words in ((good.tobytes()[:-1], 3, ["ended"]),
                             (good.tobytes() + b"x", 3, ["more than"]),
                             (b"ab", 3, ["ended"])):
        write(main, "-", "--rows=5:", code=3, words=words,
              input=raw[80:] or raw)
        equal(all_bytes(d), before, "files after %d raw bytes" % len(raw))
    ours, terminal = os.openpty()
    p = subprocess.run([TENSORFS, "write", main, "-"], stdin=terminal,
                       stderr=subprocess.PIPE)
    equal((p.returncode, b"terminal" in p.stderr), (3, True), "a terminal")
    os.close(ours)
    os.close(terminal)
    p = write(main, "-", "--flag=X", code=3, words=["1 of 2 parts"],
              input=good.tobytes()[:100])
    same_tensor(main, good, ["X"] * 5 + ["OK"] * 5, "half of a stream")


@case
def wrong_target():
    d = scratch("target")
    main = create(d, (10, 4), 5, "float32")
    a = npy("t", values((10, 4), "f4"))
    write(d + "/none.h5", a, code=3, words=["none.h5"])
    write(main + ":flags", a, code=3, words=["string"])
    write(main + ":nothing", a, code=3)
    write(a, a, code=3)
    with h5py.File(d + "/plain.h5", "w") as f:
        f["other"] = np.zeros((10, 4), "f4")
        f["data"] = np.zeros((10, 4), "f4")
        f["ext"] = h5py.ExternalLink("r_000-005.h5", "/data")
    write(d + "/plain.h5", a, "--flag=OK", code=3, words=["no flags"])
    write(d + "/plain.h5", a)
    before = all_bytes(d)
    write(d + "/plain.h5:ext", npy("half", np.ones((5, 4), "f4")))
    equal(bytes_of(d + "/plain.h5"), before["plain.h5"], "the link")
    check((contents(d + "/r_000-005.h5")[0] == 1).all(), "behind the link")
    before = all_bytes(d)
    os.rename(d + "/r_005-010.h5", work + "/away")
    write(main, a, code=3, words=["r_005-010.h5' is missing"])
    os.mkdir(d + "/r_005-010.h5")
    write(main, a, code=3, words=["regular file"])
    os.rmdir(d + "/r_005-010.h5")
    equal(bytes_of(d + "/r_000-005.h5"), before["r_000-005.h5"], "first part")
    with open(d + "/r_005-010.h5", "wb") as f:
        f.write(bytes_of(work + "/away")[:3000])
    write(main, a, "--rows=5:", npy("half", np.ones((5, 4), "f4")), code=2)
    write(main, npy("half", np.ones((5, 4), "f4")), "--rows=5:", code=3,
          words=["r_005-010.h5"])
    with open(d + "/r_005-010.h5", "wb") as f:
        f.write(b"x" * 5000)
    write(main, npy("half", np.ones((5, 4), "f4")), "--rows=5:", code=3,
          words=["not an HDF5 file"])
    with h5py.File(d + "/r_005-010.h5", "w") as f:
        f["data"] = np.zeros((5, 3), "f4")
        f["flags"] = np.zeros(5, "S4")
    write(main, npy("half", np.ones((5, 4), "f4")), "--rows=5:", code=1,
          words=["(5, 3)", "(5, 4)"])
    with h5py.File(d + "/r_005-010.h5", "w") as f:
        f["data"] = np.zeros((5, 4), "f8")
    write(main, npy("half", np.ones((5, 4), "f4")), "--rows=5:", code=1,
          words=["float64"])
    nothing_beside(d)


@case
def damaged_parts():
    """libhdf5 may crash on one; it is said, and the part stays as it is."""
    d = scratch("damaged")
    t = skerch.create(d, rows=20, part=20, sub=(6,))
    path, good = t.parts[0][2], bytes_of(t.parts[0][2])
    a = npy("d", values((20, 6), "<f4"))
    for i in range(lib.rounds(24)):
        bad = bytearray(good)
        for _ in range(3):
            bad[int(rng.integers(96, len(bad)))] = int(rng.integers(256))
        with open(path, "wb") as f:
            f.write(bad)
        p = tensorfs("write", path, a, "--rows=3:9", "--flag=X",
                     input=None)
        if i % 2:
            p = tensorfs("write", path, a, "--flag=X")
        check(p.returncode in (0, 1, 3), "%d: exit %d: %s" % (
            i, p.returncode, p.stderr))
        # A crash is libhdf5's, not ours.
        check("runtime error" not in p.stderr, p.stderr)
        if "AddressSanitizer" in p.stderr:
            frame = [x for x in p.stderr.split("\n") if "#0 " in x][:1]
            check("tensorfs+" not in str(frame), p.stderr)
        if p.returncode:
            check(bytes_of(path) == bytes(bad), "%d: it was changed" % i)
        nothing_beside(d)


# --- others ---------------------------------------------------------------------------

def catches(p, sig):
    """Does this process note the signal, which would have killed it at first?"""
    with open("/proc/%d/status" % p.pid) as f:
        caught = [int(line.split()[1], 16) for line in f
                  if line.startswith("SigCgt:")]
    return bool(caught) and caught[0] >> sig - 1 & 1


def waits_for_the_lock(p, part):
    """Has it locked the part against others like it, and does it sleep until libhdf5,
    which has it open for writing, lets go of it?"""
    try:
        with open("/proc/%d/wchan" % (child_of(p) or p.pid)) as f:
            asleep = f.read() == "hrtimer_nanosleep"
    except OSError:
        return False    # it has ended
    return asleep and locked_by_another(part)


def locked_by_another(path):
    with open(path, "rb") as f:
        lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        got = fcntl.fcntl(f, fcntl.F_OFD_GETLK, lock)
    return struct.unpack("hhqqi4x", got)[0] != fcntl.F_UNLCK


@case
def locks():
    d = scratch("locks")
    main = create(d, (6, 4), 3, "float32")
    part = d + "/r_00-03.h5"
    a = values((3, 4), "f4")
    with h5py.File(part, "r") as f:  # readers are not in the way
        write(part, npy("l", a), "--flag=OK")
        check(not f["data"][...].any(), "who has the old one open sees it")
    inode = os.stat(part).st_ino
    with h5py.File(part, "r+") as f:
        f["data"][0] = 9
        p = subprocess.Popen([TENSORFS, "write", part, npy("l", a + 1)])
        check(lib.wait_until(lambda: p.poll() is not None or
                             waits_for_the_lock(p, part), 60), "it does not wait")
        equal(p.poll(), None, "it waits for who writes it")
        equal(os.stat(part).st_ino, inode, "inode of the part meanwhile")
    equal(p.wait(60), 0, "and goes on")
    data, flags = contents(main)
    check((data[:3] == a + 1).all(), "data")
    write(part, npy("l", a), "--no-lock")
    check((contents(part)[0] == a).all(), "--no-lock")
    with h5py.File(part, "r+") as f:
        p = subprocess.Popen([TENSORFS, "write", part, npy("l", a + 1)],
                             stderr=subprocess.PIPE)
        check(lib.wait_until(lambda: catches(p, signal.SIGTERM), 30),
              "it does not catch SIGTERM")
        p.send_signal(signal.SIGTERM)
        err = p.communicate()[1].decode()
        equal(p.returncode, -signal.SIGTERM, "status")
        check("nothing was changed" in err, err)
    nothing_beside(d)


def child_of(p):
    with open("/proc/%d/task/%d/children" % (p.pid, p.pid)) as f:
        pids = f.read().split()
    return int(pids[0]) if pids else 0


@case
def processes_that_die():
    """The one that writes crashes, or loses the one that started it."""
    d = scratch("die")
    main = create(d, (6, 4), 6, "float32")
    before = all_bytes(d)
    for sig, whom in ((signal.SIGABRT, child_of), (signal.SIGKILL, child_of),
                      (signal.SIGKILL, lambda p: p.pid),
                      (signal.SIGTERM, lambda p: p.pid),
                      (signal.SIGINT, lambda p: p.pid)):
        p = subprocess.Popen([TENSORFS, "write", main, "-", "--flag=X"],
                             stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(bytes(90))
        p.stdin.flush()
        check(lib.wait_until(lambda: len(os.listdir(d)) > 2, 30), "no copy")
        child = child_of(p)
        os.kill(whom(p), sig)
        if whom is child_of:
            p.stdin.close()
            err = p.stderr.read().decode()
            equal(p.wait(30), 3, "status")
            check("crashed on it" in err, err)
        else:
            equal(p.wait(30), -sig, "status")
            p.stdin.close()
        p.stderr.close()
        check(lib.wait_until(lambda: not os.path.exists("/proc/%d" % child) or
                             lib.zombie(child), 30), "its child lives")
        equal(all_bytes(d), before, "files after %s" % sig)


def in_pipe(f):
    n = bytearray(4)
    fcntl.ioctl(f, termios.FIONREAD, n)
    return int.from_bytes(n, sys.byteorder)


@case
def stopped_at_the_first_bytes():
    main = create(scratch("first"), (6, 4), 3, "float32")
    with subprocess.Popen([TENSORFS, "write", main, "-"],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdin.write(b"x")
        p.stdin.flush()
        check(lib.wait_until(lambda: not in_pipe(p.stdin), 30), "no read")
        p.send_signal(signal.SIGTERM)
        check(lib.wait_until(lambda: p.poll() is not None, 30), "it waits on")
        equal(p.returncode, -signal.SIGTERM, "status")
        check("nothing was changed" in p.stderr.read().decode(), "sentence")


@case
def attributes():
    """More of them than one file system has, to one that has as many."""
    root = [] if lib.ROOT else ["-r"]
    script = """d=$1; mount -t tmpfs none "$d" && cd "$d" || exit 99
"$2" create 'r_{}.h5' --shape=4,4 --block=4 --dtype=f8 >/dev/null
/usr/bin/python3 -c 'import os
for i in range(60):
    os.setxattr("r_00-04.h5", "user.%0100d" % i, b"v" * 200 * i)' || exit 98
getfattr -d r_00-04.h5 > a; "$2" write r_ALL.h5 --flag=OK
getfattr -d r_00-04.h5 > b; grep -c user b; cmp a b"""
    p = run("unshare", "-m", *root, "sh", "-c", script, "sh",
            scratch("attributes"), TENSORFS)
    if p.returncode == 98:
        raise lib.Missing("user attributes on tmpfs")
    equal((p.stdout, p.returncode), ("60\n", 0), p.stderr)


@case
def not_allowed():
    d = scratch("allowed")
    main = create(d, (6, 4), 3, "float32")
    a = npy("p", values((6, 4), "f4"))
    os.chmod(a, 0o644)
    before = all_bytes(d)
    write(main, a, code=1, words=["Permission denied"], **as_user())
    for n in os.listdir(d):
        os.chown(d + "/" + n, UID, -1)
    os.chmod(d, 0o555)
    write(main, a, code=1, words=["Permission denied"], **as_user())
    equal(all_bytes(d), before, "files")
    os.chmod(d, 0o755)
    os.chown(d, UID, -1)
    os.chmod(d + "/r_03-06.h5", 0o444)
    write(main, a, code=1, words=["r_03-06.h5': Permission denied"],
          **as_user())
    equal(all_bytes(d), before, "files beside one that cannot be written")
    os.chmod(d + "/r_03-06.h5", 0o644)
    os.chmod(d + "/r_00-03.h5", 0o640)
    write(main, a, **as_user())
    st = os.stat(d + "/r_00-03.h5")
    equal((st.st_mode & 0o777, st.st_uid), (0o640, UID), "mode, owner")
    if lib.ROOT:
        write(main, a)
        equal(os.stat(d + "/r_00-03.h5").st_uid, UID, "owner")


@case
def disk_full():
    root = [] if lib.ROOT else ["-r"]
    np.save(work + "/noise.npy", rng.random((200, 100)))
    script = """d=$1; mount -t tmpfs -o size=160k none "$d" && cd "$d" || exit 99
"$2" create 'r_{}.h5' --shape=200,100 --block=100 --dtype=f8 >/dev/null
cat r_* | sha1sum; "$2" write r_ALL.h5 "$3" --flag=OK --threads=1 >&2; echo $?
"$2" write r_0000-0100.h5 "$4" --flag=OK --threads=1 >&2; echo $?
ls -A; h5dump -d flags r_0100-0200.h5 | grep -c initialized"""
    np.save(work + "/part.npy", rng.random((100, 100)))
    p = run("unshare", "-m", *root, "sh", "-c", script, "sh", scratch("full"),
            TENSORFS, work + "/noise.npy", work + "/part.npy")
    lines = p.stdout.split("\n")
    check("No space left" in p.stderr, p.stderr)
    equal(lines[1], "1", "status")
    equal(sorted(lines[3:6]), ["r_0000-0100.h5", "r_0100-0200.h5", "r_ALL.h5"],
          "files")
    check(int(lines[6]) >= 1, "flags: %s" % p.stdout)


@case
def memory():
    d = scratch("memory")
    main = create(d, (64, 4096), 32, "float64", "--chunk=1,512")
    a = values((64, 4096), "f8")
    write(main, npy("big", a), "--memory=256K", "--flag=OK")
    same_tensor(main, a, ["OK"] * 64, "with little memory")
    main = create(scratch("memory2"), (64, 4096), 32, "float64")
    write(main, npy("big", a), "--memory=256K", code=5, words=["--memory"])


@case
def summary():
    d = scratch("summary")
    main = create(d, (10, 4), 4, "float32")
    p = write(main, npy("s", values((5, 4), "f4")), "--rows=3:8", "--flag=OK",
              "--json")
    equal(json.loads(p.stdout), {"target": main, "rows": [3, 8], "parts": 2,
                                 "bytes": 80, "flag": "OK"}, "summary")


if __name__ == "__main__":
    work = lib.setup()
    if lib.ROOT:
        os.chmod(work, 0o755)
    lib.main()
