//! [`Master`], the copy in `f32` of a parameter of a half type, in which steps add up.

use super::*;

/// A copy in `f32`. The parameter is this value rounded.
pub(crate) struct Master {
    pub(super) value: NamedTensor,
    /// The value to which the parameter was set. It shares the buffer with the parameter until something else
    /// changes that.
    pub(super) rounded: Option<NamedTensor>,
}

impl Master {
    /// Takes the elements of the parameter that something else has changed.
    fn follow(&mut self, param: &NamedTensor) -> Result<()> {
        if self.value.sizes() != param.sizes() {
            self.value = param.to(DType::F32)?;
            return Ok(());
        }
        if self.rounded.take().is_some_and(|rounded| is_same(&rounded, param)) {
            return Ok(());
        }
        let (now, before) = (param.unnamed(), self.value.unnamed());
        let is_kept = now.eq(&before.to(now.dtype())?)?;
        let value = is_kept.choose(&before, &now.to(DType::F32)?)?;
        self.value = value.with_names(self.value.names().clone());
        Ok(())
    }
}

/// Whether two tensors are the same view of the same buffer.
fn is_same(a: &NamedTensor, b: &NamedTensor) -> bool {
    a.data_ptr() == b.data_ptr()
        && a.dtype() == b.dtype()
        && a.sizes() == b.sizes()
        && a.strides() == b.strides()
}

/// Changes a parameter. If it is of a half type, `f` changes its master, which is made if there is none, and
/// the parameter becomes the result rounded.
pub(crate) fn change(
    master: &mut Option<Master>,
    param: &mut NamedTensor,
    f: &mut dyn FnMut(&mut NamedTensor) -> Result<()>,
) -> Result<()> {
    let dtype = param.dtype();
    if dtype == dtype.compute() {
        *master = None;
        return f(param);
    }
    let mut wide = match master.take() {
        Some(mut master) => {
            master.follow(param)?;
            master.value
        }
        None => param.to(DType::F32)?,
    };
    f(&mut wide)?;
    *param = wide.to(dtype)?.with_names(param.names().clone());
    *master = Some(Master { value: wide, rounded: Some(param.clone()) });
    Ok(())
}
