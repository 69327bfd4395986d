//! Schedules: sequences, resuming, and rejected calls. Sequences recorded from PyTorch are compared in
//! `tests/conformance/main.rs`.

use namegrad_autograd::{Parameter, Tensor};
use namegrad_core::{Error, ErrorKind, NamedTensor, Result};
use namegrad_optim::schedule::{
    Anneal, Chained, Constant, Cosine, CosineRestarts, CycleMode, Cyclic, Exponential, Lambda, LinearRamp,
    Mode, MultiStep, Multiplicative, OneCycle, Polynomial, ReduceOnPlateau, ScaleMode, Schedule, Scheduler,
    SchedulerState, Sequence, StepDecay, SwaLr, ThresholdMode,
};
use namegrad_optim::{Adagrad, AdamW, Optimizer, Sgd};
use std::panic::Location;

/// Both globs can be used together: the names that both have are the same items.
mod globs {
    use namegrad::prelude::*;
    #[allow(unused_imports)] // the prelude has the same schedules
    use namegrad_optim::schedule::*;

    #[test]
    fn names_of_schedules_are_not_those_of_the_prelude() {
        assert_eq!(Chained::new(Cosine::new(3)).lr(0.0, 0.1, 0), 0.1);
        assert_eq!(Cosine::new(10).eta_min(1e-3).lr(0.0, 0.01, 0), 0.01);
        assert_eq!(*Tensor::ones([("N", 2)]).rename(["M"]).unwrap().names(), ["M"]);
    }
}

fn parameter() -> Result<Parameter> {
    Parameter::new(Tensor::constant(NamedTensor::from_slice(&[1.0_f32], [1])?))
}

/// An optimizer with two groups, whose rates are 0.1 and 0.01.
fn sgd() -> Result<Sgd> {
    Sgd::builder([parameter()?]).lr(0.1).group([parameter()?], |group| group.lr = 0.01).build()
}

type Boxed = Box<dyn Schedule>;
type Function = Box<dyn Fn(f64) -> f64 + Send + Sync>;

/// Every schedule, made twice with the same settings.
pub(crate) fn every() -> Vec<[Boxed; 2]> {
    fn twice<S: Schedule + 'static>(make: impl Fn() -> S) -> [Boxed; 2] {
        [Box::new(make()), Box::new(make())]
    }
    let halves = || Multiplicative::new(|step| if step % 3.0 == 0.0 { 0.7 } else { 1.1 });
    vec![
        twice(|| StepDecay::new(3).gamma(0.3)),
        twice(|| MultiStep::new([2, 5, 5, 9])),
        twice(|| Exponential::new(0.93)),
        twice(|| LinearRamp::new(7).start_factor(0.1).end_factor(0.9)),
        twice(|| Constant::new(4).factor(0.3)),
        twice(|| Polynomial::new(11).power(1.7)),
        twice(|| Cosine::new(6).eta_min(0.003)),
        twice(|| CosineRestarts::new(2).t_mult(2).eta_min(0.001)),
        twice(|| OneCycle::new([0.7, 0.2], 20)),
        twice(|| OneCycle::new(0.3, 20).three_phase(true).anneal_strategy(Anneal::Linear).max_momentum(0.99)),
        twice(|| Cyclic::new(0.01, [0.1, 0.3]).step_size_up(3).step_size_down(2)),
        twice(|| Cyclic::new(0.01, 0.1).step_size_up(3).mode(CycleMode::Triangular2)),
        twice(|| Cyclic::new(0.01, 0.1).step_size_up(3).mode(CycleMode::ExpRange(0.9)).cycle_momentum(false)),
        twice(|| Cyclic::new(0.01, 0.1).step_size_up(3).scale_fn(ScaleMode::Iterations, |x| 1.0 / (1.0 + x))),
        twice(|| Lambda::new(|step| 1.0 / (1.0 + step))),
        twice(|| Lambda::each([Box::new(|_| 0.5) as Function, Box::new(|step| 0.9_f64.powf(step))])),
        twice(halves),
        twice(|| Sequence::new(LinearRamp::new(3)).then(3, Cosine::new(6)).then(9, StepDecay::new(2))),
        twice(|| Sequence::new(Exponential::new(0.9)).then(4, halves()).then(8, OneCycle::new(0.2, 20))),
        twice(|| Chained::new(LinearRamp::new(3)).with(Exponential::new(0.9)).with(Cosine::new(5))),
        twice(|| SwaLr::new([0.5, 0.05])),
        twice(|| SwaLr::new(0.05).anneal_epochs(4).anneal_strategy(Anneal::Linear)),
        twice(|| SwaLr::new(0.05).anneal_epochs(0)),
        twice(|| Sequence::new(Exponential::new(0.9)).then(5, SwaLr::new(0.02).anneal_epochs(3))),
        twice(|| Cosine::new(9).warmup(4)),
        twice(|| halves().warmup(4)),
        twice(|| Sequence::new(Cosine::new(3)).then(3, Exponential::new(0.9)).warmup(2).start_factor(0.0)),
    ]
}

