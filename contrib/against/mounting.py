# SPDX-License-Identifier: BSD-2-Clause
"""A mount of one source in a directory of its own, and the daemon that serves it.

The daemon is a child in the foreground, so that how it ends is known.  end() leaves
nothing: no mount, no process, no file.
"""
import ctypes
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

SET_PDEATHSIG, SET_CHILD_SUBREAPER, SET_PTRACER = 1, 36, 0x59616d61
libc = ctypes.CDLL(None, use_errno=True)
ENDING = 10         # seconds that a daemon has to unmount when it is asked to
GDB = 60            # seconds that gdb has to print stacks

# How a mount came out.
READY, ENDED, SILENT = "ready", "ended", "silent"


def prctl(option, value):
    libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def before_exec():
    """In a child of ours: it ends when we do, and leaves no core file."""
    prctl(SET_PDEATHSIG, signal.SIGTERM)
    prctl(SET_PTRACER, ctypes.c_ulong(-1).value)  # gdb may look at it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def is_mounted(path):
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        points = [line.split(" ")[4] for line in f]
    return path in (re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), p)
                    for p in points)


def children():
    """Processes whose parent we are."""
    out = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/children" % task) as f:
                out += map(int, f.read().split())
        except OSError:
            pass  # the thread has ended, or the kernel has no such file
    return out


class Daemon:
    """tensorfs mount -f SOURCE; `options` are words for its command line."""

    def __init__(self, program, source, options, cache):
        # As mountinfo spells it, also where TMPDIR is a symbolic link.
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="tensorfs-against-"))
        self.point = os.path.join(self.top, "mnt")
        self.scratch = os.path.join(self.top, "scratch")
        os.mkdir(self.point)
        os.mkdir(self.scratch)
        self.fifo = os.path.join(self.top, "ready")
        os.mkfifo(self.fifo)
        self.ready = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.said = open(os.path.join(self.top, "said"), "w+b")
        self.argv = [program, "mount", "--foreground", "--quiet", "--index=none",
                     "--cache-size=%d" % cache, "--notify_pipe=" + self.fifo,
                     *options, source, self.point]
        self.process = self.pidfd = self.debugger = None
        self.highest = 0
        self.ours = set(children())     # processes that are not the daemon's

    def start(self):
        """OSError: the program cannot be executed."""
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said,
            preexec_fn=before_exec)
        self.pidfd = os.pidfd_open(self.process.pid)

    def wait_ready(self, seconds, tick):
        """READY, ENDED, or SILENT: nothing was heard in time.  tick() is called now and
        then, and says whether to give up."""
        poll = select.poll()
        poll.register(self.ready, select.POLLIN)
        poll.register(self.pidfd, select.POLLIN)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not tick():
            for fd, _ in poll.poll(250):
                if fd == self.pidfd:
                    return ENDED
                if os.read(self.ready, 16).startswith(b"s"):
                    return READY
        return SILENT

    def memory(self):
        """The most bytes that were resident so far."""
        if not self.process:
            return 0
        try:
            with open("/proc/%d/status" % self.process.pid) as f:
                for line in f:
                    if line.startswith("VmHWM:"):
                        self.highest = max(self.highest, int(line.split()[1]) << 10)
        except OSError:
            pass  # it has ended
        return self.highest

    def status(self):
        """The exit status, negative for a signal; None: it runs."""
        return self.process.poll()

    def sentence(self):
        """What it said last on standard error, without its own name."""
        self.said.flush()
        self.said.seek(0)
        lines = self.said.read().decode("utf-8", "replace").strip().splitlines()
        lines = [x for x in lines if not x.startswith("Try 'tensorfs")]
        text = lines[-1] if lines else ""
        return re.sub(r"^tensorfs(?: mount)?: ", "", text)

    # --- stacks -----------------------------------------------------------------

    def stacks(self):
        """Where all threads are, as gdb says; "" without gdb."""
        gdb = shutil.which("gdb")
        if not gdb or self.status() is not None:
            return ""
        try:
            p = subprocess.run(
                [gdb, "-nx", "-batch", "-p", str(self.process.pid), "-ex",
                 "thread apply all bt"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=GDB)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return frames_of(p.stdout)

    def debug(self):
        """Let gdb wait for the signal that ends the daemon.  False: no gdb."""
        gdb = shutil.which("gdb")
        if not gdb:
            return False
        self.debugger = subprocess.Popen(
            [gdb, "-nx", "-batch", "-p", str(self.process.pid),
             "-ex", "handle SIGPIPE SIGUSR1 SIGUSR2 nostop noprint pass",
             "-ex", "continue", "-ex", "bt", "-ex", "thread apply all bt"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, preexec_fn=before_exec)
        return True

    def debugged(self):
        """What gdb printed when the daemon was ended by a signal."""
        try:
            out, _ = self.debugger.communicate(timeout=GDB)
        except subprocess.TimeoutExpired:
            return ""
        return frames_of(out)

    # --- the end ----------------------------------------------------------------

    def end(self):
        """Unmount, and remove all that there is."""
        if self.debugger and self.debugger.poll() is None:
            self.debugger.kill()
            self.debugger.wait()
        if self.process and self.status() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(ENDING)
            except subprocess.TimeoutExpired:
                pass
        self.unmount()
        if self.process and self.status() is None:
            self.process.kill()
            self.process.wait()
        self._end_others()
        self.unmount()
        for fd in (self.ready, self.pidfd):
            if fd is not None:
                os.close(fd)
        self.said.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def unmount(self):
        for argv in (["fusermount3", "-uqz", self.point], ["umount", "-l", self.point]):
            if not is_mounted(self.point):
                return
            try:
                subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=ENDING,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            except (OSError, subprocess.TimeoutExpired):
                pass  # the next way

    def _end_others(self):
        """Processes that the daemon left to us, if we are their reaper."""
        for pid in set(children()) - self.ours:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass  # it has ended by itself


def frames_of(printed):
    """The frames of gdb's output."""
    lines = printed.decode("utf-8", "replace").splitlines()
    wanted = ("Thread ", "#", "Program received", "Program terminated")
    return "\n".join(x for x in lines if x.startswith(wanted))
