//! Layers that hold other layers, and the layer that does nothing.

use super::*;
use std::ops::{Deref, DerefMut};

/// Returns its input: a place for a layer that a model does not have.
///
/// # Shapes
/// - `x`: any dims
/// - result: the dims of `x`
///
/// # Parameters
/// None.
///
/// # Examples
/// ```
/// use namegrad::nn::Identity;
/// use namegrad::prelude::*;
/// let x = Tensor::ones([("N", 2)])?;
/// assert!(Identity.forward(&x)?.equal(&x)?);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Module)]
#[module(crate = crate, layer)]
pub struct Identity;

impl Identity {
    /// The input.
    ///
    /// # Errors
    /// None.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

/// `x + inner(x)`: a layer around which the input is led. The path of the layer is `inner`.
///
/// # Shapes
/// - `x`: what the layer takes
/// - result: the dims of `x`, which the output of the layer must have, too, in any order if they have names
///
/// # Parameters
/// Those of the layer, under `inner`.
///
/// # Source
/// He et al., *Deep Residual Learning for Image Recognition* (2016), equation 1.
///
/// # Examples
/// ```
/// use namegrad::prelude::*;
/// let block = Residual::new(Sequential::new().then(Linear::new(("C", 4), ("C", 4))?).then(Relu));
/// let x = Tensor::randn([("N", 2), ("C", 4)])?;
/// assert_eq!(block.forward(&x)?.shape(), x.shape());
/// assert_eq!(block.named_parameters()[0].0, "inner.0.weight");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Residual<L> {
    inner: L,
    path: ModulePath,
}

/// By hand, for the copy in a box, which the derive macro has only for layers without type parameters.
impl<L: ModuleFields> ModuleFields for Residual<L> {
    fn fields(&self, visitor: &mut Visitor<'_>) {
        visitor.field("inner", &self.inner);
        visitor.field("path", &self.path);
    }

    fn describe(&self) -> String {
        "Residual".into()
    }

    fn clone_in_box(&self) -> Option<Box<dyn Layer>> {
        Some(Box::new(Residual { inner: self.inner.clone_in_box()?, path: self.path.clone() }))
    }
}

impl<L: ModuleFields> fmt::Display for Residual<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.summary(), f)
    }
}

impl<L: Layer> Residual<L> {
    /// A residual connection around `inner`.
    pub fn new(inner: L) -> Residual<L> {
        Residual { inner, path: ModulePath::new() }
    }

    /// The layer inside.
    pub fn inner(&self) -> &L {
        &self.inner
    }

    /// The sum of `x` and the output of the layer for `x`.
    ///
    /// # Errors
    /// The errors of the layer, and [`ErrorKind::Shape`] if its output does not have the dims of `x`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.path.forward_inner("inner", &self.inner, x)?;
        self.path.run("Residual", &[x, &y], &|_: &Running| sum(x, y.clone()))
    }
}

fn sum(x: &Tensor, y: Tensor) -> Result<Tensor> {
    let named = |x: &Tensor| (0..x.ndim()).all(|dim| x.name(dim).is_some());
    let y = if x.names() != y.names() && named(x) && named(&y) { y.align_as(x)? } else { y };
    if x.sizes() != y.sizes() {
        let message = "the output of a layer with a residual connection must have the dims of its input";
        return Err(Error::new(ErrorKind::Shape, "Residual", message).with_operands([x.shape(), y.shape()]));
    }
    x.add(&y)
}

impl<L: Layer> Layer for Residual<L> {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Residual::forward(self, x)
    }
}

impl<L: Layer> fmt::Debug for Residual<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A list of modules, whose paths are `0`, `1`, ... It has the methods of a slice; its own `forward` is the
/// model's. The modules have one type, which by default is any layer, in a `Box`.
///
/// # Examples
/// ```
/// use namegrad::nn::ModuleList;
/// use namegrad::prelude::*;
///
/// #[derive(Module)]
/// struct Model {
///     blocks: ModuleList<Linear>,
/// }
///
/// let mut blocks = ModuleList::new();
/// for _ in 0..3 {
///     blocks.push(Linear::new(("C", 4), ("C", 4))?);
/// }
/// let model = Model { blocks };
/// let mut x = Tensor::ones([("N", 2), ("C", 4)])?;
/// for block in model.blocks.iter() {
///     x = block.forward(&x)?.relu()?;
/// }
/// assert_eq!(model.named_parameters()[2].0, "blocks.1.weight");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Module)]
#[module(crate = crate, debug)]
pub struct ModuleList<M = Box<dyn Layer>> {
    #[module(flatten)]
    modules: Vec<M>,
}

impl<M> ModuleList<M> {
    /// An empty list.
    pub fn new() -> ModuleList<M> {
        ModuleList { modules: Vec::new() }
    }

    /// Appends a module.
    pub fn push(&mut self, module: M) {
        self.modules.push(module);
    }
}

impl<M> Default for ModuleList<M> {
    fn default() -> ModuleList<M> {
        ModuleList::new()
    }
}

