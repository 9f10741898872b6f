"""The reference pages agree with the code; links are valid."""

import argparse
import importlib
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.__main__ import COMMANDS, module_of
from app.api.problem_types import PROBLEMS
from app.cli.exit_codes import Parser
from app.main.settings import Settings
from app.observability.metrics import Metrics, ServiceState
from robots_core.lint.linter import CHECKS
from robots_core.notes import AGENT_MISSPELT, AGENT_NEVER_NAMED, AGENT_UNNAMED
from robots_core.page_rules import NOINDEX_UNREACHABLE, UNREAD
from robots_core.robots.access import Cause
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.verdict import Reason
from robots_core.tag_notes import TAG_UNKNOWN
from tests.docs.examples import ROOT
from tests.glossary import READ_ELSEWHERE

REFERENCE = ROOT / "docs" / "reference"
ALERTS = ROOT / "deploy" / "helm" / "robots-decisions" / "files" / "alerts.yaml"
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)")


def first_cells(page: str, heading: str | None = None) -> list[str]:
    """The code spans in the first cells of a page's tables, below one heading or anywhere."""
    text = (REFERENCE / page).read_text()
    if heading is not None:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+?) \|", text, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_setting_is_in_the_reference_with_an_example() -> None:
    page = (REFERENCE / "settings.md").read_text()
    rows = re.findall(r"^### `([A-Z_]+)`\n\nDefault: (.+)\. Example: (.+)\.\n\n(.+)$", page, re.MULTILINE)
    assert sorted(name for name, *_ in rows) == sorted(
        {name.upper() for name in Settings.model_fields} | READ_ELSEWHERE
    )
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    for name, default, example, _ in rows:
        actual = defaults.get(name.lower())
        written = re.match(r"`([^`]+)`", default)
        if written and isinstance(actual, str | int | float) and not isinstance(actual, bool):
            assert written[1] == f"{actual:g}" if isinstance(actual, float) else str(actual), name
        assert example.strip(), name


def test_every_status_and_alert_is_where_somebody_in_trouble_looks() -> None:
    page = (ROOT / "docs" / "how-to" / "when-something-is-wrong.md").read_text()
    by_status, by_alert = (
        page.partition("\n## By alert\n")[0],
        page.partition("\n## By alert\n")[2].partition("\n## ")[0],
    )
    rows = re.findall(r"^\| (\d{3}) \| ([^|]+) \|", by_status, re.MULTILINE)
    assert {int(status) for status, _ in rows} == {problem.status for problem in PROBLEMS.values()}
    named = {(int(status), slug) for status, slugs in rows for slug in re.findall(r"`([^`]+)`", slugs)}
    families = ("bad-", "too-many-")
    for problem in PROBLEMS.values():
        family = next((f"{prefix}..." for prefix in families if problem.slug.startswith(prefix)), None)
        assert named & {(problem.status, problem.slug), (problem.status, family)}, problem.slug
    alerts = set(re.findall(r"- alert: (\w+)", ALERTS.read_text()))
    assert set(re.findall(r"`(Robots\w+)`", by_alert)) == alerts


def test_every_example_of_a_setting_is_valid() -> None:
    page = (REFERENCE / "settings.md").read_text()
    rows = re.findall(r"^### `([A-Z_]+)`\n\nDefault: .+\. Example: `([^`]+)`\.$", page, re.MULTILINE)
    files = {
        "AGENTS_FILE",
        "API_KEYS_FILE",
        "ARCHIVE",
        "DECISION_LOG",
        "DECISION_LOG_KEY_FILE",
        "OVERRIDES_FILE",
        "RECHECK_FILE",
        "REDIS_PASSWORD_FILE",
        "SECRETS_DIR",
    }
    values: dict[str, Any] = {name.lower(): example for name, example in rows if name not in files}
    assert len(values) > 15
    Settings(**values)


def test_every_metric_is_in_the_reference() -> None:
    metrics = Metrics(lambda: ServiceState(False, True, 0, 0, {}))
    families = text_string_to_metric_families(metrics.text().decode())
    names = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    named = [name for name in first_cells("metrics.md") if name.startswith("robots_")]
    assert sorted(named) == sorted(name for name in names if name.startswith("robots_"))


