from robots_core.robots._native.matching import Matcher

def split(
    data: object,
    offsets: object,
    first: int,
    count: int,
    seen: dict[bytes, int],
    codes: object,
    starts: object,
    ends: object,
) -> None:
    """Split `count` URLs from row `first` on: the number of each beginning in `seen`, and where its path lies.

    A beginning is what is before the first slash of the path; new ones are numbered as they come. `codes`, `starts` and
    `ends` take 32-bit numbers; a code of -1 is for what has no `://`, no path or a long beginning, is too long, or has
    other characters before the path that may end a host.
    """

def first_of_each(
    plain: list[Matcher | None],
    with_query: list[Matcher | None],
    groups: object,
    data: object,
    starts: object,
    ends: object,
    count: int,
    found: object,
) -> None:
    """Write the number of the first rule for each path to `found`, in 32 bits: as Matcher.first, or -3 for /robots.txt.

    The group of a row chooses the matcher: that of `with_query` if the path has a query, else that of `plain`. None:
    the path is not matched, and its number is 0.
    """
