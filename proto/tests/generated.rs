//! What is kept in `src/generated` is what `quota/v1/*.proto` says, so that whoever depends on this crate compiles no
//! compiler of protobuf. It is made in pure Rust: nobody needs protoc.
#![allow(clippy::expect_used, reason = "a test reports by panicking")]

use std::fs;
use std::path::Path;

use prost::Message as _;

/// Set, it writes what is kept anew.
const UPDATE: &str = "UPDATE_GENERATED";

#[test]
fn what_is_kept_is_what_the_proto_files_say() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (kept, made) = (package.join("src/generated"), Path::new(env!("CARGO_TARGET_TMPDIR")));
    let files = protox::compile([package.join("quota/v1/quota.proto")], [package]).expect("compile");
    fs::write(made.join("quota.v1.bin"), files.encode_to_vec()).expect("write the descriptors");
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::BoundedCodec")
        .out_dir(made)
        .compile_fds(files)
        .expect("generate");
    for name in ["quota.v1.rs", "quota.v1.bin"] {
        let (kept, made) = (kept.join(name), made.join(name));
        if std::env::var_os(UPDATE).is_some() {
            fs::copy(&made, &kept).expect("write what is kept");
        }
        let read = |path| fs::read(path).expect("read");
        let is_same = read(&kept) == read(&made);
        assert!(is_same, "{name} is not as made: {UPDATE}=1 cargo test -p quota-proto --test generated");
    }
}
