#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack --shards: read as WebDataset and wids read shards, with Python's tarfile, by
rules written down here once more."""
import collections
import ctypes
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.abspath(__file__ + "/../../../lib"))

import arc
import checks
import lib
import packlib
from checks import check, equal, note, short
from lib import case, tensorfs
from packlib import MIB, noise, pack, put, says, snapshot, summary

work = None


def scratch(name):
    d = os.path.join(work, name)
    os.makedirs(d)
    return d


# --- WebDataset's rules ---------------------------------------------------------
# As its tariterators.py (e0953f9) describes them: a stream of members; what is no
# regular file, or __NAME__, or has no extension, is skipped; a sample is a run of
# members with one key; extensions are in lower case; one of them twice is an error.

SPLIT = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
META = re.compile(r"__[^/]*__($|/)")


def split(name):
    m = SPLIT.match(name)
    return m.groups() if m and not META.match(name) else None


def stream(path):
    if path.endswith(".zst"):
        return io.BytesIO(arc.sh("zstd", "-dc", path))
    return open(path, "rb")


Shard = collections.namedtuple("Shard", "samples members costs size")


def read_shard(path):
    """samples: [(key, {ext: bytes})]; members: their names, in order; costs: the
    bytes that each sample takes in the tar."""
    found, members, costs = [], [], []
    with stream(path) as f, tarfile.open(fileobj=f, mode="r|*",
                                         errors="surrogateescape") as tar:
        for m in tar:
            members.append(m.name)
            at = split(m.name)
            check(m.isreg() and at, "%s is no member of a sample" % m.name)
            key, ext = at[0], at[1].lower()
            if not found or found[-1][0] != key:
                found.append((key, {}))
                costs.append(0)
            check(ext not in found[-1][1], "%s is there twice" % m.name)
            found[-1][1][ext] = tar.extractfile(m).read()
            costs[-1] += m.offset_data + -(-m.size // 512) * 512 - m.offset
    return Shard(found, members, costs, os.path.getsize(path))


def samples_in(top):
    """The same of a directory: {key: {ext: bytes}}, by an own walk."""
    out = collections.defaultdict(dict)
    top = os.fsencode(top)
    for d, _, files in os.walk(top):
        for n in files:
            p = os.path.join(d, n)
            at = split(os.fsdecode(os.path.relpath(p, top)))
            if n.startswith(b".") or os.path.islink(p) or not at or \
                    not os.path.isfile(p):
                continue
            with open(p, "rb") as f:
                out[at[0]][at[1].lower()] = f.read()
    return dict(out)


def index_of(d, name="out-index.json"):
    """Read as wids does: what it needs has to be there."""
    with open(os.path.join(d, name), encoding="utf-8") as f:
        index = json.load(f)
    equal(index["__kind__"], "wids-shard-index-v1", "kind")
    equal(index["wids_version"], 1, "version")
    check(index["shardlist"], "no shards in the index")
    for shard in index["shardlist"]:
        equal(os.path.basename(shard["url"]), shard["url"], "url")
    return index


class Sum(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
_xxhash.argtypes, _xxhash.restype = [ctypes.c_char_p, ctypes.c_size_t], Sum


def checksum(path):
    data = checks.read(path)
    s = _xxhash(data, len(data))
    return "%016x%016x" % (s.high, s.low)


def check_index(d, index):
    """Its shards, which are as it says."""
    out = []
    for shard in index["shardlist"]:
        path = os.path.join(d, shard["url"])
        out.append(read_shard(path))
        equal(shard["nsamples"], len(out[-1].samples), "samples of " + path)
        equal(shard["nfiles"], len(out[-1].members), "files of " + path)
        equal(shard["filesize"], out[-1].size, "size of " + path)
        equal(shard["xxh3_128"], checksum(path), "checksum of " + path)
    return out


def keys_of(shards):
    return [key for s in shards for key, _ in s.samples]


def whole(shards, top):
    """Every sample is there, whole, once; their keys in order."""
    keys = keys_of(shards)
    equal(len(set(keys)), len(keys), "keys that are there once")
    want = samples_in(top)
    equal(sorted(keys), sorted(want), "keys")
    for shard in shards:
        for key, fields in shard.samples:
            check(fields == want[key], "%r: expected %s, got %s" % (
                key, short(sorted(want[key])), short(sorted(fields))))
    return keys


def dataset(name, n=120, seed=1):
    """Samples in classes, in the directory itself, with fields that some lack."""
    top = os.path.join(work, name)
    if os.path.exists(top):
        return top
    r = random.Random(seed)
    for i in range(n):
        key = ("class%d/%05d" if i % 5 else "top%d-%05d") % (i % 3, i)
        put(top, key + ".jpg", r.randbytes(r.choice((0, 1, 511, 512, 513, 9000,
                                                     r.randrange(40000)))))
        put(top, key + ".cls", b"%d" % (i % 3))
        if i % 4:
            put(top, key + ".seg.png", r.randbytes(r.randrange(3000)))
    return top


def run_shards(d, *argv, pattern="out-%06d.tar", code=0):
    got = summary(*argv, os.path.join(d, pattern), code=code)
    index = index_of(d)
    equal(got["shards"], len(index["shardlist"]), "shards in the summary")
    equal(got["stored"], sum(s["filesize"] for s in index["shardlist"]),
          "bytes in the summary")
    equal(got["index"], os.path.join(d, "out-index.json"), "index")
    want = [pattern % i for i in range(got["shards"])]
    equal([s["url"] for s in index["shardlist"]], want, "names")
    check(not [n for n in os.listdir(d) if n.startswith(".")],
                  "left behind: %s" % os.listdir(d))
    return check_index(d, index)


# --- how many, how large --------------------------------------------------------

@case
def n_shards_are_even():
    top = dataset("even")
    n = len(samples_in(top))
    for i, count in enumerate((1, 2, 7, n - 1, n)):
        d = scratch("even-%d" % i)
        shards = run_shards(d, "--shards=%d" % count, top)
        equal(len(shards), count, "shards")
        keys = whole(shards, top)
        sizes = [len(x.samples) for x in shards]
        check(max(sizes) - min(sizes) <= 1, "uneven: %s" % sizes)
        listed = [m for x in shards for m in x.members]
        order = [split(m)[0] for m in sorted(
            listed, key=lambda m: m.replace("/", "\1").encode())]
        equal(keys, list(dict.fromkeys(order)), "order of the samples")
        shutil.rmtree(d)
    p = pack("--shards=%d" % (n + 1), top, work + "/no-%06d.tar", code=2)
    says(p, n, n + 1)


@case
def count_is_a_limit():
    top = dataset("even")
    n = len(samples_in(top))
    for count in (1, 13, n, n + 5):
        d = scratch("count-%d" % count)
        shards = run_shards(d, "--shard-count=%d" % count, top)
        whole(shards, top)
        sizes = [len(x.samples) for x in shards]
        equal(sizes[:-1], [count] * (len(sizes) - 1), "samples")
        check(0 < sizes[-1] <= count, "samples of the last: %s" % sizes)
        shutil.rmtree(d)


def tar_size(members):
    """Two zero blocks behind them, and no part of a record."""
    return -(-(members + 1024) // 10240) * 10240


def check_sizes(shards, limit, compressed=False):
    """No shard is larger than it may, none smaller than it need be."""
    for i, x in enumerate(shards):
        tar = tar_size(sum(x.costs))
        check(compressed or x.size == tar, "size: expected %d, got %d" % (
            tar, x.size))
        check(tar <= limit or len(x.samples) == 1, "%d of %d bytes" % (tar,
                                                                       limit))
        if i + 1 < len(shards):
            more = tar_size(sum(x.costs) + shards[i + 1].costs[0])
            check(more > limit, "there was room for one more: %d of %d" % (
                more, limit))


@case
def size_is_exact():
    top = dataset("sizes", 200, 3)
    # Names that need an extended header, and some that nearly do.
    for i in range(60, 130, 3):
        put(top, "long/" + "n" * i + ".cls", b"%d" % i)
        put(top, "Grüße/" + "ü" * (i - 50) + ".cls", b"%d" % i)
        put(top, "p" * i + "/" + "q" * 90 + ".txt", b"%d" % i)
        put(top, "\udcff/" + "r" * i + ".txt", b"%d" % i)
    os.utime(put(top, "old.txt"), (-5, -5))
    os.utime(put(top, "far.txt"), (2**33, 2**33))
    for limit in (1, 10240, 30720, 100000, 1 << 20, 1 << 30):
        d = scratch("size-%d" % limit)
        shards = run_shards(d, "--shard-size=%d" % limit, top)
        whole(shards, top)
        check_sizes(shards, limit)
        shutil.rmtree(d)
    both = run_shards(scratch("both"), "--shard-size=409600", "--shard-count=9",
                      top)
    equal(max(len(x.samples) for x in both), 9, "count with size")
    check(max(x.size for x in both) <= 409600, "size with count")


@case
def compressed_limits_count_the_tar():
    top = dataset("even")
    for suffix in ("tar.gz", "tar.zst"):
        d = scratch("c-" + suffix)
        shards = run_shards(d, "--shard-size=200K", top,
                            pattern="out-%06d." + suffix)
        whole(shards, top)
        check_sizes(shards, 200 << 10, compressed=True)


# --- what is a sample -----------------------------------------------------------

@case
def keys_as_webdataset():
    top = scratch("keys")
    odd = ["a.jpg", "a.seg.png", "a/b.jpg", "a/b.c/d.txt", "a/b.cls",
           "x.y/c.jpg", "Track 2.0 (v).mp3", "k..ext", "e.", "a.d/q.txt",
           "new\nline/a.txt", "dot.ted\nline/a.txt", "in\nthe.base",
           "Grüße.txt", "a b.c d", "UP.JPG", "z/__m__/k.txt", "__a_/k.txt",
           "__a.txt", "b\udcff.bin", "sub/deep/er.ext", "same.txt",
           "dir1/same.txt", "dir2/same.txt"]
    skipped = ["noext", "a/noext", ".hidden", "a/.hid.txt", "._a.jpg",
               "__meta__/k.txt", "__x__", "dot.line\nx.y/a.txt"]
    for n in odd + skipped:
        put(top, n, n.encode("utf-8", "surrogateescape"))
    os.mkfifo(os.path.join(top, "fifo.txt"))
    p = tensorfs("pack", "--shards=1", "--json", top, work + "/keys-%d.tar")
    equal(p.returncode, 0, "exit (%s)" % p.stderr)
    says(p, "no sample")
    want = {split(n) for n in odd if split(n)}
    found = read_shard(work + "/keys-0.tar").samples
    got = {(k, e) for k, fields in found for e in fields}
    equal(got, {(k, e.lower()) for k, e in want}, "fields")
    equal(len(found), len({k for k, _ in want}), "samples")
    equal(json.loads(p.stdout)["left_out"],
          len(skipped) + len(odd) - len(want) + 1, "left out")


@case
def two_fields_of_one_name():
    top = scratch("twice")
    put(top, "a.jpg", b"1")
    put(top, "b.txt", b"1")
    put(top, "a.JPG", b"2")
    p = pack("--shards=1", top, work + "/twice-%d.tar", code=3)
    says(p, "a.JPG", "a.jpg", "--exclude")
    check(not os.path.exists(work + "/twice-0.tar"), "a shard is there")
    pack("--shards=1", "--exclude=a.JPG", top, work + "/twice-%d.tar")


@case
def links():
    top = scratch("links")
    put(top, "a.bin", noise(3000))
    os.link(top + "/a.bin", top + "/b.bin")
    os.link(top + "/a.bin", top + "/c.bin")
    d = scratch("links-out")
    shards = run_shards(d, "--shards=3", top)
    whole(shards, top)                  # each shard has the bytes
    os.symlink("a.bin", top + "/s.bin")
    p = pack("--shards=2", "--force", top, d + "/o-%d.tar", code=1)
    says(p, "s.bin", "symlink")
    whole([read_shard(d + "/o-%d.tar" % i) for i in range(2)], top)


@case
def order_of_a_list():
    top = dataset("even")
    keys = sorted(samples_in(top))
    random.Random(4).shuffle(keys)
    with open(work + "/order", "w") as f:
        f.writelines(k + ".jpg\n" for k in keys[:40])
    shards = run_shards(scratch("order-out"), "--shards=3",
                        "--order=" + work + "/order", top)
    got = whole(shards, top)
    equal(got[:40], keys[:40], "order")


# --- shuffled -------------------------------------------------------------------

@case
def shuffled_as_torch():
    import torch
    top = dataset("even")
    plain = whole(run_shards(scratch("s-0"), "--shards=4", top), top)
    for i, seed in enumerate((0, 1, 42, 2**32 - 1)):
        d = scratch("s-%d" % (i + 1))
        got = whole(run_shards(d, "--shards=4", "--shuffle=%d" % seed, top),
                    top)
        g = torch.Generator().manual_seed(seed)
        want = [plain[k] for k in torch.randperm(len(plain), generator=g)]
        equal(got, want, "order of seed %d" % seed)
        equal(index_of(d)["shuffle"], seed, "seed in the index")


@case
def same_bytes_again():
    top = dataset("even")
    for suffix in ("tar", "tar.gz", "tar.zst"):
        seen = []
        for i, jobs in enumerate((1, 7)):
            d = scratch("again-%s-%d" % (suffix, i))
            pack("-q", "--shard-size=500K", "--shuffle=3", "--jobs=%d" % jobs,
                 "--threads=%d" % jobs, top, d + "/out-%06d." + suffix)
            seen.append({n: b for n, (_, b) in snapshot(d).items()
                         if not n.endswith(".tfsidx")})
        check(seen[0] == seen[1], "%s differs" % suffix)


@case
def mounts_and_verifies():
    top = dataset("even")
    d = scratch("mount-out")
    got = summary("--shards=5", "--verify", top, d + "/out-%06d.tar")
    check(got["verified"] and not got["differences"], "not verified: %s" % got)
    p = tensorfs("ls", "-R", d + "/out-000002.tar")
    for m in read_shard(d + "/out-000002.tar").members:
        check(os.path.basename(m) in p.stdout, m + " is not listed")


# --- wrong usage ----------------------------------------------------------------

@case
def patterns():
    top = dataset("small", 4)
    bad = {"x.tar": "no number", "%x.tar": "%06d", "%d-%d.tar": "more than one",
           "%99d.tar": "%06d", "%": "", "%s.tar": "%06d", "%%.tar": "no number",
           "n" * 250 + "%06d.tar": "too long"}
    d = scratch("patterns")
    for name, word in bad.items():
        p = pack("--shards=2", top, os.path.join(d, name), code=2)
        says(p, word)
    p = pack("--shards=2", top, d + "/%d/out.tar", code=2)
    says(p, "in the file name")
    p = run_bytes("--shards=2", top, os.fsencode(d) + b"/\xff-%d.tar")
    equal(p.returncode, 2, "exit of a name that is not UTF-8")
    equal(os.listdir(d), [], "left behind")
    for name, want in (("%d.tar", "0.tar"), ("%3d.tar", "  0.tar"),
                       ("50%%-%02d.tar.gz", "50%-00.tar.gz")):
        pack("--shards=2", top, os.path.join(d, name))
        check(os.path.exists(os.path.join(d, want)), want)
        for n in os.listdir(d):
            os.unlink(os.path.join(d, n))


def run_bytes(*argv):
    return subprocess.run([os.fsencode(lib.TENSORFS), b"pack",
                           *map(os.fsencode, argv)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@case
def options_that_do_not_go_together():
    top = dataset("small", 4)
    out = work + "/never-%d.tar"
    with open(work + "/list", "w") as f:
        f.write("nothing\n")
    for argv in (["--shards=2", "--shard-size=1M"], ["--shuffle=1"],
                 ["--shards=2", "--shard-count=1"], ["--shards=0"],
                 ["--shards=2", "--shuffle=1", "--order=" + work + "/list"],
                 ["--shards=2", "--format=squashfs"],
                 ["--shards=2", "--format=h5"]):
        check(pack(*argv, top, out, code=2).stderr, argv)
    empty = scratch("empty")
    put(empty, "noext", b"x")
    says(pack("--shards=1", empty, out, code=3), "no samples")
    check(not [n for n in os.listdir(work) if "never" in n], "left behind")


@case
def old_shards():
    top = dataset("even")
    d = scratch("old")
    pack("-q", "--shards=4", "--no-index", top, d + "/out-%06d.tar")
    before = snapshot(d)
    p = pack("--shards=4", top, d + "/out-%06d.tar", code=2)
    says(p, "out-000000.tar", "4 more", "--force")
    # Fewer than there were: some would stay, and be read with the new ones.
    p = pack("--shards=2", "--force", top, d + "/out-%06d.tar", code=2)
    says(p, "out-000002.tar", "1 more", "remain")
    packlib.nothing_new(d, before)
    os.chmod(d + "/out-000001.tar", 0o600)
    pack("-q", "--shards=6", "--force", "--no-index", top, d + "/out-%06d.tar")
    whole(check_index(d, index_of(d)), top)
    equal(packlib.names(d), ["out-%06d.tar" % i for i in range(6)] +
          ["out-index.json"], "names")
    equal(os.stat(d + "/out-000001.tar").st_mode & 0o777, 0o600, "mode")
    os.mkdir(d + "/dir-1.tar")
    p = pack("--shards=2", "--force", top, d + "/dir-%d.tar", code=2)
    says(p, "a directory")


@case
def shards_in_the_directory():
    """Those of the run before are not samples of the next."""
    top = scratch("inside")
    for i in range(10):
        put(top, "%d.txt" % i, noise(5000, i))
    for _ in range(2):
        pack("-q", "--shards=2", "--force", top, top + "/out-%d.tar")
        keys = keys_of(read_shard(top + "/out-%d.tar" % i) for i in range(2))
        equal(sorted(keys), [str(i) for i in range(10)], "keys")
    os.makedirs(top + "/sub")
    pack("-q", "--shards=2", top + "/.", top + "/sub/../sub/out-%d.tar")
    pack("-q", "--shards=2", "--force", top, top + "/sub/out-%d.tar")
    keys = keys_of(read_shard(top + "/sub/out-%d.tar" % i) for i in range(2))
    check("sub/out-0" not in keys and "0" in keys, keys)


# --- when things go wrong -------------------------------------------------------

@case
def disk_full_in_the_middle():
    top = scratch("full")
    for i in range(24):
        put(top, "%02d.bin" % i, noise(MIB // 2, i))
    for suffix in ("tar", "tar.zst"):
        with packlib.Tmpfs(work, 13 * MIB) as d:
            pattern = d + "/out-%06d." + suffix
            pack("-q", "--shards=2", "--exclude=[12]*.bin", top, pattern)
            before = snapshot(d)
            p = pack("-q", "--shards=8", "--force", top, pattern, code=(1, 5))
            says(p, "No space left", "out-00000")
            check("/." not in p.stderr, p.stderr)
            packlib.nothing_new(d, before, suffix)


@case
def interrupted():
    top = packlib.slow_tree(os.path.join(work, "slow"))
    d = scratch("interrupted")
    pattern = d + "/out-%06d.tar.zst"
    pack("-q", "--shard-count=100", top, pattern)
    hit = 0
    # SIGKILL is the last: it leaves what the others are looked at for.
    signals = [signal.SIGTERM, signal.SIGKILL]
    if lib.full():
        signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
    if os.environ.get("TENSORFS_SANITIZED") == "thread":
        # TSan takes every SIGPIPE for one of the thread's own making and runs the
        # handler at once, inside of itself, too, where it crashes or hangs.
        note("no SIGPIPE from outside under TSan")
    else:
        signals.insert(0, signal.SIGPIPE)
    for sig in signals:
        argv = ["--force", "--shard-count=9", "--comp=zstd:12", "--threads=1",
                top, pattern]
        # A run that has ended before it is looked at says nothing: another one then.
        hit += any(packlib.interrupted(argv, d, sig, 4 * MIB // 100) for _ in range(8))
    check(hit >= 2, "no run was stopped in the middle")
    # What a killed run left is no sample of anybody.
    left = [n for n in os.listdir(d) if n.startswith(".")]
    note("left by SIGKILL: %s" % left)
    put(d, "a.txt", b"x")
    pack("-q", "--shards=1", "--force", "--exclude=*.zst*", d,
         d + "/out-%06d.tar")
    equal(keys_of([read_shard(d + "/out-000000.tar")]), ["a"], "keys")


@case
def unreadable_and_vanished():
    from user import as_user
    top = scratch("vanish")
    for i in range(10):
        put(top, "%d.txt" % i, noise(100, i))
    os.chmod(top + "/3.txt", 0)
    d = scratch("vanish-out")
    os.chmod(d, 0o777)
    os.chmod(work, 0o755)
    kw = as_user()
    p = lib.run(lib.TENSORFS, "pack", "--shards=2", "--no-index", top,
                d + "/out-%d.tar", **kw)
    equal(p.returncode, 1, "exit: " + p.stderr)
    says(p, "3.txt", ": 2 shards, 9 samples, 9 files,")
    shards = check_index(d, index_of(d))
    equal(sorted(keys_of(shards)),
          [str(i) for i in range(10) if i != 3], "keys")


def main():
    global work
    work = packlib.setup(fuse=False)
    lib.main()


if __name__ == "__main__":
    main()
