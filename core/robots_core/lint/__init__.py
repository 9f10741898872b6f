"""Warnings for site owners: lines that do not mean what they seem to, and what to write instead (spec J5).

Pure, like the core, which it uses to parse files and which does not import it. Each module has the checks of a subject.
"""
