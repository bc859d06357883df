#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""SIGKILL at any time, to any process of a run: nothing stays, the next one works.

A round starts a run whose command has a reader in its group, and one outside of its
session with an empty environment; after up to 150 ms one of them is killed.
TENSORFS_KILL_ROUNDS, TENSORFS_KILL_SEED: how many rounds each way, which ones.
"""
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
import user
from checks import check, equal, note
from lib import case, wait_until

ROUNDS = int(os.environ.get("TENSORFS_KILL_ROUNDS") or lib.rounds(50))
SEED = int(os.environ.get("TENSORFS_KILL_SEED", str(random.randrange(1 << 30))))
# What is to be over within a second is waited for longer: machines are busy.
PATIENCE = 60

LONG = 'setsid env -i /bin/sleep 61 & ' \
    '(while :; do cat "$0"/d/*; done) >/dev/null & wait'
SHORT = 'cat "$0"/d/* >/dev/null'
VICTIMS = ["front", "keeper", "escort", "daemon", "command", "child", "helper",
           "group", "session", "front+keeper", "front+escort", "keeper+escort",
           "front+daemon", "keeper+daemon", "escort+daemon"]

work = source = base = place = None
worst = [0.0, ""]
hits = {}


class Process:
    def __init__(self, pid):
        self.pid = pid
        with open("/proc/%d/stat" % pid) as f:
            text = f.read()
        self.comm = text[text.index("(") + 1:text.rindex(")")]
        rest = text[text.rindex(")") + 2:].split()
        self.state, self.parent = rest[0], int(rest[1])
        self.group, self.session = int(rest[2]), int(rest[3])


def processes():
    found = []
    for p in os.listdir("/proc"):
        if p.isdigit():
            try:
                found.append(Process(int(p)))
            except OSError:
                pass
    return [p for p in found if p.state not in "ZX"]


def marked(pid):
    for what in ("environ", "cmdline"):
        try:
            with open("/proc/%d/%s" % (pid, what), "rb") as f:
                if base.encode() in f.read():
                    return True
        except OSError:
            pass
    return False


def below(root, table):
    found, todo = [], [root]
    while todo:
        parent = todo.pop()
        kids = [p for p in table if p.parent == parent]
        found += kids
        todo += [p.pid for p in kids]
    return found


def left(known):
    """What is there that should not be."""
    table = processes()
    found = ["process %d %s" % (p.pid, p.comm) for p in table
             if p.pid != os.getpid() and (p.pid in known or marked(p.pid))]
    with open("/proc/self/mountinfo") as f:
        found += ["mount " + line.split()[4] for line in f if base in line]
    found += ["directory " + n for n in os.listdir(base)]
    found += ["staged " + n for n in os.listdir(place)]
    found += ["/dev/shm/" + n for n in os.listdir("/dev/shm")
              if n.startswith("tensorfs-%d-" % user.UID) and lib.ROOT]
    return found


def victims(run, name):
    """Pids of the one or two that `name` says, as far as they are there."""
    table = processes()
    all_ = below(run.pid, table)
    by_comm = {p.comm: p.pid for p in reversed(all_)}
    escort = by_comm.get("tensorfs-escort")
    leader = next((p.pid for p in all_ if p.parent == escort), None)
    roles = {"front": [run.pid],
             "group": [p.pid for p in table if p.group == run.pid],
             "session": [p.pid for p in table if p.session == run.pid],
             "command": [leader],
             "child": [p.pid for p in all_ if leader and p.parent == leader][:1],
             "helper": [p.pid for p in all_ if p.comm in (
                 "fusermount3", "tensorfs-hdf5")][:1]}
    for n in ("keeper", "escort", "daemon"):
        roles[n] = [by_comm.get("tensorfs-" + n)]
    found = []
    for n in name.split("+"):
        found += [p for p in roles[n] if p]
    return found, [p.pid for p in all_]


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


def gone(known, begun, what):
    if not wait_until(lambda: not left(known), PATIENCE, 0.01):
        check(False, "%s: left after %d s: %s" % (what, PATIENCE, left(known)))
    took = time.monotonic() - begun
    if took > worst[0]:
        worst[:] = took, what


def works(options, as_user, what):
    run = start(options, as_user, "cat \"$0\"/d/f >&2")
    _, err = run.communicate(timeout=60)
    equal((run.returncode, err), (0, b"content\n"), "the run after " + what)


def one_round(rng, options, as_user, what):
    name = rng.choice(VICTIMS)
    command = rng.choice([LONG, LONG, SHORT])
    after = rng.uniform(0, rng.choice([0.15, 0.05]))
    what = "%s: %s %s after %.0f ms" % (
        what, name, "long" if command == LONG else "short", after * 1000)
    run = start(options, as_user, command)
    lib._children.append(run)
    try:
        time.sleep(after)
        hit, known = victims(run, name)
        # Who has left meanwhile is not in the group that is killed.
        kill(hit, still=lambda p: name not in ("group", "session") or
             getattr(p, name) == run.pid)
        # The run may live on; then it ends as it is told to.
        time.sleep(rng.choice([0, 0.02]))
        known += victims(run, "front")[1]
        if name != "front":
            kill([run.pid], signal.SIGTERM)
        killed = time.monotonic()
        hits[name] = hits.get(name, 0) + bool(hit)
        try:
            _, err = run.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            check(False, what + ": the run does not end")
        gone(set(known), killed, "%s %s" % (what, err.decode()))
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


def rounds(options, as_user, what):
    if "--stage" not in options:
        fresh_base()
    rng = random.Random("%d %s" % (SEED, what))
    for i in range(ROUNDS):
        one_round(rng, options, as_user, "seed %d, %s, round %d" % (
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


def freeze(run):
    """All processes of a run, stopped.  Whoever was forked while the table was read, or
    by one who had not stopped yet, is found by looking again."""
    known, quiet = [], 0
    while quiet < 3:
        new = [p for p in [run.pid] + [b.pid for b in below(run.pid, processes())]
               if p not in known]
        kill(new, signal.SIGSTOP)
        known += new
        quiet = 0 if new else quiet + 1
        time.sleep(0.02)
    return known


def all_at_once(options, as_user):
    """As a cgroup is killed: a dead mount may stay, until the next run."""
    fresh_base()
    run = start(options, as_user, LONG)
    check(wait_until(lambda: victims(run, "child")[0], 60), "no command")
    known = freeze(run)
    kill(known)
    run.communicate(timeout=60)
    check(wait_until(lambda: not [p for p in processes() if p.pid in known], 60),
          "processes stay")
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
        note("the last thing was gone after at most %.2f s (%s)" % tuple(worst))


if __name__ == "__main__":
    main()
