#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tensorfs run at a terminal: ^C, ^Z, fg, bg, pipelines, scripts, a shell inside.

The terminal is a pty, the shell on it bash, interactive.
"""
import contextlib
import errno
import gzip
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
from checks import Failure, check, equal
from lib import case, wait_until

work = base = source = None
RUN = None


class Terminal:
    """A shell (or another program) on a terminal of its own."""

    def __init__(self, *argv):
        argv = argv or ("bash", "--norc", "--noprofile", "-i")
        self.shells = []
        self.text = ""
        env = {"PATH": os.environ["PATH"], "TMPDIR": base, "PS1": "[%]",
               "TERM": "dumb", "T": lib.TENSORFS, "S": source,
               "HISTFILE": "/dev/null", "R": RUN}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(work)
            os.execvpe(argv[0], argv, env)
        if argv[0] == "bash":
            self.shells.append(self.pid)
            self.wait(r"\[%\]")

    def _read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno == errno.EIO:
                return False
            raise
        self.text += data.decode("utf-8", "replace").replace("\r", "")
        return bool(data)

    def wait(self, pattern, seconds=60):
        """Until `pattern` comes; returns the match and drops what was before."""
        end = time.monotonic() + seconds
        while True:
            m = re.search(pattern, self.text)
            if m:
                self.text = self.text[m.end():]
                return m
            if time.monotonic() > end:
                raise Failure("no %r on the terminal, but %r" % (
                    pattern, self.text[-500:]))
            self._read(0.1)

    def quiet(self, pattern, seconds=0.7):
        """`pattern` does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(0.1)
        check(not re.search(pattern, self.text), "%r on the terminal: %r" % (
            pattern, self.text))

    def type(self, text):
        """A shell that is about to fork or to wait may miss a ^C or ^Z, and gets it itself
        before it has given the terminal away."""
        if text in "\x03\x1a":
            check(not self.shells or
                  wait_until(lambda: self.foreground() not in self.shells, 60),
                  "the shell keeps the terminal")
            time.sleep(0.3)
        os.write(self.fd, text.encode())

    def line(self, text):
        """A line at the shell's prompt, and its echo."""
        self.type(text + "\n")
        self.wait(re.escape(text[-20:]) + r"\n")

    def ask(self, text, pattern):
        self.line(text)
        return self.wait(pattern)

    def foreground(self):
        """Name of the group in the foreground."""
        return os.tcgetpgrp(self.fd)

    def states(self):
        """Those of the shell's children, a letter each."""
        found = ""
        for p in os.listdir("/proc"):
            if p.isdigit() and lib.parent(int(p)) == self.pid:
                with contextlib.suppress(OSError), open("/proc/%s/stat" % p) as f:
                    found += f.read().rpartition(")")[2].split()[0]
        return found

    def modes(self):
        return termios.tcgetattr(self.fd)[3]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for _ in range(3):
            try:
                os.kill(self.pid, signal.SIGCONT)
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                break
            if os.waitpid(self.pid, 0)[0]:
                break
        os.close(self.fd)
        ok = wait_until(lambda: not os.listdir(base), 60)
        if exc[0] is None:
            check(ok, "left behind: %s" % os.listdir(base))


def status(t, want):
    """$? at the prompt."""
    equal(t.ask("echo =$?=", r"=(\d+)=").group(1), str(want), "$?")
    t.wait(r"\[%\]")


@case
def interrupt():
    """^C reaches the command, and the shell takes it for what it is."""
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; exec sleep 60'")
        t.wait("up\n")
        t.type("\x03")
        t.wait(r"\[%\]")
        status(t, 130)
        t.line("$R -- bash -c 'trap \"echo caught; exit 7\" INT; echo up; "
               "while :; do sleep 0.05; done'")
        t.wait("up\n")
        t.type("\x03")
        t.wait("caught\n")
        t.wait(r"\[%\]")
        status(t, 7)
        # A loop ends, as it does without run.
        t.line("for i in 1 2 3; do $R -- sh -c 'echo up; exec sleep 60'; done")
        t.wait("up\n")
        t.type("\x03")
        t.quiet("up\n")
        t.wait(r"\[%\]")


