//! Files that hold no requests, but what many of them came to: load steps, intervals, histograms. Enough for a curve
//! of throughput and latency over load when there are several steps, never for a replay.

mod hdr_log;
mod histogram;
mod json_results;
mod locust;
mod prometheus;
mod text_results;
mod tsung;

pub(crate) use hdr_log::probe as probe_hdr_log;
pub(crate) use json_results::probe as probe_json;
pub(crate) use locust::{probe_table as probe_locust_table, probe_workers as probe_locust_workers};
pub(crate) use prometheus::probe as probe_prometheus;
pub(crate) use text_results::{probe_hey, probe_httperf, probe_wrk};
pub(crate) use tsung::probe as probe_tsung;
