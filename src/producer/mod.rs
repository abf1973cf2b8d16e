//! Push-back for producers that can wait.
//!
//! Whoever makes work faster than it is done has three choices: to let a queue grow without end, to drop what does not
//! fit, or to pause the producer. [`PushBackQueue`] is the third, as a state machine on time that is an argument.
//! [`channel`] makes it a channel: a [`Producer`] awaits [`ready`](Producer::ready) or [`send`](Producer::send), the
//! [`Consumer`] [`take`](Consumer::take). With the feature `sink`, `Producer::into_sink` is a bounded
//! `futures_sink::Sink`.
//!
//! ```
//! use goodput::{SystemClock, producer::{PushBackQueue, channel}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (producer, mut consumer) = channel(PushBackQueue::new(100).unwrap(), SystemClock::new());
//! let work = async move {
//!     for order in 0..1_000 {
//!         producer.send(order).await.unwrap();
//!     }
//! };
//! let done = async move {
//!     let mut done = 0;
//!     while let Some((_order, _waited)) = consumer.take().await {
//!         done += 1;
//!     }
//!     done
//! };
//! assert_eq!(tokio::join!(work, done).1, 1_000);
//! # }
//! ```

mod channel;
mod queue;
#[cfg(feature = "sink")]
mod sink;

#[cfg(feature = "sink")]
pub use self::sink::PushBackSink;
pub use self::{
    channel::{Consumer, NotTaken, Producer, Ready, channel},
    queue::PushBackQueue,
};
