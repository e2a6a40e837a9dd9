//! Models: their requests, the validation of answers, the recorded events, and the mock server.

mod analysis;
mod asking;
mod delegated;
mod faults;
mod fixtures;
mod judged;
mod kept;
mod planning;
mod protocols;
mod rig;
mod turns;
