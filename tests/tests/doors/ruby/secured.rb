# frozen_string_literal: true

# Over TLS, with a token of the role that each question takes.

require_relative "check"
require_relative "../../../../docs/rails/quota_slots"

bench = Bench.new
ask = ->(**options) { bench.service(**options).backoff(user: "mallory").action }
ca_file = ENV.fetch("QUOTA_CA")
check "fail", ask.call(token: "t0ken-of-a-reader", ca_file:)
check 0, bench.logged("WARN")

# Who is not known, or does not know whom he asks, goes on, and that is told.
check "proceed", ask.call(token: "t0ken-of-nobody", ca_file:)
check "proceed", ask.call(token: "t0ken-of-a-reader")
check [2, 1], [bench.logged("WARN"), bench.logged("WARN.*certificate")], bench.log.string
abort bench.log.string if bench.log.string.include?("t0ken")

slots = ->(token) { bench.service(token:, ca_file:).post("/v1/slots", action: "acquire", class: "api", holder: "web") }
check "api", slots.call("t0ken-of-a-fileserver")["class"]
check nil, slots.call("t0ken-of-a-reader")
