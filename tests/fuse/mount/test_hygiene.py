#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Mounts where others see them, dead ones, idle ones, those of other users, under
Slurm and in containers: nothing is in the way, and nothing stays behind.

What needs two users or a table of mounts of its own is a shell script that runs in
a mount namespace; with that go the mounts, so that a case that fails leaves none.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import lib
from checks import Failure, check, equal, note, read
from lib import (TooFast, case, exits, force_unmount, mount_line, pids_with,
                 run, tensorfs, wait_until)

work = None
tar = None
TEXT = b"the bytes of a\n"
ODD = "a b\nc\\d'\"$e"

# $bin: the program; $tar: a source; fuse_for_all: users may open /dev/fuse;
# as UID COMMAND...; dead: kill all daemons of the namespace; says WORD...: $err has
# them all; await COMMAND...: until it succeeds, for a minute; exit 75: the case begins
# anew; looks PID: how often the daemon has looked whether it is idle, see looks() below.
PRELUDE = r"""
set -eu
bin=$1 tar=$2 dir=$3 err=$3/err
cd "$dir"
umount -a -l -t fuse.tensorfs || :	# copies of what others have
fuse_for_all() {
	mknod fuse c 10 229; chmod 666 fuse; mount --bind fuse /dev/fuse
	{ grep -v ':6553[34]:' /etc/passwd
	  echo "one:x:65533:65533::/:/bin/sh"
	  echo "two:x:65534:65534::/:/bin/sh"; } >passwd
	mount --bind passwd /etc/passwd
}
as() { u=$1; shift
	setpriv --reuid="$u" --regid="$u" --clear-groups env HOME=/nonexistent "$@"; }
mounts() { grep -c " - fuse.tensorfs " /proc/self/mountinfo || :; }
# The pause of a poll, whose limit is there to name a hang.
await() { n=600; until "$@"; do
	n=$((n - 1)); [ $n -gt 0 ] || return 1; sleep 0.1; done; }
none_lives() { for p in $(pgrep -x tensorfs); do	# threads outlive the first one
	! grep -qs "^State:.[^ZX]" /proc/$p/task/*/status || return 1; done; }
dead() {
	pkill -9 -x tensorfs
	await none_lives || { echo "daemons do not die"; exit 1; }
}
status() { want=$1; shift; rc=0; "$@" 2>err || rc=$?
	[ $rc = $want ] || { echo "$*: exit $rc, not $want: $(cat err)"; exit 1; } }
says() { for w; do grep -qF -e "$w" err ||
	{ echo "no '$w' in: $(cat err)"; exit 1; }; done; }
there() { [ "$(cat "$1/a")" = "the bytes of a" ]; }
are_left() { [ "$(mounts)" = "$1" ]; }
watcher() { for t in /proc/$1/task/*; do
	[ "${t##*/}" != "$1" ] && grep -qx tensorfs $t/comm && cat $t/status; done; }
looks() { watcher $1 | awk '/^voluntary/ && $2 > n { n = $2 } END { print n + 0 }'; }
has_looked() { [ "$(looks $1)" -ge $2 ]; }
gone() { await are_left "${1:-0}" && return
	echo "mounts left:"; grep tensorfs /proc/self/mountinfo; exit 1; }
"""


def fresh(name):
    d = os.path.join(work, name)
    if os.path.exists(d):       # of a case that begins anew
        d = tempfile.mkdtemp(prefix=name + "-", dir=work)
    else:
        os.mkdir(d)
    os.chmod(d, 0o777)
    return d


def in_namespace(name, script, what):
    """The script in a mount and a PID namespace; a note where one cannot."""
    if not lib.ROOT:
        note("%s left out: needs root" % what)
        return
    d = fresh(name)
    p = run("unshare", "--mount", "--pid", "--fork", "--kill-child",
            "--mount-proc", "--propagation", "private", "sh", "-c",
            PRELUDE + script, "sh", lib.TENSORFS, tar, d)
    if p.returncode == 75:
        raise TooFast
    check(p.returncode == 0, "%s: exit %d; %s %s" % (
        what, p.returncode, p.stdout.strip(), p.stderr.strip()))


