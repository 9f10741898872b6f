"""NOTES.txt, which Helm prints after an installation. `helm template` leaves it out, so a copy of the chart has it."""

import shutil
from pathlib import Path

import pytest

from app import __version__
from tests.helm.render import CHART, TRIAL, objects

KEYS = ("storeSecret=store", "apiKeysSecret=keys", "networkPolicy.enabled=false")
OWN = "image.repository=images.example.com/robots"


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """The chart with its notes in a ConfigMap."""
    copy = tmp_path / "robots-decisions"
    shutil.copytree(CHART, copy)
    notes = (copy / "templates" / "NOTES.txt").read_text()
    (copy / "templates" / "_notes.tpl").write_text(f'{{{{- define "notes" }}}}{notes}{{{{- end }}}}')
    (copy / "templates" / "notes.yaml").write_text(
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata: {notes: {{ include "notes" . | toJson }}}\n'
    )
    return copy


@pytest.mark.parametrize(
    ("values", "has", "has_not"),
    [
        (
            TRIAL,
            "curl 'http://127.0.0.1:8080/v1/allowed?url=https://www.example.com/&agent=ExampleBot'\n",
            "Bearer KEY",
        ),
        (TRIAL, "port-forward service/robots-decisions 8080:80 &", "{{"),
        (TRIAL, 'those with the label robots-decisions/client: "true".', "..."),
        (TRIAL, "http://robots-decisions.robots-dev.svc.cluster.local, from the pods", ":80,"),
        (TRIAL, "forgets everything when it restarts", "set valkey"),
        (TRIAL, f"The image robots-decisions:{__version__} names no registry", "KEY"),
        (TRIAL, "set settings.USER_AGENT", "KEY"),
        (KEYS, "-H 'Authorization: Bearer KEY'", "forgets everything"),
        ((*KEYS, "service.port=8000"), "svc.cluster.local:8000.\n", "networkPolicy.clients"),
        (
            (*KEYS, OWN, "settings.USER_AGENT=ExampleBot/1.0"),
            "helm test robots-decisions -n robots-dev",
            "names no registry",
        ),
        ((*KEYS, OWN, "settings.USER_AGENT=ExampleBot/1.0"), "Ask the first question:", "USER_AGENT"),
        ((*TRIAL, 'networkPolicy.clients=[{"podSelector": {}}]'), "networkPolicy.clients admits.\n", "those with"),
    ],
)
def test_notes_say_what_to_do_next(values: tuple[str, ...], has: str, has_not: str, chart: Path) -> None:
    notes = objects(*values, chart=chart)["ConfigMap", "notes"]["data"]["notes"]
    assert has in notes
    assert has_not not in notes
