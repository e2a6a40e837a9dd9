//! Models: what they are asked, how their answers are judged, what is recorded, and the server that plays one.

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
mod summaries;
