//! Native messaging: each message is its length, 4 bytes in the machine's order, and so many bytes of JSON.

use std::io::{self, Read, Write};

/// What browsers take from a host at most, and what we take from them.
pub const LONGEST: usize = 1024 * 1024;

/// Why the pipe cannot be read any further. After any of these there is no next message: the length is what says
/// where one begins.
#[derive(Debug)]
pub enum Broken {
    /// The browser closed the pipe between two messages: the regular end.
    Closed,
    Truncated {
        expected: usize,
        got: usize,
    },
    TooLong {
        length: usize,
    },
    Failed(io::Error),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Closed => write!(to, "the browser closed the pipe"),
            Broken::Truncated { expected, got } => {
                write!(to, "the pipe ended within a message, after {got} of {expected} bytes")
            }
            Broken::TooLong { length } => {
                write!(to, "a message of {length} bytes was announced; allowed are 1 to {LONGEST}")
            }
            Broken::Failed(error) => write!(to, "the pipe cannot be read: {error}"),
        }
    }
}

/// The next message's bytes.
pub fn read(from: &mut impl Read) -> Result<Vec<u8>, Broken> {
    let mut length = [0_u8; 4];
    match fill(from, &mut length)? {
        0 => return Err(Broken::Closed),
        4 => {}
        got => return Err(Broken::Truncated { expected: 4, got }),
    }
    let length = u32::from_ne_bytes(length) as usize;
    if length == 0 || length > LONGEST {
        return Err(Broken::TooLong { length });
    }
    let mut message = vec![0; length];
    match fill(from, &mut message)? {
        got if got == length => Ok(message),
        got => Err(Broken::Truncated { expected: length, got }),
    }
}

/// Writes one message. Errors: the pipe is closed, or the message is longer than a browser takes.
pub fn write(to: &mut impl Write, message: &[u8]) -> io::Result<()> {
    if message.len() > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("a message of {} bytes", message.len())));
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(4 + message.len());
    frame.extend_from_slice(&length.to_ne_bytes());
    frame.extend_from_slice(message);
    to.write_all(&frame)?;
    to.flush()
}

/// Reads until the buffer is full or the pipe ends; says how much it got.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Broken> {
    let mut got = 0;
    while got < buffer.len() {
        match from.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Broken::Failed(error)),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pipe_that_ends_or_lies_is_named() {
        let text = |bytes: &[u8]| read(&mut &bytes[..]).unwrap_err().to_string();
        assert_eq!(text(&[]), "the browser closed the pipe");
        assert_eq!(text(&[5, 0]), "the pipe ended within a message, after 2 of 4 bytes");
        let mut short = 5_u32.to_ne_bytes().to_vec();
        short.extend(b"{}");
        assert_eq!(text(&short), "the pipe ended within a message, after 2 of 5 bytes");
        assert!(text(&u32::MAX.to_ne_bytes()).contains("4294967295 bytes was announced; allowed are 1 to 1048576"));
        assert!(text(&0_u32.to_ne_bytes()).contains("0 bytes was announced"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(messages in proptest::collection::vec("\\PC{1,200}", 0..20)) {
            let mut pipe = Vec::new();
            for message in &messages {
                write(&mut pipe, message.as_bytes()).unwrap();
            }
            let mut from = &pipe[..];
            for message in &messages {
                prop_assert_eq!(read(&mut from).unwrap(), message.as_bytes());
            }
            prop_assert!(matches!(read(&mut from), Err(Broken::Closed)));
        }

        #[test]
        fn any_bytes_end_without_a_crash(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut from = &bytes[..];
            while read(&mut from).is_ok() {}
        }
    }
}
