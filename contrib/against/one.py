# SPDX-License-Identifier: BSD-2-Clause
"""One source: mounted, read and compared by a process that may hang or die."""
import json
import os
import resource
import select
import signal
import time

from against import found, kinds, mounting
from against.mounting import READY, SILENT

# Results for a whole source, the worst first.  Those of FAULTS are tensorfs's.
CRASH, HANG, MEMORY, DIFFERS = "crash", "hang", "memory", "differs"
REFUSED, READER, BOTH = "refused", "reader refuses", "refused by both"
PART, EQUAL = "equal in part", "equal"
NO_READER, NO_MOUNT, FAILED = "no reader", "no mount", "not compared"
FAULTS = (CRASH, HANG, MEMORY, DIFFERS)

USAGE, MOUNT = 2, 4     # exit statuses of tensorfs mount
RESTARTS = 20           # of the process that compares, when its reader was killed
READER_TIMES = 8        # as long as a mount a reader may take
WALKER_BYTES = 6 << 30  # memory of its own that this process may use
SCAN_RATE = 5 << 20     # bytes a second that the first pass of an archive has to do


class Usage(Exception):
    """tensorfs does not take the options that it was given."""


class Settings:
    """The options of a run, which are the same for all its sources."""

    def __init__(self, tensorfs, options=(), timeout=120, memory=1 << 30,
                 limit=1 << 30):
        self.tensorfs, self.options = tensorfs, list(options)
        self.timeout, self.memory, self.limit = timeout, memory, limit


class Result:
    def __init__(self, path, kind):
        self.path, self.kind, self.reader = path, kind, ""
        self.result, self.why, self.stacks = EQUAL, "", ""
        self.counts = {}        # {result of an object: number}
        self.found = []         # (result, object, sentence) of those that are not equal
        self.notes = []
        self.memory, self.seconds, self.status = 0, 0.0, 0

    def say(self, result, why):
        self.result, self.why = result, why
        return self


# --- the process that compares --------------------------------------------------------

