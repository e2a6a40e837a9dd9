//! `mock-llm FIXTURES [ADDRESS]`: prints its address and serves the script until it is killed.

use std::error::Error;

use crewlog_mock_llm::{MockLlm, Script};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let fixtures = words.next().ok_or("usage: mock-llm FIXTURES [ADDRESS]")?;
    let address = words.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let script = Script::parse(&fixtures, &std::fs::read_to_string(&fixtures)?)?;
    let mock = MockLlm::start_at(&address, script)?;
    println!("{}", mock.address());
    loop {
        std::thread::park();
    }
}
