"""What the files of operators say: recheck models and pace bounds by host, own crawlers, API keys, overrides."""

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.auth.keys import Keys, load_keys
from app.auth.operator_token import NO_TOKEN, load_token
from app.cache.recheck import DomainTable, model
from app.cache.recheck_file import load
from app.decisions.cached_files import Models
from app.files.reloaded_file import ReloadedFile
from app.main import agents_file
from app.main.agents_file import OwnAgents
from app.main.settings import BadSetting, Settings
from app.overrides.overrides_file import OfFile
from app.overrides.overrides_file import load as load_overrides
from app.pacing.pools import PaceBy, pool_of
from app.pacing.schedule import Bounds, host_bounds
from robots_core.agents.directory import builtin_directory
from robots_core.origin import Origin

T = TypeVar("T")


def domain_table(settings: Settings) -> ReloadedFile[DomainTable]:
    """The file that RECHECK_FILE names; without one, an empty table."""
    return _file("RECHECK_FILE", settings.recheck_file, load, DomainTable({}))


def own_agents(settings: Settings) -> ReloadedFile[OwnAgents]:
    """The file that AGENTS_FILE names; without one, the crawlers that are known anyway."""
    return _file("AGENTS_FILE", settings.agents_file, agents_file.load, OwnAgents(builtin_directory(), {}, {}))


def api_keys(settings: Settings) -> ReloadedFile[Keys]:
    """The file that API_KEYS_FILE names; without one, the operator's token. Raises BadSetting."""
    return _file("API_KEYS_FILE", settings.api_keys_file, load_keys, operator_token(settings))


def overrides_file(settings: Settings) -> ReloadedFile[OfFile]:
    """The file that OVERRIDES_FILE names; without one, no overrides."""
    return _file("OVERRIDES_FILE", settings.overrides_file, load_overrides, {})


def _file(name: str, path: Path | None, load: Callable[[Path], T], otherwise: T) -> ReloadedFile[T]:
    """What the file of the setting `name` says. Without a file, `otherwise`, which has no path to watch."""
    if path is None:
        return ReloadedFile(name, lambda: otherwise)
    return ReloadedFile(f"{name}={path}", partial(load, path), path)


def operator_token(settings: Settings) -> Keys:
    """The operator's token, for a service without API keys. Raises BadSetting."""
    path = settings.operator_token_file
    try:
        return NO_TOKEN if path is None else load_token(path)
    except ValueError as error:
        raise BadSetting(f"OPERATOR_TOKEN_FILE={path}: {error}") from None


def operators_of(settings: Settings) -> str:
    """Who the operators of a service without API keys are, as a sentence."""
    path = settings.operator_token_file
    if path is None:
        return "It has no operators, since OPERATOR_TOKEN_FILE is not set."
    return f'Operators send the token in {path}: curl -H "Authorization: Bearer $(cat {shlex.quote(str(path))})" ...'


def recheck_models(settings: Settings, table: ReloadedFile[DomainTable]) -> Models:
    """The recheck model in force for a host and a crawler."""
    return lambda host, own: model(table.value, host, own, settings.recheck_model)


def pools(settings: Settings, table: ReloadedFile[DomainTable]) -> Callable[[Origin], str]:
    """The pool of an origin, by the table and PACE_BY."""
    by = PaceBy(settings.pace_by)
    domain_of: Callable[[str], str] = str
    if by is PaceBy.DOMAIN:
        from app.pacing.domains import RegistrableDomains

        domain_of = RegistrableDomains().of
    return lambda origin: pool_of(origin, by, table.value, domain_of)


def pace_bounds(
    default: Bounds, table: ReloadedFile[DomainTable], agents: ReloadedFile[OwnAgents]
) -> Callable[[str, str], Bounds]:
    """The bounds of a host's pace for an agent: those of the table, else the agent's own, else `default`.

    The floor is never below the agent's own.
    """

    def bounds(host: str, token: str) -> Bounds:
        own = agents.value.paces.get(token.lower())
        found = host_bounds(host_bounds(default, own), table.value.pace(host))
        if own is None or own.floor is None or own.floor <= found.floor:
            return found
        return Bounds(own.floor, max(own.floor, found.cap), found.budget)

    return bounds
