-- For wrk: the question it is given, about another page each time.
local count = 0

function request()
    count = count + 1
    return wrk.format("GET", (wrk.path:gsub("/page", "/page-" .. count)))
end
