#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmark suite makes of figures: rows, tables, comparisons, plots."""
import os
import statistics
import sys
import unittest
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "contrib", "bench"))
import report


def row(step="B1", what="reading 5 files", ratio=(2.0,), goal="", spread=10.0,
        peer="tmpfs 12 files/s (spread 3 %)"):
    return {"step": step, "what": what, "ours": "24 files/s (spread 10 %)",
            "peer": peer, "ratio": list(ratio), "spread": spread, "goal": goal,
            "met": report.reached(goal, list(ratio)), "memory": 0.5}


def document(rows, quick=False):
    return {"quick": quick, "machine": "a machine", "date": "2024-01-01",
            "noise": "quiet", "seconds": 7, "steps": {}, "rows": rows,
            "failed": [["P6", "no room"]], "left_out": [["B1: loop", "not root"]]}


class Figures(unittest.TestCase):
    def test_median_and_spread(self):
        for values in ([3], [1, 5], [5, 1, 4], [1.5, 2.5, 9, 4]):
            self.assertEqual(report.median(values), statistics.median(values))
        self.assertEqual(report.spread([10, 8, 12]), 40)
        self.assertEqual(report.spread([7]), 0)

    def test_row_of_two_series(self):
        r = report.row("B2", "w", [10, 30, 20], "h5py", [5, 4, 6], "MB/s", ">= 4")
        self.assertEqual(r["ratio"], [4])
        self.assertEqual(r["spread"], 100)
        self.assertIs(r["met"], True)
        self.assertEqual(report.peer_name(r), "h5py")
        self.assertEqual(r["ours"], "20 MB/s (spread 100 %)")

    def test_goals(self):
        self.assertIs(report.reached(">= 2", [2, 3]), True)
        self.assertIs(report.reached(">= 2", [1.9, 3]), False)
        self.assertIs(report.reached("<= 1", [1, 0.5]), True)
        self.assertIs(report.reached("<= 1", [1.1]), False)
        self.assertIsNone(report.reached("", [1]))
        self.assertIsNone(report.reached(">= 2", []))

    def test_a_goal_nearer_than_the_spread(self):
        self.assertEqual(report.verdict(row(ratio=[1.9], goal=">= 2", spread=10)),
                         "**missed**, within the spread")
        self.assertEqual(report.verdict(row(ratio=[1.9], goal=">= 2", spread=2)),
                         "**missed**")
        self.assertEqual(report.verdict(row(ratio=[9], goal=">= 2")), "met")
        self.assertEqual(report.verdict(row()), "")


class Cells(unittest.TestCase):
    """What other programs print, as rows."""

    def test_goals_have_names(self):
        cells = ["cubes: P4 64 random frames", "1 frames/s (spread 14 %)",
                 "h5py (4 of 64 frames), 39.98 frames/s (spread 54 %)", "31.4",
                 ">= 20", "1.00", "256", True]
        r = report.from_cells(cells, "B4")
        self.assertEqual((r["step"], r["what"]), ("P4", "cubes: 64 random frames"))
        self.assertEqual((r["ratio"], r["spread"], r["met"]), ([31.4], 54, True))
        r = report.from_cells(["frames: a scan row", *cells[1:-1], None], "B4")
        self.assertEqual((r["step"], r["met"]), ("B4", None))

    def test_several_readers(self):
        r = report.from_cells(["P1 warm", "84.2 / 100.2 (26 %)",
                               "tmpfs 107.8 / 126.0 (24 %)", "0.78/0.80",
                               ">= 0.95", False], "P2")
        self.assertEqual((r["step"], r["ratio"], r["spread"]),
                         ("P1", [0.78, 0.8], 26))

    def test_short_rows(self):
        r = report.from_cells(["P5 index file", "77 bytes", None], "P5")
        self.assertEqual((r["ratio"], r["goal"], r["met"]), ([], "", None))

    def test_names_of_peers(self):
        for text, name in (
                ("tmpfs 108 / 126 (24 %)", "tmpfs"),
                ("kernel sqfs-zstd 2.3 / 2.2 / 3.6 (35 %)", "kernel sqfs-zstd"),
                ("h5py, cache of 1024 MiB, 2282 frames/s (spread 11 %)",
                 "h5py, cache of 1024 MiB"),
                ("2 cores x one core's decoding, 2287 MB/s (spread 25 %)",
                 "2 cores x one core's decoding"),
                ("h5py (4 of 64 frames), 3.1e+04 frames/s (spread 2 %)",
                 "h5py (4 of 64 frames)"),
                ("tmpfs 263 k files/s (spread 22 %)", "tmpfs"),
                ("mksquashfs 118 MB/s (spread 2 %), 381.9 MiB", "mksquashfs"),
                ("cache-size + 64 MiB = 192 MiB", "cache-size + 64 MiB = 192 MiB"),
                ("", "")):
            self.assertEqual(report.peer_name(row(peer=text)), name)


