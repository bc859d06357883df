#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Mount points that are missing, taken or dead, and machines without FUSE."""
import errno
import os
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import skerch
from checks import check, equal, fails_with, note, read, same_bytes
from lib import (Mount, case, exits, force_unmount, mount_line, pids_with, run,
                 tensorfs, wait_until)

work = None
tensor = None


def fresh(name):
    d = os.path.join(work, name)
    os.mkdir(d)
    return d


def usable(mnt):
    got = read(os.path.join(mnt, "data/samples/000007.npy"))[128:]
    same_bytes(got, tensor.data[7].tobytes(), "sample 7")


def kill_daemon(mnt):
    pids = lib.daemons_of(mnt)
    check(pids, "no daemon found for %s" % mnt)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:     # a helper that was about to leave
            pass
    wait_until(lambda: all(lib.zombie(p) for p in pids), 60)
    fails_with((errno.ENOTCONN, errno.ECONNABORTED), lambda: os.listdir(mnt),
               "listing of a dead mount")


@case
def missing():
    mnt = os.path.join(work, "not", "there")
    p = exits(tensorfs("mount", tensor.all_path, mnt), 4, "mount")
    check("there" in p.stderr, "stderr does not name it: " + p.stderr)


@case
def a_file():
    mnt = os.path.join(work, "file")
    with open(mnt, "w") as f:
        f.write("x")
    p = tensorfs("mount", tensor.all_path, mnt)
    if p.returncode == 0:
        force_unmount(mnt)
    exits(p, 4, "mount on a regular file")


@case
def not_empty():
    """As other FUSE mounts: allowed and hiding, or refused with a sentence."""
    mnt = fresh("full")
    with open(os.path.join(mnt, "precious"), "w") as f:
        f.write("mine")
    p = exits(tensorfs("mount", tensor.all_path, mnt), (0, 4), "mount")
    note("a mount point that is not empty: exit %d" % p.returncode)
    if p.returncode == 0:
        usable(mnt)
        exits(tensorfs("umount", mnt), 0, "umount")
    equal(os.listdir(mnt), ["precious"], "what was in it")


@case
def already_mounted():
    with Mount(tensor.all_path) as m:
        p = tensorfs("mount", tensor.all_path, m.path)
        if p.returncode == 0:
            force_unmount(m.path)
        exits(p, 4, "second mount on the same place")
        check(m.path in p.stderr or "mounted" in p.stderr, "stderr: " +
              p.stderr)
        usable(m.path)
        equal(len([l for l in open("/proc/self/mountinfo") if m.path in l]), 1,
              "mounts there")


@case
def its_own_source():
    mnt = fresh("itself")
    for argv in ([mnt, mnt], ["-o", "nonempty", mnt, mnt],
                 [tensor.all_path, mnt, mnt]):
        p = exits(tensorfs("mount", *argv), 4, "mount %s" % argv)
        check("both the source and the mount point" in p.stderr, p.stderr)


@case
def several_at_once():
    """Four mounts on one directory: one wins, the others say so."""
    mnt = fresh("race")
    try:
        for _ in range(lib.rounds(3)):
            ps = [subprocess.Popen(
                [lib.TENSORFS, "mount", tensor.all_path, mnt],
                stderr=subprocess.DEVNULL) for _ in range(4)]
            equal(sorted(p.wait(120) for p in ps), [0, 4, 4, 4], "statuses")
            equal(len([l for l in open("/proc/self/mountinfo") if mnt in l]),
                  1, "mounts there")
            usable(mnt)
            exits(tensorfs("umount", mnt), 0, "umount")
    finally:
        force_unmount(mnt)


@case
def parent_renamed():
    """SIGTERM and timeout= find the mount where it is now."""
    for i, opts in enumerate(([], ["-o", "timeout=2"])):
        a, b = fresh("before %d" % i), os.path.join(work, "after %d" % i)
        os.mkdir(a + "/mnt")
        exits(tensorfs("mount", *opts, tensor.all_path, a + "/mnt"), 0, "mount")
        pids = lib.daemons_of(a + "/mnt")
        os.rename(a, b)
        if not opts:
            os.kill(min(pids), signal.SIGTERM)
        check(wait_until(lambda: not mount_line(b + "/mnt"), 60),
              "still mounted: %s" % opts)
        wait_until(lambda: not any(os.path.exists("/proc/%d" % p) and
                                   not lib.zombie(p) for p in pids), 60)
        os.rmdir(b + "/mnt")


@case
def small_stacks():
    """ulimit -s is not what our threads get."""
    mnt = fresh("stack")
    p = run("sh", "-c", 'ulimit -s 64 && exec "$0" mount "$1" "$2"',
            lib.TENSORFS, tensor.all_path, mnt)
    exits(p, 0, "mount")
    try:
        usable(mnt)
    finally:
        exits(tensorfs("umount", mnt), 0, "umount")


