//! Labeled images in memory, and how they are split into a training set and a test set.

use super::Result;

/// Grayscale images of one size, each with its class.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Samples {
    /// Gray levels from 0 to 1, image after image, each row by row: `count * height * width` in total.
    pub(crate) pixels: Vec<f32>,
    /// The class of each image.
    pub(crate) labels: Vec<i64>,
    /// The number of rows of an image.
    pub(crate) height: usize,
    /// The number of columns of an image.
    pub(crate) width: usize,
}

impl Samples {
    /// The number of images.
    pub(crate) fn count(&self) -> usize {
        self.labels.len()
    }

    /// The number of pixels of an image.
    pub(crate) fn features(&self) -> usize {
        self.height * self.width
    }

    /// The first `train` images in the given order, and the rest.
    ///
    /// `order` is a permutation of `0..count`. The caller draws it, so that the seed of the run also
    /// determines the split.
    pub(crate) fn split(&self, order: &[usize], train: usize) -> Result<(Self, Self)> {
        let count = self.count();
        let mut seen = vec![false; count];
        let new = |&index: &usize| index < count && !std::mem::replace(&mut seen[index], true);
        if order.len() != count || !order.iter().all(new) {
            return Err(format!("split: the order is no permutation of the {count} samples").into());
        }
        if train == 0 || train >= count {
            return Err(format!("split: {train} of {count} samples to train on leave one part empty").into());
        }
        let (train, test) = order.split_at(train);
        Ok((self.select(train), self.select(test)))
    }

    /// The images at `indices`, which must all be below `count`.
    fn select(&self, indices: &[usize]) -> Self {
        let features = self.features();
        let image = |&index: &usize| &self.pixels[index * features..][..features];
        Self {
            pixels: indices.iter().flat_map(image).copied().collect(),
            labels: indices.iter().map(|&index| self.labels[index]).collect(),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Samples {
        Samples { pixels: vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5], labels: vec![7, 8, 9], height: 1, width: 2 }
    }

    #[test]
    fn a_split_follows_the_order() {
        let (train, test) = three().split(&[2, 0, 1], 2).unwrap();
        assert_eq!(
            train,
            Samples { pixels: vec![0.4, 0.5, 0.0, 0.1], labels: vec![9, 7], height: 1, width: 2 }
        );
        assert_eq!(test, Samples { pixels: vec![0.2, 0.3], labels: vec![8], height: 1, width: 2 });
    }

    #[test]
    fn a_split_refuses_what_is_no_permutation() {
        for order in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3], &[0, 1, 2, 2]] {
            assert!(three().split(order, 1).is_err(), "{order:?}");
        }
    }

    #[test]
    fn no_part_is_empty() {
        for train in [0, 3, usize::MAX] {
            assert!(three().split(&[0, 1, 2], train).is_err(), "{train}");
        }
    }
}
