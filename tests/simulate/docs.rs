use std::fmt::Write as _;

use quota_tests::simulate::Aim;

use crate::job::Compared;
use crate::table::{cells, misses};

/// Between these the page is written by the run.
const BEGIN: &str = "<!-- scripts/simulate --write-docs writes from here -->\n";
const END: &str = "<!-- to here -->\n";

/// The page, with the table of this run.
pub(crate) fn with_table(page: &str, all: &[Compared<'_>], seeds: u64) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("the mark at which the table begins");
    let (_, after) = rest.split_once(END).expect("the mark at which the table ends");
    format!("{before}{BEGIN}{}{END}{after}", tables(all, seeds))
}

fn tables(all: &[Compared<'_>], seeds: u64) -> String {
    let mut text = format!(
        "\nThe worst of {seeds} seeds, of each figure by itself. Relief: after how long pressure was below the soft limit again, \
         and how long that takes at best, where nothing heavy is let in from the onset on. **Bold**: misses its aim; \
         (in brackets): misses it for the reason told below the table. Aims are for `blame` where the fileserver may make \
         cgroups.\n"
    );
    for compared in all {
        write!(
            text,
            "\n### `{}`\n\n{}.\n\n\
             | rule | light refused | light p95 / idle | used | relief | Jain | swing | recovery |\n\
             |---|---|---|---|---|---|---|---|\n",
            compared.name, compared.scenario.title
        )
        .expect("room");
        for outcome in &compared.outcomes {
            write!(text, "| {} |", outcome.contender.name).expect("room");
            for (aim, cell) in Aim::ALL.into_iter().zip(cells(&outcome.figures)) {
                let is_held = outcome.contender.name == "blame" && !aim.is_met(&outcome.figures);
                match (is_held, misses(compared, &outcome.figures, aim)) {
                    (false, _) => write!(text, " {cell} |"),
                    (true, true) => write!(text, " **{cell}** |"),
                    (true, false) => write!(text, " ({cell}) |"),
                }
                .expect("room");
            }
            text.push('\n');
        }
        for excuse in &compared.scenario.excused {
            write!(text, "\n{}: {}.\n", excuse.figure.name(), excuse.why).expect("room");
        }
        write!(text, "\n![{}](adaptation/{}.svg)\n", compared.name, compared.name).expect("room");
    }
    text.push('\n');
    text
}
