//! What becomes of attempts when the service is away.

use goodput::Outcome;

use super::{World, flight::Place};
use crate::{RetryOn, scenario::OutageRequests};

impl World<'_> {
    /// An outage begins: whoever is there, or waits at the door of the service, goes the way of those who will come.
    pub(super) fn begin_outage(&mut self, index: u32) {
        let requests = self.scenario.service.outages[index as usize].requests;
        let mut gone = self.station.go_away(requests);
        if requests == OutageRequests::Kept {
            return;
        }
        // Answers on the way have left the service.
        gone.extend(self.flights.find(|flight| flight.place == Place::ServiceDoor));
        for slot in gone {
            let flight = &self.flights[slot];
            if flight.place == Place::ServiceDoor
                && let Some(gate) = self.service_gate
            {
                let now = self.instant();
                let ticket = self.flights[slot].ticket.take();
                if self.gates[gate].waits_in_gate() {
                    self.waits.leave(slot);
                } else if self.gates[gate].leave(ticket, now) {
                    self.in_line -= 1;
                } else {
                    // A queue that pushes back lets nobody out but at its head.
                    continue;
                }
            }
            self.meet_outage(slot, requests);
        }
    }

    /// An attempt finds the service away, or is there when it goes.
    pub(super) fn meet_outage(&mut self, slot: u32, requests: OutageRequests) {
        let flight = &mut self.flights[slot];
        self.recorder.met_outage(flight);
        let awaited = flight.awaited;
        if requests == OutageRequests::Lost && awaited {
            flight.place = Place::Lost;
            // The service forgets; the client waits on.
            if let Some(token) = flight.service_token.take() {
                token.release(Outcome::Failure);
            }
            return;
        }
        flight.place = Place::Client;
        self.release(slot, Outcome::Failure);
        if awaited {
            self.learn(slot, false);
            self.end_attempt(slot, Some(RetryOn::Refusal));
        } else {
            self.flights.remove(slot);
        }
    }
}
