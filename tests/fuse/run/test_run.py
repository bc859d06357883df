#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tensorfs run: what the command gets, what run waits for, what stays behind."""
import os
import re
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
from checks import check, equal
from lib import TooFast, case, exits, run, wait_until

work = base = source = None


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
    env["TMPDIR"] = base
    return dict(env, **more)


def tfs_run(*argv, options=(), sources=None, env=None, **kw):
    """tensorfs run, with its place in `base`, which is empty afterwards."""
    p = run(lib.TENSORFS, "run", *options, *(sources or [source]), "--", *argv,
            env=env or environment(), **kw)
    equal(left(), [], "left behind by %s" % " ".join(argv)[:80])
    return p


def left(where=None):
    where = where or base
    with open("/proc/self/mountinfo") as f:
        found = [line.split()[4] for line in f if where in line]
    return found + os.listdir(where)


def start(*argv, options=(), **kw):
    p = subprocess.Popen([lib.TENSORFS, "run", *options, source, "--", *argv],
                         env=kw.pop("env", environment()),
                         stdin=kw.pop("stdin", subprocess.DEVNULL),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    lib._children.append(p)
    return p


def finish(p):
    out, err = p.communicate()
    lib._children.remove(p)
    equal(left(), [], "left behind")
    return p.returncode, out.decode(), err.decode()


def helpers(p):
    """{"keeper": pid, "escort": pid, "daemon": pid} of a run."""
    return runlib.helpers(p.pid)


def started(p):
    """The first line that the command prints."""
    return p.stdout.readline().decode().strip()


# ---- the command -------------------------------------------------------------

@case
def arguments():
    p = exits(tfs_run("printf", "%s\n", "{}", "--data={}/train", "{}:{}", "{",
                      "}", "{ }", "", "{{}}"), 0, "run")
    lines = p.stdout.split("\n")
    path = lines[0]
    check(re.fullmatch(re.escape(base) + r"/tensorfs-%d-\d+/mnt" % os.getuid(),
                       path), "the path is " + path)
    equal(lines[1:-1], ["--data=%s/train" % path, "%s:%s" % (path, path), "{",
                        "}", "{ }", "", "{%s}" % path], "arguments")


@case
def environment_variable():
    p = exits(tfs_run("sh", "-c", "echo $TENSORFS_MOUNT; cat {}/d/f"), 0, "run")
    equal(p.stdout.split("\n")[1], "content", "what the command read")
    check(p.stdout.startswith(base), p.stdout)


@case
def exit_status():
    for n in (0, 1, 3, 77, 255):
        equal(tfs_run("sh", "-c", "exit %d" % n).returncode, n, "exit status")
    for n in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV):
        equal(tfs_run("sh", "-c", "ulimit -c 0; kill -%d $$" % n).returncode,
              128 + n, "exit status after signal %d" % n)


@case
def no_command():
    here = os.path.join(work, "no-exec")
    with open(here, "w") as f:
        f.write("#!/no/such/interpreter\n")
    for argv, code, word in (
            (["no-such-command"], 127, "no such command"),
            (["/no/such/command"], 127, "no such command"),
            (["{}/no/such"], 127, "no such command"),
            ([here], 126, "Permission denied"), (["/"], 126, "denied"),
            (["{}/d/f"], 126, "denied")):
        p = tfs_run(*argv)
        equal(p.returncode, code, argv[0])
        check(word in p.stderr and p.stderr.count("\n") == 1, p.stderr)
    os.chmod(here, 0o755)
    p = tfs_run(here)
    equal(p.returncode, 127, "no interpreter")
    check("interpreter" in p.stderr, p.stderr)


@case
def usage():
    for argv in ([source], [source, "--"], ["--", "true"], [],
                 ["--private=perhaps", source, "--", "true"],
                 ["--timeout=3", source, "--", "true"],
                 ["--idle-timeout=3", source, "--", "true"],
                 ["-o", "idle_timeout=3", source, "--", "true"],
                 ["--union", "a=" + source, "--", "true"],
                 [source, source, "--", "true"]):
        exits(run(lib.TENSORFS, "run", *argv, env=environment()), 2,
              "run " + " ".join(argv))
    equal(left(), [], "left behind")


