//! Just enough of Rust's grammar to see which paths a file names.

/// A token and the line it is on, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Splits source text into identifiers, `::` and single punctuation characters;
/// comments, literals and lifetimes are left out.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut scanner = Scanner {
        rest: source,
        line: 1,
    };
    let mut tokens = Vec::new();
    while !scanner.rest.is_empty() {
        let line = scanner.line;
        if let Some(text) = scanner.next_token() {
            tokens.push(Token { line, text });
        }
    }
    tokens
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Scanner<'a> {
    /// Takes one token, or one thing that is none (then returns `None`).
    fn next_token(&mut self) -> Option<String> {
        if self.rest.starts_with("//") {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.skip_block_comment();
        } else if let Some(length) = raw_string_length(self.rest) {
            self.take(length);
        } else if let Some(length) = quoted_length(self.rest) {
            self.take(length);
        } else if self.rest.starts_with("::") {
            return Some(self.take(2).to_owned());
        } else if let Some(length) = word_length(self.rest) {
            return Some(self.take(length).to_owned());
        } else {
            let first = self.rest.chars().next().map_or(0, char::len_utf8);
            let text = self.take(first);
            return (!text.trim().is_empty()).then(|| text.to_owned());
        }
        None
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        while !self.rest.is_empty() {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
                if depth == 0 {
                    return;
                }
            } else {
                let first = self.rest.chars().next().map_or(0, char::len_utf8);
                self.take(first);
            }
        }
    }
}

/// Returns the length of the identifier, keyword or number `text` begins with.
fn word_length(text: &str) -> Option<usize> {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    (end > 0).then_some(end)
}

/// Returns the length of the raw string (with its prefix) `text` begins with.
fn raw_string_length(text: &str) -> Option<usize> {
    let start = ["r", "br", "cr"].iter().find_map(|prefix| {
        let after = text.strip_prefix(prefix)?;
        let hashes = after.len() - after.trim_start_matches('#').len();
        after[hashes..]
            .starts_with('"')
            .then_some((prefix.len() + hashes + 1, hashes))
    });
    let (start, hashes) = start?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = text[start..].find(&close)?;
    Some(start + end + close.len())
}

/// Returns the length of the string, character or lifetime `text` begins with.
fn quoted_length(text: &str) -> Option<usize> {
    let prefix = usize::from(
        ["b\"", "c\"", "b'"]
            .iter()
            .any(|prefix| text.starts_with(prefix)),
    );
    let quote = text[prefix..].chars().next()?;
    if quote == '\'' && is_lifetime(&text[prefix..]) {
        return Some(1 + word_length(&text[1..])?);
    }
    if quote != '"' && quote != '\'' {
        return None;
    }
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(prefix + 1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// Returns whether `text`, which begins with a quote, begins with a lifetime.
fn is_lifetime(text: &str) -> bool {
    word_length(&text[1..]).is_some_and(|length| !text[1 + length..].starts_with('\''))
}
