//! Generates the wire's code from `contract/proto`, in pure Rust: no protoc is needed.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contract/proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files = protox::compile(["steerline/report/v1/report.proto"], [&root])?;
    tonic_prost_build::configure().build_server(false).include_file("steerline.rs").compile_fds(files)?;
    Ok(())
}