@case
def source_errors():
    """Before the command starts."""
    mark = os.path.join(work, "mark")
    bad = os.path.join(work, "bad.h5")
    with open(bad, "wb") as f:
        f.write(b"\x89HDF\r\n\x1a\n" + b"\xff" * 100)
    for s in (os.path.join(work, "missing.tar"), bad, "a=" + bad):
        exits(tfs_run("touch", mark, sources=[s]), 3, "run " + s)
    check(not os.path.exists(mark), "the command was run")


@case
def program_in_the_mount():
    p = exits(tfs_run("{}/d/script", "a b"), 0, "run")
    equal(p.stdout, "script: a b\n", "its output")


LOOK = "umask; pwd; ulimit -a; grep -E '^Sig[^Q]|^Cap|^NoNew|^Seccomp|^Uid|^Groups' " \
    "/proc/self/status; for f in /proc/$$/fd/*; do echo ${f##*/}; done; nice; " \
    "tail -n1 /proc/self/oom_score_adj; cat /proc/self/cgroup"


def but_for_libc(line):
    """Signals 32 and 33 are the C library's own: nobody else can set them."""
    name, _, mask = line.partition(":")
    if not name.startswith("Sig"):
        return line
    return "%s %x" % (name, int(mask, 16) & ~(3 << 31))


@case
def same_as_without():
    """The command finds itself as if it had been started directly."""
    def odd():
        os.umask(0o137)
        os.chdir("/usr/bin")
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGUSR1, 40])
        os.dup2(0, 9)
    for how in (None, odd):
        kw = dict(preexec_fn=how, stdin=subprocess.DEVNULL, text=True,
                  stdout=subprocess.PIPE, close_fds=False,
                  env=environment())
        want = subprocess.run(["/bin/bash", "-c", LOOK], **kw).stdout
        got = subprocess.run([lib.TENSORFS, "run", source, "--", "/bin/bash",
                              "-c", LOOK], **kw).stdout
        for a, b in zip(got.split("\n"), want.split("\n")):
            equal(but_for_libc(a), but_for_libc(b), "what the command sees")
        check(len(want) > 200, want)


@case
def closed_streams():
    p = run("sh", "-c", 'exec "$0" run "$1" -- sh -c "cat {}/d/f >$2; '
            'readlink /proc/self/fd/0 /proc/self/fd/1 >>$2; true" <&- >&- 2>&-',
            lib.TENSORFS, source, os.path.join(work, "closed"),
            env=environment())
    exits(p, 0, "run with closed streams")
    with open(os.path.join(work, "closed")) as f:
        got = f.read()
    check(got.startswith("content\n") and "socket" not in got and
          "null" not in got, got)


@case
def streams():
    p = tfs_run("sh", "-c", "cat; echo no >&2", input=b"through")
    equal((p.stdout, p.stderr), ("through", "no\n"), "streams")
    p = run("sh", "-c", '"$0" run "$1" -- yes | head -n1', lib.TENSORFS, source,
            env=environment())
    equal(p.stdout, "y\n", "output of head")
    equal(left(), [], "left behind")
    # A reader sees the end when the command closes, not when the run ends: that would
    # have ended with 0.
    p = start("sh", "-c", "exec >&-; sleep 60")
    equal(p.stdout.read(), b"", "the end of the output")
    p.send_signal(signal.SIGTERM)
    equal(finish(p)[0], 143, "status")


# ---- sources and options -------------------------------------------------------

