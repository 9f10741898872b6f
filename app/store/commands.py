"""The commands that the service sends to its store. Its user needs these and no others.

A subcommand is named as in Redis's access control: `xinfo|stream`.
"""

from typing import Final

_EXAMPLES = """
del KEY
eval x 1 KEY
evalsha x 1 KEY
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
lrange KEY 0 0
ltrim KEY 0 0
persist KEY
pexpire KEY 1
ping
pttl KEY
publish KEY a
set KEY a
subscribe KEY
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
zcount KEY 0 0
zincrby KEY 1 a
zrange KEY 0 0
zrangebyscore KEY 0 0
zrem KEY a
zremrangebyrank KEY 0 0
zremrangebyscore KEY 0 0
zrevrange KEY 0 0
zscore KEY a
"""

PROBED: Final = {
    line: "xinfo|stream" if line.startswith("xinfo") else line.partition(" ")[0]
    for line in _EXAMPLES.splitlines()
    if line
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
