-- Functions that the scripts for groups of consumers share; this file is put in front of each.

-- A reply of XINFO as a table.
local function fields(reply)
  local found = {}
  for i = 1, #reply, 2 do found[reply[i]] = reply[i + 1] end
  return found
end

-- The groups of the stream; none if the key is absent or has a value of another type.
local function groups_of(stream)
  if redis.call('TYPE', stream).ok ~= 'stream' then return {} end
  local groups = redis.call('XINFO', 'GROUPS', stream)
  for i, group in ipairs(groups) do groups[i] = fields(group) end
  return groups
end

local function group_of(groups, name)
  for _, group in ipairs(groups) do
    if group.name == name then return group end
  end
end

local function parts_of(id)
  return string.match(id, '^(%d+)%-(%d+)$')
end

-- Whether one decimal number is less than another. As text: numbers of Lua have 53 bits, those of ids 64.
local function is_less(one, other)
  if #one ~= #other then return #one < #other end
  return one < other
end

-- Whether one id of a stream is less than another.
local function precedes(one, other)
  local ms, number = parts_of(one)
  local other_ms, other_number = parts_of(other)
  if ms ~= other_ms then return is_less(ms, other_ms) end
  return is_less(number, other_number)
end

-- Whether there may be ids between one id and a greater one.
local function has_gap(one, other)
  local ms, number = parts_of(one)
  local other_ms, other_number = parts_of(other)
  if ms == other_ms then return tonumber(number) + 1 < tonumber(other_number) end
  if other_number ~= '0' or number ~= '18446744073709551615' then return true end
  return tonumber(ms) + 1 < tonumber(other_ms)
end
