"""The commands that the service sends to its store. Its user needs these and no others.

A subcommand is named as in Redis's access control: `xinfo|stream`.
"""

from typing import Final

_ARGUMENTS: Final = {
    "": "ping time",
    "KEY": "del get hkeys hlen llen persist pttl subscribe type unlink xlen zcard",
    "KEY 1": "expire pexpire",
    "KEY a": "hdel hexists hget hmget hstrlen lpush publish set zrem zscore",
    "KEY 0 0": "getrange lrange ltrim zcount zrange zrangebyscore zremrangebyrank zremrangebyscore zrevrange",
    "KEY 1 a": "zadd zincrby",
    "KEY a 1": "hset",
    "KEY * a 1": "xadd",
    "KEY - + count 1": "xrange",
    "KEY + - count 1": "xrevrange",
    "stream KEY": "xinfo",
    "x 1 KEY": "eval evalsha",
}
"""Arguments, and the commands that take them."""

PROBED: Final = {
    f"{name} {arguments}".rstrip(): "xinfo|stream" if name == "xinfo" else name
    for arguments, names in _ARGUMENTS.items()
    for name in names.split()
}
"""An example of each command that is sent, or that a script calls, for which Redis asks the user's rights as well; and
its name. KEY is a key, or a channel. They are the arguments of PROBE: without one of these commands, something that the
service promises does not work."""

FOR_CLUSTERS: Final = frozenset({"asking", "cluster|slots"})
"""Find the masters of a cluster, and keys that move from one to another. Without them, no connection succeeds."""

OPTIONAL: Final = frozenset({"client|setinfo", "info", "select"})
"""Name this client in CLIENT LIST, read the eviction policy, and choose a database other than 0."""

ALL_COMMANDS: Final = frozenset({*PROBED.values()} | FOR_CLUSTERS | OPTIONAL)
"""All that are ever sent, apart from the login."""

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
