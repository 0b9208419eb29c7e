use serde_json::json;

use super::Context;
use crate::Answer;
use crate::error::Error;

/// Ready, or why not.
pub(super) fn run(context: &Context) -> Result<Answer, Error> {
    let answered = context.api.get("/readyz", &[])?;
    let (ready, answer) = match answered.status.as_u16() {
        200 => (true, Answer::Yes),
        503 => (false, Answer::No),
        _ => return Err(answered.refused()),
    };
    let detail = answered.body["detail"].as_str().or_else(|| answered.body["title"].as_str());
    let body = json!({ "ready": ready, "detail": detail });
    context.show(&body, |out| {
        let state = if ready { "ready" } else { "not ready" };
        match detail {
            Some(detail) => writeln!(out, "{state}: {detail}")?,
            None => writeln!(out, "{state}")?,
        }
        Ok(())
    })?;
    Ok(answer)
}
