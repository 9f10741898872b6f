-- Adds an entry for each line to a stream. ARGV: the length of the stream, which it may exceed by some, and the lines.
for i = 2, #ARGV do redis.call('xadd', KEYS[1], 'maxlen', '~', ARGV[1], '*', 'decision', ARGV[i]) end
return #ARGV - 1
