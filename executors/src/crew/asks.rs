//! Questions of agents to the person, and the answers.

use crewlog_mq::Executed;
use crewlog_planner::crew::asks::{Answer, Ask, AskCommand, AskEvent, Asks, Withdrawn};

use super::Refusal;
use super::state::{Caller, Crew};

impl Crew {
    /// An agent asks the person; returns the number of the question.
    ///
    /// # Errors
    /// A refusal by [`Asks`].
    pub async fn ask(&self, caller: &Caller, ask: Ask) -> Result<u64, Refusal> {
        self.present(caller).await?;
        let ask = Ask { agent: caller.agent.clone(), ..ask };
        let command = AskCommand::Ask { ask: ask.clone(), now: self.store.now() };
        // The log has the question with its secrets redacted, so it cannot be found by its text.
        let number = move |asks: &Asks, executed: Executed<AskEvent>| match executed.events.first() {
            Some(AskEvent::PersonAsked { number, .. }) => *number,
            _it_is_open_already => asks.number_of(&ask).unwrap_or_default(),
        };
        self.asks.execute(command, number).await
    }

    /// Withdraws questions of an agent.
    pub async fn withdraw_asks(&self, agent: &str, which: Withdrawn, reason: &str) -> Result<(), Refusal> {
        let (agent, reason, now) = (agent.to_owned(), reason.to_owned(), self.store.now());
        self.asks.execute(AskCommand::Withdraw { agent, which, reason, now }, |_, _| ()).await
    }

    /// A person answers.
    ///
    /// # Errors
    /// A refusal by [`Asks`].
    pub async fn answer(&self, number: u64, answer: Answer) -> Result<(), Refusal> {
        let command = AskCommand::Answer { number, answer, now: self.store.now() };
        self.asks.execute(command, |_, _| ()).await
    }
}
