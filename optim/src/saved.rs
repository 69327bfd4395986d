//! States as files.

use super::*;
use schedule::SchedulerState;
use std::path::Path;

for_types!(OptimizerState, AverageState, GradScalerState, SchedulerState => State {
    impl State {
        /// Writes the state to a safetensors file. If that fails, an existing file is unchanged.
        ///
        /// # Errors
        /// The errors of [`to_file`](Self::to_file) and of [`TensorFile::save`].
        #[track_caller]
        pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
            self.to_file()?.save(path)
        }

        /// Reads a state from a file.
        ///
        /// # Errors
        /// The errors of [`TensorFile::load`]; [`ErrorKind::Format`] if the file is not such a state.
        #[track_caller]
        pub fn load(path: impl AsRef<Path>) -> Result<Self> {
            TensorFile::load_as(path, Self::from_file)
        }
    }
});

for_types!(GradScalerState, SchedulerState => State {
    impl State {
        /// The content of the file that [`save`](Self::save) writes.
        ///
        /// # Errors
        /// [`ErrorKind::Value`] if the state has no JSON form.
        #[track_caller]
        pub fn to_file(&self) -> Result<TensorFile> {
            self.clone().fields().to_file()
        }

        /// The state in a file's content.
        ///
        /// # Errors
        /// [`ErrorKind::Format`] if it is not such a state.
        #[track_caller]
        pub fn from_file(file: &TensorFile) -> Result<State> {
            let mut state = State::default();
            state.fields().read(file)?;
            Ok(state)
        }
    }
});
