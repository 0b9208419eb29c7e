use std::time::Duration;

use serde::Deserialize;

use super::Context;
use crate::Answer;
use crate::api;
use crate::error::Error;

#[derive(Deserialize)]
struct Seen {
    rpc: String,
    count: u64,
    cpu: Costs,
    memory: Costs,
    network: Costs,
}

/// Of one request.
#[derive(Deserialize)]
struct Costs {
    p50: f64,
}

const PATH: &str = "/v1/prices";

/// Prints the table `[prices]` of a configuration file: the cost of the median request, since a price that is too high
/// refuses who would have fitted, and what is missing is charged anyway.
pub(super) fn run(context: &Context, since: Duration) -> Result<Answer, Error> {
    let body = context.api.get(PATH, &[("since_seconds", Some(since.as_secs().to_string()))])?.yes()?;
    let seen: Vec<Seen> = api::parse(PATH, &body["rpcs"])?;
    context.show(&body, |out| {
        writeln!(out, "[prices]")?;
        for it in &seen {
            writeln!(out, "# {} requests", it.count)?;
            writeln!(out, "{}", line(it))?;
        }
        Ok(())
    })?;
    Ok(Answer::Yes)
}

fn line(Seen { rpc, cpu, memory, network, .. }: &Seen) -> String {
    // Prices of memory are a size held for one second.
    let whole = |value: f64| value.max(0.0).round() as u64;
    let mut amounts = vec![format!("cpu = \"{}ms\"", whole(cpu.p50 * 1000.0))];
    for (name, bytes) in [("memory", whole(memory.p50)), ("network", whole(network.p50))] {
        if bytes > 0 {
            amounts.push(format!("{name} = \"{bytes}B\""));
        }
    }
    // A basic string of TOML, as of JSON.
    format!("{} = {{ {} }}", serde_json::Value::from(rpc.as_str()), amounts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_a_table_of_prices() {
        let costs = |p50| Costs { p50 };
        let seen = |rpc: &str| Seen {
            rpc: rpc.to_owned(),
            count: 7,
            cpu: costs(1.2345),
            memory: costs(0.2),
            network: costs(1_048_576.0),
        };
        let text = format!("[prices]\n{}\n", line(&seen("/gitaly.SmartHTTPService/\"x\"")));
        let table: toml::Table = toml::from_str(&text).unwrap();
        let price = &table["prices"]["/gitaly.SmartHTTPService/\"x\""];
        assert_eq!(price["cpu"].as_str(), Some("1235ms"));
        assert_eq!((price.get("memory"), price["network"].as_str()), (None, Some("1048576B")));
    }
}