def test_every_reason_and_cause_of_a_defer_is_in_the_docs() -> None:
    assert sorted(first_cells("reasons.md")) == sorted(map(str, Reason))
    page = (ROOT / "docs" / "how-to" / "why-deferred.md").read_text()
    causes = set(re.findall(r"^\| `\w+` \| `(\w+)` \|", page, re.MULTILINE))
    assert causes == {str(cause) for cause in Cause} - {"redirect_loop", "cookie_loop"}


def test_every_warning_and_note_is_in_the_reference() -> None:
    notes = [AGENT_UNNAMED, AGENT_MISSPELT, AGENT_NEVER_NAMED, NOINDEX_UNREACHABLE, TAG_UNKNOWN, UNREAD]
    assert first_cells("warnings.md") == [*CHECKS, *notes]
    assert first_cells("warnings.md", "Notes") == notes


def test_every_dialect_is_in_the_reference() -> None:
    assert first_cells("dialects.md") == list(DIALECTS)


def test_every_route_parameter_and_problem_is_in_the_reference() -> None:
    document = json.loads((ROOT / "openapi.json").read_text())
    routes = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    named = set(first_cells("http-api.md"))
    assert {name for name in named if name.split()[0] in {"GET", "POST", "PUT", "DELETE"}} - {"GET /"} == routes
    parameters = {it["name"] for it in document["paths"]["/v1/allowed"]["get"]["parameters"]}
    assert parameters <= set(first_cells("http-api.md", "GET /v1/allowed"))
    members = document["components"]["schemas"]["AnswerOut"]["properties"].keys()
    page = (REFERENCE / "http-api.md").read_text()
    assert [name for name in members if f"`{name}`" not in page and f'"{name}"' not in page] == []
    problems = re.findall(r"^\| (\d+) \| `([\w-]+)` \|", page, re.MULTILINE)
    assert sorted(problems) == sorted((str(it.status), it.slug) for it in PROBLEMS.values())


def test_every_alert_has_its_runbook_and_links_to_it() -> None:
    rules = ALERTS.read_text()
    alerts = re.findall(r"- alert: (\w+)", rules)
    page = (REFERENCE / "alerts.md").read_text()
    assert re.findall(r"^## (\w+)$", page, re.MULTILINE) == list(dict.fromkeys(alerts))
    linked = re.findall(r"runbook_url: docs/reference/alerts\.md#(\w+)$", rules, re.MULTILINE)
    assert linked == [alert.lower() for alert in alerts]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_in_the_reference(command: str) -> None:
    parser = Parser(prog=command)
    importlib.import_module(module_of(command)).add(parser)
    named = first_cells("cli.md", command)
    page = (REFERENCE / "cli.md").read_text()
    assert f"| `{command}` |" in page or f"| [`{command}`](#{command}) |" in page
    for option in _options(parser):
        assert any(name.split()[0] == option for name in named) or f"`{option}`" in _section(page, command), option


def _options(parser: argparse.ArgumentParser) -> Collection[str]:
    """The options of a command, and of the commands below it."""
    options = [name for action in parser._actions for name in action.option_strings if name not in {"-h", "--help"}]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            options += [name for each in action.choices.values() for name in _options(each)]
    return options


def _section(page: str, command: str) -> str:
    return page.partition(f"\n## {command}\n")[2].partition("\n## ")[0]


def test_architecture_names_every_package() -> None:
    tree = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    packages = [
        path.parent.name
        for path in sorted([*(ROOT / "app").glob("*/__init__.py"), *(ROOT / "core").glob("*/*/__init__.py")])
    ]
    assert [name for name in [*packages, "web"] if re.search(rf"(?m)(?:^  |/|, ){name}/", tree) is None] == []


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "CHANGELOG.md", "deploy/README.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(page: str) -> None:
    # `make docs` checks those of the site.
    for link in _LINK.findall((ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(Path(link)).exists(), link
