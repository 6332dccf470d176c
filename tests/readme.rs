//! What README and CHANGELOG say about the crate must be what the manifest says.

use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the value of a plain `name = "value"` line in the manifest.
fn manifest_value(name: &str) -> String {
    let manifest = read("Cargo.toml");
    let mut lines = manifest.lines().filter_map(|line| line.split_once(" = "));
    let (_, value) = lines.find(|(key, _)| *key == name).expect(name);
    value.trim_matches('"').to_owned()
}

/// Returns the versions that stand in `text` right behind `before`.
fn versions<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    text.match_indices(before)
        .map(|(at, _)| &text[at + before.len()..])
        .map(|rest| {
            &rest[..rest
                .find(|c| c != '.' && !char::is_numeric(c))
                .unwrap_or(rest.len())]
        })
        .map(|version| version.trim_end_matches('.'))
        .filter(|version| !version.is_empty())
        .collect()
}

/// Returns whether a requirement, as one writes it in a manifest, names `version`.
fn names_version(requirement: &str, version: &str) -> bool {
    let (required, actual) = (requirement.split('.'), version.split('.'));
    required.clone().count() >= 2 && required.zip(actual).all(|(a, b)| a == b)
}

#[test]
fn the_readme_names_the_declared_rust_version() {
    let declared = manifest_value("rust-version");
    let readme = read("README.md");
    let named = versions(&readme, "Rust 1.");
    assert!(!named.is_empty(), "README names no `Rust 1.x`");
    for minor in named {
        assert_eq!(format!("1.{minor}"), declared);
    }
}

#[test]
fn the_version_is_the_same_everywhere() {
    let version = manifest_value("version");
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find(|line| line.starts_with("## "));
    let newest = newest.expect("CHANGELOG has a heading for each version");
    assert!(
        newest.split([' ', '[', ']']).any(|word| word == version),
        "{newest}"
    );
    // README need not show a dependency line; one that is shown has to be right.
    let readme = read("README.md");
    let mut named = versions(&readme, "snapshot-prepare = \"");
    named.extend(versions(&readme, "snapshot-prepare = { version = \""));
    for requirement in named {
        assert!(
            names_version(requirement, &version),
            "{requirement} is not {version}"
        );
    }
}

#[test]
fn the_readme_names_every_feature() {
    let manifest = read("Cargo.toml");
    let readme = read("README.md");
    let lines = manifest
        .lines()
        .skip_while(|line| *line != "[features]")
        .skip(1);
    let features: Vec<_> = lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with('#') && *name != "default")
        .collect();
    assert!(features.contains(&"cli"), "{features:?}");
    for feature in features {
        assert!(
            readme.contains(&format!("`{feature}`")),
            "README lacks `{feature}`"
        );
    }
}

#[test]
fn the_readme_names_the_test_command() {
    let command = "bash scripts/test.sh";
    assert!(
        read("README.md").contains(command),
        "README lacks `{command}`"
    );
    assert!(read("scripts/test.sh").starts_with("#!/usr/bin/env bash\n"));
}

#[test]
fn what_is_checked_would_be_found_wrong() {
    assert_eq!(versions("Rust 1.88. Or Rust 1.9", "Rust 1."), ["88", "9"]);
    assert_eq!(versions("a = \"0.1\"\na = \"\"", "a = \""), ["0.1"]);
    assert!(names_version("0.1", "0.1.0") && names_version("0.1.0", "0.1.0"));
    assert!(!names_version("0.2", "0.1.0") && !names_version("0", "0.1.0"));
    assert_eq!(manifest_value("edition"), "2024");
}
