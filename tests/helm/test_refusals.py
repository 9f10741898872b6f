"""The chart refuses values that cannot work, with a sentence that names them, and renders those beside them."""

import json

import pytest

from app.main.settings import Settings
from tests.helm.render import CHART, TRIAL, Refused, rendered

STORE = 'networkPolicy.store=[{"ipBlock": {"cidr": "10.20.0.0/24"}}]'
PRODUCTION = ("storeSecret=store", "apiKeysSecret=keys", STORE)
HOSTS = 'ingress.hosts=["robots.example.com"]'
CONTROLLER = 'networkPolicy.ingressController=[{"podSelector": {}}]'
PARENT = 'gateway.parentRefs=[{"name": "web"}]'
EVERYONE = 'networkPolicy.extraIngress=[{"from": [{"podSelector": {}}]}]'
EVERYWHERE = 'networkPolicy.extraEgress=[{"to": [{"podSelector": {}}]}]'
URL = "settings.REDIS_URL=redis"
KEYS_VARIABLE = 'extraEnv=[{"name": "API_KEYS_FILE", "value": "/keys"}]'
URL_VARIABLE = 'extraEnv=[{"name": "REDIS_URL", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]'


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((), "does not start without API keys: set apiKeysSecret"),
        ((), "no store: set storeSecret"),
        (("valkey.enabled=true",), "set apiKeysSecret"),
        (("valkey.enabled=true", 'settings.ALLOW_UNAUTHENTICATED="0"'), "set apiKeysSecret"),
        (("valkey.enabled=true", 'settings.API_KEYS_FILE=""'), "set apiKeysSecret"),
        (("allowUnauthenticated=true",), "set storeSecret"),
        (("storeSecret=store", "apiKeysSecret=keys"), "reach no store: set networkPolicy.store"),
        (("apiKeysSecret=keys", f"{URL}://h:6379"), "reach no store: set networkPolicy.store"),
        ((*TRIAL, "storeSecret=store"), "valkey.enabled starts a store"),
        ((*TRIAL, f"{URL}://h"), "valkey.enabled starts a store"),
        ((*TRIAL, "storePasswordKey=password"), "set storeSecret, too"),
        ((*TRIAL, "ingress.enabled=true", HOSTS), "keeps out the Ingress: set networkPolicy.ingressController"),
        ((*TRIAL, "ingress.enabled=true", CONTROLLER), "set ingress.hosts"),
        ((*TRIAL, "gateway.enabled=true", PARENT), "keeps out the Gateway: set networkPolicy.ingressController"),
        ((*TRIAL, "gateway.enabled=true", CONTROLLER), "set gateway.parentRefs"),
        ((*TRIAL, "tracing.endpoint=http://h:4318"), "no collector of traces: set tracing.collector"),
        ((*TRIAL, "autoscaling.minReplicas=9", "autoscaling.maxReplicas=3"), "minReplicas=9 is more than"),
        ((*TRIAL, 'settings.PORT="9000"'), "settings.PORT=9000: the probes and the Service ask port 8080"),
        *(
            ((*TRIAL, f"settings.HOST={json.dumps(host)}"), f"settings.HOST={host}: no probe")
            for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost", "")
        ),
        *(
            ((*PRODUCTION, f"settings.REDIS_URL={json.dumps(url)}"), "settings.REDIS_URL has a password")
            for url in (
                "redis://:secret@h",
                "rediss://user:secret@h:6379/0",
                "redis+sentinel://h/m?sentinel_password=x",
                "redis+cluster://a:b@h,i",
                "unix:///run/s.sock?password=x",
            )
        ),
        ((*TRIAL, "settings.PERMIT_SECRET=aaaa"), "settings.PERMIT_SECRET would be readable"),
        ((*TRIAL, "settings.FETCH_PROXY=http://u:p@proxy:3128"), "settings.FETCH_PROXY has credentials"),
        ((*TRIAL, "settings.FETCH_PROXY=http://proxy:3128"), "reach no proxy: set networkPolicy.fetchProxy"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(values: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        rendered(*values)
    assert sentence in str(refused.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Refused) as refused:
        rendered("storePasswordKey=a", 'settings.PORT="1"')
    [_, *sentences] = str(refused.value).split("\n\n")[1].splitlines()
    assert len(sentences) == 4


@pytest.mark.parametrize(
    "values",
    [
        TRIAL,
        PRODUCTION,
        ("valkey.enabled=true", 'settings.ALLOW_UNAUTHENTICATED="true"'),
        ("valkey.enabled=true", "settings.API_KEYS_FILE=/keys/a"),
        ("valkey.enabled=true", KEYS_VARIABLE),
        ("storeSecret=store", "apiKeysSecret=keys", "networkPolicy.enabled=false"),
        ("storeSecret=store", "apiKeysSecret=keys", EVERYWHERE),
        ("apiKeysSecret=keys", STORE, f"{URL}://user@h:6379"),
        ("apiKeysSecret=keys", STORE, URL_VARIABLE),
        (*PRODUCTION, f"{URL}://user@h:6379/0?ssl_ca_certs=/run/secrets/robots/ca.crt", "storePasswordKey=password"),
        (*TRIAL, "ingress.enabled=true", HOSTS, CONTROLLER),
        (*TRIAL, "ingress.enabled=true", HOSTS, EVERYONE),
        (*TRIAL, "ingress.enabled=true", HOSTS, "networkPolicy.enabled=false"),
        (*TRIAL, "gateway.enabled=true", PARENT, CONTROLLER),
        (*TRIAL, "tracing.endpoint=http://h:4318", 'tracing.collector=[{"podSelector": {}}]'),
        (*TRIAL, "autoscaling.minReplicas=3", "autoscaling.maxReplicas=3"),
        (*TRIAL, "autoscaling.enabled=false", "autoscaling.minReplicas=9", "autoscaling.maxReplicas=3"),
        (*TRIAL, 'settings.PORT="8080"', "settings.HOST=0.0.0.0"),
    ],
)
def test_what_can_work_is_rendered(values: tuple[str, ...]) -> None:
    assert "kind: Deployment" in rendered(*values)


def names_of_settings() -> set[str]:
    schema = json.loads((CHART / "values.schema.json").read_text())
    [names, _] = schema["properties"]["settings"]["propertyNames"]["anyOf"]
    return set(names["enum"])


def test_settings_are_the_settings_of_the_service() -> None:
    assert names_of_settings() == {*map(str.upper, Settings.model_fields), "SECRETS_DIR"}


@pytest.mark.parametrize(
    "value",
    [
        "settings.WORKERS=[2]",
        "strategy.type=Rolling",
        "autoscaling.behavior.down=1",
        "lifecycle.preStart=1",
        "extraObjects=[1]",
        'settings.MEMORY_BYTS="1000"',
        'settings.memory_bytes="1000"',
        'settings.OTEL="1000"',
        "image.tagg=1",
        "service.ipFamilyPolicy=Both",
        "service.type=Loadbalancer",
        "service.ipFamilies[0]=ipv4",
        "storePasswordKey=a/b",
        "autoscaling.maxReplicas=many",
        "resources.request.cpu=1",
        'networkPolicy.store=[{"cidr": "10.0.0.0/8"}]',
        'networkPolicy.store=[{"ipBlock": {"cidr": "10.0.0.0"}}]',
        "networkPolicy.store=[{}]",
        'networkPolicy.clients=[{"podSelectors": {}}]',
        'networkPolicy.extraEgress=[{"from": [{"podSelector": {}}]}]',
        "readinessProbe.period=1",
        "podDisruptionBudget.maxUnavailable=half",
        "monitoring.interval=15",
        "monitoring.runbooks=docs/alerts.md",
        "fullnameOverride=Robots",
        "gateway.parentRefs=[{}]",
        "valkey.enable=true",
        "replicaCount=0",
    ],
)
def test_values_that_are_misspelt_or_of_another_type_are_refused(value: str) -> None:
    with pytest.raises(Refused, match="values don't meet the specifications of the schema"):
        rendered(*TRIAL, value)
