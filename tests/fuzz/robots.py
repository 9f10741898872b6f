"""`make fuzz`: coverage-guided fuzzing of the core."""

import sys

import atheris

with atheris.instrument_imports(include=["app", "robots_core"]):
    from tests.fuzz.invariant import check


def main() -> None:
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
