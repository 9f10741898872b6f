"""Recheck models and pace bounds by host: from the domain table where it names the host, else from the settings."""

from collections.abc import Callable

from app.cache.recheck import DomainTable, model
from app.cache.recheck_file import load
from app.decide import Models
from app.pacing.schedule import Bounds, host_bounds
from app.reread import Reread
from app.settings import Settings


def domain_table(settings: Settings) -> Reread[DomainTable] | None:
    """The file that RECHECK_FILE names, or None if it names none."""
    path = settings.recheck_file
    return None if path is None else Reread("RECHECK_FILE", path, load)


def recheck_models(settings: Settings, table: Reread[DomainTable] | None) -> Models:
    """The recheck model in force for a host and a crawler."""
    empty = DomainTable({})
    return lambda host, own: model(empty if table is None else table.value, host, own, settings.recheck_model)


def pace_bounds(own: Bounds, table: Reread[DomainTable] | None) -> Callable[[str], Bounds]:
    """The bounds of a host's pace; the service's `own` where the table does not name the host."""
    return lambda host: own if table is None else host_bounds(own, table.value.pace(host))
