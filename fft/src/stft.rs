//! Spectra of overlapping pieces of a signal, and back.

use crate::common::*;
use crate::complex::{imag, real};
use crate::engine::Kind;
use namegrad_nn::functional::options::PadOptions;
use namegrad_nn::functional::{PadMode, pad_with};
use rayon::prelude::*;

functional! { stft of fft;
    /// The spectrum of each piece of a signal, the short-time Fourier transform:
    /// `y[k, m] = Σ w[j] x[m hop + j] e^(-2πi jk / n)` for the pieces `m` of `n = n_fft` elements.
    ///
    /// * `hop_length` is the distance between pieces, by default `n_fft / 4`.
    /// * `window` is `w`, with `win_length` numbers, by default `n_fft` ones. It is in the middle of a piece,
    ///   and can be complex.
    /// * `center`: the piece `m` has the element `m hop` in its middle, for which the signal is extended by
    ///   `n_fft / 2` elements on both sides, by `pad_mode`. Otherwise it starts there.
    /// * `align_to_window`: without `center`, the *window* of piece `m` starts at `m hop`, not the piece.
    /// * `normalized` divides by `√n_fft`.
    /// * `onesided`: only the first half of each spectrum, `n_fft/2 + 1` values, the default for a real signal.
    /// * `name` is the name of the dim of frequencies. That of pieces keeps the name of `dim`.
    ///
    /// # Shapes
    /// - `x`: any dims that include `dim`; without names one or two, as in PyTorch; complex if one is called
    ///   `complex`
    /// - `window`: `[win_length]`, or complex `[win_length, 2]`
    /// - result: complex, the dims of `x`, with the two dims `[frequency, time]` in place of `dim`
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if a piece is longer than the signal, `win_length` longer than a piece, or
    /// `hop_length` 0; [`ErrorKind::Shape`] if the window has another size, [`ErrorKind::DType`] unless `x` is
    /// a float.
    ///
    /// # Source
    /// Allen, *Short Term Spectral Analysis, Synthesis, and Modification by Discrete Fourier Transform* (1977).
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::{complex, fft, fft::Window};
    /// let x = Tensor::randn([("N", 2), ("time", 1000)])?;
    /// let window = Window::Hann.periodic(256)?;
    /// let options = fft::StftOptions::new().window(&window).hop_length(64).name("frequency");
    /// let y = fft::stft_with(&x, "time", 256, options)?;
    /// assert_eq!(y.shape().to_string(), "[N=2, frequency=129, time=16, complex=2]");
    /// let back = fft::IstftOptions::new().window(&window).hop_length(64).length(1000);
    /// let same = fft::istft_with(&y, ["frequency", "time"], 256, back)?;
    /// assert!(same.allclose_with(&x, IscloseOptions::new().atol(1e-5))?);
    /// # Ok::<(), Error>(())
    /// ```
    stft (
        x, window?; dim: AnyAxis or AnyAxis::LAST, n_fft: usize, hop_length: Option<usize> = None, win_length: Option<usize> = None,
        center: bool = true, pad_mode: PadMode = PadMode::Reflect, normalized: bool = false,
        onesided: Option<bool> = None, align_to_window: Option<bool> = None, name: NewName = None
    ) on floats names keeps, window: along dim => {
        let (window, turned) = parts_of(window)?;
        let pieces = Pieces::new(op, x, window.as_ref(), n_fft, hop_length, win_length)?;
        if center && align_to_window.is_some() {
            return Err(Error::new(ErrorKind::Value, op, "`align_to_window` is for pieces without `center`"));
        }
        let (pair, dim) = (dim.pair, dim.dims[0]);
        if (pair.is_some() || turned.is_some()) && onesided == Some(true) {
            let message = "the spectrum of a complex signal, or of a complex window, has no one-sided form";
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        let parts = match pair {
            Some(pair) => vec![x.select(pair, 0)?, x.select(pair, 1)?],
            None => vec![x.clone()],
        };
        let cut = |window: Option<&Tensor>| -> Result<Vec<Tensor>> {
            let each = parts.iter().map(|part| {
                let part = if center { pieces.centered(part, dim, pad_mode)? } else { part.clone() };
                pieces.cut(&part, dim, window, align_to_window == Some(true))
            });
            each.collect()
        };
        let spectra = match (&cut(window.as_ref())?[..], turned) {
            (spectra, None) => spectra.to_vec(),
            (by_re, Some(im)) => match (by_re, &cut(Some(&im))?[..]) {
                ([re, turned_re], [im, turned_im]) => vec![re.sub(turned_im)?, im.add(turned_re)?],
                (by_re, by_im) => [by_re, by_im].concat(),
            },
        };
        let norm = if normalized { Norm::Ortho } else { Norm::Backward };
        let how = Transformed { kind: Kind::Complex, direction: Direction::Forward, norm };
        let none = Points::default();
        let names = [name];
        let names = if name.is_some() { &names[..] } else { &[] };
        let last = spectra[0].ndim() - 1;
        let y = match (&spectra[..], onesided) {
            ([re, im], _) => {
                let pieces = crate::complex::from_parts(re, im)?;
                transformed(op, &pieces, Found { pair: Some(last + 1), ..Found::real(last) }, &none, names, how)?
            }
            ([x], Some(false)) => {
                let pieces = crate::complex::from_real(x)?;
                transformed(op, &pieces, Found { pair: Some(last + 1), ..Found::real(last) }, &none, names, how)?
            }
            ([x, ..], _) => {
                transformed(op, x, Found::real(last), &none, names, Transformed { kind: Kind::ToHalf, ..how })?
            }
            ([], _) => return Err(Error::new(ErrorKind::Value, op, "expected a tensor")),
        };
        y.movedim(-2, dim)
    }
    /// The signal with these spectra of its pieces: the inverse of [`stft`], by least squares where the pieces
    /// contradict each other: `x = Σ w y / Σ w²`, summed over the pieces that overlap.
    ///
    /// `dim` are the dims of frequencies and pieces, which may have any places. The options are as in [`stft`].
    /// `length` is the size of the signal; without it, the end of the last piece is lost with `center`.
    /// `onesided` is by default whether there are not `n_fft` frequencies. `return_complex` gives a complex
    /// signal, which that of pieces with a complex window is.
    ///
    /// # Shapes
    /// - `x`: [complex](crate::complex), any dims that include `dim`; without names two or three beside that of
    ///   (re, im)
    /// - result: the other dims of `x`, with the size of the signal in place of the dim of pieces
    ///
    /// # Errors
    /// As [`stft`]; [`ErrorKind::Shape`] for another number of frequencies; [`ErrorKind::Value`] where an
    /// element of the signal is in no window that is not 0 there, and without pieces.
    ///
    /// # Source
    /// Griffin, Lim, *Signal Estimation from Modified Short-Time Fourier Transform* (1984), equation 6.
    ///
    /// # Examples
    /// ```
    /// use namegrad::prelude::*;
    /// use namegrad::fft;
    /// let x = Tensor::randn([("time", 16)])?;
    /// let y = fft::stft_with(&x, "time", 8, fft::StftOptions::new().name("frequency"))?;
    /// let back = fft::istft(&y, ["frequency", "time"], 8)?;
    /// assert!(back.allclose_with(&x, IscloseOptions::new().atol(1e-5))?);
    /// # Ok::<(), Error>(())
    /// ```
    istft (
        x, window?; dim: Axes or Axes::last_two(), n_fft: usize, hop_length: Option<usize> = None,
        win_length: Option<usize> = None, center: bool = true, normalized: bool = false,
        onesided: Option<bool> = None, length: Option<usize> = None, return_complex: bool = false
    ) on floats names removes, window: along dim => {
        let [frequency, time] = dim.dims[..] else {
            return Err(Error::new(ErrorKind::DimRange, op, "expected the two dims of frequencies and of pieces"));
        };
        if !x.has_names() && x.ndim() > 4 {
            return Err(Error::new(ErrorKind::Shape, op, "expected two or three dims beside that of (re, im)"));
        }
        // [.., time, frequency, (re, im)]
        let places = dim.places();
        let x = x.movedim([places[1], places[0], pair_dim(op, x.value())?], [-3, -2, -1])?;
        let (ndim, has) = (x.ndim(), x.sizes()[x.ndim() - 2]);
        if x.numel() == 0 {
            return Err(Error::new(ErrorKind::Value, op, "there are no pieces"));
        }
        let onesided = onesided.unwrap_or(has != n_fft);
        let wanted = if onesided { n_fft / 2 + 1 } else { n_fft };
        if has != wanted {
            let message = format!("expected {wanted} frequencies for `n_fft` {n_fft}, got {has}");
            return Err(Error::new(ErrorKind::Shape, op, message));
        }
        if onesided && return_complex {
            return Err(Error::new(ErrorKind::Value, op, "the one-sided spectrum is that of a real signal"));
        }
        let (window, turned) = parts_of(window)?;
        if turned.is_some() && !return_complex {
            let message = "the signal of pieces with a complex window is complex";
            return Err(Error::new(ErrorKind::Value, op, message).with_repair(".return_complex(true)"));
        }
        let pieces = Pieces::new(op, &x, window.as_ref(), n_fft, hop_length, win_length)?;
        if pieces.hop > pieces.window {
            let message = format!("pieces at a distance of {} are not covered by windows of {}", pieces.hop, pieces.window);
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        let norm = if normalized { Norm::Ortho } else { Norm::Backward };
        let how = Transformed { kind: Kind::Complex, direction: Direction::Inverse, norm };
        let found = Found { pair: Some(ndim - 1), ..Found::real(ndim - 2) };
        let n = Points { numbers: vec![n_fft as isize], ..Points::default() };
        let kind = if return_complex { Kind::Complex } else { Kind::FromHalf };
        let y = transformed(op, &x, found, &n, &[], Transformed { kind, ..how })?;
        // [.., time, element], with (re, im) in front if it is complex
        let y = if return_complex { y.movedim(-1, 0)? } else { y };
        let y = pieces.joined(op, &y, [window.as_ref(), turned.as_ref()], center, length)?;
        let y = if return_complex { y.movedim(0, -1)? } else { y };
        let place = if time < frequency { time } else { time - 1 };
        y.movedim(if return_complex { -2 } else { -1 }, place)
    }
}

/// The window, or the real and the imaginary part of a complex one.
fn parts_of(window: Option<&Tensor>) -> Result<(Option<Tensor>, Option<Tensor>)> {
    Ok(match window {
        Some(window) if window.ndim() == 2 => (Some(real(window)?), Some(imag(window)?)),
        window => (window.cloned(), None),
    })
}

/// `y i`, with (re, im) along the first dim.
fn turned_by_i(y: &Tensor) -> Result<Tensor> {
    Tensor::stack([y.select(0, 1)?.neg()?, y.select(0, 0)?], 0)
}

/// The pieces of a signal.
struct Pieces {
    /// The elements of a piece.
    n: usize,
    hop: usize,
    /// The numbers of the window.
    window: usize,
}

impl Pieces {
    fn new(
        op: &'static str,
        x: &Tensor,
        window: Option<&Tensor>,
        n: usize,
        hop: Option<usize>,
        length: Option<usize>,
    ) -> Result<Pieces> {
        let pieces = Pieces { n, hop: hop.unwrap_or(n / 4), window: length.unwrap_or(n) };
        let value = |message: String| Err(Error::new(ErrorKind::Value, op, message));
        if !matches!(x.dtype(), DType::F32 | DType::F64) {
            floats(op, x)?;
            let message = format!("expected a tensor of floats, got {}", x.dtype());
            return Err(Error::new(ErrorKind::DType, op, message).with_repair("x.to(DType::F32)?"));
        }
        if pieces.n == 0 {
            return value("`n_fft` must be at least 1, got 0".into());
        }
        if pieces.hop == 0 {
            return value(format!(
                "`hop_length` must be at least 1, got 0; its default is `n_fft / 4`, and `n_fft` is {n}"
            ));
        }
        if pieces.window == 0 || pieces.window > n {
            return value(format!("`win_length` must be from 1 to `n_fft` {n}, got {}", pieces.window));
        }
        match window {
            Some(window) if window.sizes() != [pieces.window] => {
                let message =
                    format!("expected a window of sizes [{}], got {:?}", pieces.window, window.sizes());
                Err(Error::new(ErrorKind::Shape, op, message))
            }
            _ => Ok(pieces),
        }
    }

    /// The signal with what centered pieces need before and after it.
    fn centered(&self, x: &Tensor, dim: usize, mode: PadMode) -> Result<Tensor> {
        let more = (self.n / 2) as isize;
        pad_with(x, [(dim, (more, more))], PadOptions::new().mode(mode))
    }

    /// The window, with zeros up to the size of a piece.
    fn window_of(&self, window: Option<&Tensor>, x: &Tensor) -> Result<Option<Tensor>> {
        let window = match window {
            Some(window) => window.rename(None)?,
            None if self.window == self.n => return Ok(None),
            None => x.new_ones([self.window])?,
        };
        let (before, all) = ((self.n - self.window) / 2, self.n - self.window);
        if all == 0 {
            return Ok(Some(window));
        }
        let (left, right) = (window.new_zeros([before])?, window.new_zeros([all - before])?);
        Tensor::cat(&[&left, &window, &right], 0).map(Some)
    }

    /// The pieces along the last dim, times the window; `dim` is that of the pieces.
    fn cut(&self, x: &Tensor, dim: usize, window: Option<&Tensor>, aligned: bool) -> Result<Tensor> {
        const OP: &str = "fft.stft";
        if !x.has_names() && x.ndim() > 2 || x.ndim() == 0 {
            let message = "expected a signal with one dim or with two, or with names";
            return Err(Error::new(ErrorKind::Shape, OP, message));
        }
        if let Some((own, name)) = x.name(dim).zip(window.and_then(|window| window.name(0)))
            && own != name
        {
            let message = format!("the window is along '{name}', and the signal along '{own}'");
            return Err(Error::new(ErrorKind::NameMismatch, OP, message));
        }
        let (size, has) = (x.sizes()[dim], if aligned { self.window } else { self.n });
        if size < has {
            let message = format!("pieces of {has} elements are longer than the signal of {size}");
            return Err(Error::new(ErrorKind::Value, OP, message));
        }
        let more = self.n - self.window;
        let x = match aligned && more > 0 {
            // The sides of a piece outside of its window are multiplied by zero.
            true => {
                pad_with(x, [(dim, ((more / 2) as isize, (more - more / 2) as isize))], PadOptions::new())?
            }
            false => x.clone(),
        };
        let x = x.unfold(dim, self.n, self.hop)?;
        match self.window_of(window, &x)? {
            Some(window) => x.mul(window),
            None => Ok(x),
        }
    }

    /// The signal of pieces in the last two dims, with a window or with the parts of a complex one. Complex
    /// pieces have (re, im) in front.
    fn joined(
        &self,
        op: &'static str,
        y: &Tensor,
        [window, turned]: [Option<&Tensor>; 2],
        center: bool,
        length: Option<usize>,
    ) -> Result<Tensor> {
        let pieces = y.sizes()[y.ndim() - 2];
        let size = self.n + self.hop * (pieces - 1);
        let window = match self.window_of(window, y)? {
            Some(window) => window,
            None => y.new_ones([self.n])?,
        };
        let names: Vec<Option<Name>> = y.names().iter(y.ndim() - 1).collect();
        let overlap = |weight: &Tensor| overlapped(&weight.expand([pieces, self.n])?, self.hop, size);
        let mut product = y.mul(&window)?.rename(None)?;
        let mut weights = overlap(&window.square()?)?;
        // The imaginary part of the weights of a complex window.
        let mut turned_weights = None;
        if let Some(turned) = turned {
            let turned = self.window_of(Some(turned), y)?.unwrap_or(turned.clone());
            product = product.add(turned_by_i(&y.rename(None)?)?.mul(&turned)?)?;
            weights = weights.sub(overlap(&turned.square()?)?)?;
            turned_weights = Some(overlap(&window.mul(&turned)?.mul(2.0)?)?);
        }
        let sums = overlapped(&product, self.hop, size)?;
        let start = if center { self.n / 2 } else { 0 };
        let end = match length {
            Some(length) => start.saturating_add(length),
            None if center => size - self.n / 2,
            None => size,
        };
        let kept = end.min(size).saturating_sub(start);
        if kept == 0 {
            let message = "the signal has no elements: the pieces are too few or `length` is 0";
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        let (mut sums, mut weights) = (sums.narrow(-1, start, kept)?, weights.narrow(0, start, kept)?);
        if let Some(turned) = turned_weights {
            // The quotient by `w + i t` is that of the product with `w - i t` by `w² + t²`.
            let turned = turned.narrow(0, start, kept)?;
            sums = sums.mul(&weights)?.sub(turned_by_i(&sums)?.mul(&turned)?)?;
            weights = weights.square()?.add(turned.square()?)?;
        }
        // Without elements, weights are not looked at.
        let is_meta = weights.device() == Device::Meta;
        let least = if is_meta { 1.0 } else { weights.detach().abs().amin(..)?.item::<f64>()? };
        if least.is_nan() || least <= 1e-11 {
            let message = "an element of the signal is in no window that is not 0 there: choose windows that \
                           overlap more, or `center`";
            return Err(Error::new(ErrorKind::Value, op, message));
        }
        let mut signal = sums.div(weights)?;
        if end > size {
            NamedTensor::check_room(op, end - size, size_of::<f64>())?;
            signal = pad_with(&signal, [(-1, (0, (end - size) as isize))], PadOptions::new())?;
        }
        match y.has_names() {
            true => signal.rename(names),
            false => Ok(signal),
        }
    }
}

/// The sums of pieces that overlap: the pieces are the dim before the last, `hop` apart in the result.
#[track_caller]
fn overlapped(x: &Tensor, hop: usize, size: usize) -> Result<Tensor> {
    let value = x.value().contiguous()?;
    let [outer, ending] = [&x.sizes()[..x.ndim() - 2], &x.sizes()[x.ndim() - 2..]];
    let (pieces, n) = (ending[0], ending[1]);
    let sizes = [outer, &[size]].concat();
    let mut sums = NamedTensor::full_as("fft.istft", &sizes[..], 0.into(), x.dtype())?;
    match x.dtype() {
        DType::F64 => overlap::<f64>(elements(&value)?, [pieces, n, hop], elements_mut(&mut sums)?),
        _ => overlap::<f32>(elements(&value)?, [pieces, n, hop], elements_mut(&mut sums)?),
    }
    let op = Op::new("overlapped", sums).input(x, move |g, _| {
        let last = g.ndim() - 1;
        g.unfold(last, n, hop) // the windows become the dim before the last
    });
    Ok(op.output())
}

fn overlap<T: Copy + Send + Sync + std::ops::AddAssign>(x: &[T], [pieces, n, hop]: [usize; 3], y: &mut [T]) {
    let size = n + hop * (pieces - 1);
    y.par_chunks_mut(size).zip(x.par_chunks(pieces * n)).for_each(|(y, x)| {
        for (piece, x) in x.chunks_exact(n).enumerate() {
            y[piece * hop..][..n].iter_mut().zip(x).for_each(|(y, x)| *y += *x);
        }
    });
}
