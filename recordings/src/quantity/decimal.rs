//! A decimal number as written, so that `0.097` seconds are 97 000 000 ns and not 96 999 999.

/// A decimal number: `mantissa × 10^exponent`, with its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    mantissa: u64,
    exponent: i32,
    /// Digits written after the decimal mark, before any exponent.
    pub(crate) decimals: u32,
}

impl Decimal {
    /// Parses `[+-]digits[mark digits][e[+-]digits]`, and nothing else.
    pub(crate) fn parse(text: &[u8], mark: u8) -> Option<Self> {
        let (number, rest) = Self::parse_prefix(text, mark)?;
        rest.is_empty().then_some(number)
    }

    /// Parses the number that `text` begins with, and returns what follows it.
    pub(crate) fn parse_prefix(text: &[u8], mark: u8) -> Option<(Self, &[u8])> {
        let (negative, mut at) = match text.first()? {
            b'-' => (true, 1),
            b'+' => (false, 1),
            _ => (false, 0),
        };
        let mut number = Self { negative, mantissa: 0, exponent: 0, decimals: 0 };
        let whole = number.digits(&text[at..], false)?;
        at += whole;
        let mut fraction = 0;
        if text.get(at) == Some(&mark) {
            fraction = number.digits(&text[at + 1..], true)?;
            if fraction > 0 || whole > 0 {
                at += 1 + fraction;
            }
            number.decimals = u32::try_from(fraction).ok()?;
        }
        if whole + fraction == 0 {
            return None;
        }
        if let Some((exponent, length)) = exponent(&text[at..]) {
            number.exponent = number.exponent.checked_add(exponent)?;
            at += length;
        }
        Some((number, &text[at..]))
    }

    /// Takes in the digits that `text` begins with and says how many there were. Digits after the decimal mark
    /// that a `u64` cannot hold are dropped; digits before it that it cannot hold are an error.
    fn digits(&mut self, text: &[u8], fraction: bool) -> Option<usize> {
        let mut count = 0;
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            count += 1;
            match self.mantissa.checked_mul(10).and_then(|m| m.checked_add(u64::from(digit))) {
                Some(mantissa) if self.exponent >= -36 => {
                    self.mantissa = mantissa;
                    self.exponent -= i32::from(fraction);
                }
                _ if fraction => {}
                _ => return None,
            }
        }
        Some(count)
    }

    /// The number times `factor`, rounded to the nearest integer (half away from zero).
    pub(crate) fn times(self, factor: u64) -> Option<i64> {
        let (mut factor, mut exponent) = (factor, self.exponent);
        // Mostly this leaves nothing to divide by.
        while exponent < 0 && factor.is_multiple_of(10) {
            factor /= 10;
            exponent += 1;
        }
        let product = u128::from(self.mantissa) * u128::from(factor);
        let magnitude = if exponent >= 0 {
            let power = 10_u128.checked_pow(u32::try_from(exponent).ok()?)?;
            if product == 0 { 0 } else { product.checked_mul(power)? }
        } else {
            match 10_u128.checked_pow(exponent.unsigned_abs()) {
                Some(power) => (product / power) + u128::from(product % power >= power.div_ceil(2)),
                None => 0,
            }
        };
        let magnitude = i64::try_from(magnitude).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// The number as a float.
    pub(crate) fn to_f64(self) -> f64 {
        let magnitude = self.mantissa as f64 * 10_f64.powi(self.exponent);
        if self.negative { -magnitude } else { magnitude }
    }

    /// Whether the number was written without a fraction and without an exponent.
    pub(crate) fn is_integer(self) -> bool {
        self.exponent == 0 && self.decimals == 0
    }
}

/// An exponent `e-05` at the start of `text`, and its length in bytes.
fn exponent(text: &[u8]) -> Option<(i32, usize)> {
    if !matches!(text.first()?, b'e' | b'E') {
        return None;
    }
    let (negative, start) = match text.get(1)? {
        b'-' => (true, 2),
        b'+' => (false, 2),
        _ => (false, 1),
    };
    let digits = text[start..].iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 3 {
        return None;
    }
    let value = text[start..start + digits].iter().fold(0, |sum, b| sum * 10 + i32::from(b - b'0'));
    Some((if negative { -value } else { value }, start + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i64> {
        Decimal::parse(text.as_bytes(), b'.').and_then(|d| d.times(1_000_000_000))
    }

    #[test]
    fn seconds_become_nanoseconds_exactly() {
        assert_eq!(nanos("0.097"), Some(97_000_000));
        assert_eq!(nanos("1795993308.828"), Some(1_795_993_308_828_000_000));
        assert_eq!(nanos("2.1e-05"), Some(21_000));
        assert_eq!(nanos("-1"), Some(-1_000_000_000));
        assert_eq!(nanos("0.07949090003967285"), Some(79_490_900));
        assert_eq!(nanos(".5"), Some(500_000_000));
        assert_eq!(nanos("0.00000000000000000000000000000000000000000000000001"), Some(0));
    }

    #[test]
    fn a_decimal_comma_is_not_a_thousands_mark() {
        let comma = Decimal::parse(b"0,147", b',').and_then(|d| d.times(1000));
        assert_eq!(comma, Some(147));
        assert_eq!(Decimal::parse(b"0,147", b'.'), None);
        assert_eq!(Decimal::parse(b"1.234,5", b','), None);
    }

    #[test]
    fn what_is_no_number_or_overflows_is_refused() {
        for text in
            ["", "-", ".", "+", "1.2.3", "1e", "12a", "99999999999999999999999", "1e999", "0x10", "NaN"]
        {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
