//! Something to be measured, and how it is called over and over.

use std::{
    future::Future,
    hint::black_box,
    pin::pin,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// Something to be measured.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// What every thread does: it prepares itself, and repeats one operation in the slice.
    pub(crate) run: Box<dyn Fn(Slice<'_>) -> Count + Sync>,
}

/// What a contender is, and by which clock it measures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// What any limiter that measures must do at least.
    Floor(Clock),
    Ours(Clock),
    /// A peer with a limit that adapts.
    Adaptive,
    /// A peer with a limit that stays, which need not measure anything.
    Fixed,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Clock {
    /// `std::time::Instant`.
    System,
    /// `quanta`.
    Tsc,
}

impl Contender {
    pub(crate) fn new(
        name: impl Into<String>,
        kind: Kind,
        run: impl Fn(Slice<'_>) -> Count + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), kind, run: Box::new(run) }
    }

    /// Nanoseconds of one thread for one operation while so many threads are at it, on average over them.
    pub(crate) fn time(&self, threads: usize, length: Duration) -> f64 {
        let (barrier, stop) = (Barrier::new(threads + 1), AtomicBool::new(false));
        let slice = Slice { barrier: &barrier, stop: &stop, most: u64::MAX };
        let each: Vec<Count> = thread::scope(|scope| {
            let others: Vec<_> = (0..threads).map(|_| scope.spawn(|| (self.run)(slice))).collect();
            barrier.wait();
            thread::sleep(length);
            stop.store(true, Ordering::Relaxed);
            others.into_iter().map(|other| other.join().expect("contenders do not panic")).collect()
        });
        each.iter().map(|count| count.elapsed.as_nanos() as f64 / count.done as f64).sum::<f64>()
            / threads as f64
    }

    /// Allocations for each operation of one thread.
    pub(crate) fn allocations(&self) -> f64 {
        let (barrier, stop) = (Barrier::new(1), AtomicBool::new(false));
        let run = |most| (self.run)(Slice { barrier: &barrier, stop: &stop, most }).done;
        let mut done = [0; 2];
        // Twice, so that what a thread prepares falls out.
        let allocated = [BATCH, 101 * BATCH].map(|most| {
            let counted = allocation_counter::measure(|| done[usize::from(most > BATCH)] = run(most));
            counted.count_total
        });
        allocated[1].saturating_sub(allocated[0]) as f64 / (done[1] - done[0]) as f64
    }
}

/// Operations between two looks at whether the slice is over.
const BATCH: u64 = 64;

/// The time in which a contender repeats itself.
#[derive(Clone, Copy)]
pub(crate) struct Slice<'a> {
    barrier: &'a Barrier,
    stop: &'a AtomicBool,
    most: u64,
}

/// How often an operation was done in which time.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    done: u64,
    elapsed: Duration,
}

impl Slice<'_> {
    /// Repeats an operation until the slice is over. Starts when all threads are there.
    #[inline]
    pub(crate) fn repeat<T>(self, mut once: impl FnMut() -> T) -> Count {
        self.barrier.wait();
        let (start, mut done) = (Instant::now(), 0);
        while !self.is_over(done) {
            for _ in 0..BATCH {
                black_box(once());
            }
            done += BATCH;
        }
        Count { done, elapsed: start.elapsed() }
    }

    /// The same for an operation that may wait.
    #[inline]
    pub(crate) fn repeat_async<T>(self, mut once: impl AsyncFnMut() -> T) -> Count {
        self.barrier.wait();
        block_on(async {
            let (start, mut done) = (Instant::now(), 0);
            while !self.is_over(done) {
                for _ in 0..BATCH {
                    black_box(once().await);
                }
                done += BATCH;
            }
            Count { done, elapsed: start.elapsed() }
        })
    }

    #[inline]
    fn is_over(self, done: u64) -> bool {
        done >= self.most || self.stop.load(Ordering::Relaxed)
    }
}

/// Runs a future on this thread, which sleeps while the future waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}
