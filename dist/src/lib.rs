//! Training on many processes, on one machine or many: groups of ranks that exchange named tensors, and models
//! whose gradients are averaged while they are computed. Messages go through MPI.
//!
//! ```
//! use namegrad::prelude::*;
//! use namegrad_dist::{Group, Reduction};
//!
//! let group = Group::world()?; // without `mpirun`, a group of one
//! let x = Tensor::full([("N", 2)], group.rank() as f64)?;
//! let sum = group.all_reduce(&x, Reduction::Sum)?;
//! let expected = (0..group.size()).sum::<usize>() as f32;
//! assert_eq!(sum.to_vec::<f32>()?, [expected; 2]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Where to find what
//!
//! * [`run`]: the `main` of a program with several ranks; when one fails, all end.
//! * [`Group`]: the ranks, and what they exchange: [`all_reduce`](Group::all_reduce),
//!   [`all_gather`](Group::all_gather), ... The ops with a derivative can be in models.
//! * [`DataParallel`]: a model of which every rank has a copy.
//! * [`Mesh`]: a model whose dims are split over the ranks by name.
//! * [`Pending`]: an exchange that goes on while the program computes.
//! * [`plan()`]: what each of up to thousands of ranks would compute, hold and send in a step.
//! * [`Backend`]: what a group needs from a message-passing library.
//!
//! `docs/scale.md` goes from the first run to a cluster.

mod backend;
mod check;
mod collective;
mod data_parallel;
mod group;
mod mesh;
mod mpi;
mod pending;
mod plan;
mod point;
mod run;
mod traffic;

pub use backend::{Backend, Reduction, Single, Transfer, Work};
pub use data_parallel::DataParallel;
pub use group::Group;
pub use mesh::Mesh;
pub use pending::Pending;
pub use plan::{Exchange, Machine, RankPlan, Times, plan};
pub use run::run;
