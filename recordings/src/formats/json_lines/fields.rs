//! Single fields of a JSON object, without building the object.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep objects are searched for fields.
const DEPTH: usize = 4;

/// The keys that lead to a field, outermost first.
pub(crate) type Path = Vec<String>;

/// Picks the wanted fields of the object in `text`, as raw JSON. Says whether `text` is a whole JSON object.
pub(crate) fn pick<'de>(text: &'de [u8], wanted: &[Path], found: &mut [Option<&'de str>]) -> bool {
    found.fill(None);
    pick_below(text, wanted, 0, found)
}

fn pick_below<'de>(text: &'de [u8], wanted: &[Path], depth: usize, found: &mut [Option<&'de str>]) -> bool {
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut nested: Vec<(usize, &'de RawValue)> = Vec::new();
    let picker = Picker { wanted, depth, found, nested: &mut nested };
    if json.deserialize_map(picker).is_err() || json.end().is_err() {
        return false;
    }
    for (index, raw) in nested {
        // Only the paths through this key go on; the others must not see the keys inside.
        let key = &wanted[index][..=depth];
        let inside: Vec<usize> = (0..wanted.len())
            .filter(|i| wanted[*i].len() > depth + 1 && wanted[*i][..=depth] == *key)
            .collect();
        let paths: Vec<Path> = inside.iter().map(|i| wanted[*i].clone()).collect();
        let mut slots = vec![None; paths.len()];
        pick_below(raw.get().as_bytes(), &paths, depth + 1, &mut slots);
        for (slot, at) in slots.into_iter().zip(inside) {
            found[at] = found[at].or(slot);
        }
    }
    true
}

struct Picker<'p, 'de> {
    wanted: &'p [Path],
    depth: usize,
    found: &'p mut [Option<&'de str>],
    nested: &'p mut Vec<(usize, &'de RawValue)>,
}

impl<'de> Visitor<'de> for Picker<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Key)? {
            let index =
                self.wanted.iter().position(|path| path.get(self.depth).is_some_and(|name| *name == key));
            match index {
                Some(index) => {
                    let raw: &RawValue = map.next_value()?;
                    for (at, path) in self.wanted.iter().enumerate().skip(index) {
                        if path.len() == self.depth + 1 && path[self.depth] == key {
                            self.found[at] = Some(raw.get());
                        }
                    }
                    let deeper =
                        self.wanted.iter().position(|p| p.len() > self.depth + 1 && p[self.depth] == key);
                    if let Some(deeper) = deeper
                        && raw.get().starts_with('{')
                    {
                        self.nested.push((deeper, raw));
                    }
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A key, borrowed where it has no escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// All fields of the object in `text` that are not objects or lists, with their paths.
pub(crate) fn flatten(text: &[u8]) -> Option<Vec<(Path, String)>> {
    let value: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(text).ok()?;
    let raw: std::collections::BTreeMap<String, &RawValue> = serde_json::from_slice(text).ok()?;
    let mut fields = Vec::new();
    for (key, value) in &value {
        // The raw text keeps what a parsed number loses: `0.100` is a server's way to print seconds.
        let raw = raw.get(key).map(|raw| raw.get());
        flatten_into(vec![key.clone()], value, raw, &mut fields);
    }
    Some(fields)
}

fn flatten_into(path: Path, value: &serde_json::Value, raw: Option<&str>, fields: &mut Vec<(Path, String)>) {
    match value {
        serde_json::Value::Object(inner) if path.len() < DEPTH => {
            for (key, value) in inner {
                let mut path = path.clone();
                path.push(key.clone());
                flatten_into(path, value, None, fields);
            }
        }
        serde_json::Value::Object(_) | serde_json::Value::Array(_) => {}
        serde_json::Value::String(text) => fields.push((path, text.clone())),
        serde_json::Value::Null => fields.push((path, String::new())),
        other => fields.push((path, raw.map_or_else(|| other.to_string(), str::to_owned))),
    }
}

/// The text of a raw JSON scalar: a string without its quotes, a number as written, nothing for `null`.
pub(crate) fn scalar(raw: Option<&str>) -> Cow<'_, [u8]> {
    match raw {
        None | Some("null") => Cow::Borrowed(b""),
        Some(raw) => match raw.strip_prefix('"').and_then(|r| r.strip_suffix('"')) {
            Some(inner) if inner.contains('\\') => {
                Cow::Owned(serde_json::from_str::<String>(raw).unwrap_or_default().into_bytes())
            }
            Some(inner) => Cow::Borrowed(inner.as_bytes()),
            None => Cow::Borrowed(raw.as_bytes()),
        },
    }
}

/// Makes JSON of what people write by hand into a log format and take for JSON: `+2` becomes `2`, a bare `-` and an
/// empty value become `null`.
pub(crate) fn repair(text: &[u8]) -> Vec<u8> {
    let mut repaired = Vec::with_capacity(text.len() + 16);
    let (mut in_string, mut escaped) = (false, false);
    // The last byte outside of strings that is no space.
    let mut before = b' ';
    for (at, &byte) in text.iter().enumerate() {
        if in_string {
            repaired.push(byte);
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            before = b'"';
            continue;
        }
        let next = text[at + 1..].iter().find(|b| **b != b' ').copied().unwrap_or(b' ');
        match byte {
            b'"' => {
                in_string = true;
                repaired.push(byte);
            }
            b'+' if before == b':' => continue,
            b'-' if before == b':' && matches!(next, b',' | b'}') => repaired.extend_from_slice(b"null"),
            b',' | b'}' if before == b':' => {
                repaired.extend_from_slice(b"null");
                repaired.push(byte);
            }
            _ => repaired.push(byte),
        }
        if byte != b' ' {
            before = byte;
        }
    }
    repaired
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn fields_are_picked_at_any_depth_and_order() {
        let wanted = [path("res.statusCode"), path("time"), path("res.headers.x"), path("missing")];
        let text = br#"{"time":1795994154731,"res":{"headers":{"x":"\u0041"},"statusCode":503},"n":0.100}"#;
        let mut found = [None; 4];
        assert!(pick(text, &wanted, &mut found));
        assert_eq!(found, [Some("503"), Some("1795994154731"), Some(r#""\u0041""#), None]);
        assert_eq!(scalar(found[2]).as_ref(), b"A");
        assert!(!pick(&text[..30], &wanted, &mut found));
        assert!(!pick(b"[1]", &wanted, &mut found));
    }

    #[test]
    fn numbers_keep_their_zeros() {
        let fields = flatten(br#"{"n":0.100,"o":{"p":"q"}}"#).unwrap();
        assert_eq!(fields, [(path("n"), "0.100".to_owned()), (path("o.p"), "q".to_owned())]);
    }

    #[test]
    fn hand_made_json_is_repaired() {
        let repaired = repair(br#"{"bytes":+2,"status":-,"x":"a+b: -,","y":,"z":-1,"w":}"#);
        assert_eq!(
            String::from_utf8(repaired).unwrap(),
            r#"{"bytes":2,"status":null,"x":"a+b: -,","y":null,"z":-1,"w":null}"#
        );
    }
}
