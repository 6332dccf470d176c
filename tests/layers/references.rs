//! Finds what a file of the crate refers to.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::tokens::{Token, tokens};

/// What a file refers to outside its own module.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Reference {
    pub(crate) line: usize,
    pub(crate) target: Target,
}

/// What is referred to.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) enum Target {
    /// An item of this crate, by its path from the root, as far as it is plain.
    Own(Vec<String>),
    /// A crate of the manifest.
    Outside(String),
}

/// Code of a file that is compiled for tests only, taken out.
#[derive(Debug, Default)]
pub(crate) struct Shipped {
    tokens: Vec<Token>,
    /// The names of child modules that are for tests only.
    pub(crate) test_modules: Vec<String>,
}

impl Shipped {
    /// Reads a file, leaving out every item under `#[cfg(test)]`.
    pub(crate) fn read(source: &str) -> Self {
        let all = tokens(source);
        if begins(&all, &["#", "!", "[", "cfg", "(", "test", ")", "]"]) {
            return Self::default();
        }
        let mut shipped = Self::default();
        let mut at = 0;
        while at < all.len() {
            match test_item(&all[at..]) {
                Some(item) => {
                    let item = at + item.start..at + item.end;
                    at = item.end;
                    shipped.test_modules.extend(module_name(&all[item]));
                }
                None => {
                    shipped.tokens.push(all[at].clone());
                    at += 1;
                }
            }
        }
        shipped
    }

    /// Returns every reference of the code, which stands in the module at
    /// `module` (its path from the root).
    pub(crate) fn references(&self, module: &[String], outside: &[String]) -> Vec<Reference> {
        let mut found = Vec::new();
        let mut place = Place::new(module);
        for (at, token) in self.tokens.iter().enumerate() {
            place.pass(&self.tokens[at..]);
            let before = at.checked_sub(1).map(|at| self.tokens[at].text.as_str());
            let rest = &self.tokens[at..];
            if token.text == "crate" && begins(&rest[1..], &["::"]) {
                own_paths(&rest[2..], &[], &mut found);
            } else if token.text == "super" && !self.is_inside_path(at) {
                self.own_by_super(at, &place.module, &mut found);
            } else if before != Some(".")
                && !self.is_inside_path(at)
                && outside.contains(&token.text)
            {
                let is_path = begins(&rest[1..], &["::"]);
                let is_use = before == Some("use");
                if is_path || is_use {
                    found.push(Reference {
                        line: token.line,
                        target: Target::Outside(token.text.clone()),
                    });
                }
            }
        }
        found
    }

    /// Returns whether the token is a later part of a path; a path may also
    /// begin with `::`.
    fn is_inside_path(&self, at: usize) -> bool {
        const KEYWORDS: [&str; 8] = ["use", "return", "in", "as", "dyn", "impl", "else", "match"];
        let text = |back: usize| at.checked_sub(back).map(|at| self.tokens[at].text.as_str());
        text(1) == Some("::")
            && match text(2) {
                Some(">") => text(3) != Some("-"),
                Some(other) => is_word(other) && !KEYWORDS.contains(&other),
                None => false,
            }
    }

    /// Resolves a path of `super`s that stands in `module`.
    fn own_by_super(&self, mut at: usize, module: &[String], found: &mut Vec<Reference>) {
        let mut base = module;
        while begins(&self.tokens[at..], &["super", "::"]) {
            base = &base[..base.len().saturating_sub(1)];
            at += 2;
        }
        own_paths(&self.tokens[at..], base, found);
    }
}

/// Where in a file we are: the path of the module, inline ones included.
struct Place {
    module: Vec<String>,
    /// For each open brace, whether it opened an inline module.
    braces: Vec<bool>,
    /// Whether the next brace opens one.
    is_module_next: bool,
}

impl Place {
    fn new(module: &[String]) -> Self {
        Self {
            module: module.to_vec(),
            braces: Vec::new(),
            is_module_next: false,
        }
    }

