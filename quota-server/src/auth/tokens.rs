use std::io;
use std::path::PathBuf;

use parking_lot::{Mutex, RwLock};

use super::{Caller, Digest};
use crate::secret;

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
        if token.len() > secret::MAX_BYTES {
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

    /// Reads the files anew. A token whose file gives none at the moment stays in force. Blocks. Returns whether one is another
    /// now.
    pub fn reread(&self) -> bool {
        let (mut failing, mut is_changed) = (Vec::new(), false);
        for (at, token) in self.tokens.iter().enumerate() {
            let name = &*token.caller.name;
            match token.secret.read() {
                Ok(digest) if self.digests.read()[at] == digest => {}
                Ok(digest) => {
                    self.digests.write()[at] = digest;
                    is_changed = true;
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
        is_changed
    }
}

impl Secret {
    fn read(&self) -> Result<Digest, TokenFileError> {
        match self {
            Self::Digest(digest) => Ok(*digest),
            Self::File(file) => match secret::read(file, "a token") {
                Ok(token) => Ok(Digest::of(token)),
                Err(reason) => Err(TokenFileError { file: file.clone(), reason }),
            },
        }
    }
}
