#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""merge --delete-parts: files that it must not delete, and merges that meet."""
import fcntl
import functools
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import numpy as np
import skerch
from checks import check, equal
from lib import case, exits, stop, tensorfs, wait_until
from mergelib import JOURNAL, beside, merge, same, truth

work = None
EAGER = dict(os.environ, TENSORFS_MERGE_COMMIT="1")
X = np.arange(80.).reshape(10, 8)


def scratch(name):
    d = os.path.join(work, name)
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    return d


def part(path, name="data", data=X):
    with h5py.File(path, "a") as f:
        f[name] = data


def main_file(path, sources, rows=10):
    """A virtual dataset of these parts, each of `rows` rows."""
    v = h5py.VirtualLayout((rows * len(sources), 8), "<f8")
    for i, (name, at) in enumerate(sources):
        v[i * rows:(i + 1) * rows] = h5py.VirtualSource(
            name, "data", (10, 8))[at:at + rows]
    with h5py.File(path, "a") as f:
        f.create_virtual_dataset("data", v)


def deletes(main, gone, stays, why):
    want = truth(main)
    p = exits(merge("--delete-parts", main), 0, "merge")
    same(want, main)
    for name in gone:
        check(not os.path.lexists(name), name + " is still there")
    for name in stays:
        check(os.path.exists(name), name + " is gone")
        check(os.path.basename(name) + " is not deleted" in p.stderr, p.stderr)
    check(why in p.stderr, p.stderr)


# --- files that have more --------------------------------------------------------

@case
def another_dataset():
    d = scratch("another")
    part(d + "/p0.h5")
    part(d + "/p1.h5")
    part(d + "/p1.h5", "log/times", X[0])
    main_file(d + "/m.h5", [("p0.h5", 0), ("p1.h5", 0)])
    deletes(d + "/m.h5", [d + "/p0.h5"], [d + "/p1.h5"], "it has /log/times")


@case
def other_rows():
    d = scratch("rows")
    for i in range(4):
        part(d + "/p%d.h5" % i)
    # Twice the first half; both halves; both halves, by two names of one file.
    os.rename(d + "/p3.h5", d + "/p2.h5")
    main_file(d + "/m.h5", [("p0.h5", 0), ("p0.h5", 0), ("p1.h5", 0),
                            ("p1.h5", 5), ("./p2.h5", 0), ("p2.h5", 5)], 5)
    deletes(d + "/m.h5", [d + "/p1.h5"], [d + "/p0.h5", d + "/p2.h5"],
            "it has rows of data")


@case
def linked_object():
    """A link to one of the datasets of a file, and one to all of them."""
    d = scratch("link")
    for name in ("a.h5", "b.h5"):
        part(d + "/" + name)
        part(d + "/" + name, "other", X + 1)
    with h5py.File(d + "/m.h5", "w") as f:
        f["one"] = h5py.ExternalLink("a.h5", "/data")
        f["all"] = h5py.ExternalLink("b.h5", "/")
    deletes(d + "/m.h5", [d + "/b.h5"], [d + "/a.h5"], "it has /other")


@case
def nested_rows():
    """What a part that is virtual itself needs for the rest of its rows."""
    d = scratch("nested")
    part(d + "/p.h5")
    main_file(d + "/inner.h5", [("p.h5", 0)])
    main_file(d + "/m.h5", [("inner.h5", 0)], 5)
    deletes(d + "/m.h5", [], [d + "/p.h5", d + "/inner.h5"], "rows of data")
    with h5py.File(d + "/inner.h5") as f:
        check((f["data"][...] == X).all(), "the inner one has lost its rows")


@case
def raw_files():
    d = scratch("raw")
    X.tofile(d + "/all.raw")
    with open(d + "/some.raw", "wb") as f:
        f.write(bytes(512) + X.tobytes())
    with h5py.File(d + "/m.h5", "w") as f:
        f.create_dataset("all", (10, 8), "<f8", external=[("all.raw", 0, 640)])
        f.create_dataset("some", (10, 8), "<f8",
                         external=[("some.raw", 512, 640)])
    # h5py looks for raw files in the working directory.
    exits(merge("--delete-parts", d + "/m.h5"), 0, "merge")
    equal(sorted(os.listdir(d)), ["m.h5", "some.raw"], "files")
    with h5py.File(d + "/m.h5") as f:
        check((f["all"][...] == X).all() and (f["some"][...] == X).all(),
              "values")


# --- what does not decode --------------------------------------------------------

