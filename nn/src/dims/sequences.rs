//! Where attention has the sequence, the features and the batch dims of its inputs.

use super::*;
use namegrad_core::Dim;

/// The dim of a sequence, as a layer is given it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seq {
    Name(Name),
    Index(isize),
}

impl Default for Seq {
    fn default() -> Seq {
        Seq::Index(0)
    }
}

impl Seq {
    #[track_caller]
    pub(crate) fn new(layer: &'static str, dim: impl Into<Dim>) -> Result<Seq> {
        match dim.into() {
            Dim::Name(name) => Ok(Seq::Name(name)),
            Dim::Unknown(text) => Name::new(&text).map(Seq::Name).map_err(|error| error.of(layer)),
            Dim::Index(index) => Ok(Seq::Index(index)),
        }
    }

    /// The dim as it was given.
    pub(crate) fn dim(self) -> Dim {
        match self {
            Seq::Name(name) => Dim::Name(name),
            Seq::Index(index) => Dim::Index(index),
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Seq::Name(name) => format!("{name}"),
            Seq::Index(index) => index.to_string(),
        }
    }

    /// The place in `x`: by name or index, or where PyTorch has it if `x` has no name there.
    pub(crate) fn place(self, x: &Tensor, features: usize, batch_first: bool) -> Option<usize> {
        let own = match self {
            Seq::Name(name) => x.names().position(name),
            Seq::Index(index) if index < 0 => x.ndim().checked_add_signed(index),
            Seq::Index(index) => Some(index as usize),
        };
        let by_position = || {
            let place = if batch_first { x.ndim() - 2 } else { 0 };
            Some(place).filter(|at| matches!(self, Seq::Name(_)) && x.name(*at).is_none() && !is_strict())
        };
        own.or_else(by_position).filter(|at| *at < x.ndim() && *at != features)
    }
}

/// A dim of a layer as an argument of another layer.
pub(crate) fn open((name, size): Named) -> (Option<&'static str>, usize) {
    (name.map(Name::as_str), size)
}

/// The positions of batch dims. `None` is one that the input does not have.
type BatchPlaces = Vec<Option<usize>>;

/// The dims of an input.
pub(crate) struct SequencePlaces {
    pub(crate) seq: usize,
    pub(crate) features: usize,
    /// The other dims: for queries in the order of the input; for keys and values in that of the queries,
    /// which may have dims that they lack.
    pub(crate) batch: BatchPlaces,
}

impl SequencePlaces {
    /// Whether the sequence comes before all batch dims.
    fn leads(&self) -> bool {
        self.batch.iter().flatten().all(|dim| self.seq < *dim)
    }

    /// The position of a dim once the features are the last dim.
    fn moved(&self, dim: usize) -> usize {
        dim - usize::from(dim > self.features)
    }

    /// The dims of a projection `[.., heads, width]` of the input as `[batch.., heads, seq, width]`, without
    /// the batch dims that the input lacks.
    pub(crate) fn heads_order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.batch.len() + 3);
        for dim in self.batch.iter().flatten() {
            order.push(self.moved(*dim));
        }
        let last = order.len() + 1;
        order.extend([last, self.moved(self.seq), last + 1]);
        order
    }
}

/// The names and sizes by which the dims of queries, keys and values are found.
#[derive(Clone, Copy)]
pub(crate) struct Sequences<'a> {
    pub(crate) of: Finder<'a>,
    pub(crate) seq: Seq,
    pub(crate) key_seq: Option<Seq>,
    pub(crate) batch_first: bool,
}

