use serde::Deserialize;

use super::Context;
use crate::Answer;
use crate::amounts::{Limit, Name, PerResource};
use crate::api;
use crate::args::{Account, Resource};
use crate::error::Error;
use crate::table::{Table, printable};
use crate::units::{amount, seconds};

#[derive(Deserialize)]
struct Standing {
    #[serde(flatten)]
    name: Name,
    over: bool,
    retry_after_seconds: f64,
    resources: PerResource<Used>,
}

#[derive(Deserialize)]
struct Used {
    used: f64,
    limit: Limit,
    mode: String,
    here: Option<Here>,
}

#[derive(Deserialize)]
struct Here {
    used: Option<f64>,
    limit: Limit,
    why: Option<String>,
}

pub(super) fn run(context: &Context, Account { kind, id, node }: &Account) -> Result<Answer, Error> {
    let path = api::path(&format!("/v1/accounts/{}", kind.name()), id);
    let body = context.api.get(&path, &[("node", node.clone())])?.yes()?;
    let standing: Standing = api::parse(&path, &body)?;
    context.show(&body, |mut out| {
        let name = printable(&standing.name.to_string());
        if standing.over {
            writeln!(out, "{name} is over its limit for {}", seconds(standing.retry_after_seconds))?;
        } else {
            writeln!(out, "{name} is below its limits")?;
        }
        let mut table = Table::new(&["resource", ">used", ">limit", "mode", ">here", ">limit here"]);
        for resource in Resource::ALL {
            let Used { used, limit, mode, here } = standing.resources.of(resource);
            let used_here = here.as_ref().and_then(|here| here.used).map(|used| amount(resource, used));
            let limit_here = here.as_ref().map(|here| here.limit.in_words(resource));
            table.row([
                resource.name().to_owned(),
                amount(resource, *used),
                limit.in_words(resource),
                mode.clone(),
                used_here.unwrap_or_default(),
                limit_here.unwrap_or_default(),
            ]);
        }
        table.write(&mut out)?;
        let why = Resource::ALL
            .into_iter()
            .filter_map(|resource| standing.resources.of(resource).here.as_ref()?.why.as_ref());
        for why in why {
            writeln!(out, "{}", printable(why))?;
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}