@case
def executable_is_what_has_an_x():
    with Mount(tensor.all_path) as m:
        path = m / "data/array.npy"
        check(not os.access(path, os.X_OK), "X_OK of 0444")
        check(os.access(path, os.R_OK), "R_OK")
        check(os.access(m / "data", os.R_OK | os.X_OK), "a directory")
        out = run("find", m.path, "-type", "f", "-executable")
        equal(out.stdout, "", "find -executable")
        # No directory says that it has so many subdirectories.
        equal({os.stat(d).st_nlink for d, _, _ in os.walk(m.path)}, {1},
              "st_nlink")


@case
def copies_without_a_word():
    with Mount(tensor.all_path) as m:
        for argv in (["cp", "-r", "--preserve=xattr", m.path, work + "/cp"],
                     ["tar", "--xattrs", "--xattrs-include=*", "-cf",
                      work + "/a.tar", "-C", m.path, "."],
                     ["rsync", "-aX", m.path + "/", work + "/rsync"]):
            p = exits(run(*argv), 0, argv[0])
            equal(p.stderr, "", argv[0])


@case
def bare_form():
    """tensorfs SOURCE MOUNTPOINT [-o opts], and paths relative to here."""
    mnt = fresh("bare")
    exits(tensorfs(tensor.all_path, mnt, "-o", "ro,cache-size=16M"), 0, "mount")
    try:
        usable(mnt)
    finally:
        exits(tensorfs("umount", mnt), 0, "umount")
    p = run("sh", "-c", 'cd "$1" && "$2" mount src/t_ALL.h5 bare -o '
            'threads=3,missing=error', "sh", work, lib.TENSORFS)
    exits(p, 0, "mount with relative paths")
    try:
        usable(mnt)
    finally:
        exits(run("sh", "-c", 'cd "$1" && "$2" umount bare', "sh", work,
                  lib.TENSORFS), 0, "umount of a relative path")
    check(not mount_line(mnt), "still mounted after umount")


@case
def umount_of_nothing():
    p = tensorfs("umount", fresh("nothing"))
    check(p.returncode not in (0, 124) and p.stderr.strip(),
          "exit %d, %r" % (p.returncode, p.stderr))


@case
def bad_options():
    mnt = fresh("opts")
    for opts in (["-o", "no-such-option"], ["--no-such-option"],
                 ["-o", "cache-size=many"], ["-o", "threads=-3"],
                 ["-o", "missing=maybe"], ["-o", "sample-axes=0"],
                 ["-o", "dtype-order=middle"], ["-o", "views=nonsense"]):
        p = tensorfs("mount", *opts, tensor.all_path, mnt)
        force_unmount(mnt)
        exits(p, 2, "mount " + " ".join(opts))
    for argv in ([], ["mount"], ["mount", tensor.all_path], ["cat"],
                 ["nonsense-command"]):
        exits(tensorfs(*argv), 2, "tensorfs " + " ".join(argv))


@case
def dead_mount_is_repaired():
    mnt = fresh("dead")
    exits(tensorfs("mount", tensor.all_path, mnt), 0, "mount")
    try:
        kill_daemon(mnt)
        exits(tensorfs("mount", tensor.all_path, mnt), 0, "mount on a dead "
              "mount")
        usable(mnt)
        equal(len([l for l in open("/proc/self/mountinfo") if mnt in l]), 1,
              "mounts there")
        kill_daemon(mnt)
        exits(tensorfs("umount", mnt), 0, "umount of a dead mount")
        check(not mount_line(mnt), "still in the mount table")
        equal(os.listdir(mnt), [], "the directory below")
    finally:
        force_unmount(mnt)


@case
def umount_busy_and_lazy():
    mnt = fresh("busy")
    exits(tensorfs("mount", tensor.all_path, mnt), 0, "mount")
    try:
        with open(os.path.join(mnt, "data/array.bin"), "rb") as f:
            p = tensorfs("umount", mnt)
            check(p.returncode not in (0, 124) and p.stderr.strip(),
                  "umount of a busy mount: exit %d, %r" % (p.returncode,
                                                           p.stderr))
            usable(mnt)
            exits(tensorfs("umount", "-z", mnt), 0, "umount -z")
            check(not mount_line(mnt), "still in the mount table")
            equal(len(f.read(100)), 100, "bytes of the file still open")
        check(wait_until(lambda: not pids_with(mnt), 60),
              "the daemon stays after the last close")
    finally:
        force_unmount(mnt)


@case
def umount_all():
    """--all in a mount namespace of its own: others' mounts are not ours."""
    if not lib.ROOT:
        note("umount --all left out: needs a mount namespace (root)")
        return
    a, b = fresh("all-a"), fresh("all-b")
    p = run("unshare", "-m", "sh", "-ec",
            'umount -a -t fuse.tensorfs; "$1" mount "$2" "$3"; '
            '"$1" mount "$2" "$4"; "$1" umount --all; '
            '! grep -q fuse.tensorfs /proc/self/mountinfo', "sh",
            lib.TENSORFS, tensor.all_path, a, b)
    exits(p, 0, "umount --all of two mounts")


