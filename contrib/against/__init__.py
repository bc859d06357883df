# SPDX-License-Identifier: BSD-2-Clause
"""Compares what a mount shows with what the reference readers of this machine read."""
