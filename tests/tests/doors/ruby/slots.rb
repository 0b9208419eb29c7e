# frozen_string_literal: true

# `ci` has two slots, `api` has no cap.

require_relative "check"
require_relative "../../../../docs/rails/quota_rack"
require_relative "../../../../docs/rails/quota_slots"

SERVICE = Bench.new.service
CI = QuotaSlots.new(SERVICE, "ci")
leased = lambda do
  response = Net::HTTP.get(URI("#{ENV.fetch("QUOTA_URL")}/v1/classes"))
  JSON.parse(response)["classes"].find { |of| of["class"] == "ci" }["slots"]["leased"]
end

# The store has just been started, and leases nothing for the time of a lease.
until_true("a first slot") do
  CI.hold { true }
rescue QuotaService::Refused
  false
end

threads = Thread.list.size
check "page", CI.hold { leased.call == 1 && "page" }
check [0, threads], [leased.call, Thread.list.size]
begin
  CI.hold { raise "the application fails" }
rescue RuntimeError => error
  check ["the application fails", 0], [error.message, leased.call]
end
CI.hold do
  CI.hold do
    CI.hold { abort "a third one" }
  rescue QuotaService::Refused => refused
    status, headers, = QuotaRack.refusal(refused.answer)
    check [503, true], [status, Integer(headers["retry-after"]) >= 1]
  end
  check 1, leased.call
end
check ["page", 0], [QuotaSlots.new(SERVICE, "api").hold { "page" }, leased.call]

# It is renewed until it is stopped, and not after.
renewed, ended = Queue.new, []
keeping = QuotaSlots::Keeping.new(0.001, -> { ended << true }) { renewed << true }
3.times { renewed.pop }
keeping.stop
check [true], ended
count = renewed.size
Thread.pass
check count, renewed.size
# So is a slot that is held.
renewals = -> { Net::HTTP.get(URI("#{ENV.fetch("QUOTA_URL")}/metrics"))[/quota_slot_calls_total\{class="ci",outcome="renewed"\} (\d+)/, 1].to_i }
before = renewals.call
CI.hold { until_true("a renewal") { renewals.call > before } }

nobody = Bench.new.service("http://127.0.0.1:#{ENV.fetch("CLOSED_PORT")}")
check "page", QuotaSlots.new(nobody, "ci").hold { "page" }
