//! `demo`: serves a recorded day of a crew.

use clap::Args;

use crate::cli::typed::address_to_listen_on;

#[derive(Debug, Args)]
pub struct Demo {
    /// Address to listen on [default: a free port]
    #[arg(long, default_value = "127.0.0.1:0", hide_default_value = true, value_name = "ADDR", value_parser = address_to_listen_on)]
    pub listen: std::net::SocketAddr,
    /// Do not open the browser
    #[arg(long)]
    pub no_open: bool,
}
