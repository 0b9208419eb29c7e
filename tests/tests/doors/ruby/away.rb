# frozen_string_literal: true

# A service that is frozen, or that is not there, holds nobody up.

require_relative "check"

# Far above its timeout, far below for ever.
PATIENCE = 8.0

def seconds
  begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun
end

def check_open(quota, bench, outages)
  check_within 0.0..PATIENCE, seconds { check "proceed", quota.backoff(user: "alice").action }
  # Then nobody waits for an answer at all.
  100.times { check "proceed", quota.backoff(user: "alice").action }
  check %w[proceed proceed], quota.backoff_each([{ user: "alice" }, { user: "mallory" }]).map(&:action)
  # One tries after the pause, and the others do not.
  bench.now += QuotaService::PAUSE
  check_within 0.0..PATIENCE, seconds { 100.times { check "proceed", quota.backoff(user: "alice").action } }
  check outages, bench.logged("WARN"), bench.log.string
end

# The signal is on its way to some of the threads when it has been sent.
def freeze_all(server)
  Process.kill("STOP", server)
  until_true("every thread stops") do
    Dir.glob("/proc/#{server}/task/*/stat").all? { |stat| File.read(stat).rpartition(")").last.split.first == "T" }
  end
end

server = Integer(ENV.fetch("QUOTA_PID"))
bench = Bench.new
quota = bench.service(timeout: 0.1)

# Frozen before it is asked for the first time, and while there is a connection.
1.upto(2) do |outages|
  freeze_all(server)
  check_open(quota, bench, outages)
  Process.kill("CONT", server)
  # It may still be slow in answering; each pause gives it another try.
  tries = 0
  until quota.backoff(user: "alice").action == "retry"
    bench.now += QuotaService::PAUSE
    abort "it does not answer again" if (tries += 1) > 300
  end
  check outages, bench.logged("INFO"), bench.log.string
end

# While one tries whether it is back, nobody else does.
class Stuck < QuotaService
  attr_reader :asked

  def connection = self

  def request(_)
    @asked = asked.to_i + 1
    check "proceed", backoff(user: "bob").action if asked == 2
    raise Errno::ECONNRESET
  end
end

bench = Bench.new
stuck = Stuck.new(url: "http://127.0.0.1", logger: Logger.new(bench.log), clock: -> { bench.now })
stuck.backoff(user: "alice")
bench.now += QuotaService::PAUSE
stuck.backoff(user: "alice")
check 2, stuck.asked

# Nobody listens there.
bench = Bench.new
check_open(bench.service("http://127.0.0.1:#{ENV.fetch("CLOSED_PORT")}", timeout: 0.1), bench, 1)
