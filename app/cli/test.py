"""`python -m app test`: test a local robots.txt with several URLs and agents, or what is expected of it."""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.api.problems import Problem
from app.api.trials.reading import SIMULATED_CAUSES, Conditions, SimulatedOutcomeIn, TrialIn, read
from app.api.trials.rows import PastedFile, Trial, answer
from app.cli.bare_host import candidates
from app.cli.decide import add_question
from app.cli.exit_codes import FAULTY, SOUND, Failed, Parser, worst
from app.cli.expectations import FORMAT, Expectation, Tested, junit, read_expectations, report
from app.cli.formatting import row_lines
from app.cli.output import show_verdict, show_warnings
from app.decisions.question import BadQuestion
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.dialects import DIALECTS

READ_LIMIT = 4 * BODY_LIMIT
"""Bytes of a file that are read; those past BODY_LIMIT only cause a warning."""


class _InPlaceOf(argparse.Action):
    """An option that stands in for a positional argument, which is then not required.

    With `nargs="*"`, that could not follow an option.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, *, argument: argparse.Action, **kwargs: Any) -> None:
        super().__init__(option_strings, dest, **kwargs)
        self._argument = argument

    def __call__(self, *arguments: Any) -> None:
        """Keep the value; the arguments are those of `argparse.Action`."""
        _, namespace, value, _ = arguments
        setattr(namespace, self.dest, value)
        self._argument.required = False


def add(parser: Parser) -> None:
    """Add the arguments: a file, URLs, agents, and an outcome to simulate."""
    parser.description = "Test a robots.txt file. Nothing is fetched."
    parser.epilog = (
        "Exit code: 0 if every URL is allowed for every agent, 1 if any is disallowed, 2 if any is deferred (only "
        "with a simulated outcome), 3 for an error. With --expect: 0 if all is as expected, 1 if anything differs, "
        f"3 for an error. {FORMAT}"
    )
    parser.add_argument("file", metavar="FILE", help="the robots.txt; - for standard input")
    urls = parser.add_argument(
        "urls", metavar="URL", nargs="+", help="http or https URLs of pages; without either, https"
    )
    add_question(parser)
    parser.add_argument(
        "--expect",
        metavar="EXPECTED",
        action=_InPlaceOf,
        argument=urls,
        help="in place of URLs and agents: a file of what is expected; print what differs. - for standard input",
    )
    parser.add_argument("--junit", metavar="XML", help="with --expect: also write a report in JUnit's format")
    parser.add_argument(
        "--dialect", action="append", choices=list(DIALECTS), help="may be repeated; the default depends on the agent"
    )
    parser.add_argument(
        "--enforce", action="store_true", default=None, help="disallow what the file refuses to a purpose"
    )
    parser.add_argument("--status", type=int, help="simulate that every fetch is answered with this status")
    parser.add_argument("--cause", choices=SIMULATED_CAUSES, help="simulate that every fetch fails for this cause")
    parser.add_argument("--retry-after", type=int, metavar="SECONDS", help="the Retry-After of the simulated response")
    parser.add_argument("--for", metavar="TIME", help='how long the outcome has lasted: "90m", "3d"')
    parser.add_argument("--no-copy", action="store_true", help="simulate that there was no cached copy")
    parser.add_argument("--json", action="store_true", help="print the JSON of POST /v1/test")


def run(arguments: argparse.Namespace) -> int:
    """Print a line per row on standard output and warnings on standard error. Raise Failed."""
    if arguments.expect is not None:
        return _run_expectations(arguments)
    if arguments.junit is not None:
        raise Failed("--junit reports on expectations: give --expect FILE with it.")
    if not arguments.agent:
        raise Failed("Give at least one --agent, or a file of expectations with --expect.")
    tester = _Tester(arguments)
    text = tester.answer(arguments.urls, arguments.agent)
    rows = json.loads(text)["rows"]
    if arguments.json:
        sys.stdout.write(text + "\n")
    else:
        for row in rows:
            show_verdict(*row_lines(row))
        show_warnings(tester.file.warnings, arguments.file)
    return worst(row["verdict"] for row in rows)


def _run_expectations(arguments: argparse.Namespace) -> int:
    """Print a line per difference; return 1 if there is one."""
    name = arguments.expect
    if arguments.urls or arguments.agent or arguments.json:
        raise Failed("With --expect, the file says which URLs and agents are tested: give no URL, --agent or --json.")
    if name == "-" and arguments.file == "-":
        raise Failed("Only one of the two files can be standard input.")
    expectations = read_expectations(_read(name).decode("utf-8", "replace"), name)
    tester = _Tester(arguments)
    tested = _tested(tester, expectations)
    sys.stdout.writelines(f"{line}\n" for line in report(tested, name))
    show_warnings(tester.file.warnings, arguments.file)
    if arguments.junit is not None:
        _write(arguments.junit, junit(tested, name))
    return FAULTY if any(it.differs for it in tested) else SOUND


def _tested(tester: "_Tester", expectations: Sequence[Expectation]) -> Sequence[Tested]:
    """The rows of each expectation, in order.

    An answer repeats what the whole file states, so there is one for all URLs of an agent.
    """
    of_agents: dict[str, list[int]] = defaultdict(list)
    for number, expectation in enumerate(expectations):
        of_agents[expectation.agent].append(number)
    found: dict[int, Sequence[Mapping[str, Any]]] = {}
    for agent, numbers in of_agents.items():
        rows = json.loads(tester.answer([expectations[number].url for number in numbers], [agent]))["rows"]
        each = len(rows) // len(numbers)  # one for each crawler that the agent names, and each dialect
        for at, number in enumerate(numbers):
            found[number] = rows[at * each : (at + 1) * each]
    return [Tested(expectation, row) for number, expectation in enumerate(expectations) for row in found[number]]


class _Tester:
    """The file and the options of the command line, asked about URLs and agents."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._settings = Settings.read()
        self._operators = OperatorFiles(self._settings)
        self._body = _read(arguments.file)
        self.file = PastedFile.read(self._body)

    def answer(self, urls: Sequence[str], agents: list[str]) -> str:
        """The answer of `POST /v1/test`. Raise Failed."""
        try:
            trial = self._trial(urls, agents)
        except Problem as problem:
            raise Failed(problem.detail) from None
        except BadQuestion as error:
            raise Failed(str(error)) from None
        return answer(trial, self.file, b"", _fail).decode()

    def _trial(self, urls: Sequence[str], agents: list[str]) -> Trial:
        arguments, settings = self._arguments, self._settings
        test = TrialIn.model_construct(
            urls=[candidates(url)[0] for url in urls],
            agents=agents,
            dialects=arguments.dialect,
            at=arguments.at,
            explain=arguments.explain,
            purpose=arguments.purpose,
            enforce=arguments.enforce,
            outcome=_outcome(arguments),
        )
        known, model = self._operators.agents.value.directory, self._operators.model
        conditions = Conditions(known, datetime.now(UTC), model, settings.forbidden)
        return read(test, self._body, conditions, test.policy(settings.purpose_policy), limited=False)


def _fail(error: Exception) -> None:
    """End the command at a row that failed."""
    raise error


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(READ_LIMIT)
        with Path(name).open("rb") as file:
            return file.read(READ_LIMIT)
    except OSError as error:
        raise Failed(f"Cannot read {name}: {error.strerror}.") from None


def _write(name: str, report: bytes) -> None:
    try:
        Path(name).write_bytes(report)
    except OSError as error:
        raise Failed(f"Cannot write {name}: {error.strerror}.") from None


def _outcome(arguments: argparse.Namespace) -> SimulatedOutcomeIn | None:
    options = vars(arguments)
    given = {name: options[name] for name in ("status", "cause", "retry_after", "for") if options[name] is not None}
    if not (given or arguments.no_copy):
        return None
    try:
        return SimulatedOutcomeIn(**given, had_copy=not arguments.no_copy)
    except ValidationError as error:
        first = error.errors()[0]
        raise Failed(f"{'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
