use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::files::Files;
use super::judge::{Change, Judge, State};
use super::measured::{Absent, Measurements};
use super::reader::Reader;
use super::sample::Sample;
use super::settings::Settings;

/// Takes samples on a thread that may block: the kernel adds up a cgroup's figures over its CPUs and descendants while
/// they are read. That took 0.3 ms without repositories, and no bound is known for a machine that is overloaded.
pub(super) struct Sampler<F> {
    files: F,
    process: PathBuf,
    settings: Settings,
    reader: Option<Reader<F>>,
    reading: Option<JoinHandle<(Reader<F>, Measurements)>>,
    judge: Judge,
}

impl<F: Files + Clone + Send + 'static> Sampler<F> {
    /// Of the process with this directory in `/proc`.
    pub(super) fn new(files: F, process: impl Into<PathBuf>, settings: Settings) -> Self {
        let judge = Judge::new(settings.clone());
        Self { files, process: process.into(), settings, reader: None, reading: None, judge }
    }

    /// Where reading takes longer than this, nothing can be told, and the next sample goes on waiting for it.
    pub(super) async fn sample(&mut self, within: Duration) -> Sample {
        let measured = match tokio::time::timeout(within, self.reading()).await {
            Ok(Ok((reader, measured))) => {
                self.reader = Some(reader);
                self.reading = None;
                measured
            }
            Ok(Err(_)) => {
                self.reading = None;
                Measurements::all(&Absent::Missing("reading has ended early".to_owned()))
            }
            Err(_) => Measurements::all(&Absent::Missing(format!("reading takes longer than {within:?}"))),
        };
        let (sample, changes) = self.judge.judge(&measured);
        changes.iter().for_each(log);
        sample
    }

    fn reading(&mut self) -> &mut JoinHandle<(Reader<F>, Measurements)> {
        self.reading.get_or_insert_with(|| {
            let reader = self.reader.take();
            let mut reader = reader.unwrap_or_else(|| {
                Reader::new(self.files.clone(), self.process.clone(), self.settings.clone())
            });
            tokio::task::spawn_blocking(move || {
                let measured = reader.read(Instant::now());
                (reader, measured)
            })
        })
    }
}

fn log(change: &Change) {
    let Change { signal, state, reading } = change;
    match state {
        State::Calm => tracing::info!(%signal, %reading, "this pressure is no more, or can be read again"),
        State::Reached => tracing::warn!(%signal, %reading, "this machine is under pressure"),
        State::Absent => tracing::info!(%signal, %reading, "this pressure cannot be read: it is not known"),
        State::Lost => tracing::warn!(%signal, %reading, "this pressure is lost: it counts as high"),
    }
}
