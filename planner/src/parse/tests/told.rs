//! What is only told, quoted or shown, and columns of a board: run by nobody.

use super::plan;
use crate::plan::Mark;

/// The commands of the open tasks of a text.
fn commands(text: &str) -> Vec<String> {
    let open = plan(text).tasks.into_iter().filter(|task| task.mark == Mark::Open);
    open.filter_map(|task| task.command).collect()
}

#[test]
fn what_is_only_told_or_stands_in_a_column_of_what_is_done_is_run_by_nobody() {
    for text in [
        "Bob runs this on his machine:\n```sh\nmake all\n```",
        "Bob will run this:\n\n```sh\nmake all\n```",
        "I did this yesterday:\n\n```sh\nmake all\n```",
        "1. Clean up:\n   - Warning: `make all` deletes data\n   - Old way: `make all`\n   - Example: `make all`",
        "1. Clean up, but not:\n   ```sh\n   make all\n   ```",
        "Assuming QA signs off:\n\n```sh\nmake all\n```",
        "Only with Bob's approval:\n\n```sh\nmake all\n```",
        "Example:\n\n```sh\nmake all\n```",
        "Old way:\n\n```sh\nmake all\n```",
        "Warning:\n\n```sh\nmake all\n```",
        "En cas d'échec :\n\n```sh\nmake all\n```",
        "Sollte der Test scheitern:\n\n```sh\nmake all\n```",
        "## Backlog\n- Fix it\n\n## Done\n- Run `make all`",
        "## Backlog\n- Fix it\n\n## Cancelled\n- Run `make all`",
        "# Board\n\n## To do\n- Fix it\n\n## In progress\n- Ship it\n\n## Done\n- Run `make all`\n\n## Cancelled\n- run `make all`",
        "## Backlog\n- Fix it\n\n## Erledigt\n- Run `make all`",
        "## Tasks\n- Fix it\n\n## What we tried\n- Run `make all`",
        "## Example\n- Run `make all`\n\n## Steps\n- Fix it",
        "## Previously\n- Run `make all`\n\n## Now\n- Fix it",
        "## Blocked\n- Run `make all`\n\n## Ready\n- Fix it",
        "## Done\n- [ ] Run `make all`\n\n## Ready\n- Fix it",
        "Done:\n- Run `make all`\n\nTo do:\n- Fix it",
        "**Done**\n- Run `make all`\n\n**Open**\n- Fix it",
        "1. Fix it\n2. Ship it\n\nCompleted:\n1. Run `make all`",
    ] {
        assert_eq!(commands(text), [""; 0], "{text}");
    }
}

#[test]
fn what_stands_beside_it_is_run() {
    for text in [
        "Run this:\n```sh\nmake all\n```",
        "Build:\n\n```sh\nmake all\n```",
        "1. Clean up:\n   ```sh\n   make all\n   ```",
        "The build command:\n\n```sh\nmake all\n```",
        "## Done\n- Fix it\n\n## To do\n- Run `make all`",
        "## Build\n- Run `make all`",
        "# Example\n\n## Steps\n- Run `make all`",
        "In case of failure:\n\n```sh\nmake all\n```",
        "If it fails:\n\n```sh\nmake all\n```",
        "Then build the app:\n\n```sh\nmake all\n```",
        "Step 1: Test\n\n```bash\nmake all\n```",
    ] {
        assert_eq!(commands(text), ["make all"], "{text}");
    }
}

#[test]
fn what_stands_in_a_column_is_as_far_as_the_column_says() {
    let board = "## Backlog\n- Fix it\n\n## Done\n### Web\n- Build it\n- [ ] Ship it\n\n## Cancelled\n- Drop it\n\n## Next\n- Test it";
    let marks: Vec<_> = plan(board).tasks.iter().map(|task| task.mark).collect();
    assert_eq!(marks, [Mark::Open, Mark::Done, Mark::Open, Mark::Cancelled, Mark::Open]);
}
