# SPDX-License-Identifier: BSD-2-Clause
"""HDF5 files by h5py: names, links, attributes, and every dataset's bytes."""
import json
import os
import stat

from against import found, hdf5_data, texts
from against.found import BOTH, DIFFERS, NEITHER, NOT_SHOWN, UNREADABLE, ReaderFails

READER = "h5py"
PACKAGE = "python3-h5py"
# What a mount lists in place of members of a group that it cannot list.
OURS = ("(not listed)", "(unreadable)")


def load():
    """Import the reader; its version.  NoReader."""
    # Raw files are beside the file that names them, not in the working directory.
    os.environ.setdefault("HDF5_EXTFILE_PREFIX", "${ORIGIN}")
    try:
        import h5py
    except ImportError as e:
        raise found.NoReader(str(e)) from e
    try:
        import hdf5plugin  # noqa: F401: registers filters
    except Exception:
        pass  # what it would decode is refused by the reader then
    return "h5py %s" % h5py.version.version


def probe(source):
    import h5py
    try:
        with h5py.File(source, "r", locking=False) as f:
            list(f)
    except TypeError:
        with h5py.File(source, "r") as f:
            list(f)


def open_file(c):
    import h5py
    cache = {"rdcc_nbytes": 128 << 20, "rdcc_nslots": 10007}
    return c.ask("/", lambda: h5py.File(c.source, "r", **cache))


def compare(c):
    with open_file(c) as f:
        walk = Walk(c, f)
        walk.attributes("/", c.mount, f, True)
        walk.group("/", c.mount, f["/"])


