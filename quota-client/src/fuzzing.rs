//! What others write, read as this crate reads it: by the targets in `fuzz/`, and in the tests what those have kept. Each
//! panics where what it makes of any input breaks a promise.
#![allow(clippy::panic, reason = "a broken promise is told by panicking")]

use prost::Message;
use quota_core::{Account, Cost, Kind};
use quota_proto::v1;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::local::{Local, Stale};
use crate::{Denial, Settings, cgroup, classes, layer, pressure, process, rpc_names, status};

/// What reads an input.
pub type Target = fn(&[u8]);

/// The targets, by the names of their folders in `fuzz/corpus/`.
pub const TARGETS: [(&str, Target); 4] = [
    ("answers", answers),
    ("client_settings", client_settings),
    ("machine", machine),
    ("processes", processes),
];

/// The longest wait that is believed, whatever the service says.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(86_400);

/// The files in `/proc` and of cgroups that tell how loaded a machine is.
pub fn machine(input: &[u8]) {
    pressure::fuzzing::machine(&String::from_utf8_lossy(input));
}

/// The files in `/proc` and of cgroups that tell what a request consumes, and the header that tells how long its caller
/// waits.
pub fn processes(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    process::fuzzing::processes(&text);
    cgroup::fuzzing::files(&text);
    text.lines().for_each(layer::fuzzing::deadline);
}

/// The settings of a fileserver, in TOML.
pub fn client_settings(input: &[u8]) {
    let Ok(settings) = Settings::from_toml(&String::from_utf8_lossy(input)) else { return };
    if settings.pressure.check().is_ok() {
        let shares = [settings.pressure.cpu, settings.pressure.memory, settings.pressure.network];
        assert!(shares.iter().all(|share| *share > 0.0 && *share <= 1.0), "{shares:?}");
    }
}

/// What the service answers: a byte says to what.
pub fn answers(input: &[u8]) {
    let Some((question, answer)) = input.split_first() else { return };
    match question % 6 {
        0 => read(answer, check),
        1 => read(answer, classes::fuzzing::slots),
        2 => read(answer, |told: v1::ReportPressureResponse| {
            let mut local = Local::default();
            local.learn_cuts(&told.accounts);
            assert!(local.cut() <= told.accounts.len());
        }),
        3 => read(answer, told_unasked),
        4 => read(answer, failure),
        _ => drop(rpc_names(answer)),
    }
}

/// A message, where it is one.
fn read<M: Message + Default>(answer: &[u8], look: impl FnOnce(M)) {
    if let Ok(message) = M::decode(answer) {
        look(message);
    }
}

/// A refusal, or what is learned of accounts that are allowed.
fn check(told: v1::CheckResponse) {
    let accounts = accounts(told.standings.iter());
    let (mut local, now) = (Local::default(), Instant::now());
    if let Ok(reserved) = Cost::try_from(told.reserved.unwrap_or_default()) {
        local.allowed(&accounts, &told.standings, Some("/svc/Method"), reserved);
        assert_eq!(local.price("/svc/Method"), Some(reserved));
    }
    let Ok(denial) = Denial::new(&told, "node") else { return };
    assert!(denial.retry_after() <= LONGEST && denial.retry_after_seconds() >= 1, "{denial:?}");
    local.denied(&accounts, &told.standings, &denial, now);
    let remembered = local.refusal_unasked(&accounts, now);
    assert!(remembered.is_none_or(|denial| denial.retry_after() <= LONGEST));
    let response: http::Response<String> = denial.clone().into();
    assert!(response.headers().contains_key(http::header::RETRY_AFTER));
    assert_ne!(Status::from(denial).code(), Code::Ok);
}

/// What a session tells without being asked.
fn told_unasked(told: v1::SessionResponse) {
    match told.message {
        Some(v1::session_response::Message::Changed(changed)) => {
            let stale = Stale::read(&changed);
            assert!(stale == Stale::All || !changed.all);
            Local::default().doubt(&stale);
        }
        Some(v1::session_response::Message::Report(outcome)) => {
            let mut local = Local::default();
            local.told(&outcome.standings);
            let known = local.limits(&accounts(outcome.standings.iter()));
            assert!(known.len() <= outcome.standings.len());
        }
        _ => {}
    }
}

/// An error, with its details.
fn failure(told: v1::Failure) {
    let status = Status::with_details(Code::from(told.code), told.message, told.details.into());
    assert!(status::refusal(&status).is_none_or(|wait| wait <= LONGEST));
    status::refused_charges(&status);
    status::is_transient(&status);
    status::is_partly_stored(&status);
    status::names(&status, "class");
}

/// Those that standings are of.
fn accounts<'a>(standings: impl Iterator<Item = &'a v1::Standing>) -> Vec<Account> {
    let account = |standing: &v1::Standing| {
        let kind = Kind::try_from(standing.kind()).ok()?;
        Account::from_spelling(kind, &standing.id).ok()
    };
    standings.filter_map(account).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::TARGETS;

    #[test]
    fn what_targets_have_kept_breaks_no_promise() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        for (target, read) in TARGETS {
            let mut inputs = 0;
            for input in fs::read_dir(corpus.join(target)).unwrap() {
                let input = input.unwrap().path();
                println!("{}", input.display());
                read(&fs::read(&input).unwrap());
                inputs += 1;
            }
            assert!(inputs > 0, "{target} has kept nothing");
        }
    }
}
