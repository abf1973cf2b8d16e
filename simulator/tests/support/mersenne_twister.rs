//! The Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), seeded and drawn from as CPython does.

const N: usize = 624;
const M: usize = 397;

/// A generator.
pub struct MersenneTwister {
    state: [u32; N],
    next: usize,
}

impl MersenneTwister {
    /// Seeded with a whole number: its 32-bit words, least significant first, are the key of `init_by_array`.
    pub fn new(seed: u64) -> Self {
        let key = if seed >> 32 == 0 { vec![seed as u32] } else { vec![seed as u32, (seed >> 32) as u32] };
        let mut state = [0_u32; N];
        state[0] = 19_650_218;
        for i in 1..N {
            state[i] = mixed(state[i - 1], 1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        let mut step = |state: &mut [u32; N], factor: u32, change: &dyn Fn(u32, usize) -> u32| {
            state[i] = change(state[i] ^ mixed(state[i - 1], factor), i);
            i += 1;
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
        };
        for j in (0..key.len()).cycle().take(N.max(key.len())) {
            step(&mut state, 1_664_525, &|word, _| word.wrapping_add(key[j]).wrapping_add(j as u32));
        }
        for _ in 1..N {
            step(&mut state, 1_566_083_941, &|word, i| word.wrapping_sub(i as u32));
        }
        state[0] = 0x8000_0000;
        Self { state, next: N }
    }

    /// 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let (high, low) = (self.next_u32() >> 5, self.next_u32() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// Exponential with this rate.
    pub fn exponential(&mut self, rate: f64) -> f64 {
        -libm::log(1.0 - self.uniform()) / rate
    }

    fn twist(&mut self) {
        for i in 0..N {
            let word = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let odd = if word & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (word >> 1) ^ odd;
        }
        self.next = 0;
    }
}

fn mixed(word: u32, factor: u32) -> u32 {
    (word ^ (word >> 30)).wrapping_mul(factor)
}