def usable(mnt):
    equal(read(os.path.join(mnt, "a")), TEXT, "a file of the mount")


# --- network file systems ---------------------------------------------------

def sftp_server():
    for p in ("/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server",
              "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"):
        if os.path.exists(p):
            return p
    return None


class Sshfs:
    """A network file system without a network: sshfs on a socket pair."""

    def __init__(self, src, mnt):
        self.mnt = mnt
        a, b = socket.socketpair()
        self.procs = [
            subprocess.Popen([sftp_server()], stdin=a, stdout=a,
                             stderr=subprocess.DEVNULL),
            subprocess.Popen(["sshfs", "-o", "passive", ":" + src, mnt],
                             stdin=b, stdout=b, stderr=subprocess.DEVNULL)]
        lib._children.extend(self.procs)
        a.close()
        b.close()
        if not wait_until(lambda: mount_line(mnt), 60):
            self.close()
            raise Failure("sshfs did not mount")

    def close(self):
        force_unmount(self.mnt)
        for p in self.procs:
            p.kill()
            p.wait()


@case
def on_a_network_file_system():
    if not shutil.which("sshfs") or not sftp_server():
        check(not os.environ.get("CI"), "sshfs and sftp-server are missing")
        note("left out: needs sshfs and sftp-server")
        return
    far, near = fresh("far"), fresh("near")
    os.mkdir(os.path.join(far, "m"))
    mnt = os.path.join(near, "m")
    link = os.path.join(work, "link")
    os.symlink(mnt, link)
    net = Sshfs(far, near)
    try:
        for point in (mnt, link, near):
            p = exits(tensorfs("mount", "-o", "nonempty", tar, point), 4,
                      "mount on sshfs")
            for word in (point if point != link else mnt, "sshfs",
                         "only this node", "--force", "/dev/shm"):
                check(word in p.stderr, "no %r in %r" % (word, p.stderr))
            check(not mount_line(mnt), "mounted all the same")
        for opts in (["--force"], ["-o", "force"]):
            exits(tensorfs("mount", *opts, tar, mnt), 0, "mount --force")
            usable(mnt)
            exits(tensorfs("umount", mnt), 0, "umount")
        # A source may be where it likes.
        shutil.copy(tar, os.path.join(near, "s.tar"))
        with lib.Mount(os.path.join(near, "s.tar")) as m:
            usable(m.path)
    finally:
        force_unmount(mnt)
        net.close()


# --- what is in the way -----------------------------------------------------

@case
def odd_names():
    """A mount point with a newline, a blank and a backslash in its name."""
    in_namespace("odd", r"""
fuse_for_all
d=$(printf 'a b\nc\\d\047"$e')
mkdir -m 777 "$d"
for u in 0 65534; do
	chown $u "$d"
	status 0 as $u "$bin" mount "$tar" "$d"; as $u cat "$d/a" >/dev/null
	status 4 as $u "$bin" mount "$tar" "$d"; says already
	as $u "$bin" stats --json "$d" >/dev/null
	status 0 as $u "$bin" umount "$d"; gone
	status 0 as $u "$bin" mount "$tar" "$d"
	dead
	status 0 as $u "$bin" mount "$tar" "$d"; says "was a dead"
	[ "$(mounts)" = 1 ]
	dead
	status 0 as $u "$bin" umount --all; gone
done
""", "a mount point with an odd name")


@case
def dead_upon_dead():
    """Two dead mounts on one directory, and a dead one inside a dead one."""
    in_namespace("upon", r"""
mkdir one two
"$bin" mount "$tar" one; "$bin" mount "$tar" two
mount --bind two one
dead
status 0 "$bin" mount "$tar" one; says "was a dead"
there one
status 0 "$bin" umount one
status 0 "$bin" umount two; gone

# In a tree where nothing can be asked any more.
"$bin" mount "$tar" one; "$bin" mount -o nonempty "$tar" one/sub
dead
status 0 "$bin" mount "$tar" one; says "was a dead"
there one; [ "$(mounts)" = 1 ]
"$bin" mount -o nonempty "$tar" one/sub
dead
status 0 "$bin" umount --all; gone
[ -z "$(ls one)" ]
""", "dead mounts upon each other")


