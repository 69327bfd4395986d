//! Files of values: NumPy's `.npy`.

mod npy;
