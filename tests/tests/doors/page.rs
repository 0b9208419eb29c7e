//! Blocks of code in pages of the documentation.

use std::fs;

use crate::root;

/// The blocks of a language, in their order.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let blocks = text.split("\n```").skip(1).step_by(2);
    let of = |block: &str| Some(block.strip_prefix(language)?.strip_prefix('\n')?.to_owned() + "\n");
    blocks.filter_map(of).collect()
}

/// What a page shows in whole is the file that it names above it.
#[test]
fn what_is_shown_of_a_file_is_the_file() {
    for (page, folder, extension, language) in
        [("rails.md", "rails", "rb", "ruby"), ("other-languages.md", "python", "py", "python")]
    {
        let mut shown = blocks(page, language);
        let entries = fs::read_dir(root().join("docs").join(folder)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        let mut files: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|of| of == extension))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        shown.retain(|block| block.starts_with('#'));
        shown.sort();
        files.sort();
        assert!(!files.is_empty(), "{folder}");
        assert_eq!(shown, files, "{page}");
    }
}
