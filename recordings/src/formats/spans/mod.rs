//! Spans of distributed tracing: [`otlp`] and [`jaeger`]. A span of kind *server* is a request; spans within it are
//! skipped.

mod jaeger;
mod otlp;

pub(crate) use jaeger::probe as probe_jaeger;
pub(crate) use otlp::probe as probe_otlp;
