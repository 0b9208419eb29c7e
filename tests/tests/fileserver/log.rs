//! What the client writes to the log.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

thread_local! {
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// From now on each thread of this process keeps what it logs, such as that of a test whose runtime has no other. It is
/// one subscriber for all of them: of one that a single thread has, `tracing` may ask another thread, which has none,
/// whether anybody wants a line, and remembers the answer for all.
pub(crate) fn keep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| ThisThread).init());
}

/// The lines of this thread that contain `text`.
pub(crate) fn lines(text: &str) -> Vec<String> {
    WRITTEN.with_borrow(|written| {
        let log = String::from_utf8_lossy(written);
        log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    })
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
