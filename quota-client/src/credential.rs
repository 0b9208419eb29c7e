use std::fs;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tonic::metadata::{Ascii, MetadataValue};

use crate::BuildError;

/// What tells the service who asks: a token, which is not shown.
#[derive(Default)]
pub(crate) struct Credential {
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    header: Option<MetadataValue<Ascii>>,
    /// The file could not be used when it last was read.
    failing: bool,
}

impl Credential {
    /// One that stays as it is.
    pub(crate) fn of_token(token: &str) -> Result<Self, BuildError> {
        Ok(Self { file: None, state: Mutex::new(State { header: Some(header(token)?), failing: false }) })
    }

    /// The one that a file holds, with or without a line break at its end.
    pub(crate) fn of_file(file: PathBuf) -> Result<Self, BuildError> {
        let state = Mutex::new(State { header: Some(read(&file)?), failing: false });
        Ok(Self { file: Some(file), state })
    }

    /// The value of `authorization`, at present.
    pub(crate) fn header(&self) -> Option<MetadataValue<Ascii>> {
        self.state.lock().header.clone()
    }

    /// Reads the file anew. One that gives no token leaves the last in use.
    pub(crate) fn reread(&self) {
        let Some(file) = &self.file else { return };
        let read = read(file);
        let mut state = self.state.lock();
        let was_failing = std::mem::replace(&mut state.failing, read.is_err());
        match read {
            Ok(header) if state.header.as_ref() == Some(&header) => {}
            Ok(header) => {
                state.header = Some(header);
                tracing::info!(file = %file.display(), "a new token is used");
            }
            Err(error) if !was_failing => {
                tracing::warn!(file = %file.display(), %error, "there is no token in its file: the last one is used");
            }
            Err(_) => {}
        }
    }
}

fn read(file: &Path) -> Result<MetadataValue<Ascii>, BuildError> {
    match fs::read_to_string(file) {
        Ok(token) => header(token.trim_end()),
        Err(error) => Err(BuildError::TokenFile { file: file.to_owned(), error }),
    }
}

fn header(token: &str) -> Result<MetadataValue<Ascii>, BuildError> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(BuildError::Token);
    }
    let mut value = MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| BuildError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}
