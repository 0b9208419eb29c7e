# frozen_string_literal: true

# alice and the repository `hot` are over their limits, mallory is blocked, bob may go on.

require_relative "check"

bench = Bench.new
quota = bench.service

bob = quota.backoff(user: "bob", ip: "192.0.2.1")
check ["proceed", 0.0, true], [bob.action, bob.retry_after, bob.proceed?]

alice = quota.backoff(repo: "project-1", user: "alice")
check ["retry", true, false], [alice.action, alice.own?, alice.fail?]
check "alice", alice.denied_by["id"]
check_within 30.0..72.0, alice.retry_after

hot = quota.backoff(repo: "hot", user: "bob")
check ["retry", false], [hot.action, hot.own?]

mallory = quota.backoff(user: "mallory")
check ["fail", true], [mallory.action, mallory.fail?]

each = quota.backoff_each([{ user: "bob" }, { user: "alice" }, { user: "mallory", repo: "project-1" }])
check %w[proceed retry fail], each.map(&:action)

# What is wrong with a name holds nobody up, and is told.
check "proceed", quota.backoff(ip: "not an address").action
check [1, 0], [bench.logged("WARN"), bench.logged("INFO")]
check "retry", quota.backoff(user: "alice").action
