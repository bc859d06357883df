# SPDX-License-Identifier: BSD-2-Clause
"""What the suite makes of its figures: rows, a table, a comparison, a plot.

Nothing here measures, opens a file or needs more than Python: tests/cli/bench-report.py
goes through all of it.  A row is a dictionary:

    step     "P3", "B1", ...             what    what was done
    ours     text: figure, unit, spread  peer    text: who, figure, unit, spread
    ratio    ours against theirs: a list, one for each number of readers; or empty
    spread   per cent, the larger one of both sides; None if there is none
    goal     ">= 5", or ""               met     True, False, or None without goal
    memory   the daemon's peak against what it may have, None if nobody looked
"""
import html
import math
import re
import statistics

# "(spread 12 %)" or "(12 %)"; and the figure in front of it.
SPREAD = re.compile(r"\((?:spread )?(\d+(?:\.\d+)?) %\)")
FIGURE = re.compile(r",? \d[\d.e+]*(?: / \d[\d.e+]*)*(?: [^\s(,]+){0,2} "
                    r"\((?:spread )?[\d.]+ %\).*")
NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")
STEP = re.compile(r"(?:^|: )([PB]\d) ")
NOTEWORTHY = 15  # per cent that a ratio must move by, if the spread is less


def median(values):
    return statistics.median(values)


def spread(values):
    """How far they lie apart, in per cent of the median."""
    return 100 * (max(values) - min(values)) / median(values)


def figure(values, unit):
    m = median(values)
    return "%s %s (spread %.0f %%)" % ("%.0f" % m if m >= 1000 else "%.4g" % m,
                                       unit, spread(values))


# ---- rows --------------------------------------------------------------------

def reached(goal, ratios):
    """Whether all ratios are as the goal says; None without a goal."""
    if not goal or not ratios:
        return None
    sign, number = goal.split()
    if sign == ">=":
        return min(ratios) >= float(number)
    return max(ratios) <= float(number)


def row(step, what, mine, name, theirs, unit, goal=""):
    """Of two series of figures, where more is better."""
    ratio = median(mine) / median(theirs)
    return {"step": step, "what": what, "ours": figure(mine, unit),
            "peer": name + " " + figure(theirs, unit), "ratio": [ratio],
            "spread": max(spread(mine), spread(theirs)), "goal": goal,
            "met": reached(goal, [ratio]), "memory": None}


def from_cells(cells, step):
    """Of a row of lib.table: texts, and whether the goal was met.  A row that
    names a goal of its own (`P3 ...`) belongs to that, others to `step`."""
    what, ours, peer, ratio, goal = (list(cells[:-1]) + [""] * 4)[:5]
    named = STEP.search(what)
    if named:
        step, what = named.group(1), what.replace(named.group(1) + " ", "", 1)
    spreads = [float(s) for s in SPREAD.findall(ours + peer)]
    return {"step": step, "what": what, "ours": ours, "peer": peer,
            "ratio": [float(r) for r in ratio.split("/") if r],
            "spread": max(spreads) if spreads else None, "goal": goal,
            "met": None if cells[-1] is None else bool(cells[-1]),
            "memory": None}


def peer_name(r):
    """Who is compared with, without figures."""
    return FIGURE.sub("", r["peer"]).strip()


def smaller_is_better(r):
    return r["goal"].startswith("<")


def verdict(r):
    """Met or missed; and whether the goal is nearer than the spread is wide."""
    if r["met"] is None:
        return ""
    word = "met" if r["met"] else "**missed**"
    goal = NUMBER.search(r["goal"])
    if goal and r["ratio"] and r["spread"] and float(goal.group()):
        off = min(abs(x / float(goal.group()) - 1) for x in r["ratio"])
        if 100 * off < r["spread"]:
            word += ", within the spread"
    return word


def ratio_text(ratios):
    return "/".join("%.2f" % x if x < 1 else "%.3g" % x for x in ratios)


def order(r):
    """Goals first, then workloads, then the rest."""
    return "PB".find(r["step"][0]) % 3, r["step"]


# ---- the table -----------------------------------------------------------------

def table(rows):
    lines = ["| | what | tensorfs | against | ratio | goal | | memory |",
             "|---" * 8 + "|"]
    for r in sorted(rows, key=order):
        memory = "" if r["memory"] is None else "%.2f" % max(0.01, r["memory"])
        lines.append("| " + " | ".join(
            (r["step"], r["what"], r["ours"], r["peer"], ratio_text(r["ratio"]),
             r["goal"], verdict(r), memory)).replace("  ", " ") + " |")
    return "\n".join(lines) + "\n"


def count(rows):
    with_goal = [r for r in rows if r["met"] is not None]
    met = sum(r["met"] for r in with_goal)
    return met, len(with_goal) - met


def by_goal(rows):
    """A line for each of P1 to P7, B1 to B8 and so on: how many of its goals."""
    steps = {}
    for r in sorted(rows, key=order):
        steps.setdefault(r["step"], []).append(r)
    for step, its in steps.items():
        met, missed = count(its)
        word = ("no goal" if not met + missed else "met" if not missed else
                "missed" if not met else "%d met, %d missed" % (met, missed))
        yield "%s: %s" % (step, word)


