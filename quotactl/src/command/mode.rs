use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::Answer;
use crate::api;
use crate::args::{Mode, Scope};
use crate::error::Error;
use crate::table::Table;
use crate::units::seconds;

#[derive(Deserialize)]
struct Switched {
    node: Option<String>,
    kind: Option<String>,
    mode: String,
    reason: String,
    author: String,
    since_seconds: f64,
}

const PATH: &str = "/v1/modes";

pub(super) fn run(context: &Context, command: &Mode) -> Result<Answer, Error> {
    match command {
        Mode::List => {}
        Mode::Set { mode, of, reason } => {
            let mut body = json!({ "mode": mode.name(), "reason": reason });
            if let Some(node) = &of.node {
                body["node"] = json!(node);
            }
            if let Some(kind) = of.kind {
                body["kind"] = json!(kind.name());
            }
            context.api.put(PATH, &body)?.yes()?;
        }
        Mode::Clear { of: Scope { node, kind } } => {
            let kind = kind.map(|kind| kind.name().to_owned());
            context.api.delete(PATH, &[("node", node.clone()), ("kind", kind)])?.yes()?;
        }
    }
    // What is switched now, whatever was asked for.
    let body = context.api.get(PATH, &[])?.yes()?;
    show(context, &body)
}

fn show(context: &Context, body: &Value) -> Result<Answer, Error> {
    let switched: Vec<Switched> = api::parse(PATH, &body["modes"])?;
    context.show(body, |mut out| {
        if switched.is_empty() {
            return Ok(writeln!(
                out,
                "nothing is switched: every limit is in the mode of the configuration"
            )?);
        }
        let mut table = Table::new(&["of", "mode", ">since", "by", "reason"]);
        for it in &switched {
            let of = match (&it.node, &it.kind) {
                (Some(node), _) => format!("node {node}"),
                (None, Some(kind)) => format!("kind {kind}"),
                (None, None) => "everything".to_owned(),
            };
            let [mode, by, reason] = [&it.mode, &it.author, &it.reason].map(Clone::clone);
            table.row([of, mode, seconds(it.since_seconds), by, reason]);
        }
        Ok(table.write(&mut out)?)
    })?;
    Ok(Answer::Yes)
}
