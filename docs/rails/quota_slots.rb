# frozen_string_literal: true

require "socket"
require_relative "quota_service"

# A slot of a class of traffic for as long as a block runs. Where there is none, it raises QuotaService::Refused; where the quota
# service does not answer, the block runs without.
#
#   ci = QuotaSlots.new(service, "ci")
#   ci.hold { @app.call(env) }
class QuotaSlots
  # service: a QuotaService with a token of the role `fileserver`.
  def initialize(service, name)
    @service, @name = service, name
  end

  def hold
    slot = post("acquire", count: 1)
    raise QuotaService::Refused, QuotaService::Answer.new("retry", slot["retry_after_seconds"]) if slot&.key?("action")
    return yield unless slot&.key?("lease")

    begun = now
    keeping = Keeping.new(slot["lasts_seconds"] / 3.0, @service.method(:close)) { post("renew", lease: slot["lease"]) }
    begin
      yield
    ensure
      keeping.stop
      # How long it took is what a cap that adapts follows.
      post("release", lease: slot["lease"], finished: 1, took_seconds: now - begun)
    end
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def post(action, **more)
    holder = "#{Socket.gethostname}:#{Process.pid}"
    @service.post("/v1/slots", action:, class: @name, holder:, **more)
  end

  # Does something every so many seconds, in a thread of its own, until it is stopped.
  class Keeping
    def initialize(seconds, ended, &renew)
      @lock, @stopped, @is_stopped = Mutex.new, ConditionVariable.new, false
      @thread = Thread.new do
        renew.call until is_stopped_within?(seconds)
      ensure
        ended.call
      end
    end

    def stop
      @lock.synchronize do
        @is_stopped = true
        @stopped.signal
      end
      @thread.join
    end

    private

    def is_stopped_within?(seconds)
      @lock.synchronize do
        @stopped.wait(@lock, seconds) unless @is_stopped
        @is_stopped
      end
    end
  end
end
