use axum::extract::State;
use axum::http::Extensions;
use axum::response::{IntoResponse, Redirect, Response};
use quota_core::{Bound, Comparison, Here, Limit, Mode, Override, Resource, Window, WindowLength};
use serde::Deserialize;

use super::super::Http;
use super::super::extract::{Params, Segments};
use super::super::standing::{self, StandingParams};
use super::account_plot::Minute;
use super::failed::Failed;
use super::html::Column::{Number, Text};
use super::view::{View, Wants, show};
use super::{html, overrides, words};
use crate::quota::{DenialReport, DenialsRequest, Label, QuotaError, Standing, StandingRequest};

/// An account, as a form names it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Named {
    pub(super) kind: String,
    pub(super) id: String,
}

/// The form of the page's head, which knows no paths.
pub(super) async fn find(Params(Named { kind, id }): Params<Named>) -> Response {
    Redirect::to(&format!("/dashboard/accounts/{}/{}", html::in_path(&kind), html::in_path(&id)))
        .into_response()
}

pub(super) async fn page(
    State(http): State<Http>,
    Segments((kind, id)): Segments<(String, String)>,
    Params(params): Params<StandingParams>,
    extensions: Extensions,
    wants: Wants,
) -> Result<Response, Failed> {
    let asked = standing::read(&http.quota, &kind, &id, params).map_err(QuotaError::from)?;
    show(http, wants, OfAccount { asked, may_change: overrides::may_change(&extensions) }).await
}

struct OfAccount {
    asked: StandingRequest,
    may_change: bool,
}

impl View for OfAccount {
    fn title(&self) -> String {
        self.asked.account.to_string()
    }

    fn place(&self) -> &'static str {
        ""
    }

    async fn live(&self, http: &Http) -> Result<String, QuotaError> {
        let (quota, everywhere) = (&http.quota, Label::default());
        let account = &self.asked.account;
        let denials = DenialsRequest {
            since: DenialsRequest::DEFAULT_SINCE,
            kind: Some(account.kind()),
            limit: DenialsRequest::MOST as usize,
        };
        let ((standing, window), nodes, overrides, mut denials) = tokio::try_join!(
            quota.standing_in_time(self.asked.clone()),
            quota.list_nodes(&everywhere),
            quota.list_overrides(),
            quota.list_denials(denials),
        )?;
        denials.denials.retain(|denial| denial.account == *account);
        let said = overrides.into_iter().filter(|said| said.account == *account).collect::<Vec<_>>();
        let cuts = nodes.iter().flat_map(|node| node.accounts.iter().map(move |cut| (node, cut)));
        let cuts =
            cuts.filter(|(_, (limit, _))| limit.account == *account).map(|(node, (_, explanation))| {
                let why = html::name(&explanation.why.to_string());
                format!(
                    "<li>{why}. <a href=\"?node={}\">Compare with this fileserver</a></li>\n",
                    html::in_path(&node.name)
                )
            });
        let cuts: String = cuts.collect();
        let cuts = if cuts.is_empty() { cuts } else { format!("<ul>\n{cuts}</ul>\n") };
        Ok(format!(
            "<p class=\"state{}\">{}</p>\n{cuts}<div class=\"minutes\">\n{}</div>\n{}\
             <h2>What operators say</h2>\n{}{}<h2>Refused in the last hour</h2>\n{}",
            if standing.over { " over" } else { "" },
            state(&standing),
            Resource::ALL
                .map(|resource| minute(resource, &standing, &window, &self.asked.node, quota.window))
                .concat(),
            on_node(&standing, &self.asked.node, quota.window),
            overrides::table(&said, self.may_change, "Nothing is said of it.", quota.window),
            self.link_to_form(),
            refusals(&denials),
        ))
    }
}

impl OfAccount {
    fn link_to_form(&self) -> String {
        if !self.may_change {
            return String::new();
        }
        let (kind, id) = (self.asked.account.kind(), html::in_path(self.asked.account.id()));
        format!(
            "<p><a href=\"/dashboard/overrides?kind={kind}&amp;id={id}#say\">Block, exempt, or set limits</a></p>\n"
        )
    }
}

fn state(standing: &Standing) -> String {
    match standing.overriding.as_ref().map(|said| said.word) {
        Some(Override::Blocked) => "Blocked.".to_owned(),
        Some(Override::Exempt) => "Exempt: it is compared with nothing.".to_owned(),
        _ if standing.over => {
            let seconds = standing.retry_after.as_secs_f64().ceil();
            format!("Over its limit; below it in {seconds} s if it uses nothing more.")
        }
        _ => "Below its limits.".to_owned(),
    }
}

/// The last minute of a resource, second by second, with the lower of its limits: everywhere, and on the fileserver that is
/// asked about.
fn minute(
    resource: Resource,
    standing: &Standing,
    window: &Window,
    node: &Label,
    length: WindowLength,
) -> String {
    let (used, Comparison { ceiling: Bound { limit: everywhere, mode }, here }) =
        standing.resources[resource];
    let here = here.map(|here| here.limit).filter(|here| node.as_deref().is_some() && *here < everywhere);
    let limit = here.unwrap_or(everywhere);
    let at = match limit {
        Limit::At(amount) => Some(amount),
        Limit::Unlimited => None,
    };
    let spent = window.by_bucket(resource);
    let plot = Minute { spent: &spent, limit: at, mode };
    let there = if here.is_some() { " for what it used there" } else { "" };
    let limit = format!("limit {}{there}", words::limit(resource, limit, length));
    let limit = match mode {
        Mode::Enforce => limit,
        Mode::Shadow => format!("{limit}, in shadow"),
        Mode::Off => "not compared".to_owned(),
    };
    let peak = words::spent(resource, plot.peak(), length);
    let seconds = length.length().as_secs_f64();
    format!(
        "<figure class=\"minute\"><figcaption><span class=\"used\">{resource} <b>{}</b></span> \
         <span class=\"limit\">{limit}</span></figcaption>{}\
         <p class=\"axis\"><span>{seconds} s ago</span><span>at most {peak}</span><span>now</span></p></figure>\n",
        words::limit(resource, Limit::At(used), length),
        plot.svg(),
    )
}

/// What is compared with the limits of a fileserver, where one is asked about.
fn on_node(standing: &Standing, node: &Label, window: WindowLength) -> String {
    let rows = standing.resources.iter().filter_map(|(resource, (used, comparison))| {
        let Here { limit, used: here } = comparison.here?;
        Some(vec![
            resource.to_string(),
            words::limit(resource, Limit::At(here.of(*used)), window),
            words::limit(resource, limit, window),
        ])
    });
    let Some(name) = node.as_deref() else { return String::new() };
    let columns = [Text("Resource"), Number("Used there"), Number("Limit there")];
    let table = html::table(&columns, rows, "No limit follows the load of this fileserver.");
    format!("<h2>On {}</h2>\n{table}", html::name(name))
}

fn refusals(report: &DenialReport) -> String {
    let rows = report.denials.iter().map(|denial| {
        let what = if denial.mode == Mode::Enforce { "refused" } else { "would have been" };
        vec![
            what.to_owned(),
            denial.resource.to_string(),
            html::rpc(denial.rpc.as_deref()),
            denial.count.to_string(),
            format!("{} ago", words::duration(denial.last)),
        ]
    });
    let columns = [Text("What"), Text("Limit of"), Text("RPC"), Number("Times"), Number("Last")];
    html::table(&columns, rows, "It was not refused.")
}
