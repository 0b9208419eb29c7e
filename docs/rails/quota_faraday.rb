# frozen_string_literal: true

require "date" # which the retry middleware of Faraday 1 takes to be there
require "faraday"
require "faraday/retry" unless defined?(Faraday::Request::Retry) # of its own gem since Faraday 2

# The same with Faraday, whose retry middleware waits as long as `Retry-After` says, and longer with each try.
#
#   quota = QuotaFaraday.connection("http://quota.internal:8080", token: ENV["QUOTA_TOKEN"])
#   quota.get("/v1/backoff", user: "user-7")   # returns when user-7 may go on, or the tries are used up
module QuotaFaraday
  # An answer that says to come back later is one to try again, though its status is 200.
  class ComeBack < Faraday::Middleware
    def call(env)
      response = @app.call(env)
      raise Faraday::RetriableResponse.new(nil, response) if response.body.include?('"action":"retry"')

      response
    end
  end

  # It sleeps: for jobs and scripts, never for a web worker. interval and backoff_factor are what it waits at least; interval_randomness
  # is its jitter, upward alone. Told to wait for longer than max_interval, it gives up.
  RETRY = { max: 4, interval: 0.5, backoff_factor: 2, interval_randomness: 0.2, max_interval: 300, methods: %i[get],
            retry_statuses: [429, 503], exceptions: [Faraday::TimeoutError, Faraday::ConnectionFailed, Faraday::RetriableResponse] }.freeze

  def self.connection(url, token: nil, timeout: 0.1)
    Faraday.new(url, request: { open_timeout: timeout, timeout: }) do |faraday|
      faraday.headers["authorization"] = "Bearer #{token}" if token
      faraday.request :retry, **RETRY
      faraday.use ComeBack
      faraday.adapter :net_http
    end
  end
end
