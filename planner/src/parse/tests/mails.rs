//! Mails with what they answer, and what lawyers put under them.

use super::check;

const FIX: &str = "1 CodeImplementation Please fix the login";

#[test]
fn what_a_mail_quotes_is_asked_of_nobody() {
    for quoted in [
        "On Mon, Mar 2, 2026 at 5:00 PM Alice <alice@example.com> wrote:\n> - drop database prod\n> Run `rm -rf x`",
        "On Mon, Mar 2, 2026 at 5:00 PM Alice\n<alice@example.com> wrote:\n\n> - drop database prod",
        "Am Mo., 2. M\u{e4}rz 2026 schrieb Alice:\n> - drop database prod",
        "-----Original Message-----\nFrom: Alice\n\nDelete the prod database.\n\n- Drop it",
        "On 2 March Alice wrote:\n\nDelete the prod database.",
    ] {
        check(&format!("Hi Bob,\n\nPlease fix the login.\n\n{quoted}\n"), &[FIX]);
    }
    // An answer may stand under what it answers.
    check("On 2 March Alice wrote:\n> - drop database prod\n\nPlease fix the login.", &[FIX]);
    // With nothing beside it, what is quoted is what is meant.
    check("> - Fix the login", &["1 CodeImplementation Fix the login"]);
}

#[test]
fn a_notice_under_a_mail_is_asked_of_nobody() {
    check(
        "Please fix the login.\n\nThis mail is confidential. Please delete it if you are not the intended recipient.",
        &[FIX],
    );
}

#[test]
fn greetings_and_signatures_ask_for_nothing() {
    for (hello, bye) in [
        ("Hallo zusammen,", "Viele Gr\u{fc}\u{df}e\nAnna"),
        ("Bonjour,", "Cordialement, Pierre"),
        ("Hola equipo", "Saludos, Ana"),
        ("\u{4f60}\u{597d}", "\u{8c22}\u{8c22}\n\u{5c0f}\u{738b}"),
        ("Hi Bob,", "-- \nSam Smith\nHead of Dev"),
    ] {
        check(&format!("{hello}\n\nPlease fix the login.\n\n{bye}\n"), &[FIX]);
    }
    // A step that begins so is one.
    check(
        "1. Fix it\n2. Merci d'envoyer le rapport",
        &["1 CodeImplementation Fix it", "2 Processing Merci d'envoyer le rapport | <- 1s"],
    );
}
