# SPDX-License-Identifier: BSD-2-Clause
"""An ordinary user, made by root: what has to work without privileges.

Root starts programs as UID; somebody else is that user already.  Where /dev/fuse is
not open to everybody, as udev would have it, the test moves into a mount namespace
with a device that is.
"""
import os
import stat
import sys

from lib import ROOT

UID = 65534 if ROOT else os.getuid()


def may_open_fuse():
    mode = os.stat("/dev/fuse").st_mode
    return stat.S_ISCHR(mode) and mode & 0o006 == 0o006


def open_fuse_to_all():
    """Call before setup(): starts this test again if need be."""
    if not ROOT or not os.path.exists("/dev/fuse") or may_open_fuse() or \
            "TENSORFS_TEST_FUSE" in os.environ:
        return
    env = dict(os.environ, TENSORFS_TEST_FUSE="1")
    script = 'd=$(mktemp -d) && trap \'umount -l "$d"; rmdir "$d"\' EXIT && ' \
        'mount -t tmpfs -o mode=755 none "$d" && ' \
        'mknod "$d/fuse" c 10 229 && chmod 666 "$d/fuse" && ' \
        'mount --bind "$d/fuse" /dev/fuse && "$@"'
    os.execvpe("unshare", ["unshare", "-m", "sh", "-c", script, "sh",
                           sys.executable] + sys.argv, env)


def become():
    """preexec_fn: the ordinary user from here on."""
    os.setgroups([])
    os.setgid(UID)
    os.setuid(UID)


def as_user(env=None, **more):
    """Keywords for lib.run and Popen: as that user."""
    e = dict(os.environ if env is None else env, **more)
    return {"env": e, "preexec": become if ROOT else None}
