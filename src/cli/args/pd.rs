use std::path::PathBuf;

use clap::Args;

use super::endpoint::parse_endpoint;

/// Where PD is and how to talk to it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct PdArgs {
    /// PD's endpoints, host:port, several with commas between them
    #[arg(
        long,
        value_name = "ENDPOINTS",
        required = true,
        value_delimiter = ',',
        value_parser = parse_endpoint
    )]
    pub(crate) pd: Vec<String>,
    /// The certificates of the authorities to trust, PEM; turns TLS on
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate, PEM, with the intermediate ones after it
    #[arg(long, value_name = "FILE", requires_all = ["ca", "key"])]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of --cert, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ca", "cert"])]
    pub(crate) key: Option<PathBuf>,
}
