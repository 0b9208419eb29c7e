use serde::Deserialize;

use super::Context;
use crate::Answer;
use crate::api;
use crate::error::Error;
use crate::table::Table;

#[derive(Deserialize)]
struct Class {
    class: String,
    service: String,
    default: bool,
    quota: f64,
    slots: Option<Slots>,
}

#[derive(Deserialize)]
struct Slots {
    leased: u32,
    leases: u32,
    cap: u32,
}

const PATH: &str = "/v1/classes";

/// How many requests of each class of traffic are in progress, of how many.
pub(super) fn run(context: &Context) -> Result<Answer, Error> {
    let body = context.api.get(PATH, &[])?.yes()?;
    let classes: Vec<Class> = api::parse(PATH, &body["classes"])?;
    context.show(&body, |mut out| {
        let mut table = Table::new(&["class", "service", ">leased", ">cap", ">leases", ">quota"]);
        for Class { class, service, default, quota, slots } in &classes {
            let of = |number: fn(&Slots) -> u32| {
                slots.as_ref().map_or("-".to_owned(), |slots| number(slots).to_string())
            };
            table.row([
                if *default { format!("{class} (default)") } else { class.clone() },
                service.clone(),
                of(|slots| slots.leased),
                of(|slots| slots.cap),
                of(|slots| slots.leases),
                format!("{:.1} %", 100.0 * quota),
            ]);
        }
        Ok(table.write(&mut out)?)
    })?;
    Ok(Answer::Yes)
}
