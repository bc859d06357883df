#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""SIGKILL at any time, to any process of a run: nothing stays, the next one works.

A round starts a run whose command has a reader in its group, and one outside of its
session with an empty environment.  When a certain process or mount of the run is there,
or after up to 150 ms, one or two of its processes are killed.  What is expected does
not depend on how far the run has come by then.
TENSORFS_KILL_ROUNDS, TENSORFS_KILL_SEED: how many rounds each way, which ones.
"""
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import runlib
import user
from checks import check, equal, note
from lib import case, wait_until
from runlib import Process, processes

ROUNDS = int(os.environ.get("TENSORFS_KILL_ROUNDS") or
             (lib.rounds(50) if lib.full() else 3))
SEED = int(os.environ.get("TENSORFS_KILL_SEED", str(random.randrange(1 << 30))))
PATIENCE = 60  # seconds until something hangs

LONG = 'setsid env -i /bin/sleep 61 & ' \
    '(while :; do cat "$0"/d/*; done) >/dev/null & wait'
SHORT = 'cat "$0"/d/* >/dev/null'
VICTIMS = ["front", "keeper", "escort", "daemon", "command", "child", "helper",
           "group", "session", "front+keeper", "front+escort", "keeper+escort",
           "front+daemon", "keeper+daemon", "escort+daemon"]
# When they are killed: as soon as this is there, or at a random time.
POINTS = ["keeper", "escort", "place", "daemon", "mount", "command", "child", "time"]
NO_MOUNT = [p for p in POINTS if p != "mount"]  # what is staged is not mounted

work = source = base = place = None
hits = {}


def marked(pid):
    for what in ("environ", "cmdline"):
        try:
            with open("/proc/%d/%s" % (pid, what), "rb") as f:
                if base.encode() in f.read():
                    return True
        except OSError:
            pass
    return False


def left(known):
    """What is there that should not be; `known`: keys of processes of the run."""
    table = processes()
    found = ["process %d %s" % (p.pid, p.comm) for p in table
             if p.pid != os.getpid() and (p.key in known or marked(p.pid))]
    with open("/proc/self/mountinfo") as f:
        found += ["mount " + line.split()[4] for line in f if base in line]
    found += ["directory " + n for n in os.listdir(base)]
    found += ["staged " + n for n in os.listdir(place)]
    # Where a run has its place if it cannot have it in TMPDIR.
    pids = {str(pid) for pid, _ in known}
    found += ["/dev/shm/" + n for n in os.listdir("/dev/shm")
              if n.startswith("tensorfs-") and n.rpartition("-")[2] in pids]
    return found


def roles(run):
    """Pids of the run's processes by what they do, as far as they are there; and all
    of them as runlib.Process."""
    table = processes()
    all_ = runlib.below(run.pid, table)
    found = {n: [p.pid for p in all_ if p.comm == "tensorfs-" + n][:1]
             for n in ("keeper", "escort", "daemon")}
    leader = next((p.pid for p in all_ if p.parent in found["escort"]), None)
    return {**found,
            "front": [run.pid],
            "group": [p.pid for p in table if p.group == run.pid],
            "session": [p.pid for p in table if p.session == run.pid],
            "command": [leader] if leader else [],
            "child": [p.pid for p in all_ if leader and p.parent == leader][:1],
            "helper": [p.pid for p in all_ if p.comm in (
                "fusermount3", "tensorfs-hdf5")][:1]}, all_


def victims(run, name):
    """Pids of the one or two that `name` says, and keys of all."""
    found, all_ = roles(run)
    return [p for n in name.split("+") for p in found[n]], [p.key for p in all_]


def reached(run, point):
    """Has the run come to this point?"""
    if point == "place":
        return os.listdir(base)
    if point == "mount":
        with contextlib.suppress(OSError), open("/proc/%d/mountinfo" % run.pid) as f:
            return any(base in line for line in f)
        return False
    return roles(run)[0][point]


def kill(pids, sig=signal.SIGKILL, still=lambda p: True):
    for pid in pids:
        try:
            if still(Process(pid)):
                os.kill(pid, sig)
        except OSError:
            pass


def start(options, as_user, command):
    kw = user.as_user(TMPDIR=base) if as_user else \
        {"env": dict(os.environ, TMPDIR=base), "preexec": None}
    kw["env"].pop("SLURM_TMPDIR", None)
    return subprocess.Popen(
        [lib.TENSORFS, "run"] + options + [source, "--", "sh", "-c", command,
                                           "{}"],
        env=kw["env"], preexec_fn=kw["preexec"], start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)


def gone(known, what):
    if not wait_until(lambda: not left(known), PATIENCE, 0.01):
        check(False, "%s: left after %d s: %s" % (what, PATIENCE, left(known)))


def works(options, as_user, what):
    run = start(options, as_user, "cat \"$0\"/d/f >&2")
    _, err = run.communicate()
    equal((run.returncode, err), (0, b"content\n"), "the run after " + what)


def wait_for(run, point, seconds):
    """Until the run has come to `point` or has ended, or for a time."""
    if point != "time":
        check(wait_until(lambda: reached(run, point) or run.poll() is not None,
                         PATIENCE, 0.001), "it does not come to the point " + point)
        return
    # The kill that follows is right at every moment of a run, also after its end;
    # longer or shorter sleeps only change which moment is tried.
    time.sleep(seconds)


def one_round(rng, options, as_user, name, what):
    command = rng.choice([LONG, LONG, SHORT])
    point = rng.choice(NO_MOUNT if "--stage" in options else POINTS)
    seconds = rng.uniform(0, rng.choice([0.15, 0.05]))
    what = "%s: %s %s at %s (%.0f ms)" % (
        what, name, "long" if command == LONG else "short", point, seconds * 1000)
    run = start(options, as_user, command)
    lib._children.append(run)
    try:
        wait_for(run, point, seconds)
        hit, known = victims(run, name)
        # What has left the group or session since then is not killed.
        kill(hit, still=lambda p: name not in ("group", "session") or
             getattr(p, name) == run.pid)
        # SIGTERM comes at once, or when the others had a moment to see the death: the
        # end has to be the same, so that the length of the moment does not matter.
        time.sleep(rng.choice([0, 0.02]))
        known += victims(run, "front")[1]
        # A run that lives on ends as it is told to.
        if name != "front":
            kill([run.pid], signal.SIGTERM)
        hits[name] = hits.get(name, 0) + bool(hit)
        try:
            _, err = run.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            check(False, what + ": the run does not end")
        gone(set(known), "%s %s" % (what, err.decode()))
    finally:
        lib._children.remove(run)
        if run.poll() is None:
            run.kill()
            run.wait()
    works(options, as_user, what)


def fresh_base():
    global base, place
    place = tempfile.mkdtemp(prefix="place-", dir=work)
    os.chmod(place, 0o1777)
    base = tempfile.mkdtemp(prefix="base-", dir=work)
    os.chmod(base, 0o1777)


# All ways together go through all victims several times, also in the standard tier.
order = random.Random(SEED).sample(VICTIMS, len(VICTIMS))


def rounds(options, as_user, what):
    if "--stage" not in options:
        fresh_base()
    rng = random.Random("%d %s" % (SEED, what))
    for i in range(ROUNDS):
        order.append(order.pop(0))
        one_round(rng, options, as_user, order[-1], "seed %d, %s, round %d" % (
            SEED, what, i))


@case
def user_with_fusermount():
    rounds(["--private=no"], True, "user")


@case
def user_private():
    rounds(["--private"], True, "user, private")


@case
def user_staged():
    """Files instead of a mount, in a place that is as empty afterwards."""
    fresh_base()
    rounds(["--private=no", "--stage", "--reserve=0", "--to", place], True,
           "user, staged")


@case
def root_plain():
    if lib.ROOT:
        rounds(["--private=no"], False, "root")


@case
def root_private():
    if lib.ROOT:
        rounds(["--private"], False, "root, private")


def all_at_once(options, as_user):
    """As a cgroup is killed: a dead mount may stay, until the next run."""
    fresh_base()
    run = start(options, as_user, LONG)
    check(wait_until(lambda: victims(run, "child")[0], 60), "no command")
    known = runlib.freeze(run.pid)
    kill(known)
    run.communicate()
    check(runlib.gone(*known), "processes stay")
    note("killed all at once: left are %s" % left(set()))
    works(options, as_user, "killing all at once")
    check(wait_until(lambda: not left(set()), PATIENCE),
          "left after the next run: %s" % left(set()))


@case
def all_at_once_user():
    all_at_once(["--private=no"], True)


@case
def all_at_once_private():
    all_at_once(["--private"], True)


def main():
    global work, source
    user.open_fuse_to_all()
    work = lib.setup()
    os.chmod(work, 0o755)
    os.mkdir(os.path.join(work, "d"))
    with open(os.path.join(work, "d", "f"), "w") as f:
        f.write("content\n")
    source = os.path.join(work, "a.tar")
    subprocess.check_call(["tar", "cf", source, "-C", work, "d"])
    os.chmod(source, 0o644)
    note("seed %d" % SEED)
    try:
        lib.main()
    finally:
        note("were there to be killed: %s" % hits)


if __name__ == "__main__":
    main()
