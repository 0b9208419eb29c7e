# frozen_string_literal: true

# What the scripts beside this have in common: assertions, and what a service is made with so that nothing sleeps.

require "stringio"
require_relative "../../../../docs/rails/quota_service"

def check(expected, actual, what = nil)
  return if expected == actual

  abort "#{caller(1, 1).first}: #{what} expected #{expected.inspect}, and it is #{actual.inspect}"
end

def check_within(range, actual)
  abort "#{caller(1, 1).first}: #{actual.inspect} is not in #{range}" unless range.cover?(actual)
end

# Looks until it is so, for half a minute.
def until_true(what)
  ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
  until yield
    abort "waited in vain: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
    sleep 0.01
  end
end

# A source of the same number each time.
Same = Struct.new(:rand)

# A clock that is moved by hand, and a log.
class Bench
  attr_accessor :now
  attr_reader :slept, :log

  def initialize
    @now, @slept, @log = 0.0, [], StringIO.new
  end

  def service(url = ENV.fetch("QUOTA_URL"), **options)
    QuotaService.new(url:, logger: Logger.new(@log), sleeper: @slept.method(:push), clock: -> { @now }, timeout: 10, **options)
  end

  def logged(severity) = @log.string.lines.grep(/#{severity}/).size
end
