//! The lines of shell in docs/other-languages.md, as they stand.

use quota_tests::process::Program;

use crate::World;
use crate::page::blocks;

/// What each block must print.
const PRINTED: [&[&str]; 5] = [
    &["\"decision\":\"allow\"", "\"reservation\":\"r1."],
    &["\"applied\":1"],
    &["HTTP/1.1 429", "retry-after: ", "\"denied_by\":{\"kind\":\"user\",\"id\":\"carol\""],
    &["HTTP/1.1 200", "cache-control: private, max-age=", "retry-after: ", "\"action\":\"retry\""],
    &["{\"results\":[{\"backoff\":true,\"action\":\"retry\"", "{\"backoff\":false,\"action\":\"proceed\"}]}"],
];

#[tokio::test]
async fn they_print_what_the_page_says() {
    let world = World::new().await;
    let blocks = blocks("other-languages.md", "sh");
    // The last makes the stubs that Python needs.
    assert_eq!(blocks.len(), PRINTED.len() + 1);
    for (block, printed) in blocks.iter().zip(PRINTED) {
        let mut shell = Program::new("bash")
            .args(["-e", "-c", block])
            .env("QUOTA", format!("http://{}", world.http.address()))
            .start();
        let status = shell.wait_for_exit().await;
        assert!(status.success(), "{status}: {block}\n{}", shell.stderr());
        let (output, _) = (shell.stdout(), assert!(!printed.is_empty()));
        for text in printed {
            assert!(output.contains(text), "{text} is not in what this prints: {block}\n{output}");
        }
    }
}
