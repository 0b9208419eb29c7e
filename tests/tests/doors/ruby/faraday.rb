# frozen_string_literal: true

# alice is over her limit: Faraday's retry middleware waits as long as it is told.

require "json"
require_relative "check"
require_relative "../../../../docs/rails/quota_faraday"

SLEPT = []
retrying = defined?(Faraday::Request::Retry) ? Faraday::Request::Retry : Faraday::Retry::Middleware
retrying.prepend(Module.new { define_method(:sleep) { |seconds| SLEPT << seconds } })

quota = QuotaFaraday.connection(ENV.fetch("QUOTA_URL"), timeout: 10)
check "proceed", JSON.parse(quota.get("/v1/backoff", user: "bob").body)["action"]
check [], SLEPT

answer = quota.get("/v1/backoff", user: "alice")
check ["retry", 4], [JSON.parse(answer.body)["action"], SLEPT.size]
SLEPT.each { |seconds| check_within 30.0..73.0, seconds }

# Nobody waits where no wait helps.
SLEPT.clear
check ["fail", []], [JSON.parse(quota.get("/v1/backoff", user: "mallory").body)["action"], SLEPT]

# Where nobody listens it is longer each time.
nobody = QuotaFaraday.connection("http://127.0.0.1:#{ENV.fetch("CLOSED_PORT")}")
begin
  nobody.get("/v1/backoff", user: "alice")
  abort "who answers?"
rescue Faraday::ConnectionFailed
  SLEPT.zip([0.5, 1.0, 2.0, 4.0]) { |seconds, least| check_within least..least * 1.3, seconds }
  check 4, SLEPT.size
end
