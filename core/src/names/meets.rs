//! The rules of names as data: what the row of an op says about its results and its inputs. The registry has
//! them, and `tests/registry/names.rs` proves that they are true.

/// The names of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Those of the first tensor. A dim that an input renames has the name of that input, and a new dim the
    /// one that an argument gives.
    Keeps,
    /// Those of the dims of the first tensor that are left.
    Removes,
    /// Those of the inputs, unified from the right: equal names, or the one where only one dim has a name.
    Unifies,
    /// Those of the first tensor, in another order.
    Permutes,
    /// Those of the dims that are not summed over.
    Contracts,
    /// Those of this input.
    Of(&'static str),
    /// Those in this argument, or none.
    Called(&'static str),
    /// Those of the first tensor if the sizes stay the same, or those that are given with the sizes.
    Reshapes,
    /// None.
    Unnamed,
}

/// How the names of an input meet those of the first tensor. Unless a variant says otherwise, a dim with
/// another name, or in another order, is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    /// It is the first tensor.
    First,
    /// From the right, each dim has the name of the other tensor's dim, or one of them has none.
    Unified,
    /// It has the same dims as the first tensor, one by one.
    Matched,
    /// It has the same dims, except that the dim in this argument can have its own name.
    Beside(&'static str),
    /// It has the dims that are left without the dim in this argument.
    Without(&'static str),
    /// Its dims are those in this argument.
    Along(&'static str),
    /// A vector of positions along the dim in this argument. It can have its own name, but not that of another
    /// dim.
    Picks(&'static str),
    /// The dim in this argument gets its name.
    Renames(&'static str),
    /// Dims that are summed over can have different names, except in strict mode; the others unify.
    Contracted,
    /// Its dims are the ones that this argument says, in any order.
    By(&'static str),
    /// Its dims are found by name, in any order.
    Aligned,
    /// Its dims are not those of the first tensor. Their names are in the result.
    Own,
    /// Its names are not looked at: its dims are those of no other tensor.
    Free,
}
