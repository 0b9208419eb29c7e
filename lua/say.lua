-- say: puts down what an operator says under a name, or withdraws it, if it can. book.lua stands before it.
--
-- KEYS[1]  the book
-- ARGV[1]  the name, at most 256 bytes, with a `:` in it
-- ARGV[2]  the text, at most 4,096 bytes; empty withdraws what holds
-- ARGV[3]  how long it holds in microseconds; 0: for ever
-- ARGV[4]  the most names
--
-- Returns { seconds, microseconds, outcome, said, before }: the clock; 1 where it is done, 0 where there was nothing to
-- withdraw, -1 where there is no room; when it was said; and the word that held before, or ''.
-- Example: EVAL <this> 1 q1:overrides user:alice <text> 3600000000 10000 -> { 1764500000, 123456, 1, 1764500000123456, '' }

local name, text, lasts, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if #KEYS ~= 1 or #ARGV ~= 4 or #name > 256 or not string.find(name, ':', 1, true) or #text > 4096
  or not lasts or lasts < 0 or lasts > 2 ^ 50 or lasts ~= math.floor(lasts) or not most then
  return redis.error_reply('ERR say takes a book, a name, a text, a duration and the most names')
end
local version, failed = read_version()
if failed then return failed end
local before = redis.call('HGET', KEYS[1], name)
local _, holds = read_word(before)
if text == '' and not holds then return { seconds, micros, 0, 0, '' } end
if not before and names() >= most then
  forget()
  if names() >= most then return { seconds, micros, -1, 0, '' } end
end
local said = next_version(version)
local until_ = lasts > 0 and now + lasts or 0
redis.call('HSET', KEYS[1], name, struct.pack('<I7I7', said, until_) .. text)
write_version(said)
return { seconds, micros, 1, said, holds and before or '' }
