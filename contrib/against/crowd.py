# SPDX-License-Identifier: BSD-2-Clause
"""Several sources at a time, each in a process that cleans up after it, whatever ends
this program."""
import json
import os
import select
import signal
import sys

from against import mounting, one

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal that ends programs came."""


class Stop(Exception):
    """Nothing can be compared: a sentence."""


def _interrupt(number, _frame):
    for s in SIGNALS:
        signal.signal(s, signal.SIG_IGN)    # what follows is the cleaning up
    raise Interrupted(number)


def _supervise(pipe, settings, source, kind):
    """In a process of its own: one source; the result as JSON."""
    os.setpgid(0, 0)    # the terminal's signals come to the first process only
    mounting.prctl(mounting.SET_PDEATHSIG, signal.SIGTERM)
    for s in SIGNALS:
        signal.signal(s, _interrupt)
    try:
        out = vars(one.run(settings, source, kind))
    except Interrupted:
        return
    except one.Usage as e:
        out = {"stop": str(e)}
    except BaseException as e:
        r = one.Result(source, kind).say(one.FAILED, one.found.fault_of(e))
        out = vars(r)
    data = json.dumps(out).encode("ascii")
    while data:
        data = data[os.write(pipe, data):]


class Crowd:
    """Supervisors, at most `jobs` at a time."""

    def __init__(self, settings, jobs):
        self.settings, self.jobs = settings, jobs
        self.running = {}   # pipe: [pid, number of the source, data]
        self.signal = None

    def _start(self, number, source, kind):
        read, write = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.close(read)
                _supervise(write, self.settings, source, kind)
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        self.running[read] = [pid, number, b""]

    def _finish(self, pipe):
        pid, number, data = self.running.pop(pipe)
        os.close(pipe)
        os.waitpid(pid, 0)
        if self.signal:
            return number, None
        if not data:
            raise Stop("the process for one of the sources was killed")
        out = json.loads(data)
        if "stop" in out:
            raise Stop(out["stop"])
        result = one.Result(out["path"], out["kind"])
        vars(result).update(out)
        return number, result

    def _caught(self, number, _frame):
        self.signal = number
        for pid, _, _ in self.running.values():
            os.kill(pid, signal.SIGTERM)

    def results(self, sources):
        """(number, Result) of each (source, kind), as they become known."""
        old = {s: signal.signal(s, self._caught) for s in SIGNALS}
        waiting = list(enumerate(sources))[::-1]
        try:
            while (waiting and not self.signal) or self.running:
                while waiting and len(self.running) < self.jobs and not self.signal:
                    number, (source, kind) = waiting.pop()
                    self._start(number, source, kind)
                for pipe in select.select(list(self.running), [], [], 1)[0]:
                    data = os.read(pipe, 1 << 16)
                    if data:
                        self.running[pipe][2] += data
                        continue
                    number, result = self._finish(pipe)
                    if result:
                        yield number, result
        finally:
            self._end()
            for s, handler in old.items():
                signal.signal(s, handler)

    def _end(self):
        """After an error there may be others: they clean up."""
        for pid, _, _ in self.running.values():
            os.kill(pid, signal.SIGTERM)
        for pipe, (pid, _, _) in self.running.items():
            while os.read(pipe, 1 << 16):
                pass
            os.close(pipe)
            os.waitpid(pid, 0)
        self.running.clear()
