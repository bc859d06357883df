#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The part of test_allhdf5.py with every virtual mapping; apart, so that they run side by side."""
import sys

sys.dont_write_bytecode = True

import test_allhdf5

if __name__ == "__main__":
    test_allhdf5.main(("virtual",))
