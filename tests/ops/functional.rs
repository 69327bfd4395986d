//! Functions of `nn`. Most have no row here because there are answers recorded from PyTorch.

use crate::check::values;

cases! {
    mse_loss {
        (x: values("N=2 C=3"), target: values("C=3"); "none") => "N=2 C=3" numeric, |i| (x.at(i) - target.at(&i[1..])).powi(2), scale 9.0;
    }
}
