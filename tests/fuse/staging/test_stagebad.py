#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""stage when things go wrong: no room, no memory, sources that change, deaths."""
import contextlib
import functools
import json
import os
import random
import re
import select
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import arc
import lib
from checks import Failure, check, equal, note, read
from lib import TooFast, case, exits, run, tensorfs, wait_until
from stagelib import (CONTROL, HOME, UID, Running, memory_group, no_strays,
                      nothing, sentence, setup, same_tree, stage, stage_one,
                      staged, unstage, visible)

work = None
MIB = 1 << 20
SLOW_SIZE = 24 * MIB        # of the large file in slow()


def cleaned(f):
    @functools.wraps(f)
    def g():
        try:
            f()
        except TooFast:
            unstage("--all")
            raise
        unstage("--all")
        nothing()
    return case(g)


def caught(r, still=lambda tree: True):
    """The tree that `r`, which is stopped, makes of slow(); not all is in it."""
    tree = r.partial()
    if not tree:
        raise TooFast
    lib.stop(r.p, lambda: os.path.isdir(tree) and not has_end(tree) and still(tree))
    return tree


def has_end(tree):
    """Whether the end of slow() is written."""
    try:
        with open(tree + "/b-second", "rb") as f:
            f.seek(-4096, os.SEEK_END)
            return any(f.read())
    except OSError:
        return False


def goes_on(r):
    r.p.send_signal(signal.SIGCONT)


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d, exist_ok=True)
    return d


