//! A small number for each living thread, so that each may have a stripe of its own.

#[cfg(not(goodput_loom))]
pub(super) use self::real::{own_of, thread_index};

#[cfg(goodput_loom)]
pub(super) use self::modelled::{own_of, thread_index};

#[cfg(not(goodput_loom))]
mod real {
    use std::{
        cell::Cell,
        cmp::Reverse,
        collections::BinaryHeap,
        sync::{Mutex, PoisonError},
    };

    /// What a thread without a number has: it is ending.
    const NONE: usize = usize::MAX;
    const UNASKED: usize = NONE - 1;

    thread_local! {
        static INDEX: Cell<usize> = const { Cell::new(UNASKED) };
        static LEASE: Lease = Lease::take();
    }

    static FREE: Mutex<Free> = Mutex::new(Free { returned: BinaryHeap::new(), next: 0 });

    /// The number of the calling thread, different from that of every other living thread; [`NONE`] once its thread
    /// locals are being destroyed.
    #[inline]
    pub(in crate::gate) fn thread_index() -> usize {
        let index = INDEX.get();
        if index == UNASKED { ask() } else { index }
    }

    /// Which of these, of which each is some thread's, is the calling thread's.
    #[inline]
    pub(in crate::gate) fn own_of<T>(each: &[T]) -> Option<&T> {
        // Before a thread has asked for its number, that is greater than any.
        each.get(INDEX.get()).or_else(|| ask_for_own_of(each))
    }

    #[cold]
    fn ask_for_own_of<T>(each: &[T]) -> Option<&T> {
        each.get(thread_index())
    }

    #[cold]
    fn ask() -> usize {
        let index = LEASE.try_with(|lease| lease.index).unwrap_or(NONE);
        INDEX.set(index);
        index
    }

    struct Free {
        returned: BinaryHeap<Reverse<usize>>,
        next: usize,
    }

    /// Gives the number to another thread when this one ends. The lock orders what the two do.
    struct Lease {
        index: usize,
    }

    impl Lease {
        fn take() -> Self {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            let index = free.returned.pop().map_or(free.next, |Reverse(index)| index);
            free.next = free.next.max(index + 1);
            Self { index }
        }
    }

    impl Drop for Lease {
        fn drop(&mut self) {
            INDEX.set(NONE);
            FREE.lock().unwrap_or_else(PoisonError::into_inner).returned.push(Reverse(self.index));
        }
    }

    #[cfg(test)]
    mod tests {
        use std::thread;

        use super::thread_index;

        #[test]
        fn living_threads_have_different_numbers() {
            let here = thread_index();
            let there = thread::scope(|scope| scope.spawn(thread_index).join().unwrap());
            assert_ne!(here, there);
            assert_eq!(here, thread_index());
        }
    }
}

#[cfg(goodput_loom)]
mod modelled {
    use std::cell::Cell;

    use loom::sync::atomic::{AtomicUsize, Ordering};

    loom::lazy_static! {
        static ref NEXT: AtomicUsize = AtomicUsize::new(0);
    }

    loom::thread_local! {
        static INDEX: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::AcqRel));
    }

    pub(in crate::gate) fn thread_index() -> usize {
        INDEX.with(Cell::get)
    }

    pub(in crate::gate) fn own_of<T>(each: &[T]) -> Option<&T> {
        each.get(thread_index())
    }
}
