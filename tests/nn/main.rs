//! Layers, losses and models: dims by name, states, hooks, and what they refuse.

mod attention;
mod conv;
mod equivalents;
mod hooks;
mod images;
mod layers;
mod linear;
mod losses;
mod meta;
mod module;
mod norm_layers;
mod options;
mod pattern;
mod pool;
mod recurrent;
mod state_dict;

/// All orders of the names of some dims.
fn orders(names: &[&'static str]) -> Vec<Vec<&'static str>> {
    match names {
        [] => vec![vec![]],
        _ => (0..names.len())
            .flat_map(|at| {
                let rest = [&names[..at], &names[at + 1..]].concat();
                orders(&rest).into_iter().map(move |order| [&[names[at]], &order[..]].concat())
            })
            .collect(),
    }
}
