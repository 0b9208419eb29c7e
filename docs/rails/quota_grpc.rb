# frozen_string_literal: true

require "grpc"
require "google/protobuf/well_known_types"
require "google/rpc/error_details_pb"
require_relative "quota_service"

# Turns a fileserver's refusal into QuotaService::Refused, which QuotaRack and QuotaJob answer: RESOURCE_EXHAUSTED and UNAVAILABLE,
# with what their details tell.
#
#   QuotaGrpc.calling { stub.ssh_upload_pack(request) }
module QuotaGrpc
  DEFAULT_WAIT = 1.0

  def self.calling
    yield
  rescue GRPC::ResourceExhausted, GRPC::Unavailable => error
    raise QuotaService::Refused, answer(error)
  end

  def self.answer(error)
    details = error.to_rpc_status&.details.to_a
    info = unpacked(details, Google::Rpc::ErrorInfo)&.metadata.to_h
    delay = unpacked(details, Google::Rpc::RetryInfo)&.retry_delay
    denied_by = info.slice("kind", "id", "resource") if info.key?("kind")
    action = info["permanent"] == "true" ? "fail" : "retry"
    QuotaService::Answer.new(action, delay ? delay.seconds + delay.nanos / 1e9 : DEFAULT_WAIT, denied_by)
  end

  def self.unpacked(details, type)
    details.find { |any| any.is(type) }&.unpack(type)
  end
end
