use std::io;
use std::path::PathBuf;

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Something given is no good.
    #[error("{0}")]
    Usage(String),
    #[error("{} cannot be read: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// No answer came.
    #[error("{address} does not answer: {reason}")]
    Unreachable { address: String, reason: String },
    /// The server says no.
    #[error("the server refuses ({status}): {detail}")]
    Refused { status: u16, detail: String },
    /// The server's answer has not the shape that this version knows.
    #[error("the answer of {path} cannot be read: {reason}")]
    Answer { path: String, reason: String },
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    /// 1 is an answer, not an error.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::File { .. } => 2,
            Self::Unreachable { .. } => 3,
            Self::Refused { .. } => 4,
            Self::Answer { .. } | Self::Output(_) => 5,
        }
    }
}
