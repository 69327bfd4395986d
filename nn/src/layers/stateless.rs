//! The form of layers that call a function with stored arguments.

/// Layers without parameters. A row has the doc, the layer and its builder, the inputs, the arguments of
/// `new`, the weights, and the options with their defaults; then the call. The row
///
/// ```ignore
/// /// Doc.
/// Elu EluBuilder (x) {} [] { alpha: f64 = 1.0 } => F::elu_with(x, EluOptions { alpha });
/// ```
///
/// becomes a struct with the fields `alpha` and `path`, `Elu::new()?`, `Elu::builder().alpha(0.5).build()?`,
/// `forward(&self, x: &Tensor)` and `impl Layer<Tensor>`, and `Default` if `new` takes no arguments. Several
/// inputs are several arguments of `forward`, and a tuple in `Layer`. A weight is a buffer, so it is saved
/// with the model. In the call, each field is a variable with its name; `training` is whether the layer is
/// being trained.
macro_rules! stateless {
    ($(
        $(#[$doc:meta])*
        $layer:ident $builder:ident ($($input:ident),+) { $($dim:ident: $kind:ty),* } [$($weight:ident),*] {
            $($(#[$field_doc:meta])* $field:ident: $ty:ty = $default:expr),* $(,)?
        } => |$training:ident| $call:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, $crate::Module)]
        #[module(crate = crate, describe = $layer::text)]
        pub struct $layer {
            $($weight: Option<$crate::Buffer>,)*
            $(#[module(skip)] $dim: $kind,)*
            $(#[module(skip)] $field: $ty,)*
            training: $crate::training::Training,
            path: $crate::training::ModulePath,
        }

        #[doc = concat!("A builder for [`", stringify!($layer), "`]; see [`", stringify!($layer), "::builder`].")]
        #[derive(Clone, Debug)]
        pub struct $builder {
            $($weight: Option<Tensor>,)*
            $($dim: $kind,)*
            $($field: $ty,)*
        }

        impl $builder {
            $(
                /// The weight; the default is none.
                pub fn $weight(mut self, $weight: &Tensor) -> $builder {
                    self.$weight = Some($weight.clone());
                    self
                }
            )*
            $(
                $(#[$field_doc])*
                pub fn $field(mut self, $field: impl Into<$ty>) -> $builder {
                    self.$field = $field.into();
                    self
                }
            )*
            /// Builds the layer. Options that do not fit an input are errors of `forward`.
            ///
            /// # Errors
            /// None today.
            #[track_caller]
            pub fn build(self) -> Result<$layer> {
                Ok(self.layer())
            }

            fn layer(self) -> $layer {
                $layer {
                    $($weight: self.$weight.map($crate::Buffer::new),)*
                    $($dim: self.$dim,)*
                    $($field: self.$field,)*
                    training: $crate::training::Training::new(),
                    path: $crate::training::ModulePath::new(),
                }
            }
        }

        $crate::layers::stateless::default! { $layer $($dim)* }

        impl $layer {
            /// A layer with the defaults.
            ///
            /// # Errors
            /// Same as [`builder`](Self::builder).
            #[track_caller]
            pub fn new($($dim: impl Into<$kind>),*) -> Result<$layer> {
                $layer::builder($($dim),*).build()
            }

            /// A builder, to change the defaults of [`new`](Self::new).
            pub fn builder($($dim: impl Into<$kind>),*) -> $builder {
                $builder { $($weight: None,)* $($dim: $dim.into(),)* $($field: $default,)* }
            }

            /// The output.
            ///
            /// # Errors
            /// Those of the function in [`functional`](crate::functional) that the layer calls.
            #[track_caller]
            pub fn forward(&self, $($input: &Tensor),+) -> Result<Tensor> {
                let _running = self.path.running();
                $(
                    let $weight = self.$weight.as_ref().map(|weight| weight.tensor());
                    let $weight = $weight.as_ref().map(std::borrow::Cow::Borrowed);
                )*
                $(let $dim = self.$dim.clone();)*
                $(let $field = self.$field.clone();)*
                let $training = self.training.get();
                $call.map_err(|error| $crate::layers::within(error, stringify!($layer), &self.path))
            }

            #[allow(clippy::vec_init_then_push, unused_mut)] // some have no fields
            fn text(&self) -> String {
                let mut fields: Vec<String> = Vec::new();
                $(fields.push(format!(concat!(stringify!($dim), "={:?}"), self.$dim));)*
                $(fields.push(format!(concat!(stringify!($field), "={:?}"), self.$field));)*
                format!(concat!(stringify!($layer), "({})"), fields.join(", "))
            }
        }

        impl $crate::layers::Layer<$crate::layers::stateless::inputs!($($input),+)> for $layer {
            #[track_caller]
            fn forward(&self, given: &$crate::layers::stateless::inputs!($($input),+)) -> Result<Tensor> {
                $crate::layers::stateless::taken!(given => $($input),+);
                $layer::forward(self, $($input),+)
            }
        }
    )*};
}

/// `Default` for a layer whose `new` takes no arguments.
macro_rules! default {
    ($layer:ident) => {
        impl Default for $layer {
            /// Same as [`new`](Self::new).
            fn default() -> $layer {
                $layer::builder().layer()
            }
        }
    };
    ($layer:ident $($dim:ident)+) => {};
}

/// A tensor, or a tuple with a tensor for each input.
macro_rules! inputs {
    ($one:ident) => { Tensor };
    ($($input:ident),+) => { ($($crate::layers::stateless::inputs!($input)),+) };
}

/// The inputs as variables.
macro_rules! taken {
    ($given:ident => $one:ident) => { let $one = $given; };
    ($given:ident => $($input:ident),+) => { let ($($input),+) = $given; };
}

pub(crate) use {default, inputs, stateless, taken};
