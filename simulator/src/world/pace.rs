//! Producers at the ticks of their clocks.

use super::{World, agenda::Event, flight::Place};

impl World<'_> {
    /// A tick of a producer's clock.
    pub(super) fn tick(&mut self, index: u32) {
        let gate = self.clients[index as usize].gate.or(self.service_gate);
        let Some(pace) = self.clients[index as usize].pace() else { return };
        let (pauses, tick) = (pace.pauses, pace.tick());
        self.agenda.add(pace.next(self.now), Event::Arrival(index));
        if pauses && !self.is_ready(gate) {
            self.recorder.paused(index, tick);
            return;
        }
        if let Some(pace) = self.clients[index as usize].pace() {
            pace.owe();
        }
        while self.owes(index) {
            let client = &mut self.clients[index as usize];
            let kept = client.pace().and_then(|pace| pace.kept.take());
            let (work, class) = kept.unwrap_or_else(|| {
                let due = client.send();
                (due.work, due.class)
            });
            if !pauses {
                self.produce(index, work, class);
            } else if !self.offer(index, gate, work, class) {
                return;
            }
        }
    }

    fn owes(&mut self, index: u32) -> bool {
        self.clients[index as usize].pace().is_some_and(super::client::Pace::pay)
    }

    /// A request of a producer that cannot wait.
    fn produce(&mut self, index: u32, work: u64, class: u16) {
        let call = self.clients[index as usize].start_call(self.now);
        let slot = self.new_flight(index, work, class, call, false);
        self.flights[slot].part = self.recorder.offered(self.now, index, class);
        self.send(slot);
    }

    /// A request of one that can, which keeps it if the door does not take it. Whether it did.
    fn offer(&mut self, index: u32, gate: Option<usize>, work: u64, class: u16) -> bool {
        let call = self.clients[index as usize].start_call(self.now);
        let slot = self.new_flight(index, work, class, call, false);
        let now = self.instant();
        let queue = gate.and_then(|gate| self.gates[gate].push_back());
        if queue.is_none_or(|queue| queue.offer(slot, now).is_err()) {
            self.flights.remove(slot);
            if let Some(pace) = self.clients[index as usize].pace() {
                pace.keep(work, class);
            }
            return false;
        }
        let part = self.recorder.offered(self.now, index, class);
        let at_client = self.clients[index as usize].gate.is_some();
        let flight = &mut self.flights[slot];
        flight.part = part;
        flight.place = if at_client { Place::ClientDoor } else { Place::ServiceDoor };
        self.recorder.attempted(self.now, flight);
        if let Some(timeout) = self.clients[index as usize].timeout {
            let event = Event::Timeout { slot, stamp: self.flights[slot].stamp };
            self.agenda.add(self.timer.after(self.now, timeout), event);
        }
        self.in_line += 1;
        true
    }

    fn is_ready(&mut self, gate: Option<usize>) -> bool {
        gate.and_then(|gate| self.gates[gate].push_back()).is_none_or(|queue| queue.is_ready())
    }
}
