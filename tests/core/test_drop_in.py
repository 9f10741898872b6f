"""The drop-ins for urllib.robotparser and protego pass those libraries' own tests, but for the guide's differences."""

import re
import subprocess
import sys
import tarfile
import unittest
import urllib.robotparser
from pathlib import Path

import pytest

from robots_core.drop_in import path_of
from robots_core.file import read
from robots_core.protego import Protego
from robots_core.robotparser import RobotFileParser
from tests.corpus import FOLDER

OF_THE_NETWORK = "NetworkTestCase"
STANDARD = {
    "UseFirstUserAgentWildcardTest.test_good_urls",  # groups of one name are one
    "UserAgentGoogleMobileTest.test_bad_urls",  # names match whole, rules by length
    "StringFormattingTest.test_string_formatting",
}
PROTEGO = {
    # Request-rate
    "test_request_rate",
    "test_request_rate_bare_number",
    "test_malformed_request_rate[1/5 9-17]",
    # names of crawlers, and lines between them
    "test_unicode_url_and_useragent",
    "test_generosity",
    "test_user_agent_precedence[/group1-hedwig-news2]",
    "test_user_agent_precedence[/group3-hedwig-new]",
    "test_user_agent_precedence[/group3-hedwig-images]",
    "test_user_agent_boundary_matching[google-googlebot-mobile-True]",
    "test_empty_user_agent_line",
    "test_grouping_unknown_keys",
    # patterns
    "test_escaped_url",
    "test_unescaped_url",
    "test_equal_sign_in_path[https://example.com/1/filter/page%3D5/-True]",
    "test_index_html_is_directory",
    "test_special_symbols_dual_behaviour",
    "test_with_absolute_urls",
    # lines without a colon
    "test_generosity_visit_time",
    "test_generosity_sitemap",
    # what is private there
    "test_line_endings",
    "test_parse_time_period",
}
PLUGIN = """
import sys, types
import robots_core.protego
sys.modules["protego"] = robots_core.protego
private = sys.modules["protego._utils"] = types.ModuleType("protego._utils")
private._parse_time_period = private._quote_path = private._quote_pattern = None

def pytest_runtest_logreport(report):
    if report.when == "call" and "test_quoting" not in report.nodeid:
        print("\\nRAN", report.outcome, report.nodeid.rpartition("::")[2])
"""


def test_urllib_robotparser_passes_the_tests_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = pytest.importorskip("test.test_robotparser", reason="Debian has Python's tests in libpython3-testsuite")
    monkeypatch.setattr(urllib.robotparser, "RobotFileParser", RobotFileParser)
    suite = unittest.TestSuite()
    for name, case in vars(theirs).items():
        if isinstance(case, type) and issubclass(case, unittest.TestCase) and name != OF_THE_NETWORK:
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun > 50
    assert result.errors == []
    found = [re.search(r"test_robotparser\.(\w+\.\w+)", str(case)) for case, _ in result.failures]
    assert {case[1] for case in found if case} == STANDARD
    assert None not in found


@pytest.mark.parametrize(
    "url",
    ["http://h/a?", "http://h/a?#b", "http://h?", "http://h/a#?", "http://h/b/../private/"],
)
def test_a_url_is_decided_as_by_the_file_itself(url: str) -> None:
    text = "User-agent: *\nDisallow: /*?\nDisallow: /private/\n"
    parser = RobotFileParser()
    parser.parse(text.splitlines())
    expected = read(text.encode()).decide(url, "FooBot").allowed
    assert [parser.can_fetch("FooBot", url), Protego.parse(text).can_fetch(url, "FooBot")] == [expected] * 2


@pytest.mark.parametrize(("url", "path"), [("/a?", "/a?"), ("//h/a?", "/a?"), ("h/a?#b", "/h/a?"), ("//[/a?", "/")])
def test_an_empty_query_is_kept(url: str, path: str) -> None:
    assert path_of(url) == path


def test_protego_passes_its_own_tests(tmp_path: Path) -> None:
    [sdist] = FOLDER.glob("protego-*.tar.gz")
    with tarfile.open(sdist) as archive:
        wanted = [it for it in archive if it.name.endswith(("/tests/test_protego.py", "/tests/test_on_google_spec.py"))]
        archive.extractall(tmp_path, wanted, filter="data")
    (tmp_path / "as_protego.py").write_text(PLUGIN)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "as_protego", "-p", "no:cacheprovider", "."]
    path = f"{tmp_path}:{Path(__file__).parents[2]}"
    ran = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, text=True)
    lines = [line.split(" ", 2) for line in ran.stdout.splitlines() if line.startswith("RAN ")]
    outcomes = {name: outcome for _, outcome, name in lines}
    assert len(outcomes) > 90, ran.stdout
    assert {name for name, outcome in outcomes.items() if outcome == "failed"} == PROTEGO
