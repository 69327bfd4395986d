//! Winograd's algorithm for images, a kernel of 3 × 3 and a stride of 1.
//!
//! It splits the result into tiles of `M × M` and multiplies each tile of the input and the weight by small
//! matrices, after which the convolution of a tile is a multiplication of `(M + 2)²` pairs of numbers in place
//! of `9 M²`. These numbers, of all tiles and channels, are `(M + 2)²` products of matrices. `M = 4` saves
//! three quarters of the multiplications, and `M = 2` five ninths.
//!
//! A thread takes some tiles at a time, whose numbers stay in its cache. Vectors have the channels of a place,
//! so the images of a block are transposed on the way in and out.
//!
//! [`maps`] has the small matrices.

mod maps;
#[cfg(test)]
mod tests;

use super::gathered::BLOCKS;
use super::windows::{GridRun, runs};
use super::{Geometry, To, WINOGRAD, volume};
use crate::cpu::matmul::{MatmulElement, MatrixView, NumberKind, add_sums, gemm_sums, with_buffer};
use crate::cpu::simd::isa;
use crate::cpu::storage::Storage;
use crate::cpu::threads::{each, parallel};
use maps::{MapFn, TileMaps, Tiles};
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The most numbers in a vector.
const LANES: usize = 16;
/// The most points of a tile.
const POINTS: usize = 36;
/// The tiles of a small block with so many points: a multiple of those that kernels multiply at a time.
const BLOCK: usize = 28;
/// The numbers for a point of a tile in a small block.
const NUMBERS: usize = 128;
/// The features whose results are formed at once.
const FEATURES: usize = 128;
/// The most tiles that are transposed at once.
const RUN: usize = 14;
/// The most channels of an input whose gradient of the weight is one task.
const STRIP: usize = 64;
/// The fewest tasks for the gradient of a weight, if there are so many blocks of tiles.
const TASKS: usize = 8;
/// The channels whose weights are mapped at once, so that the weights and the points are in whole cache lines.
const MAPPED: usize = 8;
/// The bytes of a number.
const SIZE: usize = size_of::<f32>();
/// Numbers between matrices, so that those of all points are in different sets of a cache.
const APART: usize = 16;
/// The fewest channels, of the input and of the output, for which the algorithm pays off.
const CHANNELS: usize = 16;
/// The fewest tiles for which it pays off.
const TILES: usize = 16;

/// A convolution of images by tiles.
pub(super) struct TiledConvolution {
    maps: &'static TileMaps,
    lanes: usize,
    batch: usize,
    /// The channels of the input, and of the result.
    channels: [usize; 2],
    /// The rows and columns of the input.
    input: [usize; 2],
    output: [usize; 2],
    /// The zeros before the input, or elements that are left out.
    padding: [isize; 2],
    /// Whether the weight is flipped and transposed.
    is_gradient: bool,
}

/// Neighboring tiles in a row of tiles.
struct TileRun {
    /// The first one, in the block.
    at: usize,
    image: usize,
    /// The row and the column of the first tile in its image.
    place: [usize; 2],
    len: usize,
}

/// Images whose tiles are mapped.
struct TiledImages {
    x: To,
    /// The channels of an image, and those that are used.
    channels: usize,
    used: Range<usize>,
    /// The rows and columns.
    sizes: [usize; 2],
    padding: [isize; 2],
    /// The elements of a tile along a side.
    side: usize,
    map: MapFn,
}

/// Matrices of numbers for each point of a tile.
#[derive(Clone, Copy)]
struct Points {
    numbers: *mut f32,
    /// The distance between the matrices.
    apart: usize,
    /// The distance between the rows of a matrix.
    width: usize,
}

// SAFETY: tasks write different rows.
unsafe impl Sync for Points {}

impl Points {
    /// Matrices after `memory`, with some rows.
    fn after(memory: *mut f32, rows: usize, width: usize) -> Points {
        Points { numbers: memory, apart: Points::apart(rows, width), width }
    }

    fn apart(rows: usize, width: usize) -> usize {
        rows * width + APART
    }

    /// The numbers of all points from a row and a column on.
    fn at(&self, row: usize, column: usize) -> *mut f32 {
        self.numbers.wrapping_add(row * self.width + column)
    }

    /// The matrix of a point from a column on.
    fn matrix(&self, point: usize, column: usize) -> MatrixView {
        let ptr = self.at(0, column).wrapping_add(point * self.apart);
        MatrixView::rows(ptr.cast(), self.width, SIZE)
    }
}