@functools.lru_cache(None)
def noise(mib, files=1):
    """A tar of so many MiB that do not compress; its tree is beside it."""
    top = scratch("noise-%d-%d" % (mib, files))
    for i in range(files):
        with open(os.path.join(top, "f%04d" % i), "wb") as f:
            f.write(os.urandom(mib * MIB // files))
    path = top + ".tar"
    arc.sh("tar", "-cf", path, "-C", top, ".")
    return path


@functools.lru_cache(None)
def slow():
    """An archive that takes a second to decode; its large file is allocated at once,
    and a process that is stopped while it is staged has much to do yet."""
    data = np.random.default_rng(1).integers(0, 32, SLOW_SIZE, dtype="u1")
    top = scratch("slow")
    with open(top + "/a-first", "wb") as f:
        f.write(data[:300000].tobytes())
    with open(top + "/b-second", "wb") as f:
        f.write(data.tobytes())
    arc.sh("tar", "-cf", top + ".tar", "-C", top, "a-first", "b-second")
    arc.sh("bzip2", "-1", top + ".tar")
    shutil.rmtree(top)
    # An index, so that staging begins with copying.
    arc.sh(lib.TENSORFS, "ls", "--index=" + top + ".tar.bz2.tfsidx", top + ".tar.bz2")
    return top + ".tar.bz2"


class Tmpfs:
    """A small one, in our own mount namespace."""

    def __init__(self, options):
        self.options = options

    def __enter__(self):
        self.path = os.path.join(work, "tmpfs-%d" % random.randrange(10**9))
        os.mkdir(self.path)
        arc.sh("mount", "-t", "tmpfs", "-o", self.options, "small", self.path)
        self.control = "%s/.tensorfs-%d" % (self.path, UID)
        return self

    def __exit__(self, *_):
        arc.sh("umount", self.path)
        os.rmdir(self.path)

    def empty(self):
        equal(os.listdir(self.path), [], "left on the tmpfs")


# --- no room --------------------------------------------------------------------

@cleaned
def preflight_refuses():
    with Tmpfs("size=16M") as t:
        p = stage("-q", "--to", t.path, noise(13), code=5)
        # 25 % of 16 MiB are kept free; control takes some pages.
        sentence(p, 13 * MIB, "4 MiB (%d bytes)" % (4 * MIB), "--reserve",
                 t.path)
        t.empty()
        p = stage("-q", "--to", t.path, "--reserve=4000K", noise(13), code=5)
        sentence(p, 4000 * 1024)
        got = stage_one("-q", "--to", t.path, "--reserve=2M", noise(13))
        equal(os.path.getsize(got + "/f0000"), 13 * MIB, "size")
        # Now there is no room for another.
        p = stage("-q", "--to", t.path, "--reserve=0", noise(4), code=5)
        sentence(p, 4 * MIB)
        equal(os.listdir(t.path + "/noise-13-1"), ["f0000"], "what is there")
        unstage("--to", t.path, "--all")
        t.empty()


@cleaned
def pages_are_counted():
    """1000 files of a byte are 1000 pages."""
    top = scratch("tiny")
    for i in range(1000):
        with open("%s/%d" % (top, i), "w") as f:
            f.write("x")
    with Tmpfs("size=5M") as t:
        p = stage("-q", "--to", t.path, top, code=5)
        sentence(p, 1000 * os.sysconf("SC_PAGE_SIZE"))
        t.empty()
        stage_one("-q", "--to", t.path, "--reserve=64K", top)


@cleaned
def no_inodes():
    with Tmpfs("size=64M,nr_inodes=100") as t:
        p = stage("-q", "--to", t.path, noise(1, 128), code=5)
        sentence(p, 128, 100)
        t.empty()


@cleaned
def shapes_without_end():
    """A header says 10^12 samples: refused, not gone through."""
    path = os.path.join(work, "vast.h5")
    with h5py.File(path, "w") as f:
        f.create_dataset("x", (10**12, 1), "u1", chunks=(1 << 20, 1))
    # To go through them would take longer than a command may.
    sentence(stage("-q", path, code=5), 10**12)


def fill(path, until):
    """Write zeros until the file system is full, or `until` says stop."""
    with open(path, "wb", buffering=0) as f:
        try:
            while not until():
                f.write(bytes(1 << 20))
        except OSError:
            pass


@cleaned
def full_in_the_middle():
    """Another process takes the room while we write."""
    source = noise(40, 4000)
    for how in ("--reserve=1M", "--reserve=0"):
        # It writes 4000 files: twenty times this process would have to miss all that.
        for _ in range(20):
            with Tmpfs("size=50M") as t, \
                    Running("-q", "--to", t.path, how, source,
                            control=t.control) as r:
                tree = r.partial()
                if tree:
                    lib.stop(r.p, lambda: os.path.isdir(tree))
                    fill(t.path + "/other", lambda: False)
                    goes_on(r)
                p = r.end()
                if p.returncode:
                    exits(p, 5, "stage")
                    sentence(p, "No space")
                    equal(p.stdout, "", "stdout")
                    equal([n for n in os.listdir(t.path) if n != "other"], [],
                          "left")
                    break
        else:
            raise Failure("the file system was never full in time")


@cleaned
def full_large_file():
    """Large files are allocated at once, before a byte is written."""
    if os.environ.get("TENSORFS_SANITIZED"):
        note("skipped: strace and sanitizers do not get along")
        return
    log = os.path.join(work, "calls")
    with Tmpfs("size=120M") as t:
        p = run("strace", "-f", "-qq", "-y", "-o", log, "-e", "signal=none",
                "-e", "trace=fallocate,pwrite64", "-e",
                "inject=fallocate:error=ENOSPC", lib.TENSORFS, "stage", "-q",
                "--to", t.path, "--reserve=0", slow())
        exits(p, 5, "stage")
        sentence(p, "No space")
        t.empty()
    calls = [line for line in read(log).decode().splitlines() if "b-second" in line]
    check(calls and all("fallocate" in line for line in calls), calls[:5])


@cleaned
def control_group():
    limit = 64 * MIB
    group = memory_group(limit)
    if not group:
        note("no memory control group can be made here (tests/unit/base-system "
             "has a tree of them)")
        return

    def enter():
        with open(group + "/cgroup.procs", "w") as f:
            f.write("0")
    try:
        p = exits(tensorfs("stage", "-q", "--cache-size=4M", noise(80),
                           preexec=enter), 5, "stage")
        sentence(p, limit, "control group", os.path.basename(group))
        nothing()
        exits(tensorfs("stage", "-q", "--cache-size=4M", noise(13),
                       preexec=enter), 0, "stage of less")
        unstage("--all")
    finally:
        wait_until(lambda: not read(group + "/cgroup.procs"), 60)
        os.rmdir(group)


# --- /dev/shm is not as it should be --------------------------------------------

@cleaned
def planted():
    out = scratch("planted")
    source = noise(1, 128)
    os.symlink(out, HOME)
    sentence(stage("-q", source, code=1), HOME, "symlink")
    equal(os.listdir(out), [], "written through a link")
    os.unlink(HOME)
    with open(HOME, "w"):
        pass
    sentence(stage("-q", source, code=1), HOME)
    os.unlink(HOME)
    os.mkdir(HOME)
    os.chmod(HOME, 0o777)
    sentence(stage("-q", source, code=1), HOME, "other users may write")
    os.rmdir(HOME)
    if lib.ROOT:
        os.mkdir(HOME, 0o700)
        os.chown(HOME, 12345, 12345)
        sentence(stage("-q", source, code=1), HOME, "belongs to another user")
        os.rmdir(HOME)
    # The same one level below.
    os.mkdir(HOME, 0o700)
    os.symlink(out, CONTROL)
    sentence(stage("-q", source, code=1), CONTROL)
    os.unlink(CONTROL)
    os.symlink(out, HOME + "/noise-1-128")
    got = stage_one("-q", source)
    check(got != HOME + "/noise-1-128", "it took the name of a link")
    equal(os.listdir(out), [], "written through a link")
    unstage("noise-1-128", code=1)
    os.unlink(HOME + "/noise-1-128")


@cleaned
def not_in_memory():
    """/dev/shm a directory of a disk, or missing."""
    disk = scratch("not-tmpfs")
    script = ('mount --bind "$1" /dev/shm && shift && exec "$@"')
    root = [] if lib.ROOT else ["--user", "--map-current-user", "--keep-caps"]
    p = run("unshare", "--mount", *root, "sh", "-c", script, "sh", disk,
            lib.TENSORFS, "stage", "-q", noise(1, 128))
    exits(p, 5, "stage")
    sentence(p, "/dev/shm", "--to")
    shutil.rmtree(os.path.join(disk, "tensorfs-%d" % UID), ignore_errors=True)
    script = ('mount -t tmpfs none /dev && "$1" stage -q "$2"; r=$?; '
              '"$1" stage -q --to "$3" "$2" >&2 || exit 99; exit $r')
    p = run("unshare", "--mount", *root, "sh", "-c", script, "sh",
            lib.TENSORFS, noise(1, 128), disk)
    exits(p, 5, "stage")
    sentence(p, "/dev/shm", "--to", disk + "/noise-1-128")
    unstage(disk + "/noise-1-128")


@cleaned
def as_nobody():
    """No HOME, no XDG_*, a home that cannot be written to; not root."""
    if not lib.ROOT:
        note("not root: all of this test is that")
        return
    # As an ordinary user finds it: not everything above it may be open to him.
    place = "/dev/shm/place"
    os.mkdir(place)
    source, program, home = (os.path.join(place, n) for n in
                             ("source.tar", "tensorfs", "home"))
    shutil.copy(noise(1, 128), source)
    shutil.copy(lib.TENSORFS, program)
    os.mkdir(home, 0o555)
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    try:
        for env in ({"PATH": "/usr/bin:/bin"},
                    {"PATH": "/usr/bin:/bin", "HOME": home},
                    {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}):
            p = run(*user, program, "stage", "-q", source, env=env)
            exits(p, 0, "stage")
            equal(p.stdout, "/dev/shm/tensorfs-65534/source\n", "path")
            equal(os.stat("/dev/shm/tensorfs-65534").st_uid, 65534, "owner")
            # Another user's is not ours.
            unstage("/dev/shm/tensorfs-65534/source", code=1)
            exits(run(*user, program, "unstage", "source", env=env), 0,
                  "unstage")
            check(not os.path.exists("/dev/shm/tensorfs-65534"), "left")
    finally:
        shutil.rmtree(place)


# --- sources --------------------------------------------------------------------

@cleaned
def bad_sources():
    stage("-q", "/nowhere.tar", code=3)
    path = os.path.join(work, "text.txt")
    with open(path, "w") as f:
        f.write("no archive\n")
    stage("-q", path, code=3)
    # One that is bad does not keep the others from being staged.
    p = exits(tensorfs("stage", "-q", path, noise(1, 128)), 3, "stage")
    equal(p.stdout, HOME + "/noise-1-128\n", "stdout")
    no_strays()


@cleaned
def damaged_chunk():
    path = os.path.join(work, "damaged.h5")
    with h5py.File(path, "w") as f:
        d = f.create_dataset("data", data=np.arange(40000).reshape(40, 1000),
                             chunks=(4, 1000), compression="gzip",
                             fletcher32=True)
        at = d.id.get_chunk_info(7)
    with open(path, "r+b") as f:
        f.seek(at.byte_offset + at.size // 2)
        f.write(b"\xff\xff\xff\xff")
    p = stage("-q", path, code=1)
    sentence(p, "data")
    nothing()
    stage("-q", path + ":data/samples/000001.npy")


@cleaned
def source_vanishes():
    path = os.path.join(work, "vanishing.tar.bz2")
    for how in ("truncate", "replace", "touch"):
        for suffix in ("", ".tfsidx"):
            shutil.copy2(slow() + suffix, path + suffix)
        with Running("-q", path) as r:
            caught(r)
            if how == "truncate":
                os.truncate(path, 100)
            elif how == "replace":
                shutil.copy(noise(1, 128), path + "~")
                os.rename(path + "~", path)
            else:
                os.utime(path)
            goes_on(r)
            p = exits(r.end(), 1, how)
            equal(p.stdout, "", "stdout")
            sentence(p, "vanishing")
        nothing()
    os.unlink(path)
    os.unlink(path + ".tfsidx")


def read_first(source):
    return run("tar", "-xOf", source, "--occurrence=1", "a-first",
               text=False).stdout


@cleaned
def verify_finds():
    """What was written is changed behind our back."""
    source = slow()
    want = read_first(source)

    def whole(tree):
        try:
            return read(tree + "/a-first") == want
        except OSError:
            return False
    with Running("-q", "--verify", source) as r:
        tree = r.partial()
        if not tree:
            raise TooFast
        # All of it: what is not written yet would be written over our byte.
        wait_until(lambda: whole(tree) or r.p.poll() is not None, 60, 0.001)
        caught(r, whole)
        with open(tree + "/a-first", "r+b") as f:
            f.seek(150000)
            f.write(b"\xff")
        goes_on(r)
        p = exits(r.end(), 1, "stage --verify")
        sentence(p, "a-first")
        equal(visible(), [], "staged")


def left_to_write(control):
    """What the stage that runs has written down for others, bytes; None: nothing."""
    try:
        for name in os.listdir(control):
            if name.endswith(".use"):
                return int(json.loads(read(os.path.join(control, name)))["left"])
    except (OSError, ValueError):
        pass  # it has just begun
    return None


@cleaned
def room_of_two():
    """Each fits, both do not: the second is told so before it writes."""
    small, size = os.path.join(work, "small.tar"), 16 * MIB
    with open(os.path.join(scratch("small"), "f"), "wb") as f:
        f.write(os.urandom(size))
    arc.sh("tar", "-cf", small, "-C", os.path.dirname(f.name), "f")
    with Tmpfs("size=%d" % (SLOW_SIZE + size - 4 * MIB)) as t:
        first = Running("-q", "--to=" + t.path, "--reserve=0", slow(),
                        control=t.control)
        with first as r:
            caught(r)
            p = exits(tensorfs("stage", "--to=" + t.path, "--reserve=0", small),
                      5, "the second")
            sentence(p, "other processes that stage still need")
            goes_on(r)
            exits(r.end(), 0, "the first")
        exits(tensorfs("unstage", "--all", "--to=" + t.path), 0, "unstage")
        exits(tensorfs("stage", "-q", "--to=" + t.path, "--reserve=0", small), 0,
              "when there is room")
        exits(tensorfs("unstage", "--all", "--to=" + t.path), 0, "unstage")
    # What the first has taken already is not counted twice.
    with Tmpfs("size=%d" % (SLOW_SIZE + size + 8 * MIB)) as t:
        with Running("-q", "--to=" + t.path, "--reserve=0", slow(),
                     control=t.control) as r:
            def taken(*_):
                v = os.statvfs(t.path)
                left = left_to_write(t.control)
                return left is not None and left < MIB and \
                    (v.f_blocks - v.f_bfree) * v.f_frsize >= SLOW_SIZE
            wait_until(lambda: taken() or r.p.poll() is not None, 60, 0.001)
            caught(r, taken)
            exits(tensorfs("stage", "-q", "--to=" + t.path, "--reserve=0", small),
                  0, "the second")
            goes_on(r)
            exits(r.end(), 0, "the first")
        exits(tensorfs("unstage", "--all", "--to=" + t.path), 0, "unstage")


# --- several at once, and deaths ------------------------------------------------

def waits(r):
    """Until it has said that it waits for another one."""
    said = b""
    while b"waiting" not in said:
        ready, _, _ = select.select([r.p.stderr], [], [], 60)
        more = os.read(r.p.stderr.fileno(), 4096) if ready else b""
        check(more, "it does not wait: %r" % said)
        said += more


@cleaned
def at_once():
    """One works, the others wait and use what it made."""
    source = slow()
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Running(source))
        caught(first)
        others = [stack.enter_context(Running(source)) for _ in range(5)]
        for r in others:
            waits(r)
        goes_on(first)
        for r in (first, *others):
            p = exits(r.end(), 0, "stage")
            equal(p.stdout, HOME + "/slow\n", "path")
            check(r is not first or "waiting" not in p.stderr, "the first waited")
    equal(len(staged()), 1, "trees")
    no_strays()


@cleaned
def different_at_once():
    many = [Running("-q", "--name=n%d" % i, noise(1, 128)) for i in range(8)] + \
        [Running("-q", noise(13)) for _ in range(2)]
    names = [exits(r.end(), 0, "stage").stdout.strip() for r in many]
    equal(sorted(visible()), sorted({os.path.basename(n) for n in names}),
          "names")
    for n in visible():
        same_tree(os.path.join(HOME, n), noise(13)[:-4] if n == "noise-13-1"
                  else noise(1, 128)[:-4], mtime_ns=10**9)
    no_strays()


def control_has(suffix):
    try:
        return any(n.endswith(suffix) for n in os.listdir(CONTROL))
    except FileNotFoundError:
        return False


@cleaned
def interrupted():
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with Running(slow()) as r:
            caught(r)
            r.p.send_signal(sig)
            goes_on(r)
            p = r.end()
            equal(p.returncode, -sig, "exit")
            equal(p.stdout, "", "stdout")
            sentence(p, "interrupted")
        nothing()
        # While the source is read for the first time.
        with Running("--index=none", slow()) as r:
            check(wait_until(lambda: control_has(".use"), 60, 0.001),
                  "nothing begins")
            lib.stop(r.p, lambda: not control_has(".tree") and not visible())
            r.p.send_signal(sig)
            goes_on(r)
            equal(r.end().returncode, -sig, "exit")
        nothing()


@cleaned
def dead_ones_are_shown():
    with Running("-q", slow()) as r:
        caught(r)
        item, = staged()
        equal((item["name"], item["state"]), ("slow", "being staged"), "item")
        r.p.kill()
        r.end()
    check(wait_until(lambda: staged()[0]["state"] == "interrupted", 60),
          "state: %s" % staged())
    equal(visible(), [], "staged")
    stage("-q", noise(1, 128))
    equal([i["name"] for i in staged()], ["noise-1-128"], "after the next")
    no_strays()


def one_round(sources, rng, longest):
    """Kill a stage, or two, whenever."""
    first = [Running("-q", *rng.sample(["--force", "--verify"],
                                       rng.randrange(3)), rng.choice(sources))
             for _ in range(rng.randrange(1, 3))]
    for r in first:
        # Whatever it has come to, also when it has ended, what is left must be right.
        time.sleep(rng.random() * longest)
        r.p.kill()
    for r in first:
        r.end()


@case
def kill_loop():
    """Killed at random: whole trees or nothing, and the next one clears up."""
    rng = random.Random(int(os.environ.get("SEED", "4")))
    rounds = int(os.environ.get("KILL_ROUNDS") or lib.rounds(200))
    sources = [noise(1, 128), arc.scratch("h5") + "/k.h5"]
    data = np.arange(30 * 5000, dtype="f8").reshape(30, 5000)
    with h5py.File(sources[1], "w") as f:
        f.create_dataset("data", data=data, chunks=(10, 500),
                         compression="gzip")
    trees = {}
    for s in sources:
        trees[os.path.basename(stage_one("-q", s))] = stage_one(
            "-q", "--to", scratch("kept-" + os.path.basename(s)), s)
    start = time.monotonic()
    stage("-q", "--force", sources[0])
    longest = (time.monotonic() - start) * 1.2
    seen = set()
    for n in range(rounds):
        one_round(sources, rng, longest)
        for name in visible():
            # Of two at once, one replaced what the other was using.
            of = re.sub(r"-[0-9a-f]{6}(-[0-9]+)?$", "", name)
            check(of in trees, "a tree called %s" % name)
            if n % 10 == 0 or of != name:
                same_tree(os.path.join(HOME, name), trees[of])
        seen.add(len(os.listdir(CONTROL)) if os.path.isdir(CONTROL) else 0)
        if rng.random() < 0.3:
            unstage("--all", "--force", code=(0, 1))
    note("%d rounds, %s entries in control at the end of one" % (
        rounds, sorted(seen)))
    unstage("--all", "--force", code=(0, 1))
    for s in sources:
        stage("-q", s)
    wait_until(lambda: not tensorfs("stage", "-q", sources[0]).returncode, 60)
    for name, want in trees.items():
        same_tree(os.path.join(HOME, name), want)
    no_strays()
    for kept in trees.values():
        unstage(kept)
    unstage("--all")
    nothing()


work = setup()
arc._work = work
lib.main()
