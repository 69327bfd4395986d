//! [`ByPath`]: a list that is sorted by path.

use namegrad_io::sorted::find;

/// Values by path, in the order of the paths.
#[derive(Clone, Debug)]
pub(crate) struct ByPath<V>(Vec<(String, V)>);

impl<V> Default for ByPath<V> {
    fn default() -> ByPath<V> {
        ByPath(Vec::new())
    }
}

impl<V> ByPath<V> {
    /// The position of a path, or the position where it would be.
    fn position(&self, path: &str) -> Result<usize, usize> {
        find(self.0.len(), &|at| &self.0[at].0, path)
    }

    pub(crate) fn get(&self, path: &str) -> Option<&V> {
        self.position(path).ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.position(path).is_ok()
    }

    /// Sets a value and returns the previous one.
    pub(crate) fn insert(&mut self, path: String, value: V) -> Option<V> {
        match self.position(&path) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (path, value));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, path: &str) -> Option<V> {
        self.position(path).ok().map(|at| self.0.remove(at).1)
    }

    pub(crate) fn entries(&self) -> &[(String, V)] {
        &self.0
    }

    pub(crate) fn entries_mut(&mut self) -> &mut Vec<(String, V)> {
        &mut self.0
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, _)| path.as_str())
    }
}
