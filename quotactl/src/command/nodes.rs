use serde::Deserialize;
use serde_json::Value;

use super::Context;
use crate::Answer;
use crate::amounts::{Limit, PerResource};
use crate::api;
use crate::args::Resource;
use crate::error::Error;
use crate::table::{Table, printable};
use crate::units::seconds;

#[derive(Deserialize)]
struct Node {
    node: String,
    seen_ago_seconds: f64,
    pressure: Pressure,
    limits: Limits,
    #[serde(default)]
    accounts: Vec<Cut>,
}

#[derive(Deserialize)]
struct Pressure {
    cpu: Option<f64>,
    memory: Option<f64>,
    network: Option<f64>,
}

#[derive(Deserialize)]
struct Limits {
    repo: PerResource<Limit>,
    user: PerResource<Limit>,
    ip: PerResource<Limit>,
}

#[derive(Deserialize)]
struct Cut {
    why: String,
}

/// Pressure, and who is cut.
pub(super) fn nodes(context: &Context, node: Option<&str>) -> Result<Answer, Error> {
    let (body, nodes) = read(context, node)?;
    context.show(&body, |mut out| {
        let mut table = Table::new(&["node", ">seen", ">cpu", ">memory", ">network", ">cut"]);
        for node in &nodes {
            let Pressure { cpu, memory, network } = &node.pressure;
            table.row([
                node.node.clone(),
                seconds(node.seen_ago_seconds),
                share(*cpu),
                share(*memory),
                share(*network),
                node.accounts.len().to_string(),
            ]);
        }
        table.write(&mut out)?;
        for cut in nodes.iter().flat_map(|node| &node.accounts) {
            writeln!(out, "{}", printable(&cut.why))?;
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}

/// The limits in force.
pub(super) fn limits(context: &Context, node: Option<&str>) -> Result<Answer, Error> {
    let (body, nodes) = read(context, node)?;
    context.show(&body, |mut out| {
        let mut table = Table::new(&["node", "kind", ">cpu", ">memory", ">network"]);
        for node in &nodes {
            let Limits { repo, user, ip } = &node.limits;
            for (kind, limits) in [("repo", repo), ("user", user), ("ip", ip)] {
                let of = Resource::ALL.map(|resource| limits.of(resource).in_words(resource));
                table.row([node.node.clone(), kind.to_owned()].into_iter().chain(of));
            }
        }
        Ok(table.write(&mut out)?)
    })?;
    Ok(Answer::Yes)
}

fn read(context: &Context, node: Option<&str>) -> Result<(Value, Vec<Node>), Error> {
    let path = node.map_or_else(|| "/v1/nodes".to_owned(), |node| api::path("/v1/nodes", node));
    let body = context.api.get(&path, &[])?.yes()?;
    let nodes = match node {
        Some(_) => vec![api::parse(&path, &body)?],
        None => api::parse(&path, &body["nodes"])?,
    };
    Ok((body, nodes))
}

/// What was not told is not 0.
fn share(pressure: Option<f64>) -> String {
    pressure.map_or_else(|| "?".to_owned(), |pressure| format!("{:.0} %", 100.0 * pressure))
}
