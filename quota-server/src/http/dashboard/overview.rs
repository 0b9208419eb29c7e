use axum::extract::State;
use axum::response::Response;
use quota_core::Resource;

use super::super::Http;
use super::super::problem::Problem;
use super::{html, plot};
use crate::pressures::{KEPT, Pressures};
use crate::quota::{Label, NodeStanding, QuotaError};

pub(super) async fn page(State(http): State<Http>) -> Result<Response, Problem> {
    Ok(super::page("Overview", &main(&http).await?))
}

/// What is on the page; it is sent anew while somebody looks.
pub(super) async fn main(http: &Http) -> Result<String, QuotaError> {
    let nodes = http.quota.list_nodes(&Label::default()).await?;
    Ok(render(&nodes, &http.pressures))
}

fn render(nodes: &[NodeStanding], pressures: &Pressures) -> String {
    let rows = nodes.iter().map(|node| {
        let plots = Resource::ALL.map(|resource| {
            let told = pressures.of(&node.name, resource);
            plot::line(resource.as_str(), &told, KEPT)
        });
        let seen = node.seen_ago.as_secs();
        vec![
            html::escape(&node.name),
            format!("{seen} s ago"),
            plots.concat(),
            node.accounts.len().to_string(),
        ]
    });
    let nodes_table = html::table(
        &["Fileserver", "Seen", "Pressure of the last 15 minutes", "Cut"],
        rows,
        "No fileserver has told its pressure.",
    );
    let cut = nodes.iter().flat_map(|node| {
        node.accounts.iter().map(move |(limit, explanation)| {
            let account = &limit.account;
            let (kind, id) = (account.kind().as_str(), account.id());
            let node_name = html::in_path(&node.name);
            vec![
                format!(
                    "<a href=\"/dashboard/accounts/{kind}/{}?node={node_name}\">{kind} {}</a>",
                    html::in_path(id),
                    html::escape(id)
                ),
                html::escape(&explanation.why.to_string()),
            ]
        })
    });
    let cut_table = html::table(&["Account", "Why"], cut, "Nobody is cut.");
    format!("<h1>Fileservers</h1>\n{nodes_table}<h2>Who is cut</h2>\n{cut_table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_fileservers_it_says_so() {
        let page = render(&[], &Pressures::default());
        assert!(
            page.contains("No fileserver has told its pressure.") && page.contains("Nobody is cut."),
            "{page}"
        );
    }
}