class Documents(unittest.TestCase):
    ROWS = [row("leaks", "bytes", [1.0], "<= 1.05"), row("B1"),
            row("P1", "an epoch", [0.8, 0.9], ">= 0.95"),
            row("P5", "memory", [], "", None), row("P1", "cold", [1], ">= 0.5")]

    def test_table(self):
        lines = report.table(self.ROWS).splitlines()
        self.assertEqual(len(lines), 2 + len(self.ROWS))
        self.assertEqual({line.count("|") for line in lines}, {9})
        self.assertEqual([line.split("|")[1].strip() for line in lines[2:]],
                         ["P1", "P1", "P5", "B1", "leaks"])

    def test_summary(self):
        self.assertEqual(report.count(self.ROWS), (2, 1))
        self.assertEqual(list(report.by_goal(self.ROWS)), [
            "P1: 1 met, 1 missed", "P5: no goal", "B1: no goal", "leaks: met"])
        text = report.markdown(document(self.ROWS), "x.svg")
        for words in ("2 goals met, 1 missed", "](x.svg)", "- P6: no room",
                      "- B1: loop: not root", report.table(self.ROWS)):
            self.assertIn(words, text)
        self.assertNotIn("--quick", text)

    def test_plot_is_xml_with_a_mark_for_each_ratio(self):
        rows = self.ROWS + [row(what="<&> \"quoted\"", ratio=[1e-3, 0, 5000.0])]
        tree = xml.fromstring(report.svg(rows))
        name = "{http://www.w3.org/2000/svg}"
        circles = tree.findall(name + "circle")
        self.assertEqual(len(circles), sum(len(r["ratio"]) for r in rows))
        for c in circles:
            self.assertGreaterEqual(float(c.get("cx")), report.LEFT)
            self.assertLessEqual(float(c.get("cx")), report.LEFT + report.WIDTH)
        xml.fromstring(report.svg([]))

    def test_larger_ratios_are_further_right(self):
        scale = report.Scale([0.02, 300])
        places = [scale(x) for x in (0.02, 0.1, 1, 7, 300)]
        self.assertEqual(places, sorted(places))
        self.assertEqual(len(set(places)), 5)


class Comparison(unittest.TestCase):
    def compared(self, old, new, quick=(False, False)):
        found = report.compare(document([old], quick[0]),
                               document([new], quick[1]))
        return [(round(change), word) for _, _, _, change, word in found]

    def test_words(self):
        for old, new, expected in ((2, 1, (-50, "worse")), (2, 3, (50, "better")),
                                   (2, 1.9, (-5, ""))):
            self.assertEqual(self.compared(row(ratio=[old]), row(ratio=[new])),
                             [expected])

    def test_the_spread_excuses(self):
        self.assertEqual(self.compared(row(spread=60), row(ratio=[1])), [(-50, "")])
        self.assertEqual(self.compared(row(), row(ratio=[1], spread=60)),
                         [(-50, "")])

    def test_less_is_better_for_some(self):
        self.assertEqual(self.compared(row(ratio=[0.5], goal="<= 1"),
                                       row(ratio=[0.9], goal="<= 1")),
                         [(80, "worse")])

    def test_figures_of_peers_may_change_and_sizes_may_not(self):
        new = row(peer="tmpfs 9876 files/s (spread 99 %)")
        self.assertEqual(len(self.compared(row(), new)), 1)
        other = row(what="reading 900 files")
        self.assertEqual(self.compared(row(), other), [])
        self.assertEqual(len(self.compared(row(), other, (False, True))), 1)
        self.assertEqual(self.compared(row(), row(step="B2")), [])
        self.assertEqual(self.compared(row(), row(ratio=[])), [])

    def test_the_worst_is_first(self):
        old = [row(what=w) for w in "abc"]
        new = [row(what="a"), row(what="b", ratio=[4]), row(what="c", ratio=[1])]
        found = report.compare(document(old), document(new))
        self.assertEqual([f[0]["what"] for f in found], ["c", "a", "b"])
        lines = report.compare_table(found).splitlines()
        self.assertEqual({line.count("|") for line in lines}, {8})
        self.assertIn("**worse**", lines[2])


if __name__ == "__main__":
    unittest.main()
