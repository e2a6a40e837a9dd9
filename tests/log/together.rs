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
        let causes: Vec<_> = (0..4).map(|_| Cause::request()).collect();
        let too_much = TOTAL_MAX - 6;
        let numbers = [vec![3, 4], vec![too_much], Vec::new(), vec![5]];
        let commands = numbers.map(Command::Add).into_iter().zip(&causes).collect();
        let led_to = runner.execute_all(commands).await.unwrap();
        let led_to =
            led_to.into_iter().map(|result| result.map(|Executed { events, position }| (events.len(), position.0)));
        let led_to: Vec<_> = led_to.collect();
        // The refused one is decided on the state after the one before it.
        assert_eq!(led_to, [Ok((2, 4)), Err(TooMuch(TOTAL_MAX + 4)), Ok((0, 5)), Ok((1, 5))]);
        let history = everything(&store).await;
        assert_eq!(history.iter().map(|event| event.append_start.0).collect::<Vec<_>>(), [1, 2, 3, 3, 3]);
        let correlations = history[2..].iter().map(|event| event.metadata().unwrap().correlation_id);
        let [first, refused, idle, last] = &causes[..] else { unreachable!("there are four") };
        let expected = [first, first, last].map(|cause| cause.metadata().correlation_id);
        assert_eq!(correlations.collect::<Vec<_>>(), expected);
        // Nothing to append, whatever is refused.
        let commands = vec![(Command::Add(vec![too_much]), refused), (Command::Add(Vec::new()), idle)];
        let led_to = runner.execute_all(commands).await.unwrap();
        assert!(matches!(&led_to[..], [Err(TooMuch(_)), Ok(executed)] if executed.events.is_empty()), "{led_to:?}");
        assert_eq!(store.head().await.unwrap(), Position(5));
        check_state(&runner, &store).await;
    }
}
