//! Tests of slow clients, on a paused clock.

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// How long a client is served that sends the beginning of a request, and then a byte now and then.
async fn served_for(begin: &str, every: Duration) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(async || "answered"));
    tokio::spawn(serve(listener, Vec::new(), None, router, std::future::pending()));
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    writer.write_all(begin.as_bytes()).await.unwrap();
    let begun = Instant::now();
    let sending = tokio::spawn(async move {
        loop {
            sleep(every).await;
            if writer.write_all(b"x").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    });
    let mut answer = Vec::new();
    // A reset is an end too.
    let _ = reader.read_to_end(&mut answer).await;
    sending.abort();
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_given_up() {
    let request = "GET / HTTP/1.1\r\nhost: x\r\nx-slow: ";
    for (begin, every) in
        [("GET / HT", 5), (request, 5), (request, 3_600), ("GET / HTTP/1.1\r\nhost: x\r\n\r\n", 3_600)]
    {
        let served = served_for(begin, Duration::from_secs(every)).await;
        assert!(served <= HEAD_MAX + FIRST_MAX, "{begin:?} {every}: {served:?}");
    }
}
