use axum::extract::State;
use axum::response::Response;
use quota_core::SlotStanding;

use super::super::Http;
use super::failed::Failed;
use super::html::Column::{Bar, Number, Text};
use super::view::{View, Wants, show};
use super::{html, words};
use crate::config::{Class, Service};
use crate::quota::{ClassStanding, QuotaError};

pub(super) async fn page(State(http): State<Http>, wants: Wants) -> Result<Response, Failed> {
    show(http, wants, Classes).await
}

struct Classes;

impl View for Classes {
    fn title(&self) -> String {
        "Classes of traffic".to_owned()
    }

    fn place(&self) -> &'static str {
        "/dashboard/classes"
    }

    async fn live(&self, http: &Http) -> Result<String, QuotaError> {
        Ok(table(&http.quota.list_classes().await?))
    }
}

fn table(classes: &[ClassStanding]) -> String {
    let rows = classes.iter().map(|class| {
        let default = if class.is_default { " (requests that name none)" } else { "" };
        let slots = match class.standing {
            None => ["any number".to_owned(), String::new(), "none".to_owned()],
            Some(SlotStanding { leased, cap, .. }) => {
                let share = html::share(u64::from(leased), u64::from(cap));
                [leased.to_string(), share, cap.to_string()]
            }
        };
        let [leased, share, cap] = slots;
        let name = format!("{}{default}", html::escape(&class.class));
        let part = format!("{:.0} %", 100.0 * f64::from(class.policy.part));
        vec![name, leased, share, cap, service(&class.policy), part]
    });
    let columns = [
        Text("Class"),
        Number("Slots leased"),
        Bar("Share"),
        Number("Cap"),
        Text("Where there is no slot"),
        Number("Part of the limits"),
    ];
    html::table(&columns, rows, "No class is configured.")
}

fn service(class: &Class) -> String {
    let waits = match class.service {
        Service::Immediate => "refused at once".to_owned(),
        Service::Patient { max_wait, max_queue } => {
            format!("waits for {} at most, with {max_queue} others", words::duration(max_wait))
        }
    };
    match class.max_run {
        None => waits,
        Some(most) => format!("{waits}; runs for {} at most", words::duration(most)),
    }
}
