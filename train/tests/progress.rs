//! Without a terminal, progress bars print nothing, or a line now and then.

use namegrad::train::progress::{Progress, progress};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The variable that makes a test of this program the loop that another one looks at.
const ROLE: &str = "NAMEGRAD_TEST_PROGRESS";

#[test]
fn the_loop() {
    match std::env::var(ROLE).as_deref() {
        Ok("silent") => {
            let all = Progress::new(2).label("epochs");
            for epoch in all.over(0..2) {
                let bar = all.nested(5);
                bar.over(0..5).for_each(|item| bar.message(format!("item {item}")));
                all.println(format!("epoch {epoch}"));
            }
            assert_eq!(progress(0..5).count(), 5);
        }
        Ok("lines") => {
            let bar = Progress::new(5).label("steps").every(Duration::ZERO);
            bar.over(0..5).for_each(|item| bar.message(format!("item {item}")));
        }
        Ok("rare lines") => {
            let bar = Progress::new(5).label("epoch 1").every(Duration::from_secs(3600));
            bar.over(0..5).for_each(|item| bar.message(format!("item {item}")));
            bar.over(0..5).take(2).for_each(drop); // left before its end
            let bar = Progress::unknown().label("files").every(Duration::from_secs(3600));
            bar.over(0..3).for_each(drop);
            let bar = Progress::new(2).label("by hand").every(Duration::from_secs(3600));
            (0..2).for_each(|_| bar.inc());
        }
        _ => {}
    }
}

/// The output of the loop on stdout and stderr.
fn run(role: &str) -> [String; 2] {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "progress::the_loop", "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success());
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn nothing_is_printed_without_a_terminal() {
    let [stdout, stderr] = run("silent");
    assert_eq!(stderr, "");
    assert!(stdout.contains("epoch 0\n") && stdout.contains("epoch 1\n"), "{stdout}");
}

#[test]
fn lines_are_printed_on_request() {
    let [_, stderr] = run("lines");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 5, "{stderr}");
    assert!(lines[3].starts_with("steps  4/5  ") && lines[3].ends_with(" left  item 3"), "{stderr}");
}

#[test]
fn the_last_line_is_always_printed() {
    let [_, stderr] = run("rare lines");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(lines[0].starts_with("epoch 1  5/5  ") && lines[0].ends_with("/s  in 0 s  item 4"), "{stderr}");
    assert!(lines[1].starts_with("files  3  ") && lines[1].ends_with("/s  in 0 s"), "{stderr}");
    assert!(lines[2].starts_with("by hand  2/2  "), "{stderr}");
}
