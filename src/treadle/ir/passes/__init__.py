"""Passes: functions from a kernel to a kernel, or to facts about one."""
