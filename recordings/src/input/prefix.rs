//! What syslog and container runtimes put in front of a line.

use memchr::memchr;

use crate::quantity::instant;

/// What stands before each line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// Nothing.
    None,
    /// `2021-08-05T17:18:40.397Z stdout F `: the container runtime interface.
    Cri,
    /// `Nov 29 23:04:08 lb1 haproxy[30085]: `, or with an ISO date: syslog.
    Syslog,
    /// `nginx-1  | `: docker compose.
    Compose,
    /// `ACCESS `: old Ambassador.
    Ambassador,
}

impl Prefix {
    /// The prefix that most of these lines have.
    pub(crate) fn of(lines: &[&[u8]]) -> Self {
        let lines: Vec<_> = lines.iter().filter(|line| !line.is_empty()).collect();
        [Self::Cri, Self::Syslog, Self::Compose, Self::Ambassador]
            .into_iter()
            .find(|prefix| {
                let with = lines.iter().filter(|line| prefix.find(line).is_some()).count();
                with * 2 > lines.len()
            })
            .unwrap_or(Self::None)
    }

    /// The line without its prefix; the whole line if it has none.
    pub(crate) fn strip(self, line: &[u8]) -> &[u8] {
        self.find(line).unwrap_or(line)
    }

    fn find(self, line: &[u8]) -> Option<&[u8]> {
        match self {
            Self::None => None,
            Self::Cri => cri(line),
            Self::Syslog => syslog(line),
            Self::Compose => compose(line),
            Self::Ambassador => line.strip_prefix(b"ACCESS "),
        }
    }

    /// The prefix in words, for the report.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Cri => Some("container runtime prefix"),
            Self::Syslog => Some("syslog prefix"),
            Self::Compose => Some("docker compose prefix"),
            Self::Ambassador => Some("ACCESS prefix"),
        }
    }
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b' ', text)?;
    Some((&text[..end], text[end..].trim_ascii_start()))
}

fn cri(line: &[u8]) -> Option<&[u8]> {
    if !line.first()?.is_ascii_digit() {
        return None;
    }
    let (date, rest) = word(line)?;
    instant::iso(date)?;
    let rest = rest.strip_prefix(b"stdout ").or_else(|| rest.strip_prefix(b"stderr "))?;
    rest.strip_prefix(b"F ").or_else(|| rest.strip_prefix(b"P "))
}

fn syslog(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    if rest.first() == Some(&b'<') {
        let end = memchr(b'>', &rest[..rest.len().min(6)])?;
        rest = &rest[end + 1..];
    }
    if rest.len() > 16 && rest[3] == b' ' && rest[9] == b':' && rest[12] == b':' && rest[15] == b' ' {
        rest = rest[16..].trim_ascii_start();
    } else {
        let (date, after) = word(rest)?;
        instant::iso(date)?;
        rest = after;
    }
    let (_host, rest) = word(rest)?;
    let (tag, rest) = word(rest)?;
    tag.ends_with(b":").then_some(rest)
}

fn compose(line: &[u8]) -> Option<&[u8]> {
    let name = line.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_.-".contains(b)).count();
    if name == 0 {
        return None;
    }
    let rest = line[name..].strip_prefix(b" ")?.trim_ascii_start();
    rest.strip_prefix(b"| ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefixes_of_syslog_and_containers_are_taken_off() {
        let lines: [(Prefix, &[u8], &[u8]); 6] = [
            (Prefix::Cri, b"2021-08-05T17:18:40.397Z stdout F {\"a\":1}", b"{\"a\":1}"),
            (Prefix::Syslog, b"Nov 29 23:04:08 lb1 haproxy[30085]: x y", b"x y"),
            (Prefix::Syslog, b"<134>Dec  9 13:01:26 localhost nginx: x", b"x"),
            (Prefix::Syslog, b"2026-11-29T23:04:08+00:00 lb1 haproxy[1]: x", b"x"),
            (Prefix::Compose, b"web_1  | 127.0.0.1 - -", b"127.0.0.1 - -"),
            (Prefix::Ambassador, b"ACCESS [2021-01-01T00:00:00Z]", b"[2021-01-01T00:00:00Z]"),
        ];
        for (prefix, line, rest) in lines {
            assert_eq!(Prefix::of(&[line]), prefix);
            assert_eq!(prefix.strip(line), rest);
        }
        assert_eq!(
            Prefix::of(&[b"127.0.0.1 - - [29/Nov/2026:23:01:48 +0000] \"GET / HTTP/1.1\" 200 72"]),
            Prefix::None
        );
    }
}
