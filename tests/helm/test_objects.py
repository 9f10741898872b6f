"""What single values of the chart make of the objects."""

from typing import Any

import pytest

from app.identity.well_known import CARD_PATH, CRAWLER_PAGES, DIRECTORY_PATH
from tests.helm.render import CHART, TRIAL, objects

SELECTOR = {"name": "robots-decisions", "instance": "robots-decisions", "component": "service"}
SMALL = {"files": (str(CHART / "values-dev.yaml"), str(CHART / "values-small.yaml"))}


def deployment(*values: str, **options: Any) -> Any:
    return objects(*TRIAL, *values, **options)["Deployment", "robots-decisions"]


def settings(*values: str) -> dict[str, str]:
    data: dict[str, str] = objects(*TRIAL, *values)["ConfigMap", "robots-decisions-settings"]["data"]
    return data


@pytest.mark.parametrize(
    "values",
    [
        ("podLabels.team=b", "commonLabels.team=a"),
        (r'podLabels.app\.kubernetes\.io/component="web"', r'commonLabels.app\.kubernetes\.io/name="web"'),
        (r'podAnnotations.checksum/config="x"', "monitoring.operator=true"),
        (r'podAnnotations.prometheus\.io/port="1"', "monitoring.scrapeAnnotations=true"),
        ("monitoring.operator=true", "monitoring.labels.team=b", "commonLabels.team=a"),
        ("monitoring.dashboard=true", 'commonLabels.grafana_dashboard="2"'),
    ],
)
def test_no_label_or_annotation_is_there_twice(values: tuple[str, ...]) -> None:
    found = objects(*TRIAL, *values)  # raises ValueError for a doubled key
    pod = found["Deployment", "robots-decisions"]["spec"]["template"]["metadata"]
    assert SELECTOR.items() <= {name.rpartition("/")[2]: value for name, value in pod["labels"].items()}.items()
    assert len(pod["annotations"]["checksum/config"]) == 64


def test_labels_of_pods_come_before_those_of_all_objects() -> None:
    labels = deployment("podLabels.team=b", "commonLabels.team=a")["spec"]["template"]["metadata"]["labels"]
    assert labels["team"] == "b"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("settings.MEMORY_BYTES=268435456", "268435456"),
        ('settings.MEMORY_BYTES="1000000000000"', "1000000000000"),
        ("settings.MEMORY_BYTES=1000000000000", "1000000000000"),
        ("settings.MEMORY_BYTES=0.25", "0.25"),
        ("settings.MEMORY_BYTES=false", "false"),
    ],
)
def test_a_setting_may_be_a_number(written: str, read: str) -> None:
    assert settings(written)["MEMORY_BYTES"] == read


def test_a_number_in_a_file_of_values_has_no_exponent() -> None:
    assert settings()["MEMORY_BYTES"] == "268435456"


def test_a_setting_that_is_null_is_left_out() -> None:
    assert "LOG_FORMAT" not in settings("settings.LOG_FORMAT=null")


@pytest.mark.parametrize(
    ("values", "most"),
    [
        ((), 13),
        (("autoscaling.maxReplicas=40",), 41),
        (("autoscaling.enabled=false",), 4),
        (("strategy.rollingUpdate.maxSurge=2",), 14),
        (("strategy.rollingUpdate.maxSurge=30%",), 16),
        (("strategy.rollingUpdate=null",), 15),
        (("strategy.type=Recreate",), 12),
    ],
)
def test_pace_instances_is_the_maximum_of_pods(values: tuple[str, ...], most: int) -> None:
    assert settings(*values)["PACE_INSTANCES"] == str(most)