@case
def covered_by_another():
    """A path that the table of mounts has, and that means something else now."""
    in_namespace("covered", r"""
mkdir -p up/m other/m
"$bin" mount "$tar" up/m
mount --bind other up
status 0 "$bin" mount "$tar" up/m
status 0 "$bin" umount up/m
status 1 "$bin" umount up/m; says "not a mount point"
umount up
there up/m
status 0 "$bin" umount up/m; gone
""", "a covered mount")


@case
def of_another_user():
    in_namespace("foreign", r"""
fuse_for_all
mkdir -m 777 m; chown 65534 m
status 0 as 65534 "$bin" mount "$tar" m
for state in live dead; do
	[ $state = live ] || dead
	status 4 as 65533 "$bin" mount "$tar" m; says 65534 another
	status 1 as 65533 "$bin" umount m; says "cannot unmount"
	status 0 as 65533 "$bin" umount --all
	[ "$(mounts)" = 1 ]
done
status 0 as 65534 "$bin" umount m; gone
# Root may clear it away, but cannot look whether it is dead.
status 0 as 65534 "$bin" mount "$tar" m
dead
status 4 "$bin" mount "$tar" m; says 65534 "tensorfs umount"
status 0 "$bin" umount m; gone
""", "a mount of another user")


@case
def all_but_the_busy():
    """umount --all: only one's own, the rest although one is in use."""
    in_namespace("all", r"""
fuse_for_all
for d in a b c x; do mkdir -m 777 $d; done
chown 65534 a b c; chown 65533 x
for d in a b c; do status 0 as 65534 "$bin" mount "$tar" $d; done
status 0 as 65533 "$bin" mount "$tar" x
as 65534 sh -c 'exec 9<b/a; : >opened; exec sleep infinity' & busy=$!
await [ -e opened ] || { echo "nobody opens b/a"; exit 1; }
status 1 as 65534 "$bin" umount --all
says "b' is in use" "fuser -vm" "--lazy"
[ "$(mounts)" = 2 ]
status 1 as 65534 "$bin" umount b; says "b' is in use" "--lazy"
status 0 as 65534 "$bin" umount --all --lazy; gone 1
kill $busy
status 0 as 65533 "$bin" umount --all; gone
""", "umount --all")


@case
def all_the_dead():
    """umount --all --dead: as its user and as root; not who only hesitates."""
    in_namespace("deads", r"""
fuse_for_all
for d in a b c; do mkdir -m 777 $d; chown 65534 $d; done
for u in 65534 0; do
	status 0 as 65534 "$bin" mount "$tar" a
	dead
	status 0 as 65534 "$bin" mount "$tar" b
	status 0 as 65534 "$bin" mount "$tar" c
	# The command gives a daemon that is stopped 5 s to answer: once is enough.
	stopped=
	[ $u != 0 ] && [ "${TENSORFS_TIER:-full}" != full ] ||
		stopped=$(pgrep -f "s.tar c$")
	[ -z "$stopped" ] || kill -STOP $stopped
	status 2 as $u "$bin" umount --dead
	status 0 as $u "$bin" umount --all --dead
	[ "$(mounts)" = 2 ]; as 65534 cat b/a >/dev/null
	[ -z "$stopped" ] || kill -CONT $stopped
	status 0 as 65534 "$bin" umount --all; gone
done
""", "umount --all --dead")


