//! The derivatives on `docs/operators.md`: the formula in the row, if it consists of calls that users have,
//! otherwise its mathematics, in the table here.

use namegrad::ops::{self, Gradients, Op};
use std::collections::BTreeSet;

/// The op, the inputs, and their gradient: `g` is the gradient of `y`, and `n` the number of elements that were
/// reduced to one.
const MATHEMATICS: &[(&str, &str, &str)] = &[
    ("sinc", "x", "`g (cos πx - sinc x) / x`"),
    ("gelu", "x", "`g (Φ(x) + x φ(x))`, with the normal distribution `Φ` and its density `φ`"),
    ("i1", "x", "`g (I₀(x) - I₁(x) / x)`"),
    ("i1e", "x", "`g e^-|x| (I₀(x) - I₁(x) / x - sign(x) I₁(x))`"),
    ("ndtr", "x", "`g e^(-x²/2) / √(2π)`"),
    ("logit", "x", "`g / (x (1 - x))`; 0 where `x` was limited by `eps`"),
    ("elu", "x", "`g` if `x > 0`, else `g alpha e^x`"),
    ("celu", "x", "`g` if `x > 0`, else `g e^(x / alpha)`"),
    ("selu", "x", "`scale g` if `x > 0`, else `scale alpha g e^x`"),
    ("mish", "x", "`g (t + x σ(x) (1 - t²))` with `t = tanh(softplus(x))`"),
    ("hardswish", "x", "0 for `x ≤ -3`, `g` for `x ≥ 3`, `g (x/3 + 1/2)` between"),
    ("hardsigmoid", "x", "`g / 6` for `-3 < x < 3`, else 0"),
    ("pow", "x", "`g b x^(b-1)` with `b = exponent`; 0 where `b` is 0"),
    ("pow", "exponent", "`g y ln x`; 0 where `x` is 0 and the exponent is not negative"),
    ("atan2", "x", "`g other / (x² + other²)`"),
    ("atan2", "other", "`-g x / (x² + other²)`"),
    ("logaddexp", "x", "`g σ(x - other)`"),
    ("logaddexp", "other", "`g σ(other - x)`"),
    ("logaddexp2", "x", "`g σ((x - other) ln 2)`"),
    ("logaddexp2", "other", "`g σ((other - x) ln 2)`"),
    ("xlog1py", "x", "`g ln(1 + other)`; 0 where `x` is 0 and `other` is at most -1"),
    ("gammainc", "other", "`g other^(x-1) e^-other / Γ(x)`"),
    ("gammaincc", "other", "`-g other^(x-1) e^-other / Γ(x)`"),
    ("xlogy", "x", "`g ln other`; 0 where `x` is 0 and `other` is not positive"),
    ("bernoulli_cross_entropy", "x", "`g (x - other) / (x (1 - x))`, with a divisor of 1e-12 at least"),
    ("maximum", "x", "`g` where `x` is larger, half of it where both are equal"),
    ("maximum", "other", "`g` where `other` is larger, half of it where both are equal"),
    ("minimum", "x", "`g` where `x` is smaller, half of it where both are equal"),
    ("minimum", "other", "`g` where `other` is smaller, half of it where both are equal"),
    ("fmax", "x", "`g` where `x ≥ other` or `other` is NaN"),
    ("fmax", "other", "`g` elsewhere"),
    ("fmin", "x", "`g` where `x ≤ other` or `other` is NaN"),
    ("fmin", "other", "`g` elsewhere"),
    ("clamp_min", "x", "`g` where `x ≥ min`"),
    ("clamp_min", "min", "`g` where `x < min`"),
    ("clamp_max", "x", "`g` where `x ≤ max`"),
    ("clamp_max", "max", "`g` where `x > max`"),
    ("heaviside", "values", "`g` where `x` is 0"),
    ("lerp", "x", "`g (1 - weight)`"),
    ("clamp", "x", "`g` where `min ≤ x ≤ max`"),
    ("clamp", "min", "`g` where `x < min ≤ max`"),
    ("clamp", "max", "`g` where `x > max` or `max < min`"),
    ("sum", "x", "`g`, repeated over `dim`"),
    ("prod", "x", "`g` times the product of the other elements"),
    ("mean", "x", "`g / n`, repeated over `dim`"),
    ("amax", "x", "`g` at the largest element; equal ones share it"),
    ("amin", "x", "`g` at the smallest element; equal ones share it"),
    ("aminmax", "x", "`g_min` at the smallest and `g_max` at the largest element; equal ones share it"),
    ("logsumexp", "x", "`g e^(x - y)`"),
    ("var", "x", "`2 g (x - mean) / (n - correction)`"),
    ("std", "x", "`g (x - mean) / (y (n - correction))`; 0 where `y` is 0"),
    ("var_mean", "x", "`2 g_var (x - mean) / (n - correction) + g_mean / n`"),
    ("std_mean", "x", "`g_std (x - mean) / (std (n - correction)) + g_mean / n`"),
    ("norm", "x", "`g x / y`; 0 where `y` is 0"),
    ("vector_norm", "x", "`g sign(x) |x / y|^(ord-1)`; 0 where `y` is 0"),
    ("nansum", "x", "`g` where `x` is not NaN"),
    ("nanmean", "x", "`g / n` where `x` is not NaN, with the number `n` of such elements"),
    ("cumsum", "x", "the sum of `g` from the end to each position"),
    (
        "cumprod",
        "x",
        "for each position, `Σ g y / x` over it and the later ones; without division beside zeros",
    ),
    ("logcumsumexp", "x", "for each position, `Σ g e^(x - y)` over it and the later ones"),
    ("permute", "x", "`g`, permuted back"),
    ("expand", "x", "`g`, summed over the repeated dims"),
    ("repeat", "x", "`g`, summed over the repetitions"),
    ("narrow", "x", "`g` in its place, 0 elsewhere"),
    ("slice", "x", "`g` in its place, 0 elsewhere"),
    ("select", "x", "`g` in its place, 0 elsewhere"),
    ("diagonal", "x", "`g` on the diagonal, 0 elsewhere"),
    ("unfold", "x", "the sum of `g` over the windows that an element is in"),
    ("scatter_add", "source", "`g.gather(index, dim)`"),
    ("scatter", "source", "`g.gather(index, dim)`"),
    ("index_copy", "source", "`g.index_select(index, dim)`"),
    ("index_add", "source", "`g.index_select(index, dim)`"),
    ("masked_select", "x", "`g` in its places, 0 elsewhere"),
    ("roll", "x", "`g`, rolled back"),
    ("mm", "other", "`x.t()?.mm(g)?`"),
    ("matmul", "x", "`g` times `other` with its last two dims swapped, summed over broadcast dims"),
    ("matmul", "other", "`x` with its last two dims swapped times `g`, summed over broadcast dims"),
    ("addmm", "x", "`beta g`"),
    ("addmm", "a", "`alpha g bᵀ`"),
    ("addmm", "b", "`alpha aᵀ g`"),
    ("addmv", "x", "`beta g`"),
    ("addmv", "a", "`alpha g bᵀ`"),
    ("addmv", "b", "`alpha aᵀ g`"),
    ("baddbmm", "x", "`beta g`"),
    ("baddbmm", "a", "`alpha g bᵀ`, for each matrix"),
    ("baddbmm", "b", "`alpha aᵀ g`, for each matrix"),
    ("addcmul", "a", "`value g b`"),
    ("addcmul", "b", "`value g a`"),
    ("addcdiv", "a", "`value g / b`"),
    ("addcdiv", "b", "`-value g a / b²`"),
    ("outer", "x", "`g.mv(other)`"),
    ("outer", "other", "`g.t()?.mv(x)`"),
    ("tensordot", "x", "`g` and `other`, contracted over the dims of `other` that were not"),
    ("tensordot", "other", "`x` and `g`, contracted over the dims of `x` that were not"),
    ("contract", "x", "`g` and `other`, contracted over the dims that `other` alone gave to `y`"),
    ("contract", "other", "`x` and `g`, contracted over the dims that `x` alone gave to `y`"),
    (
        "qr",
        "x",
        "`(g_q + q copyltu(m)) r⁻ᵀ` with `m = r g_rᵀ - g_qᵀ q`, for matrices with as many rows as columns or more",
    ),
    ("solve_triangular", "x", "`-(x⁻ᵀ g) yᵀ` in the triangle, 0 elsewhere; on the right likewise"),
    ("solve_triangular", "other", "`x⁻ᵀ g`: the system with the transposed triangle"),
    ("convolution", "x", "`g.convolution_input(weight, ..)`, the transposed convolution"),
    ("convolution", "weight", "`x.convolution_weight(g, ..)`"),
    ("convolution", "bias", "`g`, summed over all dims but the channels"),
    ("convolution_input", "x", "`g.convolution(weight)`"),
    ("convolution_input", "weight", "`g.convolution_weight(x, ..)`"),
    (
        "convolution_weight",
        "x",
        "`g.convolution_input(of y, ..)`, the transposed convolution with the gradient of `y`",
    ),
    ("convolution_weight", "g", "`x.convolution(of y)`, the convolution with the gradient of `y`"),
    ("avg_pool", "x", "`g` divided by the size of its window, summed over the windows that an element is in"),
    ("resample", "x", "`g`, distributed by the same weights"),
    ("sample_at", "x, grid", "`g` by the weights of the sampling, and by their slopes"),
    ("sample_at_input", "x", "`g.sample_at(grid, sampling)`"),
    ("sample_at_input", "grid", "`g` by the slopes of the weights of the sampling"),
    (
        "scatter_reduce",
        "x, source",
        "by `reduce`, of the elements for a position: `g` for a sum, `g / n` for the mean of `n`, `g` times the other factors for a product, `g` at the extreme, which equal ones share",
    ),
    ("index_reduce", "x, source", "as those of `scatter_reduce`, with slices for elements"),
    ("layer_norm", "x, weight, bias", "Ba et al. 2016; one kernel for all"),
    ("rms_norm", "x, weight", "Zhang and Sennrich 2019; one kernel for both"),
    (
        "standardize",
        "x, weight, bias",
        "Ioffe and Szegedy 2015, with the gradients of `mean` and `var`; one kernel for all",
    ),
    (
        "scaled_dot_product_attention",
        "query, key, value, attn_mask",
        "Dao et al. 2022: from `y` and the saved logarithms of the sums, block by block",
    ),
    (
        "recurrent",
        "x, hx, w_ih, w_hh, cx, b_ih, b_hh, w_hr",
        "backpropagation through time, with the saved gates",
    ),
    ("class_cross_entropy", "x", "`g (softmax(x) - one-hot(target))`; 0 where the target is ignored"),
];

