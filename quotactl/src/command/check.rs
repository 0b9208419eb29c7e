use serde_json::{Value, json};

use super::Context;
use crate::Answer;
use crate::args::{Accounts, Backoff, Check};
use crate::error::Error;
use crate::table::printable;
use crate::units::seconds;

/// Asks for admission of a request that costs nothing, so that nothing is reserved.
pub(super) fn check(context: &Context, Check { accounts, node }: &Check) -> Result<Answer, Error> {
    let Accounts { repo, user, ip } = accounts;
    let mut named = json!({});
    for (kind, id) in [("repo", repo), ("user", user), ("ip", ip)] {
        if let Some(id) = id {
            named[kind] = json!(id);
        }
    }
    let mut body = json!({ "accounts": named, "price": { "cpu": 0, "memory": 0, "network": 0 } });
    if let Some(node) = node {
        body["node"] = json!(node);
    }
    let answered = context.api.post("/v1/check", &body)?;
    let (answer, body) = match answered.status.as_u16() {
        200 => (Answer::Yes, answered.body),
        429 => (Answer::No, answered.body),
        _ => return Err(answered.refused()),
    };
    context.show(&body, |out| {
        if answer == Answer::No {
            return Ok(writeln!(out, "denied: {}", reason(&body))?);
        }
        if body["checked"] == false {
            return Ok(writeln!(out, "allowed, since the store does not answer")?);
        }
        match body.get("shadow") {
            Some(limit) => writeln!(out, "allowed; enforced, it would be denied by {}", denied_by(limit))?,
            None => writeln!(out, "allowed")?,
        }
        Ok(())
    })?;
    Ok(answer)
}

pub(super) fn backoff(context: &Context, backoff: &Backoff) -> Result<Answer, Error> {
    let Backoff { accounts: Accounts { repo, user, ip }, node, attempt } = backoff;
    let attempt = (*attempt > 0).then(|| attempt.to_string());
    let query = [
        ("repo", repo.clone()),
        ("user", user.clone()),
        ("ip", ip.clone()),
        ("node", node.clone()),
        ("attempt", attempt),
    ];
    let body = context.api.get("/v1/backoff", &query)?.yes()?;
    let answer = if body["backoff"] == true { Answer::No } else { Answer::Yes };
    context.show(&body, |out| {
        match answer {
            Answer::Yes => writeln!(out, "go on")?,
            Answer::No => writeln!(out, "back off: {}", reason(&body))?,
        }
        Ok(())
    })?;
    Ok(answer)
}

fn reason(body: &Value) -> String {
    let detail = body["detail"].as_str().map_or_else(|| denied_by(&body["denied_by"]), printable);
    let wait = match (body["permanent"].as_bool(), body["retry_after_seconds"].as_f64()) {
        (Some(true), _) => "; waiting does not help".to_owned(),
        (_, Some(wait)) => format!("; again in {}", seconds(wait)),
        (_, None) => String::new(),
    };
    format!("{detail}{wait}")
}

/// Whose limit of what.
fn denied_by(limit: &Value) -> String {
    if let Some(why) = limit["why"].as_str() {
        return printable(why);
    }
    let text = |name: &str| limit[name].as_str().unwrap_or("?");
    printable(&format!("the {} limit of {} {}", text("resource"), text("kind"), text("id")))
}