@case
def names():
    odd = os.path.join(work, "x=1.tar")
    if not os.path.exists(odd):
        os.link(source, odd)
    for sources, want in (
            (["one=" + source], ["one"]),
            (["one=" + source, source], ["a.tar", "one"]),
            (["one=" + source, "two=" + source], ["one", "two"]),
            (["o.n-e =" + source, "é=" + source], ["o.n-e ", "é"]),
            ([odd], ["d"]), ([odd, source], ["a.tar", "x=1.tar"]),
            (["y=" + odd], ["y"])):
        p = exits(tfs_run("ls", "{}", sources=sources), 0, "run %s" % sources)
        equal(p.stdout.split("\n")[:-1], want, "directories of %s" % sources)
    p = exits(tfs_run("cat", "{}/n/d/f", sources=["n=a.tar", "m=a.tar"],
                      preexec=lambda: os.chdir(work)), 0, "relative sources")
    p = exits(tfs_run("ls", "{}", sources=["x=1.tar"],
                      preexec=lambda: os.chdir(work)), 0, "a path with =")
    equal(p.stdout, "d\n", "x=1.tar is a file")
    with lib.Mount(None, sources=["one=" + source, "two=" + odd]) as m:
        equal(sorted(os.listdir(m.path)), ["one", "two"], "mount NAME=SOURCE")


@case
def options():
    for o in (["--cache-size=32M", "--threads=3"], ["-o", "cache-size=32M,ro"],
              ["-ocache_size=32M"], ["-s", "--cachesize=32M"]):
        p = exits(tfs_run("getfattr", "--only-values", "-n",
                          "user.tensorfs.config", "{}", options=o), 0, "run")
        check("cache-size=%d\n" % (32 << 20) in p.stdout, p.stdout)
    p = exits(tfs_run("ls", "{}", options=["--subdir=d"]), 0, "run")
    check("f\n" in p.stdout, p.stdout)


# ---- what run waits for -----------------------------------------------------

# All but those that only the kernel handles (KILL, STOP), those that stop, and CHLD;
# two numbers are the C library's.
PASSED_ON = sorted(set(range(1, signal.SIGRTMAX + 1)) - {32, 33} - {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTSTP,
    signal.SIGTTIN, signal.SIGTTOU})
# The default action of these is to do nothing.
HARMLESS = [signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH]
# What the standard tier takes of those that end a process.
SOME = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGSEGV, signal.SIGTERM,
        signal.SIGXFSZ, signal.SIGRTMIN]
# Signals that are pending are taken in the order of their numbers, and passed on in
# that order: when this one has arrived, all that were sent before it have.
LAST = signal.SIGRTMAX

LISTENER = """
import os, signal, sys
r, w = os.pipe()
os.set_blocking(w, False)
signal.set_wakeup_fd(w)
for n in map(int, sys.argv[2:]):
    signal.signal(n, lambda *_: None)
print("ready", flush=True)
n = 0
while n != int(sys.argv[2]):
    n = os.read(r, 1)[0]
    print(n, flush=True)
with open(sys.argv[1]) as f:
    print(f.read(), end="")
sys.exit(9)
"""


def listener(end, *others, **kw):
    """A run of a command that has a handler for these signals and prints their
    numbers; after `end` it prints what is in the mount, and exits with 9."""
    p = start(sys.executable, "-IS", "-c", LISTENER, "{}/d/f",
              *map(str, (int(end), *map(int, others))), **kw)
    equal(started(p), "ready", "first line")
    return p


@case
def signals():
    """The command gets them, whatever they are."""
    p = listener(LAST, *PASSED_ON)
    for n in PASSED_ON:
        p.send_signal(n)
        equal(started(p), str(n), "what came of signal %d" % n)
    equal(finish(p), (9, "content\n", ""), "the command's end")
    for n in PASSED_ON if lib.full() else ():
        p = listener(n)
        p.send_signal(n)
        equal(finish(p), (9, "%d\ncontent\n" % n, ""), "signal %d" % n)


@case
def signals_end_the_command():
    """128+N, as shells say it; those that do nothing by themselves do nothing."""
    ends = set(PASSED_ON) - set(HARMLESS) if lib.full() else SOME
    for n in sorted(ends):
        p = start("sh", "-c", "ulimit -c 0; echo; exec sleep 60")
        started(p)
        p.send_signal(n)
        equal(finish(p), (128 + n, "", ""), "signal %d" % n)
    p = start("sh", "-c", "echo; exec sleep 60")
    started(p)
    for n in HARMLESS + [LAST]:
        p.send_signal(n)
    equal(finish(p), (128 + LAST, "", ""), "signals that do nothing, and one that ends")


