/// What a look at the file found: its text, nothing where there is no file, or why it cannot be read.
pub(super) type Found = Result<Option<String>, String>;

/// What was refused is judged again after so many looks: a file that it names may have come since.
const LOOKS: u32 = 4;

/// Decides when what was found is to be judged.
pub(super) struct Watch {
    last: Found,
    judged: Found,
    /// Looks since what was judged last was refused.
    since_refusal: Option<u32>,
}

impl Watch {
    /// What is in force was judged.
    pub(super) fn new(found: Found) -> Self {
        Self { last: found.clone(), judged: found, since_refusal: None }
    }

    /// What was judged last was refused.
    pub(super) const fn refused(&mut self) {
        self.since_refusal = Some(0);
    }

    /// What is to be judged, after a look: something else than last time, that has been found twice; what was refused, once more
    /// after a while; or whatever there is where somebody `is_told` to.
    pub(super) fn look(&mut self, found: Found, is_told: bool) -> Option<&Found> {
        let is_settled = found == self.last;
        self.last = found;
        let is_again = self.since_refusal.as_mut().is_some_and(|looks| {
            *looks += 1;
            *looks >= LOOKS
        });
        let is_due = is_told || is_settled && (is_again || self.last != self.judged);
        is_due.then(|| {
            self.since_refusal = None;
            self.judged.clone_from(&self.last);
            &self.judged
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Found {
        Ok(Some(text.to_owned()))
    }

    #[test]
    fn what_is_new_is_judged_once_when_it_was_found_twice() {
        let mut watch = Watch::new(text("a"));
        assert_eq!(watch.look(text("a"), false), None);
        // While it is being written.
        for part in ["", "b", "b c"] {
            assert_eq!(watch.look(text(part), false), None, "{part}");
        }
        assert_eq!(watch.look(text("b c"), false), Some(&text("b c")));
        assert_eq!(watch.look(text("b c"), false), None);
        let gone = || Err("gone".to_owned());
        assert_eq!(watch.look(gone(), false), None);
        assert_eq!(watch.look(gone(), false), Some(&gone()));
        assert_eq!(watch.look(text("b c"), false), None);
        assert_eq!(watch.look(text("b c"), false), Some(&text("b c")), "it is good again, which is news");
    }

    #[test]
    fn what_was_refused_is_judged_again_after_a_while() {
        let mut watch = Watch::new(text("a"));
        assert_eq!(watch.look(text("b"), true), Some(&text("b")));
        for _ in 0..3 {
            watch.refused();
            for _ in 1..LOOKS {
                assert_eq!(watch.look(text("b"), false), None);
            }
            assert_eq!(watch.look(text("b"), false), Some(&text("b")));
        }
        assert!((0..2 * LOOKS).all(|_| watch.look(text("b"), false).is_none()), "it was good");
    }

    #[test]
    fn who_is_told_to_judges_whatever_there_is() {
        let mut watch = Watch::new(text("a"));
        assert_eq!(watch.look(text("b"), true), Some(&text("b")));
        assert_eq!(watch.look(text("b"), false), None);
        assert_eq!(watch.look(text("b"), true), Some(&text("b")));
    }
}
