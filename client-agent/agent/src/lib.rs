//! The agent on a customer's machine. `player` and `film` decide and know no socket and no clock; `http`, `report`,
//! `record` and `session` are the shell around them; `run` wires everything.

pub mod cli;
pub mod clock;
pub mod film;
pub mod host;
pub mod http;
pub mod player;
pub mod record;
pub mod report;
pub mod run;
pub mod session;
pub mod summary;
mod terminal;

/// The wire's types, generated from `contract/proto`.
#[allow(clippy::all, clippy::pedantic, missing_docs)]
pub mod wire {
    include!(concat!(env!("OUT_DIR"), "/steerline.rs"));
}
