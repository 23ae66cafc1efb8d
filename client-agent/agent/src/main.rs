//! `steerline-agent`: reads the command line and hands over.

use std::process::ExitCode;

use clap::Parser;
use steerline_agent::cli::{Cli, Command};
use steerline_agent::run;

fn main() -> ExitCode {
    let Cli { command: Command::Play(options) } = Cli::parse();
    // One thread serves hundreds of players: they wait, mostly.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("steerline-agent: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let exit = runtime.block_on(run::play(*options));
    ExitCode::from(exit as u8)
}
