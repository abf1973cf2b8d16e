//! Who is admitted, in what order, and after how long: the gate with its rules.

mod casebook;
mod observe_only;
mod overloads;
mod priorities;
mod reconfigure;
mod support;
mod waiting;
