//! The first bytes of a file, from which its format is recognised.

use super::Prefix;

/// Lines that are looked at.
const LINES: usize = 2_000;

/// The first bytes of a file.
pub(crate) struct Sample {
    bytes: Vec<u8>,
    /// Where the lines lie in `bytes`, with their prefixes.
    spans: Vec<(usize, usize)>,
    prefix: Prefix,
    /// Whether this is the whole file.
    pub(crate) whole: bool,
}

impl Sample {
    pub(crate) fn new(bytes: &[u8], whole: bool) -> Self {
        let mut spans = Vec::new();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes).take(LINES) {
            spans.push((start, end - usize::from(end > start && bytes[end - 1] == b'\r')));
            start = end + 1;
        }
        // The last line counts if it is whole, or if there is no other: one line may be larger than the sample.
        if (whole || spans.is_empty()) && start < bytes.len() {
            spans.push((start, bytes.len()));
        }
        let mut sample = Self { bytes: bytes.to_vec(), spans, prefix: Prefix::None, whole };
        let first: Vec<&[u8]> = sample.raw_lines().take(100).collect();
        sample.prefix = Prefix::of(&first);
        sample
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn prefix(&self) -> Prefix {
        self.prefix
    }

    /// The lines without what syslog and the like put before them.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.raw_lines().map(|line| self.prefix.strip(line))
    }

    /// The first line that is not blank.
    pub(crate) fn first_line(&self) -> &[u8] {
        self.lines().find(|line| !line.trim_ascii().is_empty()).unwrap_or_default()
    }

    /// The share of non-blank lines for which `test` holds.
    pub(crate) fn share(&self, mut test: impl FnMut(&[u8]) -> bool) -> f64 {
        let (mut all, mut hits) = (0_u32, 0_u32);
        for line in self.lines().filter(|line| !line.trim_ascii().is_empty()) {
            all += 1;
            hits += u32::from(test(line));
        }
        if all == 0 { 0.0 } else { f64::from(hits) / f64::from(all) }
    }

    fn raw_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|&(start, end)| &self.bytes[start..end])
    }
}