/// The rates and momentums of an optimizer, bit by bit.
fn bits(optimizer: &dyn Optimizer) -> Vec<u64> {
    let numbers = [optimizer.lrs(), optimizer.momentums().unwrap_or_default()];
    numbers.iter().flatten().map(|number| number.to_bits()).collect()
}

#[test]
fn a_resumed_schedule_continues_bit_by_bit() -> Result<()> {
    const STEPS: usize = 16;
    for [first, second] in every() {
        let name = first.name();
        let mut optimizer = sgd()?;
        let mut scheduler = Scheduler::new(first, &mut optimizer)?;
        let (mut states, mut trajectory) = (Vec::new(), Vec::new());
        for _ in 0..STEPS {
            let text = serde_json::to_string(&scheduler.state_dict()).unwrap();
            states.push((text, optimizer.state_dict()));
            trajectory.push(bits(&optimizer));
            scheduler.step(&mut optimizer)?;
        }
        let mut resumed = sgd()?;
        let mut other = Scheduler::new(second, &mut resumed)?;
        for (at, (text, state)) in states.iter().enumerate().rev() {
            let scheduler: SchedulerState = serde_json::from_str(text).unwrap();
            // Both orders
            if at % 2 == 0 {
                resumed.load_state_dict(state)?;
                other.load_state_dict(&scheduler, &mut resumed)?;
            } else {
                other.load_state_dict(&scheduler, &mut resumed)?;
                resumed.load_state_dict(state)?;
            }
            for (step, want) in trajectory.iter().enumerate().skip(at) {
                assert_eq!(&bits(&resumed), want, "{name} resumed at {at}, step {step}");
                other.step(&mut resumed)?;
            }
        }
        assert_eq!(scheduler.state_dict(), other.state_dict(), "{name}");
    }
    Ok(())
}

#[test]
fn a_resumed_plateau_continues_bit_by_bit() -> Result<()> {
    let metrics = [1.0, 0.9, 0.95, f64::NAN, 0.96, 0.2, f64::NEG_INFINITY, 0.1, 0.3, 0.3, f64::INFINITY, 0.3];
    for mode in [Mode::Min, Mode::Max] {
        let make =
            || ReduceOnPlateau::builder().mode(mode).patience(1).cooldown(1).factor(0.3).min_lr([1e-3, 0.0]);
        let mut optimizer = sgd()?;
        let mut scheduler = make().build(&optimizer)?;
        let mut states = Vec::new();
        for metric in metrics {
            states.push((serde_json::to_string(&scheduler.state_dict()).unwrap(), bits(&optimizer)));
            scheduler.step(metric, &mut optimizer)?;
        }
        for at in 0..metrics.len() {
            let mut resumed = sgd()?;
            let mut other = make().build(&resumed)?;
            other.load_state_dict(&serde_json::from_str(&states[at].0).unwrap(), &mut resumed)?;
            for step in at..metrics.len() {
                assert_eq!(bits(&resumed), states[step].1, "resumed at {at}, step {step}");
                other.step(metrics[step], &mut resumed)?;
            }
            assert_eq!(other, scheduler);
        }
    }
    Ok(())
}

