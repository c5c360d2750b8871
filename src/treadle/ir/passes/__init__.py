"""Passes: functions from kernel to kernel (or to facts about one), in the order lowering runs them."""
