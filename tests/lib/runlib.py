# SPDX-License-Identifier: BSD-2-Clause
"""Processes as /proc shows them, for the tests of `tensorfs run`: which descend from
which, which are stopped, what they wait for, and what they do with signals."""
import contextlib
import gzip
import os
import signal

from checks import check
from lib import TooFast, wait_until


class Process:
    """One line of /proc/PID/stat; OSError if there is no such process."""

    def __init__(self, pid):
        self.pid = pid
        text = _read(pid, "stat")
        self.comm = text[text.index("(") + 1:text.rindex(")")]
        rest = text[text.rindex(")") + 2:].split()
        self.state, self.parent = rest[0], int(rest[1])
        self.group, self.session = int(rest[2]), int(rest[3])
        # A number that is used again belongs to a process with another start.
        self.key = (pid, int(rest[19]))


def _read(pid, name):
    try:
        with open("/proc/%d/%s" % (pid, name), encoding="utf-8",
                  errors="surrogateescape") as f:
            return f.read()
    except ProcessLookupError:  # it ended between open and read
        raise FileNotFoundError


def processes():
    """All processes that live, zombies left out."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                found.append(Process(int(name)))
    return [p for p in found if p.state not in "ZX"]


def below(root, table=None):
    """Descendants of a process: children first, then theirs."""
    table = processes() if table is None else table
    found, todo = [], [root]
    while todo:
        parent = todo.pop(0)
        children = [p for p in table if p.parent == parent]
        found += children
        todo += [p.pid for p in children]
    return found


def helpers(root):
    """{"keeper": pid, "escort": pid, "daemon": pid, ...} of the run at or below `root`.
    A child that the daemon forks has the daemon's name for a moment; the daemon is
    nearer to the root, and comes first."""
    found = {}
    for p in below(root):
        if p.comm.startswith("tensorfs-"):
            found.setdefault(p.comm[9:], p.pid)
    return found


def _letters(pid):
    """The states of the threads of a process."""
    letters = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/%d/task" % pid):
            with contextlib.suppress(OSError):
                letters.add(Process(int(thread)).state)
    return letters


def state(pid):
    """T: all threads are stopped; Z: all are over, or the process is gone; else the
    letter of one that is neither."""
    letters = _letters(pid)
    for letter in letters - set("TtZX"):
        return letter
    return "T" if letters & set("Tt") else "Z"


def gone(*pids):
    """Wait until all of them have ended; False if they do not."""
    return wait_until(lambda: all(state(p) == "Z" for p in pids), 60)


def stopped(*pids):
    """Wait until all of them are stopped; False if they do not stop."""
    return wait_until(lambda: all(state(p) == "T" for p in pids), 60)


def freeze(root):
    """Stop a process and all below it, and return their numbers.  What is stopped
    cannot fork, so a look that finds nothing new has found all.  State D is as good:
    a shell waits so for a child that is stopped before its exec, and a reader for a
    daemon that is stopped; what comes next for them is the stop."""
    known = []
    while True:
        new = [pid for pid in [root] + [p.pid for p in below(root)]
               if pid not in known]
        if not new:
            return known
        for pid in new:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        check(wait_until(lambda: all(_letters(pid) <= set("TtZXD") for pid in new), 60),
              "processes do not stop")
        known += new


def waits_for_child(pid):
    """Is it inside of wait?  Where the kernel does not tell that, sleep is enough:
    a shell that has started a command sleeps nowhere else."""
    try:
        at = _read(pid, "wchan")
    except OSError:
        return False
    return at.startswith("do_wait") or at in ("", "0") and state(pid) == "S"


def _masks(pid, *names):
    bits = 0
    for line in _read(pid, "status").split("\n"):
        name, _, value = line.partition(":")
        if name in names:
            bits |= int(value, 16)
    return {n for n in range(1, signal.SIGRTMAX + 1) if bits >> (n - 1) & 1}


def pending(pid):
    """Signals that were sent to a process and that it has not taken yet."""
    return _masks(pid, "SigPnd", "ShdPnd")


def deaf_to(pid):
    """Signals that can do nothing to a process: it blocks or ignores them."""
    return _masks(pid, "SigBlk", "SigIgn")


def open_files(pid):
    """What the descriptors of a process lead to."""
    found = []
    with contextlib.suppress(OSError):
        for fd in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(OSError):
                found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    return found


def hold_opening(root, source, base):
    """Stop the daemon of the run below `root` while it opens `source`: so the run has
    no command until the daemon is continued.  TooFast: it has mounted in `base`."""

    def opening():
        pid = helpers(root).get("daemon")
        return pid if pid and source in open_files(pid) else None
    check(wait_until(opening, 60, 0.001), "the source is not opened")
    pid = helpers(root).get("daemon")
    if pid:
        os.kill(pid, signal.SIGSTOP)
        check(wait_until(lambda: state(pid) in "TZ", 60), "the daemon does not stop")
    # A daemon mounts before it says that it is ready.
    with open("/proc/self/mountinfo") as f:
        if pid and state(pid) == "T" and not any(base in line for line in f):
            return
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    raise TooFast


def slow_gzip(path):
    """A small file that takes seconds to open: 6 GiB of zeros in it are counted."""
    member = gzip.compress(bytes(8 << 20), 9)
    with open(path, "wb") as f:
        f.write(member * 800)
    return path