@case
def signals_of_timeout():
    """timeout(1) signals the run, and then its own group, of which the run is one."""
    names = ("ABRT", "PROF", "SEGV", "PIPE", "RTMIN")
    for name in names if lib.full() else names[2:]:
        p = subprocess.Popen(
            ["timeout", "-s", name, "60", lib.TENSORFS, "run", source, "--", "sh", "-c",
             "ulimit -c 0; echo; exec sleep 60"],
            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        lib._children.append(p)
        started(p)
        p.send_signal(signal.SIGALRM)  # this is how it learns that the time is over
        equal(finish(p)[0], 124, "timeout -s " + name)


@case
def signals_that_were_ignored():
    """A shell without job control starts jobs in the background with SIGINT ignored;
    a command that has a handler of its own gets it all the same."""
    p = listener(signal.SIGINT,
                 preexec_fn=lambda: signal.signal(2, signal.SIG_IGN))
    p.send_signal(2)
    equal(finish(p), (9, "2\ncontent\n", ""), "a command that has its own handler")


@case
def term_is_ignored():
    p = listener(LAST, preexec_fn=lambda: signal.signal(15, signal.SIG_IGN))
    p.send_signal(signal.SIGTERM)
    p.send_signal(LAST)
    equal(finish(p), (9, "%d\ncontent\n" % LAST, ""), "a command that ignores SIGTERM")


def until_its_end():
    """A run of a command that goes on until its input ends; finish() ends it.  The run
    leads a group of its own, as in a shell with job control: only then it can stop."""
    return start("sh", "-c", "echo $$; exec cat", stdin=subprocess.PIPE,
                 preexec_fn=os.setpgrp)


@case
def continued_by_others():
    """run stops with its command, and goes on with it, whichever of them is continued;
    and when the command was killed, or a helper was."""
    def begin(stop, name=None):
        p = until_its_end()
        group = int(started(p))
        pid = helpers(p)[name] if name else None
        if stop == signal.SIGTSTP:
            p.send_signal(stop)
        else:
            os.kill(-group, stop)
        check(runlib.stopped(p.pid, group), "not stopped by signal %d" % stop)
        return p, group, pid
    for stop in (signal.SIGTSTP, signal.SIGSTOP, signal.SIGTTIN):
        p, group, _ = begin(stop)
        os.kill(-group, signal.SIGCONT)
        equal(finish(p), (0, "", ""), "the command was continued")
        p, group, _ = begin(stop)
        p.send_signal(signal.SIGCONT)
        equal(finish(p), (0, "", ""), "run was continued")
    p, group, _ = begin(signal.SIGSTOP)
    os.kill(-group, signal.SIGKILL)
    equal(finish(p)[0], 137, "the stopped command was killed")
    for name in ("daemon", "escort"):
        p, group, pid = begin(signal.SIGSTOP, name)
        os.kill(pid, signal.SIGKILL)
        p.wait(60)  # not yet the end of its input
        equal(finish(p)[0], 1, "the %s of a stopped run was killed" % name)


@case
def stopped_and_continued_at_once():
    """The command goes on before run has stopped, or while it stops, or after that."""
    for delay in (0, 0.0003, 0.001, 0.003, 0.01) * lib.rounds(4):
        p = until_its_end()
        group = int(started(p))
        os.kill(-group, signal.SIGSTOP)
        # The command is continued at any time and has to end well: where run is in
        # stopping differs from round to round, and none of it is expected.
        time.sleep(delay)
        os.kill(-group, signal.SIGCONT)
        equal(finish(p), (0, "", ""), "after %g s" % delay)


# In a job of `sh`: goes on when the leader of the group has gone.  How long the sleeps
# take only decides how soon that is seen.
LEADER_ENDS = "while kill -0 $$ 2>/dev/null; do sleep 0.01; done"


@case
def group_is_waited_for():
    p = tfs_run("sh", "-c", "(%s; cat {}/d/f) & exit 4" % LEADER_ENDS)
    equal((p.returncode, p.stdout), (4, "content\n"), "a job in the background")
    # Waiting for this job would take longer than run() has patience.
    p = tfs_run("bash", "-c", "exec 3< <(trap '' TERM; echo; exec sleep 3600); "
                "read -u 3; kill -9 $$")
    equal(p.returncode, 137, "the leader was killed")


@case
def stopped_group_is_continued():
    p = tfs_run("sh", "-c", "(%s; cat {}/d/f) & kill -STOP $!; exit 4" % LEADER_ENDS)
    equal((p.returncode, p.stdout), (4, "content\n"), "a stopped job")


@case
def daemons_are_ended():
    fifo = os.path.join(work, "begun")
    os.mkfifo(fifo)
    # No other test has commands with these numbers.
    p = tfs_run("sh", "-c", "setsid sleep 71.{0} & setsid sh -c 'trap \"\" TERM; "
                "sleep 72.{0} & echo >{1}; wait; sleep 72.{0}' & read x <{1}; "
                "exit 5".format(os.getpid(), fifo))
    equal(p.returncode, 5, "exit status")
    check(re.search(r"^tensorfs run: 3 processes .* ended, because the mount", p.stderr)
          and p.stderr.count("\n") == 1, p.stderr)
    equal(re.findall(r"sleep 7[12]\.%d\b" % os.getpid(),
                     run("ps", "-eo", "args").stdout), [], "processes that stay")


@case
def nested():
    inner = "%s run %s -- cat {}/d/f" % (lib.TENSORFS, source)
    p = tfs_run("sh", "-c", "cat $TENSORFS_MOUNT/d/f; " +
                inner.replace("{}", '"$TENSORFS_MOUNT"'))
    equal((p.returncode, p.stdout), (0, "content\n" * 2), "run in a run")
    p = start("sh", "-c", "%s run %s -- sh -c 'echo; sleep 63'" % (
        lib.TENSORFS, source))
    started(p)
    p.kill()
    p.wait()
    check(wait_until(lambda: not left(), 60), "left: %s" % left())
    finish(p)


@case
def while_opening():
    """A source that takes long to open: signals end the run at once."""
    slow = runlib.slow_gzip(os.path.join(work, "slow.gz"))
    deadly = [signal.SIGTERM, signal.SIGINT, signal.SIGSEGV, signal.SIGRTMAX]
    if lib.full():
        deadly += [signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1, signal.SIGPROF,
                   signal.SIGXFSZ]
    for sig in deadly:
        lib.attempt(end_while_opening, slow, sig)


def end_while_opening(slow, sig):
    p = subprocess.Popen([lib.TENSORFS, "run", "--index=none", slow, "--", "true"],
                         env=environment(), stderr=subprocess.PIPE,
                         preexec_fn=lambda: signal.signal(1, signal.SIG_IGN))
    lib._children.append(p)
    try:
        runlib.hold_opening(p.pid, slow, base)
    except TooFast:
        p.communicate()
        lib._children.remove(p)
        raise
    for n in [signal.SIGHUP] + HARMLESS:
        p.send_signal(n)
    # Of several signals the lowest is taken first; a harmless one that ended the run
    # would be its status.
    check(wait_until(lambda: not runlib.pending(p.pid), 60), "signals are not taken")
    p.send_signal(sig)
    equal(p.wait(60), 128 + sig, "status of a run that was opening")
    lib._children.remove(p)
    p.stderr.close()
    equal(left(), [], "left behind")


# ---- processes that die -------------------------------------------------------

@case
def daemon_is_killed():
    p = start("sh", "-c", "echo; exec sleep 60")
    started(p)
    os.kill(helpers(p)["daemon"], signal.SIGKILL)
    code, _, err = finish(p)
    equal(code, 1, "status")
    check("daemon was killed by signal 9" in err, err)


@case
def daemon_is_told_to_end():
    """Batch systems signal every process of a step."""
    p = listener(signal.SIGTERM)
    told = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
            signal.SIGABRT, signal.SIGXCPU, signal.SIGPROF]
    for name, pid in helpers(p).items():
        # So what follows cannot be too early for an effect: there is none.
        equal(set(told) - runlib.deaf_to(pid), set(), "what can end the " + name)
        for sig in told:
            os.kill(pid, sig)
    p.send_signal(signal.SIGTERM)
    equal(finish(p), (9, "15\ncontent\n", ""), "the command reads after a signal")


