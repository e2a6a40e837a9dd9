//! Several commands in one append.

use crewlog_mq::{Cause, Executed, Position};

use super::runner::{Command, TOTAL_MAX, TooMuch, check_state, sums};
use super::{everything, logs};

#[tokio::test]
async fn commands_of_several_callers_are_one_append_and_each_has_its_own_result() {
    for (store, _place) in logs().await {
        let (mut runner, mut rival) = (sums(&store), sums(&store));
        runner.execute(Command::Add(vec![1]), &Cause::request()).await.unwrap();
        rival.execute(Command::Add(vec![2]), &Cause::request()).await.unwrap();
        let too_much = TOTAL_MAX - 6;
        let numbers = [vec![3, 4], vec![too_much], Vec::new(), vec![5]];
        let requests = numbers.map(|numbers| (Command::Add(numbers), Cause::request()));
        let led_to = runner.execute_all(requests.into()).await.unwrap();
        let led_to =
            led_to.into_iter().map(|result| result.map(|Executed { events, position }| (events.len(), position.0)));
        let led_to: Vec<_> = led_to.collect();
        // The refused one is decided on the state after the one before it.
        assert_eq!(led_to, [Ok((2, 4)), Err(TooMuch(TOTAL_MAX + 4)), Ok((0, 5)), Ok((1, 5))]);
        let history = everything(&store).await;
        assert_eq!(history.iter().map(|event| event.append_start.0).collect::<Vec<_>>(), [1, 2, 3, 3, 3]);
        let correlation = |n: usize| history[n].metadata().unwrap().correlation_id.unwrap();
        assert!(correlation(2) == correlation(3) && correlation(3) != correlation(4));
        // Nothing to append, whatever is refused.
        let requests = [vec![too_much], Vec::new()].map(|numbers| (Command::Add(numbers), Cause::request()));
        let led_to = runner.execute_all(requests.into()).await.unwrap();
        assert!(matches!(&led_to[..], [Err(TooMuch(_)), Ok(executed)] if executed.events.is_empty()), "{led_to:?}");
        assert_eq!(store.head().await.unwrap(), Position(5));
        check_state(&runner, &store).await;
    }
}
