//! `steerline-agent`: reads the command line and hands over.

use std::process::ExitCode;

use clap::Parser;
use steerline_agent::cli::{Cli, Command};
use steerline_agent::host::command;
use steerline_agent::run;

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    // One thread serves hundreds of players: they wait, mostly.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("steerline-agent: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match command {
        Command::Play(options) => ExitCode::from(runtime.block_on(run::play(*options)) as u8),
        Command::Host(options) => runtime.block_on(command::host(&options)),
        Command::Install(options) => command::install(&options),
        Command::Uninstall(options) => command::uninstall(&options),
        Command::Status(options) => runtime.block_on(command::status(&options)),
    }
}
