-- restore: puts words back that were lost, unless later ones are there. book.lua stands before it.
--
-- KEYS[1]  the book
-- ARGV[1]  the most names
-- ARGV[2]  the first name, and ARGV[3] its word, as the book holds it; at most 1,000 of both
--
-- Returns { seconds, microseconds, restored }: the clock, and how many were put back.

local most = tonumber(ARGV[1])
if #KEYS ~= 1 or not most or #ARGV % 2 ~= 1 or #ARGV > 2001 then
  return redis.error_reply('ERR restore takes a book, the most names, and at most 1,000 names with their words')
end
for i = 2, #ARGV, 2 do
  local name, word = ARGV[i], ARGV[i + 1]
  if #name > 256 or not string.find(name, ':', 1, true) or #word < HEAD or #word > HEAD + 4096 then
    return redis.error_reply('ERR restore takes names of at most 256 bytes, and words of 14 to 4,110')
  end
end
local version, failed = read_version()
if failed then return failed end
local restored, latest = 0, next_version(version)
for i = 2, #ARGV, 2 do
  local name, said = ARGV[i], read_word(ARGV[i + 1])
  local known = redis.call('HGET', KEYS[1], name)
  if said > read_word(known) and (known or names() < most) then
    redis.call('HSET', KEYS[1], name, ARGV[i + 1])
    latest = math.max(latest, said)
    restored = restored + 1
  end
end
if restored > 0 then write_version(latest) end
return { seconds, micros, restored }
