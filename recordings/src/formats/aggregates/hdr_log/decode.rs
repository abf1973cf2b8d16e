//! The compressed histograms of HdrHistogram, versions 0, 1 and 2.
//!
//! All are Base64 of a cookie, a length and a zlib stream; in it another cookie, the histogram's settings, and the
//! counts of its buckets: plain words in versions 0 and 1, zigzag LEB128 in version 2. A negative count stands for so
//! many empty buckets. Layout and bucket arithmetic: `AbstractHistogram.java` of HdrHistogram (CC0).

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const V2: u32 = 0x1c84_9303;
const V1: u32 = 0x1c84_9301;
const V0: u32 = 0x1c84_9308;
/// What a compressed histogram begins with, by version.
const COMPRESSED: [u32; 3] = [0x1c84_9309, 0x1c84_9302, 0x1c84_9304];
/// The bits of a cookie that hold the size of a word.
const WORD_BITS: u32 = 0xf0;
/// Bytes that a histogram may have when decompressed, and buckets.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
const MAX_INDEX: u64 = 1 << 24;

/// How often each value occurred, by the lowest and the highest value that a bucket stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(BTreeMap<(u64, u64), u64>);

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            let entry = self.0.entry(*bucket).or_default();
            *entry = entry.saturating_add(*count);
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The mean, each bucket standing for its middle.
    pub(super) fn mean(&self) -> Option<f64> {
        let total = self.total();
        let middle = |(lowest, highest): &(u64, u64)| f64::midpoint(*lowest as f64, *highest as f64);
        let sum: f64 = self.0.iter().map(|(bucket, count)| middle(bucket) * *count as f64).sum();
        (total > 0).then(|| sum / total as f64)
    }

    /// The value that so many are no larger than, as HdrHistogram's own tools tell it: they add up intervals in a
    /// histogram of three digits, by the lowest value of each bucket, and report the highest value of that one's.
    pub(super) fn quantile(&self, q: f64) -> Option<u64> {
        let rank = (q * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        let (lowest, highest) = self
            .0
            .iter()
            .find(|(_, count)| {
                seen = seen.saturating_add(**count);
                seen >= rank
            })
            .map(|(bucket, _)| *bucket)?;
        let three_digits = (1_u64 << lowest.checked_ilog2().unwrap_or(0).saturating_sub(10)) - 1;
        Some(highest.min(lowest.saturating_add(three_digits)))
    }

    pub(super) fn max(&self) -> Option<u64> {
        self.0.last_key_value().map(|((_, highest), _)| *highest)
    }
}

pub(super) fn decode(base64: &[u8]) -> Result<Counts, &'static str> {
    let bytes = STANDARD.decode(base64).map_err(|_| "the histogram is not Base64: the line is cut")?;
    let mut bytes = Bytes(&bytes);
    if !COMPRESSED.contains(&(bytes.word()? & !WORD_BITS)) {
        return Err("not a compressed histogram of a known version");
    }
    bytes.word()?;
    let mut plain = Vec::new();
    flate2::read::ZlibDecoder::new(bytes.0)
        .take(MAX_BYTES)
        .read_to_end(&mut plain)
        .map_err(|_| "the histogram's zlib stream is damaged")?;
    let mut bytes = Bytes(&plain);
    let cookie = bytes.word()?;
    let word_size = (cookie & WORD_BITS) >> 4;
    let version = cookie & !WORD_BITS;
    let (digits, lowest) = match version {
        V1 | V2 => {
            bytes.word()?; // Length of the counts: the stream ends with them.
            bytes.word()?; // Normalizing offset: only shifted histograms have one.
            let digits = bytes.word()?;
            let lowest = bytes.long()?;
            bytes.long()?; // Highest trackable value.
            bytes.long()?; // Ratio of integers to doubles.
            (digits, lowest)
        }
        V0 => {
            let digits = bytes.word()?;
            let lowest = bytes.long()?;
            bytes.long()?;
            bytes.long()?; // Total count.
            (digits, lowest)
        }
        _ => return Err("a histogram of an unknown version"),
    };
    let buckets = Buckets::new(digits, lowest).ok_or("impossible settings of a histogram")?;
    let mut counts = Counts::default();
    let mut index = 0_u64;
    while !bytes.0.is_empty() {
        let count = match (version, word_size) {
            (V2, _) => bytes.zigzag()?,
            (_, 2) => i64::from(bytes.short()?),
            (_, 4) => i64::from(bytes.word()?.cast_signed()),
            (_, 8) => bytes.long()?.cast_signed(),
            _ => return Err("a histogram with words of an unknown size"),
        };
        if count < 0 {
            index = index.saturating_add(count.unsigned_abs());
        } else {
            if count > 0 {
                let bucket = buckets.bounds(index).ok_or("a histogram with an impossible bucket")?;
                let entry = counts.0.entry(bucket).or_default();
                *entry = entry.saturating_add(count.unsigned_abs());
            }
            index += 1;
        }
        if index > MAX_INDEX {
            return Err("a histogram with an impossible number of buckets");
        }
    }
    Ok(counts)
}

/// Which values a bucket stands for.
struct Buckets {
    unit_magnitude: u32,
    half_magnitude: u32,
}

impl Buckets {
    fn new(digits: u32, lowest: u64) -> Option<Self> {
        let single_unit = 2 * 10_u64.checked_pow(digits).filter(|_| digits <= 5)?;
        let magnitude = single_unit.next_power_of_two().trailing_zeros();
        let unit_magnitude = lowest.checked_ilog2()?;
        Some(Self { unit_magnitude, half_magnitude: magnitude.max(1) - 1 })
    }

    /// The lowest and the highest value that are counted at this index.
    fn bounds(&self, index: u64) -> Option<(u64, u64)> {
        let half = 1_u64 << self.half_magnitude;
        let (bucket, sub) = match index >> self.half_magnitude {
            0 => (0, index),
            bucket => (bucket - 1, (index & (half - 1)) + half),
        };
        let shift = u32::try_from(bucket).ok()?.checked_add(self.unit_magnitude)?;
        let lowest = sub.checked_mul(1_u64.checked_shl(shift)?)?;
        Some((lowest, lowest.checked_add((1_u64 << shift) - 1)?))
    }
}

struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("a histogram that is cut")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn short(&mut self) -> Result<i16, &'static str> {
        self.take().map(i16::from_be_bytes)
    }

    fn word(&mut self) -> Result<u32, &'static str> {
        self.take().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Result<u64, &'static str> {
        self.take().map(u64::from_be_bytes)
    }

    /// Seven bits per byte, lowest first; a ninth byte holds eight. The lowest bit of the result is the sign.
    fn zigzag(&mut self) -> Result<i64, &'static str> {
        let mut value = 0_u64;
        for position in 0..9 {
            let byte = u64::from(self.take::<1>()?[0]);
            if position == 8 {
                value |= byte << 56;
                break;
            }
            value |= (byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}
