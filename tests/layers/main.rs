//! Checks which module uses which: the layers of the crate.
//!
//! The sources are read as text, so that a violation is found whatever features
//! are switched on. Code under `#[cfg(test)]` may use more.

mod references;
mod tokens;

use std::path::{Path, PathBuf};

use references::{Reference, Shipped, SourceFile, Target, shipped_files};

/// What a module may use: modules of this crate, and crates of the manifest.
/// Itself, its children, and the standard library are always allowed.
struct Layer {
    module: &'static str,
    own: &'static [&'static str],
    outside: &'static [&'static str],
}

const fn layer(
    module: &'static str,
    own: &'static [&'static str],
    outside: &'static [&'static str],
) -> Layer {
    Layer {
        module,
        own,
        outside,
    }
}

/// The layers, lowest first. The row with the longest matching path holds, so a
/// module below another can be held to less.
const LAYERS: &[Layer] = &[
    layer("time", &[], &["arbitrary"]),
    layer("range", &[], &["arbitrary", "bytes"]),
    layer("region", &["range"], &["arbitrary"]),
    layer(
        "error",
        &["time", "range", "region"],
        &["arbitrary", "thiserror"],
    ),
    layer(
        "progress",
        &["time", "range", "region", "error"],
        &["arbitrary"],
    ),
    layer(
        "machine",
        &["time", "range", "region", "error", "progress"],
        &["arbitrary", "bytes", "thiserror"],
    ),
    layer(
        "arbitrary",
        &["time", "range", "region", "error", "machine"],
        &["arbitrary"],
    ),
    layer("fuzz", FUZZ, &["arbitrary"]),
    layer("conformance", &[], &[]),
    layer(
        "cluster",
        &["range", "region", "error", "conformance"],
        &["futures_core", "futures_util"],
    ),
    layer("clock", &["time"], &["rustix", "tokio"]),
    layer(
        "driver",
        &[
            "time", "range", "region", "error", "progress", "machine", "cluster", "clock",
        ],
        &[
            "futures_core",
            "futures_util",
            "rustix",
            "thiserror",
            "tokio",
            "tracing",
        ],
    ),
    layer(
        "pb",
        &[],
        &["http", "prost", "tonic", "tonic_prost", "bytes"],
    ),
    layer("certificate", &["error"], &["tokio", "tonic"]),
    layer(
        "tikv",
        &["range", "region", "error", "certificate", "cluster", "pb"],
        &[
            "bytes",
            "futures_core",
            "futures_util",
            "h2",
            "http",
            "prost",
            "thiserror",
            "tokio",
            "tonic",
            "tonic_prost",
            "tracing",
        ],
    ),
    layer(
        "lock",
        &["time", "error", "clock", "conformance"],
        &["jiff", "rustix", "tokio", "tracing"],
    ),
    layer(
        "lock::storage",
        &["time", "error", "clock"],
        &[
            "base64",
            "bytes",
            "futures_util",
            "jiff",
            "object_store",
            "rand",
            "rand_chacha",
            "reqwest",
            "rustls",
            "serde",
            "serde_json",
            "tokio",
            "tracing",
        ],
    ),
    layer(
        "lock::etcd",
        &["time", "error", "clock", "certificate"],
        &[
            "etcd_client",
            "hyper_util",
            "jiff",
            "rand",
            "serde",
            "serde_json",
            "tokio",
            "tonic",
            "tracing",
        ],
    ),
    layer(
        "sim",
        SIM,
        &["rand", "rand_chacha", "serde", "serde_json", "thiserror"],
    ),
    layer("sim::hub", SIM, SIM_NETWORK),
    layer("sim::client", SIM, SIM_NETWORK),
    layer("sim::server", SIM, SIM_NETWORK),
    layer(
        "cli",
        &[
            "time", "range", "region", "error", "progress", "machine", "cluster", "driver", "tikv",
            "lock", "sim",
        ],
        &[
            "bytes",
            "clap",
            "futures_core",
            "futures_util",
            "indicatif",
            "jiff",
            "rand",
            "rand_chacha",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "tracing_subscriber",
        ],
    ),
    layer("fuzz::answers", FUZZ_ALL, &["arbitrary", "prost"]),
    layer("fuzz::layout", FUZZ_ALL, &["arbitrary"]),
    layer("fuzz::lock", FUZZ_ALL, &["arbitrary"]),
    layer("fuzz::text", FUZZ_ALL, &["arbitrary"]),
    layer("bin", &[], &["tokio"]),
];

/// What the pure fuzz targets may use, and those of the outer layers.
const FUZZ: &[&str] = &["time", "range", "region", "error", "progress", "machine"];
const FUZZ_ALL: &[&str] = &[
    "time", "range", "region", "error", "progress", "machine", "cluster", "pb", "tikv", "sim",
    "cli", "lock",
];

