# SPDX-License-Identifier: BSD-2-Clause
"""tar, plain or compressed, by Python's tarfile: names, attributes, links, bytes."""
import decimal
import os
import stat
import sys
import tarfile

from against import streams, trees
from against.found import ReaderFails
from against.trees import Entry, Expected

READER = "tarfile"
PACKAGE = "python3"
KINDS = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK,
         tarfile.CHRTYPE: stat.S_IFCHR, tarfile.BLKTYPE: stat.S_IFBLK,
         tarfile.FIFOTYPE: stat.S_IFIFO}
XATTR = "SCHILY.xattr."


def load():
    return "tarfile of Python %d.%d" % sys.version_info[:2]


def open_tar(path, how):
    stream = streams.open_stream(path, how)
    # Zeros and damaged headers are passed over, as in a mount; one that no header
    # follows at all is not a tar.
    return stream, tarfile.open(fileobj=stream, mode="r:" if how is None else "r|",
                                ignore_zeros=True, errors="surrogateescape")


def is_tar(block):
    """Does a tar begin with these 512 bytes?  By the sum of its first header."""
    if len(block) < 512 or not any(block):
        return False
    try:
        return tarfile.nti(block[148:156]) in tarfile.calc_chksums(block)
    except tarfile.HeaderError:
        return False


def probe(source):
    how = streams.compression_of(streams.head_of(source))
    with streams.open_stream(source, how) as f:
        first = f.read(512)
    if how is None and not is_tar(first):
        raise ReaderFails("its first header has a wrong checksum")


def compare(c):
    how = streams.compression_of(streams.head_of(c.source))
    with c.ask("/", streams.open_stream, c.source, how) as f:
        first = c.ask("/", f.read, 512)
    if how is not None and not is_tar(first):
        streams.compare_single(c, how)
        return
    expected, broken = _expected(c, how)
    trees.compare_all(c, expected, _contents(c, how, expected), broken)


def _members(c, how):
    """(number, TarInfo, tar) of all members; ReaderFails where it ends early."""
    stream, tar = c.ask("/", open_tar, c.source, how)
    with stream, tar:
        number = 0
        while True:
            info = c.ask("member %d" % number, tar.next)
            if info is None:
                return
            yield number, info, tar
            number += 1
            tar.members = []    # a stream needs none of those behind it


def _expected(c, how):
    """The tree that the members make; the reader's error if it ended early."""
    expected = Expected()
    try:
        for number, info, _ in _members(c, how):
            name = info.name
            if info.islnk():
                expected.link(name, info.linkname)
            elif info.type in tarfile.SUPPORTED_TYPES:
                expected.put(name, _entry(number, info))
            else:
                expected.refused[name] = "members of type %r are not known" % info.type
    except ReaderFails as e:
        return expected, str(e)
    return expected, None


def _mtime(info):
    """Nanoseconds; tarfile makes a float of what pax says."""
    text = info.pax_headers.get("mtime")
    try:
        value = decimal.Decimal(text) if text else decimal.Decimal(info.mtime)
    except decimal.InvalidOperation:
        return None
    return int((value * 10 ** 9).to_integral_value(decimal.ROUND_FLOOR))


def _keyword(text):
    """GNU tar writes the characters that end a keyword of pax as %3D and %25."""
    return text.replace("%3D", "=").replace("%25", "%")


def _entry(number, info):
    kind = KINDS.get(info.type, stat.S_IFREG)
    xattrs = {_keyword(k[len(XATTR):]): v.encode("utf-8", "surrogateescape")
              for k, v in info.pax_headers.items() if k.startswith(XATTR + "user.")}
    owner = (info.uid, info.gid)
    if not all(0 <= x < 2 ** 32 - 1 for x in owner):
        owner = None
    device = None
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        device = os.makedev(info.devmajor, info.devminor)
    return Entry(kind, number, mode=info.mode & 0o7777, owner=owner, mtime=_mtime(info),
                 size=info.size if kind == stat.S_IFREG else None,
                 target=info.linkname if kind == stat.S_IFLNK else None,
                 device=device, xattrs=xattrs)


def _contents(c, how, expected):
    wanted = set(expected.first_paths())
    for number, info, tar in _members(c, how):
        if number not in wanted:
            continue
        f = c.ask(info.name, tar.extractfile, info)
        if f is None:
            raise ReaderFails("%s has no bytes" % info.name)
        with f:
            yield number, f.read

