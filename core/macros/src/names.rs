//! The rule of names in a row, as data: what the result has, and how the names of each input meet those of
//! the first tensor. `words` puts it into a sentence, for the docs and the page of operators.
//!
//! ```text
//! rule   = "names" clause ("," clause)*
//! clause = RESULT | OUTPUT ":" RESULT | INPUT ":" MEETS
//! ```
//!
//! `names keeps, index: beside dim` is a result with the names of the first tensor, and an index whose dims
//! match those of the first tensor except along `dim`. [`RESULTS`] and [`MEETS`] are the words. An input is a
//! tensor or an argument, such as a list of sizes.
//!
//! Only what is not obvious is written. A row of one tensor removes dims if it has an argument of type
//! `Reduced`, and keeps names otherwise; an op by element unifies names. After `unifies` and `contracts`, all
//! tensors unify or are contracted unless a clause says otherwise. In any other row, each tensor after the
//! first needs a clause.

use crate::derivative::nearest;
use crate::row::{OpRow, Tensor, TensorKind, expect};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use std::fmt::Write;
use syn::parse::ParseStream;
use syn::{Error, Result, Token};

/// A word for the names of a result: whether it takes a target, and the sentence, with `{}` for the target.
type Word = (&'static str, bool, &'static str);

/// What the result of an op can have.
const RESULTS: [Word; 9] = [
    ("keeps", false, "keeps input names"),
    ("removes", false, "removes dimensions"),
    ("unifies", false, "unifies names from inputs"),
    ("permutes", false, "permutes dimensions"),
    ("contracts", false, "contracts away dims"),
    ("of", true, "keeps the names of `{}`"),
    ("called", true, "has the names in `{}`"),
    ("reshapes", false, "drops names unless the sizes do not change or new names are given"),
    ("unnamed", false, "gives unnamed dims"),
];

/// How the names of an input can meet those of the first tensor. The sentence follows the name of the input.
const MEETS: [Word; 12] = [
    ("unified", false, "unifies with the others"),
    ("matched", false, "matches dim by dim"),
    ("beside", true, "matches beside `{}`"),
    ("without", true, "matches without `{}`"),
    ("along", true, "is along `{}`"),
    ("picks", true, "has positions along `{}`"),
    ("renames", true, "gives its name to `{}`"),
    ("contracted", false, "is contracted"),
    ("by", true, "is matched by `{}`"),
    ("aligned", false, "is aligned by name"),
    ("own", false, "has dims of its own"),
    ("free", false, "has names that are not looked at"),
];

/// Targets that are not arguments or tensors.
const PLACES: [&str; 5] = ["last", "rows", "channels", "batch", "indexed"];

/// A rule: a word with its target.
#[derive(Clone)]
pub(crate) struct Rule {
    word: Word,
    target: Option<Ident>,
}

/// The rule of a row.
#[derive(Clone)]
pub(crate) struct NameRules {
    result: Rule,
    /// The outputs with rules of their own.
    outputs: Vec<(Ident, Rule)>,
    /// The inputs, tensors and arguments, with rules of their own.
    inputs: Vec<(Ident, Rule)>,
}

impl Rule {
    fn plain(words: &[Word], word: &str) -> Rule {
        let word = words.iter().find(|(known, ..)| *known == word).expect("a word of the table");
        Rule { word: *word, target: None }
    }

    fn is(&self, word: &str) -> bool {
        self.word.0 == word
    }

    fn parse(input: ParseStream<'_>, row: &OpRow, words: &[Word], of: &str) -> Result<Rule> {
        let op = &row.name;
        let listed = || words.iter().map(|(word, ..)| *word).collect::<Vec<_>>().join(", ");
        let word: Ident = expect(input, format!("`{op}`: expected the rule of {of}, one of {}", listed()))?;
        let Some(known) = words.iter().find(|(known, ..)| word == known) else {
            let near = nearest(&word.to_string(), words.iter().map(|(word, ..)| (*word).to_string()));
            let message = format!("`{op}`: `{word}` is not a rule of {of}{near}; there are {}", listed());
            return Err(Error::new(word.span(), message));
        };
        if !known.1 {
            return Ok(Rule { word: *known, target: None });
        }
        let target: Ident =
            expect(input, format!("`{op}`: expected a tensor or an argument after `{word}`"))?;
        if !row.inputs().any(|input| *input == target) && !PLACES.iter().any(|place| target == place) {
            let near = nearest(&target.to_string(), row.inputs().map(Ident::to_string));
            let message = format!("`{op}`: `{target}` is not a tensor or an argument of this row{near}");
            return Err(Error::new(target.span(), message));
        }
        Ok(Rule { word: *known, target: Some(target) })
    }

