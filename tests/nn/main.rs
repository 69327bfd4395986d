//! Layers, losses and models: dims by name, states, hooks, and what they refuse.

mod attention;
mod conv;
mod hooks;
mod images;
mod layers;
mod linear;
mod losses;
mod module;
mod norm_layers;
mod pool;
mod recurrent;
mod state_dict;
