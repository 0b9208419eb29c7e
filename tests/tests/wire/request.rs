//! Requests as plain data, whichever protocol carries them.

/// The accounts of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Names {
    pub(crate) repo: Option<&'static str>,
    pub(crate) user: Option<&'static str>,
    pub(crate) ip: Option<&'static str>,
}

pub(crate) const NOBODY: Names = Names { repo: None, user: None, ip: None };

pub(crate) const fn repo(id: &'static str) -> Names {
    NOBODY.repo(id)
}

pub(crate) const fn user(id: &'static str) -> Names {
    NOBODY.user(id)
}

pub(crate) const fn ip(id: &'static str) -> Names {
    NOBODY.ip(id)
}

impl Names {
    pub(crate) const fn repo(self, id: &'static str) -> Self {
        Self { repo: Some(id), ..self }
    }

    pub(crate) const fn user(self, id: &'static str) -> Self {
        Self { user: Some(id), ..self }
    }

    pub(crate) const fn ip(self, id: &'static str) -> Self {
        Self { ip: Some(id), ..self }
    }
}

/// Microseconds of CPU, byte-seconds of memory, bytes over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) cpu: u64,
    pub(crate) memory: u64,
    pub(crate) network: u64,
}

pub(crate) const NOTHING: Amounts = Amounts { cpu: 0, memory: 0, network: 0 };

/// Seconds of CPU.
pub(crate) fn cpu(seconds: f64) -> Amounts {
    Amounts { cpu: (seconds * 1e6).round() as u64, ..NOTHING }
}

/// Byte-seconds of memory.
pub(crate) const fn memory(byte_seconds: u64) -> Amounts {
    Amounts { memory: byte_seconds, ..NOTHING }
}

/// Bytes over the network.
pub(crate) const fn network(bytes: u64) -> Amounts {
    Amounts { network: bytes, ..NOTHING }
}

#[derive(Clone, Debug)]
pub(crate) enum Request {
    Check(Check),
    Report(Report),
    /// The kind is a name, so that unknown ones can be sent.
    Standing {
        kind: &'static str,
        id: String,
    },
    Backoff {
        accounts: Names,
        attempt: u32,
    },
    /// Of several sets of accounts.
    Backoffs(Vec<(Names, u32)>),
    Pressure(Pressure),
    /// One of this name, or all.
    Nodes(Option<&'static str>),
    Top(Top),
    Denials(Denials),
    PutOverride(PutOverride),
    GetOverride(Named),
    DeleteOverride(Named),
    ListOverrides,
    PutMode(PutMode),
    DeleteMode(Place),
    ListModes,
}

/// Who is heaviest; names of kinds and resources are texts, so that unknown ones can be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Top {
    pub(crate) kind: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) node: String,
    pub(crate) limit: Option<u32>,
}

pub(crate) fn top(kind: &'static str, resource: &'static str) -> Top {
    Top { kind, resource, ..Top::default() }
}

impl Top {
    pub(crate) fn on(self, node: &str) -> Self {
        Self { node: node.to_owned(), ..self }
    }

    pub(crate) fn limit(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// What was denied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Denials {
    pub(crate) since_seconds: Option<f64>,
    /// Empty: all.
    pub(crate) kind: &'static str,
    pub(crate) limit: Option<u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Pressure {
    pub(crate) node: String,
    pub(crate) cpu: Option<f64>,
    pub(crate) memory: Option<f64>,
    pub(crate) oom_kill: bool,
    /// Thousandths of a core.
    pub(crate) cores: Option<u64>,
    /// How much memory the node has, in bytes.
    pub(crate) bytes: Option<u64>,
    pub(crate) active_users: Option<u32>,
    pub(crate) heaviest: Vec<Heavy>,
}

#[derive(Clone, Debug)]
pub(crate) struct Heavy {
    /// A name, so that unknown ones can be sent.
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) used: Amounts,
    pub(crate) recent: Option<Amounts>,
}

pub(crate) fn pressure(node: &str) -> Pressure {
    Pressure { node: node.to_owned(), ..Pressure::default() }
}

impl Pressure {
    pub(crate) fn cpu(self, share: f64) -> Self {
        Self { cpu: Some(share), ..self }
    }

