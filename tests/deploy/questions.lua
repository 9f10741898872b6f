-- For wrk: the question it is given, about another page each time.
local asked = 0

function request()
    asked = asked + 1
    return wrk.format("GET", (wrk.path:gsub("/page", "/page-" .. asked)))
end
