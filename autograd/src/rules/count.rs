//! Derivatives of the ops that count and search: of these a sum of weights alone has one.

use namegrad_macros::derivatives;

derivatives! { count; |g, cx|
    bincount(x, weights) -> y { x: refused, weights: [x] g.index_select(x, 0)? }
    bucketize searchsorted constant;
    histc unique refused;
}
