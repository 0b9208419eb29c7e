const WINDOW: &str = include_str!("../../../../lua/window.lua");
const ADMIT: &str = include_str!("../../../../lua/admit.lua");
const SETTLE: &str = include_str!("../../../../lua/settle.lua");
const STANDING: &str = include_str!("../../../../lua/standing.lua");
const BLAME: &str = include_str!("../../../../lua/blame.lua");
const CALIBRATE: &str = include_str!("../../../../lua/calibrate.lua");
const BOOK: &str = include_str!("../../../../lua/book.lua");
const WORDS: &str = include_str!("../../../../lua/words.lua");
const SAY: &str = include_str!("../../../../lua/say.lua");
const RESTORE: &str = include_str!("../../../../lua/restore.lua");
const SLOTS: &str = include_str!("../../../../lua/slots.lua");
const ACQUIRE: &str = include_str!("../../../../lua/acquire.lua");
const RENEW: &str = include_str!("../../../../lua/renew.lua");
const REGISTER: &str = include_str!("../../../../lua/register.lua");
const REGISTERED: &str = include_str!("../../../../lua/registered.lua");

/// A script, and what a server that knows it calls it.
pub(super) struct Script {
    text: String,
    digest: Box<str>,
}

impl Script {
    fn new(text: String) -> Self {
        let digest = redis::Script::new(&text).get_hash().into();
        Self { text, digest }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }
}

/// How the scripts read the clock.
const CLOCK: &str = "redis.call('TIME')";

/// The scripts of the folder `lua/`; those of accounts have the window's arithmetic before them, `calibrate` the rule
/// `blame`, those of operators' words the book, and those of slots what they have in common.
pub struct Scripts {
    pub(super) admit: Script,
    pub(super) settle: Script,
    pub(super) standing: Script,
    pub(super) calibrate: Script,
    pub(super) register: Script,
    pub(super) registered: Script,
    pub(super) words: Script,
    pub(super) say: Script,
    pub(super) restore: Script,
    pub(super) acquire: Script,
    pub(super) renew: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        Self::with_clock(CLOCK)
    }
}

impl Scripts {
    /// The scripts with a Lua expression for `{ seconds, microseconds }` in place of Redis' clock: a test moves time
    /// instead of waiting for it.
    pub fn with_clock(expression: &str) -> Self {
        let script = |text: &str| Script::new(text.replace(CLOCK, expression));
        let of_book = |body: &str| script(&format!("{BOOK}{body}"));
        let of_slots = |body: &str| script(&format!("{SLOTS}{body}"));
        let of_accounts = |body: &str| script(&format!("{WINDOW}{body}"));
        Self {
            admit: of_accounts(ADMIT),
            settle: of_accounts(SETTLE),
            standing: of_accounts(STANDING),
            calibrate: script(&format!("{BLAME}{CALIBRATE}")),
            register: script(REGISTER),
            registered: script(REGISTERED),
            words: of_book(WORDS),
            say: of_book(SAY),
            restore: of_book(RESTORE),
            acquire: of_slots(ACQUIRE),
            renew: of_slots(RENEW),
        }
    }
}
