//! The threads of a loader. The test has a process of its own, so it can count them.

use namegrad::data::{Loader, Samples};
use namegrad::prelude::*;
use std::time::{Duration, Instant};

/// The threads that loaders have started.
fn loader_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let name =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    // The system cuts names at 15 bytes.
    tasks.map(name).filter(|name| name.starts_with("namegrad-loader")).count()
}

/// Whether no threads are left. The system lists a thread for a moment after it has ended and was waited for.
fn none_left() -> bool {
    let until = Instant::now() + Duration::from_secs(5);
    while loader_threads() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    loader_threads() == 0
}

#[test]
fn in_a_process_of_its_own() {
    namegrad_tests::run_alone("threads::");
}

#[test]
#[ignore = "run by `in_a_process_of_its_own`"]
fn threads_live_as_long_as_the_iterator() -> Result<()> {
    let loader = Loader::builder(Samples::new(vec![0i64; 100])).batch_size(5).workers(3).build()?;
    assert_eq!(loader_threads(), 0);
    let mut batches = loader.iter();
    batches.next().unwrap()?;
    drop(batches);
    assert!(none_left(), "after an early end");
    for _ in 0..20 {
        for batch in &loader {
            batch?;
        }
        assert!(none_left(), "after an epoch");
    }
    let mut batches = loader.iter();
    assert_eq!(batches.by_ref().count(), 20);
    assert!(batches.next().is_none());
    assert!(none_left(), "after the last batch");
    Ok(())
}
