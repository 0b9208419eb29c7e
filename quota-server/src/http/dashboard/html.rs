use quota_core::Account;
use quota_proto::Invalid;

/// A name that others chose, as text within an element: its direction stays its own.
pub(super) fn name(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(text))
}

/// What others chose, as text to be read. What would not be seen, or would turn around what is, is written out: no name
/// looks like another for it.
pub(super) fn escape(text: &str) -> String {
    let first = text.len() - text.trim_start_matches(' ').len();
    let within = first..text.trim_end_matches(' ').len();
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_end = c == ' ' && !within.contains(&at);
        // What is written as such a one is would look like it.
        let is_written = c == '\\' && text[at..].starts_with("\\u{");
        if is_unseen(c) || is_end || is_written {
            escaped.extend(c.escape_unicode());
        } else {
            push(&mut escaped, c);
        }
    }
    escaped
}

/// Spaces of another kind, and what Unicode has as `Default_Ignorable_Code_Point`, which turns text around, too.
fn is_unseen(c: char) -> bool {
    !c.is_ascii() && c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// What others chose, within a quoted attribute: a form sends it back as it is.
pub(super) fn value(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    text.chars().for_each(|c| push(&mut escaped, c));
    escaped
}

fn push(escaped: &mut String, c: char) {
    match c {
        '&' => escaped.push_str("&amp;"),
        '<' => escaped.push_str("&lt;"),
        '>' => escaped.push_str("&gt;"),
        '"' => escaped.push_str("&quot;"),
        '\'' => escaped.push_str("&#39;"),
        c if c.is_control() => escaped.push('\u{fffd}'),
        c => escaped.push(c),
    }
}

/// A name within the path of a link.
pub(super) fn in_path(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// An account, with a link to its page.
pub(super) fn account(account: &Account) -> String {
    link(account, "")
}

/// The same, as it stands on a fileserver.
pub(super) fn account_on(account: &Account, node: &str) -> String {
    link(account, &format!("?node={}", in_path(node)))
}

fn link(account: &Account, query: &str) -> String {
    let (kind, id) = (account.kind().as_str(), account.id());
    format!("<a href=\"/dashboard/accounts/{kind}/{}{query}\">{kind} {}</a>", in_path(id), self::name(id))
}

/// The name of an RPC, which may be broken where its parts begin.
pub(super) fn rpc(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("<bdi>{}</bdi>", escape(name).replace('/', "/<wbr>")))
}

/// The kinds of accounts, as a form offers them.
pub(super) const KINDS: &[(&str, &str)] = &[("user", "user"), ("repo", "repo"), ("ip", "ip")];

/// A choice in a form, of values and their names.
pub(super) fn select(name: &str, label: &str, options: &[(&str, &str)], chosen: &str) -> String {
    let option = |(value, text): &(&str, &str)| {
        let selected = if *value == chosen { " selected" } else { "" };
        format!("<option value=\"{value}\"{selected}>{text}</option>")
    };
    let options: String = options.iter().map(option).collect();
    format!("<select name=\"{name}\" aria-label=\"{label}\">{options}</select>")
}

/// A name from a field, as it is: with a space more it is another's.
pub(super) fn given(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

/// What was typed into a field for a number or an amount, if anything was.
pub(super) fn typed(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// A field of a form with its label; it is marked where what is `wrong` is wrong with what the server calls `called`.
pub(super) fn field(
    label: &str,
    name: &str,
    value: &str,
    hint: &str,
    wrong: Option<&Invalid>,
    called: &str,
) -> String {
    let is_wrong = wrong.is_some_and(|wrong| wrong.field == called);
    let invalid = if is_wrong { " aria-invalid=\"true\" autofocus" } else { "" };
    let value = self::value(value);
    format!(
        "<label>{label} <input name=\"{name}\" value=\"{value}\" placeholder=\"{hint}\"{invalid}></label>\n"
    )
}

/// What is wrong with a form, above it.
pub(super) fn complaint(wrong: Option<&Invalid>) -> String {
    wrong.map_or_else(String::new, |Invalid { field, reason }| {
        format!("<p class=\"complaint\" role=\"alert\"><b>{}</b> {}</p>\n", escape(field), escape(reason))
    })
}

/// A column of a table, by its heading.
#[derive(Clone, Copy)]
pub(super) enum Column {
    Text(&'static str),
    /// Aligned at its end, so that amounts can be compared.
    Number(&'static str),
    /// Takes the room that others leave.
    Bar(&'static str),
}

impl Column {
    const fn heading(self) -> &'static str {
        match self {
            Self::Text(heading) | Self::Number(heading) | Self::Bar(heading) => heading,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Text(_) => "",
            Self::Number(_) => " class=\"number\"",
            Self::Bar(_) => " class=\"bar\"",
        }
    }
}

/// A table, of cells that are HTML already. Where there is no row, a sentence says so.
pub(super) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>, none: &str) -> String {
    // On a narrow screen each cell stands by itself, with its heading beside it.
    let cell = |(column, cell): (&Column, String)| {
        format!("<td{} data-label=\"{}\">{cell}</td>", column.class(), column.heading())
    };
    let row = |row: Vec<String>| {
        let cells: String = columns.iter().zip(row).map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.into_iter().map(row).collect();
    if body.is_empty() {
        return format!("<p class=\"none\">{none}</p>\n");
    }
    let heading = |column: &Column| format!("<th scope=\"col\"{}>{}</th>", column.class(), column.heading());
    let headings: String = columns.iter().map(heading).collect();
    format!("<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n")
}

/// A bar that shows how much of so much is used.
pub(super) fn share(used: u64, limit: u64) -> String {
    let share = (100.0 * used as f64 / limit.max(1) as f64).min(100.0);
    let over = if used >= limit { " class=\"over\"" } else { "" };
    format!(
        "<svg class=\"share\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{share:.0} %\">\
         <path{over} d=\"M0 0H{share:.1}V4H0Z\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_markup() {
        let name = "<img src=x onerror=\"alert('&')\">\u{1b}";
        assert_eq!(escape(name), "&lt;img src=x onerror=&quot;alert(&#39;&amp;&#39;)&quot;&gt;\u{fffd}");
        assert_eq!(in_path("a/b?c#d\""), "a%2Fb%3Fc%23d%22");
    }

    #[test]
    fn what_is_not_seen_is_written_out_and_sent_back_as_it_is() {
        for (name, shown) in [
            ("a\u{202e}gnp.exe\u{200b}", "a\\u{202e}gnp.exe\\u{200b}"),
            ("alice\u{a0}", "alice\\u{a0}"),
            (" bob ", "\\u{20}bob\\u{20}"),
            ("\\u{a0} a\\b", "\\u{5c}u{a0} a\\b"),
            ("  ", "\\u{20}\\u{20}"),
            ("Zoë א नि a b", "Zoë א नि a b"),
        ] {
            assert_eq!(self::name(name), format!("<bdi>{shown}</bdi>"));
            assert_eq!(value(name), name);
        }
    }

    #[test]
    fn a_table_without_rows_is_a_sentence() {
        assert_eq!(table(&[Column::Text("a")], [], "Nothing."), "<p class=\"none\">Nothing.</p>\n");
        let columns = [Column::Text("a"), Column::Number("b")];
        let one = table(&columns, [vec!["1".to_owned(), "2".to_owned()]], "");
        let row = "<tr><td data-label=\"a\">1</td><td class=\"number\" data-label=\"b\">2</td></tr>";
        assert!(one.contains(row), "{one}");
    }

    #[test]
    fn what_is_chosen_is_selected() {
        let select = select("kind", "Kind", KINDS, "repo");
        assert_eq!(select.matches(" selected>").count(), 1);
        assert!(select.contains("<option value=\"repo\" selected>repo</option>"), "{select}");
    }
}
