#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Truncations and bit flips of the zoo: right bytes, or an error that says why.

Each case is a damaged copy of one file of the zoo (test_allhdf5.py), made from a
seed and put where the file was, so that its parts and links are found.  h5py
reads it in a child with a time limit, for libhdf5 crashes and loops on some.
Then it is mounted, everything is read, and each dataset is compared:

    what we serve   has to be what h5py reads from the same damaged file
    an error        is one of the six codes, with a sentence; h5py may well have
                    read something: libhdf5 gives fill values for much that is
                    broken, and what was left in memory for the rest
    bytes alone     h5py gave up: on an attribute, another view, a limit of its
                    own; they are counted, and `-v` lists them

Whatever the damage, nothing of ours may crash, hang or leave a report of a
sanitizer, and verify, info, cat and ls end with an exit status of theirs.

    test_damage.py [-v] [PATTERN...]    files whose GROUP/NAME contains a pattern

TENSORFS_DAMAGE_ROUNDS: damaged copies of each file (default: one of most, and of
half of those in the standard tier);
TENSORFS_DAMAGE_SEED: another series of them;
TENSORFS_DAMAGE_KEEP: a directory for those that made a case fail.
"""
import collections
import errno
import itertools
import json
import os
import pickle
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import expect  # before h5py
import h5py
import numpy as np

import h5truth
import lib
from checks import Failure, check, pread, read, same_bytes
from damage import Victim
from lib import run_case
from test_allhdf5 import GROUPS, ragged_name, text_of

ROUNDS = int(os.environ.get("TENSORFS_DAMAGE_ROUNDS", "0"))
SEED = int(os.environ.get("TENSORFS_DAMAGE_SEED", "1"))
CODES = (errno.EIO, errno.EBADMSG, errno.ENODATA, errno.ENOTSUP, errno.ENOMEM)
FILE_MAX = 1 << 20      # zoo files that are damaged
VALUE_MAX = 4 << 20     # bytes of datasets that are compared
OUTPUT_MAX = 64 << 20   # bytes that are read of a command
PARTS = 8               # of virtual datasets, when there are no rounds
ORACLE_SECONDS = 20
HANG_SECONDS = 200      # silence of libhdf5 is noticed after a minute
seen = collections.Counter()
skipped = {}            # paths in a file that are not compared
verbose = False


# --- what h5py reads ----------------------------------------------------------

def walk(f, g, path, put, skip):
    """An Item for each path; h5py's complaints among them.  (None, before it is
    asked, stays when it crashes.)"""
    for name in g:
        p = (path + "/" if path else "") + name
        if p in skip:
            continue
        put(p, None)
        try:
            if not isinstance(g.get(name, getlink=True), h5py.HardLink):
                continue
            obj = g[name]
            if isinstance(obj, h5py.Group) and p.count("/") < 8:
                walk(f, obj, p, put, skip)
            elif isinstance(obj, h5py.Dataset):
                vast = obj.shape is not None and obj.size * max(
                    obj.dtype.itemsize, 1) > VALUE_MAX
                put(p, h5truth.Item("vast") if vast else
                    h5truth._dataset(f, obj))
        except Exception as e:  # any: they are h5py's
            put(p, h5truth.Item("unreadable", what=repr(e)))


def oracle_child(path, out, skip):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

    def put(p, item):
        pickle.dump((p, item), out)
        out.flush()
    try:
        with h5py.File(path, "r") as f:
            if isinstance(f["/"], h5py.Group):
                walk(f, f["/"], "", put, skip)
    except Exception as e:
        put("", h5truth.Item("unreadable", what=repr(e)))
    put(None, None)


def oracle_once(path, scratch, items, seconds=ORACLE_SECONDS):
    """False when it crashed or was too slow."""
    name = os.path.join(scratch, "oracle")
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with open(name, "wb") as out:
                oracle_child(path, out, set(items))
        finally:
            os._exit(0)
    if not lib.wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0], seconds):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with open(name, "rb") as f:
        while True:
            try:
                p, item = pickle.load(f)
            except (EOFError, pickle.UnpicklingError, ValueError):
                return False
            if p is None:
                return True
            items[p] = item


def oracle(path, scratch):
    """{path: Item} of what h5py says; what it does not survive is left out."""
    items, tries = {}, 4
    while not oracle_once(path, scratch, items) and (tries := tries - 1):
        seen["(h5py crashed or hung)"] += 1
    return {p: x for p, x in items.items() if x is not None}


def oracle_of_intact(path, scratch):
    """All of it: what is not among these is taken for lost by the damage."""
    items = {}
    for _ in range(4):
        if oracle_once(path, scratch, items, 120):
            return {p: x for p, x in items.items() if x is not None}
    raise Failure("h5py does not get through the intact file " + path)


# --- what we serve ------------------------------------------------------------

class Refused(Exception):
    """An error of ours, as it should be."""


def whole(path):
    """What h5py read is small: a file of ours that is not is wrong."""
    size = os.stat(path).st_size
    check(size <= OUTPUT_MAX, "%s: %d bytes" % (path, size))
    return read(path)


def beginning(path):
    for off in range(0, min(os.stat(path).st_size, OUTPUT_MAX), 1 << 20):
        pread(path, 1 << 20, off)


def tried(f, path, *args):
    """f(path, ...); an error has one of our codes, and a sentence."""
    try:
        return f(path, *args)
    except OSError as e:
        check(e.errno in CODES, "%s: %s" % (path, e))
        raise Refused(sentence(path))


def sentence(path):
    """Why; a file whose size cannot be told has no attributes, then the root
    says it."""
    try:
        why = os.getxattr(path, "user.tensorfs.error")
    except OSError:
        top = path
        while not os.path.ismount(top):
            top = os.path.dirname(top)
        why = os.getxattr(top, "user.tensorfs.errors")
    check(b" " in why, "%s: no sentence: %r" % (path, why))
    return why.decode("utf-8", "replace")


def file_bytes(d, name):
    names = set(os.listdir(d))
    if name not in names:
        j = json.loads(tried(whole, os.path.join(d, "info.json")))
        why = j.get("not_shown")
        if why is None:  # another view of the same values
            raise LookupError(name)
        check(" " in why, "not_shown: %r" % why)
        raise Refused(why)
    return tried(whole, os.path.join(d, name))


def same_number(d, a):
    got, want = file_bytes(d, "array.npy"), expect.npy(a)
    lead = len(want) - a.nbytes
    if "<c" in str(a.dtype):  # or a structure (r, i), if parts are converted
        check(len(got) - len(want) in (0, 64), "length of array.npy")
        got = want[:lead] + got[len(got) - a.nbytes:]
    same_bytes(expect.mask_bytes(got, lead, a.dtype),
               expect.mask_bytes(want, lead, a.dtype), "array.npy")


def same_lines(d, a):
    got = file_bytes(d, "array.txt")
    if any(x is None for x in a.ravel()):
        raise LookupError("an object without a path")
    want = text_of(np.vectorize(h5truth.text, [object])(a)
                   if a.size else a)
    if got != want[:-1]:
        same_bytes(got, want, "array.txt")


def same_records(d, want):
    got = file_bytes(d, "array.txt").decode().split("\n")
    check(len(got) - (got[-1] == "") == len(want), "lines of array.txt: %d, "
          "not %d" % (len(got), len(want)))
    for i, (g, w) in enumerate(zip(got, want)):
        check(h5truth.alike(json.loads(g), w), "line %d: expected %r, got %s" %
              (i, w, g[:200]))


def same_sequences(d, a):
    if not a.ndim or not a.size:
        return
    if "samples" not in os.listdir(d):
        file_bytes(d, "samples")
    refused = None
    for k in range(a.size):
        at = np.unravel_index(k, a.shape)
        try:
            got = tried(whole, os.path.join(d, ragged_name(at, a.shape)))
        except Refused as e:
            refused = e
            continue
        same_bytes(got, expect.npy(h5truth.little(a[at])), "sample %s" %
                   (at,))
    if refused:
        raise refused


def same_attributes(d, item):
    """Those that both have; ours may say that one cannot be read."""
    j = json.loads(tried(whole, os.path.join(d, "info.json")))
    got = j.get("attributes", {})
    for k, v in item.attrs.items():
        if k in got and not (isinstance(got[k], str) and
                             got[k].startswith("(")):
            check(h5truth.alike(got[k], v), "attribute %r: expected %r, got "
                  "%s" % (k, v, str(got[k])[:200]))


COMPARE = {"number": same_number, "text": same_lines, "refs": same_lines,
           "ragged": same_sequences, "records": same_records}


def compare(d, item):
    """How the two went; a Failure when bytes differ."""
    if not os.path.isdir(d):
        return "not shown"
    try:
        if item.kind in COMPARE:
            same_attributes(d, item)
            COMPARE[item.kind](d, item.value)
            return "same"
        for name in ("array.npy", "array.txt"):
            if os.path.isfile(os.path.join(d, name)):
                if item.kind != "vast":
                    tried(ends, os.path.join(d, name))
                    tried(beginning, os.path.join(d, name))
                return "bytes alone" if item.kind == "unreadable" else "other"
        return "neither"
    except Refused:
        return "refused by both" if item.kind == "unreadable" else \
            "refused by us"
    except LookupError:
        return "other"


def excuse(d, p, intact, odd):
    """Other bytes than h5py's may be what was there before the damage: libhdf5
    gives fill values for parts that it cannot open, and zeros behind what it
    takes for the end of a file.  Odd things may have got another path."""
    if intact and p not in intact:
        return os.path.basename(p) in map(os.path.basename, odd)
    try:
        return p in intact and compare(d, intact[p]) == "same"
    except Failure:
        return False


def sweep(top, left):
    """Read a little of everything; returns how many names may still be looked at."""
    with os.scandir(top) as entries:
        for e in itertools.islice(entries, 40):
            if left <= 0:
                return 0
            left -= 1
            if e.is_dir(follow_symlinks=False):
                left = sweep(e.path, left)
            elif e.is_file(follow_symlinks=False):
                try:
                    tried(ends, e.path)
                except Refused:
                    pass
    return left


def ends(path):
    """The first and the last bytes; all of the size that stat says."""
    size = os.stat(path).st_size
    for off in {0, max(size - 5000, 0)}:
        want = min(5000, size - off)
        got = len(pread(path, 5000, off))
        check(got == want, "%s: %d of %d bytes at %d" % (path, got, want, off))


def reports(scratch):
    """Reports of sanitizers that are not about libhdf5's own code."""
    for name in os.listdir(scratch):
        if not name.startswith("sanitizer"):
            continue
        path = os.path.join(scratch, name)
        with open(path, errors="replace") as f:
            text = f.read()
        os.unlink(path)
        frames = re.findall(r"^ *#[0-2] .*", text, re.M)[:3]
        if re.search("ERROR:|WARNING: Thread|runtime error", text) and \
                not any("libhdf5" in x for x in frames):
            raise Failure(text[:3000])


