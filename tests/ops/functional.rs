//! Functions of `nn`. Most have no row here because there are answers recorded from PyTorch.

use crate::check::values;

cases! {
    mse_loss {
        (x: values("N=2 C=3"), target: values("C=3"); "none") => "N=2 C=3" numeric, |i| (x.at(i) - target.at(&i[1..])).powi(2), scale 9.0;
    }
    // With a large temperature the noise and the logits do not matter.
    gumbel_softmax {
        (logits: values("N=2 C=4"); "C", 1e30) => "N=2 C=4" floats, |i| 0.25;
    }
}
