"""Spec I10: statements about purposes, and the policies that apply them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.origin import read_target
from robots_core.purposes import judge
from robots_core.purposes.judge import Judgements, PurposeState, judge_for
from robots_core.purposes.policy import PURPOSES, PurposePolicy, UnknownPurpose, read_purposes
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.usage import Usage
from robots_core.robots.verdict import Permission, Reason, Verdict
from tests.robots.cases import rows

ALLOW = Verdict(Permission.ALLOW, Reason.NO_MATCH)


def judged(body: str, agent: str, url: str, dialect: str = "rfc9309") -> tuple[Verdict, Usage | None, Judgements]:
    robots, asking, path = RobotsTxt(body.encode()), read_agent(agent), read_target(url).path
    verdict = robots.judge(DIALECTS[dialect], asking, path)
    usage = None
    if verdict.selection is not None:
        terms = robots.reading(DIALECTS[dialect]).terms(verdict.selection, asking)
        if terms.usage is not None:
            usage = terms.usage.at(path, allowed=verdict.permission is Permission.ALLOW)
    return verdict, usage, judge_for(PurposePolicy(PURPOSES), verdict, usage)[1]


@pytest.mark.parametrize("case", rows("purpose-cases.jsonl"), ids=lambda case: case["id"])
def test_i10_the_cases(case: dict[str, Any]) -> None:
    _, _, judgements = judged(case["robots"], case["agent"], case["url"], case["dialect"])
    assert {purpose: list(judgement) for purpose, judgement in judgements.by_purpose.items()} == case["expect"]


@pytest.mark.parametrize("case", rows("purpose-cases.jsonl"), ids=lambda case: case["id"])
def test_i10_an_observed_purpose_leaves_the_verdict_as_it_is(case: dict[str, Any]) -> None:
    verdict, usage, judgements = judged(case["robots"], case["agent"], case["url"], case["dialect"])
    assert judge_for(PurposePolicy(PURPOSES), verdict, usage) == (verdict, judgements)


@pytest.mark.parametrize("case", rows("purpose-cases.jsonl"), ids=lambda case: case["id"])
@pytest.mark.parametrize("purpose", PURPOSES)
def test_i10_an_enforced_purpose_closes_what_is_refused_to_it(case: dict[str, Any], purpose: Any) -> None:
    verdict, usage, judgements = judged(case["robots"], case["agent"], case["url"], case["dialect"])
    enforced, _ = judge_for(PurposePolicy((purpose,), enforce=True), verdict, usage)
    if verdict.permission is Permission.ALLOW and judgements.by_purpose[purpose].state is PurposeState.NO:
        assert enforced == Verdict(Permission.DISALLOW, Reason.USAGE, None, verdict.selection)
    else:
        assert enforced == verdict


def test_i10_a_deferred_page_states_nothing_and_stays_deferred() -> None:
    verdict = Verdict(Permission.DEFER, Reason.UNREACHABLE)
    _, usage, _ = judged("User-agent: *\nContent-Signal: ai-train=no\n", "FooBot", "https://h.example/")
    assert usage is not None
    for known in (None, usage):
        enforced, judgements = judge_for(PurposePolicy(PURPOSES, enforce=True), verdict, known)
        assert enforced == verdict
        assert {judgement.state for judgement in judgements.by_purpose.values()} == {PurposeState.UNSTATED}


def test_i10_a_page_that_is_closed_by_no_rule_is_of_no_use() -> None:
    verdict = Verdict(Permission.DISALLOW, Reason.FORBIDDEN)
    assert judge_for(PurposePolicy(("search",)), verdict, None)[1].by_purpose == {
        "search": (PurposeState.NO, None, None)
    }


VALUES = st.sampled_from(["y", "n", "yes", "no", "maybe", ""])
USAGES = st.tuples(st.sampled_from(["", "/x "]), st.sampled_from(["search", "train-ai"]), VALUES)
LINES = st.one_of(
    USAGES.map(lambda it: f"Content-Usage: {it[0]}{it[1]}={it[2]}"),
    st.tuples(st.sampled_from(PURPOSES), VALUES).map(lambda it: f"Content-Signal: {it[0]}={it[1]}"),
    st.sampled_from(["AllowAITraining: /", "DisallowAITraining: /x", "AllowAITraining: /x/y", "Disallow: /z"]),
)


@given(st.lists(LINES, max_size=6), st.sampled_from(["/", "/x", "/x/y", "/z"]))
def test_i10_one_more_refusal_never_permits_more(lines: list[str], path: str) -> None:
    url = f"https://h.example{path}"
    body = "User-agent: *\n" + "\n".join(lines)
    _, _, before = judged(body, "FooBot", url)
    _, _, after = judged(body + "\nContent-Signal: ai-train=no, search=no, ai-input=no", "FooBot", url)
    assert {judgement.state for judgement in after.by_purpose.values()} == {PurposeState.NO}
    for purpose, judgement in before.by_purpose.items():
        if judgement.state is PurposeState.NO:
            assert after.by_purpose[purpose] == judgement


@given(st.lists(LINES, max_size=6), st.sampled_from(["/", "/x", "/x/y", "/z"]))
def test_i10_the_line_that_is_named_is_the_one_that_decides(lines: list[str], path: str) -> None:
    _, _, judgements = judged("User-agent: *\n" + "\n".join(lines), "FooBot", f"https://h.example{path}")
    for judgement in judgements.by_purpose.values():
        if judgement.state is PurposeState.UNSTATED:
            assert (judgement.directive, judgement.line) == (None, None)
        else:
            assert judgement.line is not None
            assert lines[judgement.line - 2].partition(":")[0].lower() == judgement.directive


def test_no_value_that_says_nothing_is_kept_with_the_judgements() -> None:
    value = "x" * 10_000
    judged(
        f"User-agent: *\nContent-Signal: search={value}, ai-input={value}, ai-train={value}\n",
        "a",
        "https://h.example/",
    )
    before = judge._judge.cache_info().currsize
    for number in range(10):
        body = f"User-agent: *\nContent-Signal: search={value}{number}, ai-train={number}{value}\n"
        _, _, judgements = judged(body, "a", "https://h.example/")
        assert {judgement.state for judgement in judgements.by_purpose.values()} == {PurposeState.UNSTATED}
    assert judge._judge.cache_info().currsize == before


def test_purposes_are_read_in_one_order_and_each_once() -> None:
    assert read_purposes(["ai-train", "search", "ai-train"]) == ("search", "ai-train")
    assert read_purposes([]) == ()


@pytest.mark.parametrize("name", ["train", "Search", "", 1, None, ["search"]])
def test_unknown_purpose_is_named_with_the_known_ones(name: object) -> None:
    with pytest.raises(UnknownPurpose, match="choose from search, ai-input, ai-train") as caught:
        read_purposes(["search", name])
    assert repr(str(name)) in str(caught.value)
