# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests share: the program, mounts that always go away,
checks that say what was expected and what was got.

A test program registers cases with @case (or runs them with run_case) and ends
with main().  One line per case: "ok NAME" or "FAIL NAME: why"; "# ..." lines
are notices.  Exit status 1 if any case failed, 77 if there is no FUSE here.
Its arguments name the cases to run; parts of names do.
A test has no time limit of its own here: tests/run ends it.
"""
import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import fnmatch
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from checks import Failure, check, note, short

# Files that other languages' libraries wrote: Arrow, Parquet.
COLUMNS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "columns")
TENSORFS = os.path.abspath(os.environ.get("TENSORFS", "./tensorfs"))
ROOT = os.geteuid() == 0

_cases = []
_failed = []
_mounts = []          # live Mount objects
_dirs = []            # directories to remove
_children = []        # Popen objects of ours
_only = sys.argv[1:]
_leaves_chosen = bool(_only)  # cases are chosen by run_case, not by main
_ran = 0


def _apart():
    """Into a mount namespace of our own, if we may.  One that another test makes
    meanwhile would have a copy of our mounts, and while there is a copy their
    daemons stay (as they should) and keep our files open."""
    new_namespace, slave, recursive = 0x20000, 1 << 19, 1 << 14
    libc = ctypes.CDLL(None)
    if ROOT and libc.unshare(new_namespace) == 0:
        libc.mount(b"none", b"/", None, ctypes.c_ulong(slave | recursive), None)


_apart()


def skip(reason):
    """Only the lack of /dev/fuse excuses a test, and not in CI."""
    if not os.path.exists("/dev/fuse") and not os.environ.get("CI"):
        note("skipped: " + reason)
        sys.exit(77)
    print("FAIL setup: " + reason, flush=True)
    sys.exit(1)


def run(*argv, timeout=None, input=None, env=None, preexec=None, text=True):
    """Run a command; never raises for its status.  One that hangs is ended with its
    test, by tests/run, which then says where it stands; `timeout` is for who goes on
    without it (status 124)."""
    p = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE,
                         stdin=subprocess.PIPE if input else
                         subprocess.DEVNULL, env=env, preexec_fn=preexec)
    try:
        out, err = p.communicate(input, timeout=timeout)
        code = p.returncode
    except subprocess.TimeoutExpired:
        p.kill()
        try:
            out, err = p.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            out, err = b"", b""
        code, err = 124, err + b"[killed after %d s]" % timeout
    if text:
        out = out.decode("utf-8", "replace")
    return subprocess.CompletedProcess(argv, code, out,
                                       err.decode("utf-8", "replace"))


def tensorfs(*argv, **kw):
    return run(TENSORFS, *argv, **kw)


def full():
    """Is this contrib/check --full?  Also when a test is run by hand."""
    return os.environ.get("TENSORFS_TIER", "full") == "full"


def rounds(n):
    """How often something is killed, of `n` times in the full tier.  Sanitizers are
    slow to start, and see nothing of what SIGKILL does."""
    if os.environ.get("TENSORFS_SANITIZED") or not full():
        return max(1, n // 4)
    return n


@contextlib.contextmanager
def _locked(path):
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def fixture(name, make):
    """The directory of what several tests read and none changes: make(directory)
    fills it, once for all tests of a run."""
    where = os.path.join(os.environ.get("TENSORFS_FIXTURES") or _base(), name)
    with _locked(where + ".lock"):
        if not os.path.exists(where):
            partial = tempfile.mkdtemp(prefix=name, dir=os.path.dirname(where))
            os.chmod(partial, 0o755)
            make(partial)
            os.rename(partial, where)
    return where


def our_words(said):
    """What a command said.  A sanitizer tells of each signal that ends a process, also of
    the child that libhdf5 may kill in the program's place."""
    return re.sub(r"^(Address|Thread)Sanitizer:DEADLYSIGNAL\n", "", said, flags=re.M)


def exits(p, codes, what):
    """The exit status of a finished command, and a sentence if it failed."""
    if isinstance(codes, int):
        codes = (codes,)
    if p.returncode not in codes:
        raise Failure("%s: expected exit %s, got %d; stderr: %s" % (
            what, "/".join(map(str, codes)), p.returncode,
            short(p.stderr.strip())))
    if p.returncode in (2, 3, 4, 5):
        check(p.stderr.strip(), "%s: exit %d without a word on stderr" % (
            what, p.returncode))
        check("Sanitizer" not in p.stderr, "%s: %s" % (what, p.stderr))
    return p


def workdir():
    d = tempfile.mkdtemp(prefix="tensorfs-test-",
                         dir=os.environ.get("TMPDIR", "/tmp"))
    _dirs.append(d)
    return d


def mount_line(path):
    """(type, source, options) of the topmost mount at path, or None."""
    found = None
    with open("/proc/self/mountinfo", encoding="utf-8",
              errors="surrogateescape") as f:
        for line in f:
            a, b = line.rstrip("\n").split(" - ", 1)
            fields, tail = a.split(" "), b.split(" ")
            where = fields[4].encode("latin-1", "replace").decode(
                "unicode_escape", "replace")
            if where == path or fields[4] == path:
                found = (tail[0], tail[1],
                         set((fields[5] + "," + tail[2]).split(",")))
    return found