    /// Moves past the first of `rest`.
    fn pass(&mut self, rest: &[Token]) {
        match rest[0].text.as_str() {
            "mod" if rest.len() > 2 && rest[2].text == "{" => {
                self.module.push(rest[1].text.clone());
                self.is_module_next = true;
            }
            "{" => self.braces.push(std::mem::take(&mut self.is_module_next)),
            "}" if self.braces.pop() == Some(true) => {
                self.module.pop();
            }
            _ => {}
        }
    }
}

/// Reads the path, or the group of paths in braces, that `rest` begins with.
fn own_paths(rest: &[Token], base: &[String], found: &mut Vec<Reference>) {
    let Some(first) = rest.first() else {
        return;
    };
    if first.text != "{" {
        let mut path = base.to_vec();
        path.push(first.text.clone());
        let mut tail = &rest[1..];
        while begins(tail, &["::"]) && tail.len() > 1 && is_word(&tail[1].text) {
            path.push(tail[1].text.clone());
            tail = &tail[2..];
        }
        if begins(tail, &["::", "{"]) {
            own_paths(&tail[1..], &path, found);
        } else {
            found.push(Reference {
                line: first.line,
                target: Target::Own(path),
            });
        }
        return;
    }
    let mut depth = 0_usize;
    for (at, token) in rest.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return;
        }
        let begins_element = depth == 1
            && is_word(&token.text)
            && at > 0
            && matches!(rest[at - 1].text.as_str(), "{" | ",");
        if begins_element {
            own_paths(&rest[at..], base, found);
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn begins(tokens: &[Token], texts: &[&str]) -> bool {
    tokens.len() >= texts.len()
        && tokens
            .iter()
            .zip(texts)
            .all(|(token, text)| token.text == *text)
}

/// Returns where the item lies that `tokens` begins with, when it is for tests
/// only.
fn test_item(tokens: &[Token]) -> Option<Range<usize>> {
    let is_test = begins(tokens, &["#", "[", "cfg", "(", "test", ")", "]"])
        || begins(tokens, &["#", "[", "cfg", "(", "all", "(", "test", ","]);
    if !is_test {
        return None;
    }
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(token.text.as_str(), "}" | ";" | ",") {
            return Some(0..at + 1);
        }
    }
    Some(0..tokens.len())
}

/// Returns the name when `item` declares a module that has a file of its own.
fn module_name(item: &[Token]) -> Option<String> {
    match item {
        [.., keyword, name, end] if keyword.text == "mod" && end.text == ";" => {
            Some(name.text.clone())
        }
        _ => None,
    }
}

/// A file of the crate.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    /// The path of the module from the root; empty for `lib.rs`.
    pub(crate) module: Vec<String>,
    pub(crate) text: String,
}

/// Reads all files under `root` that are compiled into the library when it is
/// not under test.
pub(crate) fn shipped_files(root: &Path) -> Vec<SourceFile> {
    let mut files = Vec::new();
    read_folder(root, root, &mut files);
    let test_only: Vec<Vec<String>> = files
        .iter()
        .flat_map(|file| {
            let children = Shipped::read(&file.text).test_modules;
            children
                .into_iter()
                .map(|child| [file.module.clone(), vec![child]].concat())
        })
        .collect();
    files.retain(|file| {
        !test_only
            .iter()
            .any(|module| file.module.starts_with(module))
    });
    files
}

fn read_folder(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) {
    let entries = folder.read_dir().expect("the folder can be read");
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            read_folder(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            let module = module_of(path.strip_prefix(root).expect("found below the root"));
            files.push(SourceFile { path, module, text });
        }
    }
}

fn module_of(path: &Path) -> Vec<String> {
    let without_extension = path.with_extension("");
    let mut module: Vec<String> = without_extension
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
        module.pop();
    }
    module
}
