//! [`Device`]: the device whose memory has the elements of a tensor.

use std::fmt;

/// The memory that holds the elements of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Device {
    /// The memory of the CPU.
    #[default]
    Cpu,
    /// The memory of the GPU with this number.
    Cuda(usize),
}

impl fmt::Display for Device {
    /// PyTorch's words: `cpu`, `cuda:0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}
