//! The committed protobuf code is what `proto/*.proto` compile to.
//!
//! Where the environment variable `CI` is set the test only compares. Elsewhere
//! it also writes the new files, and still fails, so that nobody overlooks them.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const PACKAGES: [&str; 6] = ["backup", "errorpb", "kvrpcpb", "metapb", "pdpb", "tikvpb"];

#[test]
fn generated_code_is_fresh() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fresh = tempfile::tempdir()?;
    generate(&root.join("proto"), fresh.path())?;
    assert_eq!(
        file_names(fresh.path())?,
        PACKAGES.map(|package| format!("{package}.rs")),
        "a package came or went: name it here and in src/pb/mod.rs"
    );

    let mut stale = Vec::new();
    for name in file_names(fresh.path())? {
        let committed = root.join("src/pb").join(&name);
        let code = fs::read_to_string(fresh.path().join(&name))?;
        if fs::read_to_string(&committed).ok().as_ref() != Some(&code) {
            if std::env::var_os("CI").is_none() {
                fs::write(&committed, code)?;
            }
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "stale in src/pb: {stale:?}; run this test without CI in the environment and commit what it writes"
    );
    Ok(())
}

/// Compiles every file of `proto_dir` into `out_dir`, one Rust file a package.
fn generate(proto_dir: &Path, out_dir: &Path) -> Result<(), Box<dyn Error>> {
    let files: Vec<PathBuf> = file_names(proto_dir)?.iter().map(PathBuf::from).collect();
    let descriptors = protox::compile(files, [proto_dir])?;
    tonic_prost_build::configure()
        .out_dir(out_dir)
        .build_transport(false)
        .client_mod_attribute(".", "#[cfg(feature = \"tikv\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"sim\")]")
        .compile_fds(descriptors)?;
    Ok(())
}

fn file_names(dir: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
