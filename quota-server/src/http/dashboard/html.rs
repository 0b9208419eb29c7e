/// What others chose for a name, as text: within an element, or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
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
    escaped
}

/// A name within the path of a link.
pub(super) fn in_path(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A table, of cells that are HTML already. Where there is no row, a sentence says so.
pub(super) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>, none: &str) -> String {
    // On a narrow screen each cell stands by itself, with its heading beside it.
    let cell = |(heading, cell): (&&str, String)| format!("<td data-label=\"{heading}\">{cell}</td>");
    let row = |row: Vec<String>| {
        let cells: String = headings.iter().zip(row).map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.into_iter().map(row).collect();
    if body.is_empty() {
        return format!("<p>{none}</p>\n");
    }
    let headings: String =
        headings.iter().map(|heading| format!("<th scope=\"col\">{heading}</th>")).collect();
    format!("<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n")
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
    fn a_table_without_rows_is_a_sentence() {
        assert_eq!(table(&["a"], [], "Nothing."), "<p>Nothing.</p>\n");
        let one = table(&["a", "b"], [vec!["1".to_owned(), "2".to_owned()]], "");
        assert!(one.contains("<tr><td data-label=\"a\">1</td><td data-label=\"b\">2</td></tr>"), "{one}");
    }
}
