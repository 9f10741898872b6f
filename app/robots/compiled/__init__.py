"""What has to take microseconds whatever the file: written in Cython, built by `make` (setup.py), typed by the stubs.

Nothing here knows a dialect. A module of Python beside this package says what is asked, and gives it a meaning:

- `lines` reads a file: its lines, groups, and whose they are; `names` finds callers' names in it, `paces` and `uses`
  read what it states beside rules.
- `spelling` brings texts to one spelling, `texts` keeps many side by side, `rules` puts a group's in order.
- `patterns` and `globs` tell the first pattern that matches, and `deciding` asks them. What `patterns` does is in
  modules of one subject each: `trying` a few, `stems` (prefixes and heads), `grams` (names of texts), `following` (many
  patterns from text to text); `blocks` and `hashing` are what they share.
"""
