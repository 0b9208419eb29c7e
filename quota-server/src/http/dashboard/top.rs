use axum::extract::State;
use axum::response::Response;
use quota_core::{Limit, Resource, WindowLength};

use super::super::Http;
use super::super::extract::Params;
use super::super::top::TopParams;
use super::failed::Failed;
use super::html::Column::{Bar, Number, Text};
use super::view::{View, Wants, show};
use super::{html, words};
use crate::quota::{QuotaError, Top, TopRequest};

pub(super) async fn page(
    State(http): State<Http>,
    Params(params): Params<TopParams>,
    wants: Wants,
) -> Result<Response, Failed> {
    let params = TopParams {
        kind: params.kind.or_else(|| Some("user".to_owned())),
        resource: params.resource.or_else(|| Some("cpu".to_owned())),
        ..params
    };
    show(http, wants, Heaviest(params.read().map_err(QuotaError::from)?)).await
}

struct Heaviest(TopRequest);

impl View for Heaviest {
    fn title(&self) -> String {
        "Heaviest now".to_owned()
    }

    fn place(&self) -> &'static str {
        "/dashboard/top"
    }

    fn before(&self) -> String {
        let TopRequest { kind, resource, node, .. } = &self.0;
        let resources = Resource::ALL.map(|resource| (resource.as_str(), resource.as_str()));
        format!(
            "<form class=\"line\">{}{}<input name=\"node\" aria-label=\"Fileserver\" placeholder=\"all fileservers\" \
             value=\"{}\"><button>Show</button></form>\n",
            html::select("kind", "Kind", html::KINDS, kind.as_str()),
            html::select("resource", "Resource", &resources, resource.as_str()),
            html::value(node.as_str()),
        )
    }

    async fn live(&self, http: &Http) -> Result<String, QuotaError> {
        let top = http.quota.top(self.0.clone()).await?;
        Ok(table(&top, http.quota.window))
    }
}

/// The heaviest accounts, with what they used of what they may.
pub(super) fn table(top: &Top, window: WindowLength) -> String {
    let rows = top.accounts.iter().map(|consumer| {
        vec![
            html::account(&consumer.account),
            words::limit(top.resource, Limit::At(consumer.used), window),
            bar(consumer.used, consumer.limit),
            words::limit(top.resource, consumer.limit, window),
            consumer.denied.to_string(),
        ]
    });
    let columns = [Text("Account"), Number("Used"), Bar("Share"), Number("Limit"), Number("Refused")];
    html::table(&columns, rows, "Nobody has used anything in the last minute.")
}

/// How much of a limit is used.
fn bar(used: u64, limit: Limit) -> String {
    if let Limit::At(limit) = limit { html::share(used, limit) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_what_is_used_and_no_longer_than_the_limit() {
        assert!(bar(30, Limit::At(120)).contains("<path d=\"M0 0H25.0V4H0Z\"/>"));
        assert!(bar(240, Limit::At(120)).contains("<path class=\"over\" d=\"M0 0H100.0V4H0Z\"/>"));
        assert!(bar(0, Limit::At(0)).contains("class=\"over\""), "nothing may be used");
        assert_eq!(bar(30, Limit::Unlimited), "");
    }
}
