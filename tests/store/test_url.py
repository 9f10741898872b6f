"""Every form of REDIS_URL, and errors for invalid ones."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from app.store.url import Address, Cluster, Engine, LocalSocket, Login, Sentinels, Server, read
from tests.engines import Certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize(
    ("url", "engine", "login"),
    [
        ("redis://host", Server(Address("host", 6379), 0), Login()),
        ("redis://host/", Server(Address("host", 6379), 0), Login()),
        ("redis://10.0.0.1:7000/12", Server(Address("10.0.0.1", 7000), 12), Login()),
        ("redis://[2001:db8::1]/1", Server(Address("2001:db8::1", 6379), 1), Login()),
        ("redis://[::1]:7000", Server(Address("::1", 7000), 0), Login()),
        ("redis://user:p%40ss@host", Server(Address("host", 6379), 0), Login("user", "p@ss")),
        ("redis://:a@b:c+d%20e@host", Server(Address("host", 6379), 0), Login(None, "a@b:c+d e")),
        ("rediss://user@host:6380/2", Server(Address("host", 6380), 2), Login("user", None)),
        ("unix:///run/valkey.sock", LocalSocket("/run/valkey.sock", 0), Login()),
        ("unix:///run/a%20b.sock?db=3", LocalSocket("/run/a b.sock", 3), Login()),
        ("unix://user:secret@/run/s", LocalSocket("/run/s", 0), Login("user", "secret")),
        ("redis+sentinel://one/main", Sentinels((Address("one", 26379),), "main", 0, Login()), Login()),
        (
            "redis+sentinel://u:p@one:1,[::1]:2,three/main/4?sentinel_username=a&sentinel_password=b%26+",
            Sentinels((Address("one", 1), Address("::1", 2), Address("three", 26379)), "main", 4, Login("a", "b&+")),
            Login("u", "p"),
        ),
        ("rediss+sentinel://one/main", Sentinels((Address("one", 26379),), "main", 0, Login()), Login()),
        ("redis+cluster://one", Cluster((Address("one", 6379),)), Login()),
        ("redis+cluster://:p@one:1,[::1],3.3.3.3:3/", Cluster((
            Address("one", 1), Address("::1", 6379), Address("3.3.3.3", 3))), Login(None, "p")),
        ("rediss+cluster://one/0?ssl_check_hostname=false", Cluster((Address("one", 6379),)), Login()),
    ],
)  # fmt: skip
def test_a_url_names_servers_credentials_and_tls(url: str, engine: Engine, login: Login) -> None:
    target = read(url)
    assert (target.engine, target.login) == (engine, login)
    assert (target.tls is not None) == url.startswith("rediss")


@pytest.mark.parametrize("url", ["http://example.com", "valkey+unix:///tmp/s", "redis+unix:///tmp/s", "Redis://host"])
def test_an_unknown_scheme_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"REDIS_URL has .*scheme.*; expected redis://host:port/db, rediss://"):
        read(url)


@pytest.mark.parametrize("url", ["", "localhost:6379", "secret@host", ":secret@host://", "se cret://host", "//secret"])
def test_text_without_a_scheme_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ValueError, match="REDIS_URL has no scheme; expected redis://") as caught:
        read(url)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://", "names no host"),
        ("redis://:secret@", "names no host"),
        ("redis://:secret@:6379", "names no host"),
        ("redis://:se/cret@host:6379", "names no host"),
        ("redis://:se?cret@host:6379", "options of this form are: none"),
        ("redis://user:secret", "not a number from 1 to 65535"),
        ("redis://:secret@host:port/0", "not a number from 1 to 65535"),
        ("redis://:secret@host:99999", "not a number from 1 to 65535"),
        ("redis://:secret@host:0", "not a number from 1 to 65535"),
        ("redis://:secret@host:٣", "not a number from 1 to 65535"),
        ("redis://:secret@::1", "names no host"),
        ("redis://:secret@fe80::1", "not a number from 1 to 65535"),
        ("redis://:secret@[::1", "not an IPv6 address"),
        ("redis://:secret@[host]", "not an IPv6 address"),
        ("redis://:secret@[::1]6379", "between an IPv6 address and its port"),
        ("redis://:secret@ho st", "not a host name"),
        ("redis://:secret@host,other", "names several hosts"),
        ("redis://:secret@host,", "names no host"),
        ("redis://:secret@host/one", "not a small number"),
        ("redis://:secret@host/0/1", "not a small number"),
        ("redis://:secret@host/99999999999999999999", "not a small number"),
        ("redis://:s%FFecret@host", "not UTF-8"),
        ("redis://:secret@host?no_such_option=1", "options of this form are: none"),
        ("redis://:secret@host?ssl_ca_certs=/secret", "options of this form are: none"),
        ("unix://", "three slashes"),
        ("unix:///", "three slashes"),
        ("unix://secret", "three slashes"),
        ("unix://:secret@/run/%00", "three slashes"),
        ("unix:///run/secret?db=one", "not a small number"),
        ("unix:///run/secret?db=1&db=2", "gives db twice"),
        ("unix:///run/secret?db", "options of this form are: db"),
        ("redis+sentinel://:secret@host", "name of the master"),
        ("redis+sentinel://:secret@host//0", "name of the master"),
        ("redis+sentinel://:secret@host/se%0Acret", "name of the master"),
        ("redis+sentinel://:secret@host/main/secret", "not a small number"),
        ("redis+sentinel://h/m?ssl=true", "options of this form are: sentinel_username, sentinel_password"),
        ("redis+cluster://:secret@host/1", "a cluster has only database 0"),
        ("redis+cluster://:secret@one,,three", "names no host"),
        ("rediss://:secret@host?ssl_cert_reqs=secret", "ssl_cert_reqs has to be required or none"),
        ("rediss://:secret@host?ssl_check_hostname=secret", "ssl_check_hostname has to be true or false"),
        ("rediss://:secret@host?ssl_ca_certs=/no/secret", "file of ssl_ca_certs cannot be read"),
        ("rediss://:secret@host?ssl_ca_certs=/dev/null", "file of ssl_ca_certs cannot be read"),
        ("rediss://:secret@host?ssl_ca_certs=%00secret", "file of ssl_ca_certs cannot be read"),
        ("rediss+cluster://:secret@host?ssl_certfile=/dev/null", "files of ssl_certfile and ssl_keyfile"),
        ("rediss+sentinel://:secret@host/main?ssl_keyfile=/secret", "ssl_keyfile needs ssl_certfile"),
    ],
)
def test_an_invalid_url_is_refused_with_a_reason_and_no_password(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"REDIS_URL is invalid: .*; expected redis://") as caught:
        read(url)
    assert why in str(caught.value)
    assert "cret" not in str(caught.value)


def test_credentials_are_not_shown() -> None:
    assert "secret" not in repr(read("redis+sentinel://secret:secret@h/main?sentinel_password=secret"))


def test_servers_are_authenticated_unless_the_url_says_otherwise(certificates: Certificates) -> None:
    def checks(query: str) -> tuple[ssl.VerifyMode, bool]:
        tls = read(f"rediss://host?{query}").tls
        assert tls is not None
        return tls.value.verify_mode, tls.value.check_hostname

    assert checks("") == (ssl.CERT_REQUIRED, True)
    assert checks(certificates.query) == (ssl.CERT_REQUIRED, True)
    assert checks("ssl_check_hostname=false") == (ssl.CERT_REQUIRED, False)
    assert checks("ssl_cert_reqs=none") == (ssl.CERT_NONE, False)


def test_an_own_authority_replaces_those_of_the_system(certificates: Certificates) -> None:
    tls = read(f"rediss://host?{certificates.query}").tls
    assert tls is not None
    assert len(tls.value.get_ca_certs()) == 1


def test_an_encrypted_key_is_refused_without_a_prompt(tmp_path: Path, certificates: Certificates) -> None:
    key = load_pem_private_key(certificates.client.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"passphrase")))
    with pytest.raises(ValueError, match="ssl_certfile and ssl_keyfile cannot be read"):
        read(f"rediss://host?ssl_certfile={certificates.client}&ssl_keyfile={locked}")
