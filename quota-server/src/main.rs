//! Runs the quota service.

fn main() {}