impl TiledConvolution {
    /// The convolution from `channels` to `features`, or the gradient of its input. `None` if the algorithm
    /// does not apply or does not pay off.
    pub(super) fn of(
        kind: &'static NumberKind,
        geometry: &Geometry,
        is_gradient: bool,
    ) -> Option<TiledConvolution> {
        let side = WINOGRAD.load(Ordering::Relaxed);
        let applies = side > 0
            && std::ptr::eq(kind, f32::kind())
            && geometry.groups == 1
            && geometry.kernel == [1, 3, 3]
            && geometry.stride == [1; 3]
            && geometry.dilation == [1; 3]
            && [geometry.input[0], geometry.output[0]] == [1, 1]
            && geometry.channels.min(geometry.features) >= CHANNELS;
        let maps = TileMaps::of(isa()).filter(|_| applies)?;
        let tiled = TiledConvolution::new(&maps[usize::from(side > 2)], geometry, is_gradient);
        (tiled.tiles() >= TILES).then_some(tiled)
    }

    /// The same where the algorithm applies.
    fn new(maps: &'static TileMaps, geometry: &Geometry, is_gradient: bool) -> TiledConvolution {
        let Geometry { batch, channels, features, input, output, padding, .. } = *geometry;
        let plane = |sizes: [usize; 3]| [sizes[1], sizes[2]];
        let padding = plane(padding).map(|padding| padding as isize);
        let (channels, mut planes) = ([channels, features], [plane(input), plane(output)]);
        if is_gradient {
            planes.reverse();
        }
        TiledConvolution {
            maps,
            lanes: maps.lanes,
            batch,
            channels: if is_gradient { [channels[1], channels[0]] } else { channels },
            input: planes[0],
            output: planes[1],
            padding: if is_gradient { padding.map(|padding| 2 - padding) } else { padding },
            is_gradient,
        }
    }

    /// The tiles along the two dims of an image.
    fn grid(&self) -> [usize; 3] {
        let [height, width] = self.output.map(|size| size.div_ceil(self.maps.side));
        [1, height, width]
    }

    /// All tiles.
    fn tiles(&self) -> usize {
        self.batch * volume(&self.grid())
    }

    /// The elements of an input tile along a side, which are as many as there are points.
    fn side(&self) -> usize {
        self.maps.side + 2
    }

    /// The points of a tile.
    fn points(&self) -> usize {
        self.side() * self.side()
    }

    /// The tiles of a block with so many numbers for a point of a tile. With few of them, all numbers stay in
    /// the cache of a core. With many, they are too many for it, and so are the weights, which are read for
    /// each block.
    fn block(&self, numbers: usize) -> usize {
        let most = BLOCK * (numbers / NUMBERS).clamp(1, 3) * POINTS / self.points();
        let tiles = self.tiles();
        tiles.div_ceil(tiles.div_ceil(most))
    }

    /// The number of channels, with those that fill a vector.
    fn padded(&self, channels: usize) -> usize {
        channels.next_multiple_of(self.lanes)
    }

    /// The runs of tiles in `from..from + count`.
    fn runs(&self, from: usize, count: usize) -> impl Iterator<Item = TileRun> {
        runs(self.grid(), from, count).flat_map(|GridRun { column, image, place, len }| {
            (0..len).step_by(RUN).map(move |start| TileRun {
                at: column + start,
                image,
                place: [place[1], place[2] + start],
                len: RUN.min(len - start),
            })
        })
    }

    /// The bytes of the weights of all points.
    pub(super) fn factor_bytes(&self) -> usize {
        let [channels, features] = self.channels;
        self.points() * Points::apart(channels, self.padded(features)) * SIZE
    }

    /// The numbers of the sums of one part of the gradient of the weight, the tiles of a block, and the parts.
    fn sums(&self) -> [usize; 3] {
        let [channels, features] = self.channels;
        let (width, strips) = (self.padded(features), channels.div_ceil(STRIP));
        let all = self.points() * Points::apart(channels, width);
        let block = self.block(self.padded(channels.min(STRIP)) + width);
        [all, block, (TASKS / strips).clamp(1, self.tiles().div_ceil(block))]
    }

    /// The bytes of the sums of the gradient of the weight.
    pub(super) fn sums_bytes(&self) -> usize {
        let [all, _, parts] = self.sums();
        parts * all * SIZE
    }

