//! The place of a run: its folder, the programs set up for it, its servers. Nothing is measured here.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::postgres::Server;
use crate::subject::Result;

/// The time limit for a server to answer, or to end.
const SERVER_WAIT: Duration = Duration::from_secs(30);

pub struct Place {
    /// The folder of all stores.
    pub folder: PathBuf,
    /// The `bin` of the Python environment with the servers, if it could be set up.
    pub python: std::result::Result<PathBuf, String>,
    /// The program with the crates that need an older sqlx.
    pub older: std::result::Result<PathBuf, String>,
    postgres: std::result::Result<Server, String>,
}

impl Place {
    /// The resources that `run` has set up, from the environment; a row that needs a missing one says so.
    pub fn find(folder: PathBuf) -> Self {
        let set_up = |name: &str, what: &str| match std::env::var_os(name) {
            Some(path) if Path::new(&path).exists() => Ok(PathBuf::from(path)),
            Some(_) | None => Err(format!("{what} could not be set up")),
        };
        let postgres = Server::start(&folder.join("postgres")).map_err(|failure| failure.to_string());
        let python = set_up("PEERS_PYTHON_BIN", "the Python environment");
        let older = set_up("PEERS_OLDER", "the program with evento and cqrs-es");
        Self { folder, python, older, postgres }
    }

    /// A program of the Python environment.
    pub fn python_program(&self, name: &str) -> Result<PathBuf> {
        let program = self.python.clone()?.join(name);
        if program.exists() { Ok(program) } else { Err(format!("{name} could not be set up").into()) }
    }

    pub fn postgres(&self) -> Result<&Server> {
        self.postgres.as_ref().map_err(|reason| reason.clone().into())
    }
}

/// A server that ends with its owner.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
}

impl Running {
    /// Starts it and waits until its port accepts connections; its output goes to `folder`.
    pub fn start(mut command: Command, address: SocketAddr, folder: &Path) -> Result<Self> {
        let said = std::fs::File::create(folder.join(format!("server-{}.log", address.port())))?;
        let child = command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).spawn()?;
        let mut running = Self { child, address };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = running.child.try_wait()? {
                return Err(format!("the server ended at once: {status}").into());
            }
            if began.elapsed() > SERVER_WAIT {
                return Err("the server does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }
}

impl Drop for Running {
    /// SIGINT, so that it removes its shared memory and ends its children.
    fn drop(&mut self) {
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let began = Instant::now();
        while asked.is_ok() && began.elapsed() < SERVER_WAIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of this machine that was free a moment ago.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// The body of a page of a server on this machine.
pub fn page(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("the answer has no body")?;
    Ok(body.to_owned())
}
