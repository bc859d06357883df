# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison finds out, told to the process that supervises it line by line.

The process that reads a mount may hang in it, be killed by a reader, or run out of
memory.  So it tells what it is going to do before it does it, and each result as soon
as it is known.
"""
import errno
import json
import os
import traceback

# Results for one object of a source (a dataset, a member), the worst first.
DIFFERS = "differs"             # both show it, and not the same
UNREADABLE = "unreadable"       # the mount gives an error, the reader reads
FAILED = "not compared"         # the comparison itself has a fault
NOT_SHOWN = "not shown"         # the mount says that it does not show it
NO_ANSWER = "reader refuses"    # the mount shows it, the reader gives an error
BOTH = "refused by both"        # both give an error for it
NEITHER = "shown by neither"    # a dangling link, a type that neither has
EQUAL = "equal"
ORDER = (DIFFERS, UNREADABLE, FAILED, NOT_SHOWN, NO_ANSWER, BOTH, NEITHER,
         EQUAL)

# How many findings of each kind are told; the others are only counted.
TOLD = 1000


class MountFails(Exception):
    """An error of the mount: the file, errno, and the sentence that it gives."""

    def __init__(self, path, error, mount):
        self.path, self.errno = path, error.errno
        super().__init__(sentence_of(path, error, mount))


class ReaderFails(Exception):
    """The reference reader does not read the source, or an object of it."""


class NoReader(Exception):
    """There is no reference reader for this on the machine."""


class MountGone(Exception):
    """The daemon has ended: there is nothing to compare any more."""


def sentence_of(path, error, mount):
    """errno's name, and what the mount says of the error of this file."""
    code = errno.errorcode.get(error.errno, str(error.errno))
    said = _xattr(path, "user.tensorfs.error") or _recent(path, mount) or \
        error.strerror or os.strerror(error.errno or 0)
    return "%s: %s" % (code, said.strip())


def _xattr(path, name):
    try:
        return os.getxattr(path, name).decode("utf-8", "replace")
    except OSError:
        return ""


def _recent(path, mount):
    """The root's list of recent errors: where stat fails, a file has no attributes."""
    name = " /%s: " % os.path.relpath(path, mount)
    for line in reversed(_xattr(mount, "user.tensorfs.errors").splitlines()):
        if name in line:
            return line.split(name, 1)[1]
    return ""


def words_of(error):
    """An exception in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, (ReaderFails, MountFails)):
        return text
    name = type(error).__name__
    return "%s: %s" % (name, text) if text else name


def fault_of(error):
    """An unexpected exception, and where it was raised."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return "%s (%s:%d)" % (words_of(error), os.path.basename(at.filename), at.lineno)


class Found:
    """Collects results of one source, and sends them through `pipe`."""

    def __init__(self, pipe, mount, source, scratch, limit, judged=()):
        self.pipe, self.mount, self.source = pipe, mount, source
        self.scratch = scratch      # a directory for what a reader extracts
        self.limit = limit          # bytes of one object that are compared whole
        self.judged = set(judged)   # objects that an earlier process dealt with
        self.told = {}
        self.side = ""              # what the walk waits for: "mount" or "reader"
        self.on = "/"

    def send(self, **what):
        line = json.dumps(what) + "\n"
        os.write(self.pipe, line.encode("ascii"))

    # --- what is going on -------------------------------------------------------

    def reading(self, name):
        """The mount is going to be read."""
        self._at("mount", name)

    def asking(self, name):
        """The reference reader is going to be asked."""
        self._at("reader", name)

    def _at(self, side, name):
        self.side, self.on = side, name
        self.send(at=side, on=name)

    def ask(self, name, f, *args):
        """f(*args), which is the reader's: its errors are ReaderFails."""
        self.asking(name)
        try:
            return f(*args)
        except (ReaderFails, NoReader):
            raise
        except Exception as e:
            raise ReaderFails(words_of(e)) from e

    def look(self, f, path, *args, **named):
        """f(path, ...), which reads the mount: its errors are MountFails."""
        if self.side != "mount":
            self.reading(self.on)
        try:
            return f(path, *args, **named)
        except OSError as e:
            if e.errno in (errno.ENOTCONN, errno.ECONNABORTED):
                raise MountGone from e
            raise MountFails(path, e, self.mount) from e

    # --- results ----------------------------------------------------------------

    def result(self, kind, name, why=""):
        self.judged.add(name)
        n = self.told[kind] = self.told.get(kind, 0) + 1
        if kind == EQUAL or n > TOLD:
            self.send(found=kind, on=name)
        else:
            self.send(found=kind, on=name, why=why)

    def note(self, text):
        """Something about the comparison itself that a person has to know."""
        self.send(note=text)

    def judge(self, name, compare, drain=None):
        """Compare one object.  compare() raises MountFails or ReaderFails, or returns
        None (equal), a sentence (differs), or (result, sentence).  drain() reads all of
        it by the reader: does that fail where the mount does?"""
        if name in self.judged:
            return
        self.reading(name)
        try:
            got = compare()
        except MountFails as e:
            self.result(*self._mount_failed(name, e, drain))
        except ReaderFails as e:
            self.result(NO_ANSWER, name, str(e))
        except MemoryError:
            self.result(NO_ANSWER, name, "the comparison is out of memory")
        except MountGone:
            raise
        except Exception as e:
            self.result(FAILED, name, fault_of(e))
        else:
            if got is None:
                self.result(EQUAL, name)
            elif isinstance(got, tuple):
                self.result(got[0], name, got[1])
            else:
                self.result(DIFFERS, name, got)


    def _mount_failed(self, name, error, drain):
        try:
            if drain:
                drain()
        except ReaderFails as e:
            return BOTH, name, "%s; %s" % (error, e)
        return UNREADABLE, name, str(error)


# --- reading files of a mount ---------------------------------------------------------

def pread(fd, n, at):
    """Returns n bytes of an open file from `at` on; fewer at its end."""
    parts = []
    while n > 0:
        part = os.pread(fd, n, at)
        if not part:
            break
        parts.append(part)
        n, at = n - len(part), at + len(part)
    return b"".join(parts)


def read_range(path, n, at):
    """The same of a file that is not open."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return pread(fd, n, at)
    finally:
        os.close(fd)


def read_whole(path):
    with open(path, "rb", buffering=0) as f:
        return f.readall()


def read_text(path):
    return read_whole(path).decode("utf-8", "surrogateescape")


def stored_names(directory):
    """{stored name: shown name} of what a directory of the mount lists."""
    names = {}
    for shown in sorted(os.listdir(directory)):
        stored = shown
        if "%" in shown or "~" in shown:
            try:
                stored = os.fsdecode(os.getxattr(
                    os.path.join(directory, shown), "user.tensorfs.name",
                    follow_symlinks=False))
            except OSError:
                pass  # it is stored as it is shown
        names[stored] = shown
    return names
