//! Derivatives of the ops that count and search. Only sums of weights have one.

use namegrad_macros::derivatives;

derivatives! { count; |g, cx|
    bincount(x, weights) -> y { x: refused, weights: [x] g.index_select(x, 0)? }
    bucketize searchsorted constant;
    histc unique unique_dim refused;
}