def no_fuse(script):
    mnt = fresh("nofuse%d" % len(os.listdir(work)))
    how = ["unshare", "-m"] if lib.ROOT else ["unshare", "-rm"]
    if not shutil.which("unshare"):
        raise lib.Missing("unshare")
    if run(*how, "true").returncode:
        note("no mount namespaces here: cannot hide /dev/fuse")
        return
    for flag in ([], ["-f"]):
        p = run(*how, "sh", "-ec", script + '\nexec "$@"', "sh", lib.TENSORFS,
                "mount", *flag, tensor.all_path, mnt)
        exits(p, 4, "mount without FUSE")
        check("fuse" in p.stderr.lower(), "stderr does not say fuse: " +
              p.stderr)


@case
def no_dev_fuse():
    """/dev/fuse is not there at all."""
    dev = fresh("dev")
    for n in ("null", "zero", "urandom", "random"):
        open(os.path.join(dev, n), "w").close()
    no_fuse('for n in null zero urandom random; do '
            'mount --bind /dev/$n "%s/$n"; done; mount --rbind "%s" /dev; '
            'test ! -e /dev/fuse' % (dev, dev))


@case
def dev_fuse_is_no_fuse():
    no_fuse("mount --bind /dev/null /dev/fuse")


HELPER = """
bin=$1 src=$2 mnt=$3 raw=$4 opts=$5
mount --bind "$bin" /usr/local/bin
mount -t fuse.tensorfs "$src" "$mnt" $opts
grep -q " $mnt .* fuse.tensorfs " /proc/self/mountinfo
cmp "$mnt/data/array.bin" "$raw"
umount "$mnt"
! grep -q " $mnt " /proc/self/mountinfo
"""


@case
def mount_fuse_helper():
    """mount -t fuse.tensorfs SRC MNT -o opts, as /etc/fstab does.

    mount(8) drops PATH, so the program is put in /usr/local/bin, in a mount
    namespace of the test's own.
    """
    helper = [p for p in ("/sbin/mount.fuse3", "/sbin/mount.fuse")
              if os.path.exists(p)]
    if not lib.ROOT:
        note("mount -t fuse.tensorfs left out: needs root")
        return
    if not helper:
        raise lib.Missing("mount.fuse3")
    bindir = fresh("bin")
    shutil.copy(lib.TENSORFS, os.path.join(bindir, "tensorfs"))
    raw = os.path.join(work, "raw")
    for opts in ("-o ro,cache-size=32M,sample-axes=2", "-o ro,allow_other",
                 "", "-o noauto,user,_netdev,nofail,ro", "-o defaults,nodev"):
        mnt = fresh("helper%d" % len(os.listdir(work)))
        p = run("unshare", "-m", "sh", "-ec", HELPER, "sh", bindir,
                tensor.all_path, mnt, raw, opts)
        exits(p, 0, "mount -t fuse.tensorfs " + opts)
        check(wait_until(lambda: not pids_with(mnt), 60),
              "the daemon stays after umount(8)")
    p = run("unshare", "-m", "sh", "-ec", HELPER, "sh", bindir,
            os.path.join(work, "no.h5"), mnt, raw, "")
    check(p.returncode not in (0, 127) and "no.h5" in p.stderr,
          "mount of a missing source: exit %d, %s" % (p.returncode, p.stderr))


@case
def opened_descriptor():
    """/dev/fd/N: a FUSE descriptor that somebody else mounted (Apptainer)."""
    if not lib.ROOT:
        note("/dev/fd/N left out: needs root")
        return
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    mnt = fresh("devfd")
    fd = os.open("/dev/fuse", os.O_RDWR)
    os.set_inheritable(fd, True)
    opts = "fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
    if libc.mount(b"x", mnt.encode(), b"fuse.tensorfs", 1 | 2 | 4,
                  opts.encode()):
        os.close(fd)
        note("/dev/fd/N left out: mount(2): %s" % os.strerror(
            ctypes.get_errno()))
        return
    p = subprocess.Popen([lib.TENSORFS, "mount", "-f", tensor.all_path,
                          "/dev/fd/%d" % fd], pass_fds=[fd],
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    lib._children.append(p)
    os.close(fd)
    try:
        r = run("cmp", os.path.join(mnt, "data/array.bin"),
                os.path.join(work, "raw"))
        exits(r, 0, "reading through /dev/fd/N")
    finally:
        run("umount", "-l", mnt)
        try:
            p.wait(60)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
    check(p.returncode >= 0, "the daemon died of signal %d" % -p.returncode)


def main():
    global work, tensor
    work = lib.setup()
    tensor = skerch.create(os.path.join(work, "src"), rows=100, sub=(4, 6),
                           part=10, incompressible=3)
    with open(os.path.join(work, "raw"), "wb") as f:
        f.write(tensor.data.tobytes())
    lib.main()


if __name__ == "__main__":
    main()
