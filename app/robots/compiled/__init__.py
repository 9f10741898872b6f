"""What has to take microseconds whatever the file: written in Cython, built by `make` (setup.py), typed by the stubs.

Nothing here knows a dialect. A module of Python beside this package says what is asked, and gives it a meaning.
"""
