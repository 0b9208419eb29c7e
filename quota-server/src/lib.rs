//! The quota service: gRPC and HTTP in front of a store of usage, in memory or in Redis.
