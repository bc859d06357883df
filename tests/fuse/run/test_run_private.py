#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tensorfs run --private, and runs of an ordinary user, with fusermount3 and without.

What is hidden or forbidden is so in a namespace of the test's own.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
import user
from checks import check, equal, note
from lib import case, exits, run

work = base = source = None
NO_FUSERMOUNT = 'for f in $(command -v -a fusermount3) /usr/bin/fusermount3; do ' \
    'mount --bind /dev/null "$f"; done; '


def needs_root(f):
    """Root hides things from the user; an ordinary user cannot."""
    def g():
        if not lib.ROOT:
            note("%s left out: root has to prepare it" % f.__name__)
            return
        f()
    g.__name__ = f.__name__
    return case(g)


def environment():
    return {"PATH": os.environ["PATH"], "TMPDIR": base}


def as_user(*argv, groups="--clear-groups", before="", **kw):
    """Run as the user, after root has run `before` in a mount namespace."""
    if lib.ROOT:
        argv = ("unshare", "-m", "sh", "-ec", before + 'exec "$@"', "sh",
                "setpriv", "--reuid=%d" % user.UID, "--regid=%d" % user.UID,
                groups) + argv
    p = run(*argv, env=environment(), **kw)
    equal(os.listdir(base), [], "left behind")
    return p


def tfs_run(*argv, options=("--private",), src=None, **kw):
    return as_user(lib.TENSORFS, "run", *options, src or source, "--", *argv, **kw)


def facts(p):
    return dict(line.split("=", 1) for line in p.stdout.split("\n") if "=" in line)


LOOK = """
echo id=$(id -u):$(id -g)
echo file=$(cat "$0/d/f")
echo cap=$(sed -n 's/^CapEff:.//p' /proc/self/status)$(sed -n \
's/^CapPrm:.//p' /proc/self/status)
echo map=$(cat /proc/self/uid_map)
echo mounts=$(grep -c "$0 " /proc/self/mountinfo)
echo ns=$(readlink /proc/self/ns/mnt)
echo shown=$(sed -n "s,.* $0 .* - ,,p" /proc/self/mountinfo)
"""
NONE = "0" * 32


@case
def what_the_user_sees():
    for options in (["--private"], ["--private=yes"], ["-o", "private"]):
        f = facts(exits(tfs_run("sh", "-c", LOOK, "{}", options=options), 0, "run"))
        equal(f["id"], "%d:%d" % (user.UID, user.UID), "ids")
        equal(f["file"], "content", "what was read")
        equal(f["cap"], NONE, "capabilities")
        equal(f["map"].split(), [str(user.UID), str(user.UID), "1"], "uid_map")
        equal(f["mounts"], "1", "mounts")
        check(f["ns"] != os.readlink("/proc/self/ns/mnt"), "the same namespace")
        check(f["shown"].startswith("fuse.tensorfs " + source + " ro"), f["shown"])


@case
def with_fusermount():
    for options in (["--private=no"], [], ["--private=auto"]):
        f = facts(exits(tfs_run("sh", "-c", LOOK, "{}", options=options), 0, "run"))
        equal((f["file"], f["cap"]), ("content", NONE), "run %s" % options)
        equal(f["map"], facts(run("sh", "-c", LOOK, "/"))["map"], "uid_map")


