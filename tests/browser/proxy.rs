//! A connection that can be cut: a port that leads to another one, or to nothing.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

pub struct Proxy {
    pub port: u16,
    /// The port that it leads to; 0 while it is cut.
    to: Arc<AtomicU16>,
    /// The port that it leads to when it is not cut.
    target: AtomicU16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (to, open) = (Arc::new(AtomicU16::new(0)), Arc::new(Mutex::new(Vec::new())));
        let proxy = Self { port, to: to.clone(), target: AtomicU16::new(0), open: open.clone() };
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let Ok(there) = TcpStream::connect(("127.0.0.1", to.load(Ordering::SeqCst))) else { continue };
                let ends = [&from, &there].map(|end| end.try_clone().unwrap());
                open.lock().unwrap().extend(ends);
                for (mut source, mut sink) in [(from.try_clone().unwrap(), there.try_clone().unwrap()), (there, from)] {
                    std::thread::spawn(move || {
                        let _ = io::copy(&mut source, &mut sink);
                        let _ = sink.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        proxy
    }

    pub fn lead_to(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
        self.join();
    }

    /// Ends all connections, and accepts no more.
    pub fn cut(&self) {
        self.to.store(0, Ordering::SeqCst);
        for end in self.open.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    pub fn join(&self) {
        self.to.store(self.target.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}
