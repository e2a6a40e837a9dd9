//! Server-sent events as they are appended. Ids are positions, so a reconnecting client misses and repeats none.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use crewlog_mq::Start;
use futures::StreamExt;

use super::access::{Caller, Scope};
use super::problem::Problem;
use super::views::{Api, Params, Streamed, event_json, position};
use crate::views::queries::beyond;

/// The interval of keep-alive messages on a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events after a position, then each as it is appended. The id of each is its position; a reconnecting client sends
/// the last one in `Last-Event-ID`. Once its token is revoked, a stream ends before the next event.
#[utoipa::path(
    get, path = "/api/events/stream", params(Streamed),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub async fn stream(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Params(of): Params<Streamed>,
) -> Result<Response, Problem> {
    caller.check(Scope::Read)?;
    let last = headers.get("last-event-id").map(|value| value.to_str().ok().and_then(|text| text.trim().parse().ok()));
    let last = match last {
        Some(None) => return Err(Problem::invalid("Last-Event-ID is not a position")),
        given => given.flatten(),
    };
    let head = api.crew.store().head().await?;
    let after = last.or(of.after).map_or(Ok(head), position)?;
    if after > head {
        return Err(beyond(after, head).into());
    }
    let place = api.streams.clone().try_acquire_owned();
    let place = place.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open"))?;
    let (query, _) = of.query(&api).await?;
    let records = api.crew.store().follow(&query, Start::After(after));
    // Only changed tokens are read again: a stream may have many events.
    let (credentials, mut seen) = (api.credentials.clone(), None);
    let events = records.take_while(move |item| {
        let before = std::mem::replace(&mut seen, credentials.stamp());
        let is_same = seen.is_some() && seen == before;
        let may_read = is_same || credentials.caller(&headers).is_ok_and(|now| now.as_ref() == Some(&caller));
        std::future::ready(may_read && !matches!(item, Err(error) if error.is_final()))
    });
    let events = events.filter_map(move |item| {
        // A place is taken as long as the stream lasts.
        let _ = &place;
        // After any other error the stream continues.
        std::future::ready(item.ok().and_then(|recorded| {
            let data = event_json(&recorded).ok()?.to_string();
            Some(Ok::<_, Infallible>(Event::default().id(recorded.position.to_string()).data(data)))
        }))
    });
    // The stream pauses for a client that does not read, so it needs no memory for it.
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}
