use goodput::RefusalReason;

/// How many requests and attempts came to what.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Requests: first attempts.
    pub offered: u64,
    /// Attempts, retries included.
    pub attempts: u64,
    /// Attempts that came to the service.
    pub admitted: u64,
    /// Attempts answered well within the deadline, to a client that still waited.
    pub good: u64,
    /// Attempts answered well but too late.
    pub late: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts whose client stopped waiting. They may still be answered, and count as late then.
    pub timed_out: u64,
    /// Attempts that were refused, by a gate or by the client's throttle.
    pub refused: Refusals,
    /// Those of the refused that had waited at a gate before.
    pub dropped: u64,
    /// Attempts that found the service away, or were there when it went.
    pub met_outage: u64,
    /// Attempts that were at the service at the end, longer than the deadline.
    pub stuck: u64,
    /// Latencies of good and late answers together, from sending to answer, in nanoseconds.
    pub latency_ns: u64,
    /// Work that was done, in nanoseconds of work as the service did it.
    pub done_ns: u64,
    /// Work that was done for answers that came too late.
    pub wasted_ns: u64,
}

impl Counts {
    /// Adds the other's counts.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.attempts += other.attempts;
        self.admitted += other.admitted;
        self.good += other.good;
        self.late += other.late;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.refused.add(&other.refused);
        self.dropped += other.dropped;
        self.met_outage += other.met_outage;
        self.stuck += other.stuck;
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
        self.done_ns += other.done_ns;
        self.wasted_ns += other.wasted_ns;
    }
}

/// Refusals by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Refusals {
    /// [`RefusalReason::LimitReached`].
    pub limit_reached: u64,
    /// [`RefusalReason::QueueFull`].
    pub queue_full: u64,
    /// [`RefusalReason::WaitedTooLong`].
    pub waited_too_long: u64,
    /// [`RefusalReason::DeadlineExpired`].
    pub deadline_expired: u64,
    /// [`RefusalReason::DeadlineUnreachable`].
    pub deadline_unreachable: u64,
    /// [`RefusalReason::CriticalityShareUsed`].
    pub criticality_share_used: u64,
    /// [`RefusalReason::Displaced`].
    pub displaced: u64,
    /// [`RefusalReason::QueueStanding`].
    pub queue_standing: u64,
    /// [`RefusalReason::Throttled`].
    pub throttled: u64,
    /// Any other reason.
    pub other: u64,
}

impl Refusals {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.limit_reached
            + self.queue_full
            + self.waited_too_long
            + self.deadline_expired
            + self.deadline_unreachable
            + self.criticality_share_used
            + self.displaced
            + self.queue_standing
            + self.throttled
            + self.other
    }

    pub(crate) fn count(&mut self, reason: RefusalReason) {
        *match reason {
            RefusalReason::LimitReached => &mut self.limit_reached,
            RefusalReason::QueueFull => &mut self.queue_full,
            RefusalReason::WaitedTooLong => &mut self.waited_too_long,
            RefusalReason::DeadlineExpired => &mut self.deadline_expired,
            RefusalReason::DeadlineUnreachable => &mut self.deadline_unreachable,
            RefusalReason::CriticalityShareUsed => &mut self.criticality_share_used,
            RefusalReason::Displaced => &mut self.displaced,
            RefusalReason::QueueStanding => &mut self.queue_standing,
            RefusalReason::Throttled => &mut self.throttled,
            _ => &mut self.other,
        } += 1;
    }

    fn add(&mut self, other: &Self) {
        self.limit_reached += other.limit_reached;
        self.queue_full += other.queue_full;
        self.waited_too_long += other.waited_too_long;
        self.deadline_expired += other.deadline_expired;
        self.deadline_unreachable += other.deadline_unreachable;
        self.criticality_share_used += other.criticality_share_used;
        self.displaced += other.displaced;
        self.queue_standing += other.queue_standing;
        self.throttled += other.throttled;
        self.other += other.other;
    }
}
