#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""merge --delete-parts, interrupted: nothing is lost, and the same command goes on."""
import errno
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import lib
import skerch
from checks import check, equal, note
from lib import case, exits, rounds, run, tensorfs, wait_until
from mergelib import JOURNAL, beside, same, truth

work = None
want = None           # of the template
WHOLE = ["t_ALL.h5"]  # what is left of a directory
SANITIZED = bool(os.environ.get("TENSORFS_SANITIZED"))
EAGER = dict(os.environ, TENSORFS_MERGE_COMMIT="1")
rng = random.Random(5)


def fresh(name="copy"):
    d = os.path.join(work, name)
    shutil.rmtree(d, ignore_errors=True)
    shutil.copytree(os.path.join(work, "template"), d)
    return os.path.join(d, "t_ALL.h5")


def names(main):
    return sorted(os.listdir(os.path.dirname(main)))


def args(main, *more):
    return ["merge", "-q", "--delete-parts", "--jobs=2", main] + list(more)


def finish(main, what, *more):
    """The same command again ends it, and everything is there."""
    if "-o" in more and not beside(main) and not parts_left(main):
        same(want, more[more.index("-o") + 1])  # killed when all was done
        return None
    p = exits(tensorfs(*args(main, *more), env=EAGER), 0, what + ": go on")
    finished(main, what, *more)
    return p


def finished(main, what, *more):
    out = more[more.index("-o") + 1] if "-o" in more else main
    same(want, out)
    left = names(main)
    equal(left, sorted(set(WHOLE + [os.path.basename(out)])), what + ": files")


def parts_left(main):
    return len([n for n in names(main) if n.startswith("t_") and
                "ALL" not in n])