def _limit():
    mounting.prctl(mounting.SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or hard > WALKER_BYTES:
        resource.setrlimit(resource.RLIMIT_DATA, (WALKER_BYTES, hard))


def _read_everything(c):
    """Without a reader: that all of it can be read, whatever it is."""
    from against import trees
    for path, (at, st) in sorted(trees.walk(c).items()):
        if trees.stat.S_ISREG(st.st_mode):
            c.judge(path, lambda: trees.drain_mount(c, at, 0))


def _compare(c, module, mode):
    """mode: compare, probe (does the reader open it at all?), or read."""
    os.chdir(c.scratch)     # what a reader looks for in the working directory
    if mode != "read":
        c.send(reader=module.load_for(c.source) if hasattr(module, "load_for")
               else module.load())
    try:
        if mode == "probe":
            c.ask("/", module.probe, c.source)
        elif mode == "read":
            _read_everything(c)
        else:
            module.compare(c)
        c.send(end="done")
    except found.ReaderFails as e:
        c.send(end="reader", why=str(e))


def _child(pipe, job, module, mode, judged):
    c = found.Found(pipe, job.daemon.point if job.daemon else "", job.source,
                    job.scratch, job.settings.limit, judged)
    try:
        _limit()
        _compare(c, module, mode)
    except found.NoReader as e:
        c.send(end="no reader", why=str(e))
    except found.MountGone:
        c.send(end="gone")
    except found.MountFails as e:
        c.result(found.UNREADABLE, "/", str(e))
        c.send(end="done")
    except MemoryError:
        c.send(end="reader", why="the comparison is out of memory")
    except BaseException as e:
        c.send(end="fault", why=found.fault_of(e))


def _fork(job, module, mode, judged):
    """(pid, pidfd, the pipe's end that it writes to)."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, os.pidfd_open(pid), read
    try:
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_DFL)
        os.close(read)
        devnull = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(devnull, fd)
        _child(write, job, module, mode, judged)
    finally:
        os._exit(0)


# --- the process that supervises it ---------------------------------------------------

class Job:
    """The work on one source."""

    def __init__(self, settings, source, kind):
        self.settings, self.source = settings, os.path.abspath(source)
        self.module = kinds.KINDS[kind]
        self.result = Result(source, kind)
        self.daemon = None
        self.scratch = None
        self.judged = set()
        self.at, self.on = "reader", "/"    # what the other process is doing

    # --- mounting ---------------------------------------------------------------

    def mount(self):
        """True: it is mounted; else the result says why not."""
        s, r = self.settings, self.result
        self.daemon = mounting.Daemon(s.tensorfs, self.source, s.options, s.memory // 4)
        self.scratch = self.daemon.scratch
        try:
            self.daemon.start()
        except OSError as e:
            raise Usage("%s cannot be executed: %s" % (s.tensorfs, e.strerror)) from e
        size = os.path.getsize(self.source) if os.path.isfile(self.source) else 0
        how = self.daemon.wait_ready(s.timeout + size / SCAN_RATE, self.is_too_much)
        if self.is_too_much():
            self.too_much()
        elif how == READY:
            return True
        elif how == SILENT:
            r.say(HANG, "it was not mounted after %d seconds" % s.timeout)
            r.stacks = self.daemon.stacks()
        else:   # ENDED
            self.refused(self.daemon.process.wait())
        return False

    def refused(self, status):
        """The daemon has ended before there was a mount."""
        r, said = self.result, self.daemon.sentence()
        r.status = status
        if status < 0:
            r.say(CRASH, "%s at mount" % mounting.signal_name(-status))
        elif status == USAGE:
            raise Usage(said)
        elif status == MOUNT:
            r.say(NO_MOUNT, said)
        else:
            r.say(REFUSED, said or "exit status %d" % status)

    def is_too_much(self):
        return self.daemon.memory() > self.settings.memory

    def too_much(self):
        self.result.say(MEMORY, "%d MiB were resident, %d are allowed (--memory)" % (
            self.daemon.memory() >> 20, self.settings.memory >> 20))

    # --- comparing --------------------------------------------------------------

    def take(self, line):
        """A line of the other process; how it ended, if it says so."""
        r, m = self.result, json.loads(line)
        if "at" in m:
            self.at, self.on = m["at"], m["on"]
        elif "found" in m:
            r.counts[m["found"]] = r.counts.get(m["found"], 0) + 1
            self.judged.add(m["on"])
            if m.get("why"):
                r.found.append((m["found"], m["on"], m["why"]))
        elif "note" in m:
            if m["note"] not in r.notes:
                r.notes.append(m["note"])
        elif "reader" in m:
            r.reader = m["reader"]
        return m if "end" in m else None

    def watch(self, mode):
        """Run the comparison once; how it ended: the message `end` of it, or one of
        ours: hang, memory, dead (the daemon), killed (the comparison)."""
        pid, pidfd, pipe = _fork(self, self.module, mode, self.judged)
        try:
            return self._watch(pidfd, pipe)
        finally:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            self._reap(pid)
            os.close(pidfd)
            os.close(pipe)

    def _watch(self, pidfd, pipe):
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        if self.daemon:
            poll.register(self.daemon.pidfd, select.POLLIN)
        rest, heard = b"", time.monotonic()
        while True:
            events = dict(poll.poll(250))
            if pipe in events:
                data = os.read(pipe, 1 << 16)
                if not data:
                    return {"end": "killed"}
                *lines, rest = (rest + data).split(b"\n")
                heard = time.monotonic()
                for line in lines:
                    end = self.take(line)
                    if end:
                        return end
            elif self.daemon and self.daemon.pidfd in events:
                return {"end": "dead"}
            elif time.monotonic() - heard > self.patience():
                return {"end": "hang"}
            if self.daemon and self.is_too_much():
                return {"end": "memory"}

    def patience(self):
        """Seconds without a word: a reader may have to extract a whole image first."""
        return self.settings.timeout * (1 if self.at == "mount" else READER_TIMES)

    def _reap(self, pid):
        """It may be waiting for a daemon that does not answer."""
        end = time.monotonic() + 2
        while time.monotonic() < end:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(0.02)  # a poll: nothing depends on how long it is
        if self.daemon:
            self.daemon.unmount()
            if self.daemon.status() is None:
                self.daemon.process.kill()
        os.waitpid(pid, 0)

    def compare(self, mode):
        """Until all is compared, also when the reader dies of an object."""
        for _ in range(RESTARTS):
            end = self.watch(mode)
            how = end["end"]
            if how in ("killed", "hang") and self.at == "reader":
                if self.on in self.judged:
                    return end
                self.judged.add(self.on)
                self.take(json.dumps({
                    "found": found.NO_ANSWER, "on": self.on,
                    "why": "the reader was killed" if how == "killed" else
                           "the reader does not answer"}))
                if mode == "compare" and self.on != "/":
                    continue
                return {"end": "reader", "why": "the reader %s" % (
                    "was killed" if how == "killed" else "does not answer")}
            return end
        return {"end": "reader", "why": "the reader was killed %d times" % RESTARTS}

    # --- results ----------------------------------------------------------------

    def judge(self, end):
        """The result of a source that was mounted, from how the comparison ended."""
        r, how = self.result, end["end"]
        if how == "memory":
            self.too_much()
        elif how in ("dead", "gone"):
            self.died()
        elif how == "hang":
            r.say(HANG, "no answer for %d seconds while %s was read" % (
                self.settings.timeout, self.on))
            r.stacks = self.daemon.stacks()
        elif how == "reader":
            r.say(READER, end["why"])
        elif how == "no reader":
            r.say(NO_READER, end["why"])
        elif how in ("fault", "killed"):
            r.say(FAILED, end.get("why", "the comparison was killed at " + self.on))
        else:
            self.summary()

    def died(self):
        r = self.result
        try:
            status = self.daemon.process.wait(10)
        except mounting.subprocess.TimeoutExpired:
            status = None   # a wrapper is still there, its daemon is not
        r.status = status or 0
        how = "it is gone" if status is None else \
            mounting.signal_name(-status) if status < 0 else "exit status %d" % status
        r.say(CRASH, "%s while %s was read" % (how, self.on))

    def summary(self):
        n = self.result.counts
        r = self.result
        worst = next((k for k in found.ORDER if n.get(k)), None)
        if worst == found.DIFFERS:
            r.say(DIFFERS, "")
        elif worst == found.FAILED:
            r.say(FAILED, "")
        elif worst and not n.get(found.EQUAL):
            r.say(*self.nothing_equal(worst))
        elif worst in (found.UNREADABLE, found.NOT_SHOWN, found.NO_ANSWER):
            r.say(PART, "")

    @staticmethod
    def nothing_equal(worst):
        """The result where no object could be compared, and why."""
        if worst in (found.UNREADABLE, found.NOT_SHOWN):
            return REFUSED, "it is mounted, but shows nothing that could be compared"
        if worst == found.NO_ANSWER:
            return READER, "the reader reads nothing of it"
        return BOTH, "neither reads anything of it"

    def run(self):
        """The Result."""
        begin = time.monotonic()
        try:
            if self.mount():
                end = self.compare("compare")
                if end["end"] == "no reader":
                    self.judge(end)
                    end = self.compare("read")
                    if end["end"] != "done" or self.result.counts:
                        self.unread(end)
                else:
                    self.judge(end)
            elif self.result.result == REFUSED:
                self.probe()
        finally:
            if self.daemon:
                self.result.memory = self.daemon.memory()
                self.daemon.end()
        self.result.seconds = time.monotonic() - begin
        return self.result

    def unread(self, end):
        """Judges a source without a reader: only whether all of it could be read."""
        if end["end"] != "done":
            self.judge(end)
        bad = self.result.counts.pop(found.UNREADABLE, 0)
        self.result.counts.clear()
        if bad:
            self.result.notes.append("%d files cannot be read" % bad)

    def probe(self):
        """tensorfs refused it.  Does the reader, too?"""
        r = self.result
        self.daemon.end()
        highest = self.daemon.highest
        self.daemon = None
        self.scratch = "/"
        end = self.compare("probe")
        r.counts.clear()
        r.found.clear()
        if end["end"] == "reader":
            r.say(BOTH, "%s; %s" % (r.why, end["why"]))
        elif end["end"] == "no reader":
            r.notes.append("no reader here: " + end["why"])
        r.memory = highest


def stacks_of_crash(settings, source, kind):
    """Where a daemon is when it crashes: once more, with gdb."""
    job = Job(settings, source, kind)
    try:
        if job.mount() and job.daemon.debug():
            if job.compare("compare")["end"] in ("dead", "gone", "hang"):
                return job.daemon.debugged()
    except (Usage, RuntimeError):
        pass
    finally:
        if job.daemon:
            job.daemon.end()
    return ""


def run(settings, source, kind):
    """Compare one source."""
    mounting.prctl(mounting.SET_CHILD_SUBREAPER, 1)
    result = Job(settings, source, kind).run()
    if result.result == CRASH and not result.stacks and \
            result.status != -signal.SIGKILL:
        result.stacks = stacks_of_crash(settings, source, kind)
    return result