    pub(crate) fn heavy(mut self, kind: &'static str, id: &str, used: Amounts) -> Self {
        self.heaviest.push(Heavy { kind, id: id.to_owned(), used, recent: None });
        self
    }

    /// The same of the last one, in the last ten seconds.
    pub(crate) fn of_which_recent(mut self, recent: Amounts) -> Self {
        self.heaviest.last_mut().expect("an account").recent = Some(recent);
        self
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    pub(crate) accounts: Names,
    pub(crate) node: String,
    pub(crate) rpc: String,
    pub(crate) class: String,
    pub(crate) price: Option<Amounts>,
    /// Of the user on the node, of CPU alone.
    pub(crate) user_used_here: Option<u64>,
    pub(crate) share_wanted: Option<Amounts>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) source: String,
    pub(crate) sequence: u64,
    pub(crate) held_seconds: f64,
    pub(crate) charges: Vec<Charge>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Charge {
    pub(crate) accounts: Names,
    pub(crate) cost: Amounts,
    pub(crate) age_seconds: f64,
    pub(crate) reservation: Carried,
    pub(crate) release: Option<Amounts>,
    /// Empty: not told.
    pub(crate) rpc: String,
    pub(crate) finished: Option<Finished>,
}

/// A request that has finished: how long it ran, and what it cost in all where that is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) wall_seconds: f64,
    pub(crate) total: Option<Amounts>,
}

/// What a charge carries as its reservation.
#[derive(Clone, Debug, Default)]
pub(crate) enum Carried {
    #[default]
    Nothing,
    /// What the last allow of the case carried.
    Last,
    Text(String),
}

pub(crate) fn check(accounts: Names) -> Check {
    Check { accounts, ..Check::default() }
}

/// A check that reserves nothing.
pub(crate) fn ask(accounts: Names) -> Check {
    check(accounts).price(NOTHING)
}

impl Check {
    pub(crate) fn price(self, price: Amounts) -> Self {
        Self { price: Some(price), ..self }
    }

    pub(crate) fn on(self, node: &str) -> Self {
        Self { node: node.to_owned(), ..self }
    }

    pub(crate) fn user_used_here(self, cpu_micros: u64) -> Self {
        Self { user_used_here: Some(cpu_micros), ..self }
    }

    pub(crate) fn wants(self, share: Amounts) -> Self {
        Self { share_wanted: Some(share), ..self }
    }