    /// Writes the result to `y`, or returns false if there is not enough memory.
    ///
    /// # Safety
    /// The operands have the sizes of the convolution.
    pub(super) unsafe fn write(&self, x: To, weight: To, bias: Option<&[f32]>, y: To) -> bool {
        let [channels, features] = self.channels;
        let width = self.padded(features);
        let Some(mut factor) = Storage::new(self.factor_bytes()) else { return false };
        let factor = Points::after(factor.data_mut().cast(), channels, width);
        let bias: Option<Vec<f32>> = bias.map(|bias| {
            let zeros = std::iter::repeat_n(0.0, width - features);
            bias.iter().copied().chain(zeros).collect()
        });
        // SAFETY: there is room for the channels of each point, and each is written by one task.
        parallel(channels, MAPPED, |channels| unsafe { self.map_weight(weight, channels, &factor) });
        let block = self.block(self.padded(channels) + width.min(FEATURES));
        // Many threads have few tiles each, which read the weight more often.
        let block = block.min(self.tiles().div_ceil(rayon::current_num_threads()).max(BLOCK / 4));
        each(self.tiles().div_ceil(block), &|task| {
            let from = task * block;
            let count = block.min(self.tiles() - from);
            // SAFETY: the weight is mapped, and no other task has these tiles.
            unsafe { self.write_block([from, count], x, &factor, bias.as_deref(), y) };
        });
        true
    }

    /// Maps the weights of some channels. The last vector of features is filled with zeros.
    ///
    /// # Safety
    /// There are such weights, and room for the points.
    unsafe fn map_weight(&self, weight: To, some: Range<usize>, to: &Points) {
        let ([channels, features], lanes) = (self.channels, self.lanes);
        let [of_channel, of_feature] = if self.is_gradient { [features * 9, 9] } else { [9, channels * 9] };
        let (first_tap, next_tap) = if self.is_gradient { (8, -1) } else { (0, 1) };
        for first in (0..features).step_by(lanes) {
            let mut taps = [0.0_f32; 9 * LANES];
            for channel in some.clone() {
                // SAFETY: the caller's contract.
                unsafe {
                    for lane in 0..lanes.min(features - first) {
                        let from = channel * of_channel + (first + lane) * of_feature;
                        let mut from = weight.ptr().cast::<f32>().add(from + first_tap);
                        // Opaque, since the compiler would make a long sequence of the loop.
                        for tap in 0..black_box(9) {
                            taps[tap * lanes + lane] = *from;
                            from = from.wrapping_offset(next_tap);
                        }
                    }
                    (self.maps.weight)(&Tiles {
                        from: (taps.as_ptr(), [3 * lanes, lanes, 0]),
                        to: (to.at(channel, first), [self.side() * to.apart, to.apart, 0]),
                        count: 1,
                        plus: None,
                    });
                }
            }
        }
    }

    /// The results of a block of tiles.
    ///
    /// # Safety
    /// The contract of [`write`](Self::write), and nothing else accesses these tiles of `y`.
    unsafe fn write_block(
        &self,
        [from, count]: [usize; 2],
        x: To,
        factor: &Points,
        bias: Option<&[f32]>,
        y: To,
    ) {
        let [channels, features] = self.channels;
        let images = self.inputs(x, 0..channels);
        let widths = [self.padded(channels), factor.width.min(FEATURES)];
        self.with_points(count, widths, &mut |patch, [tiles, sums]| {
            // SAFETY: there is room for the patch and the points of these tiles.
            unsafe {
                self.load(&images, [from, count], patch, tiles);
                for first in (0..features).step_by(sums.width) {
                    let some = sums.width.min(factor.width - first);
                    for point in 0..self.points() {
                        let [a, b] = [tiles.matrix(point, 0), factor.matrix(point, first)];
                        gemm_sums(f32::kind(), [count, channels, some], a, b, false, sums.matrix(point, 0));
                    }
                    for run in self.runs(from, count) {
                        for feature in (first..features.min(first + some)).step_by(self.lanes) {
                            let bias = bias.map(|bias| bias[feature..].as_ptr());
                            self.store(&run, sums, first, feature, bias, patch, y);
                        }
                    }
                }
            }
        });
    }

    /// Calls `f` with memory for a patch of a run of tiles, and for the points of some tiles in two matrices.
    fn with_points(&self, count: usize, widths: [usize; 2], f: &mut dyn FnMut(*mut f32, [&Points; 2])) {
        let patch = self.side() * (RUN * self.maps.side + 2) * self.lanes;
        let lengths = widths.map(|width| self.points() * Points::apart(count, width));
        with_buffer(&BLOCKS, (patch + lengths[0] + lengths[1]) * SIZE, &mut |memory| {
            let first = memory.cast::<f32>().wrapping_add(patch);
            let second = first.wrapping_add(lengths[0]);
            f(
                memory.cast(),
                [&Points::after(first, count, widths[0]), &Points::after(second, count, widths[1])],
            );
        });
    }

