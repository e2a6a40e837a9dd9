//! Letters: what somebody asks for, and what only stands around it.

use super::{check, plan};

#[test]
fn a_wish_that_a_request_spells_out_is_one_task() {
    check(
        "I want to compare two phones. Please look up the price of both phones.",
        &["1 Retrieval Please look up the price of both phones | note I want to compare two phones"],
    );
    check(
        "Finally, I would like to value the house. It is from 1950. Please compute the price of the house.",
        &[
            "1 Processing I would like to value the house | note It is from 1950 | note Please compute the price of the house",
        ],
    );
    check(
        "I'm planning a trip and I need a car. Could you find a garage? Also, book a room.",
        &[
            "1 Retrieval Could you find a garage | note I'm planning a trip and I need a car",
            "2 Processing book a room",
        ],
    );
    check(
        "I need to refactor the parser. Please write tests for the parser.",
        &["1 Refactor I need to refactor the parser", "2 UnitTest Please write tests for the parser"],
    );
}

#[test]
fn what_only_says_the_form_of_an_answer_is_a_remark() {
    check(
        "Please study the garden. Provide a sketch of the garden.",
        &["1 Analysis Please study the garden | note Provide a sketch of the garden"],
    );
    check(
        "Could you find a poem? Once you have it, let me know the title.",
        &["1 Retrieval Could you find a poem | note Once you have it, let me know the title"],
    );
}

#[test]
fn two_requests_in_a_sentence_are_two_tasks() {
    check(
        "Please find the weather in Rome and book the hotel near the station in Rome.",
        &["1 Retrieval Please find the weather in Rome", "2 Processing book the hotel near the station in Rome"],
    );
    check(
        "Could you first resize the picture, then sharpen it, and finally send it to Ann?",
        &[
            "1 Processing Could you first resize the picture",
            "2 Processing sharpen it | <- 1",
            "3 ToolCall send it to Ann | <- 2",
        ],
    );
    check(
        "Please read the log and report the result of that.",
        &["1 Retrieval Please read the log and report the result of that"],
    );
}

#[test]
fn words_before_a_comma_that_say_why_lead_to_the_step() {
    for (text, kind) in [
        ("In order to save time, cache the answers.", "Processing"),
        ("As part of the audit, review the access list.", "Analysis"),
        ("For each user, create a row.", "CodeImplementation"),
        ("To find the cause, please run the tests again.", "UnitTest"),
    ] {
        let tasks = plan(text).tasks;
        assert_eq!((tasks.len(), tasks[0].kind.as_str()), (1, kind), "of {text:?}");
    }
}

#[test]
fn lists_are_no_letters() {
    check(
        "- I need the list of users\n- Please sort the list of users and store the names of the users in a file",
        &[
            "1 Processing I need the list of users",
            "2 Processing Please sort the list of users and store the names of the users in a file",
        ],
    );
    check(
        "Build the image and push the image to the registry of the team.",
        &["1 ToolCall Build the image and push the image to the registry of the team"],
    );
}

#[test]
fn two_things_that_are_asked_for_at_once_are_two_tasks() {
    check(
        "Could you fetch a poem about the sea and a photo of the harbour for the cover?",
        &["1 Retrieval Could you fetch a poem about the sea", "2 Retrieval fetch a photo of the harbour for the cover"],
    );
    check(
        "Please find the opening hours of the museum and provide me with the phone number for group bookings in summer.",
        &[
            "1 Retrieval Please find the opening hours of the museum",
            "2 Processing provide me with the phone number for group bookings in summer",
        ],
    );
    // What belongs to the thing before it is no thing of its own.
    for text in [
        "Could you fetch a poem about the sea and its author?",
        "Could you give me the title and the year of the film?",
        "Could you find a list of hotels in Rome, including the price of a room and the name of the street?",
    ] {
        assert_eq!(plan(text).tasks.len(), 1, "of {text:?}");
    }
}

#[test]
fn what_nobody_can_do_for_somebody_is_no_task() {
    check(
        "I want to surprise my sister. Find a recipe for a cake. Also, order the candles.",
        &["1 Retrieval Find a recipe for a cake | note I want to surprise my sister", "2 Processing order the candles"],
    );
    check(
        "I would like to see the lake. It would be great if you could also recommend a boat.",
        &[
            "1 Processing I would like to see the lake",
            "2 Processing It would be great if you could also recommend a boat",
        ],
    );
}

#[test]
fn what_is_asked_for_in_other_words_is_a_task_and_what_goes_with_it_a_remark() {
    check(
        "Greetings! Please write an advert for the tent. Consider the rain. Include a photo of the tent. I will provide the \
         price. Once the advert is written, please publish the tent. Additionally, it would be nice to have a map.",
        &[
            "1 Processing Please write an advert for the tent | note Consider the rain | note Include a photo of the tent | \
             note I will provide the price",
            "2 ToolCall please publish the tent | <- 1",
            "3 Processing it would be nice to have a map",
        ],
    );
    check(
        "I would like to know more about the film 'Rain' and the novel 'Snow'. Please look up the weather of Rome and check \
         if the museum is open on Monday.",
        &[
            "1 Processing I would like to know more about the film 'Rain'",
            "2 Processing know the novel 'Snow'",
            "3 Retrieval Please look up the weather of Rome",
            "4 Analysis check if the museum is open on Monday",
        ],
    );
}
