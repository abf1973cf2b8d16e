//! The words of a log line in the style of the common log format: bare, `[bracketed]`, `"quoted"` and `key=value`.

use memchr::{memchr, memchr2};

/// How a word was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bare,
    Bracketed,
    Quoted,
}

/// A word of a line. The ranges are positions in the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// The key of `key=value`, empty without one.
    key: (u32, u32),
    value: (u32, u32),
}

impl Token {
    pub(crate) fn key<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        &line[self.key.0 as usize..self.key.1 as usize]
    }

    pub(crate) fn value<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        &line[self.value.0 as usize..self.value.1 as usize]
    }

    pub(crate) fn has_key(&self) -> bool {
        self.key.0 < self.key.1
    }
}

/// Splits a line into words. `false` if a quote or a bracket never closes: the line is cut, or is no such line.
///
/// Quotes are closed by the next quote that no backslash escapes (Apache's way; nginx writes `\x22`, which needs no
/// care). Words that end in a comma go on with the next word, and so do those around a lone colon: nginx writes
/// `0.001, 0.050 : 0.100` for a request that tried several servers.
pub(crate) fn split(line: &[u8], tokens: &mut Vec<Token>) -> bool {
    tokens.clear();
    let mut at = 0;
    let mut joins = false;
    while at < line.len() {
        if matches!(line[at], b' ' | b'\t') {
            at += 1;
            continue;
        }
        let Some((mut token, next)) = word(line, at) else { return false };
        let value = token.value(line);
        let lone_colon = token.kind == Kind::Bare && value == b":" && !tokens.is_empty();
        let goes_on = lone_colon || (token.kind == Kind::Bare && value.len() > 1 && value.ends_with(b","));
        match tokens.last_mut() {
            Some(last) if joins || lone_colon => {
                if last.kind == Kind::Bare && token.kind == Kind::Bare {
                    last.value.1 = token.value.1;
                } else {
                    tokens.push(token);
                }
            }
            _ => {
                if token.kind == Kind::Bare {
                    split_key(line, &mut token);
                }
                tokens.push(token);
            }
        }
        joins = goes_on;
        at = next;
    }
    true
}

/// The word that begins at `at`, and where the next one may begin.
fn word(line: &[u8], at: usize) -> Option<(Token, usize)> {
    let token =
        |kind, start: usize, end: usize| Token { kind, key: (0, 0), value: (start as u32, end as u32) };
    match line[at] {
        b'"' => {
            let end = closing_quote(line, at + 1)?;
            Some((token(Kind::Quoted, at + 1, end), end + 1))
        }
        b'[' => {
            let end = at + 1 + memchr(b']', &line[at + 1..])?;
            Some((token(Kind::Bracketed, at + 1, end), end + 1))
        }
        _ => {
            for (end, byte) in line.iter().enumerate().skip(at) {
                match byte {
                    b' ' | b'\t' => return Some((token(Kind::Bare, at, end), end)),
                    b'"' if end > at
                        && matches!(line[end - 1], b'=' | b':')
                        && is_key(&line[at..end - 1]) =>
                    {
                        let close = closing_quote(line, end + 1)?;
                        let key = (at as u32, end as u32 - 1);
                        return Some((Token { key, ..token(Kind::Quoted, end + 1, close) }, close + 1));
                    }
                    _ => {}
                }
            }
            Some((token(Kind::Bare, at, line.len()), line.len()))
        }
    }
}

fn closing_quote(line: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr2(b'"', b'\\', &line[at..])?;
        if line[at] == b'"' {
            return Some(at);
        }
        at += 2;
        if at > line.len() {
            return None;
        }
    }
}

/// Takes the key off a bare `key=value`.
fn split_key(line: &[u8], token: &mut Token) {
    let text = token.value(line);
    let Some(equals) = memchr(b'=', text) else { return };
    if is_key(&text[..equals]) {
        token.key = (token.value.0, token.value.0 + equals as u32);
        token.value.0 += equals as u32 + 1;
    }
}

fn is_key(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let mut tokens = Vec::new();
        let line = line.as_bytes();
        split(line, &mut tokens).then(|| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            tokens
                .iter()
                .map(|t| {
                    if t.has_key() {
                        format!("{}→{}", text(t.key(line)), text(t.value(line)))
                    } else {
                        text(t.value(line))
                    }
                })
                .collect()
        })
    }

    #[test]
    fn a_line_falls_into_its_words() {
        assert_eq!(
            words(r#"::1 - - [29/Nov/2026:23:02:13 +0000] "GET /x?q=\"a\" HTTP/1.1" 204 0 rt=0.001 uct="-, 0.000" 0.001, 0.050 : 0.100 -"#).unwrap(),
            ["::1", "-", "-", "29/Nov/2026:23:02:13 +0000", r#"GET /x?q=\"a\" HTTP/1.1"#, "204", "0", "rt→0.001", "uct→-, 0.000", "0.001, 0.050 : 0.100", "-"]
        );
    }

    #[test]
    fn a_key_may_follow_a_quote_without_a_space() {
        assert_eq!(words(r#""-"rt=0.1"#).unwrap(), ["-", "rt→0.1"]);
    }

    #[test]
    fn a_cut_quote_or_bracket_makes_no_line() {
        assert_eq!(words(r#"a "GET /"#), None);
        assert_eq!(words(r#"a [29/Nov"#), None);
        assert_eq!(words(r#"a "GET \"#), None);
    }
}
