#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tensorfs run at a terminal: ^C, ^Z, fg, bg, pipelines, scripts, a shell inside.

The terminal is a pty, and the shell on it an interactive bash.  A key is pressed when
the processes that it is meant for are there to get it, which the terminal's foreground
group and /proc tell.
"""
import errno
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import runlib
from checks import Failure, check, equal
from lib import case, wait_until

work = base = source = None
RUN = None
PROMPT = r"\[%\]"
# A job in the background writes before or after the shell's next prompt.
UP_AND_PROMPT = r"(?s)up\n.*\[%\]|\[%\].*up\n"
# bash runs a trap between two commands, here after at most one sleep, which only
# keeps the loop from using a processor: how long it takes matters to no test.
AWAKE = "while :; do sleep 0.05; done"


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
            self.wait(PROMPT)

    def _read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno == errno.EIO:
                return
            raise
        self.text += data.decode("utf-8", "replace").replace("\r", "")

    def wait(self, pattern, seconds=60):
        """Until `pattern` comes; returns the match, and drops the text up to it."""
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

    def until_prompt(self):
        """All text up to the next prompt of the shell."""
        m = self.wait(PROMPT)
        return m.string[:m.start()]

    def type(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        """Type a line at the shell's prompt, and wait for its echo."""
        self.type(text + "\n")
        self.wait(re.escape(text[-20:]) + r"\n")

    def ask(self, text, pattern):
        self.line(text)
        return self.wait(pattern)

    def foreground(self):
        """Number of the process group in the foreground."""
        return os.tcgetpgrp(self.fd)

    def ready(self, *names):
        """Wait until these programs have the terminal and run.

        A process that a shell has forked ignores ^Z until it has become its program,
        and a ^Z for a stopped job is forgotten when `fg' continues it.  A shell that
        waits has done all of its part: it gave the terminal away, and continued."""
        def are():
            group = self.foreground()
            members = [p for p in runlib.processes() if p.group == group]
            return group not in self.shells and \
                set(names) <= {p.comm for p in members} and \
                not any(p.state == "T" for p in members) and \
                (not self.shells or runlib.waits_for_child(self.shells[-1]))
        check(wait_until(are, 60), "%s did not get the terminal; on it is %r" % (
            " ".join(names), self.text[-500:]))

    def key(self, text, *names):
        self.ready(*names)
        self.type(text)

    def __enter__(self):
        return self

    def end(self):
        """Wait for the end of the first process; returns its status."""
        status = os.waitpid(self.pid, 0)[1]
        self.pid = None
        return status

    def __exit__(self, *exc):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.end()
        os.close(self.fd)
        ok = wait_until(lambda: not os.listdir(base), 60)
        if exc[0] is None:
            check(ok, "left behind: %s" % os.listdir(base))


def status(t, want):
    """$? at the prompt."""
    equal(t.ask("echo =$?=", r"=(\d+)=").group(1), str(want), "$?")
    t.wait(PROMPT)


@case
def interrupt():
    """^C reaches the command, and the shell sees that the command died of it."""
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; exec sleep 60'")
        t.wait("up\n")
        t.key("\x03", "sleep")
        t.wait(PROMPT)
        status(t, 130)
        t.line("$R -- bash -c 'trap \"echo caught; exit 7\" INT; echo up; %s'" % AWAKE)
        t.wait("up\n")
        t.key("\x03", "bash")
        t.wait("caught\n")
        t.wait(PROMPT)
        status(t, 7)
        # A loop ends, as it does without run.
        t.line("for i in 1 2 3; do $R -- sh -c 'echo up; exec sleep 60'; done")
        t.wait("up\n")
        t.key("\x03", "sleep")
        check("up" not in t.until_prompt(), "the loop goes on")


@case
def interrupt_script():
    """A script that runs it gets the ^C, too, and ends; if the command caught it and
    ended well, the script goes on."""
    script = os.path.join(work, "script")
    with open(script, "w") as f:
        f.write("#!/bin/bash\n%s -- sh -c 'echo up; exec sleep 60'\necho after\n" %
                RUN)
    with open(script + "2", "w") as f:
        f.write("#!/bin/bash\n%s -- bash -c 'trap \"exit 0\" INT; echo up; %s'\n"
                "echo after\n" % (RUN, AWAKE))
    with Terminal() as t:
        for name, goes_on in (("script", False), ("script2", True)):
            t.line("bash ./" + name)
            t.wait("up\n")
            t.ready("bash", "tensorfs")
            # Only while it waits for a command, ^C is the command's business first.
            check(wait_until(lambda: runlib.waits_for_child(t.foreground()), 60),
                  "the script does not wait")
            t.type("\x03")
            equal("after" in t.until_prompt(), goes_on, name + " goes on")


@case
def stop_and_continue():
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; read x; echo \"got $x\"; cat {}/d/f; exit 4'")
        t.wait("up\n")
        t.key("\x1a", "sh")
        t.wait("Stopped")
        t.wait(PROMPT)
        t.ask("jobs -l", "Stopped")
        t.wait(PROMPT)
        t.line("fg")
        t.ready("sh")
        t.type("hello\n")
        t.wait("got hello\ncontent\n")
        t.wait(PROMPT)
        status(t, 4)


