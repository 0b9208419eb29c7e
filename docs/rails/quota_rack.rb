# frozen_string_literal: true

require_relative "quota_service"

# Refuses a request before the application begins it, where its accounts are over quota, and says when to come back.
#
#   config.middleware.use QuotaRack do |env|
#     user = env["warden"]&.user
#     { user: user && "user-#{user.id}", ip: ActionDispatch::Request.new(env).remote_ip }.compact
#   end
#
# The block names the accounts of a request; nil: it is not asked about.
class QuotaRack
  TEXTS = { 403 => "This account is blocked.", 429 => "You have used more than your share; please come back later.",
            503 => "The service is busy; please come back later." }.freeze

  def initialize(app, &accounts)
    @app, @accounts = app, accounts
  end

  def call(env)
    accounts = @accounts.call(env)
    answer = accounts ? QuotaService.backoff(**accounts) : QuotaService::PROCEED
    answer.proceed? ? @app.call(env) : self.class.refusal(answer)
  rescue QuotaService::Refused => refused
    self.class.refusal(refused.answer)
  end

  # 429: his own quota. 503: what others have to do with, a repository, a node, slots; it is not the visitor's fault. 403: no wait helps.
  def self.refusal(answer)
    status = answer.fail? ? 403 : (answer.own? ? 429 : 503)
    headers = { "content-type" => "text/plain", "cache-control" => "no-store" }
    headers["retry-after"] = [answer.retry_after.ceil, 1].max.to_s unless answer.fail?
    [status, headers, [TEXTS[status]]]
  end
end