def markdown(doc, plot=None):
    met, missed = count(doc["rows"])
    parts = ["# What the suite measured\n",
             "Made by `contrib/bench/suite`%s; `benchmarks.md` says what is "
             "measured and how.\n" % (" --quick" if doc["quick"] else ""),
             doc["machine"] + ".\n",
             "%s, %d s; %s.\n" % (doc["date"], doc["seconds"], doc["noise"])]
    if doc["quick"]:
        parts.append("Little data, two rounds: this shows that everything runs; "
                     "most ratios are those of a full run only roughly.\n")
    parts.append("%d goals met, %d missed.  %s.\n"
                 % (met, missed, "; ".join(by_goal(doc["rows"]))))
    if plot:
        parts.append("![ratios](%s)\n" % plot)
    parts.append(table(doc["rows"]))
    parts.append("`memory`: the largest peak (VmHWM) of any daemon of that "
                 "measurement, as a part of cache-size + 64 MiB + 64 bytes a "
                 "member.\n")
    for title, words in (("Failed to run", doc["failed"]),
                         ("Left out", doc["left_out"])):
        if words:
            parts.append("%s:\n\n%s\n" % (title, "\n".join(
                "- %s: %s" % tuple(w) for w in words)))
    return "\n".join(parts)


# ---- the comparison --------------------------------------------------------------

def key(r, loose=False):
    """What a row is found by in another run: `loose`, if sizes differ."""
    return (r["step"], NUMBER.sub("#", r["what"]) if loose else r["what"],
            NUMBER.sub("#", peer_name(r)))


def compare(old, new):
    """Rows of two documents that are the same: (row, ratio then, ratio now,
    change in per cent, "better", "worse" or ""), the worst first."""
    loose = old["quick"] != new["quick"]
    before = {key(r, loose): r for r in old["rows"] if r["ratio"]}
    found = []
    for r in new["rows"]:
        was = before.get(key(r, loose))
        if not was or not r["ratio"]:
            continue
        then, now = median(was["ratio"]), median(r["ratio"])
        change = 100 * (now / then - 1) if then else 0
        noise = max(NOTEWORTHY, was["spread"] or 0, r["spread"] or 0)
        better = -change if smaller_is_better(r) else change
        word = "" if abs(change) <= noise else "better" if better > 0 else "worse"
        found.append((r, then, now, change, word))
    found.sort(key=lambda f: -f[3] if smaller_is_better(f[0]) else f[3])
    return found


def compare_table(found):
    lines = ["| | what | against | ratio then | now | change | |",
             "|---" * 7 + "|"]
    for r, then, now, change, word in found:
        lines.append("| %s | %s | %s | %.2f | %.2f | %+.0f %% | %s |" % (
            r["step"], r["what"], peer_name(r), then, now, change,
            "**worse**" if word == "worse" else word))
    return "\n".join(lines) + "\n"


# ---- the plot --------------------------------------------------------------------

LEFT, WIDTH, RIGHT, LINE, TOP = 560, 520, 60, 17, 40
COLOURS = {True: "#1a7f37", False: "#c62828", None: "#57606a"}


class Scale:
    """Ratios, logarithmic, to places across."""

    def __init__(self, ratios):
        good = [r for r in ratios if r > 0] or [1]
        self.low = math.floor(min(-1, *(math.log10(r) for r in good)))
        self.high = math.ceil(max(1, *(math.log10(r) for r in good)))

    def __call__(self, ratio):
        x = math.log10(max(ratio, 10 ** self.low))
        return LEFT + WIDTH * (x - self.low) / (self.high - self.low)


def text(x, y, words, more=""):
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more,
                                                    html.escape(words))


def line(x1, y1, x2, y2, colour, width=1):
    return ('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" '
            'stroke-width="%g"/>' % (x1, y1, x2, y2, colour, width))


def grid(scale, height):
    yield text(LEFT, 14, "ratio to a peer or a limit (logarithmic); line: as far "
               "as the spread; bar: the goal")
    for power in range(scale.low, scale.high + 1):
        x = scale(10.0 ** power)
        yield line(x, TOP - 8, x, height, "#888" if power == 0 else "#ddd")
        yield text(x, TOP - 12, "%g" % 10.0 ** power, 'text-anchor="middle"')


def plot_row(r, y, scale):
    colour = COLOURS[r["met"]]
    label = "%s  %s: %s" % (r["step"], r["what"], peer_name(r))
    if len(label) > 92:
        label = label[:91] + "\u2026"
    yield text(LEFT - 8, y + 4, label, 'text-anchor="end" fill="%s"' % colour)
    half = min(r["spread"] or 0, 190) / 200
    yield line(scale(min(r["ratio"]) * (1 - half)), y,
               scale(max(r["ratio"]) * (1 + half)), y, colour)
    for ratio in r["ratio"]:
        yield '<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>' % (
            scale(ratio), y, colour)
    goal = NUMBER.search(r["goal"])
    if goal and float(goal.group()) > 0:
        x = scale(float(goal.group()))
        yield line(x, y - 6, x, y + 6, "#000", 2)
    yield text(LEFT + WIDTH + 6, y + 4, ratio_text([median(r["ratio"])]))


def svg(rows):
    """All rows that have a ratio."""
    rows = [r for r in sorted(rows, key=order) if r["ratio"]]
    scale = Scale([x for r in rows for x in r["ratio"]])
    height = TOP + LINE * len(rows) + 10
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
             'font-family="sans-serif" font-size="11">'
             % (LEFT + WIDTH + RIGHT, height),
             '<rect width="100%" height="100%" fill="#fff"/>',
             *grid(scale, height)]
    for n, r in enumerate(rows):
        parts += plot_row(r, TOP + LINE * n + LINE / 2, scale)
    return "\n".join(parts) + "\n</svg>\n"
