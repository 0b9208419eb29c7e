# frozen_string_literal: true

# alice is over her limit: how long is waited, in which order, and never earlier than was told.

require_relative "check"

# Remembers what it was told.
class Told < QuotaService
  def told = (@told ||= [])
  def backoff(**) = super.tap { |answer| told << answer.retry_after }
end

def told(bench, random) = Told.new(url: ENV.fetch("QUOTA_URL"), sleeper: bench.slept.method(:push), random:, timeout: 10)

[0.0, 0.5, 1.0].each do |share|
  bench = Bench.new
  quota = told(bench, Same.new(share))
  ran = 0
  refused = begin
    quota.run(attempts: 4, user: "alice") { ran += 1 }
  rescue QuotaService::Refused => error
    error
  end
  check [0, "retry", 3, 4], [ran, refused.answer.action, bench.slept.size, quota.told.size]
  bench.slept.zip(quota.told) { |slept, said| check said * (1 + 0.2 * share), slept, "spread by #{share}" }
  # The service doubles what it tells with each attempt, and spreads it by a fifth.
  bench.slept.each_cons(2) { |first, second| check_within first * 1.5..first * 2.5, second }
end

# What no wait helps against is not waited for.
bench = Bench.new
begin
  bench.service.run(user: "mallory") { abort "it ran" }
rescue QuotaService::Refused => error
  check [true, []], [error.answer.fail?, bench.slept]
end

# A fileserver that refuses in the midst is waited for as long as it says, or longer with each attempt.
bench = Bench.new
tries = 0
result = bench.service(random: Same.new(0.0)).run(user: "bob") do
  tries += 1
  raise QuotaService::Refused, QuotaService::Answer.new("retry", tries == 2 ? 7.0 : 0.1) if tries < 4

  "done"
end
check ["done", [0.5, 7.0, 2.0]], [result, bench.slept]

# Whatever is told and however often: never earlier, longer each time up to a cap, spread upward by a fifth.
none, all = [0.0, 1.0].map { |share| bench.service(random: Same.new(share)) }
1.upto(40) do |attempt|
  [0.0, 0.3, 9.0, 299.0, 4000.0].each do |said|
    least, most = none.wait(attempt, said), all.wait(attempt, said)
    check true, least >= said
    check true, least >= [0.5 * 2**(attempt - 1), 300.0].min
    check true, least <= [said, 300.0].max
    check_within least * 1.19..least * 1.21, most
  end
end
spread = bench.service(random: Random.new(1))
waits = Array.new(100) { spread.wait(1, 10.0) }
check true, waits.max - waits.min > 1.0
check_within 10.0..12.0, waits.min
check_within 10.0..12.0, waits.max