@case
def all_that_was_staged():
    """umount --all takes away what daemons had staged that were killed; also when
    somebody else has unmounted them."""
    in_namespace("staged", r"""
fuse_for_all
mount -t tmpfs -o size=16m,mode=1777 none /dev/shm
mkdir -m 777 m to; chown 65534 m to
for how in "--all" "--all --dead" "--all --lazy"; do
	status 0 as 65534 "$bin" mount --stage --reserve=0 "$tar" m
	as 65534 cat m/a >/dev/null
	dead
	[ -e /dev/shm/tensorfs-65534/s/a ]
	status 0 as 65534 "$bin" umount $how; gone
	[ -z "$(ls -A /dev/shm)" ] || { ls -AR /dev/shm; exit 1; }
	status 0 as 65534 "$bin" mount --stage --to=to --reserve=0 "$tar" m
	dead
	[ -e to/s/a ]
	status 0 as 65534 "$bin" umount $how; gone
	[ -z "$(ls -A to)" ] || { ls -AR to; exit 1; }
done
status 0 as 65534 "$bin" mount --stage --reserve=0 "$tar" m
dead
umount -l m
# Not what another user staged.
status 0 "$bin" umount --all; status 0 as 65533 "$bin" umount --all
[ -e /dev/shm/tensorfs-65534/s/a ]
status 0 as 65534 "$bin" umount --all
[ -z "$(ls -A /dev/shm)" ] || { ls -AR /dev/shm; exit 1; }
""", "what was staged")


@case
def the_next_mount_stays():
    """A daemon that was detached and then ends leaves its successor alone."""
    mnt = fresh("next")
    exits(tensorfs("mount", tar, mnt), 0, "mount")
    try:
        old = lib.daemons_of(mnt)
        with open(os.path.join(mnt, "a"), "rb"):
            exits(tensorfs("umount", "-z", mnt), 0, "umount -z")
            exits(tensorfs("mount", tar, mnt), 0, "mount")
            for pid in old:
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:     # a helper that was about to leave
                    pass
            check(wait_until(lambda: all(lib.zombie(p) for p in old), 60),
                  "the first daemon does not end")
            usable(mnt)
        exits(tensorfs("umount", mnt), 0, "umount")
    finally:
        force_unmount(mnt)


# --- idle -------------------------------------------------------------------

SHORT = 2                       # seconds, of which the daemon counts its looks


def looks(pid):
    """How often the daemon has looked whether its mount is idle, or a bit more: it
    has a thread for that, which waits for a second in between.  (What is asked
    through the mount would be a use of it.)"""
    most = 0
    for task in os.listdir("/proc/%d/task" % pid):
        at = "/proc/%d/task/%s/" % (pid, task)
        if int(task) != pid and read(at + "comm") == b"tensorfs\n":
            n = read(at + "status").split(b"\nvoluntary_ctxt_switches:")[1]
            most = max(most, int(n.split()[0]))
    return most


def daemon_of(mnt):
    return lib.Mount(tar, mnt).pid


def idles_away(mnt):
    check(wait_until(lambda: not mount_line(mnt), 60),
          "still mounted after 60 s without use")
    # Tests that run beside this one have copies of it in their namespaces.
    check(wait_until(lambda: not pids_with(mnt), 60), "the daemon stays")
    equal(os.listdir(mnt), [], "the directory below")


def timed(name):
    """A mount that goes after SHORT, and an open file that keeps it."""
    mnt = fresh(name)
    exits(tensorfs("mount", "-o", "timeout=%d" % SHORT, tar, mnt), 0, "mount")
    try:
        return mnt, open(os.path.join(mnt, "a"), "rb")
    except OSError:
        if mount_line(mnt):
            raise
        raise TooFast           # it went before this process had its turn


@case
def idle_mounts_go():
    mnt, f = timed("idle")
    try:
        pid = daemon_of(mnt)
        f.close()
        used = time.time()
        for _ in range(2 * SHORT):  # whoever comes back in time finds it
            begun, n = time.time(), looks(pid)
            try:
                usable(mnt)
            except (OSError, Failure):
                # After a use it looks SHORT times, and once more; only then it may go.
                if time.time() - used >= SHORT:
                    raise TooFast
                raise
            used = begun
            wait_until(lambda: not mount_line(mnt) or looks(pid) > n, 60)
        idles_away(mnt)
    finally:
        f.close()
        force_unmount(mnt)


