//! HTTP/1.1 with a browser's habits: persistent connections, reopened when the server closes them; a GET that
//! met a connection the server had just closed is sent once more on a new one.

mod connection;
mod pool;
mod tls;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::header::{ACCEPT, HOST, LOCATION, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use url::Url;

use crate::player::words::Failure;
pub use connection::{Connection, Dialer, Flow, FlowEvent};
use pool::Pool;
pub use tls::{client_config, roots};

/// A server that sends nothing for this long has failed.
const SILENCE: Duration = Duration::from_secs(60);
const MOST_REDIRECTS: usize = 5;

/// Why there is no answer, or not the one that was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    /// It may work the next time.
    Passing(String),
    /// The server refuses, or the address is wrong.
    Lasting(String),
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (HttpError::Passing(text) | HttpError::Lasting(text)) = self;
        out.write_str(text)
    }
}

impl std::error::Error for HttpError {}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Failure {
        match error {
            HttpError::Passing(text) => Failure::Passing(text),
            HttpError::Lasting(text) => Failure::Lasting(text),
        }
    }
}

/// What becomes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// Keep it, up to so many bytes.
    Keep(usize),
    /// Count it and drop it.
    Count,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// Where it was found, after redirections.
    pub url: Url,
    pub bytes: u64,
    pub body: Vec<u8>,
    pub flow: Flow,
    /// The connection had served a request before.
    pub reused: bool,
}

/// One player's way to the web.
pub struct Client {
    dialer: Dialer,
    pool: Pool,
}

enum Step {
    Done(Answer),
    Redirected(Url),
}

impl Client {
    pub fn new(dialer: Dialer) -> Client {
        Client { dialer, pool: Pool::default() }
    }

    /// Gets `url`; an answer other than 200 is an error that names the status.
    pub async fn get(&self, url: &Url, body: Body) -> Result<Answer, HttpError> {
        let mut url = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            match self.get_once(&url, body).await? {
                Step::Done(answer) => return Ok(answer),
                Step::Redirected(to) => url = to,
            }
        }
        Err(HttpError::Lasting(format!("more than {MOST_REDIRECTS} redirections")))
    }

    async fn get_once(&self, url: &Url, body: Body) -> Result<Step, HttpError> {
        let _permit = self.pool.admit(url).await;
        if let Some(mut connection) = self.pool.take(url) {
            // A failure before the answer began is the server closing an idle connection: it has not worked on
            // the request, and a GET may be repeated in any case (RFC 9110, 9.2.2).
            if let Ok(response) = send(&mut connection, url).await {
                return self.read(url, connection, response, body, true).await;
            }
        }
        let mut connection = self.dialer.connect(url).await?;
        let response = send(&mut connection, url).await?;
        self.read(url, connection, response, body, false).await
    }

    async fn read(
        &self,
        url: &Url,
        connection: Connection,
        mut response: Response<hyper::body::Incoming>,
        wanted: Body,
        reused: bool,
    ) -> Result<Step, HttpError> {
        let lost = |error: String| HttpError::Passing(format!("{} broke off: {error}", connection.flow.remote));
        let status = response.status();
        let (mut bytes, mut body) = (0u64, Vec::new());
        loop {
            let frame = match tokio::time::timeout(SILENCE, response.body_mut().frame()).await {
                Err(_) => return Err(lost(format!("nothing for {} s", SILENCE.as_secs()))),
                Ok(None) => break,
                Ok(Some(frame)) => frame.map_err(|error| lost(with_causes(&error)))?,
            };
            let Ok(data) = frame.into_data() else { continue };
            bytes += data.len() as u64;
            if let Body::Keep(most) = wanted {
                if body.len() + data.len() > most {
                    return Err(HttpError::Lasting(format!("the answer is longer than {most} bytes")));
                }
                body.extend_from_slice(&data);
            }
        }
        let redirected = redirection(url, &response)?;
        let flow = connection.flow;
        self.keep(url, connection).await;
        match (redirected, status) {
            (Some(to), _) => Ok(Step::Redirected(to)),
            (None, StatusCode::OK) => Ok(Step::Done(Answer { url: url.clone(), bytes, body, flow, reused })),
            // RFC 9110: 4xx is the request's fault and stays so, but for 408 and 429.
            (None, status) if status.is_client_error() && status != 408 && status != 429 => {
                Err(HttpError::Lasting(format!("{} answered {status}", flow.remote)))
            }
            (None, status) => Err(HttpError::Passing(format!("{} answered {status}", flow.remote))),
        }
    }

    /// Back to the pool, unless the server closes it.
    async fn keep(&self, url: &Url, mut connection: Connection) {
        if connection.sender.ready().await.is_ok() {
            self.pool.give_back(url, connection);
        }
    }
}

async fn send(connection: &mut Connection, url: &Url) -> Result<Response<hyper::body::Incoming>, HttpError> {
    let remote = connection.flow.remote;
    let passing = |text: String| HttpError::Passing(format!("{remote} gave no answer: {text}"));
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let request = Request::get(target)
        .header(HOST, host)
        .header(USER_AGENT, concat!("steerline-agent/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .body(Empty::<Bytes>::new())
        .map_err(|error| HttpError::Lasting(format!("no request can be made of this URL: {error}")))?;
    connection.sender.ready().await.map_err(|error| passing(with_causes(&error)))?;
    match tokio::time::timeout(SILENCE, connection.sender.send_request(request)).await {
        Ok(answer) => answer.map_err(|error| passing(with_causes(&error))),
        Err(_) => Err(passing(format!("nothing for {} s", SILENCE.as_secs()))),
    }
}

fn redirection<T>(url: &Url, response: &Response<T>) -> Result<Option<Url>, HttpError> {
    if ![301, 302, 303, 307, 308].contains(&response.status().as_u16()) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let to = location.and_then(|text| url.join(text).ok());
    match to {
        Some(to) if ["http", "https"].contains(&to.scheme()) => Ok(Some(to)),
        _ => Err(HttpError::Lasting(format!("redirected to {location:?}, which is no http or https URL"))),
    }
}

/// An error with what lies beneath it: hyper and tonic keep the cause there.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}