@case
def interrupt_script():
    """A script that runs it gets the ^C, too; one that has it caught goes on."""
    script = os.path.join(work, "script")
    with open(script, "w") as f:
        f.write("#!/bin/bash\n%s -- sh -c 'echo up; exec sleep 60'\necho after\n" %
                RUN)
    with open(script + "2", "w") as f:
        f.write("#!/bin/bash\n%s -- bash -c 'trap \"exit 0\" INT; echo up; "
                "while :; do sleep 0.05; done'\necho after\n" % RUN)
    with Terminal() as t:
        for name, goes_on in (("script", False), ("script2", True)):
            t.line("bash ./" + name)
            t.wait("up\n")
            t.type("\x03")
            if goes_on:
                t.wait("after\n")
            else:
                t.quiet("after\n")
            t.wait(r"\[%\]")


@case
def stop_and_continue():
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; read x; echo \"got $x\"; cat {}/d/f; exit 4'")
        t.wait("up\n")
        t.type("\x1a")
        t.wait("Stopped")
        t.wait(r"\[%\]")
        t.ask("jobs -l", "Stopped")
        t.wait(r"\[%\]")
        t.line("fg")
        t.type("hello\n")
        t.wait("got hello\ncontent\n")
        t.wait(r"\[%\]")
        status(t, 4)


@case
def background():
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; exec sleep 60' &")
        t.wait("up\n")
        t.ask("echo prompt=$((1+1))", "prompt=2\n")
        t.wait(r"\[%\]")
        t.line("fg")
        t.wait("sleep 60")
        t.type("\x1a")
        t.wait("Stopped")
        t.wait(r"\[%\]")
        t.line("bg")
        t.wait(r"\[%\]")
        t.ask("jobs", "Running")
        t.wait(r"\[%\]")
        t.line("kill %1; wait")
        t.wait(r"Terminated|Exit 143")
        t.wait(r"\[%\]")


@case
def background_reads():
    """In the background it stops for want of the terminal; `fg' gives it."""
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; read x; echo \"got $x\"' &")
        t.wait("up\n")
        check(wait_until(lambda: "T" in t.states(), 60), "it does not stop")
        time.sleep(0.3)
        t.ask("jobs", "Stopped")
        t.wait(r"\[%\]")
        t.line("fg")
        time.sleep(0.3)
        t.type("there\n")
        t.wait("got there\n")
        t.wait(r"\[%\]")
        status(t, 0)


@case
def shell_inside():
    """An interactive shell as the command has job control of its own."""
    with Terminal() as t:
        t.line("PS1='<%>' $R -- bash --norc --noprofile -i")
        t.wait("<%>")
        t.shells.append(t.foreground())
        t.ask("cat $TENSORFS_MOUNT/d/f", "content\n")
        t.wait("<%>")
        t.line("sleep 60")
        time.sleep(0.3)
        t.type("\x1a")
        t.wait("Stopped")
        t.wait("<%>")
        t.line("fg")
        time.sleep(0.3)
        t.type("\x03")
        t.wait("<%>")
        t.line("suspend")
        t.wait("Stopped")
        t.wait(r"\[%\]")
        t.line("fg")
        t.wait("<%>")
        t.ask("echo in=$((2+2))", "in=4\n")
        t.line("exit 9")
        t.wait(r"\[%\]")
        status(t, 9)


