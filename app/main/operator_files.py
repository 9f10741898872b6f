"""What the files of operators say: recheck models and pace bounds by host, own crawlers, API keys, overrides."""

import shlex
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from app.auth.keys import Keys, load_keys
from app.auth.operator_token import NO_TOKEN, load_token
from app.cache.recheck import DomainTable, Model, model
from app.cache.recheck_file import load
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


class OperatorFiles:
    """The files that the settings name. Each is read when it is first asked for, and reloaded later."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pace_by = PaceBy(settings.pace_by)
        self._bounds = Bounds(settings.pace_floor, settings.pace_cap)

    @cached_property
    def table(self) -> ReloadedFile[DomainTable]:
        """The file that RECHECK_FILE names; without one, an empty table."""
        return _file("RECHECK_FILE", self._settings.recheck_file, load, DomainTable({}))

    @cached_property
    def agents(self) -> ReloadedFile[OwnAgents]:
        """The file that AGENTS_FILE names; without one, the crawlers that are known anyway."""
        known = OwnAgents(builtin_directory(), {}, {})
        return _file("AGENTS_FILE", self._settings.agents_file, agents_file.load, known)

    @cached_property
    def keys(self) -> ReloadedFile[Keys]:
        """The file that API_KEYS_FILE names; without one, the operator's token. Raises BadSetting."""
        return _file("API_KEYS_FILE", self._settings.api_keys_file, load_keys, operator_token(self._settings))

    @cached_property
    def overrides(self) -> ReloadedFile[OfFile]:
        """The file that OVERRIDES_FILE names; without one, no overrides."""
        return _file("OVERRIDES_FILE", self._settings.overrides_file, load_overrides, {})

    def model(self, host: str, own: str) -> Model:
        """The recheck model in force for a host, given the name of the crawler's own model."""
        return model(self.table.value, host, own, self._settings.recheck_model)

    def pool_of(self, origin: Origin) -> str:
        """The pool of an origin, by the table and PACE_BY."""
        return pool_of(origin, self._pace_by, self.table.value, self._domain_of)

    @cached_property
    def _domain_of(self) -> Callable[[str], str]:
        if self._pace_by is not PaceBy.DOMAIN:
            return str
        from app.pacing.domains import RegistrableDomains

        return RegistrableDomains().of

    def bounds(self, host: str, token: str) -> Bounds:
        """The bounds of a host's pace for an agent: those of the table, else the agent's own, else of the settings.

        The floor is never below the agent's own.
        """
        own = self.agents.value.paces.get(token.lower())
        found = host_bounds(host_bounds(self._bounds, own), self.table.value.pace(host))
        if own is None or own.floor is None or own.floor <= found.floor:
            return found
        return Bounds(own.floor, max(own.floor, found.cap), found.budget)


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
