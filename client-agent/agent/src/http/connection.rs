//! One connection to a web server, opened by ourselves so that both its ends are known.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::UnboundedSender;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::TlsConnector;
use url::Url;

use super::HttpError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Media is counted and dropped: a small read buffer keeps 200 players small, and it is what a read returns.
const READ_BUFFER: usize = 64 * 1024;

/// The two ends of a TCP connection, as this machine sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// A connection came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEvent {
    Opened(Flow),
    Closed(Flow),
}

pub struct Connection {
    pub flow: Flow,
    pub sender: SendRequest<Empty<Bytes>>,
}

/// How connections are made.
#[derive(Clone)]
pub struct Dialer {
    pub bind: Option<IpAddr>,
    pub tls: Arc<ClientConfig>,
    pub events: UnboundedSender<FlowEvent>,
}

impl Dialer {
    /// Opens a connection to the host of `url`; the events tell when it opens and closes.
    pub async fn connect(&self, url: &Url) -> Result<Connection, HttpError> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(80);
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = tokio::net::lookup_host((name, port))
            .await
            .map_err(|error| HttpError::Passing(format!("{host} is not known: {error}")))?;
        let from = self.bind.map_or(String::new(), |bind| format!(" that {bind} can reach"));
        let mut last = HttpError::Passing(format!("{host} has no address{from}"));
        for remote in addresses.filter(|remote| self.bind.is_none_or(|bind| bind.is_ipv4() == remote.is_ipv4())) {
            match tokio::time::timeout(CONNECT_TIMEOUT, self.open(remote)).await {
                Ok(Ok(stream)) => return self.shake_hands(stream, url, name).await,
                Ok(Err(error)) => last = HttpError::Passing(format!("no connection to {remote}: {error}")),
                Err(_) => {
                    let seconds = CONNECT_TIMEOUT.as_secs();
                    last = HttpError::Passing(format!("no connection to {remote} within {seconds} s"));
                }
            }
        }
        Err(last)
    }

    async fn open(&self, remote: SocketAddr) -> std::io::Result<TcpStream> {
        let socket = if remote.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(address) = self.bind {
            socket.bind(SocketAddr::new(address, 0))?;
        }
        let stream = socket.connect(remote).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn shake_hands(&self, stream: TcpStream, url: &Url, name: &str) -> Result<Connection, HttpError> {
        let ends = stream.local_addr().and_then(|local| Ok(Flow { local, remote: stream.peer_addr()? }));
        let flow = ends.map_err(|error| HttpError::Passing(format!("connection lost: {error}")))?;
        if url.scheme() != "https" {
            return self.speak(stream, flow).await;
        }
        let server = ServerName::try_from(name.to_string())
            .map_err(|_| HttpError::Lasting(format!("\"{name}\" is no name for TLS")))?;
        let connected = TlsConnector::from(Arc::clone(&self.tls)).connect(server, stream);
        match tokio::time::timeout(CONNECT_TIMEOUT, connected).await {
            Ok(Ok(stream)) => self.speak(stream, flow).await,
            Ok(Err(error)) => Err(HttpError::Passing(format!("TLS with {}: {error}", flow.remote))),
            Err(_) => Err(HttpError::Passing(format!("TLS with {}: no answer", flow.remote))),
        }
    }

    async fn speak<S>(&self, stream: S, flow: Flow) -> Result<Connection, HttpError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(READ_BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| HttpError::Passing(format!("HTTP with {}: {error}", flow.remote)))?;
        let _ = self.events.send(FlowEvent::Opened(flow));
        let events = self.events.clone();
        tokio::spawn(async move {
            // An error here also ends the request that it belongs to, and is told there.
            let _ = connection.await;
            let _ = events.send(FlowEvent::Closed(flow));
        });
        Ok(Connection { flow, sender })
    }
}