    pub(crate) fn rpc(self, rpc: &str) -> Self {
        Self { rpc: rpc.to_owned(), ..self }
    }
}

/// A report of one charge.
pub(crate) fn spend(accounts: Names, cost: Amounts) -> Report {
    Report::of([charge(accounts, cost)])
}

pub(crate) fn charge(accounts: Names, cost: Amounts) -> Charge {
    Charge { accounts, cost, ..Charge::default() }
}

impl Report {
    pub(crate) fn of(charges: impl IntoIterator<Item = Charge>) -> Self {
        Self { charges: charges.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn marked(self, source: &str, sequence: u64) -> Self {
        Self { source: source.to_owned(), sequence, ..self }
    }

    pub(crate) fn held(self, held_seconds: f64) -> Self {
        Self { held_seconds, ..self }
    }
}

impl Charge {
    pub(crate) fn aged(self, age_seconds: f64) -> Self {
        Self { age_seconds, ..self }
    }

    pub(crate) fn with_last(self) -> Self {
        Self { reservation: Carried::Last, ..self }
    }

    pub(crate) fn with(self, reservation: &str) -> Self {
        Self { reservation: Carried::Text(reservation.to_owned()), ..self }
    }

    pub(crate) fn of_rpc(self, rpc: &str) -> Self {
        Self { rpc: rpc.to_owned(), ..self }
    }

    pub(crate) fn finished(self, wall_seconds: f64, total: Option<Amounts>) -> Self {
        Self { finished: Some(Finished { wall_seconds, total }), ..self }
    }

    pub(crate) fn releases(self, amounts: Amounts) -> Self {
        Self { release: Some(amounts), ..self }
    }
}

pub(crate) fn standing_of(kind: &'static str, id: &str) -> Request {
    Request::Standing { kind, id: id.to_owned() }
}

pub(crate) fn backoff(accounts: Names, attempt: u32) -> Request {
    Request::Backoff { accounts, attempt }
}

pub(crate) fn backoffs(sets: impl IntoIterator<Item = (Names, u32)>) -> Request {
    Request::Backoffs(sets.into_iter().collect())
}

impl From<Check> for Request {
    fn from(check: Check) -> Self {
        Self::Check(check)
    }
}

impl From<Report> for Request {
    fn from(report: Report) -> Self {
        Self::Report(report)
    }
}

impl From<Top> for Request {
    fn from(top: Top) -> Self {
        Self::Top(top)
    }
}

impl From<Denials> for Request {
    fn from(denials: Denials) -> Self {
        Self::Denials(denials)
    }
}

impl From<Pressure> for Request {
    fn from(pressure: Pressure) -> Self {
        Self::Pressure(pressure)
    }
}

/// An account by its kind, a name, so that unknown ones can be sent.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) kind: &'static str,
    pub(crate) id: String,
}

#[derive(Clone, Debug)]
pub(crate) struct PutOverride {
    pub(crate) of: Named,
    pub(crate) word: Word,
    pub(crate) reason: String,
    pub(crate) expires_in_seconds: Option<f64>,
}

/// What is said of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Nothing,
    /// In thousandths.
    Weight(u32),
    /// A limit of CPU alone, in microseconds.
    Cpu(u64),
    Exempt,
    Blocked,
}

pub(crate) fn put(kind: &'static str, id: &str, word: Word) -> PutOverride {
    let of = Named { kind, id: id.to_owned() };
    PutOverride { of, word, reason: "why".to_owned(), expires_in_seconds: None }
}

impl PutOverride {
    pub(crate) fn reason(self, reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..self }
    }

    pub(crate) fn expires(self, seconds: f64) -> Self {
        Self { expires_in_seconds: Some(seconds), ..self }
    }
}

pub(crate) fn get_override(kind: &'static str, id: &str) -> Request {
    Request::GetOverride(Named { kind, id: id.to_owned() })
}

pub(crate) fn delete_override(kind: &'static str, id: &str) -> Request {
    Request::DeleteOverride(Named { kind, id: id.to_owned() })
}

pub(crate) fn list_overrides() -> Request {
    Request::ListOverrides
}

impl From<PutOverride> for Request {
    fn from(put: PutOverride) -> Self {
        Self::PutOverride(put)
    }
}

/// A part of the system: a node, a kind, both, or neither; each empty where it is not named.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) node: String,
    pub(crate) kind: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) struct PutMode {
    pub(crate) of: Place,
    /// A name, so that unknown ones can be sent.
    pub(crate) mode: &'static str,
    pub(crate) reason: String,
}

pub(crate) fn set_mode(node: &str, kind: &'static str, mode: &'static str) -> PutMode {
    PutMode { of: Place { node: node.to_owned(), kind }, mode, reason: "why".to_owned() }
}

impl PutMode {
    pub(crate) fn reason(self, reason: &str) -> Self {
        Self { reason: reason.to_owned(), ..self }
    }
}

pub(crate) fn delete_mode(node: &str, kind: &'static str) -> Request {
    Request::DeleteMode(Place { node: node.to_owned(), kind })
}

impl From<PutMode> for Request {
    fn from(put: PutMode) -> Self {
        Self::PutMode(put)
    }
}