def command(*argv):
    """A command that ends well.  The beginning of what it prints will do: damage
    makes vast datasets, whose fill values and names come for ever."""
    with tempfile.TemporaryFile() as err:
        p = subprocess.Popen([lib.TENSORFS, *argv], stdout=subprocess.PIPE,
                             stderr=err)
        late = threading.Timer(HANG_SECONDS, p.kill)
        late.start()
        left = OUTPUT_MAX
        while left > 0:
            got = len(p.stdout.read(1 << 20))
            left -= got
            if not got:
                break
        if left <= 0:
            p.kill()
        p.stdout.close()
        code = p.wait()
        late.cancel()
        err.seek(0)
        said = err.read(4000).decode("utf-8", "replace")
    said = lib.our_words(said).strip()
    check(left <= 0 or code in (0, 1, 3, 5), "%s: exit %d; stderr: %s" % (
        argv[0], code, said))
    check(code not in (3, 5) or said, "%s: no sentence" % argv[0])


def commands(path, items):
    todo = [["info"], ["ls"]]
    if not any(x.kind == "vast" for x in items.values()):
        todo += [["verify"], ["ls", "-R"]]  # (10^12 chunks)
    for argv in todo:
        command(*argv, path)
    for p in sorted(items)[:1]:
        for name in "array.npy", "array.txt":
            command("cat", "%s:%s/%s" % (path, p, name))