@case
def outside_sees_nothing():
    """The mount is in the run's namespace only, and ends with it."""
    p = subprocess.Popen([lib.TENSORFS, "run", "--private", source, "--", "sh", "-c",
                          "echo {}; read x"], env=environment(),
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lib._children.append(p)
    path = p.stdout.readline().decode().strip()
    equal(os.listdir(path), [], "what is outside")
    check(lib.mount_line(path) is None, "it is mounted outside")
    p.communicate(b"\n")
    lib._children.remove(p)
    equal(os.listdir(base), [], "left behind")


@needs_root
def root_keeps_its_powers():
    out = run("sh", "-c", LOOK, "/").stdout
    p = run(lib.TENSORFS, "run", "--private", source, "--", "sh", "-c", LOOK, "{}",
            env=environment())
    f = facts(exits(p, 0, "run"))
    for line in out.split("\n"):
        if line[:3] in ("cap", "map", "id="):
            check(line in p.stdout, "%s: %s" % (line, p.stdout))
    equal((f["file"], f["mounts"]), ("content", "1"), "run --private by root")


@needs_root
def fusermount_is_missing():
    """auto: private where there is no fusermount3, or none that is privileged."""
    copy = os.path.join(work, "fusermount3")
    shutil.copy("/usr/bin/fusermount3", copy)
    os.chmod(copy, 0o755)
    for before, wrap in (
            (NO_FUSERMOUNT, []),
            ("mount --bind %s /usr/bin/fusermount3; " % copy, []),
            ("mount --bind /usr /usr; mount -o remount,bind,nosuid /usr; ", []),
            ("", ["setpriv", "--no-new-privs"])):
        p = as_user(*wrap, lib.TENSORFS, "run", source, "--", "sh", "-c", LOOK,
                    "{}", before=before)
        f = facts(exits(p, 0, "run, " + before))
        equal((f["file"], f["cap"]), ("content", NONE), before)
        equal(f["map"].split()[2], "1", "private, " + before)
    p = exits(tfs_run("true", options=["--private=no"], before=NO_FUSERMOUNT), 4,
              "--private=no without fusermount3")
    check("--private" in p.stderr, p.stderr)


@needs_root
def user_without_a_name():
    """A uid without an entry in passwd, as in containers: fusermount3 refuses it."""
    nameless = ["setpriv", "--reuid=64999", "--regid=64999", "--clear-groups"]
    p = run(*nameless, lib.TENSORFS, "run", source, "--", "sh", "-c", LOOK, "{}",
            env=environment())
    f = facts(exits(p, 0, "run by a user without a name"))
    equal((f["file"], f["map"].split()[0]), ("content", "64999"), "private")
    p = exits(run(*nameless, lib.TENSORFS, "run", "--private=no", source, "--",
                  "true", env=environment()), 4, "run --private=no")
    check("username" in p.stderr and "--private" in p.stderr, p.stderr)
    equal(os.listdir(base), [], "left behind")


@case
def odd_search_paths():
    """fusermount3 need not be in PATH, neither to mount nor to unmount."""
    for path in ("", "/no/such/dir", ".:"):
        p = as_user("env", "PATH=" + path, lib.TENSORFS, "run", "--private=no",
                    source, "--", "/bin/cat", "{}/d/f")
        equal((p.returncode, p.stdout, p.stderr), (0, "content\n", ""),
              "PATH=" + path)


@case
def place_is_changed():
    """A command that changes the modes of all there is in $TMPDIR."""
    for mode in ("755", "0", "500", "1777") if lib.full() else ("0", "1777"):
        for options in (["--private"], ["--private=no"]):
            p = tfs_run("sh", "-c", "chmod %s {}/..; exit 3" % mode,
                        options=options)
            equal((p.returncode, p.stdout, p.stderr), (3, "", ""),
                  "chmod " + mode)


@case
def run_in_a_run():
    """fusermount3 is of no use in a user namespace: the inner run is private."""
    inner = "cat {}/d/f; %s run %s -- cat '\"{\"\"}\"'/d/f" % (
        lib.TENSORFS, shlex.quote(source))
    inner = inner.replace("'\"{\"\"}\"'", "$(printf %s%s '{' '}')")
    p = exits(tfs_run("sh", "-c", inner), 0, "run in a private run")
    equal(p.stdout, "content\n" * 2, "what was read")


@needs_root
def supplementary_groups():
    """Files that are readable by such a group only can be read inside."""
    mine = os.path.join(work, "group.tar")
    shutil.copy(source, mine)
    os.chown(mine, 0, 4242)
    os.chmod(mine, 0o640)
    for options in (["--private"], ["--private=no"]):
        p = exits(tfs_run("sh", "-c", "cat {}/d/f && cmp %s %s && id -G" % (
            mine, source), options=options, src=mine, groups="--groups=4242"), 0,
            "run %s" % options)
        equal(p.stdout.split("\n")[0], "content", "what was read")
        exits(tfs_run("true", options=options, src=mine), 3, "without the group")


@needs_root
def mounts_from_outside_appear():
    """What is mounted later, as autofs does, is there inside, too."""
    script = """
mkdir -p "$1/later"; mkfifo "$1/up" "$1/go"
"$2" run --private "$3" -- sh -c "echo >'$1/up'; read x <'$1/go'; cat '$1/later/x'" &
read x <"$1/up"
mount -t tmpfs none "$1/later"; echo inside >"$1/later/x"; echo >"$1/go"
wait $!
"""
    p = run("unshare", "-m", "--propagation", "shared", "sh", "-ec", script, "sh",
            work, lib.TENSORFS, source, env=environment())
    equal((p.stdout, p.stderr, p.returncode), ("inside\n", "", 0), "mounted later")


@case
def namespaces_are_forbidden():
    """In a user namespace of ours there may be no more of them."""
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && ' \
        'exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    p = as_user("unshare", "-Ur", "sh", "-c", script, "sh", lib.TENSORFS, "run",
                "--private", source, "--", "true")
    exits(p, 4, "run --private")
    check("user.max_user_namespaces" in p.stderr and p.stderr.count("\n") == 1,
          p.stderr)


@needs_root
def no_dev_fuse():
    for options in (["--private"], ["--private=no"]):
        p = exits(tfs_run("true", options=options,
                          before="mount --bind /dev/null /dev/fuse; "), 4, "run")
        check("fuse" in p.stderr, p.stderr)
        p = exits(tfs_run("true", options=options, before="mount -t tmpfs none "
                          "/mnt; mknod -m 600 /mnt/fuse c 10 229; mount --bind "
                          "/mnt/fuse /dev/fuse; "), 4, "run")
        check("0666" in p.stderr, p.stderr)


def main():
    global work, base, source
    user.open_fuse_to_all()
    work = lib.setup()
    os.chmod(work, 0o755)
    base = tempfile.mkdtemp(prefix="base-", dir=work)
    os.chmod(base, 0o1777)
    os.mkdir(os.path.join(work, "d"))
    with open(os.path.join(work, "d", "f"), "w") as f:
        f.write("content\n")
    source = os.path.join(work, "a.tar")
    subprocess.check_call(["tar", "cf", source, "-C", work, "d"])
    os.chmod(source, 0o644)
    lib.main()


if __name__ == "__main__":
    main()
