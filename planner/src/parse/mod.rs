//! Text to plan, deterministically.