impl Sequences<'_> {
    /// The dims of the queries.
    pub(crate) fn queries(self, x: &Tensor, features: Named) -> Result<SequencePlaces> {
        let features = self.features(x, features)?;
        let Some(seq) = self.seq.place(x, features, self.batch_first) else {
            return Err(self.no_sequence(x, self.seq, features));
        };
        let batch = crate::list(others(x, &[seq, features]).into_iter().map(Some));
        Ok(SequencePlaces { seq, features, batch })
    }

    /// The dims of the keys or the values `x`.
    pub(crate) fn keys(
        self,
        (query, places): (&Tensor, &SequencePlaces),
        x: &Tensor,
        features: Named,
    ) -> Result<SequencePlaces> {
        // Features of which the layer knows only the size have the name of those of the queries, if `x` has it.
        let own = query.name(places.features).filter(|name| x.names().position(*name).is_some());
        let features = self.features(x, (features.0.or(own), features.1))?;
        let wanted = self.key_seq.unwrap_or(self.seq);
        let of_queries: Vec<usize> = crate::list(places.batch.iter().copied().flatten());
        let shared =
            |name: Option<Name>| name.is_some() && of_queries.iter().any(|dim| query.name(*dim) == name);
        let only = || {
            let mut left = others(x, &[features]);
            retain(&mut left, &|dim| !shared(x.name(*dim)));
            let [only] = left[..] else { return None };
            (x.name(only).is_some() && self.key_seq.is_none() && !is_strict()).then_some(only)
        };
        let Some(seq) = wanted.place(x, features, self.batch_first).or_else(only) else {
            return Err(self.no_sequence(x, wanted, features));
        };
        let own = others(x, &[seq, features]);
        Ok(SequencePlaces { seq, features, batch: self.matched(query, &of_queries, x, &own)? })
    }

    /// Checks that keys and values whose sequence is where PyTorch has it, since neither it nor all batch dims
    /// have names, are in the order of the inputs that have a name for theirs. The inputs are the queries, the
    /// keys and the values.
    pub(crate) fn check_order(self, inputs: [(&Tensor, &SequencePlaces); 3]) -> Result<()> {
        if matches!(self.key_seq.unwrap_or(self.seq), Seq::Index(_)) {
            return Ok(());
        }
        let all = || ["queries", "keys", "values"].into_iter().zip(inputs);
        for (what, (x, places)) in all().skip(1) {
            let is_unnamed = |dim: usize| x.name(dim).is_none();
            if !is_unnamed(places.seq) || !places.batch.iter().flatten().any(|dim| is_unnamed(*dim)) {
                continue;
            }
            for (other, (named, of_named)) in all() {
                let has_order =
                    named.name(of_named.seq).is_some() && of_named.batch.iter().any(Option::is_some);
                if has_order && of_named.leads() != places.leads() {
                    let (of, place) = (self.of, if places.leads() { "before" } else { "after" });
                    let message = format_args!(
                        "{of} would take unnamed dims of the {what} as those of a sequence {place} its batch dims, unlike in the {other}: name the dims of the {what}"
                    );
                    return Err(of.error(&inputs.map(|(x, _)| x), ErrorKind::Misaligned, message));
                }
            }
        }
        Ok(())
    }

    fn features(self, x: &Tensor, features: Named) -> Result<usize> {
        let limit = if x.has_names() { usize::MAX } else { 3 };
        if x.ndim() < 2 || x.ndim() > limit {
            let order = if self.batch_first { "[N, seq, features]" } else { "[seq, N, features]" };
            let more = if x.ndim() > limit { "; more batch dims need names" } else { "" };
            let what = format_args!("needs an input {order} or [seq, features], got {} dims{more}", x.ndim());
            return Err(self.of.wrong(x, ErrorKind::Shape, what));
        }
        self.of.place(x, features, x.ndim().checked_sub(1))
    }

    #[cold]
    fn no_sequence(self, x: &Tensor, seq: Seq, features: usize) -> Error {
        match seq {
            Seq::Name(name) => self.of.lacks(x, &name, &others(x, &[features])),
            Seq::Index(index) => {
                let what = format_args!(
                    "has its sequence in dim {index}, which the input does not have beside its features"
                );
                self.of.wrong(x, ErrorKind::DimRange, what)
            }
        }
    }

    /// For each batch dim of the queries, that of `x`: by name, the others by position from the right.
    fn matched(self, query: &Tensor, of_queries: &[usize], x: &Tensor, own: &[usize]) -> Result<BatchPlaces> {
        let mut found = by_name(x, &names_at(query, of_queries));
        found.iter_mut().for_each(|dim| *dim = dim.filter(|dim| is_in(own, *dim)));
        let mut left = copied(own);
        retain(&mut left, &|dim| !found.contains(&Some(*dim)));
        let mut free: Vec<usize> = crate::list((0..found.len()).filter(|at| found[*at].is_none()));
        let (of, both) = (self.of, [query, x]);
        while let Some(dim) = left.pop() {
            let what = dim_of(x, dim);
            let Some(at) = free.pop() else {
                let kind = if x.name(dim).is_some() { ErrorKind::NameNotFound } else { ErrorKind::Shape };
                let message = format_args!("{of}: the keys or values have {what}, the queries do not");
                return Err(of.error(&both, kind, message));
            };
            let names = (query.name(of_queries[at]), x.name(dim));
            if let (Some(of_query), Some(_)) = names {
                let message =
                    format_args!("{of}: the queries have the dim '{of_query}', the keys or values {what}");
                return Err(of.error(&both, ErrorKind::NameMismatch, message));
            }
            if is_strict() && names.0 != names.1 {
                return Err(of.strict(&both, format_args!("{what} as a dim of the queries")));
            }
            found[at] = Some(dim);
        }
        for (of_query, dim) in of_queries.iter().zip(&found) {
            let wanted = query.sizes()[*of_query];
            let size = dim.map_or(wanted, |dim| x.sizes()[dim]);
            if size != wanted {
                let dim = dim_of(query, *of_query);
                let message = format_args!(
                    "{of}: {dim} of the queries has size {wanted}, that of the keys or values {size}"
                );
                return Err(of.error(&both, ErrorKind::Shape, message));
            }
        }
        Ok(found)
    }
}