def one(victim, target, what, scratch):
    """One damaged file: how its datasets went is counted."""
    items = oracle(target, scratch)
    intact, odd = victim.intact.get(target, {}), skipped.get(target, ())
    failed = []
    try:
        with lib.Mount(target) as m:
            pid = m.pid
            for p, item in items.items():
                if p in odd or ".." in p:
                    continue
                try:
                    how = compare(m / p, item)
                except Failure as e:
                    how = "excused"
                    if not excuse(m / p, p, intact, odd):
                        how = "WRONG"
                        failed.append("%s: %s" % (p, e))
                seen[how] += 1
                if verbose and how == "bytes alone":
                    lib.note("%s/%s %s: %s: h5py: %s" % (
                        victim.group, victim.name, what, p, item.what))
            sweep(m.path, 200)
            check(not lib.zombie(pid), "the daemon is gone")
    except Failure as e:
        if not re.search(r"exit 3, nothing mounted; stderr: .* .*", str(e)):
            failed.append(str(e))
        seen["(file refused)"] += 1
    try:
        commands(target, items)
        reports(scratch)
    except Failure as e:
        failed.append(str(e))
    if failed:
        raise Failure("; ".join(failed[:4]))


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def one_twice(victim, target, what, scratch, data):
    """What h5py read before the damage is asked for when bytes differ."""
    before = dict(seen)
    write(victim.path, data)
    try:
        one(victim, target, what, scratch)
    except Failure:
        seen.clear()
        seen.update(before)
        write(victim.path, victim.data)
        victim.intact[target] = oracle_of_intact(target, scratch)
        write(victim.path, data)
        one(victim, target, what, scratch)


