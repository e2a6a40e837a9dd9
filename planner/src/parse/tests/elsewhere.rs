//! Texts in other languages than English.

use super::check;

#[test]
fn then_orders_steps_after_a_comma_and_after_an_and() {
    check(
        "Lade die Kurse herunter, dann berechne die Mittelwerte und schreibe anschlie\u{df}end einen Bericht. Danach sende ihn.",
        &[
            "1 Retrieval Lade die Kurse herunter",
            "2 Processing berechne die Mittelwerte | <- 1",
            "3 Processing schreibe anschlie\u{df}end einen Bericht | <- 2",
            "4 ToolCall sende ihn | <- 3",
        ],
    );
    check(
        "Fixe le bug, ensuite nettoie les colonnes et puis envoie le rapport. Enfin, ferme le ticket.",
        &[
            "1 Processing Fixe le bug",
            "2 Processing nettoie les colonnes | <- 1",
            "3 ToolCall envoie le rapport | <- 2",
            "4 Processing ferme le ticket | <- 3",
        ],
    );
    check(
        "Descarga los datos, luego limpia las columnas y despu\u{e9}s escribe un informe.",
        &[
            "1 Retrieval Descarga los datos",
            "2 Processing limpia las columnas | <- 1",
            "3 Processing escribe un informe | <- 2",
        ],
    );
    check(
        "Controlla i log e poi riavvia il server.",
        &["1 Analysis Controlla i log", "2 ToolCall riavvia il server | <- 1"],
    );
}

#[test]
fn a_then_that_follows_a_condition_or_ends_a_sentence_parts_nothing() {
    for text in ["Wenn alles gut ist, dann melde dich bei Anna", "Tritt zur\u{fc}ck, dann", "Sei nett und dann"] {
        assert_eq!(super::plan(text).tasks.len(), 1, "{text}");
    }
}

#[test]
fn the_full_stop_of_a_date_or_of_an_abbreviation_ends_no_sentence() {
    check(
        "Am 3. Mai die Kunden informieren. Danach die 2. Fassung, z. B. als PDF, bzw. als Text schicken.",
        &[
            "1 Processing Am 3. Mai die Kunden informieren",
            "2 ToolCall die 2. Fassung, z. B. als PDF, bzw. als Text schicken | <- 1",
        ],
    );
    check("Vois le devis, p. ex. lundi.", &["1 Processing Vois le devis, p. ex. lundi"]);
}

#[test]
fn a_danda_ends_a_sentence_and_the_first_of_several_steps_is_no_condition() {
    check(
        "\u{915} \u{916}\u{964} \u{917} \u{918}\u{964}",
        &["1 Processing \u{915} \u{916}", "2 Processing \u{917} \u{918}"],
    );
    check(
        "Als Erstes die Mails lesen, danach antworten.",
        &["1 Retrieval die Mails lesen", "2 Processing antworten | <- 1"],
    );
}

#[test]
fn verbs_of_other_languages_say_the_kind_of_a_step() {
    check(
        "- Server einrichten\n- Unit-Tests schreiben\n- Die Anmeldung korrigieren in src/session.rs\n- Vergleiche die Angebote\n- Die Klasse umbenennen\n- Mach die T\u{fc}r zu",
        &[
            "1 CodeImplementation Server einrichten",
            "2 UnitTest Unit-Tests schreiben",
            "3 CodeImplementation Die Anmeldung korrigieren in src/session.rs | FileRef src/session.rs",
            "4 Analysis Vergleiche die Angebote",
            "5 Refactor Die Klasse umbenennen",
            "6 Processing Mach die T\u{fc}r zu",
        ],
    );
    check(
        "- \u{c9}crire les tests unitaires du panier\n- Corriger la faute\n- Cherche un h\u{f4}tel\n- Despliega el servicio",
        &[
            "1 UnitTest \u{c9}crire les tests unitaires du panier",
            "2 CodeImplementation Corriger la faute",
            "3 Retrieval Cherche un h\u{f4}tel",
            "4 ToolCall Despliega el servicio",
        ],
    );
    check(
        "Сначала скачай логи, затем проанализируй ошибки. После этого напиши тесты.",
        &["1 Retrieval скачай логи", "2 Analysis проанализируй ошибки | <- 1", "3 UnitTest напиши тесты | <- 2"],
    );
}
