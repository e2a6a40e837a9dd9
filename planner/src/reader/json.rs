//! Reads Task Master's `tasks.json` and beads' `issues.jsonl`.
