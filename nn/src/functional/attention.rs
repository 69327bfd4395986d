//! Attention.

use namegrad_macros::functions;

functions! {
    attention: scaled_dot_product_attention;
}