def spoil(path, at, data):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


@case
def damaged():
    """It is found while all parts are there: later there would be no way on."""
    d = scratch("damaged")
    t = skerch.create(d, rows=40, part=10, sub=(8,))
    with h5py.File(t.all_path, "r+") as f:
        f.create_dataset("notes", data=["note %d" % i for i in range(50)],
                         dtype=h5py.string_dtype())
    want = sorted(os.listdir(d))
    with open(t.all_path, "rb") as f:
        whole = f.read()
    heap = whole.rfind(b"GCOL", 0, whole.find(b"note 0"))
    spoil(t.all_path, heap, b"none")
    p = exits(merge("--delete-parts", t.all_path, env=EAGER), 3, "a heap")
    check("heap" in p.stderr and "again" not in p.stderr, p.stderr)
    equal(sorted(os.listdir(d)), want, "files")
    spoil(t.all_path, heap, b"GCOL")
    with h5py.File(t.parts[3][2]) as f:
        at = f["data"].id.get_chunk_info(0)
    spoil(t.parts[3][2], at.byte_offset, b"\xff" * at.size)
    p = exits(merge("--delete-parts", "--comp=gzip", t.all_path, env=EAGER), 3,
              "a chunk")
    check("damaged" in p.stderr and "again" not in p.stderr, p.stderr)
    equal(sorted(os.listdir(d)), want, "files")


# --- files elsewhere ----------------------------------------------------------------

@case
def elsewhere():
    d, away = scratch("here"), scratch("away")
    os.mkdir(d + "/sub")
    for path in (d + "/sub/p.h5", away + "/p.h5", away + "/ref.h5"):
        part(path)
    os.symlink(away + "/ref.h5", d + "/ref.h5")
    main_file(d + "/m.h5", [("sub/p.h5", 0), (away + "/p.h5", 0)])
    with h5py.File(d + "/m.h5", "a") as f:
        f["ref"] = h5py.ExternalLink("../away/ref.h5", "/")
    with h5py.File(d + "/m.h5", "a") as f:
        f["link"] = h5py.ExternalLink("ref.h5", "/data")
    deletes(d + "/m.h5", [d + "/sub/p.h5"],
            [away + "/p.h5", away + "/ref.h5"], "not below the directory")


@case
def prefix():
    """But where the user said that parts are."""
    d, away = scratch("main"), scratch("parts")
    part(away + "/p.h5")
    main_file(d + "/m.h5", [("p.h5", 0)])
    p = exits(merge("--delete-parts", "--prefix=" + away, d + "/m.h5"), 0,
              "merge")
    equal(p.stderr, "", "said")
    equal(os.listdir(away), [], "parts")


# --- in each other's way --------------------------------------------------------

def size_of(path):
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def journal_of(out):
    return os.path.join(os.path.dirname(out),
                        "." + os.path.basename(out) + JOURNAL)


