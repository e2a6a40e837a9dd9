//! Connections: their number, their origin, and TLS.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::ui::failure::Failure;

/// The most connections; further ones wait.
const CONNECTIONS_MAX: usize = 1_024;
/// The time limit for a TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// The time limit for the head of a request, and for the next one on the same connection.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// How long a connection may wait for its first byte, and between bytes in either direction.
const FIRST_MAX: Duration = Duration::from_secs(10);
const IDLE_MAX: Duration = Duration::from_secs(90);
/// The pause when the system cannot accept another connection.
const PAUSE: Duration = Duration::from_secs(1);

trait Both: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Both for T {}

/// A connection, which counts until it is closed.
pub struct Connection {
    stream: Pin<Box<dyn Both>>,
    /// The time when it is closed, unless data is sent or received before.
    until: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    fn moved(&mut self) {
        self.until.as_mut().reset(Instant::now() + IDLE_MAX);
    }
}

/// Accepts connections, with TLS if there is a certificate, and only from proxies if there are any, and answers their requests
/// until it is stopped. Then it waits for the open requests.
pub async fn serve(
    listener: TcpListener,
    proxies: Vec<IpAddr>,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let (places, connections) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), GracefulShutdown::new());
    let mut stop = pin!(stop);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    loop {
        let accepting = async {
            let place = places.clone().acquire_owned().await;
            (place.expect("the semaphore is never closed"), listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            accepted = accepting => accepted,
        };
        let Ok((stream, from)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        if !proxies.is_empty() && !proxies.contains(&from.ip().to_canonical()) {
            continue;
        }
        // Small messages are sent at once.
        let _ = stream.set_nodelay(true);
        let (http, tls, watcher) = (http.clone(), tls.clone(), connections.watcher());
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let stream: Pin<Box<dyn Both>> = match tls {
                None => Box::pin(stream),
                Some(tls) => match timeout(HANDSHAKE_MAX, tls.accept(stream)).await {
                    Ok(Ok(stream)) => Box::pin(stream),
                    Ok(Err(_)) | Err(_) => return,
                },
            };
            let connection = Connection { stream, until: Box::pin(sleep(FIRST_MAX)), _place: place };
            // A client that goes away is no fault.
            let _ = watcher.watch(http.serve_connection(TokioIo::new(connection), service)).await;
        });
    }
    connections.shutdown().await;
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        match self.stream.as_mut().poll_read(context, to) {
            Poll::Pending => self.until.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into())),
            read => {
                if to.filled().len() > before {
                    self.moved();
                }
                read
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.stream.as_mut().poll_write(context, from);
        if written.is_ready() {
            self.moved();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}

/// TLS with a certificate chain and its key, both in PEM files.
pub fn tls(certificate: &Path, key: &Path) -> Result<TlsAcceptor, Failure> {
    let wrong = |file: &Path, error: String| Failure::user(format!("{} cannot be used: {error}", file.display()));
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| wrong(certificate, error.to_string()))?.with_no_client_auth();
    let config = config.with_single_cert(chain, private).map_err(|error| wrong(certificate, error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests;