def sockets(pid):
    return [f for f in runlib.open_files(pid) if f.startswith("socket:")]


@case
def keeper_is_killed():
    p = start("sh", "-c", "echo; read x; cat {}/d/f; exit 6",
              stdin=subprocess.PIPE)
    started(p)
    pids = helpers(p)
    before = len(sockets(p.pid))
    os.kill(pids["keeper"], signal.SIGKILL)
    # run closes its socket to the keeper when it has seen the keeper's end.
    check(wait_until(lambda: len(sockets(p.pid)) < before, 60), "it is not seen")
    check(wait_until(lambda: lib.parent(pids["daemon"]) == p.pid, 60),
          "run does not get the daemon")
    p.stdin.write(b"go\n")
    p.stdin.flush()
    equal(finish(p), (6, "content\n", ""), "the run goes on")


@case
def strangers_are_left_alone():
    """exec in a shell makes the run the parent of the shell's jobs."""
    p = subprocess.Popen(
        ["bash", "-c", 'sleep 73.25 & echo $!; exec "$0" run "$1" -- sh -c '
         '"echo; exec sleep 60"', lib.TENSORFS, source], env=environment(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lib._children.append(p)
    stranger = int(started(p))
    started(p)
    os.kill(helpers(p)["keeper"], signal.SIGKILL)
    p.send_signal(signal.SIGTERM)
    try:
        equal(p.wait(60), 143, "status")
        check(not lib.zombie(stranger), "a job of the shell was ended")
    finally:
        os.kill(stranger, signal.SIGKILL)
    finish(p)


@case
def escort_is_killed():
    p = start("sh", "-c", "echo; exec sleep 60")
    started(p)
    os.kill(helpers(p)["escort"], signal.SIGKILL)
    code, _, err = finish(p)
    equal(code, 1, "status")
    check("helper process was killed" in err, err)


@case
def unmounted_by_somebody():
    p = start("sh", "-c", "echo {}; exec sleep 60")
    path = started(p)
    exits(run(lib.TENSORFS, "umount", path), 0, "umount")
    code, _, err = finish(p)
    equal(code, 1, "status")
    check("was unmounted" in err, err)


@case
def busy_mount():
    """Another process is in there: the mount is detached."""
    p = start("sh", "-c", "echo {}; read x", stdin=subprocess.PIPE)
    path = started(p)
    other = subprocess.Popen(["sleep", "60"], cwd=path)
    p.stdin.close()
    p.stdin = None
    try:
        equal(finish(p)[0], 1, "status of read")
        check(other.poll() is None, "a stranger was ended")
    finally:
        other.kill()
        other.wait()


# ---- places -------------------------------------------------------------------

@case
def which_place():
    slurm = os.path.join(work, "slurm")
    os.makedirs(slurm, exist_ok=True)

    def where(code=0, **env):
        p = exits(tfs_run("sh", "-c", "echo {}; stat -c %a {}/..",
                          env=environment(**env)), code, "run")
        path, mode = p.stdout.split()
        equal(mode, "700", "mode")
        return path
    check(where(SLURM_TMPDIR=slurm).startswith(slurm + "/"), "SLURM_TMPDIR")
    equal(left(slurm), [], "left behind")
    for bad in ("/no/such/dir", "relative", "/etc/passwd", "", "/proc"):
        check(where(SLURM_TMPDIR=bad).startswith(base + "/"), "not " + bad)
    check(where(TMPDIR="/no/such").startswith(("/tmp/", "/dev/shm/")), "/tmp")
    name = where(SLURM_JOB_ID="12", SLURM_STEP_ID="3").split("/")[-2]
    check(re.fullmatch(r"tensorfs-12-3-%d-\d+" % os.getuid(), name), name)
    name = where(SLURM_JOB_ID="12").split("/")[-2]
    check(re.fullmatch(r"tensorfs-12-batch-%d-\d+" % os.getuid(), name), name)
    name = where(SLURM_JOB_ID="../x", SLURM_STEP_ID="../..").split("/")[-2]
    check(re.fullmatch(r"tensorfs-%d-\d+" % os.getuid(), name), name)


@case
def leftovers():
    """What a dead run of this user has left is removed, and nothing else."""
    uid = os.getuid()

    def make(name, mode=0o700):
        path = os.path.join(base, name)
        os.makedirs(os.path.join(path, "mnt"))
        os.chmod(path, mode)
        return path
    dead = [make("tensorfs-%d-1" % uid), make("tensorfs-7-0-%d-1" % uid),
            make("tensorfs-7-batch-%d-1.2" % uid)]
    kept = [make("tensorfs-%d" % uid), make("tensorfs-%d-x" % uid),
            make("tensorfs-%d-1" % (uid + 1)), make("tensorfs-test-1"),
            make("tensorfs-%d-3" % uid, 0o755)]
    full = make("tensorfs-%d-4" % uid)
    with open(os.path.join(full, "mnt", "precious"), "w"):
        pass
    target = os.path.join(work, "target")
    os.makedirs(os.path.join(target, "mnt"), 0o700, exist_ok=True)
    link = os.path.join(base, "tensorfs-%d-5" % uid)
    os.symlink(target, link)
    kept += [full, link]
    if lib.ROOT:
        foreign = make("tensorfs-%d-6" % uid)
        os.chown(foreign, user.UID, user.UID)
        kept.append(foreign)
    try:
        live = start("sh", "-c", "echo {}; read x", stdin=subprocess.PIPE)
        path = started(live)
        p = run(lib.TENSORFS, "run", source, "--", "true", env=environment())
        exits(p, 0, "run")
        equal((p.stdout, p.stderr), ("", ""), "what it says")
        for d in dead:
            check(not os.path.exists(d), d + " was left")
        for d in kept:
            check(os.path.lexists(d), d + " was removed")
        check(os.path.exists(os.path.join(target, "mnt")), "followed a symlink")
        check(os.listdir(path), "the live run's mount is gone")
    finally:
        for d in dead + kept:
            run("rm", "-rf", d)
    live.stdin.close()
    live.stdin = None
    finish(live)


@case
def bare_environment():
    """HOME unset or read-only, no XDG_*, no cwd."""
    bare = {"PATH": os.environ["PATH"], "TMPDIR": base}
    exits(tfs_run("cat", "{}/d/f", env=bare), 0, "an empty environment")
    home = tempfile.mkdtemp(dir=work)
    os.chmod(home, 0o555)
    exits(tfs_run("cat", "{}/d/f", env=dict(bare, HOME=home)), 0, "HOME")
    gone = tempfile.mkdtemp(dir=work)

    def vanish():
        os.chdir(gone)
        os.rmdir(gone)
    exits(tfs_run("cat", "{}/d/f", preexec=vanish), 0, "a cwd that is gone")
    gone = tempfile.mkdtemp(dir=work)
    p = exits(tfs_run("true", sources=["a.tar"], preexec=vanish), 3, "run")
    check("working directory" in p.stderr, p.stderr)


def main():
    global work, base, source
    user.open_fuse_to_all()
    work = lib.setup()
    base = tempfile.mkdtemp(prefix="base-", dir=work)
    os.mkdir(os.path.join(work, "d"))
    with open(os.path.join(work, "d", "f"), "w") as f:
        f.write("content\n")
    script = os.path.join(work, "d", "script")
    with open(script, "w") as f:
        f.write("#!/bin/sh\necho script: \"$*\"\n")
    os.chmod(script, 0o755)
    source = os.path.join(work, "a.tar")
    subprocess.check_call(["tar", "cf", source, "-C", work, "d"])
    lib.main()


if __name__ == "__main__":
    main()