def rounds(victim, scratch):
    failed = []
    for k in range(max(ROUNDS, 1)):
        rng = random.Random("%s/%s/%d/%d" % (victim.group, victim.name, SEED,
                                             k))
        what, data = victim.damaged(rng)
        target = rng.choice(victim.targets)
        try:
            one_twice(victim, target, what, scratch, data)
        except (Failure, OSError, ValueError) as e:
            failed.append("round %d (%s; %s): %s" % (
                k, what, os.path.basename(target), e))
            keep(victim, k, data)
        finally:
            write(victim.path, victim.data)
    if failed:
        raise Failure("%d of %d: " % (len(failed), max(ROUNDS, 1)) +
                      " | ".join(failed[:5]))


def keep(victim, k, data):
    to = os.environ.get("TENSORFS_DAMAGE_KEEP")
    if to:
        name = "%s-%s-%d.h5" % (victim.group, victim.name.replace("/", "-"), k)
        write(os.path.join(to, name), data)


def differs(w):
    """Is what we serve by design not what h5py says?"""
    return w.kind in ("any", "custom", "tree") or not w.readable or w.also or \
        w.starts or w.stored


def victims(group, module, top):
    """Small files, parts and targets of links among them."""
    files = module.make(top)
    mains = {zf.path: {w.h5 or p for p, w in zf.wants.items() if differs(w)}
             for zf in files if zf.path and not zf.opts and not zf.env}
    skipped.update(mains)
    parts = group in ("links", "virtual")
    odd = {zf.path for zf in files} - set(mains)
    out = []
    for where, _, names in os.walk(top):
        for n in sorted(names):
            path = os.path.join(where, n)
            if os.path.islink(path) or path in odd or \
                    not (parts or path in mains) or \
                    not 0 < os.path.getsize(path) <= FILE_MAX or \
                    not h5py.is_hdf5(path):
                continue
            name = os.path.relpath(path, top)
            if only and not any(o in "%s/%s" % (group, name) for o in only):
                continue
            out.append(Victim(group, name, path))
            if group == "virtual" and path not in mains:
                out[-1].targets += mains
    out.sort(key=lambda v: v.name)
    if ROUNDS or only:
        return out
    less = [v for v in out if v.path not in mains]
    less = set(random.Random(SEED).sample(less, min(len(less), PARTS)))
    some = [v for v in out if v.path in mains or v in less]
    return some if lib.full() else some[::2]


def main():
    if os.environ.get("TENSORFS_SANITIZED") == "thread":
        lib.note("not under the thread sanitizer, see test_hostile.py")
        return
    warnings.simplefilter("ignore")
    work = lib.setup()
    scratch, decoy, quiet = (os.path.join(work, n)
                             for n in ("scratch", "decoy", "quiet"))
    for d in (scratch, decoy, quiet):
        os.mkdir(d)
    options = os.environ.get("ASAN_OPTIONS", "")
    os.environ["ASAN_OPTIONS"] = options + ":log_path=%s/sanitizer" % scratch
    failed = 0
    for group, module in GROUPS.items():
        if only and not any("/" not in o or o.split("/")[0] in group
                            for o in only):
            continue
        top = os.path.join(work, group)
        os.mkdir(top)
        os.chdir(decoy)  # modules leave files there that nobody may find
        todo = victims(group, module, top)
        os.chdir(quiet)
        for v in todo:
            failed += not run_case("%s/%s" % (group, v.name), rounds, v,
                                   scratch)
    lib.note(", ".join("%s: %d" % x for x in sorted(seen.items())))
    lib.cleanup()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    verbose = "-v" in sys.argv
    only = [a for a in sys.argv[1:] if a != "-v"]
    main()