@case
def pipelines():
    """The terminal is the pager's; the command gets it when it asks."""
    with Terminal() as t:
        t.line("$R -- sh -c 'echo one; sleep 1; echo two' | "
               "(read a; read b < /dev/tty; echo \"=$a $b=\"; cat)")
        time.sleep(0.3)
        t.type("typed\n")
        t.wait("=one typed=\ntwo\n")
        t.wait(r"\[%\]")
        t.line("echo piped | $R -- sh -c 'cat; read x </dev/tty; echo \"=$x=\"' | cat")
        t.wait("piped\n")
        t.type("asked\n")
        t.wait("=asked=\n")
        t.wait(r"\[%\]")
        t.line("$R -- sh -c 'echo up >&2; exec sleep 60' | cat; echo after")
        t.wait("up\n")
        t.type("\x1a")
        t.wait("Stopped")
        t.wait(r"\[%\]")
        t.line("fg")
        time.sleep(0.3)
        t.type("\x03")
        t.wait(r"\[%\]")


@case
def modes_are_restored():
    """A command that is killed leaves a terminal that can be used."""
    with Terminal() as t:
        t.line("stty -a >/dev/null; $R -- sh -c 'stty -echo -icanon; echo up; "
               "kill -9 $$'; stty -a")
        t.wait("up\n")
        check(re.search(r"[^-]icanon", t.wait(r"(?s)speed.*\[%\]").group(0)),
              "the modes of the killed command stay")
        t.line("$R -- sh -c 'stty -echo -icanon; echo up; exec sleep 60'")
        t.wait("up\n")
        pids = subprocess.run(["ps", "-eo", "pid=,ppid=,comm=,args="], text=True,
                              stdout=subprocess.PIPE).stdout
        daemon = [line.split()[0] for line in pids.split("\n")
                  if "tensorfs-daemon" in line and source in line]
        check(daemon, "no daemon")  # a child that it forks is another for a moment
        os.kill(int(daemon[0]), signal.SIGKILL)
        t.wait("daemon was killed")
        t.wait(r"\[%\]")
        check(t.modes() & termios.ECHO or t.modes() & termios.ICANON == 0,
              "echo is off")
        status(t, 1)


@case
def while_opening():
    """There is no command yet: run itself stops, goes on and ends."""
    slow = os.path.join(work, "slow.gz")
    member = gzip.compress(bytes(64 << 20), 1)
    with open(slow, "wb") as f:
        for _ in range(400):
            f.write(member)
    with Terminal() as t:
        t.line("$T run --progress=plain --index=none slow.gz -- echo never")
        time.sleep(0.3)
        t.type("\x1a")
        t.wait("Stopped")
        t.wait(r"\[%\]")
        t.line("fg")
        time.sleep(0.2)
        t.type("\x03")
        t.quiet(r"^never\n|\nnever\n")
        t.wait(r"\[%\]")
        status(t, 130)


@case
def without_a_shell():
    """As the first process on a terminal (ssh -t, script): nobody could continue
    it, so that ^Z stops nothing."""
    with Terminal(*RUN.split(), "--", "sh", "-c",
                  "echo up; read x; echo got $x; exec sleep 60") as t:
        t.wait("up\n")
        t.type("\x1a")
        time.sleep(0.3)
        t.type("yes\n")
        t.wait("got yes\n")
        t.type("\x03")
        pid, st = os.waitpid(t.pid, 0)
        check(os.WIFSIGNALED(st) and os.WTERMSIG(st) == 2, "status %d" % st)
        t.pid = os.fork()
        if t.pid == 0:
            os._exit(0)


@case
def terminal_goes_away():
    """SIGHUP ends the command, and the run cleans up."""
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; exec sleep 60'")
        t.wait("up\n")
        os.kill(t.pid, signal.SIGHUP)


def main():
    global work, base, source, RUN
    work = lib.setup()
    base = tempfile.mkdtemp(prefix="base-", dir=work)
    os.mkdir(os.path.join(work, "d"))
    with open(os.path.join(work, "d", "f"), "w") as f:
        f.write("content\n")
    source = os.path.join(work, "a.tar")
    subprocess.check_call(["tar", "cf", source, "-C", work, "d"])
    RUN = "%s run %s" % (lib.TENSORFS, source)
    lib.main()


if __name__ == "__main__":
    main()