def locked(path):
    try:
        with open(path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        pass
    except BlockingIOError:
        return True
    return False


def let_go(*paths):
    """Children of a merge that was killed die, and let go of it, a moment later."""
    check(wait_until(lambda: not any(map(locked, paths)), 60, 0.02), "still locked")


def links(d, n=200):
    """What links lead to goes when all is done."""
    os.makedirs(d, exist_ok=True)
    let_go(d + "/m.h5")
    with h5py.File(d + "/m.h5", "w") as f:
        for i in range(n):
            name = "p%03d.h5" % i
            if not os.path.exists(d + "/" + name):
                part(d + "/" + name, data=X + i)
            f["x%03d" % i] = h5py.ExternalLink(name, "/")
    return d + "/m.h5"


def killed_when_made(d, out):
    """A merge into `out` that was killed when that was there, and parts too."""
    # When it is about to delete the twentieth part; under sanitizers, which do not get
    # along with strace, when this process sees that `out` is there.
    killer = [] if os.environ.get("TENSORFS_SANITIZED") else [
        "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=unlink", "-e",
        "inject=unlink:signal=KILL:when=20"]
    for _ in range(50):
        for name in [out, journal_of(out)]:
            if os.path.exists(name):
                os.remove(name)
        main = links(d)
        p = subprocess.Popen([*killer, lib.TENSORFS, "merge", "-q",
                              "--delete-parts", main, "-o", out],
                             stderr=subprocess.DEVNULL)
        if killer:
            p.wait()
        while p.poll() is None and not os.path.exists(out):
            pass
        p.kill()
        if p.wait() != 0 and os.path.exists(out) and len(os.listdir(d)) > 2:
            let_go(main, journal_of(out))
            return main
    raise lib.Failure("it could not be interrupted")


@case
def made_of_another():
    """What was made of one main file is not said to be of another one."""
    d = scratch("made")
    b = skerch.create(d + "/b", rows=20, part=10, sub=(4,), incompressible=1)
    out = d + "/out.h5"
    want = truth(links(d + "/same"))
    main = killed_when_made(d + "/a", out)
    p = exits(merge("--delete-parts", b.all_path, "-o", out), 3, "of another")
    check("another main file" in p.stderr, p.stderr)
    equal(len(os.listdir(d + "/b")), 3, "files of b")
    p = exits(merge("--delete-parts", main, "-o", out, "--chunk=3,3"), 3,
              "other options")
    check("--chunk" in p.stderr, p.stderr)
    exits(merge("--delete-parts", main, "-o", out), 0, "go on")
    same(want, out)
    equal(os.listdir(d + "/a"), ["m.h5"], "files of a")


# A merge that takes a second; of what long() makes.
SLOWLY = ["merge", "-q", "--comp=gzip:9", "--jobs=1", "--threads=1"]
LONG = 200            # rows


@functools.lru_cache(None)
def long_once():
    return skerch.create(os.path.join(work, "long"), rows=LONG, part=2, sub=(20000,),
                         incompressible=1)


def long(d):
    t = long_once()
    shutil.copytree(os.path.join(work, "long"), d, dirs_exist_ok=True)
    return skerch.Tensor(os.path.join(d, "t_ALL.h5"), t.data, t.flags, [
        (b, e, os.path.join(d, os.path.basename(p))) for b, e, p in t.parts])


@case
def two_outputs():
    """Each would have some of the parts."""
    d = scratch("two")
    t = long(d)
    want = truth(t.all_path)
    one, two = d + "/one.h5", d + "/two.h5"
    p = subprocess.Popen([lib.TENSORFS, *SLOWLY, "--delete-parts", t.all_path,
                          "-o", one], env=EAGER)
    wait_until(lambda: p.poll() is not None or size_of(journal_of(one)), 60,
               0.001)
    stop(p, lambda: size_of(journal_of(one)))
    try:
        q = exits(merge("--delete-parts", t.all_path, "-o", two), 1, "second")
        check("another process" in q.stderr, q.stderr)
    finally:
        p.send_signal(signal.SIGCONT)
    equal(p.wait(), 0, "the first")
    same(want, one)
    equal(sorted(os.listdir(d)), ["one.h5", "t_ALL.h5"], "files")


@case
def written_meanwhile():
    """By way of the main file it is known that a merge deletes parts."""
    d = scratch("meanwhile")
    t = long(d)
    want = truth(t.all_path)

    def begun():
        with h5py.File(t.all_path) as f:
            return f["data"].is_virtual and os.path.exists(t.parts[-1][2]) and \
                size_of(journal_of(t.all_path))
    p = subprocess.Popen([lib.TENSORFS, *SLOWLY, "--delete-parts", t.all_path],
                         env=EAGER)
    wait_until(lambda: p.poll() is not None or size_of(journal_of(t.all_path)),
               60, 0.001)
    # Later the part of the row that is written may be gone.
    stop(p, begun)
    try:
        q = exits(tensorfs("write", t.all_path, "--rows=%d" % (LONG - 1),
                           "--flag=no"), 1, "write")
        check("is being merged" in q.stderr, q.stderr)
    finally:
        p.send_signal(signal.SIGCONT)
    equal(p.wait(), 0, "merge")
    same(want, t.all_path)


def stopped(main, *argv):
    """A merge that has begun to make its file, and waits."""
    p = subprocess.Popen([lib.TENSORFS, *SLOWLY, main, *argv],
                         stderr=subprocess.PIPE, text=True)
    out = argv[1] if argv else main
    made = os.path.join(os.path.dirname(out),
                        ".%s.tensorfs-merge" % os.path.basename(out))

    def begun():
        if not size_of(made):
            return False
        # This comes last, and before it is seen whether parts are what they were.
        with open(made, "rb") as f:
            return f.read(8) != b"\x89HDF\r\n\x1a\n"
    wait_until(lambda: p.poll() is not None or size_of(made), 60, 0.0005)
    stop(p, begun)
    return p


def ended(p, code, text):
    p.send_signal(signal.SIGCONT)
    err = p.communicate()[1]
    equal(p.returncode, code, "exit: " + err)
    check(text in err, err)
    return err


@case
def written_while_replaced():
    """What is written to the main file, or by way of it, would be lost."""
    d = scratch("replaced")
    t = long(d)
    want = truth(t.all_path)
    p = stopped(t.all_path)
    try:
        q = exits(tensorfs("write", t.all_path, "--rows=%d" % (LONG - 1),
                           "--flag=no"), 1, "write")
        check("is being merged" in q.stderr, q.stderr)
        try:
            h5py.File(t.all_path, "r+").close()
            check(os.environ.get("HDF5_USE_FILE_LOCKING"), "not locked")
        except OSError:
            pass
    finally:
        ended(p, 0, "")
    same(want, t.all_path)
    # Parts that somebody writes who does not ask.
    t = long(d + "/more")
    p = stopped(t.all_path)
    name = t.parts[0][2]
    with h5py.File(name, "r+") as f:
        f["flags"][0] = b"new"
    err = ended(p, 3, os.path.basename(name) + " ")
    # Before it was read, or afterwards.
    check("changed since it was first read" in err or "has changed" in err, err)
    equal(beside(t.all_path), [], "left")
    with h5py.File(t.all_path) as f:
        check(f["data"].is_virtual, "it was replaced")
        equal(f["flags"][0], b"new", "flag")


@case
def output_that_came_meanwhile():
    d = scratch("came")
    t = long(d)
    out = d + "/out.h5"
    p = stopped(t.all_path, "-o", out)
    with open(out, "w") as f:
        f.write("precious")
    ended(p, 2, "--force replaces it")
    with open(out) as f:
        equal(f.read(), "precious", "what came")
    equal(beside(out), [], "left")
    os.remove(out)
    os.symlink(d + "/nothing/here", out)
    p = exits(merge(t.all_path, "-o", out), 2, "a link to nothing")
    check("symbolic link" in p.stderr and os.path.islink(out), p.stderr)


@case
def changed_at_the_end():
    """What was written after it was copied stays; the others go."""
    d = scratch("changed")
    out = d + "/out.h5"
    want = truth(links(d + "/same"))
    main = killed_when_made(d + "/t", out)
    last = max(n for n in os.listdir(d + "/t") if n[0] == "p")
    part(d + "/t/" + last, "new")
    p = exits(merge("--delete-parts", main, "-o", out), 3, "go on")
    check(last + " has changed" in p.stderr and "again" not in p.stderr,
          p.stderr)
    equal(sorted(os.listdir(d + "/t")), ["m.h5", last], "files")
    equal(beside(out), [], "left")
    same(want, out)


@case
def written_at_the_end():
    """A part that is being written when it is to be deleted stays."""
    for how in ("ours", "h5py"):
        d = scratch("writing-" + how)
        t = skerch.create(d, rows=20, part=10, sub=(4,))
        want = truth(t.all_path)
        with open(t.parts[1][2], "r+b") as f:
            if how == "ours":
                fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            p = exits(merge("--delete-parts", t.all_path), 1, how)
            check("open for writing" in p.stderr and "again" in p.stderr,
                  p.stderr)
            check(os.path.exists(t.parts[1][2]), "it is deleted")
        exits(merge("--delete-parts", t.all_path), 0, "go on")
        same(want, t.all_path)
        equal(os.listdir(d), ["t_ALL.h5"], "files")


@case
def begun_anew():
    """Nothing was deleted, and a part was written since: no reason to refuse."""
    d = scratch("anew")
    t = skerch.create(d, rows=20, part=10, sub=(4,))
    # Each of them, as any may be the first to be ready.
    with open(t.parts[0][2], "r+b") as f, open(t.parts[1][2], "r+b") as g:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB)
        exits(merge("--delete-parts", t.all_path, env=EAGER), 1, "busy")
    equal(len(beside(t.all_path)), 2, "what is kept")
    equal(len(os.listdir(d)), 5, "parts")
    with h5py.File(t.parts[0][2], "r+") as f:
        f["data"][0] = 7
    st = os.stat(t.parts[0][2])     # the clock of the file system may be a coarse one
    os.utime(t.parts[0][2], ns=(st.st_atime_ns, st.st_mtime_ns + 10 ** 9))
    want = truth(t.all_path)
    exits(merge("--delete-parts", t.all_path), 0, "anew")
    same(want, t.all_path)


def main():
    global work
    work = lib.setup(fuse=False)
    lib.main()


if __name__ == "__main__":
    main()
