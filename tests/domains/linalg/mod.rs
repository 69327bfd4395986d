//! Tests of linear algebra as a user sees it. `table` has what holds for each method, such as `x = q r`, for
//! matrices of many sizes; the other files are about names, errors and gradients.

mod checks;
mod names;
mod table;
