"""Read REDIS_URL: the servers that it names, the credentials, and the TLS context; the password may be in a file."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv6Address
from pathlib import Path
from re import compile as pattern
from typing import Any, NoReturn
from urllib.parse import unquote

from app.files.reloaded_file import ReloadedFile
from app.store.password_file import load_password

PORT = 6379
SENTINEL_PORT = 26379

FORMS = (
    "redis://host:port/db, rediss://host:port/db, unix:///path/to/socket?db=0, "
    "redis+sentinel://host:port,host:port/master-name/db or redis+cluster://host:port,host:port"
)


@dataclass(frozen=True, slots=True)
class Address:
    """A host (a name, or an address without brackets) and a port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Login:
    """The credentials of a server; they are never shown."""

    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Server:
    """One server, by TCP."""

    address: Address
    database: int


@dataclass(frozen=True, slots=True)
class LocalSocket:
    """One server on this machine, by unix socket."""

    path: str
    database: int


@dataclass(frozen=True, slots=True)
class Sentinels:
    """The master of that name, which the sentinels know; they have credentials of their own."""

    addresses: tuple[Address, ...]
    master: str
    database: int
    login: Login


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster; the first of these nodes that answers names the others."""

    addresses: tuple[Address, ...]


Engine = Server | LocalSocket | Sentinels | Cluster


@dataclass(frozen=True, slots=True)
class RedisTarget:
    """Where the store is; `tls` is None for plain text, and `password` unless a file has the password of `login`."""

    engine: Engine
    login: Login
    tls: ReloadedFile[ssl.SSLContext] | None
    password: ReloadedFile[str] | None = None

    @property
    def files(self) -> tuple[ReloadedFile[Any], ...]:
        """The files that may change while the service runs."""
        return tuple(file for file in (self.tls, self.password) if file is not None and file.paths)


_HOST_NAME = pattern(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})\Z")
_SCHEME = pattern(r"[a-z][a-z0-9+.-]{0,31}\Z")
_LARGEST_DATABASE = 1_000_000
_TLS_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_TLS_OPTIONS = (*_TLS_FILES, "ssl_check_hostname", "ssl_cert_reqs")
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")

_Options = dict[str, str]


def read(url: str, password_file: Path | None = None) -> RedisTarget:
    """Read the URL, and the file with the password.

    Raises ValueError, which says what is expected and quotes nothing that may be a secret.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        # Text before "://" is quoted only if it looks like a scheme: it may be part of a password.
        named = f"the scheme {scheme!r}" if separator and _SCHEME.match(scheme) else "no scheme"
        raise ValueError(f"REDIS_URL has {named}; expected {FORMS}")
    read_engine, own_options = _SCHEMES[scheme]
    secured = scheme.startswith("rediss")
    before_query, _, query = rest.partition("?")
    authority, slash, path = before_query.partition("/")
    user_info, _, hosts = authority.rpartition("@")
    options = _options(query, own_options + (_TLS_OPTIONS if secured else ()))
    engine = read_engine(hosts, _decoded(slash + path), options)
    username, _, password = user_info.partition(":")
    login = Login(_decoded(username) or None, _decoded(password) or None)
    return RedisTarget(engine, login, _tls(options) if secured else None, _password(password_file, login))


def _password(path: Path | None, login: Login) -> ReloadedFile[str] | None:
    if path is None:
        return None
    if login.password is not None:
        raise ValueError(
            f"REDIS_URL has a password, and REDIS_PASSWORD_FILE={path} names another one; remove one of them "
            "(with the file, REDIS_URL has the user name only: redis://user@host)"
        )
    name = f"REDIS_PASSWORD_FILE={path}"
    try:
        return ReloadedFile(name, partial(load_password, path), path)
    except ValueError as error:
        raise ValueError(f"{name} is invalid: {error}") from None


def _server(hosts: str, path: str, _: _Options) -> Engine:
    [address, *others] = _addresses(hosts, PORT)
    if others:
        _refuse("it names several hosts, which only redis+sentinel:// and redis+cluster:// may do")
    return Server(address, _database(path.removeprefix("/")))


def _local_socket(hosts: str, path: str, options: _Options) -> Engine:
    if hosts or len(path) < 2 or "\0" in path:
        _refuse("a unix:// URL needs three slashes and then the path of a socket")
    return LocalSocket(path, _database(options.get("db", "")))


def _sentinels(hosts: str, path: str, options: _Options) -> Engine:
    master, _, database = path.removeprefix("/").partition("/")
    if not master or any(ord(character) <= 32 for character in master):
        _refuse("its path has to begin with the name of the master")
    login = Login(options.get("sentinel_username"), options.get("sentinel_password"))
    return Sentinels(_addresses(hosts, SENTINEL_PORT), master, _database(database), login)


