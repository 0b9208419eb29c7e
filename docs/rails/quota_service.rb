# frozen_string_literal: true

require "json"
require "logger"
require "net/http"
require "openssl"
require "uri"

# Asks the quota service whether to go on, to come back later, or to give up. It never raises, and takes no longer than its
# timeout: without an answer in time it says to go on, since the fileservers decide in the end.
#
#   QuotaService.setup(url: "http://quota.internal:8080", token: ENV["QUOTA_TOKEN"], logger: Rails.logger)
#   QuotaService.backoff(repo: "project-42", user: "user-7", ip: "203.0.113.7").proceed?
class QuotaService
  # action: "proceed", "retry" (after retry_after seconds) or "fail" (no wait helps). denied_by: the limit, as the service tells it.
  Answer = Struct.new(:action, :retry_after, :denied_by) do
    def proceed? = action == "proceed"
    def fail? = action == "fail"

    # A limit of the visitor's own, and neither that of a repository, which others load too, nor of the machine.
    def own? = %w[user ip].include?(denied_by&.fetch("kind", nil))
  end

  PROCEED = Answer.new("proceed", 0.0, nil).freeze

  # For whoever is in the midst of something when he hears that he may not.
  class Refused < StandardError
    attr_reader :answer

    def initialize(answer)
      @answer = answer
      super(answer.denied_by ? "#{answer.denied_by["kind"]} #{answer.denied_by["id"]} is over quota" : "the machine is busy")
    end
  end

  # After one call without an answer nobody waits for another for so many seconds; then one tries.
  PAUSE = 1.0
  # The first wait and the longest, in seconds, where no longer one is told; and by how much each is spread.
  FIRST = 0.5
  LONGEST = 300.0
  SPREAD = 0.2

  LOST = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError,
          Net::HTTPBadResponse, JSON::ParserError].freeze

  class << self
    attr_accessor :shared

    def setup(**options) = self.shared = new(**options)
    def backoff(**accounts) = shared.backoff(**accounts)
    def wait(attempt, told) = shared.wait(attempt, told)
    def run(**options, &work) = shared.run(**options, &work)
  end

  # Half of the timeout, in seconds, is for connecting, and half for the answer. ca_file: who vouches for the service, where it is not
  # one whom the system trusts.
  def initialize(url:, token: nil, ca_file: nil, timeout: 0.1, logger: Logger.new($stderr), random: Random.new,
                 sleeper: Kernel.method(:sleep), clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
    @url, @ca_file = URI(url), ca_file
    @headers = { "content-type" => "application/json" }
    @headers["authorization"] = "Bearer #{token}" if token
    @timeout, @logger, @random, @sleeper, @clock = timeout, logger, random, sleeper, clock
    @lock = Mutex.new
    @away_until = nil
  end

  # For one set of accounts. node: the fileserver that would be asked; attempt: which try in a row it is, from 1.
  def backoff(repo: nil, user: nil, ip: nil, node: nil, attempt: nil)
    named = { repo:, user:, ip:, node:, attempt: }.compact
    answer(ask(Net::HTTP::Get.new("/v1/backoff?#{URI.encode_www_form(named)}", @headers)))
  end

  # For up to a hundred sets, such as { repo: "project-42", user: "user-7" }, in their order.
  def backoff_each(sets)
    told = post("/v1/backoff", requests: sets)
    results = told&.fetch("results", nil) || [told] * sets.size
    results.map { |result| answer(result) }
  end

  # Runs the block once the accounts may go on, and again where it raises Refused. It sleeps: for jobs and scripts, never for a
  # web worker.
  def run(attempts: 5, **accounts)
    attempt = 1
    begin
      answer = backoff(**accounts, attempt:)
      raise Refused, answer unless answer.proceed?

      yield
    rescue Refused => refused
      raise if refused.answer.fail? || attempt == attempts

      @sleeper.call(wait(attempt, refused.answer.retry_after))
      attempt += 1
      retry
    end
  end

  # Never earlier than was told, longer with each attempt, and spread, so that those who were refused together do not return
  # together.
  def wait(attempt, told)
    grown = [FIRST * 2**[attempt - 1, 16].min, LONGEST].min
    [told, grown].max * (1 + SPREAD * @random.rand)
  end

  # The answer of the service as a hash, or nil where there is none.
  def post(path, body) = ask(Net::HTTP::Post.new(path, @headers).tap { |request| request.body = JSON.generate(body) })

  # Ends this thread's connection: of a thread that ends, since nobody else does.
  def close
    Thread.current[key]&.finish
  rescue IOError
    nil
  ensure
    Thread.current[key] = nil
  end

  private

  def answer(told)
    return PROCEED unless told&.key?("retry_after_seconds")

    Answer.new(told["action"], told["retry_after_seconds"], told["denied_by"]).freeze
  end

  def ask(request)
    return if away?

    response = connection.request(request)
    seconds = Integer(response["retry-after"], exception: false) if response["retry-after"]
    case response
    when Net::HTTPOK then back(JSON.parse(response.body))
    # So it answers without its store where operators want no request to go on unchecked, and where there is no slot.
    when Net::HTTPServiceUnavailable then seconds ? back("action" => "retry", "retry_after_seconds" => seconds.to_f) : lost(response.code)
    # The names are wrong, and the service is well.
    when Net::HTTPBadRequest, Net::HTTPNotFound then back(nil).tap { @logger.warn("quota: #{response.body}") }
    else lost(response.code)
    end
  rescue *LOST => error
    close
    lost("#{error.class}: #{error.message}")
  end

  # One for each thread, kept open. A process that was forked makes its own.
  def connection
    kept = Thread.current[key]
    return kept if kept&.started?

    http = Net::HTTP.new(@url.host, @url.port, nil)
    http.use_ssl = @url.scheme == "https"
    http.ca_file = @ca_file
    http.open_timeout = http.read_timeout = http.write_timeout = @timeout / 2.0
    # Less than the server keeps an idle one; and nothing is sent twice.
    http.keep_alive_timeout = 25
    http.max_retries = 0
    Thread.current[key] = http.start
  end

  def key = "quota_service_#{object_id}_#{Process.pid}"

  # One call at a time tries whether an absent service is back.
  def away?
    @lock.synchronize do
      now = @clock.call
      next false if @away_until.nil?
      next true if now < @away_until

      @away_until = now + PAUSE
      false
    end
  end

  # Each outage is told once, and its end.
  def lost(reason)
    is_news = @lock.synchronize { @away_until.nil?.tap { @away_until = @clock.call + PAUSE } }
    @logger.warn("quota: no answer (#{reason}); going on without") if is_news
    nil
  end

  def back(told)
    was_away = @lock.synchronize { !@away_until.nil?.tap { @away_until = nil } }
    @logger.info("quota: answers again") if was_away
    told
  end
end
