mod leave;
mod shares;

use std::sync::Arc;
use std::time::Duration;

use quota_core::{Account, Cost, Resource};
use quota_proto::v1::{self, check_response};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::shares::Known;
use crate::builder::{Builder, Protection};
use crate::local::{Early, Hold, judge};
use crate::pool::{NoAnswer, Pool, Service};
use crate::request::Sound;
use crate::shared::Shared;
use crate::shed::SheddingMode;
use crate::work::Reservation;
use crate::{
    Admission, CheckSettings, Decision, Denial, Meter, PressureSample, PressureSettings, Request,
    RequestCgroups, Stats, backoff, reporter, status,
};

/// Asks the quota service, meters, and reports. Cheap to clone; one a process is enough.
///
/// When the last clone, [`Admission`] and [`Meter`] is dropped, the background task reports what is left, for a few
/// seconds, and ends.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    /// The background task sees when it is dropped, with the last clone.
    _alive: oneshot::Sender<()>,
}

/// What a client is built with.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) node: String,
    pub(crate) deadline: Duration,
    pub(crate) report_interval: Duration,
    /// How long one attempt to send a report may take.
    pub(crate) report_deadline: Duration,
    pub(crate) checks: CheckSettings,
    pub(crate) pressure: PressureSettings,
}

/// The service gives its store 50 ms; its word that the store is lost, which may be a refusal, comes after that and
/// must still be heard.
const DEADLINE: Duration = Duration::from_millis(100);

impl Default for Options {
    fn default() -> Self {
        Self {
            node: String::new(),
            deadline: DEADLINE,
            report_interval: Duration::from_secs(1),
            report_deadline: Duration::from_secs(5),
            checks: CheckSettings::default(),
            pressure: PressureSettings::default(),
        }
    }
}

