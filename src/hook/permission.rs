//! A permission that a program asks for is in the inbox while its own dialog is open: the first answer counts.

use std::pin::pin;
use std::time::Duration;

use crewlog_executors::crew::{Crew, Refusal};
use crewlog_mq::{Query, Start};
use crewlog_planner::crew::asks::{self, Ask, Wanted, Withdrawn};
use futures::StreamExt;
use tokio::time::{Instant, timeout, timeout_at};

use super::dialect::{Call, ToolCall, Verdict};
use super::identity::{Hook, Origin};
use super::in_time::RECORD_WAIT;

/// Asks the person, and waits for the answer.
///
/// # Errors
/// A fault of the log, or too many open questions of the agent.
pub async fn answer(crew: &Crew, origin: &Origin, call: &Call, wait: Duration) -> Result<Verdict, Refusal> {
    let (open, deadline) = (Verdict::Allow(String::new()), Instant::now() + wait);
    let hook = Hook::new(crew, origin, call);
    let _ = timeout(RECORD_WAIT, hook.observe(false)).await;
    let Some(ToolCall { text, digest, .. }) = call.tool.clone().filter(|_| !wait.is_zero()) else { return Ok(open) };
    let text = format!("{text}\n(in {})", call.cwd.display());
    // Only a call that is shown whole can be allowed.
    if text.len() > asks::TEXT_BYTES_MAX {
        return Ok(open);
    }
    let caller = hook.joined().await?;
    let store = crew.store();
    let news = store.follow(&Query::aggregate(asks::STREAM, crew.project()), Start::After(store.head().await?));
    let (agent, wanted, call) = (caller.agent.clone(), Wanted::Permission, Some(digest.clone()));
    let number = crew.ask(&caller, Ask { agent, wanted, text, choices: Vec::new(), task: None, call }).await?;
    let mut news = pin!(news);
    loop {
        let asks = crew.asks().await?;
        if let Some((_, answer)) = asks.answer(number) {
            let granted = answer.is_granted == Some(true);
            return Ok(if granted {
                Verdict::Grant
            } else {
                Verdict::Refuse(format!("{}: {}", answer.by, answer.text))
            });
        }
        if !asks.open().any(|(open, _)| open == number) {
            return Ok(open);
        }
        drop(asks);
        if !matches!(timeout_at(deadline, news.next()).await, Ok(Some(_))) {
            let reason = "nobody has answered in time; the dialog of its program is still open";
            crew.withdraw_asks(&caller.agent, Withdrawn::Call(digest), reason).await?;
            return Ok(open);
        }
    }
}
