#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A daemon that dies while it is asked whether it lives leaves a dead mount."""
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
from checks import check, equal, note
from lib import (TENSORFS, TooFast, case, daemons_of, exits, force_unmount, mount_line,
                 run, wait_until)

work = None
source = None


def waits_for_a_daemon(pid):
    """Has this process, or a child of its, asked a mount and got no answer yet?"""
    pids = [pid]
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            pids += map(int, f.read().split())
        for p in pids:
            with open("/proc/%d/wchan" % p) as f:
                if f.read() == "request_wait_answer":
                    return True
    except OSError:
        pass  # it has ended
    return False


def asks(mnt, *argv):
    """Status and words of a command that waits for the daemon when that is killed."""
    exits(lib.tensorfs("mount", source, mnt), 0, "mount")
    os.stat(mnt)  # what the kernel keeps answers for the daemon
    pids = daemons_of(mnt)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    p = subprocess.Popen([TENSORFS, *argv], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    check(wait_until(lambda: waits_for_a_daemon(p.pid) or p.poll() is not None, 60),
          "it does not ask the daemon")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    check(wait_until(lambda: all(lib.zombie(p) for p in pids), 60), "it does not die")
    took = time.monotonic() - began
    out, err = p.communicate()
    # A daemon that does not answer for 5 s is taken for a slow one.  If that may have
    # happened because this test had to wait for a processor, the case begins anew.
    if took > 4:
        force_unmount(mnt)
        raise TooFast
    return p.returncode, out + err


def fresh(name):
    return tempfile.mkdtemp(prefix=name + "-", dir=work)


@case
def a_mount_upon_it():
    mnt = fresh("again")
    code, said = asks(mnt, "mount", source, mnt)
    equal(code, 0, "mount: " + said)
    check("was a dead tensorfs mount" in said, said)
    with open(os.path.join(mnt, "f"), "rb") as f:
        equal(f.read(), b"hello", "what is read then")
    exits(lib.tensorfs("umount", mnt), 0, "umount")


@case
def all_the_dead():
    if not lib.ROOT:
        note("without a mount namespace of its own it would unmount what others have")
        return
    mnt = fresh("all")
    code, said = asks(mnt, "umount", "--all", "--dead")
    equal(code, 0, "umount: " + said)
    check(wait_until(lambda: not mount_line(mnt), 60), "it is still there")


@case
def its_stats():
    mnt = fresh("stats")
    code, said = asks(mnt, "stats", mnt)
    check(code != 0 and "is dead" in said, "stats: %d %s" % (code, said))
    exits(lib.tensorfs("umount", mnt), 0, "umount")
    check(not mount_line(mnt), "it is still there")


def main():
    global work, source
    work = lib.setup()
    source = os.path.join(work, "t.tar")
    with open(os.path.join(work, "f"), "wb") as f:
        f.write(b"hello")
    exits(run("tar", "-C", work, "-cf", source, "f"), 0, "tar")
    lib.main()


if __name__ == "__main__":
    main()
