//! A veil over a log: it transforms appended events before they are judged, and transforms them back for readers. The
//! log below does not know of it.

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
    /// The append in the form to be stored in the log `below`. Equal events must be sealed to equal bytes, so that a
    /// repeated append is recognised.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] if it cannot be sealed; nothing is then appended.
    fn seal<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>>;

    /// Opens stored events. Content that can never be opened is replaced by a text that says so.
    ///
    /// # Errors
    /// [`crate::Error::Veil`] if they cannot be opened now, but could be once a problem is fixed.
    fn open(&self, events: &mut [Recorded]) -> Result<()>;

    /// True if the state of a fold over these events may be stored next to the log, in plain form.
    fn keeps_snapshots<'a>(&'a self, below: &'a dyn Backend, query: &'a Query) -> BoxFuture<'a, Result<bool>>;
}

impl Layer for Arc<dyn Veil> {
    fn stored<'a>(&'a self, below: &'a dyn Backend, append: Append) -> BoxFuture<'a, Result<Append>> {
        async move {
            let sealed = self.seal(below, append).await?;
            // The sealed form is longer.
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
