//! Texts in other languages than English.

use super::check;

#[test]
fn then_orders_steps_after_a_comma_and_after_an_and() {
    check(
        "Lade die Kurse herunter, dann berechne die Mittelwerte und schreibe anschlie\u{df}end einen Bericht. Danach sende ihn.",
        &[
            "1 Processing Lade die Kurse herunter",
            "2 Processing berechne die Mittelwerte | <- 1",
            "3 Processing schreibe anschlie\u{df}end einen Bericht | <- 2",
            "4 Processing sende ihn | <- 3",
        ],
    );
    check(
        "Fixe le bug, ensuite nettoie les colonnes et puis envoie le rapport. Enfin, ferme le ticket.",
        &[
            "1 Processing Fixe le bug",
            "2 Processing nettoie les colonnes | <- 1",
            "3 Processing envoie le rapport | <- 2",
            "4 Processing ferme le ticket | <- 3",
        ],
    );
    check(
        "Descarga los datos, luego limpia las columnas y despu\u{e9}s escribe un informe.",
        &[
            "1 Processing Descarga los datos",
            "2 Processing limpia las columnas | <- 1",
            "3 Processing escribe un informe | <- 2",
        ],
    );
    check(
        "Controlla i log e poi riavvia il server.",
        &["1 Processing Controlla i log", "2 Processing riavvia il server | <- 1"],
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
            "2 Processing die 2. Fassung, z. B. als PDF, bzw. als Text schicken | <- 1",
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
        &["1 Processing die Mails lesen", "2 Processing antworten | <- 1"],
    );
}
