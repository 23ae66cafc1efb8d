//! The two threads between the pipe and the host.

use std::sync::mpsc::{sync_channel, SyncSender};

use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::oneshot;

use super::frames;

/// Messages read ahead; then the pipe waits, and with it the extension's count of what is under way.
const READ_AHEAD: usize = 64;
/// Answers that wait for a browser which does not read.
const UNREAD: usize = 1024;

/// What came off the pipe.
pub enum Input {
    Message(Vec<u8>),
    End(frames::Broken),
}

/// Reads the pipe on a thread of its own: a pipe cannot be waited for otherwise everywhere.
pub fn reader() -> Receiver<Input> {
    let (to, from) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut pipe = std::io::stdin().lock();
        loop {
            let (input, over) = match frames::read(&mut pipe) {
                Ok(message) => (Input::Message(message), false),
                Err(broken) => (Input::End(broken), true),
            };
            if to.blocking_send(input).is_err() || over {
                return;
            }
        }
    });
    from
}

/// Writes the pipe on a thread of its own: a browser that does not read holds up nobody.
/// The second part completes when all is written and nothing more can come.
pub fn writer() -> (SyncSender<Vec<u8>>, oneshot::Receiver<()>) {
    let (to, from) = sync_channel::<Vec<u8>>(UNREAD);
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        let _done = done;
        let mut pipe = std::io::stdout().lock();
        for message in from {
            // A closed pipe shows on the reading side as well, and ends us there.
            if frames::write(&mut pipe, &message).is_err() {
                return;
            }
        }
    });
    (to, written)
}