# What keeps a mount, and what it must still be good for afterwards.  A mount was once
# detached under a shell that stood in it.
USERS = {
    "file": ("f = open('a', 'rb')", "f.read(4)"),
    "map": ("import mmap\nf = open('a', 'rb')\n"
            "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\nf.close()",
            "m[:4]"),
    "directory": ("f = os.open('.', os.O_RDONLY)",
                  "open('/proc/self/fd/%d/a' % f, 'rb').read(4)"),
    "path": ("f = os.open('.', os.O_PATH)",
             "open('/proc/self/fd/%d/a' % f, 'rb').read(4)"),
    "inside": ("", "open('a', 'rb').read(4)"),
}


def user(how, mnt):
    """A process that uses the mount until its stdin ends, and says when it does."""
    begin, good = USERS[how]
    code = "import os, sys\n%s\n%s\nprint('in', flush=True)\nsys.stdin.read()\n" \
        "assert %s == b'the '\n" % (
            begin, "" if how == "inside" else "os.chdir('/')", good)
    p = subprocess.Popen(["/usr/bin/python3", "-c", code], cwd=mnt,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lib._children.append(p)
    return p


@case
def what_is_in_use_stays():
    """An open file, a mapped one, an open directory, somebody inside."""
    mounted = {}
    procs = []
    try:
        for how in USERS:
            mnt, f = timed("use-" + how)
            with f:
                p = user(how, mnt)
                procs.append(p)
                equal(p.stdout.readline(), b"in\n", how)
                pid = daemon_of(mnt)
            mounted[mnt] = p, pid, looks(pid)
        for mnt, (p, pid, n) in mounted.items():
            # The attempt to unmount may count as some looks.
            wait_until(lambda: lib.zombie(pid) or looks(pid) >= n + SHORT + 3, 60)
            check(mount_line(mnt), "%s went while in use" % mnt)
        for mnt, (p, _, _) in mounted.items():
            p.stdin.close()
            equal(p.wait(60), 0, "exit status of the user of " + mnt)
        for mnt in mounted:
            idles_away(mnt)
    finally:
        for p in procs:
            p.kill()
            p.wait()
        for mnt in mounted:
            force_unmount(mnt)


@case
def idle_with_a_copy():
    """A container has a copy of the mount, which must not die under it."""
    in_namespace("copy", r"""
mkdir m bound
mkfifo go; exec 3<>go
"$bin" mount -o timeout=2 "$tar" m
command exec 9<m/a || exit 75	# kept, until the container has its copy
daemon=$(pgrep -ox tensorfs)
unshare --mount --propagation private sh -c '
	exec 9<&-; mount --bind m bound; : >ready; read -r _ <go
	cat bound/a && cat m/a; echo $? >result' >out 2>&1 &
await [ -e ready ] || { echo "no container"; cat out; exit 1; }
exec 9<&-
gone
await has_looked $daemon $(($(looks $daemon) + 4)) || {
	echo "the daemon does not look any more"; exit 1; }
echo >go; wait
[ "$(cat result)" = 0 ] || { cat out; exit 1; }
await none_lives || { echo "the daemon stays"; exit 1; }
""", "an idle mount with a copy in a container")


# --- Slurm ------------------------------------------------------------------

@case
def foreground_in_a_step():
    """A command that is the whole of its step; and one that is not."""
    mnt = fresh("step")
    argv = [lib.TENSORFS, "mount", tar, mnt]
    p = subprocess.Popen(["sh", "-c", 'export SLURM_JOB_ID=1 SLURM_TASK_PID=$$;'
                          'exec "$@"', "sh"] + argv, stdin=subprocess.DEVNULL,
                         stderr=subprocess.PIPE)
    lib._children.append(p)
    try:
        check(wait_until(lambda: mount_line(mnt), 60), "not mounted")
        usable(mnt)
        check(p.poll() is None, "went to the background")
        # The helper that opened the source may be about to leave.
        wait_until(lambda: pids_with(mnt) == [p.pid], 60)
        equal(pids_with(mnt), [p.pid], "processes")
        p.terminate()
        equal(p.wait(60), 0, "exit status after SIGTERM")
        err = p.stderr.read().decode()
        check("foreground" in err and "Slurm" in err, "stderr: " + err)
        check(not mount_line(mnt), "still mounted")
        for env in ({"SLURM_JOB_ID": "1", "SLURM_TASK_PID": "1"},
                    {"SLURM_JOB_ID": "1", "SLURM_TASK_PID": ""},
                    {"SLURM_JOB_ID": "1"}):
            q = run(*argv, env=dict(os.environ, **env))
            exits(q, 0, "mount with %r" % env)
            equal(q.stderr, "", "stderr")
            exits(tensorfs("umount", mnt), 0, "umount")
    finally:
        force_unmount(mnt)


# --- systemd ----------------------------------------------------------------

@case
def service_manager_is_told():
    """READY=1 comes when the mount is there, by path or by abstract name."""
    for address in (os.path.join(work, "notify"), "@tensorfs-%d" % os.getpid()):
        mnt = fresh("unit%d" % len(os.listdir(work)))
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.bind(address.replace("@", "\0"))
        s.settimeout(60)
        p = subprocess.Popen([lib.TENSORFS, "mount", "-f", tar, mnt],
                             env=dict(os.environ, NOTIFY_SOCKET=address),
                             stderr=subprocess.PIPE)
        lib._children.append(p)
        try:
            equal(s.recv(100), b"READY=1", "what the socket got")
            usable(mnt)
            exits(tensorfs("umount", mnt), 0, "umount")
            equal(p.wait(60), 0, "exit status")
            equal(p.stderr.read(), b"", "stderr")
        finally:
            force_unmount(mnt)
    for bad in ("", "x", "@", "/nowhere/at/all", "/" + "x" * 200):
        mnt = fresh("unit%d" % len(os.listdir(work)))
        exits(tensorfs("mount", tar, mnt,
                       env=dict(os.environ, NOTIFY_SOCKET=bad)), 0, "mount")
        exits(tensorfs("umount", mnt), 0, "umount")


@case
def unit_is_valid():
    unit = os.path.join(os.environ.get("srcdir", "."),
                        "contrib/systemd/tensorfs@.service")
    if not shutil.which("systemd-analyze"):
        check(not os.environ.get("CI"), "systemd-analyze is missing")
        note("systemd-analyze is missing: the unit is not checked")
        return
    # It insists that programs exist: ours may not be installed.
    d = fresh("units")
    path = os.path.join(d, "tensorfs@x.service")
    with open(unit) as f, open(path, "w") as g:
        g.write(f.read().replace("=tensorfs ", "=%s " % lib.TENSORFS)
                .replace("-tensorfs ", "-%s " % lib.TENSORFS))
    p = run("systemd-analyze", "--user", "--man=no", "verify", path,
            env=dict(os.environ, XDG_RUNTIME_DIR=d))
    equal((p.returncode, p.stderr), (0, ""), "systemd-analyze verify")


# --- descriptors and containers ---------------------------------------------

def fuse_mounted(mnt):
    """/dev/fuse, opened and mounted as Apptainer does."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    opts = "fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
    if libc.mount(b"x", mnt.encode(), b"fuse.tensorfs", 1 | 2 | 4,
                  opts.encode()):
        os.close(fd)
        raise Failure("mount(2): " + os.strerror(ctypes.get_errno()))
    return fd


def mount_fd(name, fds=(), *opts):
    p = subprocess.Popen([lib.TENSORFS, "mount", *opts, tar, name],
                         pass_fds=fds, stdin=subprocess.DEVNULL,
                         stderr=subprocess.PIPE)
    lib._children.append(p)
    return p


@case
def descriptor_and_daemon():
    if not lib.ROOT:
        note("/dev/fd/N left out: needs root")
        return
    for flags in ([], ["-f"]):
        mnt = fresh("fd" + "".join(flags))
        fd = fuse_mounted(mnt)
        try:
            name = "/dev/fd/%d" % fd
            p = mount_fd(name, [fd], *flags)
            os.close(fd)
            if not flags:
                equal(p.wait(60), 0, "exit status in the background")
            usable(mnt)
            exits(run("umount", mnt), 0, "umount")
            check(wait_until(lambda: p.poll() is not None and
                             not pids_with(name), 60), "the daemon stays")
            equal(p.returncode, 0, "exit status")
        finally:
            run("umount", "-l", mnt)


@case
def wrong_descriptors():
    plain = os.open(tar, os.O_RDONLY)
    null = os.open("/dev/null", os.O_RDWR)
    cases = [("/dev/fd/%d" % plain, [plain], "not /dev/fuse"),
             ("/dev/fd/%d" % null, [null], "not /dev/fuse"),
             ("/dev/fd/%d" % plain, [], "not open"),
             ("/dev/fd/1000", [], "not open")]
    cases += [("/dev/fd/" + n, [], "not /dev/fd/N")
              for n in ("", "x", "-1", "+1", " 1", "1x", "1/", "9" * 30)]
    if lib.ROOT:
        fuse = os.open("/dev/fuse", os.O_RDWR)
        cases.append(("/dev/fd/%d" % fuse, [fuse], "nothing is mounted"))
    for name, fds, word in cases:
        for flags in ([], ["-f"]):
            p = mount_fd(name, fds, *flags)
            err = p.communicate()[1].decode()
            equal(p.returncode, 4, "exit status for %r" % name)
            check(word in err, "%r: %s" % (name, err))


@case
def mount_then_container():
    in_namespace("before", r"""
fuse_for_all
mkdir -m 777 m c; chown 65534 m
status 0 as 65534 "$bin" mount "$tar" m
# A namespace of the user's own, as rootless containers have it.
as 65534 unshare --user --map-root-user --mount sh -ec '
	mount --bind m c; cat c/a m/a >out1; ! touch c/a 2>out2' ||
	as 65534 unshare --user --map-root-user true && :
as 65534 unshare --user --map-root-user --mount --pid --fork sh -ec '
	mount --bind m c; test "$(cat c/a)" = "the bytes of a"'
there() { as 65534 cat "$1/a" >/dev/null; }; there m
status 0 as 65534 "$bin" umount m; gone
""", "a mount that a container gets")


@case
def container_then_mount():
    """Mounted inside: as the namespace's root, without fusermount3."""
    in_namespace("inside", r"""
fuse_for_all
mkdir -m 777 m dev
as 65534 unshare --user --map-root-user --mount --pid --fork --kill-child \
	--mount-proc sh -ec '
	PATH=/nowhere "$1" mount "$2" m
	test "$(cat m/a)" = "the bytes of a"
	grep -q "user_id=0" /proc/self/mountinfo
	# What Docker gives by default, and less.
	"$1" umount m
	for size in 64m 4k; do
		mount -t tmpfs -o size=$size shm /dev/shm
		head -c 70000000 /dev/zero >/dev/shm/full 2>/dev/null || :
		"$1" mount -o cache-size=1G "$2" m
		cat m/a; "$1" umount m; umount /dev/shm
	done
	"$1" mount "$2" m' sh "$bin" "$tar" >out 2>err2 || {
	cat out err2; exit 1; }
# Neither the mount nor its daemon outlives the container.
gone; ! pgrep -x tensorfs
[ -z "$(ls m)" ]
""", "a mount in a container")


def main():
    global work, tar
    work = lib.setup()
    os.chmod(work, 0o755)
    src = os.path.join(work, "src")
    os.makedirs(os.path.join(src, "sub"))
    with open(os.path.join(src, "a"), "wb") as f:
        f.write(TEXT)
    tar = os.path.join(work, "s.tar")
    exits(run("tar", "cf", tar, "-C", src, "a", "sub"), 0, "tar")
    exits(tensorfs("ls", tar), 0, "ls")
    lib.main()


if __name__ == "__main__":
    main()
