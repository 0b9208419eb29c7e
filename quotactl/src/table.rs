use std::io::{self, Write};

/// Columns beside each other, those of numbers to the right.
pub(crate) struct Table {
    headings: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A heading that begins with `>` is of a column of numbers.
    pub(crate) const fn new(headings: &'static [&'static str]) -> Self {
        Self { headings, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let heading = |at: usize| self.headings[at].trim_start_matches('>');
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain([heading(at).len()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let headings = (0..self.headings.len()).map(|at| heading(at).to_uppercase()).collect();
        for row in [&headings].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[at].saturating_sub(cell.chars().count()));
                let is_number = self.headings[at].starts_with('>');
                line += &if is_number { format!("{padding}{cell}  ") } else { format!("{cell}{padding}  ") };
            }
            writeln!(to, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// What others chose for a name must not steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_and_numbers_are_to_the_right() {
        let mut table = Table::new(&["account", ">used"]);
        table.row(["user ä".to_owned(), "1.0 s".to_owned()]);
        table.row(["repo group/project\x1b[2J".to_owned(), "104.2 s".to_owned()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        let expected = "ACCOUNT                    USED\n\
                        user ä                    1.0 s\n\
                        repo group/project\u{fffd}[2J  104.2 s\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
