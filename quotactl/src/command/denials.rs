use std::io::{self, Write};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Context;
use crate::Answer;
use crate::amounts::Name;
use crate::api;
use crate::args::Kind;
use crate::error::Error;
use crate::table::{Table, printable};
use crate::units::seconds;

#[derive(Deserialize)]
struct Denied {
    #[serde(flatten)]
    name: Name,
    resource: String,
    rpc: Option<String>,
    mode: String,
    count: u64,
    last_seconds_ago: f64,
}

const PATH: &str = "/v1/denials";

/// By account and RPC: whom limits refused, and whom those in shadow would have.
pub(super) fn would_deny(context: &Context, since: Duration, kind: Option<Kind>) -> Result<Answer, Error> {
    let query = [
        ("since_seconds", Some(since.as_secs().to_string())),
        ("kind", kind.map(|kind| kind.name().to_owned())),
    ];
    let body = context.api.get(PATH, &query)?.yes()?;
    let denials: Vec<Denied> = api::parse(PATH, &body["denials"])?;
    context.show(&body, |mut out| {
        let mut table = Table::new(&["account", "resource", "rpc", "mode", ">count", ">last"]);
        for it in &denials {
            table.row([
                it.name.to_string(),
                it.resource.clone(),
                it.rpc.clone().unwrap_or_default(),
                it.mode.clone(),
                it.count.to_string(),
                seconds(it.last_seconds_ago),
            ]);
        }
        Ok(table.write(&mut out)?)
    })?;
    Ok(Answer::Yes)
}

/// A line for each denial, until the server ends.
pub(super) fn tail(context: &Context) -> Result<Answer, Error> {
    let path = format!("{PATH}/stream");
    context.api.events(&path, |_, data| {
        let mut out = io::stdout().lock();
        if context.json {
            writeln!(out, "{data}")?;
        } else {
            let body: Value = serde_json::from_str(data)
                .map_err(|error| Error::Answer { path: path.clone(), reason: error.to_string() })?;
            writeln!(out, "{}", line(&body))?;
        }
        Ok(out.flush()?)
    })?;
    Ok(Answer::Yes)
}

fn line(body: &Value) -> String {
    if let Some(missed) = body["missed"].as_u64() {
        return format!("… {missed} more");
    }
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    let parts = [text("mode"), text("kind"), text("id"), text("resource"), text("node"), text("rpc")];
    printable(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_denial_is_a_line_and_so_is_how_many_were_missed() {
        let body =
            json!({ "mode": "shadow", "kind": "user", "id": "a\nb", "resource": "cpu", "rpc": "/s/M" });
        assert_eq!(line(&body), "shadow user a\u{fffd}b cpu /s/M");
        assert_eq!(line(&json!({ "missed": 3 })), "… 3 more");
    }
}
