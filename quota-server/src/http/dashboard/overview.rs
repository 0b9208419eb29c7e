use axum::extract::State;
use axum::response::Response;
use quota_core::{Kind, Mode, Resource};

use super::super::Http;
use super::failed::Failed;
use super::html::Column::{Number, Text};
use super::view::{View, Wants, show};
use super::words::Known;
use super::{denials, history_plot, html, top, words};
use crate::history::{History, Look};
use crate::quota::{DenialReport, DenialsRequest, Label, NodeStanding, QuotaError, TopRequest};

/// Of who is heaviest, and who is refused, so many are shown at a glance.
const FEW: usize = 5;

/// The most of those who are cut that are shown.
const MOST_CUT: usize = 50;

pub(super) async fn page(State(http): State<Http>, wants: Wants) -> Result<Response, Failed> {
    show(http, wants, Overview).await
}

struct Overview;

impl View for Overview {
    fn title(&self) -> String {
        "Overview".to_owned()
    }

    fn place(&self) -> &'static str {
        "/"
    }

    async fn live(&self, http: &Http) -> Result<String, QuotaError> {
        let (quota, everywhere) = (&http.quota, Label::default());
        let heaviest =
            TopRequest { kind: Kind::User, resource: Resource::Cpu, node: Label::default(), limit: FEW };
        let denials = DenialsRequest {
            since: DenialsRequest::DEFAULT_SINCE,
            kind: None,
            limit: DenialsRequest::MOST as usize,
        };
        let (nodes, overrides, heaviest, denials) = tokio::try_join!(
            quota.list_nodes(&everywhere),
            quota.list_overrides(),
            quota.top(heaviest),
            quota.list_denials(denials),
        )?;
        let known = Known::new(&overrides, &nodes, quota.window);
        let refused = denials::rows(&denials, Mode::Enforce, &known);
        Ok(format!(
            "{}<h2>Fileservers</h2>\n{}<div class=\"columns\">\n<section>\n<h2>Heaviest users now, by CPU</h2>\n{}\
             <p><a href=\"/dashboard/top\">All kinds and resources</a></p>\n</section>\n<section>\n\
             <h2>Refused in the last hour</h2>\n{}\
             <p><a href=\"/dashboard/denials\">All, and what would have been refused</a></p>\n</section>\n</div>\n\
             <h2>Who is cut</h2>\n{}",
            glance(&nodes, &denials, overrides.len()),
            fileservers(&nodes, &http.history),
            top::table(&heaviest, quota.window),
            html::table(
                &[Text("Account"), Text("Why"), Number("Times")],
                refused.take(FEW).map(|denial| vec![denial.account, denial.why, denial.count]),
                "Nobody was refused."
            ),
            cut(&nodes),
        ))
    }
}

/// The figures that say whether anything is to be looked at.
fn glance(nodes: &[NodeStanding], denials: &DenialReport, overrides: usize) -> String {
    let pressures = nodes.iter().flat_map(|node| {
        let told = node.report.pressure.iter();
        told.filter_map(move |(resource, pressure)| Some(((*pressure)?, resource, &node.name)))
    });
    let hottest = pressures.max_by_key(|(pressure, ..)| *pressure);
    let pressure = hottest.map_or_else(
        || "none told".to_owned(),
        |(pressure, resource, node)| {
            let percent = 100.0 * f64::from(pressure);
            format!("{percent:.0} % <small>{resource} on {}</small>", html::name(node))
        },
    );
    let refused = |mode| {
        let counts = denials.denials.iter().filter(|denial| denial.mode == mode).map(|denial| denial.count);
        let at_least = if denials.missed > 0 { "at least " } else { "" };
        format!("{at_least}{}", counts.sum::<u64>())
    };
    let cut: usize = nodes.iter().map(|node| node.accounts.len()).sum();
    let figures = [
        ("Fileservers", nodes.len().to_string()),
        ("Highest pressure", pressure),
        ("Limits cut", cut.to_string()),
        ("Refused in the last hour", refused(Mode::Enforce)),
        ("Refused in shadow", refused(Mode::Shadow)),
        ("Overrides", overrides.to_string()),
    ];
    let figures = figures.map(|(name, figure)| format!("<div><dt>{name}</dt><dd>{figure}</dd></div>\n"));
    format!("<dl class=\"glance\">\n{}</dl>\n", figures.concat())
}

fn fileservers(nodes: &[NodeStanding], history: &History) -> String {
    let rows = nodes.iter().map(|node| {
        let plots = Resource::ALL.map(|resource| {
            let looks = history.of(&node.name, resource);
            let is_told = looks.iter().any(|look| *look != Look::default());
            if is_told { history_plot::history(resource.as_str(), &looks) } else { String::new() }
        });
        vec![
            html::name(&node.name),
            format!("{} ago", words::duration(node.seen_ago)),
            format!("<div class=\"plots\">{}</div>", plots.concat()),
            node.accounts.len().to_string(),
        ]
    });
    let columns =
        [Text("Fileserver"), Text("Seen"), Text("Pressure and lowest limit, last 15 minutes"), Number("Cut")];
    html::table(&columns, rows, "No fileserver has told its pressure.")
}

fn cut(nodes: &[NodeStanding]) -> String {
    let all = nodes.iter().flat_map(|node| node.accounts.iter().map(move |cut| (node, cut)));
    let more = all.clone().count().saturating_sub(MOST_CUT);
    let rows = all.take(MOST_CUT).map(|(node, (limit, explanation))| {
        vec![html::account_on(&limit.account, &node.name), html::name(&explanation.why.to_string())]
    });
    let table = html::table(&[Text("Account"), Text("Why")], rows, "Nobody is cut.");
    if more > 0 { format!("{table}<p>And {more} more.</p>\n") } else { table }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_fileservers_it_says_so() {
        assert!(fileservers(&[], &History::default()).contains("No fileserver has told its pressure."));
        assert!(cut(&[]).contains("Nobody is cut."));
        let denials = DenialReport { since: DenialsRequest::DEFAULT_SINCE, denials: Vec::new(), missed: 7 };
        let glance = glance(&[], &denials, 3);
        assert!(glance.contains("none told") && glance.contains("at least 0"), "{glance}");
    }
}