    fn words(&self) -> String {
        let target = self.target.as_ref().map(Ident::to_string).unwrap_or_default();
        let text =
            if PLACES.contains(&&*target) { self.word.2.replace("`{}`", "{}") } else { self.word.2.into() };
        match &*target {
            "last" => text.replace("{}", "the last dim"),
            "rows" | "channels" => text.replace("{}", &format!("the {target}")),
            "batch" => text.replace("{}", "the batch"),
            "indexed" => text.replace("{}", "the indexed dims"),
            _ => text.replace("{}", &target),
        }
    }

    /// The rule as a variant of an enum of core.
    fn tokens(&self, kind: &TokenStream) -> TokenStream {
        let mut letters = self.word.0.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        let variant = format_ident!("{}", first.chain(letters).collect::<String>());
        match self.target.as_ref().map(Ident::to_string) {
            Some(target) => quote!(#kind::#variant(#target)),
            None => quote!(#kind::#variant),
        }
    }
}

impl OpRow {
    fn inputs(&self) -> impl Iterator<Item = &Ident> {
        self.tensors.iter().map(|tensor| &tensor.name).chain(self.args.iter().map(|arg| &arg.name))
    }

    /// Parses the clauses after `names`.
    pub(crate) fn parse_names(&self, input: ParseStream<'_>) -> Result<NameRules> {
        let mut rules = NameRules { result: self.obvious(), outputs: Vec::new(), inputs: Vec::new() };
        let mut said = false;
        loop {
            let of: Option<Ident> = match input.peek2(Token![:]) && !input.peek2(Token![::]) {
                true => Some(input.parse()?),
                false => None,
            };
            if of.is_some() {
                input.parse::<Token![:]>()?;
            }
            match of {
                None if said => {
                    let message = format!("`{}`: expected an input or an output, and `:`", self.name);
                    return Err(crate::row::here(input, message));
                }
                None => {
                    said = true;
                    rules.result = Rule::parse(input, self, &RESULTS, "the result")?;
                }
                Some(of) if self.inputs().any(|input| *input == of) => {
                    let rule = Rule::parse(input, self, &MEETS, "an input")?;
                    rules.inputs.push((of, rule));
                }
                Some(of) if self.outputs.names.contains(&of) => {
                    let rule = Rule::parse(input, self, &RESULTS, "the result")?;
                    rules.outputs.push((of, rule));
                }
                Some(of) => {
                    let known = self.inputs().chain(&self.outputs.names).map(Ident::to_string);
                    let near = nearest(&of.to_string(), known);
                    let message = format!("`{}`: `{of}` is not an input or an output{near}", self.name);
                    return Err(Error::new(of.span(), message));
                }
            }
            if input.parse::<Option<Token![,]>>()?.is_none() {
                break;
            }
        }
        Ok(rules)
    }

    /// What the result has if the row does not say it.
    fn obvious(&self) -> Rule {
        let several = self.tensors.len() > 1;
        let word = match (several && self.by_element(), self.reduces()) {
            (true, _) => "unifies",
            (_, true) => "removes",
            _ => "keeps",
        };
        Rule::plain(&RESULTS, word)
    }

    /// The rules of the row, said or obvious.
    fn rules(&self) -> NameRules {
        let obvious = || NameRules { result: self.obvious(), outputs: Vec::new(), inputs: Vec::new() };
        self.names.clone().unwrap_or_else(obvious)
    }

    /// Checks that nothing is left open.
    pub(crate) fn check_names(&self) -> Result<()> {
        let rules = self.rules();
        if self.by_element() || rules.result.is("unifies") || rules.result.is("contracts") {
            return Ok(());
        }
        let open = self
            .tensors
            .iter()
            .skip(usize::from(!self.takes_list()))
            .find(|tensor| rules.of(tensor).is_none());
        match open {
            None => Ok(()),
            Some(tensor) => {
                let words = MEETS.iter().map(|(word, ..)| *word).collect::<Vec<_>>().join(", ");
                let message = format!(
                    "expected how the names of `{0}` meet those of the first tensor, as `names keeps, {0}: matched`; the words are {words}",
                    tensor.name
                );
                Err(self.error(tensor.name.span(), message))
            }
        }
    }

    /// The rule in words, for docs.
    pub(crate) fn rule_text(&self) -> String {
        let rules = self.rules();
        let mut text = rules.result.words();
        if let Some(arg) = self
            .args
            .iter()
            .find(|arg| rules.result.is("called") && rules.result.target.as_ref() == Some(&arg.name))
        {
            text = match (arg.ty.is("NewName"), arg.ty.is("NewNames")) {
                (true, _) => format!("gives a dim called `{}`, or an unnamed one", arg.name),
                (_, true) => format!("gives dims called `{}`, or unnamed ones", arg.name),
                _ => text,
            };
        }
        for (output, rule) in &rules.outputs {
            let _ = write!(text, "; `{output}` {}", rule.words());
        }
        let named = rules.results().filter(|rule| rule.is("called")).filter_map(|rule| rule.target.as_ref());
        let named: Vec<&Ident> = named.collect();
        let said = |arg: &Ident| named.contains(&arg) || rules.inputs.iter().any(|(input, _)| input == arg);
        for arg in self.args.iter().filter(|arg| !said(&arg.name)) {
            if arg.ty.is("NewName") {
                let _ = write!(text, "; the new dim is called `{}` or unnamed", arg.name);
            } else if arg.ty.is("NewNames") {
                let _ = write!(text, "; new dims are called `{}` or unnamed", arg.name);
            }
        }
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (input, rule) in &rules.inputs {
            let (input, words) = (format!("`{input}`"), rule.words());
            match groups.iter_mut().find(|(known, _)| *known == words) {
                Some((_, inputs)) => inputs.push(input),
                None => groups.push((words, vec![input])),
            }
        }
        for (words, inputs) in groups {
            let _ = match &inputs[..] {
                [one] => write!(text, "; {one} {words}"),
                [others @ .., last] => write!(text, "; {} and {last} {}", others.join(", "), plural(&words)),
                [] => Ok(()),
            };
        }
        text
    }

    /// What the results have, as data.
    pub(crate) fn outcomes(&self, core: &TokenStream) -> TokenStream {
        let (rules, kind) = (self.rules(), quote!(#core::names::Outcome));
        let each = self.outputs.names.iter().map(|output| {
            let own = rules.outputs.iter().find(|(of, _)| of == output).map(|(_, rule)| rule);
            own.unwrap_or(&rules.result).tokens(&kind)
        });
        quote!(&[#(#each),*])
    }

    /// How the names of a tensor meet those of the first, as data.
    pub(crate) fn meets(&self, tensor: &Tensor, core: &TokenStream) -> TokenStream {
        let (rules, kind) = (self.rules(), quote!(#core::names::Meets));
        if let Some(rule) = rules.of(tensor) {
            return rule.tokens(&kind);
        }
        let first = self.tensors[0].name == tensor.name && tensor.kind != TensorKind::List;
        match first {
            true => quote!(#kind::First),
            false if rules.result.is("contracts") => quote!(#kind::Contracted),
            false => quote!(#kind::Unified),
        }
    }

    /// How the names in an argument meet those of the first tensor, as data.
    pub(crate) fn meets_of_arg(&self, arg: &Ident, core: &TokenStream) -> TokenStream {
        let (rules, kind) = (self.rules(), quote!(#core::names::Meets));
        match rules.inputs.iter().find(|(of, _)| of == arg) {
            Some((_, rule)) => {
                let rule = rule.tokens(&kind);
                quote!(::std::option::Option::Some(#rule))
            }
            None => quote!(::std::option::Option::None),
        }
    }
}

impl NameRules {
    fn of(&self, tensor: &Tensor) -> Option<&Rule> {
        self.inputs.iter().find(|(of, _)| *of == tensor.name).map(|(_, rule)| rule)
    }

    fn results(&self) -> impl Iterator<Item = &Rule> {
        std::iter::once(&self.result).chain(self.outputs.iter().map(|(_, rule)| rule))
    }
}

/// A sentence of [`MEETS`] about several inputs.
fn plural(words: &str) -> String {
    let (verb, rest) = words.split_once(' ').expect("a sentence has a verb and more");
    let verb = match verb {
        "has" => "have",
        "is" => "are",
        "unifies" => "unify",
        "gives" => "give",
        "matches" => "match",
        other => other,
    };
    format!("{verb} {}", rest.replace("its ", "their "))
}
