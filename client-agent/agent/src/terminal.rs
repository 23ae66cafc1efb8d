//! Lines for the person at the terminal. A closed terminal or pipe is no reason to stop playing, as `println!` would.

/// One line on standard error, with the program's name.
macro_rules! complain {
    ($($part:tt)*) => { $crate::terminal::write_line(std::io::stderr(), &format!("steerline-agent: {}", format_args!($($part)*))) };
}

/// One line on standard output.
macro_rules! say {
    ($($part:tt)*) => { $crate::terminal::write_line(std::io::stdout(), &format!($($part)*)) };
}

pub(crate) use {complain, say};

pub(crate) fn write_line(mut to: impl std::io::Write, line: &str) {
    // One write, so that lines of several processes do not mix.
    let _ = to.write_all(format!("{line}\n").as_bytes());
}
