//! Attention.

use super::*;

functions! {
    attention: scaled_dot_product_attention;
}
