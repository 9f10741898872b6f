"""Pairs of files that differ in little: what changed is what the two decide differently, in every dialect.

`agent` is what the entry of a change is for, and `paths` are paths that the files decide differently in some dialect.
"""

from typing import Any

import pytest

from robots_core import read
from robots_core.diff import changes
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission
from tests.robots.cases import rows

CASES = rows("diff-cases.jsonl")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_changes_of_two_files_are_what_they_decide_differently(case: dict[str, Any], dialect: Dialect) -> None:
    for before, after in ((case["before"], case["after"]), (case["after"], case["before"])):
        files = [RobotsTxt(text.encode()) for text in (before, after)]
        found = changes(read(before.encode()), read(after.encode()), dialect.name)
        entries = {name: entry for entry in found.agents for name in entry.agents}
        for name, entry in entries.items():
            for change in entry.paths:
                judged = [file.judge(dialect, read_agent(name), change.path).permission for file in files]
                assert judged == [change.before.permission, change.after.permission]
                assert judged[0] is not judged[1]
        agent, reported = read_agent(case["agent"]), entries.get(case["agent"])
        for path in case["paths"]:
            was, now = (file.judge(dialect, agent, path).permission for file in files)
            if was is not now:
                assert reported is not None, path
                assert (now is Permission.ALLOW) in {it.gained for it in reported.paths}, path


def test_each_path_of_a_case_changes_in_some_dialect() -> None:
    for case in CASES:
        one, other = (RobotsTxt(case[name].encode()) for name in ("before", "after"))
        agent = read_agent(case["agent"])
        for path in case["paths"]:
            assert any(
                one.judge(dialect, agent, path).permission is not other.judge(dialect, agent, path).permission
                for dialect in DIALECTS.values()
            ), (case["id"], path)
