//! `serve`: serves the dashboard, the HTTP API and MCP; and the tokens of programs.

use std::net::SocketAddr;

use clap::{Args, Subcommand};

use crate::cli::programs::Scope;
use crate::cli::typed::address_to_listen_on;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Serve {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:7777", value_name = "ADDR", value_parser = address_to_listen_on)]
    pub listen: SocketAddr,
    /// Port to listen on, of this machine
    #[arg(long, hide = true, conflicts_with = "listen")]
    pub port: Option<u16>,
    #[command(subcommand)]
    pub command: Option<ServeCommand>,
}

impl Serve {
    /// The address that the options name.
    pub fn address(&self) -> SocketAddr {
        self.port.map_or(self.listen, |port| SocketAddr::from(([127, 0, 0, 1], port)))
    }
}

#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// List the tokens of programs that use the API, or change them
    #[command(args_conflicts_with_subcommands = true)]
    Tokens {
        #[command(subcommand)]
        command: Option<Tokens>,
    },
    /// Print a new address of the page, good for one use within ten minutes
    Link,
}

/// Changes of the tokens of programs.
#[derive(Debug, Subcommand)]
pub enum Tokens {
    /// Make a token and show it, once
    Add {
        /// Name of the token, recorded in events
        name: String,
        /// The permissions of the token; may be repeated, or separated by commas
        #[arg(long, value_enum, value_delimiter = ',', default_value = "read")]
        scope: Vec<Scope>,
    },
    /// Revoke a token
    Revoke {
        /// Its name
        name: String,
    },
}
