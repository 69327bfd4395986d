//! Slices.

use crate::check::values;

cases! {
    narrow {
        (x: values("A=2 B=5"); "B", 1, 3) => "A=2 B=3" any, |i| x.at(&[i[0], i[1] + 1]);
        (x: values("A=4 B=2"); 0, -2, 2) => "A=2 B=2" any, |i| x.at(&[i[0] + 2, i[1]]);
        (x: values("A=4"); 0, 4, 0) => "A=0" any, |i| x.at(i);
    }
    slice {
        (x: values("A=2 B=7"); "B", 1, 6, 2) => "A=2 B=3" any, |i| x.at(&[i[0], 1 + 2 * i[1]]);
        (x: values("A=7"); 0, -4, 100, 3) => "A=2" any, |i| x.at(&[3 + 3 * i[0]]);
        (x: values("A=7"); 0, -100, -2, 1) => "A=5" any, |i| x.at(i);
        (x: values("A=3 B=2"); 0, 2, 1, 1) => "A=0 B=2" any, |i| x.at(i);
    }
    select {
        (x: values("A=2 B=3 C=2"); "B", 1) => "A=2 C=2" any, |i| x.at(&[i[0], 1, i[1]]);
        (x: values("A=3"); 0, -1) => "" any, |i| x.at(&[2]);
        (x: values("A=3 B=0"); 0, 2) => "B=0" any, |i| x.at(i);
    }
    diagonal {
        (x: values("A=3 B=3")) => "3" any, |i| x.at(&[i[0], i[0]]);
        (x: values("A=3 C=2 B=4"); "A", "B", 1) => "C=2 ?=3" any, |i| x.at(&[i[1], i[0], i[1] + 1]);
        (x: values("A=3 B=4"); 0, 1, -1) => "2" any, |i| x.at(&[i[0] + 1, i[0]]);
        (x: values("A=3 B=4"); 0, 1, 9) => "0" any, |i| x.at(i);
        (x: values("A=2 B=2"); 0, 1, 0, "D") => "D=2" any, |i| x.at(&[i[0], i[0]]);
    }
    unfold {
        (x: values("A=2 B=5"); "B", 3, 2) => "A=2 B=2 ?=3" any, |i| x.at(&[i[0], 2 * i[1] + i[2]]);
        (x: values("A=4 B=2"); 0, 2, 1) => "A=3 B=2 ?=2" any, |i| x.at(&[i[0] + i[2], i[1]]);
        (x: values(""); 0, 1, 1) => "1" any, |i| x.at(&[]);
        (x: values("A=2"); 0, 0, 3) => "A=1 ?=0" any, |i| x.at(i);
        (x: values("A=3"); 0, 2, 1, "W") => "A=2 W=2" any, |i| x.at(&[i[0] + i[1]]);
    }
}