#[test]
fn a_function_of_the_step_is_reached_in_any_order() -> Result<()> {
    for [schedule, again] in every() {
        let name = schedule.name();
        let mut optimizer = sgd()?;
        let mut scheduler = Scheduler::new(schedule, &mut optimizer)?;
        let mut trajectory = vec![optimizer.lrs()];
        for _ in 0..14 {
            scheduler.step(&mut optimizer)?;
            trajectory.push(optimizer.lrs());
        }
        for step in [9, 2, 14, 0, 7] {
            scheduler.step_to(step as f64, &mut optimizer)?;
            assert_eq!(optimizer.lrs(), trajectory[step], "{name} in step {step}");
            for (group, base) in [0.1, 0.01].into_iter().enumerate() {
                assert_eq!(
                    again.lr(step as f64, base, group),
                    trajectory[step][group],
                    "{name} in step {step}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn the_form_for_chains_gives_the_same_rates() {
    for [schedule, _] in every() {
        for (group, base) in [0.1, 0.01].into_iter().enumerate() {
            let mut last = base;
            for step in 0..6 {
                last = schedule.next(f64::from(step), last, base, group);
                let want = schedule.lr(f64::from(step), base, group);
                assert!(
                    (last - want).abs() < 1e-14,
                    "{}: {last} is not {want} in step {step}",
                    schedule.name()
                );
            }
        }
    }
}

#[test]
fn a_warmup_is_a_ramp_before_the_schedule() {
    let warmup = Polynomial::new(9).power(2.0).warmup(4).start_factor(0.1);
    let ramp = LinearRamp::new(4).start_factor(0.1);
    let sequence = Sequence::new(ramp).then(4, Polynomial::new(9).power(2.0));
    for step in 0..15 {
        let [lr, want] =
            [&warmup as &dyn Schedule, &sequence].map(|schedule| schedule.lr(f64::from(step), 0.3, 0));
        assert!((lr - want).abs() < 1e-15, "{lr} is not {want} in step {step}");
    }
    let without = Cosine::new(9).warmup(0);
    assert_eq!(
        [0.0, 3.0].map(|step| without.lr(step, 0.3, 0)),
        [0.0, 3.0].map(|step| Cosine::new(9).lr(step, 0.3, 0))
    );
    let from_first = OneCycle::new(0.5, 10).warmup(5);
    for (step, want) in [(0.0, 0.004), (5.0, 0.02)] {
        let lr = from_first.lr(step, 0.3, 0);
        assert!((lr - want).abs() < 1e-15, "{lr} is not {want} in step {step}");
    }
}

/// The rate after one of 0 is not a quotient of factors.
#[test]
fn factors_of_zero_are_chained() {
    let rates = |schedule: Chained| [0.0, 1.0, 2.0, 3.0].map(|step| schedule.lr(step, 0.5, 0));
    assert_eq!(rates(Chained::new(StepDecay::new(2).gamma(0.0))), [0.5, 0.5, 0.0, 0.0]);
    assert_eq!(rates(Chained::new(Constant::new(2).factor(0.0))), [0.0, 0.0, 0.5, 0.5]);
    assert_eq!(rates(Chained::new(Polynomial::new(2))), [0.5, 0.25, 0.0, 0.0]);
    let both = Chained::new(Constant::new(1).factor(0.5)).with(StepDecay::new(2).gamma(0.0));
    assert_eq!(rates(both), [0.25, 0.5, 0.0, 0.0]);
}

#[test]
fn groups_start_from_their_own_rates() -> Result<()> {
    let mut optimizer = sgd()?;
    let mut scheduler = Scheduler::new(StepDecay::new(1).gamma(0.5), &mut optimizer)?;
    scheduler.step(&mut optimizer)?;
    assert_eq!(optimizer.lrs(), [0.05, 0.005]);
    assert_eq!((scheduler.lrs(), scheduler.base_lrs()), (&[0.05, 0.005][..], &[0.1, 0.01][..]));
    optimizer.add_group([parameter()?], |group| group.lr = 1.0)?;
    refused(scheduler.step(&mut optimizer), "the optimizer has 3 groups, the scheduler was made for 2");
    assert_eq!((optimizer.lrs(), scheduler.steps()), (vec![0.05, 0.005, 1.0], 1.0));
    scheduler.add_groups(&mut optimizer)?;
    assert_eq!(optimizer.lrs(), [0.05, 0.005, 0.5]);
    scheduler.step(&mut optimizer)?;
    assert_eq!(optimizer.lrs(), [0.025, 0.0025, 0.25]);
    Ok(())
}

#[test]
fn a_cycle_moves_the_first_beta_of_adam() -> Result<()> {
    let mut optimizer = AdamW::new([parameter()?])?;
    let mut scheduler = Scheduler::new(Cyclic::new(0.1, 0.2).step_size_up(2), &mut optimizer)?;
    assert_eq!((optimizer.lrs(), optimizer.groups()[0].betas), (vec![0.1], (0.9, 0.999)));
    scheduler.step(&mut optimizer)?;
    scheduler.step(&mut optimizer)?;
    assert_eq!((optimizer.lrs(), optimizer.groups()[0].betas), (vec![0.2], (0.8, 0.999)));
    Ok(())
}

/// Checks an error of kind `Value` at a line of this file, which has a repair and these words.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, words: &str) {
    let error: Error = result.expect_err(words);
    assert_eq!(error.kind(), ErrorKind::Value, "{error}");
    assert!(error.message().contains(words), "{error}\nhas not: {words}");
    let (at, here) = (error.location(), Location::caller());
    assert!(
        at.file() == here.file() && at.line().abs_diff(here.line()) < 8,
        "{error} is at {at}, not {here}"
    );
}

#[test]
fn settings_out_of_range_are_refused() -> Result<()> {
    let mut optimizer = sgd()?;
    let before = bits(&optimizer);
    let nan = f64::NAN;
    let cases: Vec<(Boxed, &str)> = vec![
        (Box::new(StepDecay::new(0)), "Invalid step_size value: 0; it must be at least 1"),
        (Box::new(StepDecay::new(1).gamma(nan)), "Invalid gamma value: NaN; it must be finite"),
        (Box::new(MultiStep::new([1]).gamma(f64::INFINITY)), "Invalid gamma value: inf; it must be finite"),
        (Box::new(Exponential::new(nan)), "Invalid gamma value"),
        (Box::new(LinearRamp::new(0)), "Invalid total_iters value"),
        (
            Box::new(LinearRamp::new(5).start_factor(0.0)),
            "starting multiplicative factor expected to be greater than 0",
        ),
        (Box::new(LinearRamp::new(5).start_factor(nan)), "but is NaN"),
        (
            Box::new(LinearRamp::new(5).end_factor(1.5)),
            "ending multiplicative factor expected to be between 0 and 1",
        ),
        (
            Box::new(Constant::new(5).factor(-0.5)),
            "constant multiplicative factor expected to be between 0 and 1",
        ),
        (Box::new(Constant::new(0)), "Invalid total_iters value"),
        (Box::new(Polynomial::new(0)), "Invalid total_iters value"),
        (Box::new(Polynomial::new(5).power(nan)), "power must be finite"),
        (Box::new(Cosine::new(0)), "Invalid t_max value"),
        (Box::new(Cosine::new(10).eta_min(nan)), "Invalid eta_min value"),
        (Box::new(Cosine::new(0).warmup(10)), "Invalid t_max value"),
        (Box::new(Cosine::new(10).warmup(10).start_factor(nan)), "start_factor must be finite"),
        (Box::new(CosineRestarts::new(0)), "Invalid t_0 value: 0; it must be at least 1"),
        (Box::new(CosineRestarts::new(1).t_mult(0)), "expected integer t_mult >= 1, but got 0"),
        (Box::new(OneCycle::new(0.1, 0)), "Invalid total_steps value: 0; it must be at least 1"),
        (Box::new(OneCycle::new(0.1, 10).pct_start(1.5)), "expected pct_start between 0 and 1, but got 1.5"),
        (Box::new(OneCycle::new(0.1, 10).div_factor(0.0)), "div_factor must be finite and not 0"),
        (Box::new(OneCycle::new(nan, 10)), "Invalid max_lr value"),
        (Box::new(OneCycle::new([0.1], 10)), "max_lr has 1 values, the optimizer has 2 groups"),
        (Box::new(OneCycle::new(0.1, 10).base_momentum([0.1; 3])), "base_momentum has 3 values"),
        (Box::new(Cyclic::new(0.1, 0.2).step_size_up(0)), "Invalid step_size_up value"),
        (Box::new(Cyclic::new([0.1; 3], 0.2)), "base_lr has 3 values"),
        (Box::new(Cyclic::new(0.1, 0.2).mode(CycleMode::ExpRange(nan))), "gamma must be finite"),
        (Box::new(Lambda::each([Box::new(|_| 1.0) as Function])), "expected 2 functions, but got 1"),
        (Box::new(Lambda::new(|_| f64::NAN)), "the learning rate of group 0 in step 0 is NaN"),
        (
            Box::new(Sequence::new(Cosine::new(5)).then(4, Cosine::new(5)).then(3, Cosine::new(5))),
            "must not decrease",
        ),
        (Box::new(Sequence::from_list(vec![], [])), "expects at least one schedule"),
        (
            Box::new(Sequence::from_list(vec![Box::new(Cosine::new(5))], [1])),
            "one more than the number of milestones",
        ),
        (Box::new(Sequence::new(Cosine::new(5)).then(4, StepDecay::new(0))), "step_size"),
        (Box::new(Chained::from_list(vec![])), "expects at least one schedule"),
        (Box::new(Chained::new(StepDecay::new(0))), "step_size"),
    ];
    for (schedule, words) in cases {
        refused(Scheduler::new(schedule, &mut optimizer), words);
        assert_eq!(bits(&optimizer), before, "{words}");
    }
    let builder = ReduceOnPlateau::builder;
    refused(builder().factor(1.0).build(&optimizer), "factor should be < 1.0, but is 1.0");
    refused(builder().factor(f64::NAN).build(&optimizer), "factor should be < 1.0");
    refused(builder().threshold(f64::NAN).build(&optimizer), "threshold must be a number");
    refused(builder().min_lr([0.1]).build(&optimizer), "min_lr has 1 values, the optimizer has 2 groups");

    let mut without = Adagrad::new([parameter()?])?;
    refused(Scheduler::new(OneCycle::new(0.1, 10), &mut without), "must support momentum or beta1");
    let late = Sequence::new(Constant::new(2)).then(2, OneCycle::new(0.1, 10));
    refused(Scheduler::new(late, &mut without), "must support momentum or beta1");
    Scheduler::new(OneCycle::new(0.1, 10).cycle_momentum(false), &mut without)?;
    Ok(())
}

#[test]
fn steps_that_a_schedule_does_not_have_are_refused() -> Result<()> {
    let mut optimizer = sgd()?;
    let mut scheduler = Scheduler::new(OneCycle::new(0.1, 4).warmup(1), &mut optimizer)?;
    for _ in 0..5 {
        scheduler.step(&mut optimizer)?;
    }
    let before = bits(&optimizer);
    refused(
        scheduler.step(&mut optimizer),
        "tried to step 5 times, but the specified number of total steps is 4",
    );
    assert_eq!((bits(&optimizer), scheduler.steps()), (before, 5.0));

    // A line would go on below 0 after the last step.
    let line = OneCycle::new(0.5, 20).anneal_strategy(Anneal::Linear);
    let mut scheduler = Scheduler::new(line, &mut optimizer)?;
    for _ in 0..20 {
        scheduler.step(&mut optimizer)?;
    }
    assert_eq!(optimizer.lrs(), [0.0; 2]);

    let mut optimizer = sgd()?;
    let mut scheduler = Scheduler::new(Lambda::new(|step| 1.0 - 0.75 * step), &mut optimizer)?;
    scheduler.step(&mut optimizer)?;
    refused(scheduler.step(&mut optimizer), "Lambda in step 2: Invalid learning rate: -0.05");
    let mut scheduler = Scheduler::new(Lambda::new(|step| 1.0 / (2.0 - step)), &mut optimizer)?;
    scheduler.step(&mut optimizer)?;
    refused(scheduler.step(&mut optimizer), "the learning rate of group 0 in step 2 is inf");
    refused(
        scheduler.step_to(-1.0, &mut optimizer),
        "expected a finite step that is not negative, but got -1.0",
    );
    refused(scheduler.step_to(f64::NAN, &mut optimizer), "but got NaN");
    Ok(())
}

#[test]
fn the_state_of_another_schedule_is_refused_and_named() -> Result<()> {
    let mut optimizer = sgd()?;
    let mut scheduler = Scheduler::new(Cosine::new(10).warmup(2), &mut optimizer)?;
    let other = Scheduler::new(Cosine::new(20).eta_min(0.5).warmup(2), &mut sgd()?)?.state_dict();
    let before = bits(&optimizer);
    let words = "settings.eta_min is 0.0 here, 0.5 in the state; settings.t_max is 10 here, 20 in the state";
    refused(scheduler.load_state_dict(&other, &mut optimizer), words);
    let other = Scheduler::new(StepDecay::new(2), &mut sgd()?)?.state_dict();
    let words = "the schedule is Warmup here, StepDecay in the state";
    refused(scheduler.load_state_dict(&other, &mut optimizer), words);

    let mut single = Sgd::new([parameter()?])?;
    let state = scheduler.state_dict();
    let words = "the optimizer has 1 groups here, 2 in the state";
    refused(scheduler.load_state_dict(&state, &mut single), words);
    for damaged in [
        SchedulerState { step: -1.0, ..state.clone() },
        SchedulerState { lrs: vec![0.1], ..state.clone() },
        SchedulerState { base_lrs: vec![0.1, f64::NAN], ..state.clone() },
        SchedulerState { momentums: Some(vec![0.1]), ..state.clone() },
    ] {
        refused(scheduler.load_state_dict(&damaged, &mut optimizer), "the state is damaged");
    }
    assert_eq!((bits(&optimizer), scheduler.state_dict()), (before, state.clone()));

    let mut plateau = ReduceOnPlateau::new(&optimizer)?;
    let words = "the schedule is ReduceOnPlateau here, Warmup in the state";
    refused(plateau.load_state_dict(&state, &mut optimizer), words);
    let damaged = SchedulerState { memory: serde_json::Value::Null, ..plateau.state_dict() };
    refused(plateau.load_state_dict(&damaged, &mut optimizer), "its memory is null");
    let other = ReduceOnPlateau::builder().patience(3).build(&optimizer)?.state_dict();
    let error = plateau.load_state_dict(&other, &mut optimizer).unwrap_err();
    assert!(error.message().contains("patience"), "{error}");
    let file = namegrad_io::TensorFile::default();
    let error = SchedulerState::from_file(&file).unwrap_err();
    assert!(error.message().contains("not the state of a scheduler"), "{error}");
    Ok(())
}

#[test]
fn thresholds_are_relative_or_absolute() -> Result<()> {
    let reduced = |mode, threshold_mode, metrics: [f64; 2]| {
        let mut optimizer = sgd()?;
        let builder = ReduceOnPlateau::builder().patience(0).factor(0.5).mode(mode).threshold(0.5);
        let mut scheduler = builder.threshold_mode(threshold_mode).build(&optimizer)?;
        metrics.into_iter().try_for_each(|metric| scheduler.step(metric, &mut optimizer))?;
        Ok::<bool, Error>(optimizer.lr() < 0.1)
    };
    for (mode, threshold_mode, better, worse) in [
        (Mode::Min, ThresholdMode::Rel, 0.9, 1.1),
        (Mode::Min, ThresholdMode::Abs, 1.4, 1.6),
        (Mode::Max, ThresholdMode::Rel, 3.1, 2.9),
        (Mode::Max, ThresholdMode::Abs, 2.6, 2.4),
    ] {
        assert!(!reduced(mode, threshold_mode, [2.0, better])?, "{mode:?} {threshold_mode:?}");
        assert!(reduced(mode, threshold_mode, [2.0, worse])?, "{mode:?} {threshold_mode:?}");
    }
    Ok(())
}

#[test]
fn the_rates_of_swalr_are_those_of_pytorch() -> Result<()> {
    // From PyTorch 2.15, from a rate of 0.1.
    let cases = [
        (SwaLr::new(0.5).anneal_epochs(4), [0.1, 0.15857864376269049, 0.3, 0.4414213562373095, 0.5, 0.5]),
        (
            SwaLr::new(0.05).anneal_epochs(3).anneal_strategy(Anneal::Linear),
            [0.1, 0.08333333333333334, 0.06666666666666668, 0.05, 0.05, 0.05],
        ),
        (SwaLr::new(0.05).anneal_epochs(0), [0.05; 6]),
    ];
    let near = |found: f64, want: f64| assert!((found - want).abs() < 1e-15, "{found}, not {want}");
    for (schedule, want) in cases {
        let mut optimizer = Sgd::builder([parameter()?]).lr(0.1).build()?;
        let mut scheduler = Scheduler::new(schedule, &mut optimizer)?;
        for want in want {
            near(optimizer.lr(), want);
            scheduler.step(&mut optimizer)?;
        }
    }
    // After three steps of an exponential decay, from the rate at that time.
    let mut optimizer = Sgd::builder([parameter()?]).lr(0.1).build()?;
    let sequence = Sequence::new(Exponential::new(0.9)).then(3, SwaLr::new(0.02).anneal_epochs(3));
    let mut scheduler = Scheduler::new(sequence, &mut optimizer)?;
    let want = [0.1, 0.09, 0.081, 0.081, 0.06575, 0.03525, 0.02, 0.02];
    for want in want {
        near(optimizer.lr(), want);
        scheduler.step(&mut optimizer)?;
    }
    refused(Scheduler::new(SwaLr::new(f64::NAN), &mut optimizer), "Invalid swa_lr value");
    refused(Scheduler::new(SwaLr::new([0.1, 0.2]), &mut optimizer), "swa_lr has 2 values");
    Ok(())
}
