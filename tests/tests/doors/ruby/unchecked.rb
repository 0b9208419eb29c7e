# frozen_string_literal: true

# The store is lost, and operators want nobody to go on unchecked: that is an answer, and no outage.

require_relative "check"
require_relative "../../../../docs/rails/quota_rack"

bench = Bench.new
quota = QuotaService.shared = bench.service
answer = quota.backoff(user: "bob")
check ["retry", false], [answer.action, answer.own?]
check_within 1.0..2.0, answer.retry_after
check %w[retry retry], quota.backoff_each([{ user: "bob" }, { user: "eve" }]).map(&:action)
status, headers, = QuotaRack.new(->(_) { abort "it was let in" }) { { user: "bob" } }.call({})
check [503, true], [status, %w[1 2].include?(headers["retry-after"])]
check 0, bench.logged("WARN"), bench.log.string
