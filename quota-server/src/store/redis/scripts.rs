use redis::Script;

const WINDOW: &str = include_str!("../../../../lua/window.lua");
const ADMIT: &str = include_str!("../../../../lua/admit.lua");
const SETTLE: &str = include_str!("../../../../lua/settle.lua");
const STANDING: &str = include_str!("../../../../lua/standing.lua");

/// The one place in the scripts where the clock is read.
const CLOCK: &str = "redis.call('TIME')";

/// The scripts of the folder `lua/`, each with the window's arithmetic before it.
pub struct Scripts {
    pub(super) admit: Script,
    pub(super) settle: Script,
    pub(super) standing: Script,
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
        let script = |body: &str| Script::new(&format!("{}{body}", WINDOW.replace(CLOCK, expression)));
        Self { admit: script(ADMIT), settle: script(SETTLE), standing: script(STANDING) }
    }
}
