"""Random files for the invariant, from a seed: `python -m tests.fuzz.bodies COUNT [SEED]`.

Most have realistic lines with every kind of mistake; some are noise.
"""

import sys
from random import Random

from tests.fuzz.invariant import check

RULES = (b"Disallow:", b"Allow:", b"disallow", b"ALLOW :")
OTHERS = (
    *(b"User-agent:", b"Crawl-delay:", b"Request-rate:", b"Visit-time:", b"Sitemap:", b"Content-Usage:"),
    *(b"Content-Signal:", b"Robot-version:", b"Clean-param:", b"DisallowAITraining:", b"Disallowed:", b"#", b""),
)
PIECES = (
    *(b"/", b"*", b"**", b"$", b"?", b"a", b"b", b"ab", b"aaaa", b"-", b".", b"=", b"&", b";", b",", b":", b"~"),
    *(b" ", b"\t", b"%", b"%2", b"%2F", b"%2f", b"%41", b"%2A", b"%24", b"%zz", b"%00", b"%C3%A9", b"%ff"),
    *(b"[a-z]", b"[^b]", b"[", b"]", b"\\", b"\\*", b"{", b"}"),
    *(
        b"\xc3\xa9",
        b"\xe2\x82\xac",
        b"\xf0\x9f\x98\x80",
        b"\xff",
        b"\xed\xa0\x80",
        b"\0",
        b"\x7f",
        b"\x1f",
        b"\xc2\x85",
    ),
    *(b"2.0", b"1.5", b"1/5s", b"0600-0845", b"99999999999999999999", b"train-ai=n", b"search=no", b"Googlebot"),
)
HEADS = (
    *[b"User-agent: *\n"] * 6,
    b"User-agent: bingbot\n",
    b"User-agent: Googlebot\n",
    b"User-agent: AdsBot-Google\n",
    b"",
)
"""Most files have a group for `*`; those without are ordinary, too."""
ENDS = (b"\r\n", b"\r", b"\n\n", b"  # why\n", b"")


def body(random: Random) -> bytes:
    """An input of `check`."""
    if random.random() < 0.1:
        return random.randbytes(random.randrange(400))
    path = text(random, 40)[:255]
    lines = random.choice((1, 3, 10, 40, 200))
    head = random.choice(HEADS)
    file = b"".join(line(random) for _ in range(random.randrange(lines + 1)))
    return bytes((random.randrange(256), random.randrange(256), len(path))) + path + head + file


def line(random: Random) -> bytes:
    """One line, usually a rule."""
    key = random.choice(RULES if random.random() < 0.8 else OTHERS)
    slash = b" /" if random.random() < 0.8 else b" "
    end = b"\n" if random.random() < 0.8 else random.choice(ENDS)
    return key + slash + text(random, random.choice((2, 6, 30))) + end


def text(random: Random, most: int) -> bytes:
    """Up to `most` pieces of a few kinds, so that they repeat."""
    kinds = random.sample(PIECES, random.randrange(1, 6))
    return b"".join(random.choices(kinds, k=random.randrange(most + 1)))


def main() -> None:
    """Check `count` files; print the number and seed that reproduce a failure."""
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for number in range(count):
        data = body(Random(f"{seed} {number}"))
        try:
            check(data)
        except BaseException:
            sys.stderr.write(f"body {number} of seed {seed}: {data!r}\n")
            raise
    sys.stdout.write(f"{count} bodies of seed {seed}: nothing breaks\n")


if __name__ == "__main__":
    main()
