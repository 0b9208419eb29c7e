//! Compiles `quota/v1/*.proto` in pure Rust: nobody needs protoc.

use std::path::PathBuf;

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=quota");
    let files = protox::compile(["quota/v1/quota.proto"], ["."])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("quota.v1.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::BoundedCodec")
        .compile_fds(files)?;
    Ok(())
}
