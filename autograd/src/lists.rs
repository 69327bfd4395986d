//! Lists of dims and sizes. They are made by functions that are compiled once, and not for each closure.

/// The numbers below `count` that are wanted.
pub(crate) fn numbers(count: usize, is_wanted: &dyn Fn(usize) -> bool) -> Vec<usize> {
    let mut numbers = Vec::new();
    for number in 0..count {
        if is_wanted(number) {
            numbers.push(number);
        }
    }
    numbers
}

/// The dims below `count` that are not in `dims`.
pub(crate) fn others(count: usize, dims: &[usize]) -> Vec<usize> {
    numbers(count, &|dim| !dims.contains(&dim))
}

/// The items of `list` at these positions.
pub(crate) fn at(list: &[usize], positions: &[usize]) -> Vec<usize> {
    let mut items = Vec::with_capacity(positions.len());
    for position in positions {
        items.push(list[*position]);
    }
    items
}

/// The product of the items of `list` at these positions.
pub(crate) fn product_at(list: &[usize], positions: &[usize]) -> usize {
    let mut product = 1;
    for position in positions {
        product *= list[*position];
    }
    product
}
