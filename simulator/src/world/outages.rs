//! What becomes of attempts when the service is away.

use goodput::Outcome;

use super::{World, flight::Place};
use crate::{RetryOn, scenario::OutageRequests};

impl World<'_> {
    /// An outage begins: whoever is there, or waits at the door of the service, goes the way of those who will come.
    pub(super) fn begin_outage(&mut self, index: u32) {
        let requests = self.scenario.service.outages[index as usize].requests;
        let mut gone = self.station.go_away(requests, self.now);
        if requests == OutageRequests::Kept {
            self.service_gate.into_iter().for_each(|gate| self.gates[gate].pause());
            return;
        }
        // Answers on the way have left the service.
        gone.extend(self.flights.find(|flight| flight.place == Place::ServiceDoor));
        for slot in gone {
            let flight = &self.flights[slot];
            if flight.place == Place::ServiceDoor
                && let Some(gate) = self.service_gate
            {
                if !self.gates[gate].lets_wait() {
                    // A queue that pushes back lets nobody out but at its head.
                    continue;
                }
                self.waits.leave(slot);
            }
            self.meet_outage(slot, requests);
        }
    }

    /// An outage ends.
    pub(super) fn end_outage(&mut self) {
        self.station.come_back().into_iter().for_each(|slot| self.enter_station(slot));
        self.service_gate.into_iter().for_each(|gate| self.gates[gate].resume());
    }

    /// An attempt finds the service away, or is there when it goes.
    pub(super) fn meet_outage(&mut self, slot: u32, requests: OutageRequests) {
        let flight = &self.flights[slot];
        self.recorder.met_outage(flight);
        let awaited = flight.awaited;
        if requests == OutageRequests::Lost && awaited {
            self.lose(slot);
            return;
        }
        self.flights[slot].place = Place::Client;
        self.release(slot, Outcome::Failure);
        if awaited {
            self.learn(slot, false);
            self.end_attempt(slot, Some(RetryOn::Refusal));
        } else {
            self.flights.remove(slot);
        }
    }
}
