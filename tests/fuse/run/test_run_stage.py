#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""run --stage and mount --stage: the command sees plain files, and then they go."""
import contextlib
import gzip
import os
import signal
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import h5py
import numpy as np

import lib
import runlib
import stagelib
from checks import check, equal
from lib import case, exits, run, wait_until

work = base = place = tree = tar = sqfs = tensor = None


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
    return dict(env, TMPDIR=base)


def left():
    with open("/proc/self/mountinfo") as f:
        found = [line.split()[4] for line in f if base in line]
    return found + os.listdir(base) + os.listdir(place)


def tfs(command, *argv, **kw):
    return run(lib.TENSORFS, command, *argv, env=environment(), **kw)


def staged_run(sources, *command, options=()):
    p = tfs("run", "--stage", "--to", place, "--reserve=0", *options, *sources,
            "--", *command)
    equal(left(), [], "left behind")
    return p


def start(*argv, stdin=subprocess.DEVNULL):
    p = subprocess.Popen([lib.TENSORFS, *argv], env=environment(),
                         stdin=stdin, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    lib._children.append(p)
    return p


def finish(p):
    out, err = p.communicate()
    lib._children.remove(p)
    return p.returncode, out.decode(), err.decode()


@case
def with_an_order():
    for more, says in (([], True), (["-q"], False)):
        p = tfs("run", "--stage=fit", "--to", place, "--reserve=0", "--order=torch",
                *more, tensor, "--", "true")
        exits(p, 0, "run --stage=fit --order")
        equal("order= has no effect: everything is in memory" in p.stderr, says, p.stderr)
    # Mounted, where there is no room: the order is used, and nothing is said.
    p = tfs("run", "--stage=fit", "--to", place, "--reserve=100%", "--order=torch",
            tensor, "--", "true")
    exits(p, 0, "mounted instead")
    check("mounting instead" in p.stderr and "order" not in p.stderr, p.stderr)
    equal(left(), [], "left behind")


@case
def archive():
    """Plain files, not a mount, and gone afterwards; the status is the command's."""
    p = staged_run([tar], "sh", "-c",
                   'echo {} $TENSORFS_MOUNT; stat -f -c %T {}; '
                   'stat -c %a {} {}/d/a; diff -r "$0" {}/d && exit 7', tree)
    exits(p, 7, "run")
    lines = p.stdout.split("\n")
    path = lines[0].split()[0]
    equal(lines[0], "%s %s" % (path, path), "{} and the variable")
    check(path.startswith(place + "/") and path.endswith("/a"), path)
    check("fuse" not in lines[1], lines[1])
    equal(lines[2:4], ["700", "600"], "modes")


@case
def several_with_names():
    p = staged_run(["x=" + tar, "y=" + sqfs, "t=" + tensor], "sh", "-c",
                   'ls {}; diff -r "$0" {}/x/d && diff -r "$0" {}/y && '
                   'cp -r {}/t "$1"', tree, os.path.join(work, "copy"))
    exits(p, 0, "run")
    equal(p.stdout.split(), ["t", "x", "y"], "directories")
    with h5py.File(tensor) as f:
        want = f["data"][...]
    samples = os.path.join(work, "copy", "data", "samples")
    equal(len(os.listdir(samples)), len(want), "samples")
    for i, row in enumerate(want):
        got = np.load(os.path.join(samples, "%06d.npy" % i))
        check(got.dtype == row.dtype and np.array_equal(got, row), i)


@case
def ranks_share():
    """Several at once: one makes it, the last one removes it."""
    argv = ["run", "--stage", "--to", place, "--reserve=0", tar, "--", "sh", "-c",
            'stat -c %i {}/d/a; read x; test -e {}/d/a']
    runs = [start(*argv, stdin=subprocess.PIPE) for _ in range(4)]
    inodes = [p.stdout.readline() for p in runs]
    for p in runs:
        p.stdin.write(b"\n")
        # finish() closes its input; the others still wait for theirs.
        equal(finish(p)[0], 0, "exit status")
    equal(len(set(inodes)), 1, "inodes")
    check(int(inodes[0]) > 0, "no inode")
    equal(left(), [], "left behind")


@case
def staged_before_stays():
    p = exits(tfs("stage", "--to", place, "--reserve=0", tar), 0, "stage")
    path = p.stdout.strip()
    q = exits(tfs("run", "--stage", "--to", place, "--reserve=0", tar, "--",
                  "echo", "{}"), 0, "run")
    equal(q.stdout.strip(), path, "the path")
    check(os.path.isdir(path), "it is gone")
    exits(tfs("unstage", "--to", place, "--all"), 0, "unstage")
    equal(left(), [], "left behind")


@case
def no_room():
    exits(tfs("run", "--stage", "--to", place, "--reserve=100%", tar, "--",
              "true"), 5, "run")
    equal(left(), [], "left behind")
    p = tfs("run", "--stage=fit", "--to", place, "--reserve=100%", tensor, "--",
            "stat", "-f", "-c", "%T", "{}")
    exits(p, 0, "run")
    check("fuse" in p.stdout and "mounting instead" in p.stderr, p)
    equal(left(), [], "left behind")
    exits(tfs("run", "--stage=some", tar, "--", "true"), 2, "run")
    exits(tfs("run", "--stage", "--reserve=some", tar, "--", "true"), 2, "run")


@case
def relative_places():
    """--to and --index are relative to where run was started."""
    os.mkdir(os.path.join(place, "sub"))
    os.mkdir(os.path.join(place, "idx"))

    def there(*argv):
        return exits(tfs("run", *argv, preexec=lambda: os.chdir(place)), 0, "run")
    p = there("--stage", "--to", "sub", "--reserve=0", "--index", "idx", tar, "--",
              "echo", "{}")
    equal(p.stdout.strip(), os.path.join(place, "sub", "a"), "the path")
    there("--index", "idx", tar, "--", "true")
    equal(len(os.listdir(os.path.join(place, "idx"))), 1, "indexes")
    for n in os.listdir(os.path.join(place, "idx")):
        os.unlink(os.path.join(place, "idx", n))
    os.rmdir(os.path.join(place, "idx"))
    os.rmdir(os.path.join(place, "sub"))


@case
def no_place():
    """Where others have put something in our way, fit mounts."""
    os.symlink(work, os.path.join(place, ".tensorfs-%d" % os.geteuid()))
    argv = ["--to", place, "--reserve=0", tar, "--", "stat", "-f", "-c", "%T",
            "{}"]
    exits(tfs("run", "--stage", *argv), 1, "run --stage")
    p = exits(tfs("run", "--stage=fit", *argv), 0, "run --stage=fit")
    check("fuse" in p.stdout and "symlink" in p.stderr, p)
    os.unlink(os.path.join(place, ".tensorfs-%d" % os.geteuid()))


@case
def bad_sources():
    exits(tfs("run", "--stage", "--to", place, work + "/none.tar", "--", "true"),
          3, "run")
    exits(tfs("run", "--stage", "--to", work + "/none", tar, "--", "true"), 1,
          "run")
    equal(left(), [], "left behind")


@case
def killed():
    """Whichever processes are killed, nothing is left soon after."""
    together = (["front"], ["keeper"], ["escort"], ["daemon"], ["front", "keeper"],
                ["front", "daemon"], ["keeper", "daemon"])
    for names in together if lib.full() else together[3:]:
        p = start("run", "--stage", "--to", place, "--reserve=0", tar, "--",
                  "sh", "-c", "echo {}; sleep 60 & wait")
        path = p.stdout.readline().decode().strip()
        check(os.path.isdir(path), path)
        pids = dict(runlib.helpers(p.pid), front=p.pid)
        for n in names:
            try:
                os.kill(pids[n], signal.SIGKILL)
            except ProcessLookupError:
                # The others have ended it, because the first one is dead.
                check(n != names[0], n + " ended by itself")
        if names == ["keeper"]:
            p.send_signal(signal.SIGTERM)
        finish(p)
        check(wait_until(lambda: not left(), 60),
              "%s were killed: %s" % (names, left()))


@case
def killed_all_at_once():
    """What no process was left to remove, the next one removes."""
    p = start("run", "--stage", "--to", place, "--reserve=0", tar, "--", "sh",
              "-c", "echo {}; sleep 60")
    path = p.stdout.readline().decode().strip()
    known = runlib.freeze(p.pid)
    for pid in known:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    finish(p)
    check(runlib.gone(*known), "processes stay")
    exits(tfs("staged", "--to", place), 0, "staged")
    check(not os.path.exists(path), "it is still there")
    exits(staged_run([tar], "true"), 0, "the next run")


@case
def mounted():
    mnt = tempfile.mkdtemp(dir=work)
    exits(tfs("mount", "--stage", "--to", place, "--reserve=0", tar, mnt), 0,
          "mount")
    try:
        equal(run("diff", "-r", tree, mnt + "/d").returncode, 0, "diff")
        check("in use" in tfs("staged", "--to", place).stdout, "not in use")
        # An archive inside is what it was: a file.
        check(os.path.isfile(mnt + "/d/inner.tar"), "inner.tar")
        exits(tfs("unstage", "--to", place, "a"), 1, "unstage")
    finally:
        exits(tfs("umount", mnt), 0, "umount")
    check(wait_until(lambda: not left(), 60), "left: %s" % left())


@case
def mount_killed():
    mnt = tempfile.mkdtemp(dir=work)
    p = start("mount", "-f", "--stage", "--to", place, "--reserve=0", tar, mnt)
    check(wait_until(lambda: os.path.ismount(mnt), 60), "no mount")
    p.kill()
    finish(p)
    lib.force_unmount(mnt)

    def gone():
        exits(tfs("staged", "--to", place), 0, "staged")
        return not left()
    check(wait_until(gone, 60), "left: %s" % left())


@case
def mount_killed_and_unmounted():
    """umount and the next mount take away what was staged, in shared memory and
    elsewhere; but not what another process uses, or what `stage` made."""
    mnt = tempfile.mkdtemp(dir=work)
    kept = exits(tfs("stage", "--to", place, "--reserve=0", sqfs), 0,
                 "stage").stdout.strip()

    def killed_mount(to, wait=True):
        p = start("mount", "-f", "--stage", *to, "--reserve=0", tar, mnt)
        check(wait_until(lambda: lib.mount_line(mnt), 60), "no mount")
        path = lib.mount_line(mnt)[1]
        check(os.path.isdir(path), path)
        helpers = [h.pid for h in runlib.below(p.pid)]
        p.kill()
        if wait:
            ended(p, helpers)
        check(os.path.isdir(path), path + " went by itself")
        return p, path, helpers

    def ended(p, helpers):
        """Until then they hold the locks of what was staged."""
        finish(p)
        check(runlib.gone(*helpers), "helpers stay")
    ways = [(how, to) for how in (["umount", mnt], ["umount", "-z", mnt],
                                  ["mount", tar, mnt])
            for to in (["--to", place], [])]
    for how, to in ways if lib.full() else ways[::2] + ways[1:2]:
        path = killed_mount(to)[1]
        exits(tfs(*how), 0, " ".join(how))
        check(not os.path.exists(path), "%s left %s" % (how, path))
        if how[0] == "mount":
            exits(tfs("umount", mnt), 0, "umount")
    p, path, helpers = killed_mount(["--to", place], wait=False)
    exits(tfs("umount", "-z", mnt), 0, "umount")
    ended(p, helpers)
    # The mount may have died so slowly that umount found it alive; then the next
    # command removes what it had staged.
    exits(tfs("staged", "--to", place), 0, "staged")
    check(not os.path.exists(path), "umount left " + path)
    # A run uses it as well.
    r = start("run", "--stage", "--to", place, "--reserve=0", tar, "--", "sh",
              "-c", "echo {}; sleep 60")
    path = r.stdout.readline().decode().strip()
    equal(killed_mount(["--to", place])[1], path, "what is shared")
    exits(tfs("umount", mnt), 0, "umount")
    check(os.path.isdir(path), "it is gone though in use")
    r.terminate()
    finish(r)
    check(os.path.isdir(kept), "what `stage` made is gone")
    exits(tfs("unstage", "--to", place, "--all"), 0, "unstage")
    equal(left(), [], "left behind")


def big_archive():
    """A tar of one file of 256 MiB of zeros, as a small gzip file."""
    zeros = gzip.compress(bytes(8 << 20), 9)
    member = tarfile.TarInfo("zeros")
    member.size = 32 * (8 << 20)
    path = os.path.join(work, "big.tar.gz")
    with open(path, "wb") as f:
        f.write(gzip.compress(member.tobuf()) + zeros * 32 +
                gzip.compress(bytes(1024)))
    return path


def in_control(suffix):
    """Is there such a file among those that are not staged data?"""
    with contextlib.suppress(FileNotFoundError):
        return any(n.endswith(suffix) for n in os.listdir(
            os.path.join(place, ".tensorfs-%d" % os.geteuid())))
    return False


@case
def mount_interrupted():
    """^C while the source is read for the first time, or while it is staged: nothing is
    there, nothing is mounted."""
    mnt = tempfile.mkdtemp(dir=work)
    big = big_archive()
    for suffix, still in ((".use", lambda: not in_control(".tree")),
                          (".tree", lambda: not in_control(".json"))):
        lib.attempt(interrupt_mount, mnt, big, suffix, still)


def interrupt_mount(mnt, big, suffix, still):
    p = start("mount", "--stage", "--to", place, "--reserve=0", "--index=none",
              big, mnt)
    check(wait_until(lambda: in_control(suffix) or p.poll() is not None, 60, 0.001),
          "nothing begins")
    try:
        lib.stop(p, still)
    except lib.TooFast:
        lib.force_unmount(mnt)
        lib._children.remove(p)
        raise
    p.send_signal(signal.SIGINT)
    p.send_signal(signal.SIGCONT)
    status, _, err = finish(p)
    equal(status, -signal.SIGINT, "status (%s)" % err)
    check(not [n for n in left() if n[0] != "."], "left: %s" % left())
    exits(tfs("staged", "--to", place), 0, "staged")
    equal(left(), [], "left after the next one looked")
    check(not os.path.ismount(mnt), "mounted")


def make_sources():
    global tree, tar, sqfs, tensor
    tree = os.path.join(work, "d")
    os.mkdir(tree)
    rng = np.random.RandomState(1)
    for i in range(40):
        with open(os.path.join(tree, "f%02d" % i), "wb") as f:
            f.write(rng.bytes(1000 * i))
    with open(os.path.join(tree, "a"), "w") as f:
        f.write("a\n")
    subprocess.check_call(["tar", "-C", work, "-cf",
                           os.path.join(tree, "inner.tar"), "d/a", "d/f07"])
    tar = os.path.join(work, "a.tar")
    subprocess.check_call(["tar", "cf", tar, "-C", work, "d"])
    sqfs = os.path.join(work, "b.sqfs")
    subprocess.check_call(["mksquashfs", tree, sqfs, "-quiet", "-no-progress"],
                          stdout=subprocess.DEVNULL)
    tensor = os.path.join(work, "t.h5")
    with h5py.File(tensor, "w") as f:
        f.create_dataset("data", data=rng.rand(30, 16, 16), chunks=(10, 8, 8),
                         compression="gzip", shuffle=True)


def main():
    global work, base, place
    if lib.ROOT:
        # Every command that stages removes what is dead, and other tests stage there.
        stagelib.private_shm("64M")
    work = lib.setup()
    base = tempfile.mkdtemp(prefix="base-", dir=work)
    place = tempfile.mkdtemp(prefix="place-", dir=work)
    make_sources()
    lib.main()


if __name__ == "__main__":
    main()
