# SPDX-License-Identifier: BSD-2-Clause
"""Results for people and for programs: the table of strangers, the lines of verify."""
import collections
import json

from against import found, one

SHOWN = 6           # objects of a source that the table has a line for
STACK = 24          # lines of stacks
WIDTH = 400         # letters of a line


def plain(text):
    """On one line, and safe for a terminal: what is not printable is escaped as in
    Python."""
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)


def name(text):
    """The name of an object, its middle left out where it is long."""
    text = plain(text)
    return text if len(text) <= 70 else text[:30] + "..." + text[-37:]


def counted(r):
    """Objects compared, and those that are equal."""
    return sum(r.counts.values()), r.counts.get(found.EQUAL, 0)


def as_object(r):
    """A Result for JSON."""
    total, equal = counted(r)
    return {"source": plain(r.path), "kind": r.kind, "reader": r.reader,
            "result": r.result, "why": plain(r.why), "objects": total, "equal": equal,
            "counts": r.counts, "memory": r.memory, "seconds": round(r.seconds, 3),
            "found": [{"result": k, "object": plain(o), "why": plain(w)}
                      for k, o, w in r.found],
            "notes": [plain(n) for n in r.notes], "stacks": r.stacks}


def worst_first(r):
    return sorted(r.found, key=lambda f: found.ORDER.index(f[0]))


# --- strangers ------------------------------------------------------------------------

def head():
    return "%-15s %-8s %13s %6s  %s" % ("RESULT", "KIND", "EQUAL", "MiB", "SOURCE")


def row(r):
    """The lines of one source."""
    total, equal = counted(r)
    objects = "%d of %d" % (equal, total) if total else "-"
    out = ["%-15s %-8s %13s %6d  %s" % (r.result, r.kind, objects, r.memory >> 20,
                                        plain(r.path))]
    indent = " " * 8
    if r.why:
        out.append(indent + plain(r.why))
    shown = worst_first(r)
    if r.result == one.EQUAL:
        shown = [f for f in shown if f[0] != found.NEITHER]
    for kind, what, why in shown[:SHOWN]:
        out.append("%s%s: %s: %s" % (indent, kind, name(what), plain(why)))
    if len(shown) > SHOWN:
        out.append("%sand %d more (--json has all)" % (indent, len(shown) - SHOWN))
    out += [indent + plain(n) for n in r.notes[:SHOWN]]
    out += [indent + line for line in r.stacks.splitlines()[:STACK]]
    return "\n".join(line if len(line) <= WIDTH else line[:WIDTH - 3] + "..."
                     for line in out)


def summary(results, left_out):
    """The last line."""
    n = collections.Counter(r.result for r in results)
    order = (one.EQUAL, one.PART, one.REFUSED, one.BOTH, one.READER, one.NO_READER,
             one.FAILED, one.DIFFERS, one.CRASH, one.HANG, one.MEMORY, one.NO_MOUNT)
    text = ", ".join("%d %s" % (n[k], k) for k in order
                     if n[k] or k in (one.EQUAL, *one.FAULTS))
    objects = sum(counted(r)[0] for r in results)
    text = "%d sources, %d objects: %s" % (len(results), objects, text)
    if left_out:
        text += "; %d files of other kinds left out" % left_out
    return text


# --- verify ---------------------------------------------------------------------------

# What is wrong of objects.
BAD = (found.DIFFERS, found.UNREADABLE, found.FAILED, found.BOTH)
# Results that the lines of the objects explain.
COMPARED = (one.EQUAL, one.PART, one.DIFFERS)
# Exit statuses of `tensorfs verify`, as in tensorfs(1).
STATUS = {one.EQUAL: 0, one.PART: 0, one.REFUSED: 3, one.BOTH: 3, one.NO_MOUNT: 4}


def status_of(r):
    """The exit status of `verify --against`."""
    if r.counts.get(found.UNREADABLE) or r.counts.get(found.BOTH):
        return 1
    if r.counts and not r.counts.get(found.EQUAL):
        return 1    # mounted, and compared with nothing
    if r.result == one.REFUSED and r.status == 5:  # out of memory
        return 5
    return STATUS.get(r.result, 1)


def verdict(r):
    """One sentence that says what was found out."""
    total, equal = counted(r)
    s, them = ("", "it") if total == 1 else ("s", "them")
    if r.result in (one.EQUAL, one.PART):
        text = "%d object%s, %d equal, as %s reads %s" % (
            total, s, equal, r.reader, them)
        others = ["%d %s" % (r.counts[k], k) for k in found.ORDER
                  if k != found.EQUAL and r.counts.get(k)]
        return "; ".join([text, *others])
    if r.result == one.DIFFERS:
        return "%d of %d objects differ from what %s reads" % (
            r.counts[found.DIFFERS], total, r.reader)
    return "%s: %s" % (r.result, plain(r.why))


def verify_lines(r, quiet):
    """What verify prints of one source."""
    shown = worst_first(r)
    if quiet:
        shown = [f for f in shown if f[0] in BAD]
    out = ["%s: %s: %s" % (k, plain(o), plain(w)) for k, o, w in shown]
    if not quiet:
        out += ["note: " + plain(n) for n in r.notes]
        out += r.stacks.splitlines()
        if r.result in COMPARED:
            out.append(verdict(r))
    return out


def verify_json(r, reader):
    out = as_object(r)
    out["against"] = reader
    out["ok"] = status_of(r) == 0
    return json.dumps(out)