def wait_until(f, seconds, step=0.01):
    end = time.monotonic() + seconds
    while True:
        if f():
            return True
        if time.monotonic() > end:
            return False
        time.sleep(step)


def pids_with(arg):
    """Processes of the program that have `arg` among their arguments, without the
    small one that reads files ahead for the daemon."""
    found = []
    for p in os.listdir("/proc"):
        if not p.isdigit() or int(p) == os.getpid():
            continue
        try:
            with open("/proc/%s/cmdline" % p, "rb") as f:
                argv = f.read().split(b"\0")
            exe = os.readlink("/proc/%s/exe" % p)
            with open("/proc/%s/comm" % p) as f:
                comm = f.read()
        except OSError:
            continue
        if arg.encode() in argv and comm != "tensorfs-ahead\n" and \
                os.path.basename(exe).startswith("tensorfs"):
            found.append(int(p))
    return sorted(found)


def daemons_of(mnt):
    """The same; a daemon that makes its small one has that one's name for a moment."""
    wait_until(lambda: pids_with(mnt), 60)
    return pids_with(mnt)


def parent(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def rss(pid):
    """Resident bytes of a process."""
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def memory(pid):
    """Bytes of a process that are nobody else's, swapped out or not: what the kernel
    takes back of files, it takes when it likes."""
    with open("/proc/%d/status" % pid) as f:
        lines = [line.split() for line in f]
    return sum(int(x[1]) * 1024 for x in lines if x[0] in ("RssAnon:", "VmSwap:"))


def cpu_time(pid):
    """Seconds of processor time of a process: to be kept waiting adds nothing."""
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_time_of_children():
    """The same of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stop(p, still=lambda: True):
    """Stop a child of ours, at what still() says.  TooFast: it has come further."""
    p.send_signal(signal.SIGSTOP)
    if p.poll() is None:
        os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    if p.poll() is None and still():
        return
    p.send_signal(signal.SIGCONT)
    p.communicate()
    raise TooFast


def limit_files(n):

    def f():
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
    return f


def timed_mount(m):
    """Mount it; seconds of processor time that this took."""
    before = cpu_time_of_children()
    m.__enter__()
    return cpu_time_of_children() - before + cpu_time(m.pid)


class Mount:
    """`tensorfs mount SRC MNT`, unmounted at the end whatever happens."""

    def __init__(self, src, mnt=None, opts=(), foreground=False, nofile=0,
                 sources=None, env=None):
        self.src = sources or [src]
        self.own = mnt is None
        self.path = mnt or tempfile.mkdtemp(prefix="mnt-", dir=_base())
        self.argv = [TENSORFS, "mount"] + list(opts) + \
            (["-f"] if foreground else []) + list(self.src) + [self.path]
        self.foreground, self.nofile, self.env = foreground, nofile, env
        self.proc = self._pid = None

    def __enter__(self):
        pre = limit_files(self.nofile) if self.nofile else None
        _mounts.append(self)
        if self.foreground:
            self.proc = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, preexec_fn=pre,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=self.env)
            _children.append(self.proc)
            wait_until(lambda: mount_line(self.path) or
                       self.proc.poll() is not None, 30)
            if not mount_line(self.path):
                code = self.proc.poll()
                self.__exit__(None, None, None)
                raise Failure("foreground mount of %s did not come up "
                              "(exit %s)" % (self.src, code))
            return self
        p = run(*self.argv, preexec=pre, env=self.env)
        if p.returncode != 0 or not mount_line(self.path):
            line = mount_line(self.path)
            self.__exit__(None, None, None)
            raise Failure("%s: exit %d, %s; stderr: %s" % (
                " ".join(self.argv[1:]), p.returncode,
                "mounted" if line else "nothing mounted",
                short(p.stderr.strip())))
        return self

    @property
    def pid(self):
        """The daemon's; a Failure when it cannot be found."""
        if self._pid is None and self.proc:
            self._pid = self.proc.pid
        if self._pid is None:
            pids = daemons_of(self.path)
            # A helper that has not begun yet looks as the daemon that forked it, and one
            # that has ended has no parent.
            pids = [p for p in pids if parent(p) not in pids + [0]]
            if not pids:
                raise Failure("no daemon found for the mount " + self.path)
            self._pid = pids[-1]
        return self._pid

    def __exit__(self, *exc):
        if self in _mounts:
            _mounts.remove(self)
        if self.proc is not None and self.proc.poll() is None:
            self.proc.send_signal(signal.SIGCONT)
        if mount_line(self.path):
            p = tensorfs("umount", self.path, timeout=30)
            if mount_line(self.path):
                if exc and exc[0] is None:
                    note("umount %s: exit %d %s" % (
                        self.path, p.returncode, p.stderr.strip()))
                force_unmount(self.path)
        for pid in pids_with(self.path):
            if not wait_until(lambda: not os.path.exists("/proc/%d" % pid) or
                              zombie(pid), 60):
                note("daemon %d outlived its mount %s" % (pid, self.path))
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass  # just now it has gone
        if self.proc is not None:
            try:
                self.proc.wait(60)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        if self.own:
            try:
                os.rmdir(self.path)
            except OSError:
                pass
        return False

    def __truediv__(self, rel):
        return os.path.join(self.path, rel)

    def stats(self):
        p = exits(tensorfs("stats", "--json", self.path), 0, "stats --json")
        return json.loads(p.stdout)


def zombie(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def force_unmount(path):
    """Whatever it takes; a dead mount too."""
    for argv in (["fusermount3", "-u", path], ["umount", path],
                 ["fusermount3", "-uz", path], ["umount", "-l", path]):
        if not mount_line(path):
            return
        run(*argv, timeout=20)


def _base():
    if not _dirs:
        workdir()
    return _dirs[0]


def _gaps():
    """Cases of what is wanted and not built yet: patterns, a line each."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "known-gaps"), encoding="utf-8") as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [line for line in lines if line]


_GAPS = _gaps()


def _is_gap(name):
    return any(fnmatch.fnmatchcase(name, g) for g in _GAPS)


class Missing(Exception):
    """What a case needs is not installed here: a notice, but a failure in CI."""


class TooFast(Exception):
    """What a case wanted to disturb was done already: it begins anew."""


def attempt(f, *args, **kw):
    for left in range(8, -1, -1):
        try:
            return f(*args, **kw)
        except TooFast:
            if not left:
                raise Failure("it was too fast, each time")


def _wanted(name):
    return not _only or any(o in name for o in _only)


def run_case(name, f, *args, group=False, **kw):
    """Run one case now and print its line.  True: passed; None: a known gap,
    Missing, or not among the cases that were asked for (of which a group has
    several)."""
    global _ran
    if _leaves_chosen and not group and not _wanted(name):
        return None
    _ran += not group
    try:
        attempt(f, *args, **kw)
    except Exception as e:
        if isinstance(e, Missing) and not os.environ.get("CI"):
            note("skipped %s: not installed: %s" % (name, e))
            return None
        if isinstance(e, Missing):
            why = "not installed: %s" % e
        elif isinstance(e, Failure):
            why = str(e)
        else:
            tb = traceback.extract_tb(e.__traceback__)[-1]
            why = "%s: %s (%s:%d)" % (type(e).__name__, e,
                                      os.path.basename(tb.filename),
                                      tb.lineno)
        if _is_gap(name):
            print("# known gap %s: %s" % (name, why.replace("\n", " | ")),
                  flush=True)
            return None
        _failed.append(name)
        print("FAIL %s: %s" % (name, why.replace("\n", " | ")), flush=True)
        return False
    if _is_gap(name):
        _failed.append(name)
        print("FAIL %s: works now: take it out of known-gaps" % name,
              flush=True)
        return False
    print("ok " + name, flush=True)
    return True


def absent(name, what):
    """A case that cannot run."""
    def f():
        raise Missing(what)
    run_case(name, f)


def with_mount(name, f, *args, **kw):
    """Run f(mount), which runs cases; a mount that fails is a failed case."""
    def g():
        with Mount(*args, **kw) as m:
            f(m)
    return run_case(name, g, group=True)


def case(f):
    _cases.append(f)
    return f


def cleanup():
    for m in list(_mounts):
        for pid in pids_with(m.path):
            try:
                os.kill(pid, signal.SIGCONT)
            except OSError:
                pass
        m.__exit__(None, None, None)
    for p in _children:
        if p.poll() is None:
            p.kill()
    for d in _dirs:
        with open("/proc/self/mountinfo") as f:
            inside = [line.split()[4] for line in f if d in line]
        for m in inside:
            force_unmount(m)
        subprocess.call(["chmod", "-R", "u+rwX", d],
                        stderr=subprocess.DEVNULL)
        shutil.rmtree(d, ignore_errors=True)
    _dirs.clear()


def setup(fuse=True):
    """Call first: FUSE or skip, cleanup on every way out."""
    if fuse and not os.path.exists("/dev/fuse"):
        skip("/dev/fuse is missing")
    if not os.access(TENSORFS, os.X_OK):
        print("FAIL setup: %s is not a program (set $TENSORFS)" % TENSORFS)
        sys.exit(1)
    atexit.register(cleanup)
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, lambda n, _f: sys.exit(128 + n))
    # Ignored where a shell without job control started us in the background.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # tests/run asks for this when a test has not ended within its limit.
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    return workdir()


def main():
    """Run the registered cases, or those of them that were asked for; then end."""
    global _leaves_chosen
    names = [(f.__name__.strip("_"), f) for f in _cases]
    # What was asked for may be a case that a registered one runs.
    _leaves_chosen = bool(_only) and not any(_wanted(n) for n, _ in names)
    for name, f in names:
        if _leaves_chosen or _wanted(name):
            run_case(name, f, group=_leaves_chosen)
    cleanup()
    if _only and not _ran:
        print("FAIL setup: there is no case %s" % " ".join(_only))
        sys.exit(1)
    sys.exit(1 if _failed else 0)
