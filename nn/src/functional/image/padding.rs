//! Elements before and after dims: constants, or copies of the elements that there are.

use super::*;
use namegrad_core::Scalar;

/// Checks what is added to a dim, and returns its new length.
fn padded_length(x: &Tensor, dim: usize, [before, after]: [isize; 2]) -> Result<usize> {
    let length = x.sizes()[dim];
    let made = (length as isize).checked_add(before).and_then(|made| made.checked_add(after));
    let fewer = before.min(0).saturating_add(after.min(0)).unsigned_abs();
    ensure_memory(made.is_some(), format_args!("{before} and {after} elements more than {length}"))?;
    (fewer <= length)
        .or_value(format_args!("{fewer} elements cannot be removed from a length of {length}"))?;
    Ok(made.unwrap_or(0) as usize)
}

/// `x` without the elements that negative numbers remove.
fn cropped(x: &Tensor, dim: usize, [before, after]: [isize; 2]) -> Result<Tensor> {
    let [start, end] = [before, after].map(|pad| pad.min(0).unsigned_abs());
    match start + end {
        0 => Ok(x.clone()),
        fewer => x.narrow(dim, start, x.sizes()[dim].saturating_sub(fewer)),
    }
}

pub(crate) fn with_constant(x: &Tensor, pads: &[(usize, [isize; 2])], value: Scalar) -> Result<Tensor> {
    let mut y = x.rename(None)?;
    for (dim, pad) in pads {
        padded_length(x, *dim, *pad)?;
        let mut parts = vec![cropped(&y, *dim, *pad)?];
        for (at, count) in pad.iter().enumerate().filter(|(_, count)| **count > 0) {
            let mut sizes = copied(y.sizes());
            sizes[*dim] = count.unsigned_abs();
            let side = y.new_full(sizes, value)?;
            parts.insert(if at == 0 { 0 } else { parts.len() }, side);
        }
        y = if parts.len() == 1 { parts.remove(0) } else { Tensor::cat(&parts, *dim)? };
    }
    with_names(y, x.names())
}

/// `x` with copies of its own elements before and after dims.
pub(crate) fn repeated(x: &Tensor, pads: &[(usize, [isize; 2])], mode: PadMode) -> Result<Tensor> {
    let mut y = x.clone();
    for (dim, pad) in pads.iter().filter(|(_, pad)| *pad != [0, 0]) {
        let length = x.sizes()[*dim];
        let most = match mode {
            PadMode::Reflect => length.saturating_sub(1),
            PadMode::Circular => length,
            _ if length == 0 => 0,
            _ => isize::MAX as usize,
        };
        let more = pad[0].max(pad[1]);
        let mut made = padded_length(x, *dim, *pad)?;
        let fewer: usize = pad.iter().map(|pad| pad.min(&0).unsigned_abs()).sum();
        if mode == PadMode::Circular && fewer == length {
            made = 0; // nothing is left to repeat
        }
        if more > 0 && more.unsigned_abs() > most || made == 0 {
            let (mode, [before, after]) = (format!("{mode:?}").to_lowercase(), pad);
            return Err(value_error(match made {
                0 => format!("{mode} padding by {before} and {after} leaves nothing of a length of {length}"),
                _ => format!("{mode} padding of a length of {length} can be at most {most}, got {more}"),
            }));
        }
        let mut places: Vec<i64> = Vec::new();
        ensure_memory(places.try_reserve_exact(made).is_ok(), format_args!("a length of {made}"))?;
        // The elements of the other end are those that are left; reflected are those that there were.
        let (first, last) = match mode {
            PadMode::Circular => (-pad[0].min(0) as i64, length as i64 - 1 + pad[1].min(0) as i64),
            _ => (0, length as i64 - 1),
        };
        let start = -(pad[0] as i64);
        places.extend((start..start + made as i64).map(|at| match mode {
            PadMode::Circular => first + (at - first).rem_euclid(last - first + 1),
            PadMode::Reflect if at < 0 => -at,
            PadMode::Reflect if at > last => 2 * last - at,
            _ => at.clamp(0, last),
        }));
        let index = tensor_of(&places, &[made])?;
        y = y.index_select(index, *dim)?;
    }
    Ok(y)
}