impl Client {
    /// Begins a client.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(
        settings: Options,
        pool: Pool,
        protection: Protection,
        runtime: &tokio::runtime::Handle,
    ) -> Self {
        let Protection { limits, calibrator, shedding, cgroups } = protection;
        let shared = Arc::new(Shared::new(settings, pool, limits, shedding, cgroups));
        let (alive, ended) = oneshot::channel();
        runtime.spawn(reporter::run(Arc::clone(&shared), calibrator, ended));
        Self { handle: Arc::new(Handle { shared, _alive: alive }) }
    }

    /// Asks whether a request may be executed. Answers within the deadline, whatever the network does.
    ///
    /// Refused without asking, but for one request a second: what names an account whose earlier refusal stands. Where the
    /// service does not answer, the limits that it last told are enforced on what is used on this fileserver; where none
    /// are known, the request is allowed. It is refused where the service answers that it cannot check and is set to
    /// refuse then. In [local mode](crate::CheckMode::Local) most requests of accounts that ask often are allowed by a share,
    /// without asking.
    ///
    /// The question is never sent twice, since each answer may have reserved something; but for a class that the service does not know,
    /// which is left out then.
    pub async fn admit(&self, request: &Request) -> Decision {
        let now = Instant::now();
        let deadline = now + self.shared().settings.deadline;
        let named = request.class_name();
        let Some(mut request) = self.sound(request) else {
            return Decision::Allow(Admission::new(Meter::new(None), false));
        };
        let Known { refusal, cut, reservation, wanted } = self.known(&request, now);
        if let Some(denial) = refusal {
            return Decision::Deny(self.remembered(&denial));
        }
        if !wanted.is_zero() {
            // By itself, so that a request that is given up takes no share with it.
            let (rpc, payers) = (Arc::clone(request.rpc), Arc::clone(request.payers));
            tokio::spawn(self.clone().ask_for_share(rpc, payers, wanted));
        }
        if let Some(reservation) = reservation {
            self.shared().count(|stats| stats.allowed_by_share += 1);
            let meter = self.begin(&request, true, now, Some(reservation), None);
            return Decision::Allow(Admission::new(meter, true));
        }
        let price = (!cut.is_empty()).then(|| self.expect(&mut request, &cut, now));
        let (used_here, early) = {
            let mut usage = self.shared().usage.lock();
            let used_here = usage.here(request.payers, now);
            let hold = price.and_then(|price| Hold::reserve(&mut usage, request.payers, price, now));
            (used_here, Early::new(&self.shared().usage, request.payers, hold))
        };
        let mut answer = self.ask(&request, used_here, deadline).await;
        if let Err(NoAnswer::Status(status)) = &answer
            && status::names(status, "class")
        {
            // Nothing was reserved. A class that the service does not know is that of requests which name none.
            self.shared().classes.is_not_known(named, &self.handle.shared);
            request.class = "";
            answer = self.ask(&request, used_here, deadline).await;
        }
        let now = Instant::now();
        match self.read(answer, &request, now) {
            Ok(Answer::Deny(denial)) => {
                self.shared().is_back(now);
                self.shared().checked(now, |stats| stats.denied += 1);
                Decision::Deny(denial)
            }
            Ok(Answer::CannotCheck { retry_after }) => {
                self.shared().local.lock().unchecked();
                self.shared().refused_unavailable();
                Decision::Deny(Denial::unavailable(retry_after, &self.shared().settings.node))
            }
            Ok(Answer::Allow { reservation, shadow }) => {
                let hold = if self.shared().is_back(now) {
                    drop(early);
                    match self.judge(&request, now) {
                        Ok(judged) => judged.hold,
                        Err(denial) => {
                            // What the service has reserved is given back.
                            drop(self.begin(&request, false, now, reservation, None));
                            self.shared().checked(now, |stats| stats.denied_locally += 1);
                            return Decision::Deny(denial);
                        }
                    }
                } else {
                    early.kept()
                };
                self.shared().checked(now, |stats| {
                    stats.allowed += 1;
                    stats.shadow += u64::from(shadow);
                });
                Decision::Allow(Admission::new(self.begin(&request, true, now, reservation, hold), true))
            }
            Err(reason) => {
                drop(early);
                self.without_the_service(&request, &reason, now)
            }
        }
    }

    /// Decides by what is known here.
    fn without_the_service(&self, request: &Sound<'_>, reason: &str, now: Instant) -> Decision {
        let refusal = {
            let mut local = self.shared().local.lock();
            local.unchecked();
            local.refusal_unasked(request.payers.accounts(), now)
        };
        if let Some(denial) = refusal {
            self.shared().unchecked(reason, now, |_| ());
            return Decision::Deny(self.remembered(&denial));
        }
        match self.judge(request, now) {
            Ok(Judged { hold, is_known }) => {
                self.shared().unchecked(reason, now, |stats| {
                    stats.allowed_unchecked += 1;
                    stats.allowed_locally += u64::from(is_known);
                });
                Decision::Allow(Admission::new(self.begin(request, true, now, None, hold), false))
            }
            Err(denial) => {
                self.shared().unchecked(reason, now, |stats| stats.denied_locally += 1);
                Decision::Deny(denial)
            }
        }
    }

    /// Expects of a request at least what requests of its accounts that are cut cost here lately, of the resources for which
    /// they are: else as many as are asked at once would pass before the first has been charged. Returns its price, nothing
    /// where that is not known.
    fn expect(&self, request: &mut Sound<'_>, cut: &[(Account, Resource)], now: Instant) -> Cost {
        let learned = self.shared().usage.lock().dearest(cut, now);
        let local = self.shared().local.lock();
        request.expect(learned, |rpc| local.price(rpc));
        request.price_or(|rpc| local.price(rpc)).unwrap_or_default()
    }

    /// Compares what was used here with the last known limits, and reserves the price here.
    fn judge(&self, request: &Sound<'_>, now: Instant) -> Result<Judged, Denial> {
        let (limits, price) = {
            let local = self.shared().local.lock();
            (
                local.limits(request.payers.accounts()),
                request.price_or(|rpc| local.price(rpc)).unwrap_or_default(),
            )
        };
        let is_known = !limits.is_empty();
        let hold = judge(&mut self.shared().usage.lock(), request.payers, limits, price, now);
        match hold {
            Ok(hold) => Ok(Judged { hold, is_known }),
            Err(breach) => Err(spread(&Denial::local(&breach, &self.shared().settings.node))),
        }
    }

    fn remembered(&self, denial: &Denial) -> Denial {
        self.shared().count(|stats| stats.denied_remembered += 1);
        spread(denial)
    }

    /// Where a cgroup can be made for each request, if the settings name a place.
    pub fn request_cgroups(&self) -> Option<&RequestCgroups> {
        self.shared().request_cgroups.as_ref()
    }

    /// Whether requests in flight are chosen to be ended, be it only in the log.
    pub(crate) fn sheds(&self) -> bool {
        self.shared().shedding.mode != SheddingMode::Off
    }

    /// Meters work that is not asked about, such as what belongs to an admitted request.
    pub fn meter(&self, request: &Request) -> Meter {
        let begin = |request: Sound<'_>| self.begin(&request, false, Instant::now(), None, None);
        self.sound(request).map_or(Meter::new(None), begin)
    }

    /// How loaded this machine was when it was last looked at, which is each second; none before that.
    pub fn pressure(&self) -> Option<Arc<PressureSample>> {
        self.shared().pressure.borrow().clone()
    }

    /// What the client did since it was built.
    pub fn stats(&self) -> Stats {
        self.shared().stats()
    }

    /// Reports what has been metered until now, at the end of the process. Returns whether all of it was
    /// acknowledged or given up within this time.
    pub async fn shutdown(&self, within: Duration) -> bool {
        let drained = async {
            // Half of the time is left to report what was metered, even where nothing more can be sampled.
            self.shared().collect(within / 2).await;
            self.shared().drained().await;
        };
        tokio::time::timeout(within, drained).await.is_ok()
    }

    /// Asks about a request, once.
    async fn ask(
        &self,
        request: &Sound<'_>,
        used_here: v1::UsedHere,
        deadline: Instant,
    ) -> Result<v1::CheckResponse, NoAnswer> {
        let check = || request.to_check(&self.shared().settings.node, used_here);
        let call = |mut client: Service, mut check: tonic::Request<v1::CheckRequest>| {
            request.trace.write(check.metadata_mut());
            async move { client.check(check).await }
        };
        self.shared().pool.ask(check, deadline, call).await
    }

    /// An answer as it is understood, of which what is to be known here is kept; or why it cannot be.
    fn read(
        &self,
        answer: Result<v1::CheckResponse, NoAnswer>,
        request: &Sound<'_>,
        now: Instant,
    ) -> Result<Answer, String> {
        let accounts = request.payers.accounts();
        // A part of the limits says nothing of requests of other classes.
        let is_partial = self.shared().classes.is_partial(request.class);
        let response = match answer {
            Ok(response) => response,
            Err(error) => {
                let refusal =
                    if let NoAnswer::Status(status) = &error { status::refusal(status) } else { None };
                let refused = refusal.map(|retry_after| Answer::CannotCheck { retry_after });
                return refused.ok_or_else(|| error.to_string());
            }
        };
        match response.decision() {
            check_response::Decision::Deny => {
                let denial = Denial::new(&response, &self.shared().settings.node)
                    .map_err(|invalid| format!("the answer is malformed: {invalid}"))?;
                if !is_partial {
                    self.shared().local.lock().denied(accounts, &response.standings, &denial, now);
                }
                Ok(Answer::Deny(denial))
            }
            check_response::Decision::Allow if response.checked => {
                let reserved = Cost::try_from(response.reserved.unwrap_or_default())
                    .map_err(|invalid| format!("the answer is malformed: reserved.{invalid}"))?;
                let rpc = request.priced_by_table();
                let standings = if is_partial { &[][..] } else { &response.standings };
                self.shared().local.lock().allowed(accounts, standings, rpc, reserved);
                let reservation = Reservation::new(response.reservation, reserved);
                Ok(Answer::Allow { reservation, shadow: response.shadow.is_some() })
            }
            check_response::Decision::Allow => Err("the service could not ask its store".to_owned()),
            check_response::Decision::Unspecified => Err("the answer has no decision".to_owned()),
        }
    }

    /// What of a request the service takes; none where nobody is left to be charged.
    fn sound<'a>(&self, request: &'a Request) -> Option<Sound<'a>> {
        let (mut request, faults) = request.sound();
        if self.shared().classes.is_unknown(request.class) {
            request.class = "";
        }
        if !faults.is_empty() {
            self.shared().invalid(&faults);
        }
        if request.payers.is_empty() {
            self.shared().without_account();
            return None;
        }
        Some(request)
    }

    /// Begins to meter a request that is `admitted`, or work that is not asked about.
    fn begin(
        &self,
        request: &Sound<'_>,
        admitted: bool,
        now: Instant,
        reservation: Option<Reservation>,
        hold: Option<Hold>,
    ) -> Meter {
        let shared = self.shared();
        Meter::new(Some(shared.begin(self.clone(), request, admitted, now, reservation, hold)))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.handle.shared
    }
}

/// Allowed by what is known here.
struct Judged {
    hold: Option<Hold>,
    /// Whether a limit was known.
    is_known: bool,
}

enum Answer {
    Allow { reservation: Option<Reservation>, shadow: bool },
    Deny(Denial),
    CannotCheck { retry_after: Duration },
}

/// What one of many tells who are refused in the same moment.
fn spread(denial: &Denial) -> Denial {
    denial.again(backoff::spread(denial.retry_after(), fastrand::f64()))
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("settings", &self.shared().settings).finish_non_exhaustive()
    }
}
