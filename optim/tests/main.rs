//! Optimizers, schedules, clipping, scalers and averages.

mod averages;
mod bad_input;
mod clipping;
mod convergence;
mod every_optimizer;
mod formulas;
mod groups_and_state;
mod older_states;
mod scaler;
mod schedules;
mod table;
