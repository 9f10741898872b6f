"""The robots.txt decision service as an installed package: its command is `robots-decisions-server`.

The service's own import package is `app`. In a wheel it lies in the directory `_import_path` of this package, which
only the command's process adds to its import path, so that an `app` of another package is not affected.
"""
