//! A profile as a Chrome trace.

use super::{Profile, RowKind};
use namegrad_core::{Error, ErrorKind, Result};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::panic::Location;
use std::path::Path;

impl Profile {
    /// Writes a Chrome trace, a JSON file that `chrome://tracing` and <https://ui.perfetto.dev> show: a bar
    /// for each op, each derivative with its ops, and each span, by thread. It has the first million events
    /// of each thread.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be written.
    ///
    /// # Source
    /// Google, *Trace Event Format*, sections "JSON Object Format" and "Complete Events".
    #[track_caller]
    pub fn chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, caller) = (path.as_ref(), Location::caller());
        let write = || {
            let mut out = BufWriter::new(File::create(path)?);
            self.write_trace(&mut out)?;
            out.flush()
        };
        write().map_err(|error: std::io::Error| {
            Error::new(ErrorKind::Io, "chrome_trace", format!("{}: {error}", path.display())).at(caller)
        })
    }

    fn write_trace(&self, out: &mut impl Write) -> std::io::Result<()> {
        let micros = |time: std::time::Duration| time.as_nanos() as f64 / 1e3;
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        for (thread, events) in self.threads.iter().enumerate() {
            let name = if thread == 0 { "program".to_string() } else { format!("thread {thread}") };
            if thread > 0 {
                out.write_all(b",")?;
            }
            let meta =
                json!({"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}});
            write!(out, "\n{meta}")?;
            for event in events {
                let category = match event.key.kind {
                    RowKind::Forward => "forward",
                    RowKind::Backward => "backward",
                    _ => "span",
                };
                let at = event.key.at;
                let bar = json!({
                    "name": event.key.name,
                    "cat": category,
                    "ph": "X",
                    "ts": micros(event.begin),
                    "dur": micros(event.total),
                    "pid": 1,
                    "tid": thread,
                    "args": {
                        "line": format!("{}:{}", at.file(), at.line()),
                        "layer": event.key.layer.as_deref(),
                        "allocated": event.bytes,
                    },
                });
                write!(out, ",\n{bar}")?;
            }
        }
        writeln!(out, "\n],\"otherData\":{{\"dropped events\":{}}}}}", self.dropped)
    }
}