class Walk:
    def __init__(self, c, f):
        self.c, self.f = c, f
        self.places = {}    # (file, address) of a group: paths of it in the mount

    # --- names ------------------------------------------------------------------

    def group(self, name, directory, group):
        """Compare what is in a group, and go on below."""
        key = self._key(name, group)
        first = key not in self.places
        self.places.setdefault(key, set()).add(self.c.look(os.path.realpath, directory))
        try:
            shown = self.c.look(found.stored_names, directory)
        except found.MountFails as e:
            self.c.result(UNREADABLE, name, str(e))
            return
        names = self._list(name, group)
        if names is None or self._replaced(name, directory, names, shown):
            return
        for member, stored in names.items():
            path = (name.rstrip("/") + "/") + member
            if member not in shown:
                self._absent(path, group, stored, shown)
                continue
            if first or not self._is_group(group, stored):
                self.member(path, os.path.join(directory, shown[member]), group, stored)
        for member in sorted(set(shown) - set(names) - set(OURS)):
            self.c.result(DIFFERS, (name.rstrip("/") + "/") + member,
                          "the reader does not list it")

    def _list(self, name, group):
        """{name: as the reader has it}: one that is not UTF-8 is bytes there."""
        try:
            names = self.c.ask(name, lambda: list(group))
            return {os.fsdecode(n): n for n in names}
        except ReaderFails as e:
            self.c.result(found.NO_ANSWER, name, str(e))
            return None

    def _replaced(self, name, directory, names, shown):
        """Is there an info.json in place of the members of a group?"""
        if set(shown) != {"info.json"} or set(names) == {"info.json"}:
            return False
        why = self._why_not(os.path.join(directory, "info.json"))
        self.c.result(NOT_SHOWN if why else DIFFERS, name,
                      why or "an info.json is in place of its members")
        return True

    def _absent(self, path, group, member, shown):
        import h5py
        for o in OURS:
            if o in shown:
                self.c.result(NOT_SHOWN, path, o)
                return
        try:
            obj = self.c.ask(path, lambda: group[member])
        except ReaderFails as e:
            self.c.result(NEITHER, path, str(e))
            return
        if isinstance(obj, h5py.Datatype):
            self.c.judge(path, lambda: None)  # a type alone has no entry
        else:
            self.c.result(DIFFERS, path, "the mount does not list it")

    def _is_group(self, group, member):
        import h5py
        try:
            return group.get(member, getclass=True) is h5py.Group
        except Exception:
            return False

    def _key(self, name, obj):
        import h5py
        o = self.c.ask(name, lambda: h5py.h5o.get_info(obj.id))
        return o.fileno, o.addr

    def _why_not(self, path):
        """The sentence not_shown of an info.json."""
        try:
            return self.c.look(self._info, path).get("not_shown", "")
        except found.MountFails:
            return ""

    @staticmethod
    def _info(path):
        try:
            info = json.loads(found.read_text(path))
        except ValueError as e:
            raise OSError(22, "info.json is not JSON: %s" % e, path) from e
        if not isinstance(info, dict):
            raise OSError(22, "info.json is not an object", path)
        return info

    # --- members ----------------------------------------------------------------

    def member(self, name, path, group, member):
        import h5py
        try:
            obj = self.c.ask(name, lambda: group[member])
        except ReaderFails as e:
            error = e
            self.c.judge(name, lambda: self._lost(path, error))
            return
        self.c.reading(name)
        try:
            mode = self.c.look(os.lstat, path).st_mode
        except found.MountFails as e:
            self.c.result(UNREADABLE, name, str(e))
            return
        if stat.S_ISLNK(mode):
            self.c.judge(name, lambda: self._symlink(name, path, obj))
        elif isinstance(obj, h5py.Group):
            self.attributes(name, path, obj, True)
            self.group(name, path, obj)
        elif isinstance(obj, h5py.Dataset):
            self.c.judge(name, lambda: self.dataset(name, path, obj),
                         lambda: hdf5_data.drain(self.c, name, obj))
            self.attributes(name, path, obj, False)
        else:
            self.c.result(DIFFERS, name, "the reader says that it is a %s" %
                          type(obj).__name__)

    def _lost(self, path, error):
        """What the reader cannot open: no more than a dangling link, or a sentence."""
        mode = self.c.look(os.lstat, path).st_mode
        if stat.S_ISLNK(mode) and not self.c.look(os.path.exists, path):
            return NEITHER, str(error)
        if self._why_not(os.path.join(path, "info.json")):
            return NEITHER, str(error)
        return found.NO_ANSWER, str(error)

    def _symlink(self, name, path, obj):
        """A link back to a group: the same one."""
        if not self.c.look(os.path.exists, path):
            return NOT_SHOWN, "a dangling link to " + self.c.look(os.readlink, path)
        places = self.places.get(self._key(name, obj))
        if places and self.c.look(os.path.realpath, path) not in places:
            return "the link leads to %s, the reader has another object" % \
                self.c.look(os.readlink, path)
        return None

    # --- datasets ---------------------------------------------------------------

    def dataset(self, name, path, d):
        try:
            info = self.c.look(self._info, os.path.join(path, "info.json"))
        except found.MountFails as e:
            return UNREADABLE, str(e)
        shown = set(self.c.look(os.listdir, path)) - {"info.json"}
        why = info.get("not_shown")
        if not shown and (why or self.c.ask(name, lambda: d.shape) is None):
            return self._not_shown(name, d, why)
        try:
            return hdf5_data.compare(self.c, name, path, d)
        except ReaderFails as e:
            return hdf5_data.compare_dump(self.c, name, path, d, e)

    def _not_shown(self, name, d, why):
        if self.c.ask(name, lambda: d.shape) is None:
            return None  # it has no data
        try:
            self.c.ask(name, lambda: hdf5_data.read_first(d))
        except ReaderFails as e:
            return NEITHER, "%s; %s" % (why, e)
        return NOT_SHOWN, why

    # --- attributes -------------------------------------------------------------

    def _shown_attributes(self, path, is_group):
        """(values, why some cannot be read) as the mount has them."""
        if is_group:
            text = self.c.look(os.getxattr, path, "user.tensorfs.attrs")
            return json.loads(text), {}
        info = self.c.look(self._info, os.path.join(path, "info.json"))
        return info.get("attributes", {}), info.get("unreadable_attributes", {})

    def attributes(self, name, path, obj, is_group):
        try:
            names = self.c.ask(name, lambda: list(obj.attrs))
            names = [n if isinstance(n, str) else n.decode("latin-1") for n in names]
        except ReaderFails as e:
            self.c.result(found.NO_ANSWER, name + "@", str(e))
            return
        if not names:
            return
        try:
            shown, unreadable = self._shown_attributes(path, is_group)
        except (found.MountFails, ValueError) as e:
            self.c.result(UNREADABLE, name + "@", found.words_of(e))
            return
        for a in names:
            self.c.judge("%s@%s" % (name, a), lambda: self._attribute(
                obj, a, shown, unreadable))

    def _attribute(self, obj, a, shown, unreadable):
        if a in unreadable or shown.get(a) == "(cannot be read)":
            return self._unreadable(obj, a, unreadable.get(a, "(cannot be read)"))
        want = self.c.ask("@" + a, lambda: hdf5_data.attribute(obj, a))
        if a not in shown:
            if "(others)" in shown:
                return UNREADABLE, str(shown["(others)"])
            return "the mount does not list it"
        got = shown[a]
        if texts.alike(got, want):
            return None
        if isinstance(got, str) and isinstance(want, (list, dict)) and \
                texts.DESCRIBED.match(got):
            # Too large for info.json, or for an extended attribute.
            return NOT_SHOWN, got
        return "it is %s, the reader has %s" % (texts.short(got), texts.short(want))

    def _unreadable(self, obj, a, why):
        try:
            self.c.ask("@" + a, lambda: hdf5_data.attribute(obj, a))
        except ReaderFails as e:
            return BOTH, "%s; %s" % (why, e)
        return UNREADABLE, why
