-- words: what operators have said, unless the caller knows it. Changes nothing. book.lua stands before it.
--
-- KEYS[1]  the book
-- ARGV[1]  the version that the caller knows, 0 for none
--
-- Returns { seconds, microseconds, version, name, word, ... }: the clock, and all names with their words, in no order, where
-- the version is not the one that is known.

if #KEYS ~= 1 or #ARGV ~= 1 or not tonumber(ARGV[1]) then
  return redis.error_reply('ERR words takes a book and a version')
end
local version, failed = read_version()
if failed then return failed end
local reply = { seconds, micros, version }
if version ~= tonumber(ARGV[1]) then
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    if fields[i] ~= 'version' then
      reply[#reply + 1] = fields[i]
      reply[#reply + 1] = fields[i + 1]
    end
  end
end
return reply
