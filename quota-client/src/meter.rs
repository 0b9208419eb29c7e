use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::Denial;
use crate::cgroup::{RequestCgroup, RequestCgroups};
use crate::process::{Family, Process};
use crate::work::Work;

/// Counts what a piece of work consumes; clones count into the same sum.
///
/// What is new is charged once an interval, and the rest when the last clone, [`ChildMeter`] and
/// [`Admission`](crate::Admission) of the work is dropped, however the work ended.
#[derive(Clone)]
pub struct Meter {
    /// None for work that nobody pays, see [`Stats::without_account`](crate::Stats::without_account).
    work: Option<Arc<Work>>,
}

impl Meter {
    pub(crate) const fn new(work: Option<Arc<Work>>) -> Self {
        Self { work }
    }

    /// Counts bytes that were sent to the client.
    pub fn sent(&self, bytes: u64) {
        if let Some(work) = &self.work {
            work.add_sent(bytes);
        }
    }

    /// So many bytes will be sent in all. Work that has sent more than nine tenths of what it announced is not ended, however
    /// overloaded the machine is.
    ///
    /// A [`QuotaLayer`](crate::QuotaLayer) announces what `Content-Length` or the body itself says, which a gRPC stream
    /// does not: unless its handler knows and calls this, it is never nearly done, and may be ended a byte before its end.
    /// The first word stands.
    pub fn announce(&self, bytes: u64) {
        if let Some(work) = &self.work {
            work.announce(bytes);
        }
    }

    /// Waits until this work is to be ended, since the machine is overloaded and it is among those that harm it most; for
    /// ever, as a rule. Who hears it ends the work and answers with the denial. What a [`QuotaLayer`](crate::QuotaLayer)
    /// guards is ended by it: its future and its body are dropped. Work for which nobody has waited here is not chosen.
    pub async fn is_shed(&self) -> Denial {
        match &self.work {
            Some(work) => work.is_ended().await,
            None => std::future::pending().await,
        }
    }

    /// The work, which may end meanwhile.
    pub(crate) fn work(&self) -> Weak<Work> {
        self.work.as_ref().map_or_else(Weak::new, Arc::downgrade)
    }

    /// Counts bytes that were received from the client.
    pub fn received(&self, bytes: u64) {
        if let Some(work) = &self.work {
            work.add_received(bytes);
        }
    }

    /// Counts CPU time that was spent in this process, as the caller measured it: unlike what the kernel counts of
    /// children and cgroups, it is not compared with the time that has passed, since it may be told of work that was done
    /// before this meter was made. Like every amount that a caller tells, it is held down to 2^53 of its unit, here
    /// microseconds, in a charge.
    pub fn cpu(&self, time: Duration) {
        if let Some(work) = &self.work {
            work.add_cpu(time);
        }
    }

    /// Counts CPU time that the kernel tells, as far as it can be.
    fn measured_cpu(&self, time: Duration) {
        if let Some(work) = &self.work {
            work.add_measured_cpu(time, Instant::now());
        }
    }

    /// Counts memory that was held in this process: bytes, times the seconds for which they were.
    pub fn memory(&self, byte_seconds: u64) {
        if let Some(work) = &self.work {
            work.add_memory(byte_seconds);
        }
    }

    /// Counts the CPU time and the memory of a child process that has not been waited for yet, and of its live
    /// descendants.
    ///
    /// They are sampled from `/proc` once an interval until the [`ChildMeter`] is dropped. A child whose `/proc` cannot
    /// be read has no samples, and one that ends before its first has no memory. Of memory, what is anonymous counts: not
    /// the page cache, and what is shared after fork(2) for each that shares it. A [cgroup](Self::cgroup) is exact.
    pub fn child(&self, pid: u32) -> ChildMeter {
        let child = self.work.as_ref().zip(Process::of(pid)).map(|(work, process)| {
            let key = work.child(process);
            Child { work: Arc::clone(work), process, key }
        });
        ChildMeter { child, meter: self.clone() }
    }

    /// Makes a cgroup whose processes count as this work's: their CPU and memory, exactly, while they run and to the end of
    /// the last of them.
    ///
    /// # Errors
    /// Where no cgroup can be made, such as when there are too many. The process can be a [child](Self::child) instead.
    pub async fn cgroup(&self, cgroups: &RequestCgroups) -> io::Result<RequestCgroup> {
        match &self.work {
            Some(work) => work.shared().cgroup(Arc::clone(work), cgroups.clone()).await,
            None => Ok(RequestCgroup::none()),
        }
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

/// Counts the CPU time and the memory of one child process.
///
/// Dropped without [`ended`](Self::ended), what was sampled stands.
#[derive(Debug)]
#[must_use = "a child is metered only until this is dropped"]
pub struct ChildMeter {
    /// None where there is nothing to sample.
    child: Option<Child>,
    meter: Meter,
}

struct Child {
    work: Arc<Work>,
    process: Process,
    key: u64,
}

impl ChildMeter {
    /// The child has ended, and its wait status tells its CPU time, user and system, as of wait4(2): that of the
    /// child and of the descendants it waited for. `RUSAGE_CHILDREN` is no such figure: it is of all children.
    ///
    /// Of this and what was sampled the larger counts, so nothing is counted twice; and no more than can be, see
    /// [`Stats::cost_clamped`](crate::Stats::cost_clamped): of a child whose `/proc` could not be read, since the work began.
    pub fn ended(self, cpu: Duration) {
        match &self.child {
            Some(child) => child.work.child_ended(child.key, Some(cpu)),
            None => self.meter.measured_cpu(cpu),
        }
    }

    /// Takes a sample now, such as just before the child is killed, whose own wait status will not tell of
    /// descendants that it did not wait for. Reads all of `/proc`: milliseconds, on a thread that may block.
    pub fn sample(&self) {
        if let Some(child) = &self.child
            && let Some(usage) = Family::read().usage(child.process)
        {
            child.work.child_used(child.key, usage);
        }
    }
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.work.child_ended(self.key, None);
    }
}
