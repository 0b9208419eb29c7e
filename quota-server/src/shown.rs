//! How the log names accounts. Every line that names one, but records of changes, goes through [`Shown`].

use std::io;
use std::path::PathBuf;

use hmac::{Hmac, Mac as _};
use quota_core::Account;
use rustls::crypto::ring::default_provider;
use sha2::Sha256;

use crate::config::{AccountNames, Log, LogKey};
use crate::quota::Sentence;
use crate::secret;
use crate::store::StoreError;

/// Of 32 bytes: 16 hexadecimal digits tell a million accounts apart with a chance of one in 30 million that two are
/// the same.
const HASH_BYTES: usize = 8;

/// Shows accounts in the log as they are to be.
pub struct Shown(Names);

enum Names {
    Plain,
    Hashed(Hmac<Sha256>),
    Omitted,
}

/// Why names cannot be hashed.
#[derive(Debug, thiserror::Error)]
pub enum LogKeyError {
    /// The file of the key gives none. What is in it is not shown.
    #[error("log.key_file: {}: {reason}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        reason: io::Error,
    },
    /// The system gives no random numbers, or the hash takes no such key.
    #[error("log.accounts: there is no key to hash names with")]
    None,
}

impl Shown {
    /// As the settings say. Reads the file that the key is in.
    pub fn open(settings: &Log) -> Result<Self, LogKeyError> {
        Ok(Self(match settings.accounts {
            AccountNames::Plain => Names::Plain,
            AccountNames::Omitted => Names::Omitted,
            AccountNames::Hashed => {
                let key = read_key(settings.key.as_ref())?;
                Names::Hashed(Hmac::new_from_slice(&key).map_err(|_| LogKeyError::None)?)
            }
        }))
    }

    /// The id of an account; none where it is left out.
    pub(crate) fn id(&self, account: &Account) -> Option<String> {
        match &self.0 {
            Names::Plain => Some(account.id().to_owned()),
            Names::Hashed(keyed) => {
                let mut hash = keyed.clone();
                // The kind is part of it, so that a user and a repository of one name have nothing in common.
                hash.update(format!("{}:{}", account.kind(), account.id()).as_bytes());
                let hash = hash.finalize().into_bytes();
                Some(hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect())
            }
            Names::Omitted => None,
        }
    }

    /// A sentence about an account. What an operator wrote is in it only where names are.
    pub(crate) fn sentence(&self, sentence: &Sentence) -> String {
        match self.0 {
            Names::Plain => sentence.to_string(),
            Names::Hashed(_) | Names::Omitted => {
                format!("{}{}", self.who(&sentence.account), sentence.said)
            }
        }
    }

    /// An error of the store, which may be about an account.
    pub(crate) fn error(&self, error: &StoreError) -> String {
        match error.account() {
            None => error.to_string(),
            Some(account) => error.to_string().replace(&account.to_string(), &self.who(account)),
        }
    }

    fn who(&self, account: &Account) -> String {
        match self.id(account) {
            Some(id) => format!("{} {id}", account.kind()),
            None => account.kind().to_string(),
        }
    }
}

fn read_key(key: Option<&LogKey>) -> Result<Vec<u8>, LogKeyError> {
    match key {
        Some(LogKey::Text(key)) => Ok(key.as_bytes().to_vec()),
        Some(LogKey::File(file)) => {
            secret::read(file, "a key").map_err(|reason| LogKeyError::File { file: file.clone(), reason })
        }
        None => {
            let mut key = vec![0; 32];
            default_provider().secure_random.fill(&mut key).map_err(|_| LogKeyError::None)?;
            tracing::info!(
                "names in the log are hashed with a key of this process alone: log.key is not set"
            );
            Ok(key)
        }
    }
}

#[cfg(test)]
mod tests {
    use quota_core::{Ipv6Prefix, Kind};

    use super::*;
    use crate::config::Config;

    fn shown(settings: &str) -> Shown {
        Shown::open(&Config::from_toml(&format!("[log]\n{settings}")).unwrap().log).unwrap()
    }

    fn alice() -> Account {
        Account::new(Kind::User, "alice", Ipv6Prefix::default()).unwrap()
    }

    fn sentence() -> Sentence {
        let reason = Some("alice runs wild".into());
        Sentence { account: alice(), said: " is blocked".to_owned(), reason }
    }

    #[test]
    fn plain_is_what_is_said_elsewhere() {
        let shown = shown("accounts = \"plain\"");
        assert_eq!(shown.id(&alice()).as_deref(), Some("alice"));
        assert_eq!(shown.sentence(&sentence()), "user alice is blocked: alice runs wild");
        assert_eq!(shown.error(&StoreError::Corrupt(alice())), "what is stored of user alice cannot be read");
    }

    #[test]
    fn a_hash_is_that_of_every_server_with_the_key_and_of_no_other() {
        // printf %s user:alice | openssl dgst -sha256 -hmac 0123456789abcdef
        const HASH: &str = "a2d53898aba5b7cc";
        let of = |settings: &str| shown(&format!("accounts = \"hashed\"\n{settings}"));
        let keyed = of("key = \"0123456789abcdef\"");
        assert_eq!(keyed.id(&alice()).as_deref(), Some(HASH));
        assert_eq!(keyed.sentence(&sentence()), format!("user {HASH} is blocked"));
        let error = keyed.error(&StoreError::TooManySources(alice()));
        assert!(error.starts_with(&format!("user {HASH} has as many sources")), "{error}");
        let repo = Account::new(Kind::Repo, "alice", Ipv6Prefix::default()).unwrap();
        assert_ne!(keyed.id(&repo), keyed.id(&alice()));
        for other in [of("key = \"0123456789abcdeg\""), of("")] {
            assert_ne!(other.id(&alice()), keyed.id(&alice()));
            assert_eq!(other.id(&alice()), other.id(&alice()));
        }
        assert_ne!(of("").id(&alice()), of("").id(&alice()), "each process has a key of its own");
    }

    #[test]
    fn what_is_left_out_is_of_some_account_of_its_kind() {
        let shown = shown("accounts = \"omitted\"");
        assert_eq!(shown.id(&alice()), None);
        assert_eq!(shown.sentence(&sentence()), "user is blocked");
        assert_eq!(shown.error(&StoreError::Corrupt(alice())), "what is stored of user cannot be read");
        assert_eq!(shown.error(&StoreError::Full), StoreError::Full.to_string());
    }

    #[test]
    fn a_file_gives_its_first_line_or_stops_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let of_file = || {
            let log = format!("[log]\naccounts = \"hashed\"\nkey_file = {path:?}");
            Shown::open(&Config::from_toml(&log).unwrap().log)
        };
        assert!(of_file().is_err_and(|error| error.to_string().starts_with("log.key_file: ")));
        std::fs::write(&path, "0123456789abcde\n").unwrap();
        let error = of_file().err().unwrap().to_string();
        assert!(error.ends_with("the first line must be a key of 16 to 1024 bytes"), "{error}");
        std::fs::write(&path, "0123456789abcdef\nanything").unwrap();
        let keyed = shown("accounts = \"hashed\"\nkey = \"0123456789abcdef\"");
        assert_eq!(of_file().unwrap().id(&alice()), keyed.id(&alice()));
    }
}
