use std::fmt::Write as _;

use quota_tests::simulate::{Aim, Figures};
use serde_json::{Map, Value, json};

use crate::job::Compared;

/// For a terminal.
pub(crate) fn of_scenario(compared: &Compared<'_>) -> String {
    let mut table = format!("{}: {}\n", compared.name, compared.scenario.title);
    let mut row = |name: &str, cells: [String; 7]| {
        write!(table, "  {name:<18}").expect("room");
        for cell in cells {
            write!(table, " {cell:>9}").expect("room");
        }
        table.push('\n');
    };
    row("", ["refused", "p95/idle", "used", "relief", "jain", "swing", "recovery"].map(str::to_owned));
    for outcome in &compared.outcomes {
        row(outcome.contender.name, cells(&outcome.figures));
    }
    table
}

/// The figures, in the order of [`Aim::ALL`].
pub(crate) fn cells(figures: &Figures) -> [String; 7] {
    let seconds =
        |seconds: Option<f64>| seconds.map_or("never".to_owned(), |seconds| format!("{seconds:.0} s"));
    [
        format!("{:.2} %", 100.0 * figures.light_refused_ratio),
        format!("{:.1}", figures.light_p95_over_idle),
        format!("{:.2}", figures.used_ratio),
        format!("{} / {}", seconds(figures.relief_seconds), seconds(figures.least_relief_seconds)),
        format!("{:.2}", figures.jain),
        format!("{:.1}", figures.limit_swing),
        seconds(figures.recovery_seconds),
    ]
}

/// Whether a scenario misses an aim that it is held to.
pub(crate) fn misses(compared: &Compared<'_>, figures: &Figures, aim: Aim) -> bool {
    !aim.is_met(figures) && compared.scenario.excuse(aim).is_none()
}

pub(crate) fn json(all: &[Compared<'_>]) -> String {
    let of_scenario = |compared: &Compared<'_>| {
        let rules = compared.outcomes.iter().map(|outcome| {
            let it = &outcome.figures;
            let figures = json!({
                "light_refused_ratio_worst": it.light_refused_ratio,
                "light_p95_over_idle_worst": it.light_p95_over_idle,
                "used_ratio": it.used_ratio,
                "relief_seconds": it.relief_seconds,
                "least_relief_seconds": it.least_relief_seconds,
                "jain": it.jain,
                "limit_swing": it.limit_swing,
                "recovery_seconds": it.recovery_seconds,
            });
            (outcome.contender.name.to_owned(), figures)
        });
        (compared.name.to_owned(), Value::Object(rules.collect()))
    };
    format!("{:#}\n", Value::Object(all.iter().map(of_scenario).collect::<Map<_, _>>()))
}
