# frozen_string_literal: true

require_relative "quota_service"

# A job that comes back as late as it is told, and holds no thread meanwhile.
#
#   class ImportJob
#     include Sidekiq::Job
#     include QuotaJob
#
#     def perform(project, user) = ...
#     def quota_accounts(project, user) = { repo: "project-#{project}", user: "user-#{user}" }
#     def quota_refused(answer, project, user) = Import.fail!(project, answer.denied_by)   # no wait helps
#   end
module QuotaJob
  def self.included(job) = job.prepend(Asking)

  module Asking
    def perform(*args)
      answer = QuotaService.backoff(**quota_accounts(*args))
      answer.proceed? ? super : come_back(answer, args)
    # A fileserver refused in the midst.
    rescue QuotaService::Refused => refused
      come_back(refused.answer, args)
    end

    private

    def come_back(answer, args)
      return quota_refused(answer, *args) if answer.fail?

      self.class.perform_in(QuotaService.wait(1, answer.retry_after), *args)
    end
  end
end
