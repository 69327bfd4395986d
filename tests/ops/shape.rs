//! Views and rearrangements.

use crate::check::values;
use crate::plain::{ravel, unravel};

cases! {
    transpose {
        (x: values("N=2 C=3 H=4"); 0, 2) => "H=4 C=3 N=2" any, |i| x.at(&[i[2], i[1], i[0]]);
        (x: values("N=2 C=3"); "C", "N") => "C=3 N=2" any, |i| x.at(&[i[1], i[0]]);
        (x: values("N=2 ?=3"); -1, -1) => "N=2 ?=3" any, |i| x.at(i);
        (x: values(""); 0, -1) => "" any, |i| x.at(i);
        (x: values("N=0 C=3"); 0, 1) => "C=3 N=0" any, |i| x.at(i);
    }
    t {
        (x: values("N=2 C=3")) => "C=3 N=2" any, |i| x.at(&[i[1], i[0]]);
        (x: values("N=2")) => "N=2" any, |i| x.at(i);
        (x: values("")) => "" any, |i| x.at(i);
    }
    mt { (x: values("A=2 N=2 C=3")) => "A=2 C=3 N=2" any, |i| x.at(&[i[0], i[2], i[1]]); }
    permute {
        (x: values("N=2 C=3 H=4"); [2, 0, 1]) => "H=4 N=2 C=3" any, |i| x.at(&[i[1], i[2], i[0]]);
        (x: values("N=2 C=3"); ["C", "N"]) => "C=3 N=2" any, |i| x.at(&[i[1], i[0]]);
        (x: values("N=0 ?=3"); [-1, 0]) => "?=3 N=0" any, |i| x.at(i);
    }
    movedim {
        (x: values("N=2 C=3 H=4"); 0, -1) => "C=3 H=4 N=2" any, |i| x.at(&[i[2], i[0], i[1]]);
        (x: values("N=2 C=3 H=4"); "H", "N") => "H=4 N=2 C=3" any, |i| x.at(&[i[1], i[2], i[0]]);
        (x: values(""); 0, 0) => "" any, |i| x.at(i);
        (x: values("N=2 C=3 H=4"); ["N", "C"], [2, 0]) => "C=3 H=4 N=2" any, |i| x.at(&[i[2], i[0], i[1]]);
    }
    squeeze {
        (x: values("A=1 B=2 C=1"); [0, 2]) => "B=2" any, |i| x.at(&[0, i[0], 0]);
        (x: values("A=1 B=2 C=1"); "..") => "B=2" any, |i| x.at(&[0, i[0], 0]);
        (x: values("A=1 B=2"); "B") => "A=1 B=2" any, |i| x.at(i);
        (x: values("A=1 B=0"); 0) => "B=0" any, |i| x.at(i);
        (x: values(""); 0) => "" any, |i| x.at(i);
    }
    unsqueeze {
        (x: values("A=2 B=3"); 1) => "A=2 ?=1 B=3" any, |i| x.at(&[i[0], i[2]]);
        (x: values("A=2"); -1) => "A=2 ?=1" any, |i| x.at(&i[..1]);
        (x: values(""); 0) => "?=1" any, |i| x.at(&[]);
        (x: values("A=0"); 0) => "?=1 A=0" any, |i| x.at(&[]);
        (x: values("A=2"); 0, "N") => "N=1 A=2" any, |i| x.at(&i[1..]);
    }
    expand {
        (x: values("A=1 B=3"); [2, -1]) => "A=2 B=3" any, |i| x.at(&[0, i[1]]);
        (x: values("B=3"); [2, 2, 3]) => "?=2 ?=2 B=3" any, |i| x.at(&i[2..]);
        (x: values(""); [2]) => "2" any, |i| x.at(&[]);
        (x: values("A=1"); [0]) => "A=0" any, |i| x.at(&[0]);
    }
    view {
        (x: values("A=2 B=6"); [2, 6]) => "A=2 B=6" any, |i| x.at(i);
        (x: values("5"); [-1, 1]) => "5 1" any, |i| x.at(&i[..1]);
        (x: values(""); [1, 1]) => "1 1" any, |i| x.at(&[]);
        (x: values("0 3"); [0, 5]) => "0 5" any, |i| x.at(i);
    }
    reshape {
        (x: values("A=2 B=6"); [3, -1]) => "3 4" any, |i| x.at(&unravel(ravel(i, &[3, 4]), &[2, 6]));
        (x: values("A=2 B=6"); [2, 6]) => "A=2 B=6" any, |i| x.at(i);
        (x: values("A=2 B=3"); [-1]) => "6" any, |i| x.at(&unravel(i[0], &[2, 3]));
        (x: values("A=4 B=3"); [2, 1, 2, 3]) => "2 1 2 3" any, |i| x.at(&[2 * i[0] + i[2], i[3]]);
        (x: values("A=1"); [] as [i32; 0]) => "" any, |i| x.at(&[0]);
        (x: values("0 3"); [3, 0]) => "3 0" any, |i| x.at(i);
    }
    flip {
        (x: values("A=2 B=3"); [0, 1]) => "A=2 B=3" any, |i| x.at(&[1 - i[0], 2 - i[1]]);
        (x: values("A=2 B=3"); "B") => "A=2 B=3" any, |i| x.at(&[i[0], 2 - i[1]]);
        (x: values("A=0 B=3"); "..") => "A=0 B=3" any, |i| x.at(i);
        (x: values(""); "..") => "" any, |i| x.at(i);
    }
    repeat {
        (x: values("A=2 B=3"); [2, 1]) => "A=4 B=3" any, |i| x.at(&[i[0] % 2, i[1]]);
        (x: values("B=3"); [2, 2]) => "?=2 B=6" any, |i| x.at(&[i[1] % 3]);
        (x: values(""); [3]) => "3" any, |i| x.at(&[]);
        (x: values("A=2"); [0]) => "A=0" any, |i| x.at(i);
    }
    contiguous {
        (x: values("A=2 B=3")) => "A=2 B=3" any, |i| x.at(i);
        (x: values("")) => "" any, |i| x.at(i);
        (x: values("A=0 B=3")) => "A=0 B=3" any, |i| x.at(i);
    }
}