impl<M> Extend<M> for ModuleList<M> {
    fn extend<I: IntoIterator<Item = M>>(&mut self, modules: I) {
        self.modules.extend(modules);
    }
}

impl<M> FromIterator<M> for ModuleList<M> {
    fn from_iter<I: IntoIterator<Item = M>>(modules: I) -> ModuleList<M> {
        ModuleList { modules: crate::list(modules.into_iter()) }
    }
}

impl<M> Deref for ModuleList<M> {
    type Target = [M];
    fn deref(&self) -> &[M] {
        &self.modules
    }
}

impl<M> DerefMut for ModuleList<M> {
    fn deref_mut(&mut self) -> &mut [M] {
        &mut self.modules
    }
}

impl<'a, M> IntoIterator for &'a ModuleList<M> {
    type Item = &'a M;
    type IntoIter = std::slice::Iter<'a, M>;
    fn into_iter(self) -> Self::IntoIter {
        self.modules.iter()
    }
}

/// Modules by name, in the order in which they were inserted; their names are their paths. The modules have
/// one type, which by default is any layer, in a `Box`.
///
/// # Examples
/// ```
/// use namegrad::nn::ModuleDict;
/// use namegrad::prelude::*;
/// let head = |name: &'static str, size: usize| Linear::new(("hidden", 4), (name, size));
/// let mut heads = ModuleDict::of([("class", head("class", 10)?), ("box", head("corner", 4)?)])?;
/// heads.insert("depth", head("depth", 1)?)?;
/// let h = Tensor::ones([("N", 2), ("hidden", 4)])?;
/// assert_eq!(heads.get("box")?.forward(&h)?.shape().to_string(), "[N=2, corner=4]");
/// assert_eq!(heads.named_parameters()[0].0, "class.weight");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Module)]
#[module(crate = crate, debug)]
pub struct ModuleDict<M = Box<dyn Layer>> {
    #[module(flatten)]
    modules: ByName<M>,
}

#[derive(Clone)]
struct ByName<M>(Vec<(String, M)>);

impl<M: Field> Field for ByName<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.0.iter().for_each(|(name, module)| visitor.field(name, module));
    }
}

impl<M> ModuleDict<M> {
    /// Without modules.
    pub fn new() -> ModuleDict<M> {
        ModuleDict { modules: ByName(Vec::new()) }
    }

    /// With these modules, which can be pairs of any iterator.
    ///
    /// # Errors
    /// Same as [`insert`](Self::insert).
    #[track_caller]
    pub fn of<N: Into<String>>(modules: impl IntoIterator<Item = (N, M)>) -> Result<ModuleDict<M>> {
        let mut dict = ModuleDict::new();
        dict.extend(modules)?;
        Ok(dict)
    }

    /// Adds modules, or replaces those with the same names.
    ///
    /// # Errors
    /// Same as [`insert`](Self::insert), after which the modules before the invalid name are added.
    #[track_caller]
    pub fn extend<N: Into<String>>(&mut self, modules: impl IntoIterator<Item = (N, M)>) -> Result<()> {
        for (name, module) in modules {
            self.insert(name, module)?;
        }
        Ok(())
    }

    /// Adds a module. Returns the module that had the name before.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] for a name that is empty or contains a dot, which separates the parts of a path.
    #[track_caller]
    pub fn insert(&mut self, name: impl Into<String>, module: M) -> Result<Option<M>> {
        let name = name.into();
        if name.is_empty() || name.contains('.') {
            let message = format!("the name of a module cannot be empty or contain a dot, got {name:?}");
            return Err(Error::new(ErrorKind::Value, "ModuleDict::insert", message));
        }
        if let Some((_, place)) = self.modules.0.iter_mut().find(|(own, _)| *own == name) {
            return Ok(Some(std::mem::replace(place, module)));
        }
        self.modules.0.push((name, module));
        Ok(None)
    }

    /// The module with this name.
    ///
    /// # Errors
    /// [`ErrorKind::Value`] if there is none; the error lists the names.
    #[track_caller]
    pub fn get(&self, name: &str) -> Result<&M> {
        let Some((_, module)) = self.modules.0.iter().find(|(own, _)| own == name) else {
            let names: Vec<&str> = crate::list(self.modules.0.iter().map(|(name, _)| name.as_str()));
            let message = format!("no module is called {name:?}; there are {names:?}");
            return Err(Error::new(ErrorKind::Value, "ModuleDict::get", message));
        };
        Ok(module)
    }

    /// The names and modules, in the order in which they were inserted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &M)> {
        self.modules.0.iter().map(|(name, module)| (name.as_str(), module))
    }

    /// The number of modules.
    pub fn len(&self) -> usize {
        self.modules.0.len()
    }

    /// Whether there are no modules.
    pub fn is_empty(&self) -> bool {
        self.modules.0.is_empty()
    }
}

impl<M> Default for ModuleDict<M> {
    fn default() -> ModuleDict<M> {
        ModuleDict::new()
    }
}
