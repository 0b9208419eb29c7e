//! The harness of the tests: real Redis servers, the workspace's binaries as child processes, what breaks them and the
//! way between them, and waiting for what must happen. A test that lacks what it needs fails and says what to install;
//! none is skipped in CI. Elsewhere one that takes root may say so, and test nothing.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a harness reports by panicking")]

pub mod browser;
pub mod certificates;
pub mod cgroup;
pub mod chart;
pub mod collector;
pub mod contract;
pub mod faults;
pub mod git;
pub mod http;
pub mod https;
pub mod latency;
pub mod limitador;
pub mod network;
pub mod openapi;
pub mod outage;
pub mod ports;
pub mod process;
pub mod prometheus;
pub mod property;
pub mod proxy;
pub mod redis;
pub mod repositories;
pub mod server;
pub mod simulate;
pub mod stores;
pub mod svg;
pub mod values;
pub mod wait;
