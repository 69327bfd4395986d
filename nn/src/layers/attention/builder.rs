//! The parameters of a new [`MultiheadAttention`].

use super::*;
use crate::functional::dropout::probability;
use namegrad_autograd::Blocks;

impl MultiheadAttentionBuilder {
    /// Builds the layer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidName`] for an invalid name; [`ErrorKind::Value`] for an invalid size, if `heads`
    /// does not divide `embed` or `kv_heads` does not divide `heads`, if `rotary` is of other features than
    /// those of a head, and for a `dropout` outside [0, 1];
    /// [`ErrorKind::DType`] for a dtype that is not floating-point.
    #[track_caller]
    pub fn build(self) -> Result<MultiheadAttention> {
        made(LAYER, self.config()?.layer())
    }
}

impl MultiheadAttentionConfig {
    /// A layer with new parameters.
    fn layer(mut self) -> Result<MultiheadAttention> {
        let MultiheadAttentionConfig { embed, kdim, vdim, heads, kv_heads, bias, add_bias_kv, dtype, .. } =
            self;
        let (value, rotary) = (ErrorKind::Value, self.rotary.take());
        Error::ensure(embed.1 > 0 && heads.1 > 0, value, LAYER, || {
            format!("embed and heads must be greater than 0, got {} and {}", embed.1, heads.1)
        })?;
        Error::ensure(embed.1.is_multiple_of(heads.1), value, LAYER, || {
            format!("embed must be divisible by heads, got {} and {}", dim_text(embed), dim_text(heads))
        })?;
        Error::ensure(kv_heads > 0 && heads.1.is_multiple_of(kv_heads), value, LAYER, || {
            format!("the number of heads must be divisible by kv_heads, got {} and {kv_heads}", heads.1)
        })?;
        let (width, turned) = (self.width(), rotary.as_ref().map(RotaryEmbedding::width));
        Error::ensure(turned.is_none_or(|turned| turned == width), value, LAYER, || {
            let turned = turned.unwrap_or(0);
            format!("the rotary positions must be of the {width} features of a head, got {turned}")
        })?;
        probability(LAYER, "dropout", self.dropout)?;
        let of_keys = self.of_keys();
        let qkv = of_keys.saturating_mul(2).saturating_add(embed.1);
        let qkv = (embed.0.map(|_| Name::new("qkv")).transpose()?, qkv);
        // A weight `[out, in]`, uniform in ±√(6 / (in + out)).
        let xavier = |out: Named, features: Named| {
            let bound = (6.0 / (out.1.saturating_add(features.1)).max(1) as f64).sqrt();
            uniform(LAYER, &[out, beside(features, &[out.0], "_in")?], bound, dtype).map(Some)
        };
        let merged = kdim.1 == embed.1 && vdim.1 == embed.1;
        let own = |out: Named, features: Named| if merged { Ok(None) } else { xavier(out, features) };
        let q_proj_weight = own(embed, embed)?;
        let k_proj_weight = own((embed.0, of_keys), kdim)?;
        let v_proj_weight = own((embed.0, of_keys), vdim)?;
        let options = TensorOptions::new().dtype(dtype);
        // Xavier normal, with fan in and fan out both the number of features.
        let extra = || -> Result<Option<Parameter>> {
            let noise = options.randn(shape_of(&[(None, 1), (None, 1), (embed.0, of_keys)])?)?;
            Parameter::new(noise.div((of_keys as f64).sqrt())?).map(Some)
        };
        let out_proj = Linear::builder(open(embed), open(embed)).bias(bias).dtype(dtype).build()?;
        if let Some(bias) = out_proj.bias() {
            crate::init::constant_(bias, 0.0)?;
        }
        let layer = MultiheadAttention {
            in_proj_weight: if merged { xavier(qkv, embed)? } else { None },
            q_proj_weight,
            k_proj_weight,
            v_proj_weight,
            in_proj_bias: if bias { Some(Parameter::new(options.zeros(shape_of(&[qkv])?)?)?) } else { None },
            bias_k: if add_bias_kv { extra()? } else { None },
            bias_v: if add_bias_kv { extra()? } else { None },
            out_proj,
            rotary,
            config: self,
            training: Training::new(),
            path: ModulePath::new(),
        };
        layer.say_blocks();
        Ok(layer)
    }
}

impl MultiheadAttention {
    /// Says in the parameters which dims consist of heads.
    fn say_blocks(&self) {
        let (own, of_keys) = (self.config.embed.1, self.config.of_keys());
        let Some(name) = self.config.heads.0 else { return };
        let qkv = [own, of_keys, of_keys];
        let (weight, [q, k, v]) =
            (&self.in_proj_weight, [&self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight]);
        let all: [(Option<&Parameter>, usize, &[usize]); 8] = [
            (weight.as_ref(), 0, &qkv),
            (self.in_proj_bias.as_ref(), 0, &qkv),
            (q.as_ref(), 0, &qkv[..1]),
            (k.as_ref(), 0, &qkv[1..2]),
            (v.as_ref(), 0, &qkv[2..]),
            (self.bias_k.as_ref(), 2, &qkv[1..2]),
            (self.bias_v.as_ref(), 2, &qkv[2..]),
            (Some(self.out_proj.weight()), 1, &qkv[..1]),
        ];
        for (parameter, dim, sizes) in all {
            let blocks = Blocks { dim, sizes: copied(sizes), of: (name, self.config.kv_heads) };
            parameter.into_iter().for_each(|parameter| parameter.set_blocks(blocks.clone()));
        }
    }
}
