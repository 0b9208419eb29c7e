//! Compiles `quota/v1/*.proto` in pure Rust: nobody needs protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=quota");
    let files = protox::compile(["quota/v1/quota.proto"], ["."])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::BoundedCodec")
        .compile_fds(files)?;
    Ok(())
}
