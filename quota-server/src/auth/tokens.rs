use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock};

use super::{Caller, Digest};

/// What is shorter could be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// What is longer is no token, and not worth its digest.
const MAX_TOKEN_BYTES: usize = 1024;

/// A token of the configuration: whose it is, and what it is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whose.
    pub caller: Caller,
    /// What it is known by.
    pub secret: Secret,
}

/// What a token is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// Its digest.
    Digest(Digest),
    /// The file whose first line it is.
    File(PathBuf),
}

/// Why the file of a token gives none. What is in it is not shown.
#[derive(Debug, thiserror::Error)]
#[error("auth.tokens: {}: {reason}", file.display())]
pub struct TokenFileError {
    file: PathBuf,
    reason: io::Error,
}

/// The tokens that are known.
#[derive(Debug)]
pub struct Tokens {
    tokens: Vec<Token>,
    /// The digest of each, at present.
    digests: RwLock<Vec<Digest>>,
    /// The files that could not be read when they last were.
    failing: Mutex<Vec<PathBuf>>,
}

impl Tokens {
    /// Those of the configuration; reads the files that they are in.
    pub fn open(tokens: Vec<Token>) -> Result<Self, TokenFileError> {
        let digests = tokens.iter().map(|token| token.secret.read()).collect::<Result<_, _>>()?;
        Ok(Self { tokens, digests: RwLock::new(digests), failing: Mutex::default() })
    }

    /// Whose a token is. All are compared, so that the time tells nothing.
    pub fn caller(&self, token: &str) -> Option<Caller> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let shown = Digest::of(token);
        let digests = self.digests.read();
        let mut caller = None;
        for (token, digest) in self.tokens.iter().zip(&*digests) {
            if digest.matches(&shown) {
                caller = Some(&token.caller);
            }
        }
        caller.cloned()
    }

    /// Reads the files anew. A token whose file gives none at the moment stays in force. Blocks.
    pub fn reread(&self) {
        let mut failing = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            let name = &*token.caller.name;
            match token.secret.read() {
                Ok(digest) if self.digests.read()[at] == digest => {}
                Ok(digest) => {
                    self.digests.write()[at] = digest;
                    tracing::info!(name, "a new token is in force");
                }
                Err(error) => {
                    if !self.failing.lock().contains(&error.file) {
                        tracing::warn!(name, %error, "the file of a token cannot be used: the last token stays in force");
                    }
                    failing.push(error.file);
                }
            }
        }
        *self.failing.lock() = failing;
    }
}

impl Secret {
    fn read(&self) -> Result<Digest, TokenFileError> {
        match self {
            Self::Digest(digest) => Ok(*digest),
            Self::File(file) => read(file).map_err(|reason| TokenFileError { file: file.clone(), reason }),
        }
    }
}

/// The digest of the first line of a file.
fn read(file: &Path) -> io::Result<Digest> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut text = Vec::new();
    // What follows the first line is of no matter, and of any length.
    File::open(file)?.take(2 * MAX_TOKEN_BYTES as u64).read_to_end(&mut text)?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&line.len()) {
        return Err(invalid(format!(
            "the first line must be a token of {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} bytes"
        )));
    }
    match std::str::from_utf8(line) {
        Ok(token) if line.iter().all(u8::is_ascii_graphic) => Ok(Digest::of(token)),
        _ => Err(invalid("a token is visible ASCII, without spaces".to_owned())),
    }
}
