//! Functions of `nn`. Most have no row here because there are answers recorded from PyTorch.

use crate::check::{index, values};

cases! {
    mse_loss {
        (x: values("N=2 C=3"), target: values("C=3"); "none") => "N=2 C=3" numeric, |i| (x.at(i) - target.at(&i[1..])).powi(2), scale 9.0;
    }
    channel_shuffle {
        (x: values("N=2 C=6 L=2"); 2, "C") => "N=2 C=6 L=2" any, |i| x.at(&[i[0], i[1] % 2 * 3 + i[1] / 2, i[2]]);
        (x: values("N=0 C=6"); 3, 1) => "N=0 C=6" any, |i| unreachable!();
    }
    embedding_renorm {
        (x: index("time=3", [1, 0, 1]), weight: values("vocab=3 embed=2"); 1.0) => "vocab=3 embed=2" floats, |i| {
            let row = weight.lane(&[i[0], 0], 1);
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            if i[0] < 2 && norm > 1.0 { row[i[1]] / (norm + 1e-7) } else { row[i[1]] }
        }, scale 3.0;
    }
}
