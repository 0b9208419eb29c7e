#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quota_server::fuzzing::http(input));