    /// The images of the input.
    fn inputs(&self, x: To, used: Range<usize>) -> TiledImages {
        TiledImages {
            x,
            channels: self.channels[0],
            used,
            sizes: self.input,
            padding: self.padding,
            side: self.side(),
            map: self.maps.input,
        }
    }

    /// Maps a block of tiles. The last vector of channels is filled with zeros.
    ///
    /// # Safety
    /// There are such images, and room for a patch and the points of the tiles.
    unsafe fn load(&self, images: &TiledImages, [from, count]: [usize; 2], patch: *mut f32, to: &Points) {
        let TiledImages { sizes, side, .. } = *images;
        let (step, lanes) = (self.maps.side, self.lanes);
        for run in self.runs(from, count) {
            let start = std::array::from_fn(|dim| (run.place[dim] * step) as isize - images.padding[dim]);
            let columns = run.len * step + side - step;
            for channel in images.used.clone().step_by(lanes) {
                let plane = (run.image * images.channels + channel) * sizes[0] * sizes[1];
                let some = lanes.min(images.used.end - channel);
                // SAFETY: the caller's contract.
                unsafe {
                    let plane = images.x.ptr().cast::<f32>().add(plane);
                    self.read((plane, sizes), some, start, [side, columns], patch);
                    (images.map)(&Tiles {
                        from: (patch, [columns * lanes, lanes, step * lanes]),
                        to: (
                            to.at(run.at, channel - images.used.start),
                            [self.side() * to.apart, to.apart, to.width],
                        ),
                        count: run.len,
                        plus: None,
                    });
                }
            }
        }
    }

    /// Transposes a patch of some channels of an image, so that each place has a vector of channels. There are
    /// zeros outside of the image.
    ///
    /// # Safety
    /// There are such channels, and room for the patch.
    unsafe fn read(
        &self,
        (plane, [height, width]): (*mut f32, [usize; 2]),
        channels: usize,
        start: [isize; 2],
        [rows, columns]: [usize; 2],
        to: *mut f32,
    ) {
        let lanes = self.lanes;
        // The columns inside of the image.
        let low = start[1].min(0).unsigned_abs().min(columns);
        let high = usize::try_from(width as isize - start[1]).map_or(0, |high| high.min(columns)).max(low);
        for row in 0..rows {
            let to = to.wrapping_add(row * columns * lanes);
            let at = usize::try_from(start[0] + row as isize).ok().filter(|at| *at < height && low < high);
            let zeros = match at {
                Some(_) if channels == lanes => [0..low, high..columns],
                _ => [0..columns, 0..0],
            };
            // SAFETY: the caller's contract. The elements are inside of the image.
            unsafe {
                for zeros in zeros {
                    to.add(zeros.start * lanes).write_bytes(0, zeros.len() * lanes);
                }
                if let Some(at) = at {
                    let from = plane.offset((at * width) as isize + start[1] + low as isize);
                    let from = MatrixView::rows(from.cast(), height * width, SIZE).t();
                    f32::kind().copy_matrix(from, [high - low, channels], to.add(low * lanes).cast(), lanes);
                }
            }
        }
    }

    /// Maps the sums of a vector of features of a run, whose first feature is `first`, and transposes the
    /// results.
    ///
    /// # Safety
    /// There is room for a patch, and nothing else accesses these tiles of `y`.
    unsafe fn store(
        &self,
        run: &TileRun,
        sums: &Points,
        first: usize,
        feature: usize,
        plus: Option<*const f32>,
        patch: *mut f32,
        y: To,
    ) {
        let (step, lanes, [rows, columns]) = (self.maps.side, self.lanes, self.output);
        let [top, left] = run.place.map(|place| place * step);
        let (features, row) = (self.channels[1], run.len * step * lanes);
        let sizes = [lanes.min(features - feature), (run.len * step).min(columns - left)];
        // SAFETY: the caller's contract.
        unsafe {
            (self.maps.output)(&Tiles {
                from: (sums.at(run.at, feature - first), [self.side() * sums.apart, sums.apart, sums.width]),
                to: (patch, [row, lanes, step * lanes]),
                count: run.len,
                plus,
            });
            let plane = y.ptr().cast::<f32>().add((run.image * features + feature) * rows * columns);
            for at in 0..step.min(rows - top) {
                let from = MatrixView::rows(patch.add(at * row).cast(), lanes, SIZE).t();
                let to = plane.add((top + at) * columns + left);
                f32::kind().copy_matrix(from, sizes, to.cast(), rows * columns);
            }
        }
    }

