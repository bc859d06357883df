#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tensorfs stats --wait: ends when counters are large enough, or says what they are."""
import ctypes
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import numpy as np

import lib
from checks import check, equal, read
from lib import Mount, case, exits, force_unmount, tensorfs, wait_until

work = source = None


def says(p, *sentences):
    for s in sentences:
        check(s in p.stderr, "stderr has no %r: %s" % (s, p.stderr))


def asked(m):
    """How often the daemon was asked for an extended attribute, with this time.  (The
    function of Python may ask twice.)"""
    libc, buf = ctypes.CDLL(None), ctypes.create_string_buffer(1 << 16)
    n = libc.getxattr(os.fsencode(m.path), b"user.tensorfs.stats", buf, len(buf))
    return json.loads(buf.raw[:n])["xattr_requests"]


def waiting(m, *argv):
    """`stats --wait` in the background, after it was answered that it has to wait."""
    before, ours = asked(m), 0

    def by_others():
        nonlocal ours
        ours += 1
        return asked(m) - before - ours

    p = subprocess.Popen([lib.TENSORFS, "stats", *argv, m.path], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lib._children.append(p)
    check(wait_until(lambda: by_others() >= 2, 60), "it does not ask again")
    return p


@case
def reached_already():
    with Mount(source) as m:
        read(m / "data/array.bin")
        p = exits(tensorfs("stats", "--wait", "read_requests=0", "--json", m.path), 0,
                  "0 or more")
        check(json.loads(p.stdout)["read_requests"] > 0, "stats: " + p.stdout)
        plain = exits(tensorfs("stats", m.path), 0, "stats").stdout
        names = [line.split()[0] for line in plain.splitlines()]
        for argv, name in (((), "read_requests"), (("--prometheus",), "# TYPE"),
                           (("--watch=0.1", "--count=2"), "read_requests"),
                           (("--timeout=86400",), "read_requests")):
            p = exits(tensorfs("stats", "--wait=read_requests=1",
                               "--wait=bytes_served=1", *argv, m.path), 0,
                      "stats --wait %s" % (argv,))
            check(name in p.stdout, "printed: " + p.stdout)
            equal(p.stderr, "", "standard error")
        p = exits(tensorfs("stats", "--wait=read_requests=1", m.path), 0, "stats")
        equal([line.split()[0] for line in p.stdout.splitlines()], names, "names")


@case
def reached_later():
    """All of them must be: one is long before the other."""
    with Mount(source) as m:
        p = waiting(m, "--json", "--wait=read_requests=1", "--wait=xattr_requests=1")
        equal(p.poll(), None, "exit status before anything was read")
        read(m / "data/array.bin")
        out, err = p.communicate()
        equal((p.returncode, err), (0, ""), "stats --wait")
        check(json.loads(out)["read_requests"] >= 1, "printed: " + out)


@case
def not_reached_in_time():
    with Mount(source) as m:
        p = exits(tensorfs("stats", "--wait", "lookup_requests=0",
                           "--wait", "read_requests=7", "--wait=errors=1",
                           "--timeout=0.2", m.path), 1, "too little")
        says(p, "'read_requests' was 0 after 0.2 s, but 7 or more was wanted",
             "'errors' was 0 after 0.2 s, but 1 or more was wanted")
        check("lookup_requests" not in p.stderr, "stderr: " + p.stderr)
        equal(p.stdout, "", "standard output")


@case
def no_answer_in_time():
    with Mount(source, foreground=True) as m:
        os.kill(m.pid, signal.SIGSTOP)
        try:
            p = tensorfs("stats", "--wait=read_requests=0", "--timeout=0.2", m.path)
        finally:
            os.kill(m.pid, signal.SIGCONT)
        exits(p, 1, "a daemon that is stopped")
        says(p, "'%s' did not answer within 0.2 s" % m.path)


@case
def a_mount_that_goes_away():
    for how in "unmounted", "killed":
        m = Mount(source)
        with m:
            daemon = m.pid
            p = waiting(m, "--wait=read_requests=7", "--timeout=3600")
            if how == "killed":
                os.kill(daemon, signal.SIGKILL)
                out, err = p.communicate()
                force_unmount(m.path)
            else:
                # A question that is on its way keeps the mount in use.
                exits(tensorfs("umount", "--lazy", m.path), 0, "umount")
                out, err = p.communicate()
        equal((p.returncode, out), (1, ""), "stats --wait, " + how)
        check("'read_requests' was 0 before that, but 7 or more was wanted" in err,
              "%s: %s" % (how, err))


@case
def no_such_counter():
    with Mount(source) as m:
        # The version is no number, and nothing is shared here.
        for name in "read_request", "version", "shared_bytes", "a.b", "READ_REQUESTS":
            p = exits(tensorfs("stats", "--wait", name + "=0", m.path), 2, name)
            says(p, "the mount has no counter '%s'; 'tensorfs stats %s' lists" % (
                name, m.path))
            equal(p.stdout, "", "standard output")
    p = exits(tensorfs("stats", "--wait=nothing=0", m.path), 1, "not mounted any more")
    says(p, m.path)


work = lib.setup()
source = os.path.join(work, "a.npy")
np.save(source, np.arange(1000).reshape(10, 100))
lib.main()