def unlocked(path):
    """Nobody has a lock on a file, of any kind."""
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(
            "hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return True
    except OSError as e:
        if e.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    finally:
        os.close(fd)


def let_go(main):
    """A child of one that was killed has its locks, and dies a moment later."""
    d = os.path.dirname(main)
    for n in os.listdir(d):
        check(wait_until(lambda: unlocked(os.path.join(d, n)), 60), n + " stays locked")


# --- killed ---------------------------------------------------------------------

def strace(main, calls, n, *more):
    """Kill it when one of its threads is at the n-th of these calls."""
    return run("strace", "-f", "-qq", "-o", "/dev/null", "-e",
               "trace=" + calls, "-e", "inject=%s:signal=KILL:when=%d" % (calls,
                                                                          n),
               lib.TENSORFS, *args(main, *more), env=EAGER)


def killed_at_every(call, *more, first=1, step=1):
    """At each of a thread's calls of a kind; how often, and with parts deleted."""
    n, deleted = first, 0
    while True:
        main = fresh()
        extra = [a.replace("@", os.path.dirname(main)) for a in more]
        p = strace(main, call, n, *extra)
        if p.returncode == 0:
            return n - first, deleted
        if p.returncode != 3 or "(Killed)" not in p.stderr:
            equal(p.returncode, -9, "exit under strace: " + p.stderr)
        deleted += 0 < parts_left(main) < 6
        what, again = "killed at %s %d" % (call, n), None
        if n % 3 == 0:  # once more, while it goes on, if it is not done before
            again = strace(main, call, rng.randrange(1, 6), *extra).returncode
        (finished if again == 0 else finish)(main, what, *extra)
        n += step if lib.full() else 2 * step


def killed_everywhere(calls, *more):
    killed = deleted = 0
    for call in calls.split():
        k, d = killed_at_every(call, *more)
        check(k, "there was no " + call)
        killed += k
        deleted += d
    least = 2 if lib.full() else 1
    check(killed > 5 * least and deleted > least,
          "killed %d times, %d parts were deleted"
          % (killed, deleted))


def traceable():
    if SANITIZED:  # sanitizers and ptrace do not get along
        note("skipped: strace and sanitizers do not get along")
    return not SANITIZED


@case
def killed_at_every_step():
    if traceable():
        killed_everywhere("fdatasync fsync unlink rename ftruncate "
                          "copy_file_range")


@case
def killed_at_every_step_elsewhere():
    if traceable():
        killed_everywhere("fdatasync unlink renameat2", "-o", "@/out.h5",
                          "--chunk=7,9", "--comp=gzip")


@case
def killed_while_it_writes():
    if traceable():
        check(killed_at_every("pwrite64", first=24, step=7)[0] > 3, "never")


@case
def killed_at_random():
    whole = []
    for _ in range(5):  # the shortest: what held up another is not a part of it
        main = fresh()
        began = time.monotonic()
        exits(tensorfs(*args(main), env=EAGER), 0, "whole")
        whole.append(time.monotonic() - began)
        finished(main, "whole")
    interrupted = i = 0
    while i < rounds(60) or interrupted <= rounds(60) // 4 and i < 1000:
        main = fresh()
        for _ in range(rng.randrange(1, 4)):
            p = subprocess.Popen([lib.TENSORFS] + args(main), env=EAGER,
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            # Whenever it is killed, what is left must be right.
            time.sleep(rng.random() * min(whole))
            p.kill()
            interrupted += p.wait() == -9
            let_go(main)
        if not (p.returncode == 0 and names(main) == WHOLE):
            try:
                finish(main, "round %d" % i)
            except Exception:
                note("round %d: %s" % (i, names(main)))
                raise
        same(want, main)
        i += 1
    check(interrupted > rounds(60) // 4, "only %d were killed" % interrupted)


def delayed(call, when, *argv):
    """strace lets each thread's n-th call of a kind wait; (popen, pid)."""
    p = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
         "inject=%s:delay_enter=60000000:when=%d" % (call, when), "sh", "-c",
         'echo $$; exec "$@"', "sh", lib.TENSORFS] + list(argv), env=EAGER,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return p, int(p.stdout.readline())


@case
def killed_with_chunks_on_their_way():
    """What has room in the data file, and is not there: nobody asks for it."""
    if not traceable():
        return
    main = fresh()
    p, pid = delayed("copy_file_range", 2, *args(main))
    wait_until(lambda: p.poll() is not None or parts_left(main) < 6, 50, 0.001)
    check(p.poll() is None, "it was too fast")
    check(0 < parts_left(main) < 6, "%d parts are left" % parts_left(main))
    os.kill(pid, signal.SIGKILL)
    p.kill()  # it would wait for the end of the delay
    p.communicate()
    let_go(main)
    finish(main, "go on")


def calls(main, *argv):
    """What it does to the journal (J), the data file (D), and others, in order."""
    log = os.path.join(work, "calls")
    exits(run("strace", "-f", "-qq", "-y", "-o", log, "-e", "signal=none", "-e",
              "trace=pwrite64,ftruncate,fdatasync,fsync,rename,renameat2,"
              "openat,unlink", lib.TENSORFS, *argv, env=EAGER), 0, "strace")
    out = []
    for line in open(log):
        line = line.split(None, 1)[1]
        what = "J" if ".journal" in line else "D" if "-merge" in line else ""
        call = line.split("(")[0]
        if call != "openat" or "O_TRUNC" in line or not what:
            out.append(call + what)
    return out


@case
def journal_is_synced_before_it_is_believed():
    """By whom it was written may have been killed before he had synced it."""
    if not traceable():
        return
    main = interrupted()
    c = calls(main, *args(main))
    check("fdatasyncJ" in c[:c.index("ftruncateD")], c[:8])
    # And one that is given up is gone before its data is.
    main = fresh()
    journal = os.path.join(os.path.dirname(main), ".t_ALL.h5" + JOURNAL)
    with open(journal, "wb") as f:
        f.write(b"torn")
    c = calls(main, "merge", "-q", main)
    c = c[c.index("ftruncateJ"):]
    check(c.index("fdatasyncJ") < c.index("openatD"), c)
    # Once, or it is that of another one.
    equal(c.count("unlinkJ"), 1, "journal is removed")


# --- an interrupted one ---------------------------------------------------------

def interrupted(name="copy", least=1):
    """A directory in which a merge was killed after it had deleted parts."""
    # Under sanitizers, which do not get along with strace, as soon as this process sees
    # that parts have gone; that may be too late.
    for _ in range(200 if SANITIZED else 1):
        main = fresh(name)
        if SANITIZED:
            p = subprocess.Popen([lib.TENSORFS] + args(main), env=EAGER,
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            while p.poll() is None and parts_left(main) > 6 - least:
                pass
            p.kill()
            p.wait()
        else:
            strace(main, "unlink", least + 1)
        let_go(main)
        if 0 < parts_left(main) <= 6 - least:
            return main
    raise lib.Failure("it could not be interrupted: %s" % names(main))


def snapshot(main):
    d = os.path.dirname(main)
    out = {}
    for n in os.listdir(d):
        with open(os.path.join(d, n), "rb") as f:
            out[n] = f.read()
    return out


def refused(main, text, *more, argv=None, code=(1, 2, 3)):
    before = snapshot(main)
    p = exits(tensorfs(*(argv or args(main, *more))), code, text)
    check(text in p.stderr, p.stderr)
    check("again" not in p.stderr, p.stderr)  # that would not help
    check(snapshot(main) == before, text + ": something was touched")


@case
def other_options():
    main = interrupted()
    refused(main, "another --chunk or --comp", "--chunk=3,3")
    refused(main, "another --chunk or --comp", "--comp=gzip")
    refused(main, "--delete-parts", argv=["merge", main])
    finish(main, "the same options")


@case
def other_main_file():
    main = interrupted()

    with h5py.File(main, "r+") as f:
        f.attrs["new"] = 1
    refused(main, "another main file")


@case
def part_changed():
    main = interrupted()
    d = os.path.dirname(main)
    name = [n for n in names(main) if n.startswith("t_") and "ALL" not in n][0]
    with h5py.File(os.path.join(d, name), "r+") as f:
        f["data"][0] = 5
    refused(main, name)


@case
def part_missing():
    """Before its bytes are safe; afterwards it is not missed."""
    for _ in range(20):
        main = interrupted()
        d = os.path.dirname(main)
        name = [n for n in names(main)
                if n.startswith("t_") and "ALL" not in n][-1]
        os.rename(os.path.join(d, name), work + "/away")
        before = snapshot(main)
        p = tensorfs(*args(main))
        if p.returncode == 0:
            same(want, main)
            continue
        check(name in p.stderr, p.stderr)
        check(snapshot(main) == before, "something was touched")
        os.rename(work + "/away", os.path.join(d, name))
        finish(main, "put back")
        return
    raise lib.Failure("it had always been taken")


def damaged(data, how):
    bad = bytearray(data)
    at = rng.randrange(len(bad))
    if how == 0:
        return bad[:at]
    if how == 1:
        bad[at] ^= 1 << rng.randrange(8)
    elif how == 2:
        bad += bytes(rng.randrange(256) for _ in range(50))
    else:
        del bad[at:at + rng.randrange(1, 30)]
    return bad


@case
def journal_damaged():
    """Right, or refused with nothing touched; never wrong."""
    main, outcome = None, [0, 0]
    for i in range(rounds(60)):
        if not main:
            main = interrupted(least=2)
            journal = os.path.join(os.path.dirname(main), [
                n for n in names(main) if n.endswith(".journal")][0])
            with open(journal, "rb") as f:
                good = f.read()
        with open(journal, "r+b") as f:  # the same file, as it was otherwise
            f.truncate(0)
            f.write(damaged(good, i % 4))
        before = snapshot(main)
        p = tensorfs(*args(main))
        check(p.returncode in (0, 1, 2, 3), "exit %d: %s" % (p.returncode,
                                                            p.stderr))
        outcome[p.returncode > 0] += 1
        if p.returncode == 0:
            same(want, main)
            equal(names(main), WHOLE, "files")
            main = None
        else:
            check(p.stderr.strip(), "not a word")
            check(snapshot(main) == before, "touched: " + p.stderr)
    check(outcome[1] > 3, "damage was not noticed: %r" % outcome)
    check(outcome[0] > 0, "what is torn off was not done again")


@case
def moved_away():
    """Its directory has another name, or is on another file system."""
    there = os.path.join(work, "there", "t_ALL.h5")
    for how in ("renamed", "copied", "changed"):
        shutil.rmtree(os.path.dirname(there), ignore_errors=True)
        d = os.path.dirname(interrupted(least=2))
        if how == "copied":
            exits(run("cp", "-a", d, os.path.dirname(there)), 0, "cp")
            refused(there, "another main file")  # the parts are not its own
            shutil.rmtree(d)
        else:
            os.rename(d, os.path.dirname(there))
        if how == "changed":
            name = max(n for n in names(there) if "ALL" not in n)
            with h5py.File(os.path.join(os.path.dirname(there), name),
                           "r+") as f:
                f["data"][0] = 5
            refused(there, name + " has changed")
        else:
            finish(there, how)


@case
def data_file_gone():
    main = interrupted()
    os.remove(os.path.join(os.path.dirname(main), ".t_ALL.h5.tensorfs-merge"))
    refused(main, "data file is missing")


# --- stopped, and stopped by the world -------------------------------------------

@case
def signals():
    for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for _ in range(50):
            main = fresh()
            p = subprocess.Popen([lib.TENSORFS] + args(main), env=EAGER,
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
            while p.poll() is None and parts_left(main) > 4:
                pass
            p.send_signal(n)
            err = p.communicate()[1].decode()
            if p.returncode == -n and "again" in err:
                break
        check("run the same command again" in err, err)
        let_go(main)
        finish(main, "after signal %d" % n)


@case
def nobody_reads_warnings():
    main = fresh()
    name = max(n for n in names(main) if "ALL" not in n)
    with h5py.File(os.path.join(os.path.dirname(main), name), "r+") as f:
        f["more"] = 1
    r, w = os.pipe()
    os.close(r)
    p = subprocess.run([lib.TENSORFS, "merge", "--delete-parts", main],
                       stdout=subprocess.PIPE, stderr=w)
    os.close(w)
    equal(p.returncode, 0, "exit")
    check(b"copied" in p.stdout, "no summary")
    same(want, main)


@case
def signals_without_deleting():
    for _ in range(rounds(20)):
        main = fresh()
        p = subprocess.Popen([lib.TENSORFS, "merge", "-q", main],
                             stderr=subprocess.PIPE)
        # Whenever the signal comes, what is left must be right.
        time.sleep(rng.random() * 0.05)
        p.terminate()
        err = p.communicate()[1].decode()
        equal(beside(main), [], "left behind: " + err)
        equal(parts_left(main), 6, "parts")
        same(want, main) if p.returncode == 0 else None


def size_of(path):
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


@case
def two_at_once():
    done = 0
    for _ in range(100):
        main = fresh()
        journal = os.path.join(os.path.dirname(main), ".t_ALL.h5" + JOURNAL)
        p = subprocess.Popen([lib.TENSORFS] + args(main), env=EAGER,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        # Who has written to it has locked it before.
        wait_until(lambda: p.poll() is not None or size_of(journal), 60, 0.001)
        p.send_signal(signal.SIGSTOP)
        if p.poll() is None:
            os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if p.poll() is None and size_of(journal):
            q = exits(tensorfs(*args(main)), 1, "the second one")
            check("by another process" in q.stderr, q.stderr)
            done += 1
        p.send_signal(signal.SIGCONT)
        err = p.communicate()[1].decode()
        equal(p.returncode, 0, "the first one: " + err)
        same(want, main)
        if done >= 3:
            return
    check(done, "they never met")


@case
def disk_full():
    """On a file system of its own, which only has room when parts go."""
    if not lib.ROOT:
        note("not root: no file system of our own: left out")
        return
    place = os.path.join(work, "small")
    os.makedirs(place)
    exits(run("mount", "-t", "tmpfs", "-o", "size=1m", "small", place), 0,
          "mount")
    try:
        d = os.path.join(place, "d")
        main = fresh("d-source")
        shutil.copytree(os.path.dirname(main), d)
        main = os.path.join(d, "t_ALL.h5")
        ballast = os.path.join(place, "ballast")
        with open(ballast, "wb") as f:
            room = os.statvfs(place)
            f.write(b"x" * (room.f_bavail * room.f_frsize - 90000))
        before = snapshot(main)
        p = exits(tensorfs("merge", "-q", main), 1, "no room, nothing deleted")
        check("room" in p.stderr or "space" in p.stderr, p.stderr)
        check(snapshot(main) == before, "touched: " + p.stderr)
        p = tensorfs(*args(main, "--comp=none"), env=EAGER)
        os.remove(ballast)
        if p.returncode != 0:
            equal(p.returncode, 1, "no room: " + p.stderr)
            check("space" in p.stderr or "room" in p.stderr, p.stderr)
            finish(main, "room again", "--comp=none")
        same(want, main)
    finally:
        run("umount", place)


def main():
    global work, want
    work = lib.setup(fuse=False)
    t = skerch.create(os.path.join(work, "template"), rows=115, part=20,
                      sub=(700,), incompressible=2)
    equal(len(t.parts), 6, "parts")
    want = truth(t.all_path)
    lib.main()


if __name__ == "__main__":
    main()
