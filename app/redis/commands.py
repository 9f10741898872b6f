"""The commands that the service sends to its store. Its user needs these and no others.

A subcommand is named as in Redis's access control: `xinfo|stream`.
"""

from typing import Final

_IN_SCRIPTS = """
del KEY
expire KEY 1
get KEY
getrange KEY 0 0
hdel KEY a
hexists KEY a
hget KEY a
hkeys KEY
hlen KEY
hmget KEY a
hset KEY a 1
hstrlen KEY a
llen KEY
lpush KEY a
ltrim KEY 0 0
persist KEY
pexpire KEY 1
pttl KEY
publish KEY a
set KEY a
time
type KEY
unlink KEY
xadd KEY * a 1
xinfo stream KEY
xlen KEY
xrange KEY - + count 1
xrevrange KEY + - count 1
zadd KEY 1 a
zcard KEY
zincrby KEY 1 a
zrange KEY 0 0
zrangebyscore KEY 0 0
zrem KEY a
zremrangebyrank KEY 0 0
zremrangebyscore KEY 0 0
zrevrange KEY 0 0
zrevrangebyscore KEY 0 0
zscore KEY a
"""

_BY_THEMSELVES = """
eval x 1 KEY
evalsha x 1 KEY
get KEY
getrange KEY 0 0
hdel KEY a
hget KEY a
llen KEY
lrange KEY 0 0
ping
publish KEY a
set KEY a
subscribe KEY
"""


def _examples(lines: str) -> dict[str, str]:
    found = {}
    for line in lines.split("\n"):
        name, _, rest = line.partition(" ")
        if name:
            found[f"{name}|{rest.partition(' ')[0]}" if name == "xinfo" else name] = line
    return found


IN_SCRIPTS: Final = _examples(_IN_SCRIPTS)
"""What the scripts call, for which Redis asks the user's rights as well: an example of each, in which KEY is a key."""

BY_THEMSELVES: Final = _examples(_BY_THEMSELVES)
"""What is sent without a script, in the same form; KEY is a channel where the command takes one."""

FOR_CLUSTERS: Final = frozenset({"asking", "cluster|slots"})
"""Find the masters of a cluster, and keys that move from one to another. Without them, no connection succeeds."""

OPTIONAL: Final = frozenset({"client|setinfo", "info", "select"})
"""Name this client in CLIENT LIST, read the eviction policy, and choose a database other than 0."""

ALL_COMMANDS: Final = frozenset(IN_SCRIPTS.keys() | BY_THEMSELVES.keys() | FOR_CLUSTERS | OPTIONAL)
"""All that are ever sent, apart from the login."""

PROBED: Final = {example: name for name, example in sorted((IN_SCRIPTS | BY_THEMSELVES).items())}
"""The arguments of PROBE, with their names: without one of these, something that the service promises does not work."""

# KEYS: a key of the shard. ARGV: examples of commands. Returns those that the user may not run and, if there are none,
# the time. A full server refuses the write, and so does a replica. acl_check_cmd, of Redis 7.0, asks about a command
# without running it. It does not count the arguments: where one is missing that says which are keys, the server may
# crash.
PROBE: Final = """
redis.call('set', KEYS[1], '', 'px', 1000)
redis.call('publish', KEYS[1], '')
local refused = {}
for _, example in ipairs(redis.acl_check_cmd and ARGV or {}) do
  local words = {}
  for word in string.gmatch(example, '[^ ]+') do words[#words + 1] = word == 'KEY' and KEYS[1] or word end
  if not redis.acl_check_cmd(unpack(words)) then refused[#refused + 1] = example end
end
return {refused, #refused == 0 and redis.call('time')}
"""
