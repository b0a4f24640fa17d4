//! Vectors of the real `rand_chacha` and `rand` crates for tests/unit/test_rand_chacha.c [D20].
//!
//! One line per seed, all numbers in hexadecimal:
//!   stream SEED SHA256-OF-THE-FIRST-1000-WORDS WORD0 .. WORD7 WORD999       words as next_u32 gives them, little endian
//!   uniform SEED SHA256-OF-THE-FIRST-1000-DRAWS BITS0 .. BITS7 BITS999      f32 in [0, 1) as `random::<f32>()` gives them
//!   seek SEED POSITION WORD0 .. WORD3                                       after set_word_pos(POSITION)
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

const WORDS: usize = 1000;

fn line(kind: &str, seed: u64, values: &[u32]) {
    let mut hash = Sha256::new();
    for v in values {
        hash.update(v.to_le_bytes());
    }
    print!("{kind} {seed:x} ");
    for byte in hash.finalize() {
        print!("{byte:02x}");
    }
    for v in values[..8].iter().chain(&values[WORDS - 1..]) {
        print!(" {v:08x}");
    }
    println!();
}

fn main() {
    let mut seeds: Vec<u64> = vec![0, 1, 2, 42, 99, 1 << 31, u32::MAX as u64, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];
    let mut more = ChaCha8Rng::seed_from_u64(20);
    seeds.extend((0..21).map(|_| more.next_u64()));
    for &seed in &seeds {
        let mut words = ChaCha8Rng::seed_from_u64(seed);
        let values: Vec<u32> = (0..WORDS).map(|_| words.next_u32()).collect();
        line("stream", seed, &values);
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let values: Vec<u32> = (0..WORDS).map(|_| draws.random::<f32>().to_bits()).collect();
        line("uniform", seed, &values);
        for position in [1u128, 15, 16, 17, 63, 64, 65, 1000, (1 << 32) - 1, 1 << 32, (1 << 36) - 2, 1 << 36, (1 << 63) + 5] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_word_pos(position);
            print!("seek {seed:x} {position:x}");
            for _ in 0..4 {
                print!(" {:08x}", rng.next_u32());
            }
            println!();
        }
    }
}
