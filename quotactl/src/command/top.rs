use std::io::{self, Write};
use std::thread;

use serde::Deserialize;
use serde_json::Value;

use super::Context;
use crate::Answer;
use crate::amounts::{Limit, Name};
use crate::api;
use crate::args::{Resource, Top};
use crate::error::Error;
use crate::table::Table;
use crate::units::amount;

#[derive(Deserialize)]
struct Heavy {
    #[serde(flatten)]
    name: Name,
    used: f64,
    limit: Limit,
    denied: u64,
}

const PATH: &str = "/v1/top";

/// From the upper left corner on, with all below gone.
const CLEAR: &str = "\x1b[H\x1b[J";

pub(super) fn run(context: &Context, top: &Top) -> Result<Answer, Error> {
    let query = [
        ("kind", Some(top.kind.name().to_owned())),
        ("resource", Some(top.resource.name().to_owned())),
        ("node", top.node.clone()),
        ("limit", Some(top.limit.to_string())),
    ];
    loop {
        let body = context.api.get(PATH, &query)?.yes()?;
        let Some(every) = top.watch else {
            show(context, &body, top.resource)?;
            return Ok(Answer::Yes);
        };
        if !context.json {
            write!(io::stdout(), "{CLEAR}")?;
        }
        show(context, &body, top.resource)?;
        thread::sleep(every);
    }
}

fn show(context: &Context, body: &Value, resource: Resource) -> Result<(), Error> {
    let heaviest: Vec<Heavy> = api::parse(PATH, &body["accounts"])?;
    context.show(body, |mut out| {
        let mut table = Table::new(&["account", ">used", ">limit", ">denied"]);
        for it in &heaviest {
            let (used, limit) = (amount(resource, it.used), it.limit.in_words(resource));
            table.row([it.name.to_string(), used, limit, it.denied.to_string()]);
        }
        Ok(table.write(&mut out)?)
    })
}
