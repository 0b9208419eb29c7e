# frozen_string_literal: true

# A job comes back when it is told, with what Sidekiq gives a worker: `perform_in`.

require_relative "check"
require_relative "../../../../docs/rails/quota_job"

class Import
  class << self
    attr_reader :later, :done, :refused

    def perform_in(seconds, *args) = @later << [seconds, args]
    def reset = (@later, @done, @refused = [], [], [])
  end

  include QuotaJob

  def perform(project, user, wait = nil)
    raise QuotaService::Refused, QuotaService::Answer.new("retry", wait) if wait

    self.class.done << [project, user]
  end

  def quota_accounts(project, user, *) = { repo: "project-#{project}", user: }
  def quota_refused(answer, *args) = self.class.refused << [answer.action, args]
end

QuotaService.shared = Bench.new.service(random: Same.new(0.5))
run = lambda do |*args|
  Import.reset
  Import.new.perform(*args)
  [Import.done, Import.later, Import.refused]
end

check [[[1, "bob"]], [], []], run.call(1, "bob")
done, ((seconds, args)), refused = run.call(1, "alice")
check [[], [1, "alice"], []], [done, args, refused]
check_within 30.0 * 1.1..72.0 * 1.1, seconds
check [[], [], [["fail", [1, "mallory"]]]], run.call(1, "mallory")
check [[], [[11.0, [1, "bob", 10.0]]], []], run.call(1, "bob", 10.0)

QuotaService.shared = Bench.new.service("http://127.0.0.1:#{ENV.fetch("CLOSED_PORT")}")
check [[[1, "alice"]], [], []], run.call(1, "alice")
