//! A veil over a log: what is appended is changed before it is judged, and what is read is changed back. The log below knows
//! nothing of it. Nothing here knows what a veil hides, or how.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::append::Append;
use crate::backend::Backend;
use crate::error::Result;
use crate::layer::Layer;
use crate::query::Query;
use crate::recorded::Recorded;

/// Hides part of the events from readers of the database, for example by encryption.
///
/// It may change only `data`, the `extra` part of `metadata`, and tags; queries match the stored form.
/// An import and a check see the stored form too.
pub trait Veil: Send + Sync + 'static {
    /// The append as it is to stand in the log `below`. Equal events must be sealed to equal bytes, or a repeated append
    /// would not be known as one.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] when it cannot be sealed; nothing is then appended.
    fn seal<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>>;

    /// Makes of events as they stand in the log what they say. What cannot be opened for good says so in its place.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] when they cannot be opened as long as something is not mended.
    fn open(&self, events: &mut [Recorded]) -> Result<()>;

    /// Whether the state of a fold over these events may be kept beside the log, where it would lie open.
    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool>>;
}

impl Layer for Arc<dyn Veil> {
    fn stored<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>> {
        async move {
            let sealed = self.seal(below, append).await?;
            // What is sealed is longer.
            sealed.check()?;
            Ok(sealed)
        }
        .boxed()
    }

    fn restore<'a>(&'a self, _below: &'a dyn Backend, events: &'a mut [Recorded]) -> BoxFuture<'a, Result<()>> {
        std::future::ready(self.open(events)).boxed()
    }

    fn changes(&self, _event: &Recorded) -> bool {
        true
    }

    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool>> {
        (**self).keeps_snapshots(below, query)
    }
}
