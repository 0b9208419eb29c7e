use axum::extract::State;
use axum::response::Response;
use quota_core::Mode;

use super::super::Http;
use super::super::denials::DenialsParams;
use super::super::extract::Params;
use super::failed::Failed;
use super::html::Column::{Number, Text};
use super::view::{View, Wants, show};
use super::words::Known;
use super::{html, words};
use crate::quota::{DenialReport, DenialsRequest, Label, QuotaError};

pub(super) async fn page(
    State(http): State<Http>,
    Params(params): Params<DenialsParams>,
    wants: Wants,
) -> Result<Response, Failed> {
    // A form whose kind is left open sends it empty.
    let params = DenialsParams { kind: params.kind.filter(|kind| !kind.is_empty()), ..params };
    show(http, wants, Refused(params.read().map_err(QuotaError::from)?)).await
}

struct Refused(DenialsRequest);

impl View for Refused {
    fn title(&self) -> String {
        "Who is refused, and why".to_owned()
    }

    fn place(&self) -> &'static str {
        "/dashboard/denials"
    }

    fn before(&self) -> String {
        let kinds = [&[("", "all kinds")], html::KINDS].concat();
        let times = [("300", "5 minutes"), ("3600", "hour"), ("21600", "6 hours"), ("86400", "day")];
        format!(
            "<form class=\"line\">{}<label>in the last {}</label><button>Show</button></form>\n",
            html::select("kind", "Kind", &kinds, self.0.kind.map_or("", |kind| kind.as_str())),
            html::select("since_seconds", "Time", &times, &self.0.since.as_secs().to_string()),
        )
    }

    async fn live(&self, http: &Http) -> Result<String, QuotaError> {
        let (quota, everywhere) = (&http.quota, Label::default());
        let (nodes, overrides, report) = tokio::try_join!(
            quota.list_nodes(&everywhere),
            quota.list_overrides(),
            quota.list_denials(self.0.clone()),
        )?;
        let known = Known::new(&overrides, &nodes, quota.window);
        let table = |mode, none| {
            let rows = rows(&report, mode, &known)
                .map(|Row { account, why, rpc, count, last }| vec![account, why, rpc, count, last]);
            let columns = [Text("Account"), Text("Why"), Text("RPC"), Number("Times"), Number("Last")];
            html::table(&columns, rows, none)
        };
        let missed = match report.missed {
            0 => String::new(),
            missed => format!("<p>Each may have been refused up to {missed} times more.</p>\n"),
        };
        Ok(format!(
            "<h2>Refused</h2>\n{}<h2>Would have been refused</h2>\n\
             <p>By limits in shadow, which are compared and not enforced.</p>\n{}{missed}",
            table(Mode::Enforce, "Nobody was refused."),
            table(Mode::Shadow, "Nobody would have been."),
        ))
    }
}

/// A kind of denial, in cells.
pub(super) struct Row {
    pub(super) account: String,
    pub(super) why: String,
    rpc: String,
    pub(super) count: String,
    last: String,
}

/// What a report has of a mode, most often first.
pub(super) fn rows(report: &DenialReport, mode: Mode, known: &Known<'_>) -> impl Iterator<Item = Row> {
    report.denials.iter().filter(move |denial| denial.mode == mode).map(move |denial| Row {
        account: html::account(&denial.account),
        why: html::name(&known.why(&denial.account, denial.resource)),
        rpc: html::rpc(denial.rpc.as_deref()),
        count: denial.count.to_string(),
        last: format!("{} ago", words::duration(denial.last)),
    })
}