    /// Writes the gradient of the weight, or returns false if there is not enough memory.
    ///
    /// # Safety
    /// The operands have the sizes of the convolution.
    pub(super) unsafe fn write_weight(&self, x: To, g: To, dw: To) -> bool {
        let [channels, features] = self.channels;
        let width = self.padded(features);
        let [all, block, parts] = self.sums();
        let blocks = self.tiles().div_ceil(block);
        // Many threads have few channels each. No sum changes, but `g` is mapped more often.
        let strip = (channels * parts).div_ceil(rayon::current_num_threads());
        let strip = strip.next_multiple_of(LANES).min(STRIP);
        let strips = channels.div_ceil(strip);
        let Some(mut sums) = Storage::new(self.sums_bytes()) else { return false };
        let sums = To(sums.data_mut());
        let sums =
            |part: usize| Points::after(sums.ptr().cast::<f32>().wrapping_add(part * all), channels, width);
        each(parts * strips, &|task| {
            let (part, first) = (task / strips, task % strips * strip);
            let used = first..channels.min(first + strip);
            let first = part * blocks / parts;
            for at in first..(part + 1) * blocks / parts {
                let block = [at * block, block.min(self.tiles() - at * block)];
                // SAFETY: the caller's contract. No other task has these channels of this part.
                unsafe { self.add_block(block, x, g, used.clone(), &sums(part), at > first) };
            }
        });
        // SAFETY: the tasks have written the sums of all parts, and no other task has this channel.
        each(channels, &|channel| unsafe { self.finish_weight(channel, (&sums, parts), dw) });
        true
    }

    /// Adds the products of a block of tiles, of some channels and all features, to their sums, or writes
    /// them.
    ///
    /// # Safety
    /// The contract of [`write_weight`](Self::write_weight), and nothing else accesses these sums.
    unsafe fn add_block(
        &self,
        [from, count]: [usize; 2],
        x: To,
        g: To,
        used: Range<usize>,
        sums: &Points,
        add: bool,
    ) {
        let (some, first, features) = (used.len(), used.start, self.channels[1]);
        let images = [
            self.inputs(x, used),
            TiledImages {
                x: g,
                channels: features,
                used: 0..features,
                sizes: self.output,
                padding: [0; 2],
                side: self.maps.side,
                map: self.maps.gradient,
            },
        ];
        self.with_points(count, [self.padded(some), sums.width], &mut |patch, [of_x, of_g]| {
            // SAFETY: there is room for the patch and the points of these tiles, and for the sums.
            unsafe {
                self.load(&images[0], [from, count], patch, of_x);
                self.load(&images[1], [from, count], patch, of_g);
                for point in 0..self.points() {
                    let [a, b] = [of_x.matrix(point, 0).t(), of_g.matrix(point, 0)];
                    let mut c = sums.matrix(point, 0);
                    c.ptr = c.ptr.wrapping_offset(first as isize * c.row);
                    gemm_sums(f32::kind(), [some, count, sums.width], a, b, add, c);
                }
            }
        });
    }

    /// Adds the sums of all parts for a channel, and writes its weights.
    ///
    /// # Safety
    /// There are such sums, and nothing else accesses this channel of them and of `dw`.
    unsafe fn finish_weight(
        &self,
        channel: usize,
        (sums, parts): (&(dyn Fn(usize) -> Points + Sync), usize),
        dw: To,
    ) {
        let ([channels, features], lanes, total) = (self.channels, self.lanes, sums(0));
        // SAFETY: the caller's contract.
        unsafe {
            for point in 0..self.points() {
                let of_part = |part: usize| sums(part).at(channel, 0).add(point * total.apart).cast::<u8>();
                for part in 1..parts {
                    add_sums(f32::kind(), of_part(part), total.width, of_part(0));
                }
            }
            let mut taps = [0.0_f32; 9 * LANES];
            for first in (0..features).step_by(lanes) {
                (self.maps.weight_gradient)(&Tiles {
                    from: (total.at(channel, first), [self.side() * total.apart, total.apart, 0]),
                    to: (taps.as_mut_ptr(), [3 * lanes, lanes, 0]),
                    count: 1,
                    plus: None,
                });
                for lane in 0..lanes.min(features - first) {
                    let to = dw.ptr().cast::<f32>().add(((first + lane) * channels + channel) * 9);
                    for tap in 0..9 {
                        to.add(tap).write(taps[tap * lanes + lane]);
                    }
                }
            }
        }
    }
}
