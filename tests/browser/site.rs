//! A server of small pages on loopback, for the tests of the driver and of the checks.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// A path, header lines that end with `\r\n`, and a body.
pub type Resource = (&'static str, &'static str, String);

/// The server. It runs until the process ends.
pub struct Site {
    address: SocketAddr,
}

impl Site {
    /// Serves these resources; anything else is not found.
    pub fn of(resources: Vec<Resource>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let resources = resources.clone();
                // Connections that close early are ignored.
                std::thread::spawn(move || answer(&stream, &resources));
            }
        });
        Self { address }
    }

    /// Serves one page at `/` with this body, in a document that sets a language, a title and a viewport.
    pub fn page(body: &str) -> Self {
        Self::of(vec![("/", "", document(body))])
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A whole document around a body.
pub fn document(body: &str) -> String {
    format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>A page</title>\
         <meta name=viewport content='width=device-width, initial-scale=1'><link rel=icon href='data:,'>\
         </head><body><main><h1>A page</h1>{body}</main></body></html>"
    )
}

fn answer(mut stream: &TcpStream, resources: &[Resource]) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    let Some((_, headers, body)) = resources.iter().find(|(known, ..)| *known == path) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let content_type = if headers.contains("Content-Type") { "" } else { "Content-Type: text/html; charset=utf-8\r\n" };
    write!(stream, "HTTP/1.1 200 OK\r\n{content_type}{headers}Connection: close\r\n\r\n{body}")
}
