use std::{collections::BTreeSet, fmt};

use metrics::SharedString;

use super::{
    Interval,
    publish::{Rest, publish, publish_observe_only, publish_state},
};
use crate::{Clock, Gate, Snapshot, SystemClock};

/// No more numbers of a limiter's inner state than this are published, in the order of their names.
const MOST_VARIABLES: usize = 64;

/// Publishes what a gate does through the `metrics` facade, under the gate's name.
///
/// It has neither a clock nor a thread: each [`publish`](Reporter::publish) tells of the time since the last, the first
/// one since the gate was built. Call it every few seconds, by a task, a thread, or as the page is scraped. It takes the
/// gate's locks for as long as a snapshot does, and costs the request path nothing.
///
/// What it can publish is bounded: 22 series a gate, up to 60 each for who was, and would have been, refused by reason
/// and criticality, 11 for why the limit moved, and 64 for the limiter's inner state. For gates by host, route or tenant
/// there is [`FamilyReporter`](super::FamilyReporter).
///
/// ```
/// use goodput::{Gate, observe::Reporter};
/// use goodput::algorithms::{Aimd, AimdSettings};
///
/// let gate = Gate::builder(Box::new(Aimd::new(AimdSettings::default()).unwrap())).name("api").build();
/// let mut reporter = Reporter::new(gate);
/// reporter.publish();
/// ```
pub struct Reporter<C: Clock = SystemClock> {
    gate: Gate<C>,
    published: Option<Snapshot>,
    variables: BTreeSet<String>,
    rest: Rest,
}

impl<C: Clock> Reporter<C> {
    /// Nothing is published yet.
    #[must_use]
    pub const fn new(gate: Gate<C>) -> Self {
        Self { gate, published: None, variables: BTreeSet::new(), rest: Rest::NONE }
    }

    /// Publishes what happened since the last time. Tells it as well.
    pub fn publish(&mut self) -> Interval {
        let snapshot = self.gate.snapshot();
        let interval = match &self.published {
            Some(earlier) => Interval::between(earlier, &snapshot),
            None => Interval::since_start(&snapshot),
        };
        let name = SharedString::from(snapshot.name.clone());
        publish(&name, &interval, &mut self.rest);
        publish_observe_only(&name, snapshot.observe_only);
        self.publish_variables(&name, &snapshot);
        self.published = Some(snapshot);
        interval
    }

    /// Those that another limiter does not have any more are not left standing.
    fn publish_variables(&mut self, name: &SharedString, snapshot: &Snapshot) {
        let mut gone = std::mem::take(&mut self.variables);
        for (variable, value) in snapshot.state.iter().take(MOST_VARIABLES) {
            gone.remove(variable);
            self.variables.insert(variable.to_owned());
            publish_state(name, variable.to_owned(), value);
        }
        for variable in gone {
            publish_state(name, variable, f64::NAN);
        }
    }
}

#[cfg(feature = "tokio")]
impl<C: Clock> Reporter<C> {
    /// Publishes again and again until it is dropped, and lets the gate [look at the time](Gate::tick) before each.
    ///
    /// # Errors
    ///
    /// [`InvalidSettings`](goodput_algorithms::InvalidSettings) if `every` is zero.
    pub fn run(
        mut self,
        every: std::time::Duration,
    ) -> Result<impl Future<Output = std::convert::Infallible>, goodput_algorithms::InvalidSettings> {
        if every.is_zero() {
            return Err(goodput_algorithms::InvalidSettings::new("every", "must be above 0"));
        }
        Ok(async move {
            loop {
                tokio::time::sleep(every).await;
                self.gate.tick();
                self.publish();
            }
        })
    }
}

impl<C: Clock> fmt::Debug for Reporter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").field("gate", &self.gate).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use goodput_algorithms::Reason;

    use crate::{Criticality, RefusalReason, observe::METRICS};

    #[test]
    fn a_gate_has_as_many_series_as_its_page_says() {
        let labelled_by = |labels: &[&str]| METRICS.iter().filter(|metric| metric.labels == labels).count();
        // Requests end in four ways, and of one of them there is no latency.
        let by_outcome = 4 + 3;
        assert_eq!(labelled_by(&["gate", "outcome"]), 2);
        assert_eq!(labelled_by(&["gate"]) + by_outcome, 22);
        assert_eq!(labelled_by(&["gate", "reason", "criticality"]), 2);
        assert_eq!(RefusalReason::ALL.len() * Criticality::ALL.len(), 60);
        assert_eq!(labelled_by(&["gate", "reason"]), 1);
        assert_eq!(Reason::ALL.len(), 11);
    }
}
