"""`make fuzz`: coverage-guided fuzzing of the pure core, for FUZZ_SECONDS."""

import sys

import atheris

with atheris.instrument_imports(include=["app"]):
    from tests.fuzz.invariant import check


def main() -> None:
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
