-- The pace that a pool bears, from the time that its pages take and from what it refused. O(1) for each slot.
--
-- latency   mean time of a page, weighted by time: as many reports as come in a minute weigh as much as a few
-- recent    mean of the last RECENT reports, which counts as soon as it is EXCESS times the latency
-- apart     mean time between these
-- told      when a process last handed reports over
-- reports   how many there were, counted up to FEW
-- page_at   when a process last said that a page came, timed or not
-- run       until then, time-outs are of the run that is known
-- pace      the interval at the last slot
-- bad, bad_at   the interval at which the pool refused, and when; with the pool's backoff
--
-- By Little's law, an interval of k x the mean time of a page keeps 1/k requests in the pool on average.
--
-- Reports weigh alike for as long as they come at one rate. The time since the report before would be no weight: after a
-- slow page it is long, so slow pages would count for more than they are. Only a silence of more than SILENCE times that
-- weighs, too: the site hangs, or has not been crawled for long.
local MEAN_OVER, MOST_WEIGHT, SILENCE = 60e6, 0.25, 4
local FEW, CLIP, RECENT, EXCESS = 8, 8, 16, 1.5
local SHORTEST, LONGEST, TIME_OUT = 1e3, 60e6, 30e6
local NEAR, QUICK, SLOW = 1.25, 60e6, 3600e6
local QUICK_PART = QUICK * math.log(2 / NEAR) / math.log(2)

-- One hand-over: `count` reports and the mean of their times. Errors quicker than the latency are not among them.
local function learn(latency, recent, apart, told, reports, count, mean)
  if count < 1 then return latency, recent, apart, told, reports end
  mean = math.max(SHORTEST, math.min(mean, LONGEST))
  if reports >= FEW then mean = math.min(mean, CLIP * math.max(latency, recent / EXCESS)) end
  local early = reports < FEW and count / (reports + count) or 0   -- the first few count alike
  local few = math.min(0.5, count / RECENT)
  local since = reports > 0 and math.min(math.max(0, now - told), MEAN_OVER) or 0
  if apart == 0 then apart = since / count end
  local weight = math.min(MOST_WEIGHT, (count * apart + math.max(0, since - SILENCE * apart)) / MEAN_OVER)
  latency = latency + math.max(early, weight) * (mean - latency)
  recent = recent + math.max(early, few) * (mean - recent)
  return latency, recent, apart + few * (since / count - apart), now, math.min(reports + count, FEW)
end

-- What is left of a refusal: twice the interval that was refused, soon NEAR of it, and then half of the rest each hour.
local function penalty(bad, bad_at)
  if bad <= 0 or bad_at <= 0 then return 0 end
  local age = math.max(0, now - bad_at)
  if age < QUICK_PART then return bad * 2 * 0.5 ^ (age / QUICK) end
  return bad * NEAR * 0.5 ^ ((age - QUICK_PART) / SLOW)
end

-- A new run of refusals began, at slots of the interval `pace`. If no page came since the last one, the site is down,
-- and the pace is not the cause.
local function refused(pace, page_at, bad, bad_at)
  if bad > 0 and page_at <= bad_at then return bad, bad_at end
  return pace, now
end

-- The least interval that latency and refusals leave, and which of them decided: 1 latency, 2 refusals, or 0.
-- `factor` is PACE_LATENCY, 0 for none.
local function least_interval(factor, most, cap, latency, recent, reports, bad, bad_at)
  local by_latency = reports > 0 and math.min(factor * math.max(latency, recent / EXCESS), most, cap) or 0
  local by_refusal = math.min(penalty(bad, bad_at), cap)
  if by_refusal > by_latency then return by_refusal, 2 end
  return by_latency, by_latency > 0 and 1 or 0
end
