use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Context;
use crate::Answer;
use crate::amounts::Name;
use crate::api;
use crate::args::{Kind, Override, SetOverride, What};
use crate::error::Error;
use crate::table::{Table, printable};
use crate::units::seconds;

#[derive(Deserialize)]
struct Overridden {
    #[serde(flatten)]
    name: Name,
    weight: Option<f64>,
    limits: Option<Map<String, Value>>,
    #[serde(default)]
    exempt: bool,
    #[serde(default)]
    blocked: bool,
    reason: String,
    author: String,
    origin: String,
    expires_in_seconds: Option<f64>,
}

impl Overridden {
    fn what(&self) -> String {
        let limits = || {
            let of = |(resource, limit): (&String, &Value)| match limit.as_str() {
                Some(limit) => format!("{resource}={limit}"),
                None => format!("{resource}={limit}"),
            };
            self.limits.iter().flatten().map(of).collect::<Vec<_>>().join(",")
        };
        match self.weight {
            _ if self.blocked => "blocked".to_owned(),
            _ if self.exempt => "exempt".to_owned(),
            Some(weight) => format!("weight {weight}"),
            None => limits(),
        }
    }
}

const ALL: &str = "/v1/overrides";

fn path(kind: Kind, id: &str) -> String {
    api::path(&format!("{ALL}/{}", kind.name()), id)
}

pub(super) fn run(context: &Context, command: &Override) -> Result<Answer, Error> {
    match command {
        Override::List => {
            let body = context.api.get(ALL, &[])?.yes()?;
            show(context, &body, &api::parse::<Vec<Overridden>>(ALL, &body["overrides"])?)
        }
        Override::Get { kind, id } => {
            let path = path(*kind, id);
            let body = context.api.get(&path, &[])?.yes()?;
            show(context, &body, &[api::parse(&path, &body)?])
        }
        Override::Set(set) => {
            let path = path(set.kind, &set.id);
            let body = context.api.put(&path, &wanted(set))?.yes()?;
            show(context, &body, &[api::parse(&path, &body)?])
        }
        Override::Remove { kind, id } => {
            context.api.delete(&path(*kind, id), &[])?.yes()?;
            let name = Name { kind: kind.name().to_owned(), id: id.clone() };
            context.show(&json!({ "removed": { "kind": name.kind, "id": name.id } }), |out| {
                Ok(writeln!(out, "nothing is decided for {} any more", printable(&name.to_string()))?)
            })?;
            Ok(Answer::Yes)
        }
    }
}

fn wanted(SetOverride { what, reason, expires_in, .. }: &SetOverride) -> Value {
    let mut body = match what {
        What { weight: Some(weight), .. } => json!({ "weight": weight }),
        What { limits: Some(limits), .. } => {
            let limits = limits.iter().map(|(resource, limit)| (resource.name().to_owned(), json!(limit)));
            json!({ "limits": limits.collect::<Map<_, _>>() })
        }
        What { exempt: true, .. } => json!({ "exempt": true }),
        What { .. } => json!({ "blocked": true }),
    };
    body["reason"] = json!(reason);
    if let Some(after) = expires_in {
        body["expires_in_seconds"] = json!(after.as_secs_f64());
    }
    body
}

fn show(context: &Context, body: &Value, overrides: &[Overridden]) -> Result<Answer, Error> {
    context.show(body, |mut out| {
        let mut table = Table::new(&["account", "what", "until", "by", "from", "reason"]);
        for it in overrides {
            let until = it
                .expires_in_seconds
                .map_or_else(|| "no end".to_owned(), |left| format!("in {}", seconds(left)));
            let [by, from, reason] = [&it.author, &it.origin, &it.reason].map(Clone::clone);
            table.row([it.name.to_string(), it.what(), until, by, from, reason]);
        }
        Ok(table.write(&mut out)?)
    })?;
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn body(what: &[&str]) -> Value {
        let line = ["quotactl", "override", "set", "user", "u", "--reason", "why"];
        let args = Args::try_parse_from(line.iter().chain(what)).unwrap();
        let Command::Override(Override::Set(set)) = args.command else { panic!("{args:?}") };
        wanted(&set)
    }

    #[test]
    fn what_is_wanted_is_asked_as_the_api_has_it() {
        assert_eq!(body(&["--weight", "2.5"]), json!({ "weight": 2.5, "reason": "why" }));
        assert_eq!(
            body(&["--limits", "cpu=600s,network=unlimited", "--expires-in", "2h"]),
            json!({ "limits": { "cpu": "600s", "network": "unlimited" }, "reason": "why", "expires_in_seconds": 7200.0 })
        );
        assert_eq!(body(&["--exempt"]), json!({ "exempt": true, "reason": "why" }));
        assert_eq!(body(&["--blocked"]), json!({ "blocked": true, "reason": "why" }));
    }
}
