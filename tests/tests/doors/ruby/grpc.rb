# frozen_string_literal: true

# What a fileserver's refusal means, by its details as the Rust client sends them.

require_relative "check"
require_relative "../../../../docs/rails/quota_grpc"
require "google/rpc/status_pb"

def refusal(type, code, *details)
  packed = details.map { |detail| Google::Protobuf::Any.new.tap { |any| any.pack(detail) } }
  status = Google::Rpc::Status.new(code:, message: "no", details: packed)
  type.new("no", { "grpc-status-details-bin" => Google::Rpc::Status.encode(status) })
end

def answer(error)
  QuotaGrpc.calling { raise error }
rescue QuotaService::Refused => refused
  refused.answer
end

def over(kind, permanent)
  Google::Rpc::ErrorInfo.new(reason: "OVER_QUOTA", metadata: { "kind" => kind, "id" => "x", "resource" => "cpu", "permanent" => permanent })
end

wait = Google::Rpc::RetryInfo.new(retry_delay: Google::Protobuf::Duration.new(seconds: 6, nanos: 500_000_000))
own = answer(refusal(GRPC::ResourceExhausted, 8, wait, over("user", "false")))
check ["retry", 6.5, true, "x"], [own.action, own.retry_after, own.own?, own.denied_by["id"]]
repo = answer(refusal(GRPC::ResourceExhausted, 8, wait, over("repo", "false")))
check ["retry", false], [repo.action, repo.own?]
check true, answer(refusal(GRPC::ResourceExhausted, 8, wait, over("user", "true"))).fail?
busy = answer(refusal(GRPC::Unavailable, 14, wait, Google::Rpc::ErrorInfo.new(reason: "NO_SLOT")))
check ["retry", 6.5, false], [busy.action, busy.retry_after, busy.own?]
# A connection that broke has no details.
check ["retry", 1.0, false], answer(GRPC::Unavailable.new("gone")).then { |gone| [gone.action, gone.retry_after, gone.own?] }
check "done", QuotaGrpc.calling { "done" }
