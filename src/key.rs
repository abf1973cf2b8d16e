use std::num::NonZeroU64;

/// A user, tenant, partition or host, as a number that is cheap to carry and to compare.
///
/// The same name gives the same key on every machine and in every version: FNV-1a over its bytes, mixed by the 64-bit
/// finaliser of MurmurHash3. Different names collide with probability 2⁻⁶⁴; whoever can choose names at will and
/// gains from a collision should be given numbers instead.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(NonZeroU64);

impl Key {
    /// The key of a name.
    #[must_use]
    pub const fn of(name: &str) -> Self {
        Self::mixed(fnv_1a(name.as_bytes()))
    }

    /// The key of a number.
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        Self::mixed(number)
    }

    /// The key as a number, evenly spread over all numbers.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0.get()
    }

    const fn mixed(number: u64) -> Self {
        match NonZeroU64::new(mix(number)) {
            Some(key) => Self(key),
            None => Self(NonZeroU64::MIN),
        }
    }
}

const fn fnv_1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
}

const fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the FNV reference.
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn names_and_numbers_spread_over_the_whole_range() {
        let mut halves = [0_u32; 2];
        for number in 0..10_000 {
            halves[(Key::of_number(number).as_u64() >> 63) as usize] += 1;
            halves[(Key::of(&format!("user-{number}")).as_u64() >> 63) as usize] += 1;
        }
        // Six standard deviations of a fair coin thrown 20,000 times.
        assert!(halves[0].abs_diff(10_000) < 425, "{halves:?}");
    }
}
