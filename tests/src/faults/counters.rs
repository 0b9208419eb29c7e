use std::collections::HashMap;

use crate::http::Http;

/// What the counters of a process were when they were last looked at. None may be lower later.
#[derive(Debug, Default)]
pub(super) struct Counters(HashMap<String, f64>);

impl Counters {
    /// # Panics
    ///
    /// Panics where one has gone down, or is gone.
    pub(super) async fn look(&mut self, http: &Http) {
        let answer = http.get("/metrics").await;
        let now = read(answer.text());
        for (name, before) in &self.0 {
            let value = now.get(name).unwrap_or_else(|| panic!("{name} is gone"));
            assert!(value >= before, "{name} was {before} and is {value}");
        }
        self.0 = now;
    }
}

/// The samples of counters and histograms, by name and labels.
fn read(text: &str) -> HashMap<String, f64> {
    let mut is_counter = false;
    let mut samples = HashMap::new();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            is_counter = kind.ends_with(" counter") || kind.ends_with(" histogram");
        } else if let (true, false, Some((name, value))) =
            (is_counter, line.starts_with('#'), line.rsplit_once(' '))
        {
            samples.insert(name.to_owned(), value.parse().expect("a number"));
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_only_grow_is_read() {
        let text = "# HELP a_total A.\n# TYPE a_total counter\na_total{b=\"c d\"} 3\n# HELP e E.\n# TYPE e gauge\ne 7\n\
                    # TYPE f histogram\nf_bucket{le=\"+Inf\"} 2\nf_sum 0.5\nf_count 2\n";
        let read = read(text);
        assert_eq!((read.len(), read["a_total{b=\"c d\"}"], read["f_sum"]), (4, 3.0, 0.5));
    }
}
