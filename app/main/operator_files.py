"""What the files of operators say: recheck models and pace bounds by host, their own crawlers, and API keys."""

import shlex
from collections.abc import Callable
from functools import partial

from app import agents_file
from app.agents_file import OwnAgents
from app.auth.keys import Keys, load_keys
from app.auth.operator_token import NO_TOKEN, load_token
from app.cache.recheck import DomainTable, model
from app.cache.recheck_file import load
from app.decide import Models
from app.pacing.pools import PaceBy, pool_of
from app.pacing.schedule import Bounds, host_bounds
from app.reread import Reread
from app.settings import BadSetting, Settings
from robots_core.agents.directory import AgentDirectory, builtin_directory
from robots_core.origin import Origin


def domain_table(settings: Settings) -> Reread[DomainTable] | None:
    """The file that RECHECK_FILE names, or None if it names none."""
    path = settings.recheck_file
    return None if path is None else Reread(f"RECHECK_FILE={path}", partial(load, path), path)


def own_agents(settings: Settings) -> Reread[OwnAgents] | None:
    """The file that AGENTS_FILE names, or None if it names none."""
    path = settings.agents_file
    return None if path is None else Reread(f"AGENTS_FILE={path}", partial(agents_file.load, path), path)


def api_keys(settings: Settings) -> Reread[Keys] | None:
    """The file that API_KEYS_FILE names, or None if it names none."""
    path = settings.api_keys_file
    return None if path is None else Reread(f"API_KEYS_FILE={path}", partial(load_keys, path), path)


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


def agent_directory(agents: Reread[OwnAgents] | None) -> Callable[[], AgentDirectory]:
    """The crawlers that are known by name now."""
    builtin = builtin_directory()
    return (lambda: builtin) if agents is None else (lambda: agents.value.directory)


def recheck_models(settings: Settings, table: Reread[DomainTable] | None) -> Models:
    """The recheck model in force for a host and a crawler."""
    empty = DomainTable({})
    return lambda host, own: model(empty if table is None else table.value, host, own, settings.recheck_model)


def pools(settings: Settings, table: Reread[DomainTable] | None) -> Callable[[Origin], str]:
    """The pool of an origin, by the table and PACE_BY."""
    empty, by = DomainTable({}), PaceBy(settings.pace_by)
    if by is PaceBy.DOMAIN:
        from app.pacing.domains import RegistrableDomains

        domain_of: Callable[[str], str] = RegistrableDomains().of
    else:
        domain_of = str
    return lambda origin: pool_of(origin, by, empty if table is None else table.value, domain_of)


def pace_bounds(
    default: Bounds, table: Reread[DomainTable] | None, agents: Reread[OwnAgents] | None
) -> Callable[[str, str], Bounds]:
    """The bounds of a host's pace for an agent: those of the table, else the agent's own, else `default`.

    The floor is never below the agent's own.
    """

    def bounds(host: str, token: str) -> Bounds:
        own = None if agents is None else agents.value.paces.get(token.lower())
        found = host_bounds(host_bounds(default, own), None if table is None else table.value.pace(host))
        if own is None or own.floor is None or own.floor <= found.floor:
            return found
        return Bounds(own.floor, max(own.floor, found.cap), found.budget)

    return bounds
