"""The kernel library: functions of device arrays, written in the kernel language.

They take contiguous arrays of one device and give new ones. Dtypes, shapes and devices are checked
by the layers above. `device_code` holds the kernels, the modules here say how they are launched.
"""
