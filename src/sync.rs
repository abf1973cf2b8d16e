//! What the gate synchronises with: the standard library, or loom where a model explores every interleaving.

#[cfg(not(goodput_loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize},
    },
    thread::yield_now,
};

#[cfg(goodput_loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize},
    },
    thread::yield_now,
};
#[cfg(goodput_loom)]
pub(crate) use std::sync::TryLockError;

#[cfg(goodput_loom)]
pub(crate) use self::checked::Plain;

use std::sync::PoisonError;

/// Waits for the lock. A thread that panicked while it held it left whole values behind.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, if nobody has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Keeps a value on cache lines of its own, two at a time because processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// A number that is never written while another thread reads or writes it; something else sees to that.
///
/// It compiles to plain moves. Under loom it is a cell that fails the model on any unordered access.
#[cfg(not(goodput_loom))]
#[derive(Debug)]
pub(crate) struct Plain(AtomicU64);

#[cfg(not(goodput_loom))]
impl Plain {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(goodput_loom)]
#[allow(unsafe_code)]
mod checked {
    use loom::cell::UnsafeCell;

    #[derive(Debug)]
    pub(crate) struct Plain(UnsafeCell<u64>);

    // SAFETY: only models see this type, and loom reports every access that is not ordered with the others.
    unsafe impl Sync for Plain {}

    impl Plain {
        pub(crate) fn new(value: u64) -> Self {
            Self(UnsafeCell::new(value))
        }

        pub(crate) fn get(&self) -> u64 {
            // SAFETY: loom fails the model before the read if another thread may write.
            self.0.with(|value| unsafe { *value })
        }

        pub(crate) fn set(&self, value: u64) {
            // SAFETY: loom fails the model before the write if another thread may read or write.
            self.0.with_mut(|place| unsafe { *place = value });
        }
    }
}
