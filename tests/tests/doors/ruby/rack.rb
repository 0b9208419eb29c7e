# frozen_string_literal: true

# What browsers are answered.

require_relative "check"
require_relative "../../../../docs/rails/quota_rack"

QuotaService.shared = Bench.new.service
ASKED = []
INNER = lambda do |env|
  ASKED << env["accounts"]
  raise QuotaService::Refused, env["refused"] if env["refused"]

  [200, {}, ["the page"]]
end
RACK = QuotaRack.new(INNER) { |env| env["accounts"] }

def ask(accounts, refused: nil) = RACK.call("accounts" => accounts, "refused" => refused)

check [200, {}, ["the page"]], ask({ user: "bob", ip: "192.0.2.1" })
check [200, {}, ["the page"]], ask(nil)
check [{ user: "bob", ip: "192.0.2.1" }, nil], ASKED

# His own quota, and what others have used of a repository.
{ { user: "alice" } => 429, { repo: "hot", user: "bob" } => 503 }.each do |accounts, status|
  told, headers, body = ask(accounts)
  check [status, "no-store"], [told, headers["cache-control"]]
  check_within 30..72, Integer(headers["retry-after"])
  check [QuotaRack::TEXTS[status]], body
end
status, headers, = ask({ user: "mallory" })
check [403, nil], [status, headers["retry-after"]]
check 2, ASKED.size

# A fileserver refuses in the midst, for what the visitor used, and for what others do.
own = QuotaService::Answer.new("retry", 6.2, { "kind" => "ip", "id" => "192.0.2.1" })
busy = QuotaService::Answer.new("retry", 0.0, nil)
[[own, 429, "7"], [busy, 503, "1"]].each do |answer, expected, seconds|
  status, headers, = ask({ user: "bob" }, refused: answer)
  check [expected, seconds], [status, headers["retry-after"]]
end

# Without the service everybody is let in.
QuotaService.shared = Bench.new.service("http://127.0.0.1:#{ENV.fetch("CLOSED_PORT")}")
check 200, ask({ user: "alice" }).first
