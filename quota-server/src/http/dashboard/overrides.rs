use axum::extract::State;
use axum::http::Extensions;
use axum::response::Response;
use quota_core::{Place, WindowLength};
use quota_proto::Invalid;

use super::super::Http;
use super::super::extract::Params;
use super::account::Named;
use super::failed::Failed;
use super::html::Column::Text;
use super::mode_form::ModeForm;
use super::override_form::OverrideForm;
use super::view::{View, Wants, show};
use super::{html, words};
use crate::auth::{Caller, Role};
use crate::quota::{ModeStanding, OverrideOrigin, OverrideStanding, QuotaError, override_in_words};

/// Where forms lead to when what they say is done.
pub(super) const PATH: &str = "/dashboard/overrides";

/// The page; a link may name the account that something is to be said of.
pub(super) async fn page(
    State(http): State<Http>,
    Params(Named { kind, id }): Params<Named>,
    extensions: Extensions,
    wants: Wants,
) -> Result<Response, Failed> {
    let form = OverrideForm::of(kind, id);
    show(http, wants, Overrides { may_change: may_change(&extensions), form, ..Overrides::default() }).await
}

/// Whether forms are shown to who asks.
pub(super) fn may_change(of: &Extensions) -> bool {
    of.get::<Caller>().is_some_and(|caller| caller.role.may(Role::Admin))
}

/// What operators say, and the forms to say it with, as they were filled in.
#[derive(Default)]
pub(super) struct Overrides {
    pub(super) may_change: bool,
    pub(super) form: OverrideForm,
    pub(super) modes: ModeForm,
    /// What is wrong with either.
    pub(super) wrong: Option<Wrong>,
}

/// A form that cannot be taken as it is.
pub(super) enum Wrong {
    Override(Invalid),
    Mode(Invalid),
}

impl View for Overrides {
    fn title(&self) -> String {
        "What operators say".to_owned()
    }

    fn place(&self) -> &'static str {
        PATH
    }

    async fn live(&self, http: &Http) -> Result<String, QuotaError> {
        let (overrides, modes) = tokio::try_join!(http.quota.list_overrides(), http.quota.list_modes())?;
        Ok(format!(
            "<h2>Overrides of accounts</h2>\n{}<h2>The switch</h2>\n{}",
            table(&overrides, self.may_change, "Nothing is said of any account.", http.quota.window),
            switch(&modes, self.may_change),
        ))
    }

    fn after(&self) -> String {
        if !self.may_change {
            return "<p class=\"none\">It takes the token of an admin to change this.</p>\n".to_owned();
        }
        let (of_override, of_mode) = match &self.wrong {
            Some(Wrong::Override(wrong)) => (Some(wrong), None),
            Some(Wrong::Mode(wrong)) => (None, Some(wrong)),
            None => (None, None),
        };
        format!(
            "<div class=\"columns\">\n{}{}</div>\n",
            self.form.html(of_override),
            self.modes.html(of_mode)
        )
    }
}

/// What is said of accounts; who may change it can take back what was put.
pub(super) fn table(
    overrides: &[OverrideStanding],
    may_change: bool,
    none: &str,
    window: WindowLength,
) -> String {
    let rows = overrides.iter().map(|said| {
        let by = match said.origin {
            OverrideOrigin::Api => html::name(&said.author),
            OverrideOrigin::File => "configuration file".to_owned(),
        };
        let mut row = vec![
            html::account(&said.account),
            html::escape(&override_in_words(&said.word, window)),
            html::name(&said.reason),
            by,
            said.expires_in
                .map_or_else(|| "never".to_owned(), |left| format!("in {}", words::duration(left))),
        ];
        if may_change {
            row.push(remove_override(said));
        }
        row
    });
    let columns = [Text("Account"), Text("Says"), Text("Reason"), Text("By"), Text("Ends"), Text("Change")];
    let columns = if may_change { &columns[..] } else { &columns[..5] };
    html::table(columns, rows, none)
}

fn remove_override(said: &OverrideStanding) -> String {
    if said.origin == OverrideOrigin::File {
        return String::new();
    }
    let (kind, id) = (said.account.kind().as_str(), said.account.id());
    let (id, shown) = (html::value(id), html::escape(id));
    format!(
        "<form method=\"post\" action=\"{PATH}/remove\"><input type=\"hidden\" name=\"kind\" value=\"{kind}\">\
         <input type=\"hidden\" name=\"id\" value=\"{id}\">\
         <button aria-label=\"Remove the override of {kind} {shown}\">Remove</button></form>"
    )
}

/// How far limits are enforced; who may change it can take it back.
fn switch(modes: &[ModeStanding], may_change: bool) -> String {
    let rows = modes.iter().map(|ModeStanding { setting, since }| {
        let place = html::escape(&words::part(&setting.place));
        let (node, kind) = match &setting.place {
            Place::System => (String::new(), ""),
            Place::Kind(kind) => (String::new(), kind.as_str()),
            Place::Node(node) => (html::value(node), ""),
        };
        let mut row = vec![
            html::name(&words::part(&setting.place)),
            setting.mode.as_str().to_owned(),
            html::name(&setting.reason),
            html::name(&setting.author),
            format!("{} ago", words::duration(*since)),
        ];
        if may_change {
            row.push(format!(
                "<form method=\"post\" action=\"/dashboard/modes/remove\">\
                 <input type=\"hidden\" name=\"kind\" value=\"{kind}\"><input type=\"hidden\" name=\"node\" value=\"{node}\">\
                 <button aria-label=\"Switch back {place}\">Switch back</button></form>"
            ));
        }
        row
    });
    let columns = [Text("Part"), Text("Mode"), Text("Reason"), Text("By"), Text("Since"), Text("Change")];
    let columns = if may_change { &columns[..] } else { &columns[..5] };
    html::table(columns, rows, "Limits are enforced as they are configured.")
}