/// What the simulation may use of this crate.
const SIM: &[&str] = &[
    "time", "range", "region", "error", "progress", "machine", "cluster", "pb",
];

/// The crates that only those parts of the simulation use that talk to others;
/// the model, the faults, the oracle and the world are pure.
const SIM_NETWORK: &[&str] = &[
    "bytes",
    "futures_core",
    "futures_util",
    "http",
    "prost",
    "rand",
    "rand_chacha",
    "serde",
    "serde_json",
    "thiserror",
    "tokio",
    "tonic",
    "tonic_prost",
    "tracing",
];

/// Returns the row that holds for the module at `path`.
fn layer_of(path: &[String]) -> Option<&'static Layer> {
    LAYERS
        .iter()
        .filter(|layer| layer.module.split("::").count() <= path.len())
        .filter(|layer| layer.module.split("::").zip(path).all(|(a, b)| a == b))
        .max_by_key(|layer| layer.module.len())
}

/// Returns what the file refers to and must not, in words.
fn violations(file: &SourceFile, outside: &[String]) -> Vec<String> {
    let Some(layer) = layer_of(&file.module) else {
        return vec![format!(
            "{}: has no row in the table of layers",
            file.path.display()
        )];
    };
    let references = Shipped::read(&file.text).references(&file.module, outside);
    let mut found: Vec<_> = references
        .into_iter()
        .filter(|reference| !is_allowed(layer, &file.module, &reference.target))
        .map(|Reference { line, target }| {
            let (module, path) = (layer.module, file.path.display());
            let used = match target {
                Target::Own(mut target) => {
                    let is_sibling = target.first() == file.module.first();
                    target.truncate(1 + usize::from(is_sibling));
                    format!("`crate::{}`", target.join("::"))
                }
                Target::Outside(name) => format!("the crate `{name}`"),
            };
            format!("{path}:{line}: `{module}` must not use {used}")
        })
        .collect();
    found.dedup();
    found
}

fn is_allowed(layer: &Layer, module: &[String], target: &Target) -> bool {
    match target {
        Target::Outside(name) => layer.outside.contains(&name.as_str()),
        // The network parts of the simulation stand on the pure ones, and on the
        // one that runs the model for them.
        Target::Own(target) if target.first() == module.first() => {
            layer_of(target).is_none_or(|other| {
                layer.module.starts_with(other.module)
                    || !other.module.contains("::")
                    || (other.module == "sim::hub" && layer.module.contains("::"))
            })
        }
        Target::Own(target) => target
            .first()
            .is_some_and(|first| layer.own.contains(&first.as_str())),
    }
}

fn manifest_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the names, as code writes them, of the crates in `[dependencies]`.
fn dependencies() -> Vec<String> {
    let manifest = std::fs::read_to_string(manifest_folder().join("Cargo.toml")).expect("readable");
    let names: Vec<_> = manifest
        .lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().replace('-', "_"))
        .collect();
    assert!(names.contains(&"tokio".to_owned()), "{names:?}");
    names
}

/// Returns the modules that `lib.rs` declares.
fn declared_modules() -> Vec<String> {
    let text = std::fs::read_to_string(manifest_folder().join("src/lib.rs")).expect("readable");
    let tokens = tokens::tokens(&text);
    let pairs = tokens.windows(2).filter(|pair| pair[0].text == "mod");
    pairs.map(|pair| pair[1].text.clone()).collect()
}

