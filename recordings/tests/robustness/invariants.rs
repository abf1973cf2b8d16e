//! What holds of any reading of any bytes. The fuzz targets check the same.

use std::time::Duration;

use goodput_recordings::scenario::{
    Place, Played, Replay, Setup, overload, recorded, slowdown, usual_deadline,
};
use goodput_recordings::{Digest, Estimate, Inspection, Item, Options, ReadError, Recording, Workload};

/// Reads bytes, and what was counted is what was read; or they are refused with a reason.
pub(crate) fn read(bytes: &[u8], options: &Options) {
    let recording = match Recording::new(bytes, options) {
        Ok(recording) => recording,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let (mut records, mut steps) = (0, 0);
    let reading = recording.each(|item| match item {
        Item::Request(_) => records += 1,
        Item::Step(_) => steps += 1,
    });
    match reading {
        Ok(reading) => {
            assert_eq!((reading.records, reading.steps), (records, steps));
            assert!(records + steps > 0);
        }
        Err(ReadError::NoRecords { .. }) => assert_eq!(records + steps, 0),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads and understands bytes; all figures are numbers, and worlds can be made of them.
pub(crate) fn understand(bytes: &[u8], options: &Options) {
    let Ok(recording) = Recording::new(bytes, options) else { return };
    let mut digest = Digest::new();
    let Ok(reading) = recording.each(|item| digest.add(item)) else { return };
    let seen = Inspection::new(&digest, reading);
    if let Some(latency) = seen.latency_ms {
        let ordered = [latency.min, latency.p50, latency.p90, latency.p99, latency.max];
        assert!(ordered.is_sorted(), "{ordered:?}");
        assert!(latency.mean.is_finite());
    }
    if let Some(concurrency) = seen.concurrency {
        assert!(concurrency.mean_in_flight.is_finite() && concurrency.mean_in_flight >= 0.0);
    }
    workload(&seen.workload);
    let json = serde_json::to_value(&seen).expect("JSON can say all of it");
    let back: Workload = serde_json::from_value(json["workload"].clone()).expect("JSON keeps all of it");
    assert_eq!(back.capacity_per_s.is_some(), seen.workload.capacity_per_s.is_some());
    worlds(&digest, &seen);
}

fn workload(workload: &Workload) {
    for estimate in
        [workload.capacity_per_s, workload.knee, workload.no_load_latency_ms].into_iter().flatten()
    {
        let Estimate { value, low, high } = estimate;
        assert!(0.0 <= low && low <= value && value <= high && high.is_finite(), "{estimate:?}");
    }
    for point in &workload.curve {
        assert!(point.throughput_per_s.is_finite() && point.latency_ms.is_finite(), "{point:?}");
    }
}

fn worlds(digest: &Digest, seen: &Inspection) {
    let Some((played, deadline)) = Played::of(&seen.workload, 1.0).zip(usual_deadline(&seen.workload)) else {
        return;
    };
    assert!(deadline > Duration::ZERO && played.capacity_per_s > 0.0);
    let setup = Setup { deadline, place: Place::Server, most_requests: 1_000 };
    let replay = Replay::of(digest, &seen.reading, setup.most_requests);
    // A contradiction is an answer too: a recording may hold times that no world can.
    let _ = recorded(&played, &replay, &setup);
    let _ = overload(&played, &replay, &setup);
    let _ = slowdown(&played, &setup);
}
