//! The docs of the generated code.

use crate::given::Side;
use crate::row::{OpRow, TensorKind};
use proc_macro2::TokenStream;
use quote::quote;

impl OpRow {
    /// The complete doc of the row, for a method in the crate of this side.
    pub(crate) fn doc(&self, side: &Side) -> TokenStream {
        let mut lines = self.doc_lines();
        if side.is_core() {
            // The examples use `namegrad`, which core cannot depend on.
            let mut inside = false;
            for line in lines.iter_mut().filter(|line| line.trim_start().starts_with("```")) {
                if !inside {
                    *line = line.replacen("```", "```ignore", 1);
                }
                inside = !inside;
            }
        }
        if !side.shows_methods() {
            lines
                .iter_mut()
                .for_each(|line| *line = line.replace("](Self::", "](namegrad_autograd::Tensor::"));
        }
        let has_errors = lines.iter().any(|line| line.trim() == "# Errors");
        let more = if has_errors { Vec::new() } else { self.errors(side) };
        let names = format!(" Names: {}.", self.rule_text());
        // The name rule comes before the sections. Lines in examples that start with `#` are not sections.
        let mut fenced = false;
        let is_section = |line: &String| {
            let line = line.trim_start();
            fenced ^= line.starts_with("```");
            !fenced && line.starts_with("# ")
        };
        let at = lines.iter().position(is_section).unwrap_or(lines.len());
        let mut rule = vec![String::new(), names, String::new()];
        if at == lines.len() {
            rule.pop();
        }
        lines.splice(at..at, rule);
        quote! { #(#[doc = #lines])* #(#[doc = #more])* }
    }

    /// The section on errors, from the arguments of the row.
    pub(crate) fn errors(&self, side: &Side) -> Vec<String> {
        let path = if side.is_core() { "crate" } else { "namegrad_core" };
        let kind = |name: &str| format!("[`{name}`]({path}::ErrorKind::{name})");
        let has = |types: &[&str]| self.args.iter().any(|arg| types.iter().any(|ty| arg.ty.is(ty)));
        let mut kinds: Vec<String> = Vec::new();
        if has(&["Dim", "Dims", "Reduced", "Matrix", "Contraction"]) {
            kinds.extend([kind("NameNotFound"), kind("DimRange")]);
        }
        if has(&["usize", "isize", "Shape", "Expansion"]) {
            kinds.push(kind("Value"));
        }
        if has(&["NewName", "Shape", "Expansion"]) {
            kinds.extend([kind("InvalidName"), kind("DuplicateName")]);
        }
        let several =
            self.tensors.len() > 1 || self.tensors.iter().any(|tensor| tensor.kind == TensorKind::List);
        if several {
            kinds.extend([kind("NameMismatch"), kind("Misaligned")]);
        } else if has(&["Expansion"]) {
            kinds.push(kind("NameMismatch"));
        }
        if several || has(&["Shape", "Expansion"]) {
            kinds.push(kind("Shape"));
        }
        kinds.extend([kind("DType"), kind("OutOfMemory")]);
        vec![String::new(), " # Errors".into(), format!(" {}.", kinds.join(", "))]
    }
}