def test_pods_that_are_recreated_have_no_surge() -> None:
    assert deployment("strategy.type=Recreate")["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ((), "robots-decisions"),
        (("serviceAccount.name=crawl",), "crawl"),
        (("serviceAccount.create=false",), "default"),
        (("serviceAccount.create=false", "serviceAccount.name=crawl"), "crawl"),
    ],
)
def test_the_service_account_is_made_or_found(values: tuple[str, ...], name: str) -> None:
    found = objects(*TRIAL, *values)
    pods = [document["spec"]["template"]["spec"] for (kind, _), document in found.items() if kind == "Deployment"]
    pods.append(found["Pod", "robots-decisions-test"]["spec"])
    assert {pod["serviceAccountName"] for pod in pods} == {name}
    assert (("ServiceAccount", name) in found) is ("serviceAccount.create=false" not in values)


@pytest.mark.parametrize(
    ("values", "image"),
    [
        (("image.tag=v2",), "robots-decisions:v2"),
        (("image.tag=v2", "image.registry=images.example.com/crawl"), "images.example.com/crawl/robots-decisions:v2"),
        (("image.registry=h:5000", f"image.digest=sha256:{'0' * 64}"), f"h:5000/robots-decisions@sha256:{'0' * 64}"),
    ],
)
def test_the_image_has_a_registry_and_a_tag_or_a_digest(values: tuple[str, ...], image: str) -> None:
    [container] = deployment(*values)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image


def test_an_ingress_has_a_rule_for_each_host() -> None:
    hosts = ["a.example", "b.example"]
    found = objects(
        *TRIAL, "ingress.enabled=true", "networkPolicy.enabled=false", 'ingress.hosts=["a.example", "b.example"]'
    )
    rules = found["Ingress", "robots-decisions"]["spec"]["rules"]
    assert [rule["host"] for rule in rules] == hosts
    assert {path["path"] for rule in rules for path in rule["http"]["paths"]} == {"/v1"}


def test_only_what_sites_look_for_is_reached_from_the_host_of_an_identity() -> None:
    """Each path is open, and every open path of an identity is reached."""
    found = objects(
        *TRIAL,
        *("ingress.enabled=true", "gateway.enabled=true", "networkPolicy.enabled=false"),
        *('ingress.identityHosts=["bot.example.com"]', 'gateway.identityHostnames=["bot.example.com"]'),
        'gateway.parentRefs=[{"name": "web"}]',
    )
    [rule] = found["Ingress", "robots-decisions"]["spec"]["rules"]
    assert rule["host"] == "bot.example.com"
    paths = {path["path"]: path["pathType"] for path in rule["http"]["paths"]}
    route = found["HTTPRoute", "robots-decisions-identity"]["spec"]
    assert route["hostnames"] == ["bot.example.com"]
    [rule] = route["rules"]
    types = {"Exact": "Exact", "PathPrefix": "Prefix"}
    assert {match["path"]["value"]: types[match["path"]["type"]] for match in rule["matches"]} == paths
    exact = {path for path, kind in paths.items() if kind == "Exact"}
    assert (exact, set(paths) - exact) == ({DIRECTORY_PATH, CARD_PATH}, {CRAWLER_PAGES.removesuffix("/")})


def test_more_objects_are_maps_or_text_and_may_use_templates() -> None:
    extra = (
        'extraObjects=[{"kind": "A", "metadata": {"name": "{{ .Release.Name }}-a"}}, "kind: B\\nmetadata: {name: b}"]'
    )
    assert objects(*TRIAL, extra).keys() >= {("A", "robots-decisions-a"), ("B", "b")}


def test_the_trial_needs_no_operator() -> None:
    found = objects(files=(str(CHART / "values-dev.yaml"),))
    assert {document["apiVersion"].partition("/")[0] for document in found.values()} == {
        "apps",
        "autoscaling",
        "networking.k8s.io",
        "policy",
        "v1",
    }


def test_the_small_release_fits_a_small_cluster() -> None:
    found = objects(**SMALL)
    requests = [
        container["resources"]["requests"]
        for (kind, _), document in found.items()
        if kind == "Deployment"
        for container in document["spec"]["template"]["spec"]["containers"]
    ]
    assert requests == [{"cpu": "100m", "memory": "160Mi"}, {"cpu": "50m", "memory": "64Mi"}]
    assert found["HorizontalPodAutoscaler", "robots-decisions"]["spec"]["minReplicas"] == 1