/// Whether a formula consists of operators, methods of tensors and constants that users have.
fn is_public(formula: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    let mut ok = !formula.contains("&*") && !formula.contains("wants");
    while let Some(start) = formula[at..].find(is_word).map(|start| at + start) {
        let end = formula[start..].find(|c| !is_word(c)).map_or(formula.len(), |end| start + end);
        let (word, before, after) = (&formula[start..end], &formula[..start], &formula[end..]);
        let called = after.starts_with('(') && !before.ends_with(['.', ':']);
        let constant =
            word.len() > 1 && word.chars().all(|c| c.is_uppercase() || c == '_') && !before.ends_with(':');
        ok &= !called || word == "keep";
        ok &= !constant || ["PI", "TAU", "LN_2"].contains(&word);
        at = end;
    }
    ok
}

/// The gradients of an op, for readers.
pub(crate) fn derivative(op: &Op) -> String {
    match op.gradients {
        Gradients::Formulas(formulas) => {
            let text = |(inputs, formula): &(&str, &str)| {
                let said = MATHEMATICS.iter().find(|(name, of, _)| *name == op.info.name && of == inputs);
                let gradient = match said {
                    Some((.., mathematics)) => mathematics.replace('|', "\\|"),
                    None => {
                        let words: Vec<&str> = formula.split_whitespace().collect();
                        format!("`{}`", words.join(" ").replace(" ?", "?").replace('|', "\\|"))
                    }
                };
                format!("{inputs}: {gradient}")
            };
            formulas.iter().map(text).collect::<Vec<_>>().join("; ")
        }
        Gradients::Recorded => "recorded by a function".into(),
        Gradients::Composed => "from the ops that it calls".into(),
        Gradients::Constant => "none: the result is not differentiable".into(),
        Gradients::Refused => "none: an error on a tensor that requires a gradient".into(),
    }
}

#[test]
fn formulas_of_the_page_are_public() {
    let (mut private, mut known) = (Vec::new(), BTreeSet::new());
    for op in ops::all() {
        let Gradients::Formulas(formulas) = op.gradients else { continue };
        for (inputs, formula) in formulas {
            let words: Vec<&str> = formula.split_whitespace().collect();
            if !is_public(&words.join(" ").replace(" (", "(")) {
                known.insert((op.info.name, *inputs));
                if !MATHEMATICS.iter().any(|(name, of, _)| *name == op.info.name && of == inputs) {
                    private.push(format!("{} of {}: {formula}", inputs, op.info.name));
                }
            }
        }
    }
    assert!(
        private.is_empty(),
        "say the mathematics in tests/registry/derivatives.rs:\n{}",
        private.join("\n")
    );
    let idle = MATHEMATICS.iter().filter(|(name, of, _)| !known.contains(&(*name, *of)));
    let idle: Vec<String> = idle.map(|(name, of, _)| format!("{of} of {name}")).collect();
    assert!(idle.is_empty(), "the formulas in the rows of these can be shown: {idle:?}");
}
