"""Request-rate, Crawl-delay and Visit-time lines, read and weighed: what paces.pyx compiles.

A window is (start, end) in minutes since midnight, as rates.Window has them. Stretches are pairs of lines of the file,
[first, last), in file order.
"""

from typing import final

def request_rate(value: str) -> tuple[int, int, tuple[int, int] | None, str | None] | None:
    """Documents, seconds, the window, and what stands in a window's place and is none; None for what is no rate."""

def crawl_delay(value: str) -> float | None:
    """Seconds; None for what is no decimal number of them."""

def visit_time(value: str) -> tuple[int, int] | None:
    """The window, in which a blank may stand for the dash; None for what is none."""

@final
class PaceLines:
    """What all lines of a file say of pace, of which 40 octets are kept each; what cannot be read says nothing."""

    def __init__(
        self,
        delays: tuple[list[int], list[str]],
        rates: tuple[list[int], list[str]],
        visits: tuple[list[int], list[str]],
    ) -> None:
        """Of each kind the numbers of its lines, in file order, and their values, one character per octet."""

    def delay(self, stretches: tuple[tuple[int, int], ...]) -> tuple[float, int] | None:
        """The largest Crawl-delay, the first of equals, and its line (spec G2)."""

    def visits(self, stretches: tuple[tuple[int, int], ...]) -> list[tuple[int, int]] | None:
        """What all Visit-time lines leave open, as windows without a gap or an overlap; None without such a line."""

    def rates(self, stretches: tuple[tuple[int, int], ...]) -> list[tuple[int, int, tuple[int, int] | None, int]]:
        """The Request-rates that decide in some minute, as `rates.rate_timetable` would find them among all lines.

        Each is (documents, seconds, window, line), in file order.
        """
