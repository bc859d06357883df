# SPDX-License-Identifier: BSD-2-Clause
"""zip by Python's zipfile: names, modes, times, bytes (whose CRC-32 it checks)."""
import calendar
import stat
import struct
import sys
import zipfile
import zlib

from against import trees
from against.found import ReaderFails
from against.trees import Entry, Expected

READER = "zipfile"
PACKAGE = "python3"
UTF8, ENCRYPTED = 0x800, 1
DOS, UNIX, NTFS, OSX = 0, 3, 10, 19


def load():
    return "zipfile of Python %d.%d" % sys.version_info[:2]


def probe(source):
    with zipfile.ZipFile(source):
        pass


def fields_of(extra):
    """{id: data} of extra fields; those that are cut off are none."""
    out = {}
    while len(extra) >= 4:
        kind, n = struct.unpack_from("<HH", extra)
        if len(extra) < 4 + n:
            break
        out.setdefault(kind, extra[4:4 + n])
        extra = extra[4 + n:]
    return out


def raw_name(info):
    """The bytes of a name as the archive stores them."""
    text = info.orig_filename
    return text.encode("utf-8" if info.flag_bits & UTF8 else "cp437", "surrogateescape")


def name_of(info, fields):
    """The name as unzip has it; zipfile knows neither Info-ZIP's field for one in UTF-8
    nor the backslashes of Windows, and takes UTF-8 of Unix without a flag for cp437."""
    raw = raw_name(info)
    name = info.orig_filename
    if not info.flag_bits & UTF8 and info.create_system in (UNIX, OSX):
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            pass
    unicode = fields.get(0x7075, b"")
    if len(unicode) > 5 and unicode[0] == 1 and \
            struct.unpack_from("<I", unicode, 1)[0] == zlib.crc32(raw):
        try:
            name = unicode[5:].decode("utf-8")
        except UnicodeDecodeError:
            pass  # Info-ZIP writes overlong ones of control characters
    if info.create_system in (DOS, NTFS) and "/" not in name:
        name = name.replace("\\", "/")
    return name


def time_of(info, fields):
    """(ns, unit): the newest field counts; a time of DOS is taken for UTC."""
    dos = calendar.timegm(tuple(info.date_time) + (0, 0, 0))
    stamp = fields.get(0x5455, b"")
    if len(stamp) >= 5 and stamp[0] & 1:
        return _seconds(stamp, 1, dos) * 10 ** 9, 1
    ntfs = fields.get(0x000a, b"")
    if len(ntfs) >= 32 and struct.unpack_from("<HH", ntfs, 4) == (1, 24):
        ticks = struct.unpack_from("<Q", ntfs, 8)[0]
        return (ticks - 116444736000000000) * 100, 100
    old = fields.get(0x5855, b"")
    if len(old) >= 8:
        return _seconds(old, 4, dos) * 10 ** 9, 1
    return dos * 10 ** 9, 1


def _seconds(data, at, dos):
    """32 bits; from 2^31 on they are after 2038 where the time of DOS is, too."""
    value = struct.unpack_from("<I", data, at)[0]
    return value if value < 2 ** 31 or dos >= 2 ** 31 - 86400 else value - 2 ** 32


def _read(z, info):
    with z.open(info) as f:
        return f.read(1 << 16)


def _entry(c, z, number, info, fields):
    mode = info.external_attr >> 16 if info.create_system in (UNIX, OSX) else 0
    mtime, unit = time_of(info, fields)
    bits = stat.S_IMODE(mode) if mode else None
    if info.orig_filename.endswith("/") or stat.S_ISDIR(mode):
        return Entry(stat.S_IFDIR, mode=bits, mtime=mtime, unit=unit)
    if stat.S_ISLNK(mode):
        target = c.ask(info.filename, _read, z, info).decode("utf-8", "surrogateescape")
        return Entry(stat.S_IFLNK, target=target, mtime=mtime, unit=unit)
    return Entry(stat.S_IFREG, number, mode=bits, mtime=mtime, unit=unit,
                 size=info.file_size)


def expect(c, z):
    """The tree of all members."""
    expected = Expected()
    for number, info in enumerate(z.infolist()):
        fields = fields_of(info.extra)
        name = name_of(info, fields)
        try:
            expected.put(name, _entry(c, z, number, info, fields))
        except ReaderFails as e:
            expected.refused[name] = str(e)
        except ValueError as e:
            expected.refused[name] = "its time cannot be read: %s" % e
    return expected


def contents(c, z):
    for number, info in enumerate(z.infolist()):
        try:
            f = c.ask(info.filename, z.open, info)
        except ReaderFails as e:
            yield number, _failing(e)
            continue
        with f:
            yield number, f.read


def _failing(error):
    def read(_):
        raise error
    return read


def compare(c):
    with c.ask("/", zipfile.ZipFile, c.source) as z:
        trees.compare_all(c, expect(c, z), contents(c, z))
