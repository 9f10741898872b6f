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
-- Why reports weigh as they do is in docs/explanation/pacing.md.
local MEAN_OVER, MOST_WEIGHT, SILENCE = 60e6, 0.25, 4
local FEW, CLIP, RECENT, EXCESS = 8, 8, 16, 1.5
local SHORTEST, LONGEST, TIME_OUT = 1e3, 60e6, 30e6
local NEAR, QUICK, SLOW = 1.25, 60e6, 3600e6
local QUICK_PART = QUICK * math.log(2 / NEAR) / math.log(2)

-- One hand-over: `count` reports and the mean of their times. Errors quicker than the latency are not among them.
local function learn(queue, count, mean)
  if queue.latency == 0 then queue.reports = 0 end
  if count < 1 then return end
  mean = math.max(SHORTEST, math.min(mean, LONGEST))
  if queue.reports >= FEW then mean = math.min(mean, CLIP * math.max(queue.latency, queue.recent / EXCESS)) end
  local early = queue.reports < FEW and count / (queue.reports + count) or 0   -- the first few count alike
  local few = math.min(0.5, count / RECENT)
  local since = queue.reports > 0 and math.min(math.max(0, now - queue.told), MEAN_OVER) or 0
  if queue.apart == 0 then queue.apart = since / count end
  local silence = math.max(0, since - SILENCE * queue.apart)
  local weight = math.min(MOST_WEIGHT, (count * queue.apart + silence) / MEAN_OVER)
  queue.latency = queue.latency + math.max(early, weight) * (mean - queue.latency)
  queue.recent = queue.recent + math.max(early, few) * (mean - queue.recent)
  queue.apart = queue.apart + few * (since / count - queue.apart)
  queue.told, queue.reports = now, math.min(queue.reports + count, FEW)
end

-- What is left of a refusal: twice the interval that was refused, soon NEAR of it, and then half of the rest each hour.
local function penalty(bad, bad_at)
  if bad <= 0 or bad_at <= 0 then return 0 end
  local age = math.max(0, now - bad_at)
  if age < QUICK_PART then return bad * 2 * 0.5 ^ (age / QUICK) end
  return bad * NEAR * 0.5 ^ ((age - QUICK_PART) / SLOW)
end

-- A new run of refusals began. If no page came since the last one, the site is down, and the pace is not the cause.
local function refused(backoff, queue)
  if backoff.bad == 0 or queue.page_at > backoff.bad_at then backoff.bad, backoff.bad_at = queue.pace, now end
end

-- The least interval that latency and refusals leave, and which of them decided: 1 latency, 2 refusals, or 0.
-- `factor` is PACE_LATENCY, 0 for none.
local function least_interval(queue, backoff, factor, most, cap)
  local latency = math.max(queue.latency, queue.recent / EXCESS)
  local by_latency = queue.reports > 0 and math.min(factor * latency, most, cap) or 0
  local by_refusal = math.min(penalty(backoff.bad, backoff.bad_at), cap)
  if by_refusal > by_latency then return math.ceil(by_refusal), 2 end
  return math.ceil(by_latency), by_latency > 0 and 1 or 0
end
