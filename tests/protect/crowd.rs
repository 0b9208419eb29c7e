use quota_tests::repositories::{LARGE, LIGHT};

/// Who comes to the fileserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowd {
    /// One light user with a repository of its own, and twenty others who clone a large one.
    Noisy,
    /// Five light users of one popular repository, and one user with twenty clones at a time of several large ones.
    Whale,
}

/// A user, and the repository that it fetches.
pub(crate) struct Visitor {
    pub(crate) user: String,
    pub(crate) repository: &'static str,
}

/// How many clone without end.
const CLONES: usize = 20;

impl Crowd {
    pub(crate) const ALL: [Self; 2] = [Self::Noisy, Self::Whale];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Noisy => "20 noisy users",
            Self::Whale => "a popular repository and a whale",
        }
    }

    /// Those who fetch once a second.
    pub(crate) fn light(self) -> Vec<Visitor> {
        let count = match self {
            Self::Noisy => 1,
            Self::Whale => 5,
        };
        (0..count).map(|number| Visitor { user: format!("light-{number}"), repository: LIGHT }).collect()
    }

    /// Those who clone again and again.
    pub(crate) fn heavy(self) -> Vec<Visitor> {
        let visitor = |number: usize| match self {
            Self::Noisy => Visitor { user: format!("noisy-{number}"), repository: LARGE[0] },
            Self::Whale => Visitor { user: "whale".to_owned(), repository: LARGE[number % LARGE.len()] },
        };
        (0..CLONES).map(visitor).collect()
    }
}