@case
def background():
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; exec sleep 60' &")
        t.wait(UP_AND_PROMPT)
        t.ask("echo prompt=$((1+1))", "prompt=2\n")
        t.wait(PROMPT)
        t.line("fg")
        t.wait("sleep 60")
        # Started in the background, run itself has the terminal, not the command.
        t.key("\x1a", "tensorfs")
        t.wait("Stopped")
        t.wait(PROMPT)
        t.line("bg")
        t.wait(PROMPT)
        t.ask("jobs", "Running")
        t.wait(PROMPT)
        t.line("kill %1; wait")
        t.wait(r"Terminated|Exit 143")
        t.wait(PROMPT)


@case
def background_reads():
    """A command that reads in the background is stopped; `fg' gives it the terminal."""
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; read x; echo \"got $x\"' &")
        t.wait(UP_AND_PROMPT)

        def is_stopped():
            t.line("jobs")
            return "Stopped" in t.until_prompt()
        check(wait_until(is_stopped, 60), "it does not stop")
        t.line("fg")
        t.ready("sh")
        t.type("there\n")
        t.wait("got there\n")
        t.wait(PROMPT)
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
        t.key("\x1a", "sleep")
        t.wait("Stopped")
        t.wait("<%>")
        t.line("fg")
        t.key("\x03", "sleep")
        t.wait("<%>")
        t.line("suspend")
        t.wait("Stopped")
        t.wait(PROMPT)
        t.line("fg")
        t.wait("<%>")
        t.ask("echo in=$((2+2))", "in=4\n")
        t.line("exit 9")
        t.wait(PROMPT)
        status(t, 9)


@case
def pipelines():
    """The terminal is the pager's; the command gets it when it asks."""
    os.mkfifo(os.path.join(work, "go"))
    with Terminal() as t:
        t.line("$R -- sh -c 'echo one; read x <go; echo two' | "
               "(read a; read b < /dev/tty; echo \"=$a $b=\"; echo >go; cat)")
        t.ready("tensorfs")
        t.type("typed\n")
        t.wait("=one typed=\ntwo\n")
        t.wait(PROMPT)
        t.line("echo piped | $R -- sh -c 'cat; read x </dev/tty; echo \"=$x=\"' | cat")
        t.wait("piped\n")
        t.ready()
        t.type("asked\n")
        t.wait("=asked=\n")
        t.wait(PROMPT)
        t.line("$R -- sh -c 'echo up >&2; exec sleep 60' | cat; echo after")
        t.wait("up\n")
        t.key("\x1a", "tensorfs", "cat")
        t.wait("Stopped")
        t.wait(PROMPT)
        t.line("fg")
        t.key("\x03", "tensorfs", "cat")
        t.wait(PROMPT)


def check_modes(text):
    check(re.search(r"[^-]icanon\b", text) and re.search(r"[^-]echo\b", text),
          "the modes of the killed command stay: " + text)


@case
def modes_are_restored():
    """A command that is killed leaves a terminal that can be used."""
    with Terminal() as t:
        t.line("stty -a >/dev/null; $R -- sh -c 'stty -echo -icanon; echo up; "
               "kill -9 $$'; stty -a")
        t.wait("up\n")
        t.wait("speed")
        check_modes(t.until_prompt())
        t.line("$R -- sh -c 'stty -echo -icanon; echo up; exec sleep 60'; "
               "echo =$?=; stty -a")
        t.wait("up\n")
        os.kill(runlib.helpers(t.pid)["daemon"], signal.SIGKILL)
        t.wait("daemon was killed")
        t.wait("=1=\n")
        t.wait("speed")
        check_modes(t.until_prompt())


@case
def while_opening():
    """There is no command yet: run itself stops, goes on and ends."""
    slow = runlib.slow_gzip(os.path.join(work, "slow.gz"))
    with Terminal() as t:
        t.line("$T run --progress=plain --index=none slow.gz -- echo never")
        runlib.hold_opening(t.pid, slow, base)
        t.key("\x1a", "tensorfs")
        t.wait("Stopped")
        t.wait(PROMPT)
        t.line("fg")
        t.key("\x03", "tensorfs")
        text = t.until_prompt()
        check("never\n" not in text.replace("echo never\n", ""),
              "the command was run: " + text)
        status(t, 130)


@case
def without_a_shell():
    """As the first process on a terminal (ssh -t, script): no shell could continue it,
    so that ^Z stops nothing."""
    with Terminal(*RUN.split(), "--", "sh", "-c",
                  "echo up; read x; echo got $x; exec sleep 60") as t:
        t.wait("up\n")
        t.key("\x1a", "sh")
        # Read by the command after it was continued, however late that is.
        t.type("yes\n")
        t.wait("got yes\n")
        t.type("\x03")
        st = t.end()
        check(os.WIFSIGNALED(st) and os.WTERMSIG(st) == 2, "status %d" % st)


@case
def terminal_goes_away():
    """SIGHUP ends the command, and the run cleans up."""
    with Terminal() as t:
        t.line("$R -- sh -c 'echo up; exec sleep 60'")
        t.wait("up\n")
        os.kill(t.pid, signal.SIGHUP)
        t.end()


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