def _cluster(hosts: str, path: str, _: _Options) -> Engine:
    if path not in ("", "/", "/0"):
        _refuse("it has a path, but a cluster has only database 0")
    return Cluster(_addresses(hosts, PORT))


_SCHEMES: dict[str, tuple[Callable[[str, str, _Options], Engine], tuple[str, ...]]] = {
    "redis": (_server, ()),
    "rediss": (_server, ()),
    "unix": (_local_socket, ("db",)),
    "redis+sentinel": (_sentinels, _SENTINEL_OPTIONS),
    "rediss+sentinel": (_sentinels, _SENTINEL_OPTIONS),
    "redis+cluster": (_cluster, ()),
    "rediss+cluster": (_cluster, ()),
}


def _refuse(why: str) -> NoReturn:
    # `why` never quotes the URL: parts of a password with an unescaped "@", "/", ":" or "?" can be anywhere, in the
    # host, the port, the path or the name of an option.
    raise ValueError(f"REDIS_URL is invalid: {why}; expected {FORMS}, with special characters of a password %-encoded")


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        _refuse("its %-encoded bytes are not UTF-8")


def _addresses(hosts: str, default_port: int) -> tuple[Address, ...]:
    return tuple(_address(part, default_port) for part in hosts.split(","))


def _address(text: str, default_port: int) -> Address:
    bracketed = text.startswith("[")
    if bracketed:
        host, closed, after = text[1:].partition("]")
        try:
            IPv6Address(host if closed else "")
        except ValueError:
            _refuse("the text in brackets is not an IPv6 address")
        if after and not after.startswith(":"):
            _refuse("it has text between an IPv6 address and its port")
        port = after.removeprefix(":")
    else:
        host, _, port = text.partition(":")
        if not host:
            _refuse("it names no host")
        if not _HOST_NAME.match(host):
            _refuse("its host is not a host name (put an IPv6 address in brackets)")
    if port and not (port.isascii() and port.isdecimal() and 1 <= int(port[:6]) <= 65535):
        _refuse("its port is not a number from 1 to 65535")
    return Address(host, int(port) if port else default_port)


def _database(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal() and int(text[:8]) <= _LARGEST_DATABASE):
        _refuse("its database is not a small number")
    return int(text or "0")


def _options(query: str, known: tuple[str, ...]) -> _Options:
    options: _Options = {}
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        if name not in known or not equals:
            _refuse(f"the options of this form are: {', '.join(known) or 'none'}")
        if name in options:
            _refuse(f"it gives {name} twice")
        options[name] = _decoded(value)
    return options


def _tls(options: _Options) -> ReloadedFile[ssl.SSLContext]:
    """One context for all connections: reading the system's certificates takes long and blocks the event loop.

    It is replaced, not changed, when its files change: an authority that is gone from them is no longer trusted.
    """
    checks = _choice(options, "ssl_cert_reqs", {"required": True, "none": False}, otherwise=True)
    hostname = _choice(options, "ssl_check_hostname", {"true": True, "false": False}, otherwise=True)
    ca_certs, certificate, key = files = [options.get(name) for name in _TLS_FILES]
    if key is not None and certificate is None:
        _refuse("ssl_keyfile needs ssl_certfile, too")
    load = partial(_context, ca_certs, certificate, key, checks=checks, hostname=hostname)
    try:
        return ReloadedFile("the TLS files of REDIS_URL", load, *(Path(file) for file in files if file is not None))
    except ValueError as error:
        _refuse(str(error))


def _context(
    ca_certs: str | None, certificate: str | None, key: str | None, *, checks: bool, hostname: bool
) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_certs)
    except (OSError, ValueError):
        raise ValueError("the file of ssl_ca_certs cannot be read, or has no PEM certificate") from None
    if certificate is not None:
        try:
            # Without a password, an encrypted key would prompt for one at the terminal.
            context.load_cert_chain(certificate, key, password="")
        except (OSError, ValueError):
            reason = "the files of ssl_certfile and ssl_keyfile cannot be read, or are not a PEM pair"
            raise ValueError(reason) from None
    context.check_hostname = checks and hostname
    context.verify_mode = ssl.CERT_REQUIRED if checks else ssl.CERT_NONE
    return context


def _choice(options: _Options, name: str, values: dict[str, bool], *, otherwise: bool) -> bool:
    text = options.get(name)
    if text is None:
        return otherwise
    if text not in values:
        _refuse(f"{name} has to be {' or '.join(values)}")
    return values[text]
