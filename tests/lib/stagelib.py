# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of `stage` share: a /dev/shm of their own, the command, what is
left behind, and a staged tree compared with an unpacked one."""
import fcntl
import json
import os
import stat
import subprocess
import sys
import tempfile
import time

import lib
from checks import Failure, check, equal, same_bytes, short
from lib import exits, run, tensorfs

UID = os.geteuid()
HOME = "/dev/shm/tensorfs-%d" % UID
CONTROL = HOME + "/.stages"
PRIVATE = "TENSORFS_TEST_PRIVATE_SHM"


def private_shm(size="1G"):
    """Go on in a mount namespace with a /dev/shm that nobody else uses."""
    if os.environ.get(PRIVATE):
        return
    os.environ[PRIVATE] = "1"
    root = [] if lib.ROOT else ["--user", "--map-current-user", "--keep-caps"]
    script = ("mount -t tmpfs -o size=%s,mode=1777 shm /dev/shm && exec \"$@\""
              % size)
    # Slaves, for who is not root: a copy of another test's mount would keep it.
    argv = ["unshare", "--mount", "--propagation", "slave", *root, "sh", "-c", script,
            "sh", sys.executable, *sys.argv]
    if run("unshare", "--mount", *root, "mount", "-t", "tmpfs", "shm",
           "/dev/shm").returncode:
        lib.skip("no mount namespace with a /dev/shm of its own")
    os.execvp(argv[0], argv)


def setup():
    private_shm()
    work = lib.setup(fuse=False)
    os.environ["TMPDIR"] = work
    return work


def memory_group(limit):
    """A control group of ours with this limit, or None."""
    for base, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                       ("/sys/fs/cgroup", "memory.max")):
        try:
            d = tempfile.mkdtemp(prefix="tensorfs-test-", dir=base)
        except OSError:
            continue
        try:
            # Not made here: /sys/fs/cgroup may be the tmpfs of hierarchies beside it.
            with open(os.path.join(d, file), "r+") as f:
                f.write(str(limit))
            return d
        except OSError:
            os.rmdir(d)
    return None


# --- the command ----------------------------------------------------------------

def stage(*argv, code=0, **kw):
    """Staged paths, one for each line of stdout."""
    p = exits(tensorfs("stage", *argv, **kw), code, "stage")
    lines = p.stdout.splitlines()
    if code:
        check(not lines, "stdout of a failure: %r" % p.stdout)
        return p
    for line in lines:
        check(os.path.isdir(line), "no directory %s" % line)
    return lines


def stage_one(*argv, **kw):
    lines = stage(*argv, **kw)
    equal(len(lines), 1, "lines on stdout")
    return lines[0]


def staged(*argv):
    p = exits(tensorfs("staged", "--json", *argv), 0, "staged")
    return json.loads(p.stdout)


def unstage(*argv, code=0):
    return exits(tensorfs("unstage", *argv), code, "unstage")


def record(path, control=CONTROL):
    """The record of what is staged at `path`."""
    ino = os.stat(path).st_ino
    for name in os.listdir(control):
        if name.endswith(".json"):
            with open(os.path.join(control, name)) as f:
                found = json.load(f)
            if found["ino"] == ino:
                return dict(found, id=name[:-5])
    raise Failure("no record of " + path)


def sources(path, control=CONTROL):
    """Paths of what it was made of, as was written down."""
    with open(os.path.join(control, record(path, control)["id"] + ".from")) as f:
        rows = f.read().split("\0")
    equal(rows[-2:], ["end", ""], "the end of the sources")
    return [row.split(" ", 6)[6] for row in rows[:-2]]


class Held:
    """Uses a staged tree, as a job would."""

    def __init__(self, path, control=CONTROL):
        self.path = os.path.join(control, record(path, control)["id"] + ".use")

    def __enter__(self):
        self.fd = os.open(self.path, os.O_RDWR)
        fcntl.flock(self.fd, fcntl.LOCK_SH)

    def __exit__(self, *_):
        os.close(self.fd)


class Running:
    """A stage in the background; at the end it is gone."""

    def __init__(self, *argv, control=CONTROL, **kw):
        self.control = control
        self.p = subprocess.Popen([lib.TENSORFS, "stage", *argv],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  stdin=subprocess.DEVNULL, **kw)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
        self.p.communicate()

    def partial(self, seconds=60):
        """Wait for the tree that it makes; None: it ended before."""
        end = time.monotonic() + seconds
        while self.p.poll() is None and time.monotonic() < end:
            try:
                for name in os.listdir(self.control):
                    if name.endswith(".tree"):
                        return os.path.join(self.control, name)
            except OSError:
                pass
        return None

    def end(self):
        out, err = self.p.communicate()
        return subprocess.CompletedProcess(self.p.args, self.p.returncode, out,
                                           err)


# --- what is left ---------------------------------------------------------------

def visible():
    try:
        return sorted(n for n in os.listdir(HOME) if n[0] != ".")
    except FileNotFoundError:
        return []


def nothing(where="/dev/shm"):
    """No entry at all."""
    left = [os.path.join(d, n) for d, dirs, files in os.walk(where)
            for n in dirs + files]
    equal(left, [], "left in " + where)


def no_strays(control=CONTROL):
    """Only records of trees that are there, and their locks."""
    if not os.path.isdir(control):
        return
    ids = set()
    for name in os.listdir(control):
        if name.endswith(".json"):
            ids.add(name[:-5])
    for name in os.listdir(control):
        check(name == "lock" or name.split(".")[0] in ids and
              name.split(".")[1] in ("json", "from", "use"), "stray %s" % name)
    equal(len(ids), len([n for n in os.listdir(os.path.dirname(control))
                         if n[0] != "."]), "records of trees")


# --- comparing ------------------------------------------------------------------

def walk(top):
    """{path: lstat} of all entries, bytes."""
    top = os.fsencode(top)
    found = {}
    for d, dirs, files in os.walk(top):
        for n in dirs + files:
            p = os.path.join(d, n)
            found[os.path.relpath(p, top)] = os.lstat(p)
    return found


def is_special(st):
    return not (stat.S_ISREG(st.st_mode) or stat.S_ISDIR(st.st_mode) or
                stat.S_ISLNK(st.st_mode))


def same_tree(got_top, want_top, mtime_ns=1, sparse=False):
    """Every name, byte, link and time; modes as staging has them."""
    got, want = walk(got_top), walk(want_top)
    want = {p: st for p, st in want.items() if not is_special(st)}
    equal(sorted(set(want) - set(got)), [], "missing")
    equal(sorted(set(got) - set(want)), [], "too many")
    inodes = {}
    for p, w in sorted(want.items()):
        g = got[p]
        a, b = (os.path.join(os.fsencode(t), p) for t in (got_top, want_top))
        equal(stat.S_IFMT(g.st_mode), stat.S_IFMT(w.st_mode), "type of %r" % p)
        equal(g.st_mtime_ns // mtime_ns, w.st_mtime_ns // mtime_ns,
              "mtime of %r" % p)
        equal(g.st_uid, UID, "owner of %r" % p)
        if stat.S_ISLNK(w.st_mode):
            equal(os.readlink(a), os.readlink(b), "target of %r" % p)
            continue
        if stat.S_ISDIR(w.st_mode):
            equal(g.st_mode & 0o7777, 0o700, "mode of %r" % p)
            continue
        equal(g.st_mode & 0o7777, 0o600 | (w.st_mode & 0o100),
              "mode of %r" % p)
        equal(g.st_nlink, w.st_nlink, "links to %r" % p)
        equal(inodes.setdefault(w.st_ino, g.st_ino), g.st_ino,
              "inode of %r" % p)
        with open(a, "rb") as x, open(b, "rb") as y:
            same_bytes(x.read(), y.read(), "%r" % p)
        if sparse:
            check(g.st_blocks <= w.st_blocks + 8, "%r takes %d blocks, not %d"
                  % (p, g.st_blocks, w.st_blocks))


def sentence(p, *words):
    """stderr of a failure has these words."""
    for w in words:
        check(str(w) in p.stderr, "no %r in %s" % (w, short(p.stderr)))