#[test]
fn each_module_uses_only_what_its_layer_may() {
    let outside = dependencies();
    let files = shipped_files(&manifest_folder().join("src"));
    // The root declares the layers and belongs to none.
    let files = files.iter().filter(|file| !file.module.is_empty());
    let found: Vec<_> = files.flat_map(|file| violations(file, &outside)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn every_module_of_the_root_has_a_layer() {
    let declared = declared_modules();
    assert!(declared.contains(&"machine".to_owned()), "{declared:?}");
    for module in declared {
        assert!(
            layer_of(std::slice::from_ref(&module)).is_some(),
            "{module}"
        );
    }
}

/// Without this line the bans of `clippy.toml` do not hold in a layer.
const BANS: &str = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]";

#[test]
fn the_pure_layers_deny_what_clippy_bans() {
    let files = shipped_files(&manifest_folder().join("src"));
    for pure in [
        "time", "range", "region", "error", "progress", "machine", "sim",
    ] {
        let file = files.iter().find(|file| file.module == [pure]);
        let file = file.unwrap_or_else(|| panic!("`{pure}` is gone"));
        assert!(
            file.text.lines().any(|line| line == BANS),
            "`{pure}` lacks {BANS}"
        );
    }
}

#[test]
fn the_table_has_no_circle() {
    for (at, layer) in LAYERS.iter().enumerate() {
        let lower: Vec<_> = LAYERS[..at].iter().map(|layer| layer.module).collect();
        for used in layer.own {
            assert!(lower.contains(used), "{} uses {used}", layer.module);
        }
    }
}

/// Returns the violations of a file with this text in the module at `module`.
fn planted(module: &str, text: &str) -> Vec<String> {
    let outside: Vec<String> = ["tokio", "tonic", "bytes", "rand"]
        .map(str::to_owned)
        .into();
    let file = SourceFile {
        path: Path::new("planted.rs").to_owned(),
        module: module.split("::").map(str::to_owned).collect(),
        text: text.to_owned(),
    };
    violations(&file, &outside)
}

#[test]
fn every_way_to_name_a_forbidden_module_is_found() {
    for text in [
        "use crate::cluster::ClusterClient;",
        "use crate::{range::Key, cluster::{self, ClusterClient}};",
        "use crate::{\n    range::{Key, EndKey},\n    cluster,\n};",
        "pub use crate::cluster as other;",
        "fn f() -> u32 { crate::cluster::f() }",
        "fn f(x: impl crate::cluster::ClusterClient) {}",
        "macro_rules! m { () => { $crate::cluster::f() } }",
        "use super::super::cluster::ClusterClient;",
        "use super::super::{range::Key, cluster::ClusterClient};",
        "const QUOTE: char = '\"'; use crate::cluster; const OTHER: char = '\"';",
        "const RAW: &str = r#\"\"\"#; use crate::cluster; const END: &str = \"\";",
        "fn f<'a>(x: &'a str) { crate::cluster::f(x) }",
        "/* /* nested */ */ use crate::cluster;",
        "#[cfg(test)] mod tests { use crate::driver; } use crate::cluster;",
        "#[cfg(test)] use crate::driver::X; use crate::cluster;",
        "#[cfg(not(test))] use crate::cluster;",
        "mod inner { use super::super::super::cluster::X; } use super::super::range::Key;",
    ] {
        let found = planted("machine::core", text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(
            found[0].contains("`machine` must not use `crate::cluster"),
            "{found:?}"
        );
    }
}

#[test]
fn what_is_no_reference_or_is_allowed_is_not_reported() {
    for text in [
        "use crate::range::{Key, EndKey};",
        "use super::super::range::Key;",
        "use super::config::Config;",
        "use crate::machine::Config;",
        "//! [`x`](crate::cluster::x)\n/// crate::cluster\n// use crate::cluster;",
        "/* use crate::cluster; /* crate::cluster */ crate::cluster */",
        "const TEXT: &str = \"use crate::cluster; \\\" crate::cluster\";",
        "const RAW: &str = r##\"\"# crate::cluster\"##;",
        "pub(crate) fn f() {} pub(in crate::machine) fn g() {}",
        "#[cfg(test)]\nmod tests { mod inner { use crate::cluster::X; } use crate::driver; }",
        "#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;",
        "#[cfg(all(test, feature = \"sim\"))] mod tests { use crate::sim::x; }",
        "#![cfg(test)] use crate::cluster;",
        "fn f(x: X) { x.tokio; self::tokio(); x.rand() }",
        "use bytes::Bytes;",
    ] {
        assert_eq!(
            planted("machine::core", text),
            Vec::<String>::new(),
            "{text}"
        );
    }
}

#[test]
fn the_layers_that_must_not_know_each_other_are_told_apart() {
    for (module, text) in [
        ("tikv::client", "use crate::driver::Preparer;"),
        ("tikv::client", "use crate::machine::Config;"),
        ("driver::run", "use crate::tikv::TikvCluster;"),
        ("driver::run", "use crate::sim::model::Cluster;"),
        ("driver::run", "use tonic::Status;"),
        ("sim::world", "use crate::driver::Preparer;"),
        ("sim::model::cluster", "use tokio::sync::mpsc;"),
        ("sim::model::cluster", "use super::super::server::Served;"),
        ("sim::model::cluster", "use crate::sim::client::SimClient;"),
        ("sim::model::cluster", "use crate::sim::hub::Hub;"),
        ("sim::server::store", "use crate::sim::client::SimClient;"),
        ("cluster::client", "use crate::machine::Config;"),
        ("region", "use crate::error::Error;"),
        ("time", "use bytes::Bytes;"),
        ("machine", "use tokio::time::Instant;"),
        ("machine", "fn f() { tokio::spawn(g()) }"),
        ("machine", "fn f() { ::rand::rng() }"),
        ("machine", "use {tokio::spawn, std::fmt};"),
        ("error", "use crate::TopLevel;"),
        ("unheard_of", ""),
    ] {
        assert_eq!(planted(module, text).len(), 1, "{module}: {text}");
    }
    assert!(
        planted(
            "sim::server::store",
            "use crate::sim::{hub::Hub, model::Cluster}; use tonic::Status;"
        )
        .is_empty()
    );
}

#[test]
fn lines_are_told() {
    let found = planted("machine", "use std::fmt;\n\n/* \n */ use crate::driver;\n");
    assert!(found[0].starts_with("planted.rs:4: "), "{found:?}");
}
