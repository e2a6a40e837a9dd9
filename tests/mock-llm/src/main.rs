//! `mock-llm FIXTURES [ADDRESS [REQUESTS]]`: prints its address and serves the script until it is killed; appends each
//! request to the file REQUESTS as a line of JSON.

use std::error::Error;
use std::fs::File;

use crewlog_mock_llm::{MockLlm, Script};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let fixtures = words.next().ok_or("usage: mock-llm FIXTURES [ADDRESS [REQUESTS]]")?;
    let address = words.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let record = words.next().map(|path| File::options().create(true).append(true).open(path)).transpose()?;
    let script = Script::parse(&fixtures, &std::fs::read_to_string(&fixtures)?)?;
    let mock = MockLlm::start_at(&address, script, record)?;
    println!("{}", mock.address());
    loop {
        std::thread::park();
    }
}
